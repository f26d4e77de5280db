"""Check of the default method by held-out votes."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import Crowd, compare_methods, simulate_crowd
from wisecrowd.evaluate import method_check
from wisecrowd.evaluate.heldout_votes import EXPONENTS
from wisecrowd.evaluate.method_check import (
    BASELINE,
    MAX_CHECKED_VOTES,
    check_default_method,
    choose_exponent,
    judge_default_method,
    sample_tasks,
)

CROWD = simulate_crowd(
    200, workers=["noisy(0.9)"] * 5 + ["spammer"] * 5, n_classes=3, votes_per_task=5, random_state=0
).crowd


def test_the_default_beats_majority_vote_if_workers_differ() -> None:
    check = check_default_method(CROWD)
    assert check is not None
    assert not check.is_rejected
    assert check.distance < 0
    assert check.low < check.distance
    assert check.n_votes == CROWD.n_votes


@pytest.mark.slow
def test_it_agrees_with_the_comparison_of_methods() -> None:
    check = check_default_method(CROWD)
    comparison = compare_methods(CROWD)
    assert check is not None
    assert comparison.best == check.recommended
    behind = comparison.table["behind"]
    assert check.distance == pytest.approx(behind["model-average"] - behind[BASELINE])


def test_a_method_far_behind_majority_vote_is_rejected() -> None:
    log_probs = {
        name: np.repeat(np.full((CROWD.n_votes, 1), mean), len(EXPONENTS), axis=1)
        for name, mean in (("model-average", -1.5), (BASELINE, -1.0))
    }
    check = judge_default_method(log_probs, CROWD, 0)
    assert check is not None
    assert (check.is_rejected, check.recommended) == (True, BASELINE)
    assert check.distance == pytest.approx(0.5)
    log_probs["model-average"] += 0.45  # within the distance of crowds on which the default is as accurate
    close = judge_default_method(log_probs, CROWD, 0)
    assert close is not None
    assert not close.is_rejected
    assert judge_default_method({BASELINE: log_probs[BASELINE]}, CROWD, 0) is None


def test_too_few_votes_are_not_checked() -> None:
    assert check_default_method(Crowd.from_triples([("t1", "ann", 0), ("t1", "bob", 1)])) is None
    assert check_default_method(Crowd.from_triples([(task, task % 3, task % 2) for task in range(30)])) is None


def test_the_best_exponent_is_chosen() -> None:
    log_probs = np.array([[-3.0, -1.0, -2.0, -4, -4, -4, -4]] * 2)
    values, exponent = choose_exponent(log_probs)
    assert values.tolist() == [-1.0, -1.0]
    assert exponent == EXPONENTS[1]


def test_a_sample_of_tasks_has_few_votes(monkeypatch: pytest.MonkeyPatch) -> None:
    positions = sample_tasks(CROWD, 100)
    assert CROWD.votes_per_task[positions].sum() == 100
    assert (np.diff(positions) > 0).all()
    assert len(sample_tasks(CROWD, 1)) == 1
    assert CROWD.n_votes < MAX_CHECKED_VOTES
    monkeypatch.setattr(method_check, "MAX_CHECKED_VOTES", 300)
    check = check_default_method(CROWD)
    assert check is not None
    assert check.n_votes == 300
