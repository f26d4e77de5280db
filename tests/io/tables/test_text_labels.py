"""Labels that are free texts."""

from __future__ import annotations

import pytest

from wisecrowd.io.tables.text_labels import MIN_ANSWERS, are_texts

TEXTS = [f"a picture of cat number {number}" for number in range(30)]


@pytest.mark.parametrize(
    ("distinct", "n_answers", "expected"),
    [
        (TEXTS, 30, True),
        (TEXTS, 61, False),  # half of the answers repeat another one
        (TEXTS[: MIN_ANSWERS - 1], MIN_ANSWERS - 1, False),
        ([f"w{number}" for number in range(30)], 30, False),
        (
            ["一只猫坐在窗前的垫子上看着外面的鸟飞来飞去"] + ["一只狗在公园里的草地上追着一个红色的球跑来跑去"] * 3,
            4,
            True,
        ),
        (list(range(30)), 30, False),
    ],
)
def test_texts_are_long_and_different(distinct: list[str], n_answers: int, expected: bool) -> None:
    assert are_texts(distinct, len(distinct), n_answers) is expected
