"""Features from files: arrays, tables and folders, ids as they are written, and what is wrong said with the file's name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd, read_features
from wisecrowd.errors import InputError
from wisecrowd.io.dataset_folder import write_dataset
from wisecrowd.io.features import Features, read_mixed_features

ROWS = np.array([[1.5, 2.0], [0.5, -1.0]])


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("X.csv", "task,a,b\n007,1.5,2\nNA,0.5,-1\n"),
        ("X.tsv", "a\ttask\tb\n1.5\t007\t2\n0.5\tNA\t-1\n"),
        ("X.csv", '"question","a","b"\n"007",1.5,2\n"NA",0.5,-1\n'),
        ("X.csv", "photo,a,b\n007,1.5,2\nNA,0.5,-1\n"),
    ],
    ids=["csv", "tsv, ids in between", "another name", "the first column"],
)
def test_tables_of_text_keep_ids_as_they_are(name: str, text: str) -> None:
    Path(name).write_text(text, encoding="utf-8")
    found = read_features(name)
    assert found.tasks.tolist() == ["007", "NA"]
    assert found.names == ("a", "b")
    np.testing.assert_array_equal(found.rows, ROWS)
    assert found.table.loc["NA", "b"] == -1


def test_parquet_arrays_and_compressed_text() -> None:
    frame = pd.DataFrame(ROWS, columns=["a", "b"], index=pd.Index([7, 8], name="task"))
    frame.to_parquet("X.parquet")
    frame.to_csv("X.csv.gz")
    np.savez("X.npz", task=[7, 8], X=ROWS)
    for name, ids in (("X.parquet", [7, 8]), ("X.csv.gz", ["7", "8"]), ("X.npz", [7, 8])):
        found = read_features(name)
        assert found.tasks.tolist() == ids, name
        np.testing.assert_array_equal(found.rows, ROWS)
    assert read_features("X.npz").names is None


@pytest.mark.parametrize("columns", [None, ["a", "b"]], ids=["arrays", "table"])
def test_dataset_folders(columns: list[str] | None) -> None:
    crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")])
    write_dataset("pets", crowd, features=pd.DataFrame(ROWS, index=["t1", "t2"], columns=columns))
    np.testing.assert_array_equal(read_features("pets").rows, ROWS)
    write_dataset("bare", crowd)
    with pytest.raises(InputError, match=r"bare: this folder has no features \(features.npz or features.parquet\)"):
        read_features("bare")


def test_a_hole_is_nan_for_the_learner_to_refuse_by_task() -> None:
    Path("X.csv").write_text("task,a\nt1,1\nt2,\n", encoding="utf-8")
    assert np.isnan(read_features("X.csv").rows[1, 0])


def test_images_meet_their_tasks() -> None:
    np.savez("X.npz", task=["t2", "t1", "t3"], X=np.arange(12).reshape(3, 2, 2))
    crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")])
    images, same = read_features("X.npz").align(crowd)
    assert images[:, 0, 0].tolist() == [4, 0]
    assert same == crowd
    assert same.has_task_order
    assert not crowd.has_task_order
    with pytest.raises(InputError, match="cannot be a table"):
        _ = read_features("X.npz").table
    with pytest.raises(InputError, match="no features for 1 task, for example 't9'"):
        read_features("X.npz").align(Crowd.from_triples([("t9", "ann", "cat")]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "task,a,colour\nt1,1,red\n",
            r"X.csv: features must be numbers, and 'colour' is not, for example 'red' of the task 't1'; encode",
        ),
        ("task,a\nt1,1\nt1,2\n", "several rows for 't1'; keep one per task"),
        ("task\nt1\n", "there are no features in it"),
        ("task,a\n", "there are no features in it"),
        ("task,a,a\nt1,1,2\n", "several columns are called 'a'"),
        ("task,a\nt1,1,2\n", "cannot be read as a table separated by ','"),
        ("", "it is empty"),
    ],
    ids=["text", "twice", "ids only", "header only", "repeated name", "ragged", "empty"],
)
def test_what_is_wrong_with_a_table(text: str, message: str) -> None:
    Path("X.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_features("X.csv")


def test_what_is_wrong_with_arrays() -> None:
    for arrays, message in [
        ({"X": ROWS}, "X.npz: expected the arrays 'task' and 'X', .*; it holds 'X'"),
        ({"task": ["a"], "X": ROWS}, r"of shape \(1,\) and \(2, 2\)"),
        ({"task": ["a", "b"], "X": ROWS[:, 0]}, r"of shape \(2,\) and \(2,\)"),
        ({"task": ["a", "b"], "X": ROWS.astype(str)}, "features must be numbers; 'X' holds <U"),
        ({"task": np.array(["a", 1], dtype=object), "X": ROWS}, "'task' holds Python objects"),
    ]:
        np.savez("X.npz", **arrays)
        with pytest.raises(InputError, match=message):
            read_features("X.npz")


def test_what_is_no_file_of_features() -> None:
    Path("X.npz").write_text("task,a\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"X\.npz: it is not an npz file; expected the arrays 'task'"):
        read_features("X.npz")
    Path("X.parquet").write_text("task,a\n", encoding="utf-8")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read_features("X.parquet")
    Path("X.ods").write_text("task,a\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"read from .npz, .csv, .tsv, .xlsx or .parquet files"):
        read_features("X.ods")
    with pytest.raises(InputError, match="there is no such file"):
        read_features("nothing.npz")
    Path("X.csv").write_text("task,a\nt1,1\n", encoding="utf-8")
    with pytest.raises(InputError, match="photo"):
        read_features("X.csv", task="photo")


def test_row_numbers_that_pandas_wrote_are_no_feature(tmp_path: Path) -> None:
    place = tmp_path / "X.csv"
    pd.DataFrame({"task": ["a", "b"], "x": [1.0, 2.0]}).to_csv(place)
    assert read_features(place).names == ("x",)


def test_without_a_column_of_ids_the_message_says_so(tmp_path: Path) -> None:
    place = tmp_path / "X.csv"
    place.write_text("p0,p1\n0.0,1\n0.0,2\n0.0,3\n")
    with pytest.raises(InputError, match="call the column of task ids 'task'"):
        read_features(place)


def test_tasks_take_the_spelling_of_the_votes(tmp_path: Path) -> None:
    path = tmp_path / "X.csv"
    path.write_text("task,x\n28.0,1\n29,2\n", encoding="utf-8")
    crowd = Crowd.from_triples([("28", "ann", 0), ("29", "ann", 1)])
    with pytest.raises(InputError, match="another spelling of 1 task"):
        read_features(path).align(crowd)
    assert read_features(path, match=crowd).tasks.tolist() == ["28", "29"]


@pytest.mark.parametrize("separator", [";", "|", "\t"])
def test_other_separators_are_recognised_as_for_votes(separator: str) -> None:
    Path("X.csv").write_text("task,a,b\n007,1.5,2\nt2,,1\n".replace(",", separator), encoding="utf-8")
    table = read_features("X.csv").table
    assert table.columns.tolist() == ["a", "b"]
    assert table.loc["007"].tolist() == [1.5, 2.0]


def test_decimal_commas_between_semicolons_are_numbers() -> None:
    text = "task;size;count;share;colour\nt1;1,5;2;-,5;red\nt2;3;1;;blue\nt3;-1e3;4;NA;1,5 m\n"
    Path("X.csv").write_text(text, encoding="utf-8")
    features = read_mixed_features("X.csv")
    assert features.table["size"].tolist() == [1.5, 3.0, -1000.0]
    assert features.table["count"].tolist() == [2, 1, 4]
    np.testing.assert_array_equal(features.table["share"], [-0.5, np.nan, np.nan])
    assert features.table["colour"].tolist() == ["red", "blue", "1,5 m"]


@pytest.mark.parametrize("reader", [read_features, read_mixed_features])
def test_decimal_commas_in_quotes_are_no_categories(reader: Callable[[str], object]) -> None:
    Path("X.csv").write_text('task,size\nt1,1\nt2,"1,5"\n', encoding="utf-8")
    message = r"'size' has numbers with a decimal comma, for example '1,5' of the task 't2'; write them with a point, or separate"
    with pytest.raises(InputError, match=message):
        reader("X.csv")


def test_features_of_some_tasks_say_how_to_use_only_these() -> None:
    crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog"), ("t3", "ann", "dog")])
    features = Features(pd.Index(["t1", "t3"]), ROWS)
    with pytest.raises(InputError) as error:
        features.align(crowd)
    assert "2 tasks of 3 have features; to use only these, leave out" in str(error.value)
    assert "--features-missing drop (in Python: crowd[crowd.tasks.isin(features.tasks)])" in str(error.value)
    assert features.align(crowd[crowd.tasks.isin(features.tasks)])[0].shape == (2, 2)  # type: ignore[union-attr]
    with pytest.raises(InputError, match=r"Compare the ids in both files$"):
        Features(pd.Index(["x1", "x3"]), ROWS).align(crowd)


def test_another_spelling_names_the_option_first() -> None:
    crowd = Crowd.from_triples([("T1", "ann", "cat"), ("t2", "ann", "dog")])
    with pytest.raises(InputError, match=r"unify it with --normalise \(in Python: read\(\.\.\., normalise=True\)"):
        Features(pd.Index(["t1", "t2"]), ROWS).align(crowd)
