from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError
from wisecrowd.io import read_project
from wisecrowd.io.tables import archives as _archives


def rows(crowd: wc.Crowd) -> list[tuple[Any, ...]]:
    return sorted(crowd.to_frame()[["task", "worker", "label"]].itertuples(index=False, name=None))


def test_a_file_for_each_annotator(export: Any, tmp_path: Path) -> None:
    path = export("doccano")
    question = read_project(path).get_question()
    assert rows(question.crowd) == [("1", "ann", "good"), ("1", "bob", "bad"), ("2", "ann", "bad")]
    assert question.excluded == {"empty": 1}
    folder = tmp_path / "unpacked"
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    assert read_project(folder, "doccano").get_question().crowd == question.crowd
    (folder / ".DS_Store").write_bytes(b"\0")
    assert read_project(folder).format == "doccano"
    assert wc.read(folder) == question.crowd


def test_only_folders_of_doccano_are_taken_for_such(tmp_path: Path, making: Any) -> None:
    (tmp_path / "train.jsonl").write_bytes(making.lines([{"id": 1, "text": "Lovely!", "label": "good"}]))
    with pytest.raises(InputError, match="is a folder, but not a dataset"):
        read_project(tmp_path)
    (tmp_path / "train.jsonl").unlink()
    (tmp_path / "train.csv").write_text("id,text,label\n1,Lovely!,good\n")
    with pytest.raises(InputError, match="is a folder, but not a dataset"):
        read_project(tmp_path)
    (tmp_path / "train.csv").write_text("id,text,label,Comments\n1,Lovely!,good,\n")
    assert rows(read_project(tmp_path).get_question().crowd) == [("1", "train", "good")]


def test_what_systems_put_into_a_zip_is_passed_over(export: Any, tmp_path: Path, making: Any) -> None:
    files = {name: making.lines(records) for name, records in making.DOCCANO.items()}
    path = tmp_path / "mac.zip"
    path.write_bytes(making.zipped(files | {"__MACOSX/._ann.jsonl": b"\0\5junk", ".DS_Store": b"\0"}))
    assert wc.read(path) == wc.read(export("doccano"))


def test_zips_that_are_no_export_say_why(tmp_path: Path, making: Any) -> None:
    whole = making.zipped({"ann.jsonl": making.lines(making.DOCCANO["ann.jsonl"])})
    for content, message in (
        (whole[: len(whole) // 2], "cannot be read as a zip: .* it may be damaged or cut off"),
        (making.zipped({}), "is an empty zip file"),
        (making.zipped({"readme.txt": b"hi"}), "it contains 'readme.txt'. Unpack any other archive first"),
    ):
        (tmp_path / "export.zip").write_bytes(content)
        with pytest.raises(InputError, match=message):
            read_project(tmp_path / "export.zip")


def test_errors_name_the_file_in_the_zip(tmp_path: Path, making: Any) -> None:
    files = {"ann.jsonl": making.lines(making.DOCCANO["ann.jsonl"]), "bob.jsonl": b'{"id": 1, "label": []}\n{"id'}
    (tmp_path / "export.zip").write_bytes(making.zipped(files))
    with pytest.raises(InputError, match=r"export\.zip: bob\.jsonl: line 2 is not JSON"):
        read_project(tmp_path / "export.zip")


def test_tables_and_several_labels(tmp_path: Path, making: Any) -> None:
    files = {
        "ann.csv": b"id,text,label\n1,Lovely!,food#price\n2,Meh.,\n",
        "bob.csv": b"id,text,label\n1,Lovely!,food\n",
    }
    (tmp_path / "export.zip").write_bytes(making.zipped(files))
    question = read_project(tmp_path / "export.zip", "doccano").get_question()
    assert rows(question.crowd) == [("1", "ann", "food|price"), ("1", "bob", "food")]


def test_intents_and_spans(tmp_path: Path, making: Any) -> None:
    files = {"ann.jsonl": making.lines([{"id": 1, "text": "Lovely!", "cats": ["praise"], "entities": [[0, 3, "X"]]}])}
    (tmp_path / "export.zip").write_bytes(making.zipped(files))
    question = read_project(tmp_path / "export.zip").get_question()
    assert rows(question.crowd) == [("1", "ann", "praise")]
    assert question.excluded == {}
    spans = read_project(tmp_path / "export.zip").get_structured("entities")
    assert spans.crowd.to_frame().values.tolist() == [["1", "ann", 0, 3, "X"]]


def test_whoever_is_called_wisecrowd_is_no_worker(tmp_path: Path, making: Any) -> None:
    example = {"id": 1, "text": "Lovely!", "label": ["good"]}
    files = {"ann.jsonl": making.lines([example]), "wisecrowd-2.jsonl": making.lines([example])}
    (tmp_path / "export.zip").write_bytes(making.zipped(files))
    question = read_project(tmp_path / "export.zip").get_question()
    assert rows(question.crowd) == [("1", "ann", "good")]
    assert question.consensus["label"].to_dict() == {"1": "good"}


def test_shared_labels_tell_no_worker(tmp_path: Path, making: Any) -> None:
    (tmp_path / "export.zip").write_bytes(making.zipped({"all.jsonl": making.lines(making.DOCCANO["ann.jsonl"])}))
    with pytest.raises(InputError, match="it does not record the workers; turn off 'Share annotations"):
        read_project(tmp_path / "export.zip")


def test_paths_in_a_zip_lead_nowhere(tmp_path: Path, making: Any) -> None:
    records = making.lines(making.DOCCANO["ann.jsonl"])
    (tmp_path / "export.zip").write_bytes(making.zipped({"../../ann.jsonl": records, "/etc/bob.jsonl": records}))
    crowd = read_project(tmp_path / "export.zip", "doccano").get_question().crowd
    assert crowd.workers.tolist() == ["ann", "bob"]
    assert [file.name for file in tmp_path.iterdir()] == ["export.zip"]


@pytest.mark.slow
def test_a_bomb_is_not_unpacked(tmp_path: Path, making: Any) -> None:
    (tmp_path / "export.zip").write_bytes(making.zipped({"ann.jsonl": b" " * (1 << 27)}))
    with pytest.raises(
        InputError, match=r"unpacks to 134\.2 MB, too much for a file of .*; if you trust it, allow more"
    ):
        read_project(tmp_path / "export.zip", "doccano")
    with pytest.raises(InputError, match="is a zip archive, which is not read"):
        read_project(tmp_path / "export.zip")


def test_a_file_that_is_longer_than_it_says(tmp_path: Path, making: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    content = making.lines(making.DOCCANO["ann.jsonl"])
    (tmp_path / "export.zip").write_bytes(making.zipped({"ann.jsonl": content}))
    honest = zipfile.ZipFile.infolist

    def lying(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
        found = honest(archive)
        for info in found:
            info.file_size = 10
        return found

    monkeypatch.setattr(_archives.zipfile.ZipFile, "infolist", lying)
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda self, info: io.BytesIO(content))
    with pytest.raises(InputError, match="longer than the zip declares"):
        read_project(tmp_path / "export.zip", "doccano")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"readme.txt": b"hi"}, r"expected one file NAME\.jsonl"),
        ({"ann.jsonl": b"{"}, "is not JSON"),
        ({"ann.jsonl": b"\xff\xfe"}, "not in UTF-8"),
        ({"ann.jsonl": b'{"id": 1}'}, r"line 1 of ann\.jsonl has no label; its keys are 'id'"),
        ({"ann.jsonl": b'{"label": ["x"]}'}, r"the example needs an id.*line 1 of ann\.jsonl"),
    ],
)
def test_bad_archives(tmp_path: Path, making: Any, files: dict[str, bytes], message: str) -> None:
    (tmp_path / "export.zip").write_bytes(making.zipped(files))
    with pytest.raises(InputError, match=message):
        read_project(tmp_path / "export.zip", "doccano")


def test_no_zip_at_all(tmp_path: Path) -> None:
    (tmp_path / "export.zip").write_bytes(b"PK\x03\x04 and nothing else")
    with pytest.raises(InputError, match="cannot be read as a zip"):
        read_project(tmp_path / "export.zip", "doccano")


def write_spans(folder: Path, making: Any, **records: list[dict[str, Any]]) -> Path:
    path = folder / "export.zip"
    path.write_bytes(making.zipped({f"{name}.jsonl": making.lines(lines) for name, lines in records.items()}))
    return path


def test_examples_without_spans_are_votes_if_only_approved_ones_are_exported(tmp_path: Path, making: Any) -> None:
    first, second = {"id": 1, "text": "Ann left."}, {"id": 2, "text": "Hi"}
    marked, empty = first | {"label": [[0, 3, "PER"]]}, second | {"label": []}
    path = write_spans(tmp_path, making, ann=[marked, empty], bob=[first | {"label": []}, empty])
    question = read_project(path).get_structured()
    assert question.crowd.n_votes == 1  # doccano lists examples that nobody saw
    assert "3 examples without spans are not votes" in question.notes[0]
    crowd = wc.read_spans(write_spans(tmp_path, making, ann=[marked, empty], bob=[first | {"label": []}]))
    assert (crowd.n_votes, crowd.n_marks) == (3, 1)


def test_old_files_name_the_user_of_every_span(tmp_path: Path, making: Any) -> None:
    spans = [{"label": 4, "start_offset": 0, "end_offset": 3, "user": user} for user in (1, 2)]
    record = {"id": 1, "text": "Ann left.", "meta": {}, "annotation_approver": None, "annotations": spans}
    (tmp_path / "file.jsonl").write_bytes(making.lines([record]))
    crowd = wc.read_spans(tmp_path / "file.jsonl")
    assert crowd.to_frame().values.tolist() == [["1", "1", 0, 3, "4"], ["1", "2", 0, 3, "4"]]


def test_invalid_spans(tmp_path: Path, making: Any) -> None:
    path = write_spans(tmp_path, making, ann=[{"id": 1, "text": "Ann", "label": [[0, 3]]}])
    with pytest.raises(InputError, match=r"a span of line 1 of ann\.jsonl should be \[start, end, label\]"):
        wc.read_spans(path)
    path = write_spans(tmp_path, making, ann=[{"id": 1, "text": "Ann", "label": [[0, 9, "PER"]]}])
    with pytest.raises(InputError, match="1 span outside the text"):
        wc.read_spans(path)
