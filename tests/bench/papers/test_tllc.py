"""The benchmark of TLLC: its data, rows and tests."""

from __future__ import annotations

import json
import os
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import TLLC, simulate_crowd
from wisecrowd.bench import find_benchmark
from wisecrowd.bench.entries import get_identity
from wisecrowd.bench.papers._tllc import (
    ACCURACY,
    DENSITY,
    NEIGHBOUR,
    SHARED,
    SHIFT,
    SILHOUETTE,
    AggregatorAfterCompleter,
    CompletionEffects,
    EmbeddingSeparation,
    EncodedFeatures,
    FilteredTasks,
    WithAdversaries,
    findings,
    number_categories,
    one_hot_categories,
    run_friedman_test,
    title,
)
from wisecrowd.bench.render import render_markdown, render_text
from wisecrowd.errors import InputError
from wisecrowd.io.datasets import Dataset

pytest.importorskip("torch")

NAMES = ("zhang2025tllc", "zhang2025tllc-sensitivity", "zhang2025tllc-ablation")
SMALL = {"hidden": 8, "pretrain_epochs": 3, "epochs": 2}


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    made = simulate_crowd(n_tasks=60, n_workers=8, n_classes=3, votes_per_task=3, random_state=1)
    assert made.crowd.classes is not None
    X = 2.5 * np.eye(3)[made.crowd.classes.get_indexer(pd.Index(made.truth))]
    X = X + np.random.default_rng(0).normal(size=(60, 3))
    return Dataset(
        name="made",
        crowd=made.crowd,
        truth=made.truth,
        features=pd.DataFrame(X, index=made.truth.index, columns=[*"xyz"]),
    )


@pytest.mark.parametrize(
    "name", [*NAMES, "zhang2025tllc-filtering", "zhang2025tllc-embedding", *(f"{name}-quick" for name in NAMES)]
)  # fmt: skip
def test_every_benchmark_and_its_small_version_speak_of_what_they_have(name: str) -> None:
    made = find_benchmark(name)
    assert made.name == name
    for entry, data, figure in made.published:
        assert entry in made.entries
        assert figure in made.data[data].figures
    assert all(note in made.entries or note in made.data for note in made.notes)
    assert made.cells
    for entry in made.entries.values():
        again = pickle.loads(pickle.dumps(entry))
        shown = json.dumps(get_identity(entry))
        assert json.dumps(get_identity(again)) == shown
        assert " at 0x" not in shown


def test_categories_become_columns_or_numbers() -> None:
    features = pd.DataFrame({"size": [1.5, 2.0, 3.0], "colour": ["red", "blue", "red"]}, index=["t1", "t2", "t3"])
    wide = one_hot_categories(features)
    assert wide.columns.tolist() == ["size", "colour_blue", "colour_red"]
    assert wide.to_numpy().tolist() == [[1.5, 0, 1], [2, 1, 0], [3, 0, 1]]
    assert number_categories(features).to_numpy().tolist() == [[1.5, 1], [2, 0], [3, 1]]  # alphabetical
    declared = number_categories(pd.DataFrame({"relationship": ["Husband", "Wife", "Unmarried"]}))
    assert declared["relationship"].tolist() == [2, 0, 5]


def test_aggregators_answer_before_and_after(dataset: Dataset) -> None:
    before = AggregatorAfterCompleter()(dataset, 0)
    assert before == AggregatorAfterCompleter()(dataset, 1)
    for name in ("majority-vote", "gtic", "mnldp"):
        for completer in (None, "wslc", "tllc"):
            settings = SMALL if completer == "tllc" else {}
            found = AggregatorAfterCompleter(completer, settings, aggregator=name)(dataset, 0)
            assert 0.3 < found[ACCURACY] <= 1
    entry = AggregatorAfterCompleter("tllc", SMALL)
    assert entry(dataset, 0) == entry(dataset, 0)
    assert entry.is_random
    assert not AggregatorAfterCompleter("wslc").is_random
    assert AggregatorAfterCompleter("wslc", aggregator="lagnn").is_random


def test_what_filling_does_to_workers_is_measured(dataset: Dataset) -> None:
    plain = CompletionEffects()(dataset, 0)
    assert plain[SHIFT] == 0
    assert plain[ACCURACY] == plain[SHARED]
    assert plain[DENSITY] == pytest.approx(3 / 8)
    filled = CompletionEffects("tllc", SMALL)(dataset, 0)
    assert 3 / 8 < filled[DENSITY] <= 1
    assert 0 < filled[SHIFT] < 1
    assert CompletionEffects("wslc")(dataset, 0)[DENSITY] == 1


def test_workers_are_compared_in_the_cells_of_another_completer(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TLLC.__init__, "__kwdefaults__", TLLC.__init__.__kwdefaults__ | SMALL)  # type: ignore[operator]
    tllc, both = CompletionEffects("tllc")(dataset, 0), CompletionEffects("wslc", cells_of="tllc")(dataset, 0)
    assert both[DENSITY] == tllc[DENSITY] < 1
    assert both[SHIFT] != tllc[SHIFT]
    assert CompletionEffects("wslc", cells_of="tllc").is_random


def test_embeddings_are_scored_by_the_true_classes(dataset: Dataset) -> None:
    figures = EmbeddingSeparation(SMALL | {"pretrain_epochs": 30})(dataset, 0)
    assert figures.keys() == {SILHOUETTE, NEIGHBOUR}
    assert figures[NEIGHBOUR] > 0.6  # chance is a third
    assert -1 < figures[SILHOUETTE] < 1


@pytest.mark.data
@pytest.mark.skipif("WISECROWD_DATA" not in os.environ, reason="the crowd Income is not on this machine")
def test_adversaries_are_added_to_the_votes() -> None:
    made = WithAdversaries("income", "distinct", n_adversaries=2, share=0.5, error=0.8).load(0)
    added = made.crowd.to_frame().query("worker in ('adversary 0', 'adversary 1')")
    assert made.crowd.n_workers == 69
    assert len(added) == pytest.approx(600, abs=60)
    assert made.truth is not None
    wrong = added["label"].to_numpy() != made.truth.loc[added["task"]].to_numpy()
    assert wrong.mean() == pytest.approx(0.8, abs=0.05)


@pytest.mark.data
@pytest.mark.skipif("WISECROWD_DATA" not in os.environ, reason="the crowd Income is not on this machine")
def test_categories_of_income_have_the_formula_of_the_rival() -> None:
    numbered = EncodedFeatures("income", "distinct", categories="numbered").load(0)
    assert numbered.meta["nominal"] == (1, 3, 4, 5, 6, 9)
    assert AggregatorAfterCompleter("wslc")(numbered, 0)[ACCURACY] == pytest.approx(0.7117, abs=5e-5)


def test_kept_tasks_are_fewer_and_better(dataset: Dataset) -> None:
    every, kept = (FilteredTasks(is_kept=is_kept)(dataset, 0) for is_kept in (False, True))
    assert every["tasks"] == 60 > kept["tasks"] > 0
    assert kept[ACCURACY] > every[ACCURACY]
    assert set(kept) == {ACCURACY, "tasks", "class 1", "class 2", "class 3"}


def test_a_dataset_without_features_is_refused(dataset: Dataset) -> None:
    with pytest.raises(InputError, match="features"):
        AggregatorAfterCompleter("tllc")(Dataset(name="made", crowd=dataset.crowd, truth=dataset.truth), 0)


# ---------------------------------------------------------------------- tests of significance


def test_friedman_by_hand() -> None:
    # Ranks by row: 1 2 3, 1 2 3, 1 3 2; sums 3, 7, 8; chi² = 12 / (3·3·4) · (9 + 49 + 64) − 3·3·4 = 14/3.
    p, ranks, least = run_friedman_test(np.array([[0.9, 0.8, 0.7], [0.6, 0.5, 0.4], [0.9, 0.1, 0.2]]))
    np.testing.assert_allclose(ranks, [1, 7 / 3, 8 / 3])
    assert p == pytest.approx(np.exp(-7 / 3))  # chi² with two degrees of freedom
    assert least == pytest.approx(2.343 * np.sqrt(12 / 18), abs=1e-2)  # the tables' q for three ways


def test_where_all_are_alike_nothing_differs() -> None:
    p, ranks, least = run_friedman_test(np.full((4, 3), 0.5))
    assert p == 1
    assert ranks.tolist() == [2, 2, 2]
    assert least == np.inf


def rows_of(scores: dict[str, list[float]], data: str = "Income") -> list[dict[str, Any]]:
    return [
        {"entry": entry, "data": data, "seed": seed, "status": "ok", "figures": {ACCURACY: value}, "seconds": 0.1,
         "finished": "2025-01-01", "machine": "m", "wisecrowd": "0", "python": "3"}
        for entry, values in scores.items()
        for seed, value in enumerate(values)
    ]  # fmt: skip


def test_tests_are_told_below_the_table() -> None:
    better = [0.80, 0.81, 0.79, 0.80, 0.82, 0.80, 0.80, 0.81]
    rows = rows_of({"MV": [0.7], "MV + WSLC": [0.69], "MV + TLLC": better})
    rows += rows_of({"MV": [0.7], "MV + WSLC": [0.75], "MV + TLLC": [0.72] * 8}, "Leaves")
    first, second = findings(rows)
    assert "each of 2 pairs" in first
    assert "TLLC above WSLC in 1, below it in 0; TLLC above none in 0" in first
    assert "mean ranks none" in second
    made = find_benchmark("zhang2025tllc")
    assert first in render_markdown(made, rows)
    assert "Friedman" in render_text(made, rows)
    assert title("MV", "none") == "MV"
    assert findings(rows_of({"MV": [0.7]})) == ()
