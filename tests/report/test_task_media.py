"""Texts and images by task."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from wisecrowd.errors import InputError, UsageError
from wisecrowd.io.problems import MissingColumn
from wisecrowd.report.task_media import (
    align_with_tasks,
    as_task_series,
    describe_task_data,
    find_links,
    find_texts,
    is_web_address,
    read_task_column,
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.csv"
    path.write_text("item,sentence,text\n1,long,short\n2,,\n")
    return path


class TestColumn:
    def test_the_first_accepted_name_counts(self, table: Path) -> None:
        assert read_task_column(table, "text", ("text", "sentence"), task=None, column=None).to_dict() == {"1": "short"}
        assert read_task_column(table, "text", ("words", "sentence"), task=None, column=None).to_dict() == {"1": "long"}

    def test_the_user_names_the_column(self, table: Path) -> None:
        series = read_task_column(table, "text", ("text",), task="item", column="sentence")
        assert series.name == "text"
        assert series.to_dict() == {"1": "long"}
        with pytest.raises(MissingColumn, match="'absent'"):
            read_task_column(table, "text", ("text",), task=None, column="absent")

    def test_no_accepted_name(self, table: Path) -> None:
        with pytest.raises(InputError, match=r"no column of images was recognised; call it 'image'.*--image-column"):
            read_task_column(table, "image", ("image", "path"), task=None, column=None)

    def test_no_column_of_tasks(self, tmp_path: Path) -> None:
        path = tmp_path / "odd.csv"
        path.write_text("colour,text\nred,x\n")
        with pytest.raises(MissingColumn) as caught:
            read_task_column(path, "text", ("text",), task=None, column=None)
        assert "task" in caught.value.roles
        assert "call it 'task', or as in the votes" in str(caught.value)
        path.write_text("task,text\nt1,x\n")  # that of the votes has another name
        assert read_task_column(path, "text", ("text",), task="photo nr", column=None).to_dict() == {"t1": "x"}


class TestSeries:
    def test_missing_values_are_dropped(self) -> None:
        assert as_task_series(None, "text") is None
        series = as_task_series({"t1": "a", "t2": None}, "text")
        assert series is not None
        assert series.to_dict() == {"t1": "a"}

    def test_values_without_tasks_are_refused(self) -> None:
        with pytest.raises(UsageError, match="expected texts by task in a Series or a dict; got list"):
            as_task_series(["a"], "text")


class TestAlignment:
    def test_values_follow_the_tasks(self) -> None:
        values = pd.Series({"1": "a", "3": "c"})
        assert align_with_tasks(values, pd.Index([3, 2, 1]), "text") == ["c", None, "a"]

    def test_no_values_at_all(self) -> None:
        assert align_with_tasks(pd.Series(dtype=object), pd.Index(["t1"]), "text") == [None]

    def test_values_of_other_tasks_and_repeats_are_refused(self) -> None:
        with pytest.raises(InputError, match="none of the texts belongs to a task on the page"):
            align_with_tasks(pd.Series({"x": "a"}), pd.Index(["t1"]), "text")
        with pytest.raises(InputError, match="1 task has several texts, for example 't1'; keep one row per task"):
            align_with_tasks(pd.Series(["a", "b"], index=["t1", "t1"]), pd.Index(["t1"]), "text")


def test_only_web_addresses_are_links() -> None:
    assert is_web_address("HTTP://example.com/a?b=1#c")
    for value in (
        "javascript:alert(1)",
        "data:text/html,x",
        "https://",
        "https://a b",
        'https://x"onclick=',
        "ftp://x",
        7,
        None,
    ):
        assert not is_web_address(value), value


def test_links_come_from_the_data_of_a_tool() -> None:
    tasks = {
        "1": {"id": 1, "data": {"image": "https://example.com/1.png", "URL": "https://example.com/1"}},
        "2": {"id": 2, "data": {"image": "https://example.com/2.png", "text": "see https://example.com"}},
        "3": {"fields": {"text": "none", "url": "javascript:alert(1)"}},
    }
    links = find_links(tasks)
    assert links is not None
    assert links.to_dict() == {"1": "https://example.com/1", "2": "https://example.com/2.png"}
    assert find_links({"3": tasks["3"]}) is None


def test_data_of_labelling_tools() -> None:
    assert describe_task_data({"text": "Hi", "_input_hash": 3}) == "Hi"
    assert describe_task_data({"data": {"a": "x", "b": 2, "meta": {"page": 1}}}) == "a: x\nb: 2"
    assert describe_task_data({"data": {"boxes": []}}) is None


def test_files_and_addresses_are_no_texts() -> None:
    files = {"image": "/data/upload/1/cat.jpg", "page": "https://example.com/7", "more": "s3://bucket/8", "rank": 3}
    assert find_texts({"7": {"id": 7, "data": files}}) is None
    texts = find_texts({"7": {"id": 7, "data": {**files, "text": "Either/or, said the U.S. Army."}}, "8": {"data": {}}})
    assert texts is not None
    assert texts.to_dict() == {"7": "Either/or, said the U.S. Army."}
