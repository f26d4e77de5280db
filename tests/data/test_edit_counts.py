"""Counts of edits: by hand, and their sum against the edit distance."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.data.edit_counts import count_edits
from wisecrowd.data.edit_distance import compute_edit_distances
from wisecrowd.data.texts import tokenize


@pytest.mark.parametrize(
    ("one", "other", "counts"),
    [
        ("a b c", "a b c", (0, 0, 0)),
        ("a b c", "a c", (0, 1, 0)),
        ("a c", "a b c", (0, 0, 1)),
        ("a b", "x b", (1, 0, 0)),
        ("", "a b", (0, 0, 2)),
        ("a b", "", (0, 2, 0)),
        ("a b c d", "b c d e", (0, 1, 1)),
    ],
)
def test_edits_by_hand(one: str, other: str, counts: tuple[int, int, int]) -> None:
    tokens = tokenize([one, other])
    assert tuple(int(count[0]) for count in count_edits(tokens, np.array([0]), tokens, np.array([1]))) == counts


def test_the_sum_is_the_edit_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wisecrowd.data.edit_counts.CELLS_PER_CHUNK", 200)
    rng = np.random.default_rng(0)
    tokens = tokenize([" ".join(rng.choice(list("abc"), rng.integers(0, 9))) for _ in range(120)])
    first, second = np.arange(60), np.arange(60, 120)
    counts = count_edits(tokens, first, tokens, second)
    assert counts.total.tolist() == compute_edit_distances(tokens, first, tokens, second).tolist()
    assert all((count >= 0).all() for count in counts)
    assert (tokens.length[first] - counts.deletions + counts.insertions == tokens.length[second]).all()
