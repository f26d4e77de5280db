"""Columns by role, and the votes in them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from wisecrowd.errors import InputError
from wisecrowd.io.problems import MissingColumn
from wisecrowd.io.tables.vote_columns import VoteColumns, build_truth, dictionary_encode
from wisecrowd.io.vote_table import ReadOptions


class TestChoice:
    def test_common_names_are_recognised(self) -> None:
        columns = VoteColumns.choose(["item", "annotator", "answer", "weight", "observed", "timestamp"], ReadOptions())
        assert columns.by_role == {
            "task": "item", "worker": "annotator", "label": "answer", "weight": "weight", "observed": "observed",
            "time": "timestamp",
        }  # fmt: skip
        assert not columns.is_time_named

    def test_the_user_has_the_last_word(self) -> None:
        names = ["task", "worker", "label", "who", "what", "when"]
        columns = VoteColumns.choose(names, ReadOptions(worker="who", label="what", time="when"))
        assert (columns.worker, columns.label, columns.time, columns.is_time_named) == ("who", "what", "when", True)

    def test_columns_can_be_left_out(self) -> None:
        columns = VoteColumns.choose(["task", "worker", "label", "time"], ReadOptions(worker=False, time=False))
        assert (columns.worker, columns.time) == (None, None)

    def test_a_missing_column_is_named(self) -> None:
        with pytest.raises(MissingColumn) as caught:
            VoteColumns.choose(["task", "worker", "size"], ReadOptions())
        assert caught.value.roles == ("label",)


def extract(options: ReadOptions | None = None, **columns: Any) -> Any:
    table = pa.table({"task": ["t1", "t2"], "worker": ["ann", "bob"], "label": ["x", "y"]} | columns)
    return VoteColumns.choose(table.column_names, options or ReadOptions()).extract_votes(table)


class TestVotes:
    def test_columns_with_other_names_are_noted(self) -> None:
        table = pa.table({"item": ["t1"], "worker": ["ann"], "answer": ["x"]})
        votes = VoteColumns.choose(table.column_names, ReadOptions()).extract_votes(table)
        assert votes.table.to_pylist() == [{"task": "t1", "worker": "ann", "label": "x"}]
        assert votes.notes == ("read 'item' as the task column", "read 'answer' as the label column")

    def test_observed_is_true_or_false_or_something_else(self) -> None:
        assert extract(observed=["True", "FALSE"]).table["observed"].to_pylist() == [True, False]
        assert extract(observed=[True, False]).table["observed"].to_pylist() == [True, False]
        other = extract(observed=["yesterday", "today"])
        assert "observed" not in other.table.column_names
        assert other.notes == ("left out the column 'observed', which does not hold true and false",)

    def test_times_are_seconds_since_1970(self) -> None:
        assert extract(time=["1970-01-01T00:01:00Z", "1970-01-01T00:00:01.5Z"]).table["time"].to_pylist() == [60, 1.5]

    def test_durations_in_a_column_that_was_not_named_are_left_out(self) -> None:
        votes = extract(time=[3.5, 12.0])
        assert "time" not in votes.table.column_names
        assert "too small for that" in votes.notes[0]
        named = extract(ReadOptions(time="time"), time=[3.5, 12.0])
        assert named.table["time"].to_pylist() == [3.5, 12]

    def test_text_that_is_no_time_is_an_error_only_if_the_column_was_named(self) -> None:
        assert "does not say when votes were cast" in extract(time=["early", "late"]).notes[0]
        with pytest.raises(InputError):
            extract(ReadOptions(time="time"), time=["early", "late"])

    def test_weights_that_are_no_numbers_are_refused_with_their_row(self) -> None:
        with pytest.raises(InputError, match="row 1"):
            extract(weight=["1", "heavy"])


class TestDictionary:
    def test_text_is_encoded_with_sorted_ids(self) -> None:
        encoded = dictionary_encode(pa.chunked_array([["b", "a"], ["b"]]), "task")
        assert encoded.to_pylist() == ["b", "a", "b"]
        assert encoded.chunk(0).dictionary.to_pylist() == ["a", "b"]

    @pytest.mark.parametrize("column", [pa.chunked_array([[1, 2]]), pa.chunked_array([["a", None]])])
    def test_other_columns_stay(self, column: pa.ChunkedArray) -> None:
        assert dictionary_encode(column, "task") is column


class TestTruth:
    def test_repeats_and_gaps(self) -> None:
        table = pa.table(
            {"t": ["a", "a", "b", None], "g": ["x", "x", None, "y"], "s": ["train", "train", "test", "test"]}
        )
        assert build_truth(table, "t", "g", None).to_dict() == {"truth": {"a": "x"}}
        assert build_truth(table, "t", "g", "s").to_dict() == {"truth": {"a": "x"}, "split": {"a": "train"}}

    def test_contradictions_are_counted_and_named(self) -> None:
        table = pa.table({"t": ["a", "a", "b", "b"], "g": ["x", "y", "x", "y"]})
        with pytest.raises(
            InputError, match=r"2 tasks have more than one value in the column '.*', for example 'a', 'b'"
        ):
            build_truth(table, "t", "g", None)
        with pytest.raises(InputError, match="1 task has more than one value in the column"):
            build_truth(table.slice(0, 2), "t", "g", None)
