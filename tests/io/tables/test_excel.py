"""Excel workbooks: votes, truth, features and members, with ids as Excel shows them."""

from __future__ import annotations

import datetime
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError, MissingExtra
from wisecrowd.io import VoteSource
from wisecrowd.io.members import read_members
from wisecrowd.io.tables.excel import format_cell

openpyxl = pytest.importorskip("openpyxl", reason="the extra excel is not installed")

Save = Callable[..., Path]
VOTES = [["task", "worker", "label"], [7, "ann", "cat"], [7, "bob", "dog"], [8.0, "ann", "cat"]]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Save rows by sheet as a workbook."""

    def save_book(*sheets: list[list[Any]], name: str = "votes.xlsx") -> Path:
        book = openpyxl.Workbook()
        book.remove(book.active)
        for number, rows in enumerate(sheets):
            sheet = book.create_sheet(f"sheet {number}")
            for row in rows:
                sheet.append(row)
        book.save(tmp_path / name)
        return tmp_path / name

    return save_book


def test_votes(save: Save) -> None:
    path = save(VOTES)
    assert VoteSource.detect(path).format.name == "excel"
    crowd = wc.read(path)
    assert crowd.tasks.tolist() == ["7", "8"], "as in a CSV file"
    assert crowd.n_votes == 3
    assert wc.read(path.rename(path.with_name("download"))) == crowd, "a workbook is known by its content"


def test_cells_are_read_as_excel_shows_them() -> None:
    time = datetime.datetime(2026, 11, 18, 9, 30)
    texts = [format_cell(value) for value in (7, 7.0, 7.5, True, time, "007", "", "#REF!")]
    assert texts == ["7", "7", "7.5", "TRUE", "2026-11-18 09:30:00", "007", None, None]


def test_blank_rows_and_short_rows(save: Save) -> None:
    path = save([[None], *VOTES[:2], [None, None], ["", "", ""], [9, "cy"]])
    with pytest.raises(InputError, match="line 6"):
        wc.read(path)
    assert wc.read(path, missing="drop").n_votes == 1


def test_the_first_sheet_with_rows_is_read(save: Save, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "wisecrowd.io"):
        assert wc.read(save([], VOTES, [["notes"]])).n_votes == 3
    assert "read the sheet 'sheet 1'; left out 'sheet 0', 'sheet 2'" in caplog.text


def test_truth_features_members_and_label_sets(save: Save) -> None:
    truth = save([["task", "gold"], [7, "cat"], [8, None]], name="gold.xlsx")
    assert wc.read_truth(truth).to_dict() == {"7": "cat"}
    features = save([["task", "x", "y"], [7, 1, 0.5], [8, None, 2]], name="X.xlsx")
    table = wc.read_features(features).table
    assert table.index.tolist() == ["7", "8"]
    assert table["y"].tolist() == [0.5, 2.0]
    members = save([["worker", "kind"], ["ann", "person"], ["gpt", "LLM"]], name="members.xlsx")
    assert read_members(members)["kind"].to_dict() == {"ann": "person", "gpt": "machine"}
    sets = save([["task", "worker", "labels"], [1, "ann", "cat|dog"], [2, "bob", "cat"]], name="sets.xlsx")
    assert wc.read_label_sets(sets).n_votes == 2


def test_problems_are_reported(save: Save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="all its sheets are empty"):
        wc.read(save([], []))
    with pytest.raises(InputError, match="there is no label column"):
        wc.read(save([["task", "worker", "z"], [1, 2, 3]]))
    damaged = tmp_path / "damaged.xlsx"
    content = save(VOTES).read_bytes()
    damaged.write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match="it is no Excel workbook, or it is cut off"):
        wc.read(damaged)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtra, match=r"wisecrowd\[excel\]"):
        wc.read(save(VOTES, name="other.xlsx"))


@pytest.mark.slow
def test_a_workbook_that_unpacks_to_gigabytes_is_refused(save: Save, tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(save(VOTES)) as book, zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as copy:
        for info in book.infolist():
            copy.writestr(info, book.read(info))
        copy.writestr("xl/padding.xml", b" " * 100_000_000)
    with pytest.raises(InputError, match=r"unpacks to 100\.0 MB, too much"):
        wc.read(bomb)


def test_a_workbook_that_declares_less_than_it_unpacks_to_takes_no_memory(save: Save, tmp_path: Path) -> None:
    liar = tmp_path / "liar.xlsx"
    with zipfile.ZipFile(save(VOTES)) as book, zipfile.ZipFile(liar, "w", zipfile.ZIP_DEFLATED) as copy:
        for info in book.infolist():
            copy.writestr(info.filename, book.read(info) if info.filename != "xl/workbook.xml" else b" " * 50_000_000)
        copy.getinfo("xl/workbook.xml").file_size = 500
    tracemalloc.start()
    try:
        with pytest.raises(InputError):
            wc.read(liar)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_a_sheet_of_far_cells_is_refused(save: Save) -> None:
    header = [f"c{number}" for number in range(3000)]
    path = save([["task", "worker", "label", *header], *([number, "ann", "cat"] for number in range(600))])
    with pytest.raises(InputError, match="its sheet unpacks to"):
        wc.read(path, max_unpacked="5MB")


def test_votes_on_another_sheet_are_pointed_out(save: Save) -> None:
    path = save([["project", "owner"], ["cats", "ann"]], [], VOTES)
    message = (
        "the first sheet with rows is 'sheet 0', without the columns needed; the sheet 'sheet 2' has them "
        r"\('task', 'worker', 'label'\)\. Move it to the front"
    )
    with pytest.raises(InputError, match=message):
        wc.read(path)
    assert "the sheet 'sheet 2' has them" in wc.check_votes(path).errors[0].message
    with pytest.raises(InputError, match="are no task, worker and label columns"):
        wc.read(save([["project", "owner"], ["cats", "ann"]], [["more", "notes"], [1, 2]]))


def test_truth_on_another_sheet_is_pointed_out(save: Save) -> None:
    path = save([["project", "owner"], ["cats", "ann"]], [["task", "gold"], [7, "cat"]])
    with pytest.raises(InputError, match=r"the sheet 'sheet 1' has them \('task', 'gold'\)"):
        wc.read_truth(path)
