"""Generalised EM: EM whose M-step is a few steps of L-BFGS instead of a closed form.

A model is a `GradientModel`: the probability of the votes of a task under each class, and the expected log-joint of a posterior
with its gradient. Every M-step starts at the current parameters and never ends at a lower value, which is all that EM needs for
its objective never to fall (generalised EM).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.checkpoints import Checkpoint, CheckpointState
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.initialization import align_posterior, apply_gold, make_class_prior
from wisecrowd.em.loop import EMResult, Statistics, run_em
from wisecrowd.engines.distributed_vector import DistributedVector, dot
from wisecrowd.errors import UsageError, preview
from wisecrowd.kernels import MIN_PROB

Array = NDArray[np.float64]
#: Point or direction in parameter space: in memory, or distributed over the chunks of a crowd.
Vector = TypeVar("Vector", Array, DistributedVector)

#: Relative increase below which a direction counts as flat: less is lost in rounding.
MIN_RELATIVE_INCREASE = 1e-14
#: Shortest step of the line search, relative to the Newton step; less is lost in rounding.
MIN_STEP_LENGTH = 1e-6
#: Share of the linear increase that a step must achieve (Armijo condition).
SUFFICIENT_INCREASE = 1e-4


class GaussianPrior:
    """Independent Gaussian priors, one per coordinate.

    Parameters
    ----------
    mean : ndarray of shape (n,)
        Means.
    precision : ndarray of shape (n,)
        Precisions. An infinite precision fixes its coordinate; a precision of zero is a flat prior.

    Examples
    --------
    >>> prior = GaussianPrior(mean=np.array([1.0, 1.0]), precision=np.array([4.0, np.inf]))
    >>> prior.log_density(np.array([2.0, 1.0])), prior.gradient(np.array([2.0, 1.0]))
    (-2.0, array([-4.,  0.]))
    """

    def __init__(self, mean: Array, precision: Array) -> None:
        self.mean, self.precision = mean, precision
        self.free = np.isfinite(precision)
        self._weight = np.where(self.free, precision, 0)

    def log_density(self, point: Array) -> float:
        """Return the log density at a point, up to a constant.

        Parameters
        ----------
        point : ndarray of shape (n,)
            Point.

        Returns
        -------
        float
        """
        return -0.5 * float(np.sum(self._weight * (point - self.mean) ** 2))

    def gradient(self, point: Array) -> Array:
        """Return the gradient of the log density at a point.

        Parameters
        ----------
        point : ndarray of shape (n,)
            Point.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._weight * (self.mean - point)

    def add_gradient(self, gradient: Array, point: Array) -> Array:
        """Add the gradient of the prior to the gradient of the likelihood, in place; fixed coordinates become zero.

        Parameters
        ----------
        gradient : ndarray of shape (n,)
            Gradient of the likelihood; changed in place.
        point : ndarray of shape (n,)
            Point.

        Returns
        -------
        ndarray of shape (n,)
            The same array.
        """
        gradient += self.gradient(point)
        gradient[~self.free] = 0
        return gradient

    def add_curvature(self, information: Array) -> Array:
        """Return the curvature of the posterior, from the information of the votes.

        Parameters
        ----------
        information : ndarray of shape (n,)
            Diagonal of the information matrix.

        Returns
        -------
        ndarray of shape (n,)
            Positive; infinite for fixed coordinates.
        """
        return information + self.precision + 1e-9

    def standard_error(self, information: Array) -> Array:
        """Return standard errors given votes and prior.

        Parameters
        ----------
        information : ndarray of shape (n,)
            Diagonal of the information matrix; negative values count as zero.

        Returns
        -------
        ndarray of shape (n,)
        """
        with np.errstate(divide="ignore"):
            return 1 / np.sqrt(np.maximum(information, 0) + self.precision)


class PosteriorEstimate(NamedTuple):
    """Posterior of the tasks with its sums, the result of an E-step.

    Attributes
    ----------
    class_counts : ndarray of shape (n_classes,)
        Sum of the posteriors of the tasks with votes.
    objective : float
        Log-likelihood of the votes plus log prior of the parameters.
    posterior : array-like of shape (n_tasks, n_classes)
        Posterior, in memory or retained beside the chunks of a crowd.

    Examples
    --------
    >>> PosteriorEstimate(np.array([1.0, 0.0]), -0.5, np.array([[1.0, 0.0]])).objective
    -0.5
    """

    class_counts: Array
    objective: float
    posterior: Any


class GradientModel(ABC):
    """Model of a crowd's votes with all parameters in one vector, the *point*.

    Points are never changed in place, so a model may cache values for the last one.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    gold : ndarray of int of shape (n_tasks,) or None
        Class codes of gold tasks, -1 for the others; None without gold tasks.
    """

    prior: GaussianPrior

    def __init__(self, crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        self.voted, self.gold = crowd.votes_per_task > 0, gold

    @abstractmethod
    def log_evidence(self, point: Array) -> Array:
        """Return log P(votes of the task given class), (n_tasks, n_classes); zero for tasks without votes.

        Parameters
        ----------
        point : ndarray
            Values of all parameters.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
        """

    @abstractmethod
    def expected_log_joint(self, point: Array, posterior: Array) -> tuple[float, Array]:
        """Return Σ_i Σ_k q_i(k) log P(votes of i given k) + log prior, and its gradient.

        Parameters
        ----------
        point : ndarray
            Values of all parameters.
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior q.

        Returns
        -------
        value : float
        gradient : ndarray
            Zero for fixed coordinates.
        """

    @abstractmethod
    def curvature(self, point: Array, posterior: Array) -> Array:
        """Return the approximate curvature of `expected_log_joint` along every coordinate.

        Parameters
        ----------
        point : ndarray
            Values of all parameters.
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior.

        Returns
        -------
        ndarray
            Positive; infinite for fixed coordinates.
        """

    def initial_point(self) -> Array:
        """Return the mean of the prior."""
        return self.prior.mean.copy()

    def log_prior(self, point: Array) -> float:
        """Return the log prior density of a point, up to a constant.

        Parameters
        ----------
        point : ndarray
            Values of all parameters.

        Returns
        -------
        float
        """
        return self.prior.log_density(point)

    def e_step(self, point: Array, prior: Array) -> PosteriorEstimate:
        """Compute the posterior given parameters and class prior.

        Parameters
        ----------
        point : ndarray
            Values of all parameters.
        prior : ndarray of shape (n_classes,)
            Class prior.

        Returns
        -------
        PosteriorEstimate
        """
        estimate = self.infer_posterior(point, prior)
        return estimate._replace(objective=estimate.objective + self.log_prior(point))

    def infer_posterior(self, point: Array, prior: Array) -> PosteriorEstimate:
        """Compute the posterior as `e_step` does, with an objective that leaves out the prior of the parameters.

        Parameters
        ----------
        point : ndarray
            Values of all parameters.
        prior : ndarray of shape (n_classes,)
            Class prior.

        Returns
        -------
        PosteriorEstimate
        """
        posterior, log_evidence = normalize_evidence(self.log_evidence(point), prior, self.gold)
        objective = float(log_evidence.sum(where=self.voted))
        return PosteriorEstimate(self._sum_posterior(posterior), objective, posterior)

    def initial_estimate(self, posterior: Array) -> PosteriorEstimate:
        """Return a posterior to start from, with gold applied.

        Parameters
        ----------
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior; changed in place.

        Returns
        -------
        PosteriorEstimate
        """
        posterior = apply_gold(posterior, self.gold)
        return PosteriorEstimate(self._sum_posterior(posterior), float("nan"), posterior)

    def point_to_arrays(self, point: Array) -> dict[str, Array]:
        """Return a point as arrays for a checkpoint.

        Parameters
        ----------
        point : ndarray
            Values of all parameters.

        Returns
        -------
        dict of ndarray
            Arrays by name; `point_from_state` reads them.
        """
        return {"point": point}

    def point_from_state(self, state: CheckpointState) -> Array:
        """Return the point that `point_to_arrays` saved.

        Parameters
        ----------
        state : CheckpointState
            State of a checkpoint.

        Returns
        -------
        ndarray

        Raises
        ------
        ValueError
            If the state does not hold a point of this model.
        """
        return state.read_numbers("point", self.initial_point().shape)

    def _sum_posterior(self, posterior: Array) -> Array:
        """Return the sum of the posteriors of tasks with votes."""
        return posterior.sum(axis=0, where=self.voted[:, None])


class GradientEMResult(NamedTuple):
    """Result of generalised EM.

    Attributes
    ----------
    point : array-like
        Fitted parameters.
    posterior : array-like of shape (n_tasks, n_classes)
        Posterior, in memory or retained beside the chunks of a crowd.
    class_prior : ndarray of shape (n_classes,)
        Class prior.
    trace : list of float
        Objective of every iteration.
    converged : bool
        Whether the objective stopped rising before ``max_iter`` iterations.
    """

    point: Any
    posterior: Any
    class_prior: Array
    trace: list[float]
    converged: bool


@dataclass(frozen=True)
class GradientEM:
    """Generalised EM with L-BFGS steps as M-step.

    Parameters
    ----------
    prior : {'estimate', 'uniform'}, array-like or dict
        Class prior.
    max_iter : int
        Maximum number of EM iterations.
    tol : float
        Relative change of the objective below which EM has converged.
    m_steps : int
        Number of L-BFGS steps per M-step.
    title : str
        Name in the progress bar.
    """

    prior: Any
    max_iter: int
    tol: float
    m_steps: int
    title: str

    def __post_init__(self) -> None:
        if self.max_iter < 1 or self.m_steps < 1:
            raise UsageError(f"max_iter and m_steps must be 1 or more; got {self.max_iter} and {self.m_steps}")

    def run(
        self,
        model: Any,
        start: Callable[[], tuple[Any, PosteriorEstimate]],
        classes: pd.Index,
        checkpoint: Checkpoint,
    ) -> GradientEMResult:
        """Run EM.

        Parameters
        ----------
        model : GradientModel
            Model, in memory or distributed over the chunks of a crowd.
        start : callable
            Function that returns the point and the posterior to start from; not called if the checkpoint has a state.
        classes : Index
            Names of the classes.
        checkpoint : Checkpoint
            File that keeps the state.

        Returns
        -------
        GradientEMResult
        """
        values: dict[str, Any] = {"trace": [], "converged": None}
        prior = np.empty(0)
        state = checkpoint.read()
        if state is None:
            point, first = start()
        else:  # the posterior follows from the point, to the last bit
            with checkpoint.refuse_damage():
                prior = state.read_numbers("prior", (len(classes),), lowest=0)
                point = model.point_from_state(state)
                converged = state.json_values["converged"]
                if converged not in (True, False, None):
                    raise ValueError(f"converged is {preview([converged])}")
                values = {"trace": state.read_trace(), "converged": converged}
            first = model.e_step(point, prior)
            with checkpoint.refuse_damage():
                if not np.isfinite(first.objective):
                    raise ValueError("its parameters give no likelihood")

        def make_state(trace: Sequence[float], converged: bool | None) -> CheckpointState:
            arrays = model.point_to_arrays(point) | {"prior": prior}
            return CheckpointState(arrays, {"trace": list(trace), "converged": converged})

        def save(_: Statistics, trace: list[float]) -> None:
            if trace:
                checkpoint.write_if_due(lambda: make_state(trace, None))

        def step(statistics: Statistics) -> tuple[Statistics, float]:
            nonlocal point, prior
            posterior = statistics.tally
            point = maximize_lbfgs(
                lambda at: model.expected_log_joint(at, posterior),
                point,
                model.curvature(point, posterior),
                self.m_steps,
            )
            prior = make_class_prior(self.prior, statistics.class_counts, classes)
            estimate = model.e_step(point, prior)
            return Statistics(estimate.class_counts, estimate.posterior), estimate.objective

        begin = Statistics(first.class_counts, first.posterior)
        if values["converged"] is None:
            # An M-step continues from the point of the last one, so it cannot start from extrapolated statistics.
            result = run_em(
                step,
                begin,
                max_iter=self.max_iter,
                tol=self.tol,
                accelerate=False,
                title=self.title,
                trace=values["trace"],
                callback=save,
            )
            checkpoint.write_if_due(lambda: make_state(result.trace, result.converged), final=True)
        else:
            result = EMResult(begin, values["trace"], values["converged"])
        return GradientEMResult(point, result.statistics.tally, prior, result.trace, result.converged)


def make_gradient_start(
    method: Aggregator,
    model: Any,
    crowd: Crowd,
    start: Any,
    *,
    first_posterior: Callable[[], Array],
    carry_over: Callable[[Any], Array],
) -> tuple[Array, PosteriorEstimate]:
    """Return the point and the posterior from which generalised EM starts.

    Parameters
    ----------
    method : Aggregator
        Method to fit.
    model : GradientModel
        Model of the votes.
    crowd : Crowd
        Votes.
    start : Aggregator, DataFrame, ndarray or None
        Fitted method of the same class, posterior, or None.
    first_posterior : callable
        Function that returns the posterior to start from if ``start`` is None.
    carry_over : callable
        Function from a fitted method of the same class to a point.

    Returns
    -------
    point : ndarray
    estimate : PosteriorEstimate

    Raises
    ------
    UsageError
        If ``start`` is a method of another class.
    """
    if start is None:
        return model.initial_point(), model.initial_estimate(first_posterior())
    if isinstance(start, Aggregator):
        title = type(method).__name__
        if type(start) is not type(method):
            raise UsageError(
                f"{title} carries over the parameters of a fitted {title} only; of a {type(start).__name__} it takes the "
                "posterior: start=fitted.proba_"
            )
        point = carry_over(start)
        posterior, _ = normalize_evidence(model.log_evidence(point), np.ones(crowd.n_classes), None)
        return point, model.initial_estimate(posterior)
    return model.initial_point(), model.initial_estimate(align_posterior(start, crowd))


def maximize_lbfgs(
    objective: Callable[[Vector], tuple[float, Vector]], start: Vector, curvature: Vector, max_steps: int
) -> Vector:
    """Maximise a function by a few steps of L-BFGS in coordinates of equal curvature.

    A worker with thousands of votes and a task with three have very different scales. In scaled coordinates the first trial
    is a Newton step along every axis. scipy's L-BFGS-B is not used because it starts with a step of length one, needs
    vectors in memory, and computes its sums in threaded BLAS, which on a busy machine waits ten times as long as it
    computes.

    Parameters
    ----------
    objective : callable
        Function from a point to (value, gradient).
    start : ndarray or DistributedVector
        Point to start from.
    curvature : ndarray or DistributedVector
        Approximate curvature along every coordinate; infinite for fixed coordinates.
    max_steps : int
        Maximum number of steps.

    Returns
    -------
    ndarray or DistributedVector
        Point whose value is not lower than that of ``start``.

    Examples
    --------
    >>> def hill(point):  # highest at (3, 5), a thousand times steeper in the second direction
    ...     away = point - np.array([3.0, 5.0])
    ...     return -0.5 * float(away @ (away * [1, 1e3])), -away * [1, 1e3]
    >>> maximize_lbfgs(hill, np.zeros(2), np.array([1, 1e3]), max_steps=1).round(6).tolist()
    [3.0, 5.0]
    """
    scale = 1 / np.sqrt(curvature)
    point, (value, gradient) = start, objective(start)
    gradient = gradient * scale
    moves: list[Vector] = []
    bends: list[Vector] = []
    for _ in range(max_steps):
        direction = _compute_direction(gradient, moves, bends)
        increase = dot(direction, gradient)
        if not increase > MIN_RELATIVE_INCREASE * (1 + abs(value)):
            break
        length = 1.0
        while True:
            trial = point + length * scale * direction
            trial_value, trial_gradient = objective(trial)
            if trial_value >= value + SUFFICIENT_INCREASE * length * increase:
                break
            length /= 2
            if length < MIN_STEP_LENGTH:
                return point
        trial_gradient = trial_gradient * scale
        move, bend = length * direction, gradient - trial_gradient
        if dot(move, bend) > 1e-10 * dot(bend, bend):  # a pair from a non-concave region would point downhill
            moves.append(move)
            bends.append(bend)
        point, value, gradient = trial, trial_value, trial_gradient
    return point


def _compute_direction(gradient: Vector, moves: list[Vector], bends: list[Vector]) -> Vector:
    """Return the gradient times the inverse curvature estimated from past moves (two-loop recursion of L-BFGS)."""
    direction = gradient
    terms = []
    for move, bend in zip(reversed(moves), reversed(bends), strict=True):
        inverse = 1 / dot(move, bend)
        share = inverse * dot(move, direction)
        direction = direction - share * bend
        terms.append((move, bend, inverse, share))
    for move, bend, inverse, share in reversed(terms):
        direction = direction + (share - inverse * dot(bend, direction)) * move
    return direction


def normalize_evidence(log_evidence: Array, prior: Array, gold: NDArray[np.int32] | None) -> tuple[Array, Array]:
    """Apply Bayes' rule to every task.

    Parameters
    ----------
    log_evidence : ndarray of shape (n_tasks, n_classes)
        log P(votes of the task given class).
    prior : ndarray of shape (n_classes,)
        Class prior.
    gold : ndarray of shape (n_tasks,) or None
        Class codes, −1 where the truth is unknown.

    Returns
    -------
    posterior : ndarray of shape (n_tasks, n_classes)
    log_probs : ndarray of shape (n_tasks,)
        Log-probability of the votes of each task, and of its class if that is known.

    Examples
    --------
    >>> posterior, log_probs = normalize_evidence(np.log([[0.8, 0.4]]), np.array([0.5, 0.5]), None)
    >>> posterior.round(3).tolist(), np.exp(log_probs).round(3).tolist()
    ([[0.667, 0.333]], [0.6])
    """
    joint = log_evidence + np.log(np.maximum(prior, MIN_PROB))
    peak = joint.max(axis=1, keepdims=True)
    posterior = np.exp(joint - peak)
    total = posterior.sum(axis=1, keepdims=True)
    posterior /= total
    log_probs = peak[:, 0] + np.log(total[:, 0])
    if gold is not None:
        tasks = np.flatnonzero(gold >= 0)
        log_probs[tasks] = joint[tasks, gold[tasks]]
    return apply_gold(posterior, gold), log_probs
