"""Votes that are sets of labels: every worker marks all labels that apply to a task."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from wisecrowd.data import vocabulary as vocab
from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.answers_by_task import AnswersByTask, compute_answers_digest, order_by_task
from wisecrowd.data.arrow_tables import DataFrameLike, as_table
from wisecrowd.data.rows import as_codes
from wisecrowd.errors import InputError, check_choice, preview
from wisecrowd.utils.text import count_noun

#: Separators of labels in one cell, in the order in which they are tried.
SEPARATORS = ("|", ";", ",")
#: Texts that mean the empty set.
EMPTY_SETS = ("", "∅", "[]", "{}")


class DistinctSets(NamedTuple):
    """Distinct sets of labels in a crowd, by size and then by their labels.

    Parameters
    ----------
    code : ndarray of shape (n_votes,)
        Number of the set of each assignment, a vote of a worker on a task.
    offset : ndarray of shape (n_sets + 1,)
        Set ``n`` has the labels ``label[offset[n]:offset[n + 1]]``.
    label : ndarray
        Positions in the labels of the crowd.
    """

    code: NDArray[np.int64]
    offset: NDArray[np.int64]
    label: NDArray[np.int32]


class LabelSetCrowd(AnswersByTask):
    """Sparse, immutable votes on label sets.

    An *assignment* is a task that a worker has answered. Assignment ``n`` is worker ``workers[worker[n]]`` on task
    ``tasks[task[n]]``; the labels that the worker marked are ``label[offset[n]:offset[n + 1]]``, and all other labels count as not
    marked. A worker who marked nothing has answered, too. Assignments are sorted by task and worker.

    Build such a crowd with `from_frame` (one set per row) or `from_marks` (one mark per row).

    Parameters
    ----------
    task, worker : array-like of shape (n_votes,)
        Positions in ``tasks`` and ``workers``.
    assignment, label : array-like of shape (n_marks,)
        Marks: position of the assignment, and position in ``labels``.
    tasks, workers, labels : Index
        Vocabularies.

    Raises
    ------
    InputError
        If codes are invalid, an assignment repeats, or a label is marked twice.

    Examples
    --------
    >>> frame = {"task": ["t1", "t1"], "worker": ["ann", "bob"], "labels": [["cat", "dog"], []]}
    >>> crowd = LabelSetCrowd.from_frame(frame)
    >>> crowd
    LabelSetCrowd(2 votes: 1 task x 2 workers, 2 labels, 1.0 labels/vote)
    >>> crowd.to_frame()["labels"].tolist()
    [['cat', 'dog'], []]
    """

    answer_type: ClassVar[AnswerType] = "multilabel"

    def __init__(
        self,
        task: ArrayLike,
        worker: ArrayLike,
        assignment: ArrayLike,
        label: ArrayLike,
        *,
        tasks: pd.Index,
        workers: pd.Index,
        labels: pd.Index,
    ) -> None:
        self.tasks, self.workers, self.labels = (
            vocab.as_vocabulary(index, noun)
            for index, noun in ((tasks, "task"), (workers, "worker"), (labels, "label"))
        )
        task_codes = as_codes(task, len(self.tasks), "task")
        worker_codes = as_codes(worker, len(self.workers), "worker")
        mark = as_codes(assignment, len(task_codes), "assignment")
        mark_label = as_codes(label, len(self.labels), "label")
        if len(task_codes) != len(worker_codes) or len(mark) != len(mark_label):
            raise InputError("task and worker need one value per assignment, assignment and label one per mark")
        advice = "Keep one row each, or choose duplicates='first', 'last' or 'union'"
        order = order_by_task(task_codes, worker_codes, self.tasks, self.workers, advice=advice)
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        mark_key = rank[mark] * max(len(self.labels), 1) + mark_label
        mark_order = np.argsort(mark_key, kind="stable")
        if (np.diff(mark_key[mark_order]) == 0).any():
            raise InputError("a label is marked twice in one set; list each label once")
        self.task, self.worker = task_codes[order], worker_codes[order]
        self.mark = rank[mark][mark_order]
        self.label = mark_label[mark_order]
        self.offset = np.concatenate([[0], np.cumsum(np.bincount(self.mark, minlength=len(order)))]).astype(np.int64)
        for array in (self.task, self.worker, self.mark, self.label, self.offset):
            array.setflags(write=False)

    # ------------------------------------------------------------------ construction

    @classmethod
    def from_frame(
        cls,
        frame: DataFrameLike,
        *,
        task: str = "task",
        worker: str = "worker",
        label: str = "labels",
        separator: str | None = None,
        tasks: Sequence[Any] | pd.Index | None = None,
        workers: Sequence[Any] | pd.Index | None = None,
        labels: Sequence[Any] | pd.Index | None = None,
        duplicates: Literal["error", "first", "last", "union"] = "error",
    ) -> LabelSetCrowd:
        """Build a crowd from a table with one label set per row.

        Parameters
        ----------
        frame : DataFrame, Arrow table or dict of columns
            Table of pandas, polars, pyarrow, duckdb, or any other library that exports Arrow streams.
        task, worker, label : str
            Names of the columns. The label column holds lists, JSON lists as text, or labels with a separator between them. An
            empty list, an empty text or ∅ is the empty set.
        separator : str, default=None
            Separator of labels in a text; by default the first of ``|``, ``;`` and ``,`` that occurs.
        tasks, workers, labels : sequence or Index, default=None
            Vocabularies in their order. ``labels`` may contain labels that nobody marked.
        duplicates : {"error", "first", "last", "union"}, default="error"
            Treatment of several rows of one worker on one task: raise, keep the first or the last, or unite their sets.

        Returns
        -------
        LabelSetCrowd

        Raises
        ------
        InputError
            If a column is absent or a value is missing.

        Examples
        --------
        >>> frame = {"task": [1, 1], "worker": ["ann", "bob"], "labels": ["cat|dog", ""]}
        >>> LabelSetCrowd.from_frame(frame).labels.tolist()
        ['cat', 'dog']
        """
        check_choice("duplicates", duplicates, ("error", "first", "last", "union"))
        table = as_table(frame, [task, worker, label])
        absent = [name for name in (task, worker, label) if name not in table.column_names]
        if absent:
            raise InputError(
                f"no column {preview(absent)} among {preview(table.column_names, 12)}. Name your columns, for example "
                'task="item", worker="rater", label="answers"'
            )
        task_codes, task_index = vocab.encode_ids(table[task], "task", tasks)
        worker_codes, worker_index = vocab.encode_ids(table[worker], "worker", workers)
        row, names = _flatten_sets(table[label], separator)
        label_codes, label_index = vocab.encode_ids(names, "label", labels)
        # A label that a cell repeats is marked once.
        marks = np.unique(np.stack([row, label_codes.astype(np.int64)], axis=1), axis=0)
        return cls._merge(task_codes, worker_codes, marks, task_index, worker_index, label_index, duplicates=duplicates)

    @classmethod
    def from_marks(
        cls,
        frame: DataFrameLike,
        *,
        assignments: DataFrameLike | None = None,
        empty_label: Any = None,
        labels: Sequence[Any] | pd.Index | None = None,
    ) -> LabelSetCrowd:
        """Build a crowd from a table with one marked label per row.

        Parameters
        ----------
        frame : DataFrame, Arrow table or dict of columns
            Columns task, worker and label; several rows per task and worker.
        assignments : DataFrame, Arrow table or dict of columns, default=None
            Columns task and worker: who has seen what. A pair without marks is an empty set. By default, the pairs in ``frame``.
        empty_label : object, default=None
            Label that stands for the empty set, such as "none". It is not a label of the crowd.
        labels : sequence or Index, default=None
            Labels in their order.

        Returns
        -------
        LabelSetCrowd

        Examples
        --------
        >>> marks = {"task": ["t1", "t1", "t1"], "worker": ["ann", "ann", "bob"], "label": ["cat", "dog", "none"]}
        >>> LabelSetCrowd.from_marks(marks, empty_label="none").to_frame()["labels"].tolist()
        [['cat', 'dog'], []]
        """
        marks = as_table(frame, ["task", "worker", "label"]).select(["task", "worker", "label"])
        pairs = marks.select(["task", "worker"])
        if assignments is not None:
            others = as_table(assignments, ["task", "worker"]).select(["task", "worker"])
            pairs = pa.concat_tables([pairs, others], promote_options="permissive")
        task_codes, task_index = vocab.encode_ids(pairs["task"], "task")
        worker_codes, worker_index = vocab.encode_ids(pairs["worker"], "worker")
        key = task_codes.astype(np.int64) * len(worker_index) + worker_codes
        distinct, assignment = np.unique(key, return_inverse=True)
        vocab.check_no_missing(marks["label"], "label")
        rows = np.arange(marks.num_rows)
        if empty_label is not None:
            rows = np.flatnonzero(~pc.equal(marks["label"], empty_label).to_numpy())
        label_codes, label_index = vocab.encode_ids(marks["label"].take(pa.array(rows)), "label", labels)
        unique_marks = np.unique(np.stack([assignment[rows], label_codes.astype(np.int64)], axis=1), axis=0)
        task_of, worker_of = np.divmod(distinct, len(worker_index))
        return cls(
            task_of, worker_of, unique_marks[:, 0], unique_marks[:, 1],
            tasks=task_index, workers=worker_index, labels=label_index,
        )  # fmt: skip

    @classmethod
    def _merge(
        cls,
        task: NDArray[Any],
        worker: NDArray[Any],
        marks: NDArray[np.int64],
        tasks: pd.Index,
        workers: pd.Index,
        labels: pd.Index,
        *,
        duplicates: str,
    ) -> LabelSetCrowd:
        """Build a crowd after applying the rule for repeated rows."""
        options = {"tasks": tasks, "workers": workers, "labels": labels}
        if duplicates == "error" or not len(task):
            return cls(task, worker, marks[:, 0], marks[:, 1], **options)
        key = task.astype(np.int64) * len(workers) + worker
        distinct, first, group = np.unique(key, return_index=True, return_inverse=True)
        if duplicates == "last":
            _, from_end = np.unique(key[::-1], return_index=True)
            first = len(key) - 1 - from_end
        if duplicates != "union":
            is_kept = np.zeros(len(key), dtype=bool)
            is_kept[first] = True
            marks = marks[is_kept[marks[:, 0]]]
        united = np.unique(np.stack([group[marks[:, 0]], marks[:, 1]], axis=1), axis=0)
        task_of, worker_of = np.divmod(distinct, len(workers))
        return cls(task_of, worker_of, united[:, 0], united[:, 1], **options)

    # ------------------------------------------------------------------ sizes and derived quantities

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.labels)

    @cached_property
    def mark_counts(self) -> NDArray[np.float64]:
        """Number of marks of each label on each task, of shape (n_tasks, n_labels)."""
        cell = self.task[self.mark].astype(np.int64) * self.n_labels + self.label
        counts = np.bincount(cell, minlength=self.n_tasks * self.n_labels)
        return counts.astype(np.float64).reshape(self.n_tasks, self.n_labels)

    @cached_property
    def distinct_sets(self) -> DistinctSets:
        """Distinct sets of labels in the crowd, and the number of the set that each assignment (task and worker) has."""
        size = np.diff(self.offset)
        code = np.zeros(self.n_votes, dtype=np.int64)
        sizes: list[NDArray[np.int64]] = []
        labels: list[NDArray[np.int32]] = [np.empty(0, dtype=np.int32)]
        n_sets = 0
        for width in np.unique(size):  # sets of one size form a table, whose distinct rows are found by sorting
            rows = np.flatnonzero(size == width)
            table = self.label[self.offset[rows][:, None] + np.arange(width)]
            if width == 0:
                distinct, number = table[:1], np.zeros(len(rows), dtype=np.int64)
            else:
                distinct, number = np.unique(table, axis=0, return_inverse=True)
            code[rows] = n_sets + number.ravel()
            n_sets += len(distinct)
            sizes.append(np.full(len(distinct), width, dtype=np.int64))
            labels.append(distinct.ravel())
        offset = np.concatenate([[0], *([np.cumsum(np.concatenate(sizes))] if sizes else [])]).astype(np.int64)
        return DistinctSets(code, offset, np.concatenate(labels))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the contents; equal crowds have equal digests."""
        vocabularies = (self.tasks, self.workers, self.labels)
        return compute_answers_digest("label sets", vocabularies, (self.task, self.worker, self.mark, self.label))

    # ------------------------------------------------------------------ selections

    def take(self, rows: ArrayLike) -> LabelSetCrowd:
        """Select assignments; the vocabularies stay the same.

        Parameters
        ----------
        rows : array-like
            Mask, or positions, of the assignments to keep.

        Returns
        -------
        LabelSetCrowd

        Examples
        --------
        >>> frame = {"task": ["t1", "t1"], "worker": ["ann", "bob"], "labels": [["cat"], ["dog"]]}
        >>> LabelSetCrowd.from_frame(frame).take([True, False]).n_votes
        1
        """
        kept_votes = self._select_rows(rows)
        rank = np.full(self.n_votes, -1, dtype=np.int64)
        rank[kept_votes] = np.arange(len(kept_votes))
        is_kept = rank[self.mark] >= 0
        return LabelSetCrowd(
            self.task[kept_votes], self.worker[kept_votes], rank[self.mark[is_kept]], self.label[is_kept],
            tasks=self.tasks, workers=self.workers, labels=self.labels,
        )  # fmt: skip

    # ------------------------------------------------------------------ output

    def to_frame(self) -> pd.DataFrame:
        """Convert the votes to a table with one row per assignment.

        Returns
        -------
        DataFrame
            Columns task, worker and labels (lists).

        Examples
        --------
        >>> LabelSetCrowd.from_frame({"task": ["t"], "worker": ["ann"], "labels": ["b|a"]}).to_frame()["labels"][0]
        ['a', 'b']
        """
        names = self.labels.to_numpy(dtype=object)[self.label]
        sets = [part.tolist() for part in np.split(names, self.offset[1:-1])] if self.n_votes else []
        return pd.DataFrame(
            {
                "task": self.tasks.take(self.task),
                "worker": self.workers.take(self.worker),
                "labels": pd.Series(sets, dtype=object),
            }
        )

    def __repr__(self) -> str:
        per_vote = len(self.label) / max(self.n_votes, 1)
        return (
            f"LabelSetCrowd({count_noun(self.n_votes, 'vote')}: {count_noun(self.n_tasks, 'task')} x "
            f"{count_noun(self.n_workers, 'worker')}, {count_noun(self.n_labels, 'label')}, {per_vote:.1f} labels/vote)"
        )


def _flatten_sets(column: pa.ChunkedArray, separator: str | None) -> tuple[NDArray[np.int64], pa.ChunkedArray]:
    """Return the row and the name of every label in a column of sets."""
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        vocab.check_no_missing(column, "label set")
        array = column.combine_chunks()
        row = pc.list_parent_indices(array).to_numpy(zero_copy_only=False).astype(np.int64)
        names = pc.list_flatten(array)
        return row, pa.chunked_array(
            [names.cast(names.type.value_type) if pa.types.is_dictionary(names.type) else names]
        )
    if pa.types.is_null(column.type):
        raise InputError("the label column is empty; expected lists of labels, or labels separated by |")
    texts = column.cast(pa.string()).to_pylist()
    missing = [number for number, text in enumerate(texts) if text is None]
    if missing:
        raise InputError(
            f"{count_noun(len(missing), 'label set')} missing (row {missing[0]}); write an empty set as []"
        )
    cells = [
        _parse_set(text.strip(), number) if text.strip().startswith("[") else text for number, text in enumerate(texts)
    ]
    if separator is None:
        plain = [cell for cell in cells if isinstance(cell, str)]
        separator = next((mark for mark in SEPARATORS if any(mark in cell for cell in plain)), SEPARATORS[0])
    sets: Iterable[list[Any]] = (
        cell
        if isinstance(cell, list)
        else [part.strip() for part in cell.split(separator) if part.strip() not in EMPTY_SETS]
        for cell in cells
    )
    rows: list[int] = []
    flat: list[Any] = []
    for number, labels in enumerate(sets):
        rows += [number] * len(labels)
        flat += labels
    if not flat:
        return np.empty(0, dtype=np.int64), pa.chunked_array([pa.array([], type=pa.string())])
    return np.array(rows, dtype=np.int64), vocab.as_column(flat, "label")


def _parse_set(text: str, row: int) -> list[Any]:
    """Parse a JSON list of labels."""
    try:
        labels = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(
            f'row {row}: {preview([text])} is no list of labels; write ["cat", "dog"] or cat|dog'
        ) from None
    if not all(isinstance(label, str | int | bool) for label in labels):
        raise InputError(
            f"row {row}: {preview([text])} contains something that is no label; use texts or whole numbers"
        )
    return list(labels)
