"""Neighbours against all distances, weights against scipy, and passing on against matrix algebra."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.sparse import csr_array

from wisecrowd.classifiers import neighbours as _neighbours
from wisecrowd.classifiers.neighbours import (
    RIDGE,
    compute_reconstruction_weights,
    find_neighbours,
    propagate_labels,
    scale_to_range,
    solve_convex_weights,
)
from wisecrowd.errors import InputError, UsageError


class TestRange:
    def test_every_feature_has_the_same_range_and_constants_are_left_out(self) -> None:
        X = np.random.default_rng(0).normal(size=(30, 2, 3)) * [1, 1e-9, 1e9]
        X[:, 1, 2] = 4
        scaled = scale_to_range(X)
        assert scaled.shape == (30, 5)
        np.testing.assert_allclose(scaled.min(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(scaled.max(axis=0), 1, atol=1e-12)

    def test_numbers_as_large_as_numbers_get(self) -> None:
        largest = np.finfo(float).max
        assert scale_to_range(np.array([[-largest], [0.0], [largest]])).ravel().tolist() == [0, 0.5, 1]

    def test_others_do_not_set_the_range_and_stay_finite(self) -> None:
        X = np.array([[0.0, 1.0], [2.0, 1.0], [1e300, 5.0]])
        scaled = scale_to_range(X, np.array([True, True, False]))
        assert scaled.tolist() == [[0], [1], [_neighbours.MAX_SCALED_VALUE]]

    def test_features_that_tell_nothing_apart(self) -> None:
        with pytest.raises(InputError, match="all 3 features are the same for every task"):
            scale_to_range(np.ones((4, 3)))
        assert scale_to_range(np.ones((1, 3))).tolist() == [[0]]


def by_all_distances(X: NDArray[Any], k: int, among: NDArray[np.bool_]) -> NDArray[np.float64]:
    distance = np.linalg.norm(X[:, None] - X[None], axis=2)
    distance[:, ~among] = np.inf
    np.fill_diagonal(distance, np.inf)
    return np.sort(distance, axis=1)[:, :k]


class TestNearest:
    @pytest.mark.parametrize("n_features", [2, 15, 16, 70])
    @pytest.mark.parametrize("n_tasks", [2, 3, 8, 9, 31, 300])
    @pytest.mark.parametrize("k", [1, 5])
    def test_they_are_the_nearest(self, n_tasks: int, n_features: int, k: int) -> None:
        rng = np.random.default_rng(n_tasks + n_features)
        X = rng.normal(size=(n_tasks, n_features))
        some = rng.random(n_tasks) < 0.6
        some[:2] = True
        for among in (np.ones(n_tasks, dtype=bool), some):
            place, distance = find_neighbours(X, k, among)
            assert place.shape == (n_tasks, min(k, among.sum() - 1))
            assert among[place].all()
            assert (place != np.arange(n_tasks)[:, None]).all()
            assert all(len(set(row)) == len(row) for row in place.tolist())
            np.testing.assert_allclose(distance, by_all_distances(X, place.shape[1], among), atol=1e-12)
            np.testing.assert_allclose(distance, np.linalg.norm(X[place] - X[:, None], axis=2), atol=1e-12)

    @pytest.mark.parametrize("n_features", [3, 40])
    def test_tasks_that_look_the_same_are_neighbours_and_nobody_is_their_own(self, n_features: int) -> None:
        X = np.repeat(np.random.default_rng(1).normal(size=(20, n_features)), 4, axis=0)
        place, distance = find_neighbours(X, 3)
        assert (place // 4 == np.arange(80)[:, None] // 4).all()
        assert (place != np.arange(80)[:, None]).all()
        assert not distance.any()

    def test_far_from_the_origin_single_precision_is_no_excuse(self) -> None:
        X = np.random.default_rng(2).normal(size=(200, 30))
        assert np.array_equal(find_neighbours(X + 1e4, 5)[0], find_neighbours(X, 5)[0])

    def test_the_only_task(self) -> None:
        place, distance = find_neighbours(np.array([[0.0], [3.0]]), 5, np.array([True, False]))
        assert place.tolist() == [[0], [0]]
        assert distance.tolist() == [[0], [3]]

    def test_no_neighbours_wanted(self) -> None:
        with pytest.raises(UsageError, match="number of neighbours, must be 1 or more; got 0"):
            find_neighbours(np.zeros((3, 1)), 0)

    def test_never_all_distances_at_once(self) -> None:
        X = np.random.default_rng(3).normal(size=(6000, 20))
        find_neighbours(X[:50], 5)  # what is imported on the way does not count
        tracemalloc.start()
        find_neighbours(X, 5)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 6000 * 6000 * 4 / 2


def ridged(gram: NDArray[np.float64]) -> NDArray[np.float64]:
    return gram + RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))


class TestWeights:
    @pytest.mark.parametrize("k", [1, 2, 5, 12])
    @pytest.mark.parametrize("n_features", [1, 3, 30])
    def test_they_are_those_of_scipy(self, k: int, n_features: int) -> None:
        away = np.random.default_rng(k).normal(size=(200, k, n_features)) + 0.5
        gram = away @ away.transpose(0, 2, 1)
        found = solve_convex_weights(gram)
        for mine, matrix in zip(found, gram, strict=True):
            lower = np.linalg.cholesky(ridged(matrix))
            wanted, _ = nnls(lower.T, np.linalg.solve(lower, np.ones(k)))  # ½ v'Gv − Σ v
            np.testing.assert_allclose(mine, wanted / wanted.sum(), atol=1e-7)

    def test_no_other_weights_do_better(self) -> None:
        rng = np.random.default_rng(5)
        away = rng.normal(size=(40, 4, 6)) + 0.3
        gram = away @ away.transpose(0, 2, 1)
        found = solve_convex_weights(gram)
        others = rng.dirichlet(np.full(4, 0.5), size=3000)
        for mine, matrix in zip(found, gram, strict=True):
            penalised = ridged(matrix)
            assert mine @ penalised @ mine <= np.einsum("nk,kl,nl->n", others, penalised, others).min() + 1e-12

    def test_scale_does_not_matter_and_hard_cases_end(self) -> None:
        rng = np.random.default_rng(6)
        away = rng.normal(size=(300, 10, 2)) * 10.0 ** rng.integers(-8, 8, size=(300, 10, 1))
        gram = away @ away.transpose(0, 2, 1)
        found = solve_convex_weights(gram)
        assert (found >= 0).all()
        np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)
        np.testing.assert_allclose(solve_convex_weights(gram * 1e-30), found, atol=1e-9)

    def test_neighbours_in_the_same_place(self) -> None:
        assert solve_convex_weights(np.zeros((1, 4, 4))).tolist() == [[0.25] * 4]
        one_here = np.diag([0.0, 1.0, 1.0])[None]
        assert solve_convex_weights(one_here)[0, 0] > 0.99

    def test_a_task_between_two_others_is_half_of_each(self) -> None:
        X = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [9.0, 9.0], [9.5, 9.0], [9.0, 9.5]])
        weights = compute_reconstruction_weights(X, 2).toarray()
        np.testing.assert_allclose(weights[1], [0.5, 0, 0.5, 0, 0, 0], atol=1e-12)
        np.testing.assert_allclose(weights.sum(axis=1), 1)
        assert not weights.diagonal().any()

    def test_blocks_of_tasks_make_no_difference(self, monkeypatch: pytest.MonkeyPatch) -> None:
        X = np.random.default_rng(7).normal(size=(50, 20))
        whole = compute_reconstruction_weights(X, 5)
        monkeypatch.setattr(_neighbours, "slice_rows", lambda rows, _: [slice(at, at + 7) for at in range(0, rows, 7)])
        np.testing.assert_allclose(compute_reconstruction_weights(X, 5).toarray(), whole.toarray(), atol=1e-9)


class TestPropagate:
    rng = np.random.default_rng(8)
    graph = csr_array(compute_reconstruction_weights(rng.normal(size=(30, 3)), 4))
    first = rng.dirichlet(np.ones(3), size=30)
    keep = np.where(np.arange(30) < 3, 1.0, 0.4)

    def test_a_number_of_passes(self) -> None:
        wanted = self.first
        for _ in range(4):
            wanted = self.keep[:, None] * self.first + (1 - self.keep)[:, None] * (self.graph.toarray() @ wanted)
        found, passes, settled = propagate_labels(self.graph, self.first, self.keep, max_iter=4, tol=0, title="")
        np.testing.assert_allclose(found, wanted)
        assert (passes, settled) == (4, False)

    def test_to_the_limit(self) -> None:
        found, passes, settled = propagate_labels(self.graph, self.first, self.keep, max_iter=500, tol=1e-12, title="")
        away = np.eye(30) - (1 - self.keep)[:, None] * self.graph.toarray()
        np.testing.assert_allclose(found, np.linalg.solve(away, self.keep[:, None] * self.first), atol=1e-10)
        assert settled
        assert passes < 100
        assert np.array_equal(found[:3], self.first[:3])

    @pytest.mark.parametrize("wrong", [{"max_iter": 0}, {"tol": -1.0}, {"tol": float("nan")}])
    def test_what_makes_no_sense(self, wrong: dict[str, float]) -> None:
        options: Any = {"max_iter": 5, "tol": 0.0, "title": ""} | wrong
        with pytest.raises(UsageError, match=f"{next(iter(wrong))} must be"):
            propagate_labels(self.graph, self.first, self.keep, **options)
