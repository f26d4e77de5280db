"""Shared parts of the aggregators of comparisons: conversion, warnings and results."""

from __future__ import annotations

import pandas as pd
import pytest

from wisecrowd import BradleyTerry, Crowd, JudgeAwareBradleyTerry
from wisecrowd.base.pairwise_aggregator import as_comparisons
from wisecrowd.errors import DataWarning, InputError, NoPosterior, UsageError


def test_disconnected_items_are_named() -> None:
    votes = [("ann", "a", "b", "a"), ("ann", "c", "d", "c"), ("bob", "a", "b", "b"), ("bob", "c", "d", "d")]
    with pytest.warns(DataWarning, match="the items form 2 groups without comparisons between them"):
        fitted = BradleyTerry().fit(votes)
    assert fitted.scores_["component"].sort_index().tolist() == [0, 0, 1, 1]


def test_classes_of_results() -> None:
    fitted = BradleyTerry().fit([("ann", "a", "b", "a"), ("bob", "b", "a", "tie")])
    assert not hasattr(fitted, "posterior_")
    with pytest.raises(NoPosterior, match="use scores_ and workers_"):
        _ = fitted.confusion_
    with pytest.raises(UsageError, match="does not rate workers; use crowd-bradley-terry"):
        _ = fitted.workers_
    assert fitted.labels_.to_dict() == {"a": 1, "b": 2}
    assert "<td>" in fitted._repr_html_()


def test_a_crowd_of_votes_is_refused_with_advice() -> None:
    with pytest.raises(InputError, match=r"takes comparisons of two items; got Crowd"):
        BradleyTerry().fit(Crowd.from_triples([("t", "ann", "x")]))  # type: ignore[arg-type]  # the mistake
    with pytest.raises(
        InputError, match=r"rates workers, but these comparisons have no worker ids; .*use bradley-terry"
    ):
        JudgeAwareBradleyTerry().fit({"left": ["a"], "right": ["b"], "label": ["a"]})


def test_tables_and_tuples_become_comparisons() -> None:
    frame = pd.DataFrame({"left": ["a"], "right": ["b"], "label": ["a"], "task": ["p"], "weight": [2.0]})
    comparisons = as_comparisons(frame, workers=False)
    assert (comparisons.n_tasks, comparisons.vote_weight.tolist(), comparisons.has_workers) == (1, [2.0], False)
    assert as_comparisons([("ann", "a", "b", "a")], workers=True).n_workers == 1
    with pytest.raises(InputError, match="there are no comparisons"):
        as_comparisons([], workers=False)


def test_unknown_items_are_named() -> None:
    fitted = BradleyTerry().fit([("ann", "a", "b", "a")])
    with pytest.raises(InputError, match="was not fitted to 'z'; it knows 'a', 'b'"):
        fitted.predict_proba([("ann", "a", "z", "a")])


def test_truth_and_features_are_refused_where_they_have_no_meaning() -> None:
    with pytest.raises(UsageError, match="takes neither truth nor start"):
        BradleyTerry().fit([("ann", "a", "b", "a")], truth={"a": 1})
