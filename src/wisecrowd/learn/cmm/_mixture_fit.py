"""Fit of a mixture and a classifier by EM from several starts."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax

from wisecrowd.classifiers.soft_classifier import SoftClassifier
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.classifier_prior import find_training_tasks
from wisecrowd.em.initialization import apply_gold
from wisecrowd.em.loop import Statistics, run_em
from wisecrowd.kernels import MIN_PROB
from wisecrowd.learn.cmm._confusion_mixture import ConfusionMixture, MixtureModel, MixtureStep
from wisecrowd.learn.cmm._cross_fitting import CrossFittedClassifier, assign_folds, choose_folds
from wisecrowd.learn.cmm._vote_mixture import VoteMixture
from wisecrowd.learn.cmm._worker_mixture import WorkerMixture

#: Relative gain by which a later start must exceed the best: starts that reach the same optimum differ by chance.
RESTART_GAIN = 1e-4
#: Number of iterations without a better iterate after which a cross-fitted iteration ends. Its objective is no likelihood of a
#: single classifier, may swing between two values for ever, and is mostly best in the first iterations.
PATIENCE = 20


class MixtureFit(NamedTuple):
    """Best iterate over all starts."""

    mixture: ConfusionMixture
    classifier: SoftClassifier
    class_probs: NDArray[np.float64]
    """f(x) of all tasks, (tasks, classes), by classifiers that have not seen them if they are cross-fitted."""
    posterior: NDArray[np.float64]
    """Posterior of all tasks, (tasks, classes)."""
    membership: NDArray[np.float64] | None
    """q(g) of every worker with tied groups, (workers, groups)."""
    trace: list[float]
    converged: bool
    restarts: pd.DataFrame
    """Objective, number of iterations and convergence of every start."""


@dataclass(frozen=True, kw_only=True)
class MixtureFitter:
    """Settings of a fit.

    Parameters
    ----------
    make_classifier : callable
        Function from the number of a start to an unfitted classifier.
    tied : {"no", "worker"}
        Whether all votes of a worker belong to one group.
    smoothing : float
        Pseudo-count of every weight and every cell of the matrices.
    n_init : int
        Number of starts.
    max_iter : int
        Maximum number of EM iterations.
    tol : float
        Relative change of the objective at which the iteration stops.
    stop : {"objective", "matrices"}
        Whether the matrices must have settled, too.
    start : {"votes", "authors"}
        Kind of start.
    cross_fit : int or "auto"
        Number of folds, 1 for none.
    random_state : int
        Seed of all starts but the first.
    title : str
        Name in the progress bar.
    """

    make_classifier: Callable[[int], SoftClassifier]
    tied: Literal["no", "worker"]
    smoothing: float
    n_init: int
    max_iter: int
    tol: float
    stop: Literal["objective", "matrices"]
    start: Literal["votes", "authors"]
    cross_fit: int | Literal["auto"]
    random_state: int
    title: str

    def fit(
        self,
        X: NDArray[np.float64],
        crowd: Crowd,
        gold: NDArray[np.int32] | None,
        n_groups: int,
        start_posterior: NDArray[np.float64] | None = None,
    ) -> MixtureFit:
        """Fit a number of groups from all starts.

        Parameters
        ----------
        X : ndarray of shape (n_tasks, ...)
            Features.
        crowd : Crowd
            Votes.
        gold : ndarray of shape (n_tasks,), optional
            Class codes of gold tasks, −1 elsewhere.
        n_groups : int
            Number of groups.
        start_posterior : ndarray of shape (n_tasks, n_classes), optional
            Start of tied groups; by default the posterior of a fit without groups.

        Returns
        -------
        MixtureFit
        """
        training = np.flatnonzero(find_training_tasks(crowd.layout, gold))
        training_gold = None if gold is None else gold[training]
        settings = (n_groups, self.smoothing, self.random_state)
        model: MixtureModel
        if self.tied == "worker":
            if start_posterior is None:
                start_posterior = self.infer_without_groups(X, crowd, gold)
            model = WorkerMixture(X[training], crowd[training], training_gold, start_posterior[training], *settings)
        else:
            model = VoteMixture(X[training], crowd.vote_counts[training], training_gold, *settings, self.start)
        runs = [self._run(model, X[training], attempt) for attempt in range(self.n_init)]
        restarts = pd.DataFrame([run.summary for run in runs], columns=["objective", "n_iter", "converged"])
        chosen = runs[0]
        for run in runs[1:]:
            objective = run.iterate.step.objective
            if objective - chosen.iterate.step.objective > RESTART_GAIN * abs(objective):
                chosen = run
        step, classifier = chosen.iterate
        mixture, statistics = step.mixture, step.statistics
        if classifier is None:  # of each fold one; the one for new tasks is fitted to all
            mass = statistics.class_counts.sum(axis=1)
            targets = statistics.class_counts / np.maximum(mass, MIN_PROB)[:, None]
            classifier = self.make_classifier(0).fit(X[training], targets, mass)
            class_probs = classifier.predict_proba(X)
            class_probs[training] = step.class_probs
        else:
            class_probs = classifier.predict_proba(X)
        membership = None
        if self.tied == "worker":
            posterior, membership = class_probs.copy(), statistics.tally
            posterior[training] = statistics.class_counts
        else:
            posterior = _combine_with_votes(class_probs, mixture, crowd, gold)
        return MixtureFit(
            mixture, classifier, class_probs, posterior, membership, chosen.trace, chosen.summary[2], restarts
        )

    def _run(self, model: MixtureModel, X: NDArray[np.float64], attempt: int) -> _Run:
        """Run EM from one start."""
        classifier = self.make_classifier(attempt)
        n_folds = choose_folds(self.cross_fit, X, exact=classifier.exact)
        tracker = _BestTracker(model, classifier, self.tol)
        if n_folds > 1:
            fold = assign_folds(X, n_folds, self.random_state)
            tracker.classifier = CrossFittedClassifier(lambda: self.make_classifier(attempt), fold)
        exact = tracker.classifier.exact
        has_patience = n_folds > 1 and self.tol > 0  # tol=0 asks for max_iter iterations
        trace: list[float] = []
        state, converged = model.start(attempt), False
        while not converged and len(trace) < self.max_iter:
            limit = min(self.max_iter, tracker.best_position + PATIENCE) if has_patience else self.max_iter
            if len(trace) >= limit:
                converged = True
                break
            # Networks are not exact and not functions of the statistics alone: no extrapolation, no monotone objective.
            state, trace, converged = run_em(
                tracker,
                state,
                max_iter=limit,
                tol=self.tol,
                monotone=exact,
                accelerate=exact and self.tied == "no",
                title=self.title,
                trace=trace,
                has_settled=(lambda: tracker.has_settled) if self.stop == "matrices" else None,
            )
        assert tracker.best is not None
        summary = (tracker.best.step.objective, len(trace), converged)
        return _Run(tracker.best, trace, summary)

    def infer_without_groups(
        self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None
    ) -> NDArray[np.float64]:
        """Return the posterior of a fit with one group, a better start for groups of workers than the vote shares.

        Parameters
        ----------
        X : ndarray of shape (n_tasks, ...)
            Features.
        crowd : Crowd
            Votes.
        gold : ndarray of shape (n_tasks,), optional
            Class codes of gold tasks, −1 elsewhere.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
        """
        return replace(self, tied="no", n_init=1).fit(X, crowd, gold, n_groups=1).posterior


class _BestIterate(NamedTuple):
    step: MixtureStep
    classifier: SoftClassifier | None
    """None if there is one for each fold."""


class _Run(NamedTuple):
    """Outcome of one start."""

    iterate: _BestIterate
    trace: list[float]
    summary: tuple[float, int, bool]
    """Objective, number of iterations and convergence."""


@dataclass
class _BestTracker:
    """EM step that remembers the best iterate: the last epoch of a network is seldom its best."""

    model: MixtureModel
    classifier: SoftClassifier | CrossFittedClassifier
    tol: float
    best: _BestIterate | None = None
    n_steps: int = 0
    best_position: int = 0
    """Number of steps after which the best iterate was found."""
    has_settled: bool = False
    """Whether the matrices of the last two steps are nearly equal."""
    _confusion: NDArray[np.float64] | None = None

    def __call__(self, statistics: Statistics) -> tuple[Statistics, float]:
        step = self.model.step(statistics, self.classifier)
        self.n_steps += 1
        if self.best is None or step.objective > self.best.step.objective:
            self.best_position = self.n_steps
            self.best = _BestIterate(step, self._copy_classifier())
        before, self._confusion = self._confusion, step.mixture.confusion
        if before is not None:
            change = np.abs(self._confusion - before) / np.maximum(before, MIN_PROB)
            self.has_settled = bool(change.mean() <= self.tol)
        return step.statistics, step.objective

    def _copy_classifier(self) -> SoftClassifier | None:
        if isinstance(self.classifier, CrossFittedClassifier):
            return None
        # Exact classifiers replace their parameters; networks change them in place.
        return copy.copy(self.classifier) if self.classifier.exact else copy.deepcopy(self.classifier)


def _combine_with_votes(
    class_probs: NDArray[np.float64], mixture: ConfusionMixture, crowd: Crowd, gold: NDArray[np.int32] | None
) -> NDArray[np.float64]:
    """Return P(z | x, r) ∝ f_z(x) Π_j B[z, j]^r_j."""
    vote_log_probs = crowd.vote_counts @ np.log(np.maximum(mixture.pooled, MIN_PROB)).T
    joint = np.log(np.maximum(class_probs, MIN_PROB)) + vote_log_probs
    return apply_gold(softmax(joint, axis=1), gold)
