"""Votes that say the same are counted once, and nothing changes by it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wisecrowd as wc
from wisecrowd.diagnose import copying
from wisecrowd.evaluate import intervals
from wisecrowd.utils.deduplication import merge_equal_rows


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.1, 0.5, 0.9]), st.floats(0.1, 10)), max_size=40))
def test_it_is_a_group_by(rows: list[tuple[int, float, float]]) -> None:
    who, right, weight = (np.array([row[column] for row in rows], dtype=float) for column in range(3))
    where, total = merge_equal_rows(right, who, weight=weight)
    frame = pd.DataFrame({"who": who, "right": right, "weight": weight})
    expected = frame.groupby(["who", "right"])["weight"].sum()
    assert list(zip(who[where], right[where], strict=True)) == expected.index.tolist()
    assert total == pytest.approx(expected.to_numpy())


@pytest.fixture(scope="module")
def made() -> Any:
    kinds = ["noisy(0.8)"] * 6 + ["copier(1)"]
    return wc.simulate_crowd(n_tasks=400, workers=kinds, votes_per_task=4, n_classes=2, random_state=3)


@pytest.mark.parametrize("weighted", [False, True])
def test_intervals_of_workers_are_the_same(made: Any, weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = made.crowd
    if weighted:
        votes = crowd.to_frame().assign(weight=1 + np.arange(crowd.n_votes) % 3)
        crowd = wc.Crowd.from_frame(votes, weight="weight")
    fitted = wc.DawidSkene().fit(crowd)
    plain = intervals.worker_intervals(fitted, crowd)
    monkeypatch.setattr(intervals, "MIN_ROWS_TO_MERGE", 0)
    merged = intervals.worker_intervals(fitted, crowd)
    np.testing.assert_allclose(merged, plain, rtol=1e-11)


def test_copies_are_the_same(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = wc.DawidSkene().fit(made.crowd)
    plain = copying.find_copying_pairs(made.crowd, fitted)
    assert len(plain.flagged) == 1
    monkeypatch.setattr(copying, "MIN_ROWS_TO_MERGE", 0)
    merged = copying.find_copying_pairs(made.crowd, fitted)
    pd.testing.assert_frame_equal(merged.suspects, plain.suspects, rtol=1e-9)
    pd.testing.assert_frame_equal(merged.flagged, plain.flagged, rtol=1e-9)
