"""The centre of a crowd's vectors: what an oracle among workers would look like (Han et al.)."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from wisecrowd.errors import UsageError, one_of

Centre = Literal["kde", "joint", "mean", "median"]
Array = NDArray[np.float64]
#: Points at which a density is looked at, along each coordinate.
GRID = 256
#: Steps of mean shift, and the move after which it has arrived.
STEPS, ARRIVED = 500, 1e-10


def centre(vectors: Array, kind: Centre = "kde", weight: Array | None = None, bandwidth: float | None = None) -> Array:
    """One vector for all, on the simplex as they are: (coordinates,).

    "kde" takes the mode of each coordinate's density by itself, as the paper does; "joint" the mode of the density of all
    together, by mean shift from every vector's weighted neighbourhood of the mean; "mean" and "median" are what they say.
    ``weight`` counts vectors, so that a whole number is as good as repeating one. ``bandwidth`` is Silverman's unless given,
    so that nobody has to look at the truth to choose it.

    >>> vectors = np.array([[0.7, 0.3], [0.7, 0.3], [0.1, 0.9]])
    >>> centre(vectors, "median").round(3).tolist(), centre(vectors, "mean").round(3).tolist()
    ([0.7, 0.3], [0.5, 0.5])
    """
    one_of("centre", kind, get_args(Centre))
    share = np.full(len(vectors), 1 / len(vectors)) if weight is None else np.asarray(weight, dtype=np.float64)
    if not share.sum() > 0:
        raise UsageError("no vector has a weight, so that they have no centre")
    share = share / share.sum()
    if kind == "mean":
        found = share @ vectors
    elif kind == "median":
        found = _medians(vectors, share)
    elif kind == "kde":
        found = np.array([_mode(column, share, _width(column, share, bandwidth)) for column in vectors.T])
    else:
        found = _joint_mode(vectors, share, bandwidth)
    found = np.maximum(found, 0)
    return found / found.sum() if found.sum() > 0 else share @ vectors


def _medians(vectors: Array, share: Array) -> Array:
    """Of each coordinate, the value below and above which half the weight lies; between two, their mean."""
    order = np.argsort(vectors, axis=0, kind="stable")
    values = np.take_along_axis(vectors, order, axis=0)
    below = np.cumsum(share[order], axis=0)
    columns = np.arange(vectors.shape[1])
    low = values[(below < 0.5 - 1e-12).sum(axis=0), columns]
    high = values[np.minimum((below <= 0.5 + 1e-12).sum(axis=0), len(values) - 1), columns]
    return np.asarray((low + high) / 2)


def _width(values: Array, share: Array, given: float | None) -> float:
    """Silverman's rule for one coordinate; the number of vectors is what their weights amount to."""
    if given is not None:
        return given
    mean = share @ values
    spread = float(np.sqrt(share @ (values - mean) ** 2))
    count = 1 / (share**2).sum()
    return float(0.9 * spread * count ** (-1 / 5))


def _mode(values: Array, share: Array, width: float) -> float:
    """Where the density of one coordinate is highest; of several such places, the lowest."""
    low, high = values.min(), values.max()
    if high - low < 1e-12 or width <= 0:
        return float(share @ values)
    at = np.linspace(low, high, GRID)
    # A histogram on a fine grid stands for the vectors, so that a million of them cost as much as a hundred.
    place = (values - low) / (high - low) * (GRID - 1)
    left = np.floor(place).astype(np.intp).clip(max=GRID - 2)
    part = place - left
    mass = np.bincount(left, share * (1 - part), GRID) + np.bincount(left + 1, share * part, GRID)
    density = np.exp(-(((at[:, None] - at) / width) ** 2) / 2) @ mass
    return float(at[int(np.argmax(density >= density.max() * (1 - 1e-12)))])


def _joint_mode(vectors: Array, share: Array, bandwidth: float | None) -> Array:
    """Mean shift, from the mean: the mode that the centre of mass leads to."""
    spread = float(np.sqrt((share @ (vectors - share @ vectors) ** 2).mean()))
    count, n_dims = 1 / (share**2).sum(), vectors.shape[1]
    width = bandwidth if bandwidth is not None else spread * (4 / (count * (n_dims + 2))) ** (1 / (n_dims + 4))
    here = share @ vectors
    if width <= 0:
        return np.asarray(here)
    for _ in range(STEPS):
        near = ((vectors - here) ** 2).sum(axis=1) / (2 * width**2)
        pull = share * np.exp(near.min() - near)
        there = pull @ vectors / pull.sum()
        if np.abs(there - here).max() < ARRIVED:
            break
        here = there
    return np.asarray(here)


def weights_of(counts: NDArray[Any], kind: Literal["none", "labels"]) -> Array | None:
    """How much each worker counts in the centre; who said nothing does not.

    >>> weights_of(np.array([3, 0]), "none").tolist()
    [1.0, 0.0]
    """
    one_of("weights", kind, ("none", "labels"))
    return (counts > 0).astype(np.float64) if kind == "none" else np.asarray(counts, dtype=np.float64)
