"""Weka's attribute files (ARFF), as far as CEKA uses them: a table of features whose last part may be a list of ids."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd

from wisecrowd.errors import InputError
from wisecrowd.io.tables import text as _text


def read_arff(path: Path) -> pd.DataFrame:
    """The features by task; a task without an id of its own goes by its place in the file, counted from 0.

    >>> path = Path("pets.arffx")
    >>> header = "@relation pets\\n@attribute size numeric\\n@attribute class {0,1}\\n"
    >>> _ = path.write_text(header + "@data\\n3,0\\n9,1\\n@ID-MAP\\ncat7\\ndog2\\n")
    >>> read_arff(path).to_dict("index")
    {'cat7': {'size': 3.0, 'class': '0'}, 'dog2': {'size': 9.0, 'class': '1'}}
    """
    from scipy.io import arff

    lines = _text.whole_lines(path)
    cut = next((at for at, line in enumerate(lines) if line.casefold().startswith("@id-map")), len(lines))
    ids = [line.strip() for line in lines[cut + 1 :] if line.strip()]
    try:
        rows, _ = arff.loadarff(io.StringIO("\n".join(line for line in lines[:cut] if line.strip())))
    except (arff.ArffError, NotImplementedError, ValueError, IndexError, StopIteration) as error:
        raise InputError(f"{path.name} cannot be read as ARFF: {error}") from None
    if ids and len(ids) != len(rows):
        raise InputError(f"{path.name} has {len(rows):,} rows but {len(ids):,} ids after @ID-MAP; one each was wanted")
    frame = pd.DataFrame({name: _column(rows[name]) for name in rows.dtype.names})
    frame.index = pd.Index(ids or [str(place) for place in range(len(frame))], name="task")
    return frame


def _column(values: np.ndarray) -> pd.Series:
    return pd.Series(np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values)
