"""Gold labels in the report."""

from __future__ import annotations

from typing import Any

import wisecrowd as wc
from wisecrowd import report


def test_gold_label_without_votes_counts_as_wrong(page_of: Any) -> None:
    crowd = wc.Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "cat"), ("t1", "bob", "cat")])
    page = page_of(report.build(crowd, truth={"t1": "cat", "t2": "unicorn"}, compare=False).html)
    assert page.tiles["accuracy"] == "50%"
    assert page.rows("worker-table")[0]["Accuracy on gold"].text == "50% 12% to 88%; 1 of 2"


def test_gold_matches_ids_of_other_types(page_of: Any) -> None:
    crowd = wc.Crowd.from_triples([("1", "ann", "7"), ("2", "ann", "8"), ("2", "bob", "8")])
    page = page_of(report.build(crowd, truth={1: 7, 2: 7}, compare=False).html)
    assert page.tiles["accuracy"] == "50%"
