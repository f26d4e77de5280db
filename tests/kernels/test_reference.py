"""Reference kernels: sums by bincount and by sparse products, against dense tables."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from wisecrowd.data.layout import Layout
from wisecrowd.kernels import reference


class Example(NamedTuple):
    layout: Layout
    prior: np.ndarray
    label_probs: np.ndarray
    gold: np.ndarray


def make_example(n_classes: int, *, weighted: bool) -> Example:
    rng = np.random.default_rng(n_classes)
    offset = np.concatenate([[0], rng.integers(0, 4, 8).cumsum()])
    weight = rng.gamma(2.0, size=offset[-1]) if weighted else None
    layout = Layout(offset, rng.integers(6, size=offset[-1], dtype=np.int32), weight, 6)
    gold = rng.integers(-1, n_classes, 8, dtype=np.int32)
    return Example(layout, rng.dirichlet(np.ones(n_classes)), rng.uniform(0.1, 1, (6, n_classes)), gold)


def make_vote_table(layout: Layout) -> np.ndarray:
    """Return the weight of votes as a dense table of tasks x pairs."""
    table = np.zeros((layout.n_tasks, layout.n_pairs))
    weight = np.ones(len(layout.pair)) if layout.weight is None else layout.weight
    np.add.at(table, (np.repeat(np.arange(layout.n_tasks), np.diff(layout.offset)), layout.pair), weight)
    return table


@pytest.fixture(params=["bincount", "sparse", "sparse, two columns at a time"])
def _path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param != "bincount":
        monkeypatch.setattr(reference, "SMALL_CELLS", -1)
    if request.param == "sparse, two columns at a time":
        monkeypatch.setattr(reference, "MAX_TEMPORARY_CELLS", 16)


@pytest.mark.usefixtures("_path")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [1, 3, 40])
def test_sums_equal_those_of_dense_tables(n_classes: int, weighted: bool) -> None:
    example = make_example(n_classes, weighted=weighted)
    votes = make_vote_table(example.layout)
    joint = np.exp(votes @ np.log(example.label_probs)) * example.prior
    evidence = joint.sum(axis=1)
    expected = joint / evidence[:, None]
    is_gold = example.gold >= 0
    expected[is_gold] = np.eye(n_classes)[example.gold[is_gold]]
    evidence[is_gold] = joint[is_gold, example.gold[is_gold]]
    has_votes = votes.sum(axis=1) > 0

    sums = reference.expect(*example, return_posterior=True)
    np.testing.assert_allclose(sums.posterior, expected, rtol=1e-10)
    np.testing.assert_allclose(sums.class_counts, expected[has_votes].sum(axis=0), rtol=1e-10)
    np.testing.assert_allclose(sums.tally, votes.T @ expected, rtol=1e-10, atol=1e-12)
    assert sums.log_likelihood == pytest.approx(np.log(evidence[has_votes]).sum())
    assert reference.expect(*example, return_posterior=False).posterior is None


@pytest.mark.usefixtures("_path")
def test_tasks_without_any_vote_give_zeros_of_the_right_type() -> None:
    layout = Layout(np.zeros(3, dtype=np.int64), np.empty(0, dtype=np.int32), None, 2)
    sums = reference.tally(layout, np.full((2, 3), 1 / 3))
    assert sums.dtype == np.float64
    assert sums.tolist() == [[0.0] * 3] * 2


def test_a_slice_of_the_tasks_counts_its_own_votes_only() -> None:
    """The arrays of a slice are those of the whole crowd; only its offsets differ."""
    whole = make_example(3, weighted=True)
    part = whole.layout.slice_tasks(2, 5)
    posterior = np.random.default_rng(0).dirichlet(np.ones(3), 3)
    np.testing.assert_allclose(reference.tally(part, posterior), make_vote_table(whole.layout)[2:5].T @ posterior)
