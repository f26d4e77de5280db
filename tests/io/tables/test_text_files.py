"""First lines of text files, and what is no text."""

from __future__ import annotations

import gzip
from functools import partial
from pathlib import Path

import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError
from wisecrowd.io.problems import EmptyInput
from wisecrowd.io.tables import text_files
from wisecrowd.io.tables.text_files import peek_lines, read_head_bytes, read_head_lines, read_lines


def write(folder: Path, content: bytes, name: str = "file.csv") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def test_lines_keep_their_breaks_and_lose_the_byte_order_mark(tmp_path: Path) -> None:
    path = write(tmp_path, b"\xef\xbb\xbfa,b\r\nc\xc3\xa9,d\n")
    assert read_head_lines(path) == ["a,b\r\n", "cé,d\n"]
    assert read_lines(path) == ["a,b", "cé,d"]


def test_compressed_files_are_decompressed(tmp_path: Path) -> None:
    assert read_head_lines(write(tmp_path, gzip.compress(b"a\nb\n"), "file.csv.gz")) == ["a\n", "b\n"]


def test_the_head_of_a_long_file_ends_with_a_whole_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "HEAD_BYTES", 10)
    path = write(tmp_path, "abc\ndéf\nghijkl\n".encode())
    assert read_head_lines(path) == ["abc\n", "déf\n"]


def test_a_first_line_longer_than_the_head_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "HEAD_BYTES", 10)
    path = write(tmp_path, b"x" * 50 + b"\nsecond\n")
    assert read_head_bytes(path).startswith(b"x" * 50 + b"\n")
    assert read_head_lines(path)[0] == "x" * 50 + "\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PAR1....", "a Parquet file"),
        (gzip.compress(b"a,b", mtime=0), "compressed by gzip, but not called .gz"),
        (b"PK\x03\x04....", "a zip or Excel file"),
        ("a,b".encode("utf-16"), "text in UTF-16"),
        (b"\xfe\xff\x00a", "text in UTF-16"),
        ("a".encode("utf-32"), "text in UTF-32"),
        (b"a\0b\n", "not text"),
        ("café\n".encode("latin-1"), "not in UTF-8"),
    ],
)
def test_other_files_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_head_lines(write(tmp_path, content))


@pytest.mark.parametrize("content", [b"", b"\n \n\t\n"])
def test_an_empty_file_is_an_error_of_its_own(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(EmptyInput):
        read_head_lines(write(tmp_path, content))


def test_a_zero_byte_further_down_may_be_part_of_an_id(tmp_path: Path) -> None:
    assert len(read_head_lines(write(tmp_path, b"task\na\0b\n"))) == 2


def test_bad_text_beyond_the_head_is_found_by_reading_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "HEAD_BYTES", 4)
    path = write(tmp_path, b"abc\ndef\n" + "é".encode("latin-1"))
    assert read_head_lines(path)
    with pytest.raises(InputError, match="not in UTF-8"):
        read_lines(path)


class TestPeek:
    def test_anything_but_text_has_no_lines(self, tmp_path: Path) -> None:
        assert peek_lines(tmp_path) == []
        assert peek_lines(tmp_path / "absent") == []
        assert peek_lines(write(tmp_path, b"PAR1")) == []

    def test_a_changed_file_is_read_again(self, tmp_path: Path) -> None:
        path = write(tmp_path, b"old\n")
        assert peek_lines(path) == ["old\n"]
        path.write_bytes(b"newer\n")
        assert peek_lines(path) == ["newer\n"]

    def test_the_list_belongs_to_the_caller(self, tmp_path: Path) -> None:
        path = write(tmp_path, b"a\n")
        peek_lines(path).append("more")
        assert peek_lines(path) == ["a\n"]


def test_a_line_of_separators_is_no_table(tmp_path: Path) -> None:
    """A reader keeps kilobytes for each column, so that a megabyte of commas took gigabytes."""
    path = write(tmp_path, b"," * 1_000_000 + b"\n")
    for read_file in (wc.read, partial(wc.read, format="mace"), wc.read_features):
        with pytest.raises(InputError, match=r"file.csv: its first line has 1,000,001 columns, more than 100,000"):
            read_file(path)


def test_many_columns_are_counted_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "MAX_COLUMNS", 3)
    text_files.check_column_count(["\n", "a,b,c\n", "a,b,c,d\n"], ",")
    with pytest.raises(InputError, match="4 columns, more than 3"):
        text_files.check_column_count(["a,b,c,d\n"], ",")
