"""Simulated marks follow their parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wisecrowd.errors import UsageError
from wisecrowd.simulate.marks import simulate_boxes, simulate_points, simulate_spans


@pytest.mark.parametrize("simulate", [simulate_boxes, simulate_points, simulate_spans])
def test_numbers_of_marks_follow_the_rates(simulate: Callable[..., Any]) -> None:
    options = {"n_tasks": 1000, "n_workers": 10, "objects_per_task": 3.0, "worker_spread": 0.0}
    simulation = simulate(**options, detection_rate=0.7, false_alarms=0.5)
    per_vote = simulation.crowd.n_marks / simulation.crowd.n_votes
    assert per_vote == pytest.approx(3 * 0.7 + 0.5, rel=0.03)
    assert len(simulation.truth) == pytest.approx(3000, rel=0.05)
    difficult = simulate(**options, detection_rate=0.7, false_alarms=0.0, difficult_share=1.0)
    expected = 3 * difficult.workers["detection_rate"].mean()
    assert difficult.crowd.n_marks / difficult.crowd.n_votes == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("simulate", [simulate_boxes, simulate_points, simulate_spans])
def test_a_seed_repeats_and_another_does_not(simulate: Callable[..., Any]) -> None:
    first, second, third = (simulate(n_tasks=20, random_state=seed).crowd for seed in (1, 1, 2))
    assert first == second
    assert first != third


def test_true_spans_of_a_text_do_not_overlap() -> None:
    truth = simulate_spans(n_tasks=50, random_state=3).truth
    for _, spans in truth.groupby("task"):
        ordered = spans.sort_values("start")
        assert (ordered["end"].to_numpy()[:-1] <= ordered["start"].to_numpy()[1:]).all()


def test_perfect_workers_mark_the_truth() -> None:
    simulation = simulate_boxes(
        n_tasks=30, detection_rate=1 - 1e-9, accuracy=1 - 1e-9, false_alarms=0, boundary_error=0, n_classes=3
    )
    marks = simulation.crowd.to_frame().dropna().drop_duplicates(["task", "x", "y"])
    assert len(marks) == len(simulation.truth)
    assert np.allclose(marks["width"].sum(), simulation.truth["width"].sum())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"votes_per_task": 30}, "between 1 and 20 different workers"),
        ({"detection_rate": 1.0}, "must be between 0 and 1"),
        ({"false_alarms": -1.0}, "must be 0 or more"),
    ],
)
def test_impossible_parameters_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        simulate_boxes(**options)
