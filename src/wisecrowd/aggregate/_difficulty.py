"""Models in which a task may be harder for everybody: GLAD, Rasch and 2PL as lines through a worker's ability."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from wisecrowd.aggregate._climbing import Array, ClimbingEM, Landscape, infer
from wisecrowd.crowd import Crowd
from wisecrowd.errors import UsageError, one_of


class Line(NamedTuple):
    """x = slope_i · ability − shift_i for every task, and how both follow from the task's parameters.

    >>> Line(np.ones(2), np.zeros(2), np.zeros((1, 2)), np.ones((1, 2))).shift.tolist()
    [0.0, 0.0]
    """

    slope: Array
    """(tasks,)"""
    shift: Array
    """(tasks,)"""
    slope_by: Array
    """(parameters, tasks): derivatives of the slope."""
    shift_by: Array
    """(parameters, tasks): derivatives of the shift."""


class Abilities(Landscape):
    """P(y_ir = z_i) = g + (1 − g)·σ(x_ir), x_ir = slope_i·θ_r − shift_i, errors even over the other classes.

    A point is (θ of all workers, then each parameter of all tasks), each with a Gaussian prior of its own. Of a
    posterior, the M-step needs only p_ir = q_i(y_ir), whatever the number of classes.
    """

    def __init__(self, crowd: Crowd, method: DifficultyEM) -> None:
        assert crowd.worker is not None
        self.method = method
        self.task, self.worker = crowd.task.astype(np.intp), crowd.worker.astype(np.intp)
        self.n_tasks, self.n_workers, self.n_classes = crowd.n_tasks, crowd.n_workers, crowd.n_classes
        self.cell = self.task * self.n_classes + crowd.label
        self.weight = crowd.weight
        self.floor = 1 / self.n_classes if method.guessing == "chance" else float(method.guessing)
        self.log_others = float(np.log(max(self.n_classes - 1, 1)))
        means, spreads = zip((method.ability_mean, method.ability_sd), *method._task_priors(), strict=True)
        sizes = [self.n_workers] + [self.n_tasks] * (len(means) - 1)
        self.mean = np.repeat(np.asarray(means, dtype=np.float64), sizes)
        with np.errstate(divide="ignore"):
            self.precision = np.repeat(np.asarray(spreads, dtype=np.float64) ** -2.0, sizes)

    def begin(self) -> Array:
        """Everybody and everything at the mean of the prior."""
        return self.mean.copy()

    def split(self, point: Array) -> tuple[Array, Array]:
        """Abilities (workers,), and task parameters (parameters, tasks)."""
        return point[: self.n_workers], point[self.n_workers :].reshape(-1, self.n_tasks)

    def _odds(self, point: Array) -> tuple[Line, Array, Array, Array]:
        """The line, θ and the slope by vote, and x by vote."""
        ability, tasks = self.split(point)
        line = self.method._line(tasks)
        theta, slope = ability[self.worker], line.slope[self.task]
        return line, theta, slope, theta * slope - line.shift[self.task]

    def _log_chances(self, x: Array) -> tuple[Array, Array, Array]:
        """log P(right), log P(wrong), and σ(x), by vote."""
        sigma = expit(x)
        # log σ(−x), to an absolute error of 1e-16: log1p would be as good and takes seven times as long.
        wrong = np.log(np.maximum(sigma, 1 - sigma)) - np.maximum(x, 0)
        if self.floor == 0:
            return x + wrong, wrong, sigma
        return np.log(self.floor + (1 - self.floor) * sigma), wrong + np.log1p(-self.floor), sigma

    def evidence(self, point: Array) -> Array:
        """Every vote speaks against all classes alike, and for the one it names."""
        right, wrong, _ = self._log_chances(self._odds(point)[-1])
        wrong = (wrong - self.log_others) * self.weight
        against = np.bincount(self.task, weights=wrong, minlength=self.n_tasks)
        cells = self.n_tasks * self.n_classes
        named = np.bincount(self.cell, weights=right * self.weight - wrong, minlength=cells)
        return named.reshape(self.n_tasks, self.n_classes) + against[:, None]

    def penalty(self, point: Array) -> float:
        """Gaussian, without its constant; a fixed coordinate has nothing to pay."""
        away = point - self.mean
        return -0.5 * float(np.sum(self.precision * away**2, where=np.isfinite(self.precision)))

    def expected(self, point: Array, posterior: Array) -> tuple[float, Array]:
        """Q and its gradient: one pass over the votes."""
        line, theta, slope, x = self._odds(point)
        right, wrong, sigma = self._log_chances(x)
        chance = posterior.ravel()[self.cell]
        value = float(np.sum(self.weight * (chance * (right - wrong + self.log_others) + wrong - self.log_others)))
        gain = chance if self.floor == 0 else chance * sigma / (self.floor + (1 - self.floor) * sigma)
        pull = self.weight * (gain - sigma)  # dQ/dx
        by_task = self._by_task(pull * theta) * line.slope_by - self._by_task(pull) * line.shift_by
        gradient = np.concatenate([self._by_worker(pull * slope), by_task.ravel()])
        free = np.isfinite(self.precision)
        gradient -= np.where(free, self.precision, 0) * (point - self.mean)
        return value + self.penalty(point), np.where(free, gradient, 0)

    def curvature(self, point: Array, posterior: Array) -> Array:
        """Expected information of the votes plus that of the prior."""
        line, theta, slope, x = self._odds(point)
        sigma = self._log_chances(x)[2]
        bend = self.weight * np.maximum(sigma * (1 - sigma), 0.05)
        if self.floor:
            bend *= (1 - self.floor) * sigma / (self.floor + (1 - self.floor) * sigma)
        by_task = (
            self._by_task(bend * theta**2) * line.slope_by**2
            - 2 * self._by_task(bend * theta) * line.slope_by * line.shift_by
            + self._by_task(bend) * line.shift_by**2
        )
        return np.concatenate([self._by_worker(bend * slope**2), by_task.ravel()]) + self.precision + 1e-12

    def _by_task(self, values: Array) -> Array:
        return np.bincount(self.task, weights=values, minlength=self.n_tasks)

    def _by_worker(self, values: Array) -> Array:
        return np.bincount(self.worker, weights=values, minlength=self.n_workers)


@dataclass(kw_only=True, eq=False, repr=False)
class DifficultyEM(ClimbingEM):
    """A worker is right the more probably the abler they are and the easier the task is."""

    ability_mean: float = field(default=1.0, metadata={"help": "what to think of a worker before any vote"})
    ability_sd: float = field(default=1.0, metadata={"help": "how much abilities differ; 0 makes all alike"})
    difficulty_mean: float = field(default=0.0, metadata={"help": "what to think of a task before any vote"})
    difficulty_sd: float = field(default=1.0, metadata={"help": "how much difficulties differ; 0 makes all alike"})
    guessing: float | Literal["chance"] = field(
        default=0.0, metadata={"help": "probability to be right by luck alone; 'chance' is one over the classes"}
    )

    @abstractmethod
    def _line(self, tasks: Array) -> Line:
        """The model: how log-odds of being right follow from ability, by task."""

    def _task_priors(self) -> list[tuple[float, float]]:
        return [(self.difficulty_mean, self.difficulty_sd)]

    def _landscape(self, crowd: Crowd) -> Abilities:
        return Abilities(crowd, self)

    def _first_posterior(self, crowd, land):
        return infer(land.evidence(land.begin()), np.ones(crowd.n_classes), None)[0]

    def _carried_over(self, land, known, crowd):
        raise NotImplementedError

    def _keep(self, crowd, land, point, posterior):
        self.ability_, self.tasks__ = land.split(point)
