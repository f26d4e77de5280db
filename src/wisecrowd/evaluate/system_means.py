"""Means of systems from many scores of judges and few labels of people, with their covariance.

Every item gets a pseudo-label: the prediction by the judges, plus, for labelled items, the error of the prediction divided by the
probability of being labelled. The mean of pseudo-labels is unbiased for the mean label whatever the quality of the judges, and all
variances follow from the pseudo-labels, summed by cluster.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from wisecrowd.errors import DataWarning, InputError, check_choice, preview
from wisecrowd.evaluate.evaluation_items import EvaluationItems
from wisecrowd.evaluate.judge_predictions import CrossFitPredictions, cross_fit, make_features
from wisecrowd.evaluate.prediction_powered import MAX_DEGREES_OF_FREEDOM
from wisecrowd.evaluate.rater_variance import RaterVariance, estimate_rater_variance

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Target of the estimate: the source of the items, or exactly these items.
Population = Literal["source", "items"]
#: Raters to speak for: people like the raters, or exactly these raters.
Raters = Literal["population", "panel"]

#: The weight of the judges' predictions is at most this; the predictions are shrunken, so that more than one can be best.
MAX_WEIGHT = 2.0
#: Number of labels of all systems that the weight of one system's predictions is shrunken by.
SHARED_LABELS = 20.0
#: Smallest number of labelled items of a system, and number below which intervals are called rough.
MIN_LABELS, FEW_LABELS = 2, 20
#: Standardised difference of judges' scores between labelled and other items that a random sample practically never has.
MAX_IMBALANCE = 4.5


@dataclass(frozen=True, eq=False)
class SystemMeans:
    """Means of systems with their covariance.

    Attributes
    ----------
    estimate : ndarray of shape (n_systems,)
        Mean of each system.
    influence : csr_array of shape (n_clusters, n_systems)
        Contribution of each cluster to the error of each mean.
    is_labelled : ndarray of bool of shape (n_clusters,)
        Whether a cluster has labels.
    rater_loading : csr_array of shape (n_raters, n_systems)
        Weight of each rater in each mean.
    own_loading : ndarray of shape (n_systems, n_systems)
        Part of the products of loadings that the influences account for.
    rater_variance : RaterVariance
        Variance of raters' severity; zero if the raters are a fixed panel.
    prediction : ndarray of shape (n_items,)
        Expected label of every item by the judges.
    residual : ndarray of shape (n_items,)
        Label minus prediction; nan without a label.
    weight : ndarray of shape (n_systems,)
        Mean weight of the judges' predictions.
    inclusion : ndarray of shape (n_items,)
        Probability of being labelled, estimated where it was not given.
    """

    estimate: Array
    influence: Any
    is_labelled: NDArray[np.bool_]
    rater_loading: Any
    own_loading: Array
    rater_variance: RaterVariance
    prediction: Array
    residual: Array
    weight: Array
    inclusion: Array

    @property
    def covariance(self) -> Array:
        """Covariance of the means."""
        items = np.asarray((self.influence.T @ self.influence).toarray())
        return items + self.rater_covariance

    @property
    def rater_covariance(self) -> Array:
        """Covariance of the means by the severity of raters."""
        loading = np.asarray((self.rater_loading.T @ self.rater_loading).toarray())
        return np.asarray(self.rater_variance.between * (loading - self.own_loading))

    def describe_contrast(self, contrast: Array, *, least_freedom: float = 1.0) -> tuple[float, float]:
        """Return the variance of a linear combination of the means, and its degrees of freedom.

        Degrees of freedom account for the kurtosis of the errors (few large errors make a variance uncertain) and for the number
        of raters (Satterthwaite's formula).

        Parameters
        ----------
        contrast : ndarray of shape (n_systems,)
            Coefficients.
        least_freedom : float, default=1.0
            Lower bound of the degrees of freedom of the items.

        Returns
        -------
        tuple of two floats
        """
        error = np.asarray(self.influence @ contrast).ravel()
        by_items = float(error @ error)
        of_labelled = error[self.is_labelled]
        freedom = max(estimate_freedom(of_labelled), least_freedom)
        by_raters = max(float(contrast @ self.rater_covariance @ contrast), 0.0)
        if by_raters > 0 and self.rater_variance.degrees_of_freedom > 0:
            parts = by_items**2 / freedom + by_raters**2 / self.rater_variance.degrees_of_freedom
            freedom = (by_items + by_raters) ** 2 / parts
        if not self.rater_variance.on_common_items:
            freedom = min(freedom, self.rater_variance.degrees_of_freedom)
        return by_items + by_raters, float(min(freedom, MAX_DEGREES_OF_FREEDOM))


def estimate_freedom(error: Array) -> float:
    """Return the degrees of freedom of the mean square of errors, from their kurtosis.

    Parameters
    ----------
    error : ndarray of shape (n_errors,)
        Errors with mean zero.

    Returns
    -------
    float
        2n/(kurtosis − 1): about n for normal errors, more for errors of equal size, less for rare large ones.

    Examples
    --------
    >>> round(estimate_freedom(np.random.default_rng(0).normal(size=100_000)), -4)
    100000.0
    """
    square = error**2
    n = len(square)
    total = float(square.sum())
    if n < 2 or total == 0:
        return 1.0
    excess = float((square**2).sum()) - total**2 / n
    freedom = MAX_DEGREES_OF_FREEDOM if excess <= 0 else 2 * total**2 / excess
    return float(np.clip(freedom, 1.0, min(MAX_DEGREES_OF_FREEDOM, 20.0 * (n - 1))))


def estimate_system_means(
    items: EvaluationItems,
    *,
    use_judges: bool = True,
    population: Population = "source",
    raters: Raters = "population",
    random_state: int = 0,
) -> SystemMeans:
    """Estimate the mean label of every system.

    Parameters
    ----------
    items : EvaluationItems
        Items, scores and labels.
    use_judges : bool, default=True
        Whether scores of judges are used. Without them, the estimate is that of people's labels alone.
    population : {"source", "items"}, default="source"
        Whether the estimate is about the source of the items, such as a system that would answer further prompts, or about
        exactly these items.
    raters : {"population", "panel"}, default="population"
        Whether the estimate is about people like the raters, or about exactly these raters.
    random_state : int, default=0
        Seed of the folds.

    Returns
    -------
    SystemMeans

    Raises
    ------
    InputError
        If a system or a stratum has too few labels, or a probability of being labelled is invalid.
    """
    check_choice("population", population, ("source", "items"))
    check_choice("raters", raters, ("population", "panel"))
    cell, cell_system = _find_cells(items)
    inclusion = find_inclusion(items, cell, len(cell_system))
    labelled = np.flatnonzero(items.is_labelled)
    inverse = np.where(items.is_labelled, 1 / np.where(np.isnan(inclusion), 1.0, inclusion), 0.0)
    base = np.zeros(items.n_items)
    weight = np.zeros(len(items.systems))
    if use_judges:
        base, weight = _predict(items, inverse, np.random.default_rng(random_state))
    # Mean errors of the predictions by cell make them unbiased in every system and stratum.
    total_inverse = np.bincount(cell[labelled], weights=inverse[labelled], minlength=len(cell_system))
    error = np.full(items.n_items, np.nan)
    error[labelled] = items.label[labelled] - base[labelled]
    mean_error = (
        np.bincount(cell[labelled], weights=(inverse * error)[labelled], minlength=len(cell_system)) / total_inverse
    )
    prediction = base + mean_error[cell]
    residual = items.label - prediction
    n_cell = np.bincount(cell, minlength=len(cell_system))
    n_system = np.bincount(items.system, minlength=len(items.systems))
    # Inverse probabilities sum up to the number of items of the cell (Hájek).
    inverse *= (n_cell / total_inverse)[cell]
    correction = _correct_small_cells(items, cell, len(cell_system))[cell]
    pseudo_error = np.where(items.is_labelled, inverse * np.nan_to_num(residual) * correction, 0.0)
    estimate = np.bincount(items.system, weights=prediction, minlength=len(items.systems)) / n_system
    if population == "source":
        influence = (prediction - estimate[items.system] + pseudo_error) / n_system[items.system]
    else:
        share = np.sqrt(np.maximum(1 - 1 / np.maximum(inverse, 1.0), 0.0))
        influence = share * pseudo_error / n_system[items.system]
    names, cluster = np.unique(items.cluster, return_inverse=True)
    by_cluster = csr_array((influence, (cluster, items.system)), shape=(len(names), len(items.systems)))
    by_cluster.sum_duplicates()
    is_labelled = np.zeros(len(names), dtype=bool)
    is_labelled[cluster[labelled]] = True
    loading, own_loading = _find_loadings(items, inverse / n_system[items.system], cluster)
    variance = RaterVariance(0.0, 0.0, 0.0)
    if raters == "population":
        rating_error = items.rating - prediction[items.rating_item]
        variance = estimate_rater_variance(items.rating_item, items.rating_rater, rating_error)
    return SystemMeans(
        estimate=estimate, influence=by_cluster, is_labelled=is_labelled, rater_loading=loading, own_loading=own_loading,
        rater_variance=variance, prediction=prediction, residual=residual, weight=weight, inclusion=inclusion,
    )  # fmt: skip


def _find_cells(items: EvaluationItems) -> tuple[Codes, Codes]:
    """Return the cell (system and stratum) of every item, and the system of every cell; check that cells have labels."""
    n_strata = int(items.stratum.max(initial=0)) + 1
    codes, cell = np.unique(items.system * n_strata + items.stratum, return_inverse=True)
    n_labelled = np.bincount(items.system[items.is_labelled], minlength=len(items.systems))
    if (n_labelled < MIN_LABELS).any():
        name = items.systems[int(np.argmin(n_labelled))]
        raise InputError(
            f"the system {name!r} has {n_labelled.min()} labelled items; an interval needs {MIN_LABELS} or more, "
            f"better {FEW_LABELS}"
        )
    in_cell = np.bincount(cell[items.is_labelled], minlength=len(codes))
    if (in_cell < MIN_LABELS).any():
        position = int(np.argmin(in_cell))
        raise InputError(
            f"a stratum of the system {items.systems[codes[position] // n_strata]!r} has {in_cell[position]} labelled items; every "
            f"stratum needs {MIN_LABELS}: label more of them, or merge strata"
        )
    labelled = items.is_labelled
    pairs = np.unique(np.stack([items.system[labelled], items.cluster[labelled]]), axis=1)
    n_clusters = np.bincount(pairs[0], minlength=len(items.systems))
    name = items.systems[int(np.argmin(n_clusters))]
    if (n_clusters < MIN_LABELS).any():
        raise InputError(
            f"all labelled items of the system {name!r} belong to one cluster, so nothing shows how clusters differ; label "
            "items of several clusters"
        )
    if (n_clusters < FEW_LABELS).any():
        what = "labelled items" if n_clusters.min() == n_labelled.min() else "clusters with labels"
        warnings.warn(
            f"the system {name!r} has only {n_clusters.min()} {what}; intervals are rough below {FEW_LABELS}",
            DataWarning,
            stacklevel=4,
        )
    return cell.astype(np.int64), codes // n_strata


def find_inclusion(items: EvaluationItems, cell: Codes, n_cells: int) -> Array:
    """Return the probability of each item of being labelled; by default, the labelled share of its system and stratum.

    Parameters
    ----------
    items : EvaluationItems
        Items.
    cell : ndarray of int of shape (n_items,)
        System and stratum of each item, as one code.
    n_cells : int
        Number of cells.

    Returns
    -------
    ndarray of shape (n_items,)

    Raises
    ------
    InputError
        If a labelled item has no probability, or one outside of (0, 1].
    """
    if items.inclusion is None:
        share = np.bincount(cell[items.is_labelled], minlength=n_cells) / np.bincount(cell, minlength=n_cells)
        return np.asarray(share[cell], dtype=np.float64)
    probability = items.inclusion[items.is_labelled]
    is_valid = (probability > 0) & (probability <= 1)
    if not is_valid.all():
        invalid = items.task[items.is_labelled][~is_valid]
        raise InputError(
            f"the inclusion probability of labelled items must lie above 0 and at most at 1; {preview(invalid)} "
            f"have {preview(probability[~is_valid].tolist())}. Keep the column inclusion of the plan"
        )
    return items.inclusion


def _correct_small_cells(items: EvaluationItems, cell: Codes, n_cells: int) -> Array:
    """Return by how much errors of each cell are too small because their mean was subtracted."""
    labelled = items.is_labelled
    pairs = np.unique(np.stack([cell[labelled], items.cluster[labelled]]), axis=1)
    n = np.bincount(pairs[0], minlength=n_cells)
    return np.sqrt(n / np.maximum(n - 1, 1))


def _predict(items: EvaluationItems, inverse: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the weighted prediction of every item, and the mean weight of the predictions of each system."""
    maps = make_features(items.scores)
    fit = cross_fit(
        maps, items.label, group=items.system, cluster=items.cluster, weight=np.maximum(inverse, 1e-12), rng=rng
    )
    _warn_imbalance(items, fit.prediction, inverse)
    weight = tune_weights(fit, items.label, items.system, len(items.systems), inverse)
    return weight[fit.fold, items.system] * fit.prediction, weight[-1]


def tune_weights(fit: CrossFitPredictions, label: Array, group: Codes, n_groups: int, inverse: Array) -> Array:
    """Return the weights of predictions with the smallest variance (power tuning), each without one fold.

    Parameters
    ----------
    fit : CrossFitPredictions
        Predictions.
    label : ndarray of shape (n_items,)
        Labels, nan where absent.
    group : ndarray of int of shape (n_items,)
        Groups with weights of their own, shrunken to a common one.
    n_groups : int
        Number of groups.
    inverse : ndarray of shape (n_items,)
        Inverse of the probability of being labelled.

    Returns
    -------
    ndarray of shape (n_folds + 1, n_groups)
        Weight for each fold and, in the last row, for items without a label: the mean.
    """
    labelled = np.flatnonzero(fit.fold >= 0)
    fold, code = fit.fold[labelled], group[labelled]
    n_folds = int(fold.max(initial=0)) + 1
    x, y = fit.prediction[labelled], label[labelled]
    # Errors count with the square of the inverse probability in the variance.
    w = inverse[labelled] ** 2
    w = w / w.mean()
    total = np.maximum(np.bincount(code, weights=w, minlength=n_groups), 1e-300)
    x = x - (np.bincount(code, weights=w * x, minlength=n_groups) / total)[code]
    y = y - (np.bincount(code, weights=w * y, minlength=n_groups) / total)[code]
    cell = fold * n_groups + code

    def sum_without_fold(values: Array) -> Array:
        by_cell = np.bincount(cell, weights=values, minlength=n_folds * n_groups).reshape(n_folds, n_groups)
        return np.asarray(by_cell.sum(axis=0) - by_cell)

    product, square, count = sum_without_fold(w * x * y), sum_without_fold(w * x * x), sum_without_fold(np.ones(len(x)))
    all_square = square.sum(axis=1, keepdims=True)
    common = np.divide(
        product.sum(axis=1, keepdims=True), all_square, out=np.zeros_like(all_square), where=all_square > 0
    )
    # Shrinkage to the common weight, as if it had been seen on further labels of the same spread.
    prior = SHARED_LABELS * all_square / np.maximum(count.sum(axis=1, keepdims=True), 1.0)
    own = square + prior
    weight = np.divide(product + prior * common, own, out=np.zeros_like(own), where=own > 0)
    weight = np.clip(weight, 0.0, MAX_WEIGHT)
    return np.vstack([weight, weight.mean(axis=0)])


def _warn_imbalance(items: EvaluationItems, prediction: Array, inverse: Array) -> None:
    """Warn if the judges score labelled items unlike the others, which a random sample does not explain."""
    if items.inclusion is not None or items.is_labelled.all():
        return
    for code, name in enumerate(items.systems):
        rows = items.system == code
        chosen = rows & items.is_labelled
        n, rest = int(chosen.sum()), int(rows.sum() - chosen.sum())
        deviation = float(prediction[rows].std())
        if n < 2 or rest < 2 or deviation == 0 or items.stratum[rows].max() > items.stratum[rows].min():
            continue
        gap = (inverse[chosen] @ prediction[chosen]) / inverse[chosen].sum() - prediction[
            rows & ~items.is_labelled
        ].mean()
        if abs(gap) > MAX_IMBALANCE * deviation * np.sqrt(1 / n + 1 / rest):
            side = "higher" if gap > 0 else "lower"
            warnings.warn(
                f"judges score the labelled items of {name!r} much {side} than the others, so they are not a random sample and "
                "the estimate may be wrong. Label items at random, or give their probabilities in the column inclusion or their "
                "strata in the column stratum",
                DataWarning,
                stacklevel=5,
            )


def _find_loadings(items: EvaluationItems, item_weight: Array, cluster: Codes) -> tuple[Any, Array]:
    """Return the weight of every rater in every mean, and the products within clusters."""
    per_item = np.bincount(items.rating_item, minlength=items.n_items)
    share = item_weight[items.rating_item] / per_item[items.rating_item]
    system = items.system[items.rating_item]
    n_systems = len(items.systems)
    loading = csr_array((share, (items.rating_rater, system)), shape=(len(items.raters), n_systems))
    pair = items.rating_rater * (int(cluster.max(initial=0)) + 1) + cluster[items.rating_item]
    names, code = np.unique(pair, return_inverse=True)
    own = csr_array((share, (code, system)), shape=(len(names), n_systems))
    return loading, np.asarray((own.T @ own).toarray())
