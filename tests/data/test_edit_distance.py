"""Edit distances equal those of a plain recursion."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from wisecrowd.data import edit_distance
from wisecrowd.data.texts import tokenize


def plain_distance(one: str, other: str) -> int:
    @cache
    def distance(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return i + j
        return min(
            distance(i - 1, j) + 1, distance(i, j - 1) + 1, distance(i - 1, j - 1) + (one[i - 1] != other[j - 1])
        )

    return distance(len(one), len(other))


@pytest.mark.parametrize("cells", [1, 40, 1 << 20])
def test_distances_equal_recursion(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edit_distance, "CELLS_PER_CHUNK", cells)
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("abc"), rng.integers(0, 9))) for _ in range(60)]
    tokens = tokenize(texts, unit="characters")
    first, second = np.arange(30), np.arange(30, 60)
    actual = edit_distance.compute_edit_distances(tokens, first, tokens, second)
    assert actual.tolist() == [plain_distance(texts[i], texts[j]) for i, j in zip(first, second, strict=True)]


def test_long_texts_equal_short_ones_in_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts around the length of a word, in bits and in rows of numbers."""
    rng = np.random.default_rng(1)
    texts = ["".join(rng.choice(list("abcd"), rng.integers(55, 65))) for _ in range(40)] + ["", "a"]
    tokens = tokenize(texts, unit="characters")
    first, second = np.arange(42), np.arange(42)[::-1]
    in_bits = edit_distance.compute_edit_distances(tokens, first, tokens, second)
    monkeypatch.setattr(edit_distance, "WORD_BITS", 0)
    assert edit_distance.compute_edit_distances(tokens, first, tokens, second).tolist() == in_bits.tolist()
