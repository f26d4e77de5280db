"""Aligned tables of texts."""

from __future__ import annotations

import pytest

from wisecrowd import Rover, TextCrowd
from wisecrowd.report.text_slots import align_words, build_slots


@pytest.mark.parametrize(
    ("answer", "other", "matched", "added"),
    [
        ("a b c", "a b c", ["a", "b", "c"], []),
        ("a b c", "a x c", ["a", "x", "c"], []),
        ("a b c", "a c", ["a", None, "c"], []),
        ("a b", "z a b y", ["a", "b"], [(0, "z"), (2, "y")]),
        ("", "a", [], [(0, "a")]),
        ("a", "", [None], []),
    ],
)
def test_alignment(answer: str, other: str, matched: list[str | None], added: list[tuple[int, str]]) -> None:
    result, insertions = align_words(answer.split(), other.split())
    assert result == matched
    assert [(position, word) for position, words in enumerate(insertions) for word in words] == added


def test_every_worker_has_a_cell_in_every_slot() -> None:
    texts = ["the cat sat", "the cat sat", "the big cat", "the cat sat"]
    crowd = TextCrowd.from_frame({"task": ["t"] * 4, "worker": list("wxyz"), "text": texts})
    slots = build_slots(crowd, Rover().fit(crowd), "t")
    assert [word for word in slots["head"] if word] == ["the", "cat", "sat"]
    assert {len(line["cells"]) for line in slots["lines"]} == {len(slots["head"])}
    kinds = [cell["kind"] for cell in slots["lines"][2]["cells"]]
    assert kinds.count("added") + kinds.count("other") + kinds.count("missing") == 2
    assert [cell["kind"] for cell in slots["lines"][0]["cells"]].count("same") == len(slots["head"])


def test_long_texts_are_cut() -> None:
    crowd = TextCrowd.from_frame({"task": ["t"], "worker": ["w"], "text": [" ".join(f"w{n}" for n in range(200))]})
    slots = build_slots(crowd, Rover().fit(crowd), "t")
    assert slots["has_more"]
    assert len(slots["head"]) == 80
