"""`Crowd`: who said what about which task, sparse and immutable."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from wisecrowd.data import vocabulary as vocab
from wisecrowd.data._building import Buildable, Vocabulary, as_table
from wisecrowd.data._dividing import Divisible
from wisecrowd.data.rows import Duplicates, Rows, as_codes, as_marks, as_weights, counting_order
from wisecrowd.data.timestamps import as_stamps, as_times
from wisecrowd.errors import UsageError, one_of, some

if TYPE_CHECKING:
    from wisecrowd.data.layout import Layout
    from wisecrowd.data.sharded import ShardedCrowd

__all__ = ["Crowd", "Pairs", "as_table"]


@dataclass(frozen=True, eq=False)
class Pairs:
    """The (worker, label) combinations that occur, sorted; tables over them never outgrow the votes.

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "ann", "cat")])
    >>> pairs = crowd.pairs
    >>> pairs.worker.tolist(), pairs.label.tolist(), pairs.of_vote.tolist()
    ([0, 1], [0, 1], [0, 1, 0])
    """

    worker: NDArray[np.int32]
    label: NDArray[np.int32]
    of_vote: NDArray[np.int32]
    n_workers: int

    def __len__(self) -> int:
        return len(self.worker)

    def by_worker(self, table: NDArray[Any]) -> NDArray[Any]:
        """Add up the rows of a (pairs, …) table within each worker; a worker without votes gets zeros.

        >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")])
        >>> crowd.pairs.by_worker(np.array([1.0, 2.0])).tolist()
        [3.0]
        """
        total = np.zeros((self.n_workers, *table.shape[1:]), dtype=table.dtype)
        if len(self):
            total[self.worker[self._first]] = np.add.reduceat(table, self._first, axis=0)
        return total

    def of(self, votes: NDArray[np.int32]) -> Pairs:
        """The same pairs, and which of them each of some other votes is.

        >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
        >>> crowd.pairs.of(np.array([1], dtype=np.int32)).of_vote.tolist()
        [1]
        """
        others = Pairs(self.worker, self.label, votes, self.n_workers)
        vars(others).update({name: vars(self)[name] for name in ("_first", "short_label") if name in vars(self)})
        return others

    @cached_property
    def short_label(self) -> NDArray[Any]:
        """The labels in as few bytes as they fit into: votes look them up in no order, and so mostly in the cache.

        >>> Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")]).pairs.short_label.dtype.name
        'uint8'
        """
        return self.label.astype(np.min_scalar_type(int(self.label.max(initial=0))))

    @cached_property
    def _first(self) -> NDArray[np.int64]:
        """Where each worker's pairs begin."""
        return np.flatnonzero(np.diff(self.worker, prepend=-1))


class Crowd(Buildable, Divisible):
    """Sparse votes over three vocabularies: row ``n`` reads "worker ``workers[worker[n]]`` said that
    task ``tasks[task[n]]`` is of class ``classes[label[n]]``, with weight ``weight[n]``".

    Rows are sorted by (task, worker), arrays are read-only, and nothing here is ever of size tasks x workers.
    Three forms beside the ordinary one: *weighted* votes (soft, repeated, completed), a crowd *without worker ids*
    (``worker`` is None: only counts per task are known), and a *numeric* crowd (``classes`` is None and ``label``
    holds numbers).

    Build one with :meth:`from_frame`, :meth:`from_triples`, :meth:`from_matrix`, :meth:`from_counts` or
    :func:`wisecrowd.read`; the constructor itself takes codes.

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "ann", "cat")])
    >>> crowd
    Crowd(3 labels: 2 tasks x 2 workers, 2 classes, 1.5 labels/task)
    >>> crowd.classes.tolist(), crowd.votes.tolist()
    (['cat', 'dog'], [[1.0, 1.0], [1.0, 0.0]])
    """

    def __init__(
        self,
        task: ArrayLike,
        worker: ArrayLike | None,
        label: ArrayLike,
        *,
        tasks: Vocabulary,
        workers: Vocabulary,
        classes: Vocabulary,
        weight: ArrayLike | None = None,
        observed: ArrayLike | None = None,
        time: ArrayLike | None = None,
        duplicates: Duplicates = "error",
        tasks_given: bool = True,
    ) -> None:
        one_of("duplicates", duplicates, ("error", "first", "last", "distinct", "keep"))
        self.tasks = vocab.as_vocabulary(tasks if tasks is not None else (), "task")
        self.workers = None if workers is None else vocab.as_vocabulary(workers, "worker")
        self.classes = None if classes is None else vocab.as_vocabulary(classes, "class")
        #: Whether the caller fixed the order of tasks, so that a bare feature array can be matched to them.
        self.tasks_given = bool(tasks_given) or _counts_from_zero(self.tasks)

        rows = Rows(
            as_codes(task, len(self.tasks), "task"),
            None if self.workers is None else as_codes(worker, len(self.workers), "worker"),
            np.array(label, dtype=np.float64) if self.classes is None else as_codes(label, len(self.classes), "label"),
            as_weights(weight),
            as_marks(observed),
            as_times(time),
        )
        rows = rows.sorted(len(self.tasks), self._n_workers, duplicates, self._name_duplicates)
        self._hold(rows)

    # ------------------------------------------------------------------ size and form

    @property
    def n_tasks(self) -> int:
        """Number of tasks, labelled or not."""
        return len(self.tasks)

    @property
    def n_workers(self) -> int:
        """Number of workers; asking a crowd without worker ids is an error."""
        if self.workers is None:
            raise UsageError("this crowd has no worker ids: only counts per task are known")
        return len(self.workers)

    @property
    def n_classes(self) -> int:
        """Number of classes, used or not; asking a numeric crowd is an error."""
        if self.classes is None:
            raise UsageError("this crowd holds numbers, not classes; use a numeric method such as 'median'")
        return len(self.classes)

    @property
    def n_votes(self) -> int:
        """Number of rows; a weighted crowd without worker ids may stand for more votes than rows."""
        return len(self.task)

    @property
    def shape(self) -> tuple[int, int]:
        """(n_tasks, n_workers), as scikit-learn wants it."""
        return self.n_tasks, self._n_workers

    def __len__(self) -> int:
        return self.n_tasks

    @property
    def has_workers(self) -> bool:
        """Whether it is known who cast each vote."""
        return self.workers is not None

    @property
    def is_numeric(self) -> bool:
        """Whether labels are numbers rather than classes."""
        return self.classes is None

    @property
    def is_weighted(self) -> bool:
        """Whether some vote counts other than once."""
        return self._weight is not None

    @property
    def weight(self) -> NDArray[np.float64]:
        """How much each vote counts."""
        return np.broadcast_to(np.float64(1), self.n_votes) if self._weight is None else self._weight

    @property
    def observed(self) -> NDArray[np.bool_]:
        """True for a vote somebody cast, False for one that a completer filled in."""
        return np.broadcast_to(np.True_, self.n_votes) if self._observed is None else self._observed

    @property
    def has_times(self) -> bool:
        """Whether it is known of some votes when they were cast."""
        return self._time is not None

    @property
    def time(self) -> NDArray[np.float64]:
        """When each vote was cast, in seconds since 1970 (UTC); NaN where nobody knows."""
        return np.broadcast_to(np.float64(np.nan), self.n_votes) if self._time is None else self._time

    @property
    def _n_workers(self) -> int:
        return 0 if self.workers is None else len(self.workers)

    # ------------------------------------------------------------------ derived, once

    @cached_property
    def offset(self) -> NDArray[np.int64]:
        """Rows of task ``i`` are ``offset[i]:offset[i + 1]``."""
        return _frozen(np.concatenate([[0], np.cumsum(np.bincount(self.task, minlength=self.n_tasks))]))

    @cached_property
    def worker_order(self) -> NDArray[np.int64]:
        """The permutation that sorts rows by (worker, task)."""
        return _frozen(counting_order(self.worker_codes, self._n_workers))

    @cached_property
    def votes(self) -> NDArray[np.float64]:
        """Weight of the votes for each class of each task, (n_tasks, n_classes)."""
        cell = self.task.astype(np.int64) * self.n_classes + self._said
        total = np.bincount(cell, weights=self._weight, minlength=self.n_tasks * self.n_classes)
        return _frozen(total.astype(np.float64).reshape(self.n_tasks, self.n_classes))

    @cached_property
    def votes_per_task(self) -> NDArray[np.int64]:
        """Number of rows of each task."""
        return _frozen(np.diff(self.offset))

    @cached_property
    def votes_per_worker(self) -> NDArray[np.int64]:
        """Number of rows of each worker."""
        return _frozen(np.bincount(self.worker_codes, minlength=self.n_workers))

    @cached_property
    def pairs(self) -> Pairs:
        """The (worker, label) combinations that occur; without worker ids, everybody is one worker."""
        n_classes, n_workers = self.n_classes, max(self._n_workers, 1)
        code = (
            self.label.astype(np.int64)
            if self.worker is None
            else self.worker.astype(np.int64) * n_classes + self.label
        )
        if n_workers * n_classes <= 4 * self.n_votes + 1_000_000:
            occurs = np.zeros(n_workers * n_classes, dtype=bool)
            occurs[code] = True
            found, of_vote = np.flatnonzero(occurs), (np.cumsum(occurs, dtype=np.int32) - 1)[code]
        else:
            found, of_vote = np.unique(code, return_inverse=True)
        worker, label = np.divmod(found, n_classes)
        return Pairs(
            _frozen(worker.astype(np.int32)),
            _frozen(label.astype(np.int32)),
            _frozen(of_vote.astype(np.int32)),
            n_workers,
        )

    @cached_property
    def layout(self) -> Layout:
        """The votes as the kernels want them: by task, each a (worker, label) pair."""
        from wisecrowd.data.layout import Layout

        return Layout(self.offset, self.pairs.of_vote, self._weight, len(self.pairs))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the contents: equal crowds, equal digests."""
        sha = hashlib.sha256()
        for index in (self.tasks, self.workers, self.classes):
            sha.update(b"-" if index is None else pd.util.hash_array(index.to_numpy(dtype=object)).tobytes())
        for array in (self.task, self.worker, self.label, self._weight, self._observed):
            sha.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
        if self._time is not None:  # most crowds have no times, and keep the digests that they always had
            sha.update(np.ascontiguousarray(self._time).tobytes())
        return sha.hexdigest()

    # ------------------------------------------------------------------ out again

    def to_frame(self) -> pd.DataFrame:
        """The votes as a long table: task, worker, label, and weight, observed and time where they say something.

        >>> Crowd.from_triples([("t1", "ann", "cat")]).to_frame().to_dict("records")
        [{'task': 't1', 'worker': 'ann', 'label': 'cat'}]
        """
        columns: dict[str, Any] = {"task": self.tasks.take(self.task)}
        if self.workers is not None:
            columns["worker"] = self.workers.take(self.worker_codes)
        columns["label"] = self.label if self.classes is None else self.classes.take(self.label)
        if self._weight is not None:
            columns["weight"] = self._weight
        if self._observed is not None:
            columns["observed"] = self._observed
        if self._time is not None:
            columns["time"] = as_stamps(self._time).to_pandas()
        return pd.DataFrame(columns)

    def to_shards(self, folder: str | os.PathLike[str], *, votes_per_shard: int | None = None) -> ShardedCrowd:
        """Write the votes as a folder of shards, which methods work on one at a time; times and marks are left out.

        ``wisecrowd shard`` makes such a folder from files that are larger than memory.

        >>> import tempfile
        >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")])
        >>> crowd.to_shards(tempfile.mkdtemp() + "/crowd", votes_per_shard=1)
        ShardedCrowd(2 labels: 2 tasks x 1 workers, 2 classes, in 2 shards)
        """
        from wisecrowd.data.sharded import VOTES_PER_SHARD, to_shards

        return to_shards(self, folder, VOTES_PER_SHARD if votes_per_shard is None else votes_per_shard)

    @staticmethod
    def open(folder: str | os.PathLike[str]) -> ShardedCrowd:
        """Open a folder of shards, whatever its size: only what is looked at is read.

        >>> import tempfile
        >>> place = tempfile.mkdtemp() + "/crowd"
        >>> _ = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")]).to_shards(place)
        >>> Crowd.open(place).n_votes
        2
        """
        from wisecrowd.data.sharded import open_shards

        return open_shards(folder)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The votes table; it lets scikit-learn's splitters see a target of ``n_tasks`` rows."""
        if copy is False:
            raise ValueError("a Crowd becomes an array only by a copy")
        return np.array(self.votes, dtype=dtype)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Crowd):
            return NotImplemented
        return self.shape == other.shape and self.n_votes == other.n_votes and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        votes = self.weight.sum() if not self.has_workers else self.n_votes
        who = f" x {len(self.workers):,} workers" if self.workers is not None else ", no worker ids"
        what = "numeric" if self.classes is None else f"{len(self.classes):,} classes"
        filled = self.n_votes - int(self.observed.sum())
        return (
            f"Crowd({votes:,.0f} labels: {self.n_tasks:,} tasks{who}, {what}, "
            f"{votes / max(self.n_tasks, 1):.1f} labels/task{f', {filled:,} filled in' if filled else ''})"
        )

    # ------------------------------------------------------------------ inside

    def _hold(self, rows: Rows) -> None:
        """Keep rows that are in order; nobody may change them from here on."""
        self.task, self.worker, self.label, self._weight, self._observed, self._time = rows
        for array in rows:
            if array is not None:
                array.setflags(write=False)

    @property
    def _said(self) -> NDArray[Any]:
        """The label of each vote, to be counted."""
        return self.label

    @property
    def _rows(self) -> Rows:
        return Rows(self.task, self.worker, self.label, self._weight, self._observed, self._time)

    @property
    def worker_codes(self) -> NDArray[np.int32]:
        if self.worker is None:
            raise UsageError("this crowd has no worker ids")
        return self.worker

    def _name_duplicates(self, rows: Rows, again: NDArray[np.int64]) -> str:
        task = self.tasks[rows.task[again[0]]]
        who = (
            ""
            if self.workers is None or rows.worker is None
            else f"worker {some([self.workers[rows.worker[again[0]]]])} labelled "
        )
        return (
            f"{again.size:,} rows repeat a (task, worker) that came before; for example {who}task {some([task])} twice. "
            "Say what to do: duplicates='first' or 'last' keeps one, 'distinct' keeps different answers once each, "
            "'keep' counts all (--duplicates on the command line)"
        )


def _counts_from_zero(index: pd.Index) -> bool:
    return index.dtype.kind in "iu" and bool((index == np.arange(len(index))).all())


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array
