"""Wide tables with a header: a row per task and a column per worker. An empty cell is no vote."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wisecrowd.errors import InputError, UsageError, preview
from wisecrowd.io.formats import FORMATS, Format, FormatReader, find_content_kind
from wisecrowd.io.problems import EmptyInput, MissingColumn
from wisecrowd.io.tables.columns import find_column, find_columns
from wisecrowd.io.tables.text_files import peek_lines
from wisecrowd.io.vote_table import ReadOptions, VoteTable
from wisecrowd.utils.text import count_noun

#: Rows per task above which a table is long, not wide.
MAX_ROWS_PER_TASK = 2


def _read_votes(path: Path, options: ReadOptions) -> VoteTable:
    """Read votes. The task column is the one called so, or else the first; all others are workers."""
    unused = {"worker": options.worker, "label": options.label, "weight": options.weight, "time": options.time}
    if named := [role for role, name in unused.items() if name]:
        raise UsageError(
            f"a wide table has no {named[0]} column: its other columns are workers, and their cells are labels; leave out "
            f'{named[0]}= (--{named[0]}), or format="wide" (--format wide) if each row is a vote'
        )
    source = _find_table_format(path)
    assert source.reader.read_names is not None
    assert source.reader.read_columns is not None
    names = source.reader.read_names(path)
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(f"several columns are called {preview(repeated)}; give each worker a name of its own")
    _refuse_long_table(names, options.task)
    task = _find_task_column(names, options.task)
    workers = [name for name in names if name != task]
    if not workers:
        raise InputError(
            f"the only column found is {task!r}; a wide table has a column of tasks and a column for each worker. Is another "
            "separator than a comma, semicolon, tab or | between the columns?"
        )
    table = source.reader.read_columns(path, names)
    _refuse_repeated_tasks(table, task, options)
    return _melt(table, task, workers, options)


def _refuse_long_table(names: list[str], task: str | None) -> None:
    """Raise an error if the columns are those of a table with a row per vote."""
    try:
        columns = find_columns(names, {"task": task, "worker": None, "label": None})
    except MissingColumn:
        return
    raise InputError(
        f"this is a long table, with a row per vote and the columns {preview(list(columns.values()))}; a wide table has a row per "
        'task and a column per worker. Leave out format="wide" (--format wide)'
    )


def _refuse_repeated_tasks(table: pa.Table, task: str, options: ReadOptions) -> None:
    """Raise an error if most rows repeat the task of another, unless the user chose a rule for that."""
    n_tasks, n_rows = pc.count_distinct(table[task]).as_py(), table.num_rows
    if options.duplicates == "error" and n_rows > MAX_ROWS_PER_TASK * n_tasks:
        raise InputError(
            f"it has {n_rows:,} rows but only {n_tasks:,} tasks in the column {task!r}, as a long table has, with a row per vote; "
            'a wide table has a row per task. Leave out format="wide" (--format wide) and name the columns: task=, worker=, label= '
            "(--task, --worker, --label)"
        )


def _melt(table: pa.Table, task: str, workers: list[str], options: ReadOptions) -> VoteTable:
    """Return a row per filled cell, worker by worker."""
    tasks = table[task].cast(pa.string())
    columns = [_blank_as_null(table[name]) for name in workers]
    rows = [np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False)) for column in columns]
    counts = np.array([len(worker_rows) for worker_rows in rows])
    if not counts.sum():
        raise EmptyInput("every cell below the header is empty; expected the label of a worker in each")
    is_unnamed = pc.fill_null(pc.equal(pc.utf8_trim_whitespace(tasks), ""), True).to_numpy(zero_copy_only=False)
    row = np.concatenate(rows)
    if is_unnamed[row].any() and options.missing == "error":
        raise InputError(
            f"{count_noun(int(is_unnamed.sum()), 'row')} have labels but no task in the column {task!r}; fill it in, or leave them "
            "out: missing='drop' (--missing drop)"
        )
    labels = [chunk for column in columns for chunk in column.drop_null().chunks]
    votes = pa.table(
        {
            "task": tasks.take(pa.array(row)),
            "worker": pa.DictionaryArray.from_arrays(
                pa.array(np.repeat(np.arange(len(workers), dtype=np.int32), counts)), pa.array(workers)
            ),
            "label": pa.chunked_array(labels, pa.string()),
        }
    )
    if options.worker is False:
        votes = votes.drop_columns("worker")
    is_kept = ~is_unnamed[row]
    notes = []
    if not is_kept.all():
        votes = votes.filter(pa.array(is_kept))
    if task != "task":
        notes.append(f"read {task!r} as the task column")
    if (counts == 0).any():
        empty = [name for name, count in zip(workers, counts, strict=True) if count == 0]
        notes.append(f"left out {count_noun(len(empty), 'worker column')} without votes: {preview(empty)}")
    return VoteTable(table=votes, notes=tuple(notes))


def _blank_as_null(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as text in which blank cells are missing."""
    texts = column.cast(pa.string())
    return pc.if_else(pc.equal(pc.utf8_trim_whitespace(texts), ""), pa.scalar(None, pa.string()), texts)


def _find_task_column(names: list[str], task: str | None) -> str:
    try:
        return find_column(names, "task", task)
    except MissingColumn as error:
        if task is not None or error.candidates:
            raise
        return names[0]


def _find_table_format(path: Path) -> Format:
    """Return the format of the table: delimited text, a workbook or Parquet."""
    kind = find_content_kind(path, "".join(peek_lines(path)))
    if kind == "json":
        raise InputError("a wide table is read from CSV, TSV, Excel or Parquet, and this is JSON; convert it first")
    return FORMATS[{"zip": "excel", "parquet": "parquet"}.get(str(kind), "csv")]


WIDE = FormatReader(read_votes=_read_votes, detect=lambda _: False)  # a table of features looks alike
