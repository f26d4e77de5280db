"""Calibration of posteriors by the votes themselves, without ground truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd import kernels
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.em.incremental import estimate_crowd_label_probs
from wisecrowd.errors import UsageError

#: Rows of votes, and of other votes on the same tasks.
RemovedVotes = tuple[NDArray[np.intp], NDArray[np.intp]]


def leave_one_out_posterior(
    fitted: ConfusionEM, crowd: Crowd, also_removed: Sequence[RemovedVotes] = ()
) -> NDArray[np.float64]:  # fmt: skip
    """Compute the posterior of each vote's task by all other votes on the task.

    Parameters
    ----------
    fitted : ConfusionEM
        Method fitted to ``crowd``.
    crowd : Crowd
        Votes.
    also_removed : sequence of (ndarray, ndarray), default ()
        Votes, and for each of them another vote on the same task that is left out as well.

    Returns
    -------
    ndarray of shape (n_votes, n_classes)

    Raises
    ------
    UsageError
        If ``fitted`` was fitted to other tasks, or has subtypes of classes.

    Examples
    --------
    >>> from wisecrowd import Crowd, DawidSkene
    >>> crowd = Crowd.from_triples([("t1", "ann", 0), ("t1", "bob", 0), ("t2", "ann", 1)])
    >>> leave_one_out_posterior(DawidSkene(prior="uniform").fit(crowd), crowd)[2].round(6).tolist()
    [0.5, 0.5]
    """
    if not crowd.tasks.equals(fitted.task_index_):
        raise UsageError("crowd differs from the crowd that the method was fitted to; pass that crowd")
    label_probs = estimate_crowd_label_probs(fitted, crowd, fitted.e_step_label_probs)
    if len(fitted.e_step_prior_) == crowd.n_classes:
        return _remove_votes(fitted.posterior_, label_probs, crowd, also_removed)
    if not fitted.tally_is_sufficient:
        raise UsageError(
            f"{fitted.name} splits classes into subtypes, so single votes cannot be removed; use dawid-skene or ibcc"
        )
    # The posterior of a gold task is exactly zero elsewhere, and no vote can change it. That of other tasks rounds to one, too.
    certain = np.flatnonzero(np.count_nonzero(fitted.posterior_, axis=1) == 1)

    def compute(prior: NDArray[np.float64], label_probs: NDArray[Any]) -> NDArray[np.float64]:
        posterior = kernels.posterior(crowd.layout, prior, label_probs)
        posterior[certain] = fitted.posterior_[certain]
        return _remove_votes(posterior, label_probs, crowd, also_removed)

    return fitted.e_step_posterior(compute, fitted.e_step_prior_, label_probs)


def _remove_votes(
    posterior: NDArray[np.float64], label_probs: NDArray[Any], crowd: Crowd, also_removed: Sequence[RemovedVotes]
) -> NDArray[np.float64]:
    """Return the posterior of each vote's task without the vote and without further votes, from the posterior of the tasks."""
    # Logarithms keep the digits that dividing out a nearly impossible vote needs. They are taken of pairs and tasks, which are
    # fewer than votes, and the largest array is changed in place.
    label_log_probs = np.log(np.maximum(label_probs, np.finfo(np.float64).tiny))[crowd.pairs.vote_pairs]
    if crowd.is_weighted:
        label_log_probs *= crowd.weight[:, None]
    peer_posterior = np.log(np.maximum(posterior, np.finfo(np.float64).tiny))[crowd.task]
    peer_posterior -= label_log_probs
    for rows, other_rows in also_removed:
        peer_posterior[rows] -= label_log_probs[other_rows]
    peer_posterior -= peer_posterior.max(axis=1, keepdims=True)
    np.exp(peer_posterior, out=peer_posterior)
    peer_posterior /= peer_posterior.sum(axis=1, keepdims=True)
    return peer_posterior


def calibrate_posterior(fitted: ConfusionEM, crowd: Crowd) -> tuple[pd.DataFrame, float]:
    """Temper a posterior so that it predicts each vote best from the other votes on its task.

    Models with independent workers are overconfident if workers err together. The exponent τ of q_i(k)^τ maximises the likelihood
    of every vote given the other votes on its task, Σ_k q_i^{−r}(k)^τ π_r[k, y_ir], which needs no ground truth.

    Parameters
    ----------
    fitted : ConfusionEM
        Method fitted to ``crowd``.
    crowd : Crowd
        Votes.

    Returns
    -------
    posterior : DataFrame of shape (n_tasks, n_classes)
        Tempered posterior.
    exponent : float
        Exponent τ. A value below 1 means that the posterior was overconfident.

    Examples
    --------
    >>> from wisecrowd import DawidSkene, simulate_crowd
    >>> made = simulate_crowd(n_tasks=300, n_workers=10, n_classes=3, votes_per_task=4, random_state=0)
    >>> table, exponent = calibrate_posterior(DawidSkene().fit(made.crowd), made.crowd)
    >>> table.shape, 0 < exponent < 2
    ((300, 3), True)
    """
    from scipy.optimize import minimize_scalar

    has_peers = (
        crowd.votes_per_task[crowd.task] > 1
    )  # a task's only vote is predicted by the prior alone, whatever τ is
    peer_log_posterior = np.log(np.maximum(leave_one_out_posterior(fitted, crowd)[has_peers], 1e-300))
    label_probs = estimate_crowd_label_probs(fitted, crowd)[crowd.pairs.vote_pairs[has_peers]]
    weight = crowd.weight[has_peers]

    def loss(exponent: float) -> float:
        return -float(
            (
                weight * np.log(np.maximum((_temper(peer_log_posterior, exponent) * label_probs).sum(axis=1), 1e-300))
            ).sum()
        )

    exponent = float(minimize_scalar(loss, bounds=(0.05, 2.0), method="bounded").x) if has_peers.any() else 1.0
    table = _temper(np.log(np.maximum(fitted.posterior_, 1e-300)), exponent)
    return pd.DataFrame(table, index=fitted.proba_.index, columns=fitted.proba_.columns), exponent


def _temper(log_posterior: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
    """Raise a posterior to a power and normalise its rows."""
    scaled = exponent * log_posterior
    table: NDArray[Any] = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    return table / table.sum(axis=1, keepdims=True)
