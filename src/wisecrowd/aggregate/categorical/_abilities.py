"""Models in which a task may be hard for everybody, over votes in memory: lines through a worker's ability.

All say P(y_ir = z_i) = g + (1 − g)·σ(x_ir) with x_ir = slope_i·θ_r − shift_i, and errors even over the other classes;
they differ in how slope and shift follow from a task's parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from wisecrowd.data.crowd import Crowd
from wisecrowd.em.gradient import Array, Gaussians, Landscape

if TYPE_CHECKING:
    from wisecrowd.aggregate.categorical._difficulty import DifficultyEM


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

    def __init__(self, crowd: Crowd, gold: NDArray[np.int32] | None, method: DifficultyEM) -> None:
        super().__init__(crowd, gold)
        assert crowd.worker is not None
        self.line = method._line
        self.task, self.worker = crowd.task.astype(np.intp), crowd.worker.astype(np.intp)
        self.n_tasks, self.n_workers, self.n_classes = crowd.n_tasks, crowd.n_workers, crowd.n_classes
        self.cell = self.task * self.n_classes + crowd.label
        self.weight = crowd.weight
        self.floor = method._floor(self.n_classes) if self.n_classes > 1 else 0.0
        self.log_others = float(np.log(max(self.n_classes - 1, 1)))
        self._seen: tuple[Array, View] | None = None
        abilities, tasks = priors_of(method, self.n_workers, self.n_tasks)
        self.prior = Gaussians(
            np.concatenate([abilities.mean, tasks.mean]), np.concatenate([abilities.precision, tasks.precision])
        )

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
        """Votes and prior."""
        value, gradient = self.told(point, posterior)
        return value + self.penalty(point), self.prior.slope(gradient, point)

    def told(self, point: Array, posterior: Array) -> tuple[float, Array]:
        """The part of the votes in `expected`: being right as often as the posterior says that one was."""
        line, theta, slope, right, wrong, sigma = self.view(point)
        chance = posterior.ravel()[self.cell]  # p_ir
        value = float(np.sum(self.weight * (chance * (right - wrong + self.log_others) + wrong - self.log_others)))
        pull = self.weight * (chance * self._luckless(sigma) - sigma)  # dQ/dx
        by_task = self._by_task(pull * theta) * line.slope_by - self._by_task(pull) * line.shift_by
        return value, np.concatenate([self._by_worker(pull * slope), by_task.ravel()])

    def curvature(self, point: Array, posterior: Array) -> Array:
        """The information of votes and prior."""
        return self.prior.sharpness(self.bend(point))

    def bend(self, point: Array) -> Array:
        """The part of the votes in `curvature`."""
        # A vote of which the model is certain, and wrong, would else send its worker and task to infinity.
        return self._information(point, least=0.01)

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
        """Of every coordinate, the others held where they are; no error exceeds the prior's."""
        return self.prior.error(self.known(point, posterior))

    def known(self, point: Array, posterior: Array) -> Array:
        """The information of the votes, less what not knowing the truth costs.

        The score of a coordinate depends on the true class; its variance under the posterior is the information that
        goes missing (Louis 1982).
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
        return self._information(point) - np.concatenate([by_worker, *by_task])

    def _by_task(self, values: Array) -> Array:
        return _sums(self.task, values, self.n_tasks)

    def _by_worker(self, values: Array) -> Array:
        return _sums(self.worker, values, self.n_workers)

    def _by_cell(self, values: Array) -> Array:
        return _sums(self.cell, values, self.n_tasks * self.n_classes).reshape(self.n_tasks, self.n_classes)


def _sums(index: NDArray[np.intp], values: Array, size: int) -> Array:
    return np.bincount(index, weights=values, minlength=size)  # type: ignore[return-value]  # float, being weighted


def priors_of(method: DifficultyEM, n_workers: int, n_tasks: int) -> tuple[Gaussians, Gaussians]:
    """What is thought before any vote of all abilities, and of all parameters of tasks, each parameter of all tasks in turn.

    >>> from wisecrowd import TwoPL
    >>> abilities, tasks = priors_of(TwoPL(difficulty_sd=2), n_workers=1, n_tasks=2)
    >>> abilities.mean, tasks.precision
    (array([1.]), array([0.25, 0.25, 4.  , 4.  ]))
    """
    return _alike([(method.ability_mean, method.ability_sd)], n_workers), _alike(method._task_priors(), n_tasks)


def _alike(given: list[tuple[float, float]], size: int) -> Gaussians:
    means, spreads = np.array(given, dtype=np.float64).T
    with np.errstate(divide="ignore"):
        return Gaussians(np.repeat(means, size), np.repeat(spreads**-2.0, size))
