from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError
from wisecrowd.io.tables import parquet


def written(path: Path, **columns: object) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_types_are_kept(tmp_path: Path) -> None:
    path = written(tmp_path / "votes.parquet", task=[10, 2], worker=["ann", "ann"], label=[True, False])
    crowd = wc.read(path)
    assert (crowd.tasks.tolist(), crowd.classes.tolist()) == ([2, 10], [False, True])


def test_other_columns_are_not_read(tmp_path: Path) -> None:
    path = written(tmp_path / "v.parquet", item=["a"], worker=["ann"], label=["x"], junk=[[1, 2]], weight=[2.0])
    assert wc.read(path).weight.tolist() == [2.0]


def test_long_and_short_ids_give_the_same_crowd(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    task, worker = (column.ravel() for column in np.meshgrid(np.arange(50), np.arange(20)))
    label = rng.integers(0, 3, task.size)
    crowds = []
    for prefix in ("t", "a task with a rather long name, number "):
        tasks = [f"{prefix}{code:03d}" for code in task]
        path = written(tmp_path / "v.parquet", task=tasks, worker=worker.astype(str), label=label)
        crowds.append(wc.read(path))
    assert (crowds[0].task == crowds[1].task).all()
    assert (crowds[0].label == crowds[1].label).all()


def test_row_groups_and_categories(tmp_path: Path) -> None:
    frame = pd.DataFrame({"task": list("abcdef"), "worker": list("xyxyxy"), "label": list("ppqqpq")})
    frame.astype("category").to_parquet(tmp_path / "v.parquet", row_group_size=2)
    assert wc.read(tmp_path / "v.parquet") == wc.Crowd.from_frame(frame)


def test_holes(tmp_path: Path) -> None:
    path = written(tmp_path / "v.parquet", task=["a", None, "b"], worker=["x", "x", None], label=["p", "q", "q"])
    with pytest.raises(InputError, match="1 of 3 rows has no task"):
        wc.read(path)
    assert wc.read(path, missing="drop").n_votes == 1


def test_fractions_are_no_classes(tmp_path: Path) -> None:
    path = written(tmp_path / "v.parquet", task=["a"], worker=["x"], label=[0.5])
    with pytest.raises(InputError, match="numeric=True"):
        wc.read(path)
    assert wc.read(path, numeric=True).is_numeric


def test_a_name_does_not_hide_the_content(tmp_path: Path) -> None:
    path = written(tmp_path / "votes.csv", task=["a"], worker=["x"], label=["p"])
    assert wc.read(path).n_votes == 1


@pytest.mark.parametrize("content", [b"task,worker,label\n", b"PAR1 and rubbish", bytes(100)])
def test_what_is_not_parquet(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "votes.parquet"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"votes\.parquet"):
        wc.read(path, format="parquet")


def test_damage_within(tmp_path: Path) -> None:
    path = written(tmp_path / "v.parquet", task=["a"] * 9999, worker=[str(n) for n in range(9999)], label=["p"] * 9999)
    content = bytearray(path.read_bytes())
    content[200:4000] = bytes(3800)
    path.write_bytes(content)
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        wc.read(path)


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    table = pa.table([["a"], ["x"], ["p"], ["q"]], names=["task", "worker", "label", "label"])
    pq.write_table(table, tmp_path / "v.parquet")
    with pytest.raises(InputError, match="several columns called 'label'"):
        wc.read(tmp_path / "v.parquet")


def test_no_rows(tmp_path: Path) -> None:
    empty = pa.array([], pa.string())
    path = written(tmp_path / "v.parquet", task=empty, worker=empty, label=empty)
    with pytest.raises(InputError, match="no votes in it"):
        wc.read(path)


def test_columns_that_cannot_be_ids(tmp_path: Path) -> None:
    path = written(tmp_path / "v.parquet", task=[["a"]], worker=["x"], label=["p"])
    with pytest.raises(InputError, match="the task column holds list"):
        wc.read(path)


def test_truth_and_split(tmp_path: Path) -> None:
    path = written(tmp_path / "truth.parquet", task=["a", "b"], label=["p", None], split=["train", "test"])
    truth = wc.read_truth(path)
    assert truth.to_dict() == {"a": "p"}
    assert (truth.name, truth.index.name) == ("truth", "task")


@pytest.mark.parametrize("column", ["task", "worker", "label"])
def test_text_that_is_not_utf8_is_refused(tmp_path: Path, column: str) -> None:
    buffers = [None, pa.py_buffer(np.array([0, 2, 4], dtype=np.int32)), pa.py_buffer(b"\xff\xfe\xff\xfe")]
    columns: dict[str, object] = {"task": ["t1", "t2"], "worker": ["ann", "bob"], "label": ["x", "y"]}
    columns[column] = pa.Array.from_buffers(pa.string(), 2, buffers)
    path = written(tmp_path / "votes.parquet", **columns)
    with pytest.raises(InputError, match=f"column '{column}' is damaged"):
        wc.read(path, duplicates="last")
    with pytest.raises(InputError, match="is damaged"):
        wc.read_truth(
            path, task="task" if column != "label" else "worker", truth=column if column != "task" else "label"
        )


def test_a_column_of_another_type_than_its_pages_is_refused(tmp_path: Path) -> None:
    """Arrow ends the process if anybody asks for the metadata of such a column."""
    path = written(tmp_path / "votes.parquet", task=["a", "b"], worker=["x", "y"], label=[b"1", b"2"])
    byte_array, int64 = (bytes([0x15, 2 * number, 0x25, 2, 0x18, 5]) + b"label" for number in (6, 2))
    content = path.read_bytes()
    assert content.count(byte_array) == 1
    path.write_bytes(content.replace(byte_array, int64))
    with pytest.raises(InputError, match=r"votes\.parquet: it cannot be read as Parquet"):
        wc.read(path)


@pytest.mark.parametrize("column", [[1, 2], ["x", None], [[1.0], [2.0, 3.0]], [{"a": 1}, {"a": 2}]])
def test_sizes_are_estimated_without_reading_pages(tmp_path: Path, column: list[object]) -> None:
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"a": column * 4}), path, row_group_size=3)
    with pq.ParquetFile(path) as file:
        assert parquet.estimate_bytes(file) >= 8 * len(column[:1])
