"""Binary relevance: one pass over all labels equals one fit per label."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import BinaryRelevance, Crowd, DawidSkene
from wisecrowd.errors import UsageError
from wisecrowd.simulate.label_sets import simulate_label_sets

MADE = simulate_label_sets(n_tasks=300, n_workers=12, n_labels=5, votes_per_task=5, random_state=0)


def test_majority_is_the_share_of_marks() -> None:
    fitted = BinaryRelevance(model="majority").fit(MADE.crowd)
    assert np.allclose(fitted.label_probs_, MADE.crowd.mark_counts / 5)


def test_one_pass_equals_dawid_skene_for_every_label() -> None:
    crowd = MADE.crowd
    fitted = BinaryRelevance(shrinkage=0, tol=1e-10, max_iter=20_000).fit(crowd)
    marked = np.zeros((crowd.n_votes, crowd.n_labels), dtype=int)
    marked[crowd.mark, crowd.label] = 1
    for label in range(crowd.n_labels):
        single = Crowd.from_codes(
            crowd.task, crowd.worker, marked[:, label], tasks=crowd.tasks, workers=crowd.workers, classes=["no", "yes"]
        )
        other = DawidSkene(smoothing=0, diagonal=0, tol=1e-14, max_iter=20_000, accelerate=False)
        expected = other.fit(single).posterior_[:, 1]
        assert np.allclose(fitted.label_probs_[:, label], expected, atol=5e-3)


def test_workers_are_recovered() -> None:
    made = simulate_label_sets(n_tasks=2000, n_workers=10, votes_per_task=6, worker_spread=0.8, random_state=1)
    workers = BinaryRelevance().fit(made.crowd).workers_
    for name in ("hit_rate", "false_alarm_rate"):
        assert np.corrcoef(workers[name], made.workers[name])[0, 1] > 0.95


def test_the_objective_never_falls() -> None:
    trace = BinaryRelevance().fit(MADE.crowd).trace_
    assert len(trace) > 3
    assert (np.diff(trace) > -1e-7 * abs(trace[-1])).all()


def test_options_are_checked() -> None:
    with pytest.raises(UsageError, match="shrinkage must be 0 or more; got -1"):
        BinaryRelevance(shrinkage=-1).fit(MADE.crowd)
    with pytest.raises(UsageError, match="model"):
        BinaryRelevance(model="glad").fit(MADE.crowd)  # type: ignore[arg-type]  # the mistake
