"""Planted workers, who names them, and how that is counted."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest

from wisecrowd.bench import find_benchmark
from wisecrowd.bench.benchmark import Benchmark
from wisecrowd.bench.data import SimulatedDataset
from wisecrowd.bench.papers.planted import (
    FIGURES,
    FLAGS,
    RULES,
    FlaggedWorkers,
    PlantedCrowd,
    WorkerSearch,
    by_agreement,
    by_truth,
    findings,
    scored,
)
from wisecrowd.diagnose.workers import WorkerDiagnosis
from wisecrowd.errors import InputError

KIND = {"a": "noisy", "b": "noisy", "s": "spammer", "o": "one-button", "x": "adversary", "c": "copier", "d": "copier"}
NOBODY: dict[str, set[str]] = {flag: set() for flag in FLAGS}


def crowd(workers: list[str], n_classes: int = 4) -> PlantedCrowd:
    return PlantedCrowd(
        {"n_tasks": 60 * len(workers) // 5, "n_classes": n_classes, "workers": workers, "votes_per_task": 5}
    )


def test_who_is_named_rightly_and_who_is_missed() -> None:
    named = FlaggedWorkers({**NOBODY, "spammers": {"s", "a"}, "adversaries": {"x"}}, set())
    found = scored(named, KIND, {"c": "b", "d": "b"})
    assert (found["spammers recall"], found["spammers precision"]) == (0.5, 0.5)
    assert (found["adversaries recall"], found["adversaries precision"]) == (1, 1)
    assert (found["spammers found"], found["spammers planted"], found["spammers named"]) == (1, 2, 2)
    assert np.isnan(found["drifters recall"])  # nobody to find, nobody named
    assert np.isnan(found["copiers precision"])
    assert found["copiers recall"] == 0


def test_who_copies_a_spammer_is_no_false_alarm_and_no_miss() -> None:
    copies = {"c": "s", "d": "a"}
    named = FlaggedWorkers({**NOBODY, "spammers": {"s", "o", "c"}}, set())
    assert scored(named, KIND, copies)["spammers precision"] == 1
    assert scored(named, KIND, copies)["spammers recall"] == 1
    accused = FlaggedWorkers({**NOBODY, "spammers": {"s", "o", "d"}}, set())
    assert scored(accused, KIND, copies)["spammers precision"] == pytest.approx(2 / 3)
    silent = FlaggedWorkers({**NOBODY, "spammers": {"s", "o"}}, set())
    assert scored(silent, KIND, copies)["spammers recall"] == 1


def test_copiers_are_counted_by_pairs() -> None:
    copies = {"c": "b", "d": "b"}

    def figures(*pairs: str) -> tuple[float, float]:
        found = scored(FlaggedWorkers(NOBODY, {frozenset(pair) for pair in pairs}), KIND, copies)
        return found["copiers recall"], found["copiers precision"]

    assert figures("cb", "db") == (1, 1)
    assert figures("cd") == (1, 1)  # both copy the same
    assert figures("cb") == (0.5, 1)
    assert figures("ca", "cb") == (0.5, 0.5)


def test_a_planted_crowd_is_the_simulated_one_and_says_who_is_who() -> None:
    source = crowd(["noisy"] * 8 + ["spammer", "copier(1)"])
    made, plain = source.load(3), SimulatedDataset(source.settings).load(3)
    assert made.crowd == plain.crowd
    assert [made.meta["kind"][f"w{place}"] for place in (0, 8, 9)] == ["noisy", "spammer", "copier"]
    assert list(made.meta["copies"]) == ["w9"]


def test_with_the_truth_known_votes_are_judged_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[WorkerDiagnosis] = []

    def keep(found: WorkerDiagnosis) -> None:
        seen.append(found)

    monkeypatch.setattr(WorkerDiagnosis, "__post_init__", _and_then(WorkerDiagnosis.__post_init__, keep))
    made = crowd(["noisy"] * 10 + ["spammer", "copier(0.95)"]).load(1)
    assert made.truth is not None
    named = by_truth(made)
    assert named.workers["spammers"] >= {"w10"}
    assert named.pairs == {frozenset(("w11", made.meta["copies"]["w11"]))}
    assert made.crowd.classes is not None
    codes = made.crowd.classes.get_indexer(pd.Index(made.truth[made.crowd.tasks]))
    assert np.allclose(seen[0].peer_posterior[np.arange(made.crowd.n_votes), codes[made.crowd.task]], 1)


def _and_then(first: object, second: object) -> object:
    def both(self: object) -> None:
        first(self)  # type: ignore[operator]
        second(self)  # type: ignore[operator]

    return both


def test_agreement_with_the_majority_is_that_of_the_others() -> None:
    made = crowd(["expert(0.97)"] * 12 + ["spammer", "one-button", "adversary(1)"], n_classes=3).load(0)
    named = by_agreement(made)
    votes, right = made.crowd.to_frame(), {}
    for worker, mine in votes.groupby("worker"):
        agrees = []
        for vote in mine.itertuples():
            rest = votes["label"][(votes["task"] == vote.task) & (votes["worker"] != worker)].value_counts()
            agrees.append(rest.get(vote.label, 0) == rest.max())
        right[worker] = np.mean(agrees)
    assert named.workers["spammers"] == {w for w, share in right.items() if 1 / 3 - 0.1 <= share < 1 / 3 + 0.1}
    assert named.workers["adversaries"] == {w for w, share in right.items() if share < 1 / 3 - 0.1} >= {"w14"}
    assert named.workers["drifters"] == set()  # votes without times


def test_two_with_the_same_answers_are_seen_by_agreement() -> None:
    made = crowd(["noisy(0.6)"] * 10 + ["copier(1)"]).load(0)
    assert by_agreement(made).pairs == {frozenset(("w10", made.meta["copies"]["w10"]))}


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_scores_itself(rule: str) -> None:
    made = crowd(["expert"] * 8 + ["spammer", "drifter"]).load(0)
    found = WorkerSearch(rule)(made, 0)
    assert set(FIGURES) <= set(found)
    assert found == pytest.approx(WorkerSearch(rule)(made, 1), nan_ok=True)
    with pytest.raises(InputError, match="kinds of the workers are unknown"):
        WorkerSearch(rule)(SimulatedDataset({"n_tasks": 20}).load(0), 0)


def test_findings_pool_the_seeds() -> None:
    def row(found: int, planted: int, right: int, named: int, **more: str) -> dict[str, object]:
        names = ("spammers found", "spammers planted", "spammers named rightly", "spammers named")
        figures = dict(zip(names, (found, planted, right, named), strict=True))
        return {"entry": "wisecrowd diagnose", "data": "4 classes, 30 votes", "figures": figures, **more}

    pooled, reached = findings([row(10, 10, 10, 12), row(8, 10, 8, 8), {"entry": "truth known", "data": "x"}])
    assert pooled.endswith("*wisecrowd diagnose*, spammers: 4 classes, 30 votes .90/.90.")
    assert reached.endswith("spammers in 1 of 1 crowds.")
    assert findings([row(8, 10, 8, 8)])[1].endswith("spammers in 0 of 1 crowds.")
    assert findings([]) == ()


@pytest.mark.parametrize("quick", [False, True])
def test_the_table_has_every_cell_and_travels_between_processes(quick: bool) -> None:
    table: Benchmark = find_benchmark("planted", quick=quick)
    assert len(table.data) == (3 if quick else 9)
    assert len({seed for _, _, seed in table.cells}) == table.seeds == (3 if quick else 10)
    for entry in table.entries.values():
        json.dumps(pickle.loads(pickle.dumps(entry)).identity())
