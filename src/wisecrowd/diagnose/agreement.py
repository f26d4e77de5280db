"""How far a crowd agrees beyond chance: Krippendorff's alpha, Fleiss' and Cohen's kappa, Gwet's AC1.

Agreement is not accuracy: workers who share a mistake agree. All of it follows from how often each task got each label, so
that a pass over the votes is enough; what tasks have in common is counted once, and ten million votes take seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import InputError, UsageError, one_of, some

Level: TypeAlias = Literal["nominal", "ordinal", "interval"]

#: Cells of a table of tasks x classes that are held at a time.
CELLS = 2**22
#: Pairs of workers whose kappa is worth a row at most; more are a picture, not a table.
MOST_WORKERS = 2000


@dataclass(frozen=True)
class Agreed:
    """An agreement coefficient, with an interval where it was asked for.

    >>> print(Agreed(0.81, 0.75, 0.86, 120))
    0.81 (0.75 to 0.86; 120 tasks)
    """

    value: float
    low: float | None
    high: float | None
    n_tasks: int
    """Tasks with two votes or more, which alone can show agreement."""

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        within = "" if self.low is None else f"{self.low:.2f} to {self.high:.2f}; "
        return f"{self.value:.2f} ({within}{self.n_tasks:,} tasks)"


def krippendorff_alpha(
    crowd: Any,
    level: Level = "nominal",
    *,
    order: Any = None,
    interval: float | None = None,
    repeats: int = 1000,
    random_state: int = 0,
) -> Agreed:
    """Krippendorff's α = 1 − D_o / D_e: one minus disagreement observed over disagreement expected by chance.

    With n_ic votes for label c among the m_i votes on task i, n votes on tasks that have two or more, and the distance δ,

        o_cd = Σ_i (n_ic n_id − [c = d] n_ic) / (m_i − 1)          coincidences
        D_o  = Σ_cd o_cd δ²(c, d) / n
        D_e  = Σ_cd (n_c n_d − [c = d] n_c) δ²(c, d) / (n (n − 1))

    δ² is 1 between different labels ("nominal"), the squared number of votes between two labels in the given ``order``
    ("ordinal"), or the squared difference of labels that are numbers ("interval", also for a numeric crowd). α is 1 when all
    agree, 0 by chance, and NaN where only one label occurs, for then there is no telling. 0.8 is usually asked for.

    ``interval=0.95`` adds a bootstrap interval over tasks. Votes that a completer filled in do not count.

    >>> votes = [("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t2", "ann", "dog"), ("t2", "bob", "dog")]
    >>> float(krippendorff_alpha(Crowd.from_triples(votes)))
    1.0
    """
    one_of("level", level, ("nominal", "ordinal", "interval"))
    votes = _real(crowd)
    if interval is not None and not 0 < interval < 1:
        raise UsageError(f"interval must lie between 0 and 1, such as 0.95; got {interval}")
    if votes.is_numeric:
        if level != "interval":
            raise UsageError(f"these labels are numbers: say level='interval' (it is {level!r})")
        statistics, counts, alpha_of = _moments(votes)
    else:
        values = _values(votes, level, order)
        statistics, counts, alpha_of = _coincidences(votes, level, values)
    n_tasks = int(counts.sum())
    if n_tasks == 0:
        return Agreed(float("nan"), None, None, 0)
    value = float(alpha_of(counts[None] @ statistics)[0])
    if interval is None or np.isnan(value):
        return Agreed(value, None, None, n_tasks)
    rng = np.random.default_rng(random_state)
    shares = counts / n_tasks
    drawn = [
        alpha_of(rng.multinomial(n_tasks, shares, size=size) @ statistics) for size in _portions(repeats, len(counts))
    ]
    low, high = np.nanquantile(np.concatenate(drawn), [(1 - interval) / 2, (1 + interval) / 2])
    return Agreed(value, float(low), float(high), n_tasks)


def fleiss_kappa(crowd: Any) -> Agreed:
    """Fleiss' κ, for crowds in which every task has equally many votes; others have `krippendorff_alpha`.

        P_i = (Σ_c n_ic² − m) / (m (m − 1)),   P_e = Σ_c p_c²,   κ = (mean P_i − P_e) / (1 − P_e)

    >>> votes = [("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t2", "ann", "dog"), ("t2", "bob", "dog")]
    >>> float(fleiss_kappa(Crowd.from_triples(votes)))
    1.0
    """
    votes = _classes_only(_real(crowd))
    each = np.unique(_per_task(votes)[_per_task(votes) > 0])
    if len(each) != 1 or each[0] < 2:
        told = f"tasks have {each[0]:g}" if len(each) == 1 else f"tasks have between {each[0]:g} and {each[-1]:g}"
        raise InputError(
            f"Fleiss' kappa wants the same number of votes, two or more, on every task, and {told}; "
            "krippendorff_alpha takes any crowd"
        )
    observed, shares, n_tasks = _simple(votes)
    expected = float((shares**2).sum())
    return Agreed(_beyond(observed, expected), None, None, n_tasks)


def gwet_ac1(crowd: Any) -> Agreed:
    """Gwet's AC1, whose chance agreement stays sane where nearly all tasks are of one class.

        P_e = Σ_c p_c (1 − p_c) / (K − 1),   AC1 = (P_o − P_e) / (1 − P_e)

    with P_o the mean over tasks of two votes or more, and p_c the mean over tasks of the share of votes for c.

    >>> votes = [("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t2", "ann", "dog"), ("t2", "bob", "dog")]
    >>> float(gwet_ac1(Crowd.from_triples(votes)))
    1.0
    """
    votes = _classes_only(_real(crowd))
    observed, _, n_tasks = _simple(votes)
    shares = np.zeros(votes.n_classes)
    for table in _tables(votes):
        shares += (table / table.sum(axis=1, keepdims=True)).sum(axis=0)
    shares /= max((_per_task(votes) > 0).sum(), 1)
    expected = float((shares * (1 - shares)).sum() / max(votes.n_classes - 1, 1))
    return Agreed(_beyond(observed, expected), None, None, n_tasks)


def cohen_kappas(crowd: Any, *, min_common: int = 1) -> pd.DataFrame:
    """Cohen's κ of every two workers who share tasks: columns first, second, common, agreement and kappa.

    ``common`` says on how many tasks a κ rests; ``min_common`` leaves out pairs with fewer. NaN where both always said the
    same one label.

    >>> votes = [("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t2", "ann", "dog"), ("t2", "bob", "dog")]
    >>> cohen_kappas(Crowd.from_triples(votes)).to_dict("records")
    [{'first': 'ann', 'second': 'bob', 'common': 2, 'agreement': 1.0, 'kappa': 1.0}]
    """
    from scipy import sparse

    votes = _classes_only(_real(crowd))
    if votes.n_workers > MOST_WORKERS:
        raise UsageError(
            f"the kappas of {votes.n_workers:,} workers with each other are more than anybody reads; choose up to "
            f"{MOST_WORKERS:,}: cohen_kappas(crowd.select_workers([...]))"
        )
    if (np.diff(votes.task) == 0)[np.diff(votes.worker_codes) == 0].any():
        raise InputError("kappas compare one answer per worker and task; read with duplicates='first' or 'last'")
    workers, label = votes.worker_codes, votes.label
    shape = (votes.n_workers, votes.n_tasks)
    one = np.ones(votes.n_votes)
    seen = sparse.csr_array((one, (workers, votes.task)), shape=shape)
    common = sparse.triu(seen @ seen.T, k=1).tocoo()
    wanted = common.data >= min_common
    first, second, shared = common.row[wanted], common.col[wanted], common.data[wanted]
    agreed, chance = np.zeros(len(first)), np.zeros(len(first))
    for each in range(votes.n_classes):
        chose = sparse.csr_array((one[label == each], (workers[label == each], votes.task[label == each])), shape=shape)
        agreed += np.asarray((chose @ chose.T).tocsr()[first, second]).ravel()
        margin = (chose @ seen.T).tocsr()  # how often the row's worker chose it on tasks that the column's saw as well
        chance += np.asarray(margin[first, second]).ravel() * np.asarray(margin[second, first]).ravel()
    with np.errstate(invalid="ignore", divide="ignore"):
        observed, expected = agreed / shared, chance / shared**2
        kappa = np.where(expected < 1, (observed - expected) / (1 - expected), np.nan)
    names = votes.workers
    assert names is not None
    columns = {
        "first": names[first], "second": names[second], "common": shared.astype(np.int64),
        "agreement": observed, "kappa": kappa,
    }  # fmt: skip
    return pd.DataFrame(columns)


# ---------------------------------------------------------------------- inside


def _real(crowd: Any) -> Crowd:
    votes: Crowd = crowd if isinstance(crowd, Crowd) else Crowd.from_frame(crowd)
    return votes.only_observed()


def _classes_only(crowd: Crowd) -> Crowd:
    if crowd.is_numeric:
        raise InputError("this coefficient compares classes, and these labels are numbers; use krippendorff_alpha")
    return crowd


def _weight(crowd: Crowd, rows: slice = slice(None)) -> NDArray[np.float64] | None:
    """How many votes a row stands for: as many as it weighs where only counts are known, one otherwise."""
    return None if crowd.has_workers or not crowd.is_weighted else crowd.weight[rows]


def _per_task(crowd: Crowd) -> NDArray[np.float64]:
    return np.bincount(crowd.task, _weight(crowd), minlength=crowd.n_tasks).astype(np.float64)


def _tables(crowd: Crowd) -> Iterator[NDArray[np.float64]]:
    """Votes by task and class, some tasks at a time, those without votes left out."""
    height = max(1, CELLS // crowd.n_classes)
    for start in range(0, crowd.n_tasks, height):
        stop = min(start + height, crowd.n_tasks)
        rows = slice(crowd.offset[start], crowd.offset[stop])
        cell = (crowd.task[rows].astype(np.int64) - start) * crowd.n_classes + crowd.label[rows]
        table = np.bincount(cell, _weight(crowd, rows), minlength=(stop - start) * crowd.n_classes)
        table = table.reshape(stop - start, crowd.n_classes).astype(np.float64)
        yield table[table.sum(axis=1) > 0]


def _patterns(crowd: Crowd) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The rows that occur among votes by task and class, of two votes or more, and how often each does."""
    found: NDArray[np.float64] = np.empty((0, crowd.n_classes))
    counts: NDArray[np.int64] = np.empty(0, dtype=np.int64)
    for table in _tables(crowd):
        rows = np.concatenate([found, table[table.sum(axis=1) >= 2]])
        times = np.concatenate([counts, np.ones(len(rows) - len(found), dtype=np.int64)])
        first, which = _distinct(rows)
        found, counts = rows[first], np.bincount(which, times, minlength=len(first)).astype(np.int64)
    return found, counts


def _distinct(rows: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where each row that occurs does so first, and which of them every row is."""
    base, n_classes = int(rows.max(initial=0)) + 1, rows.shape[1]
    if (rows == np.floor(rows)).all() and n_classes * np.log2(base) < 62:
        # Counts as digits of one number: to sort numbers takes a fraction of the time that sorting rows does.
        keys: NDArray[Any] = rows.astype(np.int64) @ base ** np.arange(n_classes, dtype=np.int64)
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    else:
        _, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, which.ravel()


def _coincidences(
    crowd: Crowd, level: Level, values: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64], Any]:
    """Statistics of each pattern of votes, how often it occurs, and α from their sums.

    For nominal labels the coincidences of a label with itself are enough; otherwise those of any two.
    """
    patterns, counts = _patterns(crowd)
    n_classes = crowd.n_classes
    others = patterns.sum(axis=1, keepdims=True) - 1
    if level == "nominal":
        same = (patterns * (patterns - 1) / others).sum(axis=1, keepdims=True)

        def nominal(total: NDArray[np.float64]) -> NDArray[np.float64]:
            by_label, agreed = total[:, :-1], total[:, -1]
            n = by_label.sum(axis=1)
            with np.errstate(invalid="ignore", divide="ignore"):
                expected = 1 - (by_label * (by_label - 1)).sum(axis=1) / (n * (n - 1))
                return np.where(expected > 0, 1 - (1 - agreed / n) / expected, np.nan)

        return np.concatenate([patterns, same], axis=1), counts, nominal
    if n_classes > 200:
        raise UsageError(f"ordinal and interval agreement are for up to 200 labels; there are {n_classes:,}")
    both = patterns[:, :, None] * patterns[:, None, :] / others[:, :, None]
    diagonal = np.arange(n_classes)
    both[:, diagonal, diagonal] -= patterns / others

    def metric(total: NDArray[np.float64]) -> NDArray[np.float64]:
        found = np.empty(len(total))
        for place, row in enumerate(total):
            by_label = row[:n_classes]
            distance = _distances(by_label, level, values)
            n = by_label.sum()
            chance = np.outer(by_label, by_label) - np.diag(by_label)
            expected = (chance * distance).sum() / max(n - 1, 1)
            observed = (row[n_classes:].reshape(n_classes, n_classes) * distance).sum()
            found[place] = 1 - observed / expected if expected > 0 else np.nan
        return found

    return np.concatenate([patterns, both.reshape(len(patterns), -1)], axis=1), counts, metric


def _distances(by_label: NDArray[np.float64], level: Level, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """δ² between labels; for ordinal ones, votes between them with half of those at either end."""
    if level == "ordinal":
        order = np.argsort(values, kind="stable")
        middle = np.empty(len(values))
        middle[order] = np.cumsum(by_label[order]) - by_label[order] / 2
        values = middle
    return np.asarray((values[:, None] - values[None, :]) ** 2)


def _values(crowd: Crowd, level: Level, order: Any) -> NDArray[np.float64]:
    """The number that stands for each class: its place in the order, or itself."""
    classes = crowd.classes
    assert classes is not None
    if level == "ordinal" and order is not None:
        place = pd.Index(order).get_indexer(classes)
        if (place < 0).any():
            raise InputError(f"order must name every class; it lacks {some(classes[place < 0])}")
        return place.astype(np.float64)
    if level == "nominal":
        return np.zeros(len(classes))
    numbers = pd.to_numeric(pd.Series(classes), errors="coerce").to_numpy(dtype=np.float64)
    if np.isfinite(numbers).all():
        return numbers
    wanted = (
        "say it: order=['poor', 'fair', 'good']" if level == "ordinal" else "read them as numbers, or use 'ordinal'"
    )
    raise InputError(
        f"the classes {some(classes[~np.isfinite(numbers)])} are no numbers, so their order is not known; {wanted}"
    )


def _moments(crowd: Crowd) -> tuple[NDArray[np.float64], NDArray[np.int64], Any]:
    """The same for numbers: a task's sums say all, and every task is a pattern of its own."""
    # Differences do not mind where zero is, and sums of squares are exact only near it.
    label = crowd.label - crowd.label.mean()
    m = _per_task(crowd)
    sums, squares = (np.bincount(crowd.task, part, minlength=crowd.n_tasks) for part in (label, label**2))
    paired = m >= 2
    m, sums, squares = m[paired], sums[paired], squares[paired]
    statistics = np.stack([m, sums, squares, (m * squares - sums**2) / (m - 1)], axis=1)

    def alpha(total: NDArray[np.float64]) -> NDArray[np.float64]:
        n, first, second, observed = total.T
        expected = (n * second - first**2) / (n - 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(expected > 0, 1 - observed / expected, np.nan)

    return statistics, np.ones(len(m), dtype=np.int64), alpha


def _simple(crowd: Crowd) -> tuple[float, NDArray[np.float64], int]:
    """Mean agreement of two votes on a task, shares of labels among all votes, and on how many tasks it rests."""
    agreed, total, n_tasks = 0.0, np.zeros(crowd.n_classes), 0
    for table in _tables(crowd):
        total += table.sum(axis=0)
        m = table.sum(axis=1)
        paired, of = table[m >= 2], m[m >= 2]
        agreed += float(((paired * (paired - 1)).sum(axis=1) / (of * (of - 1))).sum())
        n_tasks += len(of)
    return agreed / n_tasks if n_tasks else float("nan"), total / max(total.sum(), 1), n_tasks


def _beyond(observed: float, expected: float) -> float:
    return (observed - expected) / (1 - expected) if expected < 1 else float("nan")


def _portions(repeats: int, width: int) -> list[int]:
    """How many replicates to draw at a time."""
    at_once = max(1, CELLS // max(width, 1))
    return [min(at_once, repeats - start) for start in range(0, repeats, at_once)]
