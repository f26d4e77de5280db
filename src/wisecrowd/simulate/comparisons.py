"""Simulated comparisons with known scores and known judges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from wisecrowd.data.comparisons import LEFT, RIGHT, TIE, Comparisons
from wisecrowd.errors import UsageError


@dataclass(frozen=True)
class SimulatedComparisons:
    """Comparisons with the parameters that they were drawn from.

    Parameters
    ----------
    comparisons : Comparisons
        Comparisons.
    scores : Series
        True score of every item; the mean is zero.
    workers : DataFrame
        True discrimination, lean and habit of ties of every worker.
    """

    comparisons: Comparisons
    scores: pd.Series
    workers: pd.DataFrame


def simulate_comparisons(
    *,
    n_items: int = 20,
    n_workers: int = 30,
    votes_per_worker: int = 50,
    n_tasks: int = 0,
    score_spread: float = 1.0,
    discrimination_spread: float = 0.0,
    lean_spread: float = 0.0,
    tie_utility: float | None = -0.5,
    tie_spread: float = 0.0,
    task_spread: float = 0.0,
    random_state: int = 0,
) -> SimulatedComparisons:
    """Simulate judges who compare random pairs of items.

    Outcomes follow the Davidson model: P(left) ∝ exp(d/2), P(right) ∝ exp(−d/2), P(tie) ∝ exp(κ), with
    d = a_r (θ_L − θ_R) + π_r. All effects are normal with the given standard deviations.

    Parameters
    ----------
    n_items, n_workers, votes_per_worker : int
        Numbers of items, of workers, and of comparisons by each worker.
    n_tasks : int, default=0
        Number of prompts; 0 simulates comparisons without tasks.
    score_spread : float, default=1.0
        Standard deviation of the scores.
    discrimination_spread : float, default=0.0
        Standard deviation of the logarithm of the workers' discrimination.
    lean_spread : float, default=0.0
        Standard deviation of the workers' lean to the left side, in logits.
    tie_utility : float or None, default=-0.5
        Mean utility κ of a tie; None simulates comparisons without ties.
    tie_spread : float, default=0.0
        Standard deviation of κ over workers.
    task_spread : float, default=0.0
        Standard deviation of the deviation of an item's score on a task.
    random_state : int, default=0
        Seed.

    Returns
    -------
    SimulatedComparisons

    Raises
    ------
    UsageError
        If there are fewer than two items, or no comparisons.

    Examples
    --------
    >>> simulation = simulate_comparisons(n_items=5, n_workers=4, votes_per_worker=10)
    >>> simulation.comparisons.n_votes, simulation.scores.index.tolist()
    (40, ['i0', 'i1', 'i2', 'i3', 'i4'])
    """
    if n_items < 2 or n_workers < 1 or votes_per_worker < 1:
        raise UsageError(
            "a simulation needs two items, one worker and one comparison or more; got "
            f"n_items={n_items}, n_workers={n_workers}, votes_per_worker={votes_per_worker}"
        )
    rng = np.random.default_rng(random_state)
    score = score_spread * rng.standard_normal(n_items)
    score -= score.mean()
    slope = np.exp(discrimination_spread * rng.standard_normal(n_workers))
    lean = lean_spread * rng.standard_normal(n_workers)
    habit = (-np.inf if tie_utility is None else tie_utility) + tie_spread * rng.standard_normal(n_workers)
    n_votes = n_workers * votes_per_worker
    worker = np.repeat(np.arange(n_workers), votes_per_worker)
    left = rng.integers(0, n_items, n_votes)
    right = (left + rng.integers(1, n_items, n_votes)) % n_items
    advantage = score[left] - score[right]
    task = None
    if n_tasks:
        task = rng.integers(0, n_tasks, n_votes)
        deviation = task_spread * rng.standard_normal((n_items, n_tasks))
        advantage += deviation[left, task] - deviation[right, task]
    difference = slope[worker] * advantage + lean[worker]
    # The largest of three utilities with Gumbel noise has the probabilities of the model.
    utility = np.stack([difference / 2, -difference / 2, habit[worker]], axis=1) + rng.gumbel(size=(n_votes, 3))
    outcome = np.array([LEFT, RIGHT, TIE])[utility.argmax(axis=1)]
    items, workers = (
        pd.Index([f"{letter}{number}" for number in range(n)]) for letter, n in (("i", n_items), ("w", n_workers))
    )
    comparisons = Comparisons(
        left,
        right,
        outcome,
        items=items,
        worker=worker,
        workers=workers,
        task=task,
        tasks=pd.Index([f"t{number}" for number in range(n_tasks)]) if n_tasks else None,
    )
    return SimulatedComparisons(
        comparisons,
        pd.Series(score, index=items.rename("item"), name="score"),
        pd.DataFrame({"discrimination": slope, "lean": lean, "tie_habit": habit}, index=workers.rename("worker")),
    )
