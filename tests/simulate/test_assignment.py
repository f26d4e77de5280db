from __future__ import annotations

import tracemalloc
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from wisecrowd.errors import UsageError
from wisecrowd.simulate import assign
from wisecrowd.simulate.assignment import _draw_by_race, _draw_successively, resolve_votes_per_task


def set_probabilities(share: np.ndarray, k: int) -> dict[tuple[int, ...], float]:
    """Successive sampling by brute force: the probability of each set of workers, over all orders of drawing it."""
    found: dict[tuple[int, ...], float] = {}
    for order in permutations(range(len(share)), k):
        left, probability = 1.0, 1.0
        for one in order:
            probability *= share[one] / left
            left -= share[one]
        found[tuple(sorted(order))] = found.get(tuple(sorted(order)), 0.0) + probability
    return found


@pytest.mark.parametrize("draw", [_draw_by_race, _draw_successively])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_sets_of_workers_have_their_exact_probabilities(draw: object, k: int) -> None:
    share = np.array([0.5, 0.25, 0.15, 0.08, 0.02])
    expected = set_probabilities(share, k)
    drawn = draw(np.random.default_rng(k), 20_000, k, share)  # type: ignore[operator]
    sets, counts = np.unique(drawn, axis=0, return_counts=True)
    seen = dict(zip(map(tuple, sets.tolist()), counts.tolist(), strict=True))
    observed = np.array([seen.pop(key, 0) for key in expected])
    assert not seen, "a set that cannot be drawn was drawn"
    wanted = 20_000 * np.array(list(expected.values()))
    rare = wanted < 5  # the chi-square law wants no tiny cells: these are counted as one
    if rare.any():
        observed = np.append(observed[~rare], observed[rare].sum())
        wanted = np.append(wanted[~rare], wanted[rare].sum())
    assert stats.chisquare(observed, wanted).pvalue > 1e-3


@given(
    counts=st.lists(st.integers(0, 6), max_size=30),
    activity=st.lists(st.floats(1e-6, 1e6), min_size=6, max_size=60),
    idle=st.integers(0, 3),
    seed=st.integers(0, 10),
)
def test_every_task_gets_its_number_of_different_workers(
    counts: list[int], activity: list[float], idle: int, seed: int
) -> None:
    weights = np.array([*activity, *[0.0] * idle])
    task, worker = assign(counts, weights, seed)
    assert np.bincount(task, minlength=len(counts)).tolist() == counts
    pairs = list(zip(task.tolist(), worker.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    assert (weights[worker] > 0).all()
    again = assign(counts, weights, seed)
    assert (again[0] == task).all()
    assert (again[1] == worker).all()


@pytest.mark.parametrize("n_workers", [3, 40])
def test_extreme_skew_neither_hangs_nor_repeats(n_workers: int) -> None:
    activity = np.full(n_workers, 1e-300)
    activity[0] = 1e300
    task, worker = assign(np.full(500, 2), activity)
    first = worker.reshape(-1, 2)
    assert (first[:, 0] == 0).all()
    assert set(first[:, 1].tolist()) == set(range(1, n_workers))
    assert len(task) == 1000


def test_votes_follow_activity_when_one_label_is_wanted() -> None:
    share = np.random.default_rng(0).dirichlet(np.ones(30))
    _, worker = assign(np.ones(50_000, dtype=int), share, 1)
    assert stats.chisquare(np.bincount(worker, minlength=30), 50_000 * share).pvalue > 1e-3


def test_memory_is_that_of_the_labels() -> None:
    tracemalloc.start()
    task, _ = assign(np.full(100_000, 3), np.ones(50_000))  # tasks x workers would be five thousand million cells
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(task) == 300_000
    assert peak < 50e6


@pytest.mark.parametrize("k", [1, 5, 30])
def test_many_sizes_at_once(k: int) -> None:
    counts = np.random.default_rng(0).integers(0, k, size=1000, endpoint=True)
    task, _ = assign(counts, np.ones(40))
    assert (np.bincount(task, minlength=1000) == counts).all()


def test_too_few_workers() -> None:
    with pytest.raises(UsageError, match="4 votes per task need 4 different workers, but only 3 are active"):
        assign([1, 4], [1, 1, 1, 0])


def test_labels_per_task_draws_from_the_whole_range() -> None:
    counts = resolve_votes_per_task((2, 5), 4000)
    assert stats.chisquare(np.bincount(counts)[2:]).pvalue > 1e-3
    assert set(counts.tolist()) == {2, 3, 4, 5}


@pytest.mark.parametrize("bad", [2.5, -1, (3, 2), (1, 2, 3), [1, 2], [[1]], "three"])
def test_bad_labels_per_task(bad: object) -> None:
    with pytest.raises(UsageError, match="votes_per_task"):
        resolve_votes_per_task(bad, 3)  # type: ignore[arg-type]  # that is the test
