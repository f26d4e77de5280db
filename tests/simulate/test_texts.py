"""Simulated texts follow their parameters."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.data.edit_counts import count_edits
from wisecrowd.data.texts import tokenize
from wisecrowd.errors import UsageError
from wisecrowd.evaluate.text_metrics import compute_error_rates
from wisecrowd.simulate.texts import simulate_texts


def test_errors_follow_the_accuracy() -> None:
    simulation = simulate_texts(n_tasks=300, accuracy=0.8, worker_spread=0.0, random_state=1)
    frame = simulation.crowd.to_frame()
    rates = compute_error_rates(frame["text"].tolist(), simulation.truth[frame["task"]].tolist())
    assert rates.mean() == pytest.approx(0.2, abs=0.02)
    assert simulate_texts(random_state=1).crowd == simulate_texts(random_state=1).crowd


def test_kinds_of_errors_follow_their_shares() -> None:
    simulation = simulate_texts(
        n_tasks=200, accuracy=0.8, worker_spread=0.0, error_shares=(0.0, 0.75, 0.25), random_state=1
    )
    tokens = tokenize([*simulation.crowd.text, *simulation.truth[simulation.crowd.tasks[simulation.crowd.task]]])
    n = simulation.crowd.n_votes
    assert tokens.length[:n].sum() / tokens.length[n:].sum() == pytest.approx(1 - 0.15 + 0.05, abs=0.01)
    edits = count_edits(tokens, n + np.arange(n), tokens, np.arange(n))
    assert edits.deletions.sum() > 2 * edits.insertions.sum()
    with pytest.raises(UsageError, match="three shares that add up to 1"):
        simulate_texts(error_shares=(0.5, 0.5, 0.5))


@pytest.mark.parametrize("options", [{"votes_per_task": 40}, {"accuracy": 1.0}, {"n_tasks": 0}])
def test_impossible_parameters_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="must be"):
        simulate_texts(**options)  # type: ignore[arg-type]  # mixed types
