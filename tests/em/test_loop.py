"""The loops: fixed points, and EM that stops, resumes and extrapolates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wisecrowd.base.checkpoints import Checkpoint
from wisecrowd.em.loop import EMResult, FixedPoint, Statistics, iterate_to_fixed_point, run_em, run_restarts
from wisecrowd.utils import progress


def halve(value: float) -> tuple[float, float]:
    return value / 2, value / 2


def contract(statistics: Statistics) -> tuple[Statistics, float]:
    """A step towards zero whose objective is highest there."""
    return Statistics(statistics.class_counts * 0.9, statistics.tally), -float(statistics.class_counts.sum())


def test_a_fixed_point_is_reached_within_the_tolerance() -> None:
    result = iterate_to_fixed_point(halve, 1.0, max_iter=100, tol=0.01)
    assert result == FixedPoint(2.0**-7, n_iter=7, converged=True)


def test_a_limit_on_the_steps_is_kept() -> None:
    assert iterate_to_fixed_point(halve, 1.0, max_iter=3, tol=0.0) == FixedPoint(0.125, n_iter=3, converged=False)


def test_progress_is_reported_only_with_a_title(monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[Any] = []
    monkeypatch.setattr(progress, "report", lambda *values: reports.append(values))
    iterate_to_fixed_point(halve, 1.0, max_iter=2, tol=0.0)
    assert not reports
    iterate_to_fixed_point(halve, 1.0, max_iter=2, tol=0.0, title="halving", message="by {:.2f}")
    assert reports == [("halving", 1, 2, "by 0.50"), ("halving", 2, 2, "by 0.25")]


def test_extrapolation_reaches_the_same_end_in_fewer_steps() -> None:
    start = Statistics(np.ones(2), np.zeros((1, 2)))
    plain, fast = (
        run_em(contract, start, max_iter=500, tol=1e-4, accelerate=accelerate) for accelerate in (False, True)
    )
    assert len(fast.trace) < len(plain.trace) / 3
    assert fast.trace[-1] >= plain.trace[-1]


@pytest.mark.parametrize("accelerate", [False, True])
def test_an_interrupted_iteration_resumes_to_the_same_bits(accelerate: bool) -> None:
    start = Statistics(np.array([3.0, 1.0]), np.zeros((1, 2)))
    states: list[tuple[Statistics, list[float]]] = []
    options: dict[str, Any] = {"max_iter": 9, "tol": 0.0, "accelerate": accelerate}
    whole = run_em(contract, start, **options, callback=lambda at, trace: states.append((at, list(trace))))
    statistics, trace = states[2]
    rest = run_em(contract, statistics, **options, trace=trace)
    assert rest.trace == whole.trace
    np.testing.assert_array_equal(rest.statistics.class_counts, whole.statistics.class_counts)


def test_of_equal_ends_the_first_is_returned() -> None:
    def run(start: Statistics, *_: Any) -> EMResult:
        return EMResult(start, [-1.0 + 1e-9 * float(start.class_counts[0])], True)

    starts = [Statistics(np.full(1, value), np.zeros((1, 1))) for value in (0.0, 1.0, 2.0)]
    best, restarts = run_restarts(starts, run, tol=1e-6, checkpoint=Checkpoint(None, {}))
    assert best.statistics.class_counts[0] == 0
    assert len(restarts) == 3
