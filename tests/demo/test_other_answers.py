"""Ratings, comparisons and label sets in the demo."""

from __future__ import annotations

import pytest

from wisecrowd.demo import Demo
from wisecrowd.demo.other_answers import run_other_answers


def test_every_method_beats_the_simple_one(demo: Demo) -> None:
    assert len(demo.other_answers) == 3
    for result in demo.other_answers:
        assert result.baseline_value + 0.02 < result.value < 1
        assert result.describe().startswith(f"{result.answers}: {result.metric} {result.value:.2f} by {result.method}")


@pytest.mark.slow
def test_the_seed_decides() -> None:
    first, second = run_other_answers(5), run_other_answers(5)
    assert first == second
    assert first != run_other_answers(6)
