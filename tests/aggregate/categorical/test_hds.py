from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from wisecrowd import HDS, Crowd, DawidSkene, OneCoin, load_dataset, simulate_crowd
from wisecrowd.errors import NotConverged
from wisecrowd.evaluate.metrics import accuracy


@pytest.mark.parametrize("votes", [{}, {"smoothing": 0.0, "diagonal": 0.0}, {"smoothing": 0.5, "diagonal": 2.0}])
def test_with_two_classes_it_is_dawid_and_skenes_model(votes: dict[str, float]) -> None:
    crowd = simulate_crowd(200, 15, 2, votes_per_task=4, random_state=0).crowd
    tied, free = HDS(**votes).fit(crowd), DawidSkene(**votes).fit(crowd)
    np.testing.assert_allclose(tied.posterior_, free.posterior_, atol=1e-9)
    np.testing.assert_allclose(tied.confusion_, free.confusion_, atol=1e-9)
    assert tied.n_iter_ == free.n_iter_


def test_an_accuracy_is_the_share_of_right_answers_in_its_class() -> None:
    made = simulate_crowd(100, 5, 3, votes_per_task=4, workers=["noisy(0.6)"] * 5, random_state=1)
    fitted = HDS(smoothing=0.5, diagonal=2.0).fit(made.crowd, truth=made.truth)  # all truth known: no inference left
    crowd, truth = made.crowd, made.truth_codes
    for worker in range(5):
        for k in range(3):
            mine = (crowd.worker == worker) & (truth[crowd.task] == k)
            right = ((crowd.label == k) & mine).sum()
            wanted = (right + 2.5) / (mine.sum() + 3.5)
            assert fitted.confusion_[worker, k, k] == pytest.approx(wanted)
            assert np.delete(fitted.confusion_[worker, k], k) == pytest.approx((1 - wanted) / 2)


def test_workers_who_know_one_class_are_told_from_those_who_guess() -> None:
    """A worker who is perfect in one class and guesses in the others; one accuracy for all cannot say that."""
    rng = np.random.default_rng(2)
    truth, n_workers = rng.integers(3, size=400), 12
    confusion = np.full((n_workers, 3, 3), 1 / 3)
    confusion[np.arange(n_workers), np.arange(n_workers) % 3] = np.eye(3)[np.arange(n_workers) % 3]
    task, worker = np.nonzero(rng.random((400, n_workers)) < 0.6)
    label = [rng.choice(3, p=confusion[w, truth[t]]) for t, w in zip(task, worker, strict=True)]
    crowd = Crowd.from_codes(task, worker, label, tasks=range(400), workers=range(n_workers), classes=range(3))
    fitted = HDS().fit(crowd)
    assert accuracy(truth, fitted.posterior_) > accuracy(truth, OneCoin().fit(crowd).posterior_) + 0.05
    diagonal = np.diagonal(fitted.confusion_, axis1=1, axis2=2)
    np.testing.assert_allclose(diagonal, np.diagonal(confusion, axis1=1, axis2=2), atol=0.2)


def test_accuracies_are_found_the_better_the_more_labels() -> None:
    errors = []
    for n_tasks in (60, 600, 6000):
        made = simulate_crowd(n_tasks, 12, 4, votes_per_task=5, workers=["noisy(0.7)"] * 12, random_state=3)
        errors.append(np.abs(HDS().fit(made.crowd).confusion_ - made.confusion).mean())
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.02


#: Accuracies of an independent implementation of the model with one accuracy per worker and class.
REFERENCE = {
    "bluebirds": 0.8981, "dog": 0.8389, "rte": 0.9275, "trec2011": 0.7024, "web_search": 0.8451, "weather_cf": 0.8667,
    "weather_amt": 0.8133, "music_genre": 0.7957, "sentiment_polarity": 0.9148, "zencrowd_all": 0.7926,
    "zencrowd_in": 0.7598, "product_matching": 0.9396, "d_possent": 0.9600, "face_sentiment": 0.6370,
    "trec2010_rf": 0.5155, "adult_content2": 0.7207, "labelme": 0.7720,
}  # fmt: skip


@pytest.mark.data
@pytest.mark.parametrize("name", REFERENCE)
def test_reference_accuracies(name: str, data_folder: Path) -> None:
    data = load_dataset(data_folder / name, duplicates="distinct")
    method = HDS(smoothing=1e-10, diagonal=0, accelerate=False, max_iter=200, tol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        assert accuracy(data.truth, method.fit(data.crowd)) == pytest.approx(REFERENCE[name], abs=0.005)
