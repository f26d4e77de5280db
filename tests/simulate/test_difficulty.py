"""Crowds with known difficulty: the published one to the bit, the others by their frequencies."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from wisecrowd.errors import UsageError
from wisecrowd.simulate import (
    simulate_by_difficulty,
    simulate_gaussian_difficulty,
    simulate_unstructured,
    simulate_xu2019,
)


def test_the_published_data_to_the_bit() -> None:
    made = simulate_xu2019()
    true = made.truth.to_numpy()
    majority = (made.crowd.vote_counts[:, 1] > made.crowd.vote_counts[:, 0]).astype(np.uint8)
    assert (majority == true).mean() == pytest.approx(0.647, abs=1e-9)
    # Pins the draw: the accuracies alone could survive a shuffled one.
    digest = "22ad95052f7b98147632fcc149260622a7bbc6cff64b219c5ffe2b1a84d226aa"
    assert hashlib.sha256(majority.tobytes()).hexdigest() == digest
    right = made.crowd.label == true[made.crowd.task]
    found = [right[made.crowd.worker == worker].mean() for worker in range(5)]
    np.testing.assert_allclose(found, [0.617, 0.589, 0.538, 0.606, 0.580], atol=1e-9)
    bayes = (made.test_features.sum(axis=1) > 0).astype(int)
    assert (bayes.to_numpy() == made.test_truth.to_numpy()).mean() == pytest.approx(0.941)


def test_it_leaves_the_old_generator_alone() -> None:
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    simulate_xu2019()
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("n_classes", [2, 4])
def test_workers_are_right_as_often_as_the_model_says(n_classes: int) -> None:
    accuracy = np.linspace(0.4, 0.9, 2 * n_classes).reshape(2, n_classes)
    truth = np.tile(np.arange(n_classes), 20_000)
    for easiness in (0.0, 0.5, 1.0):
        crowd = simulate_by_difficulty(truth, np.full(len(truth), easiness), accuracy, random_state=1)
        right = crowd.label == truth[crowd.task]
        odds = (accuracy * (n_classes - 1) / (1 - accuracy)) ** easiness
        for worker in range(2):
            for k in range(n_classes):
                share = right[(crowd.worker == worker) & (truth[crowd.task] == k)].mean()
                assert share == pytest.approx(odds[worker, k] / (odds[worker, k] + n_classes - 1), abs=0.015)
    wrong = crowd.label[~right & (truth[crowd.task] == 0)]
    np.testing.assert_allclose(np.bincount(wrong)[1:] / len(wrong), 1 / (n_classes - 1), atol=0.02)


def test_any_number_of_workers_and_labels() -> None:
    accuracy = np.random.default_rng(0).uniform(0.6, 0.9, size=(30, 3))
    made = simulate_gaussian_difficulty(500, 40, accuracy=accuracy, votes_per_task=(1, 4), random_state=2)
    assert made.crowd.shape == (500, 30)
    assert set(made.crowd.votes_per_task) == {1, 2, 3, 4}
    assert made.test_features.shape == (40, 2)
    assert set(made.truth) == {0, 1, 2}
    np.testing.assert_allclose(1 / (1 + 2 * np.exp(-made.ability)), accuracy)
    again = simulate_gaussian_difficulty(500, 40, accuracy=accuracy, votes_per_task=(1, 4), random_state=2)
    assert again.crowd == made.crowd


def test_two_classes_have_the_difficulty_of_the_paper() -> None:
    made = simulate_gaussian_difficulty(200, random_state=3)
    p = 1 / (1 + np.exp(-made.features.sum(axis=1)))
    np.testing.assert_allclose(made.easiness, 4 * (p - 0.5) ** 2, atol=1e-12)
    assert made.features[made.truth == 1].mean().gt(0).all()


@pytest.mark.parametrize(("levels", "error"), [(6, 0.20298), (5, 0.21857)])
def test_unstructured_votes_err_alike_everywhere(levels: int, error: float) -> None:
    truth = np.tile([0, 1, 2], 10_000)
    crowd = simulate_unstructured(truth, 4, n_classes=3, levels=levels)
    wrong = crowd.label != truth[crowd.task]
    assert wrong.mean() == pytest.approx(error, abs=0.004)
    by_worker = [wrong[crowd.worker == worker].mean() for worker in range(4)]
    assert np.ptp(by_worker) < 0.015


def test_bad_descriptions_are_refused() -> None:
    with pytest.raises(UsageError, match="accuracy must be"):
        simulate_gaussian_difficulty(10, accuracy=[[0.5, 1.0]])
    with pytest.raises(UsageError, match="easiness must be"):
        simulate_by_difficulty([0, 1], [0.5, 2.0], [[0.6, 0.7]])
    with pytest.raises(UsageError, match="class codes from 0 to 1"):
        simulate_by_difficulty([0, 2], [0.5, 0.5], [[0.6, 0.7]])
    with pytest.raises(UsageError, match="levels"):
        simulate_unstructured([0, 1], levels=0)
