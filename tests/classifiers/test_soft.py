"""Soft classifiers: against scikit-learn, against brute force, and at their edges."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from wisecrowd.classifiers.soft import Expanded, Logistic, Standardiser, soft_classifier
from wisecrowd.errors import UsageError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 5)) @ RNG.normal(size=(5, 5)) + 3
TARGETS = RNG.dirichlet([0.5, 0.5, 0.5], size=120)


def loss(model: Logistic, weight: np.ndarray | None = None) -> float:
    share = np.log(model.predict_proba(X))
    weight = np.ones(len(X)) if weight is None else weight
    return float(-(weight[:, None] * TARGETS * share).sum() - model.log_prior())


class TestLogistic:
    def test_equals_scikit_learn_on_expanded_rows(self) -> None:
        rows = Standardiser().fit(X).apply(X)
        theirs = LogisticRegression(C=1 / 2.0, tol=1e-10, max_iter=10_000)
        theirs.fit(np.repeat(rows, 3, axis=0), np.tile(np.arange(3), len(X)), sample_weight=TARGETS.ravel())
        ours = Logistic(l2=2.0, max_iter=2000, tol=1e-10).fit(X, TARGETS)
        assert np.allclose(ours.predict_proba(X), theirs.predict_proba(rows), atol=1e-4)

    def test_nothing_near_the_optimum_is_better(self) -> None:
        model = Logistic(l2=0.7, max_iter=2000).fit(X, TARGETS)
        best, coefficients = loss(model), model.coefficients
        assert coefficients is not None
        for seed in range(5):
            model.coefficients = coefficients + 0.05 * np.random.default_rng(seed).normal(size=coefficients.shape)
            assert loss(model) > best

    def test_weights_equal_repetition(self) -> None:
        weight = RNG.integers(1, 4, size=len(X)).astype(float)
        repeated = np.repeat(np.arange(len(X)), weight.astype(int))
        standardiser = Standardiser().fit(X)
        settings = {"l2": 1.0, "max_iter": 2000, "tol": 1e-9}
        weighted = Logistic(**settings, standardiser=standardiser).fit(X, TARGETS, weight)
        plain = Logistic(**settings, standardiser=standardiser).fit(X[repeated], TARGETS[repeated])
        assert np.allclose(weighted.predict_proba(X), plain.predict_proba(X), atol=1e-5)

    def test_a_second_fit_goes_on_and_ends_where_a_fresh_one_does(self) -> None:
        other = np.roll(TARGETS, 1, axis=1)
        again = Logistic(max_iter=2000).fit(X, other).fit(X, TARGETS)
        assert np.allclose(again.predict_proba(X), Logistic(max_iter=2000).fit(X, TARGETS).predict_proba(X), atol=1e-4)

    def test_many_features_do_without_axes(self) -> None:
        wide = RNG.normal(size=(30, 1600))
        model = Logistic(l2=1.0).fit(wide, np.eye(3)[np.arange(30) % 3])
        assert (model.predict_proba(wide).argmax(axis=1) == np.arange(30) % 3).all()

    def test_a_constant_feature_gives_the_class_shares(self) -> None:
        model = Logistic(max_iter=2000, tol=1e-12).fit(np.ones((120, 1)), TARGETS)
        assert np.allclose(model.predict_proba(np.ones((1, 1))), TARGETS.mean(axis=0), atol=1e-5)

    def test_arrays_bring_it_back(self) -> None:
        model = Logistic().fit(X, TARGETS)
        assert np.array_equal(Logistic().restore(model.arrays()).predict_proba(X), model.predict_proba(X))


class TestExpanded:
    def test_soft_targets_reach_the_classifier_as_weights(self) -> None:
        found = Expanded(DecisionTreeClassifier(max_depth=1, random_state=0)).fit(X, TARGETS).predict_proba(X)
        leaves = np.unique(found.round(12), axis=0)
        assert len(leaves) == 2
        for leaf in leaves:
            rows = np.isclose(found, leaf).all(axis=1)
            assert np.allclose(TARGETS[rows].mean(axis=0), leaf, atol=1e-5)

    def test_a_class_nobody_names_has_no_probability(self) -> None:
        targets = np.column_stack([TARGETS[:, :2] / TARGETS[:, :2].sum(axis=1, keepdims=True), np.zeros(len(X))])
        assert (Expanded(LogisticRegression()).fit(X, targets).predict_proba(X)[:, 2] == 0).all()

    def test_what_has_no_probabilities_is_refused(self) -> None:
        with pytest.raises(UsageError, match="must have predict_proba, and LinearSVC has none"):
            soft_classifier(LinearSVC())

    def test_what_takes_no_weights_is_refused(self) -> None:
        from sklearn.neighbors import KNeighborsClassifier

        with pytest.raises(UsageError, match="KNeighborsClassifier does not"):
            soft_classifier(KNeighborsClassifier()).fit(X, TARGETS)

    def test_it_is_not_saved(self) -> None:
        with pytest.raises(UsageError, match="cannot be saved as arrays"):
            Expanded(LogisticRegression()).fit(X, TARGETS).arrays()
