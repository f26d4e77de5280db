"""Ids that look or compare alike stay different in every format, or are refused: no reader turns an id into a float."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError
from wisecrowd.io import read_project
from wisecrowd.io.dataset_folder import write_dataset
from wisecrowd.io.features import read_features
from wisecrowd.io.members import read_members
from wisecrowd.io.problems import MixedTypes
from wisecrowd.io.sharding import shard_files

#: Two integers that are the same float.
LARGE = [9007199254740993, 9007199254740992]


def write_table(path: Path, columns: dict[str, Any]) -> Path:
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    else:
        path.write_text("\n".join([",".join(columns), *(",".join(map(str, row.values())) for row in rows)]) + "\n")
    return path


def write_votes(path: Path, tasks: Sequence[Any], **columns: Sequence[Any]) -> Path:
    n = len(tasks)
    return write_table(path, {"task": tasks, "worker": ["ann"] * n, "label": ["cat"] * n} | columns)


TABLES = ["v.csv", "v.jsonl", "v.json", "v.parquet"]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("role", ["task", "worker", "label"])
def test_large_integers_stay_different(tmp_path: Path, name: str, role: str) -> None:
    columns = {"task": [1, 2], "worker": [1, 2], "label": [1, 2]} | {role: LARGE}
    crowd = wc.read(write_table(tmp_path / name, columns))
    ids = {"task": crowd.tasks, "worker": crowd.workers, "label": crowd.classes}[role]
    assert ids is not None
    assert sorted(map(int, ids)) == sorted(LARGE)


@pytest.mark.parametrize("name", ["v.jsonl", "v.json"])
@pytest.mark.parametrize("tasks", [[*LARGE, 1.5], [1.5, *LARGE], [1, 2.5], [0.1, 0.10000000000000001]])
def test_fractions_are_no_ids(tmp_path: Path, name: str, tasks: list[Any]) -> None:
    path = write_votes(tmp_path / name, tasks)
    with pytest.raises(
        MixedTypes, match=r"fractions such as .*write ids as whole numbers or text|have different types"
    ):
        wc.read(path, duplicates="keep")
    assert [finding.name for finding in wc.check_votes(path).errors] == ["mixed-types"]


@pytest.mark.parametrize("name", ["v.jsonl", "v.json", "v.parquet"])
@pytest.mark.parametrize("column", ["task", "worker", "label"])
def test_floats_that_cannot_tell_ids_apart_are_refused(tmp_path: Path, name: str, column: str) -> None:
    values = [float(value) for value in LARGE]
    path = write_votes(tmp_path / name, [1, 2], **{column: values})
    with pytest.raises(InputError, match=rf"the {column} column holds 9007199254740992\.0 as a float"):
        wc.read(path, duplicates="keep")


def test_a_fraction_far_into_the_file_does_not_change_other_columns(tmp_path: Path) -> None:
    tasks = [*range(5000), *LARGE]
    path = write_votes(tmp_path / "v.jsonl", tasks, label=[*([1] * 5001), 0.5], worker=LARGE[:1] * 5002)
    crowd = wc.read(path, numeric=True)
    assert crowd.n_tasks == 5002
    assert crowd.tasks[-2:].tolist() == sorted(LARGE)
    assert crowd.workers.tolist() == LARGE[:1]  # type: ignore[union-attr]
    assert crowd.label.sum() == 5001.5


def test_large_integers_after_floats(tmp_path: Path) -> None:
    path = write_votes(tmp_path / "v.jsonl", [*map(float, range(5000)), *LARGE])
    with pytest.raises(InputError, match="as a float"):
        wc.read(path)


@pytest.mark.parametrize("name", ["v.jsonl", "v.json"])
def test_numbers_have_one_value_however_they_are_written(tmp_path: Path, name: str) -> None:
    crowd = wc.read(write_votes(tmp_path / name, [1e5, 7.0, 8]))
    assert crowd.tasks.tolist() == [7, 8, 100000]


@pytest.mark.parametrize("name", ["v.jsonl", "v.json"])
@pytest.mark.parametrize(
    "tasks",
    [["007", 7], [7, "7"], [True, "True"], [True, 1], [0, False], ["1e5", 1e5], [[1], 1], [2**64, 1], [{}, "a"]],
)
def test_mixed_types_are_refused(tmp_path: Path, name: str, tasks: list[Any]) -> None:
    with pytest.raises(InputError, match=r"different types|holds (list|dict) values|to int64"):
        wc.read(write_votes(tmp_path / name, tasks))


@pytest.mark.filterwarnings("ignore:.*but count as different:wisecrowd.errors.DataWarning")
@pytest.mark.parametrize("name", TABLES)
def test_texts_that_spell_one_value_stay_different(tmp_path: Path, name: str) -> None:
    texts = [
        "007",
        "7",
        "07",
        "7.0",
        "1e5",
        "100000",
        "True",
        "true",
        "TRUE",
        "1",
        str(LARGE[0]),
        str(LARGE[1]),
        "nan",
        "NaN",
    ]
    crowd = wc.read(write_votes(tmp_path / name, texts))
    assert crowd.tasks.tolist() == sorted(texts)


@pytest.mark.parametrize(("values", "kind"), [([True, False], "bool"), (LARGE, "int64"), ([2**64 - 1, 0], "uint64")])
def test_types_of_parquet_are_kept(tmp_path: Path, values: list[Any], kind: str) -> None:
    path = tmp_path / "v.parquet"
    pq.write_table(pa.table({"task": pa.array(values, kind), "worker": ["a", "b"], "label": ["x", "y"]}), path)
    assert sorted(wc.read(path).tasks.tolist()) == sorted(values)
    assert sorted(shard_files(path, tmp_path / "crowd").load().tasks.tolist()) == sorted(values)


# ---------------------------------------------------------------------- several files


def test_shards_of_integers_and_floats(tmp_path: Path) -> None:
    integers = write_votes(tmp_path / "a.parquet", [*LARGE])
    floats = write_votes(tmp_path / "b.parquet", [1.0, 2.0])
    with pytest.raises(InputError, match="cannot be read as double, as in another file"):
        shard_files([integers, floats], tmp_path / "crowd")
    floats = write_votes(tmp_path / "b.parquet", [float(LARGE[0]), 2.0])
    with pytest.raises(InputError, match=r"b\.parquet: the task column holds 9007199254740992\.0 as a float"):
        shard_files([floats], tmp_path / "other")


def test_shards_of_integers_and_text(tmp_path: Path) -> None:
    files = [write_votes(tmp_path / "a.parquet", [7, *LARGE]), write_votes(tmp_path / "b.csv", ["007", "8", "7.0"])]
    crowd = shard_files(files, tmp_path / "crowd").load()
    assert sorted(crowd.tasks) == sorted(["7", *map(str, LARGE), "007", "8", "7.0"])


def test_shards_of_booleans_and_text(tmp_path: Path) -> None:
    files = [write_votes(tmp_path / "a.parquet", [True, False]), write_votes(tmp_path / "b.csv", ["True", "False"])]
    with pytest.raises(InputError, match="convert it to one type first"):
        shard_files(files, tmp_path / "crowd")


@pytest.mark.parametrize("name", ["t.jsonl", "t.json", "t.parquet"])
def test_truth_with_missing_values(tmp_path: Path, name: str) -> None:
    path = write_table(tmp_path / name, {"task": [*LARGE, None], "truth": [*LARGE, 1]})
    truth = wc.read_truth(path)
    assert truth.to_dict() == dict(zip(LARGE, LARGE, strict=True))
    votes = pd.DataFrame({"task": LARGE, "worker": "ann", "label": LARGE})
    assert wc.MajorityVote().fit(wc.Crowd.from_frame(votes), truth=truth).labels_.to_dict() == truth.to_dict()


def test_ids_of_two_types_are_compared_exactly() -> None:
    crowd = wc.Crowd.from_triples([(task, "ann", "cat") for task in LARGE])
    truth = pd.Series(["dog", "dog"], index=[float(LARGE[1]), 0.0])
    fitted = wc.MajorityVote().fit(wc.Crowd.from_frame(crowd.to_frame(), classes=["cat", "dog"]), truth=truth)
    assert fitted.labels_.to_dict() == {LARGE[0]: "cat", LARGE[1]: "dog"}


def test_features(tmp_path: Path) -> None:
    rows = np.eye(2)
    np.savez(tmp_path / "X.npz", task=LARGE, X=rows)
    assert read_features(tmp_path / "X.npz").tasks.tolist() == LARGE
    np.savez(tmp_path / "X.npz", task=np.array(LARGE, dtype=float), X=rows)
    with pytest.raises(InputError, match="as a float"):
        read_features(tmp_path / "X.npz")
    np.savez(tmp_path / "X.npz", task=np.array(["007", "7"]), X=rows)
    assert read_features(tmp_path / "X.npz").tasks.tolist() == ["007", "7"]
    pq.write_table(pa.table({"task": [*LARGE, None], "x": [1.0, 2.0, 3.0]}), tmp_path / "X.parquet")
    with pytest.raises(InputError, match=r"1 of 3 rows have no task \(row 2\)"):
        read_features(tmp_path / "X.parquet")
    (tmp_path / "X.csv").write_text("task,x\n007,1\n7,2\n1e5,3\n100000,4\n")
    assert read_features(tmp_path / "X.csv").tasks.tolist() == ["007", "7", "1e5", "100000"]
    crowd = wc.Crowd.from_triples([(LARGE[0], "ann", "cat")])
    with pytest.raises(InputError, match="no features for 1 task"):
        wc.io.features.Features(pd.Index([float(LARGE[1])]), rows[:1]).align(crowd)


def test_members(tmp_path: Path) -> None:
    pq.write_table(pa.table({"worker": LARGE, "kind": ["person", "machine"]}), tmp_path / "m.parquet")
    assert read_members(tmp_path / "m.parquet")["kind"].to_dict() == {LARGE[0]: "person", LARGE[1]: "machine"}
    (tmp_path / "m.csv").write_text("worker,kind\n007,person\n7,machine\nTrue,person\ntrue,machine\n")
    assert read_members(tmp_path / "m.csv").index.tolist() == ["007", "7", "True", "true"]


def test_dataset_folders(tmp_path: Path) -> None:
    crowd = wc.Crowd.from_frame({"task": LARGE[:1], "worker": ["ann"], "label": ["cat"]}, tasks=[*LARGE, 5])
    texts = pd.DataFrame({"text": ["a", "b"]}, index=LARGE)
    features = pd.DataFrame([[1.0], [2.0]], index=LARGE)
    write_dataset(tmp_path / "d", crowd, truth=pd.Series({LARGE[1]: "cat"}), texts=texts, features=features)
    dataset = wc.load_dataset(tmp_path / "d")
    assert dataset.crowd.tasks.tolist() == [*LARGE, 5]
    assert dataset.truth.to_dict() == {LARGE[1]: "cat"}  # type: ignore[union-attr]
    assert dataset.texts.index.tolist() == dataset.features.index.tolist() == LARGE  # type: ignore[union-attr]


# ---------------------------------------------------------------------- labelling tools


def task_of_label_studio(id: Any, worker: Any = 1) -> dict[str, Any]:
    result = {"from_name": "q", "to_name": "t", "type": "choices", "value": {"choices": ["x"]}}
    return {"id": id, "data": {}, "annotations": [{"completed_by": worker, "result": [result]}]}


def record_of_argilla(id: Any, worker: Any = "u") -> dict[str, Any]:
    return {"id": id, "fields": {}, "suggestions": {}, "responses": {"q": [{"value": "x", "user_id": worker}]}}


def example_of_prodigy(id: Any, worker: Any = "s") -> dict[str, Any]:
    return {"_input_hash": id, "_session_id": worker, "label": "q", "answer": "accept"}


def row_of_hugging_face(id: Any, worker: Any = "u") -> dict[str, Any]:
    return {"id": id, "annotators": [worker, "v"], "labels": ["x", "y"]}


TOOLS = [task_of_label_studio, record_of_argilla, example_of_prodigy, row_of_hugging_face]


def read_tool(path: Path, records: list[dict[str, Any]]) -> wc.Crowd:
    if "_input_hash" in records[0] or "annotators" in records[0]:
        path = path.with_suffix(".jsonl")
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    else:
        path.write_text(json.dumps(records))
    return read_project(path).get_question().crowd


@pytest.mark.parametrize("make", TOOLS)
def test_tools_keep_large_integers(tmp_path: Path, make: Any) -> None:
    crowd = read_tool(tmp_path / "export.json", [make(LARGE[0], LARGE[0]), make(LARGE[1], LARGE[1])])
    assert set(map(str, LARGE)) <= set(crowd.tasks)
    assert set(map(str, LARGE)) <= set(crowd.workers)  # type: ignore[arg-type]
    assert crowd.n_tasks == 2


@pytest.mark.parametrize("make", TOOLS)
@pytest.mark.parametrize("id", [float(LARGE[0]), 1e300, 1.5, True, [], {}, ["7"]])
def test_tools_refuse_other_ids(tmp_path: Path, make: Any, id: Any) -> None:
    message = r"needs an id, a text or a whole number; got .*(record|entry|row|line) 2|'id' of row 1 should be a list"
    with pytest.raises(InputError, match=message):
        read_tool(tmp_path / "export.json", [make("7"), make(id)])
    if id is not True or make is not task_of_label_studio:
        with pytest.raises(InputError, match=message):
            read_tool(tmp_path / "export.json", [make("7"), make("8", id or {"x": 1})])


@pytest.mark.parametrize("make", TOOLS)
def test_tools_tell_texts_apart(tmp_path: Path, make: Any) -> None:
    ids = ["007", "7", "7.0", "1e5", "True", "true"]
    crowd = read_tool(tmp_path / "export.json", [make(id) for id in ids])
    assert crowd.tasks.tolist() == sorted(ids)
