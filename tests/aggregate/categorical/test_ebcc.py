from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.special import digamma, gammaln

from wisecrowd import EBCC, IBCC, Crowd, load_dataset, simulate_crowd
from wisecrowd.aggregate.categorical import _subtype_engine
from wisecrowd.em.initialization import compute_vote_shares
from wisecrowd.errors import UsageError
from wisecrowd.evaluate.metrics import accuracy


def log_beta(votes: np.ndarray) -> float:
    return float((gammaln(votes).sum(axis=-1) - gammaln(votes.sum(axis=-1))).sum())


def test_with_one_subtype_it_is_ibcc() -> None:
    crowd = simulate_crowd(100, 10, 3, votes_per_task=4, random_state=0).crowd
    single, plain = EBCC(n_subtypes=1, n_init=1, class_votes=1.0).fit(crowd), IBCC().fit(crowd)
    np.testing.assert_allclose(single.posterior_, plain.posterior_, atol=1e-9)
    np.testing.assert_allclose(single.trace_, plain.trace_, atol=1e-6)
    np.testing.assert_allclose(single.confusion_, plain.confusion_, atol=1e-9)


def test_it_is_the_plain_iteration_on_dense_tables() -> None:
    """The authors' updates on workers x classes x subtypes x labels, and the bound by its definition."""
    crowd = simulate_crowd(30, 6, 2, votes_per_task=4, random_state=1).crowd
    n, k, m = crowd.n_tasks, 2, 3
    method = EBCC(n_subtypes=m, n_init=1, max_iter=5, tol=0, accelerate=False)
    fitted = method.fit(crowd)
    shares = compute_vote_shares(crowd)
    alpha, within, before = shares.sum(axis=0), 0.1 / m, 1 + 3 * np.eye(2)
    joint = method._split_randomly(shares, np.random.default_rng(0)).reshape(n, k, m)  # the same draw as in the fit
    bounds = []
    for _ in range(6):
        tasks = joint.sum(axis=0)
        votes = np.zeros((crowd.n_workers, k, m, 2)) + before[:, None, :]
        np.add.at(votes.transpose(0, 3, 1, 2), (crowd.worker, crowd.label), joint[crowd.task])
        log_pi = digamma(within + tasks) - digamma((within + tasks).sum(axis=1, keepdims=True))
        log_tau = digamma(alpha + tasks.sum(axis=1)) - digamma((alpha + tasks.sum(axis=1)).sum())
        log_v = digamma(votes) - digamma(votes.sum(axis=3, keepdims=True))
        logs = np.tile(log_tau[:, None] + log_pi, (n, 1, 1))
        np.add.at(logs, crowd.task, log_v.transpose(0, 3, 1, 2)[crowd.worker, crowd.label])
        joint = np.exp(logs - logs.max(axis=(1, 2), keepdims=True))
        joint /= joint.sum(axis=(1, 2), keepdims=True)
        # E log p(y, z, g | θ) + E log p(θ) + entropy of everything
        bound = (joint * logs).sum() - (joint * np.log(joint)).sum()
        for belief, prior, mean in ((within + tasks, np.full((k, m), within), log_pi),
                                    (alpha + tasks.sum(axis=1), alpha, log_tau),
                                    (votes, np.broadcast_to(before[:, None, :], votes.shape), log_v)):  # fmt: skip
            bound += ((prior - belief) * mean).sum() + log_beta(belief) - log_beta(prior)
        bounds.append(bound)
    np.testing.assert_allclose(fitted.trace_, bounds[:5], atol=1e-7)
    np.testing.assert_allclose(fitted.posterior_, joint.sum(axis=2), atol=1e-9)


@pytest.mark.parametrize("options", [{}, {"prior": "uniform"}, {"prior": [1, 2, 1]}, {"concentration": 3.0}])
def test_the_bound_never_falls(options: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wisecrowd.em.loop.assert_monotone", True)
    for seed in range(2):
        crowd = simulate_crowd(60, 12, 3, votes_per_task=5, random_state=seed).crowd
        for accelerate in (True, False):
            EBCC(n_init=3, accelerate=accelerate, max_iter=3000, **options).fit(crowd)  # type: ignore[arg-type]


def test_leaving_out_empty_subtypes_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = simulate_crowd(80, 10, 2, votes_per_task=5, random_state=3).crowd
    sparing = EBCC(n_init=3).fit(crowd)
    assert (~sparing.subtype_tally_.any(axis=0)).sum() > 5, "most subtypes are empty in the end"
    monkeypatch.setattr(_subtype_engine, "MIN_COLUMN_WEIGHT", 0.0)
    np.testing.assert_allclose(EBCC(n_init=3).fit(crowd).posterior_, sparing.posterior_, atol=1e-6)


@pytest.mark.slow
def test_the_compiled_kernels_give_the_same_answer() -> None:
    crowd = simulate_crowd(2000, 20, 2, votes_per_task=5, random_state=4).crowd
    work = 20 * 10 * crowd.n_votes * 2  # what n_init=20 looks like; few passes keep the test short
    options = {"max_iter": 6, "tol": 0, "accelerate": False}
    one, many = EBCC(n_init=1, **options), EBCC(n_init=20, **options)
    assert work >= 2_000_000
    assert many._make_engine(crowd, None).compiled
    first = many.fit(crowd).restarts_["objective"][0]
    assert one.fit(crowd).trace_[-1] == pytest.approx(first, rel=1e-9)


def correlated(seed: int, n_tasks: int) -> tuple[Crowd, np.ndarray]:
    """On two tasks of five only three experts know better than a coin; on the others everybody knows."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n_tasks)
    hard, expert = rng.random(n_tasks) < 0.4, np.arange(15) < 3
    right = np.where(hard[:, None], np.where(expert, 0.9, 0.5), 0.99)
    label = np.where(rng.random((n_tasks, 15)) < right, truth[:, None], 1 - truth[:, None])
    task, worker = np.nonzero(rng.random(label.shape) < 0.7)
    crowd = Crowd.from_codes(
        task, worker, label[task, worker], tasks=range(n_tasks), workers=range(15), classes=range(2)
    )
    return crowd, truth


@pytest.mark.slow
def test_it_sees_through_errors_that_workers_make_together() -> None:
    crowd, truth = correlated(0, 600)
    alone = accuracy(truth, IBCC().fit(crowd).posterior_)
    together = accuracy(truth, EBCC(n_init=10).fit(crowd).posterior_)
    assert together > alone + 0.05
    few, few_truth = correlated(0, 60)
    assert together > accuracy(few_truth, EBCC(n_init=10).fit(few).posterior_), "the better the more tasks"


def test_gold_and_new_votes() -> None:
    crowd, truth = correlated(1, 200)
    gold = {task: int(1 - truth[task]) for task in range(3)}
    fitted = EBCC(n_init=3).fit(crowd, truth=gold)
    assert all(fitted.proba_.loc[task, label] == 1 for task, label in gold.items())
    plain = EBCC(n_init=3).fit(crowd)
    np.testing.assert_allclose(plain.predict_proba(crowd), plain.posterior_, atol=1e-6)
    parts = EBCC(n_init=3).partial_fit(crowd[:150]).partial_fit(crowd[150:])
    assert (parts.labels_ == plain.labels_).mean() > 0.9
    carried = EBCC(n_init=3).fit(crowd[150:], start=EBCC(n_init=3).fit(crowd[:150]))
    assert len(carried.restarts_) == 3


def test_a_single_precision_start_is_kept() -> None:
    crowd = simulate_crowd(50, 8, 2, votes_per_task=4, random_state=5).crowd
    method = EBCC(n_init=1)
    engine = method._make_engine(crowd, None)
    method.classes_ = crowd.classes
    start = next(method._initialize(engine, None, np.float32))
    assert start.tally.dtype == np.float32
    assert start.tally.sum() == pytest.approx(crowd.n_votes, rel=1e-5)
    assert start.class_counts.sum() == pytest.approx(50, rel=1e-5)


@pytest.mark.parametrize("wrong", [{"n_subtypes": 0}, {"concentration": 0.0}, {"smoothing": 0.0}, {"class_votes": 0.0}])
def test_zeros_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=r"must be (positive|1 or more)"):
        EBCC(**wrong).fit(Crowd.from_triples([("t", "w", "a")]))  # type: ignore[arg-type]


#: The authors' notebook: best bound of forty starts, as they print it, and its accuracy; and which draw finds it here.
#: Elsewhere other draws end above the published bound, with other accuracies: the docstring has some.
PUBLISHED = {
    "zencrowd_in": (-8246.29, 0.7809, 0), "bluebirds": (-3134.56, 0.8611, 1), "dog": (-27934.8, 0.8401, 0),
    "rte": (-9075.35, 0.93125, 0),
}  # fmt: skip


@pytest.mark.data
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_bounds_and_accuracies(name: str, data_folder: Path) -> None:
    data = load_dataset(data_folder / name, duplicates="distinct")
    printed, wanted, seed = PUBLISHED[name]
    fitted = EBCC(random_state=seed).fit(data.crowd)
    # They leave out the normalising constants of the priors.
    crowd, row = data.crowd, np.ones(data.crowd.n_classes)
    row[0] = 4
    constants = crowd.n_workers * crowd.n_classes * 10 * log_beta(row) + crowd.n_classes * log_beta(np.full(10, 0.01))
    constants += log_beta(compute_vote_shares(crowd).sum(axis=0))
    assert fitted.trace_[-1] == pytest.approx(printed - constants, abs=0.3)
    assert accuracy(data.truth, fitted) == pytest.approx(wanted, abs=0.003)


def test_the_best_bound_of_all_starts_is_kept() -> None:
    fitted = EBCC(n_init=4).fit(simulate_crowd(60, 10, 3, votes_per_task=4, random_state=1).crowd)
    assert len(fitted.restarts_) == 4
    assert fitted.trace_[-1] == pytest.approx(fitted.restarts_["objective"].max())
