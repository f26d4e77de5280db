"""The files that shards are made of: which they are, and what their columns hold."""

from __future__ import annotations

import csv
import glob
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from wisecrowd.errors import InputError, UsageError, some
from wisecrowd.io.formats import Format, Options, about, find_format, formats, log
from wisecrowd.io.tables import text as _text
from wisecrowd.io.tables.parquet import read_schema
from wisecrowd.io.tables.records import lines_of_records
from wisecrowd.io.tables.votes_table import Columns

#: A file, a folder, a pattern, or several of them.
Paths: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

TEXT = pa.large_string()
#: The formats that can be read a batch at a time; what separates the columns of those that are text.
SEPARATORS = {"csv": ",", "tsv": "\t", "parquet": None}
ROLES = ("task", "worker", "label", "weight")

#: How many times smaller compressed text is, about.
_COMPRESSED = {".gz": 5, ".bz2": 7, ".zst": 6}


@dataclass(frozen=True)
class Source:
    """One file of votes: what is known of it before its rows are read.

    >>> _ = Path("votes.csv").write_text("item,worker,label\\n1,ann,cat\\n")
    >>> look("votes.csv", Options()).columns
    {'task': 'item', 'worker': 'worker', 'label': 'label'}
    """

    path: Path
    size: int
    changed: int
    """When it was last written, in nanoseconds."""
    rows: int
    """How many there are; of text, about."""
    columns: dict[str, str]
    """Role -> column."""
    kinds: dict[str, pa.DataType]
    """Role -> what the column holds."""
    separator: str | None
    """Between the columns of text; Parquet has none."""

    def where(self, rows: Sequence[int]) -> str:
        """How to call the places of some rows: lines of text, or else positions from 0."""
        first = rows[:4]  # one more than a message shows
        lines = None
        if self.separator is not None:
            lines = lines_of_records(self.path, self.separator, [row + 1 for row in first])
        return f"row {some(first)}" if lines is None else f"line {some(lines)}"


def find_files(paths: Paths, leave_out: Path) -> list[Path]:
    """The files that paths, folders and patterns stand for, each once, but for those in a folder that is written to.

    >>> for name in ("b.csv", "a.csv"):
    ...     _ = Path(name).write_text("task,worker,label\\n")
    >>> [path.name for path in find_files(["b.csv", "*.csv"], Path("crowd"))]
    ['b.csv', 'a.csv']
    """
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    found: dict[Path, Path] = {}
    inside = 0
    for given in paths:
        for path in _expanded(Path(given)):
            if leave_out.is_dir() and path.resolve().is_relative_to(leave_out.resolve()):
                inside += 1
            else:
                found.setdefault(path.resolve(), path)
    if inside and not found:
        raise UsageError(
            f"the votes are in {leave_out}, where the shards are to go; choose another folder for the shards"
        )
    if not found:
        raise UsageError("files of votes were wanted; none were given")
    return list(found.values())


def _expanded(path: Path) -> list[Path]:
    if path.is_dir():
        tables = [form for form in formats().values() if form.name in SEPARATORS]
        # What begins so is other programs' own: _SUCCESS, .crc, and folders of files that are still being written.
        files = [
            file
            for file in sorted(path.rglob("*"))
            if file.is_file()
            and not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
            and any(form.matches(file) for form in tables)
        ]
        if not files:
            raise InputError(f"there are no CSV, TSV or Parquet files in the folder {path}")
        return files
    if path.exists() or not glob.has_magic(str(path)):
        return [path]
    names = sorted(glob.glob(str(path), recursive=True))
    if not names:
        raise InputError(f"no file is called like {path}")
    return [file for name in names for file in (_expanded(Path(name)) if Path(name).is_dir() else [Path(name)])]


def look(path: str | os.PathLike[str], options: Options) -> Source:
    """Find out what a file is and which of its columns are which, without reading it.

    >>> pq.write_table(pa.table({"task": [1, 2], "worker": ["ann", "bob"], "label": [True, False]}), "votes.parquet")
    >>> source = look("votes.parquet", Options())
    >>> source.rows, source.kinds["task"]
    (2, DataType(int64))
    """
    place = Path(path)
    form = find_format(place)
    if form.name not in SEPARATORS:
        raise InputError(
            f"{place} looks like {form.about}, and shards are made of CSV, TSV and Parquet. Write it as one of them first: "
            f'wisecrowd.write(wisecrowd.read("{place}"), "votes.parquet")'
        )
    with about(place):
        status = place.stat()
        names, rows, kind_of, separator = _parquet(place) if form.name == "parquet" else _delimited(place, form)
        roles = Columns.choose(names, options).roles
        columns = {role: roles[role] for role in ROLES if role in roles}
        kinds = {role: kind_of(name) for role, name in columns.items()}
        for role, kind in kinds.items():
            _refuse_kind(kind, role)
    return Source(place, status.st_size, status.st_mtime_ns, rows, columns, kinds, separator)


def _parquet(path: Path) -> tuple[list[str], int, Callable[[str], pa.DataType], None]:
    schema = read_schema(path)
    return schema.names, pq.read_metadata(path).num_rows, lambda name: _plain(schema.field(name).type), None


def _delimited(path: Path, form: Format) -> tuple[list[str], int, Callable[[str], pa.DataType], str]:
    separator = SEPARATORS[form.name] or ","
    lines = _text.head_lines(path)
    first = next(line for line in lines if line.strip())
    if separator not in first:
        separator = next((mark for mark in ",\t;|" if mark in first), separator)
    try:
        names = next(row for row in csv.reader(lines, delimiter=separator) if row)
    except csv.Error as error:
        raise InputError(f"its first line is no row of a table: {error}") from None
    head = _text.first_bytes(path)
    n_lines = head.count(b"\n")
    size = path.stat().st_size * _COMPRESSED.get(path.suffix.lower(), 1)
    rows = n_lines if len(head) < _text.HEAD else round(size * max(n_lines, 1) / len(head))
    return names, rows, lambda _: TEXT, separator


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return TEXT if is_text else kind


def _refuse_kind(kind: pa.DataType, role: str) -> None:
    refused = (pa.types.is_nested, pa.types.is_time, pa.types.is_duration, pa.types.is_interval, pa.types.is_float16)
    if any(is_kind(kind) for is_kind in refused):
        raise InputError(f"the {role} column holds {kind} values; ids must be text, numbers, booleans or dates")


def common_kinds(sources: Sequence[Source]) -> dict[str, pa.DataType]:
    """What each role holds over all files: numbers become text where another file has text, other mixtures are refused.

    >>> pq.write_table(pa.table({"task": [7], "worker": ["ann"], "label": ["cat"]}), "a.parquet")
    >>> _ = Path("b.csv").write_text("task,worker,label\\n7,bob,cat\\n")
    >>> common_kinds([look("a.parquet", Options()), look("b.csv", Options())])["task"]
    DataType(large_string)
    """
    roles = sources[0].columns.keys()
    for source in sources:
        for role in roles ^ source.columns.keys():
            has, lacks = (source, sources[0]) if role in source.columns else (sources[0], source)
            raise InputError(
                f"{has.path} has a {role} column and {lacks.path} has none; give all of them one, or make a folder of each"
            )
    return {role: pa.float64() if role == "weight" else _common(sources, role) for role in roles}


def _common(sources: Sequence[Source], role: str) -> pa.DataType:
    first: dict[pa.DataType, Source] = {}
    for source in sources:
        if not pa.types.is_null(source.kinds[role]):  # a column of holes only fits anything
            first.setdefault(source.kinds[role], source)
    kinds = list(first)
    if len(kinds) <= 1:
        return kinds[0] if kinds else TEXT
    integers = [kind for kind in kinds if pa.types.is_integer(kind)]
    others = [kind for kind in kinds if kind not in integers]
    if not others and pa.uint64() not in integers:
        return pa.int64()
    if pa.uint64() not in integers and all(pa.types.is_floating(kind) for kind in others):
        return pa.float64()
    if others == [TEXT]:
        log.info(
            "the %s ids are numbers in %s and text in %s; all are read as text",
            role, first[integers[0]].path, first[TEXT].path,
        )  # fmt: skip
        return TEXT
    one, other = kinds[:2]
    raise InputError(
        f"the {role} column holds {one} values in {first[one].path} and {other} values in {first[other].path}; make it one "
        "type first"
    )
