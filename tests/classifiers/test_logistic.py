"""Logistic regression on soft targets, against scikit-learn and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from wisecrowd.classifiers.logistic import Logistic
from wisecrowd.classifiers.standardiser import Standardiser

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


def test_sparse_features_have_the_optimum_of_dense_ones_with_one_scale() -> None:
    rng = np.random.default_rng(3)
    X = sparse.random_array((80, 12), density=0.2, rng=rng, format="csr")
    targets = rng.dirichlet([1.0, 1.0], size=80)
    fitted = Logistic(l2=1.0).fit(X, targets)
    dense = Logistic(l2=1.0, standardiser=Standardiser(np.zeros(12), np.full(12, fitted.standardiser.scale[0])))
    np.testing.assert_allclose(
        fitted.predict_proba(X), dense.fit(X.toarray(), targets).predict_proba(X.toarray()), atol=1e-4
    )
    variances = X.toarray().var(axis=0)
    assert fitted.standardiser.scale == pytest.approx(np.sqrt(variances.mean()))


def test_many_sparse_features_are_never_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    X = sparse.random_array((20, 100_000), density=1e-4, rng=np.random.default_rng(0), format="csr")
    monkeypatch.setattr(sparse.csr_array, "toarray", None)
    targets = np.eye(2)[np.arange(20) % 2]
    assert Logistic(max_iter=3).fit(X, targets).predict_proba(X).shape == (20, 2)
