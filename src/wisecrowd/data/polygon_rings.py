"""Polygons as rings of vertices: parsing, area, and the grid cells that they cover."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wisecrowd.data.mask_runs import MaskRuns
from wisecrowd.data.overlaps import SimilarPairs, find_box_pairs
from wisecrowd.data.vote_patterns import count_shared_pixels
from wisecrowd.errors import InputError, preview

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Cells of the grid along a polygon of median size; the error of an overlap is about the inverse.
RESOLUTION = 64
#: Largest number of cells along one side of a grid.
MAX_CELLS = 1 << 20
#: Pairs of polygons whose cells are compared at once.
PAIRS_PER_CHUNK = 1 << 14


@dataclass(frozen=True)
class PolygonRings:
    """Polygons, each as the ring of its vertices; the last vertex is joined with the first.

    Parameters
    ----------
    offset : ndarray of shape (n_polygons + 1,)
        Polygon ``n`` has the vertices ``points[offset[n]:offset[n + 1]]``.
    points : ndarray of shape (n_vertices, 2)
        x and y.

    Examples
    --------
    >>> rings = parse_polygons(["[[0, 0], [4, 0], [0, 2]]"])
    >>> rings.area.tolist(), rings.boxes.tolist()
    ([4.0], [[0.0, 0.0, 4.0, 2.0]])
    """

    offset: Codes
    points: Array

    def __len__(self) -> int:
        return len(self.offset) - 1

    @property
    def polygon(self) -> Codes:
        """Polygon of every vertex."""
        return np.repeat(np.arange(len(self)), np.diff(self.offset))

    @property
    def next_vertex(self) -> Codes:
        """Position of the vertex that follows in the ring."""
        following = np.arange(1, len(self.points) + 1)
        following[self.offset[1:] - 1] = self.offset[:-1]
        return following

    @property
    def area(self) -> Array:
        """Area of every polygon, by the shoelace formula."""
        ends = self.points[self.next_vertex]
        cross = self.points[:, 0] * ends[:, 1] - ends[:, 0] * self.points[:, 1]
        return np.asarray(np.abs(np.bincount(self.polygon, cross, len(self))) / 2)

    @property
    def has_area(self) -> NDArray[np.bool_]:
        """Mask of the polygons that enclose an area."""
        return np.asarray((self.boxes[:, 2:] > 0).all(axis=1) & (self.area > 0))

    @property
    def boxes(self) -> Array:
        """Bounding boxes: x, y, width and height."""
        if not len(self):
            return np.empty((0, 4))
        low, high = (function.reduceat(self.points, self.offset[:-1]) for function in (np.minimum, np.maximum))
        return np.hstack([low, high - low])

    def take(self, rows: ArrayLike) -> PolygonRings:
        """Select polygons.

        Parameters
        ----------
        rows : array-like of int
            Positions of polygons, in any order.

        Returns
        -------
        PolygonRings
        """
        selected = np.asarray(rows, dtype=np.int64)
        count = np.diff(self.offset)[selected]
        offset = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
        vertex = np.repeat(self.offset[selected] - offset[:-1], count) + np.arange(offset[-1])
        return PolygonRings(offset, self.points[vertex])

    def to_lists(self) -> list[list[list[float]]]:
        """Return polygons as lists of points.

        Returns
        -------
        list of list of [x, y]
        """
        points, ends = self.points.tolist(), self.offset.tolist()
        return [points[begin:end] for begin, end in itertools.pairwise(ends)]

    @classmethod
    def from_lists(cls, rings: Sequence[Any]) -> PolygonRings:
        """Build polygons from lists of points.

        Parameters
        ----------
        rings : sequence of array-like of shape (n_vertices, 2)
            Vertices.

        Returns
        -------
        PolygonRings
        """
        arrays = [np.asarray(ring, dtype=np.float64).reshape(-1, 2) for ring in rings]
        offset = np.concatenate([[0], np.cumsum([len(array) for array in arrays])]).astype(np.int64)
        return cls(offset, np.concatenate(arrays) if arrays else np.empty((0, 2)))


def concatenate_rings(parts: Sequence[PolygonRings]) -> PolygonRings:
    """Join several collections of polygons.

    Parameters
    ----------
    parts : sequence of PolygonRings
        Polygons.

    Returns
    -------
    PolygonRings

    Examples
    --------
    >>> rings = parse_polygons([[0, 0, 4, 0, 0, 2]])
    >>> len(concatenate_rings([rings, rings]))
    2
    """
    count = np.concatenate([np.diff(part.offset) for part in parts])
    offset = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
    return PolygonRings(offset, np.concatenate([part.points for part in parts]))


def parse_ring(cell: Any) -> Array | None:
    """Return the vertices of a polygon in a cell of a table.

    Parameters
    ----------
    cell : object
        List of points, flat list, or JSON text; see `parse_polygons`.

    Returns
    -------
    ndarray of shape (n_vertices, 2) or None
        None if the cell holds no polygon, or one with fewer than three vertices.

    Examples
    --------
    >>> parse_ring("[0, 0, 4, 0, 0, 2, 0, 0]").tolist(), parse_ring("[0, 0, 4, 0]")
    ([[0.0, 0.0], [4.0, 0.0], [0.0, 2.0]], None)
    """
    value: Any = cell
    try:
        if isinstance(value, str):
            value = json.loads(value)
        ring = np.array(value, dtype=np.float64)
    except (ValueError, TypeError, RecursionError):
        return None
    if ring.ndim == 1 or (ring.ndim == 2 and ring.shape[0] == 1):
        ring = ring.reshape(-1, 2) if ring.size % 2 == 0 else np.empty((0, 2))
    if ring.ndim != 2 or ring.shape[1] != 2 or not np.isfinite(ring).all():
        return None
    if len(ring) > 1 and (ring[0] == ring[-1]).all():
        ring = ring[:-1]
    return ring if len(ring) >= 3 else None


def parse_polygons(cells: Sequence[Any]) -> PolygonRings:
    """Build polygons from cells of a table.

    Parameters
    ----------
    cells : sequence
        Lists of points ``[[x, y], ...]``, flat lists ``[x, y, x, y, ...]`` as in COCO, or JSON texts of them.

    Returns
    -------
    PolygonRings

    Raises
    ------
    InputError
        If a cell holds no polygon, or one with fewer than three vertices or without an area.

    Examples
    --------
    >>> parse_polygons([[0, 0, 4, 0, 0, 2]]).to_lists()
    [[[0.0, 0.0], [4.0, 0.0], [0.0, 2.0]]]
    """
    rings = []
    for row, cell in enumerate(cells):
        ring = parse_ring(cell)
        if ring is None:
            raise InputError(
                f"row {row} has no polygon but {preview([cell])}; expected at least three points: [[x, y], [x, y], ...]"
            )
        rings.append(ring)
    polygons = PolygonRings.from_lists(rings)
    flat = np.flatnonzero(~polygons.has_area)
    if flat.size:
        raise InputError(
            f"row {flat[0]} has a polygon without an area: {preview([cells[flat[0]]])}; expected points that enclose one"
        )
    return polygons


@dataclass(frozen=True)
class PolygonGrid:
    """Cells that polygons cover, on one grid per task.

    Parameters
    ----------
    cells : MaskRuns
        Cells of every polygon.
    origin, cell_size : ndarray of shape (n_tasks, 2)
        Upper left corner of the grid of a task, and the size of its cells.
    """

    cells: MaskRuns
    origin: Array
    cell_size: Array


def rasterise_polygons(rings: PolygonRings, task: NDArray[np.integer], n_tasks: int) -> PolygonGrid:
    """Find the cells of a grid whose centres are inside polygons, by the even–odd rule.

    A cell is about 1/64 of the sides of a typical polygon of the task, so coordinates may be pixels, shares or percentages.

    Parameters
    ----------
    rings : PolygonRings
        Polygons.
    task : ndarray of shape (n_polygons,)
        Task of every polygon.
    n_tasks : int
        Number of tasks.

    Returns
    -------
    PolygonGrid

    Examples
    --------
    >>> grid = rasterise_polygons(parse_polygons([[0, 0, 4, 0, 4, 2, 0, 2]]), np.array([0]), 1)
    >>> grid.cells.area.tolist(), grid.cells.height.tolist()
    ([4096], [64])
    """
    boxes = rings.boxes
    order = np.lexsort((boxes[:, 2] * boxes[:, 3], task))
    count = np.bincount(task, minlength=n_tasks)
    begin = np.cumsum(count) - count
    has_marks = count > 0
    typical = order[(begin + count // 2)[has_marks]]  # the polygon with the median box
    origin, last = np.full((n_tasks, 2), np.inf), np.full((n_tasks, 2), -np.inf)
    np.minimum.at(origin, task, boxes[:, :2])
    np.maximum.at(last, task, boxes[:, :2] + boxes[:, 2:])
    origin[~has_marks], last[~has_marks] = 0, 1
    cell_size = np.ones((n_tasks, 2))
    cell_size[has_marks] = boxes[typical, 2:] / RESOLUTION
    cell_size = np.maximum(cell_size, (last - origin) / MAX_CELLS)
    n_cells = np.maximum(np.ceil((last - origin) / cell_size - 1e-9), 1).astype(np.int64)
    # Edges in cells; a column is crossed by the edges that have its centre between their ends.
    vertex_task = task[rings.polygon]
    start = (rings.points - origin[vertex_task]) / cell_size[vertex_task] - 0.5
    end = start[rings.next_vertex]
    left, right = np.minimum(start[:, 0], end[:, 0]), np.maximum(start[:, 0], end[:, 0])
    first = np.ceil(left).astype(np.int64)
    n_columns = np.maximum(np.ceil(right).astype(np.int64) - first, 0)
    edge = np.repeat(np.arange(len(start)), n_columns)
    column = np.repeat(first - np.cumsum(n_columns) + n_columns, n_columns) + np.arange(len(edge))
    slope = (end[edge, 1] - start[edge, 1]) / (end[edge, 0] - start[edge, 0])
    crossing = start[edge, 1] + (column - start[edge, 0]) * slope
    polygon = rings.polygon[edge]
    ordered = np.lexsort((crossing, column, polygon))
    # Crossings come in pairs: into the polygon, and out of it.
    into, out = ordered[::2], ordered[1::2]
    height = n_cells[task, 1]
    top, bottom = (
        np.clip(np.ceil(crossing[side] - 1e-9).astype(np.int64), 0, height[polygon[into]]) for side in (into, out)
    )
    position = column[into] * height[polygon[into]]
    runs = [polygon[into], position + top, position + bottom]
    # A polygon so thin that it contains no centre gets the cell in the middle of its box.
    thin = np.flatnonzero(np.bincount(runs[0], runs[2] - runs[1], len(rings)) == 0)
    if thin.size:
        middle = boxes[thin, :2] + boxes[thin, 2:] / 2
        cell = ((middle - origin[task[thin]]) / cell_size[task[thin]]).astype(np.int64)
        cell = np.minimum(cell, n_cells[task[thin]] - 1)
        place = cell[:, 0] * height[thin] + cell[:, 1]
        is_thin = np.isin(runs[0], thin)
        parts = [
            np.concatenate([run[~is_thin], added]) for run, added in zip(runs, (thin, place, place + 1), strict=True)
        ]
        runs = [part[np.argsort(parts[0], kind="stable")] for part in parts]
    cells = MaskRuns.from_runs(runs[0], runs[1], runs[2], height, n_cells[task, 0])
    return PolygonGrid(cells, origin, cell_size)


def find_polygon_pairs(
    task: NDArray[np.integer], rings: PolygonRings, cells: MaskRuns, *, n_marks: int | None = None
) -> SimilarPairs:
    """Return the pairs of polygons on a task that overlap, with their Dice coefficients.

    Parameters
    ----------
    task : ndarray of shape (n,)
        Task codes.
    rings : PolygonRings
        Polygons.
    cells : MaskRuns
        Cells of every polygon, from `rasterise_polygons`.
    n_marks : int, default=None
        If given, only pairs of one of the first ``n_marks`` polygons and one of the others are compared.

    Returns
    -------
    SimilarPairs

    Examples
    --------
    >>> rings = parse_polygons([[0, 0, 2, 0, 2, 2, 0, 2], [1, 0, 3, 0, 3, 2, 1, 2]])
    >>> task = np.zeros(2, dtype=np.int64)
    >>> find_polygon_pairs(task, rings, rasterise_polygons(rings, task, 1).cells).similarity.tolist()
    [0.5]
    """
    pairs = find_box_pairs(task, rings.boxes)
    if n_marks is not None:
        is_mixed = (pairs.first < n_marks) & (pairs.second >= n_marks)
        pairs = SimilarPairs(pairs.first[is_mixed], pairs.second[is_mixed], pairs.similarity[is_mixed])
    shared = np.empty(len(pairs.first))
    for begin in range(0, len(shared), PAIRS_PER_CHUNK):
        part = slice(begin, begin + PAIRS_PER_CHUNK)
        shared[part] = count_shared_pixels(cells.take(pairs.first[part]), cells.take(pairs.second[part]))
    area = cells.area
    total = area[pairs.first] + area[pairs.second]
    similarity = np.divide(2 * shared, total, out=np.zeros(len(shared)), where=total > 0)
    is_similar = similarity > 0
    return SimilarPairs(pairs.first[is_similar], pairs.second[is_similar], similarity[is_similar])
