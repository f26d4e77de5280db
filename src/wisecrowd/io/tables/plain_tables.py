"""Delimited text as Arrow tables, for files other than votes: features and tables of workers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as arrow_csv

from wisecrowd.errors import InputError
from wisecrowd.io.compressed_files import check_compressed_file, open_input
from wisecrowd.io.problems import shorten_message
from wisecrowd.io.tables.csv import BLOCK_BYTES

#: Separators by suffix.
SEPARATORS = {".csv": ",", ".tsv": "\t"}
_READ_OPTIONS = arrow_csv.ReadOptions(block_size=BLOCK_BYTES)


def get_uncompressed_suffix(path: Path) -> str:
    """Return the suffix of a file without that of its compression.

    Parameters
    ----------
    path : Path
        File name.

    Returns
    -------
    str
        Suffix.

    Examples
    --------
    >>> get_uncompressed_suffix(Path("features.csv.gz"))
    '.csv'
    """
    return Path(path.stem).suffix if path.suffix in (".gz", ".bz2", ".zst") else path.suffix


def read_delimited(path: Path, separator: str, *, text_columns: Sequence[str]) -> pa.Table:
    """Read a delimited text file. Types are inferred, except for columns of ids: "007" is not 7.

    Parameters
    ----------
    path : Path
        File with a header line.
    separator : str
        Separator of the columns.
    text_columns : sequence of str
        Columns that remain text.

    Returns
    -------
    pyarrow.Table
        Table.

    Raises
    ------
    InputError
        If the file is not delimited text.
    """
    types = dict.fromkeys(text_columns, pa.string())
    check_compressed_file(path)
    convert = arrow_csv.ConvertOptions(column_types=types, strings_can_be_null=False)
    try:
        with open_input(path) as stream:
            return arrow_csv.read_csv(stream, _READ_OPTIONS, _parse_options(separator), convert)
    except pa.ArrowInvalid as error:
        raise _not_delimited(separator, error) from None


def _parse_options(separator: str) -> arrow_csv.ParseOptions:
    return arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=True)


def _not_delimited(separator: str, error: object) -> InputError:
    counts = re.search(r"Expected (\d+) columns, got (\d+)", str(error))
    has_more = counts is not None and int(counts[2]) > int(counts[1])
    advice = (
        ". Put quotes around values with a comma; for numbers with a decimal comma, separate the columns by semicolons"
        if has_more and separator == ","
        else ""
    )
    return InputError(f"it cannot be read as a table separated by {separator!r}: {shorten_message(error)}{advice}")
