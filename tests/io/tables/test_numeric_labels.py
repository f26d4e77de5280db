from __future__ import annotations

import re
import warnings
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import wisecrowd as wc
from wisecrowd.errors import DataWarning, InputError
from wisecrowd.io.tables.numeric_labels import (
    MAX_INTEGER_CLASSES,
    find_grouped_numbers,
    find_suspect_numbers,
    parse_numbers,
    remove_separators,
)


def votes(path: Path, n: int, step: float = 1) -> Path:
    path.write_text("task,worker,label\n" + "".join(f"t{k},{who},{k * step:g}\n" for k in range(n) for who in "ab"))
    return path


def test_many_numbers_in_text_are_read_with_a_warning(tmp_path: Path) -> None:
    path = votes(tmp_path / "v.csv", 60)
    with pytest.warns(DataWarning, match=r"v\.csv: the labels are numbers, and each of the 60 .*--numeric") as caught:
        crowd = wc.read(path)
    assert caught[0].filename == __file__
    assert crowd.classes is not None
    assert len(crowd.classes) == 60
    examination = wc.check_votes(path)
    assert examination.ok
    assert [finding.name for finding in examination.warnings if "numeric" in finding.name]


def test_whoever_settles_it_is_not_warned(tmp_path: Path) -> None:
    path = votes(tmp_path / "v.csv", 60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classes = wc.read(path, classes=[str(k) for k in range(60)]).classes
        assert classes is not None
        assert wc.read(path, numeric=True).is_numeric
        wc.read(votes(tmp_path / "few.csv", MAX_INTEGER_CLASSES))
    named = wc.check_votes(path, classes=list(classes))
    assert "numeric-labels-as-classes" not in [finding.name for finding in named.findings]


def test_fractions_in_text_are_read_with_a_warning(tmp_path: Path) -> None:
    with pytest.warns(DataWarning, match=r"each of the 3 .*'0\.25', '0\.5', '0\.75'"):
        wc.read(votes(tmp_path / "v.csv", 4, 0.25))


@pytest.mark.parametrize(("classes", "suspect"), [(["1", "x", "2.5"], []), (["1", "inf"], []), ([1.5, 2.0], [1.5])])
def test_suspects(classes: list[object], suspect: list[object]) -> None:
    assert find_suspect_numbers(pd.Index(classes)).tolist() == suspect


def test_what_is_no_number_is_named() -> None:
    column = pa.chunked_array([["1", None], ["2", "two"]]).dictionary_encode()
    with pytest.raises(InputError, match=r"the weight column must hold numbers; got 'two' \(row 3\)"):
        parse_numbers(column, "weight")
    with pytest.raises(InputError, match="got list<"):
        parse_numbers(pa.chunked_array([[[1]]]), "label")


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("1,000.50", "it has thousands separators: write 1000.50. In a spreadsheet"),
        ("1.000,50", "it has thousands separators: write 1000.50. In a spreadsheet"),
        ("12 000", "it has thousands separators: write 12000. In a spreadsheet"),
        ("2,5", "its comma is a decimal comma: write 2.5"),
        ("1,250", "its comma may be a thousands separator or a decimal comma: write 1250 or 1.250, in all rows"),
    ],
)
def test_separators_in_numbers_get_advice(text: str, advice: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"got '{text}' (row 1); {advice}")):
        parse_numbers(pa.chunked_array([["1", text]]), "label")


def test_grouped_numbers_among_names_are_names() -> None:
    assert find_grouped_numbers(pd.Index(["1,000", "999", "1,000,000.5"])).tolist() == ["1,000", "1,000,000.5"]
    assert find_grouped_numbers(pd.Index(["1,000", "many"])).tolist() == []
    assert find_grouped_numbers(pd.Index([1000.0])).tolist() == []
    assert remove_separators("-1,000,000") == "-1000000"
    assert remove_separators("1,2") == "1,2"
