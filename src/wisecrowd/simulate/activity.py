"""Activity of simulated workers: uniform, or concentrated on a few of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wisecrowd.errors import UsageError
from wisecrowd.simulate import spec
from wisecrowd.simulate.spec import RandomState

#: Smallest share of the activity of an active worker: the resolution of the integers that `assign` draws.
MIN_SHARE = 2.0**-60


def draw_uniform(rng: np.random.Generator, n_workers: int) -> NDArray[np.float64]:  # noqa: ARG001  # common signature
    """Return equal activities.

    Parameters
    ----------
    rng : Generator
        Random numbers; unused.
    n_workers : int
        Number of workers.

    Returns
    -------
    ndarray of shape (n_workers,)
        Ones.

    Examples
    --------
    >>> draw_uniform(np.random.default_rng(0), 3).tolist()
    [1.0, 1.0, 1.0]
    """
    return np.ones(n_workers)


def draw_zipf(rng: np.random.Generator, n_workers: int, exponent: float = 1.0) -> NDArray[np.float64]:
    """Draw activities that follow Zipf's law: the r-th most active worker has activity r^-exponent.

    Parameters
    ----------
    rng : Generator
        Random numbers that decide the ranks.
    n_workers : int
        Number of workers.
    exponent : float, default=1.0
        Exponent, not negative.

    Returns
    -------
    ndarray of shape (n_workers,)
        Activities.

    Examples
    --------
    >>> sorted(draw_zipf(np.random.default_rng(0), 4).tolist(), reverse=True)
    [1.0, 0.5, 0.3333333333333333, 0.25]
    """
    if not (np.isfinite(exponent) and exponent >= 0):
        raise UsageError(f"the exponent of zipf must be finite and not negative; got {exponent}")
    return rng.permutation(np.maximum(np.exp(-exponent * np.log(np.arange(1, n_workers + 1))), MIN_SHARE))


def draw_beta(rng: np.random.Generator, n_workers: int, a: float = 1.5, b: float = 3.0) -> NDArray[np.float64]:
    """Draw activities from a Beta distribution.

    Parameters
    ----------
    rng : Generator
        Random numbers.
    n_workers : int
        Number of workers.
    a, b : float
        Positive parameters of the distribution.

    Returns
    -------
    ndarray of shape (n_workers,)
        Activities.

    Examples
    --------
    >>> activity = draw_beta(np.random.default_rng(0), 1000, 1.5, 3)
    >>> round(float(activity.mean()), 1)
    0.3
    """
    if not (np.isfinite([a, b]).all() and min(a, b) > 0):
        raise UsageError(f"beta takes two positive numbers; got {a}, {b}")
    return np.maximum(rng.beta(a, b, n_workers), MIN_SHARE)


#: Distributions of activity by name; to add one, write a function and an entry here.
ACTIVITIES: dict[str, Callable[..., NDArray[np.float64]]] = {
    "uniform": draw_uniform,
    "zipf": draw_zipf,
    "beta": draw_beta,
}


def resolve_activity(activity: str | ArrayLike, n_workers: int, random_state: RandomState = 0) -> NDArray[np.float64]:
    """Compute the relative activity of each worker.

    Parameters
    ----------
    activity : str or array-like of shape (n_workers,)
        Name of a distribution in `ACTIVITIES`, with numbers where needed (``zipf(1.5)``); or one number per worker.
    n_workers : int
        Number of workers.
    random_state : int or Generator, default=0
        Seed.

    Returns
    -------
    ndarray of shape (n_workers,)
        Activities that sum to one. An active worker has at least the share 2^-60, so that `assign` can draw every active worker.

    Raises
    ------
    UsageError
        If the activities are invalid, or no worker is active.

    Examples
    --------
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
        raise UsageError("activity must be finite and not negative, and positive for at least one worker")
    relative = share / share.max()  # dividing by the largest first keeps the sum of huge activities finite
    return np.where(share > 0, np.maximum(relative / relative.sum(), MIN_SHARE), 0.0)
