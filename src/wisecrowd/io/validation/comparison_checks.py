"""Checks of comparisons of two items. The time of every check is proportional to the number of comparisons."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.comparisons import LEFT, RIGHT, TIE, Comparisons
from wisecrowd.errors import preview
from wisecrowd.io.validation.count_checks import check_votes_per_task, check_votes_per_worker
from wisecrowd.io.validation.findings import Finding
from wisecrowd.io.validation.id_checks import check_ids
from wisecrowd.utils.text import count_noun

#: Comparisons of an item from which "won all of them" is worth a line; fewer happen by chance all the time.
MIN_DECISIONS = 3
#: Share of one side from which a worker is one-sided, and the probability that chance explains it, for the whole crowd.
MIN_SIDE_SHARE, SIDE_SIGNIFICANCE = 0.9, 0.01
#: Smallest chance of each outcome, because few other workers may never have given it.
MIN_CHANCE = (0.5, 0.5, 0.2)
#: Groups, and items of each group, that a message names.
SHOWN_GROUPS, SHOWN_ITEMS = 3, 4


def check_comparisons(comparisons: Comparisons, *, repeats_allowed: bool) -> Iterator[Finding]:
    """Check comparisons.

    Parameters
    ----------
    comparisons : Comparisons
        Comparisons, with repeated and swapped ones as the file holds them.
    repeats_allowed : bool
        Whether the user chose a rule for repeated comparisons.

    Yields
    ------
    Finding
        Problems and observations.

    Examples
    --------
    >>> votes = [(worker, "a", "b", side) for worker in "xyz" for side in ["a", "b"]] + [("x", "c", "d", "c")]
    >>> findings = check_comparisons(Comparisons.from_tuples(votes, duplicates="keep"), repeats_allowed=True)
    >>> [finding.name for finding in findings]
    ['conflicting-votes', 'disconnected-graph', 'one-vote-items']
    """
    if comparisons.n_votes == 0:
        yield Finding(name="empty-file", severity="error", count=1, message="there are no comparisons")
        return
    if comparisons.worker is not None and comparisons.workers is not None:
        yield from _check_repeats(comparisons, comparisons.worker, comparisons.workers, repeats_allowed)
        yield from _check_swapped(comparisons, comparisons.worker, comparisons.workers)
        yield from _check_workers(comparisons, comparisons.workers)
    yield from _check_sides(comparisons)
    yield from _check_connections(comparisons)
    yield from _check_items(comparisons)
    yield from check_ids({"item": [comparisons.items], "id": [comparisons.workers, comparisons.tasks]})


def _check_repeats(
    comparisons: Comparisons, worker: NDArray[np.int32], workers: pd.Index, repeats_allowed: bool
) -> Iterator[Finding]:
    # Rows are sorted by task, worker, left item, right item and outcome.
    columns = [worker, comparisons.left, comparisons.right, *(() if comparisons.task is None else (comparisons.task,))]
    is_repeat = np.logical_and.reduce([np.diff(column) == 0 for column in columns])
    is_same = np.diff(comparisons.outcome) == 0
    for name, mask, noun, outcome, fix in (
        ("duplicate-votes", is_repeat & is_same, "repeated comparison", "the same outcome",
         'duplicates="first" counts each once, "keep" all of them (--duplicates first).'),
        ("conflicting-votes", is_repeat & ~is_same, "conflicting comparison", "another outcome",
         'duplicates="first" or "last" keeps one, "keep" all of them (--duplicates last).'),
    ):  # fmt: skip
        rows = np.flatnonzero(mask)
        if rows.size:
            items = comparisons.items
            examples = [
                (workers[worker[row]], items[comparisons.left[row]], items[comparisons.right[row]]) for row in rows[:3]
            ]
            listed = "; ".join(
                f"{preview([left])} and {preview([right])} by {preview([who])}" for who, left, right in examples
            )
            yield Finding(
                name=name,
                severity="note" if repeats_allowed else "error",
                count=rows.size,
                examples=tuple(examples),
                message=f"{count_noun(rows.size, noun)}: {outcome} of the same pair, order and worker ({listed})",
                fix="" if repeats_allowed else f"Choose a rule: {fix}",
            )  # fmt: skip


def _check_swapped(comparisons: Comparisons, worker: NDArray[np.int32], workers: pd.Index) -> Iterator[Finding]:
    low, high = np.minimum(comparisons.left, comparisons.right), np.maximum(comparisons.left, comparisons.right)
    columns = [high, low, worker, *(() if comparisons.task is None else (comparisons.task,))]
    order = np.lexsort(columns)
    is_new = np.logical_or.reduce([np.diff(column[order], prepend=-1) != 0 for column in columns])
    start = np.flatnonzero(is_new)
    is_forward = (comparisons.left < comparisons.right)[order]
    winner = np.where(comparisons.outcome == LEFT, comparisons.left, comparisons.right)
    winner = np.where(comparisons.outcome == TIE, -1, winner)[order]
    in_both = np.maximum.reduceat(is_forward, start) & ~np.minimum.reduceat(is_forward, start)
    contradicts = in_both & (np.maximum.reduceat(winner, start) != np.minimum.reduceat(winner, start))
    groups = np.flatnonzero(in_both)
    if not groups.size:
        return
    rows = order[start[groups[:3]]]
    examples = [(workers[worker[row]], comparisons.items[low[row]], comparisons.items[high[row]]) for row in rows]
    n_contradicting = int(contradicts.sum())
    yield Finding(
        name="swapped-comparisons",
        severity="warning" if n_contradicting > groups.size / 2 else "note",
        count=groups.size,
        examples=tuple(examples),
        message=f"{count_noun(groups.size, 'pair')} judged in both orders by the same worker, {n_contradicting:,} of them with "
        "contradicting outcomes; both orders together count as one comparison",
        fix='swapped="keep" counts both orders fully, swapped="reconcile" makes a contradiction a tie.',
    )


def _check_workers(comparisons: Comparisons, workers: pd.Index) -> Iterator[Finding]:
    counts = count_outcomes(comparisons)
    n_votes = counts.sum(axis=1)
    yield from check_votes_per_worker(
        workers, n_votes, noun="comparisons", once="made one comparison, which does not show their reliability"
    )
    for outcome, word in ((LEFT, "left"), (RIGHT, "right"), (TIE, "tie")):
        one_sided = np.flatnonzero(find_one_sided_workers(counts, outcome))
        if one_sided.size:
            habit = f"almost always chose the {word} item" if outcome != TIE else "almost always called a tie"
            shares = [counts[code, outcome] / n_votes[code] for code in one_sided[:3]]
            listed = ", ".join(
                f"{preview([workers[code]])} {share:.0%}" for code, share in zip(one_sided[:3], shares, strict=True)
            )
            yield Finding(
                name=f"always-{word}-workers",
                severity="warning",
                count=one_sided.size,
                examples=tuple(workers[one_sided[:3]]),
                message=f"{count_noun(one_sided.size, 'worker')} {habit}, far more often than others "
                f"({listed}{', …' * (one_sided.size > 3)})",
                fix="Inspect them, or use judge-aware-bradley-terry: it explains such answers by the habit, not by the items.",
            )


def count_outcomes(comparisons: Comparisons) -> NDArray[np.int64]:
    """Count the comparisons of every worker by outcome.

    Parameters
    ----------
    comparisons : Comparisons
        Comparisons with worker ids.

    Returns
    -------
    ndarray of shape (n_workers, 3)
    """
    cell = np.asarray(comparisons.worker).astype(np.int64) * 3 + comparisons.outcome
    return np.bincount(cell, minlength=3 * comparisons.n_workers).reshape(-1, 3)


def find_one_sided_workers(counts: NDArray[np.int64], outcome: int) -> NDArray[np.bool_]:
    """Find workers who give one outcome almost always, and more often than chance explains.

    Chance is the share of the outcome among the other workers, so that a table whose left item always wins has no such workers,
    and at least `MIN_CHANCE`.

    Parameters
    ----------
    counts : ndarray of shape (n_workers, 3)
        Number of comparisons by worker and outcome.
    outcome : {LEFT, RIGHT, TIE}
        Outcome. Ties are left out of the share of a side.

    Returns
    -------
    ndarray of shape (n_workers,)
        Mask.

    Examples
    --------
    >>> find_one_sided_workers(np.array([[20, 0, 0], [11, 9, 0], [9, 12, 3]]), LEFT).tolist()
    [True, False, False]
    """
    from scipy.special import betainc

    total = counts.sum(axis=1)
    n = total if outcome == TIE else total - counts[:, TIE]
    hits = counts[:, outcome]
    with np.errstate(invalid="ignore", divide="ignore"):
        others = (hits.sum() - hits) / (n.sum() - n)
        others = np.where(np.isfinite(others), others, 1.0)
        share = np.where(n > 0, hits / np.maximum(n, 1), 0)
    # P(at least so many of n): the binomial tail is an incomplete beta function.
    tail = betainc(np.maximum(hits, 1), n - hits + 1, np.maximum(others, MIN_CHANCE[outcome]))
    chance = np.where(hits > 0, tail, 1.0)
    return np.asarray((share >= MIN_SIDE_SHARE) & (chance < SIDE_SIGNIFICANCE / max((total > 0).sum(), 1)))


def _check_sides(comparisons: Comparisons) -> Iterator[Finding]:
    counts = np.bincount(comparisons.outcome, minlength=3)
    for side, word in ((LEFT, "left"), (RIGHT, "right")):
        if counts[side] >= MIN_DECISIONS and counts[side] == counts[LEFT] + counts[RIGHT]:
            yield Finding(
                name="single-side",
                severity="warning",
                count=int(counts[side]),
                message=f"the {word} item wins every comparison that is not a tie, so sides do not show the order in which items "
                "were presented",
                fix="If the file lists the winner first, read it with bradley-terry: preferences for a side cannot be estimated.",
            )


def _check_connections(comparisons: Comparisons) -> Iterator[Finding]:
    component = comparisons.find_components()
    n_groups = int(component.max(initial=0)) + 1
    if n_groups > 1:
        yield Finding(
            name="disconnected-graph",
            severity="warning",
            count=n_groups,
            examples=tuple(tuple(comparisons.items[component == number][:3]) for number in range(min(n_groups, 3))),
            message=f"the items form {n_groups:,} groups without comparisons between them "
            f"({describe_groups(comparisons, component)}); scores of different groups cannot be compared",
            fix="Collect comparisons between the groups (wisecrowd.plan_comparisons), or rank each group by itself.",
        )
    # Without the items that always win or lose, what remains of the strong components are groups of several items.
    counts = comparisons.item_counts
    is_mixed = ((counts["wins"] + counts["ties"] > 0) & (counts["losses"] + counts["ties"] > 0)).to_numpy()
    strong = comparisons.find_components(strong=True)
    pairs = {(int(weak), int(part)) for weak, part in zip(component[is_mixed], strong[is_mixed], strict=True)}
    n_one_way = len(pairs) - len({weak for weak, _ in pairs})
    if n_one_way:
        parts = np.where(is_mixed, strong, -1)
        yield Finding(
            name="one-way-groups",
            severity="note",
            count=len(pairs),
            message=f"{len(pairs):,} groups of items between which all comparisons go one way "
            f"({describe_groups(comparisons, parts)}); only the prior (ridge) bounds the distance of their scores",
            fix="More comparisons between the groups show how far apart they are.",
        )


def describe_groups(comparisons: Comparisons, component: NDArray[np.int32]) -> str:
    """List the first groups of items with their sizes and first members.

    Parameters
    ----------
    comparisons : Comparisons
        Comparisons.
    component : ndarray of shape (n_items,)
        Group of every item; negative if it is in none.

    Returns
    -------
    str

    Examples
    --------
    >>> pairs = Comparisons.from_tuples([("ann", "a", "b", "a"), ("ann", "c", "d", "c")])
    >>> describe_groups(pairs, pairs.find_components())
    "2 items: 'a', 'b'; 2 items: 'c', 'd'"
    """
    numbers = np.unique(component[component >= 0])
    listed = []
    for number in numbers[:SHOWN_GROUPS]:
        items = comparisons.items[component == number]
        listed.append(f"{count_noun(len(items), 'item')}: {preview(items, SHOWN_ITEMS)}")
    return "; ".join([*listed, *(["…"] if len(numbers) > SHOWN_GROUPS else [])])


def _check_items(comparisons: Comparisons) -> Iterator[Finding]:
    counts = comparisons.item_counts
    total = counts.sum(axis=1)
    n_votes = np.bincount(comparisons.left, minlength=comparisons.n_items) + np.bincount(
        comparisons.right, minlength=comparisons.n_items
    )
    for name, verb, column in (("items-always-win", "won", "wins"), ("items-always-lose", "lost", "losses")):
        items = comparisons.items[((counts[column] == total) & (n_votes >= MIN_DECISIONS)).to_numpy()]
        if len(items):
            yield Finding(
                name=name,
                severity="note",
                count=len(items),
                examples=tuple(items[:3]),
                message=f"{count_noun(len(items), 'item')} {verb} all comparisons ({preview(items)}), so that only the prior "
                "(ridge) bounds the score",
            )
    yield from check_votes_per_task(
        comparisons.items, n_votes, noun="item", never="were never compared", once="were compared once"
    )
