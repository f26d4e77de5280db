"""Heat maps whose colours span the values that occur, with a scale."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Number of colours besides that of zero.
COLOUR_STEPS = 20
#: Colour step of the smallest value if it is not zero, so that it differs from an empty cell.
MIN_STEP = 2
#: Number of colours in the picture of a scale.
SCALE_COLOURS = 6
#: Span of the values below which all cells have the same colour: smaller differences mean nothing.
MIN_SPAN = 0.01


def build_heat_map(shares: NDArray[np.float64], *, errors: bool = True) -> dict[str, Any]:
    """Return the cells of a heat map with their colours.

    The diagonal and the errors have scales of their own: errors from zero to the largest one, other cells from the smallest to
    the largest value.

    Parameters
    ----------
    shares : ndarray of shape (n_rows, n_columns)
        Shares between 0 and 1; NaN for an empty cell.
    errors : bool, default=True
        Whether cells beside the diagonal are errors. Without errors, the diagonal of a square map has no colour.

    Returns
    -------
    dict
        ``cells`` by row, each with ``share`` and colour ``step``, and ``scales``, each with ``kind``, ``name``, ``low``, ``high``
        and colour ``steps``.

    Examples
    --------
    >>> heat = build_heat_map(np.array([[0.9, 0.1], [0.2, 0.8]]))
    >>> [[cell["step"] for cell in row] for row in heat["cells"]]
    [[20, 10], [20, 2]]
    >>> [(scale["name"], scale["low"], scale["high"]) for scale in heat["scales"]]
    [('right', 0.8, 0.9), ('wrong', 0.0, 0.2)]
    """
    values = np.asarray(shares, dtype=np.float64)
    is_diagonal = np.arange(values.shape[0])[:, None] == np.arange(values.shape[1])
    steps = np.zeros(values.shape, dtype=int)
    scales = []
    groups = [("d", "right", is_diagonal), ("o", "wrong", ~is_diagonal)] if errors else [("d", "", ~is_diagonal)]
    for kind, name, selected in groups:
        numbers = values[selected & ~np.isnan(values)]
        if not len(numbers):
            continue
        low, high = (0.0 if name == "wrong" else float(numbers.min())), float(numbers.max())
        steps[selected] = colour_steps(values[selected], low, high)
        scales.append({"kind": kind, "name": name, "low": low, "high": high, "steps": _scale_steps(low, high)})
    cells = [
        [{"share": float(share), "step": int(step)} for share, step in zip(*row, strict=True)]
        for row in zip(values, steps, strict=True)
    ]
    return {"cells": cells, "scales": scales}


def colour_steps(shares: NDArray[np.float64], low: float, high: float) -> NDArray[np.int64]:
    """Return the colour steps of shares on a scale.

    Parameters
    ----------
    shares : ndarray
        Shares; NaN for an empty cell.
    low, high : float
        Ends of the scale.

    Returns
    -------
    ndarray of int
        Steps from 0 to `COLOUR_STEPS`; 0 for empty cells and for zero.

    Examples
    --------
    >>> colour_steps(np.array([0.0, 0.9, 0.95, 1.0]), 0.9, 1.0).tolist()
    [0, 2, 11, 20]
    """
    first = 0 if low == 0 else MIN_STEP
    position = np.clip((np.nan_to_num(shares, nan=low) - low) / max(high - low, MIN_SPAN), 0, 1)
    steps = np.rint(first + (COLOUR_STEPS - first) * position).astype(np.int64)
    return np.where(np.isnan(shares) | (shares == 0), 0, steps)


def _scale_steps(low: float, high: float) -> list[int]:
    """Return the colour steps in the picture of a scale."""
    if high - low < MIN_SPAN:
        return [int(colour_steps(np.array([high]), low, high)[0])]
    return sorted({int(step) for step in colour_steps(np.linspace(low, high, SCALE_COLOURS), low, high)})
