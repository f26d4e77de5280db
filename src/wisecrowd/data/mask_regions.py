"""Regions of images in which the pixels of masks count."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.masks import MaskCrowd
from wisecrowd.data.vote_patterns import VotePatterns

Array = NDArray[np.float64]

#: Pixels around the box of all marked pixels, as a share of its sides.
BOX_MARGIN = 0.1

Region = Literal["box", "image", "union"]


def count_region_pixels(crowd: MaskCrowd, patterns: VotePatterns, region: Region) -> Array:
    """Count the pixels of every pattern in the region that a model looks at.

    Regions contain all marked pixels and differ in the pixels that nobody marked.

    Parameters
    ----------
    crowd : MaskCrowd
        Masks.
    patterns : VotePatterns
        Patterns of votes.
    region : {"box", "image", "union"}
        Region.

    Returns
    -------
    ndarray of shape (n_patterns,)

    Examples
    --------
    >>> from wisecrowd.data.vote_patterns import find_vote_patterns
    >>> crowd = MaskCrowd.from_arrays(["i"], ["ann"], [[[0, 0, 0, 0], [0, 1, 1, 0], [0, 1, 0, 0]]])
    >>> patterns = find_vote_patterns(crowd)
    >>> [count_region_pixels(crowd, patterns, region).tolist() for region in ("image", "box", "union")]
    [[9.0, 3.0], [9.0, 3.0], [0.0, 3.0]]
    """
    if region == "image":
        return patterns.n_pixels
    is_empty = patterns.n_marks == 0
    if region == "union":
        return np.where(is_empty, 0.0, patterns.n_pixels)
    runs = crowd.masks
    task = crowd.task[runs.mask]
    height = crowd.height[task]
    left, right = runs.start // height, (runs.end - 1) // height
    top = np.where(left == right, runs.start % height, 0)
    bottom = np.where(left == right, (runs.end - 1) % height, height - 1)
    sides = []
    for low, high, limit in ((left, right, crowd.width), (top, bottom, crowd.height)):
        first, last = limit.copy(), np.full(crowd.n_tasks, -1, dtype=np.int64)
        np.minimum.at(first, task, low)
        np.maximum.at(last, task, high)
        margin = np.maximum(np.ceil(BOX_MARGIN * (last - first + 1)).astype(np.int64), 1)
        length = np.minimum(last + margin, limit - 1) - np.maximum(first - margin, 0) + 1
        sides.append(np.where(last >= 0, length, 0))
    marked = patterns.sum_over_tasks(np.where(is_empty, 0.0, patterns.n_pixels))
    background = (sides[0] * sides[1] - marked)[patterns.task]
    return np.where(is_empty, np.minimum(background, patterns.n_pixels), patterns.n_pixels)
