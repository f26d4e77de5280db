"""The two-parameter logistic model: difficulty and discrimination of tasks."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical._ability_likelihood import (
    MAX_EXPONENT,
    AbilitySpec,
    TaskLine,
    get_guess_prob,
)
from wisecrowd.aggregate.categorical._ability_model import GUESSING_HELP, AbilityModel
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.em.gradient import Array


@method_class
class TwoPL(AbilityModel):
    """Two-parameter logistic model: a Rasch model in which tasks also differ in discrimination.

    Model: y_ir = z_i with probability g + (1 − g)·σ(a_i (θ_r − d_i)), otherwise any other class with equal probability. a_i
    = e^(c_i) is the task's discrimination; θ ~ N(1, 1), d ~ N(0, 1), c ~ N(0, ½²). ``discrimination_sd=0`` is `Rasch`, and
    ``guessing="chance"`` the three-parameter model with its floor at one over the number of classes.

    Choose it with about ten labels per task or more, when you want to know which tasks are informative: a task of low
    discrimination says little about the ability of workers. With fewer labels use `Rasch`, whose remarks on shared bias
    apply here, too.

    Examples
    --------
    >>> from wisecrowd import TwoPL, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=30, n_classes=3, votes_per_task=15, random_state=1,
    ...                       workers={"expert": 0.5, "noisy": 0.5}, difficulty="beta")
    >>> fitted = TwoPL().fit(simulation.crowd)
    >>> float((fitted.labels_ == simulation.truth).mean()) > 0.85
    True
    >>> fitted.tasks_.columns.tolist()
    ['difficulty', 'standard_error', 'discrimination', 'n_votes']
    """

    references: ClassVar[tuple[str, ...]] = ("birnbaum1968some",)

    guessing: float | Literal["chance"] = parameter(default=0.0, help=GUESSING_HELP)
    discrimination_sd: float = parameter(
        default=0.5,
        help="Prior standard deviation of the logarithm of a task's discrimination; 0 makes all tasks equal.",
    )

    def _make_spec(self, n_classes: int) -> AbilitySpec:
        return AbilitySpec(
            compute_two_pl_line,
            (self.ability_mean, self.ability_sd),
            ((self.difficulty_mean, self.difficulty_sd), (0.0, self.discrimination_sd)),
            get_guess_prob(self.guessing, n_classes),
            make_discrimination_column,
        )


def compute_two_pl_line(tasks: Array) -> TaskLine:
    """Return slope e^c and shift d e^c of every task.

    Parameters
    ----------
    tasks : ndarray of shape (2, n_tasks)
        Difficulties d, and logarithms c of the discriminations.

    Returns
    -------
    TaskLine
    """
    difficulty, log_discrimination = tasks
    slope = np.exp(np.clip(log_discrimination, -MAX_EXPONENT, MAX_EXPONENT))
    shift = slope * difficulty
    is_inside = np.abs(log_discrimination) < MAX_EXPONENT
    return TaskLine(
        slope,
        shift,
        np.stack([np.zeros_like(slope), slope * is_inside]),
        np.stack([slope, shift * is_inside]),
    )


def make_discrimination_column(tasks: Array) -> dict[str, NDArray[Any]]:
    """Return the column of ``tasks_`` with the discriminations.

    Parameters
    ----------
    tasks : ndarray of shape (2, n_tasks)
        Difficulties, and logarithms of the discriminations.

    Returns
    -------
    dict of ndarray
    """
    return {"discrimination": np.exp(tasks[1])}
