from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

import wisecrowd as wc
from wisecrowd.io import read_project

KEY = "a secret of more than sixteen bytes"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Export of Label Studio with one question, twelve tasks and three people; one person has no answer to three tasks."""

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
    question = read_project(tmp_path / "predictions.json").get_question()
    assert question.consensus is not None
    assert question.consensus["label"].to_dict() == wc.read_truth(tmp_path / "results" / "labels.csv").to_dict()
    task = json.loads((tmp_path / "predictions.json").read_text())[0]
    assert task["predictions"][0]["model_version"] == "wisecrowd model-average"


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
        dict.fromkeys(line.split(",")[0] for line in (tmp_path / "next" / "requests.csv").read_text().splitlines()[1:])
    )
    assert [task["data"]["wisecrowd_task"] for task in tasks] == wanted
    assert [task["data"]["wisecrowd_priority"] for task in tasks] == list(range(1, len(wanted) + 1))


def test_a_release_hides_the_workers(run: Any, votes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("aggregate", votes, "--proba", "-o", "results").exit_code == 0
    words = ("export", "results", "--to", "hugging-face", "--project", votes, "-o", "release.parquet")
    monkeypatch.delenv("WISECROWD_KEY", raising=False)
    refused = run(*words)
    assert refused.exit_code == 2
    assert "there is no key for the pseudonyms of workers" in refused.stderr
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
    assert wc.read(tmp_path / "release.jsonl").n_votes == 33


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
        (("mine.csv", "-o", "export.json"), 2, "is an input file and would be overwritten; choose another file"),
        (
            ("mine.csv", "-o", "there.json"),
            2,
            "there.json exists; choose another file with -o, or overwrite it with --force",
        ),
        (("mine.csv", "-o", "."), 2, "is a folder; -o takes a file"),
        (
            ("mine.csv", "--to", "argilla", "-o", "p.json"),
            2,
            "is an export of label-studio, not of argilla",
        ),
        (
            ("mine.csv", "--to", "excel", "-o", "p.json"),
            2,
            "--to must be one of label-studio, label-studio-min, argilla, doccano, prodigy, cvat, coco, hugging-face; got 'excel'",
        ),
        (
            ("mine.csv", "--queue", "--to", "hugging-face", "-o", "p.json"),
            2,
            "--queue writes tasks for a labelling tool",
        ),
        (("mine.csv", "--question", "moods", "-o", "p.json"), 2, "Did you mean 'mood'"),
        (("other.csv", "-o", "p.json"), 1, "1 task is not in the project: '99'"),
        (("empty.csv", "--queue", "-o", "p.json"), 1, "empty.csv: the file contains no tasks"),
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
    consensus = read_project(tmp_path / "p.json").get_question("mood").consensus
    assert consensus is not None
    assert consensus["label"].to_dict() == {"0": "bad", "1": "good", "2": "good"}
    result = run("aggregate", "export.json", "--question", "mood", "--gold", "export.json")
    assert "3 tasks with known truth used in the fit" in result.stdout
    result = run("aggregate", "export.json", "--question", "tags=b", "-m", "majority-vote", "--score", "export.json")
    assert "accuracy 0.0%" in result.stdout
    assert run("check", "export.json", "--question", "tags").exit_code == 0


def test_answers_to_one_question_are_not_written_under_another(run: Any, project: Path, tmp_path: Path) -> None:
    assert run("aggregate", project, "--question", "mood", "-o", tmp_path / "results").exit_code == 0
    done = run("export", tmp_path / "results", "--project", project, "--question", "topics", "-o", tmp_path / "p.json")
    assert done.exit_code != 0
    assert "has answers to 'mood', not to 'topics'" in done.stderr
    assert not (tmp_path / "p.json").exists()


# ---------------------------------------------------------------------- results and votes belong together


@pytest.fixture
def with_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WISECROWD_KEY", KEY)


@pytest.fixture
def two_questions(tmp_path: Path) -> Path:
    """An export of Label Studio with a mood, stars and topics: six tasks, three people."""

    def result(name: str, kind: str, key: str, value: Any) -> dict[str, Any]:
        return {"from_name": name, "to_name": "text", "type": kind, "value": {key: value}}

    def annotation(number: int, who: int) -> dict[str, Any]:
        mood = result("mood", "choices", "choices", ["good" if number % 2 else "bad"])
        stars = result("stars", "rating", "rating", 4 + (who == 3))
        topics = result("topics", "choices", "choices", ["food", "price"] if who < 3 else ["price"])
        return {"completed_by": who, "result": [mood, stars, topics]}

    tasks = [
        {"id": number, "data": {}, "annotations": [annotation(number, who) for who in (1, 2, 3)]} for number in range(6)
    ]
    path = tmp_path / "two.json"
    path.write_text(json.dumps(tasks))
    return path


@pytest.mark.usefixtures("with_key")
def test_a_release_has_answers_to_its_own_question(run: Any, two_questions: Path, tmp_path: Path) -> None:
    assert run("aggregate", two_questions, "--question", "mood", "-o", "results").exit_code == 0
    words = ("export", "results", "--to", "hugging-face", "--project", two_questions, "-o", "v.jsonl")
    refused = run(*words, "--question", "stars")
    assert refused.exit_code == 2
    assert "has answers to 'mood', not to 'stars'" in refused.stderr
    assert not (tmp_path / "v.jsonl").exists()
    assert run(*words).exit_code == 0


@pytest.mark.usefixtures("with_key")
def test_numbers_are_released_as_numbers(run: Any, two_questions: Path, tmp_path: Path) -> None:
    words = ("--question", "stars", "--numeric", "-m", "mean", "-o", "results")
    assert run("aggregate", two_questions, *words).exit_code == 0
    result = run("export", "results", "--to", "hugging-face", "--project", two_questions, "-o", "v.jsonl")
    assert result.exit_code == 0, result.stderr
    row = json.loads((tmp_path / "v.jsonl").read_text().splitlines()[0])
    assert sorted(row["labels"]) == [4, 4, 5]
    assert row["label"] == pytest.approx(13 / 3)


@pytest.mark.usefixtures("with_key")
def test_what_an_earlier_run_left_is_not_released(run: Any, votes: Path) -> None:
    assert run("aggregate", votes, "--proba", "-o", "results").exit_code == 0
    assert run("aggregate", votes, "-m", "majority-vote", "-o", "results").exit_code == 0
    result = run("export", "results", "--to", "hugging-face", "--project", votes, "-o", "v.jsonl", "--json")
    assert result.exit_code == 0, result.stderr
    assert "posterior.csv is ignored" in result.stderr
    assert json.loads(result.stdout)["soft_labels"] == "votes"


def test_answers_that_an_earlier_run_left_are_not_taken_for_these(run: Any, project: Path, tmp_path: Path) -> None:
    assert run("aggregate", project, "-o", "results").exit_code == 0
    assert run("plan", project, "--budget", 2, "--target", 1, "-o", "results").exit_code == 0
    refused = run("export", "results", "--project", project, "-o", "p.json")
    assert refused.exit_code == 1
    assert "was left by an earlier run" in refused.stderr
    assert "did you mean --queue?" in refused.stderr
    assert run("export", "results/labels.csv", "--project", project, "-o", "p.json").exit_code == 0
    assert json.loads((tmp_path / "p.json").read_text())[0]["predictions"][0]["model_version"] == "wisecrowd"
    (tmp_path / "results" / "run.json").write_text("{")  # then nothing is known of the files
    assert run("export", "results", "--project", project, "-o", "q.json").exit_code == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text + "t99,ann,cat\n", "the answers are to 48 votes of 4 workers, and 49 votes of 4 workers"),
        (
            lambda text: text.replace("t00,", "t98,"),
            "but they are not the same; give the votes that results were made from",
        ),
    ],
)
@pytest.mark.usefixtures("with_key")
def test_results_of_other_votes_are_not_released(
    run: Any, votes: Path, tmp_path: Path, change: Any, message: str
) -> None:
    assert run("aggregate", votes, "-o", "results").exit_code == 0
    text = votes.read_text()
    assert change(text) != text
    votes.write_text(change(text))
    refused = run("export", "results", "--to", "hugging-face", "--project", votes, "-o", "v.jsonl")
    assert refused.exit_code == 1
    assert message in refused.stderr
    assert not (tmp_path / "v.jsonl").exists()


@pytest.mark.usefixtures("with_key")
def test_a_table_of_answers_to_other_tasks_is_not_released(run: Any, votes: Path, tmp_path: Path) -> None:
    words = ("export", "mine.csv", "--to", "hugging-face", "--project", votes, "-o", "v.jsonl")
    (tmp_path / "mine.csv").write_text("task,label\nnowhere,cat\n")
    refused = run(*words)
    assert refused.exit_code == 1
    assert "1 answer to tasks that have no votes ('nowhere')" in refused.stderr
    task = wc.read(votes).tasks[0]
    (tmp_path / "mine.csv").write_text(f"task,label\n{task},cat\n")
    result = run(*words)
    assert result.exit_code == 0, result.stderr
    assert "have no answer in mine.csv" in result.stderr


@pytest.mark.usefixtures("with_key")
def test_votes_are_read_as_they_were_for_the_results(run: Any, tmp_path: Path) -> None:
    rows = [
        f"{number},{who},{'yes' if number % 2 else 'no'}" for number in range(6) for who in ("ann", "bob", "cy", "cy")
    ]
    (tmp_path / "odd.csv").write_text("\n".join(["what,wer,ja", *rows]) + "\n")
    named = ("--task", "what", "--worker", "wer", "--label", "ja", "--duplicates", "first")
    assert run("aggregate", "odd.csv", *named, "-o", "results").exit_code == 0
    result = run("export", "results", "--to", "hugging-face", "--project", "odd.csv", "-o", "v.jsonl")
    assert result.exit_code == 0, result.stderr
    assert "18 votes on 6 tasks, 3 workers" in result.stdout
    # The same votes in another form.
    wc.write(
        wc.read(tmp_path / "odd.csv", task="what", worker="wer", label="ja", duplicates="first"),
        tmp_path / "odd.parquet",
    )
    assert run("aggregate", "odd.parquet", "-o", "again").exit_code == 0
    wc.write(wc.read(tmp_path / "odd.parquet"), tmp_path / "plain.csv")
    result = run("export", "again", "--to", "hugging-face", "--project", "plain.csv", "-o", "w.jsonl")
    assert result.exit_code == 0, result.stderr
    other = run(
        "export", "results", "--to", "hugging-face", "--project", "odd.csv", "--duplicates", "keep", "-o", "x.jsonl"
    )
    assert other.exit_code == 1
    assert "do not belong together" in other.stderr


@pytest.mark.usefixtures("with_key")
def test_results_for_a_spreadsheet_are_what_they_were(run: Any, tmp_path: Path) -> None:
    labels = ("+good", "-1", "'=bad", "meh")
    rows = [f"=t{number},{who},{labels[number % 4]}" for number in range(8) for who in ("ann", "bob", "cy")]
    (tmp_path / "odd.csv").write_text("\n".join(["task,worker,label", *rows]) + "\n")
    assert run("aggregate", "odd.csv", "--proba", "--spreadsheet", "-o", "results").exit_code == 0
    assert "'=t0,'+good" in (tmp_path / "results" / "labels.csv").read_text()
    result = run("export", "results", "--to", "hugging-face", "--project", "odd.csv", "-o", "v.jsonl")
    assert result.exit_code == 0, result.stderr
    told = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    assert {row["task"]: row["label"] for row in told} == {f"=t{number}": labels[number % 4] for number in range(8)}
    assert set(told[0]["soft_label"]) == set(labels)


def test_a_plan_and_answers_are_told_apart(run: Any, project: Path, tmp_path: Path) -> None:
    assert run("aggregate", project, "-o", "results").exit_code == 0
    assert run("plan", project, "--budget", 2, "--target", 1, "-o", "next").exit_code == 0
    words = ("--project", project, "-o", "p.json")
    assert (
        "There is requests.csv, written by wisecrowd plan; did you mean --queue?"
        in run("export", "next", *words).stderr
    )
    assert "did you mean --queue?" in run("export", "next/requests.csv", *words).stderr
    assert "There are labels; leave --queue out to export them" in run("export", "results", "--queue", *words).stderr
    assert not (tmp_path / "p.json").exists()


def test_answers_to_one_option_are_released_but_do_not_go_back(run: Any, two_questions: Path, tmp_path: Path) -> None:
    assert run("aggregate", two_questions, "--question", "topics=food", "-o", "results").exit_code == 0
    words = ("export", "results", "--project", two_questions, "-o", "p.json")
    refused = run(*words)
    assert refused.exit_code == 2
    assert "'topics=food' is one option of 'topics'" in refused.stderr
    refused = run(*words, "--question", "topics")
    assert refused.exit_code == 2
    assert "aggregate with --question topics first" in refused.stderr
    (tmp_path / "key").write_text(KEY)
    words = (*words[:-1], "v.jsonl", "--to", "hugging-face", "--key-file", "key")
    assert run(*words).exit_code == 0
    assert set(json.loads((tmp_path / "v.jsonl").read_text().splitlines()[0])["labels"]) == {"yes", "no"}


def test_fields_and_metadata_of_argilla(run: Any, tmp_path: Path) -> None:
    recorded = Path(__file__).parent.parent / "recorded" / "argilla"
    (tmp_path / "mine.csv").write_text("task,label\nr0,good\n")
    words = ("export", "mine.csv", "--question", "mood", "-o", "p.json", "--force", "--project")
    assert "does not distinguish metadata from fields" in run(*words, recorded / "before.parquet").stderr
    assert "metadata" not in run(*words, recorded / "before.json").stderr


@pytest.mark.usefixtures("with_key")
def test_votes_that_cannot_be_released(run: Any, votes: Path, tmp_path: Path) -> None:
    words = ("--to", "hugging-face", "--project", votes, "-o", "v.jsonl")
    assert run("aggregate", votes, "-m", "majority-vote", "--no-workers", "-o", "results").exit_code == 0
    assert "results was made with --no-workers" in run("export", "results", *words).stderr
    (tmp_path / "mine.csv").write_text("task,label\nt00,cat\n")
    votes.write_text(votes.read_text().replace("task,worker,label", "t,w,l"))
    assert (
        "wisecrowd export reads the columns as the results record them: run wisecrowd aggregate"
        in run("export", "mine.csv", *words).stderr
    )


def test_label_sets_are_inferred_and_written_back(run: Any, two_questions: Path, tmp_path: Path) -> None:
    done = run("aggregate", two_questions, "--question", "topics", "-o", "sets")
    assert done.exit_code == 0, done.output
    assert "sets of labels (question topics)" in done.stdout
    written = run("export", "sets", "--project", two_questions, "-o", "predictions.json")
    assert written.exit_code == 0, written.output
    tasks = json.loads((tmp_path / "predictions.json").read_text())
    assert len(tasks) == 6
    prediction = tasks[0]["predictions"][0]
    assert prediction["model_version"] == "wisecrowd label-set-mixture"
    assert prediction["result"][0]["from_name"] == "topics"
    assert set(prediction["result"][0]["value"]["choices"]) <= {"food", "price"}


def test_sets_are_classes_for_methods_that_take_classes(run: Any, two_questions: Path) -> None:
    done = run("aggregate", two_questions, "--question", "topics", "-m", "majority-vote")
    assert done.exit_code == 0, done.output
    assert "food|price" in done.stdout


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    """Export of Label Studio with spans and texts of three people on four tasks."""

    def annotation(who: int, number: int) -> dict[str, Any]:
        span = {"start": 0, "end": 3 + (who == 3), "labels": ["PER"]}
        text = {"text": ["a cat" if who < 3 else "a cap"]}
        results = [
            {"from_name": "names", "to_name": "text", "type": "labels", "value": span},
            {"from_name": "note", "to_name": "text", "type": "textarea", "value": text},
        ]
        return {"completed_by": who, "result": results[1:] if number == 3 else results}

    tasks = [
        {"id": number, "data": {"text": "Ann left."}, "annotations": [annotation(who, number) for who in (1, 2, 3)]}
        for number in range(4)
    ]
    path = tmp_path / "marks.json"
    path.write_text(json.dumps(tasks))
    return path


def test_objects_go_back(run: Any, marks: Path, tmp_path: Path) -> None:
    assert run("aggregate", marks, "--question", "names", "-o", "results", "-q").exit_code == 0
    result = run("export", "results", "--project", marks, "-o", "predictions.json")
    assert "3 spans in 4 tasks, answers to 'names', for label-studio" in " ".join(result.stdout.split())
    question = read_project(tmp_path / "predictions.json").get_structured()
    assert question.consensus is not None
    assert question.consensus[["task", "start", "end", "label"]].to_numpy().tolist() == [
        [str(number), 0, 3, "PER"] for number in range(3)
    ]
    first, *_, last = json.loads((tmp_path / "predictions.json").read_text())
    assert first["predictions"][0]["model_version"] == "wisecrowd span-consensus"
    assert last["predictions"] == []
    result = run("export", "results", "--project", marks, "--question", "note", "-o", "x.json")
    assert "has answers to 'names', not to 'note'" in " ".join(result.stderr.split())
    result = run("export", "results", "--project", marks, "--to", "coco", "-o", "x.json")
    assert "is an export of label-studio, not of coco" in " ".join(result.stderr.split())


def test_a_table_of_objects_will_do(run: Any, marks: Path, tmp_path: Path) -> None:
    (tmp_path / "objects.csv").write_text("task,start,end,label\n2,0,3,PER\n")
    told = json.loads(
        run("export", "objects.csv", "--project", marks, "--question", "names", "-o", "p.json", "--json").stdout
    )
    assert (told["question"], told["answers"]) == ("names", 1)
    (task,) = json.loads((tmp_path / "p.json").read_text())
    assert "score" not in task["predictions"][0]


def test_texts_go_back(run: Any, marks: Path, tmp_path: Path) -> None:
    assert run("aggregate", marks, "--question", "note", "-o", "results", "-q").exit_code == 0
    assert run("export", "results", "--project", marks, "-o", "predictions.json").exit_code == 0
    consensus = read_project(tmp_path / "predictions.json").get_structured().consensus
    assert consensus is not None
    assert consensus["text"].tolist() == ["a cat"] * 4


def test_checks_that_were_filled_in_become_gold(run: Any, tmp_path: Path) -> None:
    (tmp_path / "export.json").write_bytes(
        (Path(__file__).parents[1] / "recorded/label_studio/export_json.json").read_bytes()
    )
    assert run("audit", "export.json", "--question", "mood", "--size", "3", "-o", "audit").exit_code == 0
    empty = run("export", "audit/checks.csv", "--project", "export.json", "-o", "gold.json")
    assert "no row of audit/checks.csv has a truth yet" in empty.stderr
    checks = pd.read_csv("audit/checks.csv", dtype=object)
    checks["truth"] = ["good", "bad", ""]
    checks.to_csv("audit/checks.csv", index=False)
    assert run("export", "audit/checks.csv", "--project", "export.json", "-o", "gold.json").exit_code == 0
    truth = read_project(tmp_path / "gold.json", duplicates="keep").get_question("mood").truth
    assert truth is not None
    assert truth.to_dict() == dict(zip(checks["task"][:2], ["good", "bad"], strict=True))
    other = run("export", "audit/checks.csv", "--project", "export.json", "--question", "stars", "-o", "s.json")
    assert "has answers to 'mood', not to 'stars'" in other.stderr


def test_a_table_with_the_columns_of_decisions_needs_no_journal(run: Any, project: Path, tmp_path: Path) -> None:
    table = tmp_path / "decided.csv"
    table.write_text("task,truth,reviewer,time,saw_votes,note\n3,good,ann,2026-11-18T20:00:00Z,true,\n4,,ann,,true,\n")
    result = run("export", table, "--project", project, "-o", "gold.json")
    assert result.exit_code == 0, result.output
    (task,) = json.loads(Path("gold.json").read_text())
    assert task["annotations"][0]["ground_truth"] is True
    table.write_text("task,note\n3,good\n")
    assert "no column 'label'" in run("export", table, "--project", project, "-o", "other.json").output


def test_the_export_of_another_project_is_refused(run: Any, project: Path, tmp_path: Path) -> None:
    assert run("aggregate", project, "-o", "results").exit_code == 0
    tasks = json.loads(project.read_text())
    other = tmp_path / "other.json"
    other.write_text(json.dumps([{**task, "data": {"text": f"other {task['id']}"}, "project": 77} for task in tasks]))
    refused = run("export", "results", "--project", other, "-o", "predictions.json")
    assert refused.exit_code == 1
    assert "do not belong together" in refused.output
    assert "task 0 has two different texts: 'text 0', 'other 0', and 11 further tasks" in refused.output
    newer = tmp_path / "newer.json"  # the same tasks
    newer.write_text(json.dumps(tasks))
    assert run("export", "results", "--project", newer, "-o", "predictions.json").exit_code == 0


def test_gold_of_another_project_is_refused(run: Any, project: Path, tmp_path: Path) -> None:
    tasks = json.loads(project.read_text())
    for task in tasks:
        task["annotations"] = [{**task["annotations"][0], "ground_truth": True}]
    gold = tmp_path / "gold.json"
    gold.write_text(json.dumps(tasks))
    assert run("aggregate", project, "--gold", gold).exit_code == 0
    gold.write_text(json.dumps([{**task, "data": {"text": f"other {task['id']}"}} for task in tasks]))
    commands = [
        ("aggregate", "--gold"), ("aggregate", "--score"), ("diagnose", "--gold"), ("report", "--gold"), ("report", "--score"),
        ("plan", "--budget", "5", "--gold"), ("complete", "--score"), ("review", "-o", "checked.csv", "--gold"),
    ]  # fmt: skip
    for command, *options in commands:
        refused = run(command, project, *options, gold)
        assert refused.exit_code == 1, refused.output
        assert "gold.json" in refused.output
        assert "are exports of different projects: task 0 has two different texts" in refused.output
