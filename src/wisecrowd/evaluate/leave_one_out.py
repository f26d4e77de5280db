"""Posterior of a task by all votes but one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
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
