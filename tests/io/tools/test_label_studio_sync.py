from __future__ import annotations

import contextlib
import importlib.util
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from wisecrowd.errors import InputError, UsageError, WisecrowdError
from wisecrowd.io import read_project
from wisecrowd.io.tools import label_studio_server
from wisecrowd.io.tools.label_studio_server import LabelStudioClient
from wisecrowd.io.tools.label_studio_sync import pull, push, push_objects, push_texts

RECORDED = Path(__file__).parents[2] / "recorded" / "label_studio"
_spec = importlib.util.spec_from_file_location("label_studio_stub", RECORDED / "stub.py")
assert _spec is not None
assert _spec.loader is not None
stub = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(stub)

studio, waits, connect, refused = stub.studio, stub.waits, stub.connect, stub.refused
Connect = Callable[..., LabelStudioClient]
MOOD = {"4": "good", "5": "bad", "6": "good", "7": "bad", "8": "good", "9": "good"}


def answers(said: dict[str, str] = MOOD, confidence: float = 0.9) -> pd.DataFrame:
    return pd.DataFrame({"label": said, "confidence": dict.fromkeys(said, confidence)})


# ---------------------------------------------------------------------- pull


def test_what_is_pulled_is_read_like_an_export(studio: Any, connect: Connect, tmp_path: Path) -> None:
    studio.most = 3
    counts = pull(connect(), studio.number, tmp_path / "pulled.json")
    assert counts == {"tasks": 8, "annotations": 19, "predictions": 4}
    pulled, exported = read_project(tmp_path / "pulled.json"), read_project(RECORDED / "export_json.json")
    assert pulled.tasks.keys() == exported.tasks.keys()
    assert {name: one.crowd for name, one in pulled.questions.items()} == {
        name: one.crowd for name, one in exported.questions.items()
    }
    text = (tmp_path / "pulled.json").read_text(encoding="utf-8")
    assert "@example.com" not in text, "people go by their numbers"
    assert stub.LEGACY not in text


def test_half_characters_survive(studio: Any, connect: Connect, tmp_path: Path) -> None:
    studio.tasks[0]["data"]["text"] = "half: \ud83d, whole: 🍜"
    pull(connect(), studio.number, tmp_path / "pulled.json")
    assert (
        json.loads((tmp_path / "pulled.json").read_text(encoding="utf-8"))[0]["data"]["text"]
        == "half: \ud83d, whole: 🍜"
    )


def test_a_pull_that_fails_leaves_what_was_there(studio: Any, connect: Connect, tmp_path: Path) -> None:
    (tmp_path / "pulled.json").write_text("before")
    studio.most = 2
    studio.troubles = [("GET /api/tasks/?project=2&fields=all&resolve_uri=false&page=2", 500)]
    with refused("refused .500."):
        pull(connect(), studio.number, tmp_path / "pulled.json")
    studio.tasks.clear()
    with refused(r"project 2 \('Restaurants'\) has no tasks", InputError):
        pull(connect(), studio.number, tmp_path / "pulled.json")
    assert [path.name for path in tmp_path.iterdir()] == ["pulled.json"]
    assert (tmp_path / "pulled.json").read_text() == "before"


# ---------------------------------------------------------------------- push


def test_pushing_twice_leaves_one_prediction(studio: Any, connect: Connect) -> None:
    others = json.dumps(studio.predictions("bert"))
    done = push(connect(), studio.number, answers(), question="mood", model="dawid-skene")
    assert (done.question, done.added, done.same) == ("mood", 6, 0)
    first = json.dumps(studio.predictions())
    assert {one["task"]: one["result"][0]["value"]["choices"] for one in studio.predictions()} == {
        int(task): [label] for task, label in MOOD.items()
    }
    assert {(one["model_version"], one["score"]) for one in studio.predictions()} == {("wisecrowd dawid-skene", 0.9)}
    done = push(connect(), studio.number, answers(), question="mood", model="dawid-skene")
    assert (done.added, done.changed, done.removed, done.same) == (0, 0, 0, 6)
    assert json.dumps(studio.predictions()) == first
    assert json.dumps(studio.predictions("bert")) == others
    assert studio.calls("PATCH") == studio.calls("DELETE") == 0


def test_new_answers_take_the_place_of_old_ones(studio: Any, connect: Connect) -> None:
    push(connect(), studio.number, answers(), question="mood", model="dawid-skene")
    other = answers({**MOOD, "4": "bad"}, 0.8)
    done = push(connect(), studio.number, other.drop(columns="confidence"), question="mood", model="majority-vote")
    assert (done.changed, done.added) == (6, 0)
    assert {(one["model_version"], one["score"]) for one in studio.predictions()} == {("wisecrowd majority-vote", None)}
    assert studio.predictions()[0]["result"][0]["value"]["choices"] == ["bad"]
    assert len(studio.predictions()) == 6


def test_questions_stand_beside_each_other(studio: Any, connect: Connect) -> None:
    push(connect(), studio.number, answers(), question="mood")
    topics = {"4": "food", "5": "food|price", "7": "staff"}
    assert push(connect(), studio.number, answers(topics), question="topics").added == 3
    assert push(connect(), studio.number, answers({"4": "5"}), question="stars").added == 1
    assert push(connect(), studio.number, answers(), question="mood").same == 6
    said = {(one["task"], one["result"][0]["from_name"]): one["result"][0]["value"] for one in studio.predictions()}
    assert said[5, "topics"] == {"choices": ["food", "price"]}
    assert said[4, "stars"] == {"rating": 5}
    assert len(studio.predictions()) == 10


def test_doubles_go_and_names_alike_stay(studio: Any, connect: Connect) -> None:
    push(connect(), studio.number, answers(), question="mood", model="dawid-skene")
    ours = studio.tasks[0]["predictions"][-1]
    studio.tasks[0]["predictions"] += [{**ours, "id": 900, "model_version": "wisecrowd"}]
    studio.tasks[0]["predictions"] += [
        {**ours, "id": 901, "model_version": "wisecrowded"},
        {**ours, "id": 902, "result": []},
    ]
    done = push(connect(), studio.number, answers(), question="mood", model="dawid-skene")
    assert (done.removed, done.same) == (1, 6)
    assert [one["id"] for one in studio.tasks[0]["predictions"]][-3:] == [ours["id"], 901, 902]


def test_answers_of_before_stay_where_there_are_none_now(studio: Any, connect: Connect) -> None:
    push(connect(), studio.number, answers(), question="mood")
    done = push(connect(), studio.number, answers({"4": "good"}), question="mood")
    assert (done.same, done.stale) == (1, 5)
    assert len(studio.predictions()) == 6


def test_a_dry_run_writes_nothing(studio: Any, connect: Connect) -> None:
    done = push(connect(), studio.number, answers(), question="mood", dry_run=True)
    assert done.added == 6
    assert {method for method, _, _ in studio.seen} == {"GET"}


@pytest.mark.parametrize("trouble", ["break", "lose", 504])
def test_what_is_in_doubt_is_looked_at(
    studio: Any, connect: Connect, monkeypatch: pytest.MonkeyPatch, trouble: int | str
) -> None:
    monkeypatch.setattr(label_studio_server, "BATCH_SIZE", 2)
    studio.troubles = [("POST /api/projects", trouble)]
    push(connect(), studio.number, answers(), question="mood")
    assert sorted(one["task"] for one in studio.predictions()) == [4, 5, 6, 7, 8, 9], "each once"


def test_an_interrupted_push_goes_on(studio: Any, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_studio_server, "BATCH_SIZE", 2)
    add, sent = LabelStudioClient.add_predictions, []

    def interrupted(self: LabelStudioClient, project: int, predictions: Any) -> int:
        sent.append(add(self, project, predictions[:3]))
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(LabelStudioClient, "add_predictions", interrupted)
        with pytest.raises(KeyboardInterrupt):
            push(connect(), studio.number, answers(), question="mood")
    done = push(connect(), studio.number, answers(), question="mood")
    assert (done.same, done.added) == (3, 3)
    assert len(studio.predictions()) == 6


def test_a_prediction_that_somebody_removes_meanwhile_comes_back(
    studio: Any, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(connect(), studio.number, answers(), question="mood", model="one")
    change = LabelStudioClient.update_prediction

    def late(self: LabelStudioClient, prediction: int, values: Any) -> None:
        monkeypatch.setattr(LabelStudioClient, "update_prediction", change)
        studio.tasks[0]["predictions"] = studio.tasks[0]["predictions"][:1]
        change(self, prediction, values)

    monkeypatch.setattr(LabelStudioClient, "update_prediction", late)
    push(connect(), studio.number, answers(), question="mood", model="two")
    assert [one["model_version"] for one in studio.predictions()] == ["wisecrowd two"] * 6


def test_what_the_server_leaves_out_without_a_word_is_found(studio: Any, connect: Connect) -> None:
    studio.tasks[0]["annotations"][0]["result"][0]["value"]["choices"] = [
        "gone"
    ]  # an option that is not there any more
    with refused(r"did not keep 1 of 6 predictions \(4\); are the labels options of 'mood'"):
        push(connect(), studio.number, answers({**MOOD, "4": "gone"}), question="mood")
    assert len(studio.predictions()) == 5


def test_a_task_that_is_labelled_again_is_answered_in_both_places(studio: Any, connect: Connect) -> None:
    studio.tasks[7]["data"]["wisecrowd_task"] = "4"
    push(connect(), studio.number, answers({"4": "good"}), question="mood")
    assert [one["task"] for one in studio.predictions()] == [4, 11]


def test_a_question_that_nobody_answered_there(studio: Any, connect: Connect) -> None:
    for task in studio.tasks:
        task.update(annotations=[], predictions=[])
    push(connect(), studio.number, answers({"4": "staff"}), question="topics", model="mine")
    assert studio.predictions()[0]["result"][0]["to_name"] == "text"
    with refused("'dear' is not an answer to 'mood'", InputError):
        push(connect(), studio.number, answers({"4": "dear"}), question="mood")
    with refused("there are several questions: 'mood', 'topics', 'stars'; name one of them", UsageError):
        for task in studio.tasks:
            task["predictions"] = []
        push(connect(), studio.number, answers({"4": "good"}))


def test_answers_that_are_not_of_this_project(studio: Any, connect: Connect) -> None:
    with refused("1 task is not in the project: '99'", InputError):
        push(connect(), studio.number, answers({"99": "good"}), question="mood")
    with refused("there is no question 'mod'.*Did you mean 'mood'", UsageError):
        push(connect(), studio.number, answers(), question="mod")
    assert studio.predictions() == []


# ---------------------------------------------------------------------- hostile servers

INTERFACE = {"mood": {"type": "Choices", "to_name": ["text"], "labels": ["good", "bad"]}}
HOSTILE_VALUES = [
    3,
    "text",
    {"a": 1},
    [3, None, "x", {"id": [], "result": 7, "model_version": "wisecrowd"}],
    [[]],
    True,
    1e308,
]


@pytest.mark.parametrize("value", HOSTILE_VALUES, ids=str)
@pytest.mark.parametrize("key", ["annotations", "predictions", "drafts", "data"])
def test_tasks_with_parts_of_other_types_are_refused_or_ignored(key: str, value: Any, tmp_path: Path) -> None:
    class Studio:
        def get_project(self, number: int) -> dict[str, Any]:
            return {"id": number, "title": [], "parsed_label_config": INTERFACE | {"other": value}}

        def iter_tasks(self, project: int) -> Iterator[tuple[dict[str, Any], int]]:
            yield {"id": 7 + project, "data": {"text": "Hi"}, "annotations": [], "predictions": [], key: value}, 1

    server: Any = Studio()
    assert pull(server, 1, tmp_path / "export.json")["tasks"] == 1
    with contextlib.suppress(WisecrowdError):
        push(server, 1, pd.Series({"8": "good"}), dry_run=True)


@pytest.mark.parametrize("value", [*HOSTILE_VALUES, None], ids=str)
@pytest.mark.parametrize("key", ["id", "result", "score", "model_version"])
def test_predictions_with_parts_of_other_types_are_replaced_or_ignored(key: str, value: Any) -> None:
    result = {"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": ["good"]}}
    prediction = {"id": 3, "model_version": "wisecrowd x", "score": 0.5, "result": [result], key: value}

    class Studio:
        def get_project(self, number: int) -> dict[str, Any]:
            return {"id": number, "parsed_label_config": INTERFACE}

        def iter_tasks(self, project: int) -> Iterator[tuple[dict[str, Any], int]]:
            yield {"id": 7 + project, "data": {"text": "Hi"}, "annotations": [], "predictions": [prediction]}, 1

    server: Any = Studio()
    with contextlib.suppress(InputError):
        summary = push(server, 1, pd.Series({"8": "good"}), model="x", dry_run=True)
        assert summary.added + summary.changed + summary.same == 1


class MarkStudio:
    """Server with two tasks, a question of spans with votes, and one of texts without."""

    def __init__(self) -> None:
        self.predictions: dict[int, dict[str, Any]] = {}

    def get_project(self, number: int) -> dict[str, Any]:
        names = {"type": "Labels", "to_name": ["text"], "inputs": [{"type": "Text"}], "labels": ["PER", "LOC"]}
        note = {"type": "TextArea", "to_name": ["text"], "inputs": [{"type": "Text"}], "labels": []}
        return {"parsed_label_config": {"names": names, "note": note, "sound": {"type": "Labels", "to_name": ["a"]}}}

    def iter_tasks(self, project: int) -> Iterator[tuple[dict[str, Any], int]]:
        span = {"start": 0, "end": 3, "labels": ["PER"]}
        result = {"from_name": "names", "to_name": "text", "type": "labels", "value": span}
        for task in (1, 2):
            predictions = [{"id": key, **one} for key, one in self.predictions.items() if one["task"] == task]
            annotations = [{"completed_by": 1, "result": [result]}]
            yield {"id": task, "data": {}, "annotations": annotations, "predictions": predictions}, 2

    def add_predictions(self, project: int, predictions: list[dict[str, Any]]) -> int:
        for one in predictions:
            self.predictions[len(self.predictions) + 100] = one
        return len(predictions)

    def update_prediction(self, prediction: int, values: dict[str, Any]) -> None:
        self.predictions[prediction] |= values

    def delete_prediction(self, prediction: int) -> None:
        del self.predictions[prediction]


def test_objects_are_pushed_once_and_removed_if_none_are_left() -> None:
    studio = MarkStudio()
    objects = pd.DataFrame(
        {"task": ["1", "2"], "start": [0, 0], "end": [3, 3], "label": ["PER", "LOC"], "confidence": [0.9, 0.5]}
    )
    tasks = pd.DataFrame({"expected_f1": [0.8, 0.4]}, index=["1", "2"])
    summary = push_objects(studio, 1, objects, tasks=tasks, question="names", model="span-consensus")
    assert (summary.question, summary.added) == ("names", 2)
    assert [one["score"] for one in studio.predictions.values()] == [0.8, 0.4]
    assert push_objects(studio, 1, objects, tasks=tasks, question="names", model="span-consensus").same == 2
    summary = push_objects(studio, 1, objects[:1], tasks=tasks, question="names", model="span-consensus")
    assert (summary.same, summary.removed, len(studio.predictions)) == (1, 1, 1)
    moved = objects[:1].assign(end=2)
    assert push_objects(studio, 1, moved, question="names", model="span-consensus", dry_run=True).changed == 1
    with pytest.raises(InputError, match="'ORG' is not a label of 'names', whose labels are 'PER', 'LOC'"):
        push_objects(studio, 1, objects.assign(label="ORG"), question="names")


def test_texts_are_pushed_to_a_question_that_nobody_answered() -> None:
    studio = MarkStudio()
    summary = push_texts(studio, 1, pd.Series({"1": "a cat"}), question="note", model="rover")
    assert (summary.question, summary.added) == ("note", 1)
    (prediction,) = studio.predictions.values()
    assert prediction["result"][0]["value"] == {"text": ["a cat"]}
    with pytest.raises(UsageError, match="there is no question 'sound'"):
        push_texts(studio, 1, pd.Series({"1": "a cat"}), question="sound")
