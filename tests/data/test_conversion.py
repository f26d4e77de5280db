"""Votes in any form as a crowd."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from wisecrowd import Crowd
from wisecrowd.data.conversion import as_crowd
from wisecrowd.errors import UsageError

TRIPLES = [("t1", "ann", "cat"), ("t1", "bob", "dog")]


def test_all_forms_give_the_same_crowd() -> None:
    crowd = Crowd.from_triples(TRIPLES)
    frame = pd.DataFrame(TRIPLES, columns=["task", "worker", "label"])
    assert as_crowd(crowd) is crowd
    for votes in (TRIPLES, tuple(TRIPLES), frame, frame.to_dict("list")):
        assert as_crowd(votes) == crowd  # type: ignore[arg-type]  # keys of a dict are hashable


def test_numbers() -> None:
    assert as_crowd([("t1", "ann", 1.5)], "numeric").is_numeric


def test_ordered_classes() -> None:
    assert as_crowd([("t1", "ann", 2), ("t1", "bob", 10)], "ordinal").classes.tolist() == [2, 10]
    assert as_crowd([("t1", "ann", 2)], "ordinal").is_ordered


def test_a_path_is_refused() -> None:
    with pytest.raises(UsageError, match=r"Use wisecrowd\.read\('votes\.csv'\)"):
        as_crowd("votes.csv")  # type: ignore[arg-type]  # the mistake


def test_shards_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"crowd\.load\(\)"):
        as_crowd(Crowd.from_triples(TRIPLES).to_shards(tmp_path / "crowd"))
