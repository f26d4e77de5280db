"""Rings of vertices: parsing, cells of grids, and overlaps of polygons."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wisecrowd.data.polygon_rings import (
    PolygonRings,
    concatenate_rings,
    find_polygon_pairs,
    parse_polygons,
    rasterise_polygons,
)
from wisecrowd.errors import InputError

SQUARE = [[0, 0], [2, 0], [2, 2], [0, 2]]


def test_all_forms_are_parsed() -> None:
    forms = [SQUARE, [0, 0, 2, 0, 2, 2, 0, 2], [[0, 0, 2, 0, 2, 2, 0, 2]], str(SQUARE), [*SQUARE, [0, 0]]]
    assert parse_polygons(forms).to_lists() == [SQUARE] * 5


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("x", "no polygon but 'x'; expected at least three points"),
        ([[0, 0], [1, 1]], "expected at least three points"),
        ([0, 0, 1, 1, 2], "expected at least three points"),
        ([[0, 0, 0], [1, 1, 1], [2, 0, 0]], "expected at least three points"),
        ([[0, 0], [1, float("inf")], [2, 0]], "expected at least three points"),
        ("[" * 100_000, "expected at least three points"),
        ([[0, 0], [1, 1], [2, 2]], "a polygon without an area"),
        ([[0, 0], [1, 0], [2, 0]], "a polygon without an area"),
    ],
)
def test_other_cells_are_refused_with_advice(cell: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_polygons([SQUARE, cell])


def test_cells_have_the_area_of_polygons() -> None:
    rng = np.random.default_rng(0)
    angle = np.sort(rng.uniform(0, 2 * np.pi, (20, 9)), axis=1)
    radius = rng.uniform(20, 30, (20, 9))
    rings = PolygonRings.from_lists(np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=2))
    task = np.arange(20) // 4
    grid = rasterise_polygons(rings, task, 6)
    assert grid.cells.area * grid.cell_size[task].prod(axis=1) == pytest.approx(rings.area, rel=0.03)
    # The unit of coordinates does not matter, nor their origin.
    moved = PolygonRings(rings.offset, rings.points / [100, 1000] - 7)
    assert rasterise_polygons(moved, task, 6).cells.area == pytest.approx(grid.cells.area, abs=9)


def test_thin_polygons_have_a_cell() -> None:
    rings = parse_polygons(
        [[0, 0, 100, 0, 100, 100, 0, 100], [50, 50, 50.1, 50, 50.05, 60], [0, 0, 99, 0, 99, 99, 0, 99]]
    )
    grid = rasterise_polygons(rings, np.zeros(3, dtype=np.int64), 1)
    assert (grid.cells.area > 0).all()
    assert grid.cells.area[1] == 1


def test_overlaps() -> None:
    shifted = np.add(SQUARE, [1, 0]).tolist()
    rings = parse_polygons([SQUARE, shifted, np.add(SQUARE, [9, 9]).tolist(), SQUARE])
    task = np.array([0, 0, 0, 1])
    pairs = find_polygon_pairs(task, rings, rasterise_polygons(rings, task, 2).cells)
    assert list(zip(pairs.first, pairs.second, strict=True)) == [(0, 1)]
    assert pairs.similarity == pytest.approx([0.5], abs=0.02)
    assert concatenate_rings([rings, rings]).take([5]).to_lists() == [shifted]
