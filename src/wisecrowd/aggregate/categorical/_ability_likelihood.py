"""Likelihood of models with worker abilities and task difficulties, over votes in memory.

All models have P(y_ir = z_i) = g + (1 − g)·σ(x_ir) with x_ir = slope_i·θ_r − shift_i, and errors uniform over the other
classes. They differ in how slope and shift follow from the parameters of a task.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from wisecrowd.data.crowd import Crowd
from wisecrowd.em.gradient import Array, GaussianPrior, GradientModel, normalize_evidence
from wisecrowd.errors import UsageError

#: Largest absolute value of an exponent: the easiest, or most discriminating, task has a slope of e to this power.
MAX_EXPONENT = 20.0
#: Smallest curvature σ(1 − σ) of a vote; without it a vote that the model excludes would move its worker and task to infinity.
MIN_VOTE_CURVATURE = 0.01


class TaskLine(NamedTuple):
    """Slope and shift of every task, with their derivatives by the parameters of the task.

    Examples
    --------
    >>> rasch = TaskLine(np.ones(2), np.zeros(2), slope_gradient=np.zeros((1, 2)), shift_gradient=np.ones((1, 2)))
    >>> rasch.slope * 1.5 - rasch.shift  # log-odds of a right label by a worker of ability 1.5
    array([1.5, 1.5])
    """

    slope: Array
    """(n_tasks,)"""
    shift: Array
    """(n_tasks,)"""
    slope_gradient: Array
    """(n_parameters, n_tasks)"""
    shift_gradient: Array
    """(n_parameters, n_tasks)"""


def _no_columns(tasks: Array) -> dict[str, NDArray[Any]]:  # noqa: ARG001  # signature of `AbilitySpec.task_columns`
    """Return no further columns."""
    return {}


@dataclass(frozen=True)
class AbilitySpec:
    """Specification of a model with abilities and difficulties; it can be sent to other processes.

    Parameters
    ----------
    compute_line : callable
        Function from task parameters (n_parameters, n_tasks) to a `TaskLine`.
    ability_prior : tuple of float
        Mean and standard deviation of the abilities.
    task_priors : tuple of tuple of float
        Mean and standard deviation of every task parameter; the first one is the difficulty.
    guess_prob : float, default 0
        Probability g of a right label by chance.
    task_columns : callable, optional
        Function from task parameters to further columns of ``tasks_``.

    Examples
    --------
    >>> from wisecrowd.aggregate.categorical.rasch import compute_rasch_line
    >>> spec = AbilitySpec(compute_rasch_line, ability_prior=(1.0, 1.0), task_priors=((0.0, 2.0),))
    >>> abilities, tasks = spec.make_priors(n_workers=1, n_tasks=2)
    >>> abilities.mean, tasks.precision
    (array([1.]), array([0.25, 0.25]))
    """

    compute_line: Callable[[Array], TaskLine]
    ability_prior: tuple[float, float]
    task_priors: tuple[tuple[float, float], ...]
    guess_prob: float = 0.0
    task_columns: Callable[[Array], dict[str, NDArray[Any]]] = _no_columns

    def __post_init__(self) -> None:
        for mean, sd in (self.ability_prior, *self.task_priors):
            if not (np.isfinite(mean) and sd >= 0):
                raise UsageError(
                    f"a prior needs a finite mean and a standard deviation of 0 or more; got {mean} and {sd}"
                )

    def make_priors(self, n_workers: int, n_tasks: int) -> tuple[GaussianPrior, GaussianPrior]:
        """Return the priors of all abilities, and of all task parameters (one parameter of all tasks after the other).

        Parameters
        ----------
        n_workers, n_tasks : int
            Numbers of workers and tasks.

        Returns
        -------
        abilities, task_parameters : GaussianPrior
        """
        return _repeat_prior([self.ability_prior], n_workers), _repeat_prior(self.task_priors, n_tasks)


def _repeat_prior(priors: Any, size: int) -> GaussianPrior:
    """Return one Gaussian prior for ``size`` coordinates after the other."""
    means, sds = np.array(priors, dtype=np.float64).T
    with np.errstate(divide="ignore"):
        return GaussianPrior(np.repeat(means, size), np.repeat(sds**-2.0, size))


def get_guess_prob(guessing: float | Literal["chance"], n_classes: int) -> float:
    """Return the probability of a right label by chance.

    Parameters
    ----------
    guessing : float or 'chance'
        Probability, or 'chance' for one over the number of classes.
    n_classes : int
        Number of classes.

    Returns
    -------
    float

    Raises
    ------
    UsageError
        If ``guessing`` is neither 'chance' nor a probability below 1.

    Examples
    --------
    >>> get_guess_prob("chance", 4), get_guess_prob(0.1, 4)
    (0.25, 0.1)
    """
    value: object = guessing
    if value == "chance":
        return 1 / n_classes
    if not (isinstance(value, int | float) and 0 <= value < 1):
        raise UsageError(f"guessing must be 'chance', or a probability below 1; got {value!r}")
    return float(value)


class _VoteView(NamedTuple):
    """Values of every vote at a point."""

    line: TaskLine
    ability: Array
    slope: Array
    log_right: Array
    """log P(right)"""
    log_wrong: Array
    """log P(wrong)"""
    sigma: Array
    """σ(x), which is P(right) without guessing"""


class AbilityLikelihood(GradientModel):
    """Likelihood of votes in memory, as a function of abilities and task parameters.

    A point has θ of all workers, then each parameter of all tasks; every coordinate has a Gaussian prior, with infinite
    precision if it is fixed. Of a posterior, the M-step needs only p_ir = q_i(y_ir), whatever the number of classes.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    gold : ndarray of shape (n_tasks,) or None
        Class codes, −1 where the truth is unknown.
    spec : AbilitySpec
        Specification of the model.
    """

    def __init__(self, crowd: Crowd, gold: NDArray[np.int32] | None, spec: AbilitySpec) -> None:
        super().__init__(crowd, gold)
        assert crowd.worker is not None
        self.compute_line = spec.compute_line
        self.task, self.worker = crowd.task.astype(np.intp), crowd.worker.astype(np.intp)
        self.n_tasks, self.n_workers, self.n_classes = crowd.n_tasks, crowd.n_workers, crowd.n_classes
        self.cell = self.task * self.n_classes + crowd.label
        self.weight = crowd.weight
        self.guess_prob = spec.guess_prob if self.n_classes > 1 else 0.0
        self.log_n_others = float(np.log(max(self.n_classes - 1, 1)))
        self._cached_view: tuple[Array, _VoteView] | None = None
        abilities, tasks = spec.make_priors(self.n_workers, self.n_tasks)
        self.prior = GaussianPrior(
            np.concatenate([abilities.mean, tasks.mean]), np.concatenate([abilities.precision, tasks.precision])
        )

    def split_point(self, point: Array) -> tuple[Array, Array]:
        """Return abilities and task parameters of a point.

        Parameters
        ----------
        point : ndarray
            Values of all parameters: abilities, then those of tasks.

        Returns
        -------
        ability : ndarray of shape (n_workers,)
        tasks : ndarray of shape (n_parameters, n_tasks)
        """
        return point[: self.n_workers], point[self.n_workers :].reshape(-1, self.n_tasks)

    def initial_posterior(self) -> Array:
        """Return the posterior if all workers are equally able and all tasks equally difficult."""
        evidence = self.log_evidence(self.initial_point())
        return normalize_evidence(evidence, np.ones(self.n_classes), None)[0]

    def _view(self, point: Array) -> _VoteView:
        """Return the values of every vote; M-step, E-step and the next M-step need them for the same point."""
        if self._cached_view is None or self._cached_view[0] is not point:
            ability, tasks = self.split_point(point)
            line = self.compute_line(tasks)
            vote_ability, slope = ability[self.worker], line.slope[self.task]
            log_probs = self._compute_log_probs(vote_ability * slope - line.shift[self.task])
            self._cached_view = point, _VoteView(line, vote_ability, slope, *log_probs)
        return self._cached_view[1]

    def _compute_log_probs(self, x: Array) -> tuple[Array, Array, Array]:
        """Return log P(right), log P(wrong) and σ(x) of every vote."""
        sigma = expit(x)
        # log σ(−x) with an absolute error of 1e-16; log1p is as precise and takes seven times as long.
        wrong = np.log(np.maximum(sigma, 1 - sigma)) - np.maximum(x, 0)
        if self.guess_prob == 0:
            return x + wrong, wrong, sigma
        right = np.log(self.guess_prob + (1 - self.guess_prob) * sigma)
        return right, wrong + np.log1p(-self.guess_prob), sigma

    def log_evidence(self, point: Array) -> Array:
        """Return log P(votes of the task given class), (n_tasks, n_classes).

        Parameters
        ----------
        point : ndarray
            Values of all parameters: abilities, then those of tasks.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
        """
        view = self._view(point)
        against = self.weight * (view.log_wrong - self.log_n_others)  # of a vote, for all classes but its label
        own_label = self._sum_by_cell(self.weight * view.log_right - against)
        return own_label + self._sum_by_task(against)[:, None]

    def expected_log_joint(self, point: Array, posterior: Array) -> tuple[float, Array]:
        """Return the expected log-joint and its gradient.

        Parameters
        ----------
        point : ndarray
            Values of all parameters: abilities, then those of tasks.
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior.

        Returns
        -------
        value : float
        gradient : ndarray
        """
        value, gradient = self.expected_log_likelihood(point, posterior)
        return value + self.log_prior(point), self.prior.add_gradient(gradient, point)

    def expected_log_likelihood(self, point: Array, posterior: Array) -> tuple[float, Array]:
        """Return the expected log-likelihood of the votes, without the prior, and its gradient.

        Parameters
        ----------
        point : ndarray
            Values of all parameters: abilities, then those of tasks.
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior.

        Returns
        -------
        value : float
        gradient : ndarray
        """
        line, ability, slope, right, wrong, sigma = self._view(point)
        prob_right = posterior.ravel()[self.cell]  # p_ir
        terms = prob_right * (right - wrong + self.log_n_others) + wrong - self.log_n_others
        value = float(np.sum(self.weight * terms))
        residual = self.weight * (prob_right * self._compute_skill_share(sigma) - sigma)  # dQ/dx
        by_task = self._sum_by_task(residual * ability) * line.slope_gradient
        by_task -= self._sum_by_task(residual) * line.shift_gradient
        return value, np.concatenate([self._sum_by_worker(residual * slope), by_task.ravel()])

    def curvature(self, point: Array, posterior: Array) -> Array:
        """Return the curvature of votes and prior along every coordinate.

        Parameters
        ----------
        point : ndarray
            Values of all parameters: abilities, then those of tasks.
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior; not used.

        Returns
        -------
        ndarray of shape (n_parameters,)
        """
        return self.prior.add_curvature(self.vote_curvature(point))

    def vote_curvature(self, point: Array) -> Array:
        """Return the curvature of the votes, without the prior, along every coordinate.

        Parameters
        ----------
        point : ndarray
            Values of all parameters: abilities, then those of tasks.

        Returns
        -------
        ndarray of shape (n_parameters,)
        """
        return self._compute_fisher_information(point, MIN_VOTE_CURVATURE)

    def _compute_skill_share(self, sigma: Array) -> Array | float:
        """Return σ / P(right), the probability that a right label is not a lucky guess."""
        return 1.0 if self.guess_prob == 0 else sigma / (self.guess_prob + (1 - self.guess_prob) * sigma)

    def _compute_fisher_information(self, point: Array, min_curvature: float = 0.0) -> Array:
        """Return the information of the votes about every coordinate if the truth were known."""
        line, ability, slope, _, _, sigma = self._view(point)
        bend = np.maximum(sigma * (1 - sigma), min_curvature) * self.weight
        bend *= (1 - self.guess_prob) * self._compute_skill_share(sigma)
        by_task = (
            self._sum_by_task(bend * ability**2) * line.slope_gradient**2
            - 2 * self._sum_by_task(bend * ability) * line.slope_gradient * line.shift_gradient
            + self._sum_by_task(bend) * line.shift_gradient**2
        )
        return np.concatenate([self._sum_by_worker(bend * slope**2), by_task.ravel()])

    def standard_error(self, point: Array, posterior: Array) -> Array:
        """Return the standard error of every coordinate, given the others; at most that of the prior.

        Parameters
        ----------
        point : ndarray
            Values of all parameters: abilities, then those of tasks.
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior.

        Returns
        -------
        ndarray of shape (n_parameters,)
        """
        return self.prior.standard_error(self.observed_information(point, posterior))

    def observed_information(self, point: Array, posterior: Array) -> Array:
        """Return the information of the votes about every coordinate, given that the truth is unknown.

        The score of a coordinate depends on the true class. Its variance under the posterior is the missing information
        (Louis 1982).

        Parameters
        ----------
        point : ndarray
            Values of all parameters: abilities, then those of tasks.
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior.

        Returns
        -------
        ndarray of shape (n_parameters,)
        """
        line, ability, slope, _, _, sigma = self._view(point)
        gain = self.weight * self._compute_skill_share(
            sigma
        )  # difference of the score of x between a right and a wrong vote
        prob_right = posterior.ravel()[self.cell]
        by_worker = self._sum_by_worker((gain * slope) ** 2 * prob_right * (1 - prob_right))
        slope_sum, shift_sum = self._sum_by_cell(gain * ability), self._sum_by_cell(gain)
        by_task = []
        for slope_gradient, shift_gradient in zip(line.slope_gradient, line.shift_gradient, strict=True):
            score = slope_gradient[:, None] * slope_sum - shift_gradient[:, None] * shift_sum
            mean = (posterior * score).sum(axis=1, keepdims=True)
            by_task.append((posterior * (score - mean) ** 2).sum(axis=1))
        return self._compute_fisher_information(point) - np.concatenate([by_worker, *by_task])

    def _sum_by_task(self, values: Array) -> Array:
        return _sum_by_index(self.task, values, self.n_tasks)

    def _sum_by_worker(self, values: Array) -> Array:
        return _sum_by_index(self.worker, values, self.n_workers)

    def _sum_by_cell(self, values: Array) -> Array:
        sums = _sum_by_index(self.cell, values, self.n_tasks * self.n_classes)
        return sums.reshape(self.n_tasks, self.n_classes)


def _sum_by_index(index: NDArray[np.intp], values: Array, size: int) -> Array:
    """Return the sum of values by index."""
    return np.bincount(index, weights=values, minlength=size)  # type: ignore[return-value]  # float, since weighted
