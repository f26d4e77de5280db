"""Adaptive Difficulty EM: the paper's data, its limits, and what it must never do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

import wisecrowd
from wisecrowd import AdaptiveDifficulty, Crowd, Raykar
from wisecrowd.errors import UsageError
from wisecrowd.evaluate import metrics
from wisecrowd.learn.difficulty._responses import Responses, compute_confusion, compute_easiness
from wisecrowd.simulate import DifficultyCrowd, simulate_gaussian_difficulty

pytestmark = pytest.mark.usefixtures("never_falls")


def three_classes(n_tasks: int = 300) -> DifficultyCrowd:
    accuracy = np.random.default_rng(1).uniform(0.6, 0.95, size=(8, 3))
    return simulate_gaussian_difficulty(
        n_tasks, 300, accuracy=accuracy, sharpness=1.0, votes_per_task=4, random_state=1
    )


# ---------------------------------------------------------------------- the paper's data


def test_gaussian_benchmark(published: DifficultyCrowd) -> None:
    ours = AdaptiveDifficulty().fit(published.features, published.crowd)
    theirs = Raykar().fit(published.features, published.crowd)
    assert metrics.auc(published.truth, theirs) == pytest.approx(0.951, abs=0.006)
    assert metrics.auc(published.truth, ours) == pytest.approx(0.975, abs=0.004)
    assert metrics.accuracy(published.truth, ours) == pytest.approx(0.916, abs=0.01)
    assert ours.score(published.test_features, published.test_truth) == pytest.approx(0.94, abs=0.005)
    true = published.accuracy.to_numpy()
    error, others = (np.abs(np.diagonal(m.confusion_, axis1=1, axis2=2) - true).mean() for m in (ours, theirs))
    assert error < 0.045 < others


@pytest.mark.parametrize(
    "settings",
    [{"ability_update": "ml"}, {"m_step": "plugin"}, {"m_step": "plugin", "ability_update": "ml", "l2": 1e-3}],
)
def test_the_variants_end_nearly_in_the_same_place(published: DifficultyCrowd, settings: dict[str, object]) -> None:
    model = AdaptiveDifficulty(**settings).fit(published.features, published.crowd)
    assert metrics.auc(published.truth, model) >= 0.97
    assert model.score(published.test_features, published.test_truth) == pytest.approx(0.94, abs=0.005)


def test_difficulty_by_the_posterior_as_in_the_program_of_the_paper(published: DifficultyCrowd) -> None:
    model = AdaptiveDifficulty(difficulty_source="posterior", max_iter=30, tol=0.0).fit(
        published.features, published.crowd
    )
    assert metrics.auc(published.truth, model) >= 0.97


def test_easiness_is_recovered(published: DifficultyCrowd) -> None:
    tasks = AdaptiveDifficulty().fit(published.features, published.crowd).tasks_
    assert np.corrcoef(tasks["easiness"], published.easiness)[0, 1] > 0.95
    np.testing.assert_allclose(tasks["difficulty"] + tasks["easiness"], 1)


def test_abilities_are_recovered() -> None:
    accuracy = np.random.default_rng(3).uniform(0.55, 0.95, size=(20, 2))
    made = simulate_gaussian_difficulty(5000, 10, accuracy=accuracy, random_state=3)
    model = AdaptiveDifficulty().fit(made.features, made.crowd)
    assert np.corrcoef(model.ability_.ravel(), made.ability.to_numpy().ravel())[0, 1] > 0.95
    assert np.abs(np.diagonal(model.confusion_, axis1=1, axis2=2) - accuracy).mean() < 0.03


def test_three_classes_are_told_apart_better_than_by_constant_workers() -> None:
    made = three_classes(1500)
    ours, theirs = (kind().fit(made.features, made.crowd) for kind in (AdaptiveDifficulty, Raykar))
    true = made.accuracy.to_numpy()
    error, others = (np.abs(np.diagonal(m.confusion_, axis1=1, axis2=2) - true).mean() for m in (ours, theirs))
    assert error < others / 1.3
    assert metrics.accuracy(made.truth, ours) >= metrics.accuracy(made.truth, theirs)


# ---------------------------------------------------------------------- limits


def test_constant_difficulty_is_raykar() -> None:
    made = simulate_gaussian_difficulty(400, 10, accuracy=np.linspace(0.7, 0.95, 10).reshape(5, 2), random_state=5)
    ours = AdaptiveDifficulty(
        difficulty_source="constant", ability_update="ml", allow_adversarial=True, l2=0.1, max_iter=1000, tol=1e-13
    )
    theirs = Raykar(smoothing=0.0, diagonal=0.0, l2=0.1, max_iter=1000, tol=1e-13)
    for model in (ours, theirs):
        model.fit(made.features, made.crowd)
    np.testing.assert_allclose(ours.posterior_, theirs.posterior_, atol=1e-6)
    np.testing.assert_allclose(ours.confusion_, theirs.confusion_, atol=1e-6)
    assert ours.trace_[-1] == pytest.approx(theirs.trace_[-1], abs=1e-6)


def test_a_task_that_nobody_labelled_is_what_the_classifier_expects(small: DifficultyCrowd) -> None:
    silent = np.arange(10)
    keep = np.flatnonzero(~np.isin(small.crowd.task, silent))
    crowd = small.crowd.take(keep)
    model = AdaptiveDifficulty().fit(small.features, crowd)
    np.testing.assert_allclose(model.posterior_[silent], model.predict_proba(small.features.iloc[silent]), atol=1e-9)
    rest = np.arange(10, 300)
    without = AdaptiveDifficulty().fit(small.features.iloc[rest], crowd[rest])
    np.testing.assert_allclose(model.posterior_[rest], without.posterior_, atol=1e-6)
    assert model.tasks_["n_votes"].iloc[:10].eq(0).all()


def test_half_of_the_labels_change_the_answer_a_little(published: DifficultyCrowd) -> None:
    rng = np.random.default_rng(0)
    half = published.crowd.take(np.sort(rng.choice(5000, size=2500, replace=False)))
    whole, less = (AdaptiveDifficulty().fit(published.features, crowd) for crowd in (published.crowd, half))
    right_whole, right_less = (np.diagonal(m.confusion_, axis1=1, axis2=2) for m in (whole, less))
    assert np.abs(right_whole - right_less).mean() < 0.06
    assert metrics.auc(published.truth, less) > 0.94
    assert less.score(published.test_features, published.test_truth) > 0.92


def test_likelihood_is_that_of_the_formula(small: DifficultyCrowd) -> None:
    """Eq. 4 at the end of the fit, by hand."""
    model = AdaptiveDifficulty(ability_update="ml", l2=0.0).fit(small.features, small.crowd)
    p = model.predict_proba(small.features)
    likelihood = p.copy()
    for task, worker, label in zip(small.crowd.task, small.crowd.worker, small.crowd.label, strict=True):
        for k in (0, 1):
            right = 1 / (1 + np.exp(-4 * model.ability_[worker, k] * (p[task, 1] - 0.5) ** 2))
            likelihood[task, k] *= right if label == k else 1 - right
    np.testing.assert_allclose(model.posterior_, likelihood / likelihood.sum(axis=1, keepdims=True), atol=1e-8)
    assert model.trace_[-1] == pytest.approx(np.log(likelihood.sum(axis=1)).sum())


# ---------------------------------------------------------------------- laws


@pytest.mark.parametrize("adversarial", [False, True])
@pytest.mark.parametrize("update", ["map", "ml", "frozen"])
def test_the_objective_never_falls(small: DifficultyCrowd, update: str, adversarial: bool) -> None:
    for made in (small, three_classes()):
        model = AdaptiveDifficulty(ability_update=update, allow_adversarial=adversarial, max_iter=400)
        model.fit(made.features, made.crowd)
        assert np.diff(model.trace_).min() > -1e-7
        assert (model.ability_ >= 0).all() or adversarial


def test_flipping_the_classes_flips_the_answer(small: DifficultyCrowd) -> None:
    crowd = small.crowd
    flipped = Crowd.from_codes(
        crowd.task, crowd.worker, 1 - crowd.label, tasks=crowd.tasks, workers=crowd.workers, classes=[0, 1]
    )
    one, two = (AdaptiveDifficulty(tol=1e-10).fit(small.features, votes) for votes in (crowd, flipped))
    np.testing.assert_allclose(one.posterior_, two.posterior_[:, ::-1], atol=1e-4)
    np.testing.assert_allclose(one.workers_["sensitivity"], two.workers_["specificity"], atol=1e-4)


def test_the_order_of_tasks_and_workers_is_irrelevant(small: DifficultyCrowd) -> None:
    crowd, rng = small.crowd, np.random.default_rng(0)
    tasks, workers = rng.permutation(crowd.n_tasks), rng.permutation(crowd.n_workers)
    assert crowd.workers is not None
    shuffled = Crowd.from_codes(
        np.argsort(tasks)[crowd.task], np.argsort(workers)[crowd.worker], crowd.label, classes=crowd.classes,
        tasks=crowd.tasks[tasks], workers=crowd.workers[workers],
    )  # fmt: skip
    one, two = (AdaptiveDifficulty(tol=1e-10).fit(small.features, votes) for votes in (crowd, shuffled))
    pd.testing.assert_frame_equal(one.proba_, two.proba_.loc[one.proba_.index], atol=1e-4, check_index_type=False)
    np.testing.assert_allclose(one.ability_[workers], two.ability_, atol=1e-3)


def test_gold_is_kept_and_teaches(small: DifficultyCrowd) -> None:
    gold = small.truth.iloc[:50]
    model = AdaptiveDifficulty().fit(small.features, small.crowd, truth=gold)
    assert (model.labels_.iloc[:50] == gold).all()
    np.testing.assert_array_equal(model.posterior_[:50].max(axis=1), 1)
    assert np.diff(model.trace_).min() > -1e-7


def test_a_worker_against_the_truth_is_a_guesser_unless_allowed() -> None:
    made = simulate_gaussian_difficulty(600, 10, accuracy=[[0.85, 0.85]] * 5 + [[0.1, 0.1]])
    bounded, free = (
        AdaptiveDifficulty(allow_adversarial=allowed).fit(made.features, made.crowd) for allowed in (False, True)
    )
    np.testing.assert_allclose(bounded.confusion_[5], 0.5, atol=0.01)
    assert (np.diagonal(free.confusion_[5]) < 0.2).all()
    assert metrics.log_loss(made.truth, free) < metrics.log_loss(made.truth, bounded)


# ---------------------------------------------------------------------- classifiers, tools, tables


@pytest.mark.parametrize("m_step", ["full", "plugin"])
def test_a_network_in_the_place_of_logistic_regression(published: DifficultyCrowd, m_step: str) -> None:
    pytest.importorskip("torch")
    from wisecrowd.nn.network_classifier import NetworkClassifier

    network = NetworkClassifier("mlp", epochs=20)
    model = AdaptiveDifficulty(classifier=network, m_step=m_step, max_iter=15, tol=0.0)
    model.fit(published.features, published.crowd)
    assert metrics.auc(published.truth, model) > 0.965
    assert model.score(published.test_features, published.test_truth) > 0.92


def test_the_step_of_a_network_is_the_gradient_of_the_step_of_logistic_regression(small: DifficultyCrowd) -> None:
    """One small step of plain gradient descent on all tasks, with votes missing, beside the formula."""
    torch = pytest.importorskip("torch")
    from wisecrowd.learn.difficulty._full_m_step import fit_full
    from wisecrowd.learn.difficulty._responses import compute_easiness_gradient
    from wisecrowd.nn.network_classifier import NetworkClassifier

    X, rng = small.features.to_numpy(), np.random.default_rng(0)
    responses, posterior = Responses(small.crowd), rng.dirichlet(np.ones(2), size=300)
    ability = rng.uniform(0, 3, size=(5, 2))
    network = NetworkClassifier(
        "linear", epochs=0, batch_size=300, learning_rate=1e-3, optimiser="sgd", standardise=False
    )
    network.fit(X, posterior)
    share = network.predict_proba(X)
    before = {name: array.copy() for name, array in network.arrays().items()}
    fit_full(network, X, posterior, ability, responses)
    _, by_easiness = responses.expected_log_likelihood(posterior, ability, compute_easiness(share))
    slope = (posterior - share + by_easiness[:, None] * compute_easiness_gradient(share)) / 300
    change = {name: array - before[name] for name, array in network.arrays().items() if name.startswith("model.")}
    weight, bias = (next(c for n, c in change.items() if n.endswith(end)) for end in ("weight", "bias"))
    np.testing.assert_allclose(weight, 1e-3 * (slope.T @ X), atol=1e-7)
    np.testing.assert_allclose(bias, 1e-3 * slope.sum(axis=0), atol=1e-7)
    assert torch is not None


def test_a_classifier_without_gradient_has_the_plugin_step(small: DifficultyCrowd) -> None:
    with pytest.raises(UsageError, match='m_step="plugin"'):
        AdaptiveDifficulty(classifier=LogisticRegression(), m_step="full").fit(small.features, small.crowd)
    model = AdaptiveDifficulty(classifier=LogisticRegression()).fit(small.features, small.crowd)
    assert model.score(small.test_features, small.test_truth) > 0.85


def test_tables(small: DifficultyCrowd) -> None:
    model = AdaptiveDifficulty().fit(small.features, small.crowd)
    workers = model.workers_
    np.testing.assert_allclose(workers["sensitivity"], compute_confusion(model.ability_)[:, 1, 1])
    np.testing.assert_allclose(workers["specificity"], 1 / (1 + np.exp(-workers["ability_0"])))
    assert "sensitivity" not in AdaptiveDifficulty().fit(three_classes().features, three_classes().crowd).workers_
    assert list(model.tasks_.index) == list(small.crowd.tasks)
    # On a task without doubt a worker speaks by confusion_, on one in doubt by chance.
    asked = pd.DataFrame({"x1": [40.0, 0.0], "x2": [40.0, 0.0]})
    said = model.predict_worker_proba(asked, [*small.crowd.workers, "stranger"])
    np.testing.assert_allclose(said.sum(axis=2), 1)
    np.testing.assert_allclose(said[0, :5], model.confusion_[:, 1], atol=1e-3)
    np.testing.assert_allclose(said[1], 0.5, atol=0.02)


def test_it_is_an_estimator_and_survives_the_disk(small: DifficultyCrowd, tmp_path: Path) -> None:
    model = clone(AdaptiveDifficulty(precision=2.0))
    assert model.precision == 2.0
    model.fit(small.features, small.crowd).save(tmp_path / "model")
    again = wisecrowd.load(tmp_path / "model")
    assert isinstance(again, AdaptiveDifficulty)
    np.testing.assert_array_equal(again.predict_proba(small.test_features), model.predict_proba(small.test_features))
    pd.testing.assert_frame_equal(again.workers_, model.workers_)
    pd.testing.assert_frame_equal(again.tasks_, model.tasks_)
    assert (cross_val_score(AdaptiveDifficulty(), small.features, small.crowd, cv=3) > 0.5).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"precision": -1.0}, "precision must not be negative"),
        ({"difficulty_source": "votes"}, "difficulty_source"),
        ({"m_step": "half"}, "m_step"),
        ({"ability_update": "never"}, "ability_update"),
        ({"l2": -1.0}, "l2"),
        ({"max_iter": 0}, "max_iter"),
    ],
)
def test_bad_settings_are_refused(small: DifficultyCrowd, settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        AdaptiveDifficulty(**settings).fit(small.features, small.crowd)
