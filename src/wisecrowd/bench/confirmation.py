"""Confirmation of stored results after a change of code that should not change them.

A change of code outdates the results of every entry that refers to it, even if all figures stay as they were. A sample is run
again: some cells of every entry, and at least one of every dataset. If all figures of the sample that concern an entry and a
dataset are equal to the stored ones, the other seeds and combinations of the two count as confirmed.

Networks round differently on another processor, and training turns a difference of the last bit into one of some tasks. The
figures of cells with several seeds therefore also count as equal within their spread over the seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from wisecrowd.bench.benchmark import FIGURES
from wisecrowd.bench.cells import OK, Cell, Row

#: Largest difference of two equal figures. The order of a sum may change the last digits, and pages show three.
TOLERANCE = 1e-6
#: Largest difference in standard deviations over the seeds. Two runs of one model differ by more in 3 % of the cases.
MAX_DEVIATIONS = 3.0
#: Number of seeds from which on their spread is used.
MIN_SEEDS = 3


def choose_sample(cells: Sequence[Cell], estimate_seconds: Callable[[Cell], float], n_per_entry: int = 2) -> list[Cell]:
    """Choose cells such that every entry and every dataset has some.

    Parameters
    ----------
    cells : sequence of Cell
        Cells with outdated results.
    estimate_seconds : callable
        Function that returns the expected running time of a cell; quick cells are preferred.
    n_per_entry : int, default=2
        Number of datasets of every entry, as far as it has so many.

    Returns
    -------
    list of Cell
        One cell for every chosen pair of entry and dataset.
    """
    quickest: dict[tuple[str, str], Cell] = {}
    for cell in sorted(cells, key=lambda cell: (estimate_seconds(cell), cell.key)):
        quickest.setdefault((cell.entry, cell.data), cell)
    sample: list[Cell] = []
    n_chosen: dict[str, int] = {}
    for cell in quickest.values():
        if n_chosen.get(cell.entry, 0) < n_per_entry:
            n_chosen[cell.entry] = n_chosen.get(cell.entry, 0) + 1
            sample.append(cell)
    covered = {cell.data for cell in sample}
    for cell in quickest.values():
        if cell.data not in covered:
            covered.add(cell.data)
            sample.append(cell)
    return sample


def measure_spread(rows: Sequence[Row]) -> dict[str, float]:
    """Return the standard deviation of every figure over the seeds of a cell.

    Parameters
    ----------
    rows : sequence of dict
        Stored rows of one entry on one dataset.

    Returns
    -------
    dict of str to float
        Empty for fewer than `MIN_SEEDS` rows.

    Examples
    --------
    >>> rows = [{"status": "ok", "figures": {"accuracy": accuracy}} for accuracy in (0.9, 0.91, 0.92)]
    >>> round(measure_spread(rows)["accuracy"], 3), measure_spread(rows[:2])
    (0.01, {})
    """
    figures = [_get_figures(row) for row in rows]
    names = set.intersection(*(set(one) for one in figures)) if len(figures) >= MIN_SEEDS else set()
    return {name: float(np.std([one[name] for one in figures], ddof=1)) for name in names}


def has_equal_figures(stored: Row, new: Row, spread: Mapping[str, float] = MappingProxyType({})) -> bool:
    """Return whether two rows of a cell have the same state and the same figures, except for time and memory.

    Parameters
    ----------
    stored, new : dict
        Rows of a cell.
    spread : mapping of str to float, optional
        Standard deviation of figures over the seeds.

    Returns
    -------
    bool

    Examples
    --------
    >>> stored = {"status": "ok", "figures": {"accuracy": 0.91, "seconds": 3.0}}
    >>> has_equal_figures(stored, {"status": "ok", "figures": {"accuracy": 0.91, "seconds": 2.0}})
    True
    >>> has_equal_figures(stored, {"status": "ok", "figures": {"accuracy": 0.92, "seconds": 3.0}})
    False
    >>> has_equal_figures(stored, {"status": "ok", "figures": {"accuracy": 0.92, "seconds": 3.0}}, {"accuracy": 0.01})
    True
    """
    if stored["status"] != new["status"]:
        return False
    before, after = _get_figures(stored), _get_figures(new)
    return before.keys() == after.keys() and all(
        math.isclose(before[name], after[name], rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        or abs(before[name] - after[name]) <= MAX_DEVIATIONS * spread.get(name, 0.0)
        for name in before
    )


def _get_figures(row: Row) -> Mapping[str, float]:
    """Return the figures of a row that do not depend on the speed of the machine; empty unless the cell has succeeded."""
    if row["status"] != OK:
        return {}
    return {
        name: value
        for name, value in row["figures"].items()
        if value is not None and not (name in FIGURES and FIGURES[name].is_cost)
    }


def find_confirmed(cells: Iterable[Cell], equal: Mapping[tuple[str, str, int], bool]) -> list[Cell]:
    """Return the cells that a sample confirms.

    Parameters
    ----------
    cells : iterable of Cell
        Cells with outdated results.
    equal : mapping
        Whether the figures are equal, by (entry, data, seed) of the cells in the sample.

    Returns
    -------
    list of Cell
        Cells outside of the sample whose entry and data both occur in it, with equal figures only.
    """
    entries = _group_by_position(equal, 0)
    data = _group_by_position(equal, 1)
    return [
        cell
        for cell in cells
        if cell.key not in equal and entries.get(cell.entry, False) and data.get(cell.data, False)
    ]  # fmt: skip


def _group_by_position(equal: Mapping[tuple[str, str, int], bool], position: int) -> dict[Any, bool]:
    """Return whether all cells with the same entry (position 0) or data (position 1) have equal figures."""
    result: dict[Any, bool] = {}
    for key, is_equal in equal.items():
        result[key[position]] = result.get(key[position], True) and is_equal
    return result
