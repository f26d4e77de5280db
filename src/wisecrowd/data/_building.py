"""How a crowd comes to be: from tables, triples, matrices and counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from wisecrowd.data import vocabulary as vocab
from wisecrowd.data.rows import Duplicates
from wisecrowd.data.timestamps import read_times
from wisecrowd.errors import InputError, one_of, some

Missing: TypeAlias = Literal["error", "drop"]
Vocabulary: TypeAlias = Sequence[Any] | pd.Index | NDArray[Any] | None


class Buildable:
    """The ways to make a crowd out of other data, mixed into `Crowd`."""

    if TYPE_CHECKING:

        def __init__(self, task: ArrayLike, worker: ArrayLike | None, label: ArrayLike, **parts: Any) -> None: ...

    @classmethod
    def from_frame(
        cls,
        frame: Any,
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
        duplicates: Duplicates = "error",
        missing: Missing = "error",
    ) -> Self:
        """Build a crowd from any dataframe that speaks Arrow (pandas, polars, pyarrow, duckdb) or a dict of columns.

        ``tasks``, ``workers`` and ``classes`` fix the vocabularies and their order, and may name what nobody
        labelled or used. ``worker=None`` reads a crowd without worker ids; ``numeric=True`` reads labels as numbers.
        ``weight``, ``observed`` and ``time`` name columns, too: how much a vote counts, whether anybody cast it, and when (a date,
        text such as 2024-05-31 14:00, or seconds since 1970; it may be missing).

        >>> from wisecrowd import Crowd
        >>> frame = pd.DataFrame({"task": [1, 1, 2], "worker": ["a", "b", "a"], "label": ["x", "y", "y"]})
        >>> Crowd.from_frame(frame, tasks=[1, 2, 3]).shape
        (3, 2)
        """
        one_of("missing", missing, ("error", "drop"))
        columns = [name for name in (task, worker, label, weight, observed) if name is not None]
        wanted = columns if time is None else [*columns, time]
        table = as_table(frame, wanted)
        absent = [name for name in wanted if name not in table.column_names]
        if absent:
            there = frame.columns if isinstance(frame, pd.DataFrame) else table.column_names
            raise InputError(
                f"no column {some(absent)} among {some(there, 12)}; name yours by argument, "
                f'for example task="question", worker="rater", label="answer"'
            )
        if missing == "drop":
            holes = np.logical_or.reduce([vocab.missing_mask(table[name]) for name in columns])
            table = table.filter(pa.array(~holes)) if holes.any() else table
        task_codes, task_index = vocab.encode(table[task], "task", tasks)
        worker_codes, worker_index = (None, None) if worker is None else vocab.encode(table[worker], "worker", workers)
        if numeric:
            vocab.refuse_missing(table[label], "label")
            labels: NDArray[Any] = _numbers(table[label])
            class_index = None
        else:
            labels, class_index = vocab.encode(table[label], "label", classes)
            _refuse_fractions(class_index)
        return cls(
            task_codes,
            worker_codes,
            labels,
            tasks=task_index,
            workers=worker_index,
            classes=class_index,
            weight=None if weight is None else _numbers(table[weight]),
            observed=None if observed is None else _marks(table[observed]),
            time=None if time is None else read_times(table[time]),
            duplicates=duplicates if worker is not None else "keep",
            tasks_given=tasks is not None,
        )

    @classmethod
    def from_triples(cls, triples: Iterable[Sequence[Any]], **options: Any) -> Self:
        """Build a crowd from (task, worker, label) triples; ``options`` as for :meth:`from_frame`.

        >>> from wisecrowd import Crowd
        >>> Crowd.from_triples([(0, "ann", True), (1, "ann", False)]).n_votes
        2
        """
        rows = list(triples)
        bad = next((row for row in rows if len(row) != 3), None)
        if bad is not None:
            raise InputError(f"each row must be (task, worker, label); got {some([bad])}")
        columns: list[Sequence[Any]] = list(zip(*rows, strict=True)) if rows else [(), (), ()]
        return cls.from_frame(dict(zip(("task", "worker", "label"), map(list, columns), strict=True)), **options)

    @classmethod
    def from_matrix(
        cls,
        matrix: ArrayLike | pd.DataFrame,
        *,
        missing: object = None,
        tasks: Vocabulary = None,
        workers: Vocabulary = None,
        classes: Vocabulary = None,
    ) -> Self:
        """Build a crowd from a (tasks, workers) matrix whose empty cells hold ``missing`` (and None or NaN, always).

        >>> from wisecrowd import Crowd
        >>> Crowd.from_matrix([[0, 1, -1], [1, -1, -1]], missing=-1)
        Crowd(3 labels: 2 tasks x 3 workers, 2 classes, 1.5 labels/task)
        """
        try:
            with vocab.whole_characters():
                frame = matrix if isinstance(matrix, pd.DataFrame) else pd.DataFrame(np.asarray(matrix))
        except InputError:
            raise
        except ValueError as error:
            raise InputError(f"a matrix of tasks x workers was wanted, all rows of one length: {error}") from None
        if frame.empty:
            raise InputError(f"a matrix of tasks x workers was wanted; got shape {frame.shape}")
        filled = frame.notna().to_numpy()
        if missing is not None:
            filled = filled & (frame != missing).to_numpy()
        row, column = np.nonzero(filled)
        labels = vocab.as_column(frame.to_numpy()[row, column].tolist(), "label")
        codes, index = vocab.encode(labels, "label", classes)
        _refuse_fractions(index)
        return cls(
            row,
            column,
            codes,
            tasks=frame.index if tasks is None else tasks,
            workers=frame.columns if workers is None else workers,
            classes=index,
        )

    @classmethod
    def from_counts(
        cls, counts: ArrayLike | pd.DataFrame, *, tasks: Vocabulary = None, classes: Vocabulary = None
    ) -> Self:
        """Build a crowd without worker ids from how often each class was said of each task (tasks x classes).

        >>> from wisecrowd import Crowd
        >>> Crowd.from_counts([[2, 1], [0, 3]], classes=["no", "yes"])
        Crowd(6 labels: 2 tasks, no worker ids, 2 classes, 3.0 labels/task)
        """
        frame = counts if isinstance(counts, pd.DataFrame) else pd.DataFrame(np.asarray(counts))
        values = frame.to_numpy(dtype=np.float64)
        if not np.isfinite(values).all() or (values < 0).any():
            raise InputError("counts must be finite and not negative")
        task, label = np.nonzero(values)
        return cls(
            task,
            None,
            label,
            tasks=frame.index if tasks is None else tasks,
            workers=None,
            classes=frame.columns if classes is None else classes,
            weight=values[task, label],
            duplicates="keep",
        )


def as_table(frame: Any, columns: Sequence[str] | None = None) -> pa.Table:
    """Any table-like object as an Arrow table; the door through which all dataframes enter.

    >>> as_table({"task": [1], "worker": ["a"]}).column_names
    ['task', 'worker']
    """
    if isinstance(frame, pa.Table):
        return frame
    try:
        if isinstance(frame, pd.DataFrame):
            wanted = frame[[name for name in columns if name in frame.columns]] if columns is not None else frame
            with vocab.whole_characters():
                return pa.Table.from_pandas(wanted, preserve_index=False)
        if hasattr(frame, "__arrow_c_stream__") or isinstance(frame, dict):
            with vocab.whole_characters():
                return pa.table(frame)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(f"a column mixes types: {error}; make it one type first, for example df.astype(str)") from None
    raise InputError(
        f"a dataframe was wanted (pandas, polars, pyarrow, duckdb) or a dict of columns; got {type(frame).__name__}"
    )


def _numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    try:
        numbers = column.cast(pa.float64()).to_numpy()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(f"numbers were wanted: {str(error)[:200]}") from None
    return np.asarray(numbers, dtype=np.float64)


def _marks(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    vocab.refuse_missing(column, "observed mark")
    try:
        return np.asarray(column.cast(pa.bool_()).to_numpy(), dtype=bool)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(f"true or false was wanted in the observed column: {error}") from None


def _refuse_fractions(classes: pd.Index) -> None:
    if classes.dtype.kind == "f":
        raise InputError(
            f"the labels are fractional numbers ({some(classes)}), which cannot be classes; read them as numbers with "
            "numeric=True (--numeric), or turn them into text if they really are names"
        )
