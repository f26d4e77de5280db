from __future__ import annotations

import json
from pathlib import Path
from typing import Any


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
    assert "one question and no more" in result.stderr
    result = run("questions", votes, "--format", "mturk")
    assert result.exit_code == 1
    assert "HITId, WorkerId and Answer" in result.stderr


def test_what_an_export_does_not_tell_is_noted(run: Any) -> None:
    recorded = Path(__file__).parent.parent / "recorded" / "argilla"
    assert "Note" in run("questions", recorded / "before.json").stdout
    assert "Note" not in run("questions", recorded / "before.parquet").stdout
