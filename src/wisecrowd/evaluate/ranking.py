"""Ranking of methods by the log-probability of held-out votes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.utils.levels import LEVEL
from wisecrowd.utils.slices import slice_rows


def rank_log_probs(
    log_probs: dict[str, NDArray[np.float64]],
    unit: NDArray[Any],
    n_units: int,
    seed: int,
    weight: NDArray[np.float64] | None = None,
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Rank methods by the mean log-probability of held-out votes.

    Parameters
    ----------
    log_probs : dict of str to ndarray of shape (n_votes,)
        Log-probabilities by method.
    unit : ndarray of shape (n_votes,)
        Unit of the bootstrap for each vote, such as its task, from 0 to ``n_units`` - 1.
    n_units : int
        Number of units.
    seed : int
        Seed of the bootstrap.
    weight : ndarray of shape (n_votes,), default=None
        Weight of each vote; every one counts once by default.

    Returns
    -------
    table : DataFrame
        Columns log_likelihood, behind, low and high by method, the best first.
    tied_methods : tuple of str
        Methods whose distance to the best is not significant.

    Examples
    --------
    >>> table, tied = rank_log_probs({"a": np.array([-1.0, -1.2]), "b": np.array([-2.0, -2.1])}, np.array([0, 1]), 2, 0)
    >>> table["behind"].round(2).to_dict(), tied
    ({'a': 0.0, 'b': 0.95}, ('a',))
    """
    votes = np.ones(len(unit)) if weight is None else weight
    mean = {name: float(votes @ values / votes.sum()) for name, values in log_probs.items()}
    order = sorted(log_probs, key=lambda name: -mean[name])
    best = order[0]
    rng = np.random.default_rng(seed)
    repeats = 1000
    # Bootstrap over units with Poisson weights, in blocks because a weight for each unit and replicate may not fit in memory.
    gaps = np.stack(
        [np.bincount(unit, votes * (log_probs[best] - log_probs[name]), minlength=n_units) for name in order], axis=1
    )
    counts = np.bincount(unit, votes, minlength=n_units)
    replicates: list[NDArray[np.float64]] = []
    for values in slice_rows(repeats, n_units):
        weights = rng.poisson(1.0, size=(len(range(*values.indices(repeats))), n_units)).astype(np.float32)
        with np.errstate(invalid="ignore"):  # a replicate of few units may be empty
            replicates.append((weights @ gaps) / (weights @ counts)[:, None])
    low, high = np.nanquantile(np.concatenate(replicates), [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    rows = [(mean[name], mean[best] - mean[name], low[position], high[position]) for position, name in enumerate(order)]
    columns = ["log_likelihood", "behind", "low", "high"]
    table = pd.DataFrame(rows, index=pd.Index(order, name="method"), columns=columns)
    tied = {name for position, name in enumerate(order) if name == best or low[position] <= 0}
    return table, tuple(name for name in log_probs if name in tied)
