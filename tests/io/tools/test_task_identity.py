"""Identity of tasks in two exports."""

from __future__ import annotations

from wisecrowd.io.tools.exported_answers import ExportedAnswers
from wisecrowd.io.tools.task_identity import are_different_tasks, describe_different_tasks, select_content


def test_signed_addresses_of_one_file_are_equal() -> None:
    one, other = ({"image": f"https://example.com/a.png?signature={number}"} for number in (1, 2))
    assert not are_different_tasks(one, other)
    assert are_different_tasks(one, {"image": "https://example.com/b.png?signature=1"})
    assert are_different_tasks(one, {"text": "Hi"})
    assert not are_different_tasks(one, {})


def test_content_is_what_the_tool_shows() -> None:
    assert select_content({"id": 1, "fields": {"text": "Hi"}}) == {"text": "Hi"}
    assert select_content({"id": 1, "text": "Hi"}) == {}


def test_only_common_tasks_are_compared() -> None:
    one = ExportedAnswers(tasks={name: {"data": {"text": f"one {name}"}} for name in "abc"})
    other = ExportedAnswers(tasks={name: {"data": {"text": f"other {name}"}} for name in "bcd"})
    assert describe_different_tasks(one, other) == (
        "task b has two different texts: 'one b', 'other b', and 1 further task likewise"
    )
    assert describe_different_tasks(one, other, ["a", "d"]) is None
