"""Models in which a task may be hard for everybody: GLAD, Rasch and 2PL are lines through a worker's ability.

All say P(y_ir = z_i) = g + (1 − g)·σ(x_ir) with x_ir = slope_i·θ_r − shift_i, and errors even over the other classes;
they differ in how slope and shift follow from a task's parameters, which is all that a method states (`_line`).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from wisecrowd.aggregate._climbing import Array, ClimbingEM, Gaussians, Landscape, infer
from wisecrowd.crowd import Crowd
from wisecrowd.errors import UsageError

#: e to this power is as easy, or as discriminating, as a task gets.
STEEPEST = 20.0


class Line(NamedTuple):
    """Slope and shift of every task, and how they change with the task's parameters.

    >>> rasch = Line(slope=np.ones(2), shift=np.zeros(2), slope_by=np.zeros((1, 2)), shift_by=np.ones((1, 2)))
    >>> rasch.slope * 1.5 - rasch.shift  # the log-odds with which a worker of ability 1.5 is right
    array([1.5, 1.5])
    """

    slope: Array
    """(tasks,)"""
    shift: Array
    """(tasks,)"""
    slope_by: Array
    """(parameters, tasks): derivatives of the slope."""
    shift_by: Array
    """(parameters, tasks): derivatives of the shift."""


class View(NamedTuple):
    """What a point says of every vote: the lines of the tasks; ability, slope, and the chances of being right or wrong."""

    line: Line
    theta: Array
    slope: Array
    right: Array
    """log P(right)"""
    wrong: Array
    """log P(wrong)"""
    sigma: Array
    """σ(x), which is P(right) where there is no luck"""


class Abilities(Landscape):
    """The votes seen by workers' abilities and tasks' lines.

    A point is θ of all workers, then each parameter of all tasks; every coordinate has a Gaussian prior, of no width
    where it is fixed. Of a posterior, the M-step needs only p_ir = q_i(y_ir), whatever the number of classes.
    """

    def __init__(self, crowd: Crowd, method: DifficultyEM) -> None:
        assert crowd.worker is not None
        self.line = method._line
        self.task, self.worker = crowd.task.astype(np.intp), crowd.worker.astype(np.intp)
        self.n_tasks, self.n_workers, self.n_classes = crowd.n_tasks, crowd.n_workers, crowd.n_classes
        self.cell = self.task * self.n_classes + crowd.label
        self.weight = crowd.weight
        self.floor = method._floor(self.n_classes) if self.n_classes > 1 else 0.0
        self.log_others = float(np.log(max(self.n_classes - 1, 1)))
        means, spreads = zip((method.ability_mean, method.ability_sd), *method._task_priors(), strict=True)
        sizes = [self.n_workers] + [self.n_tasks] * (len(means) - 1)
        with np.errstate(divide="ignore"):
            precisions = np.asarray(spreads, dtype=np.float64) ** -2.0
        self._seen: tuple[Array, View] | None = None
        self.prior = Gaussians(np.repeat(np.asarray(means, dtype=np.float64), sizes), np.repeat(precisions, sizes))

    def split(self, point: Array) -> tuple[Array, Array]:
        """Abilities (workers,), and task parameters (parameters, tasks)."""
        return point[: self.n_workers], point[self.n_workers :].reshape(-1, self.n_tasks)

    def view(self, point: Array) -> View:
        """Computed once for a point, which the M-step, the E-step and the next M-step's first look all ask for."""
        if self._seen is None or self._seen[0] is not point:
            ability, tasks = self.split(point)
            line = self.line(tasks)
            theta, slope = ability[self.worker], line.slope[self.task]
            self._seen = point, View(line, theta, slope, *self._chances(theta * slope - line.shift[self.task]))
        return self._seen[1]

    def _chances(self, x: Array) -> tuple[Array, Array, Array]:
        """log P(right), log P(wrong) and σ(x) of every vote."""
        sigma = expit(x)
        # log σ(−x) to an absolute error of 1e-16; log1p would be as good and takes seven times as long.
        wrong = np.log(np.maximum(sigma, 1 - sigma)) - np.maximum(x, 0)
        if self.floor == 0:
            return x + wrong, wrong, sigma
        return np.log(self.floor + (1 - self.floor) * sigma), wrong + np.log1p(-self.floor), sigma

    def evidence(self, point: Array) -> Array:
        """Every vote speaks against all classes alike, and for the one it names."""
        right, wrong = self.view(point)[3:5]
        against = self.weight * (wrong - self.log_others)
        named = self._by_cell(self.weight * right - against)
        return named + self._by_task(against)[:, None]

    def expected(self, point: Array, posterior: Array) -> tuple[float, Array]:
        """One pass over the votes for the value, and sums by worker and by task for the gradient."""
        line, theta, slope, right, wrong, sigma = self.view(point)
        chance = posterior.ravel()[self.cell]  # p_ir
        value = float(np.sum(self.weight * (chance * (right - wrong + self.log_others) + wrong - self.log_others)))
        pull = self.weight * (chance * self._luckless(sigma) - sigma)  # dQ/dx
        by_task = self._by_task(pull * theta) * line.slope_by - self._by_task(pull) * line.shift_by
        gradient = np.concatenate([self._by_worker(pull * slope), by_task.ravel()])
        return value + self.penalty(point), np.where(self.prior.free, gradient + self.prior.pull(point), 0)

    def curvature(self, point: Array, posterior: Array) -> Array:
        """The information of votes and prior."""
        # A vote of which the model is certain, and wrong, would else send its worker and task to infinity.
        return self._information(point, least=0.01) + self.prior.precision + 1e-9

    def _luckless(self, sigma: Array) -> Array | float:
        """σ / P(right): the part of being right that is not luck, 1 without a floor."""
        return 1.0 if self.floor == 0 else sigma / (self.floor + (1 - self.floor) * sigma)

    def _information(self, point: Array, least: float = 0.0) -> Array:
        """What the votes would tell of every coordinate if the truth were known (Fisher)."""
        line, theta, slope, _, _, sigma = self.view(point)
        bend = np.maximum(sigma * (1 - sigma), least) * self.weight
        bend *= (1 - self.floor) * self._luckless(sigma)
        by_task = (
            self._by_task(bend * theta**2) * line.slope_by**2
            - 2 * self._by_task(bend * theta) * line.slope_by * line.shift_by
            + self._by_task(bend) * line.shift_by**2
        )
        return np.concatenate([self._by_worker(bend * slope**2), by_task.ravel()])

    def standard_error(self, point: Array, posterior: Array) -> Array:
        """Of every coordinate, the others held where they are: what is known less what not knowing the truth costs.

        The score of a coordinate depends on the true class; its variance under the posterior is the information that
        goes missing (Louis 1982). What votes tell is not let fall below nothing, so no error exceeds the prior's.
        """
        line, theta, slope, _, _, sigma = self.view(point)
        gain = self.weight * self._luckless(sigma)  # how much more the score of x is when the vote is right
        chance = posterior.ravel()[self.cell]
        by_worker = self._by_worker((gain * slope) ** 2 * chance * (1 - chance))
        theta_sum, sum_ = self._by_cell(gain * theta), self._by_cell(gain)
        by_task = []
        for slope_by, shift_by in zip(line.slope_by, line.shift_by, strict=True):
            score = slope_by[:, None] * theta_sum - shift_by[:, None] * sum_
            mean = (posterior * score).sum(axis=1, keepdims=True)
            by_task.append((posterior * (score - mean) ** 2).sum(axis=1))
        told = self._information(point) - np.concatenate([by_worker, *by_task])
        with np.errstate(divide="ignore"):
            return 1 / np.sqrt(np.maximum(told, 0) + self.prior.precision)

    def _by_task(self, values: Array) -> Array:
        return _sums(self.task, values, self.n_tasks)

    def _by_worker(self, values: Array) -> Array:
        return _sums(self.worker, values, self.n_workers)

    def _by_cell(self, values: Array) -> Array:
        return _sums(self.cell, values, self.n_tasks * self.n_classes).reshape(self.n_tasks, self.n_classes)


def _sums(index: NDArray[np.intp], values: Array, size: int) -> Array:
    return np.bincount(index, weights=values, minlength=size)  # type: ignore[return-value]  # float, being weighted


@dataclass(kw_only=True, eq=False, repr=False)
class DifficultyEM(ClimbingEM):
    """A worker is right the more probably the abler they are and the easier the task is.

    After ``fit``, ``tasks_`` tells by task its difficulty with a standard error and its number of labels, and
    ``workers_`` has each worker's ability with a standard error.

    >>> from wisecrowd import Rasch
    >>> issubclass(Rasch, DifficultyEM)
    True
    """

    ability_mean: float = field(default=1.0, metadata={"help": "what to think of a worker before any vote"})
    ability_sd: float = field(default=1.0, metadata={"help": "how much workers differ in ability; 0 makes all alike"})
    difficulty_mean: float = field(default=0.0, metadata={"help": "what to think of a task before any vote"})
    difficulty_sd: float = field(default=1.0, metadata={"help": "how much tasks differ in difficulty; 0: not at all"})

    @abstractmethod
    def _line(self, tasks: Array) -> Line:
        """The model: the line of every task, from its parameters (parameters, tasks)."""

    def _task_priors(self) -> list[tuple[float, float]]:
        """Mean and standard deviation of the prior of every task parameter, difficulty first."""
        return [(self.difficulty_mean, self.difficulty_sd)]

    def _floor(self, n_classes: int) -> float:
        """g: the probability to be right by luck alone."""
        return 0.0

    def _task_columns(self, tasks: Array) -> dict[str, NDArray[Any]]:
        """What `tasks_` has besides the difficulty."""
        return {}

    def _check(self) -> None:
        super()._check()
        for mean, spread in [(self.ability_mean, self.ability_sd), *self._task_priors()]:
            if not (np.isfinite(mean) and spread >= 0):
                raise UsageError(f"a prior needs a finite mean and a spread of 0 or more; got {mean} and {spread}")

    def _landscape(self, crowd: Crowd) -> Abilities:
        return Abilities(crowd, self)

    def _first_posterior(self, crowd: Crowd, land: Abilities) -> Array:
        """As if all workers were equally able, and all tasks equally difficult."""
        return infer(land.evidence(land.begin()), np.ones(crowd.n_classes), None)[0]

    def _carried_over(self, known: DifficultyEM, crowd: Crowd, land: Abilities) -> Array:
        """Abilities of the workers and parameters of the tasks that both fits know."""
        point = land.begin()
        ability, tasks = land.split(point)
        assert known.worker_index_ is not None
        assert crowd.workers is not None
        place = known.worker_index_.get_indexer(crowd.workers)
        ability[place >= 0] = known.ability_[place[place >= 0]]
        place = known.task_index_.get_indexer(crowd.tasks)
        tasks[:, place >= 0] = known.task_parameters_[:, place[place >= 0]]
        return np.where(land.prior.free, point, land.prior.mean)

    def _keep(self, crowd: Crowd, land: Abilities, point: Array) -> None:
        self.ability_, self.task_parameters_ = (part.copy() for part in land.split(point))
        self.ability_error_, errors = land.split(land.standard_error(point, self.posterior_))
        self.tasks_ = pd.DataFrame(
            {"difficulty": self.task_parameters_[0], "standard_error": errors[0]}
            | self._task_columns(self.task_parameters_)
            | {"n_labels": crowd.votes.sum(axis=1)},
            index=crowd.tasks.rename("task"),
        )

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        return super()._worker_columns() | {"ability": self.ability_, "standard_error": self.ability_error_}
