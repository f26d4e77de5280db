from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError, UsageError, WisecrowdError
from wisecrowd.io import Project, read_project
from wisecrowd.io.tools.structured_export import build_object_records, build_text_records, write_objects, write_texts

SPANS = pd.DataFrame(
    {
        "task": ["1", "1", "2"],
        "start": [0, 9, 0],
        "end": [3, 13, 3],
        "label": ["PER", "LOC", "PER"],
        "confidence": [0.9, 0.75, 0.5],
    }
)
BOXES = pd.DataFrame(
    {"task": ["1", "2"], "x": [20.0, 0.0], "y": [10.0, 30.0], "width": [100.5, 200.0], "height": [40.0, 70.0],
     "label": ["cat", "dog"], "confidence": [0.9, 0.75]}
)  # fmt: skip
POINTS = pd.DataFrame({"task": ["1"], "x": [20.25], "y": [10.0], "label": ["cat"], "confidence": [0.9]})
#: Tasks 1 to 3; nothing was found in the last.
TASKS = pd.DataFrame(
    {"n_objects": [1, 1, 0], "expected_f1": [0.8, 0.7, 0.6]}, index=pd.Index(["1", "2", "3"], name="task")
)
TEXT = "Ann left Rome."
WIDTH, HEIGHT = 200, 100


def write_lines(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def make_label_studio(folder: Path, kind: str) -> Path:
    """Write an export with three tasks, which a person marked."""
    size = {"original_width": WIDTH, "original_height": HEIGHT}
    place = {"x": 10, "y": 10, "width": 20, "height": 20, "rotation": 0}
    pages = {"start": "/p[1]/text()[1]", "end": "/p[1]/text()[1]", "startOffset": 0, "endOffset": 3}

    def make(label: str, start: int, end: int) -> dict[str, Any]:
        values: dict[str, dict[str, Any]] = {
            "labels": {"start": start, "end": end, "labels": [label]},
            "hypertextlabels": {
                **pages, "globalOffsets": {"start": start, "end": end}, "startOffset": start, "endOffset": end,
                "hypertextlabels": [label],
            },
            "rectanglelabels": {**place, "rectanglelabels": [label]},
            "keypointlabels": {"x": 10, "y": 10, "width": 1, "keypointlabels": [label]},
            "textarea": {"text": ["a cat"]},
        }  # fmt: skip
        more = size if kind.startswith(("rect", "key")) else {}
        return {"id": f"{label}{start}", "from_name": "q", "to_name": "o", "type": kind, "value": values[kind], **more}

    labels = ("PER", "LOC") if kind in ("labels", "hypertextlabels") else ("cat", "dog")
    results = [make(labels[0], 0, 3), make(labels[1], 9, 13)][: 1 if kind == "textarea" else 2]
    tasks = [
        {
            "id": number,
            "data": {"text": TEXT},
            "annotations": [{"completed_by": 1, "result": results}],
            "predictions": [],
        }
        for number in (1, 2, 3)
    ]
    path = folder / "export.json"
    path.write_text(json.dumps(tasks))
    return path


def make_argilla(folder: Path) -> Path:
    value = [{"start": 0, "end": 3, "label": "PER"}, {"start": 9, "end": 13, "label": "LOC"}]
    response = {"value": value, "user_id": "ann", "status": "submitted"}
    records = [
        {"id": str(number), "fields": {"text": TEXT}, "metadata": {}, "suggestions": {}, "responses": {"q": [response]}}
        for number in (1, 2, 3)
    ]
    path = folder / "records.json"
    path.write_text(json.dumps(records))
    return path


def make_doccano(folder: Path, column: str) -> Path:
    spans: list[Any] = [[0, 3, "PER"], [9, 13, "LOC"]]
    if column == "entities":
        spans = [
            {"id": one, "start_offset": start, "end_offset": end, "label": label}
            for one, (start, end, label) in enumerate(spans)
        ]
    (folder / "doccano").mkdir()
    records = [{"id": number, "text": TEXT, column: spans} for number in (1, 2, 3)]
    write_lines(folder / "doccano" / "ann.jsonl", records)
    return folder / "doccano"


def make_prodigy(folder: Path, kind: str) -> Path:
    record: dict[str, Any] = {"_session_id": "x-ann", "answer": "accept"}
    if kind == "spans":
        tokens = [{"id": 0, "start": 0, "end": 3, "text": "Ann"}, {"id": 1, "start": 4, "end": 8, "text": "left"},
                  {"id": 2, "start": 9, "end": 13, "text": "Rome"}]  # fmt: skip
        spans = [{"start": 0, "end": 3, "label": "PER"}, {"start": 9, "end": 13, "label": "LOC"}]
        record |= {"text": TEXT, "tokens": tokens, "spans": spans, "_view_id": "ner_manual"}
    else:
        boxes = [
            {"x": 1, "y": 2, "width": 30, "height": 40, "type": "rect", "label": label} for label in ("cat", "dog")
        ]
        record |= {"image": "a.jpg", "width": WIDTH, "height": HEIGHT, "spans": boxes, "_view_id": "image_manual"}
    return write_lines(folder / "db.jsonl", [record | {"_input_hash": number} for number in (1, 2, 3)])


def make_cvat(folder: Path) -> Path:
    shapes = "".join(
        f'<box label="{label}" xtl="1" ytl="2" xbr="31" ybr="42"/><points label="{label}" points="5,5"/>'
        for label in ("cat", "dog")
    )
    images = "".join(
        f'<image id="{number}" name="{number}" width="{WIDTH}" height="{HEIGHT}">{shapes}</image>'
        for number in (1, 2, 3)
    )
    (folder / "ann.xml").write_text(f"<annotations>{images}</annotations>")
    return folder / "ann.xml"


def make_coco(folder: Path) -> Path:
    images = [{"id": 10 + number, "file_name": str(number), "width": WIDTH, "height": HEIGHT} for number in (1, 2, 3)]
    annotations = [
        {"id": number, "image_id": 11, "category_id": number, "bbox": [1, 2, 30, 40], "annotator": "ann"}
        for number in (5, 6)
    ]
    categories = [{"id": 5, "name": "cat"}, {"id": 6, "name": "dog"}]
    path = folder / "coco.json"
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return path


CASES: dict[str, tuple[Callable[[Path], Path], str | None, pd.DataFrame]] = {
    "label-studio spans": (lambda folder: make_label_studio(folder, "labels"), None, SPANS),
    "label-studio pages": (lambda folder: make_label_studio(folder, "hypertextlabels"), None, SPANS),
    "label-studio boxes": (lambda folder: make_label_studio(folder, "rectanglelabels"), None, BOXES),
    "label-studio points": (lambda folder: make_label_studio(folder, "keypointlabels"), None, POINTS),
    "argilla": (make_argilla, None, SPANS),
    "doccano": (lambda folder: make_doccano(folder, "label"), None, SPANS),
    "doccano entities": (lambda folder: make_doccano(folder, "entities"), None, SPANS),
    "prodigy spans": (lambda folder: make_prodigy(folder, "spans"), None, SPANS),
    "prodigy boxes": (lambda folder: make_prodigy(folder, "boxes"), None, BOXES),
    "cvat boxes": (make_cvat, "boxes", BOXES),
    "cvat points": (make_cvat, "points", POINTS),
    "coco": (make_coco, None, BOXES),
}


def name_output(project: Project) -> str:
    return {"cvat": "back.xml", "coco": "back.json", "label-studio": "back.json", "argilla": "back.json"}.get(
        project.format, "back.jsonl"
    )


@pytest.mark.parametrize("case", CASES)
def test_what_is_written_is_read_again(tmp_path: Path, case: str) -> None:
    make, question, objects = CASES[case]
    project = read_project(make(tmp_path))
    path = tmp_path / name_output(project)
    write_objects(objects, project, path, tasks=TASKS, question=question, model="some-consensus")
    again = read_project(path)
    assert again.format == project.format
    target = again.get_structured(question)
    assert target.structure.task == []  # no votes
    assert target.consensus is not None
    expected = (
        objects
        if case.startswith(("label", "argilla", "prodigy", "cvat", "coco"))
        else objects.assign(confidence=float("nan"))
    )
    pd.testing.assert_frame_equal(target.consensus, expected.sort_values("task", kind="stable"), check_dtype=False)


@pytest.mark.parametrize("case", CASES)
def test_inferred_objects_fit_the_tool(tmp_path: Path, case: str) -> None:
    make, question, objects = CASES[case]
    project = read_project(make(tmp_path))
    target = project.get_structured(question)
    methods = {"spans": wc.SpanConsensus, "boxes": wc.BoxConsensus, "points": wc.PointConsensus}
    fitted = methods[target.kind]().fit(target.crowd)
    path = tmp_path / name_output(project)
    write_objects(fitted.objects_, project, path, tasks=fitted.tasks_, question=question, model=fitted.name)
    consensus = read_project(path).get_structured(question).consensus
    assert consensus is not None
    assert len(consensus) == len(fitted.objects_) > 0
    assert set(objects["label"]) <= set(target.labels)


def test_label_studio_gets_regions_with_scores(tmp_path: Path) -> None:
    project = read_project(make_label_studio(tmp_path, "rectanglelabels"))
    records = list(build_object_records(BOXES, project, tasks=TASKS, model="box-consensus"))
    prediction = records[0]["predictions"][0]
    assert (prediction["model_version"], prediction["score"]) == ("wisecrowd box-consensus", 0.8)
    (result,) = prediction["result"]
    assert result.pop("id")
    assert result == {
        "from_name": "q", "to_name": "o", "type": "rectanglelabels", "original_width": WIDTH, "original_height": HEIGHT,
        "image_rotation": 0, "score": 0.9,
        "value": {"x": 10, "y": 10, "width": 50.25, "height": 40, "rotation": 0, "rectanglelabels": ["cat"]},
    }  # fmt: skip
    assert records[2]["predictions"] == []  # nothing was found


def test_label_studio_gets_texts(tmp_path: Path) -> None:
    project = read_project(make_label_studio(tmp_path, "textarea"))
    texts = pd.DataFrame({"text": ["a cat", "a dog"], "confidence": [0.9, 0.5]}, index=["1", "3"])
    write_texts(texts, project, tmp_path / "back.json", model="rover")
    again = read_project(tmp_path / "back.json").get_structured()
    assert again.consensus is not None
    assert again.consensus.to_dict("index") == texts.to_dict("index")
    (record, _) = build_text_records(texts["text"], project)
    assert "score" not in record["predictions"][0]
    with pytest.raises(UsageError, match="are texts; write them with write_texts"):
        write_objects(SPANS, project, tmp_path / "x.json")


def test_shapes_beside_labels_get_both(tmp_path: Path) -> None:
    path = make_label_studio(tmp_path, "rectanglelabels")
    tasks = json.loads(path.read_text())
    for task in tasks:
        (first, _) = task["annotations"][0]["result"]
        value = {key: first["value"][key] for key in ("x", "y", "width", "height", "rotation")}
        shape = first | {"type": "rectangle", "value": value, "from_name": "shape"}
        labels = first | {"type": "labels", "value": {**value, "labels": ["cat"]}}
        task["annotations"][0]["result"] = [shape, labels]
    path.write_text(json.dumps(tasks))
    records = list(build_object_records(BOXES[:1], read_project(path)))
    results = records[0]["predictions"][0]["result"]
    assert [(result["from_name"], result["type"]) for result in results] == [("shape", "rectangle"), ("q", "labels")]
    assert results[0]["id"] == results[1]["id"]
    assert "labels" not in results[0]["value"]


def test_prodigy_gets_tokens(tmp_path: Path) -> None:
    project = read_project(make_prodigy(tmp_path, "spans"))
    (first, _, third) = build_object_records(SPANS, project, tasks=TASKS)
    assert first["spans"][1] == {"start": 9, "end": 13, "label": "LOC", "token_start": 2, "token_end": 2, "score": 0.75}
    assert "answer" not in first
    assert third["spans"] == []


def test_coco_keeps_the_ids_of_categories(tmp_path: Path) -> None:
    write_objects(BOXES, read_project(make_coco(tmp_path)), tmp_path / "back.json", model="box-consensus")
    document = json.loads((tmp_path / "back.json").read_text())
    assert document["categories"] == [{"id": 5, "name": "cat"}, {"id": 6, "name": "dog"}]
    assert document["annotations"][1] == {
        "id": 2, "image_id": 12, "category_id": 6, "bbox": [0, 30, 200, 70], "area": 14000, "iscrowd": 0, "score": 0.75,
        "annotator": "wisecrowd box-consensus",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        (SPANS.assign(task="9"), "not in the project: '9'"),
        (SPANS.assign(label="ORG"), "'ORG' is not a label of 'q', whose labels are 'LOC', 'PER'"),
        (SPANS.drop(columns="end"), "no column 'end'; spans, the answers to 'q', need task, start, end and label"),
    ],
)
def test_objects_that_do_not_fit_are_refused(tmp_path: Path, objects: pd.DataFrame, message: str) -> None:
    project = read_project(make_label_studio(tmp_path, "labels"))
    with pytest.raises(InputError, match=message):
        write_objects(objects, project, tmp_path / "back.json")
    assert not (tmp_path / "back.json").exists()


def test_ends_that_no_worker_used_have_no_place_in_a_page(tmp_path: Path) -> None:
    project = read_project(make_label_studio(tmp_path, "hypertextlabels"))
    with pytest.raises(InputError, match="begins or ends where no span of the export does"):
        list(build_object_records(SPANS.assign(end=14), project))


def test_tools_take_what_they_can_show(tmp_path: Path) -> None:
    coco = json.loads(make_coco(tmp_path).read_text())
    coco["annotations"] = [{"id": 1, "image_id": 11, "category_id": 5, "keypoints": [5, 5, 2], "annotator": "ann"}]
    (tmp_path / "coco.json").write_text(json.dumps(coco))
    project, points = read_project(tmp_path / "coco.json"), POINTS.assign(label="keypoint 1")
    with pytest.raises(UsageError, match="points cannot be written for coco; the tools are label-studio"):
        write_objects(points, project, tmp_path / "back.json")


def test_texts_of_tools_that_do_not_tell_them_from_classes(tmp_path: Path) -> None:
    responses = {"note": [{"value": "a cat", "user_id": "ann", "status": "submitted"}]}
    path = tmp_path / "records.json"
    path.write_text(json.dumps([{"id": "r1", "fields": {"text": "x"}, "suggestions": {}, "responses": responses}]))
    (record,) = build_text_records(pd.Series({"r1": "a dog"}), read_project(path), model="rover")
    assert record["suggestions"] == {"note": {"value": "a dog", "score": None, "agent": "wisecrowd rover"}}
    record = {
        "_input_hash": 1,
        "_session_id": "ann",
        "_view_id": "text_input",
        "user_input": "a cat",
        "answer": "accept",
    }
    project = read_project(write_lines(tmp_path / "db.jsonl", [record]))
    (record,) = build_text_records(pd.DataFrame({"text": ["a dog"], "confidence": [0.5]}, index=["1"]), project)
    assert (record["user_input"], record["wisecrowd_confidence"]) == ("a dog", 0.5)


def test_names_in_xml_are_escaped(tmp_path: Path) -> None:
    export = make_cvat(tmp_path)
    export.write_text(export.read_text().replace('"cat"', '"cat &amp; &lt;kitten&gt;"'))
    boxes = BOXES[:1].assign(label="cat & <kitten>")
    write_objects(boxes, read_project(export), tmp_path / "back.xml", question="boxes", model="a<b")
    consensus = read_project(tmp_path / "back.xml").structured["boxes"].consensus
    assert consensus is not None
    assert consensus["label"].tolist() == ["cat & <kitten>"]


JUNK: list[Any] = [
    None,
    0,
    -1,
    5.5,
    1e308,
    10**400,
    True,
    "",
    "x" * 10_000,
    [],
    {},
    [[]],
    [None],
    {"a": 1},
    "\ud800",
    [1, 2, 3, 4],
]


def mutate(value: Any, rng: random.Random) -> Any:
    """Return the same value with one part replaced or removed."""
    if isinstance(value, dict) and value and rng.random() < 0.93:
        key = rng.choice(list(value))
        if rng.random() < 0.2:
            return {name: one for name, one in value.items() if name != key}
        return value | {key: mutate(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.93:
        place = rng.randrange(len(value))
        return [*value[:place], mutate(value[place], rng), *value[place + 1 :]]
    return rng.choice(JUNK)


@pytest.mark.parametrize("case", [case for case in CASES if not case.startswith("cvat")])
def test_damaged_marks_are_read_or_refused_in_words(tmp_path: Path, case: str) -> None:
    path = CASES[case][0](tmp_path)
    file = path / "ann.jsonl" if path.is_dir() else path
    has_lines = file.suffix == ".jsonl"
    content = (
        [json.loads(line) for line in file.read_text().splitlines()] if has_lines else json.loads(file.read_text())
    )
    rng, messages = random.Random(3), []
    for _ in range(40):
        damaged = mutate(content, rng)
        lines = damaged if has_lines and isinstance(damaged, list) else [damaged]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        try:
            for question in read_project(path, case.split()[0], duplicates="keep").structured.values():
                assert question.crowd.n_votes >= 0
        except WisecrowdError as error:
            messages.append(str(error))
    assert messages
    assert max(map(len, messages)) < 1500
