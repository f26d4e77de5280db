"""Polygons that workers draw around objects of an image."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.answers_by_task import compute_answers_digest
from wisecrowd.data.marks import MarkCrowd
from wisecrowd.data.polygon_rings import PolygonRings, parse_polygons


class PolygonCrowd(MarkCrowd):
    """Polygons of workers, each a ring of vertices with a class.

    See `MarkCrowd` for attributes and construction. A table has the column polygon with lists of points, ``[[x, y], [x, y],
    ...]``, flat lists as in COCO, or JSON texts of them. The coordinates of a mark are its bounding box, its area, and the
    position of its vertices in ``rings``.

    Parameters
    ----------
    task, worker : array-like of shape (n_votes,)
        Positions in ``tasks`` and ``workers``.
    assignment, label : array-like of shape (n_marks,)
        Position of the assignment of a mark, and position of its class in ``classes``.
    polygons : PolygonRings
        Vertices of every mark.
    tasks, workers, classes : Index
        Vocabularies.

    Examples
    --------
    >>> frame = {"task": ["i1", "i1"], "worker": ["ann", "bob"], "polygon": ["[[0, 0], [4, 0], [0, 2]]", None]}
    >>> PolygonCrowd.from_frame(frame)
    PolygonCrowd(1 polygon in 2 votes: 1 task x 2 workers, 1 class)
    """

    answer_type: ClassVar[AnswerType] = "polygons"
    coordinate_names: ClassVar[tuple[str, ...]] = ("x", "y", "width", "height", "area", "ring")
    place_columns: ClassVar[tuple[str, ...]] = ("polygon",)
    noun: ClassVar[str] = "polygon"
    plural: ClassVar[str] = "polygons"

    def __init__(
        self,
        task: ArrayLike,
        worker: ArrayLike,
        assignment: ArrayLike,
        label: ArrayLike,
        polygons: PolygonRings,
        *,
        tasks: pd.Index,
        workers: pd.Index,
        classes: pd.Index,
    ) -> None:
        # Distinct rings in the order of their contents, so that neither the order of rows nor names influence a result.
        parts = [ring.tobytes() for ring in np.split(polygons.points, polygons.offset[1:-1])] if len(polygons) else []
        distinct, first, code = np.unique(np.array(parts, dtype=object), return_index=True, return_inverse=True)
        order = np.lexsort((np.arange(len(distinct)), *polygons.boxes[first].T[::-1]))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        self.rings = polygons.take(first[order])
        places = np.column_stack([polygons.boxes, polygons.area, rank[code.ravel()]])
        super().__init__(
            task, worker, assignment, label, places, tasks=tasks, workers=workers, classes=classes
        )  # fmt: skip

    @classmethod
    def _read_places(cls, table: pa.Table, names: Mapping[str, str]) -> tuple[PolygonRings, NDArray[np.int64]]:
        cells = table[names["polygon"]].to_pylist()
        rows = [row for row, cell in enumerate(cells) if cell is not None and cell not in ("", [])]
        return parse_polygons([cells[row] for row in rows]), np.array(rows, dtype=np.int64)

    @classmethod
    def _find_invalid(cls, coordinates: NDArray[np.float64]) -> tuple[NDArray[np.bool_], str]:
        return np.asarray(~(coordinates[:, 2:5] > 0).all(axis=1)), "points that enclose an area"

    def get_rings(self) -> PolygonRings:
        """Return the vertices of every mark.

        Returns
        -------
        PolygonRings
        """
        return self.rings.take(self.coordinates[:, -1].astype(np.int64))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the contents; equal crowds have equal digests."""
        rings = self.get_rings()
        arrays = (self.task, self.worker, self.mark, self.label, rings.offset, rings.points)
        return compute_answers_digest(self.answer_type, (self.tasks, self.workers, self.classes), arrays)

    def _take_places(self, rows: NDArray[np.int64]) -> PolygonRings:
        return self.get_rings().take(rows)

    def _format_places(self, row: NDArray[np.int64]) -> dict[str, Any]:
        polygons = np.empty(self.n_marks + 1, dtype=object)
        polygons[:-1] = pd.Series(format_polygons(self.get_rings()), dtype=object)
        return {"polygon": polygons[row]}


def format_polygons(rings: PolygonRings, *, digits: int | None = None) -> list[str]:
    """Return polygons as JSON texts, for tables.

    Parameters
    ----------
    rings : PolygonRings
        Polygons.
    digits : int, default=None
        Significant digits of coordinates; by default all.

    Returns
    -------
    list of str

    Examples
    --------
    >>> format_polygons(parse_polygons([[0, 0, 4, 0, 1 / 3, 2]]), digits=3)
    ['[[0, 0], [4, 0], [0.333, 2]]']
    """
    if digits is None:
        return [json.dumps(ring) for ring in rings.to_lists()]
    return ["[" + ", ".join(f"[{x:.{digits}g}, {y:.{digits}g}]" for x, y in ring) + "]" for ring in rings.to_lists()]
