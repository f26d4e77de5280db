"""Tables of workers: people or machines, and groups of workers who share their errors."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from wisecrowd.data.distinct_ids import check_id_type
from wisecrowd.data.vocabulary import as_id_index
from wisecrowd.errors import InputError, preview, suggest_name
from wisecrowd.io.compressed_files import limit_unpacked
from wisecrowd.io.problems import MissingColumn, prefix_errors
from wisecrowd.io.source_files import fetch_source
from wisecrowd.io.tables.columns import find_column, simplify_name
from wisecrowd.io.tables.csv import read_header
from wisecrowd.io.tables.excel import SUFFIXES as EXCEL_SUFFIXES
from wisecrowd.io.tables.excel import read_sheet
from wisecrowd.io.tables.parquet import read_table
from wisecrowd.io.tables.plain_tables import SEPARATORS, get_uncompressed_suffix, read_delimited
from wisecrowd.io.tools.projects import PERSON
from wisecrowd.io.tools.question_votes import MACHINE

#: Simplified names of columns. The first of each is ours.
_COLUMN_NAMES = {
    "kind": ("kind", "kinds", "type", "workerkind", "workertype"),
    "group": ("group", "groups", "groupid", "family", "model", "modelfamily", "vendor", "team", "channel"),
}
#: Words for the two kinds.
_KIND_WORDS = {
    PERSON: (PERSON, "persons", "people", "human", "humans"),
    MACHINE: (MACHINE, "machines", "model", "models", "llm", "llms", "judge", "judges", "ai", "bot"),
}
_KIND_BY_WORD = {word: kind for kind, words in _KIND_WORDS.items() for word in words}


def read_members(
    path: str | os.PathLike[str], *, worker: str | None = None, max_unpacked: int | str | None = None
) -> pd.DataFrame:
    """Read a table of which workers are machines and which workers share their errors.

    Parameters
    ----------
    path : path-like
        CSV, TSV or Parquet with a column of worker ids and the column ``kind`` (person or machine), ``group``, or both.
    worker : str, optional
        Column of worker ids. Without it, a column called ``worker`` or similar.
    max_unpacked : int or str, optional
        Size that a compressed file may unpack to, such as ``"16GB"`` (see :func:`wisecrowd.read`).

    Returns
    -------
    DataFrame
        Columns ``kind`` and ``group``, indexed by worker. Empty cells are None.

    Raises
    ------
    InputError
        If the table has neither column, or contradicts itself.

    Examples
    --------
    >>> _ = Path("members.csv").write_text("worker,kind,group\\njudge-1,machine,gpt\\njudge-2,LLM,gpt\\nann,person,\\n")
    >>> read_members("members.csv").to_dict("index")
    {'judge-1': {'kind': 'machine', 'group': 'gpt'}, 'judge-2': {'kind': 'machine', 'group': 'gpt'}, 'ann': {'kind': 'person', 'group': None}}
    """  # noqa: E501
    file = fetch_source(path)
    with limit_unpacked(max_unpacked), prefix_errors(file):
        return _parse_members(_read_table(file), worker)


def parse_kind(word: str) -> str | None:
    """Return the kind of worker that a word stands for.

    Parameters
    ----------
    word : str
        Word such as "human" or "LLM".

    Returns
    -------
    {"person", "machine"} or None
        Kind, None if the word is unknown.

    Examples
    --------
    >>> parse_kind("Human"), parse_kind("robot")
    ('person', None)
    """
    return _KIND_BY_WORD.get(word.strip().casefold())


def _read_table(path: Path) -> pa.Table:
    if not path.is_file():
        raise InputError("there is no such file; check its name")
    suffix = get_uncompressed_suffix(path)
    if suffix == ".parquet":
        return read_table(path)
    if suffix in EXCEL_SUFFIXES:
        sheet = read_sheet(path)
        return sheet.to_table(sheet.columns)
    if suffix not in SEPARATORS:
        raise InputError(
            "the kinds and groups of workers are read from .csv, .tsv, .xlsx or .parquet files, with the columns worker, kind and "
            "group"
        )
    names, separator = read_header(path, SEPARATORS[suffix])
    return read_delimited(path, separator, text_columns=names)


def _parse_members(table: pa.Table, worker: str | None) -> pd.DataFrame:
    names = list(table.column_names)
    worker_column = find_column(names, "worker", worker)
    other_names = [name for name in names if name != worker_column]
    columns = {role: _find_column(other_names, role) for role in _COLUMN_NAMES}
    if not any(columns.values()):
        raise MissingColumn(
            "it needs a column kind (person or machine), a column group, or both; the columns are "
            f"{preview(names, 12)}",
            tuple(_COLUMN_NAMES),
        )
    cells = {
        role: [None] * len(table) if name is None else _to_texts(table[name], role) for role, name in columns.items()
    }
    ids = as_id_index(table[worker_column], "worker").rename("worker")
    if (ids.astype(str).str.strip() == "").any():
        raise InputError(f"some rows have nothing in the column {preview([worker_column])}; every row needs a worker")
    members = pd.DataFrame(cells, index=ids, dtype=object)
    kinds = [_parse_kind_cell(kind, name) for name, kind in members["kind"].items()]
    members["kind"] = pd.Series(kinds, index=members.index, dtype=object)
    return _drop_repeats(members)


def _find_column(names: list[str], role: str) -> str | None:
    """Return the column called like a role, or the only one with a similar name."""
    if names.count(role) == 1:
        return role
    matches = [name for name in names if simplify_name(name) in _COLUMN_NAMES[role]]
    if len(matches) > 1:
        raise MissingColumn(f"the {role} column could be {' or '.join(map(repr, matches))}; call it {role!r}", (role,))
    return matches[0] if matches else None


def _to_texts(column: pa.ChunkedArray, noun: str) -> list[str | None]:
    """Return cells as text, None if they are empty."""
    check_id_type(column.type, noun)
    if pa.types.is_timestamp(column.type):  # the errors of Python's time zones depend on the version of pandas
        column = column.cast(pa.string())
    values = (None if value is None else str(value).strip() for value in column.to_pylist())
    return [value or None for value in values]


def _parse_kind_cell(word: Any, worker: Any) -> str | None:
    if word is None:
        return None
    kind = parse_kind(word)
    if kind is None:
        raise InputError(
            f"the kind of {preview([worker])} must be person or machine; got {preview([word])}."
            f"{suggest_name(word, _KIND_WORDS)}"
        )
    return kind


def _drop_repeats(members: pd.DataFrame) -> pd.DataFrame:
    """Return one row per worker. Equal rows are allowed."""
    name = members.index.name
    distinct = members.reset_index().drop_duplicates().set_index(name)
    contradicted = distinct.index[distinct.index.duplicated()].unique()
    if len(contradicted):
        raise InputError(f"it contradicts itself about {preview(contradicted)}; keep one row for each worker")
    return distinct
