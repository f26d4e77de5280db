"""GTIC: clusters of tasks with similar votes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wisecrowd import GTIC, Crowd, MajorityVote, load_dataset
from wisecrowd.aggregate.categorical.gtic import _match_clusters, _run_k_means
from wisecrowd.base.laws import LAWS
from wisecrowd.errors import UsageError
from wisecrowd.evaluate.metrics import accuracy
from wisecrowd.simulate import simulate_crowd


def test_clusters_are_those_of_lloyd() -> None:
    from sklearn.cluster import KMeans

    rng = np.random.default_rng(0)
    points = rng.random((200, 3)) + np.repeat(np.eye(3), [50, 70, 80], axis=0)
    start = points[[0, 60, 150]]
    reference = KMeans(3, init=start, n_init=1, tol=0, algorithm="lloyd").fit(points)
    centres, _ = _run_k_means(points, start, 300)
    np.testing.assert_allclose(centres, reference.cluster_centers_)


def test_a_point_between_two_centres_belongs_to_both() -> None:
    points = np.array([[0.0], [1.0], [2.0]])
    centres, _ = _run_k_means(points, np.array([[0.0], [2.0]]), 10)
    np.testing.assert_allclose(centres, [[1 / 3], [5 / 3]])  # one and a half points each


def test_a_centre_without_points_stays() -> None:
    centres, n_iter = _run_k_means(np.array([[0.0], [0.1]]), np.array([[0.0], [9.0]]), 10)
    np.testing.assert_allclose(centres, [[0.05], [9.0]])
    assert n_iter < 10


def test_clusters_and_classes_are_paired_one_to_one_by_share_then_size_then_origin() -> None:
    # Cluster 1 is wholly of class 0; cluster 0 mostly of class 0 too, and gets what is left.
    assert _match_clusters(np.array([[8.0, 2.0], [3.0, 0.0]])).tolist() == [1, 0]
    assert _match_clusters(np.array([[3.0, 0.0], [5.0, 0.0]])).tolist() == [1, 0]
    assert _match_clusters(np.zeros((3, 3))).tolist() == [0, 1, 2]


def test_it_moves_the_threshold_to_where_the_data_divide() -> None:
    shy = [[0.95, 0.05], [0.6, 0.4]]  # the second class is missed more often than not, by everybody
    gains = []
    for labels in (5, 15, 40):
        made = simulate_crowd(500, n_classes=2, votes_per_task=labels, workers=[shy] * 40, random_state=1)
        found = accuracy(made.truth, GTIC().fit(made.crowd))
        gains.append(found - accuracy(made.truth, MajorityVote().fit(made.crowd)))
        if labels == 40:
            assert found > 0.99
    assert gains[0] > 0.05
    assert gains[2] > 0.3


def test_it_needs_no_worker_ids() -> None:
    made = simulate_crowd(100, 20, 3, votes_per_task=9, random_state=2)
    with_ids, without = GTIC().fit(made.crowd), GTIC().fit(made.crowd.drop_workers())
    np.testing.assert_allclose(with_ids.posterior_, without.posterior_)


def test_a_class_that_nobody_chose_gets_no_task() -> None:
    made = simulate_crowd(100, 20, 2, votes_per_task=7, random_state=3)
    crowd = made.crowd
    wider = Crowd.from_codes(crowd.task, crowd.worker, crowd.label + 1, tasks=crowd.tasks, workers=crowd.workers,
                  classes=["unused", *crowd.classes])  # fmt: skip
    found = GTIC().fit(wider).posterior_
    assert (found[:, 0] == 0).all()
    np.testing.assert_allclose(found[:, 1:], GTIC().fit(crowd).posterior_)


def test_without_the_slope_names_of_classes_do_not_matter() -> None:
    for seed in range(3):
        crowd = simulate_crowd(80, 15, 4, votes_per_task=5, random_state=seed).crowd
        LAWS["class_names_do_not_matter"](GTIC(slope=False), crowd)


def test_gold_names_the_clusters() -> None:
    # Everybody swaps the classes, so that only gold can tell which cluster is which.
    made = simulate_crowd(200, n_classes=2, votes_per_task=7, workers=[[[0.1, 0.9], [0.9, 0.1]]] * 10, random_state=4)
    assert accuracy(made.truth, GTIC().fit(made.crowd)) < 0.1
    gold = made.truth.iloc[:150]
    assert accuracy(made.truth.iloc[150:], GTIC().fit(made.crowd, truth=gold)) > 0.9


def test_bad_parameters_are_refused() -> None:
    for bad in (GTIC(max_iter=0), GTIC(smoothing=-1)):
        with pytest.raises(UsageError, match="smoothing"):
            bad.fit(Crowd.from_triples([(0, 0, "a")]))


# No published figure could be read; these hold the method where it is, beside majority vote (.759, .897, .637).
@pytest.mark.data
@pytest.mark.parametrize(("name", "wanted"), [("bluebirds", 0.806), ("rte", 0.919), ("face_sentiment", 0.659)])
def test_accuracies_on_real_crowds(name: str, wanted: float, data_folder: Path) -> None:
    data = load_dataset(data_folder / name, duplicates="distinct")
    assert accuracy(data.truth, GTIC().fit(data.crowd)) == pytest.approx(wanted, abs=0.001)
