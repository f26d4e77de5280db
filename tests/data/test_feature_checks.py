"""Checks of features against votes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.feature_checks import (
    describe_missing_codes,
    describe_problems,
    find_answer_columns,
    find_missing_codes,
    find_row_numbers,
    measure_relation,
)


def simulate(seed: int, n_tasks: int = 200, votes_per_task: int = 3) -> tuple[Crowd, np.ndarray]:
    """Return votes and the class codes of the truth, in the order of the tasks."""
    made = wc.simulate_crowd(n_tasks, 12, 3, votes_per_task=votes_per_task, random_state=seed)
    assert made.crowd.classes is not None
    return made.crowd, made.crowd.classes.get_indexer(made.truth.loc[made.crowd.tasks])


def features_of(truth: np.ndarray, seed: int, signal: float = 1.5) -> np.ndarray:
    return signal * np.eye(3, 5)[truth] + np.random.default_rng(seed).normal(size=(len(truth), 5))


def test_rows_of_other_tasks_are_unrelated_and_own_rows_are_related() -> None:
    for seed in range(10):
        crowd, truth = simulate(seed)
        X = features_of(truth, seed)
        own, other = measure_relation(X, crowd), measure_relation(np.roll(X, 1, axis=0), crowd)
        assert own is not None
        assert other is not None
        assert own.is_related
        assert not other.is_related


def test_good_features_are_related_to_votes_that_all_agree() -> None:
    truth = np.arange(200) % 2
    crowd = Crowd.from_triples([(task, worker, int(truth[task])) for task in range(200) for worker in range(3)])
    relation = measure_relation(truth[:, None] + np.random.default_rng(0).normal(size=(200, 4)), crowd)
    assert relation is not None
    assert relation.is_related


def test_few_votes_say_nothing() -> None:
    crowd, truth = simulate(0, n_tasks=60)
    assert measure_relation(features_of(truth, 0)[::-1], crowd) is None


def test_the_warning_shows_tasks_and_their_rows() -> None:
    crowd, truth = simulate(0)
    X = np.roll(features_of(truth, 0), 1, axis=0)
    table = pd.DataFrame(X, index=crowd.tasks)
    (problem,) = describe_problems(table, X, crowd)
    assert problem.startswith("the features may belong to other tasks, or say nothing about the labels")
    assert "(200 tasks, 600 votes)" in problem
    assert f"'t000' has {X[0, 0]:.3g}, " in problem
    assert describe_problems(table, X, crowd, is_useful=True) == []


@pytest.mark.parametrize("kind", ["text", "code", "share", "count"])
def test_a_column_with_the_answer_is_named(kind: str) -> None:
    for seed in range(5):
        crowd, truth = simulate(seed, n_tasks=400, votes_per_task=5)
        counts = crowd.vote_counts
        answer = {
            "text": crowd.classes[truth],
            "code": truth,
            "share": counts[:, 0] / counts.sum(axis=1) - 1e-3 * counts[:, 1] + 1e-6 * np.arange(400),
            "count": counts[:, 0],
        }[kind]
        table = pd.DataFrame(features_of(truth, seed), columns=list("abcde"), index=crowd.tasks).assign(answer=answer)
        assert list(find_answer_columns(table, crowd)) == ["answer"]


def test_useful_columns_are_no_answer() -> None:
    for seed in range(10):
        crowd, truth = simulate(seed, votes_per_task=2)
        rng = np.random.default_rng(seed)
        useful = np.where(rng.random(200) < 0.6, truth, rng.integers(3, size=200))
        X = features_of(truth, seed, signal=3.0)
        table = pd.DataFrame(X, index=crowd.tasks).assign(useful=useful, random=rng.integers(3, size=200))
        assert find_answer_columns(table, crowd) == {}


def test_columns_that_number_rows_or_repeat_ids() -> None:
    table = pd.DataFrame({"nr": [5, 6, 7], "id": [30, 10, 20], "size": [1.5, 0.5, 1.0]}, index=["30", "10", "20"])
    assert find_row_numbers(table) == ["nr", "id"]


def test_columns_that_are_mostly_constant() -> None:
    crowd, truth = simulate(0)
    X = features_of(truth, 0)
    X[:, 1:] = 7.0
    table = pd.DataFrame(X, columns=list("abcde"), index=crowd.tasks)
    (problem,) = describe_problems(table, X, crowd)
    assert problem.startswith("4 of 5 feature columns have the same value for all tasks: 'b', 'c', 'd', …")


def column_of(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    return {
        "height": lambda: np.round(rng.normal(170, 10, n)),
        "rating": lambda: rng.integers(1, 6, n).astype(float),
        "share": lambda: rng.random(n),
        "binary": lambda: rng.integers(0, 2, n).astype(float),
        "sign": lambda: rng.integers(0, 2, n) * 2.0 - 1,
        "clipped": lambda: np.clip(rng.normal(size=n), -1, 1),
        "shifted counts": lambda: rng.poisson(3, n) - 1.0,
        "mostly zero": lambda: np.where(rng.random(n) < 0.7, 0.0, rng.normal(500, 10, n)),
        "heavy tails": lambda: np.round(rng.standard_cauchy(n)),
        "percentage": lambda: np.minimum(rng.integers(50, 120, n), 99).astype(float),
    }[kind]()


@pytest.mark.parametrize("code", [-999, 9999, -99, -1])
@pytest.mark.parametrize("kind", ["height", "rating", "share"])
def test_codes_for_missing_values_are_found(kind: str, code: float) -> None:
    rng = np.random.default_rng(0)
    values = column_of(kind, 200, rng)
    values[rng.permutation(200)[:12]] = code
    (found,) = find_missing_codes(pd.DataFrame({"other": rng.normal(size=200), "x": values}))
    assert (found.column, found.value, found.n_rows) == ("x", code, 12)


@pytest.mark.parametrize(
    "kind", ["height", "rating", "binary", "sign", "clipped", "shifted counts", "mostly zero", "percentage"]
)
@pytest.mark.parametrize("n", [30, 500])
def test_ordinary_columns_have_no_codes(kind: str, n: int) -> None:
    for seed in range(20):
        assert find_missing_codes(pd.DataFrame({"x": column_of(kind, n, np.random.default_rng(seed))})) == []


def test_outliers_are_no_codes() -> None:
    for seed in range(20):
        assert find_missing_codes(pd.DataFrame({"x": column_of("heavy tails", 500, np.random.default_rng(seed))})) == []
    values = column_of("height", 200, np.random.default_rng(0))
    values[:4] = -999
    assert find_missing_codes(pd.DataFrame({"x": values})) == []


def test_the_warning_about_codes_says_how_to_mark_missing_values() -> None:
    table = pd.DataFrame({"height": [*range(150, 190), *[-999] * 12], "colour": "red"})
    text = describe_missing_codes(table)
    assert text.startswith(
        "the feature column 'height' has 12 times the value -999, far from all others (150 to 189), which may be a code"
    )
    assert "leave these cells empty in a table (NaN in an array)" in text
    crowd = Crowd.from_triples([(task, worker, "ab"[task % 2]) for task in range(52) for worker in range(2)])
    assert text in describe_problems(table.set_axis(crowd.tasks), table[["height"]].to_numpy(dtype=float), crowd)
    assert describe_missing_codes(table[["colour"]]) == ""
