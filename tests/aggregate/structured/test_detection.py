"""Detection model: posteriors by enumeration, selection, and recovered rates."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from wisecrowd.aggregate.structured._detection import DetectionModel, DetectionRates
from wisecrowd.data.points import PointCrowd


def make_model(patterns: list[tuple[int, ...]], n_classes: int = 1) -> DetectionModel:
    """Return a model whose objects lie on one task each; a pattern has a class per worker, or -1 for absent."""
    n_workers = len(patterns[0])
    task, worker = np.divmod(np.arange(len(patterns) * n_workers), n_workers)
    flat = np.array(patterns).ravel()
    mark = np.flatnonzero(flat >= 0)
    names = {"tasks": len(patterns), "workers": n_workers, "classes": n_classes}
    crowd = PointCrowd(
        task, worker, mark, flat[mark], np.zeros((len(mark), 2)),
        **{name: pd.Index([f"{name}{number:04d}" for number in range(size)]) for name, size in names.items()},
    )  # fmt: skip
    return DetectionModel(crowd, crowd.mark_task.astype(np.int64), np.arange(len(patterns)), 10.0)


def make_rates(n_workers: int, n_classes: int) -> DetectionRates:
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> np.ndarray:
        table = rng.uniform(0.2, 1, shape)
        return table / table.sum(axis=-1, keepdims=True)

    return DetectionRates(
        rng.normal(size=(n_workers, n_classes)),
        np.array([-1.0, 1.0]),
        rng.uniform(0.05, 0.3, n_workers),
        draw(n_workers, n_classes, n_classes),
        draw(n_workers, n_classes),
        draw(1 + 2 * n_classes),
    )


def test_posteriors_and_the_likelihood_equal_enumeration() -> None:
    n_workers, n_classes = 3, 2
    patterns = [p for p in itertools.product((-1, 0, 1), repeat=n_workers) if max(p) >= 0]
    model, rates = make_model(patterns, n_classes), make_rates(n_workers, n_classes)
    posterior, unseen, log_likelihood = model.expect(rates)
    mark_probs = rates.mark_probs()

    def likelihood(pattern: tuple[int, ...], state: int) -> float:
        result = 1.0
        for worker, label in enumerate(pattern):
            rate = mark_probs[worker, state]
            given = rates.false_labels[worker] if state == 0 else rates.confusion[worker, (state - 1) % n_classes]
            result *= 1 - rate if label < 0 else rate * given[label]
        return result

    joint = np.array([[likelihood(p, s) for s in range(5)] for p in patterns])
    listed = joint.sum(axis=0)  # every pattern but the one without marks
    assert listed == pytest.approx(1 - (1 - mark_probs).prod(axis=0))
    weighted = rates.share * joint / listed
    assert posterior == pytest.approx(weighted / weighted.sum(axis=1, keepdims=True))
    assert log_likelihood == pytest.approx(np.log(weighted.sum(axis=1)).sum())
    assert unseen == pytest.approx(posterior * (1 - listed) / listed)


def test_with_equal_rates_marks_say_nothing() -> None:
    model = make_model([(0, -1, -1), (0, 0, -1), (0, 0, 0)])
    rates = make_rates(3, 1)
    rate = 1 / (1 + np.exp(-1.0))
    rates = rates._replace(
        ability=np.zeros((3, 1)),
        easiness=np.array([1.0, 1.0]),
        false_rate=np.full(3, rate),
        share=np.array([0.2, 0.3, 0.5]),
    )
    assert model.expect(rates)[0] == pytest.approx(np.tile(rates.share, (3, 1)))


def test_more_marks_make_an_object_more_probable() -> None:
    rng = np.random.default_rng(1)
    patterns = [tuple(np.where(rng.random(5) < rate, 0, -1)) for rate in [0.8] * 300 + [0.1] * 300]
    patterns = [p for p in patterns if max(p) >= 0]
    fit = make_model(patterns).fit(max_iter=500, tol=1e-4)
    n_marks = (np.array(patterns) >= 0).sum(axis=1)
    means = [fit.class_probs[n_marks == n].mean() for n in range(1, 6)]
    assert all(np.diff(means) > 0)
    assert means[0] < 0.3
    assert means[4] > 0.99


@pytest.mark.slow
def test_rates_are_not_biased_by_objects_that_nobody_marked() -> None:
    """Of three workers who detect 60 %, 6 % of the objects are seen by nobody; counting the others only gives 64 %."""
    rng = np.random.default_rng(2)
    drawn = rng.random((20_000, 3)) < 0.6
    patterns = [tuple(np.where(row, 0, -1)) for row in drawn if row.any()]
    fit = make_model(patterns).fit(max_iter=300, tol=1e-4)
    assert fit.detection_rate() == pytest.approx(np.full(3, 0.6), abs=0.02)


@pytest.mark.slow
def test_confusion_of_classes_is_recovered() -> None:
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 3000)
    accuracy = np.array([0.95, 0.8, 0.65, 0.9])
    label = np.where(rng.random((3000, 4)) < accuracy, truth[:, None], 1 - truth[:, None])
    label[rng.random((3000, 4)) < 0.2] = -1
    patterns = [tuple(row) for row in label if row.max() >= 0]
    fit = make_model(patterns, 2).fit(max_iter=300, tol=1e-4)
    assert fit.class_accuracy() == pytest.approx(accuracy, abs=0.05)
