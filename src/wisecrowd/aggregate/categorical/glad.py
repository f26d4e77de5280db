"""GLAD: the product of ability and easiness."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from wisecrowd.aggregate.categorical._ability_likelihood import MAX_EXPONENT, AbilitySpec, TaskLine
from wisecrowd.aggregate.categorical._ability_model import DIFFICULTY_MEAN_HELP, AbilityModel
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.em.gradient import Array


@method_class
class GLAD(AbilityModel):
    """Model with abilities of workers and difficulties of tasks, in which the easiness of a task multiplies the ability.

    Model: y_ir = z_i with probability σ(α_r e^(−d_i)), otherwise any other class with equal probability. α_r is the
    ability, negative for an adversary; d_i is the difficulty (the paper's β_i, the logarithm of the easiness, is −d_i).
    With Gaussian priors α ~ N(1, 1) and d ~ N(−1, 1), the M-step makes a few L-BFGS steps on

        Q = Σ_ir [p_ir log σ(x_ir) + (1 − p_ir) log σ(−x_ir)] − ½Σ(α_r − 1)² − ½Σ(d_i + 1)²,   p_ir = q_i(y_ir)

    Choose it when some tasks are harder than others for everybody, and you want to know which. With fewer than about five
    labels per task, the prior dominates the difficulty; check its standard error. An able worker is right on the hardest
    task with probability one half; where able workers fail, `Rasch` fits better. Class-specific biases of workers are not
    modelled; use `DawidSkene` for them.

    Examples
    --------
    >>> from wisecrowd import GLAD, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=30, n_classes=3, votes_per_task=15, random_state=1,
    ...                       workers={"expert": 0.5, "noisy": 0.5}, difficulty="beta")
    >>> fitted = GLAD().fit(simulation.crowd)
    >>> float((fitted.labels_ == simulation.truth).mean()) > 0.9
    True
    >>> fitted.tasks_.columns.tolist()
    ['difficulty', 'standard_error', 'n_votes']
    >>> bool(fitted.tasks_["difficulty"].corr(simulation.difficulty) > 0.5)
    True
    """

    references: ClassVar[tuple[str, ...]] = ("whitehill2009whose",)

    difficulty_mean: float = parameter(default=-1.0, help=DIFFICULTY_MEAN_HELP)

    def _make_spec(self, n_classes: int) -> AbilitySpec:
        return AbilitySpec(
            compute_glad_line,
            (self.ability_mean, self.ability_sd),
            ((self.difficulty_mean, self.difficulty_sd),),
        )


def compute_glad_line(tasks: Array) -> TaskLine:
    """Return slope e^(−d) and shift 0 of every task.

    Parameters
    ----------
    tasks : ndarray of shape (1, n_tasks)
        Difficulties.

    Returns
    -------
    TaskLine
    """
    (difficulty,) = tasks
    easiness = np.exp(-np.clip(difficulty, -MAX_EXPONENT, MAX_EXPONENT))
    is_inside = np.abs(difficulty) < MAX_EXPONENT
    return TaskLine(easiness, np.zeros_like(easiness), -(easiness * is_inside)[None], np.zeros_like(tasks))
