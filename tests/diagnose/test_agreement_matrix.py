"""Agreement of every two workers, against a double loop."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd, simulate_crowd, worker_agreement
from wisecrowd.diagnose import agreement_matrix
from wisecrowd.diagnose.agreement import cohen_kappas
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate.intervals import share_interval

CROWD = simulate_crowd(60, 8, 3, votes_per_task=4, random_state=0).crowd


@pytest.mark.parametrize("min_common", [1, 15])
def test_pairs_equal_a_double_loop(min_common: int) -> None:
    labels = CROWD.to_frame().pivot(index="worker", columns="task", values="label")
    expected = {}
    for first, second in itertools.combinations(labels.index, 2):
        both = labels.loc[[first, second]].dropna(axis=1)
        if both.shape[1] >= min_common:
            expected[first, second] = (both.shape[1], int((both.iloc[0] == both.iloc[1]).sum()))
    pairs = worker_agreement(CROWD, min_common=min_common).pairs
    rows = pairs.itertuples(index=False)
    assert {(row.first, row.second): (row.common, row.same) for row in rows} == expected
    assert len(pairs) == len(expected) > 0


def test_agreement_is_that_of_kappas() -> None:
    pairs, kappas = worker_agreement(CROWD).pairs, cohen_kappas(CROWD)
    np.testing.assert_allclose(pairs["agreement"], kappas["agreement"], atol=1e-12)


def test_matrices_are_symmetric_and_blank_without_common_tasks() -> None:
    votes = [("t1", "ann", "x"), ("t1", "bob", "x"), ("t2", "ann", "y"), ("t2", "bob", "x"), ("t3", "cy", "y")]
    result = worker_agreement(Crowd.from_triples(votes))
    share, common = result.matrix(), result.matrix("common")
    assert share.loc["ann", "bob"] == share.loc["bob", "ann"] == 0.5
    assert common.loc["ann", "bob"] == 2
    assert np.isnan(share.loc["ann", "ann"])
    assert np.isnan(share.loc["ann", "cy"])
    assert common.loc["ann", "cy"] == 0
    assert result.workers.loc["cy", "partners"] == 0
    assert np.isnan(result.workers.loc["cy", "agreement"])


def test_repeated_votes_count_as_one_task() -> None:
    votes = pd.DataFrame({"task": [1, 1, 1, 2, 2], "worker": list("aabab"), "label": ["x", "y", "x", "x", "x"]})
    pairs = worker_agreement(Crowd.from_frame(votes, duplicates="keep")).pairs
    assert pairs.loc[0, ["common", "same", "agreement"]].tolist() == [2, 1.5, 0.75]


def test_the_interval_is_that_of_wilson() -> None:
    # Newcombe (1998), table I: 81 of 263, level 0.95.
    low, high = share_interval(np.array([81.0, 0.0]), np.array([263.0, 20.0]), level=0.95)
    np.testing.assert_allclose([low[0], high[0]], [0.2553, 0.3662], atol=5e-5)
    np.testing.assert_allclose([low[1], high[1]], [0.0, 0.1611], atol=5e-5)


def test_intervals_of_pairs_cover_the_expected_agreement() -> None:
    # Two workers of accuracy 0.8 with two classes agree with probability 0.8² + 0.2² = 0.68.
    crowd = simulate_crowd(400, workers=["noisy(0.8)"] * 30, n_classes=2, votes_per_task=10, random_state=3).crowd
    result = worker_agreement(crowd, level=0.9)
    covered = (result.pairs["low"] <= 0.68) & (result.pairs["high"] >= 0.68)
    assert len(result.pairs) == 435
    assert 0.86 < covered.mean() < 0.95
    assert (result.pairs["low"] < result.pairs["agreement"]).all()
    assert result.level == 0.9


def test_the_least_agreeing_worker_comes_first() -> None:
    crowd = simulate_crowd(200, workers=["expert"] * 5 + ["adversary"], votes_per_task=4, random_state=1).crowd
    result = worker_agreement(crowd)
    assert result.workers.index[0] == "w5"
    assert result.matrix().index[0] == "w5"
    assert "6 workers, 15 pairs" in repr(result)
    assert "w5" in result._repr_html_()


def test_workers_can_be_selected_by_id_or_number() -> None:
    most = CROWD.workers[np.argsort(-CROWD.votes_per_worker, kind="stable")[:3]]
    assert set(worker_agreement(CROWD, workers=3).workers.index) == set(most)
    chosen = worker_agreement(CROWD, workers=["w1", "w4"])
    whole = worker_agreement(CROWD).pairs.set_index(["first", "second"]).loc[("w1", "w4")]
    assert chosen.pairs.loc[0, "agreement"] == whole["agreement"]


def test_workers_without_votes_are_left_out() -> None:
    crowd = Crowd.from_codes([0, 0], [0, 2], [0, 0], tasks=["t"], workers=["a", "b", "c"], classes=["x"])
    assert set(worker_agreement(crowd).workers.index) == {"a", "c"}


def test_many_classes_need_no_table_of_tasks_and_classes() -> None:
    rng = np.random.default_rng(0)
    task, worker = np.divmod(np.arange(2000), 4)
    labels = rng.integers(0, 10_000, 2000)
    crowd = Crowd.from_codes(task, worker, labels, tasks=range(500), workers=range(4), classes=range(10_000))
    assert worker_agreement(crowd).pairs["common"].tolist() == [500] * 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"level": 1.0}, "level must lie between 0 and 1"),
        ({"min_common": 0}, "min_common must be 1 or more"),
        ({"workers": 1}, "workers must be 2 or more"),
        ({"workers": "w1"}, "list of ids"),
    ],
)
def test_unusable_arguments_are_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        worker_agreement(CROWD, **arguments)  # type: ignore[arg-type]


def test_unknown_workers_and_columns_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="unknown workers: 'nobody'"):
        worker_agreement(CROWD, workers=["w1", "nobody"])
    result = worker_agreement(CROWD)
    with pytest.raises(UsageError, match="column must be one of"):
        result.matrix("kappa")
    monkeypatch.setattr(agreement_matrix, "MAX_MATRIX_WORKERS", 7)
    with pytest.raises(UsageError, match="limited to 7 workers; got 8"):
        result.matrix()


def test_votes_without_workers_or_with_numbers_are_refused() -> None:
    with pytest.raises(UsageError, match="needs worker ids"):
        worker_agreement(CROWD.drop_workers())
    with pytest.raises(UsageError, match="labels of this crowd are numbers"):
        worker_agreement(Crowd.from_triples([("t", "a", 0.5), ("t", "b", 0.7)], numeric=True))
