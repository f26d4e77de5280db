"""Centre of the mixtures of a crowd, at which an oracle worker is placed (Han et al.)."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from wisecrowd.errors import UsageError, check_choice

Centre = Literal["kde", "joint", "mean", "median"]
Array = NDArray[np.float64]
#: Points along each coordinate at which a density is evaluated.
GRID_SIZE = 256
#: Largest number of steps of mean shift, and the largest change at which it has converged.
MAX_STEPS, TOLERANCE = 500, 1e-10
#: Number of vectors from which mean shift starts besides the mean, and number of those among which they are chosen.
N_STARTS, MAX_CANDIDATES = 4, 64
#: Relative difference of densities that counts as rounding; of equal modes, the first start decides.
EQUAL_DENSITY = 1e-9
#: Distance of the quartiles of a normal distribution, in standard deviations.
NORMAL_QUARTILES = 1.34
#: Slack in comparisons of sums of shares, which are rounded.
SHARE_SLACK = 1e-12


def compute_centre(
    vectors: Array, kind: Centre = "kde", weight: Array | None = None, bandwidth: float | None = None
) -> Array:
    """Return the centre of vectors on the simplex.

    Parameters
    ----------
    vectors : ndarray of shape (n_vectors, n_coordinates)
        Vectors on the simplex.
    kind : {"kde", "joint", "mean", "median"}, default "kde"
        "kde" is the mode of the density of each coordinate, as in the paper. "joint" is the highest mode of the
        joint density that mean shift finds from the mean and from the vectors of the highest density.
    weight : ndarray of shape (n_vectors,), optional
        Weights; a whole number equals repeating a vector.
    bandwidth : float, optional
        Bandwidth of densities; Silverman's rule by default.

    Returns
    -------
    ndarray of shape (n_coordinates,)
        Vector on the simplex.

    Raises
    ------
    UsageError
        If all weights are zero.

    Examples
    --------
    >>> vectors = np.array([[0.7, 0.3], [0.7, 0.3], [0.1, 0.9]])
    >>> compute_centre(vectors, "median").round(3).tolist(), compute_centre(vectors, "mean").round(3).tolist()
    ([0.7, 0.3], [0.5, 0.5])
    """
    check_choice("centre", kind, get_args(Centre))
    share = np.full(len(vectors), 1 / len(vectors)) if weight is None else np.asarray(weight, dtype=np.float64)
    if not share.sum() > 0:
        raise UsageError("all weights are zero, so that there is no centre; give a positive weight to some vector")
    share = share / share.sum()
    if kind == "mean":
        centre = share @ vectors
    elif kind == "median":
        centre = _compute_medians(vectors, share)
    elif kind == "kde":
        widths = [_choose_bandwidth(column, share, bandwidth) for column in vectors.T]
        centre = np.array([_find_mode(column, share, width) for column, width in zip(vectors.T, widths, strict=True)])
    else:
        centre = _find_joint_mode(vectors, share, bandwidth)
    centre = np.maximum(centre, 0)
    return centre / centre.sum() if centre.sum() > 0 else share @ vectors


def _compute_medians(vectors: Array, share: Array) -> Array:
    """Return the weighted median of each coordinate; between two values, their mean."""
    return np.array([_find_quantile(column, share, 0.5) for column in vectors.T])


def _find_quantile(values: Array, share: Array, level: float) -> float:
    """Return a weighted quantile; between two values, their mean."""
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(share[order])
    low, high = np.searchsorted(cumulative, [level - SHARE_SLACK, level + SHARE_SLACK], side="right")
    return float((values[order[low]] + values[order[min(high, len(values) - 1)]]) / 2)


def _choose_bandwidth(values: Array, share: Array, bandwidth: float | None) -> float:
    """Return the bandwidth of one coordinate, by Silverman's rule with the effective number of vectors."""
    if bandwidth is not None:
        return bandwidth
    spread = float(np.sqrt(share @ (values - share @ values) ** 2))
    quartiles = (_find_quantile(values, share, 0.75) - _find_quantile(values, share, 0.25)) / NORMAL_QUARTILES
    count = 1 / (share**2).sum()
    return float(0.9 * min(spread, quartiles or spread) * count ** (-1 / 5))


def _find_mode(values: Array, share: Array, width: float) -> float:
    """Return the mode of the density of one coordinate; the lowest of several."""
    low, high = values.min(), values.max()
    if high - low < 1e-12 or width <= 0:
        return float(share @ values)
    at = np.linspace(low, high, GRID_SIZE)
    # The vectors are binned on the grid, so that the cost hardly depends on their number.
    position = (values - low) / (high - low) * (GRID_SIZE - 1)
    lower = np.floor(position).astype(np.intp).clip(max=GRID_SIZE - 2)
    fraction = position - lower
    mass = np.bincount(lower, share * (1 - fraction), GRID_SIZE) + np.bincount(lower + 1, share * fraction, GRID_SIZE)
    density = np.exp(-(((at[:, None] - at) / width) ** 2) / 2) @ mass
    return float(at[int(np.argmax(density >= density.max() * (1 - 1e-12)))])


def _find_joint_mode(vectors: Array, share: Array, bandwidth: float | None) -> Array:
    """Return the highest mode of the joint density that mean shift finds from several starts."""
    spread = float(np.sqrt((share @ (vectors - share @ vectors) ** 2).mean()))
    count, n_dims = 1 / (share**2).sum(), vectors.shape[1]
    width = bandwidth if bandwidth is not None else spread * (4 / (count * (n_dims + 2))) ** (1 / (n_dims + 4))
    mean = share @ vectors
    if width <= 0:
        return np.asarray(mean)
    points = np.concatenate([mean[None], _choose_starts(vectors, share, width)])
    for _ in range(MAX_STEPS):
        pull = share * _compute_kernels(points, vectors, width, scaled=True)
        shifted = pull @ vectors / pull.sum(axis=1, keepdims=True)
        step = np.abs(shifted - points).max()
        points = shifted
        if step < TOLERANCE:
            break
    density = _compute_kernels(points, vectors, width) @ share
    return np.asarray(points[int(np.argmax(density >= density.max() * (1 - EQUAL_DENSITY)))])


def _choose_starts(vectors: Array, share: Array, width: float) -> Array:
    """Return the vectors of the highest density, of at most `MAX_CANDIDATES` that do not depend on their order."""
    candidates = np.unique(vectors[share > 0], axis=0)
    rows = np.linspace(0, len(candidates) - 1, min(len(candidates), MAX_CANDIDATES)).astype(np.intp)
    candidates = candidates[rows]
    density = _compute_kernels(candidates, vectors, width) @ share
    return np.asarray(candidates[np.argsort(-density, kind="stable")[:N_STARTS]])


def _compute_kernels(points: Array, vectors: Array, width: float, *, scaled: bool = False) -> Array:
    """Return the kernel of each point and vector, (n_points, n_vectors); scaled, the largest of a point is one."""
    from scipy.spatial.distance import cdist

    exponent = cdist(points, vectors, "sqeuclidean") / (2 * width**2)
    return np.exp(-(exponent - exponent.min(axis=1, keepdims=True) if scaled else exponent))


def compute_centre_weights(counts: NDArray[Any], kind: Literal["none", "labels"]) -> Array:
    """Return the weight of each worker in the centre; zero for a worker without votes.

    Parameters
    ----------
    counts : ndarray of shape (n_workers,)
        Number of votes of each worker.
    kind : {"none", "labels"}
        Equal weights, or the number of votes.

    Returns
    -------
    ndarray of shape (n_workers,)

    Examples
    --------
    >>> compute_centre_weights(np.array([3, 0]), "none").tolist()
    [1.0, 0.0]
    """
    check_choice("weights", kind, ("none", "labels"))
    return (counts > 0).astype(np.float64) if kind == "none" else np.asarray(counts, dtype=np.float64)
