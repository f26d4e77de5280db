"""How truth and prediction meet: by task id, or both bare and by position; never by hope."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.alignment import truth_series
from wisecrowd.data.vocabulary import as_index, as_vocabulary, same_kind, union
from wisecrowd.errors import InputError, UsageError, some

#: Posteriors nearer than this are tied: sums of the same votes in another order must not break a tie.
TIE = 1e-12


@dataclass(frozen=True, eq=False)
class Aligned:
    """Truth (class codes) and posterior (tasks, classes) of the tasks that both sides know.

    >>> align({"t1": "b"}, pd.DataFrame({"a": [0.5], "b": [0.5]}, index=["t1"])).choice.tolist()
    [[0.5, 0.5]]
    """

    truth: NDArray[np.int64]
    posterior: NDArray[np.float64]
    classes: pd.Index
    hard: bool
    n_without_truth: int = 0
    n_without_prediction: int = 0

    @property
    def choice(self) -> NDArray[np.float64]:
        """The chosen class of each task as a row of zeros and one; a tie is split."""
        best = self.posterior >= self.posterior.max(axis=1, keepdims=True) - TIE
        return best / best.sum(axis=1, keepdims=True)

    @property
    def credit(self) -> NDArray[np.float64]:
        """How much of each task's choice fell on the truth."""
        return self.choice[np.arange(len(self.truth)), self.truth]

    @property
    def of_truth(self) -> NDArray[np.float64]:
        """The posterior of each task's true class."""
        return self.posterior[np.arange(len(self.truth)), self.truth]


def align(truth: Any, prediction: Any, *, probabilities: bool = False) -> Aligned:
    """Match truth and prediction by task, or say why they do not match.

    A class that is true but unknown to the prediction gets the posterior zero: nobody could have chosen it.

    >>> both = align({"t1": "b", "t2": "c"}, pd.DataFrame({"a": [0.4], "b": [0.6]}, index=["t1"]))
    >>> both.truth.tolist(), both.posterior.tolist(), both.n_without_prediction
    ([1], [[0.4, 0.6]], 1)
    """
    if _is_bare(prediction):
        both = _by_position(truth, np.asarray(prediction))
    else:
        said = _labelled(prediction)
        known, place, n_without_truth = _by_task(truth, said.index)
        here = place >= 0
        is_labels = isinstance(said, pd.Series)
        columns = as_vocabulary(said.unique() if is_labels else said.columns, "class")
        true = same_kind(as_index(known[here]), columns)
        # Labels name their classes in no order of their own, so that these are sorted.
        classes = union([columns[:0] if is_labels else columns, columns, true.unique()])
        if not (is_labels or true.isin(columns).any()):
            raise InputError(
                f"no true class is among the classes of the posterior; the truth has {some(true.unique())}, the posterior "
                f"{some(columns)}. Check that both use the same names"
            )
        if is_labels:
            posterior = _one_hot(classes.get_indexer(as_index(said)[place[here]]), len(classes))
        else:
            posterior = np.zeros((int(here.sum()), len(classes)))
            posterior[:, classes.get_indexer(columns)] = said.to_numpy(dtype=np.float64)[place[here]]
        both = Aligned(classes.get_indexer(true), posterior, classes, is_labels, n_without_truth, int((~here).sum()))
    if probabilities and both.hard:
        raise UsageError(
            "this figure is one of probabilities, and labels came; give the posterior, for example fitted.proba_"
        )
    sums = both.posterior.sum(axis=1)
    if not ((both.posterior >= 0).all() and np.allclose(sums, 1, atol=1e-6)):  # a NaN fails both
        raise InputError(
            "each row of a posterior must hold probabilities that sum to one; divide by the row sums first"
        )
    return both


class Numbers(NamedTuple):
    """True and predicted numbers of the tasks that both sides know.

    >>> Numbers(np.array([1.0]), np.array([2.0])).n_without_truth
    0
    """

    truth: NDArray[np.float64]
    said: NDArray[np.float64]
    n_without_truth: int = 0
    n_without_prediction: int = 0


def pair_numbers(truth: Any, prediction: Any) -> Numbers:
    """Match true and predicted numbers by task, or say why they do not match.

    >>> pair_numbers({"t1": 1.0, "t2": 4.0}, pd.Series({"t2": 3.0}))
    Numbers(truth=array([4.]), said=array([3.]), n_without_truth=0, n_without_prediction=1)
    """
    if _is_bare(prediction):
        _refuse_ids(truth)
        both = Numbers(np.asarray(truth, dtype=np.float64), np.asarray(prediction, dtype=np.float64))
        if both.truth.ndim != 1 or both.truth.shape != both.said.shape or len(both.said) == 0:
            raise InputError(f"lists of one length were wanted; got shapes {both.truth.shape} and {both.said.shape}")
    else:
        said = prediction if isinstance(prediction, pd.Series) else prediction.labels_
        known, place, n_without_truth = _by_task(truth, said.index)
        here = place >= 0
        both = Numbers(
            known[here].to_numpy(dtype=np.float64), said.to_numpy(dtype=np.float64)[place[here]],
            n_without_truth, int((~here).sum()),
        )  # fmt: skip
    if not np.isfinite(both.truth - both.said).all():
        raise InputError("numbers must be finite to have an error; drop the tasks that have none")
    return both


def _by_task(truth: Any, tasks: pd.Index) -> tuple[pd.Series, NDArray[np.int64], int]:
    """Truth by task, the position of each of its tasks in the prediction (−1: none), how many tasks have no truth."""
    known = truth_series(truth)
    for index, what in ((known.index, "truth"), (tasks, "prediction")):
        if not index.is_unique:
            raise InputError(f"the {what} names some tasks twice: {some(index[index.duplicated()])}; keep one row each")
    place = np.asarray(tasks.get_indexer(same_kind(known.index, tasks)), dtype=np.int64)
    found = int((place >= 0).sum())
    if found == 0:
        raise InputError(
            f"truth and prediction have no task in common; the truth has {some(known.index) or 'none'}, the prediction "
            f"{some(tasks) or 'none'}. Check that both use the same ids"
        )
    return known, place, len(tasks) - found


def _by_position(truth: Any, prediction: NDArray[Any]) -> Aligned:
    _refuse_ids(truth)
    codes = np.asarray(truth)
    hard = prediction.ndim == 1
    if prediction.ndim not in (1, 2) or codes.shape != prediction.shape[:1] or codes.size == 0:
        raise InputError(
            f"one prediction per task was wanted, by position; got truth of shape {codes.shape}, "
            f"prediction of shape {prediction.shape}"
        )
    coded = np.concatenate([codes, prediction]) if hard else codes
    if coded.dtype.kind not in "iu":
        raise InputError(
            f"without ids, classes are codes; for names, give Series and tables by task. Got {some(coded)}"
        )
    k = int(coded.max()) + 1 if hard else prediction.shape[1]
    if coded.min() < 0 or coded.max() >= k:
        raise InputError(f"without ids, classes are codes from 0 to {k - 1}; got {coded.min()} to {coded.max()}")
    posterior = _one_hot(prediction, k) if hard else prediction.astype(np.float64)
    return Aligned(codes.astype(np.int64), posterior, pd.RangeIndex(k), hard)


def _one_hot(codes: NDArray[Any], n_classes: int) -> NDArray[np.float64]:
    rows = np.zeros((len(codes), n_classes))
    rows[np.arange(len(codes)), codes] = 1
    return rows


def _labelled(prediction: Any) -> Any:
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


def _is_bare(prediction: Any) -> bool:
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


def _refuse_ids(truth: Any) -> None:
    if isinstance(truth, pd.Series | pd.DataFrame | Mapping):
        raise InputError(
            "the truth has task ids, and the prediction has none; give the prediction its ids, for example "
            "pd.DataFrame(posterior, index=crowd.tasks, columns=crowd.classes)"
        )
