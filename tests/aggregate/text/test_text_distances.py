"""Distances within tasks, and the medoid."""

from __future__ import annotations

import numpy as np

from wisecrowd.aggregate.text._text_distances import compare_texts, find_medoids, group_equal_texts, rank_texts
from wisecrowd.data.texts import TextCrowd, tokenize

CROWD = TextCrowd.from_frame(
    {"task": ["a", "a", "a", "b"], "worker": ["x", "y", "z", "x"], "text": ["one two", "one too", "one two", "four"]},
    tasks=["a", "b", "c"],
)


def test_distances_and_medoids() -> None:
    tokens = tokenize(CROWD.text)
    pairs = compare_texts(CROWD, tokens)
    assert list(zip(pairs.first, pairs.second, pairs.distance, strict=True)) == [(0, 1, 0.5), (0, 2, 0.0), (1, 2, 0.5)]
    cost = pairs.sum_distances(np.ones(4))
    assert cost.tolist() == [0.5, 1.0, 0.5, 0.0]
    assert find_medoids(CROWD, cost, tokens).tolist() == [0, 3, -1]
    heavy = pairs.sum_distances(np.array([1.0, 9.0, 1.0, 1.0]))
    assert find_medoids(CROWD, heavy, tokens).tolist() == [1, 3, -1]
    assert rank_texts(CROWD).tolist() == [2, 1, 2, 0]


def test_equal_texts_have_the_same_number() -> None:
    group = group_equal_texts(tokenize(["A cat.", "", "a cat", "cat a", "!", "a"]))
    assert group.tolist() == [0, 1, 0, 2, 1, 3]
