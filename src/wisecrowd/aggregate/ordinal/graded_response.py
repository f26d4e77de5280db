"""Graded response model: scores of tasks, and raters who differ in severity, discrimination and use of the scale."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from wisecrowd import kernels
from wisecrowd.aggregate.ordinal._graded_likelihood import Array, GradedLikelihood, GradedParameters
from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.class_values import class_values
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.vocabulary import locate_ids
from wisecrowd.em.gradient import maximize_lbfgs
from wisecrowd.em.initialization import apply_gold
from wisecrowd.em.loop import Statistics, run_em
from wisecrowd.em.score_grid import make_score_grid
from wisecrowd.errors import UsageError
from wisecrowd.utils import progress
from wisecrowd.utils.slices import slice_rows

#: Smallest standard error of a score: a third of the distance between the nodes, below which a grid cannot tell.
MIN_ERROR_IN_STEPS = 1 / 3


class _TaskScores(NamedTuple):
    """Posterior of the scores of tasks, and the information of each worker about the own severity."""

    mean: Array
    error: Array
    severity_information: Array


@method_class
class GradedResponse(Aggregator):
    """Graded response model of ordered classes: every task has a score, every rater a severity and a discrimination.

    Model: task i has a score z_i ~ N(0, 1), and rater r gives it class k or higher with probability

        P(y_ir ≥ k) = σ(a_r (z_i − b_r − w_r c_k))

    Thresholds c are common; b_r is the severity of the rater, a_r the discrimination, and w_r > 1 spreads the thresholds of a
    rater who prefers the middle of the scale. Scores are integrated out on a grid by EM, the other parameters have normal
    priors: log a ~ N(α, 0.3²), b ~ N(0, 0.5²), log w ~ N(0, 0.5²).

    The class of a task follows from its score and the thresholds of the raters, averaged with their discriminations squared as
    weights: raters who cannot tell tasks apart have no say in what a class means.

    Choose it for ratings of one quality on a scale of classes, such as stars, agreement or severity. Differences between
    classes need not be equal. For classes that are not degrees of one quality, use `OrdinalDawidSkene`.

    Examples
    --------
    >>> from wisecrowd import GradedResponse, simulate_ratings
    >>> simulation = simulate_ratings(n_tasks=200, n_workers=20, n_classes=5, votes_per_task=5, random_state=0)
    >>> fitted = GradedResponse().fit(simulation.crowd)
    >>> bool(fitted.tasks_["score"].corr(simulation.scores) > 0.85)
    True
    >>> fitted.workers_.columns.tolist()
    ['n_votes', 'accuracy', 'severity', 'severity_error', 'discrimination', 'spread']
    """

    references: ClassVar[tuple[str, ...]] = ("samejima1969estimation", "mccullagh1980regression")
    answer_types: ClassVar[tuple[AnswerType, ...]] = ("ordinal",)

    discrimination_sd: float = parameter(
        default=0.3,
        help="Prior standard deviation of the logarithm of a discrimination; 0 makes all raters equal in it.",
    )
    severity_sd: float = parameter(
        default=0.5,
        help="Prior standard deviation of a severity, in units of the scores; 0 makes all severities equal.",
    )
    spread_sd: float = parameter(
        default=0.5,
        help="Prior standard deviation of the logarithm of a spread; 0 gives all raters the same thresholds.",
    )
    n_nodes: int = parameter(default=31, help="Number of scores in the grid over which tasks are integrated.")
    level: float = parameter(default=0.9, help="Probability of the intervals of scores.")
    m_steps: int = parameter(default=5, help="Number of L-BFGS steps in every M-step.")
    max_iter: int = parameter(default=500, help="Maximum number of EM iterations.")
    tol: float = parameter(default=1e-6, help="Relative change of the objective below which EM has converged.")
    verbose: bool = parameter(default=False, help="Show a progress bar.")

    prior_: Array = fitted(help="Class probabilities of a task without votes.", shape=("n_classes",), finite=True)
    score_: Array = fitted(help="Posterior mean of the score of each task.", shape=("n_tasks",), finite=True)
    score_error_: Array = fitted(
        help="Posterior standard deviation of the score of each task.", shape=("n_tasks",), finite=True
    )
    votes_per_task_: Array = fitted(help="Total weight of the votes on each task.", shape=("n_tasks",), finite=True)
    severity_: Array = fitted(help="Severity of each worker.", shape=("n_workers",), finite=True)
    severity_error_: Array = fitted(help="Standard error of each severity.", shape=("n_workers",), finite=True)
    discrimination_: Array = fitted(help="Discrimination of each worker.", shape=("n_workers",), finite=True)
    spread_: Array = fitted(help="Spread of the thresholds of each worker.", shape=("n_workers",), finite=True)
    thresholds_: Array = fitted(
        help="Scores at which a class ends and the next one begins.", shape=("n_thresholds",), finite=True
    )
    trace_: Array = fitted(help="Log-likelihood plus log prior of every iteration.", shape=("n_iter",))
    n_iter_: int = fitted(help="Number of iterations.")
    converged_: bool = fitted(help="Whether EM converged.")

    def _fit(self, crowd: Crowd, gold: NDArray[np.int32] | None, *, X: Any, start: Any) -> None:
        self._check_parameters(start)
        votes = crowd if gold is None else _add_gold_worker(crowd, gold)
        nodes, weights = make_score_grid(self.n_nodes)
        model = GradedLikelihood(
            votes.pairs, crowd.n_classes, nodes, discrimination_sd=self.discrimination_sd, severity_sd=self.severity_sd,
            spread_sd=self.spread_sd, gold_worker=gold is not None,
        )  # fmt: skip
        votes_per_worker = np.bincount(votes.worker_codes, votes.weight, votes.n_workers).astype(np.float64)
        point = model.initial_point(_label_shares(crowd))
        if start is not None:
            point = _carry_over(start, crowd, model, point)
        curvature = model.curvature(votes_per_worker)

        def infer(at: Array) -> tuple[Statistics, float]:
            expectation = kernels.expect(votes.layout, weights, model.label_probs(at))
            objective = expectation.log_likelihood + model.prior.log_density(at)
            return Statistics(expectation.class_counts, expectation.tally), objective

        def step(statistics: Statistics) -> tuple[Statistics, float]:
            nonlocal point
            point = maximize_lbfgs(
                lambda at: model.expected_log_joint(at, statistics.tally), point, curvature, self.m_steps
            )
            return infer(point)

        with progress.show_if(self.verbose):
            # An M-step continues from the point of the last one, so it cannot start from extrapolated statistics.
            result = run_em(
                step, infer(point)[0], max_iter=self.max_iter, tol=self.tol, accelerate=False, title="GradedResponse"
            )
        self.trace_, self.n_iter_, self.converged_ = np.array(result.trace), len(result.trace), result.converged
        scores = self._infer_scores(votes, model, point, weights)
        self._set_results(crowd, gold, model.get_parameters(point), scores, votes_per_worker)

    def _check_parameters(self, start: Any) -> None:
        """Raise an error if a parameter is out of range."""
        for name in ("discrimination_sd", "severity_sd", "spread_sd"):
            if not 0 <= getattr(self, name) < np.inf:
                raise UsageError(f"{name} must be 0 or more; got {getattr(self, name)}")
        if self.max_iter < 1 or self.m_steps < 1 or self.n_nodes < 5:
            raise UsageError(
                f"max_iter and m_steps must be 1 or more and n_nodes 5 or more; got {self.max_iter}, {self.m_steps} and "
                f"{self.n_nodes}"
            )
        if not 0 < self.level < 1:
            raise UsageError(f"level must be between 0 and 1; got {self.level}")
        if start is not None and not (isinstance(start, GradedResponse) and hasattr(start, "severity_")):
            raise UsageError(
                f"start must be a fitted GradedResponse, whose raters are carried over; got {type(start).__name__}"
            )

    def _infer_scores(self, votes: Crowd, model: GradedLikelihood, point: Array, weights: Array) -> _TaskScores:
        """Return the posterior of the scores, and the information about severities from the squared scores of votes."""
        probs, derivative = model.label_probs(point), model.severity_scores(point)
        mean, error = np.empty(votes.n_tasks), np.empty(votes.n_tasks)
        information = np.zeros(votes.n_workers)
        for tasks in slice_rows(votes.n_tasks, len(weights)):
            first, last, _ = tasks.indices(votes.n_tasks)
            posterior = kernels.posterior(votes.layout.slice_tasks(first, last), weights, probs)
            mean[tasks] = posterior @ model.nodes
            error[tasks] = np.sqrt(np.maximum(posterior @ model.nodes**2 - mean[tasks] ** 2, 0))
            for rows in slice_rows(int(votes.offset[last] - votes.offset[first]), len(weights)):
                part = np.arange(*rows.indices(int(votes.offset[last] - votes.offset[first]))) + votes.offset[first]
                score = (posterior[votes.task[part] - first] * derivative[votes.pairs.vote_pairs[part]]).sum(axis=1)
                information += np.bincount(votes.worker_codes[part], votes.weight[part] * score**2, votes.n_workers)
        error = np.maximum(error, MIN_ERROR_IN_STEPS * (model.nodes[1] - model.nodes[0]))
        return _TaskScores(mean, error, information)

    def _set_results(
        self,
        crowd: Crowd,
        gold: NDArray[np.int32] | None,
        parameters: GradedParameters,
        scores: _TaskScores,
        votes_per_worker: Array,
    ) -> None:
        """Set the fitted attributes."""
        shift, stretch = _average_rater(votes_per_worker, *parameters[:3])
        self.thresholds_ = shift + stretch * parameters.thresholds
        self.score_, self.score_error_ = scores.mean, scores.error
        self.votes_per_task_ = np.bincount(crowd.task, crowd.weight, crowd.n_tasks).astype(np.float64)
        n = crowd.n_workers
        self.severity_, self.discrimination_, self.spread_ = (
            part[:n].copy() for part in (parameters.severity, parameters.discrimination, parameters.spread)
        )
        with np.errstate(divide="ignore"):
            precision = np.divide(1, np.float64(self.severity_sd) ** 2)
            self.severity_error_ = 1 / np.sqrt(scores.severity_information[:n] + precision)
        self.prior_ = _class_probs(np.zeros(1), np.ones(1), self.thresholds_)[0]
        posterior = _class_probs(scores.mean, scores.error, self.thresholds_)
        posterior[self.votes_per_task_ == 0] = self.prior_
        self._set_fitted(crowd, apply_gold(posterior, gold))

    @property
    def tasks_(self) -> pd.DataFrame:
        """Table of tasks: expected class value, score with standard error and interval, and number of votes."""
        posterior = self._check_fitted("posterior_")
        width = float(ndtri((1 + self.level) / 2)) * self.score_error_
        columns = {
            "estimate": posterior @ class_values(self.classes_),
            "score": self.score_,
            "standard_error": self.score_error_,
            "lower": self.score_ - width,
            "upper": self.score_ + width,
            "n_votes": self.votes_per_task_,
        }
        return pd.DataFrame(columns, index=self.task_index_.rename("task"))

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        return super()._worker_columns() | {
            "severity": self.severity_,
            "severity_error": self.severity_error_,
            "discrimination": self.discrimination_,
            "spread": self.spread_,
        }


def _label_shares(crowd: Crowd) -> Array:
    """Return the share of each class among the votes."""
    counts = np.bincount(crowd.label, crowd.weight, crowd.n_classes)
    return np.asarray(counts / counts.sum(), dtype=np.float64)


def _average_rater(n_votes: Array, discrimination: Array, severity: Array, spread: Array) -> tuple[float, float]:
    """Return severity and spread of the raters, weighted by the information in their votes."""
    weight = n_votes * discrimination**2
    share = weight / weight.sum()
    return float(share @ severity), float(share @ spread)


def _class_probs(mean: Array, error: Array, thresholds: Array) -> Array:
    """Return the probability of each class for normal scores."""
    below = ndtr((thresholds - mean[:, None]) / error[:, None])
    edges = np.concatenate([np.zeros((len(mean), 1)), below, np.ones((len(mean), 1))], axis=1)
    return np.asarray(np.diff(edges, axis=1), dtype=np.float64)


def _add_gold_worker(crowd: Crowd, gold: NDArray[np.int32]) -> Crowd:
    """Return the crowd with one more worker, whose votes are the gold labels of tasks with votes."""
    tasks = np.flatnonzero((gold >= 0) & (crowd.votes_per_task > 0))
    return Crowd.from_codes(
        np.concatenate([crowd.task, tasks]),
        np.concatenate([crowd.worker_codes, np.full(len(tasks), crowd.n_workers)]),
        np.concatenate([crowd.label, gold[tasks]]),
        tasks=crowd.tasks, workers=pd.RangeIndex(crowd.n_workers + 1), classes=crowd.classes, ordered=True,
        weight=np.concatenate([crowd.weight, np.ones(len(tasks))]), duplicates="keep",
    )  # fmt: skip


def _carry_over(source: GradedResponse, crowd: Crowd, model: GradedLikelihood, point: Array) -> Array:
    """Return a point with the raters of another fit, by worker id."""
    assert source.worker_index_ is not None
    assert crowd.workers is not None
    position = locate_ids(crowd.workers, source.worker_index_)
    shared, rows = np.flatnonzero(position >= 0), position[position >= 0]
    point, n_workers = point.copy(), model.pairs.n_workers
    common = 3 * n_workers
    base = point[common] = float(np.log(source.discrimination_).mean())
    if source.classes_.equals(crowd.classes) and len(source.thresholds_):
        n_votes = source.workers_["n_votes"].to_numpy(dtype=np.float64)
        shift, stretch = _average_rater(n_votes, source.discrimination_, source.severity_, source.spread_)
        thresholds = (source.thresholds_ - shift) / stretch
        point[common + 1], point[common + 2 :] = thresholds.mean(), np.log(np.diff(thresholds))
    point[shared] = np.log(source.discrimination_[rows]) - base
    point[n_workers + shared] = source.severity_[rows]
    point[2 * n_workers + shared] = np.log(source.spread_[rows])
    return np.where(model.prior.free, point, model.prior.mean)
