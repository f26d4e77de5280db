"""Multiple choices, pairwise choices, rankings, marks and texts in exports of labelling tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError, UsageError
from wisecrowd.io import read_project
from wisecrowd.io.answer_tables import find_answer_table

SETS = [
    ("1", "ann", ["food", "price"]),
    ("1", "bob", ["food"]),
    ("2", "ann", ["price"]),
    ("2", "bob", ["food", "price"]),
]


def result(name: str, kind: str, value: Any) -> dict[str, Any]:
    return {"from_name": name, "to_name": "text", "type": kind, "value": value}


def label_studio(path: Path, answers: list[tuple[str, str, list[dict[str, Any]]]], data: Any = None) -> Path:
    tasks: dict[str, Any] = {}
    for task, worker, results in answers:
        entry = tasks.setdefault(task, {"id": int(task), "data": data or {"text": task}, "annotations": []})
        entry["annotations"].append({"completed_by": {"email": worker}, "result": results})
    path.write_text(json.dumps(list(tasks.values())))
    return path


def respond(who: str, value: Any) -> dict[str, Any]:
    return {"value": value, "user_id": who, "status": "submitted"}


def write_label_studio(folder: Path) -> Path:
    answers = [(task, who, [result("topics", "choices", {"choices": labels})]) for task, who, labels in SETS]
    return label_studio(folder / "export.json", answers)


def write_argilla(folder: Path) -> Path:
    records = [
        {
            "id": task, "fields": {"text": task}, "suggestions": {},
            "responses": {"topics": [respond(who, labels) for other, who, labels in SETS if other == task]},
        }
        for task in ("1", "2")
    ]  # fmt: skip
    (folder / "records.json").write_text(json.dumps(records))
    return folder / "records.json"


def write_doccano(folder: Path) -> Path:
    (folder / "doccano").mkdir()
    for who in ("ann", "bob"):
        lines = [
            json.dumps({"id": int(task), "text": task, "label": labels}) for task, name, labels in SETS if name == who
        ]
        (folder / "doccano" / f"{who}.jsonl").write_text("\n".join(lines) + "\n")
    return folder / "doccano"


@pytest.mark.parametrize("write", [write_label_studio, write_argilla, write_doccano])
def test_multiple_choices_are_label_sets(tmp_path: Path, write: Any) -> None:
    path = write(tmp_path)
    sets = wc.read_label_sets(path)
    rows = sets.to_frame()
    assert list(zip(rows["task"], rows["worker"], rows["labels"], strict=True)) == SETS
    question = read_project(path).get_question()
    assert question.label_sets == sets
    assert question.crowd.n_classes == 3
    answers = find_answer_table(path)
    assert answers is not None
    assert answers.answer_type == "multilabel"
    assert "sets of labels (question" in answers.description
    assert wc.check_votes(path).summary.startswith("LabelSetCrowd(4 votes")


def test_a_single_choice_is_an_ordinary_vote(tmp_path: Path) -> None:
    answers = [("1", who, [result("mood", "choices", {"choices": ["good"]})]) for who in ("ann", "bob")]
    path = label_studio(tmp_path / "export.json", answers)
    assert find_answer_table(path) is None
    with pytest.raises(InputError, match="label sets need"):
        wc.read_label_sets(path)


def test_one_question_of_several(tmp_path: Path) -> None:
    answers = [
        (
            task,
            who,
            [result("topics", "choices", {"choices": labels}), result("mood", "choices", {"choices": ["good"]})],
        )
        for task, who, labels in SETS
    ]
    path = label_studio(tmp_path / "export.json", answers)
    assert find_answer_table(path) is None
    assert wc.read_label_sets(path, question="topics").n_votes == 4
    assert find_answer_table(path, question="mood") is None


def test_pairwise_choices_of_label_studio(tmp_path: Path) -> None:
    answers = [("1", "ann", [result("better", "pairwise", {"selected": "left"})])]
    answers += [("1", "bob", [result("better", "pairwise", {"selected": "right"})])]
    path = label_studio(tmp_path / "export.json", answers, {"text": "Hi", "model_a": "m1", "model_b": "m2"})
    frame = wc.read_comparisons(path).to_frame()
    assert frame[["worker", "task", "left", "right", "label"]].values.tolist() == [
        ["ann", "1", "m1", "m2", "m1"],
        ["bob", "1", "m1", "m2", "m2"],
    ]
    assert wc.read(path).classes is not None
    assert wc.read(path).classes.tolist() == ["left", "right"]  # type: ignore[union-attr]  # has classes


def test_pairwise_choices_without_items_are_votes(tmp_path: Path) -> None:
    path = label_studio(tmp_path / "export.json", [("1", "ann", [result("better", "pairwise", {"selected": "left"})])])
    assert find_answer_table(path) is None


@pytest.mark.parametrize(
    "value", [{"ranker": {"rank": ["b", "a", "c"]}}, {"ranker": ["b", "a", "c"]}, {"ranker": {"_": ["b", "a", "c"]}}]
)
def test_rankings_of_label_studio(tmp_path: Path, value: Any) -> None:
    path = label_studio(tmp_path / "export.json", [("1", "ann", [result("order", "ranker", value)])])
    frame = wc.read_comparisons(path, question="order").to_frame()
    assert frame[["left", "right", "label"]].values.tolist() == [["a", "b", "b"], ["a", "c", "a"], ["b", "c", "b"]]
    assert frame["weight"].sum() == pytest.approx(2)  # a ranking of three items counts as two comparisons


def test_buckets_have_no_order(tmp_path: Path) -> None:
    value = {"ranker": {"good": ["a"], "bad": ["b", "c"]}}
    path = label_studio(tmp_path / "export.json", [("1", "ann", [result("order", "ranker", value)])])
    with pytest.raises(InputError, match=r"ranker \(1\)"):
        wc.read(path)


@pytest.mark.parametrize(
    ("ranks", "labels"),
    [
        ([{"value": "a", "rank": 2}, {"value": "b", "rank": 1}], ["b"]),
        ([{"value": "a", "rank": 1}, {"value": "b", "rank": 1}], ["tie"]),
    ],
)
def test_rankings_of_argilla(tmp_path: Path, ranks: Any, labels: list[str]) -> None:
    responses = {"order": [{"value": ranks, "user_id": "u1", "status": "submitted"}]}
    record = {"id": "r1", "fields": {}, "suggestions": {}, "responses": responses}
    (tmp_path / "records.json").write_text(json.dumps([record]))
    assert wc.read_comparisons(tmp_path / "records.json").to_frame()["label"].tolist() == labels


def test_lists_in_different_orders_are_rankings_of_argilla(tmp_path: Path) -> None:
    records = [
        {"id": f"r{n}", "fields": {}, "suggestions": {}, "responses": {"order": [respond("u1", order)]}}
        for n, order in enumerate((["b", "a"], ["a", "b"]))
    ]  # fmt: skip
    (tmp_path / "records.json").write_text(json.dumps(records))
    assert wc.read_comparisons(tmp_path / "records.json").to_frame()["label"].tolist() == ["b", "a"]


SPAN = result("names", "labels", {"start": 0, "end": 3, "labels": ["PER"]})


def write_marks(folder: Path, *more: dict[str, Any]) -> Path:
    answers = [(task, who, [SPAN, *more]) for task in ("1", "2") for who in ("ann", "bob")]
    return label_studio(folder / "export.json", [*answers, ("3", "ann", [])])


def test_marks_are_recognised(tmp_path: Path) -> None:
    path = write_marks(tmp_path)
    answers = find_answer_table(path)
    assert answers is not None
    assert (answers.answer_type, answers.description) == ("spans", "spans (question names)")
    assert list(answers.columns) == ["task", "worker", "start", "end", "label"]
    crowd = answers.read()
    assert crowd == wc.read_spans(path, question="names")
    assert (crowd.n_votes, crowd.tasks.tolist()) == (5, ["1", "2", "3"])
    assert answers.read_table().num_rows == 5
    assert answers.read_documents() is None
    report = wc.check_votes(path)
    assert "4 spans in 5 votes" in report.summary


def test_a_question_of_classes_goes_before_marks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write_marks(tmp_path, result("mood", "choices", {"choices": ["good"]}))
    assert find_answer_table(path) is None
    with caplog.at_level("INFO", "wisecrowd.io"):
        assert wc.read(path).n_votes == 4
    assert "further questions, to be named: 'names' (spans)" in caplog.text
    with pytest.raises(UsageError, match="the answers to 'names' are spans, not classes"):
        wc.read(path, question="names")
    assert wc.read_spans(path, question="names").n_votes == 5


def test_only_marks_are_no_votes(tmp_path: Path) -> None:
    path = write_marks(tmp_path)
    with pytest.raises(InputError, match=r"other questions are 'names' \(spans\), which wisecrowd\.read_spans"):
        wc.read(path)
    with pytest.raises(UsageError, match="Did you mean 'names'"):
        wc.read_spans(path, question="name")
    project = read_project(path)
    assert repr(project) == "Project(label-studio: 'names')"
    with pytest.raises(UsageError, match="whose answers are spans, boxes, points or texts and not classes"):
        project.get_question()


def test_a_project_without_marks_says_so(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"no question of this label-studio project has spans.*the questions are 'topics'"
    ):
        read_project(write_label_studio(tmp_path)).get_structured()


def test_notes_about_marks_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write_marks(tmp_path)
    tasks = json.loads(path.read_text())
    tasks[0]["predictions"] = [{"model_version": "bert", "result": [SPAN]}]
    tasks[0]["annotations"].append({"completed_by": 9, "result": [], "was_cancelled": True})
    path.write_text(json.dumps(tasks))
    with caplog.at_level("INFO", "wisecrowd.io"):
        wc.read_spans(path)
    assert f"{path}: the votes of machines are included: 'bert'" in caplog.text
    assert "left out cancelled (1)" in caplog.text


def test_classes_are_texts_on_request(export: Any) -> None:
    texts = wc.read_texts(export("toloka"))
    assert texts.to_frame().values.tolist() == [["t1", "w1", "cat"], ["t1", "w2", "dog"], ["t2", "w1", "dog"]]
