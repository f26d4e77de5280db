"""Overlap of masks with true masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from wisecrowd.data.mask_runs import MaskRuns, parse_masks
from wisecrowd.data.vote_patterns import count_shared_pixels
from wisecrowd.errors import InputError, preview


def score_masks(
    masks: pd.Series | MaskRuns | Sequence[Any], truth: pd.Series | MaskRuns | Sequence[Any]
) -> pd.DataFrame:
    """Compute the overlap of masks and true masks.

    Parameters
    ----------
    masks, truth : Series, MaskRuns or sequence
        Masks in any form that `wisecrowd.data.mask_runs.parse_masks` takes, such as ``fitted.masks_``. If both are Series, they are
        aligned by index; all masks need a truth.

    Returns
    -------
    DataFrame
        Columns iou (intersection over union) and dice, one row per mask. Two empty masks have 1.

    Raises
    ------
    InputError
        If masks and true masks differ in number or size, or a mask has no truth.

    Examples
    --------
    >>> score_masks([[[1, 1, 0]]], [[[0, 1, 0]]]).round(3).to_dict("records")
    [{'iou': 0.5, 'dice': 0.667}]
    """
    index = masks.index if isinstance(masks, pd.Series) else None
    if isinstance(masks, pd.Series) and isinstance(truth, pd.Series):
        unknown = masks.index.difference(truth.index)
        if len(unknown):
            raise InputError(f"{len(unknown):,} masks have no truth ({preview(unknown)}); leave them out")
        truth = truth.loc[masks.index]
    answers, references = _as_runs(masks), _as_runs(truth)
    n = len(answers)
    if n != len(references):
        raise InputError(f"there are {n:,} masks and {len(references):,} true masks; expected one for each")
    shared = count_shared_pixels(answers, references)
    total = answers.area + references.area
    columns = {
        "iou": np.divide(shared, total - shared, out=np.ones(n), where=total > 0),
        "dice": np.divide(2 * shared, total, out=np.ones(n), where=total > 0),
    }
    return pd.DataFrame(columns, index=index)


def _as_runs(masks: Any) -> MaskRuns:
    """Return masks as runs of pixels."""
    return masks if isinstance(masks, MaskRuns) else parse_masks(list(masks))
