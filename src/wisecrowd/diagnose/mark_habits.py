"""Habits of workers who mark objects: shifted marks, split and merged objects, and confused classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.mark_matches import MarkMatches, find_overlaps, select_matches
from wisecrowd.data.marks import MarkCrowd
from wisecrowd.data.polygon_rings import PolygonRings

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Share of a mark inside an object (or of an object inside a mark) from which it is a part of it.
MIN_PART = 0.75


def describe_habits(
    crowd: MarkCrowd,
    object_task: Codes,
    object_coordinates: Array,
    object_label: Codes,
    radius: float = 1.0,
    object_rings: PolygonRings | None = None,
) -> pd.DataFrame:
    """Compare the marks of workers with the objects of their tasks.

    Parameters
    ----------
    crowd : MarkCrowd
        Marks.
    object_task, object_label : ndarray of shape (n_objects,)
        Codes of the tasks and classes of the objects.
    object_coordinates : ndarray of shape (n_objects, n_coordinates)
        Places of the objects.
    radius : float, default=1.0
        Distance of points at which their similarity is 1/2.
    object_rings : PolygonRings, default=None
        Vertices of the objects, for polygons.

    Returns
    -------
    DataFrame
        By worker: n_matches (marks that belong to an object), shift_x and shift_y (mean displacement of the centre; relative to
        the size of the object for boxes and polygons, in pixels for points) or shift (of spans, in tokens or characters), each
        with a standard error, splits (objects that the worker marked in several parts), merges (marks that cover several objects),
        confused_share (matches with another class), and confuses (the most frequent confusion, as text).

    Examples
    --------
    >>> from wisecrowd.data.spans import SpanCrowd
    >>> crowd = SpanCrowd.from_frame({"task": ["d", "d"], "worker": ["ann", "ann"], "start": [0, 2], "end": [2, 4]})
    >>> describe_habits(crowd, np.array([0]), np.array([[0.0, 4]]), np.array([0]))["splits"].tolist()
    [1]
    """
    overlaps = find_overlaps(crowd, object_task, object_coordinates, radius, object_rings)
    matches = select_matches(crowd, overlaps)
    worker = crowd.mark_worker[matches.mark]
    count = np.bincount(worker, minlength=crowd.n_workers)
    columns: dict[str, Any] = {"n_matches": count}
    shift = _measure_shift(crowd, crowd.coordinates[matches.mark], object_coordinates[matches.target])
    for name, values in shift.items():
        columns[name], columns[f"{name}_error"] = _average(values, worker, crowd.n_workers)
    if crowd.has_size:
        columns["splits"], columns["merges"] = _count_parts(crowd, object_coordinates, overlaps, matches)
    if crowd.n_classes > 1:
        columns["confused_share"], columns["confuses"] = _find_confusions(
            crowd, worker, crowd.label[matches.mark], object_label[matches.target]
        )
    return pd.DataFrame(columns, index=crowd.workers.rename("worker"))


def _measure_shift(crowd: MarkCrowd, marks: Array, targets: Array) -> dict[str, Array]:
    """Return the displacement of the centres of marks from those of their objects."""
    if crowd.answer_type == "spans":
        return {"shift": (marks - targets).mean(axis=1)}
    if crowd.answer_type == "points":
        distance = marks - targets
    else:
        centre = marks[:, :2] + marks[:, 2:4] / 2
        distance = (centre - targets[:, :2] - targets[:, 2:4] / 2) / targets[:, 2:4]
    return {"shift_x": distance[:, 0], "shift_y": distance[:, 1]}


def _average(values: Array, worker: NDArray[Any], n_workers: int) -> tuple[Array, Array]:
    """Return the mean of each worker's values and its standard error; both are NaN without values."""
    count = np.bincount(worker, minlength=n_workers).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(worker, values, n_workers) / count
        variance = np.bincount(worker, (values - mean[worker]) ** 2, n_workers) / (count - 1)
        return mean, np.sqrt(variance / count)


def _count_parts(crowd: MarkCrowd, objects: Array, overlaps: MarkMatches, matches: MarkMatches) -> tuple[Codes, Codes]:
    """Return the number of objects that each worker split, and of marks that cover several objects."""
    mark, target, matched_mark, matched_target = overlaps.mark, overlaps.target, matches.mark, matches.target
    mark_size, object_size = _measure(crowd.coordinates)[mark], _measure(objects)[target]
    shared = overlaps.similarity * (mark_size + object_size) / 2
    own_target = np.full(crowd.n_marks, -1, dtype=np.int64)
    own_target[matched_mark] = matched_target
    # A mark that belongs to another object is no part of this one, such as an object inside of a larger one.
    is_free = (own_target[mark] < 0) | (own_target[mark] == target)
    is_part = (shared >= MIN_PART * mark_size) & is_free
    worker = crowd.mark_worker.astype(np.int64)
    key, n_parts = np.unique(target[is_part] * np.int64(crowd.n_workers) + worker[mark[is_part]], return_counts=True)
    splits = np.bincount(key[n_parts > 1] % max(crowd.n_workers, 1), minlength=crowd.n_workers)
    # An object that the worker also marked by itself is not merged.
    has_own = np.unique(matched_target * np.int64(crowd.n_workers) + worker[matched_mark])
    is_own = np.isin(target * np.int64(crowd.n_workers) + worker[mark], has_own) & (own_target[mark] != target)
    is_covered = (shared >= MIN_PART * object_size) & ~is_own
    n_covered = np.bincount(mark[is_covered], minlength=crowd.n_marks)
    return splits, np.bincount(worker[n_covered > 1], minlength=crowd.n_workers)


def _measure(coordinates: Array) -> Array:
    """Return the areas of boxes or polygons, or the lengths of spans."""
    if coordinates.shape[1] == 2:
        return np.asarray(coordinates[:, 1] - coordinates[:, 0])
    if coordinates.shape[1] == 4:
        return np.asarray(coordinates[:, 2] * coordinates[:, 3])
    return np.asarray(coordinates[:, 4])


def _find_confusions(
    crowd: MarkCrowd, worker: NDArray[Any], given: NDArray[Any], actual: NDArray[Any]
) -> tuple[Array, list[str]]:
    """Return the share of matched marks with another class, and the most frequent confusion of each worker."""
    n_workers, n_classes = crowd.n_workers, crowd.n_classes
    count = np.bincount(worker, minlength=n_workers)
    is_wrong = given != actual
    with np.errstate(invalid="ignore"):
        share = np.bincount(worker, is_wrong, n_workers) / count
    pair = (worker[is_wrong].astype(np.int64) * n_classes + actual[is_wrong]) * n_classes + given[is_wrong]
    key, n_errors = np.unique(pair, return_counts=True)
    order = np.lexsort((key, -n_errors, key // n_classes**2))
    key, n_errors = key[order], n_errors[order]
    n_actual = np.bincount(worker.astype(np.int64) * n_classes + actual, minlength=n_workers * n_classes)
    texts = [""] * n_workers
    _, first = np.unique(key // n_classes**2, return_index=True)
    for position in first:
        code, (actual_code, given_code) = (
            int(key[position] // n_classes**2),
            divmod(int(key[position] % n_classes**2), n_classes),
        )
        rate = n_errors[position] / n_actual[code * n_classes + actual_code]
        texts[code] = f"{crowd.classes[actual_code]} → {crowd.classes[given_code]} {rate:.0%}"
    return share, texts
