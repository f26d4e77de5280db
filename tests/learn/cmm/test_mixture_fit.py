"""EM steps of both mixtures, against sums over every responsibility, truth and grouping."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from wisecrowd import CMM, Crowd
from wisecrowd.classifiers.logistic import Logistic
from wisecrowd.classifiers.soft_classifier import SoftClassifier
from wisecrowd.learn.cmm._confusion_mixture import ConfusionMixture, cluster_points
from wisecrowd.learn.cmm._vote_mixture import VoteMixture
from wisecrowd.learn.cmm._worker_mixture import WorkerMixture
from wisecrowd.simulate import GroupedSimulation, simulate_gaussian_groups

Array = NDArray[np.float64]


@dataclass
class Fixed(SoftClassifier):
    """A classifier that never learns, so that only the groups do."""

    exact: ClassVar[bool] = True
    answers: Any = None

    def fit(self, X: Array, targets: Array, weight: Array | None = None) -> Fixed:
        return self

    def predict_proba(self, X: Array) -> Array:
        return np.asarray(self.answers)[X[:, 0].astype(int)]

    def clone_unfitted(self) -> Fixed:
        return Fixed(self.answers)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> Fixed:
        return self


def crowd_of(votes: Array) -> Crowd:
    """A crowd without ids that has these counts."""
    task, label = np.nonzero(votes)
    return Crowd.from_codes(task, None, label, tasks=range(len(votes)), workers=None, classes=range(votes.shape[1]),
                 weight=votes[task, label], duplicates="keep")  # fmt: skip


def random_votes(seed: int, n_tasks: int = 60, n_classes: int = 3) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_tasks, 2))
    votes = rng.multinomial(rng.integers(1, 5, size=n_tasks), rng.dirichlet(np.ones(n_classes), n_tasks))
    return X, votes.astype(np.float64)


def tensor_step(f: Array, votes: Array, alpha: Array, beta: Array) -> tuple[Array, Array, Array]:
    """Equations 4 to 7 as they are written: (α, β, targets of the classifier), without smoothing."""
    q = np.einsum("mkj,ik,m->ijmk", beta, f, alpha)
    q /= q.sum(axis=(2, 3), keepdims=True)
    weighed = votes[:, :, None, None] * q
    new_alpha = weighed.sum(axis=(0, 1, 3)) / votes.sum()
    counts = weighed.sum(axis=0).transpose(1, 2, 0)  # (groups, true, said)
    return new_alpha, counts / counts.sum(axis=2, keepdims=True), weighed.sum(axis=(1, 2))


@pytest.fixture(scope="module")
def gaussian() -> GroupedSimulation:
    return simulate_gaussian_groups(n_workers=60, n_tasks=900, random_state=3)


@given(seed=st.integers(0, 10_000), n_groups=st.integers(1, 4), n_classes=st.integers(2, 4))
def test_a_pass_by_the_small_table_equals_the_pass_over_all_responsibilities(
    seed: int, n_groups: int, n_classes: int
) -> None:
    _, votes = random_votes(seed, 25, n_classes)
    rng = np.random.default_rng(seed)
    f = rng.dirichlet(np.ones(n_classes), 25)
    counts = rng.gamma(1.0, size=(n_groups, n_classes, n_classes)) + 0.01
    mixture = VoteMixture(np.arange(25.0)[:, None], votes, None, n_groups, smoothing=0.0)
    reached = mixture.step(mixture.start(0)._replace(tally=counts), Fixed(f))
    groups = reached.mixture
    alpha, beta, targets = tensor_step(f, votes, groups.weight, groups.confusion)
    following = ConfusionMixture.estimate(reached.statistics.tally.sum(axis=(1, 2)), reached.statistics.tally, 0.0)
    np.testing.assert_allclose(following.weight, alpha, atol=1e-12)
    np.testing.assert_allclose(following.confusion, beta, atol=1e-12)
    np.testing.assert_allclose(reached.statistics.class_counts, targets, atol=1e-12)
    # The likelihood sees the groups only through their sum.
    split = np.einsum("mkj,ik,m->ij", groups.confusion, f, groups.weight)
    assert reached.objective == pytest.approx((votes * np.log(split)).sum(), abs=1e-10)
    assert reached.objective == pytest.approx((votes * np.log(f @ groups.pooled)).sum(), abs=1e-10)


def test_start_equals_the_sums_over_responsibilities() -> None:
    _, votes = random_votes(5)
    mixture = VoteMixture(np.zeros((60, 1)), votes, None, 3, random_state=1)
    for attempt in (0, 1):
        start = mixture.start(attempt)
        assert start.class_counts.sum() == pytest.approx(votes.sum())
        np.testing.assert_allclose(start.class_counts.sum(axis=1), votes.sum(axis=1))
        np.testing.assert_allclose(start.tally.sum(axis=(0, 1)), votes.sum(axis=0))
        np.testing.assert_allclose(start.tally.sum(axis=(0, 2)), start.class_counts.sum(axis=0))
    share = votes / votes.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(mixture.start(0).class_counts, share * votes.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(mixture.start(0).tally.sum(axis=0), share.T @ votes)


def test_groups_do_not_change_the_limit_when_the_classifier_stands_still() -> None:
    _, votes = random_votes(7, 200)
    rng = np.random.default_rng(0)
    f = rng.dirichlet(np.ones(3) * 0.3, 200)
    limits = []
    for n_groups in (1, 2, 5):
        model = CMM(n_groups=n_groups, classifier=Fixed(f), smoothing=0.0, n_init=2, tol=1e-14, max_iter=20_000)
        model.fit(np.arange(200.0)[:, None], crowd_of(votes))
        assert (np.diff(model.trace_) >= -1e-9).all()
        limits.append(model.trace_[-1])
    assert limits[1:] == pytest.approx([limits[0]] * 2, abs=1e-6)


def test_one_group_equals_em_with_a_single_noise_matrix(gaussian: GroupedSimulation) -> None:
    assert gaussian.features is not None
    X, votes = gaussian.features.to_numpy(), gaussian.crowd.vote_counts
    mass = votes.sum(axis=1)
    f, targets, said = Logistic(), votes, (votes / mass[:, None]).T @ votes
    for _ in range(150):
        f.fit(X, targets / mass[:, None], mass)
        noise = (said + 1) / (said + 1).sum(axis=1, keepdims=True)
        joint = f.predict_proba(X)[:, :, None] * noise  # P(z, y | x)
        belief = joint / joint.sum(axis=1, keepdims=True)
        targets = np.einsum("ij,ikj->ik", votes, belief)
        said = np.einsum("ij,ikj->kj", votes, belief)
    model = CMM(n_groups=1, tol=1e-9).fit(X, crowd_of(votes))
    np.testing.assert_allclose(model.crowd_confusion_, noise, atol=1e-3)
    np.testing.assert_allclose(model.predict_proba(X), f.predict_proba(X), atol=5e-3)


@pytest.mark.parametrize("tied", ["no", "worker"])
@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_the_objective_never_falls(gaussian: GroupedSimulation, tied: Any, smoothing: float) -> None:
    model = CMM(tied=tied, smoothing=smoothing, n_init=2, tol=1e-6).fit(gaussian.features, gaussian.crowd)
    assert (np.diff(model.trace_) >= -1e-8 * np.abs(model.trace_[1:])).all()
    assert len(model.restarts_) == 2


def test_a_task_counts_as_often_as_it_has_votes() -> None:
    X, votes = random_votes(2, 80)
    three = np.eye(3)[votes.argmax(axis=1)] * 2 + np.eye(3)[np.arange(80) % 3]
    for counts, equal in ((three, True), (votes, False)):
        mass = counts.sum(axis=1)
        target = counts / mass[:, None]
        plain = Logistic(l2=1.0 / mass.mean()).fit(X, target).predict_proba(X)
        weighted = Logistic().fit(X, target, mass).predict_proba(X)
        assert np.allclose(plain, weighted, atol=1e-4) == equal
    repeated = np.repeat(np.arange(80), votes.sum(axis=1).astype(int))
    target = votes / votes.sum(axis=1, keepdims=True)
    again = Logistic(standardiser=_standardiser(X)).fit(X[repeated], target[repeated]).predict_proba(X)
    np.testing.assert_allclose(Logistic().fit(X, target, votes.sum(axis=1)).predict_proba(X), again, atol=1e-4)


def _standardiser(X: Array) -> Any:
    from wisecrowd.classifiers.standardiser import Standardiser

    return Standardiser().fit(X)


def test_clustering_keeps_empty_groups_empty() -> None:
    group = cluster_points(np.zeros((4, 2)), np.ones(4), np.array([0, 0, 0, 0]), 3)
    assert group.tolist() == [0, 0, 0, 0]


def test_the_bound_lies_below_the_likelihood_and_reaches_it_with_one_group() -> None:
    crowd = Crowd.from_triples([(0, "a", 0), (0, "b", 1), (1, "a", 1), (1, "b", 1), (2, "a", 0)], classes=[0, 1])
    f = np.array([[0.6, 0.4], [0.3, 0.7], [0.8, 0.2]])
    rng = np.random.default_rng(0)
    for n_groups in (1, 2):
        first = rng.dirichlet(np.ones(2), 3)
        mixture = WorkerMixture(np.arange(3.0)[:, None], crowd, None, first, n_groups, smoothing=0.5)
        start = mixture.start(0)._replace(tally=rng.dirichlet(np.ones(n_groups), 2))
        reached = mixture.step(start, Fixed(f))
        bound = reached.objective - reached.mixture.log_prior(0.5)
        exact = _log_likelihood(f, reached.mixture, crowd)
        assert bound <= exact + 1e-12
        if n_groups == 1:
            assert bound == pytest.approx(exact, abs=1e-12)


def _log_likelihood(f: Array, groups: ConfusionMixture, crowd: Crowd) -> float:
    """By summing over every truth and every grouping."""
    assert crowd.worker is not None
    total = 0.0
    for z in product(range(crowd.n_classes), repeat=crowd.n_tasks):
        for g in product(range(len(groups.weight)), repeat=crowd.n_workers):
            value = np.prod([f[i, k] for i, k in enumerate(z)]) * np.prod(groups.weight[list(g)])
            for task, worker, label in zip(crowd.task, crowd.worker, crowd.label, strict=True):
                value *= groups.confusion[g[worker], z[task], label]
            total += float(value)
    return float(np.log(total))
