"""The distinct ids of a column are what a plain Python set says they are, by whichever path they were found."""

from __future__ import annotations

from datetime import date
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wisecrowd.data.distinct_ids import PACKED_BYTES, factorize_ids
from wisecrowd.errors import InputError

short = st.text(max_size=5)
ids = st.one_of(short, st.text(alphabet="ab\0é", max_size=9), st.text(min_size=PACKED_BYTES, max_size=40))


def check(column: pa.ChunkedArray) -> None:
    codes, found = factorize_ids(column, "task")
    values = column.to_pylist()
    # Texts sort by their bytes, as UTF-8 does by code points.
    assert found.to_pylist() == sorted(set(values))
    assert [found[code].as_py() for code in codes.tolist()] == values
    assert codes.dtype == "int32"


@given(st.lists(st.lists(ids)), st.sampled_from([pa.string(), pa.large_string(), pa.string_view()]))
def test_texts(chunks: list[list[str]], kind: pa.DataType) -> None:
    check(pa.chunked_array(chunks, kind))


@given(st.lists(short, min_size=1), st.data())
def test_slices_of_texts(values: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(values)))
    check(pa.chunked_array([values]).slice(start, data.draw(st.integers(0, len(values)))))


@given(st.lists(st.lists(st.sampled_from(["a", "b", "c", "unused"])), min_size=1))
def test_dictionaries_keep_only_what_is_used(chunks: list[list[str]]) -> None:
    dictionaries = [pa.array(["unused", *chunk]).dictionary_encode()[1:] for chunk in chunks]
    check(pa.chunked_array(dictionaries, pa.dictionary(pa.int32(), pa.string())))


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int64(), pa.uint64()])
@given(data=st.data())
def test_integers(kind: pa.DataType, data: st.DataObject) -> None:
    low, high = (
        (0, 2**kind.bit_width - 1)
        if "uint" in str(kind)
        else (-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1)
    )
    check(pa.chunked_array([data.draw(st.lists(st.integers(low, high)))], kind))


@pytest.mark.parametrize("values", [[True, False, True], [1.5, 0.5], [date(2024, 5, 1), date(2020, 1, 1)]])
def test_other_types(values: list[Any]) -> None:
    check(pa.chunked_array([values]))


def test_what_cannot_be_an_id_is_named() -> None:
    with pytest.raises(InputError, match=r"the label column holds list<.*> values; ids must be"):
        factorize_ids(pa.chunked_array([[["a"], ["b"]]]), "label")
