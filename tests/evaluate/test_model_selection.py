"""Methods compared by hidden votes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd, DawidSkene, MajorityVote, simulate_crowd, simulate_ratings
from wisecrowd.base import method as base_method
from wisecrowd.errors import InputError, WisecrowdError
from wisecrowd.evaluate.model_selection import choose_method, compare_methods

GOOD_AND_BAD = simulate_crowd(
    n_tasks=300, workers=["expert"] * 4 + ["spammer"] * 8, n_classes=3, votes_per_task=5, random_state=0
)


def test_who_knows_workers_wins_where_they_differ() -> None:
    found = compare_methods(GOOD_AND_BAD.crowd, ["majority-vote", "dawid-skene"], truth=GOOD_AND_BAD.truth)
    assert found.best == "dawid-skene"
    assert found.tied_methods == ("dawid-skene",)
    assert found.table.loc["majority-vote", "low"] > 0
    assert found.table.loc["dawid-skene", "accuracy"] > found.table.loc["majority-vote", "accuracy"]
    assert found.table.loc["majority-vote", "p_mcnemar"] < 0.01
    assert "Use dawid-skene" in found.summary
    assert isinstance(choose_method(GOOD_AND_BAD.crowd, ["majority-vote", "dawid-skene"]), DawidSkene)


def test_a_tie_is_called_a_tie() -> None:
    """The same method twice: nothing tells them apart, and the first is taken."""
    found = compare_methods(GOOD_AND_BAD.crowd, [DawidSkene(), DawidSkene(max_iter=99)])
    assert len(found.tied_methods) == 2
    assert found.best == "dawid-skene"
    assert "show no significant difference between the methods" in found.summary
    assert found.disputed_tasks.empty
    assert (found.agreement == 1).all(axis=None)


def test_disputed_tasks_are_those_on_which_answers_differ() -> None:
    crowd = GOOD_AND_BAD.crowd
    found = compare_methods(crowd, ["majority-vote", "dawid-skene"])
    mine, theirs = MajorityVote().fit(crowd).labels_, DawidSkene().fit(crowd).labels_
    assert set(found.disputed_tasks.index) == set(mine.index[mine != theirs])
    assert found.agreement.loc["majority-vote", "dawid-skene"] == pytest.approx((mine == theirs).mean())


def test_too_sure_is_not_held_against_labels() -> None:
    """An exponent below one is chosen where workers copy each other, and makes up for it."""
    made = simulate_crowd(400, workers=["noisy(0.7)"] * 4 + ["copier(1)"] * 6, n_classes=3, votes_per_task=6)
    assert compare_methods(made.crowd, ["dawid-skene"]).table.loc["dawid-skene", "exponent"] < 1


def test_learners_are_compared_with_features() -> None:
    made = simulate_crowd(n_tasks=150, n_workers=10, n_classes=2, votes_per_task=2, random_state=1)
    noise = np.random.default_rng(0).normal(size=150)
    X = pd.DataFrame({"x": 3.0 * (made.truth == made.crowd.classes[1]) + noise}, index=made.truth.index)
    found = compare_methods(made.crowd, ["raykar", "majority-vote"], X)
    assert found.best == "raykar"
    with pytest.raises(WisecrowdError, match="needs features"):
        compare_methods(made.crowd, ["raykar"])


def test_bad_input() -> None:
    crowd = GOOD_AND_BAD.crowd
    with pytest.raises(WisecrowdError, match="worker ids"):
        compare_methods(crowd.drop_workers())
    with pytest.raises(WisecrowdError, match="folds must be 2 or more"):
        compare_methods(crowd, folds=1)
    with pytest.raises(WisecrowdError, match="5 folds need at least 10 votes; got 2"):
        compare_methods(Crowd.from_triples([(1, "a", "x"), (1, "b", "x")]))
    with pytest.raises(WisecrowdError, match="methods must be a list"):
        compare_methods(crowd, "dawid-skene")
    with pytest.raises(WisecrowdError, match="infer classes"):
        compare_methods(crowd, ["mean"])


def test_the_default_is_recommended_even_where_another_method_predicts_votes_better(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crowd = simulate_crowd(n_tasks=60, votes_per_task=4, random_state=0).crowd

    def tie_only_majority(*_: object) -> tuple[pd.DataFrame, tuple[str, ...]]:
        columns = ["log_likelihood", "behind", "low", "high", "exponent"]
        rows = [(-0.5, 0.0, 0.0, 0.0, 1.0), (-0.6, 0.1, 0.05, 0.2, 1.0)]
        index = pd.Index(["majority-vote", "model-average"], name="method")
        return pd.DataFrame(rows, index=index, columns=columns), ("majority-vote",)

    monkeypatch.setattr("wisecrowd.evaluate.model_selection._rank_methods", tie_only_majority)
    found = compare_methods(crowd, ["model-average", "majority-vote"])
    assert found.best == "model-average"
    assert "Use model-average" in found.summary
    assert "majority-vote gives" in found.summary
    assert "1.11 times" in found.summary


@pytest.mark.slow
def test_ordered_classes_are_compared_by_ordinal_and_categorical_methods() -> None:
    crowd = simulate_ratings(n_tasks=120, n_workers=10, votes_per_task=5, random_state=0).crowd
    comparison = compare_methods(crowd)
    assert {"graded-response", "rater-mean", "ordinal-dawid-skene", "dawid-skene"} <= set(comparison.table.index)
    assert comparison.best == comparison.tied_methods[0]
    assert comparison.best in ("graded-response", "rater-mean")
    named = compare_methods(crowd, ["dawid-skene", "graded-response"])
    assert named.table.index.tolist() == ["graded-response", "dawid-skene"]


@pytest.mark.slow
def test_classes_without_order_are_not_compared_by_ordinal_methods() -> None:
    crowd = simulate_crowd(n_tasks=60, n_workers=8, votes_per_task=4, random_state=0).crowd
    assert "graded-response" not in compare_methods(crowd).table.index
    with pytest.raises(InputError, match=r"graded-response cannot be compared: .*--ordered"):
        compare_methods(crowd, ["graded-response"])


@pytest.mark.slow
def test_the_comparison_does_not_change_if_workers_are_renamed() -> None:
    crowd = simulate_crowd(80, n_workers=12, n_classes=3, votes_per_task=4, random_state=4).crowd
    frame = crowd.to_frame()
    names = pd.Index(frame["worker"].unique())
    renamed = frame.assign(worker=frame["worker"].map(dict(zip(names, reversed(names), strict=True))))
    first, second = compare_methods(crowd), compare_methods(Crowd.from_frame(renamed))
    assert first.best == second.best
    assert set(first.tied_methods) == set(second.tied_methods)
    columns = ["log_likelihood", "behind", "low", "high", "exponent"]
    pd.testing.assert_frame_equal(first.table[columns], second.table[columns])


def test_the_limit_on_rare_classes_is_that_of_the_whole_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fold has fewer votes per class than the crowd; a crowd beyond the limit is refused before anything is fitted."""
    crowd = GOOD_AND_BAD.crowd
    monkeypatch.setattr(base_method, "MAX_CELLS_BY_VOTES_PER_CLASS", {crowd.n_votes // crowd.n_classes: 10})
    assert compare_methods(crowd, ["majority-vote", "wawa"]).table.shape[0] == 2
    monkeypatch.setattr(base_method, "MAX_CELLS_BY_VOTES_PER_CLASS", {crowd.n_votes: 10})
    monkeypatch.setattr(MajorityVote, "fit", None)
    with pytest.raises(InputError, match="there are 3 classes for"):
        compare_methods(crowd, ["majority-vote", "wawa"])
