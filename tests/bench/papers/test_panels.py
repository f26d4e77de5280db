"""Benchmark of panels: entries, oracle, and findings about gaps."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from wisecrowd import DawidSkene
from wisecrowd.bench import find_benchmark
from wisecrowd.bench.data import SimulatedDataset
from wisecrowd.bench.papers.panels import ANSWERS, PanelMethod, SimulatedPanel, by_people, findings, title
from wisecrowd.errors import InputError
from wisecrowd.evaluate import metrics
from wisecrowd.io.datasets import Dataset
from wisecrowd.simulate import simulate_panel


@pytest.fixture(scope="module")
def made() -> Dataset:
    return SimulatedPanel({"n_tasks": 300, "n_classes": 3, "strength": 0.9}).load(5)


def test_the_data_are_the_simulation(made: Dataset) -> None:
    plain = simulate_panel(300, n_classes=3, strength=0.9, random_state=5)
    assert made.crowd == plain.crowd
    assert made.meta["groups"] == plain.groups.to_dict()


def test_the_oracle_is_best_and_independence_worst(made: Dataset) -> None:
    right = {name: metrics.accuracy(made.truth, PanelMethod(name)(made, 0)) for name in ANSWERS}
    assert right["oracle"] + 0.01 >= max(right.values())
    assert right["Panel"] > right["Dawid–Skene"] + 0.05


def test_people_only_means_people_only(made: Dataset) -> None:
    votes = made.crowd.to_frame()
    wanted = DawidSkene().fit(votes[votes["worker"].str.startswith("person")])
    assert by_people(made).labels_.reindex(wanted.labels_.index).equals(wanted.labels_)


def test_only_simulated_panels_are_answered() -> None:
    with pytest.raises(InputError, match="not a simulated panel"):
        PanelMethod("Panel")(SimulatedDataset({"n_tasks": 20}).load(0), 0)


def test_findings_are_of_means_over_seeds() -> None:
    def row(entry: str, data: str, seed: int, accuracy: float) -> dict[str, object]:
        return {"entry": entry, "data": data, "seed": seed, "figures": {"accuracy": accuracy}}

    strong, weak = title(2, 0.9), title(2, 0.3)
    rows = [row("oracle", strong, 0, 0.9), row("oracle", strong, 1, 1.0), row("Panel", strong, 0, 0.92)]
    rows += [
        row("Panel", strong, 1, 0.96),
        row("oracle", weak, 0, 0.9),
        row("Panel", weak, 0, 0.85),
        {"entry": "x", "data": strong},
    ]
    first, second = findings(rows)
    assert first.endswith(
        "60 % of the time or more, points behind the oracle: Panel 1.0 on average, at least 1.0 and at most 1.0."
    )
    assert second.endswith("Panel 5.0 on average, at least 5.0 and at most 5.0.")
    assert findings([]) == ()


def test_findings_do_not_depend_on_the_order_of_rows() -> None:
    rng = np.random.default_rng(0)
    data = title(3, 0.6)
    rows = [
        {"entry": entry, "data": data, "seed": seed, "figures": {"accuracy": round(score, 3)}}
        for entry in ("oracle", "Panel")
        for seed, score in enumerate(rng.uniform(0.9, 1, size=10))
    ]
    told = {findings([rows[place] for place in rng.permutation(len(rows))]) for _ in range(50)}
    assert len(told) == 1


@pytest.mark.parametrize("quick", [False, True])
def test_the_table_has_every_cell_and_travels_between_processes(quick: bool) -> None:
    table = find_benchmark("panels", quick=quick)
    assert len(table.data) == 15
    assert len({seed for _, _, seed in table.cells}) == table.seeds == (3 if quick else 10)
    for entry in table.entries.values():
        json.dumps(pickle.loads(pickle.dumps(entry)).identity())
    for data in table.data.values():
        json.dumps(data.identity())
