"""Shared parts of the aggregators of masks: results, persistence, expected overlap, and votes of other types."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from wisecrowd import Crowd, MaskCrowd, MaskEM, MaskMajority, Staple, load
from wisecrowd.base.mask_aggregator import MaskAggregator, as_masks, choose_by_iou, compute_expected_overlap
from wisecrowd.data.vote_patterns import find_vote_patterns
from wisecrowd.errors import InputError, NoPosterior, UsageError
from wisecrowd.simulate.masks import simulate_masks

CROWD = simulate_masks(n_tasks=6, n_workers=5, votes_per_task=3, height=9, width=8, random_state=0).crowd


@pytest.mark.parametrize("method", [Staple(), MaskEM(), MaskMajority()], ids=str)
def test_tables_match_their_vocabularies(method: MaskAggregator, tmp_path: Path) -> None:
    fitted = method.clone_unfitted().fit(CROWD)
    assert fitted.masks_.index.equals(CROWD.tasks.rename("task"))
    assert fitted.labels_.equals(fitted.masks_)
    assert fitted.tasks_["area"].tolist() == [fitted.mask_of(task).sum() for task in CROWD.tasks]
    assert fitted.tasks_["confidence"].between(0, 1).all()
    assert (fitted.tasks_["expected_dice"] >= fitted.tasks_["confidence"]).all()
    assert fitted.workers_["n_votes"].sum() == CROWD.n_votes
    assert "mask" in fitted._repr_html_()
    probability = fitted.probability_of("t0")
    assert ((probability >= 0.5) == fitted.mask_of("t0")).all()
    fitted.save(tmp_path / "model")
    restored: MaskAggregator = load(tmp_path / "model")  # type: ignore[assignment]  # a mask aggregator
    assert restored.tasks_.equals(fitted.tasks_)
    assert restored.probability_of("t0").tolist() == probability.tolist()


def test_the_expected_overlap_is_highest() -> None:
    crowd = MaskCrowd.from_arrays(["i"] * 3, list("abc"), list(np.random.default_rng(1).random((3, 3, 3)) < 0.5))
    patterns = find_vote_patterns(crowd)
    probability = np.random.default_rng(2).random(len(patterns.task))
    chosen = choose_by_iou(patterns, probability, patterns.n_pixels)

    def measure(choice: np.ndarray) -> float:
        return float(compute_expected_overlap(patterns, probability, patterns.n_pixels, choice)[0][0])

    best = max(measure(np.array(choice)) for choice in itertools.product([False, True], repeat=len(probability)))
    assert measure(chosen) == pytest.approx(best)
    fitted = Staple(threshold="iou").fit(CROWD)
    assert (fitted.expected_iou_ >= Staple().fit(CROWD).expected_iou_ - 1e-12).all()


def test_damaged_models_are_refused() -> None:
    for name, value in (("run_end_", 10**6), ("run_offset_", 1), ("segment_end_", 0), ("run_start_", -5)):
        fitted = Staple().fit(CROWD)
        damaged = getattr(fitted, name).copy()
        damaged[0] = value
        setattr(fitted, name, damaged)
        with pytest.raises(ValueError, match="must"):
            fitted.check_restored()


def test_other_votes_are_refused_with_advice() -> None:
    with pytest.raises(InputError, match="takes masks; got Crowd"):
        Staple().fit(Crowd.from_triples([("t", "ann", "x")]))  # type: ignore[arg-type]  # the mistake
    with pytest.raises(InputError, match="there are no masks"):
        as_masks(CROWD.take([]))
    with pytest.raises(UsageError, match="takes votes only"):
        Staple().fit(CROWD, truth={"t0": "x"})
    with pytest.raises(UsageError, match="threshold"):
        Staple(threshold="x").fit(CROWD)  # type: ignore[arg-type]  # the mistake
    fitted = Staple().fit(CROWD)
    with pytest.raises(NoPosterior, match="use masks_, tasks_, workers_"):
        _ = fitted.confusion_
    with pytest.raises(InputError, match="there is no task 'x'"):
        fitted.mask_of("x")
