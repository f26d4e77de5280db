"""Files of the wrong type, depth or size end in an `InputError` that names the file and the place, never in another error."""

from __future__ import annotations

import datetime
import io
import json
from collections.abc import Callable
from decimal import Decimal
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
from wisecrowd.io.datasets import list_datasets
from wisecrowd.io.features import read_features
from wisecrowd.io.members import read_members
from wisecrowd.io.sharding import shard_files

DIGITS, DEPTH = "9" * 5000, "[" * 100_000


def refuse(read: Callable[[Path], Any], path: Path, message: str = ".") -> None:
    """Check that a file is refused, with its name and a message of reasonable length."""
    with pytest.raises(InputError, match=message) as caught:
        read(path)
    assert path.name in str(caught.value)
    assert len(str(caught.value)) < 1500


# ---------------------------------------------------------------------- JSON


@pytest.mark.parametrize("name", ["votes.json", "votes.jsonl", "answers.json"])
@pytest.mark.parametrize("text", [DEPTH, '{"a":' * 100_000, f"[{DIGITS}]", DIGITS, '{"task": ' + DEPTH])
def test_json_of_great_depth_or_length(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    refuse(wc.read, path)
    refuse(wc.read_truth, path)
    with pytest.raises(InputError):
        read_project(path)
    assert wc.check_votes(path).errors
    for format in (
        "json",
        "jsonl",
        "label-studio",
        "argilla",
        "prodigy",
        "hugging-face",
        "doccano",
        "label-studio-min",
    ):
        refuse(
            lambda path, format=format: wc.read(path, format=format), path, "nested levels|thousands of digits|not JSON"
        )


@pytest.mark.parametrize("value", [DIGITS, "1e999", DEPTH, '"\\ud800"', "NaN", "{}", "[[]]"])
@pytest.mark.parametrize("name", ["votes.json", "votes.jsonl"])
def test_values_of_json(tmp_path: Path, name: str, value: str) -> None:
    row = f'{{"task": {value}, "worker": "ann", "label": "cat"}}'
    path = tmp_path / name
    path.write_text(f"[{row}]" if name == "votes.json" else row)
    refuse(wc.read, path)
    assert wc.check_votes(path).errors


def test_half_characters_in_exports(tmp_path: Path) -> None:
    half = "half \ud800"
    path = tmp_path / "data.jsonl"
    path.write_text(json.dumps({"id": "a", "annotators": [half, "b"], "labels": ["x", "y"]}))
    refuse(wc.read, path, "lone surrogate")
    assert "lone surrogate" in wc.check_votes(path).errors[0].message
    (tmp_path / "answers.json").write_text(json.dumps({half: {"ann": "cat"}}))
    assert "lone surrogate" in wc.check_votes(tmp_path / "answers.json").errors[0].message


# ---------------------------------------------------------------------- arrays


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


IDS, ROWS = np.array(["a", "b"]), np.eye(2)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        npy(ROWS),
        npz(),
        npz(task=IDS, X=ROWS)[:-1],
        npz(task=IDS, X=ROWS)[:200],
        npz(task=IDS, X=ROWS).replace(b"'shape': (2,)", b"'shape': (2,'"),
        npz(task=IDS, X=ROWS).replace(b"'shape': (2, 2)", b"'shape': (9, 9)"),
        npz(task=IDS, X=np.array([[1, {}], [2, {}]], dtype=object)),
        npz(task=np.array([b"a", b"\xff"]), X=ROWS),
        npz(task=np.array(["NaT", "2024"], dtype="M8[D]"), X=ROWS),
        npz(task=np.array([1.5, np.nan]), X=ROWS),
        npz(task=np.array(["a", "a"]), X=ROWS),
        npz(task=IDS, X=np.full((2, 2), 1e308)),
        npz(task=IDS, X=np.full((2, 2), np.inf)),
        npz(task=IDS, X=np.full((2, 2), 1j)),
    ],
)
def test_arrays(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "X.npz"
    path.write_bytes(content)
    refuse(read_features, path)


# ---------------------------------------------------------------------- Parquet


def parquet(path: Path, columns: dict[str, Any]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


#: Columns that cannot hold ids.
NO_IDS: dict[str, pa.Array] = {
    "list": pa.array([["a"], ["b"]]),
    "struct": pa.array([{"a": 1}, {"a": 2}]),
    "map": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
    "binary": pa.array([b"\xff", b"a"]),
    "fixed binary": pa.array([b"ab", b"cd"], pa.binary(2)),
    "time": pa.array([1, 2], pa.time64("us")),
    "duration": pa.array([1, 2], pa.duration("s")),
    "decimal256": pa.array([Decimal("1.5"), Decimal(2)], pa.decimal256(50, 2)),
    "early date": pa.array([-(2**31), 0], pa.int32()).cast(pa.date32()),
    "late date": pa.array([2**31 - 1, 0], pa.int32()).cast(pa.date32()),
    "late time": pa.array([2**62, 0], pa.timestamp("us")),
    "unknown zone": pa.array([0, 1], pa.timestamp("us", "Mars/Olympus")),
}


@pytest.mark.parametrize("kind", NO_IDS)
@pytest.mark.parametrize("role", ["task", "worker", "label"])
def test_columns_of_parquet_that_hold_no_ids(tmp_path: Path, kind: str, role: str) -> None:
    columns = {"task": ["a", "b"], "worker": ["x", "y"], "label": ["p", "q"]} | {role: NO_IDS[kind]}
    path = parquet(tmp_path / "votes.parquet", columns)
    refuse(wc.read, path, role)
    assert wc.check_votes(path).errors
    refuse(lambda path: shard_files(path, tmp_path / "crowd"), path, role)


@pytest.mark.parametrize("kind", NO_IDS)
def test_other_tables_of_parquet(tmp_path: Path, kind: str) -> None:
    column = NO_IDS[kind]
    refuse(wc.read_truth, parquet(tmp_path / "t.parquet", {"task": column, "truth": ["x", "y"]}))
    refuse(read_features, parquet(tmp_path / "X.parquet", {"task": column, "x": [1.0, 2.0]}))
    refuse(read_features, parquet(tmp_path / "X.parquet", {"task": ["a", "b"], "x": column}))
    refuse(read_members, parquet(tmp_path / "m.parquet", {"worker": column, "kind": ["person", "machine"]}))
    refuse(read_members, parquet(tmp_path / "m.parquet", {"worker": ["a", "b"], "kind": column}))


@pytest.mark.parametrize("name", [b"pandas.period", b"pandas.interval", b"arrow.fixed_shape_tensor", b"arrow.json"])
@pytest.mark.parametrize("metadata", [b"", b"{", b"{}", b'{"shape": [-1]}', b"\x80\x04"])
def test_extension_types_with_invalid_metadata(tmp_path: Path, name: bytes, metadata: bytes) -> None:
    pd.Series(pd.period_range("2024", periods=1)).to_frame("x").to_parquet(tmp_path / "registers-the-types.parquet")
    marks = {b"ARROW:extension:name": name, b"ARROW:extension:metadata": metadata}
    field = pa.field("task", pa.int64(), metadata=marks)
    table = pa.table(
        [[1], ["ann"], ["cat"]], schema=pa.schema([field, ("worker", pa.string()), ("label", pa.string())])
    )
    path = tmp_path / "votes.parquet"
    pq.write_table(table, path)
    for read in (wc.read, wc.read_truth, read_features, read_members):
        try:
            read(path)  # a valid extension type may be read as what it is stored as
        except InputError:
            continue


def test_repeated_columns_of_parquet(tmp_path: Path) -> None:
    names = ["task", "worker", "label", "time", "time"]
    table = pa.table([["a"], ["x"], ["p"], [1.7e9], [1.7e9]], names=names)
    pq.write_table(table, tmp_path / "votes.parquet")
    refuse(wc.read, tmp_path / "votes.parquet", "several columns called 'time'")
    pq.write_table(table.rename_columns(["task", "truth", "x", "split", "split"]), tmp_path / "t.parquet")
    refuse(wc.read_truth, tmp_path / "t.parquet", "several columns called 'split'")


@pytest.mark.parametrize("weight", [1e308, 1e-308, 0.0, -1.0, float("inf"), float("nan"), 2e12])
@pytest.mark.parametrize("name", ["votes.csv", "votes.parquet", "votes.jsonl"])
def test_weights(tmp_path: Path, name: str, weight: float) -> None:
    frame = pd.DataFrame({"task": ["a", "b"], "worker": "ann", "label": "cat", "weight": [1.0, weight]})
    path = tmp_path / name
    writers = {
        ".csv": lambda: frame.to_csv(path, index=False),
        ".parquet": lambda: frame.to_parquet(path, index=False),
        ".jsonl": lambda: path.write_text("".join(json.dumps(row) + "\n" for row in frame.to_dict("records"))),
    }
    writers[path.suffix]()
    refuse(wc.read, path, "weight")
    assert wc.check_votes(path).errors


@pytest.mark.parametrize("name", ["X.csv", "X.parquet", "X.npz"])
@pytest.mark.parametrize("value", [1e308, -1e308, 1e101, float("inf")])
def test_features(tmp_path: Path, name: str, value: float) -> None:
    path = tmp_path / name
    frame = pd.DataFrame({"task": ["a", "b"], "x": [1.0, value]})
    if name == "X.csv":
        frame.to_csv(path, index=False)
    elif name == "X.parquet":
        frame.to_parquet(path, index=False)
    else:
        np.savez(path, task=frame["task"].to_numpy(dtype=str), X=frame[["x"]].to_numpy())
    refuse(read_features, path, r"features of 1 task are too large, for example .* of 'b'; scale them")


# ---------------------------------------------------------------------- exports of tools


def suggest(score: Any) -> dict[str, Any]:
    return {"id": "r", "fields": {}, "responses": {}, "suggestions": {"q": {"value": ["a", "b"], "score": score}}}


@pytest.mark.parametrize("score", ["high", {}, [0.5, "x"], [0.5, {}], [[0.5]], True, [True, 0.5]])
def test_scores_of_argilla(tmp_path: Path, score: Any) -> None:
    path = tmp_path / "records.json"
    path.write_text(json.dumps([suggest(0.5), suggest(score)]))
    refuse(read_project, path, "the score of the suggestion 'q' of record 2 should be a number or a list of numbers")
    path.write_text(
        json.dumps(
            [{"id": "r", "q.responses": [], "q.responses.users": [], "q.suggestion": "a", "q.suggestion.score": score}]
        )
    )
    refuse(read_project, path, "the score of the suggestion 'q' of record 1")


@pytest.mark.parametrize("entities", [5, "x", True, {"a": 1}, 1.5])
def test_entities_of_doccano(tmp_path: Path, entities: Any) -> None:
    record = {"id": 1, "text": "Hi", "cats": ["x"], "entities": []}
    path = tmp_path / "export"
    path.mkdir()
    (path / "ann.jsonl").write_text(json.dumps(record) + "\n" + json.dumps(record | {"entities": entities}) + "\n")
    refuse(lambda path: read_project(path, "doccano"), path, r"'entities' of line 2 of ann\.jsonl should be a list")


def test_numbers_beside_text(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    rows = [{"id": "a", "annotators": ["u"], "labels": [0.5]}, {"id": "b", "annotators": ["u"], "labels": ["good"]}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    refuse(read_project, path, "the answers to 'labels' are numbers, but one to the task 'b' is 'good'")


# ---------------------------------------------------------------------- folders


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A dataset folder with votes."""
    (tmp_path / "pets").mkdir()
    parquet(tmp_path / "pets/annotations.parquet", {"task": ["a", "b"], "worker": ["x", "y"], "label": ["p", "q"]})
    return tmp_path / "pets"


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        (DEPTH, r"meta\.json: it is JSON with too many nested levels"),
        (f'{{"classes": {DIGITS}}}', r"meta\.json: it holds an integer of thousands of digits"),
        ("[]", r"meta\.json should hold an object"),
        ('{"classes": "pq"}', r"'classes' in meta\.json should be a list of texts or whole numbers"),
        ('{"classes": true}', r"'classes' in meta\.json"),
        ('{"classes": [["p"], "q"]}', r"'classes' in meta\.json"),
        ('{"classes": {"p": 1}}', r"'classes' in meta\.json"),
        ('{"duplicates": "often"}', r"'duplicates' in meta\.json should be one of error, first"),
        ('{"duplicates": ["keep"]}', r"'duplicates' in meta\.json should be one of error, first"),
    ],
)
def test_descriptions_of_datasets(folder: Path, meta: str, message: str) -> None:
    (folder / "meta.json").write_text(meta)
    refuse(wc.load_dataset, folder, message)


@pytest.mark.parametrize("name", ["tasks", "workers", "truth", "texts", "features", "annotations"])
@pytest.mark.parametrize("content", [b"", b"PAR1", b"no Parquet", b"PAR1" + bytes(100) + b"PAR1"])
def test_damaged_tables_of_datasets(folder: Path, name: str, content: bytes) -> None:
    (folder / f"{name}.parquet").write_bytes(content)
    refuse(wc.load_dataset, folder, rf"{name}\.parquet: it cannot be read as Parquet")


def test_other_columns_in_datasets(folder: Path) -> None:
    parquet(folder / "tasks.parquet", {"id": ["a", "b"]})
    refuse(wc.load_dataset, folder, r"tasks\.parquet: there is no column 'task'")
    parquet(folder / "tasks.parquet", {"task": [["a"], ["b"]]})
    refuse(wc.load_dataset, folder, r"tasks\.parquet: the task column holds list")


@pytest.mark.parametrize("count", [{}, "many", -1, True, 1.5, 2**70, None])
def test_counts_of_datasets_are_listed_if_they_are_counts(
    folder: Path, count: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "meta.json").write_text(json.dumps({"n_tasks": count, "n_votes": 2}))
    monkeypatch.setenv("WISECROWD_DATA", str(folder.parent))
    row = list_datasets().loc["pets"]
    assert row["votes"] == 2
    assert pd.isna(row["tasks"])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("answers.json", DEPTH, "too many nested levels"),
        ("answers.json", '{"0": {"0": ' + DIGITS + "}}", "thousands of digits"),
        ("answers.json", '{"0": {"0": 1e400}}', "fractional|missing|infinite|cannot|no label|as a float"),
        ("answers.json", '{"0": {"0": [1]}}', "label column holds list"),
        ("answers.json", '{"0": {"0": 18446744073709551616}}', "mixes types"),
        ("answers.json", '{"0": [1]}', "should look like"),
        ("answers.txt", f"0 {DIGITS}\n", "line 1 is .*expected integers"),
        ("answers.txt", "0 1\n0\n", "line 2 is '0'; expected 2 integers"),
        ("answers.txt", "0 1\n" * 3 + "0 1.5\n", r"line 4 is '0 1\.5'"),
    ],
)
def test_answers_of_peerannot(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        wc.read(tmp_path, format="peerannot")
    assert len(str(caught.value)) < 1000


def test_ids_of_peerannot_may_be_long(tmp_path: Path) -> None:
    (tmp_path / "answers.json").write_text(json.dumps({DIGITS: {"0": 1}}))
    assert wc.read(tmp_path).tasks.tolist() == [DIGITS]


@pytest.mark.parametrize("key", ["n_task", "n_classes"])
def test_counts_of_peerannot(tmp_path: Path, key: str) -> None:
    (tmp_path / "answers.json").write_text('{"0": {"0": 1}, "1": {"0": 0}}')
    for count in (400_000_000, 2**70):
        (tmp_path / "metadata.json").write_text(json.dumps({key: count}))
        with pytest.raises(InputError, match=r"metadata\.json declares .*, too much for a file of"):
            wc.read(tmp_path)
    (tmp_path / "metadata.json").write_text(json.dumps({key: True}))
    assert wc.read(tmp_path).shape == (2, 1)


@pytest.mark.parametrize("array", [np.array(["2024"], dtype="M8[D]"), np.array([b"a"]), np.array([{}], dtype=object)])
def test_truth_of_peerannot(tmp_path: Path, array: Any) -> None:
    (tmp_path / "answers.json").write_text('{"0": {"0": 1}}')
    (tmp_path / "ground_truth.npy").write_bytes(npy(array))
    with pytest.raises(InputError, match=r"ground_truth\.npy holds"):
        wc.read_truth(tmp_path)


def test_dates_that_are_ids(tmp_path: Path) -> None:
    days = [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]
    path = parquet(tmp_path / "votes.parquet", {"task": days, "worker": ["x", "y"], "label": ["p", "q"]})
    assert wc.read(path).n_tasks == 2
