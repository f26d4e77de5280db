from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import wisecrowd as wc
from wisecrowd.io import read_project

KEY = "a secret of more than sixteen bytes"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An export of Label Studio with one question: twelve tasks, three people, one of whom left three tasks out."""

    def annotation(who: int, label: str) -> dict[str, Any]:
        result = {"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": [label]}}
        return {"completed_by": who, "result": [result]}

    tasks = [
        {
            "id": number,
            "data": {"text": f"text {number}"},
            "annotations": [
                annotation(who, "good" if (number + (who == 3 and number % 4 == 0)) % 2 else "bad")
                for who in ((1, 2, 3) if number < 9 else (1, 2))
            ],
        }
        for number in range(12)
    ]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    return path


def test_consensus_goes_back(run: Any, project: Path, tmp_path: Path) -> None:
    assert run("aggregate", project, "-o", "results").exit_code == 0
    result = run("export", "results", "--project", project, "-o", "predictions.json")
    assert result.exit_code == 0
    assert "12 answers to 'mood', for label-studio" in result.stdout
    question = read_project(tmp_path / "predictions.json").question()
    assert question.consensus is not None
    assert question.consensus["label"].to_dict() == wc.read_truth(tmp_path / "results" / "labels.csv").to_dict()
    task = json.loads((tmp_path / "predictions.json").read_text())[0]
    assert task["predictions"][0]["model_version"] == "wisecrowd dawid-skene"


def test_a_table_of_labels_will_do(run: Any, project: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("task,label\n3,good\n")
    told = json.loads(run("export", "mine.csv", "--project", project, "-o", "p.json", "--json").stdout)
    assert (told["tool"], told["question"], told["answers"]) == ("label-studio", "mood", 1)
    (task,) = json.loads((tmp_path / "p.json").read_text())
    assert "score" not in task["predictions"][0]


def test_a_plan_becomes_a_queue(run: Any, project: Path, tmp_path: Path) -> None:
    assert run("plan", project, "--budget", 2, "--target", 1, "-o", "next").exit_code == 0
    result = run("export", "next", "--queue", "--project", project, "-o", "again.json")
    assert result.exit_code == 0, result.stderr
    tasks = json.loads((tmp_path / "again.json").read_text())
    wanted = list(
        dict.fromkeys(line.split(",")[0] for line in (tmp_path / "next" / "asks.csv").read_text().splitlines()[1:])
    )
    assert [task["data"]["wisecrowd_task"] for task in tasks] == wanted
    assert [task["data"]["wisecrowd_priority"] for task in tasks] == list(range(1, len(wanted) + 1))


def test_a_release_hides_the_workers(run: Any, votes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("aggregate", votes, "--proba", "-o", "results").exit_code == 0
    words = ("export", "results", "--to", "hugging-face", "--project", votes, "-o", "release.parquet")
    monkeypatch.delenv("WISECROWD_KEY", raising=False)
    refused = run(*words)
    assert refused.exit_code == 2
    assert "only released under a key" in refused.stderr
    assert not (tmp_path / "release.parquet").exists()
    monkeypatch.setenv("WISECROWD_KEY", KEY)
    result = run(*words, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["soft_labels"] == "posterior"
    assert KEY not in result.output
    rows = pq.read_table(tmp_path / "release.parquet").to_pylist()
    assert len(rows) == 12
    assert not {"ann", "bob", "cy", "zed"} & {worker for row in rows for worker in row["workers"]}
    assert all(row["label"] == max(row["soft_label"], key=row["soft_label"].get) for row in rows)
    (tmp_path / "key").write_text(KEY + "\n")
    monkeypatch.delenv("WISECROWD_KEY")
    assert run(*words[:-1], "again.parquet", "--key-file", "key", "-q").output == ""
    assert pq.read_table(tmp_path / "again.parquet").equals(pq.read_table(tmp_path / "release.parquet"))


def test_an_export_can_be_released(run: Any, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WISECROWD_KEY", KEY)
    run("aggregate", project, "-o", "results")
    result = run("export", "results", "--to", "hugging-face", "--project", project, "-o", "release.jsonl")
    assert result.exit_code == 0, result.stderr
    assert "33 votes on 12 tasks, 3 workers under pseudonyms" in result.stdout
    assert wc.read(tmp_path / "release.jsonl").n_labels == 33


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("nowhere", "-o", "p.json"), 1, "there is no file or folder nowhere"),
        (
            (".", "-o", "p.json"),
            1,
            "there is no labels.csv or labels.parquet in ., as wisecrowd aggregate -o writes it",
        ),
        ((".", "--queue", "-o", "p.json"), 1, "as wisecrowd plan -o writes it"),
        (("mine.csv", "-o", "export.json"), 2, "which is read; choose another file"),
        (
            ("mine.csv", "-o", "there.json"),
            2,
            "there.json exists; choose another file with -o, or overwrite it with --force",
        ),
        (("mine.csv", "-o", "."), 2, "is a folder; -o takes a file"),
        (
            ("mine.csv", "--to", "argilla", "-o", "p.json"),
            2,
            "is of label-studio, and its tasks cannot be written for argilla",
        ),
        (("mine.csv", "--to", "excel", "-o", "p.json"), 2, "nothing is written for 'excel'; there are label-studio"),
        (("mine.csv", "--queue", "--to", "hugging-face", "-o", "p.json"), 2, "a queue is for a labelling tool"),
        (("mine.csv", "--question", "moods", "-o", "p.json"), 2, "Did you mean 'mood'"),
        (("other.csv", "-o", "p.json"), 1, "1 task is not in the project: '99'"),
        (("empty.csv", "--queue", "-o", "p.json"), 1, "empty.csv: there are no tasks in it"),
    ],
)
def test_what_goes_wrong(
    run: Any, project: Path, tmp_path: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    (tmp_path / "mine.csv").write_text("task,label\n3,good\n")
    (tmp_path / "other.csv").write_text("task,label\n99,good\n")
    (tmp_path / "empty.csv").write_text("task,label\n")
    (tmp_path / "there.json").write_text("{}")
    result = run("export", *words, "--project", project)
    assert result.exit_code == code
    assert message in result.stderr
    assert not (tmp_path / "p.json").exists()
    assert (tmp_path / "there.json").read_text() == "{}"


def test_force_overwrites(run: Any, project: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("task,label\n3,good\n")
    (tmp_path / "there.json").write_text("{}")
    assert run("export", "mine.csv", "--project", project, "-o", "there.json", "--force").exit_code == 0
    assert json.loads((tmp_path / "there.json").read_text())[0]["id"] == 3


def test_one_of_several_questions(run: Any, tmp_path: Path) -> None:
    def said(name: str, *chosen: str) -> dict[str, Any]:
        return {"from_name": name, "to_name": "text", "type": "choices", "value": {"choices": list(chosen)}}

    def annotations(number: int) -> list[dict[str, Any]]:
        mood = said("mood", "good" if number else "bad")
        gold = [{"completed_by": 9, "ground_truth": True, "result": [mood, said("tags", "a")]}]
        return [{"completed_by": who, "result": [mood, said("tags", "a", "b")]} for who in (1, 2, 3)] + gold

    tasks = [{"id": number, "data": {}, "annotations": annotations(number)} for number in range(3)]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    assert run("aggregate", "export.json").exit_code == 2
    result = run("aggregate", "export.json", "--question", "mood", "--score", "export.json", "-o", "results")
    assert result.exit_code == 0, result.stderr
    assert "accuracy 100.0%" in result.stdout
    # The record of the run knows which question it was.
    assert run("export", "results", "--project", "export.json", "-o", "p.json").exit_code == 0
    consensus = read_project(tmp_path / "p.json").question("mood").consensus
    assert consensus is not None
    assert consensus["label"].to_dict() == {"0": "bad", "1": "good", "2": "good"}
    result = run("aggregate", "export.json", "--question", "tags=b", "-m", "majority-vote", "--score", "export.json")
    assert "accuracy 0.0%" in result.stdout
    assert run("check", "export.json", "--question", "tags").exit_code == 0


def test_answers_to_one_question_are_not_written_under_another(run: Any, project: Path, tmp_path: Path) -> None:
    assert run("aggregate", project, "--question", "mood", "-o", tmp_path / "results").exit_code == 0
    done = run("export", tmp_path / "results", "--project", project, "--question", "topics", "-o", tmp_path / "p.json")
    assert done.exit_code != 0
    assert "has answers to 'mood', not to 'topics'" in done.stderr
    assert not (tmp_path / "p.json").exists()
