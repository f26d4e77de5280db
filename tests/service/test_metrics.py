"""Figures in the text format of Prometheus."""

from __future__ import annotations

import asyncio
import gc
import re
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra serve is not installed")
from wisecrowd.service.metrics import CONTENT_TYPE, DurationHistogram, ServiceMetrics

LINE = re.compile(r'([a-zA-Z_:][\w:]*)(?:\{(\w+)="((?:[^"\\\n]|\\.)*)"\})? (\S+)')


def parse(text: str) -> dict[str, dict[str | None, float]]:
    """Return the samples by name and label; check the format on the way."""
    assert text.endswith("\n")
    samples: dict[str, dict[str | None, float]] = {}
    types: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("# HELP "):
            assert len(line.split(" ", 3)) == 4
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types, "a metric is described once"
            types[name] = kind
        else:
            match = LINE.fullmatch(line)
            assert match, line
            name = match[1]
            base = re.sub("_(bucket|sum|count)$", "", name)
            assert types.get(name) in ("counter", "gauge") or types.get(base) == "histogram", line
            assert match[3] not in samples.setdefault(name, {})
            samples[name][match[3]] = float(match[4])
    for name, kind in types.items():
        assert kind != "counter" or name.endswith("_total")
    return samples


def test_histograms_are_cumulative() -> None:
    histogram = DurationHistogram("wisecrowd_test", "Test.")
    for seconds in (0.001, 0.0011, 0.3, 100.0):
        histogram.observe(seconds)
    samples = parse("\n".join(histogram.render()) + "\n")
    buckets = samples["wisecrowd_test_seconds_bucket"]
    assert (buckets["0.001"], buckets["0.0025"], buckets["0.5"], buckets["60.0"], buckets["+Inf"]) == (1, 2, 3, 3, 4)
    assert list(buckets.values()) == sorted(buckets.values())
    assert samples["wisecrowd_test_seconds_count"][None] == 4
    assert samples["wisecrowd_test_seconds_sum"][None] == pytest.approx(100.3021)
    assert samples["wisecrowd_test_seconds_max"][None] == 100
    with pytest.raises(ValueError), histogram.measure():
        raise ValueError("counted all the same")
    assert histogram.count == 5


def test_metrics_of_a_service(service: Any, votes: Any) -> None:
    service.post("/votes", votes)
    service.post("/votes", votes[:3])
    service.post("/votes", {**votes[0], "label": "other"})
    service.post("/refit")
    service.ask("POST", "/votes", json={"task": "t"})
    service.ask("GET", "/consensus", token="wrong")
    response = service.ask("GET", "/metrics")
    assert response.headers["content-type"] == CONTENT_TYPE
    samples = parse(response.text)
    assert samples["wisecrowd_events_total"] == {"new": len(votes), "changed": 1, "unchanged": 3}
    assert samples["wisecrowd_votes"][None] == len(votes)
    assert samples["wisecrowd_tasks"][None] == 80
    assert samples["wisecrowd_workers"][None] == 12
    assert samples["wisecrowd_requests_total"] == {"2xx": 4, "4xx": 2}
    assert samples["wisecrowd_fits_total"][None] == 2, "a calibration and a refit"
    assert samples["wisecrowd_fit_seconds_count"][None] == 2
    assert samples["wisecrowd_queue_events"][None] == 0
    assert samples["wisecrowd_stale_questions"][None] == 0
    assert samples["wisecrowd_write_seconds_count"][None] == samples["wisecrowd_commit_seconds_count"][None] == 3
    assert samples["wisecrowd_write_seconds_sum"][None] >= samples["wisecrowd_commit_seconds_sum"][None] > 0


def test_metrics_need_the_token_and_name_nobody(service: Any) -> None:
    service.post("/votes", {"question": "secret-q", "task": "secret-t", "worker": "secret-w", "label": "secret-l"})
    assert service.ask("GET", "/metrics", token=None).status_code == 401
    assert service.ask("GET", "/metrics", token=None, headers=service.log_in()).status_code == 401
    assert "secret" not in service.ask("GET", "/metrics").text


def test_failures_are_counted(service: Any, votes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(service.coordinator.store, "apply", fail)
    assert service.ask("POST", "/votes", json=votes[:2]).status_code == 503
    monkeypatch.setattr("wisecrowd.service.coordinator.MAX_WAITING_EVENTS", 0)
    assert service.ask("POST", "/votes", json=votes[0]).status_code == 503
    samples = parse(service.ask("GET", "/metrics").text)
    assert samples["wisecrowd_failed_events_total"][None] == 2
    assert samples["wisecrowd_refused_events_total"][None] == 1
    assert samples["wisecrowd_requests_total"] == {"5xx": 2}


@pytest.mark.slow
def test_garbage_collections_and_the_event_loop_are_watched() -> None:
    metrics = ServiceMetrics()
    metrics.watch_garbage_collection()
    gc.collect()
    metrics.forget_garbage_collection()
    n = metrics.collection.count
    assert n >= 1
    gc.collect()
    assert metrics.collection.count == n
    metrics.forget_garbage_collection()

    async def block() -> None:
        probe = asyncio.create_task(metrics.watch_event_loop())
        while not metrics.loop_delay.count:
            await asyncio.sleep(0.01)
        probe.cancel()

    asyncio.run(block())
    assert metrics.loop_delay.longest >= 0
