"""Checks of features against votes: other tasks' rows, columns without information, columns that hold the answer."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import preview
from wisecrowd.utils.text import count_noun

#: Tasks on which features are compared with votes, which bounds the cost.
MAX_COMPARED_TASKS = 500
#: Smallest numbers of tasks and of votes that say whether features and votes are related; with fewer, useful features look random.
MIN_COMPARED_TASKS, MIN_COMPARED_VOTES = 100, 200
#: Random assignments of rows to tasks, which give mean and standard deviation of the similarity without a relation.
N_PERMUTATIONS = 100
#: Standard deviations above chance from which features and votes are related: random rows get there once in some hundred trials.
RELATED_SCORE = 3.0
#: Largest number of columns that are searched for the answer; more are pixels or embeddings.
MAX_SEARCHED_COLUMNS = 2000
#: Tasks on which columns are searched for the answer, which bounds the cost.
MAX_SEARCHED_TASKS = 2000
#: Largest share of tasks of a class that a column may place wrongly and still separate it from the others.
MAX_MISPLACED = 0.01
#: Smallest share of votes against the majority label from which errors of votes are frequent enough to betray a copy of the votes.
MIN_CONTRADICTED = 0.05
#: Share of votes by which a column may predict fewer than known truth is expected to: errors of workers are not uniform,
#: as the expectation has it.
ANSWER_SLACK = 0.05
#: Share of votes that a column must predict beyond the most frequent class to hold the answer.
MIN_ANSWER_GAIN = 0.1
#: Smallest number of tasks of which a column may be said to hold the answer.
MIN_ANSWERED_TASKS = 50
#: Smallest number of times a code for missing values occurs; fewer may be outliers.
MIN_CODED = 5
#: Smallest number of other values; a column of fewer values may be of categories, unless the code is a usual one.
MIN_UNCODED_VALUES, MIN_USUAL_UNCODED_VALUES = 10, 2
#: Distance of a code from all other values, relative to their range. Values like -999 and 9999 are seldom anything else.
CODE_GAP, USUAL_CODE_GAP = 2.0, 0.1
#: Times that -1 must be more frequent than 0, or the value next to it, to be a code; counts that begin at -1 change slowly.
CODE_FREQUENCY = 3
#: Numbers of digits of usual codes for missing values: -9, 99, 999, … of at least two digits if positive.
USUAL_CODE = re.compile(r"-9+|99+")
#: Columns that the message about codes shows.
N_CODED_SHOWN = 3


class MissingCode(NamedTuple):
    """Value of a column that probably stands for a missing one.

    Attributes
    ----------
    column : str
        Name of the column.
    value : float
        The value.
    n_rows : int
        Number of rows with it.
    lowest, highest : float
        Range of the other values.

    Examples
    --------
    >>> MissingCode("height", -999.0, 12, 150.0, 190.0).n_rows
    12
    """

    column: str
    value: float
    n_rows: int
    lowest: float
    highest: float


class FeatureRelation(NamedTuple):
    """Similarity of the votes of tasks with similar features.

    Attributes
    ----------
    score : float
        Standard deviations by which it exceeds that of random rows.
    n_tasks, n_votes : int
        Tasks that were compared, and their votes.

    Examples
    --------
    >>> FeatureRelation(0.4, 300, 900).is_related
    False
    """

    score: float
    n_tasks: int
    n_votes: int

    @property
    def is_related(self) -> bool:
        """True if features and votes are related."""
        return self.score >= RELATED_SCORE


def measure_relation(rows: NDArray[np.float64], crowd: Crowd) -> FeatureRelation | None:
    """Measure whether tasks with similar features have more similar votes than chance.

    The statistic is the sum over pairs of tasks of a Gaussian kernel of their features times the product of their centred shares
    of votes (Hilbert-Schmidt independence criterion without its diagonal), compared with that of permuted tasks.

    Parameters
    ----------
    rows : ndarray of shape (n_tasks, ...)
        Features in the order of the tasks.
    crowd : Crowd
        Votes.

    Returns
    -------
    FeatureRelation or None
        None if there are too few votes, or all votes are equal.

    Examples
    --------
    >>> from wisecrowd import simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> x = simulation.crowd.classes.get_indexer(simulation.truth.loc[simulation.crowd.tasks]).astype(float)[:, None]
    >>> measure_relation(x, simulation.crowd).is_related
    True
    >>> measure_relation(np.random.default_rng(0).permutation(x), simulation.crowd).is_related
    False
    """
    votes_per_task = np.asarray(crowd.votes_per_task)
    tasks = np.flatnonzero(votes_per_task > 0)
    rng = np.random.default_rng(0)
    if len(tasks) > MAX_COMPARED_TASKS:
        tasks = np.sort(rng.choice(tasks, MAX_COMPARED_TASKS, replace=False))
    n_votes = int(votes_per_task[tasks].sum())
    if len(tasks) < MIN_COMPARED_TASKS or n_votes < MIN_COMPARED_VOTES:
        return None
    counts = crowd.vote_counts[tasks]
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-12)
    shares = shares - shares.mean(axis=0)
    if not np.abs(shares).max() > 0:
        return None
    kernel = _compute_kernel(rows[tasks].reshape(len(tasks), -1))
    orders = [np.arange(len(tasks)), *(rng.permutation(len(tasks)) for _ in range(N_PERMUTATIONS))]
    permuted = shares[np.stack(orders)]  # (permutation, task, class)
    spread = kernel @ permuted.transpose(1, 0, 2).reshape(len(tasks), -1)
    similarities = np.einsum("ptk,tpk->p", permuted, spread.reshape(len(tasks), len(orders), -1))
    deviation = similarities[1:].std()
    score = (similarities[0] - similarities[1:].mean()) / deviation if deviation > 0 else 0.0
    return FeatureRelation(float(score), len(tasks), n_votes)


def _compute_kernel(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the Gaussian kernel of standardised rows, as wide as their median distance, with zeros in the diagonal."""
    centred = rows - rows.mean(axis=0)
    deviation = centred.std(axis=0)
    scaled = np.clip(centred / np.where(deviation > 0, deviation, 1.0), -5, 5)  # outliers would be similar to nothing
    norms = (scaled**2).sum(axis=1)
    distances = np.maximum(norms[:, None] + norms - 2 * scaled @ scaled.T, 0)
    positive = distances[distances > 0]
    kernel = np.exp(-distances / (np.median(positive) if positive.size else 1.0))
    np.fill_diagonal(kernel, 0)
    return np.asarray(kernel)


def find_row_numbers(table: pd.DataFrame) -> list[str]:
    """Return the columns that number the rows, or repeat numeric task ids.

    Parameters
    ----------
    table : DataFrame
        Features indexed by task id.

    Returns
    -------
    list of str

    Examples
    --------
    >>> find_row_numbers(pd.DataFrame({"row": [1, 2, 3], "size": [0.5, 0.1, 0.2]}))
    ['row']
    """
    if len(table) < 3 or table.shape[1] > MAX_SEARCHED_COLUMNS:
        return []
    ids = pd.to_numeric(pd.Series(table.index), errors="coerce").to_numpy(dtype=np.float64)
    numbering = []
    for position, name in enumerate(table.columns):
        column = table.iloc[:, position]
        if column.dtype.kind not in "fiu":
            continue
        values = column.to_numpy(dtype=np.float64)
        if np.array_equal(values, ids) or (np.diff(values) == 1).all():
            numbering.append(str(name))
    return numbering


def find_constant_columns(table: pd.DataFrame) -> list[str]:
    """Return the columns that have one value, or none at all.

    Parameters
    ----------
    table : DataFrame
        Features.

    Returns
    -------
    list of str

    Examples
    --------
    >>> find_constant_columns(pd.DataFrame({"batch": [7, 7], "size": [0.5, 0.1]}))
    ['batch']
    """
    return [str(name) for position, name in enumerate(table.columns) if table.iloc[:, position].nunique() < 2]


def find_missing_codes(table: pd.DataFrame) -> list[MissingCode]:
    """Return the values that probably stand for missing ones, such as -999: frequent, and far from the rest of their column.

    Parameters
    ----------
    table : DataFrame
        Features.

    Returns
    -------
    list of MissingCode

    Examples
    --------
    >>> heights = [*range(150, 190), *[-999] * 12]
    >>> [(code.value, code.n_rows) for code in find_missing_codes(pd.DataFrame({"height": heights}))]
    [(-999.0, 12)]
    """
    codes = []
    if table.shape[1] > MAX_SEARCHED_COLUMNS:
        return []
    for position, name in enumerate(table.columns):
        column = table.iloc[:, position]
        if column.dtype.kind not in "fiu":
            continue
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
        numbers = numbers[np.isfinite(numbers)]
        if not len(numbers) or max((numbers == numbers.min()).sum(), (numbers == numbers.max()).sum()) < MIN_CODED:
            continue  # without sorting
        values, counts = np.unique(numbers, return_counts=True)
        if len(values) <= MIN_USUAL_UNCODED_VALUES:
            continue
        ends = ((0, slice(1, None)), (-1, slice(None, -1)))
        for end, others in ends:
            if _is_code(values[end], counts[end], values[others], counts[others]):
                rest = values[others]
                codes.append(MissingCode(str(name), float(values[end]), int(counts[end]), rest[0], rest[-1]))
    return codes


def _is_code(value: float, count: int, others: NDArray[np.float64], counts: NDArray[np.intp]) -> bool:
    """Return whether an extreme value of a column stands for a missing one, given the other values in order."""
    if count < MIN_CODED or value == 0:
        return False
    gap, width = max(others[0] - value, value - others[-1]), others[-1] - others[0]
    has_many_values = len(others) >= MIN_UNCODED_VALUES
    if value == -1:  # 0 is left out, or less frequent
        skips_zero = others[0] >= 1 and len(others) > MIN_USUAL_UNCODED_VALUES
        return bool(skips_zero or (has_many_values and others[0] >= 0 and count >= CODE_FREQUENCY * counts[0]))
    is_usual = USUAL_CODE.fullmatch(f"{value:.10g}") is not None
    is_certain = is_usual and has_many_values and value != 99  # 99 may be the largest value of a share or an age
    return bool((has_many_values or is_usual) and gap > (USUAL_CODE_GAP if is_certain else CODE_GAP) * width)


def describe_missing_codes(table: pd.DataFrame) -> str:
    """State in words which values of features probably stand for missing ones, and how to mark these.

    Parameters
    ----------
    table : DataFrame
        Features.

    Returns
    -------
    str
        Empty without such values.

    Examples
    --------
    >>> describe_missing_codes(pd.DataFrame({"height": [*range(150, 190), *[-999] * 12]}))
    "the feature column 'height' has 12 times the value -999, far from all others (150 to 189), which may be a code for ..."
    """
    codes = find_missing_codes(table)
    if not codes:
        return ""
    shown = ", ".join(
        f"{preview([code.column])} has {count_noun(code.n_rows, 'time')} the value {code.value:.10g}, far from all others "
        f"({code.lowest:.3g} to {code.highest:.3g})"
        for code in codes[:N_CODED_SHOWN]
    )
    noun = "the feature column" if len(codes) == 1 else "feature columns:"
    return (
        f"{noun} {shown}{', …' if len(codes) > N_CODED_SHOWN else ''}, which may be a code for missing values. If so, leave these "
        "cells empty in a table (NaN in an array), in training and in new features alike"
    )


def find_answer_columns(table: pd.DataFrame, crowd: Crowd) -> dict[str, str]:
    """Return the columns that probably hold the answer: the known truth, or something computed from the votes.

    A column does so in one of two cases:

    - It has as many values as there are classes, each value stands for a class of its own, and it predicts votes about as well as
      known truth would.
    - It separates a class from the others as the majority of votes has it, although many votes contradict the majority. No
      property of a task follows the errors of workers.

    Parameters
    ----------
    table : DataFrame
        Features in the order of the tasks.
    crowd : Crowd
        Votes.

    Returns
    -------
    dict of str to str
        Reason by column.

    Examples
    --------
    >>> from wisecrowd import simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=100, n_workers=10, n_classes=2, votes_per_task=3)
    >>> truth = simulation.truth.loc[simulation.crowd.tasks]
    >>> table = pd.DataFrame({"noise": np.random.default_rng(0).normal(size=100), "gold": truth.to_numpy()}, index=truth.index)
    >>> list(find_answer_columns(table, simulation.crowd))
    ['gold']
    """
    counts = crowd.vote_counts
    if len(table) > MAX_SEARCHED_TASKS:
        tasks = np.sort(np.random.default_rng(0).choice(len(table), MAX_SEARCHED_TASKS, replace=False))
        table, counts = table.iloc[tasks], counts[tasks]
    totals = counts.sum(axis=1)
    ordered = np.sort(counts, axis=1)
    is_decided = (totals > 0) & (ordered[:, -1] > ordered[:, -2])
    if (
        is_decided.sum() < MIN_ANSWERED_TASKS
        or (counts > 0).any(axis=0).sum() < 2
        or table.shape[1] > MAX_SEARCHED_COLUMNS
    ):
        return {}
    majority = counts.argmax(axis=1)
    contradicted = 1 - ordered[is_decided, -1].sum() / totals[is_decided].sum()
    used = np.flatnonzero(counts.sum(axis=0) > 0)
    accuracy, error = _estimate_vote_accuracy(counts, len(used))
    least = counts.sum(axis=0).max() / totals.sum() + MIN_ANSWER_GAIN
    reasons: dict[str, str] = {}
    names = [] if crowd.classes is None else crowd.classes.tolist()
    for position, name in enumerate(table.columns):
        values, distinct = pd.factorize(table.iloc[:, position], sort=_is_sortable(table.iloc[:, position]))
        if (values < 0).any() or len(distinct) < 2:
            continue
        by_value = np.zeros((len(distinct), counts.shape[1]))
        np.add.at(by_value, values, counts)
        classes = by_value.argmax(axis=1)
        hits = by_value.max(axis=1).sum() / totals.sum()
        has_class_names = {str(value) for value in distinct} == {str(names[code]) for code in used}
        expected = max(
            least, accuracy - ANSWER_SLACK - (2 * error if has_class_names else 0)
        )  # names are evidence, too
        if len(distinct) == len(used) and len(set(classes)) == len(used) and hits >= expected:
            pairs = [f"{preview([distinct[i]])} for {preview([names[classes[i]]])}" for i in range(len(distinct))]
            reasons[str(name)] = (
                f"its values stand for the classes ({', '.join(pairs[:3])}{', …' if len(pairs) > 3 else ''}) and "
                f"predict {hits:.0%} of the "
                f"votes; known truth would predict about {accuracy:.0%}"
            )
        elif contradicted >= MIN_CONTRADICTED and _is_sortable(table.iloc[:, position]):
            for code in used:
                is_class = (majority == code)[is_decided]
                if is_class.sum() >= MIN_ANSWERED_TASKS / 2 and (~is_class).sum() >= MIN_ANSWERED_TASKS / 2:
                    misplaced = _count_misplaced(values[is_decided], is_class)
                    if misplaced <= MAX_MISPLACED * is_class.sum():
                        reasons[str(name)] = (
                            f"it separates the tasks with a majority for {preview([names[code]])} from the others, although "
                            f"{contradicted:.0%} of the votes contradict the majority"
                        )
                        break
    return reasons


def _is_sortable(column: pd.Series) -> bool:
    return column.dtype.kind in "fiub"


def _estimate_vote_accuracy(counts: NDArray[np.float64], n_classes: int) -> tuple[float, float]:
    """Return the share of votes that known truth would predict, by how often two votes on a task agree, and its standard error.

    If a vote is right with probability a, and wrong votes are uniform, two votes agree with probability a² + (1 − a)²/(K − 1).
    """
    totals = counts.sum(axis=1)
    n_pairs = (totals * (totals - 1)).sum()
    if n_pairs <= 0:
        return 1.0, 0.0
    agreement = float((counts * (counts - 1)).sum() / n_pairs)
    root = np.sqrt((n_classes - 1) * max(n_classes * agreement - 1, 0))
    n_independent = totals[totals > 1].sum() / 2  # pairs of votes that have no vote in common
    error = np.sqrt(agreement * (1 - agreement) / n_independent)
    return float((1 + root) / n_classes), float(error * (n_classes - 1) / (2 * root)) if root > 0 else 1.0


def _count_misplaced(values: NDArray[np.intp], is_class: NDArray[np.bool_]) -> int:
    """Return the number of tasks on the wrong side of the threshold that separates a class best."""
    n_in = np.bincount(values, weights=is_class)
    n_out = np.bincount(values, weights=~is_class)
    below_in, below_out = np.cumsum(n_in), np.cumsum(n_out)
    upward = below_in + (below_out[-1] - below_out)
    downward = below_out + (below_in[-1] - below_in)
    return int(min(upward.min(), downward.min()))


def describe_problems(
    table: pd.DataFrame, rows: NDArray[np.float64], crowd: Crowd, *, is_useful: bool = False
) -> list[str]:
    """Describe what is probably wrong with features, as sentences for warnings.

    Parameters
    ----------
    table : DataFrame
        Features as they were read, in the order of the tasks; no columns for images.
    rows : ndarray of shape (n_tasks, ...)
        The same features as numbers.
    crowd : Crowd
        Votes.
    is_useful : bool, default=False
        Whether held-out votes have shown that the features help, so that their relation to votes needs no check.

    Returns
    -------
    list of str

    Examples
    --------
    >>> crowd = Crowd.from_triples([(task, worker, "ab"[task % 2]) for task in range(8) for worker in range(3)])
    >>> table = pd.DataFrame({"row": range(8)}, index=crowd.tasks)
    >>> describe_problems(table, table.to_numpy(dtype=float), crowd)
    ["the feature column 'row' numbers the rows or repeats the task ids; features describe the content of a task, so leave it out"]
    """
    problems = []
    for name, reason in find_answer_columns(table, crowd).items():
        problems.append(
            f"the feature column {preview([name])} may hold the answer: {reason}. If it is known truth, or was "
            "computed from the votes, "
            "leave it out; known truth is given with --gold or --score"
        )
    if numbering := find_row_numbers(table):
        problems.append(
            f"the feature column {preview(numbering)} numbers the rows or repeats the task ids; features describe "
            "the content of a task, "
            "so leave it out"
        )
    if coded := describe_missing_codes(table):
        problems.append(coded)
    constant = find_constant_columns(table) if table.shape[1] <= MAX_SEARCHED_COLUMNS else []
    if 2 * len(constant) > table.shape[1] > 0:
        problems.append(
            f"{len(constant):,} of {count_noun(table.shape[1], 'feature column')} have the same value for all tasks: "
            f"{preview(constant)}; expected columns that differ between tasks. Check that this is the file of features"
        )
    if is_useful or len(constant) == table.shape[1] > 0:
        return problems
    relation = measure_relation(rows, crowd)
    if relation is not None and not relation.is_related:
        shown = "; ".join(
            f"{preview([crowd.tasks[i]])} has {_format_row(rows[i])}" for i in range(min(3, len(crowd.tasks)))
        )
        problems.append(
            "the features may belong to other tasks, or say nothing about the labels: tasks with similar features have no more "
            f"similar votes than chance ({count_noun(relation.n_tasks, 'task')}, "
            f"{count_noun(relation.n_votes, 'vote')}). Compare some "
            f"rows with their tasks: {shown}. If ids and rows come from different files, check that both have the same order"
        )
    return problems


def _format_row(row: NDArray[np.float64]) -> str:
    """Return the first numbers of a row."""
    flat = row.ravel()
    return ", ".join(f"{value:.3g}" for value in flat[:3]) + (", …" if flat.size > 3 else "")
