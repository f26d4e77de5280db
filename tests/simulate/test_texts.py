"""Simulated texts follow their parameters."""

from __future__ import annotations

import pytest

from wisecrowd.errors import UsageError
from wisecrowd.evaluate.text_metrics import compute_error_rates
from wisecrowd.simulate.texts import simulate_texts


def test_errors_follow_the_accuracy() -> None:
    simulation = simulate_texts(n_tasks=300, accuracy=0.8, worker_spread=0.0, random_state=1)
    frame = simulation.crowd.to_frame()
    rates = compute_error_rates(frame["text"].tolist(), simulation.truth[frame["task"]].tolist())
    assert rates.mean() == pytest.approx(0.2, abs=0.02)
    assert simulate_texts(random_state=1).crowd == simulate_texts(random_state=1).crowd


@pytest.mark.parametrize("options", [{"votes_per_task": 40}, {"accuracy": 1.0}, {"n_tasks": 0}])
def test_impossible_parameters_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="must be"):
        simulate_texts(**options)  # type: ignore[arg-type]  # mixed types
