"""The sweep finds the same pairs as a comparison of all pairs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from wisecrowd.data import overlaps


@pytest.mark.parametrize("seed", range(3))
def test_the_sweep_finds_all_overlapping_boxes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlaps, "PAIRS_PER_CHUNK", 7)  # several chunks
    rng = np.random.default_rng(seed)
    task = rng.integers(0, 4, 40)
    boxes = np.hstack([rng.integers(0, 20, (40, 2)), rng.integers(1, 8, (40, 2))]).astype(float)
    pairs = overlaps.find_box_pairs(task, boxes)
    expected = {}
    for i, j in itertools.combinations(range(40), 2):
        sides = [
            min(boxes[i, a] + boxes[i, a + 2], boxes[j, a] + boxes[j, a + 2]) - max(boxes[i, a], boxes[j, a])
            for a in (0, 1)
        ]
        if task[i] == task[j] and min(sides) > 0:
            area = boxes[i, 2] * boxes[i, 3] + boxes[j, 2] * boxes[j, 3]
            expected[i, j] = 2 * sides[0] * sides[1] / area
    actual = dict(zip(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True), pairs.similarity, strict=True))
    assert actual == pytest.approx(expected)


def test_spans_that_touch_do_not_overlap() -> None:
    spans = np.array([[0.0, 2.0], [2.0, 4.0], [1.0, 3.0]])
    pairs = overlaps.find_span_pairs(np.zeros(3, dtype=int), spans)
    assert sorted(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)) == [(0, 2), (1, 2)]
    assert pairs.similarity.tolist() == [0.5, 0.5]


def test_points_beyond_two_radii_are_different() -> None:
    points = np.array([[0.0, 0.0], [1.0, 0.0], [2.5, 0.0], [0.0, 0.0]])
    pairs = overlaps.find_point_pairs(np.array([0, 0, 0, 1]), points, 1.0)
    order = np.lexsort((pairs.second, pairs.first))
    assert pairs.second[order].tolist() == [1, 2]
    assert pairs.similarity[order] == pytest.approx([0.5, 2 ** -(1.5**2)])


def test_no_marks_have_no_pairs() -> None:
    pairs = overlaps.find_span_pairs(np.empty(0, dtype=int), np.empty((0, 2)))
    assert len(pairs.first) == len(pairs.similarity) == 0
