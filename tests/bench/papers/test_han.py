"""The tables of Han et al.: entries share fits, figures are what they say, and published ones have their places."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import MajorityVote, simulate_crowd
from wisecrowd.bench import find_benchmark
from wisecrowd.bench.entries import get_identity
from wisecrowd.bench.papers import _han
from wisecrowd.bench.papers._han import (
    ACCURACY,
    CHANGE,
    CORRELATION,
    DENSITY,
    EPOCHS,
    SURPRISE,
    VECTOR_SPREAD,
    WITH_VOTES,
    AfterFilling,
    AtEpoch,
    HeadRetrained,
    LearnerAfterFilling,
    Oracle,
    PaperSizes,
    TrainingTaskScores,
    WorkerDistances,
)
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate import metrics
from wisecrowd.io.datasets import Dataset

FAMILY = ("", "-fill", "-fill-deep", "-redundancy", "-density", "-epochs", "-map", "-vectors")
SMALL: dict[str, Any] = {"n_experts": 2, "hidden": 4, "learning_rate": 0.01}


@pytest.fixture
def dataset() -> Dataset:
    made = simulate_crowd(n_tasks=90, n_workers=8, n_classes=3, votes_per_task=2, random_state=1)
    assert made.crowd.classes is not None
    place = made.crowd.classes.get_indexer(pd.Index(made.truth))
    X = 2.5 * np.eye(3)[place] + np.random.default_rng(0).normal(size=(90, 3))
    # Tasks that nobody labelled are not scored.
    more = pd.Index([f"new{n}" for n in range(5)])
    truth = pd.concat([made.truth, pd.Series(made.crowd.classes[0], index=more)])
    features = pd.DataFrame(np.concatenate([X, np.zeros((5, 3))]), index=truth.index)
    return Dataset(name="made", crowd=made.crowd, truth=truth, features=features)


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_han, "_cache", {})


@pytest.mark.parametrize("which", FAMILY)
def test_entries_travel_and_published_figures_have_their_places(which: str) -> None:
    found = find_benchmark(f"han2025mmlc{which}")
    for entry in found.entries.values():
        shown = json.dumps(get_identity(entry))
        assert json.dumps(get_identity(pickle.loads(pickle.dumps(entry)))) == shown
        assert " at 0x" not in shown
    for entry, data, figure in found.published:
        assert entry in found.entries
        assert figure in found.data[data].figures
    assert set(found.notes) <= {*found.entries, *found.data}


def test_published_figures_are_those_of_the_paper() -> None:
    first, second = find_benchmark("han2025mmlc").published, find_benchmark("han2025mmlc-fill").published
    assert (len(first), len(second)) == (30, 60)
    assert first["MMLC-owf", "Text", ACCURACY] == 0.7431
    assert (second["MV, G_IRT", "Music", CHANGE], second["HDS, MMLC-df", "Music", CHANGE]) == (6.72, 0.12)
    gains = [value for (entry, _, _), value in second.items() if entry.endswith("MMLC-df")]
    assert min(gains) > 0


def test_what_is_equal_is_made_once_and_not_kept_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_han, "MAX_CACHED", 2)
    made: list[int] = []
    for key in (1, 1, 2, 3, 1):
        _han.compute_once(key, lambda key=key: made.append(key))  # type: ignore[misc]
    assert made == [1, 2, 3, 1]


class TestLearners:
    @pytest.fixture(autouse=True)
    def _torch(self) -> None:
        pytest.importorskip("torch")

    def test_centres_of_a_seed_are_of_one_fit(self, dataset: Dataset) -> None:
        settings = SMALL | {"epochs": 6}
        scores = {kind: Oracle("mmlc", settings, centre=kind)(dataset, 0) for kind in ("kde", "mean", "truth")}
        assert len(_han._cache) == 1
        X, z = _han.get_features_and_truth(dataset)
        (model,) = _han._cache.values()
        assert scores["kde"][ACCURACY] == float((model.predict(X) == z).mean())
        assert scores["kde"][EPOCHS] == 6
        Oracle("mmlc", settings)(dataset, 1)
        assert len(_han._cache) == 2

    def test_the_curve_passes_the_fit_to_fewer_epochs(self, dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("wisecrowd.nn.epoch_search.MAX_SEARCH_EPOCHS", 4)
        chosen = AtEpoch("mmlc", SMALL, at="chosen", until=6)(dataset, 0)
        assert chosen[ACCURACY] == TrainingTaskScores("mmlc", SMALL)(dataset, 0)[ACCURACY]
        assert chosen[SURPRISE] > 0
        best = AtEpoch("mmlc", SMALL, at="best", until=6)(dataset, 0)
        assert best[ACCURACY] == max(AtEpoch("mmlc", SMALL, at=at, until=6)(dataset, 0)[ACCURACY] for at in range(1, 7))
        assert len(_han._cache) == 2  # one fit by hidden votes, one curve
        with pytest.raises(UsageError, match="beyond"):
            AtEpoch("mmlc", SMALL, at=7, until=6)(dataset, 0)

    def test_a_learner_fills_in(self, dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("wisecrowd.nn.epoch_search.MAX_SEARCH_EPOCHS", 2)
        assert AfterFilling("majority-vote", "mmlc-fill")(dataset, 0)[DENSITY] == 1


def test_a_change_is_what_filling_in_makes_of_the_same_aggregator(dataset: Dataset) -> None:
    truth = dataset.truth
    before = metrics.accuracy(truth, MajorityVote().fit(dataset.crowd))
    plain = AfterFilling("majority-vote")(dataset, 0)
    assert plain == {ACCURACY: before, CHANGE: 0.0, DENSITY: dataset.crowd.n_votes / (90 * 8)}
    entry = AfterFilling("majority-vote", "gmv")
    filled = entry.filled(dataset, 3)
    assert set(filled.weight) == {1.0}
    found = entry(dataset, 3)
    assert found[ACCURACY] == metrics.accuracy(truth, MajorityVote().fit(filled))
    assert found[CHANGE] == pytest.approx(100 * (found[ACCURACY] - before))
    fewer = Dataset(name="made", crowd=dataset.crowd, truth=dataset.truth, meta={"min_votes": 20})
    assert entry(fewer, 3)[DENSITY] < found[DENSITY] == 1


def test_what_cannot_be_scored_is_refused(dataset: Dataset) -> None:
    bare = Dataset(name="made", crowd=dataset.crowd)
    with pytest.raises(InputError, match="truth"):
        AfterFilling("majority-vote")(bare, 0)
    with pytest.raises(InputError, match="no truth or no features"):
        TrainingTaskScores("conal")(bare, 0)
    with pytest.raises(UsageError, match="is not a completer"):
        AfterFilling("majority-vote", "hds")(dataset, 0)


@pytest.mark.data
@pytest.mark.usefixtures("data_folder")
def test_the_crowds_come_as_they_are_asked_for() -> None:
    fewer = _han.LimitedVotes("labelme", "distinct", most=2)
    assert fewer.load(0).crowd.votes_per_task.max() == 2
    assert fewer.load(0).crowd != fewer.load(1).crowd
    assert _han.BusyWorkersOnly("labelme", "distinct", min_votes=50).load(0).meta["min_votes"] == 50


def test_rows_of_mmlc_report_the_spread_of_worker_vectors(dataset: Dataset) -> None:
    figures = Oracle("mmlc", SMALL | {"epochs": 3})(dataset, 0)
    assert 0 <= figures[VECTOR_SPREAD] < 0.5
    assert 0 < figures[WITH_VOTES] <= 1
    assert WITH_VOTES not in Oracle("mmlc", SMALL | {"epochs": 3}, centre="mean")(dataset, 0)
    retrained = HeadRetrained("mmlc", SMALL | {"epochs": 3})(dataset, 0)
    assert retrained[ACCURACY] > 0.8  # the classes lie apart


def test_sizes_of_the_paper_follow_the_dataset(dataset: Dataset) -> None:
    named = replace(dataset, name="music_genre")
    assert PaperSizes("mmlc", {"epochs": 1})(named, 0) == Oracle("mmlc", {"epochs": 1, "classifier": "music"})(named, 0)


def test_distances_from_the_oracle_are_correlated_with_accuracy(dataset: Dataset) -> None:
    figures = WorkerDistances("mmlc", SMALL | {"epochs": 3}, min_votes=5)(dataset, 0)
    assert -1 <= figures[CORRELATION] <= 1
    assert figures["workers"] == 8


def test_learners_are_scored_after_filling(dataset: Dataset) -> None:
    plain, filled = (LearnerAfterFilling("two-stage", completer)(dataset, 0) for completer in (None, "gmv"))
    assert plain[CHANGE] == 0
    assert filled[DENSITY] == 1
    assert filled[CHANGE] == pytest.approx(100 * (filled[ACCURACY] - plain[ACCURACY]))
