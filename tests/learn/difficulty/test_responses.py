"""Answers to tasks of known easiness: probabilities, slopes, and abilities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wisecrowd.data.crowd import Crowd
from wisecrowd.learn.difficulty._responses import (
    MAX_ABILITY,
    AbilityPrior,
    Responses,
    compute_confusion,
    compute_easiness,
    compute_easiness_gradient,
)
from wisecrowd.simulate import difficulty


def some_crowd(seed: int, n_classes: int = 3, n_tasks: int = 60, n_workers: int = 5) -> Crowd:
    rng = np.random.default_rng(seed)
    accuracy = rng.uniform(0.3, 0.95, size=(n_workers, n_classes))
    truth, easiness = rng.integers(n_classes, size=n_tasks), rng.random(n_tasks)
    return difficulty.simulate_by_difficulty(truth, easiness, accuracy, votes_per_task=3, random_state=seed)


def free(crowd: Crowd, precision: float = 0.0) -> AbilityPrior:
    return AbilityPrior(np.zeros((crowd.n_workers, crowd.n_classes)), np.full(crowd.n_workers, precision))


@given(st.integers(2, 6), st.integers(0, 1000))
def test_easiness_runs_from_uniform_to_certain(n_classes: int, seed: int) -> None:
    belief = np.random.default_rng(seed).dirichlet(np.ones(n_classes), size=8)
    assert ((compute_easiness(belief) >= 0) & (compute_easiness(belief) <= 1 + 1e-12)).all()
    assert compute_easiness(np.full(n_classes, 1 / n_classes)) == pytest.approx(0)
    assert compute_easiness(np.eye(n_classes)) == pytest.approx(np.ones(n_classes))
    np.testing.assert_allclose(compute_easiness(belief), difficulty.compute_easiness(belief))


def test_with_two_classes_easiness_is_the_square_of_the_paper() -> None:
    p = np.linspace(0, 1, 11)
    np.testing.assert_allclose(compute_easiness(np.stack([1 - p, p], axis=1)), 4 * (p - 0.5) ** 2)


def test_slope_of_easiness_by_differences() -> None:
    eta = np.random.default_rng(0).normal(size=(1, 4))

    def at(logits: np.ndarray) -> float:
        share = np.exp(logits) / np.exp(logits).sum()
        return float(compute_easiness(share)[0])

    share = np.exp(eta) / np.exp(eta).sum()
    for j in range(4):
        step = np.zeros((1, 4))
        step[0, j] = 1e-6
        assert compute_easiness_gradient(share)[0, j] == pytest.approx(
            (at(eta + step) - at(eta - step)) / 2e-6, abs=1e-8
        )


@given(st.integers(2, 5), st.floats(0, 1), st.integers(0, 1000))
def test_what_a_worker_says_is_a_distribution(n_classes: int, easiness: float, seed: int) -> None:
    ability = np.random.default_rng(seed).uniform(0, 5, size=(4, n_classes))
    said = compute_confusion(ability, easiness)
    np.testing.assert_allclose(said.sum(axis=2), 1)
    if easiness == 0:
        np.testing.assert_allclose(said, 1 / n_classes)
    # The same probabilities as those that the E-step multiplies: a crowd of one vote of each kind.
    votes = [(f"t{label}", "w", label) for label in range(n_classes)]
    crowd = Crowd.from_triples(votes, classes=list(range(n_classes)))
    evidence = Responses(crowd).vote_log_probs(ability[:1], np.full(n_classes, easiness))
    np.testing.assert_allclose(np.exp(evidence), said[0].T, atol=1e-12)


def test_with_two_classes_the_evidence_is_that_of_the_paper() -> None:
    crowd, rng = some_crowd(1, n_classes=2), np.random.default_rng(1)
    p, lam = rng.random(crowd.n_tasks), rng.uniform(0, 20, size=(crowd.n_workers, 2))
    wanted = np.zeros((crowd.n_tasks, 2))
    for task, worker, label in zip(crowd.task, crowd.worker, crowd.label, strict=True):  # eqs. 1-3, vote by vote
        for k in (0, 1):
            right = 1 / (1 + np.exp(-lam[worker, k] * (p[task] - 0.5) ** 2))
            wanted[task, k] += np.log(right if label == k else 1 - right)
    found = Responses(crowd).vote_log_probs(lam / 4, compute_easiness(np.stack([1 - p, p], axis=1)))
    np.testing.assert_allclose(found, wanted, atol=1e-10)


def test_slope_of_the_expected_evidence_by_differences() -> None:
    crowd, rng = some_crowd(2), np.random.default_rng(2)
    responses, posterior = Responses(crowd), rng.dirichlet(np.ones(3), size=crowd.n_tasks)
    ability, easiness = rng.uniform(0, 4, size=(crowd.n_workers, 3)), rng.random(crowd.n_tasks)
    value, slope = responses.expected_log_likelihood(posterior, ability, easiness)
    assert value == pytest.approx(float((posterior * responses.vote_log_probs(ability, easiness)).sum()))
    for task in (0, 7, 31):
        step = np.zeros(crowd.n_tasks)
        step[task] = 1e-6
        up, down = (
            responses.expected_log_likelihood(posterior, ability, easiness + sign * step)[0] for sign in (1, -1)
        )
        assert slope[task] == pytest.approx((up - down) / 2e-6, abs=1e-6)


@pytest.mark.parametrize("precision", [0.0, 2.0])
@pytest.mark.parametrize("least", [0.0, -MAX_ABILITY])
def test_newton_finds_what_a_grid_search_finds(precision: float, least: float) -> None:
    crowd, rng = some_crowd(3), np.random.default_rng(3)
    posterior, easiness = rng.dirichlet(np.ones(3), size=crowd.n_tasks), rng.random(crowd.n_tasks)
    responses, anchor = Responses(crowd), free(crowd, precision)
    found = responses.fit_abilities(posterior, easiness, np.ones((crowd.n_workers, 3)), anchor, min_ability=least)
    grid = np.linspace(max(least, -12), 12, 4801)
    for worker in range(crowd.n_workers):
        mine = np.flatnonzero(crowd.worker == worker)
        q, s = posterior[crowd.task[mine]], easiness[crowd.task[mine]]
        for k in range(3):
            right = 1 / (1 + 2 * np.exp(-grid[:, None] * s))  # (grid, votes)
            chance = np.where(crowd.label[mine] == k, np.log(right), np.log((1 - right) / 2))
            value = chance @ q[:, k] - precision / 2 * grid**2
            assert found[worker, k] == pytest.approx(grid[value.argmax()], abs=0.005)


def test_abilities_have_bounds() -> None:
    crowd = Crowd.from_triples([("t1", "good", "a"), ("t2", "good", "b"), ("t1", "bad", "b"), ("t2", "bad", "a")])
    truth, easiness = np.eye(2), np.ones(2)
    for start in (0.0, 1.0, MAX_ABILITY):
        found = Responses(crowd).fit_abilities(truth, easiness, np.full((2, 2), start), free(crowd))
        assert crowd.workers is not None
        good, bad = crowd.workers.get_indexer(["good", "bad"])
        np.testing.assert_array_equal(found[good], MAX_ABILITY)
        np.testing.assert_array_equal(found[bad], 0)
    both_ways = Responses(crowd).fit_abilities(truth, easiness, np.zeros((2, 2)), free(crowd), min_ability=-MAX_ABILITY)
    np.testing.assert_array_equal(both_ways[bad], -MAX_ABILITY)


def test_a_worker_at_chance_has_no_ability_and_one_without_votes_keeps_the_anchor() -> None:
    votes = [(task, "coin", label) for task, label in zip("abcd", [0, 1, 0, 1], strict=True)]
    crowd = Crowd.from_triples(votes, workers=["coin", "nobody"])
    truth = np.eye(2)[[0, 0, 1, 1]]
    anchor = AbilityPrior(np.full((2, 2), 1.5), np.array([0.0, 1.0]))
    found = Responses(crowd).fit_abilities(truth, np.ones(4), np.full((2, 2), 3.0), anchor)
    np.testing.assert_allclose(found, [[0, 0], [1.5, 1.5]], atol=1e-8)


def test_where_nothing_is_known_abilities_stay() -> None:
    crowd = some_crowd(4)
    posterior = np.full((crowd.n_tasks, 3), 1 / 3)
    start = np.full((crowd.n_workers, 3), 0.7)
    found = Responses(crowd).fit_abilities(posterior, np.zeros(crowd.n_tasks), start, free(crowd))
    np.testing.assert_array_equal(found, start)


def test_a_double_weight_is_a_repeated_vote() -> None:
    triples = [("t1", "w", "a"), ("t2", "w", "b"), ("t2", "v", "a")]
    doubled = Crowd.from_codes(
        [0, 1, 1], [0, 0, 1], [0, 1, 0], tasks=["t1", "t2"], workers=["w", "v"], classes=["a", "b"], weight=[2, 2, 2]
    )
    repeated = Crowd.from_triples(triples * 2, workers=["w", "v"], duplicates="keep")
    rng = np.random.default_rng(5)
    posterior, ability, easiness = rng.dirichlet(np.ones(2), size=2), rng.uniform(0, 3, size=(2, 2)), rng.random(2)
    for name in ("vote_log_probs", "expected_log_likelihood"):
        first = () if name == "vote_log_probs" else (posterior,)
        one, two = (getattr(Responses(crowd), name)(*first, ability, easiness) for crowd in (doubled, repeated))
        for mine, theirs in zip(one, two, strict=True):
            np.testing.assert_allclose(mine, theirs)
