from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from wisecrowd.errors import InputError
from wisecrowd.io.evaluations.evaluation_log import read_evaluation_log
from wisecrowd.io.evaluations.inspect_log import detect


@pytest.fixture
def document(recorded: Path) -> dict[str, Any]:
    log: dict[str, Any] = json.loads((recorded / "log.json").read_text())
    return log


@pytest.mark.parametrize("name", ["log.eval", "log.json"])
def test_real_logs(recorded: Path, name: str) -> None:
    log = read_evaluation_log(recorded / name)
    assert log.format == "inspect"
    assert log.scores["system"].unique().tolist() == ["mockllm/model"]
    assert log.scores["judge"].unique().tolist() == ["includes", "quality/fluency", "quality/truth"]
    assert sorted(log.scores["task"].unique()) == ["q0#1", "q0#2", "q1#1", "q1#2", "q2#1", "q2#2"]
    assert sorted(log.scores["cluster"].unique()) == ["q0", "q1", "q2"]
    by_judge = log.scores.groupby("judge")["score"].mean()
    assert by_judge.to_dict() == pytest.approx({"includes": 2 / 3, "quality/fluency": 7, "quality/truth": 2 / 3})


def test_both_forms_hold_the_same_scores(recorded: Path) -> None:
    key = ["task", "judge"]
    one, other = (read_evaluation_log(recorded / f"log.{form}").scores.sort_values(key) for form in ("eval", "json"))
    assert one["score"].tolist() == other["score"].tolist()


def test_epochs_are_named_only_if_there_are_several(document: dict[str, Any], tmp_path: Path) -> None:
    document["samples"] = [sample for sample in document["samples"] if sample["epoch"] == 1]
    (tmp_path / "log.json").write_text(json.dumps(document))
    assert read_evaluation_log(tmp_path / "log.json").scores["task"].unique().tolist() == ["q0", "q1", "q2"]


def test_unfinished_runs_are_read_with_a_note(document: dict[str, Any], tmp_path: Path) -> None:
    document["status"] = "error"
    document["samples"][0]["scores"] = {}
    document["samples"][1]["scores"] = {"words": {"value": "a text"}, "list": {"value": [1, 0]}}
    (tmp_path / "log.json").write_text(json.dumps(document))
    log = read_evaluation_log(tmp_path / "log.json")
    assert any("status 'error'" in note for note in log.notes)
    assert any("1 sample without scores" in note for note in log.notes)
    assert any("no numbers" in note for note in log.notes)
    assert {"list/0", "list/1"} <= set(log.scores["judge"])


def write_zip(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def test_interrupted_archives_have_the_journal(tmp_path: Path) -> None:
    sample = json.dumps({"id": 1, "epoch": 1, "scores": {"match": {"value": "C"}}})
    start = json.dumps({"version": 2, "eval": {"model": "m"}})
    path = write_zip(tmp_path / "log.eval", {"_journal/start.json": start, "samples/1_epoch_1.json": sample})
    assert read_evaluation_log(path).scores["score"].tolist() == [1.0]
    other = write_zip(tmp_path / "log.zip", {"header.json": start, "samples/1_epoch_1.json": sample})
    assert detect(other)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"readme.txt": "x"}, "no header.json"),
        ({"header.json": "{}"}, "no samples"),
        ({"header.json": "{", "samples/1.json": "{}"}, "header.json is not JSON"),
        ({"header.json": "{}", "samples/1.json": "{}"}, "eval"),
        ({"header.json": "[]", "samples/1.json": "{}"}, "not objects"),
        ({"header.json": '{"eval": {}}', "samples/1.json": '{"id": 1}'}, "inspect score"),
    ],
)
def test_broken_archives_are_refused_with_advice(tmp_path: Path, files: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_evaluation_log(write_zip(tmp_path / "log.eval", files))


def test_cut_off_logs_are_refused(recorded: Path, tmp_path: Path) -> None:
    content = (recorded / "log.eval").read_bytes()
    (tmp_path / "cut.eval").write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match="damaged or cut off"):
        read_evaluation_log(tmp_path / "cut.eval")
    (tmp_path / "text.eval").write_text("not a zip")
    with pytest.raises(InputError, match="no zip file"):
        read_evaluation_log(tmp_path / "text.eval")
    text = (recorded / "log.json").read_text()
    (tmp_path / "cut.json").write_text(text[: len(text) // 2])
    with pytest.raises(InputError, match="not JSON"):
        read_evaluation_log(tmp_path / "cut.json", format="inspect")


def test_damaged_zstandard_is_refused(recorded: Path, tmp_path: Path) -> None:
    content = bytearray((recorded / "log.eval").read_bytes())
    with zipfile.ZipFile(recorded / "log.eval") as archive:
        sample = next(info for info in archive.infolist() if info.filename.startswith("samples/"))
    middle = sample.header_offset + sample.compress_size // 2
    content[middle : middle + 20] = bytes(20)
    (tmp_path / "bad.eval").write_bytes(bytes(content))
    with pytest.raises(InputError):
        read_evaluation_log(tmp_path / "bad.eval")
