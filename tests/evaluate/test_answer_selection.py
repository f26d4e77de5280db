"""Comparison of methods for comparisons and label sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate.answer_selection import CANDIDATES, compare_answer_methods


@pytest.fixture(scope="module")
def comparisons() -> wc.Comparisons:
    made = wc.simulate_comparisons(n_items=6, n_workers=20, votes_per_worker=40, lean_spread=1.5, random_state=1)
    return made.comparisons


@pytest.mark.slow
def test_leaning_judges_are_found_without_truth(comparisons: wc.Comparisons) -> None:
    result = compare_answer_methods(comparisons)
    assert list(result.fitted_methods) == list(result.table.index)
    assert set(result.table.index) == set(CANDIDATES["pairwise"])
    assert result.best == "judge-aware-bradley-terry"
    assert result.tied_methods == ("judge-aware-bradley-terry",)
    assert "times the probability" in result.summary
    assert (result.table["log_likelihood"] > np.log(1 / 3) - 0.3).all()
    assert result.table["behind"].is_monotonic_increasing


def test_the_mean_is_that_of_the_folds(comparisons: wc.Comparisons) -> None:
    """Constant predictions: win rates of two items that always tie have a known log-probability."""
    votes = wc.Comparisons.from_tuples([(f"w{n}", "a", "b", "tie") for n in range(20)])
    table = compare_answer_methods(votes, ["win-rate"]).table
    assert table["log_likelihood"].iloc[0] == pytest.approx(0, abs=1e-6)
    result = compare_answer_methods(comparisons, ["bradley-terry"])
    assert "Only bradley-terry" in result.summary
    assert compare_answer_methods(comparisons, ["bradley-terry"]).table["log_likelihood"].iloc[0] == pytest.approx(
        result.table["log_likelihood"].iloc[0], abs=0
    )


def test_comparisons_without_workers(comparisons: wc.Comparisons) -> None:
    votes = wc.Comparisons.from_frame(comparisons.to_frame(), worker=None)
    result = wc.compare_methods(votes)
    assert set(result.table.index) == {"bradley-terry", "elo", "win-rate"}
    with pytest.raises(InputError, match="worker ids"):
        wc.compare_methods(votes, ["crowd-bradley-terry"])


@pytest.mark.slow
def test_dependent_labels_are_found_without_truth() -> None:
    crowd = wc.simulate_label_sets(n_tasks=200, n_groups=4, random_state=1).crowd
    result = wc.compare_methods(crowd, [wc.LabelSetMixture(n_groups=4), "binary-relevance"], folds=3)
    assert result.best == "label-set-mixture"
    assert result.agreement.loc["binary-relevance", "label-set-mixture"] == pytest.approx(
        1 - len(result.disputed_tasks) / crowd.n_tasks
    )
    assert all(isinstance(labels, tuple) for labels in result.disputed_tasks["binary-relevance"])


def test_rankings_are_compared(comparisons: wc.Comparisons) -> None:
    result = compare_answer_methods(comparisons, ["bradley-terry", "win-rate"])
    ranks = {name: method.labels_ for name, method in result.fitted_methods.items()}
    expected = ranks["bradley-terry"].corr(ranks["win-rate"].reindex(ranks["bradley-terry"].index), method="spearman")
    assert result.agreement.loc["bradley-terry", "win-rate"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("methods", "folds", "match"),
    [
        (["dawid-skene"], 5, "judge-aware-bradley-terry"),
        ("bradley-terry", 5, "must be a list"),
        ([], 5, "empty"),
        (None, 1, "folds"),
    ],
)
def test_bad_arguments_are_refused(comparisons: wc.Comparisons, methods: Any, folds: int, match: str) -> None:
    with pytest.raises(UsageError, match=match):
        compare_answer_methods(comparisons, methods, folds=folds)


def test_too_few_votes_are_refused() -> None:
    with pytest.raises(InputError, match="at least 10 votes"):
        compare_answer_methods(wc.Comparisons.from_tuples([("x", "a", "b", "a")]))
    with pytest.raises(UsageError, match="truth"):
        wc.compare_methods(wc.Comparisons.from_tuples([("x", "a", "b", "a")]), truth={"t": 1})
