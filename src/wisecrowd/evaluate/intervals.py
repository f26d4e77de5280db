"""Credible intervals for worker accuracies and class shares."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import NotConverged, UsageError
from wisecrowd.evaluate.calibration import leave_one_out_posterior
from wisecrowd.utils.deduplication import MIN_ROWS_TO_MERGE, merge_equal_rows

_GRID = 101


def worker_intervals(
    fitted: ConfusionEM, crowd: Crowd, *, level: float = 0.9, peer_posterior: NDArray[np.float64] | None = None
) -> pd.DataFrame:
    """Accuracy of each worker with a credible interval: columns n_votes, accuracy, low, high.

    The accuracy a of a worker has the posterior p(a) ∝ Beta(a) Π_i [a·u_i + (1 − a)·v_i], where u_i is the probability,
    by the other votes, that the worker's answer on task i is right, and v_i = (1 − u_i) / (K − 1) that it is one
    particular error; it is integrated on a grid. The Beta prior is the method's own pseudo-votes. ``peer_posterior`` are the posteriors
    by the other votes, from `leave_one_out_posterior`, where they are at hand.

    >>> from wisecrowd import DawidSkene, simulate_crowd
    >>> made = simulate_crowd(n_tasks=200, n_workers=8, n_classes=3, votes_per_task=4, random_state=0)
    >>> table = worker_intervals(DawidSkene().fit(made.crowd), made.crowd)
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
    """log P of each part of the votes if they are right with each probability, erring evenly: (parts, accuracies).

    A vote that is right with the probability u, by the others, has the likelihood a u + (1 − a)(1 − u)/(K − 1).

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
    fitted: ConfusionEM, crowd: Crowd, *, level: float = 0.9, n_groups: int = 20, random_state: int = 0
) -> pd.DataFrame:
    """Share of each class with an interval: columns prevalence, low, high.

    A delete-a-group jackknife over tasks: the method is fitted again without each of ``n_groups`` random groups of
    tasks, starting from what it knows of the workers, so that the uncertainty about the workers counts too. The
    interval is Student's on the scale of log-odds.

    >>> from wisecrowd import DawidSkene, simulate_crowd
    >>> made = simulate_crowd(n_tasks=200, n_workers=8, n_classes=3, votes_per_task=4, random_state=0)
    >>> list(prevalence_intervals(DawidSkene().fit(made.crowd), made.crowd).columns)
    ['prevalence', 'low', 'high']
    """
    from scipy.special import expit, logit
    from scipy.stats import t

    _check_level(level)
    voted = np.flatnonzero(crowd.votes_per_task)
    n_groups = min(n_groups, len(voted))
    if n_groups < 2:
        raise UsageError("an interval for class shares needs two tasks or more")
    task_group = np.random.default_rng(random_state).permutation(len(voted)) % n_groups

    def log_odds(posterior: NDArray[Any]) -> NDArray[np.float64]:
        # Half a task on either side keeps a class that (almost) nothing belongs to away from infinity.
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


def _quantile(density: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Where the distribution on the grid reaches a share, linearly between the edges of its cells."""
    cumulative = np.cumsum(density, axis=1)
    cell = (cumulative < share).sum(axis=1)
    rows = np.arange(len(density))
    below = np.where(cell > 0, cumulative[rows, cell - 1], 0)
    return (cell + (share - below) / np.maximum(density[rows, cell], 1e-300)) / density.shape[1]


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise UsageError(f"level must lie between 0 and 1, for example 0.9; got {level}")
