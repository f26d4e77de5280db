"""Classifiers of scikit-learn on soft targets."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
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


def test_what_takes_no_weights_is_refused() -> None:
    with pytest.raises(UsageError, match="KNeighborsClassifier does not accept sample_weight"):
        SklearnClassifier(KNeighborsClassifier()).fit(X, TARGETS)


def test_it_is_not_saved() -> None:
    with pytest.raises(UsageError, match="cannot be saved as arrays"):
        SklearnClassifier(LogisticRegression()).fit(X, TARGETS).arrays()
