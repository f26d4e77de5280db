"""Vocabularies and the ids that they encode."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from wisecrowd.data.vocabulary import (
    as_column,
    as_index,
    as_vocabulary,
    check_no_fractions,
    check_no_missing,
    encode_ids,
    locate_ids,
    match_id_type,
    unite_codes,
    unite_vocabularies,
)
from wisecrowd.errors import InputError


def test_ids_of_several_types_are_refused() -> None:
    with pytest.raises(InputError, match=r"the task column mixes types.*df\['task'\]\.astype\(str\)"):
        as_column([1, "a"], "task")


@pytest.mark.parametrize("values", [["\ud800"], np.array(["a", "\ud800"], dtype=object)])
def test_lone_surrogates_are_refused(values: object) -> None:
    with pytest.raises(InputError, match="lone surrogate"):
        as_column(values, "task")
    with pytest.raises(InputError, match="lone surrogate"):
        as_vocabulary(values, "task")  # type: ignore[arg-type]  # arrays are iterable


def test_a_vocabulary_keeps_its_order() -> None:
    codes, index = encode_ids(as_column(["b", "a"], "label"), "label", ["b", "c", "a"])
    assert codes.tolist() == [0, 2]
    assert index.tolist() == ["b", "c", "a"]


@pytest.mark.parametrize(
    ("values", "message"),
    [(["a", None], "contains a missing value"), (["b", "a", "b"], "repeats 'b'; list each id once")],
)
def test_invalid_vocabularies(values: list[object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_vocabulary(values, "class")


def test_missing_values_are_located() -> None:
    column = as_column(["a", None, None], "worker")
    with pytest.raises(InputError, match=r"2 of 3 rows have no worker \(line 3\)"):
        check_no_missing(column, "worker", lambda rows: f"line {rows[0] + 2}")
    check_no_missing(as_column([1.0, 2.0], "label"), "label")
    with pytest.raises(InputError, match=r"1 of 2 rows has no label \(row 1\)"):
        check_no_missing(as_column([1.0, float("nan")], "label"), "label")


def test_whole_floats_are_integers() -> None:
    _, index = encode_ids(pa.chunked_array([[1.0, 2.0]]), "task")
    assert index.tolist() == [1, 2]
    assert index.dtype.kind == "i"


def test_text_and_numbers_are_matched_in_both_directions() -> None:
    assert match_id_type(pd.Index([7, 8]), pd.Index(["8", "9"])).tolist() == ["7", "8"]
    assert match_id_type(pd.Index(["8"]), pd.Index([7, 8])).tolist() == [8]
    same = pd.Index([1, 2])
    assert match_id_type(same, pd.Index([2, 3])) is same


def test_vocabularies_of_mixed_types_are_united_without_sorting() -> None:
    assert unite_vocabularies([pd.Index(["a"]), pd.Index([1])]).tolist() == ["a", 1]


def test_fractions_are_no_classes() -> None:
    with pytest.raises(InputError, match=r"fractional numbers \(0\.5\).*numeric=True"):
        check_no_fractions(pd.Index([0.5]))


def test_an_index_of_an_iterator() -> None:
    assert as_index(iter("ab")).tolist() == ["a", "b"]


def test_numbers_and_texts_are_the_same_ids() -> None:
    assert locate_ids(pd.Index(["28", "x", "29"]), pd.Index([29, 28])).tolist() == [1, -1, 0]
    assert locate_ids(pd.Index([28, 7]), pd.Index(["28", "29"])).tolist() == [0, -1]
    assert locate_ids(pd.Index([28.0, 7.0]), pd.Index(["28", "29"])).tolist() == [0, -1]
    assert locate_ids(pd.Index([28.5]), pd.Index(["28", "28.5"])).tolist() == [1]
    assert locate_ids(pd.Index(["007"]), pd.Index([7])).tolist() == [-1]


def test_united_vocabularies_have_the_type_of_the_first() -> None:
    columns = [(pd.Index([27, 28]), np.array([0, 1])), (pd.Index(["28", "x"]), np.array([0, 1]))]
    union, codes = unite_codes(columns)
    assert union.tolist() == [27, 28, "x"]
    assert codes.tolist() == [0, 1, 1, 2]
