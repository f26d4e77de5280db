"""Merging: means, precisions, votes and their invariances."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.aggregate.structured._boundaries import compute_medians, merge_by_precision, merge_by_vote


def draw_marks(seed: int = 0, n_objects: int = 400) -> tuple[np.ndarray, ...]:
    """Return true places, marks of four workers with errors 1, 1, 4 and 4, objects and workers."""
    rng = np.random.default_rng(seed)
    truth = rng.uniform(0, 100, (n_objects, 2))
    mark_object, worker = np.divmod(np.arange(4 * n_objects), 4)
    values = truth[mark_object] + rng.standard_normal((4 * n_objects, 2)) * np.array([1, 1, 4, 4])[worker][:, None]
    return truth, values, mark_object, worker.astype(np.int32)


def test_precise_workers_count_more() -> None:
    truth, values, mark_object, worker = draw_marks()
    merged = merge_by_precision(values, np.full((400, 2), 10.0), mark_object, worker, np.ones(400), 4)
    mean = values.reshape(400, 4, 2).mean(axis=1)
    assert np.abs(merged.coordinates - truth).mean() < 0.6 * np.abs(mean - truth).mean()
    assert merged.worker_error == pytest.approx([0.1, 0.1, 0.4, 0.4], rel=0.15)
    assert merged.worker_precision[0] > 3 * merged.worker_precision[2]


def test_shifts_and_scales_carry_over() -> None:
    _, values, mark_object, worker = draw_marks(1, 50)
    scale, real = np.full((50, 2), 10.0), np.ones(50)
    plain = merge_by_precision(values, scale, mark_object, worker, real, 4)
    moved = merge_by_precision(3 * values + 7, 3 * scale, mark_object, worker, real, 4)
    assert moved.coordinates == pytest.approx(3 * plain.coordinates + 7)
    assert moved.worker_error == pytest.approx(plain.worker_error)
    lowest = values.reshape(50, 4, 2).min(axis=1)
    highest = values.reshape(50, 4, 2).max(axis=1)
    assert ((plain.coordinates >= lowest) & (plain.coordinates <= highest)).all()


def test_single_marks_stay_and_say_nothing_about_precision() -> None:
    values = np.array([[1.0], [5.0], [9.0]])
    merged = merge_by_precision(values, np.ones((3, 1)), np.arange(3), np.arange(3), np.ones(3), 3)
    assert merged.coordinates.ravel().tolist() == [1.0, 5.0, 9.0]
    assert len(set(merged.worker_error)) == 1


def test_votes_on_spans_follow_reliable_workers() -> None:
    rng = np.random.default_rng(2)
    n = 300
    mark_object, worker = np.divmod(np.arange(3 * n), 3)
    exact = np.array([0.95, 0.5, 0.5])[worker]
    wrong = rng.random(3 * n) > exact
    values = np.column_stack([np.zeros(3 * n), 3 + wrong * rng.integers(1, 4, 3 * n)]).astype(float)
    merged = merge_by_vote(values, mark_object, worker.astype(np.int32), np.ones(n), 3)
    right = (merged.coordinates == [0, 3]).all(axis=1)
    assert right.mean() > 0.85
    assert merged.confidence.mean() == pytest.approx(right.mean(), abs=0.05)
    assert merged.worker_error[0] < 0.5 * merged.worker_error[1:].min()


def test_equal_votes_prefer_the_shorter_span() -> None:
    values = np.array([[0.0, 4.0], [0.0, 2.0], [1.0, 3.0]])
    merged = merge_by_vote(values, np.zeros(3, int), np.arange(3, dtype=np.int32), np.ones(1), 3)
    assert merged.coordinates.tolist() == [[0.0, 2.0]]


def test_the_confidence_of_a_single_mark_is_the_reliability_of_its_worker() -> None:
    merged = merge_by_vote(np.array([[0.0, 4.0]]), np.zeros(1, int), np.zeros(1, np.int32), np.ones(1), 1)
    assert merged.confidence[0] == pytest.approx(1 - merged.worker_error[0])


def test_medians_are_those_of_numpy() -> None:
    rng = np.random.default_rng(3)
    values, group = rng.normal(size=(60, 2)), rng.permutation(np.repeat(np.arange(10), 6))
    expected = [np.median(values[group == number], axis=0) for number in range(10)]
    assert compute_medians(values, group, 10) == pytest.approx(np.array(expected))
