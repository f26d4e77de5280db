"""The Rasch model: ability less difficulty."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from wisecrowd.aggregate.categorical._abilities import Line
from wisecrowd.aggregate.categorical._difficulty import DifficultyEM
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.em.gradient import Array
from wisecrowd.errors import UsageError


@method_class
class Rasch(DifficultyEM):
    """Workers differ in ability and tasks in difficulty, and what counts is the difference.

    Model: y_ir = z_i with probability g + (1 − g)·σ(θ_r − d_i), otherwise any other class alike, with θ ~ N(1, 1) and
    d ~ N(0, 1): item response theory with one parameter per task, fitted by EM without knowing which answers are right.
    g is the luck of ``guessing``: none, a given probability, or ``"chance"``, one over the number of classes.

    Choose it when some tasks fool good workers, too; `GLAD` never lets difficulty push an able worker below even odds.
    That freedom can mislead: where workers share a bias, "the task is hard" explains it too easily (accuracy .57 on the
    bluebirds, where majority vote has .76 and `DawidSkene` .90). ``guessing="chance"`` takes it away again: never
    below chance (.77 there). Of seventeen public crowds with gold it was better on twelve, worse on three.

    >>> from wisecrowd import Rasch, simulate_crowd
    >>> made = simulate_crowd(n_tasks=200, n_workers=30, n_classes=3, votes_per_task=8, random_state=1,
    ...                       workers={"expert": 0.5, "noisy": 0.5}, difficulty="beta")
    >>> fitted = Rasch(guessing="chance").fit(made.crowd)
    >>> float((fitted.labels_ == made.truth).mean()) > 0.85
    True
    >>> bool(fitted.workers_["ability"].corr(made.accuracy) > 0.85)
    True
    """

    references: ClassVar[tuple[str, ...]] = ("rasch1960probabilistic",)

    guessing: float | Literal["chance"] = parameter(
        default=0.0, help="probability to be right by luck alone; 'chance' is one over the classes"
    )

    def _check(self) -> None:
        super()._check()
        lucky: object = self.guessing
        if lucky != "chance" and not (isinstance(lucky, int | float) and 0 <= lucky < 1):
            raise UsageError(f"guessing must be 'chance', or a probability below 1; got {lucky!r}")

    def _floor(self, n_classes: int) -> float:
        return 1 / n_classes if self.guessing == "chance" else float(self.guessing)

    def _line(self, tasks: Array) -> Line:
        (difficulty,) = tasks
        return Line(np.ones_like(difficulty), difficulty, np.zeros_like(tasks), np.ones_like(tasks))
