"""Spectral starts for EM."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wisecrowd import Crowd, DawidSkene, MajorityVote, OneCoin, load_dataset
from wisecrowd.aggregate.categorical._spectral_initialization import (
    _decompose_tensor,
    _estimate_group,
    estimate_spectral_confusion,
    estimate_spectral_skills,
    infer_spectral_posterior,
)
from wisecrowd.base.citations import get_entry
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate.metrics import accuracy
from wisecrowd.simulate import simulate_crowd


def test_power_iteration_takes_an_orthogonal_tensor_apart() -> None:
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    value = np.array([3.0, 2.0, 1.5, 1.0])
    tensor = np.einsum("k,ak,bk,ck->abc", value, basis, basis, basis)
    found, vector = _decompose_tensor(tensor, rng)
    order = np.argsort(-found)
    np.testing.assert_allclose(found[order], value)
    np.testing.assert_allclose(vector[:, order], basis, atol=1e-9)


def test_exact_moments_give_the_exact_mixture() -> None:
    # Every combination of answers once, as often as it is probable: no sampling error is left.
    rng = np.random.default_rng(1)
    prior = np.array([0.5, 0.3, 0.2])
    groups = [0.6 * np.eye(3) + 0.4 * rng.dirichlet(np.ones(3), size=3) for _ in range(3)]  # (true, said)
    answers = np.stack(np.meshgrid(*[np.arange(3)] * 3, indexing="ij")).reshape(3, -1)
    weight = sum(prior[k] * np.prod([g[k, a] for g, a in zip(groups, answers, strict=True)], axis=0) for k in range(3))
    times = np.round(weight * 200_000).astype(int)
    views = [np.repeat(np.eye(3)[a], times, axis=0) for a in answers]
    part = _estimate_group(*views, rng)
    np.testing.assert_allclose(part.label_probs, groups[2].T, atol=2e-3)
    np.testing.assert_allclose(part.prior, prior, atol=2e-3)


def test_confusion_and_prior_are_found_ever_better() -> None:
    errors = []
    for tasks in (500, 4000, 30_000):
        made = simulate_crowd(
            tasks, 9, 3, votes_per_task=9, workers={"noisy": 9}, prior=[0.5, 0.3, 0.2], random_state=2
        )
        prior, label_probs = estimate_spectral_confusion(made.crowd)
        pairs = made.crowd.pairs
        wanted = made.confusion[pairs.worker, :, pairs.label]
        errors.append(max(np.abs(label_probs - wanted).mean(), np.abs(prior - [0.5, 0.3, 0.2]).mean()))
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.02


def test_skills_are_found_ever_better_also_of_adversaries_and_in_sparse_crowds() -> None:
    errors = []
    for tasks in (1000, 8000, 60_000):
        workers = {"noisy(0.6, 0.95)": 9, "adversary(0.7)": 3}
        made = simulate_crowd(tasks, 12, 2, votes_per_task=4, workers=workers, random_state=3)
        errors.append(np.abs(estimate_spectral_skills(made.crowd) - (2 * made.accuracy.to_numpy() - 1)).mean())
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.03


def test_em_from_the_moments_ends_where_em_from_the_truth_does() -> None:
    made = simulate_crowd(2000, 20, 3, votes_per_task=8, random_state=4)
    best = DawidSkene().fit(made.crowd, start=np.eye(3)[made.truth_codes])
    found = DawidSkene().fit(made.crowd, start=infer_spectral_posterior(made.crowd))
    assert (found.labels_ == best.labels_).mean() > 0.995
    assert accuracy(made.truth, found) > 0.95


def test_it_sees_through_a_majority_that_votes_at_random() -> None:
    made = simulate_crowd(4000, 40, 2, votes_per_task=10, workers={"expert": 4, "spammer": 36}, random_state=5)
    assert accuracy(made.truth, MajorityVote().fit(made.crowd)) < 0.7
    start = infer_spectral_posterior(made.crowd, model="one-coin")
    assert accuracy(made.truth, OneCoin().fit(made.crowd, start=start)) > 0.75


def test_gold_turns_one_coin_signs_around() -> None:
    made = simulate_crowd(500, 9, 2, votes_per_task=9, workers={"noisy(0.8)": 4, "adversary(0.8)": 5}, random_state=6)
    gold = np.where(np.arange(500) < 50, made.truth_codes, -1).astype(np.int32)
    blind, taught = (infer_spectral_posterior(made.crowd, model="one-coin", gold=known) for known in (None, gold))
    assert (blind.argmax(axis=1) == made.truth_codes).mean() < 0.2
    assert (taught.argmax(axis=1) == made.truth_codes).mean() > 0.8
    assert (taught[:50].max(axis=1) == 1).all()


def test_posteriors_are_distributions_also_with_unused_classes_and_unlabelled_tasks() -> None:
    crowd = simulate_crowd(300, 12, 2, votes_per_task=6, random_state=7).crowd
    wider = Crowd.from_codes(crowd.task, crowd.worker, crowd.label + 1, tasks=[*crowd.tasks, "nobody"], workers=crowd.workers,
                  classes=["unused", *crowd.classes])  # fmt: skip
    for model in ("confusion", "one-coin"):
        start = infer_spectral_posterior(wider, model=model)
        assert start.shape == (301, 3)
        assert np.isfinite(start).all()
        np.testing.assert_allclose(start.sum(axis=1), 1)
    assert (infer_spectral_posterior(wider)[:300, 0] < 1e-6).all()


def test_the_seed_decides() -> None:
    crowd = simulate_crowd(300, 12, 2, votes_per_task=6, random_state=8).crowd
    np.testing.assert_array_equal(infer_spectral_posterior(crowd, 1), infer_spectral_posterior(crowd, 1))
    assert not np.array_equal(infer_spectral_posterior(crowd, 1), infer_spectral_posterior(crowd, 2))


def test_a_crowd_without_three_groups_is_refused_with_advice() -> None:
    crowd = Crowd.from_triples([(task, worker, task % 2) for task in range(100) for worker in range(2)])
    with pytest.raises(InputError, match="crowd has 0; use init='votes'"):
        infer_spectral_posterior(crowd)
    with pytest.raises(UsageError, match="one-coin"):
        infer_spectral_posterior(crowd, model="one_coin")
    assert np.isfinite(infer_spectral_posterior(crowd, model="one-coin")).all()


def test_the_paper_is_in_the_bibliography() -> None:
    from wisecrowd.aggregate.categorical._spectral_initialization import REFERENCE

    assert "Spectral Methods Meet" in get_entry(REFERENCE)


# Where majority vote is a good start, moments must lead EM to the same place.
@pytest.mark.data
@pytest.mark.parametrize("name", ["rte", "d_possent", "sentiment_polarity", "product_matching", "face_sentiment"])
def test_em_from_the_moments_is_as_good_on_real_crowds(name: str, data_folder: Path) -> None:
    data = load_dataset(data_folder / name, duplicates="distinct")
    for method, model in ((DawidSkene(), "confusion"), (OneCoin(), "one-coin")):
        usual = accuracy(data.truth, method.fit(data.crowd))
        found = accuracy(data.truth, method.fit(data.crowd, start=infer_spectral_posterior(data.crowd, model=model)))
        assert found == pytest.approx(usual, abs=0.005), model


@pytest.mark.parametrize("method", [DawidSkene, OneCoin])
def test_the_family_starts_from_it(method: type[DawidSkene] | type[OneCoin]) -> None:
    made = simulate_crowd(n_tasks=600, n_workers=15, n_classes=3, votes_per_task=10, random_state=1)
    votes, spectral = method().fit(made.crowd), method(init="spectral").fit(made.crowd)
    assert (votes.labels_ == spectral.labels_).mean() > 0.98, "both starts lead to the same optimum on a dense crowd"
    assert spectral.trace_[0] != votes.trace_[0]
    with pytest.raises(UsageError, match="init must be one of"):
        method(init="spectrum").fit(made.crowd)  # type: ignore[arg-type]
