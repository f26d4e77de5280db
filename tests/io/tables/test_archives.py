"""Zip files are read in memory, within limits."""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from wisecrowd.errors import InputError
from wisecrowd.io.tables import archives
from wisecrowd.io.tables.archives import describe_unknown_zip, is_system_file, is_zip, peek_zip_texts, read_zip_texts


def make_zip(path: Path, files: dict[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def make_overlapping_zip(n_files: int, content: bytes, declared_bytes: int) -> bytes:
    """Make a zip whose files, all of them, are the same bytes."""
    crc = zlib.crc32(zlib.decompress(content, wbits=-15))
    sizes = struct.pack("<III", crc, len(content), declared_bytes)
    local = (
        b"PK\x03\x04" + struct.pack("<HHHHH", 20, 0, 8, 0, 33) + sizes + struct.pack("<HH", 7, 0) + b"0.jsonl" + content
    )
    directory = b""
    for number in range(n_files):
        name = f"{number}.jsonl".encode()
        entry = (
            struct.pack("<HHHHHH", 20, 20, 0, 8, 0, 33) + sizes + struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, 0, 0)
        )
        directory += b"PK\x01\x02" + entry + name
    end = struct.pack("<HHHHIIH", 0, 0, n_files, n_files, len(directory), len(local), 0)
    return local + directory + b"PK\x05\x06" + end


def refuse(*_: Any) -> None:
    raise AssertionError("a file was unpacked")


def test_files_with_the_suffix_are_read(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "x.zip", {"ann.jsonl": "\ufeff{}\n", "deep/bob.JSONL": "[]", "image.png": b"\x89PNG"})
    assert read_zip_texts(path, (".jsonl",)) == [("ann.jsonl", "{}\n"), ("deep/bob.JSONL", "[]")]
    assert peek_zip_texts(path, (".jsonl",), only_these=True) == []
    assert peek_zip_texts(path, (".jsonl",), max_files=1) == [("ann.jsonl", "{}\n")]


def test_a_peek_reads_the_beginning(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "x.zip", {"ann.jsonl": "é" * (1 << 24)})
    ((name, text),) = peek_zip_texts(path, (".jsonl",))
    assert (name, set(text)) == ("ann.jsonl", {"é"})
    assert len(text) <= 1 << 16
    path.write_bytes(path.read_bytes()[:-10])
    assert peek_zip_texts(path, (".jsonl",)) == []


def test_files_of_the_operating_system_do_not_count(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "x.zip", {"ann.jsonl": "{}", "__MACOSX/._ann.jsonl": "x", ".DS_Store": "x"})
    assert peek_zip_texts(path, (".jsonl",), only_these=True) == [("ann.jsonl", "{}")]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (".hidden", True),
        ("a/.hidden", True),
        ("__MACOSX/a.csv", True),
        ("Thumbs.db", True),
        ("a.csv", False),
        ("", False),
    ],
)
def test_system_files(name: str, expected: bool) -> None:
    assert is_system_file(name) is expected


def test_zip_files_are_recognised_by_their_first_bytes(tmp_path: Path) -> None:
    assert is_zip(make_zip(tmp_path / "export.dat", {"a.txt": "a"}))
    (tmp_path / "fake.zip").write_text("PK but no zip")
    assert not is_zip(tmp_path / "fake.zip")
    assert not is_zip(tmp_path)
    assert not is_zip(tmp_path / "absent.zip")


class TestRefusals:
    @pytest.mark.slow
    def test_a_bomb(self, tmp_path: Path) -> None:
        path = make_zip(tmp_path / "bomb.zip", {"a.jsonl": "0" * (1 << 27)})
        assert path.stat().st_size < 1 << 18
        with pytest.raises(InputError, match="too much for a file of"):
            read_zip_texts(path, (".jsonl",))

    def test_too_many_files(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(archives, "MAX_FILES", 2)
        with pytest.raises(InputError, match="3 files in this zip, but at most 2 are read"):
            read_zip_texts(make_zip(tmp_path / "x.zip", {f"{n}.jsonl": "{}" for n in range(3)}), (".jsonl",))

    def test_overlapping_files(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(zipfile.ZipFile, "open", refuse)  # the time does not depend on what they unpack to
        path = tmp_path / "x.zip"
        content = zlib.compress(b"{}" * 1000, wbits=-15)
        for n_files in (2, 5_000):
            path.write_bytes(make_overlapping_zip(n_files, content, 2000))
            assert zipfile.ZipFile(path).infolist()[-1].header_offset == 0
            with pytest.raises(InputError, match=r"'.*\.jsonl' overlaps another file in this zip"):
                read_zip_texts(path, (".jsonl",))

    @pytest.mark.parametrize(
        ("size", "message"),
        [
            (0, "longer than|cannot be read as a zip"),
            (1999, "longer than|cannot be read as a zip"),
            (2001, "shorter than|cannot be read as a zip"),
            (1 << 25, "shorter than|cannot be read as a zip"),
            (0xFFFFFFF0, "unpacks to 4.3 GB, too much for a file of"),
        ],
    )
    def test_declared_sizes_that_lie(self, tmp_path: Path, size: int, message: str) -> None:
        path = tmp_path / "x.zip"
        path.write_bytes(make_overlapping_zip(1, zlib.compress(b"{}" * 1000, wbits=-15), size))
        with pytest.raises(InputError, match=message):
            read_zip_texts(path, (".jsonl",))

    @pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    def test_compressions_that_cannot_be_bounded(self, tmp_path: Path, method: int) -> None:
        with zipfile.ZipFile(tmp_path / "x.zip", "w", method) as archive:
            archive.writestr("a.jsonl", "{}")
        with pytest.raises(InputError, match=rf"'a\.jsonl' is compressed by method {method}, which is not read"):
            read_zip_texts(tmp_path / "x.zip", (".jsonl",))

    def test_encryption(self, tmp_path: Path) -> None:
        path = make_zip(tmp_path / "x.zip", {"a.jsonl": "{}"})
        content = bytearray(path.read_bytes())
        content[content.index(b"PK\x01\x02") + 8] |= 1
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"'a\.jsonl' is encrypted"):
            read_zip_texts(path, (".jsonl",))

    def test_damage(self, tmp_path: Path) -> None:
        path = make_zip(tmp_path / "x.zip", {"a.jsonl": "{}" * 500})
        content = path.read_bytes()
        for broken in (content[: len(content) // 2], b"PK\x03\x04", content.replace(b"a.jsonl", b"b.jsonl", 1)):
            path.write_bytes(broken)
            with pytest.raises(InputError, match="cannot be read as a zip"):
                read_zip_texts(path, (".jsonl",))

    def test_text_that_is_not_utf8_names_its_file(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"ann\.jsonl: .*UTF-8"):
            read_zip_texts(make_zip(tmp_path / "x.zip", {"ann.jsonl": "café".encode("latin-1")}), (".jsonl",))


def test_an_unknown_archive_is_described_with_its_content(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "x.zip", {"photo.png": "x", "readme.txt": "x"})
    assert "it contains 'photo.png', 'readme.txt'" in describe_unknown_zip(path)
    assert "is an empty zip file" in describe_unknown_zip(make_zip(tmp_path / "empty.zip", {}))
    (tmp_path / "broken.zip").write_bytes(b"PK\x03\x04")
    assert "cannot be read as a zip" in describe_unknown_zip(tmp_path / "broken.zip")
