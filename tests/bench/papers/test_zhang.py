"""The benchmark of Coupled Confusion Correction: its images, its crowds, its curves."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from wisecrowd.bench import find_benchmark
from wisecrowd.bench.papers._fashion import Filters
from wisecrowd.bench.papers._zhang import (
    AS_MANY,
    BEST,
    GROUPS,
    LAST,
    SELECTED,
    EpochLearner,
    FashionCrowd,
    TargetClassifier,
)
from wisecrowd.bench.papers.zhang2024ccc import TWO
from wisecrowd.errors import InputError
from wisecrowd.simulate import PATTERN_SETS

NAMES = (
    "zhang2024ccc", "zhang2024ccc-sparsity", "zhang2024ccc-groups", "zhang2024ccc-memorisation", "zhang2024ccc-distances",
)  # fmt: skip
SMALL = Filters(n_filters=6, side=3, margin=0, n_cells=2, n_components=8, n_patches=2000)
FEW = FashionCrowd("COR-II", n_tasks=300, epochs=4, filters=SMALL)


@pytest.mark.usefixtures("images")
def test_a_crowd_labels_the_images_and_another_seed_is_another_crowd() -> None:
    one, other, full = FEW.load(0), FEW.load(1), replace(FEW, n_tasks=60_000).load(0)
    assert one.crowd.shape == (300, 250)
    assert full.crowd.n_tasks == 60_000
    assert one.splits is not None
    assert one.splits.value_counts().to_dict() == {"train": 300, "test": 200}
    assert one.crowd != other.crowd
    assert one.features is not None
    assert other.features is not None
    pd.testing.assert_frame_equal(one.features, other.features)
    assert one.meta["pattern"].value_counts().to_dict() == dict.fromkeys(PATTERN_SETS["COR-II"], 50)
    assert one.truth is not None
    right = one.truth.loc[one.crowd.tasks].to_numpy()[one.crowd.task] == one.crowd.classes[one.crowd.label]  # type: ignore[index]
    assert 0.35 < right.mean() < 0.6
    assert FEW.identity() != replace(FEW, votes_per_task=5).identity()
    assert FEW.absence() is None


def test_images_that_are_not_there_are_missed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WISECROWD_DATA", str(tmp_path))
    assert "WISECROWD_DATA" in (FEW.absence() or "")
    with pytest.raises(InputError, match="not on this machine"):
        FEW.load(0)


@pytest.mark.usefixtures("images")
def test_an_entry_scores_its_curve() -> None:
    dataset = replace(FEW, epochs=6).load(0)
    entry = pickle.loads(pickle.dumps(EpochLearner("crowd-layer", {"hidden": 32})))
    curve, model = entry.curve(dataset, 0, 0.1)
    assert len(curve) == len(model.history_) == 6
    figures = entry(dataset, 0)
    assert figures == {LAST: curve[-1], BEST: max(curve), SELECTED: curve[int(model.history_["validation"].argmax())]}
    assert figures == entry(dataset, 0)
    # Where nothing is set aside, the same curve comes from all tasks, and another one is selected from.
    whole = entry(replace(dataset, meta={**dataset.meta, "aside": 0.0}), 0)
    assert whole[SELECTED] == figures[SELECTED]
    assert len(entry.curve(dataset, 0, 0.0)[1].history_["validation"].dropna()) == 0


@pytest.mark.usefixtures("images")
def test_data_say_how_methods_are_trained_on_them() -> None:
    decayed = replace(FEW, trained_as="fashion decayed")
    dataset = decayed.load(0)
    assert dataset.crowd == FEW.load(0).crowd
    assert decayed.identity() != FEW.identity()
    _, plain = EpochLearner("crowd-layer").curve(FEW.load(0), 0, 0.1)
    _, model = EpochLearner("crowd-layer", on={"fashion decayed": {"l2": 0.1}}).curve(dataset, 0, 0.1)
    assert (plain.optimiser, plain.schedule, plain.l2) == ("adam", "constant", 0.0)
    assert (model.optimiser, model.schedule, model.l2) == ("sgd", "step", 0.1)
    assert model.epochs == FEW.epochs


@pytest.mark.usefixtures("images")
def test_clean_labels_are_the_ceiling_of_votes() -> None:
    dataset = replace(FEW, n_tasks=1500, epochs=15).load(0)
    clean, voted = (TargetClassifier(source)(dataset, 0) for source in ("truth", "votes"))
    assert clean[LAST] > 0.8
    assert clean[LAST] > voted[LAST] + 0.05
    for figures in (clean, voted):
        assert figures[BEST] >= max(figures[LAST], figures[SELECTED])


@pytest.mark.usefixtures("images")
def test_groups_are_compared_with_patterns() -> None:
    figures = EpochLearner("ccc", {"n_groups": 5, "warmup": 1, "hidden": 16})(FEW.load(0), 0)
    assert {GROUPS, AS_MANY} < set(figures)
    assert -0.5 <= figures[GROUPS] <= 1


@pytest.mark.parametrize("name", [*NAMES, "zhang2024ccc-full", "zhang2024ccc-quick"])
def test_every_benchmark_and_its_small_version_speak_of_what_they_have(name: str) -> None:
    made = find_benchmark(name)
    assert made.name == name
    for entry, data, figure in made.published:
        assert entry in made.entries
        assert figure in made.data[data].figures
    assert all(note in made.entries or note in made.data for note in made.notes)
    assert made.incomparable <= set(made.data)
    assert pickle.loads(pickle.dumps(list(made.entries.values())))
    assert made.cells


@pytest.mark.parametrize("name", [name for name in NAMES if name != "zhang2024ccc-distances"])
def test_every_table_of_ccc_has_the_mean_of_two_networks(name: str) -> None:
    made = find_benchmark(name)
    assert {data for entry, data, _ in made.cells if entry == TWO} == set(made.data)


@pytest.mark.usefixtures("images")
def test_few_workers_have_many_labels_each() -> None:
    crowd = replace(FEW, workers_per_pattern=7).load(0).crowd
    assert crowd.n_workers == 35
    assert replace(FEW, workers_per_pattern=7).identity() != FEW.identity()
