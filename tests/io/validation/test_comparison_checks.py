"""Checks of comparisons at their thresholds."""

from __future__ import annotations

from typing import Any

import pandas as pd

import wisecrowd as wc
from wisecrowd.io.validation.comparison_checks import check_comparisons, describe_groups
from wisecrowd.io.validation.findings import Finding

#: Three items in a cycle, each pair by each of three workers in an order of his own: nothing to complain about.
CYCLE = [
    (worker, *(pair if number % 2 else pair[::-1]), pair[0])
    for number, worker in enumerate("xyz")
    for pair in (("a", "b"), ("b", "c"), ("c", "a"))
]


def check(votes: list[tuple[Any, ...]], *, repeats_allowed: bool = True, **options: Any) -> dict[str, Finding]:
    comparisons = wc.Comparisons.from_tuples(votes, **{"duplicates": "keep", "swapped": "keep"} | options)
    return {finding.name: finding for finding in check_comparisons(comparisons, repeats_allowed=repeats_allowed)}


def test_sound_comparisons_have_no_findings() -> None:
    assert check(CYCLE) == {}


def test_components_are_named() -> None:
    finding = check([*CYCLE, *((worker, "p", "q", side) for worker in "xyz" for side in "pq")])["disconnected-graph"]
    assert (finding.severity, finding.count) == ("warning", 2)
    assert "3 items: 'a', 'b', 'c'; 2 items: 'p', 'q'" in finding.message
    assert finding.examples == (("a", "b", "c"), ("p", "q"))


def test_many_components_are_listed_briefly() -> None:
    pairs = wc.Comparisons.from_tuples([("x", f"l{n}", f"r{n}", f"l{n}") for n in range(9)])
    assert describe_groups(pairs, pairs.find_components()).count("items") == 3


def test_items_that_always_win_or_lose() -> None:
    found = check(
        [*CYCLE, *((worker, "best", "a", "best") for worker in "xyz"), *((w, "b", "worst", "b") for w in "xyz")]
    )
    assert found["items-always-win"].examples == ("best",)
    assert found["items-always-lose"].examples == ("worst",)
    tied = check([*CYCLE, *((worker, "best", "a", "best") for worker in "xy"), ("z", "best", "a", "tie")])
    assert "items-always-win" not in tied
    few = check([*CYCLE, *((worker, "best", "a", "best") for worker in "xy")])
    assert "items-always-win" not in few


def test_groups_that_only_win() -> None:
    other = [(worker, left.upper(), right.upper(), label.upper()) for worker, left, right, label in CYCLE]
    found = check([*CYCLE, *other, ("x", "a", "A", "a"), ("y", "B", "b", "b")])
    assert found["one-way-groups"].count == 2
    assert "disconnected-graph" not in found
    assert "one-way-groups" not in check([*CYCLE, *other, ("x", "a", "A", "a"), ("y", "B", "b", "B")])


def random_votes(**options: Any) -> list[tuple[Any, ...]]:
    made = wc.simulate_comparisons(n_items=8, n_workers=6, votes_per_worker=40, n_tasks=500, random_state=1, **options)
    return list(made.comparisons.to_frame()[["worker", "left", "right", "label"]].itertuples(index=False, name=None))


def test_one_sided_workers_are_found() -> None:
    votes = random_votes()
    assert not [name for name in check(votes) if name.startswith("always-")]
    pairs = [(left, right) for worker, left, right, _ in votes if worker == "w0"]
    sides = {"lefty": 0, "righty": 1}
    spam = [(who, left, right, (left, right)[side]) for who, side in sides.items() for left, right in pairs]
    found = check([*votes, *spam, *(("tied", left, right, "tie") for left, right in pairs)])
    assert found["always-left-workers"].examples == ("lefty",)
    assert found["always-right-workers"].examples == ("righty",)
    assert found["always-tie-workers"].examples == ("tied",)
    assert found["always-left-workers"].severity == "warning"
    assert "always-left-workers" not in check([*votes, *(vote for vote in spam[:4] if vote[0] == "lefty")])


def test_a_table_with_the_winner_first_has_no_one_sided_workers() -> None:
    won = [(worker, label, left if label == right else right, label) for worker, left, right, label in random_votes()]
    found = check([vote for vote in won if vote[3] != "tie"])
    assert not [name for name in found if name.startswith("always-")]
    assert found["single-side"].severity == "warning"


def test_both_orders_of_a_pair() -> None:
    consistent = [("x", "a", "b", "a"), ("x", "b", "a", "a")]
    contradicting = [("y", "a", "b", "a"), ("y", "b", "a", "b")]
    found = check([*consistent, *contradicting])["swapped-comparisons"]
    assert (found.severity, found.count) == ("note", 2)
    assert "1 of them with contradicting outcomes" in found.message
    assert check(contradicting)["swapped-comparisons"].severity == "warning"
    assert "swapped-comparisons" not in check([("x", "a", "b", "a"), ("y", "b", "a", "a")])


def test_orders_on_different_prompts_are_no_repeats() -> None:
    frame = pd.DataFrame(
        [("x", "a", "b", "a", "p1"), ("x", "b", "a", "a", "p2"), ("x", "a", "b", "a", "p3")],
        columns=["worker", "left", "right", "label", "task"],
    )
    comparisons = wc.Comparisons.from_frame(frame, task="task")
    names = {finding.name for finding in check_comparisons(comparisons, repeats_allowed=False)}
    assert not names & {"swapped-comparisons", "duplicate-votes", "conflicting-votes"}


def test_repeats_are_errors_unless_a_rule_is_chosen() -> None:
    votes = [*CYCLE, CYCLE[0], (*CYCLE[1][:3], "tie")]
    found = check(votes, repeats_allowed=False)
    assert [found[name].severity for name in ("duplicate-votes", "conflicting-votes")] == ["error", "error"]
    assert "--duplicates" in found["duplicate-votes"].fix
    assert check(votes)["duplicate-votes"].severity == "note"


def test_single_workers_and_items() -> None:
    found = check([("x", "a", "b", "a"), ("x", "b", "c", "b"), ("x", "c", "a", "c")])
    assert "single-worker" in found
    assert check([*CYCLE, ("w", "a", "b", "b")])["one-vote-workers"].examples == ("w",)
    assert check([*CYCLE, ("x", "a", "d", "a")])["one-vote-items"].examples == ("d",)
    assert check(CYCLE, items=["a", "b", "c", "z"])["no-vote-items"].examples == ("z",)


def test_similar_items_are_found() -> None:
    assert check([*CYCLE, ("x", "A", "b", "b"), ("y", "A", "b", "A")])["items-differ-by-case-or-space"].count == 2
