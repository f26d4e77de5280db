"""Scores of boxes, points, polygons and spans against true objects."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from wisecrowd.data.boxes import BoxCrowd
from wisecrowd.data.marks import MarkCrowd
from wisecrowd.data.overlaps import SimilarPairs, find_box_pairs, find_point_pairs, find_span_pairs
from wisecrowd.data.points import PointCrowd
from wisecrowd.data.polygon_rings import find_polygon_pairs, parse_polygons, rasterise_polygons
from wisecrowd.data.polygons import PolygonCrowd
from wisecrowd.data.spans import SpanCrowd
from wisecrowd.errors import InputError, UsageError, check_choice, preview

Kind = Literal["boxes", "points", "polygons", "spans"]
_CROWDS: dict[str, type[MarkCrowd]] = {
    "boxes": BoxCrowd,
    "points": PointCrowd,
    "polygons": PolygonCrowd,
    "spans": SpanCrowd,
}
#: Overlaps are compared with this tolerance, so that rounding does not turn equal objects into different ones.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class ObjectScore:
    """Agreement of objects with the truth, over all tasks.

    Parameters
    ----------
    precision : float
        Share of the objects that match a true one; NaN without objects.
    recall : float
        Share of the true objects that are matched; NaN without true objects.
    f1 : float
        Harmonic mean of both.
    is_match : ndarray of shape (n_objects,)
        Whether each object matches a true one.
    """

    precision: float
    recall: float
    f1: float
    is_match: NDArray[np.bool_]


def score_objects(
    objects: pd.DataFrame,
    truth: pd.DataFrame,
    *,
    kind: Kind,
    min_iou: float | None = None,
    radius: float | None = None,
    match_labels: bool = True,
) -> ObjectScore:
    """Compare objects with the truth by one-to-one matches, as many as possible.

    Parameters
    ----------
    objects : DataFrame
        Objects, such as ``objects_`` of a fit: task, coordinates and label.
    truth : DataFrame
        True objects with the same columns. Objects of tasks without true objects count as wrong; leave out tasks without truth.
    kind : {"boxes", "points", "polygons", "spans"}
        Kind of objects.
    min_iou : float, default=None
        Intersection over union from which a pair matches; by default 0.5 for boxes and polygons, and 1 (exactly equal) for spans.
    radius : float, default=None
        Distance up to which points match.
    match_labels : bool, default=True
        Match only objects with equal labels, if both tables have the column label.

    Returns
    -------
    ObjectScore

    Raises
    ------
    InputError
        If a column is absent.
    UsageError
        If points have no radius.

    Examples
    --------
    >>> truth = pd.DataFrame({"task": ["d", "d"], "start": [0, 4], "end": [2, 5], "label": ["PER", "LOC"]})
    >>> score = score_objects(truth.iloc[:1], truth, kind="spans")
    >>> score.precision, score.recall
    (1.0, 0.5)
    """
    check_choice("kind", kind, tuple(_CROWDS))
    columns = _CROWDS[kind].place_columns or _CROWDS[kind].coordinate_names
    for name, table in (("objects", objects), ("truth", truth)):
        absent = [column for column in ("task", *columns) if column not in table]
        if absent:
            raise InputError(f"{name} has no column {preview(absent)}; {kind} need task, {', '.join(columns)}")
    n_objects, n_true = len(objects), len(truth)
    places: Any = pd.concat([objects[list(columns)], truth[list(columns)]])
    places = parse_polygons(places["polygon"].tolist()) if kind == "polygons" else places.to_numpy(dtype=np.float64)
    groups = [_as_keys(pd.concat([objects["task"], truth["task"]]))]
    if match_labels and "label" in objects and "label" in truth:
        groups.append(_as_keys(pd.concat([objects["label"], truth["label"]])))
    group = pd.factorize(pd.Series(list(zip(*groups, strict=True)), dtype=object))[0]
    pairs, is_near = _find_matches(kind, group, places, min_iou, radius)
    is_pair = is_near & (pairs.first < n_objects) & (pairs.second >= n_objects)
    graph = sparse.csr_matrix(
        (np.ones(is_pair.sum()), (pairs.first[is_pair], pairs.second[is_pair] - n_objects)), shape=(n_objects, n_true)
    )
    is_match = sparse.csgraph.maximum_bipartite_matching(graph, perm_type="column") >= 0
    n_matches = int(is_match.sum())
    return ObjectScore(
        n_matches / n_objects if n_objects else float("nan"),
        n_matches / n_true if n_true else float("nan"),
        2 * n_matches / (n_objects + n_true) if n_objects + n_true else float("nan"),
        is_match,
    )


def _as_keys(values: pd.Series) -> list[Hashable]:
    """Return ids as Python objects, so that equal ids of different types of columns are equal."""
    keys: list[Hashable] = values.astype(object).tolist()
    return keys


def _find_matches(
    kind: str, group: NDArray[Any], places: Any, min_iou: float | None, radius: float | None
) -> tuple[SimilarPairs, NDArray[np.bool_]]:
    """Return pairs of objects, and which of them are similar enough to match."""
    if kind == "points":
        if radius is None or not radius > 0:
            raise UsageError(f"points match within a positive radius; got {radius}. Give radius=10 for ten pixels")
        pairs = find_point_pairs(group, places, radius)
        return pairs, pairs.similarity >= 0.5 - TOLERANCE
    threshold = min_iou if min_iou is not None else {"boxes": 0.5, "polygons": 0.5, "spans": 1.0}[kind]
    if not 0 < threshold <= 1:
        raise UsageError(f"min_iou must be above 0 and at most 1; got {threshold}")
    if kind == "polygons":
        cells = rasterise_polygons(places, group, int(group.max(initial=-1)) + 1).cells
        pairs = find_polygon_pairs(group, places, cells)
        return pairs, pairs.similarity / (2 - pairs.similarity) >= threshold - TOLERANCE
    pairs = (find_box_pairs if kind == "boxes" else find_span_pairs)(group, places)
    return pairs, pairs.similarity / (2 - pairs.similarity) >= threshold - TOLERANCE
