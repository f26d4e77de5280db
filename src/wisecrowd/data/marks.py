"""Votes that mark objects: every worker marks all objects of a task, each with a place and a class."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from wisecrowd.data import vocabulary as vocab
from wisecrowd.data.answers_by_task import AnswersByTask, compute_answers_digest, order_by_task
from wisecrowd.data.arrow_tables import DataFrameLike, as_table
from wisecrowd.data.polygon_rings import PolygonRings
from wisecrowd.data.rows import as_codes
from wisecrowd.errors import InputError, preview
from wisecrowd.utils.text import count_noun

#: Coordinates beyond this size lose precision when areas are computed.
MAX_COORDINATE = 1e12


class MarkCrowd(AnswersByTask):
    """Sparse, immutable marks of workers on tasks, such as boxes on images or spans of texts.

    An *assignment* is a task that a worker has seen. Assignment ``n`` is worker ``workers[worker[n]]`` on task
    ``tasks[task[n]]``, and its marks are the rows ``offset[n]:offset[n + 1]`` of ``coordinates`` and ``label``. A worker who saw
    a task and marked nothing has an assignment without marks. Assignments are sorted by task and worker, and the marks of an
    assignment by their coordinates and class.

    A subclass names its coordinates and checks them. Build a crowd with ``from_frame``.

    Parameters
    ----------
    task, worker : array-like of shape (n_votes,)
        Positions in ``tasks`` and ``workers``.
    assignment, label : array-like of shape (n_marks,)
        Position of the assignment of a mark, and position of its class in ``classes``.
    coordinates : array-like of shape (n_marks, n_coordinates)
        Place of every mark.
    tasks, workers, classes : Index
        Vocabularies.

    Raises
    ------
    InputError
        If codes or coordinates are invalid, or an assignment repeats.
    """

    #: Columns of ``coordinates``.
    coordinate_names: ClassVar[tuple[str, ...]]
    #: Columns of tables with the place of a mark; by default, those of ``coordinates``.
    place_columns: ClassVar[tuple[str, ...]] = ()
    #: Word for one mark, for messages. It is the class of marks that have none.
    noun: ClassVar[str]
    #: Word for several marks.
    plural: ClassVar[str]
    #: Whether marks have a size, such as an area.
    has_size: ClassVar[bool] = True

    def __init__(
        self,
        task: ArrayLike,
        worker: ArrayLike,
        assignment: ArrayLike,
        label: ArrayLike,
        coordinates: ArrayLike,
        *,
        tasks: pd.Index,
        workers: pd.Index,
        classes: pd.Index,
    ) -> None:
        self.tasks, self.workers, self.classes = (
            vocab.as_vocabulary(index, noun)
            for index, noun in ((tasks, "task"), (workers, "worker"), (classes, "label"))
        )
        task_codes = as_codes(task, len(self.tasks), "task")
        worker_codes = as_codes(worker, len(self.workers), "worker")
        mark = as_codes(assignment, len(task_codes), "assignment")
        mark_label = as_codes(label, len(self.classes), "label")
        places = np.asarray(coordinates, dtype=np.float64).reshape(-1, len(self.coordinate_names))
        if len(task_codes) != len(worker_codes) or not len(mark) == len(mark_label) == len(places):
            raise InputError(
                "task and worker need one value per assignment; assignment, label and coordinates one per mark"
            )
        order = order_by_task(
            task_codes, worker_codes, self.tasks, self.workers,
            noun="repeated assignment", verb="has", advice="List each assignment once",
        )  # fmt: skip
        self._check_places(places, lambda row: self._describe_mark(task_codes, worker_codes, mark, row))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        # Sorted by contents, so that neither the order of rows nor the names of workers influence a result.
        mark_order = np.lexsort((mark_label, *places.T[::-1], rank[mark]))
        columns = np.column_stack([rank[mark], mark_label, places])[mark_order]
        is_new = np.append(True, (np.diff(columns, axis=0) != 0).any(axis=1)) if len(columns) else np.zeros(0, bool)
        mark_order = mark_order[is_new]  # a mark that a worker made twice counts once
        self.task, self.worker = task_codes[order], worker_codes[order]
        self.mark = rank[mark][mark_order]
        self.label = mark_label[mark_order]
        self.coordinates = places[mark_order]
        self.offset = np.concatenate([[0], np.cumsum(np.bincount(self.mark, minlength=len(order)))]).astype(np.int64)
        for array in (self.task, self.worker, self.mark, self.label, self.coordinates, self.offset):
            array.setflags(write=False)

    def get_rings(self) -> PolygonRings | None:
        """Return the vertices of every mark, if marks are polygons.

        Returns
        -------
        PolygonRings or None
        """
        return None

    # ------------------------------------------------------------------ construction

    @classmethod
    def from_frame(
        cls,
        frame: DataFrameLike,
        *,
        assignments: DataFrameLike | None = None,
        columns: Mapping[str, str] | None = None,
        tasks: Sequence[Any] | pd.Index | None = None,
        workers: Sequence[Any] | pd.Index | None = None,
        classes: Sequence[Any] | pd.Index | None = None,
    ) -> Self:
        """Build a crowd from a table with one mark per row.

        A row whose coordinates are all empty is an assignment without marks: the worker saw the task and marked nothing. A mark
        that a worker made twice counts once.

        Parameters
        ----------
        frame : DataFrame, Arrow table or dict of columns
            Table of pandas, polars, pyarrow, duckdb, or any other library that exports Arrow streams. Columns task, worker, the
            coordinates, and optionally label.
        assignments : DataFrame, Arrow table or dict of columns, default=None
            Columns task and worker: who has seen what. By default, the pairs in ``frame``.
        columns : mapping of str to str, default=None
            Names of columns by role, where they differ: ``{"task": "image", "label": "category"}``.
        tasks, workers, classes : sequence or Index, default=None
            Vocabularies in their order.

        Returns
        -------
        MarkCrowd
            A crowd of this class.

        Raises
        ------
        InputError
            If a column is absent, or a value is missing or invalid.
        """
        places_by_role = cls.place_columns or cls.coordinate_names
        names = {role: role for role in ("task", "worker", "label", *places_by_role)} | dict(columns or {})
        table = as_table(frame, list(names.values()))
        required = [names[role] for role in ("task", "worker", *places_by_role)]
        absent = [name for name in required if name not in table.column_names]
        if absent:
            raise InputError(
                f"no column {preview(absent)} among {preview(table.column_names, 12)}; {cls.plural} need "
                f'{", ".join(required)}. Name your columns, for example columns={{"task": "image"}}'
            )
        pairs = table.select([names["task"], names["worker"]]).rename_columns(["task", "worker"])
        if assignments is not None:
            others = as_table(assignments, ["task", "worker"]).select(["task", "worker"])
            try:
                pairs = pa.concat_tables([pairs, others], promote_options="permissive")
            except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
                raise InputError(f"ids of marks and of assignments have different types: {error}") from None
        task_codes, task_index = vocab.encode_ids(pairs["task"], "task", tasks)
        worker_codes, worker_index = vocab.encode_ids(pairs["worker"], "worker", workers)
        key = task_codes.astype(np.int64) * len(worker_index) + worker_codes
        distinct, assignment = np.unique(key, return_inverse=True)
        places, rows = cls._read_places(table, names)
        if names["label"] in table.column_names:
            label_codes, class_index = vocab.encode_ids(table[names["label"]].take(pa.array(rows)), "label", classes)
        elif classes is not None and len(classes) != 1:
            raise InputError(f"there is no label column, so classes must have one entry; got {preview(classes)}")
        else:
            class_index = pd.Index([cls.noun] if classes is None else classes)
            label_codes = np.zeros(len(rows), dtype=np.int32)
        task_of, worker_of = np.divmod(distinct, max(len(worker_index), 1))
        return cls(
            task_of, worker_of, assignment[rows], label_codes, places,
            tasks=task_index, workers=worker_index, classes=class_index,
        )  # fmt: skip

    @classmethod
    def _read_places(cls, table: pa.Table, names: Mapping[str, str]) -> tuple[Any, NDArray[np.int64]]:
        """Return the coordinates of the rows with marks, and the positions of these rows."""
        values, missing = [], []
        for role in cls.coordinate_names:
            column = table[names[role]]
            if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
                column = _parse_numbers(column, names[role])
            elif pa.types.is_null(column.type):
                column = column.cast(pa.float64())
            elif not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
                raise InputError(f"the column {names[role]} holds {column.type}; expected numbers")
            missing.append(vocab.find_missing(column))
            values.append(column.cast(pa.float64(), safe=False).to_numpy())
        absent = np.stack(missing, axis=1) if values else np.zeros((table.num_rows, 0), bool)
        partial = np.flatnonzero(absent.any(axis=1) & ~absent.all(axis=1))
        if partial.size:
            raise InputError(
                f"{count_noun(partial.size, 'row')} with some coordinates missing (row {partial[0]}); give all of "
                f"{', '.join(names[role] for role in cls.coordinate_names)}, or none for a worker who marked nothing"
            )
        rows = np.flatnonzero(~absent.all(axis=1))
        return np.stack(values, axis=1)[rows], rows

    @classmethod
    @abstractmethod
    def _find_invalid(cls, coordinates: NDArray[np.float64]) -> tuple[NDArray[np.bool_], str]:
        """Return which places are impossible, and what was expected instead."""

    def _check_places(self, places: NDArray[np.float64], describe: Any) -> None:
        """Raise if coordinates are not finite or make no valid mark."""
        is_wild = ~(np.abs(places) <= MAX_COORDINATE).all(axis=1)
        is_invalid, expectation = self._find_invalid(places)
        for rows, expected in ((is_wild, f"finite numbers up to {MAX_COORDINATE:g}"), (is_invalid, expectation)):
            if rows.any():
                row = int(np.flatnonzero(rows)[0])
                values = ", ".join(
                    f"{name}={value:g}" for name, value in zip(self.coordinate_names, places[row], strict=True)
                )
                raise InputError(
                    f"{count_noun(int(rows.sum()), f'invalid {self.noun}')}, for example {values} of "
                    f"{describe(row)}; expected {expected}. Correct or remove them"
                )

    def _describe_mark(self, task: Any, worker: Any, mark: Any, row: int) -> str:
        """Return the worker and the task of a mark, for messages."""
        return f"worker {preview([self.workers[worker[mark[row]]]])} on task {preview([self.tasks[task[mark[row]]]])}"

    # ------------------------------------------------------------------ sizes and derived quantities

    @property
    def n_marks(self) -> int:
        """Number of marks."""
        return len(self.mark)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @cached_property
    def marks_per_worker(self) -> NDArray[np.int64]:
        """Number of marks of each worker."""
        return np.bincount(self.mark_worker, minlength=self.n_workers)

    @cached_property
    def mark_task(self) -> NDArray[np.int32]:
        """Task of every mark, as a code."""
        return self.task[self.mark]

    @cached_property
    def mark_worker(self) -> NDArray[np.int32]:
        """Worker of every mark, as a code."""
        return self.worker[self.mark]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the contents; equal crowds have equal digests."""
        vocabularies = (self.tasks, self.workers, self.classes)
        arrays = (self.task, self.worker, self.mark, self.label, self.coordinates)
        return compute_answers_digest(self.answer_type, vocabularies, arrays)

    # ------------------------------------------------------------------ selection

    def take(self, rows: ArrayLike) -> Self:
        """Select assignments; the vocabularies stay the same.

        Parameters
        ----------
        rows : array-like
            Mask, or positions, of the assignments to keep.

        Returns
        -------
        MarkCrowd
            A crowd of this class.
        """
        selected_votes = self._select_rows(rows)
        rank = np.full(self.n_votes, -1, dtype=np.int64)
        rank[selected_votes] = np.arange(len(selected_votes))
        is_kept = rank[self.mark] >= 0
        return type(self)(
            self.task[selected_votes], self.worker[selected_votes], rank[self.mark[is_kept]], self.label[is_kept],
            self._take_places(np.flatnonzero(is_kept)), tasks=self.tasks, workers=self.workers, classes=self.classes,
        )  # fmt: skip

    def _take_places(self, rows: NDArray[np.int64]) -> Any:
        """Return the places of some marks, as the constructor takes them."""
        return self.coordinates[rows]

    # ------------------------------------------------------------------ output

    def to_frame(self) -> pd.DataFrame:
        """Convert the votes to a table with one row per mark, and one per assignment without marks.

        Returns
        -------
        DataFrame
            Columns task, worker, the coordinates and label; coordinates and label are missing where nothing was marked.
        """
        empty = np.flatnonzero(np.diff(self.offset) == 0)
        assignment = np.concatenate([self.mark, empty])
        row = np.concatenate([np.arange(self.n_marks), np.full(len(empty), -1)])
        order = np.argsort(assignment, kind="stable")
        assignment, row = assignment[order], row[order]
        frame = pd.DataFrame(
            {"task": self.tasks.take(self.task[assignment]), "worker": self.workers.take(self.worker[assignment])}
        )
        for name, column in self._format_places(row).items():
            frame[name] = column
        codes = np.append(self.label, -1)[row]
        frame["label"] = np.array([*self.classes, None], dtype=object)[codes]  # code -1 is the last entry
        return frame

    def _format_places(self, row: NDArray[np.int64]) -> dict[str, Any]:
        """Return the columns of places of some marks; row -1 is a vote without marks."""
        places = np.vstack([self.coordinates, np.full((1, len(self.coordinate_names)), np.nan)])[row]
        return dict(zip(self.coordinate_names, self.format_coordinates(places), strict=True))

    @classmethod
    def format_coordinates(cls, coordinates: NDArray[np.float64]) -> list[Any]:
        """Return coordinates as columns of a table, in the type that users expect.

        Parameters
        ----------
        coordinates : ndarray of shape (n, n_coordinates)
            Coordinates; NaN where nothing was marked.

        Returns
        -------
        list of array
            One column per coordinate.
        """
        return list(coordinates.T)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({count_noun(self.n_marks, self.noun)} in "
            f"{count_noun(self.n_votes, 'vote')}: {count_noun(self.n_tasks, 'task')} x "
            f"{count_noun(self.n_workers, 'worker')}, {count_noun(self.n_classes, 'class')})"
        )


def _parse_numbers(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return texts as numbers, with empty texts as missing values."""
    text = pc.utf8_trim_whitespace(column)
    text = pc.if_else(pc.equal(text, ""), pa.scalar(None, text.type), text)
    try:
        return text.cast(pa.float64())
    except pa.ArrowInvalid as error:
        raise InputError(f"the column {name} must hold numbers: {error}") from None
