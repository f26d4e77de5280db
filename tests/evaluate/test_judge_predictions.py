from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.evaluate.judge_predictions import assign_folds, cross_fit, make_features, standardize


def test_features_of_missing_scores() -> None:
    scores = np.array([[1.0, np.nan, 5.0], [2.0, 3.0, 5.0], [9.0, 7.0, 5.0], [4.0, np.nan, 5.0]])
    numbers, ranks = make_features(scores)
    assert numbers.shape == ranks.shape == (4, 3)  # two judges who vary, and a flag of missing scores
    assert numbers[0, 1] == ranks[3, 1] == 0
    assert numbers.mean(axis=0) == pytest.approx(np.zeros(3), abs=1e-12)


def test_constant_columns_are_dropped() -> None:
    assert standardize(np.ones((5, 2))).shape == (5, 0)


def test_folds_keep_clusters_together() -> None:
    cluster = np.repeat(np.arange(30), 3)
    labelled = np.arange(0, 60)
    fold = assign_folds(cluster, labelled, np.random.default_rng(0))
    assert (fold[60:] == -1).all()
    assert all(len(set(fold[cluster == name])) == 1 for name in range(20))
    assert len(set(fold[labelled])) == 20


def test_no_label_predicts_itself() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 5))
    label = np.r_[rng.normal(size=40), np.full(20, np.nan)]
    arguments = {"group": np.zeros(60, dtype=int), "cluster": np.arange(60), "weight": np.ones(60)}
    before = cross_fit([features], label, **arguments, rng=np.random.default_rng(1))
    label[3] += 100
    after = cross_fit([features], label, **arguments, rng=np.random.default_rng(1))
    same_fold = before.fold == before.fold[3]
    np.testing.assert_allclose(after.prediction[same_fold], before.prediction[same_fold])
    assert (after.prediction[~same_fold] != before.prediction[~same_fold]).all()


def test_good_judges_predict_labels() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=500)
    scores = truth[:, None] + rng.normal(0, 0.5, (500, 4))
    label = np.where(np.arange(500) < 100, truth, np.nan)
    fit = cross_fit(
        make_features(scores), label, group=np.zeros(500, dtype=int), cluster=np.arange(500), weight=np.ones(500),
        rng=np.random.default_rng(0),
    )  # fmt: skip
    assert np.corrcoef(fit.prediction, truth)[0, 1] > 0.95


def test_without_features_nothing_is_predicted() -> None:
    label = np.array([0.0, 1.0, np.nan])
    fit = cross_fit(
        [np.empty((3, 0))], label, group=None, cluster=np.arange(3), weight=np.ones(3), rng=np.random.default_rng(0)
    )
    assert fit.prediction.tolist() == [0, 0, 0]
