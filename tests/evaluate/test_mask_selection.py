"""Comparison of methods for masks by held-out workers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wisecrowd import MaskCrowd, MaskMajority, Staple, compare_methods, simulate_masks
from wisecrowd.data.vote_patterns import find_vote_patterns
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate.mask_selection import (
    MIN_PROB,
    PixelDecisions,
    _predict_pixels,
    compare_mask_methods,
    list_pixel_decisions,
)
from wisecrowd.evaluate.model_selection import Comparison
from wisecrowd.simulate.masks import SimulatedMasks


@pytest.fixture(scope="module")
def simulation() -> SimulatedMasks:
    options = {"sensitivity": 0.85, "specificity": 0.9, "boundary_noise": 0.0, "worker_spread": 1.0}
    return simulate_masks(n_tasks=12, n_workers=6, votes_per_task=4, height=14, width=16, random_state=0, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def comparison(simulation: SimulatedMasks) -> Comparison:
    return compare_mask_methods(simulation.crowd, truth=simulation.truth, folds=3)


def test_the_model_of_workers_predicts_better_than_shares(comparison: Comparison) -> None:
    assert comparison.best == "staple"
    assert "mask-majority" not in comparison.tied_methods
    assert comparison.table.index[-1].startswith("mask-majority")
    assert comparison.table["log_likelihood"].between(np.log(0.5), 0).all()
    assert "held-out masks" in comparison.summary


def test_known_masks_add_overlaps_and_do_not_change_the_choice(
    simulation: SimulatedMasks, comparison: Comparison
) -> None:
    table = comparison.table
    assert (table["dice"] > table["iou"]).all()
    assert table.loc["staple", "iou"] > 0.7
    texts = pd.Series(simulation.truth.to_texts(), index=simulation.crowd.tasks)
    other = compare_methods(simulation.crowd, ["staple"], truth=texts.iloc[:5], folds=3)
    assert other.table["log_likelihood"].iloc[0] == pytest.approx(table.loc["staple", "log_likelihood"])
    assert "iou" in other.table
    assert other.summary.startswith("Only staple was compared")


def test_results_of_methods_are_compared(comparison: Comparison) -> None:
    agreement = comparison.agreement
    assert (np.diag(agreement) == 1).all()
    assert agreement.to_numpy() == pytest.approx(agreement.to_numpy().T)
    assert len(comparison.disputed_tasks) > 0
    assert set(comparison.disputed_tasks.columns) == set(comparison.table.index)


def test_decisions_have_all_pixels_of_the_box() -> None:
    masks = [[[0, 1, 1, 0, 0, 0]], [[0, 0, 1, 0, 0, 0]]]
    crowd = MaskCrowd.from_arrays(["i", "i"], ["a", "b"], masks)
    decisions = list_pixel_decisions(crowd, find_vote_patterns(crowd))
    assert np.bincount(decisions.vote, decisions.weight).tolist() == [1, 1]
    marked = np.bincount(decisions.vote, decisions.weight * decisions.is_marked)
    assert marked.tolist() == [0.5, 0.25]  # of four pixels, with a margin of one on each side


def test_pixels_are_predicted_from_the_other_folds(simulation: SimulatedMasks) -> None:
    crowd = simulation.crowd
    patterns = find_vote_patterns(crowd)
    decisions = list_pixel_decisions(crowd, patterns)
    fold = np.arange(crowd.n_votes) % 4
    probs = _predict_pixels(MaskMajority(), crowd, patterns, decisions, fold, 4)
    images = [crowd.masks.to_array(vote).ravel(order="F") for vote in range(crowd.n_votes)]
    others = [np.flatnonzero((crowd.task == crowd.task[vote]) & (fold != fold[vote])) for vote in range(crowd.n_votes)]
    expected = expect_shares(decisions, images, others, patterns.segment_pattern, patterns.segment_start)
    assert probs == pytest.approx(np.clip(expected, MIN_PROB, 1 - MIN_PROB))


def expect_shares(
    decisions: PixelDecisions,
    images: list[np.ndarray],
    others: list[np.ndarray],
    pattern: np.ndarray,
    start: np.ndarray,
) -> np.ndarray:
    """Return the share of the other workers who marked a pixel of every pattern, from the images."""
    pixel = dict(zip(pattern.tolist(), start.tolist(), strict=True))
    shares = [
        np.mean([images[other][pixel[place]] for other in others[vote]])
        for vote, place in zip(decisions.vote.tolist(), decisions.pattern.tolist(), strict=True)
    ]
    return np.array(shares)


def test_tasks_with_one_mask_are_not_tested() -> None:
    one, other = [[1, 1, 0]], [[1, 0, 0]]
    masks = MaskCrowd.from_arrays(["i", "i", "j", "k", "k"], list("abaab"), [one, other, one, one, one])
    assert "4 held-out masks" in compare_mask_methods(masks, [Staple(), Staple(shared=False)], folds=2).summary


def test_bad_requests_are_refused(simulation: SimulatedMasks) -> None:
    crowd = simulation.crowd
    with pytest.raises(UsageError, match="these votes are masks, and 'rover' does not take them"):
        compare_mask_methods(crowd, ["rover"])
    with pytest.raises(UsageError, match="methods is empty"):
        compare_mask_methods(crowd, [])
    with pytest.raises(UsageError, match="must be a list"):
        compare_mask_methods(crowd, "staple")
    with pytest.raises(UsageError, match="use no X"):
        compare_methods(crowd, ["staple"], np.zeros((2, 2)))
    with pytest.raises(InputError, match="none of the tasks with truth"):
        compare_mask_methods(crowd, ["mask-majority"], truth={"z": [[1, 0]]}, folds=2)
    with pytest.raises(InputError, match="1 true masks for 12 tasks"):
        compare_mask_methods(crowd, ["mask-majority"], truth=simulation.truth.take([0]), folds=2)
    alone = MaskCrowd.from_arrays([f"t{n}" for n in range(6)], list("ababab"), [[[1, 0]]] * 6)
    with pytest.raises(InputError, match="collect masks of several workers"):
        compare_mask_methods(alone, folds=2)
