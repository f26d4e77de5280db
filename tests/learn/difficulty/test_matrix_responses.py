"""Workers with confusion matrices that difficulty flattens."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import AdaptiveDifficulty, Crowd, FixedDifficulty
from wisecrowd.errors import UsageError
from wisecrowd.learn.difficulty._matrix_responses import MatrixResponses, flatten_confusion
from wisecrowd.learn.difficulty._responses import AbilityPrior, Responses, compute_confusion
from wisecrowd.simulate import simulate_gaussian_difficulty


def votes(n_tasks: int = 40, n_workers: int = 3, n_classes: int = 3, seed: int = 0) -> Crowd:
    rng = np.random.default_rng(seed)
    task, worker = np.nonzero(rng.random((n_tasks, n_workers)) < 0.8)
    label = np.where(rng.random(len(task)) < 0.6, task % n_classes, rng.integers(n_classes, size=len(task)))
    return Crowd.from_codes(
        task, worker, label, tasks=range(n_tasks), workers=range(n_workers), classes=range(n_classes)
    )


def drawn(crowd: Crowd, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(crowd.n_workers, crowd.n_classes, crowd.n_classes))
    logits -= logits.mean(axis=2, keepdims=True)
    posterior = rng.dirichlet(np.ones(crowd.n_classes), size=crowd.n_tasks)
    return logits, posterior, rng.random(crowd.n_tasks)


def test_equal_errors_are_the_model_of_one_ability_per_class() -> None:
    crowd = votes()
    ability = np.random.default_rng(0).random((3, 3)) * 3
    logits = ability[:, :, None] * np.eye(3)
    easiness = np.random.default_rng(1).random(crowd.n_tasks)
    np.testing.assert_allclose(
        MatrixResponses(crowd).vote_log_probs(logits, easiness), Responses(crowd).vote_log_probs(ability, easiness)
    )
    np.testing.assert_allclose(flatten_confusion(logits, 0.3), compute_confusion(ability, 0.3))


def test_rows_are_uniform_on_the_hardest_and_the_matrix_on_the_easiest_task() -> None:
    matrix = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.0001, 0.0999, 0.9]])
    np.testing.assert_allclose(flatten_confusion(np.log(matrix), 1.0), matrix)
    np.testing.assert_allclose(flatten_confusion(np.log(matrix), 0.0), 1 / 3)


def test_slope_by_easiness_is_that_of_differences() -> None:
    crowd = votes()
    logits, posterior, easiness = drawn(crowd)
    responses = MatrixResponses(crowd)
    _, gradient = responses.expected_log_likelihood(posterior, logits, easiness)
    for task in (0, 7, 20):
        up, down = easiness.copy(), easiness.copy()
        up[task] += 1e-5
        down[task] -= 1e-5
        values = [responses.expected_log_likelihood(posterior, logits, values)[0] for values in (up, down)]
        assert gradient[task] == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("precision", [0.0, 2.0])
def test_fitted_logits_are_a_maximum(precision: float) -> None:
    crowd = votes(n_tasks=120)
    logits, posterior, easiness = drawn(crowd)
    responses = MatrixResponses(crowd)
    prior = AbilityPrior(logits, np.full(crowd.n_workers, precision))
    best = responses.fit_abilities(posterior, easiness, logits, prior)

    def objective(values: np.ndarray) -> float:
        return responses.expected_log_likelihood(posterior, values, easiness)[0] + prior.log_density(values)

    reached = objective(best)
    assert reached > objective(logits)
    rng = np.random.default_rng(3)
    for _ in range(20):
        other = best + 0.05 * rng.normal(size=best.shape)
        assert objective(other - other.mean(axis=2, keepdims=True)) < reached
    np.testing.assert_allclose(best.mean(axis=2), 0, atol=1e-9)


def test_a_double_weight_is_a_repeated_vote() -> None:
    crowd = votes()
    double = crowd.to_frame().assign(weight=2.0)
    heavy = Crowd.from_frame(double, weight="weight", tasks=crowd.tasks, workers=crowd.workers, classes=crowd.classes)
    logits, posterior, easiness = drawn(crowd)
    single, weighted = (
        MatrixResponses(one).expected_log_likelihood(posterior, logits, easiness)[0] for one in (crowd, heavy)
    )
    assert weighted == pytest.approx(2 * single)


@pytest.mark.parametrize("method", [AdaptiveDifficulty, FixedDifficulty])
def test_with_two_classes_both_worker_models_are_one(method: type) -> None:
    simulation = simulate_gaussian_difficulty(150, votes_per_task=4)
    models = [
        method(worker_model=name, allow_adversarial=True).fit(simulation.features, simulation.crowd)
        for name in ("class", "matrix")
    ]
    np.testing.assert_allclose(models[0].posterior_, models[1].posterior_, atol=1e-3)
    np.testing.assert_allclose(models[0].confusion_, models[1].confusion_, atol=1e-3)
    np.testing.assert_allclose(models[0].workers_["ability_1"], models[1].workers_["ability_1"], atol=5e-3)
    for model in models:
        proba = model.predict_worker_proba(simulation.features[:4], [*simulation.crowd.workers[:2], "nobody"])
        assert proba.shape == (4, 3, 2)
        np.testing.assert_allclose(proba.sum(axis=2), 1)
    assert np.diff(models[1].trace_).min() > -1e-6


def test_confused_classes_are_found_by_the_matrix() -> None:
    rng = np.random.default_rng(0)
    z = np.arange(450) % 3
    X = 2.5 * np.eye(3)[z] + rng.normal(size=(450, 3))
    matrix = np.array([[0.6, 0.4, 0.0], [0.05, 0.9, 0.05], [0.4, 0.0, 0.6]])
    task, worker = np.nonzero(rng.random((450, 4)) < 0.8)
    label = (rng.random(len(task))[:, None] > matrix[z[task]].cumsum(axis=1)).sum(axis=1)
    crowd = Crowd.from_codes(task, worker, label, tasks=range(450), workers=range(4), classes=range(3))
    even, whole = (AdaptiveDifficulty(worker_model=name).fit(X, crowd) for name in ("class", "matrix"))
    assert np.abs(whole.confusion_ - matrix).mean() < 0.6 * np.abs(even.confusion_ - matrix).mean()
    assert (whole.labels_.to_numpy() == z).mean() >= (even.labels_.to_numpy() == z).mean()


def test_the_full_step_of_a_network_has_no_matrices() -> None:
    pytest.importorskip("torch")
    simulation = simulate_gaussian_difficulty(30, votes_per_task=4)
    with pytest.raises(UsageError, match='no worker_model="matrix"'):
        AdaptiveDifficulty(classifier="mlp", m_step="full", worker_model="matrix").fit(
            simulation.features, simulation.crowd
        )
