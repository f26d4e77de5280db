"""Majority vote and its ties."""

from __future__ import annotations

import pytest

from wisecrowd.aggregate.categorical.majority_vote import MajorityVote
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError


def test_majority_vote_ties() -> None:
    crowd = Crowd.from_triples([("a", 1, "x"), ("a", 2, "y"), ("b", 1, "x")], tasks=["a", "b", "c"])
    assert MajorityVote(soft=False).fit(crowd).posterior_.tolist() == [[0.5, 0.5], [1, 0], [0.5, 0.5]]
    assert MajorityVote(soft=False, ties="first").fit(crowd).posterior_[0].tolist() == [1, 0]
    drawn = [MajorityVote(ties="random", random_state=seed).fit(crowd).labels_["a"] for seed in range(20)]
    assert set(drawn) == {"x", "y"}
    with pytest.raises(UsageError, match="ties must be one of"):
        MajorityVote(ties="last").fit(crowd)  # type: ignore[arg-type]
    assert MajorityVote().fit(crowd.drop_workers()).labels_["b"] == "x"
    with pytest.raises(UsageError, match="no worker ids"):
        _ = MajorityVote().fit(crowd.drop_workers()).workers_
