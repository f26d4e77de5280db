"""Classifiers of scikit-learn on soft targets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from wisecrowd.classifiers.sklearn_classifier import SklearnClassifier
from wisecrowd.errors import UsageError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 5)) @ RNG.normal(size=(5, 5)) + 3
TARGETS = RNG.dirichlet([0.5, 0.5, 0.5], size=120)


def test_soft_targets_reach_the_classifier_as_weights() -> None:
    found = SklearnClassifier(DecisionTreeClassifier(max_depth=1, random_state=0)).fit(X, TARGETS).predict_proba(X)
    leaves = np.unique(found.round(12), axis=0)
    assert len(leaves) == 2
    for leaf in leaves:
        rows = np.isclose(found, leaf).all(axis=1)
        assert np.allclose(TARGETS[rows].mean(axis=0), leaf, atol=1e-5)


def test_a_class_nobody_names_has_no_probability() -> None:
    targets = np.column_stack([TARGETS[:, :2] / TARGETS[:, :2].sum(axis=1, keepdims=True), np.zeros(len(X))])
    assert (SklearnClassifier(LogisticRegression()).fit(X, targets).predict_proba(X)[:, 2] == 0).all()


@pytest.mark.parametrize(
    "pipeline",
    [
        make_pipeline(StandardScaler(), LogisticRegression()),
        make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), LogisticRegression())),
        GridSearchCV(make_pipeline(StandardScaler(), LogisticRegression()), {"logisticregression__C": [1.0]}, cv=2),
    ],
    ids=["pipeline", "pipeline in pipeline", "search"],
)
def test_weights_reach_the_last_step_of_a_pipeline(pipeline: Any) -> None:
    scaled = LogisticRegression().fit(*_weighted(StandardScaler().fit(np.repeat(X, 3, axis=0)).transform(X)))
    expected = scaled.predict_proba(StandardScaler().fit(np.repeat(X, 3, axis=0)).transform(X))
    actual = SklearnClassifier(pipeline).fit(X, TARGETS).predict_proba(X)
    np.testing.assert_allclose(actual, expected, atol=1e-3)


def _weighted(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.repeat(rows, 3, axis=0), np.tile(np.arange(3), len(rows)), TARGETS.ravel()


def test_a_classifier_without_weights_gets_labels_drawn_from_the_targets() -> None:
    sharp = np.eye(3)[TARGETS.argmax(axis=1)]
    nearest = SklearnClassifier(KNeighborsClassifier(1)).fit(X, sharp)
    np.testing.assert_array_equal(nearest.predict_proba(X), sharp)
    task, label = nearest._draw_labels(np.tile([0.2, 0.0, 0.8], (5000, 1)))
    np.testing.assert_array_equal(task, np.arange(5000))
    assert np.bincount(label, minlength=3) / 5000 == pytest.approx([0.2, 0, 0.8], abs=0.02)


def test_tasks_are_drawn_by_their_weight() -> None:
    task, _ = SklearnClassifier(KNeighborsClassifier())._draw_labels(np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 0.5]]))
    assert np.bincount(task, minlength=3).tolist() in ([0, 2, 1], [0, 3, 0])


def test_one_class_needs_no_fit() -> None:
    classifier = SklearnClassifier(LogisticRegression()).fit(X, np.eye(3)[np.ones(len(X), dtype=int)])
    assert (classifier.predict_proba(X) == [0, 1, 0]).all()


def test_sparse_rows_stay_sparse() -> None:
    dense = SklearnClassifier(LogisticRegression()).fit(X, TARGETS).predict_proba(X)
    rows = sparse.csr_array(X)
    np.testing.assert_allclose(
        SklearnClassifier(LogisticRegression()).fit(rows, TARGETS).predict_proba(rows), dense, atol=1e-3
    )
    with pytest.raises(UsageError, match="GaussianNB refused the features"):
        SklearnClassifier(GaussianNB()).fit(rows, TARGETS)


def test_a_pipeline_without_probabilities_is_refused() -> None:
    with pytest.raises(UsageError, match=r"Pipeline has no predict_proba.*CalibratedClassifierCV"):
        SklearnClassifier(make_pipeline(StandardScaler(), LinearSVC(random_state=0))).fit(X, TARGETS)


def test_it_is_not_saved() -> None:
    with pytest.raises(UsageError, match="cannot be saved as arrays"):
        SklearnClassifier(LogisticRegression()).fit(X, TARGETS).arrays()
