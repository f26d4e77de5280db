"""Input files of sharding, and the types of their columns."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from wisecrowd.data.distinct_ids import check_id_type
from wisecrowd.errors import InputError, UsageError, preview
from wisecrowd.io.compressed_files import check_unpacked_size
from wisecrowd.io.formats import FORMATS
from wisecrowd.io.problems import prefix_errors
from wisecrowd.io.source_files import is_remote
from wisecrowd.io.tables.csv import read_header
from wisecrowd.io.tables.csv_records import find_record_lines
from wisecrowd.io.tables.parquet import estimate_bytes, open_parquet, read_schema
from wisecrowd.io.tables.text_files import HEAD_BYTES, read_head_bytes
from wisecrowd.io.tables.vote_columns import VoteColumns
from wisecrowd.io.vote_source import VoteSource, log
from wisecrowd.io.vote_table import ReadOptions

#: A file, a folder, a pattern, or several of them.
Paths: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

TEXT = pa.large_string()
#: Formats that can be read in batches, with the separator of those that are text.
SEPARATORS = {"csv": ",", "tsv": "\t", "parquet": None}
ROLES = ("task", "worker", "label", "weight")
#: Approximate compression ratio of text by suffix.
_COMPRESSION_RATIOS = {".gz": 5, ".bz2": 7, ".zst": 6}


@dataclass(frozen=True)
class InputFile:
    """File of votes whose rows are not read yet.

    Parameters
    ----------
    path : Path
        File.
    n_bytes : int
        Size.
    modified : int
        Time of the last change in nanoseconds.
    n_rows : int
        Number of rows. An estimate for text.
    columns : dict of str to str
        Column of each role.
    types : dict of str to pyarrow.DataType
        Type of each role.
    separator : str or None
        Separator of text. None for Parquet.

    Examples
    --------
    >>> _ = Path("votes.csv").write_text("item,worker,label\\n1,ann,cat\\n")
    >>> inspect_file("votes.csv", ReadOptions()).columns
    {'task': 'item', 'worker': 'worker', 'label': 'label'}
    """

    path: Path
    n_bytes: int
    modified: int
    n_rows: int
    columns: dict[str, str]
    types: dict[str, pa.DataType]
    separator: str | None

    def describe_rows(self, rows: Sequence[int]) -> str:
        """Describe the position of rows for a message.

        Parameters
        ----------
        rows : sequence of int
            Positions from 0.

        Returns
        -------
        str
            Line numbers of text, or else positions.
        """
        first = rows[:4]  # one more than a message shows
        lines = None
        if self.separator is not None:
            lines = find_record_lines(self.path, self.separator, [row + 1 for row in first])
        return f"row {preview(first)}" if lines is None else f"line {preview(lines)}"


def find_files(paths: Paths, target: Path) -> list[Path]:
    """Return the files that paths, folders and patterns stand for, each once.

    Parameters
    ----------
    paths : path-like or iterable of path-like
        Files, folders and patterns.
    target : Path
        Folder that is written to. Files in it are excluded.

    Returns
    -------
    list of Path
        Files.

    Raises
    ------
    UsageError
        If there are no files.

    Examples
    --------
    >>> for name in ("b.csv", "a.csv"):
    ...     _ = Path(name).write_text("task,worker,label\\n")
    >>> [path.name for path in find_files(["b.csv", "*.csv"], Path("crowd"))]
    ['b.csv', 'a.csv']
    """
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    files: dict[Path, Path] = {}
    n_in_target = 0
    for path in paths:
        if is_remote(path):
            raise InputError(
                f"{os.fspath(path)} is not a file on this machine, and shards are for votes that are too many to copy silently; "
                "copy them to a local folder first"
            )
        for file in _expand(Path(path)):
            if target.is_dir() and file.resolve().is_relative_to(target.resolve()):
                n_in_target += 1
            else:
                files.setdefault(file.resolve(), file)
    if n_in_target and not files:
        raise UsageError(
            f"the votes are in {target}, where the shards are written; choose another folder for the shards"
        )
    if not files:
        raise UsageError("no files of votes were given; name CSV, TSV or Parquet files, or a folder of them")
    return list(files.values())


def _expand(path: Path) -> list[Path]:
    """Return the files of a folder or pattern."""
    if path.is_dir():
        tables = [FORMATS[name] for name in SEPARATORS]
        # Names with these prefixes belong to other programs: _SUCCESS, .crc, and folders with unfinished files.
        files = [
            file
            for file in sorted(path.rglob("*"))
            if file.is_file()
            and not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
            and any(table.matches_name(file) for table in tables)
        ]
        if not files:
            raise InputError(f"there are no CSV, TSV or Parquet files in the folder {path}")
        return files
    if path.exists() or not glob.has_magic(str(path)):
        return [path]
    names = sorted(glob.glob(str(path), recursive=True))
    if not names:
        raise InputError(f"no file matches {path}; check the pattern and the folder")
    return [file for name in names for file in (_expand(Path(name)) if Path(name).is_dir() else [Path(name)])]


def inspect_file(path: str | os.PathLike[str], options: ReadOptions, format: str | None = None) -> InputFile:
    """Find the columns of a file and their types without reading its rows.

    Parameters
    ----------
    path : path-like
        File.
    options : ReadOptions
        Names of columns.
    format : str, optional
        Name of the format. Without it, content and file name decide.

    Returns
    -------
    InputFile
        Description of the file.

    Raises
    ------
    InputError
        If the file is not CSV, TSV or Parquet.

    Examples
    --------
    >>> import pyarrow.parquet as pq
    >>> pq.write_table(pa.table({"task": [1, 2], "worker": ["ann", "bob"], "label": [True, False]}), "votes.parquet")
    >>> file = inspect_file("votes.parquet", ReadOptions())
    >>> file.n_rows, file.types["task"]
    (2, DataType(int64))
    """
    source = VoteSource.detect(path, format)
    file, table_format = source.path, source.format
    if table_format.name not in SEPARATORS:
        raise InputError(
            f"{file} looks like {table_format.description}, but shards are made of CSV, TSV and Parquet. Convert it first: "
            f'wisecrowd.write(wisecrowd.read("{file}"), "votes.parquet")'
        )
    with prefix_errors(file):
        status = file.stat()
        separator = SEPARATORS[table_format.name]
        if separator is None:
            names, n_rows, get_type = _inspect_parquet(file)
        else:
            names, separator = read_header(file, separator)
            n_rows, get_type = _estimate_rows(file), lambda _: TEXT
        by_role = VoteColumns.choose(names, options).by_role
        columns = {role: by_role[role] for role in ROLES if role in by_role}
        types = {role: get_type(name) for role, name in columns.items()}
        for role, kind in types.items():
            _check_type(kind, role)
    return InputFile(file, status.st_size, status.st_mtime_ns, n_rows, columns, types, separator)


def _inspect_parquet(path: Path) -> tuple[list[str], int, Callable[[str], pa.DataType]]:
    schema = read_schema(path)
    with open_parquet(path) as file:
        n_rows = file.metadata.num_rows
        check_unpacked_size(estimate_bytes(file), path.stat().st_size, in_memory=False)
    return schema.names, n_rows, lambda name: _simplify_type(schema.field(name).type)


def _estimate_rows(path: Path) -> int:
    """Estimate the number of rows of a text file from its first lines."""
    head = read_head_bytes(path)
    n_lines = head.count(b"\n")
    n_bytes = path.stat().st_size * _COMPRESSION_RATIOS.get(path.suffix.lower(), 1)
    return n_lines if len(head) < HEAD_BYTES else round(n_bytes * max(n_lines, 1) / len(head))


def _simplify_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return TEXT if is_text else kind


def _check_type(kind: pa.DataType, role: str) -> None:
    check_id_type(kind, role)
    if pa.types.is_float16(kind):
        raise InputError(f"the {role} column holds {kind} values, which shards do not; convert them to double first")


def unify_types(files: Sequence[InputFile]) -> dict[str, pa.DataType]:
    """Return the type of each role over all files. Whole numbers become text if another file has text.

    Parameters
    ----------
    files : sequence of InputFile
        Files.

    Returns
    -------
    dict of str to pyarrow.DataType
        Type of each role.

    Raises
    ------
    InputError
        If files have different columns or types that cannot be unified.

    Examples
    --------
    >>> import pyarrow.parquet as pq
    >>> pq.write_table(pa.table({"task": [7], "worker": ["ann"], "label": ["cat"]}), "a.parquet")
    >>> _ = Path("b.csv").write_text("task,worker,label\\n7,bob,cat\\n")
    >>> unify_types([inspect_file("a.parquet", ReadOptions()), inspect_file("b.csv", ReadOptions())])["task"]
    DataType(large_string)
    """
    roles = files[0].columns.keys()
    for file in files:
        for role in roles ^ file.columns.keys():
            with_column, without_column = (file, files[0]) if role in file.columns else (files[0], file)
            raise InputError(
                f"{with_column.path} has a {role} column and {without_column.path} has none; give all files one, or make a "
                "folder of shards of each"
            )
    return {role: pa.float64() if role == "weight" else _unify_type(files, role) for role in roles}


def _unify_type(files: Sequence[InputFile], role: str) -> pa.DataType:
    first_files: dict[pa.DataType, InputFile] = {}
    for file in files:
        if not pa.types.is_null(file.types[role]):  # an empty column fits any type
            first_files.setdefault(file.types[role], file)
    types = list(first_files)
    if len(types) <= 1:
        return types[0] if types else TEXT
    integers = [kind for kind in types if pa.types.is_integer(kind)]
    others = [kind for kind in types if kind not in integers]
    if not others and pa.uint64() not in integers:
        return pa.int64()
    if pa.uint64() not in integers and all(pa.types.is_floating(kind) for kind in others):
        return pa.float64()
    if others == [TEXT]:
        log.info(
            "the %s ids are numbers in %s and text in %s; all are read as text",
            role, first_files[integers[0]].path, first_files[TEXT].path,
        )  # fmt: skip
        return TEXT
    first, second = types[:2]
    raise InputError(
        f"the {role} column holds {first} values in {first_files[first].path} and {second} values in "
        f"{first_files[second].path}; convert it to one type first"
    )
