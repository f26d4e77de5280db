"""Figures about the running service in the text format of Prometheus.

The format is a few lines of text, so that no library is needed. The figures of prometheus-client would also be shared by all
services of a process, and each of its observations takes a lock.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import time
from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Upper bounds of the bins of durations, in seconds.
DURATION_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
#: Seconds between two looks at the delay of the event loop.
LOOP_PROBE_SECONDS = 0.05
#: Content type of the text format.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class DurationHistogram:
    """Histogram of durations that one thread writes and any thread reads.

    Parameters
    ----------
    name : str
        Name of the metric, without the unit.
    help : str
        Description.

    Attributes
    ----------
    longest : float
        Longest duration so far, in seconds.

    Examples
    --------
    >>> histogram = DurationHistogram("wisecrowd_commit", "Transactions.")
    >>> histogram.observe(0.003)
    >>> histogram.count, histogram.longest
    (1, 0.003)
    """

    def __init__(self, name: str, help: str) -> None:
        self.name, self.help = f"{name}_seconds", help
        self.counts = [0] * (len(DURATION_BOUNDS) + 1)
        self.total = self.longest = 0.0

    @property
    def count(self) -> int:
        """Number of durations."""
        return sum(self.counts)

    def observe(self, seconds: float) -> None:
        """Count a duration.

        Parameters
        ----------
        seconds : float
            Duration.
        """
        self.counts[bisect_left(DURATION_BOUNDS, seconds)] += 1
        self.total += seconds
        if seconds > self.longest:
            self.longest = seconds

    @contextlib.contextmanager
    def measure(self) -> Iterator[None]:
        """Count the duration of a block.

        Yields
        ------
        None
        """
        started_at = time.perf_counter()
        try:
            yield
        finally:
            self.observe(time.perf_counter() - started_at)

    def render(self) -> Iterator[str]:
        """Yield the lines of the text format, with the longest duration as a gauge of its own.

        Yields
        ------
        str
            Line.
        """
        yield from _render_head(self.name, "histogram", self.help)
        counts, n = list(self.counts), 0
        for bound, count in zip((*DURATION_BOUNDS, "+Inf"), counts, strict=True):
            n += count
            yield f'{self.name}_bucket{{le="{bound}"}} {n}'
        yield f"{self.name}_sum {self.total!r}"
        yield f"{self.name}_count {n}"
        yield from _render_head(f"{self.name}_max", "gauge", f"{self.help.rstrip('.')}: the longest since the start.")
        yield f"{self.name}_max {self.longest!r}"


class ServiceMetrics:
    """All figures that the parts of the service write.

    Attributes
    ----------
    requests : dict of str to int
        Number of responses by class of their status, such as ``"2xx"``.
    events : dict of str to int
        Number of written events by outcome: new, changed or unchanged.
    refused_events, failed_events : int
        Number of events that were refused because too many waited, and that the database did not accept.
    fits, failed_fits : int
        Number of refits and calibrations that were adopted, and that failed.
    request, write, commit, lock, update, adoption, fit, collection, loop_delay : DurationHistogram
        Durations: whole requests; votes from their arrival until they are on disk; transactions; waiting for the lock of the
        questions; incremental updates; adoption of a fit; fits in background processes; garbage collections; delay of the event
        loop.

    Examples
    --------
    >>> metrics = ServiceMetrics()
    >>> metrics.count_response(200)
    >>> "wisecrowd_requests_total{status=\\"2xx\\"} 1" in metrics.render({})
    True
    """

    def __init__(self) -> None:
        self.started_at = time.time()
        self.requests: dict[str, int] = {}
        self.events = dict.fromkeys(("new", "changed", "unchanged"), 0)
        self.refused_events = self.failed_events = 0
        self.fits = self.failed_fits = 0
        self.request = DurationHistogram("wisecrowd_request", "Durations of requests.")
        self.write = DurationHistogram("wisecrowd_write", "Time from the arrival of votes until they are on disk.")
        self.commit = DurationHistogram("wisecrowd_commit", "Durations of transactions, with waiting for the disk.")
        self.lock = DurationHistogram("wisecrowd_lock_wait", "Time that the writer waits for readers.")
        self.update = DurationHistogram("wisecrowd_update", "Durations of incremental updates of the models.")
        self.adoption = DurationHistogram("wisecrowd_fit_adoption", "Time for which adopting a fit holds up votes.")
        self.fit = DurationHistogram("wisecrowd_fit", "Durations of refits and calibrations in background processes.")
        self.collection = DurationHistogram(
            "wisecrowd_gc", "Durations of garbage collections, which hold up everything."
        )
        self.loop_delay = DurationHistogram("wisecrowd_loop_delay", "Delay with which the event loop wakes up.")
        self._collection_started_at = 0.0

    def count_response(self, status: int) -> None:
        """Count a response.

        Parameters
        ----------
        status : int
            HTTP status.
        """
        name = f"{status // 100}xx"
        self.requests[name] = self.requests.get(name, 0) + 1

    def watch_garbage_collection(self) -> None:
        """Measure the garbage collections of this process from now on."""
        gc.callbacks.append(self._observe_collection)

    def forget_garbage_collection(self) -> None:
        """Stop measuring garbage collections."""
        with contextlib.suppress(ValueError):
            gc.callbacks.remove(self._observe_collection)

    def _observe_collection(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._collection_started_at = time.perf_counter()
        else:
            self.collection.observe(time.perf_counter() - self._collection_started_at)

    async def watch_event_loop(self) -> None:
        """Measure the delay of the event loop until the task is cancelled."""
        while True:
            due_at = time.perf_counter() + LOOP_PROBE_SECONDS
            await asyncio.sleep(LOOP_PROBE_SECONDS)
            self.loop_delay.observe(max(time.perf_counter() - due_at, 0.0))

    def render(self, gauges: dict[str, tuple[str, float]]) -> str:
        """Return all figures in the text format.

        Parameters
        ----------
        gauges : dict of str to tuple
            Further current values by name, each with a description.

        Returns
        -------
        str
            Text. It contains no names of questions, tasks, workers or classes.
        """
        lines: list[str] = []
        counters: list[tuple[str, str, dict[str, int] | int]] = [
            ("wisecrowd_requests_total", "status|Responses by class of their status.", self.requests),
            ("wisecrowd_events_total", "outcome|Votes and changes that were written, by outcome.", self.events),
            ("wisecrowd_refused_events_total", "Votes that were refused because too many waited.", self.refused_events),
            ("wisecrowd_failed_events_total", "Votes that the database did not accept.", self.failed_events),
            ("wisecrowd_fits_total", "Refits and calibrations that were adopted.", self.fits),
            ("wisecrowd_failed_fits_total", "Refits and calibrations that failed.", self.failed_fits),
        ]
        for name, text, value in counters:
            label, _, help = text.rpartition("|")
            lines += _render_head(name, "counter", help)
            if isinstance(value, dict):
                lines += [f'{name}{{{label}="{key}"}} {count}' for key, count in sorted(value.items())]
            else:
                lines.append(f"{name} {value}")
        standard = {
            "process_start_time_seconds": ("Start of the service in seconds since 1970.", self.started_at),
            "process_cpu_seconds": (
                "Processor time of the service without its background processes.",
                time.process_time(),
            ),
        }
        for name, (help, number) in (gauges | standard).items():
            lines += [*_render_head(name, "gauge", help), f"{name} {number!r}"]
        histograms = (self.request, self.write, self.commit, self.lock, self.update, self.adoption, self.fit,
                      self.collection, self.loop_delay)  # fmt: skip
        for histogram in histograms:
            lines += histogram.render()
        return "\n".join(lines) + "\n"


def _render_head(name: str, kind: str, help: str) -> Iterator[str]:
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} {kind}"


class RequestMetrics:
    """Middleware that measures requests.

    Parameters
    ----------
    app : ASGI application
        Application behind the middleware.
    metrics : ServiceMetrics
        Figures to write.

    Examples
    --------
    >>> RequestMetrics(lambda *_: None, ServiceMetrics()).metrics.requests
    {}
    """

    def __init__(self, app: ASGIApp, metrics: ServiceMetrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        """Pass a request to the application."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        started_at = time.perf_counter()
        status = 500  # if the application fails before it answers

        async def send_counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            return await self.app(scope, receive, send_counted)
        finally:
            self.metrics.count_response(status)
            self.metrics.request.observe(time.perf_counter() - started_at)
