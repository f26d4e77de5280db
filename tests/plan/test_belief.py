"""Calibrated posteriors of tasks: tempered by held-out votes, and unchanged by votes that carry no information."""

from __future__ import annotations

import numpy as np

import wisecrowd as wc
from wisecrowd import DawidSkene, simulate_crowd
from wisecrowd.diagnose.workers import WorkerDiagnosis
from wisecrowd.plan.belief import compute_belief


def judged(n_lonely: int, n_others: int = 60) -> tuple[WorkerDiagnosis, float]:
    """A crowd with five votes on some tasks, and as many tasks more as wanted that have one vote each."""
    made = wc.simulate_crowd(n_tasks=n_others + n_lonely, n_workers=12, n_classes=4, votes_per_task=5, random_state=4)
    crowd = made.crowd
    first = crowd.offset[crowd.task] == np.arange(crowd.n_votes)
    kept = crowd.take((crowd.task < n_others) | first)
    return WorkerDiagnosis(kept, wc.OneCoin().fit(kept)), float(n_others)


def test_votes_that_are_alone_say_nothing_of_workers() -> None:
    few, n = judged(0)
    many, _ = judged(400)
    assert many.tally.sum() == few.crowd.n_votes == 5 * n
    # What workers are worth is then known as well as without these votes.
    np.testing.assert_allclose(np.diag(many.confusion), np.diag(few.confusion), atol=0.1)


def test_where_hidden_votes_do_not_care_it_is_as_sure_as_the_model() -> None:
    """Tasks with so many votes that they are certain anyway give no reason to doubt those with one."""
    made = wc.simulate_crowd(n_tasks=200, workers=["noisy(0.8)"] * 30, n_classes=3, votes_per_task=30, random_state=0)
    crowd = made.crowd
    first = crowd.offset[crowd.task] == np.arange(crowd.n_votes)
    kept = crowd.take((crowd.task < 15) | first)
    people = WorkerDiagnosis(kept, wc.OneCoin().fit(kept))
    found = {compute_belief(people, random_state=seed)[1] for seed in range(4)}
    assert found == {1.0}


def test_confidence_is_nearer_to_the_truth_than_that_of_em() -> None:
    """Thirty votes of each worker, three on each task: EM fits them too well."""
    gaps = []
    for seed in range(5):
        made = simulate_crowd(n_tasks=120, n_workers=12, n_classes=3, votes_per_task=3, random_state=seed)
        model = DawidSkene().fit(made.crowd)
        belief, exponent = compute_belief(WorkerDiagnosis(made.crowd, model))
        assert made.crowd.classes is not None
        assert 0 < exponent <= 1
        right = made.crowd.classes[belief.argmax(axis=1)] == made.truth.to_numpy()
        of_model = (model.labels_ == made.truth).mean()
        gaps.append((belief.max(axis=1).mean() - right.mean(), model.posterior_.max(axis=1).mean() - of_model))
    ours, em = np.array(gaps).T
    assert (em > 0.05).all()
    assert np.abs(ours).mean() < 0.7 * em.mean()
    assert ours.max() < 0.05  # and rather too modest than too sure
