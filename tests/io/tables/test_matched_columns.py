"""Columns of task ids and labels that are recognised by the values of the votes."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

from wisecrowd.io.problems import MissingColumn
from wisecrowd.io.tables.matched_columns import VoteNames, choose_truth_columns, match_label_column, match_task_column

TASKS, CLASSES = pd.Index(["1", "2", "3", "4"]), pd.Index(["cat", "dog"])


def choose(table: pa.Table, **names: str) -> dict[str, str]:
    return choose_truth_columns(table.column_names, table.select, VoteNames(TASKS, CLASSES), **names)


def test_a_column_of_counts_is_no_column_of_ids() -> None:
    table = pa.table({"n_words": [1, 2, 2, 1], "nr": [1, 2, 3, 4]})
    assert match_task_column(table.column_names, table.select, TASKS) == "nr"
    assert match_task_column(["n_words"], table.select, TASKS) is None


def test_two_equally_good_columns_are_ambiguous() -> None:
    table = pa.table({"nr": [1, 2, 3], "row": [2, 3, 4], "one": ["cat", "dog", None], "two": ["dog", "cat", "cat"]})
    assert match_task_column(["nr", "row"], table.select, TASKS) is None
    assert match_label_column(["one", "two"], table.select, CLASSES) is None
    assert match_label_column(["one"], table.select, CLASSES) == "one"
    with pytest.raises(MissingColumn, match="there are no task and truth columns"):
        choose(table)


def test_names_come_before_contents() -> None:
    table = pa.table({"nr": [1, 2], "item": [3, 4], "says": ["cat", "dog"], "truth": ["dog", "dog"]})
    assert choose(table) == {"task": "item", "truth": "truth"}
    assert choose(table, task="nr", truth="says") == {"task": "nr", "truth": "says"}


def test_empty_and_nested_columns_are_ignored() -> None:
    table = pa.table({"list": [[1], [2]], "empty": ["", None], "nr": [1, 9]})
    assert match_task_column(table.column_names, table.select, TASKS) == "nr"
    assert match_task_column([], table.select, TASKS) is None
