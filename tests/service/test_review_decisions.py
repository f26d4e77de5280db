"""Decisions of reviewers: nothing that was acknowledged is lost, and nothing of others is overwritten."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wisecrowd import io
from wisecrowd.errors import InputError, UsageError
from wisecrowd.service.review_decisions import COLUMNS, Decision, DecisionLog

TIME = "2026-05-01T10:00:00+00:00"


def decide(task: str, truth: str | None, **more: object) -> Decision:
    return Decision(task, truth, "ann", TIME, **more)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "checked.csv"


def test_decisions_are_gold_with_name_and_time(path: Path) -> None:
    with DecisionLog(path, {"weight": {"t1": 2.5}}) as log:
        log.add(decide("t1", "cat", note='two lines\nand a "quote", too'))
        log.add(decide("t2", "a,b"))
        log.add(decide("t3", None, note="cannot be seen"))
        assert log.gold == {"t1": "cat", "t2": "a,b"}
    assert io.read_truth(path, truth="truth").to_dict() == {"t1": "cat", "t2": "a,b"}
    assert io.read_truth(path, truth="reviewer")["t1"] == "ann"
    assert io.read_truth(path, truth="time")["t2"] == TIME
    assert path.read_text().splitlines()[0].split(",") == [*COLUMNS, "weight"]
    with DecisionLog(path, {"weight": {"t1": 2.5}}) as log:
        assert log.decisions["t3"].note == "cannot be seen", "a note on a skipped task is kept"


def test_later_decisions_replace_earlier_ones_and_undo_restores_them(path: Path) -> None:
    with DecisionLog(path) as log:
        assert log.undo() is None
        log.add(decide("t1", "cat"))
        log.add(decide("t1", "dog"))
        log.add(decide("t2", None))
        assert [log.undo().task, log.gold["t1"]] == ["t2", "dog"]  # type: ignore[union-attr]
        assert log.undo() == decide("t1", "dog")
        assert log.gold == {"t1": "cat"}
    with DecisionLog(path) as log:
        assert log.gold == {"t1": "cat"}
        assert log.can_undo, "what was decided before a restart can be taken back"
        log.undo()
        assert log.gold == {}


@pytest.mark.slow
def test_a_kill_at_any_byte_loses_nothing_that_was_acknowledged(path: Path) -> None:
    sizes, tables = [], []
    with DecisionLog(path) as log:
        for step in range(4):
            sizes.append(log.journal_path.stat().st_size)
            tables.append(path.read_text())
            if step == 2:
                log.undo()
            else:
                log.add(decide(f"t{step}", f"class {step}", note="ä" * step))
    journal = log.journal_path.read_bytes()
    for size in range(sizes[0], len(journal) + 1):  # the first line appears as a whole
        log.journal_path.write_bytes(journal[:size])
        n_acknowledged = sum(size >= acknowledged for acknowledged in sizes) - 1
        path.write_text(tables[n_acknowledged])  # the table of the last acknowledgement
        with DecisionLog(path) as resumed:
            if size < len(journal):
                assert path.read_text() == tables[n_acknowledged]
            resumed.add(decide("after", "x"))
        with DecisionLog(path) as again:
            assert again.gold["after"] == "x"
        path.unlink()


def test_a_kill_between_journal_and_table_is_repaired(path: Path) -> None:
    with DecisionLog(path) as log:
        log.add(decide("t1", "cat"))
        before = path.read_text()
        log.add(decide("t2", "dog"))
    path.write_text(before)
    with DecisionLog(path) as log:
        assert list(log.gold) == ["t1", "t2"]
    assert "t2,dog" in path.read_text()


def test_files_of_others_are_refused(path: Path, tmp_path: Path) -> None:
    path.write_text("task,truth\nt1,cat\n")
    with pytest.raises(UsageError, match="was not written by wisecrowd review"):
        DecisionLog(path)
    path.unlink()
    with DecisionLog(path) as log:
        log.add(decide("t1", "cat"))
        with pytest.raises(InputError, match="another wisecrowd review"):
            DecisionLog(path)
    path.write_text("task,truth\nt1,dog\n")
    with pytest.raises(UsageError, match="changed by another program"):
        DecisionLog(path)
    with pytest.raises(UsageError, match=r"\.csv or \.tsv"):
        DecisionLog(tmp_path / "checked.xlsx")


@pytest.mark.parametrize(
    "line",
    ["[1]", "{}", "not json", '{"undo": true}', json.dumps({**decide("t", "x").__dict__, "truth": 5})],
)
def test_damaged_journals_are_refused(path: Path, line: str) -> None:
    with DecisionLog(path) as log:
        pass
    log.journal_path.write_text(log.journal_path.read_text() + line + "\n")
    with pytest.raises(InputError, match=r"line 2 of .* is not as wisecrowd review wrote it"):
        DecisionLog(path)
    log.journal_path.write_text('{"format": "other", "question": ""}\n')
    with pytest.raises(InputError, match="line 1"):
        DecisionLog(path)


def test_rows_that_were_filled_in_by_hand_are_decisions(path: Path) -> None:
    with DecisionLog(path, initial=[Decision("t1", "cat", "")]) as log:
        assert log.gold == {"t1": "cat"}
        assert not log.can_undo
    with DecisionLog(path, initial=[Decision("t9", "dog", "")]) as log:
        assert log.gold == {"t1": "cat"}, "a review that goes on has its own decisions"


def test_tables_can_be_separated_by_tabs(tmp_path: Path) -> None:
    with DecisionLog(tmp_path / "checked.tsv") as log:
        log.add(decide("t1", "cat"))
    assert io.read_truth(tmp_path / "checked.tsv", truth="truth").to_dict() == {"t1": "cat"}


def test_decisions_on_another_question_are_not_mixed(path: Path) -> None:
    with DecisionLog(path, question="mood") as log:
        log.add(decide("t1", "good"))
    with pytest.raises(
        UsageError, match="has decisions on the question 'mood', and this review is of the question 'topic'"
    ):
        DecisionLog(path, question="topic")
    with pytest.raises(UsageError, match="this review is of votes on one question"):
        DecisionLog(path)
    with DecisionLog(path, question="mood") as log:
        assert log.gold == {"t1": "good"}
