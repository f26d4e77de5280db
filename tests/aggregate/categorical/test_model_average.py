from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd, DawidSkene, MajorityVote, ModelAverage, load, simulate_crowd
from wisecrowd.aggregate.categorical.model_average import correct_class_shares, estimate_competence_probs
from wisecrowd.data.pairs import Pairs
from wisecrowd.em.live import FitSnapshot, LiveModel
from wisecrowd.evaluate.leave_one_out import leave_one_out_posterior
from wisecrowd.evaluate.metrics import accuracy


def _infer(prior: np.ndarray, label_probs: np.ndarray, crowd: Crowd) -> np.ndarray:
    """Return ρ_k Π_r π_r[k, y_ir] by a loop over the votes."""
    posterior = np.tile(prior, (crowd.n_tasks, 1))
    for task, pair in zip(crowd.task, crowd.pairs.vote_pairs, strict=True):
        posterior[task] *= label_probs[pair]
    return posterior / posterior.sum(axis=1, keepdims=True)


def test_the_posterior_is_the_mean_of_three_models_at_a_fixed_point() -> None:
    crowd = simulate_crowd(80, 9, 3, votes_per_task=4, random_state=0).crowd
    fitted = ModelAverage(tol=1e-12, max_iter=2000).fit(crowd)
    n_workers, n_classes, pairs = crowd.n_workers, 3, crowd.pairs
    counts = np.zeros((n_workers, n_classes, n_classes))  # [worker, true, given]
    for task, worker, label in zip(crowd.task, crowd.worker_codes, crowd.label, strict=True):
        counts[worker, :, label] += fitted.posterior_[task]
    confusion = (counts + 0.1 + np.eye(3)) / (counts.sum(axis=2, keepdims=True) + 1.3)
    right = np.diagonal(confusion, axis1=1, axis2=2)
    class_accuracy = np.where(np.eye(3, dtype=bool), right[:, :, None], (1 - right[:, :, None]) / 2)
    competence = np.stack([_fit_competence(worker_counts) for worker_counts in counts])
    shares = MajorityVote().fit(crowd).posterior_.mean(axis=0)
    damped = np.sqrt(shares) / np.sqrt(shares).sum()
    priors = np.full(3, 1 / 3), damped, damped
    members = [
        _infer(prior, matrix[pairs.worker, :, pairs.label], crowd)
        for prior, matrix in zip(priors, (competence, confusion, class_accuracy), strict=True)
    ]
    np.testing.assert_allclose(fitted.posterior_, np.mean(members, axis=0), atol=1e-4)
    np.testing.assert_allclose(fitted.confusion_, confusion, atol=1e-4)
    np.testing.assert_allclose(fitted.prior_, np.mean(priors, axis=0), atol=1e-12)


def _fit_competence(counts: np.ndarray) -> np.ndarray:
    """Return θ [k = l] + (1 − θ) ξ[l] of a worker with these counts [true, given], in ten iterations."""
    knows, habit, given = 0.5, np.full(3, 1 / 3), counts.sum(axis=0)
    for _ in range(10):
        informed = np.diagonal(counts) * knows / (knows + (1 - knows) * habit)
        knows = (informed.sum() + 1) / (counts.sum() + 2)
        habit = (given - informed + 0.1) / ((given - informed).sum() + 0.3)
    return knows * np.eye(3) + (1 - knows) * habit


def test_competence_is_told_from_habit() -> None:
    """A worker who always says the first label has no competence, though half of the labels are right."""
    pairs = Pairs(np.array([0, 1, 1]), np.array([0, 0, 1]), np.empty(0, dtype=np.int32), 2)
    tally = np.array([[50.0, 50.0], [48.0, 2.0], [2.0, 48.0]])
    spammer, *expert = estimate_competence_probs(tally, pairs, smoothing=0.1)
    assert spammer[0] - spammer[1] < 0.15
    assert expert[0][0] > 0.9 > 0.1 > expert[1][0]


@pytest.mark.parametrize("votes_per_task", [1, 2])
def test_sparse_votes_are_followed_where_dawid_and_skenes_model_collapses(votes_per_task: int) -> None:
    made = simulate_crowd(400, 60, 8, votes_per_task=votes_per_task, workers=["noisy(0.7)"] * 60, random_state=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no warning about sparse votes
        average = accuracy(made.truth, ModelAverage().fit(made.crowd))
    assert average > accuracy(made.truth, MajorityVote().fit(made.crowd)) - 0.01


def test_adversaries_and_biased_workers_are_understood() -> None:
    made = simulate_crowd(400, 14, 3, votes_per_task=6, workers=["expert"] * 8 + ["adversary"] * 6, random_state=1)
    fitted = ModelAverage().fit(made.crowd)
    assert accuracy(made.truth, fitted) > accuracy(made.truth, MajorityVote().fit(made.crowd)) + 0.1
    assert fitted.workers_["accuracy"].iloc[:8].min() > 0.8 > 0.4 > fitted.workers_["accuracy"].iloc[8:].max()


def test_a_rare_class_is_not_taken_for_as_frequent_as_its_votes() -> None:
    """Of 10 % positive tasks and votes that are right in 75 %, 30 % of the votes are positive."""
    shares, accuracy_of_votes, n_pairs = np.array([0.7, 0.3]), 0.75, 1e7
    n_disagreements = 2 * accuracy_of_votes * (1 - accuracy_of_votes) * n_pairs
    np.testing.assert_allclose(correct_class_shares(shares, n_pairs, n_disagreements), [0.9, 0.1], atol=1e-3)


def test_shares_are_kept_if_votes_disagree_as_at_random() -> None:
    shares = np.array([0.6, 0.4])
    np.testing.assert_array_equal(correct_class_shares(shares, 1e9, 0.5e9), shares)


def test_votes_alone_never_exclude_one_of_two_classes() -> None:
    assert correct_class_shares(np.array([1.0, 0.0]), 0.0, 0.0).min() == pytest.approx(0.02)


def test_the_accuracy_of_votes_follows_from_their_disagreement() -> None:
    """The class prior moves toward the truth with the number of votes, on simulated crowds with a rare class."""
    rng = np.random.default_rng(0)
    truth = (rng.random(4000) < 0.15).astype(int)
    task = np.repeat(np.arange(4000), 4)
    label = np.where(rng.random(len(task)) < 0.7, truth[task], 1 - truth[task])
    crowd = Crowd.from_codes(
        task, np.tile(np.arange(4), 4000), label, tasks=range(4000), workers=range(4), classes=range(2)
    )
    fitted = ModelAverage().fit(crowd)
    assert fitted.e_step_prior_[-1] == pytest.approx(0.15, abs=0.05)
    assert fitted.e_step_prior_[-1] < crowd.label.mean() - 0.08


@pytest.mark.parametrize("prior", ["uniform", [0.2, 0.3, 0.5], {0: 2, 1: 3, 2: 5}])
def test_a_given_prior_is_that_of_all_members(prior: Any) -> None:
    crowd = simulate_crowd(40, 6, 3, votes_per_task=3, random_state=0).crowd
    weights = [1 / 3] * 3 if prior == "uniform" else [0.2, 0.3, 0.5]
    names = dict(zip(crowd.classes, prior.values(), strict=True)) if isinstance(prior, dict) else prior  # type: ignore[arg-type]
    fitted = ModelAverage(prior=names).fit(crowd)
    np.testing.assert_allclose(fitted.e_step_prior_, np.tile(weights, 3))
    np.testing.assert_allclose(fitted.prior_, weights)


def test_predictions_for_the_same_votes_are_those_of_the_fit() -> None:
    crowd = simulate_crowd(100, 10, 3, votes_per_task=4, random_state=2).crowd
    fitted = ModelAverage(tol=1e-12, max_iter=2000).fit(crowd)
    np.testing.assert_allclose(fitted.predict_proba(crowd).to_numpy(), fitted.posterior_, atol=1e-6)
    some = fitted.predict_proba(crowd[:7])
    np.testing.assert_allclose(some.to_numpy(), fitted.posterior_[:7], atol=1e-6)


def test_partial_fits_and_convergence_give_the_fit_to_all_votes() -> None:
    made = simulate_crowd(200, 12, 3, votes_per_task=5, random_state=4)
    crowd, whole = made.crowd, ModelAverage(tol=1e-10).fit(made.crowd)
    first = np.arange(crowd.n_votes) % 5 < 3
    method = ModelAverage(tol=1e-10).partial_fit(crowd.take(np.flatnonzero(first)))
    method.partial_fit(crowd.take(np.flatnonzero(~first)))
    assert (method.labels_ == whole.labels_).mean() >= 0.9
    np.testing.assert_allclose(method.e_step_prior_, whole.e_step_prior_)
    np.testing.assert_allclose(method.converge().posterior_, whole.posterior_, atol=1e-3)


def test_gold_teaches_all_members_about_workers() -> None:
    made = simulate_crowd(300, 12, 3, votes_per_task=3, workers=["adversary"] * 8 + ["expert"] * 4, random_state=5)
    gold = made.truth.iloc[:60]
    rest = made.truth.iloc[60:]
    with_gold = ModelAverage().fit(made.crowd, truth=gold)
    assert (with_gold.labels_.loc[gold.index] == gold).all()
    assert accuracy(rest, with_gold) > accuracy(rest, ModelAverage().fit(made.crowd)) + 0.2


def test_a_saved_model_infers_new_tasks(tmp_path: Any) -> None:
    made = simulate_crowd(120, 8, 3, votes_per_task=4, random_state=6)
    fitted = ModelAverage().fit(made.crowd[:100])
    fitted.save(tmp_path / "model")
    new = made.crowd[100:]
    pd.testing.assert_frame_equal(load(tmp_path / "model").predict_proba(new), fitted.predict_proba(new))


def test_a_live_model_equals_partial_fit() -> None:
    made = simulate_crowd(60, 6, 3, votes_per_task=4, random_state=7)
    crowd = Crowd.from_codes(
        made.crowd.task, made.crowd.worker_codes, made.crowd.label, tasks=range(60), workers=range(6), classes=range(3)
    )
    fitted = ModelAverage().fit(crowd)
    live = LiveModel(ModelAverage(), n_classes=3)
    live.load_snapshot(FitSnapshot.from_fit(fitted, crowd))
    fitted.restart_from(crowd, fitted.posterior_)
    live.update_votes({60: {0: 1, 2: 1}})
    new = Crowd.from_codes([0, 0], [0, 2], [1, 1], tasks=[60], workers=range(6), classes=range(3))
    np.testing.assert_allclose(live.posterior[60], fitted.predict_proba(new).to_numpy()[0], atol=1e-9)
    assert live.confusion_of(0).sum(axis=1) == pytest.approx(np.ones(3))


def test_a_live_model_answers_from_the_first_vote() -> None:
    live = LiveModel(ModelAverage(), n_classes=2)
    live.update_votes({0: {0: 1}})
    assert live.posterior[0].argmax() == 1
    live.update_votes({1: {0: 2, 1: 2}})  # a new class
    assert live.posterior[1].argmax() == 2
    np.testing.assert_allclose(live.posterior.sum(axis=1), 1)


def test_votes_are_left_out_of_every_member() -> None:
    """Without its only vote, a task has the mean of the priors; without one of two, the belief of the other."""
    crowd = simulate_crowd(60, 6, 3, votes_per_task=2, random_state=8).crowd
    fitted = ModelAverage().fit(crowd)
    peers = leave_one_out_posterior(fitted, crowd)
    row = 5
    others = np.flatnonzero(crowd.task == crowd.task[row])
    expected = fitted.predict_proba(crowd.take(others[others != row])[[int(crowd.task[row])]])
    np.testing.assert_allclose(peers[row], expected.to_numpy()[0], atol=1e-9)


def test_many_votes_on_a_task_can_be_left_out_together() -> None:
    """A posterior that rounds to one still tells what the remaining votes say."""
    workers = range(30)
    crowd = Crowd.from_codes(
        np.repeat(np.arange(40), 30), np.tile(workers, 40), np.repeat(np.arange(40) % 2, 30),
        tasks=range(40), workers=workers, classes=range(2),
    )  # fmt: skip
    fitted = ModelAverage().fit(crowd)
    assert (fitted.posterior_.max(axis=1) == 1).all()
    first = np.flatnonzero(crowd.task == 0)
    removed = [(first[:1], first[[other]]) for other in range(1, 30)]
    alone = leave_one_out_posterior(fitted, crowd, removed)[first[0]]
    np.testing.assert_allclose(alone, fitted.prior_, atol=1e-6)


def test_gold_stays_certain_when_a_vote_is_left_out() -> None:
    crowd = simulate_crowd(40, 6, 3, votes_per_task=3, random_state=9).crowd
    fitted = ModelAverage().fit(crowd, truth={crowd.tasks[0]: crowd.classes[2]})  # type: ignore[index]  # has classes
    peers = leave_one_out_posterior(fitted, crowd)
    np.testing.assert_allclose(peers[crowd.task == 0][:, 2], 1)


@pytest.mark.data
def test_labelme_does_not_collapse(dataset: Any) -> None:
    """With 1.1 votes per task, Dawid and Skene's model is right on less than a third of the tasks."""
    data = dataset("labelme")
    rows = np.random.default_rng(0).permutation(data.crowd.n_votes)[: data.crowd.n_votes // 10]
    part = data.crowd.take(np.sort(rows))
    part = part[np.flatnonzero(part.votes_per_task > 0)]
    votes = accuracy(data.truth, MajorityVote().fit(part))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collapsed = accuracy(data.truth, DawidSkene().fit(part))
    assert collapsed < 0.5 < votes - 0.02 < accuracy(data.truth, ModelAverage().fit(part))
