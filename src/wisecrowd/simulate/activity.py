"""How much each worker works: uniform, or a few do most of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wisecrowd.errors import UsageError
from wisecrowd.simulate import spec

#: The least share of the work of somebody who works: one step on the line from which `assign` draws.
MIN_SHARE = 2.0**-60


def draw_uniform(rng: np.random.Generator, n_workers: int) -> NDArray[np.float64]:  # noqa: ARG001  # one signature for all
    """Everybody works equally much.

    >>> draw_uniform(np.random.default_rng(0), 3).tolist()
    [1.0, 1.0, 1.0]
    """
    return np.ones(n_workers)


def draw_zipf(rng: np.random.Generator, n_workers: int, exponent: float = 1.0) -> NDArray[np.float64]:
    """The r-th busiest worker works in proportion to r^-exponent; who that is, is drawn.

    >>> sorted(draw_zipf(np.random.default_rng(0), 4).tolist(), reverse=True)
    [1.0, 0.5, 0.3333333333333333, 0.25]
    """
    if not (np.isfinite(exponent) and exponent >= 0):
        raise UsageError(f"the exponent of zipf must be finite and not negative; got {exponent}")
    return rng.permutation(np.maximum(np.exp(-exponent * np.log(np.arange(1, n_workers + 1))), MIN_SHARE))


def draw_beta(rng: np.random.Generator, n_workers: int, a: float = 1.5, b: float = 3.0) -> NDArray[np.float64]:
    """Activities drawn from a Beta distribution.

    >>> activity = draw_beta(np.random.default_rng(0), 1000, 1.5, 3)
    >>> round(float(activity.mean()), 1)
    0.3
    """
    if not (np.isfinite([a, b]).all() and min(a, b) > 0):
        raise UsageError(f"beta takes two positive numbers; got {a}, {b}")
    return np.maximum(rng.beta(a, b, n_workers), MIN_SHARE)


#: Shapes by name; a new one is a function and an entry here.
ACTIVITIES: dict[str, Callable[..., NDArray[np.float64]]] = {
    "uniform": draw_uniform,
    "zipf": draw_zipf,
    "beta": draw_beta,
}


def resolve_activity(activity: str | ArrayLike, n_workers: int, random_state: Any = 0) -> NDArray[np.float64]:
    """Relative activity of each worker, from a shape's name (``zipf(1.5)``) or as given; sums to one.

    Who works at all has at least the share 2^-60, so that he can be drawn once the busier ones have been.

    >>> resolve_activity([3, 1], 2).tolist()
    [0.75, 0.25]
    >>> resolve_activity("uniform", 4).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    if isinstance(activity, str):
        share = spec.call_spec(ACTIVITIES, "activity", activity, np.random.default_rng(random_state), n_workers)
    else:
        share = np.array(activity, dtype=np.float64)
        if share.shape != (n_workers,):
            raise UsageError(f"activity must have one entry per worker, {n_workers} in all; got shape {share.shape}")
    if not (np.isfinite(share).all() and (share >= 0).all() and share.any()):
        raise UsageError("activity must be finite and not negative, and somebody must work")
    relative = share / share.max()  # by the largest first: a sum of huge activities must not overflow
    return np.where(share > 0, np.maximum(relative / relative.sum(), MIN_SHARE), 0.0)
