"""MACE: CSV without a header, with a row per task and a column per worker. An empty cell is no vote.

References
----------
D. Hovy, T. Berg-Kirkpatrick, A. Vaswani and E. Hovy (2013). Learning whom to trust with MACE. NAACL.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from wisecrowd.errors import InputError
from wisecrowd.io.formats import FormatReader
from wisecrowd.io.tables.csv import read_matrix
from wisecrowd.io.vote_table import ReadOptions, VoteTable


def _read_votes(path: Path, options: ReadOptions) -> VoteTable:  # noqa: ARG001
    """Read votes. The id of a task or worker is its position from 0. Blank lines separate texts and are no tasks."""
    columns = read_matrix(path)
    rows = [np.flatnonzero(~column.is_null().to_numpy(zero_copy_only=False)) for column in columns]
    votes = {
        "task": np.concatenate(rows),
        "worker": np.repeat(np.arange(len(columns)), [len(worker_rows) for worker_rows in rows]),
        "label": pa.chunked_array([chunk for column in columns for chunk in column.drop_null().chunks], pa.string()),
    }
    if len(votes["task"]) == 0:
        raise InputError("every cell is empty; expected a row of labels per task")
    return VoteTable(table=pa.table(votes), tasks=np.arange(len(columns[0])))


MACE = FormatReader(read_votes=_read_votes, detect=lambda path: False)  # any table looks like a matrix
