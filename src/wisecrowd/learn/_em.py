"""EM with a classifier as the prior of every task: the family of Raykar et al., once.

z_i | x_i ~ f(x_i),  y_ir | z_i = k ~ π_r[k, ·].  The E-step weighs what the classifier expects against what was said,
the M-step fits the classifier and the workers' matrices to the posterior:

    E:  q_i(k) ∝ f_k(x_i) Π_r π_r[k, y_ir]
    M:  f fits q as soft targets;  π_r follows from the tally of q
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd import kernels, matrices, progress
from wisecrowd.base import Learner
from wisecrowd.crowd import Crowd, Pairs
from wisecrowd.em import Statistics, Step, iterate, vote_shares
from wisecrowd.errors import UsageError
from wisecrowd.kernels import LEAST
from wisecrowd.learn.classifiers import SoftClassifier, soft_classifier, softmax

#: How sure a classifier that has not seen a task may be of it: an over-confident one would veto all votes.
CLIP = 1e-6
#: Between what the sharpness of a classifier is sought.
SHARPNESS = (0.2, 10.0)


class Parameters(NamedTuple):
    """What follows from a posterior: what workers say, and how sure the prior is of that."""

    said: NDArray[Any]
    """(pairs, classes)."""
    log_prior: float
    strength: float
    """Pseudo-votes of the pooled matrix; 0 without shrinkage."""


@dataclass(kw_only=True, eq=False, repr=False)
class ClassifierEM(Learner):
    """Every model in which a classifier is the prior of a task and a worker answers by a confusion matrix.

    >>> from wisecrowd import Raykar
    >>> issubclass(Raykar, ClassifierEM)
    True
    """

    classifier: Any = field(
        default="logistic",
        metadata={"help": "'logistic', 'linear', 'mlp', 'cnn', a torch module, or a scikit-learn classifier"},
    )
    l2: float | None = field(default=None, metadata={"help": "ridge of the classifier; unless given, by its features"})
    smoothing: float = field(
        default=0.1, metadata={"help": "pseudo-votes in every cell of a worker's confusion matrix"}
    )
    diagonal: float = field(default=1.0, metadata={"help": "further pseudo-votes for being right"})
    shrinkage: bool | float = field(
        default=False,
        metadata={
            "help": "draw workers' matrices toward the crowd's: yes, by marginal likelihood, or so many pseudo-votes"
        },
    )
    cv: int = field(
        default=0,
        metadata={"help": "folds of cross-fitting: a task's prior comes from classifiers that did not see it"},
    )
    calibrate: bool = field(
        default=False,
        metadata={"help": "sharpen or soften what the classifier expects, by the likelihood of the votes"},
    )
    max_iter: int = field(default=100, metadata={"help": "passes at most"})
    tol: float = field(default=1e-6, metadata={"help": "stop when the objective changes by less than this fraction"})
    random_state: int = field(default=0, metadata={"help": "seed of folds and networks"})
    verbose: bool = field(default=False, metadata={"help": "draw a progress bar"})

    def _fit(self, X: NDArray[np.float64], crowd: Crowd, clamp: NDArray[np.int32] | None) -> None:
        self._check(crowd)
        X = self._features(X)
        with progress.show(after=0) if self.verbose else contextlib.nullcontext():
            self._run(X, crowd, clamp)

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

    def _new_classifier(self) -> SoftClassifier:
        return soft_classifier(self.classifier, l2=self.l2, random_state=self.random_state)

    def _features(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the classifier gets to see of the features."""
        return X

    def _workers(self, tally: NDArray[Any], pairs: Pairs) -> Parameters:
        """The M-step of the workers."""
        if self.shrinkage is False:
            said = matrices.smoothed(tally, pairs, self.smoothing, self.diagonal)
            return Parameters(said, matrices.smoothed_log_prior(tally, pairs, self.smoothing, self.diagonal), 0.0)
        crowd = matrices.pooled(tally, pairs, self.smoothing, self.diagonal)
        strength = matrices.strength_of(tally, pairs, crowd) if self.shrinkage is True else float(self.shrinkage)
        return Parameters(matrices.shrunk(tally, pairs, crowd, strength), 0.0, strength)

    def _run(self, X: NDArray[np.float64], crowd: Crowd, clamp: NDArray[np.int32] | None) -> None:
        layout, pairs = crowd.layout, crowd.pairs
        # A task without votes teaches nothing, unless its truth is known.
        taught = layout.voted | (clamp >= 0) if clamp is not None else layout.voted
        folds = list(self._folds(taught))
        classifiers = [self._new_classifier() for _ in folds]
        exact = self.cv == 0 and self.shrinkage is False and classifiers[0].exact

        def priors(posterior: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
            """The M-step of the classifier, and what it then expects of every task."""
            expected = np.empty_like(posterior)
            for model, (train, test) in zip(classifiers, folds, strict=True):
                seen = train & taught
                model.fit(X[seen], posterior[seen])
                expected[test] = model.predict_proba(X[test])
            expected = np.clip(expected, LEAST if exact else CLIP, None)
            return expected / expected.sum(axis=1, keepdims=True), 0.0 if self.cv else classifiers[0].log_prior()

        def step(statistics: Statistics) -> tuple[Statistics, float]:
            posterior, tally = statistics
            expected, log_prior = priors(posterior)
            workers = self._workers(tally, pairs)
            sharpness = sharpness_of(layout, expected, workers.said) if self.calibrate else 1.0
            expected = sharpened(expected, sharpness)
            found, log_likelihood = e_step(layout, expected, workers.said, clamp)
            self.expected_, self.strength_, self.sharpness_ = expected, workers.strength, sharpness
            return Statistics(found, kernels.tally(layout, found)), log_likelihood + log_prior + workers.log_prior

        start = clamped(vote_shares(crowd), clamp)
        run = iterate(
            self._kept(step, classifiers, X, crowd, clamp),
            Statistics(start, kernels.tally(layout, start)), max_iter=self.max_iter, tol=self.tol,
            accelerate=False, monotone=exact, what=type(self).__name__,
        )  # fmt: skip
        self.trace_, self.n_iter_, self.converged_ = np.asarray(run.trace), len(run.trace), run.converged
        self._learn(crowd, run.statistics.classes, run.statistics.tally)
        # With cross-fitting, no fold's classifier has seen all tasks: the one for new tasks has.
        self.classifier_ = (
            classifiers[0] if not self.cv else self._new_classifier().fit(X[taught], self.posterior_[taught])
        )

    def _kept(
        self, step: Step, classifiers: list[SoftClassifier], X: NDArray[np.float64], crowd: Crowd,
        clamp: NDArray[np.int32] | None,
    ) -> Step:  # fmt: skip
        """The step as it is; a method whose steps are long notes where they lead, to go on from there."""
        return step

    def _folds(self, taught: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
        """Which tasks each classifier learns from, and for which it then speaks."""
        if self.cv == 0:
            yield np.ones(len(taught), dtype=bool), np.ones(len(taught), dtype=bool)
            return
        # Drawn among the tasks that teach: others must not change their folds. Any classifier can speak for those.
        fold = np.zeros(len(taught), dtype=np.int64)
        fold[taught] = np.random.default_rng(self.random_state).permutation(int(taught.sum())) % self.cv
        for number in range(self.cv):
            yield fold != number, fold == number

    def _matrix(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        if self.shrinkage is False:
            return matrices.smoothed(tally, pairs, self.smoothing, self.diagonal)
        return matrices.shrunk(
            tally, pairs, matrices.pooled(self.tally_, self._pairs, self.smoothing, self.diagonal), self.strength_
        )

    def _pseudo_votes(self, n_classes: int) -> tuple[float, float]:
        if self.shrinkage is False:
            return self.smoothing + self.diagonal, n_classes * self.smoothing + self.diagonal
        share = self.posterior_.mean(axis=0) @ np.diagonal(self.crowd_confusion_)
        return self.strength_ * float(share), self.strength_

    def _predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return sharpened(self.classifier_.predict_proba(self._features(X)), self.sharpness_)

    def _revive(self, name: str, arrays: dict[str, NDArray[Any]]) -> Any:
        return self._new_classifier().restore(arrays)


def sharpened(expected: NDArray[np.float64], sharpness: float) -> NDArray[np.float64]:
    """f^s, normalised: surer than f for s above one, less sure below.

    >>> sharpened(np.array([[0.8, 0.2]]), 0.0).tolist()
    [[0.5, 0.5]]
    """
    if sharpness == 1:
        return expected
    return softmax(sharpness * np.log(np.maximum(expected, LEAST)))


def sharpness_of(layout: kernels.Layout, expected: NDArray[np.float64], said: NDArray[Any]) -> float:
    """The sharpness under which the votes are most probable.

    A ridge makes a classifier timid and noise in its targets makes it bold; predictions for tasks that it has not seen
    can be put right by the one number that makes what was said most likely.

    >>> crowd = Crowd.from_triples([(task, "ann", task % 2) for task in range(20)])
    >>> expected = np.where(np.arange(20)[:, None] % 2 == np.arange(2), 0.6, 0.4)  # right, but timid
    >>> sharpness_of(crowd.layout, expected, np.array([[0.9, 0.1], [0.1, 0.9]])) > 2
    True
    """
    from scipy.optimize import minimize_scalar

    voted = layout.voted
    evidence = (layout.matrix @ np.log(np.maximum(said, LEAST)))[voted]
    logs = np.log(np.maximum(expected[voted], LEAST))

    def against(log_sharpness: float) -> float:
        prior = np.exp(log_sharpness) * logs
        joint = np.logaddexp.reduce(prior + evidence, axis=1) - np.logaddexp.reduce(prior, axis=1)
        return -float(joint.sum())

    low, high = np.log(SHARPNESS)
    return float(np.exp(minimize_scalar(against, bounds=(low, high), method="bounded", options={"xatol": 0.01}).x))


def e_step(
    layout: kernels.Layout, expected: NDArray[np.float64], said: NDArray[Any], clamp: NDArray[np.int32] | None
) -> tuple[NDArray[np.float64], float]:
    """Posteriors from a prior of each task's own and what was said; and the log-likelihood of the votes.

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    >>> posterior, value = e_step(crowd.layout, np.array([[0.9, 0.1]]), np.full((2, 2), 0.5), None)
    >>> posterior.round(6).tolist(), round(value, 4)
    ([[0.9, 0.1]], -1.3863)
    """
    joint = np.log(np.maximum(expected, LEAST)) + layout.matrix @ np.log(np.maximum(said, LEAST))
    counted = layout.voted if clamp is None else layout.voted | (clamp >= 0)
    return posterior_of(joint, counted, clamp)


def posterior_of(
    joint: NDArray[np.float64], counted: NDArray[np.bool_], clamp: NDArray[np.int32] | None
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
    if clamp is not None:
        known = np.flatnonzero(clamp >= 0)
        value[known] = joint[known, clamp[known]]
    return clamped(share / total, clamp), float(value[counted].sum())


def clamped(posterior: NDArray[np.float64], clamp: NDArray[np.int32] | None) -> NDArray[np.float64]:
    """The posterior with certainty where the truth is known.

    >>> clamped(np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([1, -1])).tolist()
    [[0.0, 1.0], [0.5, 0.5]]
    """
    if clamp is not None:
        known = np.flatnonzero(clamp >= 0)
        posterior[known] = 0
        posterior[known, clamp[known]] = 1
    return posterior
