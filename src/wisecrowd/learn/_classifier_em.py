"""EM with a classifier as the prior of every task: the family of Raykar et al.

z_i | x_i ~ f(x_i),  y_ir | z_i = k ~ π_r[k, ·]

    E:  q_i(k) ∝ f_k(x_i) Π_r π_r[k, y_ir]
    M:  f fits q as soft targets;  π_r follows from the tally of q
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd import kernels
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.base.learner import Learner
from wisecrowd.base.sharpness import estimate_sharpness, safe_log, sharpen
from wisecrowd.classifiers.soft_classifier import SoftClassifier
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.pairs import Pairs
from wisecrowd.em.classifier_prior import (
    PROBABILITY_FLOOR,
    compute_vote_log_probs,
    find_training_tasks,
    normalize_joint,
    split_folds,
)
from wisecrowd.em.initialization import apply_gold, compute_vote_shares
from wisecrowd.em.loop import Statistics, Step, run_em
from wisecrowd.em.priors import (
    compute_smoothing_log_prior,
    estimate_crowd_prior,
    estimate_smoothed_probs,
    shrink_to_crowd,
)
from wisecrowd.em.shrinkage import count_shrinkage_votes, shrink_label_probs
from wisecrowd.errors import UsageError
from wisecrowd.kernels import MIN_PROB
from wisecrowd.nn.classifier_choice import CLASSIFIER_HELP, CLASSIFIER_L2_HELP, make_classifier
from wisecrowd.utils import progress

MakeClassifier = Callable[[], SoftClassifier]


class WorkerEstimate(NamedTuple):
    """Label probabilities of the workers, estimated from a tally."""

    label_probs: NDArray[Any]
    """(pairs, classes)."""
    log_prior: float
    """Logarithm of the prior density of the confusion matrices, up to a constant."""
    strength: float
    """Votes that the matrix of the crowd is worth; 0 without shrinkage."""


@dataclass(frozen=True)
class WorkerModel:
    """Confusion matrices with fixed pseudo-votes, or shrunk toward the matrix of the crowd.

    Parameters
    ----------
    smoothing, diagonal : float
        Pseudo-votes in every cell, and further ones for the true class.
    shrinkage : bool or float
        Strength of the shrinkage; True estimates it, False uses the pseudo-votes instead.
    """

    smoothing: float
    diagonal: float
    shrinkage: bool | float

    def estimate(self, tally: NDArray[Any], pairs: Pairs) -> WorkerEstimate:
        """Estimate the label probabilities of all workers: the M-step.

        Parameters
        ----------
        tally : ndarray of shape (n_pairs, n_classes)
            Expected counts.
        pairs : Pairs
            Worker and label of every row of the tally.

        Returns
        -------
        WorkerEstimate
        """
        if self.shrinkage is False:
            label_probs = estimate_smoothed_probs(tally, pairs, self.smoothing, self.diagonal)
            log_prior = compute_smoothing_log_prior(tally, pairs, self.smoothing, self.diagonal)
            return WorkerEstimate(label_probs, log_prior, 0.0)
        strength = None if self.shrinkage is True else float(self.shrinkage)
        prior = estimate_crowd_prior(tally, pairs, self.smoothing, self.diagonal, strength)
        return WorkerEstimate(shrink_to_crowd(tally, pairs, *prior), 0.0, prior.strength)

    def label_probs(
        self,
        tally: NDArray[Any],
        pairs: Pairs,
        fitted_tally: NDArray[Any],
        fitted_pairs: Pairs,
        strength: float,
    ) -> NDArray[Any]:
        """Return the label probabilities of some workers under a fit.

        Parameters
        ----------
        tally : ndarray of shape (n_pairs, n_classes)
            Expected counts of the workers.
        pairs : Pairs
            Worker and label of every row of ``tally``.
        fitted_tally : ndarray of shape (n_fitted_pairs, n_classes)
            Expected counts of all workers in the fit.
        fitted_pairs : Pairs
            Worker and label of every row of ``fitted_tally``.
        strength : float
            Strength of the shrinkage in the fit.

        Returns
        -------
        ndarray of shape (n_pairs, n_classes)
        """
        if self.shrinkage is False:
            return estimate_smoothed_probs(tally, pairs, self.smoothing, self.diagonal)
        return shrink_label_probs(
            tally, pairs, fitted_tally, fitted_pairs, strength, smoothing=self.smoothing, diagonal=self.diagonal
        )


@dataclass
class StepOutputs:
    """Results of the latest EM step beside its statistics."""

    task_prior: NDArray[np.float64] | None = None
    strength: float = 0.0
    sharpness: float = 1.0


class ClassifierEMResult(NamedTuple):
    """End of an EM run."""

    posterior: NDArray[np.float64]
    tally: NDArray[Any]
    task_prior: NDArray[np.float64]
    """Class probabilities of the classifiers for every task, with cross-fitting from folds without the task."""
    strength: float
    sharpness: float
    trace: list[float]
    converged: bool
    classifiers: list[SoftClassifier]
    """One per fold."""


@dataclass(frozen=True, kw_only=True)
class EMRunner:
    """EM over a classifier and the confusion matrices of workers.

    Parameters
    ----------
    workers : WorkerModel
        M-step of the workers.
    cv : int
        Number of folds of cross-fitting; 0 for none.
    calibrate : bool
        Calibrate the class probabilities by the likelihood of the votes.
    max_iter : int
        Maximum number of iterations.
    tol : float
        Relative change of the objective at which the iteration stops.
    random_state : int
        Seed of the folds.
    title : str
        Name in the progress bar.
    """

    workers: WorkerModel
    cv: int
    calibrate: bool
    max_iter: int
    tol: float
    random_state: int
    title: str

    def run(
        self,
        X: NDArray[np.float64],
        crowd: Crowd,
        gold: NDArray[np.int32] | None,
        make_classifier: MakeClassifier,
        wrap_step: Callable[[Step, StepOutputs, list[SoftClassifier]], Step] | None = None,
    ) -> ClassifierEMResult:
        """Iterate from the vote shares until the objective converges.

        Parameters
        ----------
        X : ndarray of shape (n_tasks, ...)
            Features.
        crowd : Crowd
            Votes.
        gold : ndarray of shape (n_tasks,), optional
            Class codes of gold tasks, −1 elsewhere.
        make_classifier : callable
            Function that returns an unfitted classifier.
        wrap_step : callable, optional
            Function that replaces the step, for instance by one that writes checkpoints.

        Returns
        -------
        ClassifierEMResult
        """
        layout, pairs = crowd.layout, crowd.pairs
        training = find_training_tasks(layout, gold)
        all_tasks = (training, np.ones(crowd.n_tasks, dtype=bool))
        folds = list(split_folds(training, self.cv, self.random_state)) if self.cv else [all_tasks]
        classifiers = [make_classifier() for _ in folds]
        exact = self.cv == 0 and self.workers.shrinkage is False and classifiers[0].exact
        outputs = StepOutputs()

        def fit_classifiers(posterior: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
            """Fit the classifiers, and return the class probabilities of every task and their log-prior."""
            class_probs = np.empty_like(posterior)
            for classifier, (train, test) in zip(classifiers, folds, strict=True):
                classifier.fit(X[train], posterior[train])
                class_probs[test] = classifier.predict_proba(X[test])
            class_probs = np.clip(class_probs, MIN_PROB if exact else PROBABILITY_FLOOR, None)
            log_prior = 0.0 if self.cv else classifiers[0].log_prior()
            return class_probs / class_probs.sum(axis=1, keepdims=True), log_prior

        def step(statistics: Statistics) -> tuple[Statistics, float]:
            posterior, tally = statistics
            class_probs, log_prior = fit_classifiers(posterior)
            estimate = self.workers.estimate(tally, pairs)
            vote_log_probs = compute_vote_log_probs(layout, estimate.label_probs)
            sharpness = 1.0
            if self.calibrate:
                sharpness = estimate_sharpness(class_probs[layout.has_votes], vote_log_probs[layout.has_votes])
            task_prior = sharpen(class_probs, sharpness)
            posterior, log_likelihood = normalize_joint(safe_log(task_prior) + vote_log_probs, training, gold)
            outputs.task_prior, outputs.strength, outputs.sharpness = task_prior, estimate.strength, sharpness
            objective = log_likelihood + log_prior + estimate.log_prior
            return Statistics(posterior, kernels.tally(layout, posterior)), objective

        start = apply_gold(compute_vote_shares(crowd), gold)
        result = run_em(
            step if wrap_step is None else wrap_step(step, outputs, classifiers),
            Statistics(start, kernels.tally(layout, start)),
            max_iter=self.max_iter,
            tol=self.tol,
            accelerate=False,
            monotone=exact,
            title=self.title,
        )
        assert outputs.task_prior is not None
        return ClassifierEMResult(
            result.statistics.class_counts,
            result.statistics.tally,
            outputs.task_prior,
            outputs.strength,
            outputs.sharpness,
            result.trace,
            result.converged,
            classifiers,
        )


@method_class
class ClassifierEM(Learner):
    """Family of models with a classifier as the prior of a task and a confusion matrix for every worker."""

    classifier: Any = parameter(default="logistic", help=CLASSIFIER_HELP)
    l2: float | None = parameter(default=None, help=CLASSIFIER_L2_HELP)
    random_state: int = parameter(default=0, help="Seed of the folds and of the initial weights of networks.")
    smoothing: float = parameter(
        default=0.1, help="Number of pseudo-votes in every cell of a worker's confusion matrix."
    )
    diagonal: float = parameter(default=1.0, help="Number of further pseudo-votes for the true class.")
    shrinkage: bool | float = parameter(
        default=False,
        help="Shrink the matrices of workers toward the matrix of the crowd: True estimates the strength by marginal "
        "likelihood, a number sets it in pseudo-votes.",
    )
    cv: int = parameter(
        default=0,
        help="Number of folds of cross-fitting, in which the prior of a task comes from classifiers that were not "
        "fitted to it. 0 fits one classifier to all tasks.",
    )
    calibrate: bool = parameter(
        default=False,
        help="Calibrate the class probabilities of the classifier by the likelihood of the votes. Needs ``cv``.",
    )
    max_iter: int = parameter(default=100, help="Maximum number of EM iterations.")
    tol: float = parameter(default=1e-6, help="Relative change of the objective at which the iteration stops.")
    verbose: bool = parameter(default=False, help="Show a progress bar.")

    classifier_: SoftClassifier = fitted(help="Classifier fitted to all training tasks, which predicts new tasks.")
    task_prior_: NDArray[np.float64] = fitted(
        help="Class probabilities of the classifier for every training task.",
        shape=("n_tasks", "n_classes"),
        finite=True,
    )
    strength_: float = fitted(help="Number of votes that the matrix of the crowd is worth; 0 without shrinkage.")
    sharpness_: float = fitted(help="Exponent by which the class probabilities are calibrated.")
    trace_: NDArray[np.float64] = fitted(help="Objective after every iteration.", shape=("n_iter",))
    n_iter_: int = fitted(help="Number of iterations.")
    converged_: bool = fitted(help="Whether the change of the objective fell below ``tol``.")

    def _fit(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        self._check_parameters(crowd)
        with progress.show_if(self.verbose):
            self._run(X, crowd, gold, self.l2)

    def _check_parameters(self, crowd: Crowd) -> None:
        """Check the parameters."""
        if self.max_iter < 1:
            raise UsageError(f"max_iter must be 1 or more; got {self.max_iter}")
        if min(self.smoothing, self.diagonal, self.l2 or 0, float(self.shrinkage)) < 0:
            raise UsageError("smoothing, diagonal, l2 and shrinkage must not be negative")
        if self.cv < 0 or self.cv == 1 or self.cv > crowd.layout.has_votes.sum():
            raise UsageError(
                f"cv must be 0 (no cross-fitting), or from 2 to the number of tasks with votes; got {self.cv}"
            )
        if self.calibrate and not self.cv:
            raise UsageError(
                "calibrate needs cross-fitting, because a classifier is over-confident on its training tasks; set cv=5"
            )

    def _run(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None, l2: float | None) -> None:
        """Run EM with a given ridge, and set the fitted attributes."""

        def wrap_step(step: Step, outputs: StepOutputs, classifiers: list[SoftClassifier]) -> Step:
            return self._wrap_step(step, outputs, classifiers, X, crowd, gold)

        result = self._runner().run(X, crowd, gold, lambda: self._make_classifier(l2), wrap_step)
        self.task_prior_, self.strength_, self.sharpness_ = result.task_prior, result.strength, result.sharpness
        self.trace_, self.n_iter_, self.converged_ = np.asarray(result.trace), len(result.trace), result.converged
        self._set_fitted(crowd, result.posterior, result.tally)
        self.classifier_ = result.classifiers[0]
        if self.cv:  # the classifier of a fold was not fitted to all tasks
            training = find_training_tasks(crowd.layout, gold)
            final = self._make_final_classifier(l2, self.n_iter_)
            self.classifier_ = final.fit(X[training], self.posterior_[training])

    def _runner(self) -> EMRunner:
        """Return the EM of these parameters."""
        return EMRunner(
            workers=self._worker_model(),
            cv=self.cv,
            calibrate=self.calibrate,
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=self.random_state,
            title=type(self).__name__,
        )

    def _worker_model(self) -> WorkerModel:
        return WorkerModel(self.smoothing, self.diagonal, self.shrinkage)

    # ------------------------------------------------------------------ hooks

    def _make_classifier(self, l2: float | None) -> SoftClassifier:
        """Return an unfitted classifier for the iteration."""
        return make_classifier(self.classifier, l2=l2, random_state=self.random_state)

    def _make_final_classifier(self, l2: float | None, n_iter: int) -> SoftClassifier:
        """Return an unfitted classifier to fit to all tasks after ``n_iter`` iterations of cross-fitting."""
        return self._make_classifier(l2)

    def _wrap_step(
        self,
        step: Step,
        outputs: StepOutputs,
        classifiers: list[SoftClassifier],
        X: NDArray[np.float64],
        crowd: Crowd,
        gold: NDArray[np.int32] | None,
    ) -> Step:
        """Return the step to run_em; a method with long steps adds checkpoints."""
        return step

    # ------------------------------------------------------------------ results

    def reported_label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        """Return P(label given class) of some workers.

        Parameters
        ----------
        tally : ndarray of shape (n_pairs, n_classes)
            Expected counts of the workers.
        pairs : Pairs
            Worker and label of every row of the tally.

        Returns
        -------
        ndarray of shape (n_pairs, n_classes)
        """
        return self._worker_model().label_probs(tally, pairs, self.tally_, self._pairs, self.strength_)

    def accuracy_pseudo_votes(self, n_classes: int) -> tuple[float, float]:
        """Return the prior of a worker's accuracy as pseudo-votes.

        Parameters
        ----------
        n_classes : int
            Number of classes.

        Returns
        -------
        correct, total : float
            Number of correct pseudo-votes, and of all pseudo-votes.
        """
        if self.shrinkage is False:
            return self.smoothing + self.diagonal, n_classes * self.smoothing + self.diagonal
        return count_shrinkage_votes(self.posterior_, self.crowd_confusion_, self.strength_)

    def _predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return sharpen(self.classifier_.predict_proba(X), self.sharpness_)

    def restore_part(self, name: str, arrays: dict[str, NDArray[Any]]) -> SoftClassifier:
        """Return the saved classifier.

        Parameters
        ----------
        name : str
            Name of the attribute, ``classifier_``.
        arrays : dict of str to ndarray
            Fitted parameters of the classifier.

        Returns
        -------
        SoftClassifier
        """
        return self._make_classifier(self.l2).restore(arrays)
