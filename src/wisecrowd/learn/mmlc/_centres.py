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
        "kde" is the mode of the density of each coordinate, as in the paper. "joint" is the mode of the joint
        density, by mean shift from the mean.
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
    order = np.argsort(vectors, axis=0, kind="stable")
    values = np.take_along_axis(vectors, order, axis=0)
    cumulative = np.cumsum(share[order], axis=0)
    columns = np.arange(vectors.shape[1])
    low = values[(cumulative < 0.5 - SHARE_SLACK).sum(axis=0), columns]
    high = values[np.minimum((cumulative <= 0.5 + SHARE_SLACK).sum(axis=0), len(values) - 1), columns]
    return np.asarray((low + high) / 2)


def _choose_bandwidth(values: Array, share: Array, bandwidth: float | None) -> float:
    """Return the bandwidth of one coordinate, by Silverman's rule with the effective number of vectors."""
    if bandwidth is not None:
        return bandwidth
    mean = share @ values
    spread = float(np.sqrt(share @ (values - mean) ** 2))
    count = 1 / (share**2).sum()
    return float(0.9 * spread * count ** (-1 / 5))


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
    """Return the mode of the joint density that mean shift reaches from the mean."""
    spread = float(np.sqrt((share @ (vectors - share @ vectors) ** 2).mean()))
    count, n_dims = 1 / (share**2).sum(), vectors.shape[1]
    width = bandwidth if bandwidth is not None else spread * (4 / (count * (n_dims + 2))) ** (1 / (n_dims + 4))
    point = share @ vectors
    if width <= 0:
        return np.asarray(point)
    for _ in range(MAX_STEPS):
        distance = ((vectors - point) ** 2).sum(axis=1) / (2 * width**2)
        pull = share * np.exp(distance.min() - distance)
        shifted = pull @ vectors / pull.sum()
        if np.abs(shifted - point).max() < TOLERANCE:
            break
        point = shifted
    return np.asarray(point)


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
