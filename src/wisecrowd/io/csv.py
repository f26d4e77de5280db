"""Tables in text: CSV and TSV, also compressed. Ids and labels stay the text that they are: "007" is not 7."""

from __future__ import annotations

import csv
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv

from wisecrowd._files import atomic_path
from wisecrowd.crowd import Crowd
from wisecrowd.errors import InputError, some
from wisecrowd.io import _text
from wisecrowd.io.columns import ROLES, find_column, plain
from wisecrowd.io.formats import Format, Options, Truth, Votes
from wisecrowd.io.tables import Columns, text_portions, truth_frame

_CODED = pa.dictionary(pa.int32(), pa.string())
_BLOCK = 1 << 23  # bytes; a row must fit into one


def _votes(separator: str, path: Path, options: Options) -> Votes:
    names, separator = _header(_text.head_lines(path), separator)
    columns = Columns.choose(names, options)
    kinds = {name: pa.string() for name in columns.roles.values()}
    kinds |= {name: _CODED for role, name in columns.roles.items() if role in ("worker", "label")}
    return columns.votes(_table(path, separator, kinds), numeric=options.numeric)


def _truth(separator: str, path: Path, task: str | None, truth: str | None) -> Truth:
    names, separator = _header(_text.head_lines(path), separator)
    task, truth = find_column(names, "task", task), find_column(names, "truth", truth)
    split = "split" if "split" in names else None
    kinds = {name: pa.string() for name in (task, truth, split) if name is not None}
    return truth_frame(_table(path, separator, kinds), task, truth, split)


def _header(lines: list[str], separator: str) -> tuple[list[str], str]:
    """The column names, and what separates them: as the format has it, or as the first line plainly has it."""
    first = next(line for line in lines if line.strip())
    if separator not in first:
        separator = next((mark for mark in ",\t;|" if mark in first), separator)
    try:
        names = next(row for row in csv.reader(lines, delimiter=separator) if row)
    except (csv.Error, StopIteration) as error:
        raise InputError(f"its first line is no header ({error}); column names were wanted there") from None
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise InputError(f"the header repeats {some(dict.fromkeys(repeated))}; give each column a name of its own")
    return names, separator


def _table(path: Path, separator: str, kinds: dict[str, pa.DataType]) -> pa.Table:
    # An empty cell is a hole, but "" in quotes is an empty text; NA, null and None are labels like any other.
    convert = arrow_csv.ConvertOptions(
        include_columns=list(kinds),
        column_types=kinds,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    read = partial(_read, path, separator, convert)
    try:
        return read(use_threads=True)
    except pa.ArrowInvalid as error:
        if "UTF8" in str(error):
            raise _text.not_utf8(error) from None
        ragged: list[Any] = []
        try:
            read(use_threads=False, ragged=ragged)  # one thread counts lines
        except pa.ArrowInvalid:
            pass
        if not ragged:
            raise InputError(f"it cannot be read as a table separated by {separator!r}: {error}") from None
        row = ragged[0]
        raise InputError(
            f"row {row.number} has {row.actual_columns} columns where the header has {row.expected_columns}: "
            f"{row.text[:80]!r}; put quotes around values that hold {separator!r}"
        ) from None
    except OSError as error:
        raise InputError(f"cannot read it: {error}") from None


def _read(
    path: Path, separator: str, convert: arrow_csv.ConvertOptions, *, use_threads: bool, ragged: list[Any] | None = None
) -> pa.Table:
    def note(row: Any) -> str:
        if ragged is not None:
            ragged.append(row)
        return "error"

    with pa.input_stream(str(path)) as stream:
        return arrow_csv.read_csv(
            stream,
            read_options=arrow_csv.ReadOptions(use_threads=use_threads, block_size=_BLOCK),
            parse_options=arrow_csv.ParseOptions(
                delimiter=separator, newlines_in_values=True, invalid_row_handler=note
            ),
            convert_options=convert,
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
        votes=partial(_votes, separator),
        sniff=partial(_sniff, separator),
        truth=partial(_truth, separator),
        write=partial(_write, separator),
    )


CSV = _delimited("csv", "a table separated by commas, with a header line", ",")
TSV = _delimited("tsv", "a table separated by tabs, with a header line", "\t")
