"""Sums over marks against loops over all assignments and labels."""

from __future__ import annotations

import numpy as np

from wisecrowd.aggregate.multilabel._mark_model import MarkModel, MarkPrior, MarkProbs
from wisecrowd.simulate.label_sets import simulate_label_sets

CROWD = simulate_label_sets(n_tasks=8, n_workers=4, n_labels=3, votes_per_task=2, random_state=0).crowd
RNG = np.random.default_rng(0)
PROBS = MarkProbs(RNG.uniform(0.2, 0.9, (4, 3)), RNG.uniform(0.05, 0.5, (4, 3)))


def marks() -> np.ndarray:
    table = np.zeros((CROWD.n_votes, CROWD.n_labels), dtype=bool)
    table[CROWD.mark, CROWD.label] = True
    return table


def log_probs(rates: np.ndarray) -> np.ndarray:
    rate = rates[CROWD.worker]
    return np.where(marks(), np.log(rate), np.log1p(-rate))


def test_evidence_and_base_are_those_of_a_loop() -> None:
    model = MarkModel(CROWD)
    expected = np.zeros((CROWD.n_tasks, CROWD.n_labels))
    np.add.at(expected, CROWD.task, log_probs(PROBS.hit) - log_probs(PROBS.false_alarm))
    assert np.allclose(model.evidence(PROBS), expected)
    assert np.isclose(model.base_log_likelihood(PROBS), log_probs(PROBS.false_alarm).sum())


def test_counts_are_those_of_a_loop() -> None:
    label_probs = RNG.random((CROWD.n_tasks, CROWD.n_labels))
    counts = MarkModel(CROWD).count(label_probs)
    expected = np.zeros((4, CROWD.n_workers, CROWD.n_labels))
    for vote in range(CROWD.n_votes):
        applies, is_marked = label_probs[CROWD.task[vote]], marks()[vote]
        worker = CROWD.worker[vote]
        expected[0, worker] += applies * is_marked
        expected[1, worker] += (1 - applies) * is_marked
        expected[2, worker] += applies
        expected[3, worker] += 1 - applies
    assert np.allclose(np.stack(counts), expected)


def test_the_m_step_maximises_likelihood_plus_prior() -> None:
    counts = MarkModel(CROWD).count(RNG.random((CROWD.n_tasks, CROWD.n_labels)))
    prior = MarkPrior.estimate(counts, 3.0)

    def value(probs: MarkProbs) -> float:
        likelihood = (counts.hits * np.log(probs.hit) + (counts.n_true - counts.hits) * np.log1p(-probs.hit)).sum()
        misses = counts.n_false - counts.false_alarms
        likelihood += (counts.false_alarms * np.log(probs.false_alarm) + misses * np.log1p(-probs.false_alarm)).sum()
        return float(likelihood) + prior.log_density(probs)

    best = prior.maximize(counts)
    for factor in (0.98, 1.02):
        assert value(MarkProbs(np.clip(best.hit * factor, 0, 0.999), best.false_alarm)) < value(best)
        assert value(MarkProbs(best.hit, best.false_alarm * factor)) < value(best)
