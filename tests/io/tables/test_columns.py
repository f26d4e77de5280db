from __future__ import annotations

import pytest

from wisecrowd.io.problems import MissingColumn
from wisecrowd.io.tables.columns import find_column, find_columns, role_names, simplify_name


@pytest.mark.parametrize(
    "names",
    [
        ["task", "worker", "label"],
        ["item", "annotator", "label"],
        ["item", "rater", "rating"],
        ["question", "worker", "answer"],
        ["example", "annotator", "value"],
        ["task_id", "user_id", "response"],
        ["taskId", "workerId", "answer"],
        ["task", "performer", "label"],
        ["annotation", "annotator", "question"],
        ["_unit_id", "_worker_id", "judgment"],
        ["TaskID", "WorkerID", "WorkerLabel", "GoldLabel"],
        ["object", "worker", "label"],
        ["image_id", "user", "category"],
        ["doc", "coder", "class"],
        ["file_name", "reviewer", "tag"],
        ["External ID", "Created By", "Label"],
    ],
)
def test_names_that_other_tools_use(names: list[str]) -> None:
    found = {role: find_column(names, role) for role in ("task", "worker", "label")}
    assert len(set(found.values())) == 3
    assert set(found.values()) <= set(names)


def test_the_exact_name_wins_over_others_like_it() -> None:
    assert find_column(["item", "task", "task_id"], "task") == "task"


@pytest.mark.parametrize(
    ("names", "role", "column"),
    [
        (["image_id", "question"], "task", "question"),
        (["image", "image_id", "filename"], "task", "image_id"),
        (["created_by", "annotator"], "worker", "annotator"),
        (["category", "answer"], "label", "answer"),
        (["category", "gold"], "truth", "gold"),
        (["category", "tag"], "truth", "category"),
    ],
)
def test_specific_names_win_over_general_ones(names: list[str], role: str, column: str) -> None:
    assert find_column(names, role) == column


def test_no_general_name_is_a_specific_one_or_belongs_to_two_roles() -> None:
    roles = ("task", "worker", "label")
    names = [name for role in roles for name in role_names(role)]
    assert len(names) == len(set(names))
    assert all(name == simplify_name(name) for name in names)


def test_the_given_name_wins_over_all() -> None:
    assert find_column(["task", "photo"], "task", "photo") == "photo"


def test_two_candidates_are_not_guessed_at() -> None:
    with pytest.raises(MissingColumn, match=r"could be 'item' or 'question'; say which: task=\"item\" \(--task item\)"):
        find_column(["item", "question"], "task")


def test_a_missing_column_lists_what_there_is_and_how_to_name_it() -> None:
    with pytest.raises(
        MissingColumn,
        match=r"no worker column.*'task', 'who', 'label'.*worker=\"NAME\" \(--worker NAME\).*worker=False \(--no-workers\)",
    ):
        find_column(["task", "who", "label"], "worker")


def test_a_given_name_that_is_not_there() -> None:
    with pytest.raises(MissingColumn, match=r"no column 'labl'.*Did you mean 'label'"):
        find_column(["task", "label"], "label", "labl")


def test_a_table_without_a_header_is_suspected() -> None:
    with pytest.raises(MissingColumn, match="put the header task,worker,label above it"):
        find_column(["t1", "ann", "cat"], "task")


def test_a_matrix_is_suspected() -> None:
    with pytest.raises(MissingColumn, match='format="mace"'):
        find_column(["cat", "cat ", "dog"], "task")


def test_one_column_is_suspected_of_another_separator() -> None:
    with pytest.raises(MissingColumn, match="perhaps because ' ' separates the values"):
        find_column(["task worker label"], "task")


def test_truth_prefers_its_own_names_to_those_of_labels() -> None:
    assert find_column(["task", "label", "gold"], "truth") == "gold"
    assert find_column(["task", "label"], "truth") == "label"
    assert find_column(["task", "class"], "truth") == "class"


def test_plain_forgets_case_and_marks() -> None:
    assert simplify_name(" Worker-ID_") == "workerid"


def test_all_missing_columns_are_told_at_once() -> None:
    with pytest.raises(
        MissingColumn, match=r"there are no worker and label columns; .*--worker NAME --label NAME"
    ) as one:
        find_columns(["task", "x"], {"task": None, "worker": None, "label": None})
    assert one.value.roles == ("worker", "label")
    with pytest.raises(MissingColumn, match=r"no column 'who' to be the worker.*there is no label column") as two:
        find_columns(["task", "x"], {"task": None, "worker": "who", "label": None})
    assert two.value.roles == ("worker", "label")


def test_several_problems_are_sentences() -> None:
    with pytest.raises(MissingColumn) as caught:
        find_columns(["nr", "expert"], {"task": "photo", "truth": "text"})
    assert ".." not in str(caught.value)
    assert "?." not in str(caught.value)
