"""Tables in Excel workbooks (.xlsx): the first sheet with rows, whose first row names the columns.

A spreadsheet stores numbers, not texts, for cells such as 7. Ids and labels are read as Excel shows them without a number format:
7, 7.5, TRUE, 2026-11-18 09:30:00. A cell with an error such as #N/A is empty.
"""

from __future__ import annotations

import datetime
import io
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from wisecrowd.errors import InputError, MissingExtra, WisecrowdError, preview
from wisecrowd.io.compressed_files import check_unpacked_size, get_unpacked_limit
from wisecrowd.io.formats import FormatReader
from wisecrowd.io.problems import EmptyInput, MissingColumn, shorten_message
from wisecrowd.io.tables.archives import is_zip, open_zip
from wisecrowd.io.tables.columns import find_columns
from wisecrowd.io.tables.text_files import MAX_COLUMNS
from wisecrowd.io.tables.vote_columns import VoteColumns, build_truth
from wisecrowd.io.vote_table import ReadOptions, TruthTable, VoteTable

#: Suffixes of workbooks that openpyxl reads.
SUFFIXES = (".xlsx", ".xlsm")
#: Bytes of memory per cell: a Python object and a place in a list.
_BYTES_PER_CELL = 64
#: Values of cells with an error.
_ERRORS = ("#N/A", "#VALUE!", "#REF!", "#DIV/0!", "#NUM!", "#NAME?", "#NULL!")


@dataclass(frozen=True)
class Sheet:
    """Cells of the first sheet with rows.

    Parameters
    ----------
    name : str
        Name of the sheet.
    columns : list of str
        Names in the first row.
    cells : list of list
        Values by column, None where a cell is empty.
    row_numbers : list of int
        Number of each row in Excel.
    other_sheets : list of str
        Names of the sheets that were not read.
    """

    name: str
    columns: list[str]
    cells: list[list[Any]]
    row_numbers: list[int]
    other_sheets: list[str]

    def to_table(self, names: Sequence[str], *, text_columns: Sequence[str] | None = None) -> pa.Table:
        """Return some columns.

        Parameters
        ----------
        names : sequence of str
            Columns.
        text_columns : sequence of str, optional
            Columns that are read as text; all others are numbers if all their cells are. Defaults to all columns.

        Returns
        -------
        pyarrow.Table
        """
        arrays = {}
        for name in names:
            values = self.cells[self.columns.index(name)]
            is_text = text_columns is None or name in text_columns or not all(map(_is_number_or_empty, values))
            arrays[name] = (
                pa.array([format_cell(value) for value in values], pa.string())
                if is_text
                else pa.array([None if value is None else float(value) for value in values], pa.float64())
            )
        return pa.table(arrays)


def format_cell(value: Any) -> str | None:
    """Return the text of a cell.

    Parameters
    ----------
    value : object
        Value of the cell as openpyxl gives it.

    Returns
    -------
    str or None
        None if the cell is empty or has an error.

    Examples
    --------
    >>> [format_cell(value) for value in (7, 7.0, 7.5, True, " cat", None, "#N/A")]
    ['7', '7', '7.5', 'TRUE', ' cat', None, None]
    """
    if value is None or value == "" or (isinstance(value, str) and value in _ERRORS):
        return None
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    return str(value)


def read_sheet(path: Path, *, header_only: bool = False, sheet_name: str | None = None) -> Sheet:
    """Read a sheet.

    Parameters
    ----------
    path : Path
        Workbook.
    header_only : bool, default=False
        Read the names of the columns, and no cells below them.
    sheet_name : str, optional
        Name of the sheet. Defaults to the first sheet with rows.

    Returns
    -------
    Sheet

    Raises
    ------
    InputError
        If the workbook is damaged, or unpacks to more than the limit.
    MissingExtra
        If openpyxl is not installed.

    Examples
    --------
    >>> import openpyxl
    >>> book = openpyxl.Workbook()
    >>> for row in (["task", "worker", "label"], [7, "ann", "cat"]):
    ...     book.active.append(row)
    >>> book.save("votes.xlsx")
    >>> read_sheet(Path("votes.xlsx")).to_table(["task", "label"]).to_pylist()
    [{'task': '7', 'label': 'cat'}]
    """
    try:
        import openpyxl
    except ImportError:
        raise MissingExtra("excel", "Excel workbooks") from None

    packed_bytes = path.stat().st_size
    try:
        book = openpyxl.load_workbook(_unpack(path), read_only=True, data_only=True)
        sheet = _find_sheet(book, packed_bytes, header_only, sheet_name)
    except WisecrowdError:
        raise
    except Exception as error:  # openpyxl raises exceptions of all kinds for damaged workbooks
        raise InputError(
            f"it cannot be read as an Excel workbook: {shorten_message(error)}; save it as .xlsx again, or as CSV in UTF-8"
        ) from error
    if sheet is None:
        raise EmptyInput("all its sheets are empty; expected a first row with the names of columns and a row per vote")
    return sheet


def _unpack(path: Path) -> io.BytesIO:
    """Return the XML files of a workbook as an archive without compression.

    openpyxl unpacks files as large as they are, whatever the archive declares. `open_zip` unpacks them within limits.
    """
    if not zipfile.is_zipfile(path):
        raise InputError("it is no Excel workbook, or it is cut off; save it as .xlsx again, or as CSV in UTF-8")
    unpacked = io.BytesIO()
    with open_zip(path) as archive, zipfile.ZipFile(unpacked, "w") as copy:
        files = [info for info in archive.files if info.filename.endswith((".xml", ".rels"))]
        for info, content in zip(files, archive.read(files), strict=True):
            copy.writestr(info.filename, content)
    unpacked.seek(0)
    return unpacked


def _find_sheet(book: Any, packed_bytes: int, header_only: bool, sheet_name: str | None) -> Sheet | None:
    """Return the sheet with a name, or the first with rows."""
    names = [sheet.title for sheet in book.worksheets]
    for sheet in book.worksheets:
        if sheet_name is not None and sheet.title != sheet_name:
            continue
        sheet.reset_dimensions()  # a damaged or hostile file declares other sizes than it has
        if (content := _read_cells(sheet, packed_bytes, header_only)) is not None:
            return Sheet(sheet.title, *content, [name for name in names if name != sheet.title])
    return None


def _read_cells(
    sheet: Any, packed_bytes: int, header_only: bool
) -> tuple[list[str], list[list[Any]], list[int]] | None:
    """Return column names, cells by column and row numbers, or None if a sheet has no rows."""
    rows = _iter_filled_rows(sheet)
    _, first = next(rows, (0, ()))
    columns = ["" if value is None else str(format_cell(value)) for value in first]
    while columns and not columns[-1]:
        columns.pop()
    if not columns:
        return None
    if len(columns) > MAX_COLUMNS:
        raise InputError(
            f"its first row has {len(columns):,} columns, more than {MAX_COLUMNS:,}; write one vote per row"
        )
    limit = get_unpacked_limit(packed_bytes)
    cells: list[list[Any]] = [[] for _ in columns]
    row_numbers: list[int] = []
    for number, row in () if header_only else rows:
        n_bytes = (len(row_numbers) + 1) * len(columns) * _BYTES_PER_CELL
        if n_bytes > limit:
            check_unpacked_size(n_bytes, packed_bytes, "its sheet")
        row_numbers.append(number)
        for position, column in enumerate(cells):
            value = row[position] if position < len(row) else None
            column.append(None if isinstance(value, str) and (value == "" or value in _ERRORS) else value)
    return columns, cells, row_numbers


def _iter_filled_rows(sheet: Any) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Yield the rows that are not blank, with their numbers in Excel."""
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        if any(value is not None and value != "" for value in row):
            yield number, row


def _read_votes(path: Path, options: ReadOptions) -> VoteTable:
    sheet = read_sheet(path)
    try:
        columns = VoteColumns.choose(sheet.columns, options)
    except MissingColumn:
        _refuse_wrong_sheet(path, sheet, lambda names: VoteColumns.choose(names, options).by_role)
        raise
    votes = columns.extract_votes(
        sheet.to_table(list(columns.by_role.values())), lambda rows: [sheet.row_numbers[row] for row in rows]
    )
    return add_sheet_note(votes, sheet)


def _refuse_wrong_sheet(path: Path, sheet: Sheet, choose: Callable[[list[str]], dict[str, str]]) -> None:
    """Raise an error if a sheet that was not read has the required columns.

    Parameters
    ----------
    path : Path
        Workbook.
    sheet : Sheet
        Sheet that was read, without these columns.
    choose : callable
        Function from the names of columns to columns by role, which raises `MissingColumn`.
    """
    for name in sheet.other_sheets:
        try:
            columns = choose(read_sheet(path, header_only=True, sheet_name=name).columns)
        except (MissingColumn, EmptyInput):
            continue
        raise InputError(
            f"the first sheet with rows is {preview([sheet.name])}, without the columns needed; the sheet {preview([name])} has "
            f"them ({preview(list(columns.values()), 5)}). Move it to the front of the workbook, or save it as CSV"
        )


def add_sheet_note(votes: VoteTable, sheet: Sheet) -> VoteTable:
    """Return votes with a note about sheets that were not read.

    Parameters
    ----------
    votes : VoteTable
        Votes of a sheet.
    sheet : Sheet
        Sheet.

    Returns
    -------
    VoteTable
    """
    if not sheet.other_sheets:
        return votes
    note = f"read the sheet {sheet.name!r}; left out {preview(sheet.other_sheets)}"
    return replace(votes, notes=(*votes.notes, note))


def _read_truth(path: Path, task: str | None, truth: str | None) -> TruthTable:
    sheet = read_sheet(path)
    requested = {"task": task, "truth": truth}
    try:
        columns = find_columns(sheet.columns, requested)
    except MissingColumn:
        _refuse_wrong_sheet(path, sheet, lambda names: find_columns(names, requested))
        raise
    split = "split" if "split" in sheet.columns else None
    names = [name for name in (*columns.values(), split) if name is not None]
    return build_truth(sheet.to_table(names), columns["task"], columns["truth"], split)


def _detect(path: Path) -> bool:
    """Return whether a zip file is a workbook."""
    if not is_zip(path):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except (OSError, ValueError, zipfile.BadZipFile):
        return False


EXCEL = FormatReader(
    read_votes=_read_votes,
    detect=_detect,
    read_truth=_read_truth,
    read_names=lambda path: read_sheet(path, header_only=True).columns,
    read_columns=lambda path, names: read_sheet(path).to_table(names),
)


def _is_number_or_empty(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
