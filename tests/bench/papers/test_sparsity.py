"""Aggregators on random parts of crowds."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import Crowd, MajorityVote, simulate_crowd
from wisecrowd.base.registry import find
from wisecrowd.bench.papers.sparsity import DEFAULT, DRAWS, PARTS, SINGLES, OnParts, draw_part, findings, format_part
from wisecrowd.errors import InputError
from wisecrowd.evaluate.metrics import accuracy
from wisecrowd.io.datasets import Dataset

SIMULATION = simulate_crowd(n_tasks=80, n_workers=9, n_classes=3, votes_per_task=5, random_state=0)
DATASET = Dataset(name="made", crowd=SIMULATION.crowd, truth=SIMULATION.truth)


def test_parts_have_their_size_and_differ_by_draw() -> None:
    first, again, other = (draw_part(SIMULATION.crowd, 20, repetition) for repetition in (0, 0, 1))
    assert first.n_votes == round(0.2 * SIMULATION.crowd.n_votes)
    assert (first.votes_per_task > 0).all()
    assert first == again
    assert first != other
    assert draw_part(SIMULATION.crowd, 100, 3) is SIMULATION.crowd


def test_all_votes_have_no_tasks_without_votes_either() -> None:
    crowd = Crowd.from_triples([("t1", "ann", "cat")], tasks=["t1", "t2"], classes=["cat", "dog"])
    assert draw_part(crowd, 100, 0).tasks.tolist() == ["t1"]


def test_figures_are_means_over_the_parts() -> None:
    figures = OnParts("majority-vote")(DATASET, 0)
    assert list(figures) == [format_part(percent) for percent in PARTS]
    by_hand = [
        accuracy(SIMULATION.truth, MajorityVote().fit(draw_part(SIMULATION.crowd, 30, repetition)))
        for repetition in range(DRAWS)
    ]
    assert figures["30 %"] == pytest.approx(np.mean(by_hand))
    assert figures["100 %"] == pytest.approx(accuracy(SIMULATION.truth, MajorityVote().fit(SIMULATION.crowd)))


def test_large_crowds_are_declined_by_slow_methods() -> None:
    with pytest.raises(InputError, match="more than 100 votes"):
        OnParts("majority-vote", at_most=100)(DATASET, 0)


def test_every_method_without_features_or_groups_takes_part() -> None:
    from wisecrowd.base.aggregator import Aggregator
    from wisecrowd.base.registry import methods

    kinds = {
        name
        for name, kind in methods("aggregate").items()
        if issubclass(kind, Aggregator) and "categorical" in kind.answer_types and not kind.uses_features
    }
    assert kinds - {"panel"} == {DEFAULT, *SINGLES}
    assert all(find(name) for name in SINGLES)


def test_findings_name_methods_that_are_better_than_the_default() -> None:
    def row(entry: str, data: str, value: float) -> dict[str, object]:
        return {"entry": entry, "data": data, "figures": {format_part(percent): value for percent in PARTS}}

    rows = [row(DEFAULT, "rte", 0.8), row(DEFAULT, "dog", 0.7), row("one-coin", "rte", 0.85)]
    table, sentence = findings(rows)[1:]
    assert "| one-coin | 1 | .850 |" in table
    assert f"| {DEFAULT} | 2 | .750 |" in table
    assert "| 5.0 | rte, " in table
    assert "one-coin at 5 % (by 5.0 points)" in sentence
    assert findings([{"entry": DEFAULT, "data": "rte", "status": "too slow"}]) == ()
