"""Votes bought by several rules, replayed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import simulate_crowd
from wisecrowd.bench.papers import replay
from wisecrowd.bench.papers.replay import AREA, EARLY, RULES, START, Replay, active_lab_scores
from wisecrowd.io.datasets import Dataset

MADE = simulate_crowd(n_tasks=40, n_workers=9, n_classes=3, votes_per_task=7, random_state=0)
DATASET = Dataset(name="made", crowd=MADE.crowd, truth=MADE.truth)


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_begins_and_ends_alike_and_repeats_itself(rule: str) -> None:
    curve = Replay(rule).curve(DATASET, 1)
    anyhow = Replay("random").curve(DATASET, 1)
    assert curve["votes"].tolist() == anyhow["votes"].tolist()
    assert curve["votes"].iloc[0] == START * MADE.crowd.n_tasks
    assert curve["votes"].iloc[-1] == MADE.crowd.n_votes
    assert curve["accuracy"].iloc[[0, -1]].tolist() == anyhow["accuracy"].iloc[[0, -1]].tolist()
    pd.testing.assert_frame_equal(curve, Replay(rule).curve(DATASET, 1))


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_orders_what_is_left(rule: str) -> None:
    crowd = MADE.crowd
    bought = replay._first(crowd, 0)
    assert (np.bincount(crowd.task[bought]) == START).all()
    left = np.setdiff1d(np.arange(crowd.n_votes), bought)
    seen = crowd.take(bought)
    now = replay.ReplayRound(crowd, bought, left, replay._fit_dawid_skene(seen), seen, np.random.default_rng(0))
    order = RULES[rule](now)
    assert len(np.unique(order)) == len(left)
    first = crowd.task[left[np.argsort(order)[: crowd.n_tasks]]]
    assert rule in ("random", "wisecrowd plan") or len(np.unique(first)) == crowd.n_tasks  # one on each before a second


def test_the_scores_of_active_lab_are_those_of_its_formula() -> None:
    crowd = MADE.crowd
    votes = crowd.to_frame()
    assert crowd.classes is not None
    consensus = pd.Series(crowd.vote_counts.argmax(axis=1), index=crowd.tasks).map(
        dict(enumerate(crowd.classes.tolist()))
    )
    met: dict[Any, list[bool]] = {}
    for _, group in votes.groupby("task"):
        for mine in group.itertuples():
            met.setdefault(mine.worker, []).extend(group["label"][group["worker"] != mine.worker] == mine.label)
    error = 1 - float(consensus.value_counts(normalize=True).max())
    weight: dict[Any, float] = {
        worker: max(1 - (1 - float(np.mean(same))) / error, 1e-6) for worker, same in met.items()
    }
    right = float(np.mean(votes["label"] == votes["task"].map(consensus)))  # as many votes on each task
    mean = sum(weight.values()) / len(weight)
    for (task, group), score in zip(votes.groupby("task"), active_lab_scores(crowd), strict=True):
        caught_warnings = [weight[worker] for worker in group["worker"]]
        chance = [right if label == consensus[task] else (1 - right) / 2 for label in group["label"]]
        quality = sum(map(float.__mul__, chance, caught_warnings)) / sum(caught_warnings)
        assert score == pytest.approx((quality * sum(caught_warnings) + mean / 3) / (sum(caught_warnings) + mean))


def test_areas_are_means_over_budgets() -> None:
    curve = pd.DataFrame({"votes": [10, 20, 40], "accuracy": [0.5, 0.7, 0.9]})
    assert replay._mean_until(curve, 40) == pytest.approx((0.6 * 10 + 0.8 * 20) / 30)
    assert replay._mean_until(curve, 30) == pytest.approx((0.6 * 10 + 0.75 * 10) / 20)
    assert replay._mean_until(curve, 10) == 0.5
    assert set(Replay("random")(DATASET, 0)) == {AREA, EARLY}
