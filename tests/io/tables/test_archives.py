"""Zip files are read in memory, within limits."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from wisecrowd.errors import InputError
from wisecrowd.io.tables import archives
from wisecrowd.io.tables.archives import describe_unknown_zip, is_system_file, is_zip, read_zip_texts


def make_zip(path: Path, files: dict[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def test_files_with_the_suffix_are_read(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "x.zip", {"ann.jsonl": "\ufeff{}\n", "deep/bob.JSONL": "[]", "image.png": b"\x89PNG"})
    assert read_zip_texts(path, (".jsonl",)) == [("ann.jsonl", "{}\n"), ("deep/bob.JSONL", "[]")]
    assert read_zip_texts(path, (".jsonl",), only_these=True) == []
    assert read_zip_texts(path, (".jsonl",), max_files=1) == [("ann.jsonl", "{}\n")]


def test_files_of_the_operating_system_do_not_count(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "x.zip", {"ann.jsonl": "{}", "__MACOSX/._ann.jsonl": "x", ".DS_Store": "x"})
    assert read_zip_texts(path, (".jsonl",), only_these=True) == [("ann.jsonl", "{}")]


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
    def test_a_bomb(self, tmp_path: Path) -> None:
        path = make_zip(tmp_path / "bomb.zip", {"a.jsonl": "0" * (1 << 25)})
        assert path.stat().st_size < 1 << 17
        with pytest.raises(InputError, match="not plausible for an export"):
            read_zip_texts(path, (".jsonl",))

    def test_too_many_files(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(archives, "MAX_FILES", 2)
        with pytest.raises(InputError, match="not plausible for an export"):
            read_zip_texts(make_zip(tmp_path / "x.zip", {f"{n}.jsonl": "{}" for n in range(3)}), (".jsonl",))

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
