"""Two models of workers, and the evidence of votes without the vote itself."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import Crowd, ModelAverage
from wisecrowd.em.initialization import compute_vote_shares
from wisecrowd.em.priors import estimate_crowd_prior, shrink_to_crowd
from wisecrowd.learn._worker_average import WorkerAverage, count_votes, start_worker_average
from wisecrowd.simulate import Simulation


@pytest.fixture(scope="module")
def started(made: Simulation) -> tuple[WorkerAverage, np.ndarray]:
    return start_worker_average(made.crowd, None, 0.1, 1.0, None)


def test_it_starts_from_the_shares_of_votes_and_the_priors_of_the_default_aggregator(
    made: Simulation, started: tuple[WorkerAverage, np.ndarray]
) -> None:
    workers, posterior = started
    np.testing.assert_array_equal(posterior, compute_vote_shares(made.crowd))
    np.testing.assert_allclose(np.exp(workers.log_priors).ravel(), ModelAverage().fit(made.crowd).e_step_prior_[:6])


def test_a_worker_is_judged_without_the_vote(made: Simulation, started: tuple[WorkerAverage, np.ndarray]) -> None:
    workers, posterior = started
    crowd = made.crowd
    tally = count_votes(crowd, posterior)
    evidence = workers.weigh_votes(tally, posterior)
    prior = estimate_crowd_prior(tally, crowd.pairs)
    vote = 7
    without = tally.copy()
    without[crowd.pairs.vote_pairs[vote]] -= posterior[crowd.task[vote]]
    expected = shrink_to_crowd(without, crowd.pairs, *prior)[crowd.pairs.vote_pairs[vote]]
    np.testing.assert_allclose(np.exp(evidence.by_vote[1][vote]), expected)
    assert evidence.strength == prior.strength


def test_evidence_of_a_task_is_the_sum_over_its_votes(
    made: Simulation, started: tuple[WorkerAverage, np.ndarray]
) -> None:
    workers, posterior = started
    evidence = workers.weigh_votes(count_votes(made.crowd, posterior), posterior)
    for by_vote, by_task in zip(evidence.by_vote, evidence.by_task, strict=True):
        np.testing.assert_allclose(by_task[3], by_vote[made.crowd.task == 3].sum(axis=0))


def test_gold_is_certain_evidence_and_no_held_out_vote(made: Simulation) -> None:
    gold = np.full(made.crowd.n_tasks, -1, dtype=np.int32)
    gold[0] = 2
    workers, posterior = start_worker_average(made.crowd, gold, 0.1, 1.0, None)
    evidence = workers.weigh_votes(count_votes(made.crowd, posterior), posterior)
    inferred, _ = workers.infer(evidence, 0.0, 1.0)
    assert inferred[0].tolist() == [0, 0, 1]
    all_gold = WorkerAverage(made.crowd, np.zeros_like(gold), workers.log_priors, 0.1, 1.0, None)
    assert all_gold.predict_votes(evidence, 0.0, 1.0) == (0.0, 0.0)


def test_true_scores_predict_held_out_votes_better(made: Simulation, started: tuple[WorkerAverage, np.ndarray]) -> None:
    workers, posterior = started
    evidence = workers.weigh_votes(count_votes(made.crowd, posterior), posterior)
    scores = 3.0 * np.eye(3)[made.crowd.classes.get_indexer(made.truth)]
    with_scores, without = (workers.predict_votes(evidence, part, 1.0) for part in (scores, 0.0))
    assert with_scores.log_likelihood > without.log_likelihood
    assert with_scores.accuracy > without.accuracy


def test_one_vote_per_task_is_predicted_by_the_prior_whatever_the_discount() -> None:
    crowd = Crowd.from_triples([(task, task % 3, "ab"[task % 2]) for task in range(12)])
    workers, posterior = start_worker_average(crowd, None, 0.1, 1.0, None)
    evidence = workers.weigh_votes(count_votes(crowd, posterior), posterior)
    first, second = (workers.predict_votes(evidence, 0.0, discount).log_likelihood for discount in (1.0, 0.8))
    assert first == pytest.approx(second)
