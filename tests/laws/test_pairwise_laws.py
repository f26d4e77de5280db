"""Laws that every aggregator of comparisons obeys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Comparisons, load, methods
from wisecrowd.base.pairwise_aggregator import PairwiseAggregator
from wisecrowd.errors import ignore_fit_warnings
from wisecrowd.simulate.comparisons import simulate_comparisons

METHODS = {name: method for name, method in methods("aggregate").items() if "pairwise" in method.answer_types}
CROWDS = {
    "ties": simulate_comparisons(
        n_items=6, n_workers=5, votes_per_worker=40, lean_spread=0.5, random_state=0
    ).comparisons,
    "tasks": simulate_comparisons(n_items=4, n_workers=4, votes_per_worker=40, n_tasks=3, random_state=1).comparisons,
    "no ties": simulate_comparisons(
        n_items=5, n_workers=6, votes_per_worker=30, tie_utility=None, random_state=2
    ).comparisons,
}
# The fast tier tries the first crowd only.
EVERY_CROWD = [
    pytest.param(name, marks=[pytest.mark.slow] if number else []) for number, name in enumerate(CROWDS)
]  # fmt: skip
#: Elo draws random orders of the rows, which follow the names.
ORDER_DEPENDENT = {"elo"}

pytestmark = pytest.mark.parametrize("name", METHODS)


def fit(name: str, comparisons: Comparisons, **options: Any) -> Any:
    with ignore_fit_warnings():
        return METHODS[name](**options).fit(comparisons)


def rebuild(comparisons: Comparisons, frame: pd.DataFrame, **options: Any) -> Comparisons:
    task = None if comparisons.tasks is None else "task"
    weight = "weight" if "weight" in frame else None
    return Comparisons.from_frame(frame, task=task, weight=weight, duplicates="keep", swapped="keep", **options)


@pytest.mark.parametrize("crowd", EVERY_CROWD)
def test_the_order_of_rows_does_not_matter(name: str, crowd: str) -> None:
    comparisons = CROWDS[crowd]
    shuffled = rebuild(comparisons, comparisons.to_frame().sample(frac=1, random_state=0))
    assert np.array_equal(fit(name, comparisons).score_, fit(name, shuffled).score_)


@pytest.mark.parametrize("crowd", EVERY_CROWD)
def test_names_do_not_matter(name: str, crowd: str) -> None:
    comparisons = CROWDS[crowd]
    rng = np.random.default_rng(3)
    items = dict(zip(comparisons.items, rng.permutation(comparisons.n_items).astype(str), strict=True))
    workers = dict(zip(comparisons.workers, rng.permutation(comparisons.n_workers).astype(str), strict=True))
    frame = comparisons.to_frame()
    frame = frame.assign(
        left=frame["left"].map(items), right=frame["right"].map(items), worker=frame["worker"].map(workers),
        label=frame["label"].map(items | {"tie": "tie"}),
    )  # fmt: skip
    expected = fit(name, comparisons).scores_["score"].rename(index=items).sort_index()
    renamed = fit(name, rebuild(comparisons, frame)).scores_["score"].sort_index()
    assert np.allclose(renamed, expected, atol=0.05 if name in ORDER_DEPENDENT else 1e-4)


@pytest.mark.parametrize("crowd", EVERY_CROWD)
def test_swapping_all_sides_changes_no_score(name: str, crowd: str) -> None:
    comparisons = CROWDS[crowd]
    swapped = rebuild(comparisons, comparisons.to_frame().rename(columns={"left": "right", "right": "left"}))
    expected, other = fit(name, comparisons), fit(name, swapped)
    assert np.allclose(other.score_, expected.score_, atol=0.05 if name in ORDER_DEPENDENT else 1e-4)


@pytest.mark.parametrize("crowd", EVERY_CROWD)
def test_a_weight_of_two_is_a_vote_repeated(name: str, crowd: str) -> None:
    if name in ORDER_DEPENDENT:
        pytest.skip("a repeated vote is rated twice, in different places of the order")
    comparisons = CROWDS[crowd]
    frame = comparisons.to_frame()
    doubled = rebuild(comparisons, frame.assign(weight=2.0))
    repeated = rebuild(comparisons, pd.concat([frame, frame]))
    assert np.allclose(fit(name, doubled).score_, fit(name, repeated).score_, atol=1e-4)


def test_unanimous_workers_decide_the_order(name: str) -> None:
    order = ["best", "good", "poor", "worst"]
    votes = [
        (worker, *(pair if worker % 2 else pair[::-1]), pair[0])
        for worker in range(8)
        for pair in [(one, other) for place, one in enumerate(order) for other in order[place + 1 :]]
    ]
    fitted = fit(name, Comparisons.from_tuples(votes))
    assert fitted.scores_.index.tolist() == order
    assert fitted.win_probability("best", "worst") > 0.5


@pytest.mark.parametrize("crowd", EVERY_CROWD)
def test_tables_match_their_vocabularies(name: str, crowd: str) -> None:
    comparisons = CROWDS[crowd]
    fitted = fit(name, comparisons)
    table = fitted.scores_
    assert sorted(table.index) == sorted(comparisons.items)
    assert table["score"].is_monotonic_decreasing
    assert table["score"].mean() == pytest.approx(0, abs=1e-9)
    assert table["rank"].tolist() == list(range(1, comparisons.n_items + 1))
    if fitted.covariance_ is not None:
        assert (table["lower"] <= table["score"]).all()
        assert (table["upper"] >= table["score"]).all()
        assert (table["rank_low"] <= table["rank"]).all()
        assert (table["rank_high"] >= table["rank"]).all()
    if METHODS[name].needs_workers:
        assert list(fitted.workers_.index) == list(comparisons.workers)
        assert fitted.workers_["n_votes"].sum() == comparisons.n_votes
    probs = fitted.predict_proba(comparisons).to_numpy()
    assert np.allclose(probs.sum(axis=1), 1)
    assert (probs >= 0).all()


def test_a_saved_method_is_the_same(name: str, tmp_path: Any) -> None:
    comparisons = CROWDS["tasks"]
    fitted = fit(name, comparisons)
    fitted.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert isinstance(loaded, PairwiseAggregator)
    assert loaded.scores_.equals(fitted.scores_)
    assert loaded.predict_proba(comparisons).equals(fitted.predict_proba(comparisons))


def test_fitting_again_gives_the_same(name: str) -> None:
    comparisons = CROWDS["ties"]
    with ignore_fit_warnings():
        method = METHODS[name]().fit(CROWDS["no ties"]).fit(comparisons)
    assert np.array_equal(method.score_, fit(name, comparisons).score_)


def test_fitted_attributes_are_declared(name: str) -> None:
    from wisecrowd.base.fields import fitted_fields

    fitted = fit(name, CROWDS["tasks"])
    declared = {field.name for field in fitted_fields(fitted)}
    assert {attribute for attribute in vars(fitted) if attribute.endswith("_")} <= declared
