from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


def exported(folder: Path) -> Path:
    """An export of Label Studio with two questions, a model, and an answer that was cancelled."""

    def result(name: str, *chosen: str) -> dict[str, Any]:
        return {"from_name": name, "to_name": "text", "type": "choices", "value": {"choices": list(chosen)}}

    said = {1: ("good", "bad"), 2: ("good", "good"), 3: ("bad", "bad")}
    tasks = [
        {
            "id": number,
            "data": {"text": f"text {number}"},
            "annotations": [
                {"completed_by": who, "result": [result("mood", labels[number - 1]), result("tags", "a", "b")]}
                for who, labels in said.items()
            ],
            "predictions": [{"model_version": "bert", "score": 0.7, "result": [result("mood", "good")]}],
        }
        for number in (1, 2)
    ]
    tasks[0]["annotations"].append({"completed_by": 4, "was_cancelled": True, "result": []})  # type: ignore[attr-defined]
    path = folder / "export.json"
    path.write_text(json.dumps(tasks))
    return path


def test_questions_are_listed(run: Any, tmp_path: Path) -> None:
    result = run("questions", exported(tmp_path))
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["question", "kind", "votes", "tasks", "people", "machines", "gold"] in lines
    assert ["mood", "single", "8", "2", "3", "1", "0"] in lines
    assert ["tags", "multiple", "6", "2", "3", "0", "0"] in lines
    assert "cancelled (1)" in result.stdout
    assert "bert" in result.stdout
    assert 'question="mood"' in result.stdout


def test_the_figures_as_json(run: Any, tmp_path: Path) -> None:
    told = json.loads(run("questions", exported(tmp_path), "--json").stdout)
    assert told["format"] == "label-studio"
    assert told["questions"]["mood"]["machines"] == ["bert"]
    assert told["questions"]["tags"]["options"] == ["a", "b"]
    assert told["questions"]["tags"]["left_out"] == {"cancelled": 1}


def test_one_who_answered_twice_does_not_stop_the_list(run: Any, tmp_path: Path) -> None:
    path = exported(tmp_path)
    tasks = json.loads(path.read_text())
    tasks[0]["annotations"].append(tasks[0]["annotations"][0])
    path.write_text(json.dumps(tasks))
    assert run("questions", path).exit_code == 0


def test_what_is_no_export(run: Any, votes: Path) -> None:
    result = run("questions", votes)
    assert result.exit_code == 1
    assert "with a single question; wisecrowd.read gives its votes" in result.stderr
    result = run("questions", votes, "--format", "mturk")
    assert result.exit_code == 1
    assert "HITId, WorkerId and Answer" in result.stderr


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("cut.json", b'[{"id": 1, "data": {"te', "cut.json: it is not JSON: it ends in the middle, at byte 23; export"),
        ("none.json", b"[]", "none.json: it is empty; expected a list of tasks as a labelling tool exports them"),
        ("none.json", b"{}", "it is one JSON object, with nothing in it"),
        (
            "error.json",
            b'{"detail": "Invalid token."}',
            "it is one JSON object, whose keys are 'detail'; expected a list of tasks",
        ),
        ("wide.json", '[{"id": 1}]'.encode("utf-16"), "it is text in UTF-16; save it as UTF-8"),
        ("cut.parquet", b"PAR1 and no more", "cut.parquet: it cannot be read as Parquet"),
        ("wide.csv", "task,label".encode("utf-16"), "it is text in UTF-16; save it as UTF-8"),
        ("raw.json", b'[{"data": {}}]', "whose keys are 'data': neither votes nor a known export"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(run: Any, tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    result = run("questions", name)
    assert result.exit_code == 1
    assert message in result.stderr
    assert "with a single question; wisecrowd.read gives its votes" not in result.stderr


def test_the_line_of_python_reads_the_export(run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "unpacked"
    folder.mkdir()
    (folder / "ann.jsonl").write_text('{"id": 1, "text": "Hi", "label": ["good"]}\n')
    told = run("questions", folder).stdout
    assert "an export of doccano, with a file for each annotator" in told
    assert f'wisecrowd.read("{folder}")' in told.replace("\n", "")
    (folder / "notes.txt").write_text("not doccano's")
    assert 'format="doccano")' in run("questions", folder, "--format", "doccano").stdout


def test_what_an_export_does_not_tell_is_noted(run: Any) -> None:
    recorded = Path(__file__).parent.parent / "recorded" / "argilla"
    assert "Note" in run("questions", recorded / "before.json").stdout
    assert "Note" not in run("questions", recorded / "before.parquet").stdout


def exported_marks(folder: Path, *, box: tuple[float, float, float, float] = (10, 20, 30, 40)) -> Path:
    """An export of Label Studio with spans and boxes."""
    x, y, width, height = box
    span = {"start": 0, "end": 3, "labels": ["PER"]}
    place = {"x": x, "y": y, "width": width, "height": height, "rotation": 0, "rectanglelabels": ["cat"]}
    results = [
        {"from_name": "names", "to_name": "text", "type": "labels", "value": span},
        {"from_name": "objects", "to_name": "image", "type": "rectanglelabels", "value": place},
    ]
    annotations = [{"completed_by": 1, "result": results}, {"completed_by": 2, "result": []}]
    path = folder / "marks.json"
    path.write_text(json.dumps([{"id": 1, "data": {}, "annotations": annotations}]))
    return path


def test_questions_of_marks_are_listed(run: Any, tmp_path: Path) -> None:
    result = run("questions", exported_marks(tmp_path))
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["names", "spans", "2", "1", "2", "0", "0"] in lines
    assert ["objects", "boxes", "2", "1", "2", "0", "0"] in lines
    assert "percent of the image" in " ".join(result.stdout.split())
    assert 'wisecrowd.read_spans("' in result.stdout.replace("\n", "")


def test_a_problem_of_one_question_does_not_stop_the_list(run: Any, tmp_path: Path) -> None:
    path = exported_marks(tmp_path, box=(90, 20, 30, 40))
    told = json.loads(run("questions", path, "--json").stdout)["questions"]
    assert told["names"]["problem"] is None
    assert "1 box outside its image" in told["objects"]["problem"]
    assert (told["objects"]["marks"], told["objects"]["votes"]) == (1, 2)
    assert "Problem" in run("questions", path).stdout
