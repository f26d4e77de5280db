"""Weka's attribute files (ARFF) as CEKA uses them: a table of features, optionally followed by a list of ids."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd

from wisecrowd.errors import InputError
from wisecrowd.io.tables.text_files import read_lines


def read_arff(path: Path) -> pd.DataFrame:
    """Read features from an ARFF file.

    Parameters
    ----------
    path : Path
        File.

    Returns
    -------
    DataFrame
        Attributes by task. Without a list of ids, the id of a task is its position from 0.

    Raises
    ------
    InputError
        If the file is not valid ARFF.

    Examples
    --------
    >>> path = Path("pets.arffx")
    >>> header = "@relation pets\\n@attribute size numeric\\n@attribute class {0,1}\\n"
    >>> _ = path.write_text(header + "@data\\n3,0\\n9,1\\n@ID-MAP\\ncat7\\ndog2\\n")
    >>> read_arff(path).to_dict("index")
    {'cat7': {'size': 3.0, 'class': '0'}, 'dog2': {'size': 9.0, 'class': '1'}}
    """
    from scipy.io import arff

    lines = read_lines(path)
    n_lines = next((n for n, line in enumerate(lines) if line.casefold().startswith("@id-map")), len(lines))
    ids = [line.strip() for line in lines[n_lines + 1 :] if line.strip()]
    try:
        rows, _ = arff.loadarff(io.StringIO("\n".join(line for line in lines[:n_lines] if line.strip())))
    except (arff.ArffError, NotImplementedError, ValueError, IndexError, StopIteration) as error:
        raise InputError(f"{path.name} cannot be read as ARFF: {error}") from None
    if ids and len(ids) != len(rows):
        raise InputError(
            f"{path.name} has {len(rows):,} rows but {len(ids):,} ids after @ID-MAP; there must be one id per row"
        )
    frame = pd.DataFrame({name: _decode_column(rows[name]) for name in rows.dtype.names})
    frame.index = pd.Index(ids or [str(position) for position in range(len(frame))], name="task")
    return frame


def _decode_column(values: np.ndarray) -> pd.Series:
    return pd.Series(np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values)
