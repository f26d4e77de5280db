"""Distances from weighted means, local reliabilities and reliabilities of workers against loops over vectors."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.aggregate.text import _vector_means as means
from wisecrowd.data.text_vectors import TextVectors
from wisecrowd.data.texts import TextCrowd

# Three texts, two, and one alone; the last worker is never with others.
TASK, WORKER = [0, 0, 0, 1, 1, 2], [0, 1, 2, 0, 1, 3]
CROWD = TextCrowd.from_frame({"task": TASK, "worker": WORKER, "text": list("abcdef")})
VECTORS = np.random.default_rng(0).standard_normal((6, 4))
WEIGHT = np.array([1.0, 2.0, 0.5, 1.5, 1.0, 3.0])


@pytest.fixture(scope="module")
def distances() -> means.VectorDistances:
    return means.compare_vectors(CROWD, TextVectors(np.arange(6), VECTORS))


def test_distances_from_means_equal_those_of_vectors(distances: means.VectorDistances) -> None:
    squared, cosine = distances.measure_from_mean(CROWD, WEIGHT)
    for n, task in enumerate(TASK):
        rows = [row for row in range(6) if TASK[row] == task]
        mean = np.average(VECTORS[rows], axis=0, weights=WEIGHT[rows])
        assert squared[n] == pytest.approx(np.sum((VECTORS[n] - mean) ** 2), abs=1e-12)
        expected = 1 - VECTORS[n] @ mean / np.linalg.norm(VECTORS[n]) / np.linalg.norm(mean)
        assert cosine[n] == pytest.approx(expected, abs=1e-12)


def test_angles_are_between_0_and_1(distances: means.VectorDistances) -> None:
    first, second, angle = distances.compute_angles()
    assert list(zip(first, second, strict=True)) == [(0, 1), (0, 2), (1, 2), (3, 4)]
    norms = np.linalg.norm(VECTORS, axis=1)
    expected = [(1 - VECTORS[i] @ VECTORS[j] / norms[i] / norms[j]) / 2 for i, j in zip(first, second, strict=True)]
    assert angle == pytest.approx(expected)


def test_vectors_of_zeros_have_no_direction() -> None:
    vectors = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]])
    zeros = means.compare_vectors(CROWD, TextVectors(np.arange(6), vectors))
    assert zeros.compute_angles().distance.tolist() == [0.5, 0.0, 0.5, 1.0]
    assert zeros.measure_from_mean(CROWD, np.ones(6))[1] == pytest.approx([2, 0, 2, 2, 2, 2], abs=1e-12)
    local = means.compute_local_reliability(CROWD, zeros, np.zeros(4), 1.0)
    assert local == pytest.approx([0.5, means.MIN_LOCAL, 0.5, np.exp(-4), np.exp(-4), 1.0])


def test_local_reliability_is_the_mean_similarity(distances: means.VectorDistances) -> None:
    gleu = np.array([0.2, 0.4, 0.6, 0.8])
    local = means.compute_local_reliability(CROWD, distances, gleu, 0.3)

    def compare(one: int, other: int) -> float:
        squared = np.sum((VECTORS[one] - VECTORS[other]) ** 2)
        return float(np.exp(-squared / (np.sum(VECTORS[one] ** 2) * np.sum(VECTORS[other] ** 2))))

    first = 0.3 * (compare(0, 1) + compare(0, 2)) / 2 + 0.7 * (0.2 + 0.4) / 2
    assert local[0] == pytest.approx(first)
    assert local[4] == pytest.approx(0.3 * compare(3, 4) + 0.7 * 0.8)
    assert local[5] == 1


def test_reliability_is_a_quantile_over_the_sum_of_squares() -> None:
    from scipy import stats

    squared, local = np.array([1.0, 2.0, 3.0, 4.0, 0.0, 7.0]), np.array([0.5, 1.0, 1.0, 0.25, 1.0, 1.0])
    has_others = np.array([True] * 5 + [False])
    reliability = means.update_reliability(CROWD, squared, local, has_others, 0.975)
    expected = np.array([stats.chi2.isf(0.025, 2) / 18, stats.chi2.isf(0.025, 2) / 2, stats.chi2.isf(0.025, 1) / 3])
    assert reliability[:3] == pytest.approx(expected / expected.mean())
    assert reliability[3] == 1
