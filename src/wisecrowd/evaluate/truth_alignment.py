"""How truth and prediction meet: by task id, or both bare and by position; never by hope."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.alignment import as_truth_series
from wisecrowd.data.vocabulary import as_index, as_vocabulary, match_id_type, unite_vocabularies
from wisecrowd.errors import InputError, UsageError, preview

#: Posteriors nearer than this are tied: sums of the same votes in another order must not break a tie.
TIE_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class AlignedPrediction:
    """Truth (class codes) and posterior (tasks, classes) of the tasks that both sides know.

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
        """The chosen class of each task as a row of zeros and one; a tie is split."""
        is_best = self.posterior >= self.posterior.max(axis=1, keepdims=True) - TIE_TOLERANCE
        return is_best / is_best.sum(axis=1, keepdims=True)

    @property
    def credit(self) -> NDArray[np.float64]:
        """How much of each task's choice fell on the truth."""
        return self.choice[np.arange(len(self.truth)), self.truth]

    @property
    def true_class_posterior(self) -> NDArray[np.float64]:
        """The posterior of each task's true class."""
        return self.posterior[np.arange(len(self.truth)), self.truth]


def align_prediction(truth: Any, prediction: Any, *, probabilities: bool = False) -> AlignedPrediction:
    """Match truth and prediction by task, or say why they do not match.

    A class that is true but unknown to the prediction gets the posterior zero: nobody could have chosen it.

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
        # Labels name their classes in no order of their own, so that these are sorted.
        classes = unite_vocabularies([columns[:0] if labels_only else columns, columns, true_classes.unique()])
        if not (labels_only or true_classes.isin(columns).any()):
            raise InputError(
                f"no true class is among the classes of the posterior; the truth has {preview(true_classes.unique())}, the posterior "
                f"{preview(columns)}. Check that both use the same names"
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
            "this figure is one of probabilities, and labels came; give the posterior, for example fitted.proba_"
        )
    sums = aligned.posterior.sum(axis=1)
    if not ((aligned.posterior >= 0).all() and np.allclose(sums, 1, atol=1e-6)):  # a NaN fails both
        raise InputError(
            "each row of a posterior must hold probabilities that sum to one; divide by the row sums first"
        )
    return aligned


class AlignedNumbers(NamedTuple):
    """True and predicted numbers of the tasks that both sides know.

    >>> AlignedNumbers(np.array([1.0]), np.array([2.0])).n_without_truth
    0
    """

    truth: NDArray[np.float64]
    prediction: NDArray[np.float64]
    n_without_truth: int = 0
    n_without_prediction: int = 0


def align_numbers(truth: Any, prediction: Any) -> AlignedNumbers:
    """Match true and predicted numbers by task, or say why they do not match.

    >>> align_numbers({"t1": 1.0, "t2": 4.0}, pd.Series({"t2": 3.0}))
    Numbers(truth=array([4.]), said=array([3.]), n_without_truth=0, n_without_prediction=1)
    """
    if _has_no_ids(prediction):
        _reject_ids(truth)
        aligned = AlignedNumbers(np.asarray(truth, dtype=np.float64), np.asarray(prediction, dtype=np.float64))
        if aligned.truth.ndim != 1 or aligned.truth.shape != aligned.prediction.shape or len(aligned.prediction) == 0:
            raise InputError(
                f"lists of one length were wanted; got shapes {aligned.truth.shape} and {aligned.prediction.shape}"
            )
    else:
        predicted = prediction if isinstance(prediction, pd.Series) else prediction.labels_
        truth_by_task, position, n_without_truth = _match_tasks(truth, predicted.index)
        is_predicted = position >= 0
        aligned = AlignedNumbers(
            truth_by_task[is_predicted].to_numpy(dtype=np.float64), predicted.to_numpy(dtype=np.float64)[position[is_predicted]],
            n_without_truth, int((~is_predicted).sum()),
        )  # fmt: skip
    if not np.isfinite(aligned.truth - aligned.prediction).all():
        raise InputError("numbers must be finite to have an error; drop the tasks that have none")
    return aligned


def _match_tasks(truth: Any, tasks: pd.Index) -> tuple[pd.Series, NDArray[np.int64], int]:
    """Truth by task, the position of each of its tasks in the prediction (−1: none), how many tasks have no truth."""
    truth_by_task = as_truth_series(truth)
    for index, source in ((truth_by_task.index, "truth"), (tasks, "prediction")):
        if not index.is_unique:
            raise InputError(
                f"the {source} names some tasks twice: {preview(index[index.duplicated()])}; keep one row each"
            )
    position = np.asarray(tasks.get_indexer(match_id_type(truth_by_task.index, tasks)), dtype=np.int64)
    n_matched = int((position >= 0).sum())
    if n_matched == 0:
        raise InputError(
            f"truth and prediction have no task in common; the truth has {preview(truth_by_task.index) or 'none'}, the prediction "
            f"{preview(tasks) or 'none'}. Check that both use the same ids"
        )
    return truth_by_task, position, len(tasks) - n_matched


def _align_by_position(truth: Any, prediction: NDArray[Any]) -> AlignedPrediction:
    _reject_ids(truth)
    codes = np.asarray(truth)
    labels_only = prediction.ndim == 1
    if prediction.ndim not in (1, 2) or codes.shape != prediction.shape[:1] or codes.size == 0:
        raise InputError(
            f"one prediction per task was wanted, by position; got truth of shape {codes.shape}, "
            f"prediction of shape {prediction.shape}"
        )
    all_codes = np.concatenate([codes, prediction]) if labels_only else codes
    if all_codes.dtype.kind not in "iu":
        raise InputError(
            f"without ids, classes are codes; for names, give Series and tables by task. Got {preview(all_codes)}"
        )
    n_classes = int(all_codes.max()) + 1 if labels_only else prediction.shape[1]
    if all_codes.min() < 0 or all_codes.max() >= n_classes:
        raise InputError(
            f"without ids, classes are codes from 0 to {n_classes - 1}; got {all_codes.min()} to {all_codes.max()}"
        )
    posterior = _one_hot(prediction, n_classes) if labels_only else prediction.astype(np.float64)
    return AlignedPrediction(codes.astype(np.int64), posterior, pd.RangeIndex(n_classes), labels_only)


def _one_hot(codes: NDArray[Any], n_classes: int) -> NDArray[np.float64]:
    rows = np.zeros((len(codes), n_classes))
    rows[np.arange(len(codes)), codes] = 1
    return rows


def _as_labels_or_posterior(prediction: Any) -> Any:
    """The labels (Series) or posterior (DataFrame) that a prediction stands for."""
    if isinstance(prediction, pd.DataFrame):
        return prediction
    if isinstance(prediction, pd.Series):
        return prediction.dropna()
    if is_numeric(prediction):
        raise UsageError("this method gives numbers, not classes; use mae or rmse")
    if hasattr(prediction, "proba_"):
        return prediction.proba_
    return pd.DataFrame(prediction.posterior_, index=prediction.tasks_, columns=prediction.classes_)


def _has_no_ids(prediction: Any) -> bool:
    has_ids = isinstance(prediction, pd.Series | pd.DataFrame) or any(
        hasattr(prediction, name) for name in ("posterior_", "labels_", "proba_")
    )
    return not has_ids


def is_numeric(prediction: Any) -> bool:
    """Whether a prediction consists of numbers rather than classes.

    >>> is_numeric(pd.Series({"t1": 2.5})), is_numeric(pd.Series({"t1": "cat"}))
    (True, False)
    """
    if isinstance(prediction, pd.Series):
        return prediction.dtype.kind == "f"
    # A method that takes either kind has estimates instead of a posterior when it was given numbers.
    return hasattr(prediction, "estimates_") or getattr(prediction, "numeric", False) is True


def _reject_ids(truth: Any) -> None:
    if isinstance(truth, pd.Series | pd.DataFrame | Mapping):
        raise InputError(
            "the truth has task ids, and the prediction has none; give the prediction its ids, for example "
            "pd.DataFrame(posterior, index=crowd.tasks, columns=crowd.classes)"
        )
