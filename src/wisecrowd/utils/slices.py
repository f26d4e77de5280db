"""Slices of large tables."""

from __future__ import annotations

#: Cells of a temporary table: 32 MB of double-precision numbers, which every machine can hold.
MAX_CELLS = 2**22


def slice_rows(n_rows: int, n_columns: int, max_cells: int = MAX_CELLS) -> list[slice]:
    """Return consecutive slices of rows, each of about ``max_cells`` cells.

    A computation that works slice by slice never needs a temporary as large as the table itself.

    Parameters
    ----------
    n_rows, n_columns : int
        Shape of the table.
    max_cells : int, default 2**22
        Number of cells per slice.

    Returns
    -------
    list of slice

    Examples
    --------
    >>> slice_rows(5, 2, max_cells=4)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 6, None)]
    """
    height = max(1, max_cells // max(n_columns, 1))
    return [slice(start, start + height) for start in range(0, n_rows, height)]
