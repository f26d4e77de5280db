"""Comparison of methods for marks by held-out workers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import (
    BoxConsensus,
    SpanCrowd,
    compare_methods,
    simulate_boxes,
    simulate_points,
    simulate_polygons,
    simulate_spans,
)
from wisecrowd.data.marks import MarkCrowd
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate.mark_selection import compare_mark_methods, fit_marks, list_decisions
from wisecrowd.evaluate.model_selection import Comparison


@pytest.fixture(scope="module")
def compared() -> Comparison:
    simulation = simulate_boxes(
        n_tasks=50, n_workers=8, difficult_share=0.3, n_classes=2, worker_spread=1.5, random_state=1
    )
    return compare_methods(simulation.crowd, truth=simulation.truth)


def test_the_model_of_workers_predicts_better_than_shares(compared: Comparison) -> None:
    assert compared.best == "box-consensus"
    assert compared.tied_methods == ("box-consensus",)
    assert compared.table["log_likelihood"].is_monotonic_decreasing
    assert "times the probability of the second-best method" in compared.summary


def test_truth_adds_scores_and_does_not_influence_the_choice(compared: Comparison) -> None:
    assert compared.table[["precision", "recall", "f1"]].to_numpy().min() > 0.5
    assert set(compared.table["exponent"]) <= {0.25, 0.5, 0.75, 1.0}
    assert np.diag(compared.agreement).tolist() == [1, 1]
    assert compared.agreement.iloc[0, 1] > 0.7
    assert (compared.disputed_tasks.nunique(axis=1) > 1).all()


def test_every_worker_of_a_task_decides_about_every_object() -> None:
    crowd = simulate_spans(n_tasks=20, n_workers=6, votes_per_task=3, random_state=0).crowd
    decisions = list_decisions(crowd)
    assert len(decisions.vote) == crowd.votes_per_task[decisions.object_task].sum()
    assert (crowd.task[decisions.vote] == decisions.object_task[decisions.target]).all()
    pairs = decisions.target * crowd.n_votes + decisions.vote
    assert len(np.unique(pairs)) == len(pairs)
    assert (decisions.given > 0).sum() > 0.95 * crowd.n_marks
    assert decisions.given.max() <= crowd.n_classes


def make_rows(rows: list[tuple[str, str, int, int, str]]) -> MarkCrowd:
    return SpanCrowd.from_frame(pd.DataFrame(rows, columns=["task", "worker", "start", "end", "label"]))


def test_the_prediction_is_the_hand_computed_one() -> None:
    # Workers agree on everything, so a held-out worker almost certainly marks the object with its class.
    rows = [(f"d{task}", f"w{worker}", 0, 2, "A") for task in range(30) for worker in range(4)]
    comparison = compare_mark_methods(make_rows(rows), ["span-consensus"])
    assert comparison.table["log_likelihood"].iloc[0] > np.log(0.9)
    assert comparison.summary.startswith("Only span-consensus was compared")


@pytest.mark.parametrize("simulate", [simulate_points, simulate_polygons, simulate_spans])
def test_other_kinds(simulate: Any) -> None:
    simulation = simulate(n_tasks=15, n_workers=6, random_state=0)
    comparison = compare_mark_methods(simulation.crowd, truth=simulation.truth)
    assert len(comparison.table) >= 2
    assert comparison.table["f1"].between(0.4, 1).all()


def test_documents_reach_the_methods_that_use_them() -> None:
    crowd = make_rows([("d", "x", 1, 2, "A"), ("d", "y", 1, 2, "A")])
    documents = {"task": ["d"], "tokens": [["in", "Rome"]]}
    from wisecrowd import BayesianSequence

    assert len(fit_marks(BayesianSequence(), crowd, documents).objects_) == 1
    with pytest.raises(InputError, match="beyond the end"):
        fit_marks(BayesianSequence(), crowd, {"task": ["d"], "tokens": [["in"]]})
    assert isinstance(fit_marks(BoxConsensus(), simulate_boxes(n_tasks=5).crowd, documents), BoxConsensus)


def test_bad_requests_are_refused() -> None:
    crowd = simulate_spans(n_tasks=10, n_workers=5, random_state=0).crowd
    with pytest.raises(UsageError, match="does not take them"):
        compare_mark_methods(crowd, ["box-consensus"])
    with pytest.raises(UsageError, match="methods is empty"):
        compare_mark_methods(crowd, [])
    with pytest.raises(UsageError, match="must be a list"):
        compare_mark_methods(crowd, "span-consensus")
    with pytest.raises(InputError, match="no column 'end'"):
        compare_mark_methods(crowd, ["span-consensus"], truth=pd.DataFrame({"task": ["t1"], "start": [0]}))
    with pytest.raises(InputError, match="none of the tasks with truth"):
        compare_mark_methods(crowd, ["span-consensus"], truth=pd.DataFrame({"task": ["z"], "start": [0], "end": [1]}))
    alone = make_rows([(f"d{task}", f"w{task % 3}", 0, 2, "A") for task in range(12)])
    with pytest.raises(InputError, match="collect answers of several workers"):
        compare_mark_methods(alone)
