"""Tags in CVAT's format that datumaro 1.13.12 exported, as integration/cvat.py recorded them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from wisecrowd.io import read_project

RECORDED = Path(__file__).parents[2] / "recorded" / "cvat"
SAID = [
    ("a.jpg", "ann", "cat"), ("a.jpg", "bob", "cat"), ("c.jpg", "bob", "dog"), ("sub/b é.jpg", "ann", "dog"),
    ("sub/b é.jpg", "bob", "cat"),
]  # fmt: skip


@pytest.mark.parametrize("name", ["", "default", "annotations"])
def test_workers_go_by_the_names_of_files_or_folders(tmp_path: Path, name: str) -> None:
    for worker in ("ann", "bob"):
        target = tmp_path / worker / f"{name}.xml" if name else tmp_path / f"{worker}.xml"
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(RECORDED / f"{worker}.xml", target)
    project = read_project(tmp_path, "cvat")
    frame = project.get_question().crowd.to_frame()
    assert sorted(frame[["task", "worker", "label"]].itertuples(index=False, name=None)) == SAID
    boxes = project.structured["boxes"].crowd
    assert (boxes.n_marks, boxes.n_votes, boxes.workers.tolist()) == (6, 6, ["ann", "bob"])
    assert boxes.coordinates[0].tolist() == [0, 0, 2, 2]
