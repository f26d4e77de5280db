"""Credible intervals for worker accuracies and confidence intervals for class shares.

Worker intervals hold the parameters of the other workers at their estimates. Each vote is compared with the posterior of the
other votes on its task; a vote that counted for itself would make a worker on single-vote tasks look certain to be right.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import NotConverged, UsageError
from wisecrowd.evaluate.leave_one_out import leave_one_out_posterior
from wisecrowd.utils.deduplication import MIN_ROWS_TO_MERGE, merge_equal_rows
from wisecrowd.utils.levels import LEVEL

_GRID = 101


def worker_intervals(
    fitted: ConfusionEM, crowd: Crowd, *, level: float = LEVEL, peer_posterior: NDArray[np.float64] | None = None
) -> pd.DataFrame:
    """Compute the accuracy of each worker with a credible interval.

    The accuracy a of a worker has the posterior density p(a) ∝ Beta(a) Π_i [a·u_i + (1 − a)·v_i]. Here u_i is the probability by
    the other votes that the worker's label for task i is right, and v_i = (1 − u_i) / (K − 1) the probability of one particular
    error. The Beta prior consists of the method's own pseudo-votes. The density is integrated on a grid.

    Parameters
    ----------
    fitted : ConfusionEM
        Method fitted to ``crowd``.
    crowd : Crowd
        Votes.
    level : float, default=0.9
        Probability of the interval.
    peer_posterior : ndarray of shape (n_votes, n_classes), default=None
        Posterior of each vote's task by the other votes. Defaults to `leave_one_out_posterior`.

    Returns
    -------
    DataFrame
        Columns n_votes, accuracy, low and high by worker.

    Examples
    --------
    >>> from wisecrowd import DawidSkene, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=8, n_classes=3, votes_per_task=4, random_state=0)
    >>> table = worker_intervals(DawidSkene().fit(simulation.crowd), simulation.crowd)
    >>> bool((table["low"] < table["accuracy"]).all() and (table["accuracy"] < table["high"]).all())
    True
    """
    _check_level(level)
    n_classes = crowd.n_classes
    peer_posterior = leave_one_out_posterior(fitted, crowd) if peer_posterior is None else peer_posterior
    p_right = peer_posterior[np.arange(crowd.n_votes), crowd.label]
    worker, weight = crowd.worker_codes.astype(np.intp), crowd.weight
    if crowd.n_votes > MIN_ROWS_TO_MERGE:
        rows, weight = merge_equal_rows(p_right, worker, weight=weight)
        worker, p_right = worker[rows], p_right[rows]
    accuracy = (np.arange(_GRID) + 0.5) / _GRID
    prior_right, prior_total = fitted.accuracy_pseudo_votes(n_classes)
    log_density = accuracy_log_likelihood(p_right, n_classes, accuracy, worker, crowd.n_workers, weight)
    log_density += prior_right * np.log(accuracy) + (prior_total - prior_right) * np.log1p(-accuracy)
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    density /= density.sum(axis=1, keepdims=True)
    return pd.DataFrame(
        {"n_votes": crowd.votes_per_worker, "accuracy": density @ accuracy,
         "low": _quantile(density, (1 - level) / 2), "high": _quantile(density, (1 + level) / 2)},
        index=fitted.workers_.index,
    )  # fmt: skip


def accuracy_log_likelihood(
    p_right: NDArray[np.float64], n_classes: int, accuracy: NDArray[np.float64], group: NDArray[Any], n_groups: int,
    weight: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:  # fmt: skip
    """Compute the log-likelihood of groups of votes on a grid of accuracies.

    A vote that is right with probability u, by the other votes, has the likelihood a u + (1 − a)(1 − u)/(K − 1).

    Parameters
    ----------
    p_right : ndarray of shape (n_votes,)
        Probability u that each vote is right.
    n_classes : int
        Number of classes K.
    accuracy : ndarray of shape (n_accuracies,)
        Accuracies a.
    group : ndarray of shape (n_votes,)
        Group of each vote, such as its worker.
    n_groups : int
        Number of groups.
    weight : ndarray of shape (n_votes,), default=None
        Weight of each vote. Defaults to 1.

    Returns
    -------
    ndarray of shape (n_groups, n_accuracies)

    Examples
    --------
    >>> accuracy_log_likelihood(np.array([1.0, 0.0]), 3, np.array([0.5]), np.array([0, 1]), 2).round(3).tolist()
    [[-0.693], [-1.386]]
    """
    p_error = (1 - p_right) / max(n_classes - 1, 1)
    log_likelihood = np.empty((n_groups, len(accuracy)))
    for column, a in enumerate(accuracy):
        vote_log_likelihood = np.log(a * p_right + (1 - a) * p_error)
        log_likelihood[:, column] = np.bincount(
            group, vote_log_likelihood if weight is None else weight * vote_log_likelihood, minlength=n_groups
        )
    return log_likelihood


def prevalence_intervals(
    fitted: ConfusionEM, crowd: Crowd, *, level: float = LEVEL, n_groups: int = 20, random_state: int = 0
) -> pd.DataFrame:
    """Compute the share of each class with a confidence interval.

    A delete-a-group jackknife over tasks: the method is refitted without each of ``n_groups`` random groups of tasks, starting
    from the fitted worker parameters, so the interval includes their uncertainty. It is a Student interval of the log-odds.

    Parameters
    ----------
    fitted : ConfusionEM
        Method fitted to ``crowd``.
    crowd : Crowd
        Votes.
    level : float, default=0.9
        Confidence level.
    n_groups : int, default=20
        Number of jackknife groups.
    random_state : int, default=0
        Seed of the random groups.

    Returns
    -------
    DataFrame
        Columns prevalence, low and high by class.

    Examples
    --------
    >>> from wisecrowd import DawidSkene, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=8, n_classes=3, votes_per_task=4, random_state=0)
    >>> list(prevalence_intervals(DawidSkene().fit(simulation.crowd), simulation.crowd).columns)
    ['prevalence', 'low', 'high']
    """
    from scipy.special import expit, logit
    from scipy.stats import t

    _check_level(level)
    voted = np.flatnonzero(crowd.votes_per_task)
    n_groups = min(n_groups, len(voted))
    if n_groups < 2:
        raise UsageError("an interval for class shares needs at least two tasks with votes")
    task_group = np.random.default_rng(random_state).permutation(len(voted)) % n_groups

    def log_odds(posterior: NDArray[Any]) -> NDArray[np.float64]:
        # Half a task is added on either side so that the log-odds of an empty class stay finite.
        count = posterior.sum(axis=0, dtype=np.float64)
        return logit((count + 0.5) / (len(posterior) + 1))

    estimate = log_odds(fitted.posterior_[voted])
    replicates = np.empty((n_groups, crowd.n_classes))
    for group_number in range(n_groups):
        remaining = crowd[voted[task_group != group_number]]
        refit = copy.copy(fitted).set_params(n_init=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConverged)
            replicates[group_number] = log_odds(refit.fit(remaining, start=fitted).posterior_)
    error = np.sqrt((n_groups - 1) / n_groups * ((replicates - replicates.mean(axis=0)) ** 2).sum(axis=0))
    half_width = t.ppf((1 + level) / 2, n_groups - 1) * error
    share = fitted.posterior_[voted].mean(axis=0)
    return pd.DataFrame(
        {"prevalence": share, "low": expit(estimate - half_width), "high": expit(estimate + half_width)},
        index=fitted.classes_.rename("class"),
    )


def share_interval(n_right: ArrayLike, n: ArrayLike, *, level: float = LEVEL) -> tuple[Any, Any]:
    """Compute the interval of Wilson for shares of successes.

    Parameters
    ----------
    n_right : array-like of int
        Number of successes.
    n : array-like of int
        Number of trials.
    level : float, default=0.9
        Confidence level.

    Returns
    -------
    low, high : ndarray or float
        Bounds; 0 and 1 without trials.

    References
    ----------
    Wilson, E. B. (1927). Probable inference, the law of succession, and statistical inference. Journal of the American
    Statistical Association 22(158), 209–212.

    Examples
    --------
    >>> [round(float(bound), 3) for bound in share_interval(80, 100)]
    [0.727, 0.857]
    """
    from scipy.special import ndtri

    _check_level(level)
    z2 = float(ndtri((1 + level) / 2)) ** 2
    right, trials = np.asarray(n_right, dtype=np.float64), np.asarray(n, dtype=np.float64)
    middle = (right + z2 / 2) / (trials + z2)
    half_width = np.sqrt(z2) / (trials + z2) * np.sqrt(right * (1 - right / np.maximum(trials, 1)) + z2 / 4)
    return np.clip(middle - half_width, 0, 1), np.clip(middle + half_width, 0, 1)


def _quantile(density: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Return a quantile of densities on the grid, interpolated linearly within a cell."""
    cumulative = np.cumsum(density, axis=1)
    cell = (cumulative < share).sum(axis=1)
    rows = np.arange(len(density))
    below = np.where(cell > 0, cumulative[rows, cell - 1], 0)
    return (cell + (share - below) / np.maximum(density[rows, cell], 1e-300)) / density.shape[1]


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise UsageError(f"level must lie between 0 and 1, such as 0.9; got {level}")
