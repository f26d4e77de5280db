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
from wisecrowd.errors import DiskFull, UsageError, is_full
from wisecrowd.utils.files import atomic_path, write_json

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from wisecrowd.base.method import Method

#: What marks a folder as one that wisecrowd wrote, and may write again.
RECORD = "run.json"
#: Digits after the point of shares, probabilities and seconds.
DECIMALS = 6

Writer: TypeAlias = Callable[[Path], object]
Spelling: TypeAlias = "Callable[[pa.Table], pa.Table]"


def check_folder(folder: Path, names: Iterable[str], inputs: Iterable[Path] = ()) -> None:
    """Refuse a folder for results before the work begins rather than after it."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; -o takes a folder for the results")
    check_writable(folder / RECORD)
    there = [folder / name for name in names if (folder / name).exists()]
    read = {path.resolve() for path in inputs}
    for path in there:
        if path.resolve() in read:
            raise UsageError(f"the results would overwrite {path}, which is read; choose another folder with -o")
    if there and not (folder / RECORD).exists():
        raise UsageError(
            f"{there[0]} exists, and nothing shows that wisecrowd wrote it (there is no {RECORD} beside it); "
            "choose another folder with -o"
        )


def check_writable(path: Path) -> None:
    """Refuse a path that could not be written; folders on the way to it need not exist yet."""
    place = path.absolute().parent
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        raise UsageError(f"{path} cannot be written: {place} is a file")
    if not os.access(place, os.W_OK | os.X_OK):
        raise UsageError(f"{path} cannot be written: no permission to write into {place}")


def write_all(files: dict[Path, Writer]) -> None:
    """Write every file under another name, the first file last, then give them their names, the first file last again."""
    with contextlib.ExitStack() as stack:
        unfinished = [(path, stack.enter_context(atomic_path(path)), write) for path, write in files.items()]
        for path, half, write in reversed(unfinished):
            try:
                write(half)
            except OSError as error:
                raise (DiskFull(path) if is_full(error) else error) from None


def labels_table(fitted: Method) -> pd.DataFrame:
    """The answer: task, label, and how sure it is: the probability of a class, or the standard error of a number."""
    labels = fitted.labels_.reset_index()  # labels that are numbers have a unit of their own, and all their digits
    if hasattr(fitted, "posterior_"):
        return labels.assign(confidence=fitted.posterior_.max(axis=1).round(DECIMALS))
    return labels.assign(standard_error=numeric_tasks(fitted)["standard_error"].to_numpy())


def rounded(frame: pd.DataFrame) -> pd.DataFrame:
    """A table as files have it: few digits, whose index has become columns.

    Where columns go by the names of classes, one may be called as the index is, which is called something_id then.
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
    """Write the tables of a run and its record, all or none; a guard sees every text on its way into CSV."""
    files: dict[Path, Writer] = {folder / RECORD: lambda path: write_json(path, run)}
    for name, table in tables.items():
        files[folder / name] = table if callable(table) else table_of(table, partial(guard.table, name=name))
    # The record comes first to get its name last: where it is, the rest is.
    write_all(files)
    guard.warn()


def table_of(frame: pd.DataFrame, spell: Spelling | None = None) -> Writer:
    """Writes a table in the format that the file's name asks for."""
    return partial(write_table, frame, spell=spell)


def write_table(frame: pd.DataFrame, path: Path, spell: Spelling | None = None) -> None:
    """Write a table as CSV, TSV or Parquet; what is read back is what was there, but for what ``spell`` makes of text."""
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.Table.from_pandas(frame, preserve_index=False)
    if path.suffix == ".parquet":
        parquet.write_table(table, path)
    elif path.suffix in (".csv", ".tsv"):
        _write_text(table if spell is None else spell(table), path, "," if path.suffix == ".csv" else "\t")
    else:
        raise UsageError(f"cannot tell from the name {path.name} what to write; end it in .csv, .tsv or .parquet")


def _write_text(table: pa.Table, path: Path, separator: str) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    def write(quoting: str) -> None:
        options = csv.WriteOptions(include_header=False, delimiter=separator, quoting_style=quoting)
        with path.open("wb") as file:
            # Arrow would put quotes around every column name, needed or not.
            header = separator.join(
                _quoted(name) if set(name) & {separator, *'"\r\n'} else name for name in table.column_names
            )
            file.write(f"{header}\n".encode())
            csv.write_csv(table, file, options)

    texts = [
        column for column in table.columns if pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    ]
    # Without quotes, an empty text could not be told from a hole.
    if any(pc.any(pc.equal(column, "")).as_py() for column in texts):
        write("needed")
        return
    try:
        write("none")
    except pa.ArrowInvalid:  # some text holds a separator, a quote or a line end
        write("needed")


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
