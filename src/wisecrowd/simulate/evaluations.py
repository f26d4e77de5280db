"""Simulated evaluations of systems: many scores of judges, few labels of people, known rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.comparisons import Comparisons
from wisecrowd.errors import UsageError

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SimulatedEvaluation:
    """Scores of judges and labels of people with the rates that they were drawn from.

    Parameters
    ----------
    scores : DataFrame
        Scores by system and task, a column for each judge.
    labels : DataFrame
        Labels of people: system, task, rater and label (0 or 1).
    rates : Series
        True rate of every system over tasks and people.
    """

    scores: pd.DataFrame
    labels: pd.DataFrame
    rates: pd.Series[Any]


def simulate_evaluation(
    *,
    n_tasks: int = 1000,
    rates: Sequence[float] = (0.5,),
    n_labelled: int = 100,
    n_judges: int = 5,
    judge_noise: float = 1.0,
    shared_noise: float = 0.5,
    judge_bias: float = 0.5,
    task_spread: float = 0.5,
    n_raters: int = 20,
    raters_per_item: int = 1,
    severity_spread: float = 0.0,
    disagreement: float = 0.5,
    random_state: int = 0,
) -> SimulatedEvaluation:
    """Simulate systems whose outputs are scored by judges and, for some tasks, labelled by people.

    The quality of an output is that of the system plus the ease of the task plus luck, all normal. A person says 1 if quality plus
    the person's severity plus noise is positive. Judges see the quality with noise that is partly common to all of them, and a
    common bias for each system.

    Parameters
    ----------
    n_tasks : int, default=1000
        Number of tasks; every system answers all.
    rates : sequence of float, default=(0.5,)
        True rate of each system.
    n_labelled : int, default=100
        Number of tasks, drawn at random, whose outputs people label.
    n_judges : int, default=5
        Number of judges.
    judge_noise, shared_noise : float
        Standard deviation of the noise of each judge, and of the noise that judges share.
    judge_bias : float, default=0.5
        Standard deviation of the judges' common bias for a system.
    task_spread : float, default=0.5
        Standard deviation of the ease of tasks, which outputs for one task share.
    n_raters, raters_per_item : int
        Number of people, and of people who label an output.
    severity_spread : float, default=0.0
        Standard deviation of the severity of people.
    disagreement : float, default=0.5
        Standard deviation of the noise of a person's label.
    random_state : int, default=0
        Seed.

    Returns
    -------
    SimulatedEvaluation

    Raises
    ------
    UsageError
        If a number is out of range.

    Examples
    --------
    >>> simulation = simulate_evaluation(n_tasks=200, rates=(0.7, 0.5), n_labelled=20, random_state=0)
    >>> simulation.scores.shape, len(simulation.labels), simulation.rates.to_dict()
    ((400, 5), 40, {'system0': 0.7, 'system1': 0.5})
    """
    from scipy.special import ndtri

    if not 1 <= n_labelled <= n_tasks:
        raise UsageError(f"n_labelled must be between 1 and n_tasks, which is {n_tasks}; got {n_labelled}")
    if not 1 <= raters_per_item <= n_raters:
        raise UsageError(f"raters_per_item must be between 1 and n_raters, which is {n_raters}; got {raters_per_item}")
    if n_judges < 1:
        raise UsageError(f"n_judges must be 1 or more; got {n_judges}")
    if not all(0 < rate < 1 for rate in rates):
        raise UsageError(f"rates must be above 0 and below 1; got {list(rates)}")
    rng = np.random.default_rng(random_state)
    n_systems = len(rates)
    total = np.sqrt(task_spread**2 + 1 + severity_spread**2 + disagreement**2)
    ability = ndtri(np.asarray(rates)) * total
    quality = ability[:, None] + rng.normal(0, task_spread, n_tasks) + rng.normal(0, 1, (n_systems, n_tasks))
    common = quality + rng.normal(0, judge_bias, (n_systems, 1)) + rng.normal(0, shared_noise, (n_systems, n_tasks))
    judged = common[..., None] + rng.normal(0, judge_noise, (n_systems, n_tasks, n_judges))
    systems, tasks = [f"system{s}" for s in range(n_systems)], [f"t{t}" for t in range(n_tasks)]
    scores = pd.DataFrame(
        judged.reshape(-1, n_judges),
        index=pd.MultiIndex.from_product([systems, tasks], names=["system", "task"]),
        columns=[f"judge{j}" for j in range(n_judges)],
    )
    severity = rng.normal(0, severity_spread, n_raters)
    labelled = np.sort(rng.choice(n_tasks, n_labelled, replace=False))
    # The same people label all outputs for a task.
    people = rng.permuted(np.tile(np.arange(n_raters), (n_labelled, 1)), axis=1)[:, :raters_per_item]
    latent = quality[:, labelled, None] + severity[people]
    label = (latent + rng.normal(0, disagreement, latent.shape) > 0).astype(np.int64)
    labels = pd.DataFrame({
        "system": np.repeat(systems, n_labelled * raters_per_item),
        "task": np.tile(np.repeat(np.array(tasks)[labelled], raters_per_item), n_systems),
        "rater": np.char.add("rater", np.tile(people.ravel(), n_systems).astype(str)),
        "label": label.ravel(),
    })  # fmt: skip
    return SimulatedEvaluation(scores, labels, pd.Series(np.asarray(rates, dtype=np.float64), index=systems))


@dataclass(frozen=True, eq=False)
class SimulatedArena:
    """Comparisons of systems by judges and by people with the true scores.

    Parameters
    ----------
    judges, people : Comparisons
        Comparisons; people compare a random sample of the judges' pairs.
    scores : Series
        True Bradley–Terry score of every system by people; the mean is zero.
    """

    judges: Comparisons
    people: Comparisons
    scores: pd.Series[Any]


def simulate_arena(
    *,
    n_tasks: int = 1000,
    scores: Sequence[float] = (0.8, 0.4, 0.0, -0.4, -0.8),
    n_labelled: int = 200,
    n_judges: int = 3,
    judge_noise: float = 1.0,
    judge_bias: float = 0.5,
    random_state: int = 0,
) -> SimulatedArena:
    """Simulate comparisons of systems by judges and, for some tasks, by people.

    People follow the model of Bradley and Terry. Judges see what people see with noise and a common bias for each system.

    Parameters
    ----------
    n_tasks : int, default=1000
        Number of tasks; on each, one random pair of systems is compared.
    scores : sequence of float
        True scores in logits.
    n_labelled : int, default=200
        Number of pairs, drawn at random, that people compare.
    n_judges : int, default=3
        Number of judges, who compare all pairs.
    judge_noise : float, default=1.0
        Standard deviation of the noise of each judge, in logits.
    judge_bias : float, default=0.5
        Standard deviation of the judges' common bias for a system, in logits.
    random_state : int, default=0
        Seed.

    Returns
    -------
    SimulatedArena

    Raises
    ------
    UsageError
        If a number is out of range.

    Examples
    --------
    >>> arena = simulate_arena(n_tasks=100, n_labelled=20, random_state=0)
    >>> arena.judges.n_votes, arena.people.n_votes
    (300, 20)
    """
    if not 1 <= n_labelled <= n_tasks or len(scores) < 2 or n_judges < 1:
        raise UsageError("n_labelled must lie between 1 and n_tasks; an arena needs two systems and one judge")
    rng = np.random.default_rng(random_state)
    theta = np.asarray(scores, dtype=np.float64)
    left = rng.integers(0, len(theta), n_tasks)
    right = (left + rng.integers(1, len(theta), n_tasks)) % len(theta)
    preference = theta[left] - theta[right] + rng.logistic(0, 1, n_tasks)
    bias = rng.normal(0, judge_bias, len(theta))
    judged = (preference + bias[left] - bias[right])[:, None] + rng.normal(0, judge_noise, (n_tasks, n_judges))
    systems = pd.Index([f"system{s}" for s in range(len(theta))])
    tasks = pd.Index([f"t{t}" for t in range(n_tasks)])
    labelled = np.sort(rng.choice(n_tasks, n_labelled, replace=False))
    task = np.repeat(np.arange(n_tasks), n_judges)
    judges = Comparisons(
        left[task], right[task], (judged.ravel() <= 0).astype(np.int32), items=systems, task=task, tasks=tasks,
        worker=np.tile(np.arange(n_judges), n_tasks), workers=pd.Index([f"judge{j}" for j in range(n_judges)]),
    )  # fmt: skip
    people = Comparisons(
        left[labelled], right[labelled], (preference[labelled] <= 0).astype(np.int32), items=systems, task=labelled, tasks=tasks,
        worker=np.zeros(n_labelled, dtype=np.int32), workers=pd.Index(["person"]),
    )  # fmt: skip
    return SimulatedArena(judges, people, pd.Series(theta - theta.mean(), index=systems))
