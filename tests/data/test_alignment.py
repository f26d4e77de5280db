"""Truth and features, aligned with a crowd by task id."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wisecrowd.data.alignment import align_features, as_truth_series, encode_truth
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import InputError

CROWD = Crowd.from_triples([(task, worker, "ab"[(task * worker) % 2]) for task in range(6) for worker in range(3)])


@pytest.mark.parametrize(
    "truth",
    [
        {1: "b", 4: "a"},
        pd.Series({1: "b", 4: "a"}),
        pd.DataFrame({"task": [1, 4], "label": ["b", "a"]}),
        {"task": [1, 4], "label": ["b", "a"]},
        pd.Series({"1": "b", "4": "a"}),
        pd.Series({1: "b", 4: "a", 2: None}),
        pd.Series({1: "b", 4: "a", 99: "z"}),
    ],
    ids=["dict", "series", "table", "columns", "ids as text", "with holes", "other tasks"],
)
def test_all_usual_forms(truth: object) -> None:
    assert encode_truth(truth, CROWD).tolist() == [-1, 1, -1, -1, 0, -1]


def test_an_array_of_truth_only_where_order_is_known() -> None:
    assert encode_truth(["a"] * 6, CROWD).tolist() == [0] * 6
    named = Crowd.from_triples([("x", "w", 1), ("y", "w", 0)])
    with pytest.raises(InputError, match="must carry task ids"):
        encode_truth([1, 0], named)
    with pytest.raises(InputError, match="task and label"):
        as_truth_series(pd.DataFrame({"question": [1]}))


def test_what_cannot_be_matched() -> None:
    with pytest.raises(InputError, match="none of the 1 tasks with truth is in the crowd"):
        encode_truth({"no such task": "a"}, CROWD)
    with pytest.raises(InputError, match=r"the truth contains unknown classes: 'z'.*classes=\[...\]"):
        encode_truth({1: "z"}, CROWD)
    with pytest.raises(InputError, match="twice"):
        encode_truth(pd.Series(["a", "b"], index=[1, 1]), CROWD)


def test_a_table_is_matched_by_id() -> None:
    table = pd.DataFrame({"x": np.arange(8.0)}, index=range(7, -1, -1))
    assert align_features(table, CROWD)[:, 0].tolist() == [7, 6, 5, 4, 3, 2]


def test_an_array_of_features_only_where_order_is_known() -> None:
    assert align_features(np.ones((6, 2)), CROWD).shape == (6, 2)
    named = Crowd.from_triples([("x", "w", 1), ("y", "w", 0)])
    with pytest.raises(InputError, match="cannot be matched"):
        align_features(np.ones((2, 2)), named)
    given = Crowd.from_triples([("x", "w", 1), ("y", "w", 0)], tasks=["y", "x"])
    assert align_features([[1.0], [2.0]], given).tolist() == [[1], [2]]


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.ones((5, 2)), "each of 6 tasks; got 5 rows"),
        (np.full((6, 2), np.nan), "not finite"),
        (pd.DataFrame({"x": [1.0]}, index=[3]), "no features for 5 tasks"),
        (pd.DataFrame({"x": [1.0, 2.0]}, index=[3, 3]), "repeat"),
    ],
)
def test_bad_features(features: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        align_features(features, CROWD)


@pytest.mark.parametrize(
    ("value", "message"),
    [(1e308, "too large"), (-1.1e100, "too large"), (np.nan, "not finite"), (np.inf, "not finite")],
)
def test_features_that_no_method_can_use_are_refused(value: float, message: str) -> None:
    features = np.ones((6, 2))
    features[2, 1] = value
    with pytest.raises(InputError, match=f"features of 1 task are {message}"):
        align_features(features, CROWD)
    features[2, 1] = 1e100
    assert align_features(features, CROWD).max() == 1e100
