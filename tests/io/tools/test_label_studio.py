from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import wisecrowd as wc
from wisecrowd.data.texts import TextCrowd
from wisecrowd.errors import DataWarning, InputError
from wisecrowd.io import read_project
from wisecrowd.io.answer_tables import find_answer_table
from wisecrowd.io.tools.label_studio import parse_tasks


def rows(crowd: wc.Crowd) -> list[tuple[Any, ...]]:
    return sorted(crowd.to_frame()[["task", "worker", "label"]].itertuples(index=False, name=None))


def written(folder: Path, tasks: list[Any]) -> Path:
    path = folder / "tasks.json"
    path.write_text(json.dumps(tasks))
    return path


def test_questions_become_crowds(export: Any) -> None:
    project = read_project(export("label-studio"))
    mood, topics = project.questions["mood"], project.questions["topics"]
    assert (mood.kind, topics.kind) == ("single", "multiple")
    assert rows(mood.crowd) == [
        ("11", "1", "good"), ("11", "2", "good"), ("11", "3", "bad"), ("11", "bert-1", "good"), ("12", "1", "bad"),
    ]  # fmt: skip
    assert rows(topics.crowd) == [("11", "1", "food|price"), ("11", "2", "food"), ("12", "1", "price")]
    assert mood.kinds.to_dict() == {"1": "person", "2": "person", "3": "person", "bert-1": "machine"}
    assert mood.groups is not None
    assert mood.groups.dropna().to_dict() == {"bert-1": "bert-1"}


def test_gold_is_truth_and_no_vote(export: Any) -> None:
    path = export("label-studio")
    mood = read_project(path).questions["mood"]
    assert mood.truth is not None
    assert mood.truth.to_dict() == {"12": "bad"}
    assert "9" not in mood.crowd.workers
    assert wc.read_truth(path, question="mood").to_dict() == {"12": "bad"}
    with pytest.raises(InputError, match="holds no truth of the question 'topics', only of 'mood'"):
        wc.read_truth(path, question="topics")


def test_what_is_left_out_is_counted(export: Any) -> None:
    project = read_project(export("label-studio"))
    assert project.excluded == {"drafts": 1, "cancelled": 1}
    assert project.questions["mood"].excluded == {"drafts": 1, "cancelled": 1, "gold": 1}


def test_scores_times_and_lead_times(export: Any) -> None:
    mood = read_project(export("label-studio")).questions["mood"]
    assert mood.scores.to_dict("records") == [{"task": "11", "worker": "bert-1", "label": "good", "score": 0.8}]
    found = wc.Panel().fit(mood.crowd).calibration(mood.scores)
    assert found["n_scores"].to_dict() == {"bert-1": 1}
    assert sorted(mood.seconds.itertuples(index=False, name=None)) == [
        ("11", "1", 4.5), ("11", "2", 9.0), ("11", "3", 4.5), ("12", "1", 4.5),
    ]  # fmt: skip
    assert mood.crowd.time[0] == pytest.approx(1710022568.728353)
    assert mood.control == {"from_name": "mood", "to_name": "text", "type": "choices"}


def test_ratings_numbers_and_pairs(tmp_path: Path, making: Any) -> None:
    def result(name: str, kind: str, value: dict[str, Any]) -> dict[str, Any]:
        return {"from_name": name, "to_name": "text", "type": kind, "value": value}

    annotations = [
        making.annotation(
            who,
            result("stars", "rating", {"rating": stars}),
            result("price", "number", {"number": price}),
            result("better", "pairwise", {"selected": side}),
        )
        for who, stars, price, side in ((1, 4, 2.5, "left"), (2, 5, 3, "right"))
    ]
    project = read_project(written(tmp_path, [{"id": 1, "data": {}, "annotations": annotations}]))
    assert [question.kind for question in project.questions.values()] == ["single", "number", "single"]
    assert rows(project.questions["stars"].crowd) == [("1", "1", "4"), ("1", "2", "5")]
    assert project.questions["price"].crowd.is_numeric
    assert project.questions["price"].crowd.label.tolist() == [2.5, 3.0]
    assert rows(project.questions["better"].crowd) == [("1", "1", "left"), ("1", "2", "right")]
    assert wc.read(tmp_path / "tasks.json", question="stars", numeric=True).label.tolist() == [4, 5]


def test_choices_of_regions_and_nested_ones_say_nothing_of_the_task(tmp_path: Path, making: Any) -> None:
    region = making.choice("part", "noun")
    region["value"] |= {"start": 0, "end": 3, "text": "cat"}
    nested = making.choice("deep", "x")
    nested["value"]["choices"] = [["animal", "cat"]]
    tasks = [{"id": 1, "data": {}, "annotations": [making.annotation(1, region, nested, making.choice("q", "yes"))]}]
    project = read_project(written(tmp_path, tasks))
    assert list(project.questions) == ["q"]
    assert project.excluded == {"choices of regions": 1, "nested choices": 1}


def test_only_polygons_are_no_votes(tmp_path: Path, making: Any) -> None:
    polygon = making.box("objects") | {"type": "polygonlabels", "value": {"points": [[0, 0], [1, 0], [1, 1]]}}
    tasks = [{"id": 1, "data": {}, "annotations": [making.annotation(1, polygon)]}]
    with pytest.raises(InputError, match=r"expected a choice, a rating or a number; left out polygonlabels \(1\)$"):
        read_project(written(tmp_path, tasks))
    tasks[0]["annotations"].append(making.annotation(2))
    with pytest.raises(InputError, match=r"left out polygonlabels \(1\), empty \(1\)$"):
        read_project(written(tmp_path, tasks))


def test_older_exports_say_completions(tmp_path: Path, making: Any) -> None:
    tasks = [{"id": 1, "data": {}, "completions": [making.annotation(1, making.choice("q", "yes"))]}]
    assert rows(read_project(written(tmp_path, tasks)).get_question().crowd) == [("1", "1", "yes")]


def test_gold_that_contradicts_itself_is_no_truth(tmp_path: Path, making: Any) -> None:
    marks = [making.annotation(1, making.choice("q", label), ground_truth=True) for label in ("yes", "no")]
    question = read_project(written(tmp_path, [{"id": 1, "data": {}, "annotations": marks}])).get_question()
    assert question.truth is None
    assert question.excluded["contradictory gold"] == 1
    assert question.crowd.n_votes == 0


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({"id": 1}, "entry 1 has neither annotations nor predictions"),
        ({"id": [], "annotations": []}, r"the task needs an id.*got \[\] \(entry 1\)"),
        ({"id": 1, "annotations": {}}, "'annotations' of entry 1 should be a list"),
        ({"id": 1, "annotations": [7]}, "'annotations' of entry 1 should hold objects; got 7"),
        ({"id": 1, "data": [], "annotations": []}, "'data' of entry 1 should be an object"),
        ({"id": 1, "annotations": [{"result": []}]}, r"the annotator needs an id.*got None \(entry 1\)"),
    ],
)
def test_bad_tasks(tmp_path: Path, task: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_project(written(tmp_path, [task]), "label-studio")


def test_impossible_times_are_not_known(tmp_path: Path, making: Any) -> None:
    said = [
        making.annotation(who, making.choice("q", "yes"), created_at=created, lead_time=taken)
        for who, created, taken in (
            (1, "9999-12-31T00:00:00Z", -4), (2, "yesterday", "long"), (3, "2024-05-31T14:00:00+02:00", 1e400), (4, None, None),
        )
    ]  # fmt: skip
    (tmp_path / "tasks.json").write_text(json.dumps([{"id": 1, "data": {}, "annotations": said}]))
    question = read_project(tmp_path / "tasks.json").get_question()
    assert [time if time == time else None for time in question.crowd.time] == [None, None, 1717156800.0, None]
    assert len(question.seconds) == 0


def test_readers_say_what_they_did(export: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "wisecrowd.io"):
        wc.read(export("label-studio"), question="mood")
    assert "the votes of machines are included: 'bert-1'" in caplog.text
    assert "left out drafts (1), cancelled (1), gold (1)" in caplog.text


# ---------------------------------------------------------------------- JSON_MIN


def test_json_min(export: Any) -> None:
    project = read_project(export("label-studio-min"))
    mood = project.get_question()
    assert mood.name == "mood"
    assert rows(mood.crowd) == [("11", "1", "good"), ("11", "2", "bad"), ("12", "1", "bad")]
    assert mood.seconds["seconds"].tolist() == [4.5, 5.5, 6.5]
    assert project.tasks["11"]["data"] == {"text": "Lovely!"}


def test_json_min_with_several_choices(tmp_path: Path, making: Any) -> None:
    records = [dict(record) for record in making.LABEL_STUDIO_MIN]
    records[0]["mood"] = {"choices": ["good", "odd"]}
    assert rows(read_project(written(tmp_path, records)).get_question().crowd) == [
        ("11", "1", "good|odd"), ("11", "2", "bad"), ("12", "1", "bad"),
    ]  # fmt: skip


def test_json_min_counts_what_it_leaves_out(tmp_path: Path, making: Any) -> None:
    records = [dict(record) for record in making.LABEL_STUDIO_MIN]
    span = {"start": 0, "end": 3, "text": "Meh", "labels": ["X"]}
    nobody = {key: value for key, value in records[2].items() if key != "mood"} | {"annotator": 3}
    records += [nobody, nobody | {"annotator": 4, "parts": [span, span]}]
    records[0]["parts"] = [span]
    project = read_project(written(tmp_path, records))
    assert rows(project.get_question().crowd) == [("11", "1", "good"), ("11", "2", "bad"), ("12", "1", "bad")]
    assert project.excluded == {"empty": 1}
    assert project.structured["parts"].crowd.n_marks == 2
    assert project.tasks["11"]["data"] == {"text": "Lovely!"}


def test_json_min_does_not_take_captions_for_classes(tmp_path: Path, making: Any) -> None:
    records = [
        making.LABEL_STUDIO_MIN[0] | {"id": task, "annotator": worker, "caption": f"cat {worker} sits on mat {task}"}
        for task in (1, 2, 3)
        for worker in (1, 2)
    ]
    for record in records:
        record.pop("mood")
    path = written(tmp_path, records)
    answers = find_answer_table(path)
    assert answers is not None
    assert (answers.answer_type, answers.is_assumed) == ("texts", True)
    with pytest.warns(
        DataWarning, match="JSON_MIN does not say which control they come from.*-m majority-vote.*export JSON"
    ):
        crowd = answers.read()
    assert isinstance(crowd, TextCrowd)
    assert crowd.n_votes == 6
    assert "look like texts of a text area" in read_project(path).notes[0]
    with pytest.warns(DataWarning, match="the labels look like texts: 6 of 6 are different.*-m rover"):
        assert wc.read(path).n_votes == 6
    for record in records:
        record["caption"] = {"choices": [record["caption"]]}
    answers = find_answer_table(written(tmp_path, records))
    assert answers is None, "the form of the answer names its control"


def test_json_min_cannot_tell_answers_that_never_differ(tmp_path: Path, making: Any) -> None:
    with pytest.raises(InputError, match="because no task has two annotations; export JSON instead"):
        read_project(written(tmp_path, making.LABEL_STUDIO_MIN[1:]))
    twice = [making.LABEL_STUDIO_MIN[0], making.LABEL_STUDIO_MIN[0] | {"annotator": 2}]
    with pytest.raises(InputError, match="all annotations of a task agree; export JSON"):
        read_project(written(tmp_path, twice))


def _task(
    number: int, text: str, answers: dict[Any, str], project: int | None = None, **further: Any
) -> dict[str, Any]:
    """Return a task of Label Studio with one answer per person; an answer of a model is a prediction."""
    annotations, predictions = [], []
    for worker, label in answers.items():
        result = [{"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": [label]}}]
        if isinstance(worker, tuple):
            predictions.append({"model_version": worker[0], "result": result})
        else:
            annotations.append({"completed_by": json.loads(worker) if "{" in str(worker) else worker, "result": result})
    task = {"id": number, "data": {"text": text, **further}, "annotations": annotations, "predictions": predictions}
    return task if project is None else task | {"project": project}


def test_tasks_of_two_projects_with_one_id_are_refused() -> None:
    first = [_task(number, f"text {number}", {1: "good"}, project=2) for number in range(4)]
    other = [_task(number, f"other {number}", {2: "bad"}, project=77) for number in (1, 2)]
    with pytest.raises(
        InputError, match=r"task 1 has two different texts, of projects 2 and 77: 'text 1', 'other 1', and 1 further"
    ):
        parse_tasks([*first, *other])
    unknown = [_task(1, "text 1", {1: "good"}), _task(1, "other 1", {2: "bad"})]
    with pytest.raises(InputError, match="task 1 has two different texts: 'text 1', 'other 1'"):
        parse_tasks(unknown)
    with pytest.raises(InputError, match="task 1 has two different texts"):
        parse_tasks(
            [_task(1, "text 1", {1: "good"}, project=2), {**unknown[1], "data": {"image": "a.png"}, "project": 77}]
        )


def test_two_exports_of_one_task_are_joined() -> None:
    address = "https://example.com/a.png?signature="
    tasks = [
        _task(1, "text", {1: "good"}, project=2, image=f"{address}1"),
        _task(1, "text", {2: "bad"}, project=2, image=f"{address}2"),  # the same project
        _task(1, "text edited", {3: "bad"}, project=2),
        _task(9, "text", {4: "bad"}, project=3, wisecrowd_task="1", image=f"{address}3"),  # queued again
        _task(1, "", {5: "bad"}) | {"data": {}},
    ]
    assert parse_tasks(tasks).get_question("mood").worker == ["1", "2", "3", "4", "5"]


def test_people_have_the_number_that_the_export_gives_them() -> None:
    ann = '{"id": 1, "email": "ann@example.com"}'
    export = parse_tasks([_task(1, "a", {1: "good"}), _task(2, "b", {ann: "good", '{"email": "bob@x.org"}': "good"})])
    assert export.get_question("mood").worker == ["1", "1", "bob@x.org"]
    (warning,) = export.warnings
    assert warning.startswith("worker ids are numbers ('1') and e-mail addresses ('bob@x.org')")
    assert not parse_tasks([_task(1, "a", {1: "good", "@handle": "good"})]).warnings


def _count_copies(answers: dict[Any, str]) -> int:
    """Return how many people are suspected to be the model, given the answers of each to 12 tasks by letter."""
    labels = {"g": "good", "b": "bad"}
    tasks = [
        _task(
            number,
            f"text {number}",
            {who: labels[said[number]] for who, said in answers.items() if said[number] in labels},
        )
        for number in range(12)
    ]
    return sum("gives the same answers as the model 'bert-1'" in text for text in parse_tasks(tasks).warnings)


def test_a_model_that_was_imported_as_a_person_is_named(tmp_path: Path) -> None:
    model = ("bert-1",)
    assert _count_copies({model: "gbgbgbgbgbgb", 1: "ggggbbbbgggg", 2: "gbgbgbgbgbgg", 99: "gbgbgbgbgbgb"}) == 1
    # The same few tasks as nobody else, although all answers are equal.
    assert _count_copies({model: "gggg--------", 1: "gggbbbbbgggg", 2: "ggggggbbgggg", 99: "gggg--------"}) == 1
    assert not _count_copies({model: "gbgbgbgbgbgb", 1: "gbgbgbgbgbgb", 2: "gbgbgbgbgbgb", 3: "gbgbgbgbgbgg"})  # easy
    assert not _count_copies({model: "gbgbgbgbgbgb", 1: "gbgbgbgbgbgb"})  # nobody to compare with
    assert not _count_copies({model: "gggggggggggg", 1: "gggggggggggg", 2: "ggggggggggbb"})  # one class
    path = tmp_path / "export.json"
    answers = {("bert-1",): "good", 1: "bad", 99: "good"}
    path.write_text(json.dumps([_task(n, f"text {n}", answers if n < 4 else {1: "bad"}) for n in range(6)]))
    with pytest.warns(
        DataWarning, match="export.json: the worker '99' gives the same answers as the model 'bert-1', all 4"
    ):
        wc.read(path)
