"""Coverage of worker and prevalence intervals."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import DawidSkene, OneCoin, simulate_crowd
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError
from wisecrowd.evaluate.intervals import prevalence_intervals, worker_intervals
from wisecrowd.evaluate.leave_one_out import leave_one_out_posterior

SIZES = {"small": (100, 10, 3, 5), "middle": (300, 20, 3, 4), "large": (1000, 40, 4, 5)}


def simulated(size: str, seed: int):  # type: ignore[no-untyped-def]  # a Simulation
    n_tasks, n_workers, n_classes, labels = SIZES[size]
    return simulate_crowd(n_tasks=n_tasks, n_workers=n_workers, n_classes=n_classes, votes_per_task=labels,
                          workers={"noisy": 0.7, "expert": 0.3}, random_state=seed)  # fmt: skip


@pytest.mark.parametrize("method", [DawidSkene, OneCoin])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.slow
def test_ninety_per_cent_worker_intervals_cover_about_ninety_per_cent(method: type, size: str) -> None:
    covered, n_seeds = [], 25 if size != "large" else 12
    for seed in range(n_seeds):
        made = simulated(size, seed)
        table = worker_intervals(method().fit(made.crowd), made.crowd)
        covered.append((table["low"] <= made.accuracy) & (made.accuracy <= table["high"]))
    assert 0.85 <= np.concatenate(covered).mean() <= 0.95


@pytest.mark.slow
def test_prevalence_intervals_cover() -> None:
    covered = []
    for seed in range(20):
        made = simulated("small", seed)
        table = prevalence_intervals(DawidSkene().fit(made.crowd), made.crowd)
        covered += ((table["low"] <= 1 / 3) & (table["high"] >= 1 / 3)).tolist()
    # 60 intervals, three per crowd and dependent: 85–97 % is what honest 90 % intervals give.
    assert 0.85 <= np.mean(covered) <= 0.97


def test_more_labels_make_narrower_intervals() -> None:
    few, many = (
        worker_intervals(OneCoin().fit(made.crowd), made.crowd)
        for made in (simulated("small", 0), simulated("large", 0))
    )
    assert (many["high"] - many["low"]).mean() < (few["high"] - few["low"]).mean()


def test_a_worker_without_votes_has_a_wide_interval() -> None:
    crowd = Crowd.from_triples(
        [(task, worker, task % 2) for task in range(9) for worker in "ab"], workers=["a", "b", "c"]
    )
    table = worker_intervals(OneCoin().fit(crowd), crowd)
    assert table.loc["c", "high"] - table.loc["c", "low"] > 0.5
    assert table.loc["a", "low"] > 0.5


def test_bad_calls_get_advice() -> None:
    made = simulated("small", 2)
    fitted = DawidSkene().fit(made.crowd)
    with pytest.raises(UsageError, match="level"):
        worker_intervals(fitted, made.crowd, level=90)
    with pytest.raises(UsageError, match="that the method was fitted to"):
        leave_one_out_posterior(fitted, made.crowd[:10])
