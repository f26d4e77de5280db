"""Variance between raters, which more labels by the same raters do not reduce."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class RaterVariance:
    """Components of the variance of labels on one item.

    Attributes
    ----------
    between : float
        Variance of raters' severity.
    within : float
        Variance of a rater's labels around severity and item.
    degrees_of_freedom : float
        Degrees of freedom of ``between``.
    on_common_items : bool
        Whether raters were compared on common items. Otherwise ``between`` is rough, and may be zero by chance.
    """

    between: float
    within: float
    degrees_of_freedom: float
    on_common_items: bool = True


def estimate_rater_variance(item: Codes, rater: Codes, residual: Array) -> RaterVariance:
    """Estimate the variance of raters' severity by the method of moments.

    Raters are compared on common items. If no item has two raters, the mean residuals of raters are compared, which assumes that
    items were assigned to raters at random. The cost is proportional to the pairs of raters on common items.

    Parameters
    ----------
    item, rater : ndarray of int of shape (n_ratings,)
        Item and rater of each label.
    residual : ndarray of shape (n_ratings,)
        Label minus the prediction for the item.

    Returns
    -------
    RaterVariance

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> item, rater = np.repeat(np.arange(400), 2), rng.integers(0, 40, 800)
    >>> severity = rng.normal(0, 0.5, 40)
    >>> variance = estimate_rater_variance(item, rater, severity[rater] + rng.normal(0, 1, 800))
    >>> 0.1 < variance.between < 0.45
    True
    """
    raters, rater = np.unique(rater, return_inverse=True)
    n_raters = len(raters)
    if n_raters < 2:
        return RaterVariance(0.0, float(np.var(residual)), 0.0)
    _, item = np.unique(item, return_inverse=True)
    if np.bincount(item).max() < 2:
        return _compare_means(rater, residual, n_raters)
    return _compare_on_items(item, rater, residual, n_raters)


def _compare_means(rater: Codes, residual: Array, n_raters: int) -> RaterVariance:
    """Return the components by a one-way analysis of variance."""
    count = np.bincount(rater, minlength=n_raters)
    mean = np.bincount(rater, weights=residual, minlength=n_raters) / count
    n = len(residual)
    if n == n_raters:
        return RaterVariance(0.0, float(np.var(residual)), 0.0)
    within = float(((residual - mean[rater]) ** 2).sum() / (n - n_raters))
    between_square = float((count * (mean - residual.mean()) ** 2).sum() / (n_raters - 1))
    size = (n - (count**2).sum() / n) / (n_raters - 1)
    return RaterVariance(max((between_square - within) / size, 0.0), within, float(n_raters - 1), on_common_items=False)


def _compare_on_items(item: Codes, rater: Codes, residual: Array, n_raters: int) -> RaterVariance:
    """Return the components from deviations within items.

    With C = diag(n_r) − Nᵀ diag(1/m_t) N, the sums q of deviations by rater have E[q qᵀ] = σ_r² C C + σ_e² C, and the deviations
    themselves E[SS] = σ_r² tr C + σ_e² (n − items): two equations in two unknowns.
    """
    from scipy.sparse import csr_array

    n_items = int(item.max()) + 1
    per_item = np.bincount(item, minlength=n_items)
    deviation = residual - (np.bincount(item, weights=residual, minlength=n_items) / per_item)[item]
    table = csr_array((np.ones(len(item)), (item, rater)), shape=(n_items, n_raters))
    scaled = table.multiply(1.0 / np.sqrt(per_item)[:, None]).tocsr()
    common = -(scaled.T @ scaled).tocsr()
    count = np.bincount(rater, minlength=n_raters).astype(np.float64)
    diagonal = count + common.diagonal()
    row_square = np.asarray(common.multiply(common).sum(axis=1)).ravel() - common.diagonal() ** 2 + diagonal**2
    is_compared = diagonal > 1e-9
    sums = np.bincount(rater, weights=deviation, minlength=n_raters)
    quadratic = float((sums[is_compared] ** 2 / diagonal[is_compared]).sum())
    coefficients = np.array([
        [float((row_square[is_compared] / diagonal[is_compared]).sum()), float(is_compared.sum())],
        [float(diagonal.sum()), float(len(item) - n_items)],
    ])  # fmt: skip
    moments = np.array([quadratic, float(deviation @ deviation)])
    freedom = float(max(is_compared.sum() - 1, 0))
    if (
        abs(np.linalg.det(coefficients)) < 1e-9 * np.abs(coefficients).max() ** 2
    ):  # two raters on every item: nothing tells the two apart
        return RaterVariance(0.0, float(moments[1] / max(coefficients[1, 1], 1.0)), freedom)
    between, within = np.linalg.solve(coefficients, moments)
    return RaterVariance(max(float(between), 0.0), max(float(within), 0.0), freedom)
