"""Spans, boxes, points and texts as a real Label Studio 1.23.2 wrote them (tests/recorded/label_studio_objects)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd.io import read_project
from wisecrowd.io.tools.projects import Project
from wisecrowd.io.tools.structured_export import write_objects, write_texts

RECORDED = Path(__file__).parents[2] / "recorded" / "label_studio_objects"
KINDS = {"names": "spans", "terms": "spans", "objects": "boxes", "eyes": "points", "caption": "texts"}
METHODS = {"spans": wc.SpanConsensus, "boxes": wc.BoxConsensus, "points": wc.PointConsensus}
#: True names by task: start, end and label.
NAMES = [
    [(0, 3, "PER"), (13, 17, "LOC")],
    [(0, 3, "PER"), (9, 14, "LOC"), (19, 23, "LOC")],
    [(10, 14, "LOC"), (23, 25, "PER")],
    [],
]


@pytest.fixture(scope="module")
def exported() -> Project:
    """The server's own export in JSON."""
    return read_project(RECORDED / "export_json.json")


def test_kinds_votes_and_exclusions(exported: Project) -> None:
    assert {name: question.kind for name, question in exported.structured.items()} == KINDS
    names = exported.structured["names"]
    assert names.crowd.votes_per_task.tolist() == [3, 3, 2, 3]  # one person skipped the third task
    assert names.excluded == {"cancelled": 1, "drafts": 1, "gold": 1}
    objects = exported.structured["objects"]
    assert objects.machines == ["yolo-1"]
    assert objects.crowd.n_votes == 12


def test_gold_is_truth(exported: Project) -> None:
    truth = exported.structured["names"].truth
    assert truth is not None
    assert truth[["start", "end", "label"]].to_numpy().tolist() == [list(name) for name in NAMES[0]]


def test_boxes_are_in_pixels(exported: Project) -> None:
    frame = exported.structured["objects"].crowd.to_frame().dropna()
    cats = frame[(frame["task"] == "1") & (frame["label"] == "cat")].set_index("worker")
    assert cats.loc["1", ["x", "y", "width", "height"]].tolist() == pytest.approx([32, 20, 96, 80])
    assert cats.loc["2", ["x", "y", "width", "height"]].tolist() == pytest.approx([28, 16, 104, 88])


def test_the_consensus_is_the_truth(exported: Project) -> None:
    names = exported.structured["names"].crowd
    rows = [(task, *name) for task, marks in zip(names.tasks, NAMES, strict=True) for name in marks]
    truth = pd.DataFrame(rows, columns=["task", "start", "end", "label"])
    assert wc.score_objects(wc.SpanConsensus().fit(names).objects_, truth, kind="spans").f1 == 1
    captions = exported.structured["caption"].crowd
    assert wc.Rover().fit(captions).texts_.tolist()[0] == "a cat and a dog"


def test_json_min_has_the_same_marks(exported: Project) -> None:
    other = read_project(RECORDED / "export_json_min.json", duplicates="keep")
    assert set(other.structured) == set(KINDS) - {"caption"}  # texts look like classes there
    boxes, people = other.structured["objects"].crowd, exported.structured["objects"].crowd
    frame = people.to_frame()
    pd.testing.assert_frame_equal(
        boxes.to_frame(), frame[frame["worker"] != "yolo-1"].reset_index(drop=True), check_dtype=False
    )


def test_what_was_pushed_is_no_vote_and_is_read_again(exported: Project) -> None:
    again = read_project(RECORDED / "pulled_again.json")
    for name, question in again.structured.items():
        assert question.crowd.digest == exported.structured[name].crowd.digest
        assert question.consensus is not None
    consensus = again.structured["names"].consensus
    assert consensus is not None
    spans = consensus.groupby("task")[["start", "end", "label"]].apply(lambda frame: frame.to_numpy().tolist())
    assert sorted(spans.tolist()) == sorted([list(name) for name in names] for names in NAMES if names)


def test_marks_that_were_drawn_with_the_mouse() -> None:
    project = read_project(RECORDED / "drawn.json")
    frames: dict[str, Any] = {name: question.crowd.to_frame() for name, question in project.structured.items()}
    assert frames["names"][["start", "end", "label"]].to_numpy().tolist() == [[9, 14, "LOC"]]
    assert frames["terms"][["start", "end", "label"]].to_numpy().tolist() == [[17, 26, "TERM"]]
    (box,) = frames["objects"][["x", "y", "width", "height"]].to_numpy().tolist()
    assert box == pytest.approx([40, 30, 120, 70], abs=2)


@pytest.mark.parametrize("name", KINDS)
def test_results_are_written_and_read_again(exported: Project, tmp_path: Path, name: str) -> None:
    question = exported.structured[name]
    path = tmp_path / "predictions.json"
    if question.kind == "texts":
        texts = wc.Rover().fit(question.crowd)
        write_texts(texts.tasks_, exported, path, question=name, model=texts.name)
        consensus = read_project(path).structured[name].consensus
        assert consensus is not None
        assert consensus["text"].to_dict() == texts.texts_.to_dict()
        return
    fitted = METHODS[question.kind]().fit(question.crowd)
    write_objects(fitted.objects_, exported, path, tasks=fitted.tasks_, question=name, model=fitted.name)
    consensus = read_project(path).structured[name].consensus
    assert consensus is not None
    expected = fitted.objects_.drop(columns=["n_marks", "n_votes"]).round({"confidence": 6})
    columns = [column for column in expected if column != "confidence"]
    order = ["task", *columns[1:-1]]
    pd.testing.assert_frame_equal(
        consensus[columns].sort_values(order, ignore_index=True),
        expected[columns].sort_values(order, ignore_index=True),
        check_dtype=False,
        atol=1e-4,
    )
