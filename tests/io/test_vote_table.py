"""Votes of a file before validation."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from wisecrowd.errors import InputError, UsageError
from wisecrowd.io.problems import EmptyInput
from wisecrowd.io.vote_table import ReadOptions, VoteTable


def make(*, lines: bool = True, **columns: Any) -> VoteTable:
    table = pa.table({"task": ["t1", "t1", "t2"], "worker": ["ann", "bob", "ann"], "label": ["x", "y", "x"]} | columns)
    return VoteTable(table=table, line_finder=(lambda rows: [row + 2 for row in rows]) if lines else None)


def test_options_are_checked_when_they_are_given() -> None:
    with pytest.raises(UsageError, match="missing"):
        ReadOptions(missing="ignore")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="duplicates"):
        ReadOptions(duplicates="any")  # type: ignore[arg-type]
    assert ReadOptions(time="when").names_columns
    assert not ReadOptions(worker=False, question="q").names_columns


class TestPositions:
    def test_rows_have_lines_or_else_positions(self) -> None:
        assert make().describe_rows([0, 2]) == "line 2, 4"
        assert make(lines=False).describe_rows([0, 2]) == "row 0, 2"
        assert VoteTable(table=pa.table({"task": []}), line_finder=lambda _: None).locate_rows([3]) == ("row", [3])

    def test_a_message_shows_a_few_rows(self) -> None:
        assert make().describe_rows(list(range(100))) == "line 2, 3, 4, …"


class TestIncompleteRows:
    def test_lines_are_those_of_the_file(self) -> None:
        votes = make(label=[None, "y", "x"]).drop_incomplete_rows()
        assert votes.table["task"].to_pylist() == ["t1", "t2"]
        assert votes.describe_rows([0, 1]) == "line 3, 4"

    def test_a_time_may_be_missing(self) -> None:
        votes = make(time=[None, 1.0, 2.0])
        assert votes.drop_incomplete_rows() is votes


class TestCrowd:
    def test_votes_and_vocabularies(self) -> None:
        votes = VoteTable(table=make().table, tasks=["t1", "t2", "t3"], classes=["y", "x"])
        crowd = votes.to_crowd(ReadOptions())
        assert crowd.tasks.tolist() == ["t1", "t2", "t3"]
        assert crowd.classes.tolist() == ["y", "x"]
        assert votes.to_crowd(ReadOptions(classes=["x", "y", "z"])).classes.tolist() == ["x", "y", "z"]

    def test_numbers(self) -> None:
        crowd = make(label=["1.5", "2", "3"]).to_crowd(ReadOptions(numeric=True))
        assert crowd.is_numeric
        assert sorted(crowd.label.tolist()) == [1.5, 2, 3]
        with pytest.raises(InputError, match="line 3"):
            make(label=["1.5", "two", "3"]).to_crowd(ReadOptions(numeric=True))
        with pytest.raises(UsageError, match="use either numeric=True or ordered=True"):
            make().to_crowd(ReadOptions(numeric=True, ordered=True))

    def test_order_of_classes(self) -> None:
        assert make(label=["10", "9", "9"]).to_crowd(ReadOptions(ordered=True)).classes.tolist() == ["9", "10"]
        ordered_numbers = VoteTable(table=make(label=[1.0, 2.0, 3.0]).table, ordered=True, numeric=True)
        assert not ordered_numbers.to_crowd(ReadOptions()).is_ordered

    def test_no_votes(self) -> None:
        with pytest.raises(EmptyInput, match="there are no votes in it"):
            VoteTable(table=make().table.slice(0, 0)).to_crowd(ReadOptions())

    @pytest.mark.parametrize("role", ["task", "worker", "label"])
    def test_an_empty_cell_is_an_error_or_dropped(self, role: str) -> None:
        votes = make(**{role: ["t1", None, "t2"]})
        with pytest.raises(InputError, match="line 3"):
            votes.to_crowd(ReadOptions())
        assert votes.to_crowd(ReadOptions(missing="drop")).n_votes == 2

    @pytest.mark.parametrize(
        "weight", [[1.0, 0.0, 1.0], [1.0, -2.0, 1.0], [1.0, float("inf"), 1.0], [1.0, float("nan"), 1.0]]
    )
    def test_weights_are_positive_numbers(self, weight: list[float]) -> None:
        with pytest.raises(InputError, match="line 3"):
            make(weight=weight).to_crowd(ReadOptions())

    def test_repeated_votes_are_an_error_or_settled_by_a_rule(self) -> None:
        votes = make(task=["t1", "t1", "t1"], worker=["ann", "bob", "ann"])
        with pytest.raises(InputError, match="duplicates"):
            votes.to_crowd(ReadOptions())
        assert votes.to_crowd(ReadOptions(duplicates="first")).n_votes == 2
        assert votes.to_crowd(ReadOptions(duplicates="keep")).n_votes == 3
