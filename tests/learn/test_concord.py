"""Concord: how features and votes are weighed, and that no truth is needed for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Concord, Crowd, ModelAverage, Raykar, load
from wisecrowd.classifiers import kernel_ridge
from wisecrowd.errors import UsageError
from wisecrowd.learn import concord
from wisecrowd.simulate import Simulation


@pytest.fixture(scope="module")
def model(made: Simulation, X: pd.DataFrame) -> Concord:
    return Concord().fit(X, made.crowd)


def _accuracy(model: Any, truth: pd.Series[Any]) -> float:
    return float((model.labels_ == truth.loc[model.labels_.index]).mean())


def test_features_that_separate_the_classes_add_to_the_votes(made: Simulation, model: Concord) -> None:
    assert _accuracy(model, made.truth) > _accuracy(ModelAverage().fit(made.crowd), made.truth) + 0.05
    assert model.feature_gain_ > 0.02


def test_every_view_is_tried_and_the_most_probable_penalty_of_a_view_has_the_weight(model: Concord) -> None:
    table = model.choice_
    assert set(zip(table["view"], table["width"], strict=True)) == set(kernel_ridge.VIEWS)
    used = table[table["weight"] > 0]
    best = table.loc[table.groupby(["view", "width"])["log_likelihood"].idxmax()]
    assert set(used.index) <= set(best.index)
    assert model.l2_ == used.loc[used["weight"].idxmax(), "l2"]


def test_a_given_ridge_is_not_searched(made: Simulation, X: pd.DataFrame) -> None:
    assert set(Concord(l2=0.5, max_iter=1).fit(X, made.crowd).choice_["l2"]) == {0.5}


@pytest.mark.parametrize("kind", ["noise", "shuffled", "constant"])
def test_useless_features_leave_the_labels_of_the_default_aggregator(featured: Callable[..., Any], kind: str) -> None:
    made, X = featured(n_tasks=300)
    rng = np.random.default_rng(1)
    rows = {
        "noise": rng.normal(size=(300, 10)),
        "shuffled": X.to_numpy()[rng.permutation(300)],
        "constant": np.ones((300, 2)),
    }[kind]
    model = Concord(max_iter=10).fit(pd.DataFrame(rows, index=X.index), made.crowd)
    np.testing.assert_array_equal(model.posterior_, ModelAverage().fit(made.crowd).posterior_)
    assert model.feature_gain_ == 0
    assert model.describe_features().startswith("the features add nothing by held-out votes: ")
    np.testing.assert_allclose(np.ptp(model.predict_proba(rows), axis=0), 0, err_msg="all tasks have the class prior")


def test_perfect_features_give_nearly_all_labels(made: Simulation) -> None:
    place = made.crowd.classes.get_indexer(made.truth)
    rows = np.eye(3)[place] + 0.1 * np.random.default_rng(0).normal(size=(150, 3))
    X = pd.DataFrame(rows, index=made.truth.index)
    model = Concord(max_iter=15).fit(X, made.crowd)
    assert _accuracy(model, made.truth) > 0.97
    assert model.score(X, made.truth) > 0.97


def test_a_boundary_that_is_no_line_is_learnt(made: Simulation) -> None:
    rng = np.random.default_rng(0)
    radius = made.crowd.classes.get_indexer(made.truth) + 0.2 * rng.normal(size=150)
    angle = rng.uniform(0, 2 * np.pi, 150)
    X = pd.DataFrame({"x": radius * np.cos(angle), "y": radius * np.sin(angle)}, index=made.truth.index)
    kernels, lines = (
        Concord(classifier=kind, l2=0.3, max_iter=5).fit(X, made.crowd) for kind in ("kernels", "logistic")
    )
    assert kernels.score(X, made.truth) > lines.score(X, made.truth) + 0.1


def test_the_weight_of_the_features_is_stated_in_words(model: Concord) -> None:
    words = model.describe_features()
    assert words.startswith(f"the features add {100 * model.feature_gain_:.1f} points by held-out votes: ")
    assert f"{100 * model.heldout_accuracy_:.1f} % of the votes" in words


def test_another_classifier_is_cross_fitted(made: Simulation, X: pd.DataFrame) -> None:
    model = Concord(classifier="logistic", l2=3.0, max_iter=8).fit(X, made.crowd)
    twin = Raykar(l2=3.0, shrinkage=True, cv=5, calibrate=True, max_iter=8, tol=0.0).fit(X, made.crowd)
    np.testing.assert_allclose(model.posterior_, twin.posterior_)
    assert model.l2_ == 3.0
    assert "classifier='kernels'" in model.describe_features()


@pytest.mark.parametrize("classifier", ["kernels", "logistic"])
def test_saved_and_loaded_it_answers_the_same(
    made: Simulation, X: pd.DataFrame, tmp_path: Path, classifier: str
) -> None:
    model = Concord(classifier=classifier, max_iter=2).fit(X, made.crowd)
    model.save(tmp_path / "model")
    np.testing.assert_allclose(load(tmp_path / "model").predict_proba(X), model.predict_proba(X))


def test_one_vote_per_task_is_enough_when_features_agree(featured: Callable[..., Any]) -> None:
    made, X = featured(n_tasks=400)
    once = made.crowd.to_frame().drop_duplicates("task")
    crowd = Crowd.from_frame(once, workers=made.crowd.workers, classes=made.crowd.classes)
    right = (once["label"].to_numpy() == made.truth.loc[once["task"]].to_numpy()).mean()
    model = Concord(l2=0.3, max_iter=5).fit(X, crowd)
    assert model.score(X, made.truth) > right + 0.05
    assert model.discount_ == 1.0, "a vote that stands alone is not discounted"


def test_many_tasks_are_represented_by_landmarks(featured: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    made, X = featured(n_tasks=400)
    exact = Concord(l2=0.3, max_iter=3).fit(X, made.crowd)
    monkeypatch.setattr(kernel_ridge, "MAX_LANDMARKS", 80)
    monkeypatch.setattr(concord, "MAX_CHOICE_TASKS", 150)
    model = Concord(l2=0.3, max_iter=3).fit(X, made.crowd)
    assert len(model.classifier_.landmarks) == 80  # type: ignore[attr-defined]
    assert (model.labels_ == exact.labels_).mean() > 0.95


def test_a_task_without_votes_has_the_class_that_its_features_predict(made: Simulation, X: pd.DataFrame) -> None:
    crowd = made.crowd.to_frame()
    part = Crowd.from_frame(
        crowd[crowd["task"] != X.index[0]], tasks=X.index, workers=made.crowd.workers, classes=made.crowd.classes
    )
    model = Concord(max_iter=3).fit(X, part)
    np.testing.assert_allclose(model.posterior_[0], model.predict_proba(X.iloc[:1])[0])


def test_predictions_are_calibrated_without_truth_and_without_a_second_fit(featured: Callable[..., Any]) -> None:
    made, X = featured(n_tasks=600)
    test = made.crowd.tasks[300:]
    model = Concord(l2=0.3, max_iter=8).fit(X, made.crowd[:300])
    assert model.prediction_sharpness_ == 1.0
    proba = model.predict_proba(X.loc[test])
    is_right = model.predict(X.loc[test]) == made.truth[test]
    assert abs(proba.max(axis=1).mean() - is_right.mean()) < 0.06


@pytest.mark.parametrize("settings", [{"max_iter": 0}, {"l2": -1.0}, {"smoothing": -0.1}])
def test_impossible_parameters_are_refused(made: Simulation, X: pd.DataFrame, settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Concord(**settings).fit(X, made.crowd)
