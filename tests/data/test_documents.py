"""Texts of tasks: lengths, sentences and words, and documents that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wisecrowd.data.documents import TokenTexts
from wisecrowd.data.spans import SpanCrowd
from wisecrowd.errors import InputError

CROWD = SpanCrowd.from_frame({"task": ["a", "b"], "worker": ["x", "x"], "start": [0, 1], "end": [2, 3]})
DOCUMENTS: dict[str, Any] = {
    "task": ["c", "b", "a"],
    "tokens": [["z"], ["in", "the", "city", "in"], ["New", "York"]],
    "sentences": [[0], [0, 3], [0]],
}


def test_tokens_follow_the_order_of_tasks() -> None:
    texts = TokenTexts.from_frame(DOCUMENTS, CROWD)
    assert texts.length.tolist() == [2, 4]
    assert texts.offset.tolist() == [0, 2, 6]
    assert np.flatnonzero(texts.begins_sentence).tolist() == [0, 2, 5]
    assert texts.word is not None
    assert texts.word[2] == texts.word[5]
    assert texts.n_words == 5


def test_without_documents_a_text_ends_after_its_last_span() -> None:
    texts = TokenTexts.from_marks(CROWD)
    assert texts.length.tolist() == [3, 4]
    assert np.flatnonzero(texts.begins_sentence).tolist() == [0, 3]
    assert texts.word is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": ["c", "b", "d"]}, "1 task without a document"),
        ({"task": ["b", "b", "a"]}, "documents repeat task 'b'"),
        ({"tokens": [["z"], ["in", "the"], ["New", "York"]]}, "beyond the end of the document: task 'b' has 2 tokens"),
        ({"tokens": ["z", "in", "New"]}, "expected lists"),
        ({"tokens": [["z"], None, ["New", "York"]]}, "1 document without tokens"),
    ],
)
def test_documents_that_do_not_fit_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TokenTexts.from_frame(DOCUMENTS | change, CROWD)
    with pytest.raises(InputError, match="no column 'tokens'"):
        TokenTexts.from_frame({"task": ["a"]}, CROWD)
