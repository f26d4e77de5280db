"""Sources of votes: what replaces what."""

from __future__ import annotations

import pytest

from wisecrowd.service.events import VoteRecord, build_source, parse_vote_id

VOTE = VoteRecord("mood", "t1", "ann", "good")


def test_a_vote_without_an_id_is_known_by_question_task_and_worker() -> None:
    assert build_source(VOTE) == build_source(VOTE._replace(label="bad", time=5.0))
    others = [
        VOTE._replace(question="x"),
        VOTE._replace(task="x"),
        VOTE._replace(worker="x"),
        VOTE._replace(worker=None),
    ]
    assert len({build_source(record) for record in [VOTE, *others]}) == 5


def test_a_vote_with_an_id_is_known_by_it_within_its_question() -> None:
    assert build_source(VOTE, "7") == build_source(VOTE._replace(task="t2", worker="bob"), "7")
    assert build_source(VOTE, "7") != build_source(VOTE._replace(question="other"), "7")
    assert build_source(VOTE, "7") != build_source(VOTE)


def test_names_with_separators_are_not_mixed_up() -> None:
    first = build_source(VoteRecord("q", 't", "x', "w", "l"))
    assert first != build_source(VoteRecord("q", "t", 'x", "w', "l"))


@pytest.mark.parametrize("vote_id", ["7", "", 'a"]b', "of:[]", "é"])
def test_the_id_comes_back(vote_id: str) -> None:
    assert parse_vote_id(build_source(VOTE, vote_id)) == vote_id
    assert parse_vote_id(build_source(VOTE._replace(task=vote_id or "x"))) is None


def test_gold_has_no_worker() -> None:
    assert VoteRecord("mood", "t1", None, "good").is_gold
    assert not VOTE.is_gold
