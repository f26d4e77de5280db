"""Alignment of ground truth with predictions, by task id or by position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.method import Method
from wisecrowd.data.alignment import as_truth_series
from wisecrowd.data.types import TruthLike
from wisecrowd.data.vocabulary import as_index, as_vocabulary, match_id_type, unite_vocabularies
from wisecrowd.errors import InputError, UsageError, preview

#: Prediction in any form that the metrics accept: a fitted method, a posterior, labels or numbers.
PredictionLike: TypeAlias = "Method | pd.DataFrame | pd.Series[Any] | NDArray[Any] | Sequence[Any]"
#: Posteriors that differ by less than this are tied. The order in which votes are added changes the last digits.
TIE_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class AlignedPrediction:
    """Truth and posterior of the tasks that have both.

    Attributes
    ----------
    truth : ndarray of shape (n_tasks,)
        Code of the true class.
    posterior : ndarray of shape (n_tasks, n_classes)
        Posterior, or a one-hot row if the prediction consists of labels.
    classes : Index of shape (n_classes,)
        Classes of the posterior, in its order. With true classes that the posterior does not have: all classes, sorted.
    is_labels_only : bool
        Whether the prediction consists of labels without probabilities.
    n_without_truth : int
        Number of predicted tasks without truth.
    n_without_prediction : int
        Number of tasks with truth but without a prediction.

    Examples
    --------
    >>> align_prediction({"t1": "b"}, pd.DataFrame({"a": [0.5], "b": [0.5]}, index=["t1"])).choice.tolist()
    [[0.5, 0.5]]
    """

    truth: NDArray[np.int64]
    posterior: NDArray[np.float64]
    classes: pd.Index
    is_labels_only: bool
    n_without_truth: int = 0
    n_without_prediction: int = 0

    @property
    def choice(self) -> NDArray[np.float64]:
        """Share of each class in the predicted label, (tasks, classes): one-hot, or equal shares for tied classes."""
        is_best = self.posterior >= self.posterior.max(axis=1, keepdims=True) - TIE_TOLERANCE
        return is_best / is_best.sum(axis=1, keepdims=True)

    @property
    def credit(self) -> NDArray[np.float64]:
        """Share of the predicted label that falls on the true class, by task."""
        return self.choice[np.arange(len(self.truth)), self.truth]

    @property
    def true_class_posterior(self) -> NDArray[np.float64]:
        """Posterior of the true class, by task."""
        return self.posterior[np.arange(len(self.truth)), self.truth]


def align_prediction(truth: TruthLike, prediction: PredictionLike, *, probabilities: bool = False) -> AlignedPrediction:
    """Align a categorical prediction with ground truth.

    A true class that the prediction does not have gets posterior 0.

    Parameters
    ----------
    truth : Series, mapping, DataFrame or array-like
        True classes by task id. Class codes by position if the prediction has no ids.
    prediction : fitted method, DataFrame, Series or array-like
        Posterior (tasks x classes) or labels by task. Arrays are aligned by position.
    probabilities : bool, default=False
        Whether the caller needs probabilities.

    Returns
    -------
    AlignedPrediction

    Raises
    ------
    InputError
        If no task or class is common to both sides, or the posterior is not a distribution.
    UsageError
        If ``probabilities`` is true and the prediction consists of labels.

    Examples
    --------
    >>> aligned = align_prediction({"t1": "b", "t2": "c"}, pd.DataFrame({"a": [0.4], "b": [0.6]}, index=["t1"]))
    >>> aligned.truth.tolist(), aligned.posterior.tolist(), aligned.n_without_prediction
    ([1], [[0.4, 0.6]], 1)
    """
    if _has_no_ids(prediction):
        aligned = _align_by_position(truth, np.asarray(prediction))
    else:
        predicted = _as_labels_or_posterior(prediction)
        truth_by_task, position, n_without_truth = _match_tasks(truth, predicted.index)
        is_predicted = position >= 0
        labels_only = isinstance(predicted, pd.Series)
        columns = as_vocabulary(predicted.unique() if labels_only else predicted.columns, "class")
        true_classes = match_id_type(as_index(truth_by_task[is_predicted]), columns)
        # Labels have no class order of their own, so their classes are sorted.
        classes = unite_vocabularies([columns[:0] if labels_only else columns, columns, true_classes.unique()])
        if not (labels_only or true_classes.isin(columns).any()):
            raise InputError(
                f"no true class is a class of the posterior. The truth has {preview(true_classes.unique())}, the posterior "
                f"{preview(columns)}; use the same class names in both"
            )
        if labels_only:
            posterior = _one_hot(classes.get_indexer(as_index(predicted)[position[is_predicted]]), len(classes))
        else:
            posterior = np.zeros((int(is_predicted.sum()), len(classes)))
            posterior[:, classes.get_indexer(columns)] = predicted.to_numpy(dtype=np.float64)[position[is_predicted]]
        aligned = AlignedPrediction(
            classes.get_indexer(true_classes),
            posterior,
            classes,
            labels_only,
            n_without_truth,
            int((~is_predicted).sum()),
        )
    if probabilities and aligned.is_labels_only:
        raise UsageError(
            "this metric needs probabilities, but the prediction consists of labels; pass a posterior such as fitted.proba_"
        )
    sums = aligned.posterior.sum(axis=1)
    if not ((aligned.posterior >= 0).all() and np.allclose(sums, 1, atol=1e-6)):  # a NaN fails both
        raise InputError(
            "the rows of a posterior must be probabilities that sum to 1; divide each row by its sum first"
        )
    return aligned


class AlignedNumbers(NamedTuple):
    """True and predicted numbers of the tasks that have both.

    Attributes
    ----------
    truth : ndarray of shape (n_tasks,)
        True numbers.
    prediction : ndarray of shape (n_tasks,)
        Predicted numbers.
    n_without_truth : int
        Number of predicted tasks without truth.
    n_without_prediction : int
        Number of tasks with truth but without a prediction.

    Examples
    --------
    >>> AlignedNumbers(np.array([1.0]), np.array([2.0])).n_without_truth
    0
    """

    truth: NDArray[np.float64]
    prediction: NDArray[np.float64]
    n_without_truth: int = 0
    n_without_prediction: int = 0


def align_numbers(truth: TruthLike, prediction: PredictionLike) -> AlignedNumbers:
    """Align predicted numbers with true numbers.

    Parameters
    ----------
    truth : Series, mapping, DataFrame or array-like
        True numbers by task id, or by position if the prediction has no ids.
    prediction : fitted numeric method, Series or array-like
        Predicted numbers by task id or by position.

    Returns
    -------
    AlignedNumbers

    Raises
    ------
    InputError
        If no task is common to both sides, or a number is not finite.

    Examples
    --------
    >>> align_numbers({"t1": 1.0, "t2": 4.0}, pd.Series({"t2": 3.0}))
    AlignedNumbers(truth=array([4.]), prediction=array([3.]), n_without_truth=0, n_without_prediction=1)
    """
    if _has_no_ids(prediction):
        _reject_ids(truth)
        aligned = AlignedNumbers(np.asarray(truth, dtype=np.float64), np.asarray(prediction, dtype=np.float64))
        if aligned.truth.ndim != 1 or aligned.truth.shape != aligned.prediction.shape or len(aligned.prediction) == 0:
            raise InputError(
                "truth and prediction must be one-dimensional and of equal length; "
                f"got shapes {aligned.truth.shape} and {aligned.prediction.shape}"
            )
    else:
        fitted: Any = prediction
        predicted = prediction if isinstance(prediction, pd.Series) else fitted.labels_
        truth_by_task, position, n_without_truth = _match_tasks(truth, predicted.index)
        is_predicted = position >= 0
        aligned = AlignedNumbers(
            truth_by_task[is_predicted].to_numpy(dtype=np.float64), predicted.to_numpy(dtype=np.float64)[position[is_predicted]],
            n_without_truth, int((~is_predicted).sum()),
        )  # fmt: skip
    if not np.isfinite(aligned.truth - aligned.prediction).all():
        raise InputError("truth and prediction must be finite numbers; drop tasks with NaN or infinity")
    return aligned


def _match_tasks(truth: TruthLike, tasks: pd.Index) -> tuple[pd.Series, NDArray[np.int64], int]:
    """Return the truth by task, the position of its tasks in the prediction (-1: none) and the number of tasks without truth."""
    truth_by_task = as_truth_series(truth)
    for index, source in ((truth_by_task.index, "truth"), (tasks, "prediction")):
        if not index.is_unique:
            raise InputError(
                f"the {source} has duplicate tasks: {preview(index[index.duplicated()])}; keep one row per task"
            )
    position = np.asarray(tasks.get_indexer(match_id_type(truth_by_task.index, tasks)), dtype=np.int64)
    n_matched = int((position >= 0).sum())
    if n_matched == 0:
        raise InputError(
            f"truth and prediction have no task in common. The truth has {preview(truth_by_task.index) or 'none'}, the prediction "
            f"{preview(tasks) or 'none'}; use the same task ids in both"
        )
    return truth_by_task, position, len(tasks) - n_matched


def _align_by_position(truth: TruthLike, prediction: NDArray[Any]) -> AlignedPrediction:
    """Align arrays without ids."""
    _reject_ids(truth)
    codes = np.asarray(truth)
    labels_only = prediction.ndim == 1
    if prediction.ndim not in (1, 2) or codes.shape != prediction.shape[:1] or codes.size == 0:
        raise InputError(
            f"arrays need one prediction per task; got truth of shape {codes.shape} and "
            f"prediction of shape {prediction.shape}"
        )
    all_codes = np.concatenate([codes, prediction]) if labels_only else codes
    if all_codes.dtype.kind not in "iu":
        raise InputError(
            f"arrays without task ids must hold class codes; got {preview(all_codes)}. "
            "For class names, pass a Series or DataFrame by task"
        )
    n_classes = int(all_codes.max()) + 1 if labels_only else prediction.shape[1]
    if all_codes.min() < 0 or all_codes.max() >= n_classes:
        raise InputError(
            f"class codes must lie between 0 and {n_classes - 1}; got {all_codes.min()} to {all_codes.max()}"
        )
    posterior = _one_hot(prediction, n_classes) if labels_only else prediction.astype(np.float64)
    return AlignedPrediction(codes.astype(np.int64), posterior, pd.RangeIndex(n_classes), labels_only)


def _one_hot(codes: NDArray[Any], n_classes: int) -> NDArray[np.float64]:
    """Return one-hot rows of class codes."""
    rows = np.zeros((len(codes), n_classes))
    rows[np.arange(len(codes)), codes] = 1
    return rows


def _as_labels_or_posterior(prediction: Any) -> Any:
    """Return the labels (Series) or the posterior (DataFrame) of a prediction."""
    if isinstance(prediction, pd.DataFrame):
        return prediction
    if isinstance(prediction, pd.Series):
        return prediction.dropna()
    if is_numeric(prediction):
        raise UsageError("this method predicts numbers, not classes; use mae or rmse")
    if hasattr(prediction, "proba_"):
        return prediction.proba_
    return pd.DataFrame(prediction.posterior_, index=prediction.tasks_, columns=prediction.classes_)


def _has_no_ids(prediction: Any) -> bool:
    """Return whether a prediction is an array without task ids."""
    has_ids = isinstance(prediction, pd.Series | pd.DataFrame) or any(
        hasattr(prediction, name) for name in ("posterior_", "labels_", "proba_")
    )
    return not has_ids


def is_numeric(prediction: PredictionLike) -> bool:
    """Return whether a prediction consists of numbers rather than classes.

    Parameters
    ----------
    prediction : fitted method or Series
        Prediction by task.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_numeric(pd.Series({"t1": 2.5})), is_numeric(pd.Series({"t1": "cat"}))
    (True, False)
    """
    if isinstance(prediction, pd.Series):
        return prediction.dtype.kind == "f"
    # Methods for both kinds of labels have `estimates_` instead of a posterior after a fit to numbers.
    return hasattr(prediction, "estimates_") or getattr(prediction, "numeric", False) is True


def _reject_ids(truth: TruthLike) -> None:
    """Raise an error if the truth has task ids and the prediction has none."""
    if isinstance(truth, pd.Series | pd.DataFrame | Mapping):
        raise InputError(
            "the truth has task ids but the prediction has none; give the prediction an index, for example "
            "pd.DataFrame(posterior, index=crowd.tasks, columns=crowd.classes)"
        )
