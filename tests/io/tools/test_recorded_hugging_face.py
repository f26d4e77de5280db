"""Tables that datasets 5.2.0 wrote, as integration/hugging_face.py recorded them."""

from __future__ import annotations

from pathlib import Path

import pytest

from wisecrowd.io import read_project

RECORDED = Path(__file__).parents[2] / "recorded" / "hugging_face"
SAID = [
    ("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "bob", "dog"), ("t3", "ann", "eel"), ("t3", "bob", "eel"),
    ("t3", "cy", "cat"),
]  # fmt: skip
WORKERS = {"annotator_1": "ann", "annotator_2": "bob", "annotator_3": "cy"}


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
@pytest.mark.parametrize("name", ["lists", "objects", "sequence", "columns"])
def test_all_ways_of_telling_who_said_what(name: str, form: str) -> None:
    project = read_project(RECORDED / f"{name}.{form}")
    assert project.format == "hugging-face"
    frame = project.get_question().crowd.to_frame()
    found = sorted((row.task, WORKERS.get(row.worker, row.worker), row.label) for row in frame.itertuples())
    if form == "parquet":
        assert found == SAID
        assert project.get_question().crowd.classes.tolist() == ["cat", "dog", "eel"]
    else:  # which has no place for the names of classes, nor for what -1 means
        numbers = {"0": "cat", "1": "dog", "2": "eel"}
        assert [(task, who, numbers[said]) for task, who, said in found if said != "-1"] == SAID
