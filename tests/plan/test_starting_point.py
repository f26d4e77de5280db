"""Assessment of a crowd: the confidence that `aggregate` writes, and workers of the same model or of Dawid–Skene."""

from __future__ import annotations

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd import DawidSkene, ModelAverage, Panel, estimate_confidence, simulate_crowd
from wisecrowd.diagnose.workers import WorkerDiagnosis
from wisecrowd.errors import InputError
from wisecrowd.plan.starting_point import GroupedWorkers, assess_votes, get_planned_workers, require_votes
from wisecrowd.simulate import simulate_panel


def diagnose_with_single_votes(n_single: int, n_others: int = 60) -> tuple[WorkerDiagnosis, float]:
    """A crowd with five votes on some tasks, and further tasks with one vote each."""
    made = wc.simulate_crowd(n_tasks=n_others + n_single, n_workers=12, n_classes=4, votes_per_task=5, random_state=4)
    crowd = made.crowd
    first = crowd.offset[crowd.task] == np.arange(crowd.n_votes)
    kept = crowd.take((crowd.task < n_others) | first)
    return WorkerDiagnosis(kept, wc.OneCoin().fit(kept)), float(n_others)


def test_votes_that_are_alone_say_nothing_of_workers() -> None:
    few, n = diagnose_with_single_votes(0)
    many, _ = diagnose_with_single_votes(400)
    assert many.tally.sum() == few.crowd.n_votes == 5 * n
    # What workers are worth is then known as well as without these votes.
    np.testing.assert_allclose(np.diag(many.confusion), np.diag(few.confusion), atol=0.1)


def test_confidence_is_that_of_aggregate() -> None:
    crowd = simulate_crowd(n_tasks=150, n_workers=12, n_classes=3, votes_per_task=3, random_state=2).crowd
    assessment = assess_votes(crowd)
    assert get_planned_workers(assessment).model.name == "dawid-skene"
    expected = estimate_confidence(ModelAverage().fit(crowd), crowd)
    np.testing.assert_array_equal(assessment.labels.confidence, expected.confidence)
    rows = np.arange(crowd.n_tasks)
    np.testing.assert_allclose(assessment.posterior[rows, expected.label], np.maximum(expected.confidence, 1 / 3))
    np.testing.assert_allclose(assessment.posterior.sum(axis=1), 1.0)


def test_a_model_that_is_named_rates_workers_and_labels() -> None:
    crowd = simulate_crowd(n_tasks=100, n_workers=10, n_classes=3, votes_per_task=3, random_state=5).crowd
    fitted = DawidSkene().fit(crowd)
    assessment = assess_votes(crowd, fitted)
    assert get_planned_workers(assessment).model is fitted
    np.testing.assert_array_equal(assessment.labels.confidence, estimate_confidence(fitted, crowd).confidence)


def test_confidence_is_nearer_to_the_truth_than_that_of_em() -> None:
    """Thirty votes of each worker, three on each task: EM fits them too well."""
    gaps = []
    for seed in range(5):
        made = simulate_crowd(n_tasks=120, n_workers=12, n_classes=3, votes_per_task=3, random_state=seed)
        model = DawidSkene().fit(made.crowd)
        labels = assess_votes(made.crowd, model).labels
        right = (model.labels_ == made.truth).mean()
        gaps.append((labels.confidence.mean() - right, model.posterior_.max(axis=1).mean() - right))
    ours, em = np.array(gaps).T
    assert (em > 0.05).all()
    assert np.abs(ours).mean() < 0.7 * em.mean()
    assert ours.mean() < 0  # simulated workers err independently, so it is rather too modest than too sure


def test_groups_of_workers_have_a_calibrated_posterior() -> None:
    made = simulate_panel(n_tasks=60)
    panel = Panel(groups=made.groups).fit(made.crowd)
    assessment = assess_votes(made.crowd, panel)
    assert isinstance(get_planned_workers(assessment), GroupedWorkers)
    rows = np.arange(60)
    np.testing.assert_allclose(
        assessment.posterior[rows, panel.posterior_.argmax(axis=1)], np.maximum(assessment.labels.confidence, 1 / 3)
    )


def test_a_crowd_without_votes_is_refused() -> None:
    crowd = simulate_crowd(n_tasks=5, n_workers=3, votes_per_task=2, random_state=0).crowd
    with pytest.raises(InputError, match="no votes to plan from"):
        require_votes(crowd.take(np.zeros(crowd.n_votes, dtype=bool)))
