"""GMV against its formula."""

from __future__ import annotations

import numpy as np

from wisecrowd import GMV, Crowd, MajorityVote, simulate_crowd


def test_everybody_answers_by_the_shares_of_the_task() -> None:
    crowd = Crowd.from_triples([(0, "ann", "a"), (0, "bob", "b"), (0, "cy", "a"), (1, "ann", "b")], tasks=range(3))
    said = GMV().fit(crowd).predict_worker_proba()
    assert np.allclose(said, np.array([[2 / 3, 1 / 3], [0, 1], [1 / 2, 1 / 2]])[:, None].repeat(3, axis=1))


def test_a_weighted_vote_counts_by_its_weight() -> None:
    crowd = Crowd.from_codes(
        [0, 0], [0, 1], [0, 1], weight=[3.0, 1.0], tasks=[0], workers=["x", "y"], classes=["a", "b"]
    )
    assert GMV().fit(crowd).predict_worker_proba()[0, 0].tolist() == [0.75, 0.25]


def test_by_default_it_draws() -> None:
    crowd = simulate_crowd(n_tasks=300, n_workers=20, n_classes=2, votes_per_task=3, workers={"noisy": 1.0}).crowd
    filled = GMV().complete(crowd)
    said = np.zeros((300, 2))
    np.add.at(said, (filled.task[~filled.observed], filled.label[~filled.observed]), 1)
    split = (crowd.vote_counts > 0).all(axis=1)
    assert (said[split].min(axis=1) > 0).mean() > 0.9  # both labels are drawn where both were given
    assert (said[~split].min(axis=1) == 0).all()


def test_it_adds_nothing_to_a_majority() -> None:
    crowd = simulate_crowd(n_tasks=200, n_workers=12, votes_per_task=3).crowd
    before, after = MajorityVote().fit(crowd), MajorityVote().fit(GMV(fill_mode="soft").complete(crowd))
    assert np.allclose(before.posterior_, after.posterior_, atol=2e-3)
