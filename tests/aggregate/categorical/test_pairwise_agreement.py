"""Agreement between pairs of workers, corrected for chance."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import Crowd
from wisecrowd.aggregate.categorical._pairwise_agreement import PairwiseAgreement, clip_skills, compute_log_odds
from wisecrowd.simulate import simulate_crowd


def table(pairs: PairwiseAgreement, value: np.ndarray) -> np.ndarray:
    return pairs.to_matrix(value).toarray()


@pytest.mark.parametrize("n_classes", [2, 4])
def test_counts_are_those_of_a_double_loop(n_classes: int) -> None:
    crowd = simulate_crowd(30, 8, n_classes, votes_per_task=3, random_state=1).crowd
    pairs = PairwiseAgreement.from_crowd(crowd)
    for a in range(8):
        for b in range(8):
            shared = [
                (la, lb)
                for ta, la in zip(crowd.task[crowd.worker == a], crowd.label[crowd.worker == a], strict=True)
                for tb, lb in zip(crowd.task[crowd.worker == b], crowd.label[crowd.worker == b], strict=True)
                if ta == tb and a != b
            ]
            assert table(pairs, pairs.n_common)[a, b] == len(shared)
            if shared:
                agreed = np.mean([la == lb for la, lb in shared])
                wanted = (n_classes * agreed - 1) / (n_classes - 1)
                assert table(pairs, pairs.agreement)[a, b] == pytest.approx(wanted)


def test_only_pairs_with_common_tasks_are_kept() -> None:
    crowd = Crowd.from_triples([(task, 2 * task + worker, worker) for task in range(1000) for worker in range(2)])
    pairs = PairwiseAgreement.from_crowd(crowd)
    assert len(pairs) == 2000
    assert (pairs.n_partners == 1).all()


def test_repeated_rows_are_weights() -> None:
    crowd = simulate_crowd(20, 6, 3, votes_per_task=3, random_state=2).crowd
    twice = PairwiseAgreement.from_crowd(Crowd.concat([crowd, crowd], duplicates="keep"))
    np.testing.assert_allclose(twice.agreement, PairwiseAgreement.from_crowd(crowd).agreement)
    np.testing.assert_allclose(twice.n_common, 4 * PairwiseAgreement.from_crowd(crowd).n_common)


def test_gold_is_a_worker_who_is_always_right() -> None:
    crowd = Crowd.from_triples([(0, "a", "x"), (1, "a", "y"), (0, "b", "y"), (2, "b", "x")])
    pairs = PairwiseAgreement.from_crowd(crowd, np.array([0, 0, 0], dtype=np.int32))
    assert pairs.n_workers == 3
    assert table(pairs, pairs.n_common)[2].tolist() == [2, 2, 0]
    assert table(pairs, pairs.agreement)[2].tolist() == [0, 0, 0]


def test_signs_follow_the_majority_in_every_linked_group() -> None:
    # Two groups without a common task; in each, two against one.
    votes = [(f"{g}{t}", f"{g}{w}", (t + (w == 2)) % 2) for g in "pq" for t in range(6) for w in range(3)]
    pairs = PairwiseAgreement.from_crowd(Crowd.from_triples(votes))
    assert pairs.estimate_signs().tolist() == [1, 1, -1, 1, 1, -1]
    assert pairs.estimate_signs(anchor=2).tolist() == [-1, -1, 1, 1, 1, -1]


def test_signs_of_planted_adversaries_are_found_in_a_sparse_crowd() -> None:
    made = simulate_crowd(2000, 40, 3, votes_per_task=6, workers={"noisy": 28, "adversary(0.95)": 12}, random_state=3)
    signs = PairwiseAgreement.from_crowd(made.crowd).estimate_signs()
    assert np.mean((signs > 0) == (made.kind == "noisy")) > 0.95


def test_weights_by_skill() -> None:
    accuracy = np.array([0.25, 0.5, 0.9])
    skill = (4 * accuracy - 1) / 3
    np.testing.assert_allclose(compute_log_odds(skill, 4), np.log(3 * accuracy / (1 - accuracy)), atol=1e-12)
    crowd = simulate_crowd(100, n_classes=4, workers=["noisy"] * 3).crowd
    found = clip_skills(np.array([-1.0, 0.5, 1.0]), crowd)
    np.testing.assert_allclose(found, [0.1 - 1 / 3, 0.5, 0.9])
    assert np.isfinite(compute_log_odds(found, 4)).all()
