"""Average of kernel regressions on views of the features."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import Raykar
from wisecrowd.base.sharpness import safe_log
from wisecrowd.classifiers import kernel_ridge
from wisecrowd.classifiers.kernel_ridge import VIEWS, KernelMachine, KernelRidge
from wisecrowd.simulate import simulate_crowd


@pytest.fixture(scope="module")
def truth() -> np.ndarray:
    return np.random.default_rng(0).integers(2, size=160)


@pytest.fixture(scope="module")
def ring(truth: np.ndarray) -> np.ndarray:
    """A class in the middle, and one around it: no line separates them."""
    rng = np.random.default_rng(1)
    angle, radius = rng.uniform(0, 2 * np.pi, 160), 0.5 + 2 * truth + 0.3 * rng.random(160)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


@pytest.fixture(scope="module")
def model(ring: np.ndarray, truth: np.ndarray) -> KernelRidge:
    return KernelRidge().fit(ring[:100], np.eye(2)[truth[:100]])


def test_a_boundary_that_is_no_line_is_learnt(model: KernelRidge, ring: np.ndarray, truth: np.ndarray) -> None:
    assert (model.predict_proba(ring[100:]).argmax(axis=1) == truth[100:]).mean() > 0.95


def test_restored_it_predicts_the_same(model: KernelRidge, ring: np.ndarray) -> None:
    again = KernelRidge().restore(model.arrays())
    np.testing.assert_array_equal(again.predict_proba(ring), model.predict_proba(ring))


@pytest.mark.parametrize("name", ["intercept", "landmarks"])
def test_arrays_that_do_not_fit_together_are_refused(model: KernelRidge, name: str) -> None:
    arrays = model.arrays()
    with pytest.raises(ValueError, match=r"shape|fit"):
        KernelRidge().restore(arrays | {name: arrays[name][:-1]})


def test_landmarks_represent_many_tasks(ring: np.ndarray, truth: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_ridge, "MAX_LANDMARKS", 30)
    model = KernelRidge().fit(ring[:100], np.eye(2)[truth[:100]])
    assert model.landmarks is not None
    assert len(model.landmarks) == 30
    assert (model.predict_proba(ring[100:]).argmax(axis=1) == truth[100:]).mean() > 0.95


def test_little_memory_leaves_the_view_with_the_largest_weight(
    ring: np.ndarray, truth: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_ridge, "MAX_CELLS", 1)
    assert len(KernelRidge().fit(ring[:100], np.eye(2)[truth[:100]]).parts) == 1


def test_noise_gets_no_weight(truth: np.ndarray) -> None:
    noise = np.random.default_rng(5).normal(size=(160, 6))
    targets = np.eye(2)[truth]
    machine = KernelMachine(noise, 0)
    components = machine.choose(targets, np.zeros((1, 2)), [safe_log(0.8 * targets + 0.1)])
    assert np.abs(machine.combine(targets, components)).mean() < 0.2


def test_scores_of_a_rare_class_are_as_large_as_those_of_a_frequent_one() -> None:
    rng = np.random.default_rng(0)
    truth = (np.arange(200) < 20).astype(int)
    X = truth[:, None] * 4.0 + rng.normal(size=(200, 2))
    score = KernelMachine(X, 0).score(np.eye(2)[truth], VIEWS[1], 0.3)
    assert score[truth == 1, 1].mean() > 3 * score[truth == 0, 0].mean() > 0


def test_tasks_of_weight_zero_have_no_influence(ring: np.ndarray, truth: np.ndarray) -> None:
    targets = np.eye(2)[truth]
    wrong = targets.copy()
    wrong[100:] = 1 - wrong[100:]
    weight = (np.arange(160) < 100).astype(float)
    first, second = (KernelRidge().fit(ring, part, weight).predict_proba(ring) for part in (targets, wrong))
    np.testing.assert_array_equal(first, second)


def test_other_learners_can_use_it() -> None:
    simulation = simulate_crowd(n_tasks=60, n_workers=6, n_classes=2, votes_per_task=3)
    X = (simulation.truth == simulation.crowd.classes[1]).to_numpy(float)[:, None]
    crowd = simulation.crowd.order_tasks(simulation.truth.index)
    assert (
        Raykar(classifier=KernelRidge(), max_iter=3, tol=0.0).fit(X, crowd).score(X, simulation.truth.to_numpy()) > 0.9
    )
