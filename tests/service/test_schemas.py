"""Bodies of requests: names, labels, times, and messages about invalid fields."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("pydantic", reason="the extra serve is not installed")
from pydantic import ValidationError

from wisecrowd.service.schemas import (
    MAX_ITEMS_PER_REQUEST,
    MAX_NAME_CHARACTERS,
    VOTES,
    TaskRegistration,
    TaskTruth,
    Vote,
    summarize_errors,
    validate_name,
)

GOOD = {"task": "t1", "worker": "ann", "label": "good"}


class TestNames:
    @pytest.mark.parametrize(("value", "text"), [("a", "a"), (" a ", " a "), (7, "7"), (True, "true"), ("é", "é")])
    def test_names_are_text(self, value: Any, text: str) -> None:
        assert validate_name(value) == text

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            ("", "empty"),
            ("\t ", "empty"),
            ("x" * (MAX_NAME_CHARACTERS + 1), "more than"),
            ("a\0b", "invalid"),
            ("\ud800", "invalid"),
        ],
    )
    def test_other_names_are_refused(self, value: str, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            validate_name(value)

    def test_the_longest_name_is_accepted(self) -> None:
        assert len(validate_name("x" * MAX_NAME_CHARACTERS)) == MAX_NAME_CHARACTERS


class TestVote:
    @pytest.mark.parametrize(
        ("label", "text"),
        [("good", "good"), (4, "4"), (True, "true"), (["b", "a", "b"], "a|b"), ([], "∅"), (["a|b"], "a\\|b")],
    )
    def test_labels(self, label: Any, text: str) -> None:
        assert Vote(**GOOD | {"label": label}).to_record().label == text

    @pytest.mark.parametrize(
        ("time", "seconds"),
        [(None, None), (5, 5.0), (1.5, 1.5), ("1970-01-01T00:01:00Z", 60.0), ("1970-01-01T01:00:00+01:00", 0.0)],
    )
    def test_times(self, time: Any, seconds: float | None) -> None:
        vote = VOTES.validate_json(json.dumps({**GOOD, "time": time}))
        assert isinstance(vote, Vote)
        assert vote.to_record().time == seconds

    @pytest.mark.parametrize(
        "change",
        [
            {"task": None}, {"task": 1.5}, {"worker": ""}, {"label": None}, {"label": {"a": 1}}, {"label": [1]}, {"question": ""},
            {"time": -1}, {"time": 1e12}, {"time": "2026-05-01T10:00:00"}, {"time": True}, {"extra": 1},
        ],
    )  # fmt: skip
    def test_other_fields_are_refused(self, change: dict[str, Any]) -> None:
        with pytest.raises(ValidationError):
            VOTES.validate_python(GOOD | change)

    def test_a_list_is_neither_empty_nor_endless(self) -> None:
        assert len(VOTES.validate_python([GOOD, GOOD])) == 2  # type: ignore[arg-type]
        for votes in ([], [GOOD] * (MAX_ITEMS_PER_REQUEST + 1)):
            with pytest.raises(ValidationError):
                VOTES.validate_python(votes)


def test_gold_can_be_deleted_and_tasks_be_registered() -> None:
    assert TaskTruth(task=1, label=None).label is None
    assert TaskRegistration(tasks=[1, "b"]).tasks == ["1", "b"]
    with pytest.raises(ValidationError):
        TaskRegistration(tasks=[])


class TestErrors:
    def summarize(self, body: Any) -> list[dict[str, Any]]:
        with pytest.raises(ValidationError) as caught:
            VOTES.validate_python(body)
        return summarize_errors(caught.value.errors())

    def test_every_field_has_one_message_with_its_place(self) -> None:
        messages = self.summarize([GOOD, {**GOOD, "label": None, "task": 1.5}])
        assert {tuple(message["loc"]): message["msg"] for message in messages} == {
            (1, "label"): "expected a string, an integer, a boolean or a list of strings",
            (1, "task"): "expected a string or an integer",
        }

    def test_missing_and_unknown_fields_are_named(self) -> None:
        messages = self.summarize({"task": "t1", "worker": "ann", "lable": "x"})
        assert {tuple(message["loc"]) for message in messages} == {("label",), ("lable",)}

    def test_values_are_not_repeated(self) -> None:
        secret = "y" * 2000
        assert secret not in str(self.summarize({**GOOD, "task": secret}))
