"""Methods compared by hidden votes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd, DawidSkene, MajorityVote, simulate_crowd
from wisecrowd.em.priors import estimate_crowd_confusion, estimate_prior_strength
from wisecrowd.errors import WisecrowdError
from wisecrowd.evaluate import heldout_votes
from wisecrowd.evaluate.model_selection import choose_method, compare_methods

GOOD_AND_BAD = simulate_crowd(
    n_tasks=300, workers=["expert"] * 4 + ["spammer"] * 8, n_classes=3, votes_per_task=5, random_state=0
)


def test_votes_are_dealt_evenly_and_no_task_loses_two_to_one_fold() -> None:
    crowd = GOOD_AND_BAD.crowd
    fold = heldout_votes.assign_vote_folds(crowd, 5, 0)
    assert set(np.bincount(fold) // 10) <= {29, 30, 31}
    assert len(set(zip(crowd.task, fold, strict=True))) == crowd.n_votes  # five votes, five folds
    assert not np.array_equal(fold, heldout_votes.assign_vote_folds(crowd, 5, 1))


def test_the_likelihood_is_that_of_its_formula() -> None:
    """One fold, vote by vote, with an exponent of one."""
    crowd = GOOD_AND_BAD.crowd
    fold = heldout_votes.assign_vote_folds(crowd, 3, 0)
    found = heldout_votes.heldout_log_probs(DawidSkene(), crowd, None, fold, 3)[:, -1]
    kept = crowd.take(fold != 0)
    posterior = DawidSkene().fit(kept).posterior_
    tally = np.zeros((crowd.n_workers, 3, 3))
    for vote in range(kept.n_votes):
        tally[kept.worker[vote], :, kept.label[vote]] += posterior[kept.task[vote]]
    by_pair = tally.transpose(0, 2, 1)[kept.pairs.worker, kept.pairs.label]
    toward = estimate_crowd_confusion(by_pair, kept.pairs)
    strength = estimate_prior_strength(by_pair, kept.pairs, toward)
    matrix = (tally + strength * toward) / (tally.sum(axis=2, keepdims=True) + strength)
    for vote in np.flatnonzero(fold == 0)[:50]:
        task, worker, label = crowd.task[vote], crowd.worker[vote], crowd.label[vote]
        assert found[vote] == pytest.approx(np.log(posterior[task] @ matrix[worker, :, label]), abs=1e-9)


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
    assert "do not tell the methods apart" in found.summary
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
    with pytest.raises(WisecrowdError, match="looks at features"):
        compare_methods(made.crowd, ["raykar"])


def test_bad_input() -> None:
    crowd = GOOD_AND_BAD.crowd
    with pytest.raises(WisecrowdError, match="worker ids"):
        compare_methods(crowd.drop_workers())
    with pytest.raises(WisecrowdError, match="two folds"):
        compare_methods(crowd, folds=1)
    with pytest.raises(WisecrowdError, match="too few"):
        compare_methods(Crowd.from_triples([(1, "a", "x"), (1, "b", "x")]))
    with pytest.raises(WisecrowdError, match="a list of methods"):
        compare_methods(crowd, "dawid-skene")
    with pytest.raises(WisecrowdError, match="infer classes"):
        compare_methods(crowd, ["mean"])
