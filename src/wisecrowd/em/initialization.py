"""Posteriors to begin with: shares of votes, what is given, what is known for certain, and class priors that follow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import InputError, UsageError, one_of, some


def class_prior(option: Any, totals: NDArray[np.float64], names: pd.Index) -> NDArray[np.float64]:
    """The class prior that an option asks for: "estimate" from class totals, "uniform", or given by class.

    >>> class_prior("estimate", np.array([3.0, 1.0]), pd.Index(["cat", "dog"])).tolist()
    [0.75, 0.25]
    >>> class_prior({"dog": 3, "cat": 1}, np.array([3.0, 1.0]), pd.Index(["cat", "dog"])).tolist()
    [0.25, 0.75]
    """
    n_classes = len(totals)
    if isinstance(option, str):
        one_of("prior", option, ("estimate", "uniform"))
        return np.full(n_classes, 1 / n_classes) if option == "uniform" else totals / totals.sum()
    if isinstance(option, dict) and set(option) != set(names):
        raise UsageError(f"prior must name every class once: {some(names, 8)}; got {some(option, 8)}")
    given = np.asarray([option[name] for name in names] if isinstance(option, dict) else option, dtype=np.float64)
    if given.shape != (n_classes,) or (given < 0).any() or not given.sum() > 0:
        raise UsageError(f"prior must give {n_classes} non-negative numbers, one per class; got {option!r}")
    return given / given.sum()


def vote_shares(crowd: Crowd, dtype: type = np.float64) -> NDArray[Any]:
    """The soft vote: each class's share of a task's votes, uniform where nobody voted.

    >>> vote_shares(Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])).tolist()
    [[0.5, 0.5]]
    """
    votes = crowd.votes
    # Where votes count once, there is nothing to add up, which over short rows takes long.
    total = votes.sum(axis=1, keepdims=True) if crowd.is_weighted else crowd.votes_per_task[:, None].astype(np.float64)
    voted = total > 0
    if voted.all():
        return (votes / total).astype(dtype, copy=False)
    shares: NDArray[Any] = np.full(votes.shape, 1 / crowd.n_classes, dtype=dtype)
    return np.divide(votes, total, out=shares, where=voted, casting="same_kind")


def apply_gold(posterior: NDArray[Any], gold: NDArray[np.int32] | None) -> NDArray[Any]:
    """The posterior, changed in place, with certainty where the truth is known.

    >>> apply_gold(np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([1, -1])).tolist()
    [[0.0, 1.0], [0.5, 0.5]]
    """
    if gold is not None:
        known = np.flatnonzero(gold >= 0)
        posterior[known] = 0
        posterior[known, gold[known]] = 1
    return posterior


def given_posterior(start: Any, crowd: Crowd) -> NDArray[np.float64]:
    """A posterior to start from, in the order of the crowd's tasks and classes.

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    >>> given_posterior(pd.DataFrame({"dog": [1.0], "cat": [3.0]}, index=["t1"]), crowd).tolist()
    [[0.75, 0.25]]
    """
    if isinstance(start, pd.DataFrame):
        start = start.reindex(index=crowd.tasks, columns=crowd.classes)
    posterior = np.array(start, dtype=np.float64)
    if posterior.shape != (crowd.n_tasks, crowd.n_classes) or not np.isfinite(posterior).all():
        raise InputError(
            f"start must be a posterior of {crowd.n_tasks:,} tasks x {crowd.n_classes} classes without holes, "
            f"or a fitted method; got shape {posterior.shape}"
        )
    return posterior / posterior.sum(axis=1, keepdims=True)
