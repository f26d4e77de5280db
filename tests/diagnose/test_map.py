"""The map_workers: distances are Hellinger's as far as two dimensions hold them, and nothing depends on how matrices come."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from wisecrowd.diagnose.map import WorkerMap, map_workers


def crowd(n_workers: int, n_classes: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(n_classes), size=(n_workers, n_classes)), rng.dirichlet(np.ones(n_classes))


def apart(found: WorkerMap) -> NDArray[np.float64]:
    return np.linalg.norm(found.workers[:, None] - found.workers, axis=-1)


def hellinger(matrices: NDArray[np.float64], share: NDArray[np.float64]) -> NDArray[np.float64]:
    roots = np.sqrt(matrices)
    squares = ((roots[:, None] - roots) ** 2).sum(axis=-1) @ share
    return np.sqrt(squares)


workers, classes, seeds = st.integers(3, 12), st.integers(2, 5), st.integers(0, 1000)


@given(workers, classes, seeds)
def test_distances_are_those_between_matrices_or_shorter(n_workers: int, n_classes: int, seed: int) -> None:
    matrices, share = crowd(n_workers, n_classes, seed)
    found = map_workers(matrices, share)
    assert found is not None
    true, drawn = hellinger(matrices, share), apart(found)
    assert (drawn <= true + 1e-9).all()
    assert np.isclose((drawn**2).sum() / (true**2).sum(), found.explained_share)
    if n_workers == 3:  # three points always fit into a map_workers
        assert np.allclose(drawn, true)


@given(workers, classes, seeds)
def test_guessing_is_to_the_left_of_being_right(n_workers: int, n_classes: int, seed: int) -> None:
    found = map_workers(*crowd(n_workers, n_classes, seed))
    assert found is not None
    assert found.perfect_worker[0] >= found.guessing_worker[0]
    assert np.isclose(found.perfect_worker[1], found.guessing_worker[1])


@given(workers, classes, seeds, st.integers(1, 5))
def test_some_workers_at_a_time_give_the_same_plane(n_workers: int, n_classes: int, seed: int, at_once: int) -> None:
    matrices, share = crowd(n_workers, n_classes, seed)

    def parts() -> Iterator[NDArray[np.float64]]:
        for begin in range(0, n_workers, at_once):
            yield matrices[begin : begin + at_once]

    whole, chunks = map_workers(matrices, share), map_workers(parts, share)
    assert whole is not None
    assert chunks is not None
    assert np.allclose(apart(whole), apart(chunks), atol=1e-7)
    assert np.isclose(whole.explained_share, chunks.explained_share)


@given(workers, classes, seeds)
def test_names_of_classes_do_not_matter(n_workers: int, n_classes: int, seed: int) -> None:
    matrices, share = crowd(n_workers, n_classes, seed)
    order = np.random.default_rng(seed).permutation(n_classes)
    one, other = map_workers(matrices, share), map_workers(matrices[:, order[:, None], order], share[order])
    assert one is not None
    assert other is not None
    assert np.allclose(apart(one), apart(other), atol=1e-7)


def test_shares_need_not_sum_to_one() -> None:
    matrices, share = crowd(5, 3, 0)
    one, other = map_workers(matrices, share), map_workers(matrices, 7 * share)
    assert one is not None
    assert other is not None
    assert np.allclose(one.workers, other.workers)


def test_nothing_to_compare() -> None:
    matrices, share = crowd(2, 3, 0)
    assert map_workers(matrices, share) is None
    assert map_workers(np.ones((9, 1, 1)), [1.0]) is None
    assert map_workers(np.repeat(matrices[:1], 100_000, axis=0), share) is None
    assert map_workers(lambda: [matrices[:0], matrices[:1]], share) is None
