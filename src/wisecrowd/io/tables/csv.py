"""Tables in text: CSV and TSV, also compressed. Ids and labels stay the text that they are: "007" is not 7."""

from __future__ import annotations

import contextlib
import csv
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv

from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import InputError
from wisecrowd.io.formats import Format, Options, Truth, Votes
from wisecrowd.io.problems import EmptyInput
from wisecrowd.io.tables import text as _text
from wisecrowd.io.tables.columns import ROLES, find_columns, plain
from wisecrowd.io.tables.records import lines_of_records, refuse_open_quote
from wisecrowd.io.tables.votes_table import Columns, text_portions, truth_frame
from wisecrowd.utils.files import atomic_path

_CODED = pa.dictionary(pa.int32(), pa.string())
_BLOCK = 1 << 23  # bytes; a row must fit into one


def read_votes(path: Path, options: Options, separator: str = ",") -> Votes:
    """The votes in a text table; the separator is the expected one, and another is taken when the header has it.

    >>> path = Path("votes.csv")
    >>> _ = path.write_text("task;worker;label\\n007;ann;NA\\n")
    >>> read_votes(path, Options()).table.to_pylist()
    [{'task': '007', 'worker': 'ann', 'label': 'NA'}]
    """
    names, separator = _header(path, separator)
    columns = Columns.choose(names, options)
    kinds = {name: pa.string() for name in columns.roles.values()}
    kinds |= {name: _CODED for role, name in columns.roles.items() if role in ("worker", "label")}
    table = _table(path, separator, kinds)
    return columns.votes(table, lambda rows: lines_of_records(path, separator, [row + 1 for row in rows]))


def read_truth(path: Path, task: str | None = None, truth: str | None = None, separator: str = ",") -> Truth:
    """The truth in a text table, and the split where there is one.

    >>> path = Path("truth.csv")
    >>> _ = path.write_text("question,truth\\n007,cat\\n")
    >>> read_truth(path).to_dict()
    {'truth': {'007': 'cat'}}
    """
    names, separator = _header(path, separator)
    found = find_columns(names, {"task": task, "truth": truth})
    split = "split" if "split" in names else None
    kinds = {name: pa.string() for name in (*found.values(), split) if name is not None}
    return truth_frame(_table(path, separator, kinds), found["task"], found["truth"], split)


def read_cells(path: Path) -> list[pa.ChunkedArray]:
    """The columns of a text table without a header.

    >>> path = Path("matrix.csv")
    >>> _ = path.write_text("cat,,dog\\n,dog,dog\\n")
    >>> [column.to_pylist() for column in read_cells(path)]
    [['cat', None], [None, 'dog'], ['dog', 'dog']]
    """
    lines = _text.head_lines(path)
    refuse_open_quote(path, ",")
    names = [str(place) for place in range(len(_first_row(lines, ",")))]
    return list(_table(path, ",", dict.fromkeys(names, pa.string()), header=False).columns)


def _header(path: Path, separator: str) -> tuple[list[str], str]:
    """The column names, and what separates them: as the format has it, or as the first line plainly has it."""
    lines = _text.head_lines(path)
    first = next(line for line in lines if line.strip())
    if separator not in first:
        separator = next((mark for mark in ",\t;|" if mark in first), separator)
    refuse_open_quote(path, separator)
    return _first_row(lines, separator), separator


def _first_row(lines: list[str], separator: str) -> list[str]:
    try:
        return next(row for row in csv.reader(lines, delimiter=separator) if row)
    except csv.Error as error:
        raise InputError(f"its first line is no row of a table: {error}") from None


def _table(path: Path, separator: str, kinds: dict[str, pa.DataType], *, header: bool = True) -> pa.Table:
    # An empty cell is a hole, but "" in quotes is an empty text; NA, null and None are labels like any other.
    convert = arrow_csv.ConvertOptions(
        include_columns=list(kinds),
        column_types=kinds,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    ragged: list[Any] = []

    def refuse(row: Any) -> str:
        ragged.append(row)
        return "error"

    def read(*, use_threads: bool) -> pa.Table:
        names = None if header else list(kinds)
        with pa.input_stream(str(path)) as stream:
            return arrow_csv.read_csv(
                stream,
                arrow_csv.ReadOptions(use_threads=use_threads, block_size=_BLOCK, column_names=names),
                arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=True, invalid_row_handler=refuse),
                convert,
            )

    try:
        return read(use_threads=True)
    except OSError as error:
        raise InputError(f"cannot read it: {error}") from None
    except pa.ArrowInvalid as error:
        if "UTF8" in str(error):
            raise _text.not_utf8(error) from None
        if "Empty CSV" in str(error):
            raise EmptyInput("there are no votes in it: the header is followed by nothing") from None
        if not ragged:
            raise InputError(f"it cannot be read as a table separated by {separator!r}: {error}") from None
    ragged.clear()
    with contextlib.suppress(pa.ArrowInvalid):
        read(use_threads=False)  # one thread counts the rows
    row = ragged[0]
    lines = lines_of_records(path, separator, [row.number - 1])
    place = f"row {row.number}" if lines is None else f"line {lines[0]}"
    raise InputError(
        f"{place} has {row.actual_columns} columns, not {row.expected_columns}: {row.text[:80]!r}; "
        f"put quotes around values that hold {separator!r}"
    )


def _sniff(separator: str, path: Path) -> bool:
    """Whether the first line names a task and a label, separated as this format does."""
    lines = _text.looks_like_text(path)
    first = next((line for line in lines if line.strip()), "")
    names = {plain(name) for name in first.split(separator)}
    return all(names & {name for group in ROLES[role] for name in group} for role in ("task", "label"))


def _write(separator: str, crowd: Crowd, path: Path) -> None:
    options = arrow_csv.WriteOptions(delimiter=separator, quoting_style="needed")
    portions = text_portions(crowd, lambda ids: ids.cast(pa.string()))
    first = next(portions)
    with (
        atomic_path(path) as unfinished,
        pa.output_stream(str(unfinished)) as stream,
        arrow_csv.CSVWriter(stream, first.schema, write_options=options) as writer,
    ):
        writer.write_table(first)
        for portion in portions:
            writer.write_table(portion)


def _delimited(name: str, about: str, separator: str) -> Format:
    return Format(
        name=name,
        about=about,
        patterns=(f"*.{name}", f"*.{name}.gz", f"*.{name}.bz2", f"*.{name}.zst"),
        votes=partial(read_votes, separator=separator),
        sniff=partial(_sniff, separator),
        truth=partial(read_truth, separator=separator),
        write=partial(_write, separator),
        is_table=True,
    )


CSV = _delimited("csv", "a table separated by commas, with a header line", ",")
TSV = _delimited("tsv", "a table separated by tabs, with a header line", "\t")
