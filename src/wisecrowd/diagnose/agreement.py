"""Inter-annotator agreement: Krippendorff's alpha, Fleiss' and Cohen's kappa, Gwet's AC1.

Agreement is not accuracy: workers who share a mistake agree. All coefficients follow from the number of votes for each label of
each task, so one pass over the votes is enough. Tasks with equal counts are processed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.conversion import as_crowd
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.label_sets import LabelSetCrowd
from wisecrowd.data.types import CrowdLike
from wisecrowd.errors import InputError, UsageError, check_choice, preview

Level: TypeAlias = Literal["nominal", "ordinal", "interval", "masi", "jaccard"]
Weights: TypeAlias = Literal["linear", "quadratic"]

#: Largest number of cells of a tasks x classes table in memory.
MAX_CELLS = 2**22
#: Largest number of workers for pairwise kappas, whose table grows with the square of it.
MAX_WORKERS = 2000


@dataclass(frozen=True)
class AgreementCoefficient:
    """Agreement coefficient with an optional bootstrap interval.

    Attributes
    ----------
    value : float
        Coefficient; NaN if it is undefined.
    low, high : float or None
        Ends of the interval.
    n_tasks : int
        Number of tasks with two or more votes, on which the coefficient rests.

    Examples
    --------
    >>> print(AgreementCoefficient(0.81, 0.75, 0.86, 120))
    0.81 (0.75 to 0.86; 120 tasks)
    """

    value: float
    low: float | None
    high: float | None
    n_tasks: int

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        interval = "" if self.low is None else f"{self.low:.2f} to {self.high:.2f}; "
        return f"{self.value:.2f} ({interval}{self.n_tasks:,} tasks)"


def krippendorff_alpha(
    crowd: CrowdLike | LabelSetCrowd,
    level: Level = "nominal",
    *,
    order: Any = None,
    interval: float | None = None,
    repeats: int = 1000,
    random_state: int = 0,
) -> AgreementCoefficient:
    """Compute Krippendorff's alpha: one minus the ratio of observed to expected disagreement.

    With n_ic votes for label c among the m_i votes on task i, n votes on tasks that have two or more, and the distance δ,

        o_cd = Σ_i (n_ic n_id − [c = d] n_ic) / (m_i − 1)          coincidences
        D_o  = Σ_cd o_cd δ²(c, d) / n
        D_e  = Σ_cd (n_c n_d − [c = d] n_c) δ²(c, d) / (n (n − 1))

    and α = 1 − D_o / D_e. It is 1 for perfect agreement, 0 for agreement by chance, negative below chance and NaN if only one label
    occurs. A common requirement is 0.8. Votes that a completer filled in are ignored.

    Parameters
    ----------
    crowd : Crowd, LabelSetCrowd or DataFrame
        Votes.
    level : {"nominal", "ordinal", "interval", "masi", "jaccard"}, default="nominal"
        Distance δ² between labels: 1 for different labels, the squared number of votes between them in the given ``order``, or
        the squared difference of numbers. Numeric crowds need "interval". Label sets are compared by "masi", "jaccard" or
        "nominal"; see :func:`wisecrowd.diagnose.label_set_agreement.label_set_alpha`.
    order : sequence, default=None
        Classes from lowest to highest, for ``level="ordinal"``. Defaults to the order of an ordinal crowd, else to numeric order.
    interval : float, default=None
        Confidence level of a bootstrap interval over tasks, such as 0.95.
    repeats : int, default=1000
        Number of bootstrap replicates.
    random_state : int, default=0
        Seed of the bootstrap.

    Returns
    -------
    AgreementCoefficient

    Examples
    --------
    >>> votes = [("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t2", "ann", "dog"), ("t2", "bob", "dog")]
    >>> float(krippendorff_alpha(Crowd.from_triples(votes)))
    1.0
    """
    if isinstance(crowd, LabelSetCrowd):
        from wisecrowd.diagnose.label_set_agreement import label_set_alpha

        check_choice("level", level, ("nominal", "masi", "jaccard"))
        return label_set_alpha(crowd, level, interval=interval, repeats=repeats, random_state=random_state)  # type: ignore[arg-type]  # checked
    check_choice("level", level, ("nominal", "ordinal", "interval"))
    votes = _observed_votes(crowd)
    if interval is not None and not 0 < interval < 1:
        raise UsageError(f"interval must lie between 0 and 1, such as 0.95; got {interval}")
    if votes.is_numeric:
        if level != "interval":
            raise UsageError(f"numeric labels need level='interval'; got {level!r}")
        statistics, counts, compute_alpha = _moment_statistics(votes)
    else:
        values = _class_values(votes, level, order)
        statistics, counts, compute_alpha = _coincidence_statistics(votes, level, values)
    n_tasks = int(counts.sum())
    if n_tasks == 0:
        return AgreementCoefficient(float("nan"), None, None, 0)
    value = float(compute_alpha(counts[None] @ statistics)[0])
    if interval is None or np.isnan(value):
        return AgreementCoefficient(value, None, None, n_tasks)
    rng = np.random.default_rng(random_state)
    shares = counts / n_tasks
    replicates = [
        compute_alpha(rng.multinomial(n_tasks, shares, size=size) @ statistics)
        for size in _split_replicates(repeats, len(counts))
    ]
    low, high = np.nanquantile(np.concatenate(replicates), [(1 - interval) / 2, (1 + interval) / 2])
    return AgreementCoefficient(value, float(low), float(high), n_tasks)


def fleiss_kappa(crowd: CrowdLike) -> AgreementCoefficient:
    """Compute Fleiss' kappa of a crowd with equally many votes on every task.

        P_i = (Σ_c n_ic² − m) / (m (m − 1)),   P_e = Σ_c p_c²,   κ = (mean P_i − P_e) / (1 − P_e)

    Parameters
    ----------
    crowd : Crowd or DataFrame
        Votes for classes.

    Returns
    -------
    AgreementCoefficient

    Raises
    ------
    InputError
        If the number of votes differs between tasks; use `krippendorff_alpha` then.

    Examples
    --------
    >>> votes = [("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t2", "ann", "dog"), ("t2", "bob", "dog")]
    >>> float(fleiss_kappa(Crowd.from_triples(votes)))
    1.0
    """
    votes = _require_classes(_observed_votes(crowd))
    sizes = np.unique(_votes_per_task(votes)[_votes_per_task(votes) > 0])
    if len(sizes) != 1 or sizes[0] < 2:
        counts = f"tasks have {sizes[0]:g}" if len(sizes) == 1 else f"tasks have between {sizes[0]:g} and {sizes[-1]:g}"
        raise InputError(
            f"Fleiss' kappa needs the same number of votes, two or more, on every task, but {counts}; "
            "use krippendorff_alpha instead"
        )
    observed, shares, n_tasks = _observed_agreement(votes)
    expected = float((shares**2).sum())
    return AgreementCoefficient(_chance_corrected(observed, expected), None, None, n_tasks)


def gwet_ac1(crowd: CrowdLike) -> AgreementCoefficient:
    """Compute Gwet's AC1, which stays stable if nearly all tasks have one class.

        P_e = Σ_c p_c (1 − p_c) / (K − 1),   AC1 = (P_o − P_e) / (1 − P_e)

    P_o is the mean agreement over tasks with two or more votes, and p_c the mean over tasks of the share of votes for class c.

    Parameters
    ----------
    crowd : Crowd or DataFrame
        Votes for classes.

    Returns
    -------
    AgreementCoefficient

    Examples
    --------
    >>> votes = [("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t2", "ann", "dog"), ("t2", "bob", "dog")]
    >>> float(gwet_ac1(Crowd.from_triples(votes)))
    1.0
    """
    votes = _require_classes(_observed_votes(crowd))
    observed, _, n_tasks = _observed_agreement(votes)
    shares = np.zeros(votes.n_classes)
    for table in _iter_vote_tables(votes):
        shares += (table / table.sum(axis=1, keepdims=True)).sum(axis=0)
    shares /= max((_votes_per_task(votes) > 0).sum(), 1)
    expected = float((shares * (1 - shares)).sum() / max(votes.n_classes - 1, 1))
    return AgreementCoefficient(_chance_corrected(observed, expected), None, None, n_tasks)


def cohen_kappas(crowd: CrowdLike, *, min_common: int = 1, weights: Weights | None = None) -> pd.DataFrame:
    """Compute Cohen's kappa of every two workers who share tasks.

    Weighted kappa is 1 − (mean disagreement) / (mean disagreement by chance), where the disagreement of two labels is their
    distance in classes (``"linear"``) or its square (``"quadratic"``).

    Parameters
    ----------
    crowd : Crowd or DataFrame
        Votes for classes, at most one per worker and task.
    min_common : int, default=1
        Smallest number of common tasks of a pair.
    weights : {"linear", "quadratic"}, default=None
        Weights of disagreements between ordered classes. By default all disagreements count alike.

    Returns
    -------
    DataFrame
        Columns first, second, common (number of tasks of both), agreement and kappa. Kappa is NaN if both workers always give
        the same single label.

    Raises
    ------
    InputError
        If a worker has several votes on a task, or weights are given and the classes have no order.

    References
    ----------
    Cohen, J. (1968). Weighted kappa. Psychological Bulletin 70(4), 213–220.

    Examples
    --------
    >>> votes = [("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t2", "ann", "dog"), ("t2", "bob", "dog")]
    >>> cohen_kappas(Crowd.from_triples(votes)).to_dict("records")
    [{'first': 'ann', 'second': 'bob', 'common': 2, 'agreement': 1.0, 'kappa': 1.0}]
    """
    from scipy import sparse

    votes = _require_classes(_observed_votes(crowd))
    if weights is not None:
        check_choice("weights", weights, ("linear", "quadratic"))
        if not votes.is_ordered:
            raise InputError(
                "weighted kappa needs ordered classes, and these classes have no order; name them in order and read them with "
                "ordered=True (--ordered --classes low,middle,high)"
            )
    if votes.n_workers > MAX_WORKERS:
        raise UsageError(
            f"pairwise kappas are limited to {MAX_WORKERS:,} workers, but the crowd has {votes.n_workers:,}; "
            "select some: cohen_kappas(crowd.select_workers([...]))"
        )
    if (np.diff(votes.task) == 0)[np.diff(votes.worker_codes) == 0].any():
        raise InputError(
            "some workers have several votes on a task, but kappa needs one; read with duplicates='first' or 'last'"
        )
    workers, label = votes.worker_codes, votes.label
    shape = (votes.n_workers, votes.n_tasks)
    ones = np.ones(votes.n_votes)
    voted = sparse.csr_array((ones, (workers, votes.task)), shape=shape)
    common = sparse.triu(voted @ voted.T, k=1).tocoo()
    is_frequent = common.data >= min_common
    first, second, shared = common.row[is_frequent], common.col[is_frequent], common.data[is_frequent]

    def sum_pairs(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Σ left · right over the common tasks of each pair, left of its first and right of its second worker."""
        one, other = (
            sparse.csr_array((value[value != 0], (workers[value != 0], votes.task[value != 0])), shape=shape)
            for value in (left, right)
        )
        return np.asarray((one @ other.T).tocsr()[first, second], dtype=np.float64).ravel()

    n_agreed, chance = np.zeros(len(first)), np.zeros(len(first))
    for code in range(votes.n_classes):
        chose = (label == code).astype(np.float64)
        n_agreed += sum_pairs(chose, chose)
        chance += sum_pairs(chose, ones) * sum_pairs(ones, chose)
    with np.errstate(invalid="ignore", divide="ignore"):
        observed, expected = n_agreed / shared, chance / shared**2
        kappa = np.where(expected < 1, (observed - expected) / (1 - expected), np.nan)
    if weights is not None:
        kappa = _weighted_kappa(label, votes.n_classes, weights, shared, sum_pairs)
    names = votes.workers
    assert names is not None
    columns = {
        "first": names[first], "second": names[second], "common": shared.astype(np.int64),
        "agreement": observed, "kappa": kappa,
    }  # fmt: skip
    return pd.DataFrame(columns)


def _weighted_kappa(
    label: NDArray[Any],
    n_classes: int,
    weights: Weights,
    shared: NDArray[np.float64],
    sum_pairs: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Return weighted kappa of every pair of workers, from sums over their common tasks."""
    observed, expected = np.zeros(len(shared)), np.zeros(len(shared))
    ones = np.ones(len(label))

    def add(value: NDArray[np.float64]) -> None:
        """Add the squared differences of a value: as observed, and between independent workers."""
        nonlocal observed, expected
        squares = (sum_pairs(value**2, ones) + sum_pairs(ones, value**2)) / shared
        observed += squares - 2 * sum_pairs(value, value) / shared
        expected += squares - 2 * (sum_pairs(value, ones) / shared) * (sum_pairs(ones, value) / shared)

    if weights == "quadratic":
        add(label.astype(np.float64))
    else:  # the distance of two labels is the number of thresholds between them
        for threshold in range(1, n_classes):
            add((label >= threshold).astype(np.float64))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected > 1e-12, 1 - observed / expected, np.nan)


def _observed_votes(crowd: CrowdLike) -> Crowd:
    """Return the observed votes of a crowd."""
    return as_crowd(crowd).select_observed()


def _require_classes(crowd: Crowd) -> Crowd:
    """Return the crowd, or raise an error if its labels are numbers."""
    if crowd.is_numeric:
        raise InputError("this coefficient needs class labels, but the labels are numbers; use krippendorff_alpha")
    return crowd


def _row_weights(crowd: Crowd, rows: slice = slice(None)) -> NDArray[np.float64] | None:
    """Return the number of votes that each row stands for: its weight if only counts are known, otherwise one."""
    return None if crowd.has_workers or not crowd.is_weighted else crowd.weight[rows]


def _votes_per_task(crowd: Crowd) -> NDArray[np.float64]:
    """Return the number of votes on each task."""
    return np.bincount(crowd.task, _row_weights(crowd), minlength=crowd.n_tasks).astype(np.float64)


def _iter_vote_tables(crowd: Crowd) -> Iterator[NDArray[np.float64]]:
    """Yield tables of votes by task and class, in blocks of tasks, without tasks that have no votes."""
    height = max(1, MAX_CELLS // crowd.n_classes)
    for start in range(0, crowd.n_tasks, height):
        stop = min(start + height, crowd.n_tasks)
        rows = slice(crowd.offset[start], crowd.offset[stop])
        cell = (crowd.task[rows].astype(np.int64) - start) * crowd.n_classes + crowd.label[rows]
        table = np.bincount(cell, _row_weights(crowd, rows), minlength=(stop - start) * crowd.n_classes)
        table = table.reshape(stop - start, crowd.n_classes).astype(np.float64)
        yield table[table.sum(axis=1) > 0]


def _count_patterns(crowd: Crowd) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the distinct rows of votes by class among tasks with two or more votes, and their frequencies."""
    patterns: NDArray[np.float64] = np.empty((0, crowd.n_classes))
    counts: NDArray[np.int64] = np.empty(0, dtype=np.int64)
    for table in _iter_vote_tables(crowd):
        rows = np.concatenate([patterns, table[table.sum(axis=1) >= 2]])
        multiplicity = np.concatenate([counts, np.ones(len(rows) - len(patterns), dtype=np.int64)])
        first_rows, pattern_of_row = _find_distinct_rows(rows)
        patterns, counts = (
            rows[first_rows],
            np.bincount(pattern_of_row, multiplicity, minlength=len(first_rows)).astype(np.int64),
        )
    return patterns, counts


def _find_distinct_rows(rows: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first position of each distinct row and the distinct row of every row."""
    base, n_classes = int(rows.max(initial=0)) + 1, rows.shape[1]
    if (rows == np.floor(rows)).all() and n_classes * np.log2(base) < 62:
        # The counts become digits of one number, because sorting numbers is much faster than sorting rows.
        keys: NDArray[Any] = rows.astype(np.int64) @ base ** np.arange(n_classes, dtype=np.int64)
        _, first_rows, pattern_of_row = np.unique(keys, return_index=True, return_inverse=True)
    else:
        _, first_rows, pattern_of_row = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first_rows, pattern_of_row.ravel()


def _coincidence_statistics(
    crowd: Crowd, level: Level, values: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64], Any]:
    """Return the statistics of each pattern, its frequency and a function from their sums to alpha.

    For nominal labels the coincidences of a label with itself suffice; other levels need those of all pairs of labels.
    """
    patterns, counts = _count_patterns(crowd)
    n_classes = crowd.n_classes
    n_others = patterns.sum(axis=1, keepdims=True) - 1
    if level == "nominal":
        n_same = (patterns * (patterns - 1) / n_others).sum(axis=1, keepdims=True)

        def nominal(total: NDArray[np.float64]) -> NDArray[np.float64]:
            by_label, n_agreed = total[:, :-1], total[:, -1]
            n = by_label.sum(axis=1)
            with np.errstate(invalid="ignore", divide="ignore"):
                expected = 1 - (by_label * (by_label - 1)).sum(axis=1) / (n * (n - 1))
                return np.where(expected > 0, 1 - (1 - n_agreed / n) / expected, np.nan)

        return np.concatenate([patterns, n_same], axis=1), counts, nominal
    if n_classes > 200:
        raise UsageError(f"ordinal and interval agreement support up to 200 labels; got {n_classes:,}")
    coincidences = patterns[:, :, None] * patterns[:, None, :] / n_others[:, :, None]
    diagonal = np.arange(n_classes)
    coincidences[:, diagonal, diagonal] -= patterns / n_others

    def weighted(total: NDArray[np.float64]) -> NDArray[np.float64]:
        alpha = np.empty(len(total))
        for replicate, row in enumerate(total):
            by_label = row[:n_classes]
            distance = _squared_distances(by_label, level, values)
            n = by_label.sum()
            chance = np.outer(by_label, by_label) - np.diag(by_label)
            expected = (chance * distance).sum() / max(n - 1, 1)
            observed = (row[n_classes:].reshape(n_classes, n_classes) * distance).sum()
            alpha[replicate] = 1 - observed / expected if expected > 0 else np.nan
        return alpha

    return np.concatenate([patterns, coincidences.reshape(len(patterns), -1)], axis=1), counts, weighted


def _squared_distances(by_label: NDArray[np.float64], level: Level, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return δ² between labels; for ordinal labels by midranks of the votes."""
    if level == "ordinal":
        order = np.argsort(values, kind="stable")
        midrank = np.empty(len(values))
        midrank[order] = np.cumsum(by_label[order]) - by_label[order] / 2
        values = midrank
    return np.asarray((values[:, None] - values[None, :]) ** 2)


def _class_values(crowd: Crowd, level: Level, order: Any) -> NDArray[np.float64]:
    """Return the number of each class: its position in the order, or its numeric value."""
    classes = crowd.classes
    assert classes is not None
    if level == "ordinal" and order is not None:
        position = pd.Index(order).get_indexer(classes)
        if (position < 0).any():
            raise InputError(f"order must contain every class; missing {preview(classes[position < 0])}")
        return position.astype(np.float64)
    if level == "nominal":
        return np.zeros(len(classes))
    if level == "ordinal" and crowd.is_ordered:
        return np.arange(len(classes), dtype=np.float64)
    numbers = pd.to_numeric(pd.Series(classes), errors="coerce").to_numpy(dtype=np.float64)
    if np.isfinite(numbers).all():
        return numbers
    advice = "pass order, such as ['poor', 'fair', 'good']" if level == "ordinal" else "use level='ordinal' with order"
    raise InputError(
        f"level={level!r} needs numeric classes, but {preview(classes[~np.isfinite(numbers)])} are not numbers; {advice}"
    )


def _moment_statistics(crowd: Crowd) -> tuple[NDArray[np.float64], NDArray[np.int64], Any]:
    """Return the statistics of each task of a numeric crowd, their frequencies and a function from their sums to alpha."""
    # Centring does not change differences and keeps sums of squares precise.
    label = crowd.label - crowd.label.mean()
    n_votes = _votes_per_task(crowd)
    sums, squares = (np.bincount(crowd.task, part, minlength=crowd.n_tasks) for part in (label, label**2))
    is_paired = n_votes >= 2
    n_votes, sums, squares = n_votes[is_paired], sums[is_paired], squares[is_paired]
    statistics = np.stack([n_votes, sums, squares, (n_votes * squares - sums**2) / (n_votes - 1)], axis=1)

    def alpha(total: NDArray[np.float64]) -> NDArray[np.float64]:
        n, first, second, observed = total.T
        expected = (n * second - first**2) / (n - 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(expected > 0, 1 - observed / expected, np.nan)

    return statistics, np.ones(len(n_votes), dtype=np.int64), alpha


def _observed_agreement(crowd: Crowd) -> tuple[float, NDArray[np.float64], int]:
    """Return the mean agreement of two votes on a task, the label shares of all votes and the number of tasks with two votes."""
    total_agreement, label_counts, n_tasks = 0.0, np.zeros(crowd.n_classes), 0
    for table in _iter_vote_tables(crowd):
        label_counts += table.sum(axis=0)
        n_votes = table.sum(axis=1)
        paired, n_paired = table[n_votes >= 2], n_votes[n_votes >= 2]
        total_agreement += float(((paired * (paired - 1)).sum(axis=1) / (n_paired * (n_paired - 1))).sum())
        n_tasks += len(n_paired)
    return total_agreement / n_tasks if n_tasks else float("nan"), label_counts / max(label_counts.sum(), 1), n_tasks


def _chance_corrected(observed: float, expected: float) -> float:
    """Return (observed − expected) / (1 − expected), or NaN."""
    return (observed - expected) / (1 - expected) if expected < 1 else float("nan")


def _split_replicates(repeats: int, width: int) -> list[int]:
    """Return the numbers of bootstrap replicates to draw at a time."""
    max_replicates = max(1, MAX_CELLS // max(width, 1))
    return [min(max_replicates, repeats - start) for start in range(0, repeats, max_replicates)]
