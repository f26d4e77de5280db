"""Overlap of masks against counts of pixels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wisecrowd.data.mask_runs import MaskRuns
from wisecrowd.errors import InputError
from wisecrowd.evaluate.mask_metrics import score_masks

RNG = np.random.default_rng(0)
ONE, OTHER = RNG.random((2, 6, 4, 5)) < 0.5


def test_overlap_of_pixels() -> None:
    score = score_masks(list(ONE), MaskRuns.from_arrays(list(OTHER)))
    shared, union = (ONE & OTHER).sum(axis=(1, 2)), (ONE | OTHER).sum(axis=(1, 2))
    assert score["iou"].tolist() == pytest.approx((shared / union).tolist())
    assert score["dice"].tolist() == pytest.approx((2 * shared / (shared + union)).tolist())
    assert score_masks([np.zeros((2, 2))], [np.zeros((2, 2))]).to_numpy().tolist() == [[1, 1]]


def test_series_are_aligned() -> None:
    masks = pd.Series(MaskRuns.from_arrays(list(ONE)).to_coco(), index=list("abcdef"))
    assert score_masks(masks, masks[::-1])["iou"].to_dict() == dict.fromkeys("abcdef", 1.0)
    with pytest.raises(InputError, match="6 masks have no truth"):
        score_masks(masks, masks.set_axis(range(6)))
    with pytest.raises(InputError, match="6 masks and 5 true masks"):
        score_masks(masks, masks.tolist()[:5])
    with pytest.raises(InputError, match="another size"):
        score_masks([np.ones((2, 2))], [np.ones((2, 3))])
