"""Answers of an export: ids, options, times and gold."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from wisecrowd.errors import InputError
from wisecrowd.io.tools.exported_answers import (
    ExportedAnswers,
    ExportedQuestion,
    format_label,
    guess_model_family,
    normalize_options,
    parse_duration,
    parse_id,
    parse_number,
    parse_timestamp,
)


class TestQuestion:
    def test_an_answer_has_an_entry_in_every_list(self) -> None:
        question = ExportedQuestion("mood")
        question.add_answer("t1", "ann", ["b", "a", "b"], time="1970-01-01T00:01:00Z", seconds="2.5")
        question.add_answer("t1", "bert", [True], machine=True, score=0.75)
        assert question.labels == [("a", "b"), ("true",)]
        assert question.time[0] == 60
        assert math.isnan(question.time[1])
        assert question.seconds[0] == 2.5
        assert question.machine == [False, True]
        assert question.score[1] == 0.75

    def test_contradictory_gold_is_no_truth(self) -> None:
        question = ExportedQuestion("mood")
        question.add_gold("t1", ["good"])
        question.add_gold("t1", ["good"])
        assert question.truth == {"t1": ("good",)}
        question.add_gold("t1", ["bad"])
        question.add_gold("t1", ["good"])
        assert question.truth == {"t1": ()}
        assert question.excluded["contradictory gold"] == 2

    def test_own_labels_are_no_votes(self) -> None:
        question = ExportedQuestion("mood")
        question.add_suggestion("t1", "wisecrowd dawid-skene", ["good"], 0.9)
        question.add_suggestion("t1", "bert", ["bad"], "0.6")
        assert question.consensus == {"t1": (("good",), 0.9)}
        assert question.worker == ["bert"]
        assert question.score == [0.6]

    def test_a_question_is_made_on_first_use(self) -> None:
        export = ExportedAnswers()
        assert export.get_question("mood") is export.get_question("mood")
        assert list(export.questions) == ["mood"]


class TestValues:
    @pytest.mark.parametrize(("value", "text"), [(7, "7"), ("007", "007"), (7.0, "7"), (0, "0"), (-3, "-3")])
    def test_ids(self, value: object, text: str) -> None:
        assert parse_id(value, "task") == text

    @pytest.mark.parametrize("value", ["", None, True, 1.5, float("nan"), [1], {}])
    def test_other_ids_are_refused_with_their_place(self, value: object) -> None:
        with pytest.raises(InputError, match=r"the task needs an id, a text or a whole number; got .* \(line 3\)"):
            parse_id(value, "task", "line 3")

    @pytest.mark.parametrize(
        ("value", "text"),
        [(True, "true"), (False, "false"), (4.0, "4"), (0.1, "0.1"), (-2, "-2"), ("", ""), (1e300, str(int(1e300)))],
    )
    def test_labels(self, value: object, text: str) -> None:
        assert format_label(value) == text

    @pytest.mark.parametrize("value", [None, [], {}, float("inf"), float("nan")])
    def test_other_labels_are_refused(self, value: object) -> None:
        with pytest.raises(InputError, match="an answer must be text or a number"):
            format_label(value)

    def test_options_are_sorted_text_without_repeats(self) -> None:
        assert normalize_options([2, "b", 2.0, True]) == ("2", "b", "true")

    @pytest.mark.parametrize("value", [None, "x", [], float("inf"), 10**400, "nan"])
    def test_what_is_no_number(self, value: object) -> None:
        assert math.isnan(parse_number(value))

    def test_durations_are_not_negative(self) -> None:
        assert parse_duration("3") == 3
        assert parse_duration(0) == 0
        assert math.isnan(parse_duration(-1))

    @pytest.mark.parametrize(
        ("value", "seconds"),
        [
            ("1970-01-02", 86400),
            ("1970-01-01T01:00:00+01:00", 0),
            (" 1970-01-01 00:00:05 ", 5),
            (datetime(1970, 1, 1, 0, 1, tzinfo=UTC), 60),
            (datetime(1970, 1, 1, 0, 1), 60),
            (1.5, 1.5),
            (1_717_164_000_000, 1_717_164_000),
        ],
    )
    def test_times(self, value: Any, seconds: float) -> None:
        assert parse_timestamp(value) == seconds

    @pytest.mark.parametrize("value", [None, True, "soon", "9999-99-99", 1e300, float("nan"), []])
    def test_what_is_no_time(self, value: Any) -> None:
        assert math.isnan(parse_timestamp(value))

    @pytest.mark.parametrize(
        ("model", "family"),
        [
            ("gpt-4o:prompt-2", "gpt-4o"),
            ("llama/3-8b", "llama"),
            ("bert-1", "bert-1"),
            (":odd", ":odd"),
            ("a @ b", "a"),
        ],
    )
    def test_families_of_models(self, model: str, family: str) -> None:
        assert guess_model_family(model) == family
