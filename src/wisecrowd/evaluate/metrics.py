"""How good an answer is, when the truth is known: functions of (truth, prediction).

``truth`` is a Series by task (or a mapping, or a table with task and label) and may cover some tasks only. The prediction
is a fitted method, a table of posteriors (tasks x classes), or a Series of labels by task. Both meet by task id; tasks
that only one side knows are left out, and `summary` counts them. Bare arrays meet bare arrays by position: class codes
as truth, a (tasks, classes) posterior or class codes as the prediction.

Where a posterior has its maximum in several classes, each gets an equal part of the choice: the credit that a fair coin
would earn on average.

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

from wisecrowd.em.divergence import confusion_divergence as confusion_divergence
from wisecrowd.errors import InputError, UsageError, check_choice, preview
from wisecrowd.evaluate.truth_alignment import (
    TIE_TOLERANCE as TIE_TOLERANCE,  # others count ties too, and must count the same
)
from wisecrowd.evaluate.truth_alignment import (
    AlignedNumbers,
    AlignedPrediction,
    align_numbers,
    align_prediction,
    is_numeric,
)
from wisecrowd.utils.binning import assign_bins, check_bins

# ---------------------------------------------------------------------- of the chosen class


def accuracy(truth: Any, prediction: Any) -> float:
    """Share of tasks whose chosen class is the true one; ties are split.

    >>> accuracy({"t1": "cat", "t2": "dog"}, pd.Series({"t1": "cat", "t2": "cat"}))
    0.5
    >>> accuracy([0, 1], [[0.8, 0.2], [0.5, 0.5]])
    0.75
    """
    aligned = align_prediction(truth, prediction)
    return float(aligned.credit.mean())


def confusion_table(truth: Any, prediction: Any, *, normalize: bool = False) -> pd.DataFrame:
    """How many tasks of each true class (rows) were given each class (columns); rows sum to one if normalized.

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


def per_class(truth: Any, prediction: Any) -> pd.DataFrame:
    """Number of tasks, recall (accuracy within the class), precision and F1 of every class that is true or was chosen.

    A class that is never true has no recall, and one that was never chosen no precision: NaN.

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


def f1(truth: Any, prediction: Any, *, average: Literal["macro", "binary"] = "macro", positive: object = None) -> float:
    """F1 of the chosen classes: the mean over classes (macro), or that of one ``positive`` class (binary).

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


# ---------------------------------------------------------------------- of the probabilities


def log_loss(truth: Any, prediction: Any, *, clip: float = 1e-6) -> float:
    """Mean of −log posterior of the true class, in nats; probabilities below ``clip`` count as ``clip``.

    >>> round(log_loss([0, 1], [[0.5, 0.5], [0.25, 0.75]]), 4)
    0.4904
    """
    if not 0 < clip < 1:
        raise UsageError(f"clip must lie between 0 and 1, for example 1e-6; got {clip}")
    aligned = align_prediction(truth, prediction, probabilities=True)
    return float(-np.log(np.maximum(aligned.true_class_posterior, clip)).mean())


def brier(truth: Any, prediction: Any) -> float:
    """Mean squared distance of the posterior from the truth, summed over classes: 0 is perfect, 2 the worst.

    >>> brier([0, 1], [[1.0, 0.0], [0.5, 0.5]])
    0.25
    """
    aligned = align_prediction(truth, prediction, probabilities=True)
    return float(((aligned.posterior**2).sum(axis=1) - 2 * aligned.true_class_posterior + 1).mean())


def calibration_error(
    truth: Any, prediction: Any, *, n_bins: int = 15, bins: Literal["width", "mass"] = "width"
) -> float:
    """Expected calibration error: how far confidence (the largest posterior) is from accuracy, averaged over bins.

    Bins divide the range of confidence equally (``width``), or the tasks as equally as equal confidences allow
    (``mass``). With few tasks the error is biased upwards.

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


def auc(truth: Any, prediction: Any, *, positive: object = None) -> float:
    """Area under the ROC curve of the posterior of the ``positive`` class.

    With more than two classes and none named, the mean over the classes that are true of some tasks but not of all.

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
            "the area under the ROC curve needs tasks of the positive class and of another; got one kind only"
        )
    scores = [roc_auc_score(mask, aligned.posterior[:, code]) for mask, code in zip(masks, codes, strict=True)]
    return float(np.mean(scores))


# ---------------------------------------------------------------------- of numbers


def mae(truth: Any, prediction: Any) -> float:
    """Mean absolute error of numbers: a Series by task, a fitted numeric method, or arrays by position.

    >>> mae({"t1": 1.0, "t2": 4.0}, pd.Series({"t1": 2.0, "t2": 4.0}))
    0.5
    """
    return float(np.abs(_errors(truth, prediction)).mean())


def rmse(truth: Any, prediction: Any) -> float:
    """Root of the mean squared error of numbers.

    >>> rmse([1.0, 4.0], [2.0, 3.0])
    1.0
    """
    return float(np.sqrt((_errors(truth, prediction) ** 2).mean()))


# ---------------------------------------------------------------------- of workers


def worker_error(true: pd.Series, estimated: pd.Series) -> float:
    """Mean absolute difference between what workers are worth and what was estimated, both Series by worker.

    >>> worker_error(pd.Series({"ann": 0.9, "bob": 0.5}), pd.Series({"bob": 0.7, "ann": 0.9})).__round__(3)
    0.1
    """
    true_values, estimates = _match_workers(true, estimated)
    return float(np.abs(true_values - estimates).mean())


def worker_correlation(true: pd.Series, estimated: pd.Series) -> float:
    """Pearson correlation between what workers are worth and what was estimated; NaN when either never varies.

    >>> worker_correlation(pd.Series({"ann": 0.9, "bob": 0.5}), pd.Series({"ann": 0.8, "bob": 0.6})).__round__(3)
    1.0
    """
    true_values, estimates = (values - values.mean() for values in _match_workers(true, estimated))
    scale = np.sqrt((true_values**2).sum() * (estimates**2).sum())
    return float((true_values * estimates).sum() / scale) if scale > 0 else float("nan")


# ---------------------------------------------------------------------- all at once


def summary(truth: Any, prediction: Any) -> dict[str, float]:
    """The usual figures, and over how many tasks: those scored, those without truth, those without a prediction.

    Labels alone have no figures of probability, and numbers only those of numbers.

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


def _errors(truth: Any, prediction: Any) -> NDArray[np.float64]:
    aligned = align_numbers(truth, prediction)
    return aligned.prediction - aligned.truth


def positive_class_code(classes: pd.Index, positive: object) -> int:
    if positive is None:
        if len(classes) != 2:
            raise UsageError(
                f"there are {len(classes)} classes; name the one to look at: positive={preview(classes[:1])}"
            )
        return 1
    check_choice("positive", positive, classes.tolist())
    return classes.tolist().index(positive)


def _match_workers(true: pd.Series, estimated: pd.Series) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    matched = pd.concat([true.rename("true"), estimated.rename("estimated")], axis=1, join="inner").dropna()
    if matched.empty:
        raise InputError(
            f"no worker is known to both; the true ones are {preview(true.index)}, the estimated {preview(estimated.index)}"
        )
    return matched["true"].to_numpy(dtype=np.float64), matched["estimated"].to_numpy(dtype=np.float64)
