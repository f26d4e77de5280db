"""The family of aggregators of label sets.

A task has a probability for every label instead of a posterior over classes.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.arrow_tables import DataFrameLike
from wisecrowd.data.label_sets import LabelSetCrowd
from wisecrowd.data.types import FeaturesLike
from wisecrowd.errors import InputError, NoPosterior, UsageError, check_choice

Array = NDArray[np.float64]


def as_label_sets(votes: LabelSetCrowd | DataFrameLike) -> LabelSetCrowd:
    """Convert votes to a crowd of label sets.

    Parameters
    ----------
    votes : LabelSetCrowd or table
        Votes. A table has the columns task, worker and labels.

    Returns
    -------
    LabelSetCrowd

    Raises
    ------
    InputError
        If the votes are no label sets, or empty.

    Examples
    --------
    >>> as_label_sets({"task": ["t"], "worker": ["ann"], "labels": ["cat|dog"]}).n_labels
    2
    """
    if isinstance(votes, LabelSetCrowd):
        crowd = votes
    elif hasattr(votes, "answer_type") or isinstance(votes, str | list | tuple):
        raise InputError(
            f"this method takes sets of labels; got {type(votes).__name__}. Build them with LabelSetCrowd.from_frame(df), or "
            "LabelSetCrowd.from_marks(df) for one label per row"
        )
    else:
        crowd = LabelSetCrowd.from_frame(votes)
    if crowd.n_votes == 0 or crowd.n_labels == 0:
        raise InputError("there are no labels; expected a row per task and worker with the set of labels that apply")
    return crowd


@method_class
class LabelSetAggregator(Aggregator):
    """Base class of aggregators that infer which labels apply to a task.

    A subclass implements `_infer_labels` and `_set_log_likelihood`.
    """

    answer_types: ClassVar[tuple[AnswerType, ...]] = ("multilabel",)

    label_index_: pd.Index = fitted(help="Labels, in the order of the columns.")
    label_probs_: Array = fitted(
        help="Probability that a label applies to a task.", shape=("n_tasks", "n_labels"), finite=True
    )
    threshold_: float = fitted(help="Probability from which a label is chosen.")
    n_votes_: int = fitted(help="Number of assignments.")
    votes_per_task_: NDArray[np.int64] = fitted(help="Number of workers who answered each task.", shape=("n_tasks",))

    threshold: Literal["f1", "half"] = parameter(
        default="f1",
        help="Choose labels that maximise the expected F1 score over all tasks ('f1'), or that are more likely than not ('half').",
    )

    def fit(  # type: ignore[override]  # label sets instead of votes on classes
        self,
        crowd: LabelSetCrowd | DataFrameLike,
        X: FeaturesLike | None = None,
        *,
        truth: Any = None,
        start: Any = None,
    ) -> Self:
        """Infer the labels of every task.

        Parameters
        ----------
        crowd : LabelSetCrowd or table
            Votes.
        X : None
            Not used.
        truth : None
            Not used.
        start : None
            Not used.

        Returns
        -------
        self
        """
        start_time = time.perf_counter()
        self._check_parameter_types()
        check_choice("threshold", self.threshold, ("f1", "half"))
        if X is not None or truth is not None or start is not None:
            raise UsageError(f"{type(self).__name__} takes votes only; leave X, truth and start out")
        votes = as_label_sets(crowd)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self.task_index_, self.worker_index_, self.label_index_ = votes.tasks, votes.workers, votes.labels
        self.n_votes_, self.votes_per_task_ = votes.n_votes, votes.votes_per_task
        self.label_probs_ = self._infer_labels(votes)
        has_votes = votes.votes_per_task > 0
        self.threshold_ = find_f1_threshold(self.label_probs_[has_votes]) if self.threshold == "f1" else 0.5
        self._finish_fit(start_time)
        return self

    def _fit(self, crowd: Any, gold: Any, *, X: Any, start: Any) -> None:
        raise UsageError(f"{type(self).__name__} is fitted with fit(label_sets)")

    @abstractmethod
    def _infer_labels(self, crowd: LabelSetCrowd) -> Array:
        """Return the probability that each label applies to each task."""

    @abstractmethod
    def _set_log_likelihood(self, crowd: LabelSetCrowd) -> Array:
        """Return the log-probability of every assignment's set of marks, given the fit."""

    # ------------------------------------------------------------------ results

    @property
    def proba_(self) -> pd.DataFrame:
        """Probability that a label applies, with tasks as rows and labels as columns."""
        columns = self._check_fitted("label_probs_")
        return pd.DataFrame(columns, index=self.task_index_.rename("task"), columns=self.label_index_.rename("label"))

    @property
    def labels_(self) -> pd.Series:
        """Tuple of the chosen labels of every task."""
        chosen = self._check_fitted("label_probs_") >= self.threshold_
        names = self.label_index_.to_numpy(dtype=object)
        sets = [tuple(names[row].tolist()) for row in chosen]
        return pd.Series(sets, index=self.task_index_.rename("task"), name="labels", dtype=object)

    @property
    def tasks_(self) -> pd.DataFrame:
        """Chosen labels, expected F1 score of the choice, probability that the whole set is right, and votes of every task."""
        probs = self._check_fitted("label_probs_")
        chosen = probs >= self.threshold_
        expected_hits = np.where(chosen, probs, 0).sum(axis=1)
        size = chosen.sum(axis=1) + probs.sum(axis=1)
        expected_f1 = np.divide(2 * expected_hits, size, out=np.ones(len(size)), where=size > 0)
        columns = {
            "labels": self.labels_.to_numpy(),
            "expected_f1": expected_f1,
            "confidence": self._set_confidence(chosen),
            "n_votes": self.votes_per_task_,
        }
        return pd.DataFrame(columns, index=self.task_index_.rename("task"))

    def _set_confidence(self, chosen: NDArray[np.bool_]) -> Array:
        """Return the probability that exactly the chosen labels apply, if labels are independent."""
        return np.asarray(np.where(chosen, self.label_probs_, 1 - self.label_probs_).prod(axis=1), dtype=np.float64)

    @property
    def workers_(self) -> pd.DataFrame:
        """Table of workers: number of votes, and the parameters of the method."""
        self._check_fitted("label_probs_")
        assert self.worker_index_ is not None
        return pd.DataFrame(self._worker_columns(), index=self.worker_index_.rename("worker"))

    def heldout_log_loss(self, crowd: LabelSetCrowd | DataFrameLike) -> float:
        """Return the mean negative log-probability of held-out label sets.

        Parameters
        ----------
        crowd : LabelSetCrowd or table
            Assignments that were not in the fit, over the vocabularies of the fit.

        Returns
        -------
        float
            In nats per label set; lower is better.

        Raises
        ------
        InputError
            If tasks, workers or labels differ from those of the fit.
        """
        return float(-self.heldout_log_probs(as_label_sets(crowd)).mean())

    def heldout_log_probs(self, crowd: LabelSetCrowd) -> Array:
        """Return the log-probability of every held-out label set.

        Parameters
        ----------
        crowd : LabelSetCrowd
            Assignments that were not in the fit, over the vocabularies of the fit.

        Returns
        -------
        ndarray of shape (n_votes,)

        Raises
        ------
        InputError
            If tasks, workers or labels differ from those of the fit.
        """
        self._check_fitted("label_probs_")
        vocabularies = (crowd.tasks, crowd.workers, crowd.labels)
        fitted_indexes = (self.task_index_, self.worker_index_, self.label_index_)
        if not all(index.equals(fitted) for index, fitted in zip(vocabularies, fitted_indexes, strict=True)):
            raise InputError("held-out votes need the tasks, workers and labels of the fit; split with crowd.hide()")
        return self._set_log_likelihood(crowd)

    def _repr_html_(self) -> str:
        from wisecrowd.utils.notebook import render_html

        return render_html(repr(self), self.tasks_ if "label_probs_" in vars(self) else None)

    def _check_fitted(self, attribute: str) -> NDArray[Any]:
        if attribute in ("posterior_", "tally_") and "label_probs_" in vars(self):
            raise self._make_posterior_error()
        return super()._check_fitted(attribute)

    def _make_posterior_error(self) -> NoPosterior:
        return NoPosterior(
            f"{type(self).__name__} inferred sets of labels, so there is no posterior over classes; use proba_, labels_ and tasks_"
        )

    if not TYPE_CHECKING:  # a type checker would accept any attribute

        def __getattr__(self, name: str) -> Any:
            if name in ("posterior_", "confusion_", "tally_") and "label_probs_" in vars(self):
                raise self._make_posterior_error()
            return super().__getattr__(name)


def find_f1_threshold(probs: Array) -> float:
    """Return the threshold that maximises the expected F1 score over all tasks and labels.

    Choosing the k most probable labels has the expected score F(k) ≈ 2 Σ_top p / (k + Σ p). At the optimum the threshold is F/2.

    Parameters
    ----------
    probs : ndarray
        Probabilities.

    Returns
    -------
    float

    Examples
    --------
    >>> find_f1_threshold(np.array([0.9, 0.8, 0.1]))
    0.8
    """
    ordered = np.sort(probs, axis=None)[::-1]
    if ordered.size == 0 or ordered[0] <= 0:
        return 0.5
    score = 2 * np.cumsum(ordered) / (np.arange(1, len(ordered) + 1) + ordered.sum())
    return float(ordered[int(score.argmax())])
