"""Workers who copy another worker."""

from __future__ import annotations

import pytest

from wisecrowd import DawidSkene, MajorityVote, simulate_crowd
from wisecrowd.data.crowd import Crowd
from wisecrowd.demo.copy_detection import compute_pair_agreement, find_copiers
from wisecrowd.demo.verdicts import rate_workers
from wisecrowd.errors import UsageError


def test_honest_twins_are_no_copiers() -> None:
    simulation = simulate_crowd(400, workers=["expert"] * 6 + ["noisy"] * 6, votes_per_task=6)
    assert find_copiers(simulation.crowd, DawidSkene().fit(simulation.crowd)) == []


def test_pairs_by_brute_force() -> None:
    simulation = simulate_crowd(40, workers=["noisy"] * 5, votes_per_task=3)
    crowd = simulation.crowd
    fitted = DawidSkene().fit(crowd)
    confusion, posterior = fitted.confusion_, fitted.posterior_
    votes: dict[tuple[int, int], int] = {
        (int(task), int(worker)): int(label)
        for task, worker, label in zip(crowd.task, crowd.worker, crowd.label, strict=True)  # type: ignore[arg-type]
    }
    for row in compute_pair_agreement(crowd, fitted).to_dict("records"):
        shared = same = 0
        expected = 0.0
        for task in range(crowd.n_tasks):
            one, other = (votes.get((task, int(row[who]))) for who in ("first", "second"))
            if one is None or other is None:
                continue
            shared, same = shared + 1, same + (one == other)
            mine, yours = confusion[int(row["first"])], confusion[int(row["second"])]
            others = posterior[task] / (mine[:, one] * yours[:, other])
            expected += float((others / others.sum()) @ (mine * yours).sum(axis=1))
        assert (row["shared"], row["same"]) == (shared, same)
        assert row["expected"] == pytest.approx(expected)


def test_without_workers_there_is_nobody_to_judge() -> None:
    crowd = Crowd.from_counts([[2, 1]])
    with pytest.raises(UsageError):
        rate_workers(crowd, MajorityVote().fit(crowd))
    with pytest.raises(UsageError):
        find_copiers(crowd, MajorityVote().fit(crowd))
