from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

from wisecrowd.io.tables.spellings import (
    find_equal_numbers,
    find_grouped_ids,
    find_number_forms,
    make_spelling_keys,
    match_spellings,
    unify_spellings,
)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("1", "1"),
        ("1.0", "1"),
        ("1.", "1"),
        (" +1.00 ", "1"),
        ("-0.0", "0"),
        ("-.50", "-0.5"),
        ("100", "100"),
        ("10.010", "10.01"),
        ("1e+16", "10000000000000000"),
        ("2.5e-03", "0.0025"),
        ("9007199254740993.0", "9007199254740993"),
        ("007", None),
        ("12e4", None),
        ("1e+999", None),
        ("0x1", None),
        ("1,5", None),
        ("nan", None),
        ("", None),
        (".", None),
        ("1.0.0", None),
    ],
)
def test_numbers_have_one_form_and_codes_none(text: str, form: str | None) -> None:
    assert find_number_forms(pa.array([text])).to_pylist() == [form]


def test_large_numbers_stay_exact() -> None:
    assert find_equal_numbers(pd.Index(["9007199254740993", "9007199254740992.0", "9007199254740992"])) == [
        "9007199254740992.0",
        "9007199254740992",
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Cat", "cat "),
        ("caf\u00e9", "CAFE\u0301"),
        ("no\u00a0break", "no break"),
        ("a\u200bb", "ab"),
        ("\uff11", "1.0"),
    ],
)
def test_spellings_of_one_value_have_one_key(one: str, other: str) -> None:
    keys = make_spelling_keys(pa.array([one, other]))
    assert keys[0] == keys[1]


@pytest.mark.parametrize(("one", "other"), [("photo 1 1", "photo 11"), ("007", "7"), ("a-b", "ab"), ("cat", "cut")])
def test_other_values_keep_their_keys(one: str, other: str) -> None:
    keys = make_spelling_keys(pa.array([one, other]))
    assert keys[0] != keys[1]


def test_the_most_frequent_spelling_is_chosen_and_single_ones_stay() -> None:
    column, note = unify_spellings(pa.chunked_array([["YES", "yes", None], ["yes", "NO ", "YES", "yes"]]), "label")
    assert column.to_pylist() == ["yes", "yes", None, "yes", "NO ", "yes", "yes"]
    assert note == "normalised 1 label: 'YES' to 'yes'"


def test_whole_numbers_take_their_shortest_form() -> None:
    column, _ = unify_spellings(
        pa.chunked_array([["100.0", "100.0", "100", "7.0", "2.50", "2.5", "2.50", "1e+03"]]), "task"
    )
    assert column.to_pylist() == ["100", "100", "100", "7", "2.50", "2.50", "2.50", "1000"]
    column, _ = unify_spellings(pa.chunked_array([["1.0", "1", "+0"]]), "label", ["1.0"])
    assert column.to_pylist() == ["1.0", "1.0", "0"]


@pytest.mark.parametrize("text", ["12.0", "+12", " 12", "12 ", "12.", "1.2e+01"])
def test_every_longer_form_equals_the_shortest_as_a_number(text: str) -> None:
    assert set(find_equal_numbers(pd.Index(["12", text, "x12.0"]))) == {"12", text}


def test_the_spelling_does_not_depend_on_the_order_of_rows() -> None:
    forward, _ = unify_spellings(pa.chunked_array([["b", "B"]]), "label")
    backward, _ = unify_spellings(pa.chunked_array([["B", "b"]]), "label")
    assert forward.to_pylist() == backward.to_pylist() == ["B", "B"]


def test_listed_spellings_are_preferred_and_stay_apart() -> None:
    column, _ = unify_spellings(pa.chunked_array([["cat", "cat", "dog"]]), "label", ["Cat", "dog"])
    assert column.to_pylist() == ["Cat", "Cat", "dog"]
    column, _ = unify_spellings(pa.chunked_array([["cat", "CAT"]]), "label", ["CAT", "cat"])
    assert column.to_pylist() == ["cat", "CAT"]


@pytest.mark.parametrize("values", [[1, 2], [True, False], []])
def test_other_types_are_unchanged(values: list[object]) -> None:
    column = pa.chunked_array([values])
    assert unify_spellings(column, "label") == (column, "")


def test_dictionaries_in_several_chunks() -> None:
    chunks = [pa.array(["1", "1.0"]).dictionary_encode(), pa.array(["1.0", "1", "1"]).dictionary_encode()]
    column, _ = unify_spellings(pa.chunked_array(chunks), "label")
    assert column.to_pylist() == ["1"] * 5


def test_ids_take_the_spelling_of_a_vocabulary_unless_it_is_ambiguous() -> None:
    assert match_spellings(pd.Index(["T1", "2.0", "x"]), pd.Index(["t1", "2"])).tolist() == ["t1", "2", "x"]
    assert match_spellings(pd.Index(["CAT", "cat"]), pd.Index(["Cat", "cat"])).tolist() == ["CAT", "cat"]
    assert match_spellings(pd.Index(["28.0"]), pd.Index([28, 29])).tolist() == [28]


def test_replacements_that_look_alike_are_visible() -> None:
    _, note = unify_spellings(pa.chunked_array([["caf\u00e9", "cafe\u0301", "caf\u00e9"]]), "label")
    assert note == "normalised 1 label: 'cafe\\u0301' to 'caf\u00e9'"


def test_thousands_separators_are_another_form_unless_commas_mean_something_else() -> None:
    assert find_equal_numbers(pd.Index(["1,183", "1183", "7"])) == ["1,183", "1183"]
    assert find_equal_numbers(pd.Index(["1,183", "1183", "0,500"])) == []
    assert find_grouped_ids(pd.Index(["1,183", "image 1,183"])) == []
    assert match_spellings(pd.Index(["1183"]), pd.Index(["1,183", "12"])).tolist() == ["1,183"]
    column, note = unify_spellings(pa.chunked_array([["1,183", "7"]]), "task")
    assert (column.to_pylist(), note) == (["1183", "7"], "normalised 1 task: '1,183' to '1183'")
    assert unify_spellings(pa.chunked_array([["1,183", "7"]]), "label")[1] == ""  # may be a decimal
