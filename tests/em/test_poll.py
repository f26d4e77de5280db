"""Counts of votes with weights of the workers: ties, gold, and sums against loops."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wisecrowd import Crowd
from wisecrowd.em.poll import Poll

TINY = Crowd.from_triples([("t1", "a", "x"), ("t1", "b", "y"), ("t1", "c", "y"), ("t2", "a", "x"), ("t2", "b", "y")])


def test_ties_are_shared_and_count_as_half_an_agreement() -> None:
    poll = Poll(TINY)
    winners = poll.find_winners(poll.compute_scores(np.ones(3)))
    np.testing.assert_allclose(winners, [[0, 1], [0.5, 0.5]])
    np.testing.assert_allclose(poll.compute_agreement(winners), [0.25, 0.75, 1])


def test_a_tie_within_rounding_is_a_tie() -> None:
    poll = Poll(TINY)
    np.testing.assert_allclose(
        poll.find_winners(np.array([[0.1 + 0.2, 0.3], [1e9 + 1e-6, 1e9]])), [[0.5, 0.5], [0.5, 0.5]]
    )


def test_where_no_voter_weighs_anything_all_votes_count_the_same() -> None:
    np.testing.assert_allclose(Poll(TINY).normalize_scores(np.zeros((2, 2))), [[1 / 3, 2 / 3], [0.5, 0.5]])


def test_gold_is_won_and_judges_the_workers() -> None:
    poll = Poll(TINY, gold=np.array([0, -1], dtype=np.int32))
    winners = poll.find_winners(poll.compute_scores(np.ones(3)))
    np.testing.assert_allclose(winners[0], [1, 0])
    np.testing.assert_allclose(poll.compute_agreement(winners), [0.75, 0.25, 0])


def test_a_worker_without_votes_has_no_agreement() -> None:
    poll = Poll(Crowd.from_triples([("t1", "a", "x")], workers=["a", "b"]))
    found = poll.compute_agreement(poll.find_winners(poll.crowd.vote_counts))
    assert found[0] == 1
    assert np.isnan(found[1])


@given(st.integers(0, 10_000))
def test_scores_and_agreement_are_the_sums_they_claim_to_be(seed: int) -> None:
    rng = np.random.default_rng(seed)
    task, worker = np.nonzero(rng.random((6, 4)) < 0.7)
    if len(task) == 0:
        return
    label, weight = rng.integers(3, size=len(task)), rng.uniform(0.5, 2, len(task))
    crowd = Crowd.from_codes(task, worker, label, tasks=range(6), workers=range(4), classes=range(3), weight=weight)
    worth, winners = rng.normal(size=4), rng.random((6, 3))
    scores, right, cast = np.zeros((6, 3)), np.zeros(4), np.zeros(4)
    for i, r, k, w in zip(task, worker, label, weight, strict=True):
        scores[i, k] += w * worth[r]
        right[r] += w * winners[i, k]
        cast[r] += w
    poll = Poll(crowd)
    np.testing.assert_allclose(poll.compute_scores(worth), scores, atol=1e-12)
    np.testing.assert_allclose(poll.compute_agreement(winners)[cast > 0], (right / np.maximum(cast, 1e-9))[cast > 0])
