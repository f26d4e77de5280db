"""Agreement of every two workers, with the number of common tasks and an interval."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import CrowdLike
from wisecrowd.errors import InputError, UsageError, check_choice, preview
from wisecrowd.evaluate.inputs import require_categorical_crowd
from wisecrowd.evaluate.intervals import share_interval
from wisecrowd.utils.levels import LEVEL
from wisecrowd.utils.notebook import render_html

#: Largest number of workers of a square table, which grows with the square of it.
MAX_MATRIX_WORKERS = 2000
#: Columns of the pairs that a square table can show.
MATRIX_COLUMNS = ("agreement", "common", "same", "low", "high")


@dataclass(frozen=True, eq=False)
class WorkerAgreement:
    """Agreement of every two workers who share tasks.

    Attributes
    ----------
    pairs : DataFrame
        One row per pair of workers with common tasks: first, second, common (number of common tasks), same (number of them with
        equal labels), agreement (their ratio), and low and high, the ends of its interval.
    workers : DataFrame
        By worker, from the lowest to the highest agreement: partners (number of workers with common tasks), common (number of
        comparisons with them), agreement (share of these comparisons with equal labels), low and high.
    level : float
        Confidence level of the intervals.

    Examples
    --------
    >>> crowd = Crowd.from_triples([(task, worker, task % 2) for task in range(4) for worker in "ab"])
    >>> worker_agreement(crowd).pairs[["first", "second", "common", "agreement"]].to_dict("records")
    [{'first': 'a', 'second': 'b', 'common': 4, 'agreement': 1.0}]
    """

    pairs: pd.DataFrame
    workers: pd.DataFrame
    level: float

    def __repr__(self) -> str:
        shares = self.pairs["agreement"]
        span = f", agreement {shares.min():.2f} to {shares.max():.2f}" if len(shares) else ""
        return (
            f"WorkerAgreement of {len(self.workers):,} workers, {len(self.pairs):,} pairs with common tasks{span}\n"
            "  see: .pairs, .workers, .matrix()"
        )

    def _repr_html_(self) -> str:
        return render_html(repr(self), self.workers)

    def matrix(self, column: str = "agreement") -> pd.DataFrame:
        """Return one figure of all pairs as a symmetric table, workers by rows and columns.

        Parameters
        ----------
        column : {"agreement", "common", "same", "low", "high"}, default="agreement"
            Figure to show.

        Returns
        -------
        DataFrame
            Workers in the order of ``workers``. Cells of pairs without common tasks, and the diagonal, are NaN; counts are 0 there.

        Raises
        ------
        UsageError
            If there are more than 2,000 workers.
        """
        check_choice("column", column, MATRIX_COLUMNS)
        names = self.workers.index
        if len(names) > MAX_MATRIX_WORKERS:
            raise UsageError(
                f"a square table is limited to {MAX_MATRIX_WORKERS:,} workers; got {len(names):,}. Select some: "
                "worker_agreement(crowd, workers=50)"
            )
        cells = np.full((len(names), len(names)), 0.0 if column in ("common", "same") else np.nan)
        first, second = (names.get_indexer(pd.Index(self.pairs[side])) for side in ("first", "second"))
        cells[first, second] = cells[second, first] = self.pairs[column]
        return pd.DataFrame(cells, index=names, columns=names.rename(None))


def worker_agreement(
    crowd: CrowdLike, *, workers: Iterable[Any] | int | None = None, min_common: int = 1, level: float = LEVEL
) -> WorkerAgreement:
    """Compute how often every two workers give the same label to a common task.

    The intervals are Wilson score intervals of a share. Two workers who guess agree as often as their labels coincide by
    chance; :func:`wisecrowd.diagnose.agreement.cohen_kappas` corrects for it. If a worker has several votes on a task, the task
    counts once, by the share of pairs of votes that agree. The cost is proportional to the pairs of votes on the same task.

    Parameters
    ----------
    crowd : Crowd or DataFrame
        Votes with classes and worker ids. Votes that a completer filled in are ignored.
    workers : iterable or int, default=None
        Ids of the workers to compare, or the number of workers with most votes. Defaults to all workers with votes.
    min_common : int, default=1
        Smallest number of common tasks of a pair.
    level : float, default=0.9
        Confidence level of the intervals.

    Returns
    -------
    WorkerAgreement

    Raises
    ------
    InputError
        If a worker is unknown.
    UsageError
        If the labels are numbers, or the crowd has no worker ids.

    Examples
    --------
    >>> import wisecrowd as wc
    >>> crowd = wc.simulate_crowd(300, workers=["expert"] * 4 + ["spammer"], votes_per_task=4, random_state=0).crowd
    >>> result = wc.worker_agreement(crowd)
    >>> result.workers.index[0]
    'w4'
    >>> result.matrix().shape
    (5, 5)
    """
    from scipy import sparse

    if not 0 < level < 1:
        raise UsageError(f"level must lie between 0 and 1, such as 0.9; got {level}")
    if min_common < 1:
        raise UsageError(f"min_common must be 1 or more; got {min_common}")
    votes = _select_workers(require_categorical_crowd(crowd, "comparing workers"), workers)
    names, codes = votes.workers, votes.worker_codes
    assert names is not None
    # A worker's votes on a task have a total weight of 1, so a task counts once.
    assignment = codes.astype(np.int64) * votes.n_tasks + votes.task
    _, of_assignment, n_repeats = np.unique(assignment, return_inverse=True, return_counts=True)
    weight = 1 / n_repeats[of_assignment]
    # Only the combinations of task and label that occur have columns, because tasks x classes may be large.
    cells, cell = np.unique(votes.task.astype(np.int64) * votes.n_classes + votes.label, return_inverse=True)
    voted = sparse.csr_array((weight, (codes, votes.task)), shape=(votes.n_workers, votes.n_tasks))
    chose = sparse.csr_array((weight, (codes, cell)), shape=(votes.n_workers, len(cells)))
    common = sparse.triu(voted @ voted.T, k=1).tocoo()
    n_common = np.rint(common.data)
    is_pair = n_common >= min_common
    first, second, n_common = common.row[is_pair], common.col[is_pair], n_common[is_pair]
    # scipy cannot select no elements.
    n_same = np.asarray((chose @ chose.T).tocsr()[first, second]).ravel() if len(first) else np.empty(0)
    low, high = share_interval(n_same, n_common, level=level)
    pairs = pd.DataFrame(
        {"first": names[first], "second": names[second], "common": n_common.astype(np.int64), "same": n_same,
         "agreement": n_same / n_common, "low": low, "high": high}
    )  # fmt: skip
    both, n_workers = np.concatenate([first, second]), votes.n_workers
    total = np.bincount(both, np.tile(n_common, 2), n_workers)
    total_same = np.bincount(both, np.tile(n_same, 2), n_workers)
    # Comparisons on one task share the worker's own vote, so the interval rests on the number of tasks, not of comparisons.
    n_shared_tasks = _count_shared_tasks(voted, n_workers)
    with np.errstate(invalid="ignore"):
        share = total_same / total
    low, high = share_interval(share * n_shared_tasks, n_shared_tasks, level=level)
    table = pd.DataFrame(
        {"partners": np.bincount(both, minlength=n_workers), "common": total.astype(np.int64), "agreement": share,
         "low": low, "high": high},
        index=pd.Index(names, name="worker"),
    )  # fmt: skip
    return WorkerAgreement(pairs, table.sort_values("agreement", kind="stable"), level)


def _count_shared_tasks(voted: Any, n_workers: int) -> NDArray[np.float64]:
    """Return the number of tasks of each worker on which others voted."""
    table = voted.tocoo()
    workers_per_task = np.bincount(table.col, minlength=voted.shape[1])
    return np.bincount(table.row, workers_per_task[table.col] > 1, n_workers).astype(np.float64)


def _select_workers(votes: Crowd, workers: Iterable[Any] | int | None) -> Crowd:
    """Return the votes of some workers: all with votes, those with most votes, or those with these ids."""
    assert votes.workers is not None
    counts = votes.votes_per_worker
    if workers is None:
        return votes if (counts > 0).all() else votes.select_workers(votes.workers[counts > 0])
    if isinstance(workers, int):
        if workers < 2:
            raise UsageError(f"workers must be 2 or more, because agreement needs two; got {workers}")
        order = np.argsort(-counts, kind="stable")[:workers]
        return votes.select_workers(votes.workers[np.sort(order[counts[order] > 0])])
    if isinstance(workers, str):
        raise UsageError(f"workers must be a list of ids or a number; got {workers!r}. Give at least two ids in a list")
    ids = list(workers)
    if unknown := [name for name in ids if name not in votes.workers]:
        raise InputError(f"unknown workers: {preview(unknown)}; the workers are {preview(votes.workers)}")
    return votes.select_workers(ids)
