"""Sparse, immutable votes of workers on tasks."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from wisecrowd.data import vocabulary as vocab
from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.arrow_tables import DataFrameLike, as_table, read_flags, read_numbers
from wisecrowd.data.layout import Layout
from wisecrowd.data.pairs import Pairs
from wisecrowd.data.rows import (
    Duplicates,
    GrowingColumn,
    VoteRows,
    argsort_codes,
    as_codes,
    as_observed_mask,
    as_weights,
    draw_heldout,
    shuffle_within_groups,
)
from wisecrowd.data.timestamps import as_times, parse_times, to_timestamps
from wisecrowd.data.vote_storage import VotesInMemory, VoteStorage
from wisecrowd.errors import InputError, UsageError, check_choice, preview
from wisecrowd.utils.notebook import MAX_ROWS, render_html
from wisecrowd.utils.text import count_noun

if TYPE_CHECKING:
    from wisecrowd.data.sharded import ShardedCrowd

#: Number of calling functions that are searched for a metric of scikit-learn; it is about five away.
_MAX_CALLERS = 15
#: Treatment of rows without a task, worker or label.
Missing: TypeAlias = Literal["error", "drop"]
#: Ids in their order, or None to collect them from the data.
Vocabulary: TypeAlias = Sequence[Any] | pd.Index | NDArray[Any] | None


class Crowd:
    """Sparse votes over vocabularies of tasks, workers and classes.

    Vote ``n`` says that worker ``workers[worker[n]]`` gave the label ``classes[label[n]]`` to task ``tasks[task[n]]``,
    with weight ``weight[n]``. Votes are sorted by task and worker, and all arrays are read-only. No array has the size
    tasks × workers.

    Four forms exist beside the ordinary one. In a *weighted* crowd votes count other than once (soft, repeated or
    completed votes). A crowd *without worker ids* (``worker`` is None) holds counts per task and class. In an *ordinal*
    crowd the classes are ordered from lowest to highest. In a *numeric* crowd (``classes`` is None) ``label`` holds numbers.

    Build a crowd with `from_frame`, `from_triples`, `from_matrix`, `from_counts`, `from_codes` or `wisecrowd.read`.

    Parameters
    ----------
    storage : VoteStorage
        Columns and vocabularies.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "ann", "cat")])
    >>> crowd
    Crowd(3 votes: 2 tasks x 2 workers, 2 classes, 1.5 votes/task)
    >>> crowd.classes.tolist(), crowd.vote_counts.tolist()
    (['cat', 'dog'], [[1.0, 1.0], [1.0, 0.0]])
    """

    def __init__(self, storage: VoteStorage) -> None:
        self._storage = storage

    # ------------------------------------------------------------------ construction

    @staticmethod
    def from_codes(
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
        has_task_order: bool = True,
        ordered: bool = False,
    ) -> Crowd:
        """Build a crowd from integer codes over given vocabularies.

        Parameters
        ----------
        task : array-like of shape (n_votes,)
            Position in ``tasks`` of each vote's task.
        worker : array-like of shape (n_votes,) or None
            Position in ``workers`` of each vote's worker; None for a crowd without worker ids.
        label : array-like of shape (n_votes,)
            Position in ``classes`` of each vote's label; numbers when ``classes`` is None.
        tasks, workers, classes : sequence, Index or None
            Vocabularies. They may contain ids that no vote uses. ``workers=None`` means a crowd without worker ids,
            ``classes=None`` a numeric crowd.
        weight : array-like of shape (n_votes,), default=None
            Weight of each vote; every vote counts once by default.
        observed : array-like of shape (n_votes,), default=None
            False for votes that a completer filled in; all True by default.
        time : array-like of shape (n_votes,), default=None
            Time of each vote in seconds since 1970 (UTC); NaN where unknown.
        duplicates : {"error", "first", "last", "distinct", "keep"}, default="error"
            Treatment of several votes of one worker on one task: raise, keep the first or the last of them, keep
            different labels once each, or keep all.
        has_task_order : bool, default=True
            Whether the order of ``tasks`` is meaningful, so that a bare feature array can be matched to the tasks.
        ordered : bool, default=False
            Whether ``classes`` are ordered from lowest to highest.

        Returns
        -------
        Crowd
            The crowd; it copies the arrays.

        Raises
        ------
        InputError
            If the columns differ in length, contain invalid values, or repeat votes while ``duplicates="error"``.

        Examples
        --------
        >>> Crowd.from_codes([0, 1], [0, 0], [1, 0], tasks=["t1", "t2"], workers=["ann"], classes=["cat", "dog"]).n_votes
        2
        """
        check_choice("duplicates", duplicates, ("error", "first", "last", "distinct", "keep"))
        task_index = vocab.as_vocabulary(tasks if tasks is not None else (), "task")
        worker_index = None if workers is None else vocab.as_vocabulary(workers, "worker")
        class_index = None if classes is None else vocab.as_vocabulary(classes, "class")
        rows = VoteRows(
            as_codes(task, len(task_index), "task"),
            None if worker_index is None else as_codes(worker, len(worker_index), "worker"),
            np.array(label, dtype=np.float64) if class_index is None else as_codes(label, len(class_index), "label"),
            as_weights(weight),
            as_observed_mask(observed),
            as_times(time),
        )

        def describe(rows: VoteRows, repeated: NDArray[np.int64]) -> str:
            return _describe_duplicates(rows, repeated, task_index, worker_index)

        n_workers = 0 if worker_index is None else len(worker_index)
        rows = rows.sort(len(task_index), n_workers, duplicates, describe)
        tasks_are_ordered = bool(has_task_order) or _is_range_from_zero(task_index)
        if ordered and class_index is None:
            raise UsageError("numbers are ordered by themselves; use either numeric=True or ordered=True, not both")
        return Crowd(VotesInMemory(rows, task_index, worker_index, class_index, tasks_are_ordered, bool(ordered)))

    @staticmethod
    def from_frame(
        frame: DataFrameLike,
        *,
        task: str = "task",
        worker: str | None = "worker",
        label: str = "label",
        weight: str | None = None,
        observed: str | None = None,
        time: str | None = None,
        tasks: Vocabulary = None,
        workers: Vocabulary = None,
        classes: Vocabulary = None,
        numeric: bool = False,
        ordered: bool = False,
        duplicates: Duplicates = "error",
        missing: Missing = "error",
    ) -> Crowd:
        """Build a crowd from a table with one vote per row.

        Parameters
        ----------
        frame : DataFrame, Arrow table or dict of columns
            Table of pandas, polars, pyarrow, duckdb, or any other library that exports Arrow streams.
        task, worker, label : str
            Names of the columns. ``worker=None`` reads a crowd without worker ids.
        weight : str, default=None
            Column with the weight of each vote.
        observed : str, default=None
            Column that is false for votes that a completer filled in.
        time : str, default=None
            Column with the time of each vote: dates, text such as "2024-05-31 14:00", or seconds since 1970. Times may
            be missing.
        tasks, workers, classes : sequence or Index, default=None
            Vocabularies in their order. They may contain ids that no row uses. By default, the ids of the table,
            sorted.
        numeric : bool, default=False
            Whether labels are numbers rather than classes.
        ordered : bool, default=False
            Whether classes are ordered, such as the stars of a rating. Their order is that of ``classes``; without
            ``classes``, numbers are sorted by size, and names are an error.
        duplicates : {"error", "first", "last", "distinct", "keep"}, default="error"
            Treatment of several votes of one worker on one task; see `from_codes`.
        missing : {"error", "drop"}, default="error"
            Treatment of rows without a task, worker or label.

        Returns
        -------
        Crowd
            The votes of the table.

        Raises
        ------
        InputError
            If a column is absent, or contains missing or invalid values.

        Examples
        --------
        >>> frame = pd.DataFrame({"task": [1, 1, 2], "worker": ["a", "b", "a"], "label": ["x", "y", "y"]})
        >>> Crowd.from_frame(frame, tasks=[1, 2, 3]).shape
        (3, 2)
        """
        check_choice("missing", missing, ("error", "drop"))
        required = [name for name in (task, worker, label, weight, observed) if name is not None]
        columns = required if time is None else [*required, time]
        table = as_table(frame, columns)
        absent = [name for name in columns if name not in table.column_names]
        if absent:
            present = frame.columns if isinstance(frame, pd.DataFrame) else table.column_names
            raise InputError(
                f"no column {preview(absent)} among {preview(present, 12)}. Name your columns, "
                f'for example task="question", worker="rater", label="answer"'
            )
        if missing == "drop":
            is_missing = np.logical_or.reduce([vocab.find_missing(table[name]) for name in required])
            table = table.filter(pa.array(~is_missing)) if is_missing.any() else table
        task_codes, task_index = vocab.encode_ids(table[task], "task", tasks)
        worker_codes, worker_index = (
            (None, None) if worker is None else vocab.encode_ids(table[worker], "worker", workers)
        )
        if numeric:
            vocab.check_no_missing(table[label], "label")
            labels: NDArray[Any] = read_numbers(table[label])
            class_index = None
        else:
            labels, class_index = vocab.encode_ids(table[label], "label", classes)
            vocab.check_no_fractions(class_index)
            if ordered and classes is None:
                labels, class_index = vocab.sort_by_size(labels, class_index)
        return Crowd.from_codes(
            task_codes,
            worker_codes,
            labels,
            tasks=task_index,
            workers=worker_index,
            classes=class_index,
            weight=None if weight is None else read_numbers(table[weight]),
            observed=None if observed is None else read_flags(table[observed]),
            time=None if time is None else parse_times(table[time]),
            duplicates=duplicates if worker is not None else "keep",
            has_task_order=tasks is not None,
            ordered=ordered,
        )

    @staticmethod
    def from_triples(triples: Iterable[Sequence[Any]], **options: Any) -> Crowd:
        """Build a crowd from triples of task, worker and label.

        Parameters
        ----------
        triples : iterable of (task, worker, label)
            The votes.
        **options
            Keyword arguments of `from_frame`.

        Returns
        -------
        Crowd
            The votes.

        Examples
        --------
        >>> Crowd.from_triples([(0, "ann", True), (1, "ann", False)]).n_votes
        2
        """
        rows = list(triples)
        invalid = next((row for row in rows if len(row) != 3), None)
        if invalid is not None:
            raise InputError(f"each row must be (task, worker, label); got {preview([invalid])}")
        columns: list[Sequence[Any]] = list(zip(*rows, strict=True)) if rows else [(), (), ()]
        return Crowd.from_frame(dict(zip(("task", "worker", "label"), map(list, columns), strict=True)), **options)

    @staticmethod
    def from_matrix(
        matrix: ArrayLike | pd.DataFrame,
        *,
        missing: object = None,
        tasks: Vocabulary = None,
        workers: Vocabulary = None,
        classes: Vocabulary = None,
    ) -> Crowd:
        """Build a crowd from a matrix of labels with one row per task and one column per worker.

        Parameters
        ----------
        matrix : array-like or DataFrame of shape (n_tasks, n_workers)
            Label of each worker for each task. None and NaN mean that there is no vote.
        missing : object, default=None
            Further value that means that there is no vote.
        tasks, workers : sequence or Index, default=None
            Ids of the rows and columns; the index and the columns of a frame, or numbers from zero, by default.
        classes : sequence or Index, default=None
            Classes in their order; those that occur, sorted, by default.

        Returns
        -------
        Crowd
            The votes.

        Examples
        --------
        >>> Crowd.from_matrix([[0, 1, -1], [1, -1, -1]], missing=-1)
        Crowd(3 votes: 2 tasks x 3 workers, 2 classes, 1.5 votes/task)
        """
        try:
            with vocab.check_encodable():
                frame = matrix if isinstance(matrix, pd.DataFrame) else pd.DataFrame(np.asarray(matrix))
        except InputError:
            raise
        except ValueError as error:
            raise InputError(f"expected a matrix (tasks x workers) with rows of equal length: {error}") from None
        if frame.empty:
            raise InputError(f"expected a matrix (tasks x workers); got shape {frame.shape}")
        is_vote = frame.notna().to_numpy()
        if missing is not None:
            is_vote = is_vote & (frame != missing).to_numpy()
        row, column = np.nonzero(is_vote)
        labels = vocab.as_column(frame.to_numpy()[row, column].tolist(), "label")
        codes, class_index = vocab.encode_ids(labels, "label", classes)
        vocab.check_no_fractions(class_index)
        return Crowd.from_codes(
            row,
            column,
            codes,
            tasks=frame.index if tasks is None else tasks,
            workers=frame.columns if workers is None else workers,
            classes=class_index,
        )

    @staticmethod
    def from_counts(counts: ArrayLike | pd.DataFrame, *, tasks: Vocabulary = None, classes: Vocabulary = None) -> Crowd:
        """Build a crowd without worker ids from the number of votes for each class of each task.

        Parameters
        ----------
        counts : array-like or DataFrame of shape (n_tasks, n_classes)
            Number, or total weight, of the votes.
        tasks, classes : sequence or Index, default=None
            Ids of the rows and columns; the index and the columns of a frame, or numbers from zero, by default.

        Returns
        -------
        Crowd
            A weighted crowd without worker ids.

        Examples
        --------
        >>> Crowd.from_counts([[2, 1], [0, 3]], classes=["no", "yes"])
        Crowd(6 votes: 2 tasks, no worker ids, 2 classes, 3.0 votes/task)
        """
        frame = counts if isinstance(counts, pd.DataFrame) else pd.DataFrame(np.asarray(counts))
        values = frame.to_numpy(dtype=np.float64)
        if not np.isfinite(values).all() or (values < 0).any():
            raise InputError("counts must be finite and not negative")
        task, label = np.nonzero(values)
        return Crowd.from_codes(
            task,
            None,
            label,
            tasks=frame.index if tasks is None else tasks,
            workers=None,
            classes=frame.columns if classes is None else classes,
            weight=values[task, label],
            duplicates="keep",
        )

    @staticmethod
    def concat(crowds: Sequence[Crowd], *, duplicates: Duplicates = "error") -> Crowd:
        """Concatenate the votes of several crowds and unite their vocabularies by id.

        Parameters
        ----------
        crowds : sequence of Crowd
            Crowds of one form: all with worker ids or none, all of one answer type.
        duplicates : {"error", "first", "last", "distinct", "keep"}, default="error"
            Treatment of several votes of one worker on one task; see `from_codes`.

        Returns
        -------
        Crowd
            All votes.

        See Also
        --------
        join_chunks : Faster, for crowds over the same workers and classes that have no task in common.

        Examples
        --------
        >>> ann = Crowd.from_triples([("t1", "ann", "cat")])
        >>> bob = Crowd.from_triples([("t1", "bob", "dog")])
        >>> Crowd.concat([ann, bob])
        Crowd(2 votes: 1 task x 2 workers, 2 classes, 2.0 votes/task)
        """
        if not crowds:
            raise UsageError("concat needs at least one crowd; got none")
        if len({(crowd.has_workers, crowd.answer_type) for crowd in crowds}) > 1:
            raise UsageError(
                "only crowds of one form can be concatenated: all with worker ids or none, all numeric, ordinal or categorical"
            )
        first = crowds[0]
        tasks, task = vocab.unite_codes([(crowd.tasks, crowd.task) for crowd in crowds])
        workers, worker = None, None
        if first.has_workers:
            workers, worker = vocab.unite_codes(
                [(vocab.as_index(crowd.workers), crowd.worker_codes) for crowd in crowds]
            )
        classes, label = None, np.concatenate([crowd.label for crowd in crowds])
        if not first.is_numeric:
            classes, label = vocab.unite_codes([(vocab.as_index(crowd.classes), crowd.label) for crowd in crowds])
        if first.is_ordered and classes is not first.classes:
            raise UsageError(
                "ordinal crowds can be concatenated only if the first has all classes in their order; read all of them with "
                "the same classes=[...]"
            )
        is_weighted, has_times = any(crowd.is_weighted for crowd in crowds), any(crowd.has_times for crowd in crowds)
        return Crowd.from_codes(
            task,
            worker,
            label,
            tasks=tasks,
            workers=workers,
            classes=classes,
            weight=np.concatenate([crowd.weight for crowd in crowds]) if is_weighted else None,
            observed=np.concatenate([crowd.observed for crowd in crowds]),
            time=np.concatenate([crowd.time for crowd in crowds]) if has_times else None,
            duplicates=duplicates if first.has_workers else "keep",
            has_task_order=all(crowd.has_task_order for crowd in crowds) and tasks is first.tasks,
            ordered=first.is_ordered,
        )

    @staticmethod
    def join_chunks(chunks: Iterable[Crowd]) -> Crowd:
        """Join crowds over the same workers and classes that have no task in common; the inverse of `split_tasks`.

        Parameters
        ----------
        chunks : iterable of Crowd
            Consumed one at a time, so that a generator need not hold all of them in memory.

        Returns
        -------
        Crowd
            All votes; the tasks of each chunk follow those of the chunk before.

        Examples
        --------
        >>> crowd = Crowd.from_triples([(task, "ann", "x") for task in range(10)])
        >>> Crowd.join_chunks(crowd.split_tasks(3)) == crowd
        True
        """
        columns = [GrowingColumn(default) for default in (None, None, None, 1.0, True, np.nan)]
        tasks: list[pd.Index] = []
        first: Crowd | None = None
        n_tasks = 0
        for chunk in chunks:
            first = chunk if first is None else first
            if not (_is_same_index(first.workers, chunk.workers) and _is_same_index(first.classes, chunk.classes)):
                raise UsageError(
                    "join_chunks needs chunks over the same workers and classes; use Crowd.concat to unite vocabularies"
                )
            rows = chunk.rows._replace(task=chunk.task + np.int32(n_tasks))
            for column, values in zip(columns, rows, strict=True):
                column.append(values, chunk.n_votes)
            tasks.append(chunk.tasks)
            n_tasks += chunk.n_tasks
        if first is None:
            raise UsageError("join_chunks needs at least one chunk; got none")
        joined_rows = VoteRows(*(column.to_array() for column in columns))  # type: ignore[arg-type]  # in field order
        joined_tasks = tasks[0] if len(tasks) == 1 else vocab.as_vocabulary(tasks[0].append(tasks[1:]), "task")
        return Crowd(
            VotesInMemory(
                joined_rows, joined_tasks, first.workers, first.classes, first.has_task_order, first.is_ordered
            )
        )

    @staticmethod
    def open(folder: str | os.PathLike[str], *, verify: bool = True) -> ShardedCrowd:
        """Open a folder of shards.

        Parameters
        ----------
        folder : path-like
            Folder that `to_shards` or ``wisecrowd shard`` wrote. It may be larger than memory: votes are read on
            access.
        verify : bool, default=True
            Whether to compare files with their SHA-256 digests when they are first read. Sizes and codes are always
            checked.

        Returns
        -------
        ShardedCrowd
            The crowd in the folder.

        Raises
        ------
        InputError
            If the folder holds no shards, or is incomplete or damaged. A damaged shard is refused when it is first read.

        Examples
        --------
        >>> import tempfile
        >>> folder = tempfile.mkdtemp() + "/crowd"
        >>> _ = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")]).to_shards(folder)
        >>> Crowd.open(folder).n_votes
        2
        """
        from wisecrowd.data.sharded import open_shards

        return open_shards(folder, verify)

    # ------------------------------------------------------------------ vocabularies, sizes and form

    @property
    def tasks(self) -> pd.Index:
        """Task ids, including tasks without votes."""
        return self._storage.tasks

    @property
    def workers(self) -> pd.Index | None:
        """Worker ids, including workers without votes; None in a crowd without worker ids."""
        return self._storage.workers

    @property
    def classes(self) -> pd.Index | None:
        """Classes, including unused ones; None in a numeric crowd."""
        return self._storage.classes

    @property
    def has_task_order(self) -> bool:
        """True if the caller fixed the order of the tasks, so that a bare feature array can be matched to them."""
        return self._storage.has_task_order

    @property
    def n_tasks(self) -> int:
        """Number of tasks, including tasks without votes."""
        return self._storage.n_tasks

    @property
    def n_workers(self) -> int:
        """Number of workers; raises UsageError in a crowd without worker ids."""
        if self.workers is None:
            raise UsageError("this crowd has no worker ids: only counts per task are known")
        return len(self.workers)

    @property
    def n_classes(self) -> int:
        """Number of classes, including unused ones; raises UsageError in a numeric crowd."""
        if self.classes is None:
            raise UsageError("this crowd holds numbers, not classes; use a numeric method such as 'median'")
        return len(self.classes)

    @property
    def n_votes(self) -> int:
        """Number of rows; a row of a weighted crowd may stand for several votes."""
        return self._storage.n_votes

    @property
    def shape(self) -> tuple[int, int]:
        """Number of tasks and of workers, as scikit-learn expects it."""
        return self.n_tasks, 0 if self.workers is None else len(self.workers)

    def __len__(self) -> int:
        return self.n_tasks

    @property
    def has_workers(self) -> bool:
        """True if votes have worker ids."""
        return self.workers is not None

    @property
    def is_numeric(self) -> bool:
        """True if labels are numbers rather than classes."""
        return self.classes is None

    @property
    def is_ordered(self) -> bool:
        """True if the classes are ordered, from lowest to highest."""
        return self._storage.has_class_order

    @property
    def answer_type(self) -> AnswerType:
        """Type of the labels: "categorical", "ordinal" or "numeric"."""
        if self.is_numeric:
            return "numeric"
        return "ordinal" if self.is_ordered else "categorical"

    @property
    def is_weighted(self) -> bool:
        """True if some vote has a weight other than one."""
        return self._storage.weight is not None

    @property
    def has_times(self) -> bool:
        """True if some vote has a time."""
        return self._storage.time is not None

    # ------------------------------------------------------------------ columns

    @property
    def task(self) -> NDArray[np.int32]:
        """Position in ``tasks`` of each vote's task."""
        return self._storage.task

    @property
    def worker(self) -> NDArray[np.int32] | None:
        """Position in ``workers`` of each vote's worker; None in a crowd without worker ids."""
        return self._storage.worker

    @property
    def worker_codes(self) -> NDArray[np.int32]:
        """Same as ``worker``; raises UsageError in a crowd without worker ids."""
        worker = self._storage.worker
        if worker is None:
            raise UsageError("this crowd has no worker ids")
        return worker

    @property
    def label(self) -> NDArray[Any]:
        """Position in ``classes`` of each vote's label; numbers in a numeric crowd."""
        return self._storage.label

    @property
    def weight(self) -> NDArray[np.float64]:
        """Weight of each vote."""
        weight = self._storage.weight
        return np.broadcast_to(np.float64(1), self.n_votes) if weight is None else weight

    @property
    def stored_weight(self) -> NDArray[np.float64] | None:
        """Weight of each vote; None when every vote counts once."""
        return self._storage.weight

    @property
    def observed(self) -> NDArray[np.bool_]:
        """False for votes that a completer filled in, True for votes that a worker cast."""
        observed = self._storage.observed
        return np.broadcast_to(np.True_, self.n_votes) if observed is None else observed

    @property
    def time(self) -> NDArray[np.float64]:
        """Time of each vote in seconds since 1970 (UTC); NaN where unknown."""
        time = self._storage.time
        return np.broadcast_to(np.float64(np.nan), self.n_votes) if time is None else time

    @property
    def rows(self) -> VoteRows:
        """All columns; None where every vote has the default."""
        storage = self._storage
        return VoteRows(storage.task, storage.worker, storage.label, storage.weight, storage.observed, storage.time)

    # ------------------------------------------------------------------ derived quantities

    @property
    def offset(self) -> NDArray[np.int64]:
        """Bounds of the tasks: the votes of task ``i`` are ``offset[i]:offset[i + 1]``."""
        return self._storage.offset

    @property
    def pairs(self) -> Pairs:
        """Pairs of worker and label that occur; without worker ids, all votes count as those of one worker."""
        if self.is_numeric:
            raise UsageError("this crowd holds numbers, not classes; use a numeric method such as 'median'")
        return self._storage.pairs

    @cached_property
    def worker_order(self) -> NDArray[np.int64]:
        """Permutation that sorts votes by worker and task."""
        return _freeze(argsort_codes(self.worker_codes, self.n_workers))

    @cached_property
    def vote_counts(self) -> NDArray[np.float64]:
        """Total weight of the votes for each class of each task, of shape (n_tasks, n_classes)."""
        cell = self.task.astype(np.int64) * self.n_classes + self._storage.label_codes
        total = np.bincount(cell, weights=self.stored_weight, minlength=self.n_tasks * self.n_classes)
        return _freeze(total.astype(np.float64).reshape(self.n_tasks, self.n_classes))

    @cached_property
    def votes_per_task(self) -> NDArray[np.int64]:
        """Number of rows of each task."""
        return _freeze(np.diff(self.offset))

    @cached_property
    def votes_per_worker(self) -> NDArray[np.int64]:
        """Number of rows of each worker."""
        return _freeze(np.bincount(self.worker_codes, minlength=self.n_workers))

    @cached_property
    def layout(self) -> Layout:
        """Votes in the form that the kernels read: sorted by task, each a pair of worker and label."""
        is_checked = self._storage.has_checked_codes
        return Layout(self.offset, self.pairs.vote_pairs, self.stored_weight, len(self.pairs), is_checked)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the contents; equal crowds have equal digests."""
        sha = hashlib.sha256()
        rows = self.rows
        for index in (self.tasks, self.workers, self.classes):
            sha.update(b"-" if index is None else pd.util.hash_array(index.to_numpy(dtype=object)).tobytes())
        # A slice of a weighted crowd may have weights that are all one.
        weight = None if rows.weight is None or (rows.weight == 1).all() else rows.weight
        for array in (rows.task, rows.worker, rows.label, weight, rows.observed):
            sha.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
        if rows.time is not None:
            sha.update(np.ascontiguousarray(rows.time).tobytes())
        if self.is_ordered:
            sha.update(b"ordered")
        return sha.hexdigest()

    # ------------------------------------------------------------------ selections

    def __getitem__(self, index: Any) -> Crowd:
        """Return the crowd of some tasks (slice, integer or boolean index), in the order of the index."""
        if isinstance(index, tuple) and len(index) == 2 and index[1] is Ellipsis:  # scikit-learn indexes arrays so
            index = index[0]
        if isinstance(index, slice) and index.step in (None, 1):
            # Votes are sorted by task: those of consecutive tasks are consecutive.
            start, stop, _ = index.indices(self.n_tasks)
            rows = np.arange(self.offset[start], self.offset[max(start, stop)])
            return self.replace_fields(rows, task=self.task[rows] - start, tasks=self.tasks[start:stop])
        positions = np.arange(self.n_tasks)[index if isinstance(index, slice) else np.asarray(index)]
        if positions.ndim != 1:
            raise UsageError("index a crowd by a slice, a mask or a list of task positions, for example crowd[[3]]")
        if len(np.unique(positions)) != len(positions):
            raise UsageError("a task can be selected only once; draw without replacement")
        new_code = _invert_selection(positions, self.n_tasks)
        rows = np.flatnonzero(new_code[self.task] >= 0)
        return self.replace_fields(rows, task=new_code[self.task[rows]], tasks=self.tasks[positions])

    def take(self, rows: ArrayLike) -> Crowd:
        """Select votes by row; the vocabularies stay the same.

        Parameters
        ----------
        rows : array-like
            Mask, or positions, of the votes to keep.

        Returns
        -------
        Crowd
            The selected votes.

        Examples
        --------
        >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
        >>> crowd.take([True, False]).n_votes
        1
        """
        selection = np.asarray(rows)
        return self.replace_fields(np.sort(np.arange(self.n_votes)[selection if selection.size else slice(0)]))

    def order_tasks(self, tasks: pd.DataFrame | pd.Series | Iterable[Any]) -> Crowd:
        """Put the tasks in a fixed order, so that arrays with a row per task can be matched to them.

        scikit-learn's transformers drop the index of a table. A learner takes their arrays if the crowd has the order of the
        table: ``make_pipeline(StandardScaler(), Raykar()).fit(X, crowd.order_tasks(X))``.

        Parameters
        ----------
        tasks : DataFrame, Series or iterable
            Table indexed by task, or task ids. Ids without votes become tasks without votes.

        Returns
        -------
        Crowd
            The same votes.

        Raises
        ------
        InputError
            If tasks with votes are missing, or an id occurs twice.

        Examples
        --------
        >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")])
        >>> crowd.order_tasks(["t2", "t1", "t3"]).tasks.tolist()
        ['t2', 't1', 't3']
        """
        ids = tasks.index if isinstance(tasks, pd.DataFrame | pd.Series) else pd.Index(list(tasks))
        if not ids.is_unique:
            raise InputError(f"tasks occur twice: {preview(ids[ids.duplicated()])}; keep one row per task")
        position = vocab.locate_ids(self.tasks, ids)
        is_absent = (position < 0) & (self.votes_per_task > 0)
        if is_absent.any():
            raise InputError(
                f"{int(is_absent.sum()):,} tasks with votes are missing in the order, for example "
                f"{preview(self.tasks[is_absent])}; it starts with {preview(ids)}. Name all tasks, or select some: crowd[...]"
            )
        own_ids = vocab.match_id_type(ids, self.tasks)
        return self.replace_fields(
            task=position[self.task], tasks=own_ids if own_ids.isin(self.tasks).all() else ids, has_task_order=True
        )

    def select_workers(self, workers: Iterable[Any]) -> Crowd:
        """Select the votes of some workers; tasks stay, even when they have no votes left.

        Parameters
        ----------
        workers : iterable
            Worker ids; their order becomes that of the new vocabulary.

        Returns
        -------
        Crowd
            The selected votes.

        Examples
        --------
        >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "bob", "cat")])
        >>> crowd.select_workers(["ann"])
        Crowd(1 vote: 2 tasks x 1 worker, 2 classes, 0.5 votes/task)
        """
        if self.workers is None:
            raise UsageError("this crowd has no worker ids, so workers cannot be selected")
        selection = vocab.as_vocabulary(workers, "worker")
        position = self.workers.get_indexer(selection)
        if (position < 0).any():
            raise InputError(f"unknown workers: {preview(selection[position < 0])}")
        new_code = _invert_selection(position, len(self.workers))
        rows = np.flatnonzero(new_code[self.worker_codes] >= 0)
        return self.replace_fields(rows, worker=new_code[self.worker_codes[rows]], workers=selection)

    def select_observed(self) -> Crowd:
        """Select the votes that workers cast; drop those that a completer filled in.

        Returns
        -------
        Crowd
            The observed votes.

        Examples
        --------
        >>> Crowd.from_triples([("t1", "ann", "cat")]).select_observed().n_votes
        1
        """
        return self if bool(self.observed.all()) else self.take(self.observed)

    def drop_workers(self) -> Crowd:
        """Drop the worker ids and count the observed votes for each class of each task.

        Returns
        -------
        Crowd
            A crowd without worker ids.

        Examples
        --------
        >>> Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "cat")]).drop_workers()
        Crowd(2 votes: 1 task, no worker ids, 1 class, 2.0 votes/task)
        """
        counts = self.select_observed().vote_counts
        task, label = np.nonzero(counts)
        return Crowd.from_codes(
            task,
            None,
            label,
            tasks=self.tasks,
            workers=None,
            classes=self.classes,
            weight=counts[task, label],
            duplicates="keep",
            has_task_order=self.has_task_order,
            ordered=self.is_ordered,
        )

    def hide(self, fraction: float = 0.2, *, random_state: int = 0) -> tuple[Crowd, Crowd]:
        """Split the votes at random into visible and held-out votes, to validate without gold.

        Parameters
        ----------
        fraction : float, default=0.2
            Fraction of the votes to hold out.
        random_state : int, default=0
            Seed.

        Returns
        -------
        visible, heldout : Crowd
            Both over the vocabularies of this crowd.

        Examples
        --------
        >>> crowd = Crowd.from_triples([(task, worker, "x") for task in range(10) for worker in "abcde"])
        >>> visible, heldout = crowd.hide(0.2)
        >>> visible.n_votes, heldout.n_votes
        (40, 10)
        """
        is_heldout = draw_heldout(self.n_votes, fraction, random_state)
        return self.take(~is_heldout), self.take(is_heldout)

    def limit_votes_per_task(self, n: int, *, random_state: int = 0) -> Crowd:
        """Keep at most ``n`` votes per task, drawn at random.

        Parameters
        ----------
        n : int
            Largest number of votes per task.
        random_state : int, default=0
            Seed.

        Returns
        -------
        Crowd
            The remaining votes.

        Examples
        --------
        >>> crowd = Crowd.from_triples([(task, worker, "x") for task in range(10) for worker in "abcde"])
        >>> crowd.limit_votes_per_task(2).n_votes
        20
        """
        if n < 1:
            raise UsageError(f"n must be 1 or more; got {n}")
        order, rank = shuffle_within_groups(self.task, self.n_tasks, np.random.default_rng(random_state))
        return self.take(np.sort(order[rank < n]))

    def split_tasks(self, n: int) -> list[Crowd]:
        """Split by task into ``n`` crowds with about equally many votes.

        Parameters
        ----------
        n : int
            Number of crowds.

        Returns
        -------
        list of Crowd
            Consecutive tasks, over the workers and classes of this crowd.

        Examples
        --------
        >>> crowd = Crowd.from_triples([(task, "ann", "x") for task in range(10)])
        >>> [len(chunk) for chunk in crowd.split_tasks(3)]
        [3, 4, 3]
        """
        if n < 1:
            raise UsageError(f"n must be 1 or more; got {n}")
        cuts = np.searchsorted(self.offset, np.linspace(0, self.n_votes, n + 1)[1:-1].round())
        edges = [0, *np.maximum.accumulate(cuts).tolist(), self.n_tasks]
        return [self[start:stop] for start, stop in pairwise(edges)]

    def replace_fields(self, rows: ArrayLike | None = None, **fields: Any) -> Crowd:
        """Return a crowd with some columns or vocabularies replaced.

        Parameters
        ----------
        rows : array-like of int, default=None
            Positions of the votes to keep; all by default.
        **fields
            Arguments of `from_codes`; columns have one value per kept vote.

        Returns
        -------
        Crowd
            The new crowd. Duplicate votes that this crowd accepted stay.

        Examples
        --------
        >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
        >>> crowd.replace_fields(classes=["tabby", "poodle"]).to_frame()["label"].tolist()
        ['tabby', 'poodle']
        """
        columns = self.rows if rows is None else self.rows.take(np.asarray(rows))
        unchanged = {
            "tasks": self.tasks,
            "workers": self.workers,
            "classes": self.classes,
            "duplicates": "keep",
            "has_task_order": self.has_task_order,
            "ordered": self.is_ordered,
        }
        return Crowd.from_codes(**(columns._asdict() | unchanged | fields))

    # ------------------------------------------------------------------ output

    def to_frame(self) -> pd.DataFrame:
        """Convert the votes to a table with one row per vote.

        Returns
        -------
        DataFrame
            Columns task, worker and label; and weight, observed and time unless all votes have the default.

        Examples
        --------
        >>> Crowd.from_triples([("t1", "ann", "cat")]).to_frame().to_dict("records")
        [{'task': 't1', 'worker': 'ann', 'label': 'cat'}]
        """
        rows = self.rows
        columns: dict[str, Any] = {"task": self.tasks.take(rows.task)}
        if self.workers is not None:
            columns["worker"] = self.workers.take(self.worker_codes)
        columns["label"] = rows.label if self.classes is None else self.classes.take(rows.label)
        if rows.weight is not None:
            columns["weight"] = rows.weight
        if rows.observed is not None:
            columns["observed"] = rows.observed
        if rows.time is not None:
            columns["time"] = to_timestamps(rows.time).to_pandas()
        return pd.DataFrame(columns)

    def to_shards(self, folder: str | os.PathLike[str], *, votes_per_shard: int | None = None) -> ShardedCrowd:
        """Write the votes to a folder of shards, which methods process one at a time.

        ``wisecrowd shard`` makes such a folder from files that are larger than memory.

        Parameters
        ----------
        folder : path-like
            New or empty folder.
        votes_per_shard : int, default=None
            Approximate number of votes per shard; 2^24 by default.

        Returns
        -------
        ShardedCrowd
            The crowd in the folder. Times, the ``observed`` column and the order of classes are not written.

        Examples
        --------
        >>> import tempfile
        >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")])
        >>> crowd.to_shards(tempfile.mkdtemp() + "/crowd", votes_per_shard=1)
        ShardedCrowd(2 votes: 2 tasks x 1 worker, 2 classes, in 2 shards)
        """
        from wisecrowd.data.sharded import VOTES_PER_SHARD, write_shards

        return write_shards(self, folder, VOTES_PER_SHARD if votes_per_shard is None else votes_per_shard)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the vote counts, so that scikit-learn's splitters see a target with ``n_tasks`` rows."""
        if copy is False:
            raise ValueError("a Crowd cannot become an array without a copy")
        if _is_called_by_metric():
            raise UsageError(
                "metrics of scikit-learn, such as scoring='accuracy', need one true class per task, and a crowd has votes; leave "
                "scoring out to score by held-out votes, or score by known truth: "
                "scoring=lambda model, X, y: model.score(X, truth[X.index])"
            )
        return np.array(self.vote_counts, dtype=dtype)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Crowd):
            return NotImplemented
        return self.shape == other.shape and self.n_votes == other.n_votes and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def _repr_html_(self) -> str:
        return render_html(repr(self), self[: min(self.n_tasks, MAX_ROWS)].to_frame())

    def __repr__(self) -> str:
        n_votes = self.n_votes if self.has_workers else self.weight.sum()
        workers = ", no worker ids" if self.workers is None else f" x {count_noun(len(self.workers), 'worker')}"
        noun = "ordered class" if self.is_ordered else "class"
        classes = "numeric" if self.classes is None else count_noun(len(self.classes), noun)
        n_filled = self.n_votes - int(self.observed.sum())
        return (
            f"Crowd({count_noun(round(n_votes), 'vote')}: {count_noun(self.n_tasks, 'task')}{workers}, {classes}, "
            f"{n_votes / max(self.n_tasks, 1):.1f} votes/task{f', {n_filled:,} filled in' if n_filled else ''})"
        )


def _describe_duplicates(rows: VoteRows, repeated: NDArray[np.int64], tasks: pd.Index, workers: pd.Index | None) -> str:
    """Return the message for rows that repeat an earlier task and worker."""
    task = preview([tasks[rows.task[repeated[0]]]])
    worker = "" if workers is None or rows.worker is None else preview([workers[rows.worker[repeated[0]]]])
    example = f"worker {worker} labelled task {task} twice" if worker else f"task {task} twice"
    return (
        f"{repeated.size:,} rows repeat an earlier (task, worker); for example {example}. "
        "Choose duplicates='first' or 'last' to keep one of them, 'distinct' to keep different labels once each, or "
        "'keep' to count all (--duplicates on the command line)"
    )


def _invert_selection(positions: NDArray[Any], n: int) -> NDArray[np.int32]:
    """Return the rank of each of ``n`` codes in ``positions``, -1 for codes that are not selected."""
    new_code = np.full(n, -1, dtype=np.int32)
    new_code[positions] = np.arange(len(positions), dtype=np.int32)
    return new_code


def _is_same_index(index: pd.Index | None, other: pd.Index | None) -> bool:
    return index is other or (index is not None and other is not None and index.equals(other))


def _is_called_by_metric() -> bool:
    """Return whether a metric of scikit-learn converts votes, whose own error would not say what to do."""
    frame = sys._getframe(2)
    for _ in range(_MAX_CALLERS):
        module = frame.f_globals.get("__name__", "")
        if module.startswith("sklearn.metrics.") and not module.endswith("._scorer"):
            return True
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return False


def _is_range_from_zero(index: pd.Index) -> bool:
    return index.dtype.kind in "iu" and bool((index == np.arange(len(index))).all())


def _freeze(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array
