"""Crowds of masks: construction, sizes, and votes that contradict each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd.data.mask_runs import MaskRuns
from wisecrowd.data.masks import MaskCrowd
from wisecrowd.errors import InputError

ROWS: dict[str, Any] = {
    "task": ["b", "a", "a"],
    "worker": ["ann", "bob", "ann"],
    "mask": ['{"size": [2, 2], "counts": [0, 4]}', '{"size": [1, 3], "counts": "021"}', None],
}


def test_empty_masks_take_the_size_of_their_task() -> None:
    crowd = MaskCrowd.from_frame(ROWS)
    assert crowd.height.tolist() == [1, 2]
    assert crowd.masks.area.tolist() == [0, 2, 4]
    assert crowd.masks.width.tolist() == [3, 3, 2]
    assert repr(crowd) == "MaskCrowd(3 masks: 2 tasks x 2 workers, 60% of the pixels marked)"


def test_tables_survive() -> None:
    crowd = MaskCrowd.from_frame(ROWS)
    assert MaskCrowd.from_frame(crowd.to_frame()) == crowd
    structs = pd.DataFrame({**ROWS, "mask": crowd.masks.take([2, 1, 0]).to_coco(compressed=False)})
    assert MaskCrowd.from_frame(structs) == crowd


def test_counts_beside_sizes() -> None:
    rows = {**ROWS, "mask": ["04", "021", ""], "h": [2, 1, 1], "w": ["2", "3", "3"]}
    assert MaskCrowd.from_frame(rows, height="h", width="w") == MaskCrowd.from_frame(ROWS)


def test_selections_keep_sizes() -> None:
    crowd = MaskCrowd.from_frame(ROWS).take([0])
    assert crowd.height.tolist() == [1, 2]
    assert crowd.votes_per_task.tolist() == [1, 0]


def test_contradictions_are_refused_with_advice() -> None:
    with pytest.raises(InputError, match=r"1 mask of another size .* 1 x 3 of worker 'ann' on task 'i', .* 2 x 3"):
        MaskCrowd.from_arrays(["i", "i"], ["ann", "bob"], [np.ones((1, 3)), np.ones((2, 3))])
    twice: dict[str, Any] = {
        "task": ["i", "i"],
        "worker": ["ann", "ann"],
        "mask": ["04", "4"],
        "height": [2, 2],
        "width": [2, 2],
    }
    with pytest.raises(InputError, match=r"answered task 'i' twice\. Keep one mask each"):
        MaskCrowd.from_frame(twice)
    assert MaskCrowd.from_frame(twice, duplicates="first").masks.area.tolist() == [4]
    assert MaskCrowd.from_frame(twice, duplicates="last").masks.area.tolist() == [0]
    with pytest.raises(InputError, match="no column 'mask'"):
        MaskCrowd.from_frame({"task": [1], "worker": [1]})
    huge = MaskRuns.from_counts(np.array([2**48]), np.array([0, 1]), [2**24], [2**24])
    many = MaskCrowd(np.zeros(1, int), np.zeros(1, int), huge, tasks=pd.Index(["i"]), workers=pd.Index(["ann"]))
    assert many.n_votes == 1
    with pytest.raises(InputError, match="pixels; check their sizes"):
        MaskCrowd(
            np.arange(300), np.zeros(300, int), huge.take(np.zeros(300, int)),
            tasks=pd.RangeIndex(300), workers=pd.Index(["ann"]),
        )  # fmt: skip
