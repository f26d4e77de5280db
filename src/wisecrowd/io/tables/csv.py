"""Tables in delimited text, CSV and TSV, also compressed. Ids and labels remain text: "007" is not 7."""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv

from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import InputError
from wisecrowd.io.compressed_files import COMPRESSIONS, open_input
from wisecrowd.io.formats import FormatReader
from wisecrowd.io.problems import EmptyInput
from wisecrowd.io.tables.columns import find_columns, names_votes
from wisecrowd.io.tables.crowd_tables import iter_text_tables
from wisecrowd.io.tables.csv_records import check_quotes_closed, find_record_lines
from wisecrowd.io.tables.text_files import check_column_count, encoding_error, peek_lines, read_head_lines
from wisecrowd.io.tables.vote_columns import VoteColumns, build_truth
from wisecrowd.io.vote_table import ReadOptions, TruthTable, VoteTable
from wisecrowd.utils.files import atomic_path

_DICTIONARY = pa.dictionary(pa.int32(), pa.string())
#: Bytes parsed at a time. A row must fit into one block.
BLOCK_BYTES = 1 << 23


def read_votes(path: Path, options: ReadOptions, separator: str = ",") -> VoteTable:
    """Read votes from a delimited text file.

    Parameters
    ----------
    path : Path
        File with a header line.
    options : ReadOptions
        Names of columns.
    separator : str, default=","
        Expected separator. Another one is used if the header has it instead.

    Returns
    -------
    VoteTable
        The votes.

    Examples
    --------
    >>> path = Path("votes.csv")
    >>> _ = path.write_text("task;worker;label\\n007;ann;NA\\n")
    >>> read_votes(path, ReadOptions()).table.to_pylist()
    [{'task': '007', 'worker': 'ann', 'label': 'NA'}]
    """
    names, separator = read_header(path, separator, check_quotes=True)
    columns = VoteColumns.choose(names, options)
    types = {name: pa.string() for name in columns.by_role.values()}
    types |= {name: _DICTIONARY for role, name in columns.by_role.items() if role in ("worker", "label")}
    table = _read_table(path, separator, types)
    votes = columns.extract_votes(table, lambda rows: find_record_lines(path, separator, [row + 1 for row in rows]))
    return replace(votes, ends_in_line_break=_ends_in_line_break(path))


def read_truth(path: Path, task: str | None = None, truth: str | None = None, separator: str = ",") -> TruthTable:
    """Read the truth from a delimited text file, with the split if there is one.

    Parameters
    ----------
    path : Path
        File with a header line.
    task, truth : str, optional
        Names of columns.
    separator : str, default=","
        Expected separator.

    Returns
    -------
    DataFrame
        Truth by task.

    Examples
    --------
    >>> path = Path("truth.csv")
    >>> _ = path.write_text("question,truth\\n007,cat\\n")
    >>> read_truth(path).to_dict()
    {'truth': {'007': 'cat'}}
    """
    names, separator = read_header(path, separator, check_quotes=True)
    columns = find_columns(names, {"task": task, "truth": truth})
    split = "split" if "split" in names else None
    types = {name: pa.string() for name in (*columns.values(), split) if name is not None}
    return build_truth(_read_table(path, separator, types), columns["task"], columns["truth"], split)


def read_matrix(path: Path) -> list[pa.ChunkedArray]:
    """Read the columns of a CSV file without a header.

    Parameters
    ----------
    path : Path
        File.

    Returns
    -------
    list of pyarrow.ChunkedArray
        Columns of text, null where a cell is empty.

    Examples
    --------
    >>> path = Path("matrix.csv")
    >>> _ = path.write_text("cat,,dog\\n,dog,dog\\n")
    >>> [column.to_pylist() for column in read_matrix(path)]
    [['cat', None], [None, 'dog'], ['dog', 'dog']]
    """
    lines = read_head_lines(path)
    check_quotes_closed(path, ",")
    names = [str(position) for position in range(len(_parse_first_row(lines, ",")))]
    return list(_read_table(path, ",", dict.fromkeys(names, pa.string()), has_header=False).columns)


def read_header(path: Path, separator: str, *, check_quotes: bool = False) -> tuple[list[str], str]:
    """Read the column names of a delimited text file.

    Parameters
    ----------
    path : Path
        File with a header line.
    separator : str
        Expected separator.
    check_quotes : bool, default=False
        Check first that all quotation marks in the file are closed.

    Returns
    -------
    names : list of str
        Column names.
    separator : str
        The expected separator, or the one that the header has instead.
    """
    lines = read_head_lines(path)
    first_line = next((line for line in lines if line.strip()), None)
    if first_line is None:
        raise EmptyInput("it has blank lines only; expected a header line")
    if separator not in first_line:
        separator = next((mark for mark in ",\t;|" if mark in first_line), separator)
    if check_quotes:
        check_quotes_closed(path, separator)
    return _parse_first_row(lines, separator), separator


def convert_options(types: dict[str, pa.DataType]) -> arrow_csv.ConvertOptions:
    """Return the options for parsing cells: an empty cell is missing, "" in quotes is an empty text, NA is a label.

    Parameters
    ----------
    types : dict of str to pyarrow.DataType
        Columns to read.

    Returns
    -------
    pyarrow.csv.ConvertOptions
        Options.
    """
    return arrow_csv.ConvertOptions(
        include_columns=list(types),
        column_types=types,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )


def _parse_first_row(lines: list[str], separator: str) -> list[str]:
    check_column_count(lines, separator)
    try:
        return next(row for row in csv.reader(lines, delimiter=separator) if row)
    except csv.Error as error:
        raise InputError(f"its first line is not a row of a table: {error}") from None


def _read_table(path: Path, separator: str, types: dict[str, pa.DataType], *, has_header: bool = True) -> pa.Table:
    ragged_rows: list[Any] = []

    def refuse_row(row: Any) -> str:
        ragged_rows.append(row)
        return "error"

    def parse(*, use_threads: bool) -> pa.Table:
        names = None if has_header else list(types)
        with open_input(path) as stream:
            return arrow_csv.read_csv(
                stream,
                arrow_csv.ReadOptions(use_threads=use_threads, block_size=BLOCK_BYTES, column_names=names),
                arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=True, invalid_row_handler=refuse_row),
                convert_options(types),
            )

    try:
        return parse(use_threads=True)
    except OSError as error:
        raise InputError(f"cannot read it: {error.strerror or error}") from None
    except pa.ArrowInvalid as error:
        if "UTF8" in str(error):
            raise encoding_error(error) from None
        if "Empty CSV" in str(error):
            raise EmptyInput("there are no votes in it, only a header; expected one row per vote") from None
        if not ragged_rows:
            raise InputError(f"it cannot be read as a table separated by {separator!r}: {error}") from None
    ragged_rows.clear()
    with contextlib.suppress(pa.ArrowInvalid):
        parse(use_threads=False)  # only a single thread counts the rows
    raise ragged_row_error(path, separator, ragged_rows[0])


def ragged_row_error(path: Path, separator: str, row: Any) -> InputError:
    """Return the error for a row with too few or too many columns.

    Parameters
    ----------
    path : Path
        Delimited text file.
    separator : str
        Separator of its columns.
    row : pyarrow.csv.InvalidRow
        The row.

    Returns
    -------
    InputError
        Error that names the line.
    """
    lines = None if row.number is None else find_record_lines(path, separator, [row.number - 1])
    position = "a row" if row.number is None else f"row {row.number}" if lines is None else f"line {lines[0]}"
    if row.actual_columns > row.expected_columns:
        advice = f"put quotes around values that hold {separator!r}"
    else:
        advice = "complete the row, or remove it"
        if _is_cut_off(path, row.text):
            advice = "the file ends there without a line break and seems to be cut off: export or copy it again"
    return InputError(
        f"{position} has {row.actual_columns} columns, not {row.expected_columns}: {row.text[:80]!r}; {advice}"
    )


def _ends_in_line_break(path: Path) -> bool:
    """Return whether a file ends in a line break; true for a compressed one, whose end shows by itself that it is complete."""
    return _read_end(path, 1) in (b"", b"\r", b"\n")


def _is_cut_off(path: Path, last_row: str) -> bool:
    """Return whether a row is the end of a file, without a line break."""
    text = last_row.encode()
    return bool(text) and not _ends_in_line_break(path) and _read_end(path, len(text) + 1)[-len(text) :] == text


def _read_end(path: Path, n_bytes: int) -> bytes:
    if path.suffix.lower() in COMPRESSIONS:
        return b""
    with path.open("rb") as stream:
        stream.seek(0, os.SEEK_END)
        stream.seek(max(stream.tell() - n_bytes, 0))
        return stream.read()


def _detect(separator: str, path: Path) -> bool:
    """Return whether the first line names a task and a label column."""
    first_line = next((line for line in peek_lines(path) if line.strip()), "")
    return names_votes(first_line.split(separator))


def _write_votes(separator: str, crowd: Crowd, path: Path) -> None:
    options = arrow_csv.WriteOptions(delimiter=separator, quoting_style="needed")
    portions = iter_text_tables(crowd, lambda ids: ids.cast(pa.string()))
    first = next(portions)
    with (
        atomic_path(path) as partial_path,
        pa.output_stream(str(partial_path)) as stream,
        arrow_csv.CSVWriter(stream, first.schema, write_options=options) as writer,
    ):
        writer.write_table(first)
        for portion in portions:
            writer.write_table(portion)


def _read_named_columns(separator: str, path: Path, columns: Sequence[str]) -> pa.Table:
    """Read some columns as text."""
    _, separator = read_header(path, separator, check_quotes=True)
    return _read_table(path, separator, dict.fromkeys(columns, pa.string()))


def _make_reader(separator: str) -> FormatReader:
    return FormatReader(
        read_votes=partial(read_votes, separator=separator),
        detect=partial(_detect, separator),
        read_truth=partial(read_truth, separator=separator),
        write_votes=partial(_write_votes, separator),
        read_names=lambda path: read_header(path, separator)[0],
        read_columns=partial(_read_named_columns, separator),
    )


CSV, TSV = _make_reader(","), _make_reader("\t")
