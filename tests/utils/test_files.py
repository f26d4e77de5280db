"""Atomic files."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from wisecrowd.errors import DiskFull
from wisecrowd.utils.files import atomic_path, read_json, write_json, write_text


def test_an_error_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(TypeError), atomic_path(path) as partial:
        partial.write_text(None)  # type: ignore[arg-type]  # the error
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_contents_are_on_disk_before_the_file_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, seen = tmp_path / "a.txt", []
    monkeypatch.setattr(os, "fsync", lambda handle: seen.append((os.fstat(handle).st_size, path.exists())))
    write_text(path, "12345")
    assert seen == [(5, False)]


def test_a_full_disk_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(DiskFull, match=r"no room for .*a\.txt; make room"), atomic_path(tmp_path / "a.txt"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_an_inner_full_disk_keeps_its_own_file(tmp_path: Path) -> None:
    with pytest.raises(DiskFull, match=r"no room for inner\.txt"), atomic_path(tmp_path / "outer.txt"):
        raise DiskFull("inner.txt")


def test_folders_are_made_and_the_suffix_stays(tmp_path: Path) -> None:
    with atomic_path(tmp_path / "new" / "votes.csv.gz") as partial:
        assert partial.name.endswith(".csv.gz")
        partial.write_bytes(b"")
    assert (tmp_path / "new" / "votes.csv.gz").exists()


def test_json_escapes_lone_surrogates_only(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"ü": "\ud800"})
    assert "ü" in (tmp_path / "x.json").read_text(encoding="utf-8")
    assert read_json(tmp_path / "x.json") == {"ü": "\ud800"}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "y.json", float("nan"))
