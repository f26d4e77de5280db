"""CATD, for classes and for numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2

from wisecrowd import CATD, Crowd, Mean, Median, WeightedMean, load_dataset
from wisecrowd.errors import UsageError
from wisecrowd.evaluate.metrics import accuracy, mae, rmse, worker_correlation
from wisecrowd.simulate import simulate_crowd


def sparse(n_tasks: int, n_workers: int, per_task: int, seed: int) -> tuple[Crowd, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth, scale = rng.normal(size=n_tasks), rng.uniform(0.5, 2, n_workers)
    worker = np.argsort(rng.random((n_tasks, n_workers)), axis=1)[:, :per_task].ravel()
    task = np.repeat(np.arange(n_tasks), per_task)
    label = truth[task] + scale[worker] * rng.normal(size=len(task))
    return (
        Crowd.from_codes(task, worker, label, tasks=range(n_tasks), workers=range(n_workers), classes=None),
        truth,
        scale,
    )


def test_weights_are_chi_square_quantiles_over_losses() -> None:
    crowd, _, _ = sparse(200, 30, 6, 0)
    fitted = CATD(tol=1e-12, max_iter=5000).fit(crowd)
    loss = np.bincount(crowd.worker, (crowd.label - fitted.estimates_[crowd.task]) ** 2)
    first = crowd.label - Median().fit(crowd).estimates_[crowd.task]
    weight = chi2.ppf(0.025, crowd.votes_per_worker) / (loss + 1e-9 * (first**2).mean())
    np.testing.assert_allclose(fitted.weight_, weight / weight.sum(), rtol=1e-6)


def test_few_labels_mean_little_weight() -> None:
    cast = np.array([3.0, 30.0, 300.0])
    weight = CATD()._compute_weights(0.7 * cast, cast, 1.0)  # equally precise
    assert weight[0] < 0.2 * weight[1] < 0.2 * weight[2]


def test_precise_workers_are_found_ever_better() -> None:
    found = []
    for tasks in (100, 1000, 10_000):
        crowd, truth, scale = sparse(tasks, 30, 8, 1)
        fitted = CATD().fit(crowd)
        found.append(np.abs(fitted.workers_["rmse"].to_numpy() - scale).mean())
    assert found[0] > found[1] > found[2]
    assert rmse(truth, fitted.estimates_) < rmse(truth, Mean().fit(crowd).estimates_)


def test_a_worker_who_is_clearly_better_ends_with_all_the_weight_as_the_page_warns() -> None:
    rng = np.random.default_rng(2)
    label_probs = rng.normal(size=300)[:, None] + np.linspace(0.2, 2, 8) * rng.normal(size=(300, 8))
    crowd = Crowd.from_triples([(t, w, label_probs[t, w]) for t in range(300) for w in range(8)], numeric=True)
    assert CATD().fit(crowd).weight_[0] > 0.99
    share = (weight := WeightedMean().fit(crowd).weight_)[0] / weight.sum()
    assert share == pytest.approx(0.2**-2 / (np.linspace(0.2, 2, 8) ** -2).sum(), abs=0.1)


def test_classes_are_voted_on() -> None:
    made = simulate_crowd(800, 20, 3, votes_per_task=6, workers={"noisy(0.4, 0.95)": 20}, random_state=2)
    fitted = CATD().fit(made.crowd)
    assert accuracy(made.truth, fitted) > 0.9
    assert worker_correlation(made.accuracy, fitted.workers_["accuracy"]) > 0.9
    np.testing.assert_allclose(fitted.posterior_.sum(axis=1), 1)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -3.0])
def test_alpha_is_a_probability(alpha: float) -> None:
    with pytest.raises(UsageError, match="alpha"):
        CATD(alpha=alpha).fit(Crowd.from_triples([(0, 0, "a")]))


# Zheng et al. (2017). On S_Rel (.4532) random ties decide the third digit.
@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "wanted", "margin"),
    [("product_matching", 0.9266, 0.0002), ("d_possent", 0.9550, 0.0002), ("trec2010_rf", 0.4532, 0.0025)],
)
def test_published_accuracies(name: str, wanted: float, margin: float, data_folder: Path) -> None:
    data = load_dataset(data_folder / name, duplicates="distinct")
    assert accuracy(data.truth, CATD().fit(data.crowd)) == pytest.approx(wanted, abs=margin)


@pytest.mark.data
def test_published_errors_are_those_of_a_sum_that_was_never_divided(data_folder: Path) -> None:
    data = load_dataset(data_folder / "headline_emotions")
    crowd = data.crowd
    fitted = CATD().fit(crowd)
    assert mae(data.truth, fitted) == pytest.approx(12.14, abs=0.006)
    assert rmse(data.truth, fitted) == pytest.approx(18.87, abs=0.006)
    # Their loop: weights sum to one over all workers, and a task is the sum over its ten of thirty-eight.
    many = crowd.votes_per_worker
    normal = 0.5 * (-1.959964 + np.sqrt(2 * many - 1)) ** 2
    estimate = np.array([np.median(crowd.label[crowd.task == task]) for task in range(crowd.n_tasks)])
    for _ in range(100):
        loss = np.bincount(crowd.worker, (crowd.label - estimate[crowd.task]) ** 2)
        weight = np.where(many <= 30, chi2.ppf(0.025, many), normal) / (loss + 1e-9)
        estimate = np.bincount(crowd.task, (weight / weight.sum())[crowd.worker] * crowd.label)
    truth = data.truth.reindex(crowd.tasks).to_numpy()
    assert mae(truth, estimate) == pytest.approx(16.36, abs=0.006)
    assert rmse(truth, estimate) == pytest.approx(25.94, abs=0.006)
