"""Reports on texts."""

from __future__ import annotations

import pytest

from wisecrowd import TextCrowd, simulate_texts
from wisecrowd.errors import UsageError
from wisecrowd.report import build
from wisecrowd.report.text_answers import build_text_content


def test_the_page_has_alignments_workers_tasks_and_methods() -> None:
    crowd = simulate_texts(n_tasks=20, n_workers=5, random_state=0).crowd
    content = build_text_content(crowd)
    assert [section["id"] for section in content["sections"]] == ["disputed", "workers", "tasks", "methods"]
    assert {tile["name"] for tile in content["tiles"]} >= {"Right words", "Pairwise WER"}
    assert len(content["sections"][0]["pictures"]) == 12
    assert "rover" in content["sections"][-1]["text"]


def test_names_and_texts_are_escaped() -> None:
    rows = {"task": ["<b>"] * 2, "worker": ["<i>", "y"], "text": ["<u>a</u>", "<u>b</u>"]}
    html = build(TextCrowd.from_frame(rows), compare=False, model="text-medoid").html
    assert "<u>" not in html
    assert "&lt;u&gt;a&lt;/u&gt;" in html
    assert "Disputed texts" in html


def test_media_are_refused() -> None:
    crowd = simulate_texts(n_tasks=3, n_workers=3, votes_per_task=2).crowd
    with pytest.raises(UsageError, match="the report on texts takes no texts"):
        build(crowd, texts={"t0": "a"})
