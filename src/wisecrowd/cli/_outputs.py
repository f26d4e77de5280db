"""Result files: all of a run appear or none, nothing of somebody else's is overwritten, and ids stay what they are."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from wisecrowd.cli._spreadsheet import Guard
from wisecrowd.cli._summary import numeric_tasks
from wisecrowd.errors import DiskFull, UsageError, is_disk_full
from wisecrowd.utils.files import atomic_path, write_json

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from wisecrowd.base.method import Method
    from wisecrowd.evaluate.confidence import LabelConfidence

#: Record of a run. A folder that contains it was written by wisecrowd and may be overwritten.
RECORD = "run.json"
#: Suffixes of files, which the name of a results folder must not have.
FILE_SUFFIXES = (".csv", ".tsv", ".parquet", ".json", ".jsonl", ".xlsx", ".html")
#: Decimal places of shares, probabilities and seconds in files.
DECIMALS = 6

Writer: TypeAlias = Callable[[Path], object]
Spelling: TypeAlias = "Callable[[pa.Table], pa.Table]"


def check_folder(folder: Path, names: Iterable[str], inputs: Iterable[Path] = ()) -> None:
    """Raise an error if the results cannot be written to a folder, before any work is done.

    Parameters
    ----------
    folder : Path
        Folder of the results.
    names : iterable of str
        Names of the files to write.
    inputs : iterable of Path, default=()
        Files that the command reads and must not overwrite.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; -o takes a folder for the results")
    if not folder.exists() and folder.suffix.lower() in FILE_SUFFIXES:
        raise UsageError(
            f"{folder} is the name of a file, and -o takes a folder for the results, of which there are several; choose a name "
            f"without {folder.suffix}, such as -o {folder.with_suffix('')}"
        )
    check_writable(folder / RECORD)
    there = [folder / name for name in names if (folder / name).exists()]
    read = set(map(os.path.realpath, inputs))  # unlike Path.resolve, it accepts links that refer to themselves
    for path in there:
        if os.path.realpath(path) in read:
            raise UsageError(f"{path} is an input file and would be overwritten; choose another folder with -o")
    if there and not (folder / RECORD).exists():
        raise UsageError(
            f"{there[0]} exists and was not written by wisecrowd (no {RECORD} beside it); choose another folder with -o"
        )


def check_writable(path: Path) -> None:
    """Raise an error if a path cannot be written; missing parent folders are fine."""
    place = path.absolute().parent
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        raise UsageError(f"{path} cannot be written: {place} is a file; choose another place with -o")
    if not os.access(place, os.W_OK | os.X_OK):
        raise UsageError(f"{path} cannot be written: no permission to write into {place}; choose another place with -o")


def write_all(files: dict[Path, Writer]) -> None:
    """Write every file under a temporary name, then rename all; the first file comes last in both steps."""
    with contextlib.ExitStack() as stack:
        unfinished = [(path, stack.enter_context(atomic_path(path)), write) for path, write in files.items()]
        for path, half, write in reversed(unfinished):
            try:
                write(half)
            except OSError as error:
                raise (DiskFull(path) if is_disk_full(error) else error) from None


def labels_table(fitted: Method, estimate: LabelConfidence | None) -> pd.DataFrame:
    """Return task, label and confidence (or standard error for numbers).

    Parameters
    ----------
    fitted : Method
        Fitted method.
    estimate : LabelConfidence or None
        Confidence of the labels; None for numbers.

    Returns
    -------
    DataFrame
        One row per task.
    """
    labels = fitted.labels_.reset_index()  # numeric labels keep all digits: their unit is unknown
    if estimate is not None:
        return labels.assign(confidence=estimate.confidence.round(DECIMALS))
    tasks = numeric_tasks(fitted)
    return labels.assign(
        **{name: tasks[name].to_numpy() for name in ("standard_error", "lower", "upper") if name in tasks}
    )


def rounded(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table for a file: rounded, with the index as columns.

    If a class is named like the index, the index column gets the suffix "_id".
    """
    frame = frame.round({name: DECIMALS for name, kind in frame.dtypes.items() if kind.kind == "f"})
    if frame.index.name is None and frame.index.nlevels == 1:
        return frame
    frame.columns = frame.columns.astype(str)
    names = [str(name) for name in frame.index.names]
    for place in range(len(names)):
        while names[place] in frame.columns:
            names[place] += "_id"
    return frame.rename_axis(columns=None).reset_index(names=names)


def write_results(folder: Path, tables: Mapping[str, pd.DataFrame | Writer], run: dict[str, Any], guard: Guard) -> None:
    """Write the tables of a run and its record, all or none; the guard checks every text that goes into a CSV file.

    Parameters
    ----------
    folder : Path
        Folder of the results.
    tables : mapping
        Table, or function that writes the file, by file name.
    run : dict
        Record of the run.
    guard : Guard
        Filter of texts that a spreadsheet would run as formulas.
    """
    files: dict[Path, Writer] = {folder / RECORD: lambda path: write_json(path, run)}
    for name, table in tables.items():
        files[folder / name] = table if callable(table) else table_of(table, partial(guard.table, name=name))
    # The record is renamed last, so that it exists only if all other files do.
    write_all(files)
    guard.warn()


def table_of(frame: pd.DataFrame, spell: Spelling | None = None) -> Writer:
    """Return a function that writes a table in the format of a file's suffix.

    Parameters
    ----------
    frame : DataFrame
        Table.
    spell : Spelling, optional
        Function that changes the texts of CSV and TSV files.

    Returns
    -------
    Writer
    """
    return partial(write_table, frame, spell=spell)


def write_table(frame: pd.DataFrame, path: Path, spell: Spelling | None = None) -> None:
    """Write a table as CSV, TSV or Parquet; ``spell`` changes texts in CSV and TSV files.

    Parameters
    ----------
    frame : DataFrame
        Table.
    path : Path
        File; its suffix is the format.
    spell : Spelling, optional
        Function that changes the texts of CSV and TSV files.
    """
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.Table.from_pandas(frame, preserve_index=False)
    if path.suffix == ".parquet":
        parquet.write_table(table, path)
    elif path.suffix in (".csv", ".tsv"):
        _write_text(table if spell is None else spell(table), path, "," if path.suffix == ".csv" else "\t")
    else:
        raise UsageError(f"unknown suffix of {path.name}; use .csv, .tsv or .parquet")


def _write_text(table: pa.Table, path: Path, separator: str) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    def write(quoting: str) -> None:
        options = csv.WriteOptions(include_header=False, delimiter=separator, quoting_style=quoting)
        with path.open("wb") as file:
            # Arrow quotes every column name.
            header = separator.join(
                _quoted(name) if set(name) & {separator, *'"\r\n'} else name for name in table.column_names
            )
            file.write(f"{header}\n".encode())
            csv.write_csv(table, file, options)

    texts = [
        column for column in table.columns if pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    ]
    # Without quotes, an empty text is read back as a missing value.
    if any(pc.any(pc.equal(column, "")).as_py() for column in texts):
        write("needed")
        return
    try:
        write("none")
    except pa.ArrowInvalid:  # a text contains a separator, a quote or a line end
        write("needed")


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
