"""Simulated ratings with known scores and known raters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError


@dataclass(frozen=True)
class SimulatedRatings:
    """Ratings with the scores that they were drawn from.

    Parameters
    ----------
    crowd : Crowd
        Ordinal votes, or numeric votes if there are no classes.
    scores : Series
        True score of every task, standard normal.
    truth : Series
        True class of every task: that of a rater of average severity without noise. For numbers, the true score.
    workers : DataFrame
        True severity, discrimination and spread of every worker.
    thresholds : ndarray of shape (n_classes - 1,)
        Scores at which an average rater changes from one class to the next; empty for numbers.
    """

    crowd: Crowd
    scores: pd.Series
    truth: pd.Series
    workers: pd.DataFrame
    thresholds: NDArray[np.float64]


def simulate_ratings(
    *,
    n_tasks: int = 200,
    n_workers: int = 20,
    n_classes: int | None = 5,
    votes_per_task: int = 5,
    severity_sd: float = 0.5,
    discrimination: float = 2.0,
    discrimination_sd: float = 0.3,
    spread_sd: float = 0.2,
    random_state: int = 0,
) -> SimulatedRatings:
    """Simulate raters who differ in severity, discrimination and use of the scale.

    Rater r gives a task of score z at least class k with probability σ(a_r (z − b_r − w_r c_k)). Without classes, the rating is
    the number (z − b_r) / w_r plus logistic noise of scale 1 / (a_r w_r).

    Parameters
    ----------
    n_tasks, n_workers, votes_per_task : int
        Numbers of tasks and workers, and of workers who rate each task.
    n_classes : int or None, default=5
        Number of classes; None draws numbers.
    severity_sd : float, default=0.5
        Standard deviation of the severities b.
    discrimination : float, default=2.0
        Discrimination a of a typical rater.
    discrimination_sd, spread_sd : float
        Standard deviations of log a, and of the logarithm of the spread w of a rater's thresholds.
    random_state : int, default=0
        Seed.

    Returns
    -------
    SimulatedRatings

    Raises
    ------
    UsageError
        If a size is not positive, or more workers are needed per task than there are.

    Examples
    --------
    >>> simulation = simulate_ratings(n_tasks=10, n_workers=5, n_classes=3, votes_per_task=2)
    >>> simulation.crowd.answer_type, simulation.crowd.n_votes, simulation.crowd.classes.tolist()
    ('ordinal', 20, [1, 2, 3])
    """
    if votes_per_task > n_workers or min(n_tasks, n_workers, votes_per_task) < 1:
        raise UsageError(
            f"a task needs between 1 and {n_workers} different workers, and all sizes must be positive; got "
            f"votes_per_task={votes_per_task}"
        )
    if n_classes is not None and n_classes < 2:
        raise UsageError(f"n_classes must be 2 or more, or None for numbers; got {n_classes}")
    rng = np.random.default_rng(random_state)
    score = rng.standard_normal(n_tasks)
    severity = severity_sd * rng.standard_normal(n_workers)
    slope = discrimination * np.exp(discrimination_sd * rng.standard_normal(n_workers))
    spread = np.exp(spread_sd * rng.standard_normal(n_workers))
    worker = np.concatenate([rng.permutation(n_workers)[:votes_per_task] for _ in range(n_tasks)])
    task = np.repeat(np.arange(n_tasks), votes_per_task)
    tasks, workers = (
        pd.Index([f"{letter}{n}" for n in range(size)]) for letter, size in (("t", n_tasks), ("w", n_workers))
    )
    response = score[task] - severity[worker] + rng.logistic(size=len(task)) / slope[worker]
    rows = pd.DataFrame({"task": tasks[task], "worker": workers[worker]})
    if n_classes is None:
        thresholds = np.empty(0)
        truth: NDArray[Any] = score
        crowd = Crowd.from_frame(
            rows.assign(label=response / spread[worker]), numeric=True, tasks=tasks, workers=workers
        )
    else:
        # Classes are equally frequent among the true scores.
        thresholds = np.asarray(_normal_quantiles(n_classes), dtype=np.float64)
        label = 1 + (response[:, None] > spread[worker, None] * thresholds).sum(axis=1)
        truth = 1 + np.searchsorted(thresholds, score)
        classes = list(range(1, n_classes + 1))
        crowd = Crowd.from_frame(rows.assign(label=label), ordered=True, tasks=tasks, workers=workers, classes=classes)
    index = tasks.rename("task")
    return SimulatedRatings(
        crowd,
        pd.Series(score, index=index, name="score"),
        pd.Series(truth, index=index, name="label"),
        pd.DataFrame({"severity": severity, "discrimination": slope, "spread": spread}, index=workers.rename("worker")),
        thresholds,
    )


def _normal_quantiles(n_classes: int) -> NDArray[np.float64]:
    """Return the thresholds that divide a standard normal variable into equally frequent classes."""
    from scipy.special import ndtri

    return np.asarray(ndtri(np.arange(1, n_classes) / n_classes), dtype=np.float64)
