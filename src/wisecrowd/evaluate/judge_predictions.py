"""Predictions of people's labels from the scores of judges, cross-fitted so that no label predicts itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Number of folds of cross-fitting for few labels, and for many, where a twentieth of the labels matters less than time.
FEW_LABEL_FOLDS, MANY_LABEL_FOLDS, MANY_LABELS = 20, 5, 5000
#: Prior on the share of the labels' variance that the judges explain, which sets the ridge penalty. A quarter is typical; strong
#: evidence of the labels for another share takes over, weak evidence would only add noise to the penalty.
EXPLAINED_SHARES = np.array([0.05, 0.25, 0.5, 0.8])
EXPLAINED_SHARE_PRIOR = np.array([0.04, 0.9, 0.03, 0.03])
#: A judge without scores on more than this share of the items has a feature that says so.
MISSING_SHARE = 0.01


@dataclass(frozen=True, eq=False)
class CrossFitPredictions:
    """Predictions of labels.

    Attributes
    ----------
    prediction : ndarray of shape (n_items,)
        Prediction up to a constant. Labelled items are predicted by a model that was fitted without their cluster, the others
        by the mean of all models.
    fold : ndarray of int of shape (n_items,)
        Fold of labelled items, −1 for the others.
    """

    prediction: Array
    fold: Codes


def make_features(scores: Array) -> tuple[Array, Array]:
    """Return standardised scores, and standardised ranks, as features.

    Ranks help where judges use a scale differently, numbers where distances on the scale matter; the labels decide.

    Parameters
    ----------
    scores : ndarray of shape (n_items, n_judges)
        Scores, nan where absent.

    Returns
    -------
    tuple of two ndarrays of shape (n_items, n_features)

    Examples
    --------
    >>> numbers, ranks = make_features(np.array([[0.0], [1.0], [8.0]]))
    >>> ranks.round(2).ravel().tolist()
    [-1.22, 0.0, 1.22]
    """
    from scipy.stats import rankdata

    is_missing = np.isnan(scores)
    ranks = rankdata(scores, axis=0, nan_policy="omit") if len(scores) else scores
    flags = is_missing[:, is_missing.mean(axis=0) > MISSING_SHARE].astype(np.float64) if len(scores) else scores[:, :0]
    numbers, ranks = (standardize(np.where(is_missing, np.nan, values)) for values in (scores, ranks))
    flags = standardize(flags)
    return np.hstack([numbers, flags]), np.hstack([ranks, flags])


def standardize(values: Array) -> Array:
    """Return columns with mean zero and variance one; absent values become zero, and constant columns are dropped.

    Parameters
    ----------
    values : ndarray of shape (n_items, n_columns)
        Values, nan where absent.

    Returns
    -------
    ndarray of shape (n_items, n_varying_columns)
    """
    is_given = ~np.isnan(values)
    count = np.maximum(is_given.sum(axis=0), 1)
    centred = np.where(is_given, values - np.where(is_given, values, 0.0).sum(axis=0) / count, 0.0)
    deviation = np.sqrt((centred**2).sum(axis=0) / count)
    varies = deviation > 1e-12
    return np.asarray(centred[:, varies] / deviation[varies])


def assign_folds(cluster: Codes, labelled: Codes, rng: np.random.Generator) -> Codes:
    """Divide labelled items into folds that keep clusters together.

    Parameters
    ----------
    cluster : ndarray of int of shape (n_items,)
        Cluster of each item.
    labelled : ndarray of int of shape (n_labelled,)
        Labelled items.
    rng : Generator
        Source of the division.

    Returns
    -------
    ndarray of int of shape (n_items,)
        −1 for items without a label.
    """
    fold = np.full(len(cluster), -1, dtype=np.int64)
    names, code = np.unique(cluster[labelled], return_inverse=True)
    n_folds = min(FEW_LABEL_FOLDS if len(labelled) < MANY_LABELS else MANY_LABEL_FOLDS, len(names))
    fold[labelled] = rng.permutation(np.arange(len(names)) % max(n_folds, 1))[code]
    return fold


def cross_fit(
    feature_maps: Sequence[Array],
    label: Array,
    *,
    group: Codes | None,
    cluster: Codes,
    weight: Array,
    rng: np.random.Generator,
) -> CrossFitPredictions:
    """Predict labels by ridge regressions on judges' scores, without the fold of each labelled item.

    The prior of the coefficients follows from the share of variance that the judges explain. Predictions are averaged over
    such shares and over the feature maps, with weights by the evidence of the other folds.

    Parameters
    ----------
    feature_maps : sequence of ndarray of shape (n_items, n_features)
        Alternative features.
    label : ndarray of shape (n_items,)
        Labels, nan where absent.
    group : ndarray of int of shape (n_items,) or None
        Groups whose means are removed from labels and features. None leaves them, for symmetric comparisons.
    cluster : ndarray of int of shape (n_items,)
        Clusters, which stay in one fold.
    weight : ndarray of shape (n_items,)
        Weights of labelled items, the inverse of their probability of being labelled.
    rng : Generator
        Source of the folds.

    Returns
    -------
    CrossFitPredictions
    """
    labelled = np.flatnonzero(~np.isnan(label))
    fold = assign_folds(cluster, labelled, rng)
    prediction = np.zeros(len(label))
    n_folds = int(fold.max(initial=-1)) + 1
    if n_folds < 2 or not any(features.shape[1] for features in feature_maps):
        return CrossFitPredictions(prediction, fold)
    mean_coefs = [np.zeros(features.shape[1]) for features in feature_maps]
    for number in range(n_folds):
        train, test = labelled[fold[labelled] != number], labelled[fold[labelled] == number]
        coefs = _fit_ridges(
            [features[train] for features in feature_maps],
            label[train],
            None if group is None else group[train],
            weight[train],
        )
        for features, coef, total in zip(feature_maps, coefs, mean_coefs, strict=True):
            prediction[test] += features[test] @ coef
            total += coef / n_folds
    is_unlabelled = fold < 0
    prediction[is_unlabelled] = sum(
        (features[is_unlabelled] @ coef for features, coef in zip(feature_maps, mean_coefs, strict=True)),
        np.zeros(int(is_unlabelled.sum())),
    )
    return CrossFitPredictions(prediction, fold)


def _fit_ridges(feature_maps: Sequence[Array], label: Array, group: Codes | None, weight: Array) -> list[Array]:
    """Return coefficients for each feature map, multiplied by the posterior probability of the map."""
    root = np.sqrt(weight / weight.mean())
    target = root * remove_group_means(label[:, None], group, weight)[:, 0]
    total = float(target @ target)
    n = len(label)
    solutions, evidences = [], []
    for features in feature_maps:
        n_features = max(features.shape[1], 1)
        penalty = n_features * (1 - EXPLAINED_SHARES) / EXPLAINED_SHARES
        design = root[:, None] * remove_group_means(features, group, weight)
        eigenvalue, vectors = np.linalg.eigh(design.T @ design)
        eigenvalue = np.maximum(eigenvalue, 0.0)
        projection = vectors.T @ (design.T @ target)
        solutions.append(vectors @ (projection[:, None] / (eigenvalue[:, None] + penalty)))
        # Evidence of labels ~ N(0, s² (I + X Xᵀ / penalty)) with the flat prior on log s.
        explained = (projection[:, None] ** 2 / (eigenvalue[:, None] + penalty)).sum(axis=0)
        unexplained = np.maximum(total - explained, 1e-12 * max(total, 1e-300))
        log_evidence = -0.5 * np.log1p(eigenvalue[:, None] / penalty).sum(axis=0) - 0.5 * (n - 1) * np.log(unexplained)
        evidences.append(log_evidence + np.log(EXPLAINED_SHARE_PRIOR))
    log_evidence = np.stack(evidences)
    posterior = np.exp(log_evidence - log_evidence.max())
    posterior /= posterior.sum()
    return [solution @ share for solution, share in zip(solutions, posterior, strict=True)]


def remove_group_means(values: Array, group: Codes | None, weight: Array) -> Array:
    """Return columns minus the weighted means of their groups.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns)
        Values.
    group : ndarray of int of shape (n_rows,) or None
        Group of each row; None returns the values as they are.
    weight : ndarray of shape (n_rows,)
        Weights of the rows.

    Returns
    -------
    ndarray of shape (n_rows, n_columns)

    Examples
    --------
    >>> remove_group_means(np.array([[1.0], [3.0], [5.0]]), np.array([0, 0, 1]), np.ones(3)).ravel().tolist()
    [-1.0, 1.0, 0.0]
    """
    if group is None:
        return values
    _, code, size = np.unique(group, return_inverse=True, return_counts=True)
    order, starts = np.argsort(code, kind="stable"), np.cumsum(size) - size
    sums = np.add.reduceat((weight[:, None] * values)[order], starts, axis=0) if len(code) else values
    means = sums / np.bincount(code, weights=weight)[:, None]
    return np.asarray(values - means[code])
