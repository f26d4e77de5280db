"""Matches between the marks of workers and objects on the same tasks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.marks import MarkCrowd
from wisecrowd.data.overlaps import SimilarPairs, find_box_pairs, find_point_pairs, find_span_pairs
from wisecrowd.data.polygon_rings import PolygonRings, concatenate_rings, find_polygon_pairs, rasterise_polygons

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Dice coefficient from which a mark is a mark of an object.
MIN_SIMILARITY = 0.5


class MarkMatches(NamedTuple):
    """Marks and the objects that they belong to: one object per mark, and one mark per worker and object.

    Parameters
    ----------
    mark, target : ndarray of shape (n_matches,)
        Positions of marks and of objects.
    similarity : ndarray of shape (n_matches,)
        Dice coefficients; for points, 1/2 at the distance of one radius.
    """

    mark: Codes
    target: Codes
    similarity: Array


def find_mark_pairs(
    kind: str,
    task: NDArray[np.integer[Any]],
    coordinates: Array,
    radius: float = 1.0,
    rings: PolygonRings | None = None,
    *,
    n_marks: int | None = None,
) -> SimilarPairs:
    """Return the pairs of marks of any kind on a task that overlap.

    Parameters
    ----------
    kind : {"boxes", "points", "polygons", "spans"}
        Kind of marks.
    task : ndarray of shape (n,)
        Task codes.
    coordinates : ndarray of shape (n, n_coordinates)
        Places.
    radius : float, default=1.0
        Distance of points at which their similarity is 1/2.
    rings : PolygonRings, default=None
        Vertices of polygons, one ring per row.
    n_marks : int, default=None
        If given, only pairs of one of the first ``n_marks`` rows and one of the others are returned.

    Returns
    -------
    SimilarPairs

    Examples
    --------
    >>> find_mark_pairs("spans", np.zeros(2, int), np.array([[0.0, 2], [1.0, 3]])).similarity.tolist()
    [0.5]
    """
    if kind == "polygons":
        assert rings is not None
        cells = rasterise_polygons(rings, task, int(task.max(initial=-1)) + 1).cells
        return find_polygon_pairs(task, rings, cells, n_marks=n_marks)
    if kind == "points":
        pairs = find_point_pairs(task, coordinates, radius)
    else:
        pairs = (find_box_pairs if kind == "boxes" else find_span_pairs)(task, coordinates)
    if n_marks is None:
        return pairs
    is_mixed = (pairs.first < n_marks) & (pairs.second >= n_marks)
    return SimilarPairs(pairs.first[is_mixed], pairs.second[is_mixed], pairs.similarity[is_mixed])


def find_overlaps(
    crowd: MarkCrowd,
    object_task: NDArray[np.integer[Any]],
    object_coordinates: Array,
    radius: float = 1.0,
    object_rings: PolygonRings | None = None,
) -> MarkMatches:
    """Return all pairs of a mark and an object that overlap.

    Parameters
    ----------
    crowd : MarkCrowd
        Marks.
    object_task : ndarray of shape (n_objects,)
        Task codes of the objects.
    object_coordinates : ndarray of shape (n_objects, n_coordinates)
        Places of the objects.
    radius : float, default=1.0
        Distance of points at which their similarity is 1/2.
    object_rings : PolygonRings, default=None
        Vertices of the objects, for polygons.

    Returns
    -------
    MarkMatches
        Here, a mark may have several objects.

    Examples
    --------
    >>> from wisecrowd.data.spans import SpanCrowd
    >>> crowd = SpanCrowd.from_frame({"task": ["d"], "worker": ["ann"], "start": [0], "end": [4]})
    >>> find_overlaps(crowd, np.array([0, 0]), np.array([[0.0, 1], [2.0, 4]])).target.tolist()
    [0, 1]
    """
    n_marks = crowd.n_marks
    task = np.concatenate([crowd.mark_task.astype(np.int64), np.asarray(object_task, dtype=np.int64)])
    places, rings = np.vstack([crowd.coordinates, object_coordinates]), crowd.get_rings()
    if rings is not None:
        assert object_rings is not None
        rings = concatenate_rings([rings, object_rings])
    pairs = find_mark_pairs(crowd.answer_type, task, places, radius, rings, n_marks=n_marks)
    return MarkMatches(pairs.first, pairs.second - n_marks, pairs.similarity)


def match_marks(
    crowd: MarkCrowd,
    object_task: NDArray[np.integer[Any]],
    object_coordinates: Array,
    *,
    radius: float = 1.0,
    min_similarity: float = MIN_SIMILARITY,
    object_rings: PolygonRings | None = None,
) -> MarkMatches:
    """Match marks with the most similar objects.

    Every mark goes to its most similar object; of several marks of a worker for an object, the most similar one stays.

    Parameters
    ----------
    crowd : MarkCrowd
        Marks.
    object_task : ndarray of shape (n_objects,)
        Task codes of the objects.
    object_coordinates : ndarray of shape (n_objects, n_coordinates)
        Places of the objects.
    radius : float, default=1.0
        Distance of points at which their similarity is 1/2.
    min_similarity : float, default=0.5
        Similarity from which a mark belongs to an object.
    object_rings : PolygonRings, default=None
        Vertices of the objects, for polygons.

    Returns
    -------
    MarkMatches
        Sorted by mark.

    Examples
    --------
    >>> from wisecrowd.data.spans import SpanCrowd
    >>> crowd = SpanCrowd.from_frame({"task": ["d", "d"], "worker": ["ann", "ann"], "start": [0, 2], "end": [2, 4]})
    >>> match_marks(crowd, np.array([0]), np.array([[0.0, 3]])).mark.tolist()
    [0]
    """
    overlaps = find_overlaps(crowd, object_task, object_coordinates, radius, object_rings)
    return select_matches(crowd, overlaps, min_similarity)


def select_matches(crowd: MarkCrowd, overlaps: MarkMatches, min_similarity: float = MIN_SIMILARITY) -> MarkMatches:
    """Select the match of every mark from all overlaps, as `match_marks` does.

    Parameters
    ----------
    crowd : MarkCrowd
        Marks.
    overlaps : MarkMatches
        Result of `find_overlaps`.
    min_similarity : float, default=0.5
        Similarity from which a mark belongs to an object.

    Returns
    -------
    MarkMatches
        Sorted by mark.

    Examples
    --------
    >>> from wisecrowd.data.spans import SpanCrowd
    >>> crowd = SpanCrowd.from_frame({"task": ["d"], "worker": ["ann"], "start": [0], "end": [4]})
    >>> select_matches(crowd, find_overlaps(crowd, np.array([0, 0]), np.array([[0.0, 1], [2.0, 4]]))).target.tolist()
    [1]
    """
    is_near = overlaps.similarity >= min_similarity
    mark, target, similarity = overlaps.mark[is_near], overlaps.target[is_near], overlaps.similarity[is_near]
    order = np.lexsort((target, -similarity, mark))
    mark, target, similarity = mark[order], target[order], similarity[order]
    is_first = _mark_changes(mark)
    mark, target, similarity = mark[is_first], target[is_first], similarity[is_first]
    key = target * np.int64(max(crowd.n_workers, 1)) + crowd.mark_worker[mark]
    order = np.lexsort((mark, -similarity, key))
    chosen = np.sort(order[_mark_changes(key[order])])
    return MarkMatches(mark[chosen], target[chosen], similarity[chosen])


def _mark_changes(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which values differ from the one before."""
    return np.append(True, np.diff(values) != 0) if len(values) else np.empty(0, dtype=bool)
