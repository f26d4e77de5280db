"""Tables of who is who among workers: people or machines, and who belongs together."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from wisecrowd.errors import InputError, did_you_mean, some
from wisecrowd.io.formats import about
from wisecrowd.io.problems import MissingColumn
from wisecrowd.io.tables import text as _text
from wisecrowd.io.tables.columns import find_column, plain
from wisecrowd.io.tools.answers import MACHINE
from wisecrowd.io.tools.projects import PERSON

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
#: Names under which others keep the same thing; the first are ours.
_COLUMNS = {
    "kind": ("kind", "kinds", "type", "workerkind", "workertype"),
    "group": ("group", "groups", "groupid", "family", "model", "modelfamily", "vendor", "team", "channel"),
}
#: What people call the two kinds.
_KINDS = {
    PERSON: (PERSON, "persons", "people", "human", "humans"),
    MACHINE: (MACHINE, "machines", "model", "models", "llm", "llms", "judge", "judges", "ai", "bot"),
}
_CALLED = {word: kind for kind, words in _KINDS.items() for word in words}


def read_members(path: str | os.PathLike[str], *, worker: str | None = None) -> pd.DataFrame:
    """Read a table that says which workers are people and which machines, and which of them share their errors.

    It is CSV, TSV or Parquet, with a column of worker ids (named ``worker``, like it, or as ``worker`` says), and the column
    ``kind`` (person or machine), ``group``, or both. Empty cells say nothing. The result has both columns, by worker.

    >>> _ = Path("members.csv").write_text("worker,kind,group\\njudge-1,machine,gpt\\njudge-2,LLM,gpt\\nann,person,\\n")
    >>> read_members("members.csv").to_dict("index")
    {'judge-1': {'kind': 'machine', 'group': 'gpt'}, 'judge-2': {'kind': 'machine', 'group': 'gpt'}, 'ann': {'kind': 'person', 'group': None}}
    """  # noqa: E501
    place = Path(path)
    with about(place):
        try:
            table = _table(place)
        except OSError as error:
            raise InputError(f"cannot read it: {error.strerror or error}") from None
        return _members(table, worker)


def kind_called(word: str) -> str | None:
    """The kind that a word stands for; None if it stands for none.

    >>> kind_called("Human"), kind_called("robot")
    ('person', None)
    """
    return _CALLED.get(word.strip().casefold())


# ---------------------------------------------------------------------- inside


def _table(path: Path) -> pa.Table:
    if not path.is_file():
        raise InputError("there is no such file")
    suffix = path.suffix if path.suffix not in (".gz", ".bz2", ".zst") else Path(path.stem).suffix
    if suffix == ".parquet":
        try:
            return pq.read_table(path)
        except pa.ArrowInvalid as error:
            raise InputError(f"it is not a Parquet file: {error}") from None
    if suffix not in _SEPARATORS:
        raise InputError(
            "who is who is read from .csv, .tsv or .parquet files, with the columns worker, kind and group"
        )
    _text.head_lines(path)  # says what it is if it is no text
    parse = arrow_csv.ParseOptions(delimiter=_SEPARATORS[suffix], newlines_in_values=True)
    try:
        with pa.input_stream(str(path)) as stream:
            names = arrow_csv.open_csv(stream, parse_options=parse).schema.names
        # Ids are text, whatever they look like: "007" is not 7.
        convert = arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False)
        with pa.input_stream(str(path)) as stream:
            return arrow_csv.read_csv(stream, parse_options=parse, convert_options=convert)
    except pa.ArrowInvalid as error:
        raise InputError(f"it cannot be read as a table separated by {_SEPARATORS[suffix]!r}: {error}") from None


def _members(table: pa.Table, worker: str | None) -> pd.DataFrame:
    names = list(table.column_names)
    who = find_column(names, "worker", worker)
    others = [name for name in names if name != who]
    columns = {role: _column(others, role) for role in _COLUMNS}
    if not any(columns.values()):
        raise MissingColumn(
            f"it must say of workers what kind they are (a column kind: person or machine), which group they belong to (a column "
            f"group), or both; the columns are {some(names, 12)}",
            tuple(_COLUMNS),
        )
    told = {role: [None] * len(table) if name is None else _texts(table[name]) for role, name in columns.items()}
    ids = table[who].to_pandas()
    if ids.isna().any() or (ids.astype(str).str.strip() == "").any():
        raise InputError(f"some rows have nothing in the column {who!r}; every row is about one worker")
    found = pd.DataFrame(told, index=pd.Index(ids, name="worker"), dtype=object)
    kinds = [_kind(kind, name) for name, kind in found["kind"].items()]
    found["kind"] = pd.Series(kinds, index=found.index, dtype=object)
    return _once(found)


def _column(names: list[str], role: str) -> str | None:
    """The column of that role: the one called so, or the only one with a name like it."""
    if names.count(role) == 1:
        return role
    found = [name for name in names if plain(name) in _COLUMNS[role]]
    if len(found) > 1:
        raise MissingColumn(f"the {role} column could be {' or '.join(map(repr, found))}; call it {role!r}", (role,))
    return found[0] if found else None


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    """The cells as texts, None where nothing is said."""
    values = (None if value is None else str(value).strip() for value in column.to_pylist())
    return [value or None for value in values]


def _kind(word: Any, worker: Any) -> str | None:
    if word is None:
        return None
    kind = kind_called(word)
    if kind is None:
        raise InputError(
            f"the kind of {some([worker])} must be person or machine; got {some([word])}.{did_you_mean(word, _KINDS)}"
        )
    return kind


def _once(found: pd.DataFrame) -> pd.DataFrame:
    """A row for each worker; rows that say the same again do no harm."""
    name = found.index.name
    distinct = found.reset_index().drop_duplicates().set_index(name)
    again = distinct.index[distinct.index.duplicated()].unique()
    if len(again):
        raise InputError(f"it says different things of {some(again)}; keep one row for each worker")
    return distinct
