"""GLEU scores against counts of word sequences one by one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from wisecrowd.aggregate.text import _gleu
from wisecrowd.data.texts import tokenize


def count_sequences(text: str) -> Counter[tuple[str, ...]]:
    words = text.split()
    return Counter(tuple(words[i : i + n]) for n in range(1, 5) for i in range(len(words) - n + 1))


def brute_gleu(one: str, other: str) -> float:
    counts = count_sequences(one), count_sequences(other)
    longer = max(count.total() for count in counts)
    return (counts[0] & counts[1]).total() / longer if longer else 1.0


def test_scores_equal_brute_force(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_gleu, "PAIRS_PER_CHUNK", 7)
    rng = np.random.default_rng(0)
    texts = ["", "", "a", *(" ".join(rng.choice(list("abc"), size)) for size in rng.integers(1, 12, 17))]
    first, second = (side.ravel() for side in np.indices((len(texts), len(texts))))
    scores = _gleu.compute_gleu(tokenize(texts), first, second)
    assert scores == pytest.approx([brute_gleu(texts[i], texts[j]) for i, j in zip(first, second, strict=True)])


def test_empty_texts_only() -> None:
    assert _gleu.compute_gleu(tokenize(["", ""]), np.array([0]), np.array([1])).tolist() == [1]
