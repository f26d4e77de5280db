"""Reports as a whole: saving, and a real crowd."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wisecrowd as wc
from wisecrowd import report


@pytest.mark.slow
def test_saved_page_is_recognised(tmp_path: Path, simulated: Any) -> None:
    built = report.build(simulated.crowd, compare=False)
    path = built.save(tmp_path / "new" / "page.html")
    assert path.read_text(encoding="utf-8") == built.html
    assert [file.name for file in path.parent.iterdir()] == ["page.html"]
    assert report.is_report(path)
    path.write_text("<!doctype html>", encoding="utf-8")
    assert not report.is_report(path)


@pytest.mark.data
def test_report_on_labelme_equals_a_recount(dataset: Any, page_of: Any) -> None:
    data = dataset("labelme")
    page = page_of(report.build(data.crowd, truth=data.truth, compare=False).html)
    votes, observed = data.crowd.to_frame(), page.tiles
    assert (observed["votes"], observed["tasks"]) == (f"{len(votes):,}", f"{votes['task'].nunique():,}")
    labels = wc.ModelAverage().fit(data.crowd).labels_
    on_gold = data.truth[data.truth.index.isin(labels.index)]
    assert f"{(labels[on_gold.index] == on_gold).sum()} labels are right" in page.section_text("summary")
    counts = votes["worker"].value_counts()
    assert {row["Worker"].text: int(row["Votes"].text) for row in page.rows("worker-table")} == counts.to_dict()
    classes = votes["label"].astype(str).value_counts()
    assert {row["Class"].text: int(row["Votes"].text) for row in page.rows("class-table")} == classes.to_dict()
    tasks = votes.groupby("task").size()
    assert page.captions["task-table"].startswith(f"500 of {len(tasks):,} tasks")
    assert all(int(row["Votes"].text.split()[0]) == tasks[row["Task"].text] for row in page.rows("task-table"))
