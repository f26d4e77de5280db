"""EM for models whose M-step has no closed form: a few steps uphill from where the last one ended.

A model is a `Landscape`: how probable a task's votes are under each class at a point of its parameters, and the expected
log-likelihood of a posterior with its slope. Every climb begins at the current point and never ends lower, which is all
that EM needs for its objective never to fall (generalised EM).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wisecrowd import progress
from wisecrowd.base import Aggregator
from wisecrowd.crowd import Crowd
from wisecrowd.errors import UsageError
from wisecrowd.iteration import Statistics, iterate
from wisecrowd.kernels import LEAST
from wisecrowd.posteriors import class_prior, given_posterior

Array = NDArray[np.float64]


class Gaussians:
    """A Gaussian prior for every coordinate; one of infinite precision fixes its coordinate, one of zero is flat.

    >>> prior = Gaussians(mean=np.array([1.0, 1.0]), precision=np.array([4.0, np.inf]))
    >>> prior.log_density(np.array([2.0, 1.0])), prior.pull(np.array([2.0, 1.0]))
    (-2.0, array([-4.,  0.]))
    """

    def __init__(self, mean: Array, precision: Array) -> None:
        self.mean, self.precision = mean, precision
        self.free = np.isfinite(precision)
        self._weight = np.where(self.free, precision, 0)

    def log_density(self, point: Array) -> float:
        """Up to a constant."""
        return -0.5 * float(np.sum(self._weight * (point - self.mean) ** 2))

    def pull(self, point: Array) -> Array:
        """The gradient of the log density."""
        return self._weight * (self.mean - point)


class Landscape(ABC):
    """What a model says of a crowd's votes at a point, which holds all its parameters in one vector.

    A point that was handed out or taken in is never changed in place, so a landscape may remember what it saw there.

    >>> sorted(Landscape.__abstractmethods__)
    ['curvature', 'evidence', 'expected']
    """

    prior: Gaussians

    def begin(self) -> Array:
        """The point to start from: the mean of the prior."""
        return self.prior.mean.copy()

    def penalty(self, point: Array) -> float:
        """Logarithm of the prior density of the point, up to a constant."""
        return self.prior.log_density(point)

    @abstractmethod
    def evidence(self, point: Array) -> Array:
        """log P(the task's votes | class), (tasks, classes); zeros where nobody voted."""

    @abstractmethod
    def expected(self, point: Array, posterior: Array) -> tuple[float, Array]:
        """Σ_i Σ_k q_i(k) log P(votes of i | k) + penalty, and its gradient, zero along what is fixed."""

    @abstractmethod
    def curvature(self, point: Array, posterior: Array) -> Array:
        """About how sharply `expected` bends along every coordinate: positive, infinite where one is fixed."""


def climb(slope: Callable[[Array], tuple[float, Array]], start: Array, curvature: Array, steps: int) -> Array:
    """At most so many steps of L-BFGS uphill, in coordinates in which every direction bends alike.

    Without the change of coordinates, a worker with thousands of votes and a task with three set such different scales
    that most steps would be spent learning them; with it, the first trial is a Newton step along every axis. It is
    written out because scipy's L-BFGS-B starts with a step of length one, and does its sums in threaded BLAS, which on
    a busy machine spends ten times as long waiting as computing.

    >>> def hill(point):  # highest at (3, 5), a thousand times steeper in the second direction
    ...     away = point - np.array([3.0, 5.0])
    ...     return -0.5 * float(away @ (away * [1, 1e3])), -away * [1, 1e3]
    >>> climb(hill, np.zeros(2), np.array([1, 1e3]), steps=1).round(6).tolist()
    [3.0, 5.0]
    """
    scale = 1 / np.sqrt(curvature)
    point, (value, gradient) = start, slope(start)
    gradient = gradient * scale
    moves: list[Array] = []
    bends: list[Array] = []
    for _ in range(steps):
        direction = _newton(gradient, moves, bends)
        rise = _dot(direction, gradient)
        if not rise > 1e-14 * (1 + abs(value)):
            break
        reach = 1.0
        while True:
            trial = point + reach * scale * direction
            reached, there = slope(trial)
            if reached >= value + 1e-4 * reach * rise:
                break
            reach /= 2
            if reach < 1e-6:  # what is left to gain is lost in rounding
                return point
        there = there * scale
        move, bend = reach * direction, gradient - there
        if _dot(move, bend) > 1e-10 * _dot(bend, bend):  # where the hill is hollow, a pair would point downhill
            moves.append(move)
            bends.append(bend)
        point, value, gradient = trial, reached, there
    return point


def _newton(gradient: Array, moves: list[Array], bends: list[Array]) -> Array:
    """The gradient times the inverse curvature that past moves tell of: the two loops of L-BFGS."""
    direction = gradient.copy()
    parts = []
    for move, bend in zip(reversed(moves), reversed(bends), strict=True):
        inverse = 1 / _dot(move, bend)
        share = inverse * _dot(move, direction)
        direction -= share * bend
        parts.append((move, bend, inverse, share))
    for move, bend, inverse, share in reversed(parts):
        direction += (share - inverse * _dot(bend, direction)) * move
    return direction


def _dot(left: Array, right: Array) -> float:
    return float(np.einsum("i,i->", left, right))  # not BLAS: see `climb`


@dataclass(kw_only=True, eq=False, repr=False)
class ClimbingEM(Aggregator):
    """Generalised EM over a `Landscape`; a method says which landscape its model is.

    >>> from wisecrowd import GLAD
    >>> issubclass(GLAD, ClimbingEM)
    True
    """

    prior: Literal["estimate", "uniform"] | Any = field(
        default="uniform", metadata={"help": "class prior: 'estimate', 'uniform', or one number per class"}
    )
    max_iter: int = field(default=500, metadata={"help": "EM iterations at most"})
    tol: float = field(default=1e-7, metadata={"help": "stop when the objective rises by less than this fraction"})
    m_steps: int = field(default=3, metadata={"help": "steps of L-BFGS in every M-step"})
    verbose: bool = field(default=False, metadata={"help": "draw a progress bar"})

    @abstractmethod
    def _landscape(self, crowd: Crowd) -> Any:
        """The model over these votes: a `Landscape`."""

    @abstractmethod
    def _first_posterior(self, crowd: Crowd, land: Any) -> Array:
        """What to believe before the first M-step."""

    @abstractmethod
    def _carried_over(self, known: Any, crowd: Crowd, land: Any) -> Array:
        """The point to start from when another fit of the same kind knows some of the workers, by id."""

    @abstractmethod
    def _keep(self, crowd: Crowd, land: Any, point: Array) -> None:
        """Store what the parameters say of workers and tasks; the posterior is stored already."""

    def _check(self) -> None:
        if self.max_iter < 1 or self.m_steps < 1:
            raise UsageError(f"max_iter and m_steps must be 1 or more; got {self.max_iter} and {self.m_steps}")

    def _fit(self, crowd: Crowd, clamp: NDArray[np.int32] | None, *, X: Any, start: Any) -> None:
        self._check()
        with progress.shown(self.verbose):
            self._run(crowd, clamp, start)

    def _run(self, crowd: Crowd, clamp: NDArray[np.int32] | None, start: Any) -> None:
        land = self._landscape(crowd)
        voted = crowd.labels_per_task > 0
        point, first = self._start(crowd, land, start)
        prior = np.empty(0)

        def statistics(posterior: Array) -> Statistics:
            return Statistics(posterior.sum(axis=0, where=voted[:, None]), posterior)

        def step(before: Statistics) -> tuple[Statistics, float]:
            nonlocal point, prior
            belief = before.tally
            point = climb(lambda at: land.expected(at, belief), point, land.curvature(point, belief), self.m_steps)
            prior = class_prior(self.prior, before.classes, self.classes_)
            posterior, evidence = infer(land.evidence(point), prior, clamp)
            return statistics(posterior), float(evidence.sum(where=voted)) + land.penalty(point)

        # A step continues from the point where the last one ended, so it cannot be taken from an extrapolated belief.
        run = iterate(
            step, statistics(_clamped(first, clamp)), max_iter=self.max_iter, tol=self.tol, accelerate=False,
            what=type(self).__name__,
        )  # fmt: skip
        self.prior_ = prior
        self.trace_ = np.asarray(run.trace)
        self.n_iter_ = len(run.trace)
        self.converged_ = run.converged
        self._learn(crowd, run.statistics.tally)
        self._keep(crowd, land, point)

    def _start(self, crowd: Crowd, land: Landscape, start: Any) -> tuple[Array, Array]:
        """The point and the belief to start from."""
        if start is None:
            return land.begin(), self._first_posterior(crowd, land)
        if isinstance(start, Aggregator):
            if type(start) is not type(self):
                raise UsageError(
                    f"{type(self).__name__} carries over what a fitted {type(self).__name__} knows of workers; of a "
                    f"{type(start).__name__} it takes the posterior: start=fitted.proba_"
                )
            start._learnt("posterior_")
            point = self._carried_over(start, crowd, land)
            return point, infer(land.evidence(point), np.ones(crowd.n_classes), None)[0]
        return land.begin(), given_posterior(start, crowd)


def infer(evidence: Array, prior: Array, clamp: NDArray[np.int32] | None) -> tuple[Array, Array]:
    """Bayes' rule by task: posteriors (tasks, classes), and the log-probability of each task's votes.

    >>> posterior, votes = infer(np.log([[0.8, 0.4]]), np.array([0.5, 0.5]), None)
    >>> posterior.round(3).tolist(), np.exp(votes).round(3).tolist()
    ([[0.667, 0.333]], [0.6])
    """
    joint = evidence + np.log(np.maximum(prior, LEAST))
    peak = joint.max(axis=1, keepdims=True)
    posterior = np.exp(joint - peak)
    total = posterior.sum(axis=1, keepdims=True)
    posterior /= total
    found = peak[:, 0] + np.log(total[:, 0])
    if clamp is not None:
        known = np.flatnonzero(clamp >= 0)
        found[known] = joint[known, clamp[known]]
    return _clamped(posterior, clamp), found


def _clamped(posterior: Array, clamp: NDArray[np.int32] | None) -> Array:
    """Tasks whose truth is known are of that class for certain."""
    if clamp is not None:
        known = np.flatnonzero(clamp >= 0)
        posterior[known] = 0
        posterior[known, clamp[known]] = 1
    return posterior
