"""Simulated scores of judges with common errors, and votes of people beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, ndtri

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.scores import ScoreCrowd
from wisecrowd.errors import UsageError, check_choice
from wisecrowd.simulate.spec import check_fraction
from wisecrowd.simulate.votes import make_ids


@dataclass(frozen=True, eq=False)
class ScoreSimulation:
    """Simulated scores with their truth.

    Parameters
    ----------
    scores : ScoreCrowd
        Scores of judges, and votes of people if there are any.
    truth : Series
        True class by task, 0 or 1.
    separation : ndarray of shape (n_judges,)
        Distance between the classes in units of the standard deviation of each judge's errors.
    error_correlation : ndarray of shape (n_judges, n_judges)
        Correlation of the errors before they are rounded to the scale.
    """

    scores: ScoreCrowd
    truth: pd.Series
    separation: NDArray[np.float64]
    error_correlation: NDArray[np.float64]


def simulate_scores(
    n_tasks: int = 500,
    n_judges: int = 8,
    *,
    n_people: int = 0,
    separation: float | tuple[float, float] = (0.5, 1.5),
    correlation: float = 0.5,
    n_families: int = 2,
    family_correlation: float = 0.2,
    scale: Literal["grades", "probabilities", "logits", "mixed"] = "grades",
    people_accuracy: float = 0.85,
    people_density: float = 1.0,
    positive: float = 0.5,
    random_state: int = 0,
) -> ScoreSimulation:
    """Simulate judges who score tasks of two classes and err together.

    The opinion of judge j on a task of class z is (z − ½) d_j + e_j. Errors have unit variance and are correlated, more so within a
    family of judges. Every judge maps opinions to scores in its own way: grades from 0 to 9 with random thresholds,
    probabilities or logits with random slope and offset.

    Parameters
    ----------
    n_tasks, n_judges : int
        Sizes.
    n_people : int, default=0
        Number of people who label tasks independently.
    separation : float or tuple (low, high), default=(0.5, 1.5)
        Distance d between classes, or bounds between which it is drawn.
    correlation : float, default=0.5
        Correlation of the errors of judges of different families.
    n_families : int, default=2
        Number of families, to which judges are assigned in turn.
    family_correlation : float, default=0.2
        Further correlation within a family.
    scale : {"grades", "probabilities", "logits", "mixed"}, default="grades"
        Scale of the scores; "mixed" assigns the three to the judges in turn.
    people_accuracy : float, default=0.85
        Accuracy of people.
    people_density : float, default=1.0
        Probability with which a person labels a task.
    positive : float, default=0.5
        Share of tasks of class 1.
    random_state : int, default=0
        Seed.

    Returns
    -------
    ScoreSimulation

    Examples
    --------
    >>> simulate_scores(n_tasks=50, n_judges=4, n_people=2).scores
    ScoreCrowd(200 scores: 50 tasks x 4 judges; 100 votes of 2 people)
    """
    check_choice("scale", scale, ("grades", "probabilities", "logits", "mixed"))
    shares = {"correlation": correlation, "family_correlation": family_correlation, "people_accuracy": people_accuracy}
    for name, value in (shares | {"people_density": people_density, "positive": positive}).items():
        check_fraction(name, value)
    if correlation + family_correlation > 1:
        raise UsageError(
            f"correlation and family_correlation must not exceed 1 together; got {correlation} and {family_correlation}"
        )
    if n_tasks < 1 or n_judges < 1 or n_people < 0 or n_families < 1:
        raise UsageError(
            f"scores need tasks, judges and families; got {n_tasks} tasks, {n_judges} judges, {n_people} people and "
            f"{n_families} families"
        )
    truth_rng, error_rng, judge_rng, people_rng = np.random.default_rng(random_state).spawn(4)
    truth = (truth_rng.random(n_tasks) < positive).astype(np.int64)
    low, high = separation if isinstance(separation, tuple) else (separation, separation)
    distance = low + (high - low) * judge_rng.random(n_judges)
    family = np.arange(n_judges) % n_families
    own = 1 - correlation - family_correlation
    common, by_family, error = (error_rng.standard_normal((n_tasks, n)) for n in (1, n_families, n_judges))
    errors = (
        np.sqrt(correlation) * common
        + np.sqrt(family_correlation) * by_family[:, family]
        + np.sqrt(max(own, 0)) * error
    )
    opinion = (truth[:, None] - 0.5) * distance + errors
    scales = (
        np.array(["grades", "probabilities", "logits"])[np.arange(n_judges) % 3]
        if scale == "mixed"
        else [scale] * n_judges
    )
    values = np.empty_like(opinion)
    for judge, name in enumerate(scales):
        slope, offset = np.exp(judge_rng.normal(0, 0.3)), judge_rng.normal(0, 0.7)
        if name == "grades":
            thresholds = np.sort(ndtri(judge_rng.uniform(0.02, 0.98, size=9))) * np.hypot(1, distance[judge] / 2)
            values[:, judge] = np.searchsorted(thresholds, opinion[:, judge])
        else:
            logits = slope * opinion[:, judge] + offset
            values[:, judge] = logits if name == "logits" else expit(logits)
    tasks, judges = make_ids("t", n_tasks), make_ids("judge", n_judges)
    task, judge_code = np.divmod(np.arange(n_tasks * n_judges), n_judges)
    votes = None
    if n_people:
        is_right = people_rng.random((n_people, n_tasks)) < people_accuracy
        person, labelled = np.nonzero(people_rng.random((n_people, n_tasks)) < people_density)
        label = np.where(is_right, truth, 1 - truth)[person, labelled]
        people = make_ids("person", n_people)
        votes = Crowd.from_codes(labelled, person, label, tasks=tasks, workers=people, classes=pd.Index([0, 1]))
    same_family = family[:, None] == family
    error_correlation = correlation + family_correlation * same_family + own * np.eye(n_judges)
    return ScoreSimulation(
        scores=ScoreCrowd(task, judge_code, values.ravel(), tasks=tasks, workers=judges, votes=votes),
        truth=pd.Series(truth, index=tasks, name="truth"),
        separation=distance,
        error_correlation=error_correlation,
    )
