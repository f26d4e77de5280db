"""Detection of the format of a file."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError, UsageError
from wisecrowd.io import FORMATS, find_format
from wisecrowd.io.formats import FormatReader, find_content_kind
from wisecrowd.io.tables.text_files import peek_lines

CROWD = wc.Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])


def test_every_format_is_found() -> None:
    assert set(FORMATS) == {
        "csv", "tsv", "parquet", "jsonl", "json", "folder", "ceka", "peerannot", "peerannot-inverted", "truth-inference", "mace",
        "label-studio", "label-studio-min", "argilla", "doccano", "prodigy", "cvat", "toloka", "mturk", "crowdflower",
        "hugging-face", "excel", "wide", "coco",
    }  # fmt: skip
    assert all(form.description for form in FORMATS.values())


def test_the_table_of_formats_fits_the_readers() -> None:
    for form in FORMATS.values():
        assert isinstance(form.reader, FormatReader)
        assert form.is_tool == (form.reader.read_export is not None), form.name
        assert form.is_writable == (form.reader.write_votes is not None), form.name


@pytest.mark.parametrize(
    "folder", sorted((Path(__file__).parents[1] / "recorded").iterdir()), ids=lambda path: path.name
)
def test_no_format_is_ruled_out_by_mistake(folder: Path) -> None:
    """The kind of content and the markers rule out only formats whose readers refuse the file."""
    for path in [folder, *folder.rglob("*")]:
        beginning = "".join(peek_lines(path))
        kind = find_content_kind(path, beginning)
        for form in FORMATS.values():
            if not form.may_match_content(path, kind, beginning):
                assert not form.reader.detect(path), (path, form.name)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("task,worker,label\na,x,p\n", "csv"),
        ("task\tworker\tlabel\na\tx\tp\n", "tsv"),
        ('{"task": "a", "worker": "x", "label": "p"}\n', "jsonl"),
        ('[\n {"task": "a", "worker": "x", "label": "p"}]', "json"),
    ],
)
def test_content_tells_when_the_name_does_not(tmp_path: Path, content: str, name: str) -> None:
    path = tmp_path / "votes"
    path.write_text(content)
    assert find_format(path).name == name
    assert wc.read(path).n_votes == 1


def test_what_nobody_knows(tmp_path: Path) -> None:
    path = tmp_path / "votes.dat"
    path.write_text("lorem ipsum\n")
    with pytest.raises(
        InputError,
        match=r"the format of .*votes\.dat is not recognised.*csv.*Name the format, for example format=\"csv\"",
    ):
        wc.read(path)


def test_an_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no format 'parkett'.*Did you mean 'parquet'"):
        wc.read(tmp_path, format="parkett")


def test_a_missing_file(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text("task,worker,label\n")
    with pytest.raises(InputError, match=r"there is no file or folder .*vote\.csv\. Did you mean 'votes\.csv'"):
        wc.read(tmp_path / "vote.csv")
    with pytest.raises(InputError, match="there is no file or folder"):
        wc.read(tmp_path / "no" / "such.csv")


def test_an_empty_file_without_a_telling_name(tmp_path: Path) -> None:
    (tmp_path / "votes").touch()
    with pytest.raises(InputError, match="is empty"):
        wc.read(tmp_path / "votes")


def test_a_folder_of_other_files_is_told_apart(tmp_path: Path) -> None:
    for name in ("gold.csv", "votes.csv", "readme.md"):
        (tmp_path / name).write_text("task,worker,label\nt1,ann,cat\n")
    wanted = r"It contains 'gold\.csv', 'readme\.md', 'votes\.csv'\. Give .* for example .*/votes\.csv$"
    with pytest.raises(InputError, match=f"is a folder, but not a dataset.*{wanted}"):
        wc.read(tmp_path)
    with pytest.raises(InputError, match=f"is a folder, but csv is the format of a file.*{wanted}"):
        wc.read(tmp_path, format="csv")


@pytest.mark.parametrize(("name", "advice"), [("v.ods", "save it as .xlsx"), ("v.7Z", "unpack it first")])
def test_what_is_not_read_is_refused_with_advice(tmp_path: Path, name: str, advice: str) -> None:
    (tmp_path / name).write_bytes(b"PK\x03\x04rest")
    with pytest.raises(InputError, match=f"which is not read; {advice}"):
        wc.read(tmp_path / name)
    with pytest.raises(InputError, match="zip or Excel file"):
        wc.read(tmp_path / name, format="csv")


def test_a_zip_with_the_name_of_another_format_is_refused_as_a_zip(tmp_path: Path) -> None:
    for name in ("export.json", "votes.csv"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("export.json", "[]")
        with pytest.raises(InputError, match=r"is a zip archive, which is not read .* it contains 'export\.json'"):
            wc.read(tmp_path / name)
    with zipfile.ZipFile(tmp_path / "votes.csv", "w") as archive:
        archive.writestr("[Content_Types].xml", "")
    with pytest.raises(InputError, match="zip or Excel file"):
        wc.read(tmp_path / "votes.csv")
