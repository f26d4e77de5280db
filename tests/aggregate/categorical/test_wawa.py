"""Wawa: one vote, agreement with it, one weighted vote."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import Crowd, MajorityVote, Wawa
from wisecrowd.evaluate.metrics import accuracy, worker_error
from wisecrowd.simulate import simulate_crowd


def test_by_hand() -> None:
    # The majority says x, y, x; ann is always with it, bob twice, cy once.
    votes = {"ann": "xyx", "bob": "xyy", "cy": "yxx"}
    crowd = Crowd.from_triples(
        [(task, worker, label_probs[task]) for worker, label_probs in votes.items() for task in range(3)]
    )
    fitted = Wawa().fit(crowd)
    np.testing.assert_allclose(fitted.workers_["weight"], [1, 2 / 3, 1 / 3])
    np.testing.assert_allclose(fitted.posterior_[:, 0], [(1 + 2 / 3) / 2, (1 / 3) / 2, (1 + 1 / 3) / 2])


def test_equal_workers_make_it_a_majority_vote() -> None:
    crowd = Crowd.from_triples(
        [(task, worker, "x" if task == worker else "y") for task in range(3) for worker in range(3)]
    )
    np.testing.assert_allclose(Wawa().fit(crowd).posterior_, MajorityVote().fit(crowd).posterior_)


def test_gold_teaches_whom_to_trust() -> None:
    crowd = Crowd.from_triples(
        [(task, worker, "x" if worker == "right" else "y") for task in range(4) for worker in ("right", "w1", "w2")]
    )
    assert (Wawa().fit(crowd).labels_ == "y").all()
    fitted = Wawa().fit(crowd, truth={0: "x", 1: "x", 2: "x"})
    assert fitted.workers_["weight"].to_dict() == pytest.approx({"right": 0.75, "w1": 0.25, "w2": 0.25})
    assert fitted.labels_[3] == "x"


def test_it_beats_the_vote_that_it_starts_from_when_workers_differ() -> None:
    made = simulate_crowd(1000, 30, 3, votes_per_task=5, workers={"expert": 10, "spammer": 20}, random_state=2)
    assert accuracy(made.truth, Wawa().fit(made.crowd)) > accuracy(made.truth, MajorityVote().fit(made.crowd)) + 0.03


def test_more_labels_per_task_bring_weights_nearer_to_accuracies() -> None:
    errors = []
    for labels in (3, 7, 15):
        made = simulate_crowd(600, 30, 3, votes_per_task=labels, workers={"noisy(0.5, 0.9)": 30}, random_state=4)
        errors.append(worker_error(made.accuracy, Wawa().fit(made.crowd).workers_["weight"]))
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.03
