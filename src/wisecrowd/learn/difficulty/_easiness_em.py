"""EM with a classifier as the prior of every task and workers who fail on hard tasks: the family of Xu et al. (2019).

z_i | x_i ~ f(x_i),   P(y_ir | z_i = k) by the ability a_rk of worker r and the easiness s_i of the task (see `_responses`)

    E:  q_i(k) ∝ f_k(x_i) Π_r P(y_ir | k; a_rk s_i)
    M:  a_rk by Newton's method;  f depending on the definition of easiness
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.base.learner import Learner
from wisecrowd.classifiers.soft_classifier import SoftClassifier
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import FeaturesLike
from wisecrowd.em.classifier_prior import PROBABILITY_FLOOR, find_training_tasks, normalize_joint
from wisecrowd.em.initialization import apply_gold, compute_vote_shares
from wisecrowd.em.loop import Statistics, run_em
from wisecrowd.errors import UsageError, check_choice
from wisecrowd.kernels import MIN_PROB
from wisecrowd.learn.difficulty._matrix_responses import MatrixResponses, flatten_confusion
from wisecrowd.learn.difficulty._responses import MAX_ABILITY, AbilityPrior, Array, Responses, compute_confusion
from wisecrowd.nn.classifier_choice import CLASSIFIER_HELP, CLASSIFIER_L2_HELP, make_classifier
from wisecrowd.utils import progress

#: Pseudo-votes in every cell for the initial abilities.
SMOOTHING = 0.1
#: Further pseudo-votes for the true class for the initial abilities.
DIAGONAL = 1.0


@method_class
class EasinessEM(Learner):
    """Family of models in which the easiness of a task scales the ability of a worker."""

    classifier: Any = parameter(default="logistic", help=CLASSIFIER_HELP)
    l2: float | None = parameter(default=None, help=CLASSIFIER_L2_HELP)
    random_state: int = parameter(default=0, help="Seed of the initial weights of networks.")
    worker_model: Literal["class", "matrix"] = parameter(
        default="class",
        help="Errors of a worker on a class: 'class' spreads them evenly over the wrong classes; 'matrix' has a probability for "
        "each, and difficulty flattens the rows of the worker's confusion matrix.",
    )
    ability_update: Literal["map", "ml", "frozen"] = parameter(
        default="map",
        help="Estimation of abilities: 'map' with a Gaussian prior around those of the vote shares, 'ml' without a "
        "prior, 'frozen' at those of the vote shares.",
    )
    allow_adversarial: bool = parameter(
        default=False,
        help="Allow negative abilities, of workers who are worse than guessing; a matrix may always have them.",
    )
    max_iter: int = parameter(default=200, help="Maximum number of EM iterations.")
    tol: float = parameter(default=1e-6, help="Relative change of the objective at which the iteration stops.")
    verbose: bool = parameter(default=False, help="Show a progress bar.")

    classifier_: SoftClassifier = fitted(help="Classifier, which predicts new tasks.")
    task_prior_: NDArray[np.float64] = fitted(
        help="Class probabilities of the classifier for every training task.",
        shape=("n_tasks", "n_classes"),
        finite=True,
    )
    ability_: NDArray[np.float64] = fitted(
        help="Ability of every worker for every class, as log-odds on the easiest task; with matrices, their logits by true "
        "class and label.",
        shape=("n_workers", "n_classes", "..."),
        finite=True,
    )
    easiness_: NDArray[np.float64] = fitted(
        help="Easiness of every task: 1 for the easiest, 0 where workers guess.", shape=("n_tasks",), finite=True
    )
    votes_per_task_: NDArray[np.float64] = fitted(help="Number of votes on every task.", shape=("n_tasks",))
    trace_: NDArray[np.float64] = fitted(help="Objective after every iteration.", shape=("n_iter",))
    n_iter_: int = fitted(help="Number of iterations.")
    converged_: bool = fitted(help="Whether the change of the objective fell below ``tol``.")

    # ------------------------------------------------------------------ hooks

    @abstractmethod
    def _prior_precision(self, crowd: Crowd) -> Array:
        """Return the precision of the prior of every worker's abilities, of shape (n_workers,)."""

    @abstractmethod
    def _estimate_easiness(self, class_probs: Array, posterior: Array, crowd: Crowd) -> Array:
        """Return the easiness of the training tasks."""

    @abstractmethod
    def _predict_easiness(self, class_probs: Array) -> Array:
        """Return the easiness of tasks without votes."""

    def _fit_classifier(
        self,
        classifier: SoftClassifier,
        X: Array,
        posterior: Array,
        ability: Array,
        responses: Responses,
    ) -> None:
        """Run the M-step of the classifier."""
        classifier.fit(X, posterior)

    def _class_prior(self, class_probs: Array, crowd: Crowd) -> Array:
        """Return the class prior of the training tasks in the E-step."""
        return class_probs

    def _is_exact(self, classifier: SoftClassifier) -> bool:
        """Return whether no step can lower the objective."""
        return classifier.exact

    # ------------------------------------------------------------------ fitting

    def _fit(self, X: Array, crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        self._check_parameters()
        with progress.show_if(self.verbose):
            self._run(X, crowd, gold)

    def _check_parameters(self) -> None:
        """Check the parameters."""
        check_choice("worker_model", self.worker_model, ("class", "matrix"))
        check_choice("ability_update", self.ability_update, ("map", "ml", "frozen"))
        if self.max_iter < 1:
            raise UsageError(f"max_iter must be 1 or more; got {self.max_iter}")
        if self.l2 is not None and self.l2 < 0:
            raise UsageError(f"l2 must not be negative; got {self.l2}")

    def _run(self, X: Array, crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        """Run EM, and set the fitted attributes."""
        kind = MatrixResponses if self.worker_model == "matrix" else Responses
        responses = kind(crowd)
        training = find_training_tasks(crowd.layout, gold)
        classifier = self._make_classifier()
        min_ability = -MAX_ABILITY if self.allow_adversarial else 0.0
        floor = MIN_PROB if classifier.exact else PROBABILITY_FLOOR
        start = apply_gold(compute_vote_shares(crowd), gold)
        centre = responses.estimate_initial_abilities(start, SMOOTHING, DIAGONAL)
        if self.worker_model == "class":
            centre = np.maximum(centre, min_ability)
        precision = self._prior_precision(crowd) if self.ability_update == "map" else np.zeros(len(centre))
        if self.worker_model == "matrix":
            # One unit of ability is √((K − 1) / K) units of centred logits.
            precision = precision * crowd.n_classes / (crowd.n_classes - 1)
        prior = AbilityPrior(centre, precision)
        training_rows = X if training.all() else X[training]
        training_responses = responses if training.all() else kind(crowd[np.flatnonzero(training)])

        def predict() -> Array:
            class_probs = np.maximum(classifier.predict_proba(X), floor)
            return np.asarray(class_probs / class_probs.sum(axis=1, keepdims=True))

        def e_step(posterior: Array, ability: Array, class_probs: Array) -> tuple[Array, float]:
            easiness = self._estimate_easiness(class_probs, posterior, crowd)
            latest.class_probs, latest.easiness = class_probs, easiness
            log_prior = np.log(self._class_prior(class_probs, crowd))
            return normalize_joint(log_prior + responses.vote_log_probs(ability, easiness), training, gold)

        def step(statistics: Statistics) -> tuple[Statistics, float]:
            posterior, ability = statistics
            # The classifier is fitted before the abilities: fitted to the vote shares, it is so uncertain of all tasks
            # that abilities would become huge.
            self._fit_classifier(classifier, training_rows, posterior[training], ability, training_responses)
            class_probs = predict()
            if self.ability_update != "frozen":
                easiness = self._estimate_easiness(class_probs, posterior, crowd)
                ability = responses.fit_abilities(posterior, easiness, ability, prior, min_ability=min_ability)
            posterior, log_likelihood = e_step(posterior, ability, class_probs)
            objective = log_likelihood + classifier.log_prior() + prior.log_density(ability)
            return Statistics(posterior, ability), objective

        latest = _LatestEstimates()
        classifier.fit(training_rows, start[training])
        first_posterior, _ = e_step(start, centre, predict())
        result = run_em(
            step,
            Statistics(first_posterior, centre),
            max_iter=self.max_iter,
            tol=self.tol,
            accelerate=False,
            monotone=self._is_exact(classifier),
            title=type(self).__name__,
        )
        self.trace_, self.n_iter_, self.converged_ = np.asarray(result.trace), len(result.trace), result.converged
        self.ability_, self.classifier_ = result.statistics.tally, classifier
        self.task_prior_, self.easiness_ = latest.class_probs, latest.easiness
        self.votes_per_task_ = crowd.vote_counts.sum(axis=1)
        self._set_fitted(crowd, result.statistics.class_counts)

    def _make_classifier(self) -> SoftClassifier:
        return make_classifier(self.classifier, l2=self.l2, random_state=self.random_state)

    # ------------------------------------------------------------------ results

    def _predict_proba(self, X: Array) -> Array:
        return self.classifier_.predict_proba(X)

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
        return self._make_classifier().restore(arrays)

    @property
    def tasks_(self) -> pd.DataFrame:
        """Difficulty 1 − easiness, easiness (1 for the easiest task, 0 where workers guess) and number of votes by task."""
        columns = {
            "difficulty": 1 - self._check_fitted("easiness_"),
            "easiness": self.easiness_,
            "n_votes": self.votes_per_task_,
        }
        return pd.DataFrame(columns, index=self.task_index_.rename("task"))

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        """Add abilities by class and, with two classes, sensitivity and specificity for the second class."""
        columns = super()._worker_columns()
        right = np.diagonal(self._compute_confusion(self.ability_), axis1=1, axis2=2)
        ability = self.ability_
        if self.worker_model == "matrix":
            n_wrong = len(self.classes_) - 1
            bounded = np.clip(right, np.exp(-MAX_ABILITY), 1 - np.exp(-MAX_ABILITY))
            ability = np.log(n_wrong * bounded / (1 - bounded))
        columns |= {f"ability_{name}": ability[:, k] for k, name in enumerate(self.classes_)}
        if len(self.classes_) == 2:
            columns |= {"sensitivity": right[:, 1], "specificity": right[:, 0]}
        return columns

    def confusion_of(self, workers: Iterable[int]) -> Array:
        """Return the confusion matrices of some workers on the easiest task.

        Parameters
        ----------
        workers : iterable of int
            Positions of the workers.

        Returns
        -------
        ndarray of shape (n_chosen, n_classes, n_classes)
        """
        return self._compute_confusion(self._check_fitted("ability_")[self._check_positions(workers)])

    def _compute_confusion(self, ability: Array, easiness: Array | float = 1.0) -> Array:
        """Return confusion matrices on tasks of some easiness."""
        return (flatten_confusion if self.worker_model == "matrix" else compute_confusion)(ability, easiness)

    def predict_worker_proba(self, X: FeaturesLike, workers: Sequence[Any] | pd.Index) -> Array:
        """Predict the labels that workers would give to tasks, taking their easiness into account.

        Parameters
        ----------
        X : DataFrame or ndarray
            Features of the tasks.
        workers : list
            Worker ids. A worker without training votes has the mean ability of the crowd.

        Returns
        -------
        ndarray of shape (n_tasks, n_workers, n_classes)
        """
        class_probs = self.predict_proba(X)
        position = self._worker_positions(workers)
        is_known = (position >= 0).reshape(-1, *[1] * (self.ability_.ndim - 1))
        ability = np.where(is_known, self.ability_[position], self.ability_.mean(axis=0))
        easiness = self._predict_easiness(class_probs).reshape(-1, *[1] * self.ability_.ndim)
        confusion = self._compute_confusion(ability, easiness)  # (tasks, workers, true, given)
        return np.asarray(np.einsum("nk,nrkl->nrl", class_probs, confusion))


class _LatestEstimates:
    """Estimates of the latest E-step beside its statistics."""

    class_probs: Array
    easiness: Array
