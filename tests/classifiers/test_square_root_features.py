"""Classifier on square roots of the features."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.classifiers.logistic import Logistic
from wisecrowd.classifiers.square_root_features import SquareRootFeatures

RNG = np.random.default_rng(0)
X = RNG.normal(scale=3, size=(40, 3))
TARGETS = RNG.dirichlet(np.ones(2), 40)
ROOTS = np.where(X < 0, -1, 1) * abs(X) ** 0.5


def test_it_equals_the_inner_classifier_on_signed_roots() -> None:
    weight = RNG.uniform(size=40)
    outer = SquareRootFeatures(Logistic(l2=0.1)).fit(X, TARGETS, weight)
    inner = Logistic(l2=0.1).fit(ROOTS, TARGETS, weight)
    np.testing.assert_allclose(outer.predict_proba(X), inner.predict_proba(ROOTS))
    assert outer.log_prior() == pytest.approx(inner.log_prior())
    assert outer.log_prior() < 0


def test_arrays_restore_the_predictions() -> None:
    fitted = SquareRootFeatures(Logistic(l2=0.1)).fit(X, TARGETS)
    restored = SquareRootFeatures(Logistic(l2=0.1)).restore(fitted.arrays())
    np.testing.assert_array_equal(restored.predict_proba(X), fitted.predict_proba(X))


def test_a_clone_has_the_settings_and_nothing_fitted() -> None:
    fitted = SquareRootFeatures(Logistic(l2=0.25)).fit(X, TARGETS)
    clone = fitted.clone_unfitted()
    assert clone.inner is not fitted.inner
    assert clone.inner.l2 == 0.25
    np.testing.assert_allclose(clone.fit(X, TARGETS).predict_proba(X), fitted.predict_proba(X), atol=1e-6)
