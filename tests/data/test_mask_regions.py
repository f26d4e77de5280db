"""Regions in which pixels count: the box around all marked pixels, the image, and the union of the masks."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import MaskCrowd
from wisecrowd.data.mask_regions import Region, count_region_pixels
from wisecrowd.data.vote_patterns import find_vote_patterns


@pytest.mark.parametrize(("region", "background"), [("image", 42 - 4), ("box", 25 - 4), ("union", 0)])
def test_regions(region: Region, background: int) -> None:
    one, other = np.zeros((6, 7)), np.zeros((6, 7))
    one[1:3, 4] = 1
    other[2:4, 2] = 1  # rows 1 to 3 and columns 2 to 4; with a margin of one pixel, 5 x 5
    crowd = MaskCrowd.from_arrays(["i", "i"], ["a", "b"], [one, other])
    patterns = find_vote_patterns(crowd)
    n_pixels = count_region_pixels(crowd, patterns, region)
    assert n_pixels[patterns.n_marks == 0].tolist() == [background]
    assert n_pixels[patterns.n_marks > 0].sum() == 4
