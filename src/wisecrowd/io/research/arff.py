"""Weka's attribute files (ARFF) as CEKA uses them: a table of features, optionally followed by a list of ids."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from wisecrowd.errors import InputError, preview
from wisecrowd.io.tables.text_files import read_lines

_ATTRIBUTE = re.compile(r"""@attribute\s+(?:'([^']*)'|"([^"]*)"|([^\s'"{]+))\s+(.+)""", re.IGNORECASE)
_NUMERIC_TYPES = ("numeric", "real", "integer")
_MISSING = "?"


class _Attribute(NamedTuple):
    """Column of an ARFF file."""

    name: str
    #: Values of a nominal attribute, None for a numeric one.
    options: frozenset[str] | None


def read_arff(path: Path) -> pd.DataFrame:
    """Read features from an ARFF file.

    Parameters
    ----------
    path : Path
        File.

    Returns
    -------
    DataFrame
        Attributes by task: numbers, or text of nominal attributes. Without a list of ids, the id of a task is its position
        from 0.

    Raises
    ------
    InputError
        If the file is not valid ARFF, or has attributes of other types.

    Examples
    --------
    >>> path = Path("pets.arffx")
    >>> header = "@relation pets\\n@attribute size numeric\\n@attribute class {0,1}\\n"
    >>> _ = path.write_text(header + "@data\\n3,0\\n9,1\\n@ID-MAP\\ncat7\\ndog2\\n")
    >>> read_arff(path).to_dict("index")
    {'cat7': {'size': 3.0, 'class': '0'}, 'dog2': {'size': 9.0, 'class': '1'}}
    """
    lines = read_lines(path)
    try:
        n_lines = next((n for n, line in enumerate(lines) if line.casefold().startswith("@id-map")), len(lines))
        ids = [line.strip() for line in lines[n_lines + 1 :] if line.strip()]
        data_line = next((n for n, line in enumerate(lines) if line.strip().casefold() == "@data"), None)
        if data_line is None or data_line > n_lines:
            raise InputError("there is no line @data; the rows must follow such a line")
        attributes = _parse_attributes(lines[:data_line])
        rows = _parse_rows(lines[:n_lines], data_line + 1, attributes)
        columns = {
            attribute.name: _parse_column([cells[position] for _, cells in rows], attribute, [line for line, _ in rows])
            for position, attribute in enumerate(attributes)
        }
    except InputError as error:
        raise InputError(f"{path.name} cannot be read as ARFF: {error}") from None
    if ids and len(ids) != len(rows):
        raise InputError(
            f"{path.name} has {len(rows):,} rows but {len(ids):,} ids after @ID-MAP; there must be one id per row"
        )
    return pd.DataFrame(columns, index=pd.Index(ids or [str(position) for position in range(len(rows))], name="task"))


def _parse_attributes(lines: list[str]) -> list[_Attribute]:
    attributes: dict[str, _Attribute] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip().casefold().startswith("@attribute"):
            continue
        match = _ATTRIBUTE.fullmatch(line.strip())
        if match is None:
            raise InputError(f"line {number:,} is {preview([line])}; expected @attribute NAME TYPE")
        *names, kind = match.groups()
        name = next(name for name in names if name is not None)
        if name in attributes:
            raise InputError(f"line {number:,} repeats the attribute {preview([name])}; give each a name of its own")
        attributes[name] = _Attribute(name, _parse_type(kind.strip(), number))
    if not attributes:
        raise InputError("there are no lines @attribute NAME TYPE before @data; add one per column")
    return list(attributes.values())


def _parse_type(kind: str, number: int) -> frozenset[str] | None:
    """Return the values of a nominal type, None for a numeric type."""
    if kind.casefold() in _NUMERIC_TYPES:
        return None
    if not (kind.startswith("{") and kind.endswith("}")):
        raise InputError(
            f"line {number:,} declares an attribute of type {preview([kind])}, which is not supported; write numeric for numbers, "
            "or list all classes: {A,B,…}"
        )
    return frozenset(_split(kind[1:-1], number))


def _parse_rows(lines: list[str], start: int, attributes: list[_Attribute]) -> list[tuple[int, list[str]]]:
    """Return the cells of each row with its line number."""
    rows = []
    for number, line in enumerate(lines[start:], start=start + 1):
        if not line.strip() or line.startswith("%"):
            continue
        if line.lstrip().startswith("{"):
            raise InputError(f"line {number:,} is a sparse row, which is not read; write all values")
        cells = _split(line, number)
        if len(cells) != len(attributes):
            raise InputError(
                f"line {number:,} has {len(cells):,} values for {len(attributes):,} attributes; write one value per attribute, "
                "and ? where it is missing"
            )
        rows.append((number, cells))
    return rows


def _split(text: str, number: int) -> list[str]:
    """Split values at commas that are not in quotes."""
    quote = '"' if '"' in text and "'" not in text else "'"
    try:
        (cells,) = csv.reader([text.strip()], quotechar=quote, escapechar="\\", skipinitialspace=True, strict=True)
    except (csv.Error, ValueError) as error:
        raise InputError(
            f"line {number:,} is not a list of values separated by commas ({error}); check its quotation marks"
        ) from None
    return [cell.strip() for cell in cells]


def _parse_column(cells: list[str], attribute: _Attribute, lines: list[int]) -> np.ndarray:
    if attribute.options is not None:
        return np.array(
            [_check_value(cell, attribute, line) for cell, line in zip(cells, lines, strict=True)], dtype=object
        )
    return np.array([_parse_float(cell, attribute, line) for cell, line in zip(cells, lines, strict=True)])


def _check_value(cell: str, attribute: _Attribute, line: int) -> str:
    assert attribute.options is not None
    if cell in attribute.options or cell == _MISSING:
        return cell
    raise InputError(
        f"line {line:,} has {preview([cell])} as {preview([attribute.name])}, which @attribute does not list; add or correct it"
    )


def _parse_float(cell: str, attribute: _Attribute, line: int) -> float:
    if cell == _MISSING:
        return np.nan
    try:
        return float(cell)
    except ValueError:
        raise InputError(
            f"line {line:,} has {preview([cell])} as {preview([attribute.name])}; expected a number"
        ) from None
