"""Agreement of workers on masks: overlap of every two masks of a task."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wisecrowd.data.masks import MaskCrowd
from wisecrowd.data.vote_patterns import VotePatterns

Array = NDArray[np.float64]


class MaskAgreement(NamedTuple):
    """Overlap of masks with those of the other workers on the same tasks.

    Parameters
    ----------
    dice, iou : ndarray of shape (n_votes,)
        Sum of the Dice coefficients, and of the intersections over union, of a mask with every other mask of its task.
    n_others : ndarray of shape (n_votes,)
        Number of other masks of the task.
    """

    dice: Array
    iou: Array
    n_others: NDArray[np.int64]

    @property
    def mean_dice(self) -> float:
        """Mean Dice coefficient of two masks of a task; NaN if no task has two."""
        return float(self.dice.sum() / self.n_others.sum()) if self.n_others.sum() else float("nan")

    @property
    def mean_iou(self) -> float:
        """Mean intersection over union of two masks of a task; NaN if no task has two."""
        return float(self.iou.sum() / self.n_others.sum()) if self.n_others.sum() else float("nan")

    def average(self, values: Array, group: NDArray[np.integer], n_groups: int) -> Array:
        """Return the mean overlap by worker or task.

        Parameters
        ----------
        values : ndarray of shape (n_votes,)
            ``dice`` or ``iou``.
        group : ndarray of shape (n_votes,)
            Worker or task of every mask.
        n_groups : int
            Number of workers or tasks.

        Returns
        -------
        ndarray of shape (n_groups,)
            NaN without other masks.
        """
        total = np.bincount(group, self.n_others, n_groups)
        return np.divide(np.bincount(group, values, n_groups), total, out=np.full(n_groups, np.nan), where=total > 0)


def compute_mask_agreement(crowd: MaskCrowd, patterns: VotePatterns) -> MaskAgreement:
    """Compute the overlap of every mask with the other masks of its task.

    Two empty masks agree fully. The cost is proportional to the pairs of masks that share pixels.

    Parameters
    ----------
    crowd : MaskCrowd
        Masks.
    patterns : VotePatterns
        Their patterns of votes.

    Returns
    -------
    MaskAgreement

    Examples
    --------
    >>> from wisecrowd.data.vote_patterns import find_vote_patterns
    >>> crowd = MaskCrowd.from_arrays(["i", "i"], ["ann", "bob"], [[[1, 1, 0]], [[0, 1, 0]]])
    >>> agreement = compute_mask_agreement(crowd, find_vote_patterns(crowd))
    >>> round(agreement.mean_dice, 3), agreement.mean_iou
    (0.667, 0.5)
    """
    weighted = sparse.diags_array(patterns.n_pixels) @ patterns.marks
    shared = sparse.coo_array(patterns.marks_by_vote @ weighted)
    first, second = shared.coords
    is_pair = first != second
    first, second, pixels = first[is_pair], second[is_pair], shared.data[is_pair]
    area = crowd.masks.area
    total = area[first] + area[second]
    is_empty = area == 0
    n_empty = np.bincount(crowd.task, is_empty, crowd.n_tasks)
    # Masks without pixels share none, so they are no pair above.
    both_empty = np.where(is_empty, n_empty[crowd.task] - 1, 0.0)
    dice, iou = (
        np.asarray(np.bincount(first, values, crowd.n_votes) + both_empty, dtype=np.float64)
        for values in (2 * pixels / total, pixels / (total - pixels))
    )
    return MaskAgreement(dice, iou, (crowd.votes_per_task[crowd.task] - 1).astype(np.int64))
