"""MACE: a row per task and a column per worker, separated by commas, without a header; an empty cell is no vote.

Hovy, Berg-Kirkpatrick, Vaswani and Hovy (2013), Learning whom to trust with MACE, NAACL.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from wisecrowd.errors import InputError
from wisecrowd.io.formats import Format, Options, Votes
from wisecrowd.io.tables.csv import read_cells


def _votes(path: Path, options: Options) -> Votes:  # noqa: ARG001
    """Tasks and workers go by their place, counted from 0; lines with nothing in them separate texts and are no tasks."""
    cells = read_cells(path)
    filled = [np.flatnonzero(~column.is_null().to_numpy(zero_copy_only=False)) for column in cells]
    columns = {
        "task": np.concatenate(filled),
        "worker": np.repeat(np.arange(len(cells)), [len(rows) for rows in filled]),
        "label": pa.chunked_array([column.drop_null() for column in cells]),
    }
    if len(columns["task"]) == 0:
        raise InputError("every cell is empty; a row of labels per task was wanted")
    return Votes(table=pa.table(columns), tasks=np.arange(len(cells[0])))


MACE = Format(
    name="mace",
    about="MACE's matrix in CSV without a header: a row per task, a column per worker",
    patterns=(),
    votes=_votes,
    sniff=lambda path: False,  # any table looks like one; format="mace" says so
)
