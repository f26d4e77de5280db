"""The two-parameter logistic model: tasks differ in difficulty and in how well they tell workers apart."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical._abilities import Line
from wisecrowd.aggregate.categorical._difficulty import STEEPEST
from wisecrowd.aggregate.categorical.rasch import Rasch
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.em.gradient import Array


@method_class
class TwoPL(Rasch):
    """As the Rasch model, and every task tells able from unable workers more or less sharply.

    Model: y_ir = z_i with probability g + (1 − g)·σ(a_i (θ_r − d_i)), otherwise any other class alike. a_i = e^(c_i) is
    the task's discrimination; θ ~ N(1, 1), d ~ N(0, 1), c ~ N(0, ½²). ``discrimination_sd=0`` is `Rasch`, and
    ``guessing="chance"`` the three-parameter model with its floor at one over the number of classes.

    Choose it with some ten labels per task or more, when you want to know which tasks are worth asking: one of low
    discrimination says little of who is good. With fewer labels take `Rasch`, whose doubts about shared bias hold here
    too.

    >>> from wisecrowd import TwoPL, simulate_crowd
    >>> made = simulate_crowd(n_tasks=200, n_workers=30, n_classes=3, votes_per_task=15, random_state=1,
    ...                       workers={"expert": 0.5, "noisy": 0.5}, difficulty="beta")
    >>> fitted = TwoPL().fit(made.crowd)
    >>> float((fitted.labels_ == made.truth).mean()) > 0.85
    True
    >>> fitted.tasks_.columns.tolist()
    ['difficulty', 'standard_error', 'discrimination', 'n_votes']
    """

    references: ClassVar[tuple[str, ...]] = ("birnbaum1968some",)

    discrimination_sd: float = parameter(
        default=0.5, help="how much tasks differ in the logarithm of their discrimination; 0: not at all"
    )

    def _task_priors(self) -> list[tuple[float, float]]:
        return [*super()._task_priors(), (0.0, self.discrimination_sd)]

    def _line(self, tasks: Array) -> Line:
        difficulty, sharpness = tasks
        slope = np.exp(np.clip(sharpness, -STEEPEST, STEEPEST))
        shift = slope * difficulty
        moves = np.abs(sharpness) < STEEPEST
        return Line(slope, shift, np.stack([np.zeros_like(slope), slope * moves]), np.stack([slope, shift * moves]))

    def _task_columns(self, tasks: Array) -> dict[str, NDArray[Any]]:
        return {"discrimination": np.exp(tasks[1])}
