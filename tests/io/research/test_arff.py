"""ARFF files of CEKA."""

from __future__ import annotations

from pathlib import Path

import pytest

from wisecrowd.errors import InputError
from wisecrowd.io.research.arff import read_arff

HEADER = "@relation pets\n@attribute size numeric\n@attribute class {cat,dog}\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "pets.arffx"
    path.write_text(text, encoding="utf-8")
    return path


def test_rows_have_the_ids_of_the_list(tmp_path: Path) -> None:
    frame = read_arff(write(tmp_path, HEADER + "@data\n3,cat\n9.5,dog\n\n@ID-MAP\n c7\nd2 \n\n"))
    assert frame.to_dict("index") == {"c7": {"size": 3.0, "class": "cat"}, "d2": {"size": 9.5, "class": "dog"}}
    assert frame.index.name == "task"


def test_without_a_list_rows_are_numbered(tmp_path: Path) -> None:
    frame = read_arff(write(tmp_path, HEADER + "@data\n3,cat\n9,dog\n"))
    assert frame.index.tolist() == ["0", "1"]


def test_missing_values_are_nan(tmp_path: Path) -> None:
    assert read_arff(write(tmp_path, HEADER + "@data\n?,cat\n")).isna().to_numpy().tolist() == [[True, False]]


def test_an_empty_list_is_no_list(tmp_path: Path) -> None:
    assert read_arff(write(tmp_path, HEADER + "@data\n3,cat\n@ID-MAP\n")).index.tolist() == ["0"]


def test_the_list_must_have_an_id_for_every_row(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has 1 rows but 2 ids after @ID-MAP; there must be one id per row"):
        read_arff(write(tmp_path, HEADER + "@data\n3,cat\n@ID-MAP\nd2\ne3\n"))


@pytest.mark.parametrize("text", ["no header at all\n", "@relation x\n@attribute a numeric\n@data\nnot a number\n"])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"pets\.arffx cannot be read as ARFF"):
        read_arff(write(tmp_path, text))
