"""EM with a classifier as the prior of every task: the family of Raykar et al., once.

z_i | x_i ~ f(x_i),  y_ir | z_i = k ~ π_r[k, ·].  The E-step weighs what the classifier expects against what was said,
the M-step fits the classifier and the workers' matrices to the posterior:

    E:  q_i(k) ∝ f_k(x_i) Π_r π_r[k, y_ir]
    M:  f fits q as soft targets;  π_r follows from the tally of q
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.classifiers.soft import SoftClassifier
from wisecrowd.data.crowd import Crowd, Pairs
from wisecrowd.data.layout import Layout
from wisecrowd.em import priors as matrices
from wisecrowd.em.classifier_fields import ClassifierLearner, cross_fitted, taught_by
from wisecrowd.em.initialization import apply_gold, vote_shares
from wisecrowd.em.loop import Statistics, Step, iterate
from wisecrowd.em.pooling import PoolingLearner
from wisecrowd.errors import UsageError
from wisecrowd.kernels import reference as kernels
from wisecrowd.kernels.reference import LEAST
from wisecrowd.utils import progress

#: How sure a classifier that has not seen a task may be of it: an over-confident one would veto all votes.
CLIP = 1e-6
#: Between what the sharpness of a classifier is sought.
SHARPNESS = (0.2, 10.0)


class Parameters(NamedTuple):
    """What follows from a posterior: what workers say, and how sure the prior is of that."""

    label_probs: NDArray[Any]
    """(pairs, classes)."""
    log_prior: float
    strength: float
    """Pseudo-votes of the pooled matrix; 0 without shrinkage."""


@method_class
class ClassifierEM(PoolingLearner, ClassifierLearner):
    """Every model in which a classifier is the prior of a task and a worker answers by a confusion matrix.

    >>> from wisecrowd import Raykar
    >>> issubclass(Raykar, ClassifierEM)
    True
    """

    smoothing: float = parameter(default=0.1, help="pseudo-votes in every cell of a worker's confusion matrix")
    diagonal: float = parameter(default=1.0, help="further pseudo-votes for being right")
    shrinkage: bool | float = parameter(
        default=False,
        help="draw workers' matrices toward the crowd's: yes, by marginal likelihood, or so many pseudo-votes",
    )
    cv: int = parameter(
        default=0, help="folds of cross-fitting: a task's prior comes from classifiers that did not see it"
    )
    calibrate: bool = parameter(
        default=False, help="sharpen or soften what the classifier expects, by the likelihood of the votes"
    )
    max_iter: int = parameter(default=100, help="passes at most")
    tol: float = parameter(default=1e-6, help="stop when the objective changes by less than this fraction")
    verbose: bool = parameter(default=False, help="draw a progress bar")

    def _fit(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        self._check(crowd)
        with progress.shown(self.verbose):
            self._run(X, crowd, gold)

    def _check(self, crowd: Crowd) -> None:
        if self.max_iter < 1:
            raise UsageError(f"max_iter must be 1 or more; got {self.max_iter}")
        if min(self.smoothing, self.diagonal, self.l2 or 0, float(self.shrinkage)) < 0:
            raise UsageError("smoothing, diagonal, l2 and shrinkage must not be negative")
        if self.cv < 0 or self.cv == 1 or self.cv > crowd.layout.voted.sum():
            raise UsageError(
                f"cv must be 0 (no cross-fitting), or from 2 to the number of tasks with votes; got {self.cv}"
            )
        if self.calibrate and not self.cv:
            raise UsageError(
                "calibrate needs cross-fitting: a classifier is always too sure of tasks it has seen; set cv=5"
            )

    def _workers(self, tally: NDArray[Any], pairs: Pairs) -> Parameters:
        """The M-step of the workers."""
        if self.shrinkage is False:
            label_probs = matrices.smoothed(tally, pairs, self.smoothing, self.diagonal)
            return Parameters(
                label_probs, matrices.smoothed_log_prior(tally, pairs, self.smoothing, self.diagonal), 0.0
            )
        prior = self._prior(tally, pairs, None if self.shrinkage is True else float(self.shrinkage))
        return Parameters(matrices.shrunk(tally, pairs, *prior), 0.0, prior.strength)

    def _run(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        layout, pairs = crowd.layout, crowd.pairs
        taught = taught_by(crowd.layout, gold)
        everything = (taught, np.ones(crowd.n_tasks, dtype=bool))
        folds = list(cross_fitted(taught, self.cv, self.random_state)) if self.cv else [everything]
        classifiers = [self._new_classifier() for _ in folds]
        exact = self.cv == 0 and self.shrinkage is False and classifiers[0].exact

        def priors(posterior: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
            """The M-step of the classifier, and what it then expects of every task."""
            expected = np.empty_like(posterior)
            for model, (train, test) in zip(classifiers, folds, strict=True):
                model.fit(X[train], posterior[train])
                expected[test] = model.predict_proba(X[test])
            expected = np.clip(expected, LEAST if exact else CLIP, None)
            return expected / expected.sum(axis=1, keepdims=True), 0.0 if self.cv else classifiers[0].log_prior()

        def step(statistics: Statistics) -> tuple[Statistics, float]:
            posterior, tally = statistics
            expected, log_prior = priors(posterior)
            workers = self._workers(tally, pairs)
            evidence = evidence_of(layout, workers.label_probs)
            sharpness = sharpness_of(expected[layout.voted], evidence[layout.voted]) if self.calibrate else 1.0
            expected = sharpened(expected, sharpness)
            found, log_likelihood = posterior_of(log(expected) + evidence, taught, gold)
            self.expected_, self.strength_, self.sharpness_ = expected, workers.strength, sharpness
            return Statistics(found, kernels.tally(layout, found)), log_likelihood + log_prior + workers.log_prior

        start = apply_gold(vote_shares(crowd), gold)
        run = iterate(
            self._kept(step, classifiers, X, crowd, gold),
            Statistics(start, kernels.tally(layout, start)), max_iter=self.max_iter, tol=self.tol,
            accelerate=False, monotone=exact, what=type(self).__name__,
        )  # fmt: skip
        self.trace_, self.n_iter_, self.converged_ = np.asarray(run.trace), len(run.trace), run.converged
        self._set_fitted(crowd, run.statistics.classes, run.statistics.tally)
        # With cross-fitting, no fold's classifier has seen all tasks: the one for new tasks has.
        self.classifier_ = (
            self._whole_classifier().fit(X[taught], self.posterior_[taught]) if self.cv else classifiers[0]
        )

    def _whole_classifier(self) -> SoftClassifier:
        """One to be fitted to all tasks when the iteration has ended."""
        return self._new_classifier()

    def _kept(
        self, step: Step, classifiers: list[SoftClassifier], X: NDArray[np.float64], crowd: Crowd,
        gold: NDArray[np.int32] | None,
    ) -> Step:  # fmt: skip
        """The step as it is; a method whose steps are long notes where they lead, to go on from there."""
        return step

    def _prior(self, tally: NDArray[Any], pairs: Pairs, strength: float | None = None) -> matrices.Prior:
        return matrices.crowd_prior(tally, pairs, self.smoothing, self.diagonal, strength)

    def _reported_label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        if self.shrinkage is False:
            return matrices.smoothed(tally, pairs, self.smoothing, self.diagonal)
        return super()._reported_label_probs(tally, pairs)

    def _pseudo_votes(self, n_classes: int) -> tuple[float, float]:
        if self.shrinkage is False:
            return self.smoothing + self.diagonal, n_classes * self.smoothing + self.diagonal
        return super()._pseudo_votes(n_classes)

    def _predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return sharpened(self.classifier_.predict_proba(X), self.sharpness_)


def sharpened(expected: NDArray[np.float64], sharpness: float) -> NDArray[np.float64]:
    """f^s, normalised: surer than f for s above one, less sure below.

    >>> sharpened(np.array([[0.8, 0.2]]), 0.0).tolist()
    [[0.5, 0.5]]
    """
    if sharpness == 1:
        return expected
    return softmax(sharpness * log(expected), axis=1)


def sharpness_of(expected: NDArray[np.float64], evidence: NDArray[np.float64]) -> float:
    """The sharpness under which the votes are most probable.

    A ridge makes a classifier timid and noise in its targets makes it bold; predictions for tasks that it has not seen
    can be put right by the one number that makes what was said most likely.

    >>> expected = np.where(np.arange(20)[:, None] % 2 == np.arange(2), 0.6, 0.4)  # right, but timid
    >>> evidence = np.log(np.where(expected > 0.5, 0.9, 0.1))
    >>> sharpness_of(expected, evidence) > 2
    True
    """
    from scipy.optimize import minimize_scalar

    logs = log(expected)

    def against(log_sharpness: float) -> float:
        prior = np.exp(log_sharpness) * logs
        joint = np.logaddexp.reduce(prior + evidence, axis=1) - np.logaddexp.reduce(prior, axis=1)
        return -float(joint.sum())

    low, high = np.log(SHARPNESS)
    return float(np.exp(minimize_scalar(against, bounds=(low, high), method="bounded", options={"xatol": 0.01}).x))


def evidence_of(layout: Layout, label_probs: NDArray[Any]) -> NDArray[np.float64]:
    """log P(votes on a task | class), (tasks, classes).

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    >>> evidence_of(crowd.layout, np.full((2, 2), 0.5)).round(4).tolist()
    [[-1.3863, -1.3863]]
    """
    return np.asarray(layout.matrix @ log(label_probs))


def log(probability: NDArray[Any]) -> NDArray[np.float64]:
    """The logarithm, finite where there is no probability.

    >>> log(np.array([1.0, 0.0])) > -1000
    array([ True,  True])
    """
    return np.asarray(np.log(np.maximum(probability, LEAST)))


def e_step(
    layout: Layout, expected: NDArray[np.float64], label_probs: NDArray[Any], gold: NDArray[np.int32] | None
) -> tuple[NDArray[np.float64], float]:
    """Posteriors from a prior of each task's own and what was said; and the log-likelihood of the votes.

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    >>> posterior, value = e_step(crowd.layout, np.array([[0.9, 0.1]]), np.full((2, 2), 0.5), None)
    >>> posterior.round(6).tolist(), round(value, 4)
    ([[0.9, 0.1]], -1.3863)
    """
    return posterior_of(log(expected) + evidence_of(layout, label_probs), taught_by(layout, gold), gold)


def posterior_of(
    joint: NDArray[np.float64], counted: NDArray[np.bool_], gold: NDArray[np.int32] | None
) -> tuple[NDArray[np.float64], float]:
    """Posteriors from log f_k(x_i) P(votes | k), and the log-likelihood of the tasks that count.

    >>> posterior, value = posterior_of(np.log([[0.3, 0.1]]), np.array([True]), None)
    >>> posterior.round(6).tolist(), round(value, 4)
    ([[0.75, 0.25]], -0.9163)
    """
    peak = joint.max(axis=1, keepdims=True)
    share = np.exp(joint - peak)
    total = share.sum(axis=1, keepdims=True)
    value = (peak + np.log(total))[:, 0]
    if gold is not None:
        known = np.flatnonzero(gold >= 0)
        value[known] = joint[known, gold[known]]
    return apply_gold(share / total, gold), float(value[counted].sum())
