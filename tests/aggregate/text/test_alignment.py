"""Alignment: every text has each of its tokens once and in order, and the cost of the first step is the edit distance."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.aggregate.text import _alignment
from wisecrowd.aggregate.text._alignment import EMPTY, align_texts
from wisecrowd.data.edit_distance import compute_edit_distances
from wisecrowd.data.texts import tokenize


@pytest.mark.parametrize("cells", [1, 1 << 21])
def test_slots_hold_all_texts_in_order(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_alignment, "CELLS_PER_CHUNK", cells)
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 5, 25)
    texts = [" ".join(rng.choice(list("abcd"), rng.integers(0, 7))) for _ in range(counts.sum())]
    tokens = tokenize(texts)
    offset = np.concatenate([[0], np.cumsum(counts)])
    votes = align_texts(tokens, np.arange(len(texts)), offset)
    assert (np.diff(votes.slot) >= 0).all()
    task_of_text = np.repeat(np.arange(25), counts)
    assert (votes.slot_task[votes.slot] == task_of_text[votes.text]).all()
    for text in range(len(texts)):
        rows = votes.text == text
        given = votes.token[rows]
        assert tokens.tokens[given[given != EMPTY]].tolist() == texts[text].split()
        assert rows.sum() == (votes.slot_task == task_of_text[text]).sum()


def test_two_texts_are_aligned_with_the_fewest_edits() -> None:
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.choice(list("abc"), rng.integers(0, 8))) for _ in range(80)]
    tokens = tokenize(texts)
    votes = align_texts(tokens, np.arange(80), np.arange(0, 81, 2))
    pairs = votes.token.reshape(-1, 2)
    edits = np.bincount(votes.slot_task, pairs[:, 0] != pairs[:, 1], 40)
    assert edits.tolist() == compute_edit_distances(tokens, np.arange(0, 80, 2), tokens, np.arange(1, 80, 2)).tolist()


def test_no_texts_have_no_slots() -> None:
    assert len(align_texts(tokenize([]), np.empty(0, np.int64), np.zeros(3, np.int64)).slot) == 0
