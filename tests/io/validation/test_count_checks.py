from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wisecrowd.io.validation.count_checks import check_votes_per_task, check_votes_per_worker


@pytest.mark.parametrize(
    ("n_votes", "severity"), [([1, 1, 2, 2], "note"), ([1, 1, 1, 2], "warning"), ([0, 0, 1, 1], "warning")]
)
def test_single_votes_are_a_warning_if_they_are_most(n_votes: list[int], severity: str) -> None:
    index, counts = pd.Index(list("abcd")), np.array(n_votes)
    findings = {
        finding.name: finding
        for check in (check_votes_per_worker, check_votes_per_task)
        for finding in check(index, counts)
    }
    for name in ("one-vote-workers", "one-vote-tasks"):
        assert (findings[name].count, findings[name].severity) == (n_votes.count(1), severity)


def test_words_for_votes_and_tasks_can_be_chosen() -> None:
    (worker,) = check_votes_per_worker(pd.Index(["ann", "bob"]), np.array([3, 0]), noun="comparisons")
    assert worker.message == "all comparisons are by 'ann', so workers cannot be compared"
    (item,) = check_votes_per_task(
        pd.Index(["a", "b"]), np.array([0, 1]), noun="item", never="were never compared", once=None
    )
    assert (item.name, item.message) == ("no-vote-items", "1 of 2 items were never compared ('a')")


def test_enough_votes_are_no_finding() -> None:
    counts = np.array([2, 3])
    assert [
        *check_votes_per_worker(pd.Index(["a", "b"]), counts),
        *check_votes_per_task(pd.Index(["a", "b"]), counts),
    ] == []
