"""Votes one after the other: the same as partial fits, whatever changes, and as a fit to all of them once one is taken over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.em.live import LIVE_METHODS, FitConfidence, FitSnapshot, LiveModel
from wisecrowd.errors import UsageError
from wisecrowd.evaluate.confidence import compute_calibrated_posterior, estimate_confidence

K = 3


@pytest.fixture(scope="module")
def votes() -> list[tuple[int, int, int]]:
    crowd = wc.simulate_crowd(n_tasks=120, n_workers=15, n_classes=K, votes_per_task=4, random_state=3).crowd
    order = np.random.default_rng(1).permutation(crowd.n_votes)
    return list(zip(crowd.task[order].tolist(), crowd.worker[order].tolist(), crowd.label[order].tolist(), strict=True))


def crowd_of(votes: Any, n_tasks: int = 120, n_workers: int = 15) -> wc.Crowd:
    task, worker, label = zip(*votes, strict=True)
    return wc.Crowd.from_codes(task, worker, label, tasks=range(n_tasks), workers=range(n_workers), classes=range(K))


def standing(live: LiveModel, new: Any) -> dict[int, dict[int, int]]:
    """All votes that stand on the tasks that somebody voted on just now."""
    found: dict[int, dict[int, int]] = {}
    for task, worker, label in new:
        found.setdefault(task, dict(live.votes_on(task)))[worker] = label
    return found


def test_the_methods_of_the_message_can_be_updated() -> None:
    with pytest.raises(UsageError, match=f"mace cannot be updated vote by vote.*; use {LIVE_METHODS}"):
        LiveModel(wc.find("mace")())
    for name in LIVE_METHODS.replace(" or ", ", ").split(", "):
        LiveModel(wc.find(name)())


@pytest.mark.parametrize("name", ["dawid-skene", "ibcc", "lfc", "one-coin"])
def test_it_equals_partial_fits(votes: Any, name: str) -> None:
    first = crowd_of(votes[:200])
    method = wc.find(name)().partial_fit(first)
    method.restart_from(first, method.posterior_)  # the tally that goes with the posterior
    live = LiveModel(wc.find(name)(), n_classes=K)
    live.load_snapshot(FitSnapshot.from_fit(method, first))
    for start in range(200, len(votes), 40):
        new = votes[start : start + 40]
        method.partial_fit(wc.Crowd.from_triples(new, classes=range(K)))
        live.update_votes(standing(live, new))
        theirs = method.posterior_[method.task_index_.get_indexer(range(120))]
        np.testing.assert_allclose(live.posterior, theirs, rtol=0, atol=1e-9)
    assert live.n_votes == len(votes)
    n_votes, accuracy = live.estimate_worker_accuracy()
    np.testing.assert_allclose(n_votes, method.workers_["n_votes"], atol=1e-6)
    np.testing.assert_allclose(accuracy, method.workers_["accuracy"], atol=1e-9)


def test_what_is_taken_back_leaves_no_trace(votes: Any) -> None:
    batch = crowd_of(votes)
    known = FitSnapshot.from_fit(wc.DawidSkene().fit(batch), batch)
    live = LiveModel(wc.DawidSkene(), n_classes=K)
    live.load_snapshot(known)
    n_votes, accuracy = live.estimate_worker_accuracy()
    before = {task: dict(live.votes_on(task)) for task in (3, 5)}
    live.update_votes({3: {**before[3], 99: 2}, 5: {}})
    assert live.n_votes == len(votes) + 1 - len(before[5])
    assert live.votes_per_task[5] == 0
    live.update_votes(before)
    assert live.n_votes == len(votes)
    again = live.estimate_worker_accuracy()
    np.testing.assert_allclose(again[0][:15], n_votes, atol=1e-9)
    np.testing.assert_allclose(again[0][99], 0, atol=1e-9)
    # Posteriors of the two tasks are one step of EM further; nothing else moved.
    np.testing.assert_allclose(again[1][:15], accuracy, atol=0.02)
    others = np.setdiff1d(np.arange(120), [3, 5])
    np.testing.assert_array_equal(live.posterior[others], known.posterior[others])


def test_a_fit_that_was_made_meanwhile_is_taken_over(votes: Any) -> None:
    live = LiveModel(wc.DawidSkene(), n_classes=K)
    live.update_votes(standing(live, votes[:300]))
    batch = crowd_of(votes[:300])
    fitted = wc.DawidSkene().fit(batch)
    late = standing(live, votes[300:340])
    live.update_votes(late)
    live.load_snapshot(FitSnapshot.from_fit(fitted, batch), later_votes=late)
    untouched = np.setdiff1d(np.arange(120), list(late))
    np.testing.assert_array_equal(live.posterior[untouched], fitted.posterior_[untouched])
    assert live.n_votes == 340
    fresh = LiveModel(wc.DawidSkene(), n_classes=K)
    fresh.load_snapshot(FitSnapshot.from_fit(fitted, batch))
    fresh.update_votes(late)
    np.testing.assert_allclose(live.posterior, fresh.posterior, atol=1e-12)


def test_gold_is_kept_and_teaches(votes: Any) -> None:
    live = LiveModel(wc.DawidSkene(), n_classes=K)
    live.update_votes(standing(live, votes))
    worker, label = next(iter(live.votes_on(0).items()))
    before = live.estimate_worker_accuracy()[1][worker]
    live.set_gold({0: label})
    assert live.posterior[0, label] == 1
    right = live.estimate_worker_accuracy()[1][worker]
    live.set_gold({0: (label + 1) % K})
    assert live.estimate_worker_accuracy()[1][worker] < right
    live.set_gold({0: None})
    assert live.gold == {}
    np.testing.assert_allclose(live.estimate_worker_accuracy()[1][worker], before, atol=0.02)


def test_classes_may_come_later() -> None:
    live = LiveModel(wc.DawidSkene(), n_classes=1)
    live.update_votes({0: {0: 0, 1: 0}})
    live.update_votes({1: {0: 4, 1: 4, 2: 4}})
    assert live.n_classes == 5
    assert live.posterior.argmax(axis=1).tolist() == [0, 4]
    np.testing.assert_allclose(live.posterior.sum(axis=1), 1)


def fit_with_confidence(crowd: wc.Crowd, gold: Any = None) -> tuple[FitSnapshot, Any]:
    """A snapshot of the default method with the confidence that `aggregate` writes."""
    fitted = wc.ModelAverage().fit(crowd, truth=gold)
    estimate = estimate_confidence(fitted, crowd, truth=gold)
    assert estimate.counted_votes is not None
    confidence = FitConfidence(
        calibrated_posterior=compute_calibrated_posterior(estimate, fitted, crowd), confidence=estimate.confidence,
        score=estimate.score, counted_votes=estimate.counted_votes, calibration=estimate.calibration,
    )  # fmt: skip
    return FitSnapshot.from_fit(fitted, crowd, confidence), estimate


@pytest.mark.parametrize("gold", [None, {3: 1, 60: 0, 61: 2}])
def test_confidence_of_votes_in_the_fit_is_that_of_the_fit(votes: Any, gold: Any) -> None:
    snapshot, estimate = fit_with_confidence(crowd_of(votes), gold)
    live = LiveModel(wc.ModelAverage(), n_classes=K)
    if gold:
        live.set_gold(gold)
    live.load_snapshot(snapshot)
    assert live.confidence is not None
    assert live.score is not None
    np.testing.assert_array_equal(live.confidence, estimate.confidence)
    live.update_votes({task: live.votes_on(task) for task in range(120)})  # the same votes again, inferred here
    labels = live.posterior.argmax(axis=1)
    same_label = labels == estimate.label
    assert same_label.mean() > 0.9
    np.testing.assert_allclose(live.confidence[same_label], estimate.confidence[same_label], atol=1e-5)
    np.testing.assert_allclose(live.score[same_label], estimate.score[same_label], atol=1e-4)
    calibrated = live.calibrated_posterior
    np.testing.assert_allclose(calibrated.sum(axis=1), 1)
    np.testing.assert_allclose(calibrated[np.arange(120), labels], np.maximum(live.confidence, 1 / K))


def test_confidence_of_later_votes_is_near_that_of_a_fit(votes: Any) -> None:
    snapshot, _ = fit_with_confidence(crowd_of(votes[:400]))
    live = LiveModel(wc.ModelAverage(), n_classes=K)
    live.load_snapshot(snapshot)
    assert live.confidence is not None
    before = live.confidence.copy()
    live.update_votes(standing(live, votes[400:]))
    _, estimate = fit_with_confidence(crowd_of(votes))
    same_label = live.posterior.argmax(axis=1) == estimate.label
    changed = np.isin(np.arange(120), [task for task, _, _ in votes[400:]]) & same_label
    gap = np.abs(live.confidence - estimate.confidence)
    assert gap[changed].mean() < 0.04
    assert gap[changed].mean() < 0.5 * np.abs(before - estimate.confidence)[changed].mean()


def test_confidence_of_strangers_new_classes_and_tasks(votes: Any) -> None:
    snapshot, _ = fit_with_confidence(crowd_of(votes))
    live = LiveModel(wc.ModelAverage(), n_classes=K)
    live.load_snapshot(snapshot)
    live.update_votes({0: {1000: 2, 1001: 2}, 130: {1000: 4, 3: 4}, 131: {}})
    assert live.calibrated_posterior.shape == (132, 5)
    assert live.calibrated_posterior[[0, 130]].argmax(axis=1).tolist() == [2, 4]
    assert live.confidence is not None
    assert live.confidence.shape == (132,)
    assert live.confidence[131] == live.posterior[131].max()
    np.testing.assert_allclose(live.calibrated_posterior.sum(axis=1), 1)
    live.set_gold({0: 1})
    assert live.confidence[0] == live.calibrated_posterior[0, 1] == 1
    stranger = live.confusion_of(2000)
    assert stranger.shape == (5, 5)
    np.testing.assert_allclose(stranger.sum(axis=1), 1)
    assert stranger[:3].argmax(axis=1).tolist() == [0, 1, 2]


def test_methods_that_tie_workers_are_refused() -> None:
    with pytest.raises(UsageError, match="use model-average, dawid-skene, ibcc"):
        LiveModel(wc.find("ds-worker-clusters")())
    with pytest.raises(UsageError, match="prior must be 'estimate' or 'uniform'"):
        LiveModel(wc.DawidSkene(prior=[0.5, 0.5]))


def test_another_method_can_take_over(votes: Any) -> None:
    batch = crowd_of(votes[:300])
    live = LiveModel(wc.OneCoin(), n_classes=K)
    live.set_gold({3: 2})
    live.load_snapshot(FitSnapshot.from_fit(wc.DawidSkene().fit(batch), batch))
    assert live.method.name == "dawid-skene"
    method = wc.DawidSkene().partial_fit(batch)
    method.restart_from(batch, method.posterior_)
    new = [vote for vote in votes[300:] if vote[0] != 3]  # whose truth is known here
    live.update_votes(standing(live, new))
    method.partial_fit(wc.Crowd.from_triples(new, classes=range(K)))
    theirs = method.posterior_[method.task_index_.get_indexer(range(120))]
    np.testing.assert_allclose(live.posterior, theirs, rtol=0, atol=1e-9)
    assert live.gold == {3: 2}


def test_tables_of_a_fit_are_not_held_twice() -> None:
    source = wc.simulate_crowd(n_tasks=30, n_workers=6, n_classes=3, votes_per_task=3, random_state=0).crowd
    snapshot = FitSnapshot.from_fit(wc.DawidSkene().fit(source), source)
    model = LiveModel(wc.DawidSkene())
    model.load_snapshot(snapshot)
    assert model.posterior.shape == (30, 3)
    assert model.snapshot.posterior.shape == model.snapshot.tally.shape == (0, 3)
    assert model.confidence is None
    assert model.calibrated_posterior.base is model.posterior.base
    model.add_classes(5)
    model.add_tasks(40)
    assert model.calibrated_posterior.shape == model.posterior.shape == (40, 5)
    np.testing.assert_allclose(model.posterior.sum(axis=1), 1)


def test_classes_that_arrive_one_by_one_equal_classes_that_are_known() -> None:
    votes = {task: {worker: (task * 7 + worker) % 40 for worker in range(task % 3 + 1)} for task in range(60)}
    growing, prepared = LiveModel(wc.OneCoin()), LiveModel(wc.OneCoin())
    for n, (task, labels) in enumerate(votes.items()):
        growing.update_votes({task: labels})
        prepared.add_classes(growing.n_classes)
        prepared.update_votes({task: labels})
        assert n != 5 or growing.n_classes < 40
    np.testing.assert_array_equal(growing.posterior, prepared.posterior)
    assert growing.posterior.shape == (60, 40)
