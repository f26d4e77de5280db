"""Findings and their report."""

from __future__ import annotations

from wisecrowd.io.validation.findings import Finding, ValidationReport

NOTE = Finding(name="one-vote-tasks", severity="note", count=2, message="two tasks have one vote", examples=("t1",))
WARNING = Finding(name="single-class", severity="warning", count=1, message="every vote is 'cat'", fix="Add classes.")
ERROR = Finding(name="empty-file", severity="error", count=1, message="there are no votes")


def test_the_most_severe_come_first_and_others_keep_their_order() -> None:
    other = Finding(name="another", severity="note", count=1, message="text")
    report = ValidationReport(source="votes.csv", summary="", findings=(NOTE, WARNING, other, ERROR))
    assert [finding.name for finding in report.findings] == ["empty-file", "single-class", "one-vote-tasks", "another"]
    assert (report.errors, report.warnings, report.notes) == ([ERROR], [WARNING], [NOTE, other])


def test_only_errors_prevent_the_use_of_votes() -> None:
    assert ValidationReport(source="x", summary="", findings=(NOTE, WARNING)).ok
    assert not ValidationReport(source="x", summary="", findings=(ERROR,)).ok


def test_text_has_a_title_a_count_and_a_line_for_everything() -> None:
    report = ValidationReport(source="votes.csv", summary="3 votes", findings=(NOTE, NOTE, WARNING))
    assert str(report).splitlines() == [
        "votes.csv: 3 votes",
        "1 warning, 2 notes",
        "warning  single-class: every vote is 'cat'",
        "         Add classes.",
        "note     one-vote-tasks: two tasks have one vote",
        "note     one-vote-tasks: two tasks have one vote",
    ]


def test_text_without_findings() -> None:
    assert str(ValidationReport(source="votes", summary="", findings=())) == "votes\nno problems found"


def test_table_has_a_row_for_every_finding() -> None:
    table = ValidationReport(source="x", summary="", findings=(NOTE, ERROR)).to_frame()
    assert table["name"].tolist() == ["empty-file", "one-vote-tasks"]
    assert table["examples"].tolist() == [(), ("t1",)]
    assert ValidationReport(source="x", summary="", findings=()).to_frame().columns.tolist() == [
        "severity", "name", "count", "message", "examples", "fix",
    ]  # fmt: skip
