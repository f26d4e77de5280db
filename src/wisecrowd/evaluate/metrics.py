"""Metrics for predictions with known ground truth.

Every function takes ``(truth, prediction)``. ``truth`` is a Series by task, a mapping, or a DataFrame with columns task and
label; it may cover only some tasks. ``prediction`` is a fitted method, a posterior (tasks x classes) or a Series of labels by
task. Both are aligned by task id, and tasks that only one side has are ignored; `summary` counts them. Arrays are aligned by
position: class codes as truth, a posterior of shape (tasks, classes) or class codes as prediction.

A tie for the largest posterior is split: each tied class gets an equal share of the predicted label.

Examples
--------
>>> truth = {"t1": "cat", "t2": "dog", "t3": "dog"}
>>> posterior = pd.DataFrame({"cat": [0.9, 0.5], "dog": [0.1, 0.5]}, index=["t1", "t2"])
>>> accuracy(truth, posterior)
0.75
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.types import TruthLike
from wisecrowd.em.divergence import confusion_divergence as confusion_divergence
from wisecrowd.errors import InputError, UsageError, check_choice, preview
from wisecrowd.evaluate.truth_alignment import (
    AlignedNumbers,
    AlignedPrediction,
    PredictionLike,
    align_numbers,
    align_prediction,
    is_numeric,
)
from wisecrowd.utils.binning import assign_bins, check_bins

# ---------------------------------------------------------------------- predicted labels


def accuracy(truth: TruthLike, prediction: PredictionLike) -> float:
    """Compute the share of tasks whose predicted label is the true class.

    Parameters
    ----------
    truth : Series, mapping, DataFrame or array-like
        True classes by task.
    prediction : fitted method, DataFrame, Series or array-like
        Posterior or labels by task.

    Returns
    -------
    float
        Between 0 and 1. A task whose best classes tie counts in part: 1/2 if the truth is one of two.

    Examples
    --------
    >>> accuracy({"t1": "cat", "t2": "dog"}, pd.Series({"t1": "cat", "t2": "cat"}))
    0.5
    >>> accuracy([0, 1], [[0.8, 0.2], [0.5, 0.5]])
    0.75
    """
    aligned = align_prediction(truth, prediction)
    return float(aligned.credit.mean())


def confusion_table(truth: TruthLike, prediction: PredictionLike, *, normalize: bool = False) -> pd.DataFrame:
    """Compute the number of tasks by true class (rows) and predicted class (columns).

    Parameters
    ----------
    truth : Series, mapping, DataFrame or array-like
        True classes by task.
    prediction : fitted method, DataFrame, Series or array-like
        Posterior or labels by task.
    normalize : bool, default=False
        Whether each row is divided by its sum. Rows without tasks become NaN.

    Returns
    -------
    DataFrame of shape (n_classes, n_classes)

    Examples
    --------
    >>> confusion_table({"t1": "cat", "t2": "dog"}, pd.Series({"t1": "cat", "t2": "cat"}))
    chosen  cat  dog
    truth
    cat     1.0  0.0
    dog     1.0  0.0
    """
    aligned = align_prediction(truth, prediction)
    n_classes = len(aligned.classes)
    table = np.stack(
        [np.bincount(aligned.truth, weights=share, minlength=n_classes) for share in aligned.choice.T], axis=1
    )
    if normalize:
        row_sums = table.sum(axis=1, keepdims=True)
        table = np.divide(table, row_sums, out=np.full_like(table, np.nan), where=row_sums > 0)
    return pd.DataFrame(table, index=aligned.classes.rename("truth"), columns=aligned.classes.rename("chosen"))


def per_class(truth: TruthLike, prediction: PredictionLike) -> pd.DataFrame:
    """Compute recall, precision and F1 of every class that is true or predicted for some task.

    Parameters
    ----------
    truth : Series, mapping, DataFrame or array-like
        True classes by task.
    prediction : fitted method, DataFrame, Series or array-like
        Posterior or labels by task.

    Returns
    -------
    DataFrame
        Columns n_tasks, recall, precision and f1 by class. Recall is NaN for a class that is never true, precision for a class
        that is never predicted.

    Examples
    --------
    >>> per_class({"t1": "cat", "t2": "dog", "t3": "dog"}, pd.Series({"t1": "cat", "t2": "cat", "t3": "dog"}))
           n_tasks  recall  precision        f1
    class
    cat          1     1.0        0.5  0.666667
    dog          2     0.5        1.0  0.666667
    """
    table = confusion_table(truth, prediction)
    n_right, n_true, n_chosen = np.diag(table), table.to_numpy().sum(axis=1), table.to_numpy().sum(axis=0)
    with np.errstate(invalid="ignore"):
        columns = {
            "n_tasks": n_true.round().astype(np.int64),
            "recall": n_right / n_true,
            "precision": n_right / n_chosen,
            "f1": 2 * n_right / (n_true + n_chosen),
        }
    return pd.DataFrame(columns, index=table.index.rename("class"))[(n_true > 0) | (n_chosen > 0)]


def f1(
    truth: TruthLike,
    prediction: PredictionLike,
    *,
    average: Literal["macro", "binary"] = "macro",
    positive: object = None,
) -> float:
    """Compute the F1 score of the predicted labels.

    Parameters
    ----------
    truth : Series, mapping, DataFrame or array-like
        True classes by task.
    prediction : fitted method, DataFrame, Series or array-like
        Posterior or labels by task.
    average : {"macro", "binary"}, default="macro"
        Mean over the classes, or the score of the ``positive`` class.
    positive : object, default=None
        Class to score with ``average="binary"``. Defaults to the second of two classes.

    Returns
    -------
    float
        Between 0 and 1; 1 is best.

    Examples
    --------
    >>> f1({"t1": "no", "t2": "yes", "t3": "yes"}, pd.Series({"t1": "yes", "t2": "yes", "t3": "no"}), average="binary")
    0.5
    """
    check_choice("average", average, ("macro", "binary"))
    if average == "macro":
        return float(per_class(truth, prediction)["f1"].mean())
    table = confusion_table(truth, prediction)
    code = positive_class_code(table.index, positive)
    cells = table.to_numpy()
    total = cells[code].sum() + cells[:, code].sum()
    return float(2 * cells[code, code] / total) if total else 0.0


# ---------------------------------------------------------------------- probabilities


def log_loss(truth: TruthLike, prediction: PredictionLike, *, clip: float = 1e-6) -> float:
    """Compute the mean of -log posterior of the true class, in nats.

    Parameters
    ----------
    truth : Series, mapping, DataFrame or array-like
        True classes by task.
    prediction : fitted method, DataFrame or array-like
        Posterior by task.
    clip : float, default=1e-6
        Smallest probability; smaller ones are raised to it.

    Returns
    -------
    float
        0 or more; 0 is best.

    Examples
    --------
    >>> round(log_loss([0, 1], [[0.5, 0.5], [0.25, 0.75]]), 4)
    0.4904
    """
    if not 0 < clip < 1:
        raise UsageError(f"clip must lie between 0 and 1, such as 1e-6; got {clip}")
    aligned = align_prediction(truth, prediction, probabilities=True)
    return float(-np.log(np.maximum(aligned.true_class_posterior, clip)).mean())


def brier(truth: TruthLike, prediction: PredictionLike) -> float:
    """Compute the mean squared distance between posterior and truth, summed over classes: 0 is best, 2 is worst.

    Parameters
    ----------
    truth : Series, mapping, DataFrame or array-like
        True classes by task.
    prediction : fitted method, DataFrame or array-like
        Posterior by task.

    Returns
    -------
    float

    Examples
    --------
    >>> brier([0, 1], [[1.0, 0.0], [0.5, 0.5]])
    0.25
    """
    aligned = align_prediction(truth, prediction, probabilities=True)
    return float(((aligned.posterior**2).sum(axis=1) - 2 * aligned.true_class_posterior + 1).mean())


def calibration_error(
    truth: TruthLike, prediction: PredictionLike, *, n_bins: int = 15, bins: Literal["width", "mass"] = "width"
) -> float:
    """Compute the expected calibration error: the mean gap between confidence and accuracy over bins of confidence.

    Confidence is the largest posterior of a task. The error is biased upwards if there are few tasks.

    Parameters
    ----------
    truth : Series, mapping, DataFrame or array-like
        True classes by task.
    prediction : fitted method, DataFrame or array-like
        Posterior by task.
    n_bins : int, default=15
        Number of bins.
    bins : {"width", "mass"}, default="width"
        Bins of equal width, or bins with about equally many tasks.

    Returns
    -------
    float
        Between 0 and 1; 0 if labels are right as often as their confidence says.

    Examples
    --------
    >>> calibration_error([0, 0, 0, 1], [[0.75, 0.25]] * 4)
    0.0
    >>> calibration_error([0, 1], [[0.9, 0.1], [0.9, 0.1]], bins="mass")
    0.4
    """
    check_bins(n_bins, bins)
    aligned = align_prediction(truth, prediction, probabilities=True)
    confidence = aligned.posterior.max(axis=1)
    gap = np.bincount(assign_bins(confidence, n_bins, bins), weights=aligned.credit - confidence)
    return float(np.abs(gap).sum() / len(confidence))


def auc(truth: TruthLike, prediction: PredictionLike, *, positive: object = None) -> float:
    """Compute the area under the ROC curve of the posterior of one class.

    Parameters
    ----------
    truth : Series, mapping, DataFrame or array-like
        True classes by task.
    prediction : fitted method, DataFrame or array-like
        Posterior by task.
    positive : object, default=None
        Class to rank by. Defaults to the second of two classes. With more classes, the mean over all classes that some but not
        all tasks have.

    Returns
    -------
    float
        0.5 for a random order of tasks, 1 if all tasks of the class come before all others.

    Examples
    --------
    >>> auc({"t1": "no", "t2": "yes"}, pd.DataFrame({"no": [0.6, 0.3], "yes": [0.4, 0.7]}, index=["t1", "t2"]))
    1.0
    """
    from sklearn.metrics import roc_auc_score

    aligned = align_prediction(truth, prediction, probabilities=True)
    if len(aligned.classes) == 2 or positive is not None:
        codes = [positive_class_code(aligned.classes, positive)]
    else:
        codes = np.unique(aligned.truth).tolist()
    masks = [aligned.truth == code for code in codes]
    if not all(0 < mask.sum() < len(mask) for mask in masks):
        raise InputError(
            "the area under the ROC curve needs tasks of the positive class and of another class; all tasks have the same"
        )
    scores = [roc_auc_score(mask, aligned.posterior[:, code]) for mask, code in zip(masks, codes, strict=True)]
    return float(np.mean(scores))


# ---------------------------------------------------------------------- numbers


def mae(truth: TruthLike, prediction: PredictionLike) -> float:
    """Compute the mean absolute error of predicted numbers.

    Parameters
    ----------
    truth : Series, mapping, DataFrame or array-like
        True numbers by task.
    prediction : fitted numeric method, Series or array-like
        Predicted numbers by task.

    Returns
    -------
    float
        Error in the unit of the numbers; 0 is best.

    Examples
    --------
    >>> mae({"t1": 1.0, "t2": 4.0}, pd.Series({"t1": 2.0, "t2": 4.0}))
    0.5
    """
    return float(np.abs(_errors(truth, prediction)).mean())


def rmse(truth: TruthLike, prediction: PredictionLike) -> float:
    """Compute the root mean squared error of predicted numbers.

    Parameters
    ----------
    truth : Series, mapping, DataFrame or array-like
        True numbers by task.
    prediction : fitted numeric method, Series or array-like
        Predicted numbers by task.

    Returns
    -------
    float
        Error in the unit of the numbers; 0 is best. Large errors count more than in `mae`.

    Examples
    --------
    >>> rmse([1.0, 4.0], [2.0, 3.0])
    1.0
    """
    return float(np.sqrt((_errors(truth, prediction) ** 2).mean()))


# ---------------------------------------------------------------------- workers


def worker_error(true: pd.Series, estimated: pd.Series) -> float:
    """Compute the mean absolute difference between true and estimated values of workers.

    Parameters
    ----------
    true : Series
        True values by worker, such as accuracies.
    estimated : Series
        Estimated values by worker.

    Returns
    -------
    float

    Examples
    --------
    >>> worker_error(pd.Series({"ann": 0.9, "bob": 0.5}), pd.Series({"bob": 0.7, "ann": 0.9})).__round__(3)
    0.1
    """
    true_values, estimates = _match_workers(true, estimated)
    return float(np.abs(true_values - estimates).mean())


def worker_correlation(true: pd.Series, estimated: pd.Series) -> float:
    """Compute the Pearson correlation between true and estimated values of workers.

    Parameters
    ----------
    true : Series
        True values by worker, such as accuracies.
    estimated : Series
        Estimated values by worker.

    Returns
    -------
    float
        NaN if either side is constant.

    Examples
    --------
    >>> worker_correlation(pd.Series({"ann": 0.9, "bob": 0.5}), pd.Series({"ann": 0.8, "bob": 0.6})).__round__(3)
    1.0
    """
    true_values, estimates = (values - values.mean() for values in _match_workers(true, estimated))
    scale = np.sqrt((true_values**2).sum() * (estimates**2).sum())
    return float((true_values * estimates).sum() / scale) if scale > 0 else float("nan")


# ---------------------------------------------------------------------- summary


def summary(truth: TruthLike, prediction: PredictionLike) -> dict[str, float]:
    """Compute the usual metrics and the number of tasks behind them.

    Parameters
    ----------
    truth : Series, mapping, DataFrame or array-like
        True classes or numbers by task.
    prediction : fitted method, DataFrame, Series or array-like
        Posterior, labels or numbers by task.

    Returns
    -------
    dict of str to float
        ``n_tasks``, ``n_without_truth``, ``n_without_prediction`` and the metrics that apply: labels have no metrics of
        probabilities, and numbers have ``mae`` and ``rmse`` only.

    Examples
    --------
    >>> figures = summary({"t1": "cat", "t9": "cat"}, pd.DataFrame({"cat": [0.75], "dog": [0.25]}, index=["t1"]))
    >>> figures["n_tasks"], figures["n_without_prediction"], figures["accuracy"], figures["brier"]
    (1, 1, 1.0, 0.125)
    """
    aligned: AlignedPrediction | AlignedNumbers
    if is_numeric(prediction):
        aligned = align_numbers(truth, prediction)
        figures = {"mae": mae(aligned.truth, aligned.prediction), "rmse": rmse(aligned.truth, aligned.prediction)}
    else:
        aligned = align_prediction(truth, prediction)
        pair = aligned.truth, aligned.posterior
        figures = {
            "accuracy": accuracy(*pair),
            "balanced_accuracy": float(per_class(*pair)["recall"].mean()),
            "f1": f1(*pair),
        }
        if not aligned.is_labels_only:
            figures |= {
                "log_loss": log_loss(*pair),
                "brier": brier(*pair),
                "calibration_error": calibration_error(*pair),
                "calibration_error_mass": calibration_error(*pair, bins="mass"),
            }
    counts = {
        "n_tasks": len(aligned.truth),
        "n_without_truth": aligned.n_without_truth,
        "n_without_prediction": aligned.n_without_prediction,
    }
    return counts | figures


def _errors(truth: TruthLike, prediction: Any) -> NDArray[np.float64]:
    """Return the prediction minus the truth, by task."""
    aligned = align_numbers(truth, prediction)
    return aligned.prediction - aligned.truth


def positive_class_code(classes: pd.Index, positive: object) -> int:
    """Return the code of the positive class.

    Parameters
    ----------
    classes : Index
        Classes of the prediction.
    positive : object or None
        Name of the class. Defaults to the second of two classes.

    Returns
    -------
    int

    Raises
    ------
    UsageError
        If ``positive`` is not a class, or is missing although there are not two classes.
    """
    if positive is None:
        if len(classes) != 2:
            raise UsageError(
                f"with {len(classes)} classes, the positive class must be named, such as positive={preview(classes[:1])}"
            )
        return 1
    check_choice("positive", positive, classes.tolist())
    return classes.tolist().index(positive)


def _match_workers(true: pd.Series, estimated: pd.Series) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the true and estimated values of the workers that have both."""
    matched = pd.concat([true.rename("true"), estimated.rename("estimated")], axis=1, join="inner").dropna()
    if matched.empty:
        raise InputError(
            f"true and estimated values have no worker in common: {preview(true.index)} and {preview(estimated.index)}"
        )
    return matched["true"].to_numpy(dtype=np.float64), matched["estimated"].to_numpy(dtype=np.float64)
