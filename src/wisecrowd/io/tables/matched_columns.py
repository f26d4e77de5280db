"""Roles of columns by their contents: values that the votes have, for tables whose column names say nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from wisecrowd.data.vocabulary import locate_ids
from wisecrowd.io.problems import MissingColumn
from wisecrowd.io.tables.columns import find_column, find_columns
from wisecrowd.io.tables.spellings import match_spellings

_LOG = logging.getLogger("wisecrowd.io")
#: Share of the distinct values of a column that the votes must have.
MIN_MATCHING_SHARE = 0.5
#: Share of the rows with different values in a column of task ids. A table has one row per task; counts and classes repeat.
MIN_DISTINCT_SHARE = 0.9

#: Function that reads some columns of a table.
ColumnReader = Callable[[Sequence[str]], pa.Table]


class VoteNames(NamedTuple):
    """Values of the votes by which columns of other tables are recognised.

    Attributes
    ----------
    tasks : Index
        Task ids.
    classes : Index or None, default=None
        Classes; None for other answers.
    """

    tasks: pd.Index
    classes: pd.Index | None = None


def match_task_column(names: Sequence[str], read: ColumnReader, tasks: pd.Index) -> str | None:
    """Return the column whose values are tasks of the votes.

    Parameters
    ----------
    names : sequence of str
        Columns to consider.
    read : callable
        Function that reads some columns.
    tasks : Index
        Tasks of the votes.

    Returns
    -------
    str or None
        Column with the largest share of tasks; None if no column, or several equally good ones, hold tasks.

    Examples
    --------
    >>> table = pa.table({"nr": ["t1", "t2"], "length": [1, 2]})
    >>> match_task_column(table.column_names, table.select, pd.Index(["t1", "t2", "t3"]))
    'nr'
    """
    shares = {
        name: _matching_share(values, tasks)
        for name, values in _read_distinct(names, read).items()
        if values.n_distinct >= MIN_DISTINCT_SHARE * values.n_rows
    }
    return _find_best(shares)


def match_label_column(names: Sequence[str], read: ColumnReader, classes: pd.Index) -> str | None:
    """Return the only column whose values are classes of the votes.

    Parameters
    ----------
    names : sequence of str
        Columns to consider.
    read : callable
        Function that reads some columns.
    classes : Index
        Classes of the votes.

    Returns
    -------
    str or None
        Column; None if none or several hold classes.

    Examples
    --------
    >>> table = pa.table({"expert_says": ["cat", "dog"], "comment": ["clear", "blurred"]})
    >>> match_label_column(table.column_names, table.select, pd.Index(["cat", "dog"]))
    'expert_says'
    """
    shares = {name: _matching_share(values, classes) for name, values in _read_distinct(names, read).items()}
    matching = [name for name, share in shares.items() if share >= MIN_MATCHING_SHARE]
    return matching[0] if len(matching) == 1 else None


def choose_truth_columns(
    names: Sequence[str],
    read: ColumnReader,
    vote_names: VoteNames,
    *,
    task: str | None = None,
    truth: str | None = None,
) -> dict[str, str]:
    """Return the columns of task and truth: those that the user names, those with a usual name, or else by their contents.

    Parameters
    ----------
    names : sequence of str
        Column names of the table.
    read : callable
        Function that reads some columns.
    vote_names : VoteNames
        Tasks and classes of the votes.
    task, truth : str, optional
        Columns that the user named.

    Returns
    -------
    dict of str to str
        Columns by role, "task" and "truth".

    Raises
    ------
    MissingColumn
        If a column is missing or ambiguous.

    Examples
    --------
    >>> table = pa.table({"nr": ["t1", "t2"], "expert_says": ["cat", "dog"]})
    >>> vote_names = VoteNames(pd.Index(["t1", "t2"]), pd.Index(["cat", "dog"]))
    >>> choose_truth_columns(table.column_names, table.select, vote_names)
    {'task': 'nr', 'truth': 'expert_says'}
    """
    chosen = {"task": task, "truth": truth}
    for role in chosen:
        if chosen[role] is not None:
            continue
        try:
            chosen[role] = find_column(names, role)
        except MissingColumn:
            others = [name for name in dict.fromkeys(names) if name not in chosen.values()]
            if role == "task":
                chosen[role] = match_task_column(others, read, vote_names.tasks)
            elif vote_names.classes is not None:
                chosen[role] = match_label_column(others, read, vote_names.classes)
            note_matched(chosen[role], role)
    return find_columns(names, chosen)


def note_matched(name: str | None, role: str) -> None:
    """Log that a column was recognised by its contents.

    Parameters
    ----------
    name : str or None
        Column; None if no column was recognised.
    role : {"task", "truth"}
        Role of the column.
    """
    if name is not None:
        values = {"task": "tasks", "truth": "labels"}[role]
        _LOG.info("read %r as the %s column, because its values are %s of the votes", name, role, values)


class _Distinct(NamedTuple):
    """Distinct values of a column, without missing ones."""

    unique: pd.Index
    n_distinct: int
    n_rows: int


def _read_distinct(names: Sequence[str], read: ColumnReader) -> dict[str, _Distinct]:
    """Return the distinct values of columns that can be ids or labels."""
    table = read(list(names)) if names else pa.table({})
    distinct = {}
    for name in table.column_names:
        column = table[name]
        if pa.types.is_nested(column.type):
            continue
        values = pd.Index(column.to_pandas().dropna())
        values = values[values.astype(str).str.strip() != ""]
        unique = values.unique()
        if len(unique):
            distinct[name] = _Distinct(unique, len(unique), len(values))
    return distinct


def _matching_share(column: _Distinct, vocabulary: pd.Index) -> float:
    """Return the share of the distinct values that are in a vocabulary, also in another spelling."""
    is_known: NDArray[Any] = locate_ids(column.unique, vocabulary) >= 0
    if not is_known.any():
        is_known = locate_ids(match_spellings(column.unique.astype(str), vocabulary), vocabulary) >= 0
    return float(is_known.mean())


def _find_best(shares: dict[str, float]) -> str | None:
    """Return the key with the largest share, if it is large enough and there is only one."""
    best = max(shares.values(), default=0.0)
    names = [name for name, share in shares.items() if share == best]
    return names[0] if best >= MIN_MATCHING_SHARE and len(names) == 1 else None
