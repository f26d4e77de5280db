from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd, MajorityVote
from wisecrowd.classifiers.logistic import Logistic
from wisecrowd.errors import UsageError
from wisecrowd.simulate import (
    GroupedSimulation,
    assign_worker_per_vote,
    simulate_gaussian_groups,
    simulate_image_groups,
)
from wisecrowd.simulate._image_confusion import build_image_confusion


def truth_codes(made: GroupedSimulation) -> np.ndarray[Any, Any]:
    assert made.crowd.classes is not None
    return made.crowd.classes.get_indexer(pd.Index(made.truth))


def test_votes_follow_the_matrices_of_the_groups() -> None:
    made = simulate_gaussian_groups(n_workers=300, n_tasks=20_000, random_state=1)
    crowd, z = made.crowd, truth_codes(made)
    assert crowd.worker is not None
    counts = np.zeros((3, 3, 3))
    np.add.at(counts, (made.group.to_numpy()[crowd.worker], z[crowd.task], crowd.label), 1)
    np.testing.assert_allclose(counts / counts.sum(axis=2, keepdims=True), made.confusion, atol=0.02)
    np.testing.assert_allclose(made.group.value_counts(normalize=True).sort_index(), made.weight, atol=0.1)


def test_density_is_binomial_and_every_task_has_a_label() -> None:
    made = simulate_gaussian_groups(n_workers=1000, n_tasks=20_000, votes_per_task=2.0)
    per_task = made.crowd.votes_per_task
    assert per_task.min() == 1
    drawn = np.maximum(np.random.default_rng(0).binomial(1000, 0.002, size=200_000), 1)
    assert per_task.mean() == pytest.approx(drawn.mean(), abs=0.05)
    assert per_task.var() == pytest.approx(drawn.var(), abs=0.1)
    assert made.crowd.votes_per_worker.min() > 0  # those without labels are left out


def test_best_accuracy_and_majority_are_those_of_the_paper() -> None:
    made = simulate_gaussian_groups(n_workers=500)
    assert (MajorityVote().fit(made.crowd).labels_ == made.truth).mean() == pytest.approx(0.72, abs=0.025)

    def ideal(centres: Any) -> float:
        data = simulate_gaussian_groups(n_workers=10, n_tasks=20_000, n_test=20_000, centres=centres, votes_per_task=1)
        assert data.features is not None
        assert data.test_features is not None
        assert data.test_truth is not None
        model = Logistic().fit(data.features.to_numpy(), np.eye(3)[truth_codes(data)])
        assert data.crowd.classes is not None
        found = data.crowd.classes[model.predict_proba(data.test_features.to_numpy()).argmax(axis=1)]
        return float((found == data.test_truth).mean())

    assert ideal("program") == pytest.approx(0.947, abs=0.006)
    assert ideal("paper") == pytest.approx(0.738, abs=0.012)


def test_image_groups() -> None:
    matrices = build_image_confusion()
    np.testing.assert_allclose(matrices.sum(axis=2), 1)
    accuracies = matrices.diagonal(axis1=1, axis2=2).mean(axis=1)
    np.testing.assert_allclose(accuracies, [0.743, 0.362, 0.325, 0.166], atol=5e-4)
    assert matrices[0, 3, 5] == pytest.approx(0.166, abs=1e-4)  # cats taken for dogs
    assert (matrices >= 0).all()
    right = {}
    for weights in ("program", "paper"):
        made = simulate_image_groups(n_workers=300, n_tasks=5000, weights=weights)
        right[weights] = (MajorityVote().fit(made.crowd).labels_ == made.truth).mean()
    assert right["program"] > right["paper"] + 0.15
    given = simulate_image_groups(n_workers=20, truth=[3, 9, 0], weights=[1.0, 0.0, 0.0, 0.0])
    assert given.truth.tolist() == ["c3", "c9", "c0"]
    assert (given.group == 0).all()


def test_every_label_its_own_worker() -> None:
    crowd = simulate_gaussian_groups(n_workers=30, n_tasks=50).crowd
    alone = assign_worker_per_vote(crowd)
    assert alone.n_workers == alone.n_votes == crowd.n_votes
    assert (alone.votes_per_worker == 1).all()
    np.testing.assert_array_equal(alone.vote_counts, crowd.vote_counts)
    weighted = assign_worker_per_vote(crowd.drop_workers())
    np.testing.assert_array_equal(weighted.vote_counts, crowd.vote_counts)


def test_same_seed_same_crowd_and_other_seed_another() -> None:
    first, again, other = (simulate_gaussian_groups(n_workers=50, n_tasks=60, random_state=seed) for seed in (1, 1, 2))
    assert first.crowd == again.crowd
    assert first.features is not None
    assert again.features is not None
    assert first.features.equals(again.features)
    assert first.crowd != other.crowd


@pytest.mark.slow
def test_cost_is_what_was_labelled() -> None:
    begun = time.perf_counter()
    made = simulate_gaussian_groups(n_workers=1_000_000, n_tasks=40_000)
    assert made.crowd.n_votes == pytest.approx(200_000, rel=0.02)
    assert made.crowd.n_workers < 1_000_000
    assert time.perf_counter() - begun < 20


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"centres": "page"}, "centres"),
        ({"centres": [1.0, 2.0]}, "centres must be"),
        ({"n_workers": 3, "votes_per_task": 5}, "at most the number of workers"),
        ({"votes_per_task": 0.0}, "positive"),
        ({"weights": [0.5, 0.5]}, "weights"),
        ({"weights": [0.5, 0.2, 0.2]}, "weights"),
        ({"confusion": [[[0.9, 0.3], [0.1, 0.9]]], "weights": [1.0]}, "sum to one"),
        ({"confusion": np.eye(3)}, "confusion must be"),
        ({"confusion": [np.eye(2)], "weights": [1.0]}, "classes"),
    ],
)
def test_bad_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        simulate_gaussian_groups(**{"n_tasks": 20} | settings)


def test_bad_truth() -> None:
    with pytest.raises(UsageError, match="from 0 to 9"):
        simulate_image_groups(n_workers=10, truth=[10])
    assert isinstance(simulate_image_groups(n_workers=10, n_tasks=5).crowd, Crowd)
