"""Slices of rows: together all rows, none too large."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.utils.slices import slice_rows


@pytest.mark.parametrize(
    ("n_rows", "n_columns", "max_cells"), [(0, 3, 10), (7, 3, 6), (5, 100, 10), (4, 0, 2), (6, 2, 100)]
)
def test_slices_cover_all_rows_once(n_rows: int, n_columns: int, max_cells: int) -> None:
    rows = np.arange(n_rows)
    parts = [rows[part] for part in slice_rows(n_rows, n_columns, max_cells)]
    assert np.concatenate([rows[:0], *parts]).tolist() == rows.tolist()
    assert all(len(part) == 1 or len(part) * n_columns <= max_cells for part in parts)
