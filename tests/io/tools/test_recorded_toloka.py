"""Assignments that toloka-kit 1.2.3 downloaded and pandas saved, as integration/toloka.py recorded them."""

from __future__ import annotations

from pathlib import Path

import pytest

from wisecrowd.io import read_project

RECORDED = Path(__file__).parents[2] / "recorded" / "toloka"


@pytest.mark.parametrize("name", ["saved.tsv", "saved-with-index.tsv"])
def test_a_saved_frame(name: str) -> None:
    project = read_project(RECORDED / name)
    assert project.format == "toloka"
    animal = project.questions["animal"]
    frame = animal.crowd.to_frame()
    assert sorted(frame[["task", "worker", "label"]].itertuples(index=False, name=None)) == [
        ("a.jpg", "w1", "cat"), ("a.jpg", "w2", "cat"), ("b.jpg", "w1", "dog"), ("b.jpg", "w2", "cat"),
    ]  # fmt: skip
    assert animal.excluded == {"rejected": 1}
    assert animal.truth.to_dict() == {"b.jpg": "dog"}
    assert project.questions["colours"].kind == "multiple"
