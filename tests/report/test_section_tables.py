"""Cells, tables and sections that pages on other answers share."""

from __future__ import annotations

import pandas as pd
import pytest

from wisecrowd import simulate_spans, simulate_texts
from wisecrowd.diagnose import diagnose_texts
from wisecrowd.report.section_tables import (
    assemble_content,
    build_method_section,
    build_task_section,
    build_worker_section,
    compare_if_possible,
    describe_flagged_workers,
    format_share,
    list_findings,
    make_column,
    make_count_tiles,
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
    assert [cell["text"] for cell in first["cells"]] == ["bob", "x", "5", "25%", "a → b 40%"]
    assert section["table"]["filter"]["flags"] == ["loud", "misses"]
    assert section["table"]["rows"][1]["cells"][4]["text"] == "–"


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


def test_tasks_have_an_id_and_the_cells_of_the_page() -> None:
    tasks = pd.DataFrame({"area": [4, 9]}, index=["t1", "t2"])
    section = build_task_section(
        tasks, [make_column("Area")], lambda row: [make_number(row["area"], f"{row['area']}")], "All."
    )
    assert [column["text"] for column in section["table"]["columns"]] == ["Task", "Area"]
    assert [[cell["text"] for cell in row["cells"]] for row in section["table"]["rows"]] == [["t1", "4"], ["t2", "9"]]


def test_counts_and_flagged_workers() -> None:
    figures = {"tasks": 2_000, "votes": 5_000, "workers": 3, "flagged_workers": 0}
    assert make_count_tiles(figures, "texts")[0] == {"name": "Tasks", "value": "2,000", "note": "2.5 texts each"}
    assert make_count_tiles(figures)[1] == {"name": "Workers", "value": "3", "note": "0 flagged"}
    assert describe_flagged_workers(figures) == []
    assert describe_flagged_workers(figures | {"flagged_workers": 1}) == ["1 of 3 workers are flagged."]


def test_content_leaves_out_absent_sections() -> None:
    diagnosis = diagnose_texts(simulate_texts(n_tasks=6, n_workers=3, votes_per_task=2, random_state=0).crowd)
    content = assemble_content(diagnosis, None, None, tiles=[], sentences=["A."], sections=[None, {"id": "tasks"}])
    assert content["sections"] == [{"id": "tasks"}]
    assert content["provenance"]["digest"] == diagnosis.crowd.digest
