"""Simulated scores: the correlations and accuracies that were asked for."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate_scores
from wisecrowd.errors import UsageError


def test_errors_have_the_correlation_that_was_asked_for() -> None:
    made = simulate_scores(4000, 4, correlation=0.4, family_correlation=0.3, scale="logits", random_state=3)
    wide = made.scores.score.reshape(4000, 4)
    truth = made.truth.to_numpy()
    errors = wide - np.where(truth[:, None] == 1, wide[truth == 1].mean(axis=0), wide[truth == 0].mean(axis=0))
    assert np.allclose(np.corrcoef(errors.T), made.error_correlation, atol=0.05)
    gap = (wide[truth == 1].mean(axis=0) - wide[truth == 0].mean(axis=0)) / errors.std(axis=0)
    assert np.allclose(gap, made.separation, atol=0.1)


def test_scales_and_people() -> None:
    made = simulate_scores(300, 3, n_people=2, scale="mixed", people_accuracy=0.9, people_density=0.5, positive=0.3)
    wide = made.scores.score.reshape(300, 3)
    assert set(np.unique(wide[:, 0])) <= set(range(10))
    assert ((wide[:, 1] > 0) & (wide[:, 1] < 1)).all()
    votes = made.scores.votes
    assert votes is not None
    assert 200 < votes.n_votes < 400
    assert (votes.label == made.truth.to_numpy()[votes.task]).mean() > 0.8
    assert 0.2 < made.truth.mean() < 0.4
    assert (
        made.scores
        == simulate_scores(
            300, 3, n_people=2, scale="mixed", people_accuracy=0.9, people_density=0.5, positive=0.3
        ).scores
    )


@pytest.mark.parametrize(
    "options", [{"correlation": 0.9, "family_correlation": 0.2}, {"n_judges": 0}, {"scale": "stars"}]
)
def test_impossible_panels_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        simulate_scores(10, **options)  # type: ignore[arg-type]  # wrong on purpose
