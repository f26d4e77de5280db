"""Tables in Parquet, read column by column to save memory."""

from __future__ import annotations

import contextlib
import io
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.distinct_ids import PACKED_BYTES, check_id_type
from wisecrowd.errors import InputError, preview
from wisecrowd.io.compressed_files import check_unpacked_size
from wisecrowd.io.formats import FormatReader
from wisecrowd.io.problems import shorten_message
from wisecrowd.io.tables.columns import find_columns
from wisecrowd.io.tables.crowd_tables import crowd_to_table
from wisecrowd.io.tables.vote_columns import VoteColumns, build_truth, dictionary_encode
from wisecrowd.io.vote_table import ReadOptions, TruthTable, VoteTable
from wisecrowd.utils.files import atomic_path

#: Logical types of text and bytes.
_TEXTS = ("STRING", "NONE")
#: Bytes of a value in memory by its type in the file. Others are text.
_TYPE_BYTES = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8}


def read_votes(path: Path, options: ReadOptions) -> VoteTable:
    """Read votes from a Parquet file.

    Parameters
    ----------
    path : Path
        File.
    options : ReadOptions
        Names of columns.

    Returns
    -------
    VoteTable
        The votes.

    Examples
    --------
    >>> path = Path("votes.parquet")
    >>> pq.write_table(pa.table({"item": ["t1"], "worker": ["ann"], "label": ["cat"]}), path)
    >>> read_votes(path, ReadOptions()).notes
    ("read 'item' as the task column",)
    """
    schema = read_schema(path)
    columns = VoteColumns.choose(schema.names, options)
    for role in ("task", "worker", "label"):
        if role in columns.by_role:
            check_id_type(schema.field(columns.by_role[role]).type, role)
    other_names = [name for role, name in columns.by_role.items() if role != "task"]
    # The text of the task ids is by far the largest part, so it is freed before the rest is read.
    task = dictionary_encode(_read_task_column(path, columns.task), "task")
    dictionaries = [name for name in (columns.worker, columns.label) if name is not None]
    others = read_columns(path, other_names, dictionaries)
    return columns.extract_votes(others.append_column(columns.task, task))


def read_truth(path: Path, task: str | None = None, truth: str | None = None) -> TruthTable:
    """Read the truth from a Parquet file, with the split if there is one.

    Parameters
    ----------
    path : Path
        File.
    task, truth : str, optional
        Names of columns.

    Returns
    -------
    DataFrame
        Truth by task.

    Examples
    --------
    >>> path = Path("truth.parquet")
    >>> pq.write_table(pa.table({"task": ["t1"], "label": ["cat"]}), path)
    >>> read_truth(path).to_dict()
    {'truth': {'t1': 'cat'}}
    """
    names = read_schema(path).names
    columns = find_columns(names, {"task": task, "truth": truth})
    split = "split" if "split" in names else None
    table = read_table(path, [name for name in (*columns.values(), split) if name is not None])
    return build_truth(table, columns["task"], columns["truth"], split)


def write_votes(crowd: Crowd, path: Path) -> None:
    """Write votes to a Parquet file.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    path : Path
        File to write.

    Examples
    --------
    >>> path = Path("votes.parquet")
    >>> write_votes(Crowd.from_triples([("t1", "ann", "cat")]), path)
    >>> pq.read_table(path).to_pylist()
    [{'task': 't1', 'worker': 'ann', 'label': 'cat'}]
    """
    with atomic_path(path) as partial_path:
        # Without the Arrow schema, other programs read text and numbers rather than dictionaries.
        pq.write_table(crowd_to_table(crowd), partial_path, store_schema=False, compression="zstd")


def read_schema(path: Path) -> pa.Schema:
    """Read the columns of a Parquet file and their types.

    Parameters
    ----------
    path : Path
        File.

    Returns
    -------
    pyarrow.Schema
        Schema.

    Raises
    ------
    InputError
        If the file is not valid Parquet.

    Examples
    --------
    >>> path = Path("votes.parquet")
    >>> pq.write_table(pa.table({"label": [0.5]}), path)
    >>> read_schema(path).types
    [DataType(double)]
    """
    with open_parquet(path) as file:
        schema = file.schema_arrow
        "".join(schema.names)  # raises an error if a name is not in UTF-8
        return schema


@contextlib.contextmanager
def open_parquet(path: Path, **options: Any) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file. Whatever goes wrong in the block is an `InputError`.

    Parameters
    ----------
    path : Path
        File.
    **options
        Arguments of `pyarrow.parquet.ParquetFile`.

    Yields
    ------
    pyarrow.parquet.ParquetFile
        The open file.

    Raises
    ------
    InputError
        If the file is not valid Parquet.

    Examples
    --------
    >>> pq.write_table(pa.table({"label": [0.5, 1.5]}), "votes.parquet")
    >>> with open_parquet(Path("votes.parquet")) as file:
    ...     file.metadata.num_rows
    2
    """
    try:
        # Unlike pq.read_table, this does not import the modules for folders and remote file systems.
        with pq.ParquetFile(path, **options) as file:
            yield file
    except InputError:
        raise
    except Exception as error:  # extension types of other libraries parse metadata of the file and raise anything
        raise InputError(f"it cannot be read as Parquet: {shorten_message(error)}") from error


def read_columns(path: Path, columns: Sequence[str], dictionaries: Sequence[str] = ()) -> pa.Table:
    """Read columns of a Parquet file within the limits of memory.

    Parameters
    ----------
    path : Path
        File.
    columns : sequence of str
        Columns.
    dictionaries : sequence of str, default=()
        Columns of text to read as dictionaries.

    Returns
    -------
    pyarrow.Table
        Columns.

    Raises
    ------
    InputError
        If the file is not valid Parquet, lacks a column or has it twice, or is too large.

    Examples
    --------
    >>> path = Path("votes.parquet")
    >>> pq.write_table(pa.table({"task": ["t1"], "label": [0.5]}), path)
    >>> read_columns(path, ["label"]).to_pylist()
    [{'label': 0.5}]
    """
    with open_parquet(path, read_dictionary=list(dictionaries)) as file:
        counts = Counter(file.schema_arrow.names)
        for name in columns:
            if counts[name] != 1:
                problem = "there is no column" if not counts[name] else "there are several columns called"
                raise InputError(f"{problem} {preview([name])}; the columns are {preview(counts, 12)}")
        check_unpacked_size(estimate_bytes(file, set(columns)), path.stat().st_size)
        table = file.read(columns=list(columns))
    _check_texts(table)
    return table


def _check_texts(table: pa.Table) -> None:
    """Raise an error for text that is not UTF-8, which Arrow reads and cannot convert later."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise InputError(
                f"column {preview([name])} is damaged: {shorten_message(error)}; write the file again"
            ) from None


def read_table(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read columns of any type, for files other than votes.

    Parameters
    ----------
    path : Path
        File.
    columns : sequence of str, optional
        Columns. All by default.

    Returns
    -------
    pyarrow.Table
        Columns. Text within nested columns is in dictionaries.

    Raises
    ------
    InputError
        If the file is not valid Parquet, has a column twice, or is too large.

    Examples
    --------
    >>> path = Path("texts.parquet")
    >>> pq.write_table(pa.table({"task": ["t1"], "text": ["Is this a cat?"]}), path)
    >>> read_table(path).column_names
    ['task', 'text']
    """
    with open_parquet(path) as file:
        leaves = [file.schema.column(position) for position in range(len(file.schema))]
        texts = [
            leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY" and leaf.logical_type.type in _TEXTS
        ]
        names = file.schema_arrow.names if columns is None else columns
    # A dictionary stores a repeated text once, so its length is known before it takes memory.
    table = read_columns(path, names, texts)
    check_unpacked_size(sum(map(_count_text_bytes, table.columns)), path.stat().st_size)
    plain_columns = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    return pa.table(plain_columns, names=table.column_names)


def _count_text_bytes(values: pa.ChunkedArray | pa.Array) -> int:
    """Return the length of all texts in a column of dictionaries, also in a nested one."""
    if isinstance(values, pa.ChunkedArray):
        return sum(map(_count_text_bytes, values.chunks))
    kind = values.type
    if pa.types.is_dictionary(kind):
        if not (pa.types.is_string(kind.value_type) or pa.types.is_binary(kind.value_type)):
            return 0
        lengths = pc.binary_length(values.dictionary).take(values.indices)
        return pc.sum(lengths.cast(pa.int64())).as_py() or 0
    if pa.types.is_struct(kind):
        return sum(map(_count_text_bytes, values.flatten()))
    return _count_text_bytes(values.flatten()) if pa.types.is_nested(kind) else 0


def estimate_bytes(file: pq.ParquetFile, columns: set[str] | None = None) -> int:
    """Estimate the memory of columns from the metadata of a file, without reading them.

    Parameters
    ----------
    file : pyarrow.parquet.ParquetFile
        Open file.
    columns : set of str, optional
        Columns. All by default.

    Returns
    -------
    int
        Bytes. Text counts as dictionaries, which are the smallest form.

    Examples
    --------
    >>> pq.write_table(pa.table({"label": [0.5, 1.5]}), "votes.parquet")
    >>> estimate_bytes(pq.ParquetFile("votes.parquet"))
    16
    """
    metadata = file.metadata
    paths = [file.schema.column(position).path for position in range(len(file.schema))]
    # A nested column is stored as several, called after it.
    positions = [
        position
        for position, path in enumerate(paths)
        if columns is None or path in columns or path.partition(".")[0] in columns
    ]
    _check_columns(metadata)
    n_bytes = 0
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for position in positions:
            column = row_group.column(position)
            width = _TYPE_BYTES.get(column.physical_type)
            n_bytes += column.num_values * (width or 4) + (0 if width else column.total_uncompressed_size)
    return n_bytes


class _FileWithoutPages(io.RawIOBase):
    """File whose metadata is known already and whose pages are empty.

    Attributes
    ----------
    was_read : bool
        Whether somebody began to read pages.
    """

    def __init__(self) -> None:
        self.position, self.was_read = 0, False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self.position = offset + (0, self.position, 1 << 62)[whence]
        return self.position

    def tell(self) -> int:
        return self.position

    def read(self, size: int = -1) -> bytes:
        self.was_read = True  # an error would be kept in Arrow, and objects of the caller with it
        return b""


def _check_columns(metadata: pq.FileMetaData) -> None:
    """Raise an error if Arrow refuses the metadata of a column.

    ``RowGroupMetaData.column`` ends the process instead, because it does not turn exceptions of C++ into Python's. Readers do,
    and look at the metadata of all columns before they read a page.
    """
    pages = _FileWithoutPages()
    file = pq.ParquetFile(pa.PythonFile(pages, mode="r"), metadata=metadata)
    for group in range(metadata.num_row_groups):
        pages.was_read = False
        try:
            next(file.iter_batches(batch_size=1, row_groups=[group], use_threads=False), None)
        except (OSError, pa.ArrowException):
            if not pages.was_read:
                raise


def is_parquet(path: Path) -> bool:
    """Return whether a file is in Parquet, whatever its name is.

    Parameters
    ----------
    path : Path
        File or folder.

    Returns
    -------
    bool
        Whether the file starts as Parquet files do.

    Examples
    --------
    >>> _ = Path("votes.parquet").write_text("task,worker,label")
    >>> is_parquet(Path("votes.parquet"))
    False
    """
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:  # the reader reports why
        return False


def _read_task_column(path: Path, name: str) -> pa.ChunkedArray:
    """Read task ids: short text as such, which is the fastest, and longer text as dictionaries.

    A dictionary stores a repeated text once. As such, a long text in millions of rows would fill the memory.
    """
    with open_parquet(path, read_dictionary=[name]) as file:
        kind, longest = file.schema_arrow.field(name).type, 0
        if pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type):
            for group in range(file.num_row_groups):
                batch = next(file.iter_batches(1, row_groups=[group], columns=[name]), None)
                if batch is not None:
                    longest = max(longest, pc.max(pc.binary_length(batch.column(0).dictionary)).as_py() or 0)
    return read_columns(path, [name], [] if longest <= PACKED_BYTES else [name])[name]


PARQUET = FormatReader(
    read_votes=read_votes,
    detect=is_parquet,
    read_truth=read_truth,
    write_votes=write_votes,
    read_names=lambda path: list(read_schema(path).names),
    read_columns=read_table,
)
