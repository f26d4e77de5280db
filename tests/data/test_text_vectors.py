"""Vectors of texts are found by the text, from tables and functions, and checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd.data.text_vectors import look_up_vectors
from wisecrowd.errors import InputError

TEXTS = ["b", "a", "b"]


def test_tables_are_read_by_text_in_any_order() -> None:
    table = pd.DataFrame([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], index=["a", "unused", "b"])
    vectors = look_up_vectors(TEXTS, table)
    assert vectors.vectors[vectors.code].tolist() == [[5, 6], [1, 2], [5, 6]]


def test_functions_get_distinct_texts() -> None:
    calls = []

    def encode(texts: list[str]) -> np.ndarray:
        calls.append(texts)
        return np.array([[ord(text)] for text in texts])

    vectors = look_up_vectors(TEXTS, encode)
    assert calls == [["b", "a"]]
    assert vectors.vectors[vectors.code].ravel().tolist() == [98, 97, 98]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (pd.DataFrame([[1.0]], index=["a"]), "no vector: .*b"),
        (pd.DataFrame([[1.0], [2.0], [3.0]], index=["a", "b", "b"]), "more than one vector"),
        (pd.DataFrame([["x"], ["y"]], index=["a", "b"]), "must be numbers"),
        (lambda texts: [[1.0]], "2 distinct texts"),
        (lambda texts: [1.0, 2.0], "2 distinct texts"),
        (lambda texts: [[1.0], [np.nan]], "infinite"),
        (lambda texts: [[1.0], [1.0, 2.0]], "equally many"),
        (np.ones((3, 2)), "ndarray"),
    ],
)
def test_wrong_vectors_are_refused(source: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        look_up_vectors(TEXTS, source)
