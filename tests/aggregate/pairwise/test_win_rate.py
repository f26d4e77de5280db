"""Win rates."""

from __future__ import annotations

import pytest

from wisecrowd import Comparisons, WinRate
from wisecrowd.errors import DataWarning


def test_ties_are_half_wins_and_unseen_items_are_in_the_middle() -> None:
    frame = {"worker": ["u", "v"], "left": ["a", "b"], "right": ["b", "a"], "label": ["a", "tie"]}
    comparisons = Comparisons.from_frame(frame, items=["a", "b", "c"])
    with pytest.warns(DataWarning, match="for example 'c' is not connected with 'a'"):
        fitted = WinRate().fit(comparisons)
    assert fitted.win_rate_.tolist() == [0.75, 0.25, 0.5]


def test_predictions_sum_to_one_and_follow_the_rates() -> None:
    fitted = WinRate().fit([("u", "a", "b", "a"), ("v", "a", "b", "a"), ("w", "a", "b", "tie")])
    probs = fitted.predict_proba([("x", "a", "b", "a")]).iloc[0]
    assert probs.sum() == pytest.approx(1)
    assert probs["left"] > probs["tie"] > probs["right"]
    assert probs["tie"] == pytest.approx(1 / 3)
