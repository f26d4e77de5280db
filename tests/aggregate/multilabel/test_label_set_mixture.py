"""Mixtures of label sets: gains where labels depend on each other, no loss where they do not."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import BinaryRelevance, LabelSetMixture
from wisecrowd.data.label_sets import LabelSetCrowd
from wisecrowd.errors import UsageError
from wisecrowd.simulate.label_sets import SimulatedLabelSets, simulate_label_sets


def simulate(n_groups: int, seed: int) -> SimulatedLabelSets:
    return simulate_label_sets(
        n_tasks=500, n_workers=30, n_labels=12, votes_per_task=3, n_groups=n_groups, labels_per_task=3, hit_rate=0.65,
        false_alarm_rate=0.12, random_state=seed,
    )  # fmt: skip


def macro_f1(chosen: np.ndarray, truth: np.ndarray) -> float:
    hits = (chosen & truth).sum(axis=0)
    total = chosen.sum(axis=0) + truth.sum(axis=0)
    return float(np.divide(2 * hits, total, out=np.ones(len(hits)), where=total > 0).mean())


@pytest.mark.slow
def test_dependent_labels_gain_two_points_of_macro_f1() -> None:
    gains = []
    for seed in range(2):
        made = simulate(8, seed)
        truth = made.truth.to_numpy()
        joint, single = LabelSetMixture(n_groups=8, n_starts=1).fit(made.crowd), BinaryRelevance().fit(made.crowd)
        scores = [macro_f1(fitted.label_probs_ >= fitted.threshold_, truth) for fitted in (joint, single)]
        gains.append(scores[0] - scores[1])
    assert np.mean(gains) > 0.02
    assert min(gains) > 0


@pytest.mark.slow
def test_independent_labels_lose_nothing() -> None:
    made = simulate(1, 0)
    truth = made.truth.to_numpy()
    joint, single = LabelSetMixture(n_starts=1).fit(made.crowd), BinaryRelevance().fit(made.crowd)
    assert set(joint.heldout_log_loss_) == {"1", "2", "4", "8", "16"}
    scores = [macro_f1(fitted.label_probs_ >= fitted.threshold_, truth) for fitted in (joint, single)]
    assert scores[0] > scores[1] - 0.01


def test_one_group_is_binary_relevance() -> None:
    made = simulate_label_sets(n_tasks=200, random_state=2)
    joint = LabelSetMixture(n_groups=1, tol=1e-9, max_iter=5000).fit(made.crowd)
    single = BinaryRelevance(tol=1e-9, max_iter=5000).fit(made.crowd)
    assert np.allclose(joint.label_probs_, single.label_probs_, atol=0.01)


def test_the_objective_never_falls() -> None:
    trace = LabelSetMixture(n_groups=3, n_starts=1).fit(simulate(4, 1).crowd).trace_
    assert (np.diff(trace) > -1e-7 * abs(trace[-1])).all()


def test_posterior_of_one_task_is_that_of_enumeration() -> None:
    """All label sets and groups of one task, summed by brute force."""
    made = simulate_label_sets(n_tasks=40, n_workers=6, n_labels=3, votes_per_task=3, n_groups=2, random_state=3)
    fitted = LabelSetMixture(n_groups=2, n_starts=1).fit(made.crowd)
    crowd = made.crowd
    task = 5
    votes = np.flatnonzero(crowd.task == task)
    marked = np.zeros((crowd.n_votes, 3), dtype=bool)
    marked[crowd.mark, crowd.label] = True
    weights = {}
    for code in range(8):
        applies = np.array([(code >> label) & 1 for label in range(3)], dtype=bool)
        for group in range(2):
            prior = (
                fitted.group_prior_[group]
                * np.where(applies, fitted.group_labels_[group], 1 - fitted.group_labels_[group]).prod()
            )
            for vote in votes:
                rate = np.where(
                    applies, fitted.hit_rate_[crowd.worker[vote]], fitted.false_alarm_rate_[crowd.worker[vote]]
                )
                prior *= np.where(marked[vote], rate, 1 - rate).prod()
            weights[code, group] = prior
    total = sum(weights.values())
    expected = [sum(w for (code, _), w in weights.items() if (code >> label) & 1) / total for label in range(3)]
    assert np.allclose(fitted.label_probs_[task], expected)
    chosen = fitted.label_probs_[task] >= fitted.threshold_
    code = sum(1 << label for label in range(3) if chosen[label])
    assert fitted.tasks_["confidence"].iloc[task] == pytest.approx((weights[code, 0] + weights[code, 1]) / total)


@pytest.mark.slow
def test_held_out_votes_prefer_the_true_number_of_groups() -> None:
    made = simulate(4, 0)
    visible, heldout = made.crowd.hide(0.2)
    assert isinstance(visible, LabelSetCrowd)
    losses = {n: LabelSetMixture(n_groups=n, n_starts=1).fit(visible).heldout_log_loss(heldout) for n in (1, 4)}
    assert losses[4] < losses[1] - 0.05


def test_options_are_checked() -> None:
    with pytest.raises(UsageError, match="n_groups must be 1 or more, or 'auto'; got 0"):
        LabelSetMixture(n_groups=0).fit(simulate(1, 0).crowd)
