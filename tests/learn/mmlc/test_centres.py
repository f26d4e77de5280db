"""The centre of vectors: what all kinds have in common, and each by a formula."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.errors import UsageError
from wisecrowd.learn.mmlc._centres import compute_centre, compute_centre_weights

KINDS = ("kde", "joint", "mean", "median")
VECTORS = np.random.default_rng(0).dirichlet(np.ones(4), size=30)


@pytest.mark.parametrize("kind", KINDS)
def test_it_lies_on_the_simplex_and_does_not_depend_on_the_order(kind: str) -> None:
    found = compute_centre(VECTORS, kind)  # type: ignore[arg-type]  # a kind
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    np.testing.assert_allclose(compute_centre(VECTORS[::-1], kind), found, atol=1e-12)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weight", [None, np.arange(1.0, 6.0)])
def test_the_centre_of_equals_is_what_they_are(kind: str, weight: np.ndarray | None) -> None:
    same = np.tile([0.5, 0.2, 0.3], (5, 1))
    np.testing.assert_allclose(compute_centre(same, kind, weight), same[0], atol=1e-12)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["mean", "median", "kde", "joint"])
def test_a_weight_is_a_number_of_copies(kind: str) -> None:
    count = np.random.default_rng(1).integers(0, 4, size=len(VECTORS))
    again = np.repeat(VECTORS, count, axis=0)
    width = None if kind in ("mean", "median") else 0.1  # the rule for it knows how many there are
    found = compute_centre(VECTORS, kind, count.astype(float), width)  # type: ignore[arg-type]
    wanted = compute_centre(again, kind, None, width)  # type: ignore[arg-type]
    # The grid of a density spans all vectors, also those that do not count.
    np.testing.assert_allclose(found, wanted, atol=0.02 if kind == "kde" else 1e-9)


def test_medians_by_hand() -> None:
    vectors = np.array([[0.1, 0.9], [0.3, 0.7], [0.8, 0.2]])
    np.testing.assert_allclose(compute_centre(vectors, "median"), [0.3, 0.7])
    two = compute_centre(vectors[:2], "median")
    np.testing.assert_allclose(two, [0.2, 0.8])


def test_a_density_has_its_mode_where_most_are() -> None:
    rng = np.random.default_rng(2)
    first = np.concatenate([rng.normal(0.3, 0.02, 70), rng.normal(0.8, 0.02, 30)])
    vectors = np.column_stack([first, 1 - first])
    assert compute_centre(vectors, "kde")[0] == pytest.approx(0.3, abs=0.04)
    # From the mean, which lies between, mean shift goes to the heavier side.
    assert compute_centre(vectors, "joint", bandwidth=0.1)[0] == pytest.approx(0.3, abs=0.05)
    assert compute_centre(vectors, "kde", bandwidth=10.0)[0] == pytest.approx(first.mean(), abs=0.01)


def test_the_bandwidth_ignores_a_few_vectors_far_away() -> None:
    """Silverman's rule takes the smaller of standard deviation and quartile distance."""
    near = np.random.default_rng(4).normal(0.4, 0.01, 95)
    first = np.append(near, np.full(5, 0.99))
    quartiles = np.subtract(*np.quantile(first, [0.75, 0.25], method="averaged_inverted_cdf")) / 1.34
    assert quartiles < first.std() / 5
    vectors = np.column_stack([first, 1 - first])
    found = compute_centre(vectors, "kde")
    np.testing.assert_array_equal(found, compute_centre(vectors, "kde", bandwidth=0.9 * quartiles * 100 ** (-1 / 5)))
    assert found[0] == pytest.approx(0.4, abs=0.005)
    half = np.append(np.full(60, 0.3), np.linspace(0.5, 0.9, 40))  # equal quartiles: the standard deviation is left
    assert compute_centre(np.column_stack([half, 1 - half]), "kde")[0] == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize("heavier", [0, 1])
def test_the_joint_mode_is_in_the_heavier_of_two_clusters(heavier: int) -> None:
    """The mean lies between them in a mode of its own, if a bandwidth is small."""
    rng = np.random.default_rng(5)
    sizes = (60, 40) if heavier == 0 else (40, 60)
    first = np.concatenate([rng.normal(centre, 0.01, n) for centre, n in zip((0.2, 0.8), sizes, strict=True)])
    first = np.append(first, first.mean())
    vectors = np.column_stack([first, 1 - first])
    assert compute_centre(vectors, "joint", bandwidth=0.02)[0] == pytest.approx((0.2, 0.8)[heavier], abs=0.02)


def test_a_histogram_stands_for_the_vectors_well() -> None:
    column = np.random.default_rng(3).beta(2, 5, size=200)
    vectors = np.column_stack([column, 1 - column])
    quartiles = np.subtract(*np.quantile(column, [0.75, 0.25], method="averaged_inverted_cdf")) / 1.34
    width = 0.9 * min(column.std(), quartiles) * 200 ** (-1 / 5)
    at = np.linspace(column.min(), column.max(), 256)
    density = np.exp(-(((at[:, None] - column) / width) ** 2) / 2).sum(axis=1)
    other = 1 - column
    spread = np.linspace(other.min(), other.max(), 256)
    second = np.exp(-(((spread[:, None] - other) / width) ** 2) / 2).sum(axis=1)
    wanted = np.array([at[density.argmax()], spread[second.argmax()]])
    np.testing.assert_allclose(compute_centre(vectors, "kde"), wanted / wanted.sum(), atol=0.005)


def test_workers_without_votes_do_not_count() -> None:
    counts = np.array([3, 0, 1])
    assert compute_centre_weights(counts, "labels").tolist() == [3, 0, 1]
    assert compute_centre_weights(counts, "none").tolist() == [1, 0, 1]
    with pytest.raises(UsageError, match="all weights are zero"):
        compute_centre(VECTORS, "mean", np.zeros(30))
    with pytest.raises(UsageError, match="centre must be"):
        compute_centre(VECTORS, "middle")  # type: ignore[arg-type]
