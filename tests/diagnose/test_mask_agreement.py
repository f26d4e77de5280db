"""Agreement on masks: overlap of all pairs of a task."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from wisecrowd import MaskCrowd, simulate_masks
from wisecrowd.data.vote_patterns import find_vote_patterns
from wisecrowd.diagnose.mask_agreement import compute_mask_agreement


def test_overlaps_are_those_of_all_pairs_of_pixels() -> None:
    crowd = simulate_masks(n_tasks=4, n_workers=6, votes_per_task=4, height=9, width=8, random_state=1).crowd
    agreement = compute_mask_agreement(crowd, find_vote_patterns(crowd))
    images = [crowd.masks.to_array(row) for row in range(crowd.n_votes)]
    dice, iou = np.zeros(crowd.n_votes), np.zeros(crowd.n_votes)
    for one, other in itertools.permutations(range(crowd.n_votes), 2):
        if crowd.task[one] == crowd.task[other]:
            shared, union = (images[one] & images[other]).sum(), (images[one] | images[other]).sum()
            dice[one] += 2 * shared / (images[one].sum() + images[other].sum())
            iou[one] += shared / union
    assert agreement.dice == pytest.approx(dice)
    assert agreement.iou == pytest.approx(iou)
    assert agreement.n_others.tolist() == [3] * crowd.n_votes


def test_empty_masks_agree_with_each_other_only() -> None:
    crowd = MaskCrowd.from_arrays(["i"] * 3, list("abc"), [[[0, 0]], [[0, 0]], [[1, 0]]])
    agreement = compute_mask_agreement(crowd, find_vote_patterns(crowd))
    assert agreement.dice.tolist() == agreement.iou.tolist() == [1, 1, 0]
    assert agreement.mean_dice == pytest.approx(1 / 3)


def test_a_single_mask_has_no_agreement() -> None:
    crowd = MaskCrowd.from_arrays(["i", "j", "j"], list("aab"), [[[1, 0]]] * 3)
    agreement = compute_mask_agreement(crowd, find_vote_patterns(crowd))
    by_task = agreement.average(agreement.dice, crowd.task, crowd.n_tasks)
    assert np.isnan(by_task[0])
    assert by_task[1] == 1
    alone = crowd.take([0])
    assert np.isnan(compute_mask_agreement(alone, find_vote_patterns(alone)).mean_iou)
