"""Delimited text other than votes."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from wisecrowd.errors import InputError
from wisecrowd.io.tables.plain_tables import get_uncompressed_suffix, read_delimited


@pytest.mark.parametrize(
    ("name", "suffix"), [("a.csv", ".csv"), ("a.csv.gz", ".csv"), ("a.tsv.zst", ".tsv"), ("a.gz", ""), ("a", "")]
)
def test_the_suffix_of_the_compression_is_ignored(name: str, suffix: str) -> None:
    assert get_uncompressed_suffix(Path(name)) == suffix


def test_types_are_inferred_except_for_ids(tmp_path: Path) -> None:
    path = tmp_path / "features.csv"
    path.write_text('task,x,note\n007,1.5,"two\nlines"\n008,2,\n')
    table = read_delimited(path, ",", text_columns=["task"])
    assert table.to_pylist() == [
        {"task": "007", "x": 1.5, "note": "two\nlines"},
        {"task": "008", "x": 2.0, "note": ""},
    ]


def test_compressed_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "features.tsv.gz"
    path.write_bytes(gzip.compress(b"task\tx\nt1\t1\n"))
    assert read_delimited(path, "\t", text_columns=["task"]).to_pylist() == [{"task": "t1", "x": 1}]


def test_rows_of_another_length_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "features.csv"
    path.write_text("task,x\nt1,1,9\n")
    with pytest.raises(InputError, match="cannot be read as a table separated by ','"):
        read_delimited(path, ",", text_columns=["task"])


def test_decimal_commas_between_commas_get_advice(tmp_path: Path) -> None:
    path = tmp_path / "features.csv"
    path.write_text("task,x\nt1,1,9\n")
    with pytest.raises(InputError, match="for numbers with a decimal comma, separate the columns by semicolons"):
        read_delimited(path, ",", text_columns=["task"])
    path.write_text("task,x,y\nt1,1\n")
    with pytest.raises(InputError) as error:
        read_delimited(path, ",", text_columns=["task"])
    assert "decimal" not in str(error.value)
