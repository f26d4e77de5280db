"""Candidates of comparisons for marks, masks and texts."""

from __future__ import annotations

from typing import Any

import pytest

from wisecrowd import Rover
from wisecrowd.base.mark_aggregator import MarkAggregator
from wisecrowd.base.text_aggregator import TextAggregator
from wisecrowd.errors import UsageError
from wisecrowd.evaluate.answer_candidates import resolve_candidates

DEFAULTS: list[tuple[str, dict[str, Any]]] = [("rover", {}), ("rover", {"weighted": False})]


def resolve(methods: Any) -> dict[str, Any]:
    return resolve_candidates(methods, DEFAULTS, TextAggregator, "texts", "texts")


def test_methods_by_name_and_as_objects() -> None:
    assert not resolve(None)["rover -p weighted=false"].weighted
    assert list(resolve(["rover", Rover(weighted=False)])) == ["rover", repr(Rover(weighted=False))]


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ("rover", "must be a list"),
        ([], "is empty"),
        (["staple"], "these votes are texts, and 'staple' does not take them"),
    ],
)
def test_refusals(methods: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        resolve(methods)


def test_a_method_for_other_marks_is_refused() -> None:
    with pytest.raises(UsageError, match="these votes are spans"):
        resolve_candidates(["box-consensus"], [("span-consensus", {})], MarkAggregator, "spans", "spans")
