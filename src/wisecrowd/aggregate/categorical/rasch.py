"""The Rasch model: ability minus difficulty."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from wisecrowd.aggregate.categorical._ability_likelihood import AbilitySpec, TaskLine, get_guess_prob
from wisecrowd.aggregate.categorical._ability_model import GUESSING_HELP, AbilityModel
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.em.gradient import Array


@method_class
class Rasch(AbilityModel):
    """Rasch model: the log-odds of a right label are ability minus difficulty.

    Model: y_ir = z_i with probability g + (1 − g)·σ(θ_r − d_i), otherwise any other class with equal probability, with θ ~
    N(1, 1) and d ~ N(0, 1). This is item response theory with one parameter per task, fitted by EM without knowing which
    labels are right.

    Choose it when some tasks mislead able workers, too; in `GLAD`, difficulty never pushes an able worker below even odds.
    Where workers share a bias, the model can explain it by difficult tasks and be less accurate than majority vote;
    ``guessing="chance"`` avoids this, since nobody is then worse than chance.

    Examples
    --------
    >>> from wisecrowd import Rasch, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=30, n_classes=3, votes_per_task=8, random_state=1,
    ...                       workers={"expert": 0.5, "noisy": 0.5}, difficulty="beta")
    >>> fitted = Rasch(guessing="chance").fit(simulation.crowd)
    >>> float((fitted.labels_ == simulation.truth).mean()) > 0.85
    True
    >>> bool(fitted.workers_["ability"].corr(simulation.accuracy) > 0.85)
    True
    """

    references: ClassVar[tuple[str, ...]] = ("rasch1960probabilistic",)

    guessing: float | Literal["chance"] = parameter(default=0.0, help=GUESSING_HELP)

    def _make_spec(self, n_classes: int) -> AbilitySpec:
        return AbilitySpec(
            compute_rasch_line,
            (self.ability_mean, self.ability_sd),
            ((self.difficulty_mean, self.difficulty_sd),),
            get_guess_prob(self.guessing, n_classes),
        )


def compute_rasch_line(tasks: Array) -> TaskLine:
    """Return slope 1 and shift d of every task.

    Parameters
    ----------
    tasks : ndarray of shape (1, n_tasks)
        Difficulties.

    Returns
    -------
    TaskLine
    """
    (difficulty,) = tasks
    return TaskLine(np.ones_like(difficulty), difficulty, np.zeros_like(tasks), np.ones_like(tasks))
