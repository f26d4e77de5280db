from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.errors import UsageError
from wisecrowd.simulate.evaluations import simulate_arena, simulate_evaluation


def test_labels_have_the_rates() -> None:
    simulation = simulate_evaluation(
        n_tasks=20_000, rates=(0.8, 0.3), n_labelled=20_000, severity_spread=0.3, n_raters=500, random_state=0
    )
    assert simulation.labels.groupby("system")["label"].mean().to_numpy() == pytest.approx([0.8, 0.3], abs=0.02)


def test_judges_see_quality() -> None:
    simulation = simulate_evaluation(n_tasks=2000, n_labelled=2000, judge_noise=0.1, shared_noise=0.1, disagreement=0.1)
    label = simulation.labels.set_index(["system", "task"])["label"].reindex(simulation.scores.index)
    assert np.corrcoef(simulation.scores["judge0"], label)[0, 1] > 0.7


def test_people_follow_bradley_and_terry() -> None:
    arena = simulate_arena(n_tasks=20_000, scores=(0.5, -0.5), n_labelled=20_000)
    frame = arena.people.to_frame()
    assert (frame["label"] == "system0").mean() == pytest.approx(1 / (1 + np.exp(-1)), abs=0.02)
    assert arena.scores.sum() == pytest.approx(0)


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(UsageError, match="n_labelled"):
        simulate_evaluation(n_tasks=10, n_labelled=11)
    with pytest.raises(UsageError, match="rates"):
        simulate_evaluation(rates=(1.0,))
    with pytest.raises(UsageError, match="two systems"):
        simulate_arena(scores=(0.0,))
