"""Coordination of the service: batched writes, incremental updates and repeated fits.

A request waits until its events are on disk. All waiting events are written in one transaction, so a slow disk makes batches
larger instead of the queue longer.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import queue
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple, TypeAlias

from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import InputError, WisecrowdError
from wisecrowd.plan.stopping import DEFAULT_TARGET
from wisecrowd.service.background_process import BackgroundProcess
from wisecrowd.service.database import DamagedDatabase, QuestionVocabulary
from wisecrowd.service.events import Event
from wisecrowd.service.metrics import ServiceMetrics
from wisecrowd.service.question_state import JobTimer, QuestionState
from wisecrowd.service.refits import build_report, calibrate_question, refit_question
from wisecrowd.service.shared_jobs import SharedJob
from wisecrowd.service.store import RefusedEvent, Store, StoreChange
from wisecrowd.service.writers import DatabaseDisconnected, explain_damage

#: Maximum number of events in a transaction.
MAX_BATCH_EVENTS = 2_000
#: Maximum number of events that wait; further ones are refused.
MAX_WAITING_EVENTS = 50_000
#: Minimum seconds between two transactions. Events that arrive in between share one; a lone event does not wait.
BATCH_SECONDS = 0.01
#: Seconds after which due jobs are checked although no event arrived.
TICK_SECONDS = 0.2
#: Seconds between garbage collections while no event arrives.
GC_SECONDS = 60.0
#: Seconds for which `Coordinator.close` waits for the writer.
CLOSE_SECONDS = 60.0
#: Seconds for which a client may wait for a fit or a report.
REFIT_SECONDS = 300.0
#: Maximum number of questions whose reports are being built or wait for it.
MAX_WAITING_REPORTS = 8
#: Seconds from which on a transaction is logged as slow.
SLOW_COMMIT_SECONDS = 0.5
#: Number of question names in an error message.
MAX_NAMES_IN_MESSAGE = 8

Settle: TypeAlias = Callable[[StoreChange | None, Exception | None], object]
Action: TypeAlias = Callable[[], None]

_log = logging.getLogger(__name__)


class ServiceBusy(WisecrowdError):
    """More events arrive than can be written; the client should wait and send them again.

    Examples
    --------
    >>> issubclass(ServiceBusy, WisecrowdError)
    True
    """


class WriteFailed(WisecrowdError):
    """The database did not accept the events; none of them is stored.

    Examples
    --------
    >>> issubclass(WriteFailed, WisecrowdError)
    True
    """


class _PendingWrite(NamedTuple):
    """Events that wait to be written, and the callback for their outcome."""

    events: Sequence[Event]
    settle: Settle
    #: Event loop in which the callback runs; None runs it in the writer thread.
    loop: asyncio.AbstractEventLoop | None
    submitted_at: float


class Coordinator:
    """Owner of the store and of the state of its questions. One thread writes; any thread may read under `lock`.

    Parameters
    ----------
    store : Store
        Database.
    method : ConfusionEM
        Method that infers the labels.
    target : float, default=0.9
        Confidence at which a task is finished.

    Attributes
    ----------
    lock : threading.RLock
        Lock of the states of the questions.
    started_at : float
        Time at which the service started, in seconds since 1970.
    n_events : int
        Number of events written since then.
    metrics : ServiceMetrics
        Figures about votes, fits and durations.

    Examples
    --------
    >>> from wisecrowd import DawidSkene
    >>> from wisecrowd.service.events import Upsert, VoteRecord
    >>> from wisecrowd.service.store import Store
    >>> coordinator = Coordinator(Store("example.db"), DawidSkene())
    >>> coordinator.apply([Upsert("id:1", (VoteRecord("mood", "t1", "ann", "good"),))]).result().outcomes
    ['new']
    >>> with coordinator.lock:
    ...     coordinator.question("mood").describe_task(0)["label"]
    'good'
    >>> coordinator.close()
    """

    def __init__(self, store: Store, method: ConfusionEM, target: float = DEFAULT_TARGET) -> None:
        self.store, self.method, self.target = store, method.clone_unfitted(), target
        self.lock = threading.RLock()
        self.started_at = time.time()
        self.n_events = 0
        self.metrics = ServiceMetrics()
        self._questions: dict[int, QuestionState] = {}
        self._questions_by_name: dict[str, QuestionState] = {}
        self._queue: queue.SimpleQueue[_PendingWrite | Action | None] = queue.SimpleQueue()
        self._postponed: list[Action] = []
        self._count_lock, self._n_waiting = threading.Lock(), 0
        self._is_closing = False
        # Fits are short and frequent. Calibrations and reports take longer, and no fit should wait for them.
        self._fit_process, self._calibration_process = BackgroundProcess(), BackgroundProcess()
        self._report_process = BackgroundProcess()
        self._job_lock = threading.Lock()
        self._waiting_refits: dict[int, SharedJob[None]] = {}
        self._reports: dict[str, SharedJob[str]] = {}
        try:
            self._load_questions()
        except BaseException:
            self._is_closing = True
            self._release()
            raise
        self._thread = threading.Thread(target=self._run, name="coordinator", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------------ from any thread

    def apply(self, events: Sequence[Event]) -> Future[StoreChange]:
        """Write events.

        Parameters
        ----------
        events : sequence of Upsert, RegisterTasks or DeleteTasks
            Events.

        Returns
        -------
        concurrent.futures.Future
            Outcomes, available when the events are on disk. Later reads see them.

        Raises
        ------
        ServiceBusy
            If too many events wait, or the service is closing.
        """
        written: Future[StoreChange] = Future()

        def settle(change: StoreChange | None, error: Exception | None) -> None:
            if error is not None:
                written.set_exception(error)
            elif change is not None:
                written.set_result(change)

        self.submit(events, settle)
        return written

    def submit(self, events: Sequence[Event], settle: Settle, *, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Write events and report the outcome to a callback.

        Parameters
        ----------
        events : sequence of Upsert, RegisterTasks or DeleteTasks
            Events.
        settle : callable
            Called with a `StoreChange` and None, or with None and an exception.
        loop : asyncio.AbstractEventLoop, default=None
            Event loop in which ``settle`` is called; the thread that writes by default.

        Raises
        ------
        ServiceBusy
            If too many events wait, or the service is closing.
        """
        if self._is_closing:
            raise ServiceBusy("the service is shutting down; try again in a moment")
        with self._count_lock:
            if self._n_waiting + len(events) > MAX_WAITING_EVENTS:
                self.metrics.refused_events += len(events)
                raise ServiceBusy("votes arrive faster than they can be written; wait a second and send them again")
            self._n_waiting += len(events)
        self._queue.put(_PendingWrite(events, settle, loop, time.perf_counter()))

    @property
    def n_waiting(self) -> int:
        """Number of events that wait to be written."""
        return self._n_waiting

    def render_metrics(self) -> str:
        """Return the figures of the service in the text format of Prometheus.

        Returns
        -------
        str
            Text.
        """
        states = list(self._questions.values())  # without the lock: figures must not wait for votes
        gauges = {
            "wisecrowd_questions": ("Questions.", len(states)),
            "wisecrowd_votes": ("Votes that count.", sum(state.live.n_votes for state in states)),
            "wisecrowd_tasks": ("Tasks.", sum(state.n_tasks for state in states)),
            "wisecrowd_workers": ("Workers, those of every question.", sum(state.n_workers for state in states)),
            "wisecrowd_queue_events": ("Votes that wait to be written.", self._n_waiting),
            "wisecrowd_queue_events_limit": ("Votes that may wait; further ones are refused.", MAX_WAITING_EVENTS),
            "wisecrowd_stale_questions": ("Questions with votes since the last fit.", sum(s.is_stale for s in states)),
        }
        return self.metrics.render({name: (help, float(value)) for name, (help, value) in gauges.items()})

    def question(self, name: str | None = None) -> QuestionState:
        """Return the state of a question.

        Parameters
        ----------
        name : str, default=None
            Name of the question; not needed where there is only one.

        Returns
        -------
        QuestionState
            State, which includes all acknowledged votes.

        Raises
        ------
        InputError
            If there is no such question, or several and none is named.
        """
        with self.lock:
            states = self._questions_by_name
            if name is None:
                if len(states) == 1:
                    return next(iter(states.values()))
                raise InputError(f"name a question: {_preview_names(states)}" if states else "there are no votes yet")
            if name not in states:
                raise InputError(f"no question has this name; questions: {_preview_names(states) or 'none yet'}")
            return states[name]

    def questions(self) -> list[QuestionState]:
        """Return the states of all questions in order of arrival.

        Returns
        -------
        list of QuestionState
            States.
        """
        with self.lock:
            return list(self._questions.values())

    def refit(self, question: QuestionState, timeout: float = REFIT_SECONDS) -> bool:
        """Wait for a calibration and a fit that cover all votes so far.

        Parameters
        ----------
        question : QuestionState
            Question.
        timeout : float, default=300.0
            Maximum number of seconds to wait.

        Returns
        -------
        bool
            Whether the fit ended in time.
        """
        job = self.start_refit(question)
        try:
            job.future.result(timeout)
        except TimeoutError:
            return False
        finally:
            job.leave()
        return True

    def start_refit(self, question: QuestionState) -> SharedJob[None]:
        """Request a calibration and a fit that cover all votes so far. Requests that are waiting share one.

        Parameters
        ----------
        question : QuestionState
            Question.

        Returns
        -------
        SharedJob
            Job, which the caller has joined. It ends when the fit is adopted; it is dropped if all clients leave before.
        """
        code = question.vocabulary.code
        with self._job_lock:
            waiting = self._waiting_refits.get(code)
            if waiting is not None and waiting.join():
                return waiting
            running: list[tuple[BackgroundProcess, Future[Any]]] = []
            job: SharedJob[None] = SharedJob(lambda: self._abandon(running))
            job.join()
            self._waiting_refits[code] = job
        self._queue.put(
            lambda: self._run_after(question.calibration_timer, lambda: self._refit(question, job, running))
        )
        return job

    def start_report(self, name: str) -> SharedJob[str]:
        """Build the report on a question in a background process. Requests for the same question share one.

        Parameters
        ----------
        name : str
            Name of the question.

        Returns
        -------
        SharedJob
            Job with the HTML page, which the caller has joined. The process is stopped if all clients leave before its end.

        Raises
        ------
        ServiceBusy
            If reports on too many questions are waiting.
        """
        method = self.question(name).live.method.name
        with self._job_lock:
            job = self._reports.get(name)
            if job is not None and not job.future.done() and job.join():
                return job
            self._reports = {key: report for key, report in self._reports.items() if not report.future.done()}
            if len(self._reports) >= MAX_WAITING_REPORTS:
                raise ServiceBusy("reports on other questions are being built; try again in a minute")
            started = self._report_process.submit(build_report, self.store.url, name, f"Crowd report: {name}", method)
            job = SharedJob(lambda: self._abandon([(self._report_process, started)]))
            job.join()
            self._reports[name] = job
        report = job
        started.add_done_callback(lambda _: _copy_result(started, report.future))
        return job

    def _abandon(self, started: list[tuple[BackgroundProcess, Future[Any]]]) -> None:
        for process, running in started:
            process.cancel(running)

    def _refit(
        self, question: QuestionState, job: SharedJob[None], running: list[tuple[BackgroundProcess, Future[Any]]]
    ) -> None:
        """Calibrate and fit a question for the clients of a job; called by the writer thread."""

        def fit() -> None:
            if job.is_abandoned:
                return
            if question.is_stale or question.fit is None:
                started = self._start_fit(question, then=lambda: job.future.set_result(None))
                running[:] = [(self._fit_process, started)]
            else:
                job.future.set_result(None)

        with self._job_lock:  # later requests need a later fit
            if self._waiting_refits.get(question.vocabulary.code) is job:
                del self._waiting_refits[question.vocabulary.code]
        if job.is_abandoned:
            return
        if question.calibration_timer.changes_covered < question.n_changes:
            started = self._start_calibration(question, then=lambda: self._run_after(question.fit_timer, fit))
            running[:] = [(self._calibration_process, started)]
        else:
            self._run_after(question.fit_timer, fit)

    def close(self) -> None:
        """Write the waiting events and stop all threads and processes."""
        if self._is_closing:
            return
        self._is_closing = True
        _log.info("the service stops", extra={"fields": {"n_waiting": self._n_waiting}})
        self._queue.put(None)
        self._thread.join(timeout=CLOSE_SECONDS)
        self._release()
        _log.info(
            "the service has stopped", extra={"fields": {"n_events": self.n_events, "n_waiting": self._n_waiting}}
        )

    def _release(self) -> None:
        for process in self.processes:
            process.terminate()
        self.store.close()

    @property
    def processes(self) -> tuple[BackgroundProcess, ...]:
        """Background processes of the fits, the calibrations and the reports."""
        return self._fit_process, self._calibration_process, self._report_process

    # ------------------------------------------------------------------ the writer thread

    def _run(self) -> None:
        written_at, collected_at = 0.0, time.monotonic()
        while True:
            batch, actions, is_last = self._collect_batch(written_at + BATCH_SECONDS)
            if batch:
                written_at = time.monotonic()
                self._write_batch(batch)
            elif not actions and time.monotonic() > collected_at + GC_SECONDS:
                gc.collect()
                collected_at = time.monotonic()
            for action in actions:
                action()
            if is_last:
                return
            self._start_due_jobs()

    def _collect_batch(self, earliest: float) -> tuple[list[_PendingWrite], list[Action], bool]:
        """Return what waits until a time, up to a batch; after a tick without events, return nothing."""
        batch: list[_PendingWrite] = []
        actions: list[Action] = []
        n_events, timeout = 0, TICK_SECONDS
        try:
            while n_events < MAX_BATCH_EVENTS:
                item = self._queue.get(timeout=timeout) if timeout > 0 else self._queue.get_nowait()
                if item is None:
                    return batch, actions, True
                if isinstance(item, _PendingWrite):
                    batch.append(item)
                    n_events += len(item.events)
                else:
                    actions.append(item)
                timeout = earliest - time.monotonic()
        except queue.Empty:
            pass
        return batch, actions, False

    def _write_batch(self, batch: list[_PendingWrite], *, attempts: int = 2) -> None:
        try:
            self.store.ensure_connected()  # without the lock, so that reads need not wait for a database that is away
            waited_from = time.perf_counter()
            with self.lock:
                self.metrics.lock.observe(time.perf_counter() - waited_from)
                self._apply_batch(batch)
        except DatabaseDisconnected as error:
            if attempts > 1:
                self._write_batch(batch, attempts=attempts - 1)
            else:
                self._notify_failure(batch, error)
        except Exception as error:
            self._notify_failure(batch, error)

    def _apply_batch(self, batch: list[_PendingWrite]) -> None:
        started_at = time.perf_counter()
        try:
            change = self.store.apply([event for pending in batch for event in pending.events])
        except DatabaseDisconnected:
            raise
        except Exception as error:
            if len(batch) == 1:
                self._notify_failure(batch, error)
            else:  # one bad request must not fail the others
                for pending in batch:
                    self._write_batch([pending])
            return
        self._measure_writes(batch, change, started_at)
        self.n_events += len(change.outcomes)
        self._count_written(len(change.outcomes))
        results, start = [], 0
        for pending in batch:
            results.append(StoreChange(change.outcomes[start : start + len(pending.events)]))
            start += len(pending.events)
        # Clients are notified before the models are updated; a read in between waits for the lock.
        _notify(batch, results)
        is_complete = not change.is_uncertain
        try:
            with self.metrics.update.measure():
                self._update_questions(change)
        except Exception:  # the votes are safe on disk, and the next fit includes them
            _log.exception("the incremental update failed; a fit to all votes follows")
            is_complete = False
        if not is_complete:
            for question in self._questions.values():
                question.n_changes += 1

    def _measure_writes(self, batch: list[_PendingWrite], change: StoreChange, started_at: float) -> None:
        now = time.perf_counter()
        self.metrics.commit.observe(now - started_at)
        for pending in batch:
            self.metrics.write.observe(now - pending.submitted_at)
        for outcome in change.outcomes:
            self.metrics.events[outcome] += 1
        if now - started_at >= SLOW_COMMIT_SECONDS:
            fields = {"seconds": round(now - started_at, 3), "n_events": len(change.outcomes)}
            _log.warning("a transaction was slow", extra={"fields": fields})

    def _notify_failure(self, batch: list[_PendingWrite], error: Exception) -> None:
        if isinstance(error, RefusedEvent):  # an error of the client, not of the database
            self._count_written(sum(len(pending.events) for pending in batch))
            _notify(batch, [error] * len(batch))
            return
        _log.error("the database did not accept a write: %s", _first_line(error))
        self.metrics.failed_events += sum(len(pending.events) for pending in batch)
        self._count_written(sum(len(pending.events) for pending in batch))
        what = "the connection was lost" if isinstance(error, DatabaseDisconnected) else "nothing was stored"
        _notify(
            batch, [WriteFailed(f"the database did not accept the request, {what}: {_first_line(error)}")] * len(batch)
        )

    def _count_written(self, n_events: int) -> None:
        with self._count_lock:
            self._n_waiting -= n_events

    def _update_questions(self, change: StoreChange) -> None:
        """Update the incremental models of the questions that changed."""
        altered: dict[int, set[int]] = {}
        for code, task in change.altered:
            altered.setdefault(code, set()).add(task)
        added: dict[int, list[tuple[int, int, int]]] = {}
        for code, task, worker, label in change.added:
            added.setdefault(code, []).append((task, worker, label))
        for vocabulary in self.store.vocabularies.values():
            code = vocabulary.code
            question = self._questions.get(code)
            if question is None:
                question = self._add_question(vocabulary)
            new_votes, altered_tasks = added.get(code, []), altered.get(code, set())
            votes: dict[int, dict[int, int]] = {task: dict(question.live.votes_on(task)) for task, _, _ in new_votes}
            for task, worker, label in new_votes:
                votes[task][worker] = label
            gold: dict[int, int | None] = {}
            if altered_tasks:  # read from the database, because an earlier vote of a worker may count again
                votes.update(self.store.votes_on(code, altered_tasks))
                gold = self.store.gold_on(code, altered_tasks)
                gold = {task: label for task, label in gold.items() if question.live.gold.get(task) != label}
            question.update_sizes()
            _warn_similar_classes(question)
            if votes or gold:
                question.update_votes(votes, gold, len(new_votes) + len(altered_tasks))

    # ------------------------------------------------------------------ fits and calibrations

    def _start_due_jobs(self) -> None:
        now = time.monotonic()
        for question in self._questions.values():
            if question.fit_is_due(now):
                self._start_fit(question)
            if question.calibration_is_due(now):
                self._start_calibration(question)

    def _start_fit(self, question: QuestionState, then: Action | None = None) -> Future[Any]:
        calibration = question.start_fit()
        job = self._fit_process.submit(
            refit_question, self.store.url, question.vocabulary.code, self.method, calibration
        )
        self._finish_later(job, question.finish_fit, question.fail_fit, then)
        return job

    def _start_calibration(self, question: QuestionState, then: Action | None = None) -> Future[Any]:
        question.calibration_timer.start(question.n_changes)
        job = self._calibration_process.submit(
            calibrate_question, self.store.url, question.vocabulary.code, self.method
        )
        fail = lambda _: question.calibration_timer.finish(succeeded=False)  # noqa: E731
        self._finish_later(job, question.finish_calibration, fail, then)
        return job

    def _run_after(self, timer: JobTimer, action: Action) -> None:
        """Run an action now, or when the job that is running has ended."""
        if timer.is_running:
            self._postponed.append(lambda: self._run_after(timer, action))
        else:
            action()

    def _finish_later(
        self, job: Future[Any], finish: Callable[[Any], None], fail: Callable[[str], None], then: Action | None
    ) -> None:
        """Let the writer thread adopt the result of a job, or record its failure."""
        started_at = time.perf_counter()

        def adopt_result() -> None:
            adopted_from = time.perf_counter()
            self.metrics.fit.observe(adopted_from - started_at)
            with self.lock:
                try:
                    finish(job.result())
                    self.metrics.fits += 1
                except (
                    Exception,
                    CancelledError,
                ) as error:  # the service must keep writing votes whatever a fit raises
                    _log.error("a fit or calibration failed: %s", _first_line(error))
                    self.metrics.failed_fits += 1
                    fail(_first_line(error))
            self.metrics.adoption.observe(time.perf_counter() - adopted_from)
            fields = {"seconds": round(adopted_from - started_at, 3), "n_waiting": self._n_waiting}
            _log.info("a fit or calibration has ended", extra={"fields": fields})
            if then is not None:
                then()
            postponed, self._postponed = self._postponed, []
            for action in postponed:
                action()

        job.add_done_callback(lambda _: self._queue.put(adopt_result))

    def _add_question(self, vocabulary: QuestionVocabulary) -> QuestionState:
        question = QuestionState.create(vocabulary, self.method, self.target)
        self._questions[vocabulary.code] = self._questions_by_name[vocabulary.name] = question
        return question

    def _load_questions(self) -> None:
        """Fit all questions of the database."""
        for vocabulary in self.store.vocabularies.values():
            question = self._add_question(vocabulary)
            question.n_changes += 1  # no calibration covers the database yet
            question.start_fit()
            question.update_sizes()
            _warn_similar_classes(question)
            job = self._fit_process.submit(refit_question, self.store.url, vocabulary.code, self.method)
            try:
                question.finish_fit(job.result())
            except DamagedDatabase as error:
                raise InputError(explain_damage(self.store.url, str(error))) from None
            question.live.set_gold(self.store.all_gold(vocabulary.code))


def _warn_similar_classes(question: QuestionState) -> None:
    """Log once for each new class that probably means the same as another; the status page has the names."""
    n_similar = len(question.vocabulary.find_similar_classes()[1])
    if n_similar > question.n_similar_classes:
        _log.warning(
            "%d classes of a question differ from another one only in their spelling; see the status page",
            n_similar,
            extra={"fields": {"question": question.vocabulary.code, "n_similar_classes": n_similar}},
        )
    question.n_similar_classes = n_similar


def _notify(batch: list[_PendingWrite], results: Sequence[StoreChange | Exception]) -> None:
    """Report outcomes; each event loop is woken once for the whole batch."""
    calls_by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Settle, StoreChange | Exception]]] = {}
    for pending, result in zip(batch, results, strict=True):
        if pending.loop is None:
            _settle_all([(pending.settle, result)])
        else:
            calls_by_loop.setdefault(pending.loop, []).append((pending.settle, result))
    for loop, calls in calls_by_loop.items():
        loop.call_soon_threadsafe(_settle_all, calls)


def _settle_all(calls: Sequence[tuple[Settle, StoreChange | Exception]]) -> None:
    for settle, result in calls:
        if isinstance(result, Exception):
            settle(None, result)
        else:
            settle(result, None)


def _copy_result(source: Future[str], target: Future[str]) -> None:
    """Pass on the result of a job; a job that was cancelled or whose process died is an error that may be tried again."""
    error = ServiceBusy("the report was interrupted; try again") if source.cancelled() else source.exception()
    if isinstance(error, BrokenProcessPool):
        error = ServiceBusy("the report was interrupted; try again")
    if error is not None:
        target.set_exception(error)
    else:
        target.set_result(source.result())


def _preview_names(names: Collection[str]) -> str:
    shown = list(names)[:MAX_NAMES_IN_MESSAGE]
    return ", ".join([*shown, "…"] if len(names) > len(shown) else shown)


def _first_line(error: BaseException) -> str:
    """Return the first line of an error message, which for database errors is that of the driver."""
    lines = str(getattr(error, "orig", None) or str(error)).splitlines()
    return lines[0][:300] if lines else type(error).__name__
