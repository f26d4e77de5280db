"""Outlines enclose the largest part of a mask."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import binary_fill_holes, label

from wisecrowd.data.mask_runs import MaskRuns
from wisecrowd.data.outlines import trace_outlines, trace_rings
from wisecrowd.data.polygon_rings import PolygonRings


def contains(rings: PolygonRings, number: int, shape: tuple[int, int]) -> np.ndarray:
    """Return the pixels whose centres are inside a ring, by counting crossings to the right of each."""
    ring = np.array(rings.to_lists()[number])
    y, x = np.mgrid[: shape[0], : shape[1]] + 0.5
    x = x + 1e-7  # no centre is on an edge
    inside = np.zeros(shape, dtype=bool)
    for (x0, y0), (x1, y1) in zip(ring, np.roll(ring, -1, axis=0), strict=True):
        if y0 != y1:
            crosses = (np.minimum(y0, y1) <= y) & (y < np.maximum(y0, y1))
            inside ^= crosses & (x0 + (y - y0) * (x1 - x0) / (y1 - y0) > x)
    return inside


def test_outlines_of_random_masks() -> None:
    rng = np.random.default_rng(0)
    arrays = []
    for _ in range(60):
        array = rng.random(rng.integers(1, 12, 2)) < rng.uniform(0.2, 1)
        array[0, 0] = True
        arrays.append(array)
    rings = trace_outlines(MaskRuns.from_arrays(arrays))
    assert len(rings) == 60
    for number, array in enumerate(arrays):
        inside = contains(rings, number, array.shape)
        parts, count = label(array)  # parts that share sides
        sizes = [binary_fill_holes(parts == part + 1, np.ones((3, 3))).sum() for part in range(count)]
        enclosed = np.unique(parts[inside & array])
        assert len(enclosed) >= 1
        largest = int(np.argmax(sizes)) + 1
        own = parts == parts[tuple(np.argwhere(inside & array)[0])]
        assert inside[own].all() or sizes[largest - 1] >= own.sum()
        assert inside.sum() >= max((parts == part + 1).sum() for part in range(count)) - 1


def test_a_disc_keeps_its_area() -> None:
    disc = np.add.outer((np.arange(50) - 24.5) ** 2, (np.arange(60) - 30.2) ** 2) < 400
    ring = trace_outlines(MaskRuns.from_arrays([disc]))
    assert ring.area[0] == pytest.approx(disc.sum(), rel=0.005)
    assert (contains(ring, 0, disc.shape) == disc).all()
    assert len(ring.points) < 100


def test_holes_and_small_parts_are_left_out() -> None:
    frame = np.zeros((12, 12))
    frame[1:9, 1:9] = 1
    frame[4:6, 4:6] = 0
    frame[10, 10] = 1
    frame[9, 9] = 1  # touches a corner only
    ring = trace_outlines(MaskRuns.from_arrays([frame]))
    assert ring.boxes.tolist() == [[1, 1, 8, 8]]
    assert ring.area.tolist() == [63.5]


def test_rings_of_parts_and_holes_enclose_the_mask() -> None:
    rng = np.random.default_rng(1)
    arrays = [rng.random((9, 11)) < share for share in (0.2, 0.5, 0.8)] + [np.zeros((9, 11), dtype=bool)]
    rings, mask = trace_rings(MaskRuns.from_arrays(arrays))
    for number, array in enumerate(arrays):
        inside = np.zeros(array.shape, dtype=bool)
        for ring in np.flatnonzero(mask == number):
            inside ^= contains(rings, int(ring), array.shape)
        assert (inside == array).all()
    assert len(trace_rings(MaskRuns.from_arrays([np.zeros((2, 2))]))[0]) == 0
