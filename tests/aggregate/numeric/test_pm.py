"""PM (CRH), for classes and for numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wisecrowd import PM, Crowd, Mean, Median, load_dataset
from wisecrowd.errors import UsageError
from wisecrowd.evaluate.metrics import accuracy, mae, rmse, worker_correlation
from wisecrowd.simulate import simulate_crowd


@pytest.mark.parametrize("loss", ["absolute", "squared"])
@pytest.mark.parametrize("per_label", [True, False])
def test_weights_are_logarithms_of_losses(loss: str, per_label: bool) -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=50)
    votes = [(t, w, truth[t] + rng.normal() * (w + 3)) for t in range(50) for w in range(12) if rng.random() < 0.6]
    crowd = Crowd.from_triples(votes, numeric=True)
    fitted = PM(loss=loss, per_label=per_label, tol=1e-12).fit(crowd)  # type: ignore[arg-type]
    spread = np.array([crowd.label[crowd.task == task].std() for task in range(50)])

    def lost(estimate: np.ndarray) -> np.ndarray:
        error = np.abs(crowd.label - estimate[crowd.task])
        return (error if loss == "absolute" else error**2) / np.where(spread > 0, spread, spread.mean())[crowd.task]

    total = np.bincount(crowd.worker, lost(fitted.estimates_)) / (crowd.votes_per_worker if per_label else 1)
    total = np.maximum(total, 1e-8 * lost(Median().fit(crowd).estimates_).mean())
    np.testing.assert_allclose(fitted.weight_, -np.log(total / total.max()), atol=1e-5)


def test_a_careless_worker_moves_it_less_than_the_median_even_in_the_majority() -> None:
    rng = np.random.default_rng(1)
    truth = rng.normal(size=300)
    label_probs = truth[:, None] + np.array([0.05, 0.05, 3, 3, 3]) * rng.normal(size=(300, 5))
    crowd = Crowd.from_triples([(t, w, label_probs[t, w]) for t in range(300) for w in range(5)], numeric=True)
    found = mae(truth, PM().fit(crowd).estimates_)
    assert found < 0.3 * mae(truth, Median().fit(crowd).estimates_)
    assert found < 0.3 * mae(truth, Mean().fit(crowd).estimates_)


def test_good_workers_are_found_ever_better() -> None:
    found = []
    for tasks in (40, 200, 2000):
        made = simulate_crowd(tasks, 20, 3, votes_per_task=6, workers={"noisy(0.4, 0.95)": 20}, random_state=2)
        fitted = PM().fit(made.crowd)
        found.append(worker_correlation(made.accuracy, fitted.workers_["weight"]))
    assert found[0] < found[1] < found[2]
    assert accuracy(made.truth, fitted) > 0.93


def test_summed_losses_take_activity_for_error() -> None:
    made = simulate_crowd(
        1500, 30, 2, votes_per_task=5, workers={"noisy(0.75)": 30}, activity="zipf(1.2)", random_state=3
    )
    many = made.crowd.votes_per_worker
    summed, mean = (PM(per_label=per).fit(made.crowd).weight_ for per in (False, True))
    assert np.corrcoef(np.log(many), summed)[0, 1] < -0.9
    assert abs(np.corrcoef(np.log(many), mean)[0, 1]) < 0.6


def test_agreement_of_all_against_gold_loses_by_the_usual_scale() -> None:
    votes = [("same", w, 1.0) for w in range(3)] + [("other", w, float(w)) for w in range(3)]
    fitted = PM().fit(Crowd.from_triples(votes, numeric=True), truth={"same": 4.0})
    assert np.isfinite(fitted.weight_).all()
    assert fitted.labels_["same"] == 4


def test_the_loss_is_one_of_two() -> None:
    with pytest.raises(UsageError, match="absolute"):
        PM(loss="cubic").fit(Crowd.from_triples([(0, 0, "a")]))  # type: ignore[arg-type]


# Zheng et al. (2017): losses summed, random ties. With ties split the last two differ by .0004 and .0016.
@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "wanted", "margin"),
    [("product_matching", 0.8981, 0.0002), ("d_possent", 0.9504, 0.001), ("trec2010_rf", 0.5902, 0.0025)],
)
def test_published_accuracies(name: str, wanted: float, margin: float, data_folder: Path) -> None:
    data = load_dataset(data_folder / name, duplicates="distinct")
    assert accuracy(data.truth, PM(per_label=False).fit(data.crowd)) == pytest.approx(wanted, abs=margin)


@pytest.mark.data
def test_published_errors(data_folder: Path) -> None:
    data = load_dataset(data_folder / "headline_emotions")
    fitted = PM(per_label=False).fit(data.crowd)
    assert mae(data.truth, fitted) == pytest.approx(13.91, abs=0.006)
    assert rmse(data.truth, fitted) == pytest.approx(21.96, abs=0.006)


@pytest.mark.data
def test_losses_per_label_pay_where_a_few_workers_did_most(data_folder: Path) -> None:
    data = load_dataset(data_folder / "web_search", duplicates="distinct")
    assert accuracy(data.truth, PM(per_label=False).fit(data.crowd)) < 0.5
    assert accuracy(data.truth, PM().fit(data.crowd)) > 0.84
