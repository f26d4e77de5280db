"""Starting points of EM: class priors, vote shares, given posteriors, and gold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import InputError, UsageError, check_choice, preview


def make_class_prior(
    option: Any, class_counts: NDArray[np.float64], classes: pd.Index | None = None
) -> NDArray[np.float64]:
    """Return the class prior that the parameter ``prior`` of a method asks for.

    Parameters
    ----------
    option : {'estimate', 'uniform'}, array-like or dict
        'estimate' normalises the class counts, 'uniform' ignores them; otherwise one number per class, in the order of
        classes or by name.
    class_counts : ndarray of shape (n_classes,)
        Sum of the posteriors by class.
    classes : Index, optional
        Names of the classes; needed if ``option`` is a dict.

    Returns
    -------
    ndarray of shape (n_classes,)

    Raises
    ------
    UsageError
        If the option is none of these.

    Examples
    --------
    >>> make_class_prior("estimate", np.array([3.0, 1.0])).tolist()
    [0.75, 0.25]
    >>> make_class_prior({"dog": 3, "cat": 1}, np.array([3.0, 1.0]), pd.Index(["cat", "dog"])).tolist()
    [0.25, 0.75]
    """
    n_classes = len(class_counts)
    if isinstance(option, str):
        check_choice("prior", option, ("estimate", "uniform"))
        return np.full(n_classes, 1 / n_classes) if option == "uniform" else class_counts / class_counts.sum()
    if isinstance(option, dict):
        names = pd.RangeIndex(n_classes) if classes is None else classes
        if set(option) != set(names):
            raise UsageError(f"prior must name every class once: {preview(names, 8)}; got {preview(option, 8)}")
        option = [option[name] for name in names]
    weights = np.asarray(option, dtype=np.float64)
    if weights.shape != (n_classes,) or (weights < 0).any() or not weights.sum() > 0:
        raise UsageError(f"prior must give {n_classes} non-negative numbers, one per class; got {option!r}")
    return weights / weights.sum()


def compute_vote_shares(crowd: Crowd, dtype: type = np.float64) -> NDArray[Any]:
    """Return the share of each class in the votes of a task (soft majority vote).

    Parameters
    ----------
    crowd : Crowd
        Votes.
    dtype : type, default numpy.float64
        Type of the result.

    Returns
    -------
    ndarray of shape (n_tasks, n_classes)
        Uniform for tasks without votes.

    Examples
    --------
    >>> compute_vote_shares(Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])).tolist()
    [[0.5, 0.5]]
    """
    votes = crowd.vote_counts
    # Sums over short rows are slow; without weights the number of votes is already known.
    total = votes.sum(axis=1, keepdims=True) if crowd.is_weighted else crowd.votes_per_task[:, None].astype(np.float64)
    voted = total > 0
    if voted.all():
        return (votes / total).astype(dtype, copy=False)
    shares: NDArray[Any] = np.full(votes.shape, 1 / crowd.n_classes, dtype=dtype)
    return np.divide(votes, total, out=shares, where=voted, casting="same_kind")


def apply_gold(posterior: NDArray[Any], gold: NDArray[np.int32] | None) -> NDArray[Any]:
    """Set the posterior of gold tasks to certainty, in place.

    Parameters
    ----------
    posterior : ndarray of shape (n_tasks, n_classes)
        Posterior; changed in place.
    gold : ndarray of shape (n_tasks,) or None
        Class codes, −1 where the truth is unknown.

    Returns
    -------
    ndarray of shape (n_tasks, n_classes)
        The same array.

    Examples
    --------
    >>> apply_gold(np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([1, -1])).tolist()
    [[0.0, 1.0], [0.5, 0.5]]
    """
    if gold is not None:
        tasks = np.flatnonzero(gold >= 0)
        posterior[tasks] = 0
        posterior[tasks, gold[tasks]] = 1
    return posterior


def align_posterior(posterior: Any, crowd: Crowd) -> NDArray[np.float64]:
    """Return a user's posterior in the order of the crowd's tasks and classes.

    Parameters
    ----------
    posterior : DataFrame or array-like of shape (n_tasks, n_classes)
        Posterior; a table is aligned by its labels.
    crowd : Crowd
        Votes.

    Returns
    -------
    ndarray of shape (n_tasks, n_classes)
        Rows sum to one.

    Raises
    ------
    InputError
        If tasks or classes are missing.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    >>> align_posterior(pd.DataFrame({"dog": [1.0], "cat": [3.0]}, index=["t1"]), crowd).tolist()
    [[0.75, 0.25]]
    """
    if isinstance(posterior, pd.DataFrame):
        posterior = posterior.reindex(index=crowd.tasks, columns=crowd.classes)
    table = np.array(posterior, dtype=np.float64)
    if table.shape != (crowd.n_tasks, crowd.n_classes) or not np.isfinite(table).all():
        raise InputError(
            f"start must be a posterior of {crowd.n_tasks:,} tasks x {crowd.n_classes} classes without missing values, "
            f"or a fitted method; got shape {table.shape}"
        )
    return table / table.sum(axis=1, keepdims=True)
