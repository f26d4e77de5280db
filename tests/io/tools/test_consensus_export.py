"""Answers go back into the tool, are known again, and are no votes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError, UsageError
from wisecrowd.io import Project, read_project
from wisecrowd.io.tools.consensus_export import find_export_warnings, write_answers, write_queue
from wisecrowd.io.tools.label_studio import parse_tasks
from wisecrowd.io.tools.projects import build_project

BACK = ["label-studio", "argilla", "argilla-parquet", "doccano", "prodigy"]


def fitted(crowd: wc.Crowd) -> pd.DataFrame:
    model = wc.MajorityVote().fit(crowd)
    return model.labels_.to_frame("label").assign(confidence=model.posterior_.max(axis=1))


def records(path: Path) -> list[dict[str, Any]]:
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines()]


def questions(project: Project) -> list[str]:
    return [name for name, question in project.questions.items() if question.crowd.n_votes]


@pytest.mark.parametrize("name", BACK)
def test_answers_are_read_again_as_they_were(export: Any, tmp_path: Path, name: str) -> None:
    project = read_project(export(name))
    for question in questions(project):
        answers = fitted(project.questions[question].crowd)
        path = tmp_path / ("back.json" if name.startswith(("label", "arg")) else "back.jsonl")
        write_answers(answers, project, path, question=question, model="majority-vote")
        again = read_project(path).get_question(question)
        assert again.consensus is not None
        assert again.consensus["label"].to_dict() == answers["label"].to_dict()
        assert again.consensus["confidence"].to_dict() == pytest.approx(answers["confidence"].round(6).to_dict())
        assert again.crowd.n_votes == 0  # an echo is no vote
        assert read_project(path).format == project.format


def test_label_studio_gets_predictions(export: Any, tmp_path: Path) -> None:
    project = read_project(export("label-studio"))
    answers = pd.DataFrame({"label": ["good"], "confidence": [0.75]}, index=["11"])
    write_answers(answers, project, tmp_path / "predictions.json", question="mood", model="dawid-skene")
    (task,) = records(tmp_path / "predictions.json")
    assert set(task) == {"id", "data", "predictions"}
    assert (task["id"], task["data"]) == (11, {"text": "Lovely!"})
    (prediction,) = task["predictions"]
    assert (prediction["model_version"], prediction["score"]) == ("wisecrowd dawid-skene", 0.75)
    (result,) = prediction["result"]
    assert result.pop("id")
    assert result == {"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": ["good"]}}


def test_label_studio_gets_several_choices_ratings_and_numbers(tmp_path: Path, making: Any) -> None:
    def result(name: str, kind: str, value: dict[str, Any]) -> dict[str, Any]:
        return {"from_name": name, "to_name": "text", "type": kind, "value": value}

    annotation = making.annotation(
        1,
        making.choice("topics", "a", "b|c"),
        result("stars", "rating", {"rating": 4}),
        result("price", "number", {"number": 2.5}),
        result("better", "pairwise", {"selected": "left"}),
    )
    path = tmp_path / "export.json"
    path.write_text(json.dumps([{"id": 1, "data": {}, "annotations": [annotation]}]))
    project = read_project(path)
    values = {}
    for name, question in project.questions.items():
        model = wc.Median() if question.kind == "number" else wc.MajorityVote()
        write_answers(model.fit(question.crowd).labels_, project, tmp_path / "p.json", question=name)
        (prediction,) = records(tmp_path / "p.json")[0]["predictions"]
        assert "score" not in prediction
        assert prediction["model_version"] == "wisecrowd"
        values[name] = prediction["result"][0]["value"]
        assert read_project(tmp_path / "p.json").get_question(name).kind == question.kind
    assert values == {
        "topics": {"choices": ["a", "b|c"]}, "stars": {"rating": 4}, "price": {"number": 2.5}, "better": {"selected": "left"},
    }  # fmt: skip


def test_argilla_gets_suggestions(export: Any, tmp_path: Path) -> None:
    project = read_project(export("argilla"))
    for question, label, value, score in (
        ("mood", "good", "good", 0.75), ("stars", "4", 4, 0.75), ("topics", "food|price", ["food", "price"], [0.75, 0.75]),
    ):  # fmt: skip
        answers = pd.DataFrame({"label": [label], "confidence": [0.75]}, index=["r1"])
        write_answers(answers, project, tmp_path / "back.json", question=question, model="glad")
        (record,) = records(tmp_path / "back.json")
        assert record["suggestions"] == {question: {"value": value, "score": score, "agent": "wisecrowd glad"}}
        assert (record["id"], record["fields"], record["metadata"]) == ("r1", {"text": "Lovely!"}, {"page": 3})
        assert record["responses"] == {}


def test_prodigy_gets_options_that_are_chosen(tmp_path: Path, making: Any) -> None:
    options = [{"id": 1, "text": "Good"}, {"id": 0, "text": "Bad"}]
    path = tmp_path / "answers.jsonl"
    path.write_bytes(making.lines([making.example("a", 5, "ann", "accept") | {"accept": [1], "options": options}]))
    project = read_project(path)
    write_answers(fitted(project.get_question().crowd), project, tmp_path / "back.jsonl")
    (record,) = records(tmp_path / "back.jsonl")
    assert record["accept"] == [1]  # a number, as the options have it
    assert "answer" not in record
    assert "_task_hash" not in record
    assert (record["text"], record["_input_hash"], record["options"]) == ("a", 5, options)


def test_prodigy_accepts_and_rejects(tmp_path: Path, making: Any) -> None:
    path = tmp_path / "answers.jsonl"
    record = {"text": "a", "_input_hash": 1, "label": "SPORT", "answer": "reject", "_session_id": "x-ann"}
    path.write_bytes(making.lines([record]))
    project = read_project(path)
    write_answers(fitted(project.get_question().crowd), project, tmp_path / "back.jsonl")
    assert records(tmp_path / "back.jsonl")[0]["wisecrowd_label"] == "reject"
    again = read_project(tmp_path / "back.jsonl").get_question("SPORT")
    assert again.consensus is not None
    assert again.consensus["label"].to_dict() == {"1": "reject"}


def test_doccano_gets_labels(export: Any, tmp_path: Path) -> None:
    project = read_project(export("doccano"))
    write_answers(pd.Series({"1": "good"}), project, tmp_path / "back.jsonl")
    (record,) = records(tmp_path / "back.jsonl")
    assert record == {"text": "Lovely!", "label": ["good"], "wisecrowd_task": "1", "wisecrowd_confidence": ""}


def test_an_annotator_called_wisecrowd_is_an_echo(tmp_path: Path, making: Any) -> None:
    files = {name: making.lines(rows) for name, rows in making.DOCCANO.items()}
    files["wisecrowd.jsonl"] = files["ann.jsonl"]
    (tmp_path / "export.zip").write_bytes(making.zipped(files))
    question = read_project(tmp_path / "export.zip").get_question()
    assert "wisecrowd" not in question.crowd.workers
    assert question.consensus is not None
    assert question.consensus["label"].to_dict() == {"1": "good", "2": "bad"}


# ---------------------------------------------------------------------- queues


@pytest.mark.parametrize("name", BACK)
def test_tasks_to_label_again_come_in_order(export: Any, tmp_path: Path, name: str) -> None:
    project = read_project(export(name))
    tasks = [*project.tasks][::-1]
    asks = pd.DataFrame({"task": [tasks[0], *tasks], "worker": "ann"})
    write_queue(asks, project, tmp_path / "again.json")
    written = records(tmp_path / "again.json")
    places = [record.get("metadata") or record.get("data") or record for record in written]
    assert [place["wisecrowd_priority"] for place in places] == [1, 2]
    is_argilla = name.startswith("arg")
    pairs = zip(written, places, strict=True)
    known = [record["id"] if is_argilla else place["wisecrowd_task"] for record, place in pairs]
    assert known == tasks
    assert not any("predictions" in record or record.get("suggestions") for record in written)


def test_a_task_that_is_labelled_again_keeps_its_id(export: Any, tmp_path: Path, making: Any) -> None:
    write_queue(["12"], read_project(export("label-studio")), tmp_path / "again.json")
    (task,) = records(tmp_path / "again.json")
    # Label Studio gives it an id of its own, and keeps the data.
    exported = task | {"id": 977, "annotations": [making.annotation(4, making.choice("mood", "good"))]}
    (tmp_path / "new.json").write_text(json.dumps([exported]))
    assert read_project(tmp_path / "new.json").get_question().crowd.tasks.tolist() == ["12"]


def test_json_min_takes_a_queue(export: Any, tmp_path: Path) -> None:
    write_queue(["12"], read_project(export("label-studio-min")), tmp_path / "again.json")
    assert records(tmp_path / "again.json") == [
        {"data": {"text": "Meh.", "wisecrowd_task": "12", "wisecrowd_priority": 1}}
    ]


def test_two_exports_of_label_studio_are_joined_as_lists(tmp_path: Path, making: Any) -> None:
    project = build_project(parse_tasks(making.LABEL_STUDIO), "label-studio")
    write_queue(["12"], project, tmp_path / "again.json")
    (task,) = records(tmp_path / "again.json")
    again = task | {"id": 977, "annotations": [making.annotation(4, making.choice("mood", "good"))]}
    joined = build_project(parse_tasks([*making.LABEL_STUDIO, again]), "label-studio")
    assert joined.questions["mood"].crowd.n_votes == project.questions["mood"].crowd.n_votes + 1
    assert list(joined.tasks) == list(project.tasks)


def test_a_plan_is_a_queue(export: Any, tmp_path: Path) -> None:
    project = read_project(export("label-studio"))
    plan = wc.plan_votes(project.questions["mood"].crowd, 2)
    write_queue(plan.requests, project, tmp_path / "again.json")
    assert len(records(tmp_path / "again.json")) == plan.requests["task"].nunique()


# ---------------------------------------------------------------------- what cannot be written


def test_what_cannot_be_written(export: Any, tmp_path: Path) -> None:
    project, path = read_project(export("label-studio")), tmp_path / "back.json"
    with pytest.raises(InputError, match=r"1 task is not in the project: '99'; its 2 tasks start with '11', '12'"):
        write_answers(pd.Series({"99": "good"}), project, path, question="mood")
    with pytest.raises(InputError, match="2 tasks are not in the project"):
        write_queue(["98", "99"], project, path)
    with pytest.raises(UsageError, match="several questions"):
        write_answers(pd.Series({"11": "good"}), project, path)
    with pytest.raises(InputError, match="need a column 'label'"):
        write_answers(pd.DataFrame({"x": ["good"]}, index=["11"]), project, path, question="mood")
    with pytest.raises(InputError, match="1 of 1 answers have no label, for example for task"):
        write_answers(pd.Series({"11": None}), project, path, question="mood")
    with pytest.raises(InputError, match="needs a column 'task'"):
        write_queue(pd.DataFrame({"x": []}), project, path)
    with pytest.raises(InputError, match="the queue is empty"):
        write_queue([], project, path)
    minimal = read_project(export("label-studio-min"))
    with pytest.raises(InputError, match="rather than JSON_MIN"):
        write_answers(pd.Series({"11": "good"}), minimal, path)
    with pytest.raises(UsageError, match="answers cannot be written for mturk; the tools are label-studio"):
        write_queue(["h1"], read_project(export("mturk")), path)
    assert not path.exists()


def test_a_rating_must_be_a_number(export: Any, tmp_path: Path) -> None:
    project = read_project(export("argilla"))
    with pytest.raises(InputError, match="the answer to this question must be a number; got 'many'"):
        write_answers(pd.Series({"r1": "many"}), project, tmp_path / "back.json", question="stars")


def test_half_a_star_is_refused(export: Any, tmp_path: Path, making: Any) -> None:
    with pytest.raises(
        InputError, match=r"'stars' takes whole numbers, but 1 of 1 answers are fractions: '4\.5'; aggregate it as"
    ):
        write_answers(pd.Series({"r1": 4.5}), read_project(export("argilla")), tmp_path / "p.json", question="stars")
    result = {"from_name": "stars", "to_name": "text", "type": "rating", "value": {"rating": 4}}
    task = {"id": 1, "data": {}, "annotations": [making.annotation(1, result)]}
    (tmp_path / "export.json").write_text(json.dumps([task]))
    project = read_project(tmp_path / "export.json")
    with pytest.raises(InputError, match="'stars' takes whole numbers"):
        write_answers(pd.Series({"1": "4.5"}), project, tmp_path / "p.json")
    write_answers(pd.Series({"1": 5.0}), project, tmp_path / "p.json")
    assert records(tmp_path / "p.json")[0]["predictions"][0]["result"][0]["value"] == {"rating": 5}


def test_a_number_that_is_no_option_is_refused(tmp_path: Path, making: Any) -> None:
    task = {"id": 1, "data": {}, "annotations": [making.annotation(1, making.choice("grade", "1"))]}
    (tmp_path / "export.json").write_text(json.dumps([task]))
    project = read_project(tmp_path / "export.json")
    with pytest.raises(InputError, match=r"'1\.5' is not an answer to 'grade'"):
        write_answers(pd.Series({"1": 1.5}), project, tmp_path / "p.json")
    write_answers(pd.Series({"1": 1.0}), project, tmp_path / "p.json")


def test_answers_to_one_option_do_not_go_back(export: Any, tmp_path: Path) -> None:
    project = read_project(export("label-studio"))
    message = "'topics=food' is one option of 'topics'.*aggregate --question topics"
    with pytest.raises(UsageError, match=message):
        write_answers(pd.Series({"11": "yes"}), project, tmp_path / "p.json", question="topics=food")


def ranked(folder: Path, *orders: list[str]) -> Project:
    told = [{"value": order, "user_id": f"u{place}"} for place, order in enumerate(orders)]
    record = {"id": "r1", "fields": {}, "metadata": {}, "suggestions": {}, "responses": {"order": told, "none": None}}
    (folder / "records.json").write_text(json.dumps([record]))
    return read_project(folder / "records.json")


def test_rankings_are_not_written_back(tmp_path: Path) -> None:
    project = ranked(tmp_path, ["b", "a"], ["a", "b"])
    assert any("'order' seem to be rankings" in note for note in project.notes)
    with pytest.raises(
        InputError, match="as rankings do, but inferred labels have no order; rankings cannot be written back"
    ):
        write_answers(pd.Series({"r1": "a|b"}), project, tmp_path / "p.json")
    # Where all agree, their order is that of the answer.
    write_answers(pd.Series({"r1": "a|b"}), ranked(tmp_path, ["b", "a"], ["b", "a"]), tmp_path / "p.json")
    assert records(tmp_path / "p.json")[0]["suggestions"]["order"]["value"] == ["b", "a"]
    write_answers(pd.Series({"r1": "a|b"}), ranked(tmp_path, ["b", "a"], ["a"]), tmp_path / "p.json")
    assert records(tmp_path / "p.json")[0]["suggestions"]["order"]["value"] == ["a", "b"]


def test_that_fields_and_metadata_are_mixed_is_said(export: Any) -> None:
    assert find_export_warnings(read_project(export("argilla"))) == []
    (doubt,) = find_export_warnings(read_project(export("argilla-parquet")))
    assert "all of it is written as fields: 'text'." in doubt
    assert "records.to_json" in doubt


def test_half_a_character_is_written_as_json_spells_it(tmp_path: Path, making: Any) -> None:
    task = {"id": 1, "data": {"text": "half \ud800"}, "annotations": [making.annotation(1, making.choice("q", "yes"))]}
    (tmp_path / "export.json").write_text(json.dumps([task]))
    project = read_project(tmp_path / "export.json")
    write_answers(pd.Series({"1": "yes"}), project, tmp_path / "back.json")
    assert records(tmp_path / "back.json")[0]["data"] == {"text": "half \ud800"}
