"""Patterns of votes against pixels of a dense stack."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.data import vote_patterns
from wisecrowd.data.masks import MaskCrowd
from wisecrowd.data.vote_patterns import find_vote_patterns

RNG = np.random.default_rng(1)


def make_crowd(n_tasks: int, n_workers: int) -> tuple[MaskCrowd, list[np.ndarray]]:
    """Return a crowd whose tasks have different sizes and numbers of workers, and the dense stacks of its masks."""
    stacks, task, worker = [], [], []
    for number in range(n_tasks):
        n_votes = int(RNG.integers(1, n_workers + 1))
        stacks.append(RNG.random((n_votes, number + 1, 5)) < 0.6)
        task += [number] * n_votes
        worker += list(range(n_votes))
    return MaskCrowd.from_arrays(task, worker, [mask for stack in stacks for mask in stack]), stacks


@pytest.mark.parametrize("n_workers", [3, 40, 130])
@pytest.mark.parametrize("sorts", [False, True])
def test_patterns_are_those_of_pixels(n_workers: int, sorts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if sorts:
        monkeypatch.setattr(vote_patterns, "MAX_TABLE_RATIO", 0)
    crowd, stacks = make_crowd(4, n_workers)
    patterns = find_vote_patterns(crowd)
    votes = patterns.marks.toarray()
    for number, stack in enumerate(stacks):
        rows = np.flatnonzero(patterns.task == number)
        own = slice(crowd.task_offset[number], crowd.task_offset[number + 1])
        found = {tuple(votes[row, own]): patterns.n_pixels[row] for row in rows}
        columns, counts = np.unique(stack.reshape(len(stack), -1), axis=1, return_counts=True)
        expected = {tuple(column.astype(float)): count for column, count in zip(columns.T, counts, strict=True)}
        assert found == expected
        assert votes[rows].sum() == votes[rows, own].sum()
    assert patterns.n_marks.tolist() == votes.sum(axis=1).tolist()
    unanimous = patterns.n_marks == crowd.votes_per_task[patterns.task]
    masks = patterns.select_masks(unanimous, crowd.height, crowd.width)
    for number, stack in enumerate(stacks):
        assert (masks.to_array(number) == stack.all(axis=0)).all()


def test_tasks_without_votes_have_no_patterns() -> None:
    crowd, _ = make_crowd(3, 4)
    patterns = find_vote_patterns(crowd.take(crowd.task == 1))
    assert set(patterns.task) == {1}
    assert patterns.select_masks(patterns.n_marks > 0, crowd.height, crowd.width).area[[0, 2]].tolist() == [0, 0]


def test_sums_over_votes() -> None:
    crowd, stacks = make_crowd(1, 5)
    patterns = find_vote_patterns(crowd)
    marked, unmarked = RNG.random(crowd.n_votes), RNG.random(crowd.n_votes)
    expected = np.where(stacks[0], marked[:, None, None], unmarked[:, None, None]).sum()
    assert (patterns.sum_votes(marked, unmarked) * patterns.n_pixels).sum() == pytest.approx(expected)
