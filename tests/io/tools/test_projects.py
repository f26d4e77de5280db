"""Shared parts of exports of labelling tools: questions, kinds, excluded answers and errors."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError, UsageError, WisecrowdError
from wisecrowd.io import find_format, read_project
from wisecrowd.io.tools.label_sets import format_label_set, parse_label_set

HOSTILE = [
    text
    for texts in json.loads((Path(__file__).parents[2] / "hostile.json").read_text(encoding="utf-8")).values()
    for text in texts
    if text
]


def votes(crowd: wc.Crowd) -> list[tuple[Any, ...]]:
    return sorted(crowd.to_frame()[["task", "worker", "label"]].itertuples(index=False, name=None))


def refusal(path: Path, form: str) -> str | None:
    """Return the reason why an export is refused, if it is."""
    try:
        read_project(path, form, duplicates="keep")
    except WisecrowdError as error:
        return str(error)
    return None


def test_every_tool_is_recognised_by_what_it_writes(tmp_path: Path, sample: tuple[str, str, bytes]) -> None:
    form, name, content = sample
    for path in (tmp_path / name, tmp_path / f"odd-{Path(name).name.partition('.')[0]}"):
        path.write_bytes(content)
        assert find_format(path).name == form
        project = read_project(path)
        assert project.format == form
        assert project.questions
        for question in project.questions.values():
            assert question.kinds.index.tolist() == question.crowd.workers.tolist()
            assert set(question.kinds) <= {"person", "machine"}
            assert set(question.crowd.tasks) <= set(project.tasks)
            assert wc.read(path, question=question.name) == question.crowd


def test_named_columns_are_those_of_a_table(export: Any) -> None:
    crowd = wc.read(export("crowdflower"), task="text", worker="_worker_id", label="mood")
    assert crowd.tasks.tolist() == ["Lovely!", "Meh."]
    assert crowd.n_votes == 4  # a table does not know what tainted means
    gold = wc.read_truth(export("crowdflower"), task="_unit_id", truth="mood_gold")
    assert gold.to_dict() == {"501": "good"}
    with pytest.raises(
        UsageError, match=r"columns of a table were named, but this is an export of Label Studio.*question="
    ):
        wc.read(export("label-studio"), label="mood")


def test_a_question_must_be_chosen_among_several(export: Any) -> None:
    path = export("label-studio")
    with pytest.raises(
        UsageError,
        match=r"several questions: 'mood', 'topics'; name one of them, for example question=\"mood\" \(--question mood\)",
    ):
        wc.read(path)
    with pytest.raises(UsageError, match=r"no question 'mod'; the export has 'mood', 'topics'\. Did you mean 'mood'"):
        wc.read(path, question="mod")
    with pytest.raises(UsageError, match="several questions"):
        read_project(path).get_question()
    assert wc.read(export("prodigy")).n_votes == 3  # the only one needs no name


def test_an_option_is_a_question_too(export: Any) -> None:
    path = export("label-studio")
    price = wc.read(path, question="topics=price")
    assert votes(price) == [("11", "1", "yes"), ("11", "2", "no"), ("12", "1", "yes")]
    assert price == read_project(path).questions["topics"].options["price"]
    with pytest.raises(UsageError, match=r"'topics' has no option 'prices'.*Did you mean 'price'"):
        wc.read(path, question="topics=prices")
    with pytest.raises(UsageError, match="not a multiple-choice question"):
        wc.read(path, question="mood=good")


def test_an_option_is_yes_or_no_whatever_wisecrowd_said_before(tmp_path: Path, making: Any) -> None:
    echo = {"model_version": "wisecrowd", "result": [making.choice("tags", "a", "b")]}
    said = [making.annotation(1, making.choice("tags", "a"))]
    (tmp_path / "export.json").write_text(
        json.dumps([{"id": 1, "data": {}, "annotations": said, "predictions": [echo]}])
    )
    crowd = wc.read(tmp_path / "export.json", question="tags=a")
    assert crowd.classes.tolist() == ["no", "yes"]
    assert votes(crowd) == [("1", "1", "yes")]


def test_an_option_has_a_truth(tmp_path: Path, making: Any) -> None:
    gold = [making.annotation(1, making.choice("tags", "a", "b"), ground_truth=True)]
    plain = [making.annotation(2, making.choice("tags", "c"))]
    tasks = [{"id": number, "data": {}, "annotations": gold if number else plain} for number in range(2)]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    assert wc.read_truth(tmp_path / "export.json", question="tags").to_dict() == {"1": "a|b"}
    assert wc.read_truth(tmp_path / "export.json", question="tags=a").to_dict() == {"1": "yes"}
    assert wc.read_truth(tmp_path / "export.json", question="tags=c").to_dict() == {"1": "no"}


def test_other_formats_have_no_questions(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label\na,x,p\n")
    with pytest.raises(UsageError, match=r"question= .* applies to exports of labelling tools only; this is a table"):
        wc.read(path, question="mood")
    with pytest.raises(UsageError, match="applies to exports of labelling tools only"):
        wc.read_truth(path, question="mood")
    with pytest.raises(InputError, match=r"with a single question.*label-studio"):
        read_project(path)


def test_workers_and_times_can_be_left_out(export: Any) -> None:
    crowd = wc.read(export("prodigy"), worker=False, time=False)
    assert not crowd.has_workers
    assert not crowd.has_times


def test_a_dataset_can_be_loaded_from_an_export(export: Any) -> None:
    dataset = wc.load_dataset(export("toloka"))
    assert dataset.truth is not None
    assert dataset.truth.to_dict() == {"t1": "cat"}


def test_examination_tells_what_was_left_out(export: Any) -> None:
    found = wc.check_votes(export("label-studio"), question="mood")
    assert any("cancelled (1)" in finding.message for finding in found.findings)


# ---------------------------------------------------------------------- several answers, several kinds


def test_the_last_answer_is_so_by_time(tmp_path: Path, making: Any) -> None:
    newer = making.annotation(1, making.choice("mood", "good"), created_at="2024-05-02T00:00:00Z")
    older = making.annotation(1, making.choice("mood", "bad"), created_at="2024-05-01T00:00:00Z")
    path = tmp_path / "export.json"
    path.write_text(json.dumps([{"id": 1, "data": {}, "annotations": [newer, older]}]))
    with pytest.raises(InputError, match=r"question 'mood': .*duplicates"):
        read_project(path)
    with pytest.raises(InputError, match="duplicates"):
        wc.read(path)
    for rule, label in (("last", "good"), ("first", "bad")):
        crowd = wc.read(path, duplicates=rule)  # type: ignore[arg-type]
        assert votes(crowd) == [("1", "1", label)]
        assert crowd == read_project(path, duplicates=rule).get_question().crowd  # type: ignore[arg-type]
    assert wc.read(path, duplicates="keep").n_votes == 2


def test_a_machine_called_like_a_person_is_told_apart(tmp_path: Path, making: Any) -> None:
    task = {
        "id": 1,
        "data": {},
        "annotations": [making.annotation(1, making.choice("mood", "good"))],
        "predictions": [{"model_version": "1", "score": 0.5, "result": [making.choice("mood", "bad")]}],
    }
    path = tmp_path / "export.json"
    path.write_text(json.dumps([task]))
    question = read_project(path).get_question()
    assert votes(question.crowd) == [("1", "1", "good"), ("1", "machine:1", "bad")]
    assert question.machines == ["machine:1"]
    assert question.scores.to_dict("records") == [{"task": "1", "worker": "machine:1", "label": "bad", "score": 0.5}]
    assert votes(question.people) == [("1", "1", "good")]
    assert question.groups is not None
    assert question.groups["machine:1"] == "1"


def test_no_name_makes_a_machine_a_person(tmp_path: Path, making: Any) -> None:
    task = {
        "id": 1,
        "data": {},
        "annotations": [making.annotation(who, making.choice("q", "x")) for who in ("1", "machine:1")],
        "predictions": [{"model_version": "1", "result": [making.choice("q", "y")]}],
    }
    (tmp_path / "export.json").write_text(json.dumps([task]))
    assert read_project(tmp_path / "export.json").get_question().machines == ["machine:machine:1"]


def test_sets_are_written_and_read_again() -> None:
    rng = random.Random(0)
    letters = ["a", "|", "\\", "∅", "b", ""]
    seen = {}
    for _ in range(2000):
        options = tuple(
            sorted({"".join(rng.choices(letters, k=rng.randint(1, 4))) or "x" for _ in range(rng.randint(0, 3))})
        )
        text = format_label_set(options)
        assert parse_label_set(text) == options
        assert seen.setdefault(text, options) == options


def test_options_agree_with_the_joint_view(export: Any) -> None:
    question = read_project(export("label-studio")).questions["topics"]
    assert question.kind == "multiple"
    assert question.joint.classes.tolist() == ["food", "food|price", "price"]
    for option, crowd in question.options.items():
        assert crowd.classes.tolist() == ["no", "yes"]
        expected = [option in parse_label_set(text) for text in question.joint.to_frame()["label"]]
        assert (crowd.label == 1).tolist() == expected
        assert np.array_equal(crowd.time, question.joint.time)


# ---------------------------------------------------------------------- what is wrong with them


@pytest.mark.parametrize("cut", [0.1, 0.35, 0.6, 0.85, 0.99])
def test_half_a_file_is_refused_or_read_but_never_a_crash(
    tmp_path: Path, sample: tuple[str, str, bytes], cut: float
) -> None:
    form, name, content = sample
    path = tmp_path / name
    path.write_bytes(content[: int(len(content) * cut)])
    assert len(refusal(path, form) or "") < 1000


JUNK: list[Any] = [None, 0, -1, 1e308, 10**400, True, "", "x" * 10_000, [], {}, [[]], [None], {"a": 1}, "\ud800", "\0"]


def mutated(value: Any, rng: random.Random) -> Any:
    """The same with one part exchanged for something else, or gone."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        if rng.random() < 0.2:
            return {name: one for name, one in value.items() if name != key}
        return value | {key: mutated(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        place = rng.randrange(len(value))
        return [*value[:place], mutated(value[place], rng), *value[place + 1 :]]
    return rng.choice(JUNK)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::wisecrowd.errors.DataWarning")
@pytest.mark.parametrize(
    "name", ["LABEL_STUDIO", "LABEL_STUDIO_MIN", "ARGILLA", "PRODIGY", "HUGGING_FACE", "HUGGING_FACE_COLUMNS"]
)
def test_whatever_json_holds_is_read_or_refused_in_words(tmp_path: Path, making: Any, name: str) -> None:
    records, form = getattr(making, name), name.lower().replace("_", "-").removesuffix("-columns")
    rng, path = random.Random(1), tmp_path / "export.json"
    told = []
    for _ in range(300):
        path.write_text(json.dumps(mutated(records, rng)), encoding="utf-8")
        told.append(refusal(path, form))
    refused = [text for text in told if text is not None]
    assert 30 < len(refused) < 290
    assert all(str(path) in text and len(text) < 1500 for text in refused)


@pytest.mark.parametrize("name", ["toloka", "mturk", "crowdflower", "cvat"])
def test_whatever_text_holds_is_read_or_refused_in_words(tmp_path: Path, making: Any, name: str) -> None:
    form, file, content = making.EXPORTS[name]
    rng, path = random.Random(2), tmp_path / file
    for _ in range(150):
        raw = bytearray(content)
        for _ in range(rng.randint(1, 5)):
            place = rng.randrange(len(raw))
            raw[place : place + rng.randint(0, 8)] = bytes(
                rng.choices(b'\x00"<>&\t,|\n{}[]\xffa1', k=rng.randint(0, 4))
            )
        path.write_bytes(bytes(raw))
        assert len(refusal(path, form) or "") < 1500


@pytest.mark.parametrize("content", ["[]", "", "{}", "null", "[1, 2]", '["a"]', "[" * 100_000, "1" * 5000])
@pytest.mark.parametrize("form", ["label-studio", "label-studio-min", "argilla", "prodigy", "hugging-face", "doccano"])
def test_empty_and_strange_json(tmp_path: Path, content: str, form: str) -> None:
    path = tmp_path / "export.json"
    path.write_text(content)
    with pytest.raises(InputError):
        read_project(path, form)


@pytest.mark.filterwarnings("ignore:.*but count as different:wisecrowd.errors.DataWarning")
def test_hostile_ids_survive(tmp_path: Path, making: Any) -> None:
    n = len(HOSTILE)

    def said(place: int, step: int) -> dict[str, Any]:
        who = {"email": HOSTILE[(place + step) % n]}
        return making.annotation(who, making.choice("q", HOSTILE[place * step % n]))

    tasks = [
        {"id": text, "data": {"text": text}, "annotations": [said(place, 1), said(place, 2)]}
        for place, text in enumerate(HOSTILE)
    ]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks), encoding="utf-8")
    crowd = wc.read(path, question="q", format="label-studio")
    assert set(crowd.tasks) == set(HOSTILE)
    assert set(crowd.workers) <= set(HOSTILE)
    assert crowd.n_votes == 2 * len(HOSTILE)


def test_a_folder_or_nothing_at_all(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file or folder"):
        read_project(tmp_path / "none.json")
    for form in ("label-studio", "mturk", "prodigy", "doccano", "cvat"):
        with pytest.raises(InputError):
            read_project(tmp_path, form)


def test_the_shapes_of_what_is_told(export: Any) -> None:
    question = read_project(export("crowdflower")).get_question()
    assert isinstance(question.groups, pd.Series)
    assert question.seconds.columns.tolist() == ["task", "worker", "seconds"]
    assert question.scores.columns.tolist() == ["task", "worker", "label", "score"]
    assert len(question.scores) == 0
