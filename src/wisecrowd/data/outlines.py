"""Outlines of masks: rings of vertices around their parts and holes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.mask_runs import MaskRuns
from wisecrowd.data.polygon_rings import PolygonRings

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Directions of edges, clockwise on a screen, with the mask on the right-hand side.
RIGHT, DOWN, LEFT, UP = 0, 1, 2, 3


def trace_outlines(masks: MaskRuns) -> PolygonRings:
    """Return the outline of the largest part of every mask.

    Vertices are the middles of the sides of pixels on the boundary, so that slanted boundaries have no steps. Holes and smaller
    parts are left out.

    Parameters
    ----------
    masks : MaskRuns
        Masks, none of them empty.

    Returns
    -------
    PolygonRings
        One polygon per mask; x and y in pixels from the upper left corner.

    Examples
    --------
    >>> trace_outlines(MaskRuns.from_arrays([[[0, 0], [0, 1]]])).to_lists()
    [[[1.5, 1.0], [2.0, 1.5], [1.5, 2.0], [1.0, 1.5]]]
    """
    rings, ring_mask = trace_rings(masks)
    largest = np.lexsort((-rings.area, ring_mask))  # a hole is smaller than the part around it
    return rings.take(largest[np.append(True, np.diff(ring_mask[largest]) != 0)] if len(largest) else largest)


def trace_rings(masks: MaskRuns) -> tuple[PolygonRings, Codes]:
    """Return the outlines of all parts and holes of masks.

    Parameters
    ----------
    masks : MaskRuns
        Masks.

    Returns
    -------
    rings : PolygonRings
        Outlines; x and y in pixels from the upper left corner. By the even–odd rule, they enclose the mask.
    mask : ndarray of shape (n_rings,)
        Mask of every ring.

    Examples
    --------
    >>> rings, mask = trace_rings(MaskRuns.from_arrays([[[1, 0, 1]], [[0, 0, 0]]]))
    >>> len(rings), mask.tolist()
    (2, [0, 0])
    """
    mask, start, end, direction = _find_edges(masks)
    stride = int(masks.height.max(initial=0)) + 2
    size = stride * (int(masks.width.max(initial=0)) + 2)
    corner = mask * size + start[:, 0] * stride + start[:, 1]
    target = mask * size + end[:, 0] * stride + end[:, 1]
    # At a corner where two parts touch, an edge continues to the right, so that parts stay separate.
    leaving, arriving = np.lexsort(((direction - 1) % 4, corner)), np.lexsort((direction, target))
    following = np.empty(len(corner), dtype=np.int64)
    following[arriving] = leaving
    ring, rank = _order_rings(following)
    order = np.lexsort((rank, ring))
    ring = ring[order]
    begins = np.flatnonzero(np.append(True, np.diff(ring) != 0)[: len(ring)])
    offset = np.append(begins, len(ring))
    rings = PolygonRings(offset, ((start + end) / 2)[order])
    return _remove_straight_vertices(rings), mask[order][begins]


def _find_edges(masks: MaskRuns) -> tuple[Codes, Codes, Codes, Codes]:
    """Return mask, first and last corner (x, y) and direction of all sides of runs on the boundary."""
    mask, height = masks.mask, masks.height[masks.mask]
    # Runs that continue in the next column are cut at the end of every column.
    first_column, last_column = masks.start // height, (masks.end - 1) // height
    count = last_column - first_column + 1
    run = np.repeat(np.arange(len(mask)), count)
    column = first_column[run] + np.arange(len(run)) - np.repeat(np.cumsum(count) - count, count)
    mask, height = mask[run], height[run]
    top = np.maximum(masks.start[run] - column * height, 0)
    bottom = np.minimum(masks.end[run] - column * height, height)
    pieces = [
        (mask, column, top, column + 1, top, RIGHT),
        (mask, column + 1, bottom, column, bottom, LEFT),
    ]
    # Left and right sides are where exactly one of two neighbouring columns has a run: bit 0 is the column on the left.
    side = np.concatenate([column + 1, column])
    is_right = np.repeat([0, 1], len(column))
    both_mask, tops, bottoms = np.tile(mask, 2), np.tile(top, 2), np.tile(bottom, 2)
    event_mask, event_x = np.tile(both_mask, 2), np.tile(side, 2)
    event_y, event_bit = np.concatenate([tops, bottoms]), np.tile(is_right, 2)
    order = np.lexsort((event_bit, event_y, event_x, event_mask))
    event_mask, event_x, event_y = event_mask[order], event_x[order], event_y[order]
    state = np.bitwise_xor.accumulate(1 << event_bit[order])
    following = np.append(event_y[1:], 0)
    for wanted, direction in ((1, DOWN), (2, UP)):
        rows = np.flatnonzero((state == wanted) & (following != event_y))
        ends = (event_y[rows], following[rows]) if direction == DOWN else (following[rows], event_y[rows])
        pieces.append((event_mask[rows], event_x[rows], ends[0], event_x[rows], ends[1], direction))
    # Sides of several pixels are cut into sides of single pixels, whose middles become vertices.
    parts = [_cut_edges(*piece) for piece in pieces]
    return (
        np.concatenate([part[0] for part in parts]),
        np.concatenate([part[1] for part in parts]),
        np.concatenate([part[2] for part in parts]),
        np.concatenate([part[3] for part in parts]),
    )


def _cut_edges(mask: Codes, x0: Codes, y0: Codes, x1: Codes, y1: Codes, direction: int) -> tuple[Codes, ...]:
    """Return edges of length 1."""
    length = np.abs(x1 - x0) + np.abs(y1 - y0)
    edge = np.repeat(np.arange(len(mask)), length)
    step = np.arange(len(edge)) - np.repeat(np.cumsum(length) - length, length)
    dx, dy = np.sign(x1 - x0)[edge], np.sign(y1 - y0)[edge]
    start = np.stack([x0[edge] + step * dx, y0[edge] + step * dy], axis=1)
    end = start + np.stack([dx, dy], axis=1)
    return mask[edge], start, end, np.full(len(edge), direction)


def _order_rings(following: Codes) -> tuple[Codes, Codes]:
    """Return the ring of every edge, and its rank within the ring, from the edge that follows each."""
    n = len(following)
    ring, jump = np.arange(n), following.copy()
    n_rounds = max(int(np.ceil(np.log2(max(n, 2)))), 1)
    for _ in range(n_rounds):  # the smallest edge of a ring names it; distances double in every round
        smaller = np.minimum(ring, ring[jump])
        if np.array_equal(smaller, ring) and (ring[following] == ring).all():
            break
        ring, jump = smaller, jump[jump]
    # Steps to the last edge of the ring, which is followed by the one that names it.
    is_last = following == ring
    distance, jump = np.where(is_last, 0, 1), np.where(is_last, np.arange(n), following)
    for _ in range(n_rounds):
        if not distance[jump].any():
            break
        distance, jump = distance + distance[jump], jump[jump]
    return ring, -distance


def _remove_straight_vertices(rings: PolygonRings) -> PolygonRings:
    """Leave out vertices on a straight line between their neighbours."""
    following = rings.next_vertex
    before = np.empty_like(following)
    before[following] = np.arange(len(following))
    into, out = rings.points - rings.points[before], rings.points[following] - rings.points
    is_corner = np.abs(into[:, 0] * out[:, 1] - into[:, 1] * out[:, 0]) > 1e-12
    count = np.bincount(rings.polygon[is_corner], minlength=len(rings))
    offset = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
    return PolygonRings(offset, rings.points[is_corner])
