from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wisecrowd.cli._outputs import check_folder, check_writable, table_of, write_all, write_table
from wisecrowd.errors import DiskFull, UsageError

# Everything that UTF-8 can hold; a NUL is no text to Python's reader before 3.11.4.
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


@given(texts=st.lists(TEXT, min_size=1, max_size=5), name=TEXT, suffix=st.sampled_from([".csv", ".tsv"]))
def test_any_text_survives(tmp_path_factory: pytest.TempPathFactory, texts: list[str], name: str, suffix: str) -> None:
    path = tmp_path_factory.mktemp("table") / f"table{suffix}"
    frame = pd.DataFrame({"task": texts, f"x{name}": texts, "share": [0.5] * len(texts)})
    write_table(frame, path)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="," if suffix == ".csv" else "\t"))
    assert rows == [["task", f"x{name}", "share"], *([text, text, "0.5"] for text in texts)]


def test_quotes_only_where_needed(tmp_path: Path) -> None:
    write_table(pd.DataFrame({"task": ["t1"], "label": ["cat"]}), tmp_path / "plain.csv")
    assert (tmp_path / "plain.csv").read_text(encoding="utf-8") == "task,label\nt1,cat\n"
    write_table(pd.DataFrame({"task": [""], "label": [None]}), tmp_path / "holes.csv")
    assert (tmp_path / "holes.csv").read_text(encoding="utf-8") == 'task,label\n"",\n'


def test_parquet_and_unknown_names(tmp_path: Path) -> None:
    frame = pd.DataFrame({"task": [1, 2]})
    write_table(frame, tmp_path / "t.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "t.parquet"), frame)
    with pytest.raises(UsageError, match=r"use \.csv, \.tsv or \.parquet"):
        write_table(frame, tmp_path / "t.xlsx")


def test_all_files_or_none(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        path.write_text("half", encoding="utf-8")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        write_all({tmp_path / "a.csv": table_of(pd.DataFrame({"x": [1]})), tmp_path / "b.csv": fail})
    assert list(tmp_path.iterdir()) == []


def test_the_first_file_gets_its_name_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named: list[str] = []
    replace = Path.replace

    def spy(self: Path, target: Path) -> Path:
        named.append(Path(target).name)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", spy)
    frame = pd.DataFrame({"x": [1]})
    write_all({tmp_path / "run.csv": table_of(frame), tmp_path / "labels.csv": table_of(frame)})
    assert named == ["labels.csv", "run.csv"]


def test_folders_are_refused_before_the_work(tmp_path: Path) -> None:
    check_folder(tmp_path / "new" / "deep", ["labels.csv"])
    check_folder(tmp_path, ["labels.csv"])
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "labels.csv").write_text("x", encoding="utf-8")
    with pytest.raises(UsageError, match=r"no run\.json"):
        check_folder(tmp_path, ["labels.csv"])
    (tmp_path / "run.json").write_text("{}", encoding="utf-8")
    check_folder(tmp_path, ["labels.csv"])
    with pytest.raises(UsageError, match="is an input file and would be overwritten"):
        check_folder(tmp_path, ["labels.csv"], [tmp_path / "." / "labels.csv"])


@pytest.mark.skipif(
    os.name == "nt" or not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere"
)
def test_a_place_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="no permission"):
        check_writable(tmp_path / "labels.csv")


@pytest.mark.parametrize(
    "command", [("aggregate", "votes.csv"), ("demo",), ("simulate",), ("bench", "run", "zheng2017")]
)
def test_an_empty_place_is_refused(run: Any, votes: Path, command: tuple[str, ...]) -> None:
    result = run(*command, "-o", "")
    assert result.exit_code == 2
    assert "the path is empty; name a file or folder" in " ".join(result.stderr.replace("│", " ").split())
    assert list(votes.parent.iterdir()) == [votes]


def test_a_full_disk_names_the_file_that_has_no_room(tmp_path: Path) -> None:
    def full(_: Path) -> None:
        raise OSError(28, "No space left on device")

    files = {tmp_path / "run.json": lambda path: path.write_text("{}"), tmp_path / "labels.csv": full}
    with pytest.raises(DiskFull, match=r"no room for .*labels\.csv; make room"):
        write_all(files)
    assert not list(tmp_path.iterdir())


def test_input_that_links_to_itself_is_left_to_its_reader(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").symlink_to(tmp_path / "votes.csv")
    check_folder(tmp_path / "results", ["labels.csv"], [tmp_path / "votes.csv"])


def test_a_folder_has_no_name_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"choose a name without \.csv, such as -o \S*labels$"):
        check_folder(tmp_path / "labels.csv", ["labels.csv"])
    check_folder(tmp_path / "results.v2", ["labels.csv"])


def test_a_report_is_a_file_with_a_suffix(run: Any, votes: Path) -> None:
    result = run("report", votes, "-o", "page", "--no-compare")
    assert result.exit_code == 2
    assert "-o page.html" in result.stderr
