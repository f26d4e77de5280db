"""Cells, tables and sections that pages on other answers share."""

from __future__ import annotations

import pandas as pd
import pytest

from wisecrowd import simulate_spans, simulate_texts
from wisecrowd.report.section_tables import (
    build_method_section,
    build_worker_section,
    compare_if_possible,
    format_share,
    list_findings,
    make_column,
    make_number,
)


def test_flagged_workers_come_first_and_texts_are_shown_as_they_are() -> None:
    workers = pd.DataFrame(
        {
            "n_votes": [9, 5],
            "rate": [0.5, 0.25],
            "confuses": ["", "a → b 40%"],
            "flags": ["", "misses, loud"],
            "why": ["", "x"],
        },
        index=["ann", "bob"],
    )
    fields = {
        "rate": make_column("Rate"),
        "confuses": make_column("Confusion", "text"),
        "absent": make_column("Absent"),
    }
    section = build_worker_section(workers, fields, ("rate",), "Text.")
    first = section["table"]["rows"][0]
    assert [cell["text"] for cell in first["cells"]] == ["bob", "5", "25%", "a → b 40%", "x"]
    assert section["table"]["filter"]["flags"] == ["loud", "misses"]
    assert section["table"]["rows"][1]["cells"][3]["text"] == "–"


def test_too_few_votes_have_no_comparison() -> None:
    crowd = simulate_spans(n_tasks=2, n_workers=2, votes_per_task=2, random_state=0).crowd
    assert compare_if_possible(crowd) is None
    assert build_method_section(None) is None


def test_a_large_crowd_is_represented_by_random_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = simulate_texts(n_tasks=40, n_workers=6, votes_per_task=5, random_state=0).crowd
    monkeypatch.setattr("wisecrowd.report.section_tables.MAX_COMPARED_VOTES", 100)
    comparison = compare_if_possible(crowd)
    assert comparison is not None
    assert "100 held-out texts" in comparison.summary


def test_findings_are_errors_and_warnings() -> None:
    crowd = simulate_spans(n_tasks=6, n_workers=1, votes_per_task=1, random_state=0).crowd
    assert "Warning" in {finding["severity"] for finding in list_findings(crowd)}


def test_small_parts() -> None:
    assert format_share(None) == "–"
    assert format_share(0.25) == "25%"
    assert make_number(2, "two") == {"kind": "number", "value": 2.0, "text": "two"}
