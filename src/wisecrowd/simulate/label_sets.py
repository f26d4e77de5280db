"""Simulated label sets with known truth and known workers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.label_sets import LabelSetCrowd
from wisecrowd.errors import UsageError


@dataclass(frozen=True)
class SimulatedLabelSets:
    """Label sets with the truth that they were drawn from.

    Parameters
    ----------
    crowd : LabelSetCrowd
        Votes.
    truth : DataFrame
        Whether a label applies, with tasks as rows and labels as columns.
    workers : DataFrame
        True hit rate and false-alarm rate of every worker.
    """

    crowd: LabelSetCrowd
    truth: pd.DataFrame
    workers: pd.DataFrame


def simulate_label_sets(
    *,
    n_tasks: int = 200,
    n_workers: int = 20,
    n_labels: int = 8,
    votes_per_task: int = 4,
    n_groups: int = 1,
    labels_per_task: float = 2.0,
    hit_rate: float = 0.7,
    false_alarm_rate: float = 0.1,
    worker_spread: float = 0.5,
    random_state: int = 0,
) -> SimulatedLabelSets:
    """Simulate workers who mark the labels of tasks.

    Parameters
    ----------
    n_tasks, n_workers, n_labels, votes_per_task : int
        Numbers of tasks, workers and labels, and of workers who answer each task.
    n_groups : int, default=1
        Groups of tasks that share typical labels. With one group, labels are independent; with more, labels of a group occur
        together.
    labels_per_task : float, default=2.0
        Mean number of labels that apply to a task.
    hit_rate, false_alarm_rate : float
        Probability that the median worker marks a label that applies, or one that does not.
    worker_spread : float, default=0.5
        Standard deviation of the workers' rates, in logits.
    random_state : int, default=0
        Seed.

    Returns
    -------
    SimulatedLabelSets

    Raises
    ------
    UsageError
        If more workers are needed per task than there are.

    Examples
    --------
    >>> simulation = simulate_label_sets(n_tasks=10, n_workers=5, n_labels=3, votes_per_task=2)
    >>> simulation.crowd.n_votes, simulation.truth.shape
    (20, (10, 3))
    """
    if votes_per_task > n_workers or min(n_tasks, n_workers, n_labels, votes_per_task, n_groups) < 1:
        raise UsageError(
            f"a task needs between 1 and {n_workers} different workers, and all sizes must be positive; got "
            f"votes_per_task={votes_per_task}"
        )
    rng = np.random.default_rng(random_state)
    share = labels_per_task / n_labels
    if n_groups == 1:
        typical = np.clip(share * rng.uniform(0.5, 1.5, (1, n_labels)), 0.01, 0.99)
    else:
        # Every group has its own labels, which apply nearly always; the others seldom apply.
        typical = np.where(rng.random((n_groups, n_labels)) < share, 0.9, 0.03)
    group = rng.integers(0, n_groups, n_tasks)
    truth = rng.random((n_tasks, n_labels)) < typical[group]
    hit, false_alarm = (_draw_rates(rate, worker_spread, n_workers, rng) for rate in (hit_rate, false_alarm_rate))
    worker = np.argsort(rng.random((n_tasks, n_workers)), axis=1)[:, :votes_per_task].ravel()
    task = np.repeat(np.arange(n_tasks), votes_per_task)
    prob = np.where(truth[task], hit[worker, None], false_alarm[worker, None])
    assignment, label = np.nonzero(rng.random(prob.shape) < prob)
    sizes = {"t": n_tasks, "w": n_workers, "l": n_labels}
    tasks, workers, labels = (pd.Index([f"{letter}{n}" for n in range(size)]) for letter, size in sizes.items())
    return SimulatedLabelSets(
        LabelSetCrowd(task, worker, assignment, label, tasks=tasks, workers=workers, labels=labels),
        pd.DataFrame(truth, index=tasks.rename("task"), columns=labels.rename("label")),
        pd.DataFrame({"hit_rate": hit, "false_alarm_rate": false_alarm}, index=workers.rename("worker")),
    )


def _draw_rates(median: float, spread: float, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw logit-normal rates; ``spread`` is the standard deviation of the logits."""
    logit = np.log(median / (1 - median)) + spread * rng.standard_normal(n)
    return np.asarray(1 / (1 + np.exp(-logit)), dtype=np.float64)
