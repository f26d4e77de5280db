from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import Crowd, DawidSkene, simulate_crowd
from wisecrowd.em import label_support
from wisecrowd.em.label_support import SupportModel, VoteModel, calibrate_class_probs, mix_with_votes, sum_posterior


@pytest.fixture
def crowd() -> Crowd:
    return simulate_crowd(n_tasks=120, n_workers=9, n_classes=3, votes_per_task=4, random_state=1).crowd


def test_a_vote_is_not_judged_by_its_own_task(crowd: Crowd) -> None:
    """The log-odds of a task equal those of a model whose tally was computed without the task."""
    posterior = DawidSkene().fit(crowd).posterior_
    counts, tally = sum_posterior(crowd, posterior)
    model = VoteModel.from_sums(counts, tally, crowd.pairs)
    task = 5
    without = posterior.copy()
    without[task] = 0.0
    rest = sum_posterior(crowd, without)[1]
    rows = slice(crowd.offset[task], crowd.offset[task + 1])
    confusion, strength = model.crowd_prior
    pairs = crowd.pairs
    log_probs = np.log(model.class_prior)
    for pair in pairs.vote_pairs[rows]:
        worker, label = pairs.worker[pair], pairs.label[pair]
        total = rest[pairs.worker == worker].sum(axis=0)
        log_probs = log_probs + np.log((rest[pair] + strength * confusion[:, label]) / (total + strength))
    expected = np.exp(log_probs - log_probs.max())
    np.testing.assert_allclose(model.infer(crowd, posterior)[task], expected / expected.sum(), rtol=1e-9)


def test_blocks_do_not_change_the_support(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    posterior = DawidSkene().fit(crowd).posterior_
    model, inferred = SupportModel.fit(crowd, posterior)
    whole = model.second.measure(crowd, inferred, posterior.argmax(axis=1))
    monkeypatch.setattr(label_support, "BLOCK_CELLS", 30)
    split_model, split_inferred = SupportModel.fit(crowd, posterior)
    parts = split_model.second.measure(crowd, split_inferred, posterior.argmax(axis=1))
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


def test_votes_of_good_workers_count_more() -> None:
    made = simulate_crowd(n_tasks=300, workers=["expert"] * 3 + ["spammer"] * 3, votes_per_task=6, random_state=0)
    model, _ = SupportModel.fit(made.crowd, made.crowd.vote_counts / 6)
    weight = model.second.vote_weight
    assert weight[:3].min() > 5 * weight[3:].max()


def test_disagreement_lowers_agreement_and_log_odds() -> None:
    votes = [(task, worker, task % 2) for task in range(30) for worker in "abcd"]
    votes += [("odd", worker, label) for worker, label in zip("abcd", (0, 0, 0, 1), strict=True)]
    crowd = Crowd.from_triples([(str(task), worker, label) for task, worker, label in votes])
    model, inferred = SupportModel.fit(crowd, crowd.vote_counts / 4)
    support = model.second.measure(crowd, inferred, crowd.vote_counts.argmax(axis=1))
    odd = crowd.tasks.get_loc("odd")
    others = np.delete(np.arange(crowd.n_tasks), odd)
    assert support.log_odds[odd] < support.log_odds[others].min()
    assert support.agreement[odd] < support.agreement[others].min()


def test_gold_enters_the_models_as_it_is(crowd: Crowd) -> None:
    gold = np.full(crowd.n_tasks, -1)
    gold[:3] = [0, 1, 2]
    mixed = mix_with_votes(crowd, DawidSkene().fit(crowd).posterior_, gold)
    np.testing.assert_array_equal(mixed[:3], np.eye(3))
    _, inferred = SupportModel.fit(crowd, mixed, gold)
    np.testing.assert_array_equal(inferred[:3], np.eye(3))


def test_crowds_without_workers_or_comparable_votes() -> None:
    single = Crowd.from_triples([(task, "ann", task % 2) for task in range(6)])
    for crowd in (single, simulate_crowd(n_tasks=20, random_state=0).crowd.drop_workers()):
        posterior = crowd.vote_counts / crowd.vote_counts.sum(axis=1, keepdims=True)
        model, inferred = SupportModel.fit(crowd, posterior)
        support = model.second.measure(crowd, inferred, posterior.argmax(axis=1))
        assert np.isfinite(support.log_odds).all()
        assert np.isfinite(support.agreement).all()


def test_new_workers_and_classes_get_typical_parameters(crowd: Crowd) -> None:
    model = SupportModel.fit(crowd, DawidSkene().fit(crowd).posterior_)[0].second
    grown = model.add_workers(crowd.n_workers + 2).add_classes(4)
    assert grown.vote_weight[-1] == pytest.approx(np.median(model.vote_weight))
    assert grown.total.shape == (crowd.n_workers + 2, 4)
    assert grown.class_prior.sum() == pytest.approx(1.0)
    assert model.add_workers(1) is model
    assert model.add_classes(3) is model


def test_calibrated_class_probabilities_have_the_confidence_and_keep_the_order() -> None:
    rng = np.random.default_rng(0)
    log_probs = np.log(rng.dirichlet(np.full(4, 0.3), size=50))
    label = log_probs.argmax(axis=1)
    confidence = rng.uniform(0.3, 0.99, size=50)
    table = calibrate_class_probs(log_probs, label, confidence)
    np.testing.assert_allclose(table.sum(axis=1), 1.0)
    np.testing.assert_allclose(table[np.arange(50), label], confidence, rtol=1e-6)
    np.testing.assert_array_equal(np.argsort(table, axis=1)[:, :3], np.argsort(log_probs, axis=1)[:, :3])


def test_calibrating_raises_a_label_that_is_not_the_most_probable_class() -> None:
    table = calibrate_class_probs(np.log([[0.2, 0.7, 0.1]]), np.array([0]), np.array([0.6]))
    assert table[0, 0] == pytest.approx(0.6)
    np.testing.assert_array_equal(
        calibrate_class_probs(np.zeros((2, 1)), np.zeros(2, int), np.ones(2)), np.ones((2, 1))
    )
