"""Rules that choose a method, and how far they are from the best."""

from __future__ import annotations

import json
import pickle

import pytest

from wisecrowd import compare_methods, simulate_crowd
from wisecrowd.base.registry import find
from wisecrowd.bench import find_benchmark
from wisecrowd.bench.papers.choosing import BY_GOLD, BY_LOT, BY_VOTES, POINT, Rule, findings, fit_candidates
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate import metrics
from wisecrowd.evaluate.model_selection import CANDIDATES
from wisecrowd.io.datasets import Dataset

MADE = simulate_crowd(n_tasks=80, n_workers=10, n_classes=3, votes_per_task=4, random_state=2)
DATASET = Dataset(name="made", crowd=MADE.crowd, truth=MADE.truth)


@pytest.fixture(scope="module")
def right() -> dict[str, float]:
    """Accuracy of each candidate, fitted here."""
    kinds = {name: find(name) for name in CANDIDATES}
    return {name: metrics.accuracy(MADE.truth, kind().fit(MADE.crowd)) for name, kind in kinds.items()}  # type: ignore[attr-defined]


def test_a_rule_is_as_far_behind_as_its_candidate(right: dict[str, float]) -> None:
    best = max(right.values())
    assert len({round(value, 6) for value in right.values()}) > 1  # or nothing would be tried here
    for name in CANDIDATES:
        found = Rule(name)(DATASET, 0)
        assert found["accuracy"] == pytest.approx(right[name])
        assert found["behind"] == pytest.approx(best - right[name])
        assert found["within a point"] == (best - right[name] <= POINT + 1e-9)
        assert CANDIDATES[int(found["taken"])] == name


def test_gold_takes_the_best_and_lots_the_mean(right: dict[str, float]) -> None:
    assert Rule(BY_GOLD)(DATASET, 0)["accuracy"] == pytest.approx(max(right.values()))
    assert Rule(BY_GOLD)(DATASET, 0)["behind"] == 0
    lots = Rule(BY_LOT)(DATASET, 0)
    assert lots["accuracy"] == pytest.approx(sum(right.values()) / len(right))
    assert lots["within a point"] == pytest.approx(
        sum(max(right.values()) - value <= POINT + 1e-9 for value in right.values()) / len(right)
    )


def test_choosing_by_votes_does_not_see_gold(right: dict[str, float]) -> None:
    found = Rule(BY_VOTES)(DATASET, 0)
    taken = compare_methods(MADE.crowd).tied_methods[0]
    assert CANDIDATES[int(found["taken"])] == taken
    assert found["accuracy"] == pytest.approx(right[taken])
    mixed = MADE.truth.sample(frac=1, random_state=0).set_axis(MADE.truth.index)
    assert Rule(BY_VOTES)(Dataset(name="mixed", crowd=MADE.crowd, truth=mixed), 0)["taken"] == found["taken"]


def test_candidates_are_fitted_once_for_a_crowd() -> None:
    assert fit_candidates(MADE.crowd) is fit_candidates(MADE.crowd)


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match="no"):
        Rule(BY_VOTES)(Dataset(name="made", crowd=MADE.crowd), 0)
    with pytest.raises(UsageError, match="is not a candidate"):
        Rule("ebcc")(DATASET, 0)


def test_findings_count_crowds_and_name_choices() -> None:
    def row(entry: str, data: str, behind: float, taken: int) -> dict[str, object]:
        figures = {"accuracy": 0.9 - behind, "behind": behind, "within a point": float(behind <= POINT), "taken": taken}
        return {"entry": entry, "data": data, "figures": figures}

    rows = [row(BY_VOTES, "dog", 0.0, 0), row(BY_VOTES, "rte", 0.03, 1), row(BY_GOLD, "dog", 0.0, 0)]
    counted, choices = findings([*rows, {"entry": BY_VOTES, "data": "wsd", "status": "too slow"}])
    assert "held-out votes on 1 of 2 crowds (50 %), .015 behind on average and .030 at worst" in counted
    assert BY_GOLD not in counted
    assert f"{CANDIDATES[0]} for dog" in choices
    assert choices.endswith("More than a point behind on rte.")
    assert findings([]) == ()


@pytest.mark.parametrize("quick", [False, True])
def test_the_table_travels_between_processes(quick: bool) -> None:
    table = find_benchmark("choosing", quick=quick)
    for entry in table.entries.values():
        json.dumps(pickle.loads(pickle.dumps(entry)).identity())
    assert all(source.figures == ("accuracy", "behind") for source in table.data.values())
