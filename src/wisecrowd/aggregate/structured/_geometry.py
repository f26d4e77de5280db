"""Similarity of marks and merging of their places, for every kind of marks."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from wisecrowd.aggregate.structured._boundaries import (
    PRECISION_PRIOR,
    Boundaries,
    compute_medians,
    merge_by_precision,
    merge_by_vote,
)
from wisecrowd.base.mask_aggregator import TIE_TOLERANCE, compute_vote_iou
from wisecrowd.data.marks import MarkCrowd
from wisecrowd.data.mask_runs import concatenate_masks
from wisecrowd.data.masks import MaskCrowd
from wisecrowd.data.outlines import trace_outlines
from wisecrowd.data.overlaps import SimilarPairs, find_box_pairs, find_point_pairs, find_span_pairs
from wisecrowd.data.polygon_rings import PolygonRings, concatenate_rings, find_polygon_pairs, rasterise_polygons
from wisecrowd.data.polygons import PolygonCrowd
from wisecrowd.data.vote_patterns import find_vote_patterns

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: The radius of points, in medians of the distance between nearest points of two workers. Two normal errors in the plane
#: differ by less than 2.5 medians in 99 of 100 cases; the rest is for workers who are less precise than others.
RADIUS_FACTOR = 3.5
#: Smallest distance of a worker's polygons from the result, so that no worker decides alone.
MIN_DISTANCE = 0.01
#: Quantiles of squared distances at which the mixture of near and far points starts, and its iterations.
START_QUANTILES, MIXTURE_ITERATIONS = (0.1, 0.9), 100
#: Ratio of mean squared distances, and share of near points, from which the two kinds are told apart.
MIN_SEPARATION, MIN_NEAR_SHARE = 25.0, 0.05
#: Pairs of points that are compared to estimate the radius.
MAX_RADIUS_PAIRS = 1 << 21


class Geometry(Protocol):
    """Geometry of one kind of marks."""

    def find_pairs(self, crowd: MarkCrowd) -> SimilarPairs:
        """Return the pairs of marks with positive similarity.

        Parameters
        ----------
        crowd : MarkCrowd
            Marks.

        Returns
        -------
        SimilarPairs
        """
        ...

    def merge(self, crowd: MarkCrowd, mark_object: Codes, real: Array) -> Boundaries:
        """Return the boundaries of objects.

        Parameters
        ----------
        crowd : MarkCrowd
            Marks.
        mark_object : ndarray of shape (n_marks,)
            Object of every mark.
        real : ndarray of shape (n_objects,)
            Probability that an object is real.

        Returns
        -------
        Boundaries
        """
        ...

    def measure(self, coordinates: Array) -> Array:
        """Return the size of marks, such as their area.

        Parameters
        ----------
        coordinates : ndarray of shape (n, n_coordinates)
            Places.

        Returns
        -------
        ndarray of shape (n,)
        """
        ...


class BoxGeometry:
    """Boxes: Dice coefficient, and means of the four edges."""

    def find_pairs(self, crowd: MarkCrowd) -> SimilarPairs:
        """See `Geometry.find_pairs`."""
        return find_box_pairs(crowd.mark_task, crowd.coordinates)

    def merge(self, crowd: MarkCrowd, mark_object: Codes, real: Array) -> Boundaries:
        """See `Geometry.merge`."""
        corners, sides = crowd.coordinates[:, :2], crowd.coordinates[:, 2:]
        size = compute_medians(sides, mark_object, len(real))
        edges = np.hstack([corners, corners + sides])
        merged = merge_by_precision(
            edges, np.hstack([size, size]), mark_object, crowd.mark_worker, real, crowd.n_workers
        )
        begin, end = merged.coordinates[:, :2], merged.coordinates[:, 2:]
        return merged._replace(coordinates=np.hstack([begin, end - begin]))

    def measure(self, coordinates: Array) -> Array:
        """See `Geometry.measure`."""
        return np.asarray(coordinates[:, 2] * coordinates[:, 3])


class PolygonGeometry:
    """Polygons: Dice coefficient of the cells that they cover, and a weighted vote on cells.

    Parameters
    ----------
    crowd : PolygonCrowd
        Polygons.
    """

    def __init__(self, crowd: PolygonCrowd) -> None:
        self.rings = crowd.get_rings()
        self.grid = rasterise_polygons(self.rings, crowd.mark_task, crowd.n_tasks)

    def find_pairs(self, crowd: MarkCrowd) -> SimilarPairs:
        """See `Geometry.find_pairs`."""
        return find_polygon_pairs(crowd.mark_task, self.rings, self.grid.cells)

    def merge(self, crowd: MarkCrowd, mark_object: Codes, real: Array) -> Boundaries:
        """See `Geometry.merge`."""
        n_objects, worker = len(real), crowd.mark_worker
        votes = MaskCrowd(
            mark_object, worker, self.grid.cells, tasks=pd.RangeIndex(n_objects), workers=pd.RangeIndex(crowd.n_workers)
        )
        patterns = find_vote_patterns(votes)
        evidence = np.where(votes.votes_per_task > 1, real, 0.0)[
            votes.task
        ]  # a single mark says nothing about precision
        chances = np.bincount(votes.worker, evidence, crowd.n_workers)

        def vote(weight: Array) -> NDArray[np.bool_]:
            """Return the patterns of cells that at least half of the workers of an object enclosed."""
            own = weight[votes.worker]
            share = (patterns.marks @ own) / np.bincount(votes.task, own, n_objects)[patterns.task]
            return np.asarray((share >= 0.5 - TIE_TOLERANCE) & (patterns.n_marks > 0))

        # Distances are measured from the vote with equal weights: with weights, one worker could come to own every object.
        distance = evidence * (1 - compute_vote_iou(patterns, votes, vote(np.ones(crowd.n_workers))))
        total = np.bincount(votes.worker, distance, crowd.n_workers)
        typical = total.sum() / chances.sum() if chances.sum() > 0 else 1.0
        error = np.maximum((total + PRECISION_PRIOR * typical) / (chances + PRECISION_PRIOR), MIN_DISTANCE)
        weight = np.log1p(1 / error)
        weight /= np.median(weight)
        is_inside = vote(weight)
        cells = patterns.select_masks(is_inside, votes.height, votes.width)
        # Polygons that share few cells may leave nothing; the largest polygon stands for them.
        lost = cells.area == 0
        if lost.any():
            by_size = np.lexsort((-votes.masks.area, votes.task))
            largest = by_size[np.append(True, np.diff(votes.task[by_size]) != 0)]
            both = concatenate_masks([cells, votes.masks])
            cells = both.take(np.where(lost, n_objects + largest, np.arange(n_objects)))
        outlines = trace_outlines(cells)
        task = np.zeros(n_objects, dtype=np.int64)
        task[mark_object] = crowd.mark_task
        scale, origin = self.grid.cell_size[task], self.grid.origin[task]
        rings = PolygonRings(outlines.offset, origin[outlines.polygon] + outlines.points * scale[outlines.polygon])
        # A single polygon stays as it was drawn.
        single = np.bincount(mark_object, minlength=n_objects) == 1
        position = np.arange(n_objects)
        position[mark_object[single[mark_object]]] = n_objects + np.flatnonzero(single[mark_object])
        rings = concatenate_rings([rings, self.rings]).take(position)
        coordinates = np.column_stack([rings.boxes, rings.area, np.arange(n_objects)])
        return Boundaries(coordinates, np.ones(n_objects), weight, error, rings)

    def measure(self, coordinates: Array) -> Array:
        """See `Geometry.measure`."""
        return np.asarray(coordinates[:, 4])


class SpanGeometry:
    """Spans: Dice coefficient, and a vote on start and end."""

    def find_pairs(self, crowd: MarkCrowd) -> SimilarPairs:
        """See `Geometry.find_pairs`."""
        return find_span_pairs(crowd.mark_task, crowd.coordinates)

    def merge(self, crowd: MarkCrowd, mark_object: Codes, real: Array) -> Boundaries:
        """See `Geometry.merge`."""
        return merge_by_vote(crowd.coordinates, mark_object, crowd.mark_worker, real, crowd.n_workers)

    def measure(self, coordinates: Array) -> Array:
        """See `Geometry.measure`."""
        return np.asarray(coordinates[:, 1] - coordinates[:, 0])


class PointGeometry:
    """Points: a similarity that is 1/2 at the distance ``radius``, and means of the coordinates.

    Parameters
    ----------
    radius : float
        Distance at which two points are as likely as not the same object.
    """

    def __init__(self, radius: float) -> None:
        self.radius = radius

    def find_pairs(self, crowd: MarkCrowd) -> SimilarPairs:
        """See `Geometry.find_pairs`."""
        return find_point_pairs(crowd.mark_task, crowd.coordinates, self.radius)

    def merge(self, crowd: MarkCrowd, mark_object: Codes, real: Array) -> Boundaries:
        """See `Geometry.merge`."""
        scale = np.full((len(real), 2), self.radius)
        return merge_by_precision(crowd.coordinates, scale, mark_object, crowd.mark_worker, real, crowd.n_workers)

    def measure(self, coordinates: Array) -> Array:
        """See `Geometry.measure`; all points have the same size."""
        return np.ones(len(coordinates))


def estimate_radius(crowd: MarkCrowd) -> float:
    """Return the distance within which points of two workers are one object.

    It is a multiple of the median distance from a point to the nearest point of another worker on the task, over all
    points and workers. Nearest points of different objects are left out if they are clearly farther: squared distances of
    normal errors, and of points at random, are exponential, so they are separated by a mixture of two exponential distributions.

    Parameters
    ----------
    crowd : MarkCrowd
        Points.

    Returns
    -------
    float

    Examples
    --------
    >>> from wisecrowd.data.points import PointCrowd
    >>> points = {"task": [1, 1, 1, 1], "worker": ["a", "b", "a", "b"], "x": [0, 2, 50, 52], "y": [0, 0, 0, 0]}
    >>> estimate_radius(PointCrowd.from_frame(points))
    7.0
    """
    points, task, worker = crowd.coordinates, crowd.mark_task, crowd.mark_worker
    n_marks = np.bincount(task, minlength=crowd.n_tasks)
    begin = np.cumsum(n_marks) - n_marks  # marks are sorted by task
    tasks = np.flatnonzero(n_marks > 1)
    # Tasks at even distances until the pairs are many enough.
    budget = MAX_RADIUS_PAIRS / max(float((n_marks[tasks] ** 2).sum()), 1.0)
    tasks = tasks[:: max(int(np.ceil(1 / budget)), 1)] if budget < 1 else tasks
    count = n_marks[tasks] ** 2
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    side = np.repeat(n_marks[tasks], count)
    first = np.repeat(begin[tasks], count) + within // np.maximum(side, 1)
    second = np.repeat(begin[tasks], count) + within % np.maximum(side, 1)
    differ = worker[first] != worker[second]
    first, second = first[differ], second[differ]
    if not len(first):
        return 1.0
    distance = np.sqrt(((points[first] - points[second]) ** 2).sum(axis=1))
    order = np.lexsort((distance, worker[second], first))
    key = first[order] * np.int64(crowd.n_workers) + worker[second][order]
    nearest = distance[order][np.append(True, np.diff(key) != 0)]
    return max(RADIUS_FACTOR * _find_typical_distance(nearest), 1e-9)


def _find_typical_distance(nearest: Array) -> float:
    """Return the median distance of nearest points that belong to one object."""
    square = nearest**2
    floor = float(square.max()) * 1e-12
    if not floor > 1e-200:  # all points of an object are the same
        return float(np.median(nearest))
    near, far = np.maximum(np.quantile(square, START_QUANTILES), floor)
    share = 0.5
    for _ in range(MIXTURE_ITERATIONS):
        log_odds = np.log(share / (1 - share)) + np.log(far / near) - square * (1 / near - 1 / far)
        prob = expit(log_odds)
        total = float(prob.sum())
        share = float(np.clip(total / len(square), 1e-6, 1 - 1e-6))
        near = max(float(prob @ square) / max(total, 1e-300), floor)
        far = max(float((1 - prob) @ square) / max(len(square) - total, 1e-300), floor)
    if far < MIN_SEPARATION * near or share < MIN_NEAR_SHARE:
        return float(np.median(nearest))  # one kind of distances
    return float(np.sqrt(near * np.log(2)))  # the median of an exponential distribution
