"""Predictive probabilities of held-out votes."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import DawidSkene, simulate_crowd
from wisecrowd.em.priors import estimate_crowd_confusion, estimate_prior_strength
from wisecrowd.evaluate import heldout_votes

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
