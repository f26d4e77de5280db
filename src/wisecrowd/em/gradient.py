"""EM for models whose M-step has no closed form: a few steps uphill from where the last one ended.

A model is a `Landscape`: how probable a task's votes are under each class at a point of its parameters, and the expected
log-likelihood of a posterior with its slope. Every climb begins at the current point and never ends lower, which is all
that EM needs for its objective never to fall (generalised EM).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.checkpoints import Standing, standing_of
from wisecrowd.base.fields import CHECKPOINT_HELP, method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.initialization import apply_gold, class_prior, given_posterior
from wisecrowd.em.loop import Run, Statistics, iterate
from wisecrowd.engines.distributed_vector import Spread, dot
from wisecrowd.errors import UsageError
from wisecrowd.kernels.reference import LEAST
from wisecrowd.utils import progress

Array = NDArray[np.float64]
#: A point, or a direction: in memory, or beside the chunks of a crowd.
Vector = TypeVar("Vector", Array, Spread)


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

    def slope(self, gradient: Array, point: Array) -> Array:
        """The gradient of votes and prior, from that of the votes, which is changed in place; zero along what is fixed."""
        gradient += self.pull(point)
        gradient[~self.free] = 0
        return gradient

    def sharpness(self, information: Array) -> Array:
        """The curvature that votes and prior make, from the information of the votes: never zero."""
        return information + self.precision + 1e-9

    def error(self, information: Array) -> Array:
        """The standard errors that votes and prior leave; what the votes tell is not let fall below nothing."""
        with np.errstate(divide="ignore"):
            return 1 / np.sqrt(np.maximum(information, 0) + self.precision)


class Belief(NamedTuple):
    """What is believed of the tasks, with its sums over those that have votes.

    >>> Belief(np.array([1.0, 0.0]), -0.5, np.array([[1.0, 0.0]])).objective
    -0.5
    """

    classes: Array
    """The posteriors added up."""
    objective: float
    """The log-likelihood of the votes at the point where this was inferred, and the penalty of the point."""
    posterior: Any
    """(tasks, classes), in memory or kept beside the chunks of a crowd."""


class Landscape(ABC):
    """What a model says of a crowd's votes at a point, which holds all its parameters in one vector.

    A point that was handed out or taken in is never changed in place, so a landscape may remember what it saw there.

    >>> sorted(Landscape.__abstractmethods__)
    ['curvature', 'evidence', 'expected']
    """

    prior: Gaussians

    def __init__(self, crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        self.voted, self.gold = crowd.votes_per_task > 0, gold

    def begin(self) -> Array:
        """The point to start from: the mean of the prior."""
        return self.prior.mean.copy()

    def penalty(self, point: Array) -> float:
        """Logarithm of the prior density of the point, up to a constant."""
        return self.prior.log_density(point)

    def believe(self, point: Array, prior: Array) -> Belief:
        """The E-step: what the votes say of the tasks at a point, given the class prior."""
        found = self.inferred(point, prior)
        return found._replace(objective=found.objective + self.penalty(point))

    def inferred(self, point: Array, prior: Array) -> Belief:
        """As `believe`, without the penalty."""
        posterior, evidence = infer(self.evidence(point), prior, self.gold)
        return Belief(self._classes(posterior), float(evidence.sum(where=self.voted)), posterior)

    def belief(self, posterior: Array) -> Belief:
        """A posterior to start from; where truth is known, nothing else is believed."""
        posterior = apply_gold(posterior, self.gold)
        return Belief(self._classes(posterior), float("nan"), posterior)

    def saved(self, point: Array) -> dict[str, Array]:
        """A point as arrays, to go on from."""
        return {"point": point}

    def restored(self, arrays: dict[str, Array]) -> Array:
        """The point that was saved."""
        return arrays["point"]

    def _classes(self, posterior: Array) -> Array:
        return posterior.sum(axis=0, where=self.voted[:, None])

    @abstractmethod
    def evidence(self, point: Array) -> Array:
        """log P(the task's votes | class), (tasks, classes); zeros where nobody voted."""

    @abstractmethod
    def expected(self, point: Array, posterior: Array) -> tuple[float, Array]:
        """Σ_i Σ_k q_i(k) log P(votes of i | k) + penalty, and its gradient, zero along what is fixed."""

    @abstractmethod
    def curvature(self, point: Array, posterior: Array) -> Array:
        """About how sharply `expected` bends along every coordinate: positive, infinite where one is fixed."""


def climb(slope: Callable[[Vector], tuple[float, Vector]], start: Vector, curvature: Vector, steps: int) -> Vector:
    """At most so many steps of L-BFGS uphill, in coordinates in which every direction bends alike.

    Without the change of coordinates, a worker with thousands of votes and a task with three set such different scales
    that most steps would be spent learning them; with it, the first trial is a Newton step along every axis. It is
    written out because scipy's L-BFGS-B starts with a step of length one, wants vectors in memory, and does its sums in
    threaded BLAS, which on a busy machine spends ten times as long waiting as computing.

    >>> def hill(point):  # highest at (3, 5), a thousand times steeper in the second direction
    ...     away = point - np.array([3.0, 5.0])
    ...     return -0.5 * float(away @ (away * [1, 1e3])), -away * [1, 1e3]
    >>> climb(hill, np.zeros(2), np.array([1, 1e3]), steps=1).round(6).tolist()
    [3.0, 5.0]
    """
    scale = 1 / np.sqrt(curvature)
    point, (value, gradient) = start, slope(start)
    gradient = gradient * scale
    moves: list[Vector] = []
    bends: list[Vector] = []
    for _ in range(steps):
        direction = _newton(gradient, moves, bends)
        rise = dot(direction, gradient)
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
        if dot(move, bend) > 1e-10 * dot(bend, bend):  # where the hill is hollow, a pair would point downhill
            moves.append(move)
            bends.append(bend)
        point, value, gradient = trial, reached, there
    return point


def _newton(gradient: Vector, moves: list[Vector], bends: list[Vector]) -> Vector:
    """The gradient times the inverse curvature that past moves tell of: the two loops of L-BFGS."""
    direction = gradient
    parts = []
    for move, bend in zip(reversed(moves), reversed(bends), strict=True):
        inverse = 1 / dot(move, bend)
        share = inverse * dot(move, direction)
        direction = direction - share * bend
        parts.append((move, bend, inverse, share))
    for move, bend, inverse, share in reversed(parts):
        direction = direction + (share - inverse * dot(bend, direction)) * move
    return direction


@method_class
class ClimbingEM(Aggregator):
    """Generalised EM over a `Landscape`; a method says which landscape its model is.

    >>> from wisecrowd import GLAD
    >>> issubclass(GLAD, ClimbingEM)
    True
    """

    prior: Literal["estimate", "uniform"] | Any = parameter(
        default="uniform", help="class prior: 'estimate', 'uniform', or one number per class"
    )
    max_iter: int = parameter(default=500, help="EM iterations at most")
    tol: float = parameter(default=1e-7, help="stop when the objective rises by less than this fraction")
    m_steps: int = parameter(default=3, help="steps of L-BFGS in every M-step")
    checkpoint: str | None = parameter(default=None, help=CHECKPOINT_HELP)
    verbose: bool = parameter(default=False, help="draw a progress bar")

    @abstractmethod
    def _landscape(self, crowd: Crowd, gold: NDArray[np.int32] | None = None) -> Any:
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

    def _fit(self, crowd: Crowd, gold: NDArray[np.int32] | None, *, X: Any, start: Any) -> None:
        self._check()
        with progress.shown(self.verbose):
            self._run(crowd, gold, start)

    def _run(self, crowd: Crowd, gold: NDArray[np.int32] | None, start: Any) -> None:
        land = self._landscape(crowd, gold)
        standing = standing_of(self, crowd, gold, start, chunks=1)
        point, posterior = self._ascend(land, lambda: self._start(crowd, land, start), standing)
        self._set_fitted(crowd, posterior)
        self._keep(crowd, land, point)

    def _ascend(self, land: Any, start: Callable[[], tuple[Any, Belief]], standing: Standing) -> tuple[Any, Any]:
        """The loop of EM, from a point and a belief to those where it ends, wherever they are held."""
        told: dict[str, Any] = {"trace": [], "ended": None}
        prior = np.empty(0)
        found = standing.read()
        if found is None:
            point, first = start()
        else:  # what is believed follows from the point, to the bit
            told, arrays = found
            prior = arrays.pop("prior")
            point = land.restored(arrays)
            first = land.believe(point, prior)

        def kept(trace: Sequence[float], ended: bool | None) -> None:
            standing.write({"trace": list(trace), "ended": ended}, land.saved(point) | {"prior": prior})

        def watch(_: Statistics, trace: list[float]) -> None:
            if trace and standing.due():
                kept(trace, None)

        def step(before: Statistics) -> tuple[Statistics, float]:
            nonlocal point, prior
            belief = before.tally
            point = climb(lambda at: land.expected(at, belief), point, land.curvature(point, belief), self.m_steps)
            prior = class_prior(self.prior, before.classes, self.classes_)
            found = land.believe(point, prior)
            return Statistics(found.classes, found.posterior), found.objective

        # A step continues from the point where the last one ended, so it cannot be taken from an extrapolated belief.
        begin = Statistics(first.classes, first.posterior)
        if told["ended"] is None:
            run = iterate(
                step, begin, max_iter=self.max_iter, tol=self.tol, accelerate=False, what=type(self).__name__,
                before=told["trace"], watch=watch,
            )  # fmt: skip
            kept(run.trace, run.converged)
        else:
            run = Run(begin, told["trace"], told["ended"])
        self.prior_ = prior
        self.trace_ = np.asarray(run.trace)
        self.n_iter_ = len(run.trace)
        self.converged_ = run.converged
        return point, run.statistics.tally

    def _start(self, crowd: Crowd, land: Landscape, start: Any) -> tuple[Array, Belief]:
        """The point and the belief to start from."""
        if start is None:
            return land.begin(), land.belief(self._first_posterior(crowd, land))
        if isinstance(start, Aggregator):
            if type(start) is not type(self):
                raise UsageError(
                    f"{type(self).__name__} carries over what a fitted {type(self).__name__} knows of workers; of a "
                    f"{type(start).__name__} it takes the posterior: start=fitted.proba_"
                )
            start._check_fitted("tally_")
            point = self._carried_over(start, crowd, land)
            return point, land.belief(infer(land.evidence(point), np.ones(crowd.n_classes), None)[0])
        return land.begin(), land.belief(given_posterior(start, crowd))


def infer(evidence: Array, prior: Array, gold: NDArray[np.int32] | None) -> tuple[Array, Array]:
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
    if gold is not None:
        known = np.flatnonzero(gold >= 0)
        found[known] = joint[known, gold[known]]
    return apply_gold(posterior, gold), found
