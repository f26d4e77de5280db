"""Runs of pixels: COCO's encoding in both directions, and damaged masks."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from wisecrowd.data.mask_runs import (
    MaskRuns,
    compress_counts,
    concatenate_masks,
    decompress_counts,
    parse_masks,
    read_mask_column,
)
from wisecrowd.errors import InputError

RNG = np.random.default_rng(3)
ARRAYS = [RNG.random((RNG.integers(1, 12), RNG.integers(1, 12))) < RNG.random() for _ in range(40)]
ARRAYS += [np.zeros((3, 4)), np.ones((3, 4)), np.ones((1, 1))]
MASKS = MaskRuns.from_arrays(ARRAYS)
#: Counts of the frame below, from pycocotools 2.0.11.
RECORDED = ">8400KN020N02500f0"


def assert_equal(one: MaskRuns, other: MaskRuns) -> None:
    for name in ("offset", "start", "end", "height", "width"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), name


def test_arrays_survive() -> None:
    for row, array in enumerate(ARRAYS):
        assert (MASKS.to_array(row) == (np.asarray(array) != 0)).all()
    assert MASKS.area.tolist() == [int(np.count_nonzero(array)) for array in ARRAYS]


@pytest.mark.parametrize("compressed", [True, False])
def test_coco_survives(compressed: bool) -> None:
    coco = MASKS.to_coco(compressed=compressed)
    assert_equal(parse_masks(coco), MASKS)
    assert_equal(parse_masks([json.dumps(mask) for mask in coco]), MASKS)
    counts = [mask["counts"] for mask in coco]
    assert_equal(parse_masks(counts, MASKS.height.tolist(), MASKS.width.tolist()), MASKS)


def test_texts_are_those_of_pycocotools() -> None:
    frame = np.zeros((12, 9))
    frame[2:10, 1:7] = 1
    frame[5:7, 3:5] = 0
    assert MaskRuns.from_arrays([frame]).to_coco()[0]["counts"] == RECORDED


def test_large_and_falling_counts() -> None:
    counts = np.array([0, 5, 10**9, 1, 3, 2**40, 0, 7])
    offset = np.array([0, 3, 3, 8])
    texts = compress_counts(counts, offset)
    assert texts[1] == ""
    decoded, ends = decompress_counts(texts)
    assert decoded.tolist() == counts.tolist()
    assert ends.tolist() == offset.tolist()


def test_runs_that_touch_become_one() -> None:
    masks = parse_masks([[1, 2, 0, 1, 2]], [2], [3])
    assert (masks.start.tolist(), masks.end.tolist()) == ([1], [4])


def test_selection_and_concatenation() -> None:
    order = RNG.permutation(len(MASKS))
    assert_equal(MASKS.take(order).take(np.argsort(order)), MASKS)
    both = concatenate_masks([MASKS.take([0]), MASKS.take([1])])
    assert_equal(both, MASKS.take([0, 1]))


def test_missing_cells_are_empty_masks_and_arrays_are_pixels() -> None:
    masks = parse_masks([None, float("nan"), "", np.eye(2), [[0, 1]]])
    assert masks.area.tolist() == [0, 0, 0, 2, 1]
    assert masks.height.tolist() == [0, 0, 0, 2, 1]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ({"size": [2, 2], "counts": [1, 2]}, "have the sum 3; expected 4, the pixels of 2 x 2"),
        ({"size": [2, 2], "counts": [5, -1]}, "have the entry -1; expected lengths"),
        ({"size": [2, 2]}, "with the entries 'size'; expected"),
        ({"size": [2], "counts": [4]}, "expected"),
        ({"size": [0, 2], "counts": [4]}, "size 0 x 2; expected a height and width"),
        ({"size": [1e30, 2], "counts": [4]}, "size 0 x 2; expected a height and width"),
        ([4], "size 0 x 0; expected a height and width"),
        ("{broken", "no valid JSON"),
        ("[" * 100_000 + "]", "no valid JSON"),
        ({"size": [2, 2], "counts": "~~"}, "counts are damaged"),
        ({"size": [2, 2], "counts": "P"}, "counts are damaged"),
        ({"size": [2, 2], "counts": "é"}, "counts are damaged"),
        ({"size": [2, 2], "counts": "o" * 50 + "0"}, "a number is too long"),
        ({"size": [2, 2], "counts": ["a"]}, "no mask but"),
        ({"size": [2, 2], "counts": [[1], [2, 3]]}, "no mask but"),
        ({"size": [2, 2], "counts": [0.5, 3.5]}, "no mask but"),
        (7, "no mask but 7"),
    ],
)
def test_damaged_masks_are_refused_with_advice(cell: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_masks([cell])


def test_columns_of_other_types_are_refused() -> None:
    with pytest.raises(InputError, match="the masks are double; expected COCO"):
        read_mask_column(pa.chunked_array([[1.5]]))
    with pytest.raises(InputError, match=r"shape \(2,\); expected"):
        MaskRuns.from_arrays([np.ones(2)])
