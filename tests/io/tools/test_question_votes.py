"""Votes from answers: choice of the question, kinds, machines and times."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from wisecrowd.errors import UsageError
from wisecrowd.io.formats import FormatReader
from wisecrowd.io.problems import EmptyInput
from wisecrowd.io.tools.exported_answers import ExportedAnswers
from wisecrowd.io.tools.question_votes import (
    choose_question,
    find_question_kind,
    list_options,
    make_tool_reader,
    name_workers,
    select_truth,
    select_votes,
)
from wisecrowd.io.vote_table import ReadOptions, VoteTable


@pytest.fixture
def export() -> ExportedAnswers:
    """A question with one option per answer, one with several, and one for numbers."""
    export = ExportedAnswers()
    mood = export.get_question("mood")
    mood.options = {"good": None, "bad": None, "never": None}
    mood.add_answer("t1", "ann", ["good"], time=30)
    mood.add_answer("t1", "bob", ["bad"], time=10)
    mood.add_answer("t2", "ann", [], time=20)
    mood.add_answer("t2", "ann", ["odd"], machine=True, time=40)
    mood.add_gold("t1", ["good"])
    topics = export.get_question("topics")
    topics.add_answer("t1", "ann", ["food", "price"])
    topics.add_answer("t1", "bob", [])
    topics.add_gold("t1", ["food"])
    stars = export.get_question("stars")
    stars.number = True
    stars.add_answer("t1", "ann", [4.5])
    stars.add_gold("t1", [4])
    return export


def rows(votes: VoteTable) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in votes.table.select(["task", "worker", "label"]).to_pylist()]


class TestSelection:
    def test_votes_are_in_order_of_time_and_machines_have_a_name_of_their_own(self, export: ExportedAnswers) -> None:
        votes = select_votes(export, ReadOptions(question="mood"))
        assert rows(votes) == [("t1", "bob", "bad"), ("t1", "ann", "good"), ("t2", "machine:ann", "odd")]
        assert votes.table["time"].to_pylist() == [10, 30, 40]
        assert votes.classes == ["good", "bad", "never", "odd"]
        assert votes.notes == ("the votes of machines are included: 'machine:ann'", "left out empty (1)")

    def test_sets_of_options_are_labels(self, export: ExportedAnswers) -> None:
        votes = select_votes(export, ReadOptions(question="topics"))
        assert rows(votes) == [("t1", "ann", "food|price"), ("t1", "bob", "∅")]
        assert votes.classes is None

    def test_one_option_is_a_question_of_yes_and_no(self, export: ExportedAnswers) -> None:
        votes = select_votes(export, ReadOptions(question="topics=price"))
        assert rows(votes) == [("t1", "ann", "yes"), ("t1", "bob", "no")]
        assert votes.classes == ["no", "yes"]
        truth = select_truth(export, "topics=price")
        assert truth is not None
        assert truth["truth"].to_dict() == {"t1": "no"}

    def test_numbers(self, export: ExportedAnswers) -> None:
        votes = select_votes(export, ReadOptions(question="stars"))
        assert votes.numeric
        assert rows(votes) == [("t1", "ann", 4.5)]
        truth = select_truth(export, "stars")
        assert truth is not None
        assert truth["truth"].dtype == np.float64

    def test_workers_and_times_can_be_left_out(self, export: ExportedAnswers) -> None:
        votes = select_votes(export, ReadOptions(question="mood", worker=False, time=False))
        assert votes.table.column_names == ["task", "label"]

    def test_the_order_of_the_file_stays_if_a_time_is_unknown(self, export: ExportedAnswers) -> None:
        export.questions["mood"].time[0] = float("nan")
        assert rows(select_votes(export, ReadOptions(question="mood")))[0] == ("t1", "ann", "good")

    @pytest.mark.parametrize(
        ("question", "message"),
        [
            (None, "there are several questions: 'mood', 'topics', 'stars'"),
            ("modd", r"there is no question 'modd'; .* Did you mean 'mood'\?"),
            ("mood=good", "'mood' is not a multiple-choice question"),
            ("topics=foot", r"'topics' has no option 'foot'; it has 'food', 'price'. Did you mean 'food'\?"),
        ],
    )
    def test_other_questions_are_refused(self, export: ExportedAnswers, question: str | None, message: str) -> None:
        with pytest.raises(UsageError, match=message):
            select_votes(export, ReadOptions(question=question))

    def test_a_name_may_contain_an_equals_sign(self) -> None:
        export = ExportedAnswers()
        export.get_question("a=b").add_answer("t1", "ann", ["x"])
        assert rows(select_votes(export, ReadOptions(question="a=b"))) == [("t1", "ann", "x")]

    def test_a_single_question_needs_no_name(self) -> None:
        export = ExportedAnswers()
        export.get_question("only").add_answer("t1", "ann", ["x"])
        assert "read the answers to 'only'" in select_votes(export, ReadOptions()).notes
        assert choose_question({"only": 1}, None) == "only"

    def test_no_votes_at_all(self) -> None:
        export = ExportedAnswers()
        assert select_truth(export) is None
        export.excluded["boxes"] = 1200
        with pytest.raises(
            EmptyInput, match=r"no question has answers that can be votes: .*; left out boxes \(1,200\)"
        ):
            select_votes(export, ReadOptions())

    def test_contradictory_gold_is_no_truth(self, export: ExportedAnswers) -> None:
        export.questions["mood"].add_gold("t1", ["bad"])
        assert select_truth(export, "mood") is None


def test_several_options_anywhere_make_a_question_multiple(export: ExportedAnswers) -> None:
    mood = export.questions["mood"]
    assert find_question_kind(mood) == "single"
    mood.consensus["t1"] = (("good", "bad"), 0.9)
    assert find_question_kind(mood) == "multiple"
    assert find_question_kind(export.questions["stars"]) == "number"
    assert list_options(mood) == ["good", "bad", "never", "odd"]


def test_a_machine_never_has_the_name_of_a_person(export: ExportedAnswers) -> None:
    mood = export.questions["mood"]
    mood.add_answer("t3", "machine:ann", ["good"])
    assert name_workers(mood)[3] == "machine:machine:ann"


class TestReader:
    @pytest.fixture
    def read(self, export: ExportedAnswers) -> Callable[..., FormatReader]:
        def make(**options: Any) -> FormatReader:
            return make_tool_reader("mturk", lambda _: export, lambda _: True, **options)

        return make

    def test_votes_and_truth_of_a_question(self, read: Callable[..., FormatReader]) -> None:
        reader = read()
        assert len(rows(reader.read_votes(Path("x.csv"), ReadOptions(question="stars")))) == 1
        assert reader.read_truth is not None
        with pytest.raises(UsageError, match="several questions"):
            reader.read_truth(Path("x.csv"), None, None)

    def test_named_columns_need_a_table(self, read: Callable[..., FormatReader]) -> None:
        with pytest.raises(UsageError, match="columns of a table were named, but this is"):
            read().read_votes(Path("x.csv"), ReadOptions(task="item"))
        table = VoteTable(table=pa.table({"task": ["of", "the", "table"]}))
        plain = FormatReader(read_votes=lambda *_: table, detect=lambda _: True, read_truth=lambda *_: None)
        reader = read(choose_table_reader=lambda _: plain)
        assert reader.read_votes(Path("x.csv"), ReadOptions(task="item")) is table
        assert reader.read_truth is not None
        assert reader.read_truth(Path("x.csv"), "item", None) is None
