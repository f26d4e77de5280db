"""Benchmarks as tests of items: abilities of models, and difficulty, information and defects of items.

Models take the place of workers, and items that of tasks. The key (the right answers) is the truth.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array

from wisecrowd.base.method import Method
from wisecrowd.base.registry import find
from wisecrowd.data.alignment import encode_truth
from wisecrowd.data.conversion import as_crowd
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import CrowdLike, TruthLike
from wisecrowd.errors import InputError, UsageError, check_choice, preview
from wisecrowd.utils.text import count_noun

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Labels of answers that are known to be right or wrong.
RIGHT, WRONG = "right", "wrong"
#: Standard errors below zero at which the correlation of an item with the others is called negative: one good item in a thousand.
NEGATIVE_ERRORS = 3.0
#: Correlation of residuals from which two items are called redundant (Yen's Q3), and models without which it says little.
REDUNDANT_CORRELATION, MIN_MODELS = 0.9, 20
#: Items beyond which pairs are not compared, because there are too many of them.
MAX_COMPARED_ITEMS = 20_000
#: Items whose correlations with all others are computed at once.
BLOCK = 512
#: Share of models, the ablest, whose answers are compared with the key.
ABLE_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class BenchmarkDiagnosis:
    """Abilities of models and properties of items.

    Attributes
    ----------
    models : DataFrame
        By model, the ablest first: ability, standard_error, low, high, share_right and n_items.
    items : DataFrame
        By item: difficulty, standard_error, low, high, discrimination (two-pl only), share_right, n_models, information,
        item_rest (correlation with the rest of the items), suggested (answer of able models, if it is not the key), redundant_with
        and flag: *mis-keyed*, *redundant*, *no information* or empty.
    level : float
        Level of the intervals.
    n_for_most : int
        Number of items, the most informative first, that carry nine tenths of the information.
    notes : tuple of str
        Remarks, such as checks that the number of models did not allow.

    Examples
    --------
    >>> from wisecrowd import simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=100, n_workers=25, votes_per_task=25, n_classes=4, random_state=0)
    >>> diagnosis = diagnose_benchmark(simulation.crowd, simulation.truth)
    >>> diagnosis.models.columns.tolist()
    ['ability', 'standard_error', 'low', 'high', 'share_right', 'n_items']
    """

    models: pd.DataFrame
    items: pd.DataFrame
    level: float
    n_for_most: int
    notes: tuple[str, ...] = field(default=())


def diagnose_benchmark(
    votes: CrowdLike,
    key: TruthLike | None = None,
    *,
    method: Literal["two-pl", "rasch"] = "two-pl",
    level: float = 0.9,
) -> BenchmarkDiagnosis:
    """Fit item response theory to the answers of models to a benchmark, and look for defective items.

    Parameters
    ----------
    votes : Crowd or table
        Answers: task (item), worker (model) and label (answer).
    key : Series, mapping or table, optional
        Right answer of every item. Without it, labels must be right or wrong, as 1 and 0, true and false.
    method : {"two-pl", "rasch"}, default="two-pl"
        Model: items differ in difficulty and discrimination, or in difficulty only.
    level : float, default=0.9
        Level of the intervals.

    Returns
    -------
    BenchmarkDiagnosis

    Raises
    ------
    InputError
        If labels are neither right nor wrong and there is no key, or items have no key.

    References
    ----------
    Lord (1980), "Applications of item response theory to practical testing problems". Yen (1984), "Effects of local item
    dependence", Applied Psychological Measurement 8.

    Examples
    --------
    >>> rows = [(f"q{i}", f"m{j}", int(i < 5 * j)) for i in range(20) for j in range(5)]
    >>> diagnosis = diagnose_benchmark(rows)
    >>> diagnosis.models.index[0], bool(diagnosis.items.loc["q0", "difficulty"] < diagnosis.items.loc["q19", "difficulty"])
    ('m4', True)
    """
    check_choice("method", method, ("two-pl", "rasch"))
    if not 0 < level < 1:
        raise UsageError(f"level must lie between 0 and 1, such as 0.9; got {level}")
    answers = as_crowd(votes)
    if not answers.has_workers:
        raise UsageError("a benchmark needs model ids, but these answers have none")
    assert answers.worker is not None
    is_right, code = _grade(answers, key)
    graded = Crowd.from_codes(
        answers.task, answers.worker, (~is_right).astype(np.int32), tasks=answers.tasks, workers=answers.workers,
        classes=pd.Index([RIGHT, WRONG]),
    )  # fmt: skip
    unfitted: Any = find(method)()
    fitted = unfitted.fit(graded, truth=pd.Series(RIGHT, index=answers.tasks))
    models = _describe_models(fitted, answers, is_right, level)
    items, information = _describe_items(fitted, answers, is_right, level)
    notes: list[str] = []
    if key is not None:
        items["suggested"] = _suggest_answers(answers, fitted.ability_, code)
    items["redundant_with"] = None
    if answers.n_workers < MIN_MODELS:
        notes.append(
            f"Redundant items are not looked for with {count_noun(answers.n_workers, 'model')}; {MIN_MODELS} or more are needed."
        )
    elif answers.n_tasks > MAX_COMPARED_ITEMS:
        notes.append(f"Redundant items are not looked for among more than {MAX_COMPARED_ITEMS:,} items.")
    else:
        items["redundant_with"] = _find_redundant(fitted, answers, is_right)
    items["flag"] = _flag(items)
    sorted_information = np.sort(information)[::-1]
    n_for_most = int(np.searchsorted(np.cumsum(sorted_information), 0.9 * sorted_information.sum()) + 1)
    return BenchmarkDiagnosis(models, items, level, min(n_for_most, len(items)), tuple(notes))


def _grade(answers: Crowd, key: TruthLike | None) -> tuple[NDArray[np.bool_], NDArray[np.int32] | None]:
    """Return whether each answer is right, and the code of the right answer of each item."""
    if key is None:
        if answers.is_numeric or answers.classes is None:
            values = np.asarray(answers.label, dtype=np.float64)
        else:
            words = {"1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0, "true": 1.0, "false": 0.0, RIGHT: 1.0, WRONG: 0.0}
            by_class = np.array([words.get(str(name).lower(), np.nan) for name in answers.classes])
            values = by_class[answers.label]
        if not np.isin(values, (0.0, 1.0)).all():
            names = answers.classes if answers.classes is not None else np.unique(values)
            raise InputError(
                f"answers are neither right nor wrong: {preview(names, 6)}. Give the right answers as key, or scores of 0 and 1"
            )
        return values == 1, None
    code = encode_truth(key, answers)
    without = np.unique(answers.task[code[answers.task] == -1])
    if len(without):
        raise InputError(
            f"{count_noun(len(without), 'item')} without a key, such as {preview(answers.tasks[without])}; every item needs one"
        )
    return np.asarray(answers.label == code[answers.task]), code


def _describe_models(fitted: Any, answers: Crowd, is_right: NDArray[np.bool_], level: float) -> pd.DataFrame:
    """Return the table of models."""
    assert answers.worker is not None
    n = np.bincount(answers.worker, minlength=answers.n_workers)
    right = np.bincount(answers.worker, weights=is_right, minlength=answers.n_workers)
    table = _with_interval("ability", fitted.ability_, fitted.ability_error_, level, answers.workers)
    table["share_right"], table["n_items"] = right / np.maximum(n, 1), n
    table.index.name = "model"
    return table.sort_values("ability", ascending=False, kind="stable")


def _describe_items(
    fitted: Any, answers: Crowd, is_right: NDArray[np.bool_], level: float
) -> tuple[pd.DataFrame, Array]:
    """Return the table of items, and the information of each item about the abilities of these models."""
    tasks = fitted.tasks_
    table = _with_interval(
        "difficulty", tasks["difficulty"].to_numpy(), tasks["standard_error"].to_numpy(), level, answers.tasks
    )
    slope = np.ones(answers.n_tasks)
    if "discrimination" in tasks:
        slope = tasks["discrimination"].to_numpy(dtype=np.float64)
        table["discrimination"] = slope
    assert answers.worker is not None
    p = _right_probs(fitted, answers, slope)
    n = np.bincount(answers.task, minlength=answers.n_tasks)
    information = np.bincount(answers.task, weights=slope[answers.task] ** 2 * p * (1 - p), minlength=answers.n_tasks)
    table["share_right"] = np.bincount(answers.task, weights=is_right, minlength=answers.n_tasks) / np.maximum(n, 1)
    table["n_models"], table["information"] = n, information
    table["item_rest"] = item_rest_correlation(answers.task.astype(np.int64), answers.worker.astype(np.int64), is_right)
    table.index.name = "item"
    return table, np.asarray(information, dtype=np.float64)


def _with_interval(name: str, value: Array, error: Array, level: float, index: Any) -> pd.DataFrame:
    from scipy.special import ndtri

    reach = float(ndtri((1 + level) / 2))
    return pd.DataFrame(
        {name: value, "standard_error": error, "low": value - reach * error, "high": value + reach * error}, index=index
    )


def _right_probs(fitted: Method, answers: Crowd, slope: Array) -> Array:
    """Return the probability of each answer to be right."""
    from scipy.special import expit

    difficulty = fitted.tasks_["difficulty"].to_numpy(dtype=np.float64)  # type: ignore[attr-defined]
    ability = fitted.ability_  # type: ignore[attr-defined]
    return np.asarray(expit(slope[answers.task] * (ability[answers.worker] - difficulty[answers.task])))


def item_rest_correlation(item: Codes, model: Codes, is_right: NDArray[np.bool_]) -> Array:
    """Return the correlation of being right on an item with the share of right answers on all other items.

    Parameters
    ----------
    item, model : ndarray of int of shape (n_answers,)
        Item and model of each answer.
    is_right : ndarray of bool of shape (n_answers,)
        Whether each answer is right.

    Returns
    -------
    ndarray of shape (n_items,)
        nan if all models are right, or all are wrong.

    Examples
    --------
    >>> item, model = np.divmod(np.arange(12), 4)
    >>> right = np.array([0, 0, 1, 1, 0, 1, 1, 1, 1, 1, 0, 0], dtype=bool)
    >>> item_rest_correlation(item, model, right).round(2).tolist()
    [-0.58, nan, -0.9]
    """
    y = is_right.astype(np.float64)
    n_model = np.bincount(model)[model]
    rest = (np.bincount(model, weights=y)[model] - y) / np.maximum(n_model - 1, 1)
    n = np.bincount(item)

    def centre(values: Array) -> Array:
        return np.asarray(values - (np.bincount(item, weights=values) / np.maximum(n, 1))[item])

    a, b = centre(y), centre(rest)
    covariance, square_a, square_b = (np.bincount(item, weights=product) for product in (a * b, a * a, b * b))
    scale = np.sqrt(square_a * square_b)
    return np.divide(covariance, scale, out=np.full(len(scale), np.nan), where=scale > 1e-12)


def _suggest_answers(answers: Crowd, ability: Array, key: NDArray[np.int32] | None) -> list[Any]:
    """Return the answer that most of the able models give to an item, where it is not the key."""
    assert key is not None
    assert answers.classes is not None
    able = ability >= np.quantile(ability, 1 - ABLE_SHARE)
    rows = able[answers.worker]
    shape = (answers.n_tasks, answers.n_classes)
    counts = csr_array((np.ones(int(rows.sum())), (answers.task[rows], answers.label[rows])), shape=shape)
    counts.sum_duplicates()
    most = np.asarray(counts.max(axis=1).todense()).ravel()
    total = np.asarray(counts.sum(axis=1)).ravel()
    best = np.asarray(counts.argmax(axis=1)).ravel()
    is_other = (best != key) & (2 * most > total) & (total > 0)
    return [answers.classes[code] if other else None for code, other in zip(best, is_other, strict=True)]


def _find_redundant(fitted: Any, answers: Crowd, is_right: NDArray[np.bool_]) -> list[Any]:
    """Return for every item the earlier item whose residuals are nearly the same, or None."""
    tasks = fitted.tasks_
    slope = tasks["discrimination"].to_numpy() if "discrimination" in tasks else np.ones(answers.n_tasks)
    residual = is_right - _right_probs(fitted, answers, slope)
    n = np.bincount(answers.task, minlength=answers.n_tasks)
    residual = (
        residual
        - (np.bincount(answers.task, weights=residual, minlength=answers.n_tasks) / np.maximum(n, 1))[answers.task]
    )
    square = np.bincount(answers.task, weights=residual**2, minlength=answers.n_tasks)
    share = np.bincount(answers.task, weights=is_right, minlength=answers.n_tasks) / np.maximum(n, 1)
    varies = (square > 1e-9) & (share > 0) & (share < 1)
    scaled = np.where(varies[answers.task], residual / np.sqrt(np.where(varies, square, 1.0))[answers.task], 0.0)
    matrix = csr_array((scaled, (answers.task, answers.worker)), shape=(answers.n_tasks, answers.n_workers))
    earlier: list[Any] = [None] * answers.n_tasks
    for begin in range(0, answers.n_tasks, BLOCK):
        products = (matrix[begin : begin + BLOCK] @ matrix.T).toarray()
        rows, columns = np.nonzero(products >= REDUNDANT_CORRELATION)
        for row, column in zip(rows[::-1] + begin, columns[::-1], strict=True):
            if column < row and n[row] == n[column]:
                earlier[row] = answers.tasks[column]
    return earlier


def _flag(items: pd.DataFrame) -> list[str]:
    """Return the most serious defect of every item."""
    is_negative = items["item_rest"] * np.sqrt(np.maximum(items["n_models"] - 1, 1)) < -NEGATIVE_ERRORS
    if "suggested" in items:
        # Able models agree on another answer, and the item is not merely hard for all.
        is_negative |= items["suggested"].notna() & (items["item_rest"] < 0)
    is_redundant = items["redundant_with"].notna()
    is_constant = (items["share_right"] == 0) | (items["share_right"] == 1)
    flags = np.where(
        is_negative, "mis-keyed", np.where(is_redundant, "redundant", np.where(is_constant, "no information", ""))
    )
    return [str(flag) for flag in flags]
