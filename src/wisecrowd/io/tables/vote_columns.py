"""Votes and truth in tables with one row per vote and columns with roles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from wisecrowd.data.distinct_ids import check_id_type, factorize_ids
from wisecrowd.data.timestamps import holds_durations, parse_times
from wisecrowd.data.vocabulary import as_exact_ids, find_missing
from wisecrowd.errors import InputError, preview
from wisecrowd.io.tables.columns import find_columns, find_time_column
from wisecrowd.io.tables.numeric_labels import parse_numbers
from wisecrowd.io.vote_table import LineFinder, ReadOptions, TruthTable, VoteTable


@dataclass(frozen=True, kw_only=True)
class VoteColumns:
    """Columns of a table by role.

    Parameters
    ----------
    task, label : str
        Required columns.
    worker, weight, observed, time : str, optional
        Columns that a table may lack.
    is_time_named : bool, default=False
        Whether the user named the time column. If not, it may hold something else.

    Examples
    --------
    >>> VoteColumns.choose(["question", "worker", "answer", "time"], ReadOptions()).label
    'answer'
    """

    task: str
    worker: str | None
    label: str
    weight: str | None
    observed: str | None
    time: str | None = None
    is_time_named: bool = False

    @classmethod
    def choose(cls, names: Sequence[str], options: ReadOptions) -> VoteColumns:
        """Find the column of every role.

        Parameters
        ----------
        names : sequence of str
            Columns of the table.
        options : ReadOptions
            Names that the user gave.

        Returns
        -------
        VoteColumns
            Columns by role.

        Raises
        ------
        MissingColumn
            If a required column is missing or ambiguous.
        """
        weight = options.weight or ("weight" if "weight" in names else None)
        requested: dict[str, str | None] = {"task": options.task or None}
        if options.worker is not False:
            requested["worker"] = options.worker or None
        requested["label"] = options.label or None
        if weight is not None:
            requested["weight"] = weight
        columns = find_columns(names, requested)
        time = options.time or None
        if options.time is None:
            used = {*columns.values(), "observed"}
            time = find_time_column([name for name in names if name not in used])
        optional = {"observed": "observed" if "observed" in names else None, "time": time}
        columns |= find_columns(names, {role: name for role, name in optional.items() if name is not None})
        return cls(
            task=columns["task"],
            worker=columns.get("worker"),
            label=columns["label"],
            weight=columns.get("weight"),
            observed=columns.get("observed"),
            time=columns.get("time"),
            is_time_named=bool(options.time),
        )

    @property
    def by_role(self) -> dict[str, str]:
        """Column of every role that the table has."""
        columns = {"task": self.task, "worker": self.worker, "label": self.label}
        columns |= {"weight": self.weight, "observed": self.observed, "time": self.time}
        return {role: name for role, name in columns.items() if name is not None}

    def extract_votes(self, table: pa.Table, line_finder: LineFinder | None = None) -> VoteTable:
        """Return the votes in a table.

        Parameters
        ----------
        table : pyarrow.Table
            Table with at least these columns.
        line_finder : callable, optional
            Function from row positions to line numbers of the file.

        Returns
        -------
        VoteTable
            Votes, with a note for every column that goes by another name than its role.
        """
        notes = [f"read {name!r} as the {role} column" for role, name in self.by_role.items() if name != role]
        columns = {role: table[name] for role, name in self.by_role.items()}
        describe_rows = VoteTable(table=table, line_finder=line_finder).describe_rows
        for role in ("task", "worker"):
            if role in columns:
                columns[role] = as_exact_ids(columns[role], role)
        check_id_type(columns["label"].type, "label")
        columns["task"] = dictionary_encode(columns["task"], "task")
        if "weight" in columns:
            columns["weight"] = parse_numbers(columns["weight"], "weight", describe_rows)
        if "observed" in columns:
            observed = _parse_booleans(columns.pop("observed"))
            if observed is None:
                notes.append("left out the column 'observed', which does not hold true and false")
            else:
                columns["observed"] = observed
        if "time" in columns:
            times = self._parse_times(columns.pop("time"), describe_rows)
            if isinstance(times, str):
                notes = [note for note in notes if not note.endswith("as the time column")]
                notes.append(f"left out the column {self.time!r}, which does not say when votes were cast: {times}")
            else:
                columns["time"] = pa.chunked_array([times])
        return VoteTable(table=pa.table(columns), notes=tuple(notes), line_finder=line_finder, columns=self.by_role)

    def _parse_times(self, column: pa.ChunkedArray, describe_rows: Callable[[Sequence[int]], str]) -> pa.Array | str:
        """Return seconds since 1970, or the reason why a column that the user did not name holds no times."""
        try:
            seconds = parse_times(column, describe_rows)
        except InputError as error:
            if self.is_time_named:
                raise
            return str(error)
        if not self.is_time_named and holds_durations(column, seconds):
            return "its numbers are too small for that"
        return pa.array(seconds)


def dictionary_encode(column: pa.ChunkedArray, noun: str) -> pa.ChunkedArray:
    """Encode a text column as codes, so that its text can be freed.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Any column. Columns with missing values, and those that are not text, are returned unchanged.
    noun : str
        Role of the column, for messages.

    Returns
    -------
    pyarrow.ChunkedArray
        Codes with a sorted dictionary.

    Examples
    --------
    >>> dictionary_encode(pa.chunked_array([["b", "a"]]), "task").chunk(0).indices.to_pylist()
    [1, 0]
    """
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if not is_text or column.null_count:
        return column
    codes, ids = factorize_ids(column, noun)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array(codes), ids)])


def build_truth(table: pa.Table, task: str, truth: str, split: str | None) -> TruthTable:
    """Build the table of truth by task.

    Parameters
    ----------
    table : pyarrow.Table
        Table in which a task may occur several times, but with one truth only. Rows without truth are dropped.
    task, truth : str
        Columns.
    split : str or None
        Column of splits.

    Returns
    -------
    DataFrame
        Columns ``truth`` and optionally ``split``, indexed by task.

    Raises
    ------
    InputError
        If a task has more than one truth. The message names the column, because texts and images are read in this way, too.

    Examples
    --------
    >>> table = pa.table({"item": ["a", "a", "b"], "gold": ["x", "x", None]})
    >>> build_truth(table, "item", "gold", None).to_dict()
    {'truth': {'a': 'x'}}
    """
    names = {"task": task, "truth": truth} | ({} if split is None else {"split": split})
    for name in (truth, *([] if split is None else [split])):
        check_id_type(table[name].type, name)
    # Rows are dropped before the conversion, because pandas turns integers with missing values into floats.
    is_missing = np.logical_or(find_missing(table[task]), find_missing(table[truth]))
    table = table.filter(pa.array(~is_missing)) if is_missing.any() else table
    columns = {role: table[name] for role, name in names.items()}
    columns["task"] = as_exact_ids(columns["task"], "task")
    frame = pd.DataFrame({role: column.to_pandas() for role, column in columns.items()}).drop_duplicates()
    repeated = frame["task"].duplicated()
    if repeated.any():
        tasks = frame["task"][repeated].unique()
        subject = f"{len(tasks):,} tasks have" if len(tasks) > 1 else "1 task has"
        raise InputError(
            f"{subject} more than one value in the column {truth!r}, for example {preview(tasks)}; keep one row per task"
        )
    return frame.set_index("task")


def _parse_booleans(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Parse a column of true and false. Return None if it holds anything else."""
    if pa.types.is_boolean(column.type):
        return column
    try:
        return pc.utf8_lower(column).cast(pa.bool_())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
