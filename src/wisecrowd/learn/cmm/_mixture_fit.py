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
from wisecrowd.learn.cmm._vote_mixture import VoteMixture
from wisecrowd.learn.cmm._worker_mixture import WorkerMixture

#: Gain, in units of the tolerance, by which a later start must exceed the best: starts that reach the same optimum differ
#: by chance.
RESTART_MARGIN = 10


class MixtureFit(NamedTuple):
    """Best iterate over all starts."""

    mixture: ConfusionMixture
    classifier: SoftClassifier
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
        Function that returns an unfitted classifier.
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
    random_state : int
        Seed of all starts but the first.
    title : str
        Name in the progress bar.
    """

    make_classifier: Callable[[], SoftClassifier]
    tied: Literal["no", "worker"]
    smoothing: float
    n_init: int
    max_iter: int
    tol: float
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
            model = VoteMixture(X[training], crowd.vote_counts[training], training_gold, *settings)
        best: tuple[_BestIterate, list[float], bool] | None = None
        rows: list[tuple[float, int, bool]] = []
        for attempt in range(self.n_init):
            tracker = _BestTracker(model, self.make_classifier())
            exact = tracker.classifier.exact
            # Networks are not exact and not functions of the statistics alone: no extrapolation, no monotone objective.
            result = run_em(
                tracker,
                model.start(attempt),
                max_iter=self.max_iter,
                tol=self.tol,
                monotone=exact,
                accelerate=exact and self.tied == "no",
                title=self.title,
            )
            iterate = tracker.best
            assert iterate is not None
            objective = iterate.step.objective
            rows.append((objective, len(result.trace), result.converged))
            if best is None or objective - best[0].step.objective > RESTART_MARGIN * self.tol * abs(objective):
                best = iterate, result.trace, result.converged
        assert best is not None
        iterate, trace, converged = best
        restarts = pd.DataFrame(rows, columns=["objective", "n_iter", "converged"])
        mixture, statistics = iterate.step.mixture, iterate.step.statistics
        class_probs = iterate.classifier.predict_proba(X)
        if self.tied == "worker":
            posterior = class_probs
            posterior[training] = statistics.class_counts
            return MixtureFit(mixture, iterate.classifier, posterior, statistics.tally, trace, converged, restarts)
        posterior = _combine_with_votes(class_probs, mixture, crowd, gold)
        return MixtureFit(mixture, iterate.classifier, posterior, None, trace, converged, restarts)

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
    classifier: SoftClassifier


@dataclass
class _BestTracker:
    """EM step that remembers the best iterate: the last epoch of a network is seldom its best."""

    model: MixtureModel
    classifier: SoftClassifier
    best: _BestIterate | None = None

    def __call__(self, statistics: Statistics) -> tuple[Statistics, float]:
        step = self.model.step(statistics, self.classifier)
        if self.best is None or step.objective > self.best.step.objective:
            # Exact classifiers replace their parameters; networks change them in place.
            copy_classifier = copy.copy if self.classifier.exact else copy.deepcopy
            self.best = _BestIterate(step, copy_classifier(self.classifier))
        return step.statistics, step.objective


def _combine_with_votes(
    class_probs: NDArray[np.float64], mixture: ConfusionMixture, crowd: Crowd, gold: NDArray[np.int32] | None
) -> NDArray[np.float64]:
    """Return P(z | x, r) ∝ f_z(x) Π_j B[z, j]^r_j."""
    vote_log_probs = crowd.vote_counts @ np.log(np.maximum(mixture.pooled, MIN_PROB)).T
    joint = np.log(np.maximum(class_probs, MIN_PROB)) + vote_log_probs
    return apply_gold(softmax(joint, axis=1), gold)
