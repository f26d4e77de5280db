"""Diagnosis of comparisons."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd.data.comparisons import Comparisons
from wisecrowd.diagnose.comparison_diagnosis import comparison_alpha, diagnose_comparisons, measure_swaps
from wisecrowd.errors import UsageError


@pytest.fixture(scope="module")
def comparisons() -> wc.Comparisons:
    """Twelve ordinary workers, and one each who chooses left, at random, and the opposite."""
    made = wc.simulate_comparisons(n_items=10, n_workers=12, votes_per_worker=50, score_spread=1.5, random_state=2)
    frame = made.comparisons.to_frame()
    lefty = frame[frame["worker"] == "w0"].assign(worker="lefty", label=lambda rows: rows["left"])
    coins = np.random.default_rng(0).random(len(frame)) < 0.5
    random = frame.assign(worker="random", label=np.where(coins, frame["left"], frame["right"]))
    random = random[(frame["worker"] == "w1").to_numpy()]
    opposite = frame[frame["worker"] == "w2"].assign(worker="opposite")
    swapped = np.where(opposite["label"] == opposite["left"], opposite["right"], opposite["left"])
    opposite["label"] = np.where(opposite["label"] == "tie", "tie", swapped)
    return wc.Comparisons.from_frame(pd.concat([frame, lefty, random, opposite]), duplicates="keep", swapped="keep")


@pytest.mark.parametrize("model", [None, "bradley-terry", "crowd-bradley-terry"])
def test_bad_workers_are_flagged_and_others_are_not(comparisons: wc.Comparisons, model: Any) -> None:
    workers = diagnose_comparisons(comparisons, model=model).workers
    flagged = workers["flags"][workers["flags"] != ""]
    assert set(flagged.index) == {"lefty", "random", "opposite"}
    assert "left" in flagged["lefty"]
    assert flagged["random"] == "random"
    assert flagged["opposite"] == "reversed"
    assert "instead of" in workers.loc["opposite", "why"]


def test_the_expected_share_is_that_of_ordinary_workers(comparisons: wc.Comparisons) -> None:
    ordinary = diagnose_comparisons(comparisons).workers.query("flags == ''")
    assert ordinary["follows_scores"].mean() == pytest.approx(ordinary["expected"].mean(), abs=0.06)


def test_overview(comparisons: wc.Comparisons) -> None:
    result = diagnose_comparisons(comparisons, model=wc.BradleyTerry().fit(comparisons))
    figures = result.overview
    assert (figures["items"], figures["workers"], figures["components"]) == (10, 15, 1)
    assert figures["flagged_workers"] == 3
    assert 0 < figures["krippendorff_alpha"] < 1
    assert figures["left_share"] == pytest.approx((comparisons.outcome == 0).sum() / (comparisons.outcome != 2).sum())
    assert "flagged workers: 3" in repr(result)
    assert "<table" in result._repr_html_()


def test_comparisons_without_workers() -> None:
    result = diagnose_comparisons({"left": ["a", "b", "c"], "right": ["b", "c", "a"], "label": ["a", "b", "c"]})
    assert result.workers.empty
    assert result.overview["krippendorff_alpha"] is None
    assert result.model.name == "bradley-terry"


def test_other_models_are_refused(comparisons: wc.Comparisons) -> None:
    with pytest.raises(UsageError, match="bradley-terry"):
        diagnose_comparisons(comparisons, model=wc.MajorityVote())  # type: ignore[arg-type]  # that is the test


def alpha(votes: list[tuple[str, str, str, str]]) -> float:
    return comparison_alpha(wc.Comparisons.from_tuples(votes)).value


def test_agreement_does_not_depend_on_the_order_shown() -> None:
    same = [("x", "a", "b", "a"), ("y", "b", "a", "a"), ("x", "c", "d", "d"), ("y", "c", "d", "d")]
    assert alpha(same) == 1
    assert alpha([("x", "a", "b", "a"), ("y", "b", "a", "b"), ("x", "c", "d", "d"), ("y", "c", "d", "c")]) < 0
    assert np.isnan(alpha([("x", "a", "b", "a"), ("y", "c", "b", "b")]))


def test_random_answers_have_no_agreement() -> None:
    rng = np.random.default_rng(1)
    votes = [
        (f"w{w}", f"a{n}", f"b{n}", ("left", "right", "tie")[rng.integers(3)]) for n in range(300) for w in range(4)
    ]
    assert abs(alpha(votes)) < 0.05


def test_pairs_shown_in_both_orders_reveal_a_preference_for_one_side() -> None:
    rng = np.random.default_rng(0)
    rows = []
    for n in range(60):
        left, right = f"m{rng.integers(4)}", f"n{rng.integers(4)}"
        for first, second in ((left, right), (right, left)):
            rows.append(("lefty", f"p{n}", first, second, first if rng.random() < 0.8 else second))
            rows.append(("fair", f"p{n}", first, second, left))
    frame = pd.DataFrame(rows, columns=["worker", "task", "left", "right", "label"])
    comparisons = Comparisons.from_frame(frame, task="task")
    swaps = measure_swaps(comparisons)
    assert swaps is not None
    assert swaps.n_pairs.tolist() == [60, 60]
    assert swaps.consistency[0] == 1
    assert 0.2 < swaps.consistency[1] < 0.45
    assert swaps.side_bias[1] > 0.4
    workers = diagnose_comparisons(comparisons).workers
    assert "position" in workers.loc["lefty", "flags"]
    assert "prefers the left side" in workers.loc["lefty", "why"]
    assert "position" not in workers.loc["fair", "flags"]
    assert measure_swaps(comparisons.take(comparisons.outcome < 0)) is None
