"""Crowds of texts: construction, normalisation, and invalid input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd.data.texts import TextCrowd, tokenize
from wisecrowd.errors import InputError, UsageError

FRAME: dict[str, Any] = {"task": ["b", "a", "a"], "worker": ["x", "y", "x"], "text": ["Two words", "One", ""]}


def test_texts_are_sorted_and_an_empty_text_is_a_vote() -> None:
    crowd = TextCrowd.from_frame(FRAME)
    assert (crowd.n_votes, crowd.n_tasks, crowd.n_workers) == (3, 2, 2)
    assert crowd.text.tolist() == ["", "One", "Two words"]
    assert crowd.votes_per_task.tolist() == [2, 1]
    assert crowd.task_offset.tolist() == [0, 2, 3]
    assert TextCrowd.from_frame(crowd.to_frame().iloc[::-1]) == crowd
    assert "3 texts" in repr(crowd)
    assert "3 texts" in crowd._repr_html_()
    assert hash(crowd) == hash(TextCrowd.from_frame(FRAME))


def test_selection_keeps_vocabularies() -> None:
    crowd = TextCrowd.from_frame(FRAME)
    visible, heldout = crowd.hide(0.4, random_state=0)
    assert visible.n_votes + heldout.n_votes == 3
    assert visible.tasks.equals(crowd.tasks)


def test_repeated_texts_need_a_rule() -> None:
    frame = {"task": ["a", "a"], "worker": ["x", "x"], "text": ["first", "last"]}
    with pytest.raises(InputError, match="1 repeated row"):
        TextCrowd.from_frame(frame)
    assert TextCrowd.from_frame(frame, duplicates="first").text.tolist() == ["first"]
    assert TextCrowd.from_frame(frame, duplicates="last").text.tolist() == ["last"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": [1, 2, 3]}, "expected texts"),
        ({"text": ["a", None, "b"]}, "text"),
        ({"task": ["a", "b", None]}, "task"),
    ],
)
def test_invalid_texts_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TextCrowd.from_frame(FRAME | change)
    with pytest.raises(InputError, match="no column 'text'"):
        TextCrowd.from_frame({"task": ["a"], "worker": ["x"]})


@pytest.mark.parametrize(
    ("normalisation", "expected"),
    [
        ("words", ["don't", "stop", "élan", "2"]),
        ("case", ["don’t", "stop,", "élan", "2!"]),
        ("none", ["Don’t", "stop,", "Élan", "2!"]),
    ],
)
def test_normalisation_is_explicit(normalisation: Any, expected: list[str]) -> None:
    tokens = tokenize(["Don’t  stop,\nÉlan 2!"], normalisation=normalisation)
    assert tokens.tokens[tokens.code].tolist() == expected


def test_characters_and_padding() -> None:
    tokens = tokenize(["日 本", "", "b"], unit="characters")
    assert tokens.length.tolist() == [3, 0, 1]
    assert tokens.tokens[tokens.code].tolist() == ["日", " ", "本", "b"]
    assert tokens.pad(np.array([1, 0]))[0].tolist() == [-1, -1, -1]
    with pytest.raises(UsageError, match="unit"):
        tokenize(["a"], unit="letters")  # type: ignore[arg-type]  # the mistake


def test_codes_must_match() -> None:
    index = pd.Index(["a"])
    with pytest.raises(InputError, match="one value per answer"):
        TextCrowd([0], [0], ["x", "y"], tasks=index, workers=index)
