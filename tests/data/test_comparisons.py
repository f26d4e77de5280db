"""Comparisons: reading of outcomes, repeated and swapped comparisons, components."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd.data.comparisons import LEFT, RIGHT, TIE, Comparisons
from wisecrowd.errors import InputError, UsageError

VOTES = [
    ("ann", "tea", "milk", "tea"),
    ("bob", "milk", "tea", "tie"),
    ("ann", "tea", "water", "water"),
    ("cy", "water", "milk", "left"),
]


@pytest.mark.parametrize(
    ("label", "outcome"),
    [
        ("m1", LEFT), ("m2", RIGHT), ("left", LEFT), ("A", LEFT), ("model_a", LEFT), ("Model B", RIGHT), ("right", RIGHT),
        ("tie", TIE), ("tie (bothbad)", TIE), ("both bad", TIE), ("Draw", TIE),
    ],
)  # fmt: skip
def test_labels_are_ids_or_words(label: str, outcome: int) -> None:
    comparisons = Comparisons.from_tuples([("ann", "m1", "m2", label)])
    assert comparisons.outcome.tolist() == [outcome]


def test_the_id_of_an_item_of_the_row_wins_over_a_word() -> None:
    comparisons = Comparisons.from_tuples([("ann", "b", "a", "a"), ("ann", "a", "c", "c")])
    assert comparisons.to_frame()["label"].tolist() == ["c", "a"]


def test_an_item_called_like_a_word_makes_words_ambiguous() -> None:
    with pytest.raises(InputError, match=r"'a' is both an item and a word for an outcome.*rename the item"):
        Comparisons.from_tuples([("ann", "a", "x1", "x1"), ("ann", "x1", "x2", "a")])


def test_an_unknown_label_is_named_with_its_pair() -> None:
    with pytest.raises(InputError, match=r"'maybe', for example for 'm1' and 'm2'\. Write the id of the better item"):
        Comparisons.from_tuples([("ann", "m1", "m2", "maybe")])


def test_an_item_is_not_compared_with_itself() -> None:
    with pytest.raises(InputError, match="with one item on both sides, such as 'm1'"):
        Comparisons.from_tuples([("ann", "m1", "m1", "m1")])


def test_numbers_are_ids() -> None:
    comparisons = Comparisons.from_tuples([("ann", 10, 9, "9"), ("ann", 10, 2, "10")])
    assert comparisons.items.tolist() == [2, 9, 10]
    assert comparisons.to_frame()["label"].tolist() == [10, 9]


def test_the_order_of_rows_does_not_matter() -> None:
    frame = pd.DataFrame(VOTES, columns=["worker", "left", "right", "label"])
    assert Comparisons.from_frame(frame) == Comparisons.from_frame(frame.iloc[::-1])


def test_counts_are_those_of_a_loop() -> None:
    comparisons = Comparisons.from_tuples(VOTES)
    assert comparisons.item_counts.T.to_dict() == {
        "milk": {"wins": 0, "losses": 2, "ties": 1},
        "tea": {"wins": 1, "losses": 1, "ties": 1},
        "water": {"wins": 2, "losses": 0, "ties": 0},
    }
    rng = np.random.default_rng(0)
    left = rng.integers(0, 5, 200)
    right = (left + rng.integers(1, 5, 200)) % 5
    outcome = rng.integers(0, 3, 200)
    many = Comparisons(left, right, outcome, items=pd.Index(list("abcde")))
    expected = {}
    for one, other, result in zip(left, right, outcome, strict=True):
        first, second = min(one, other), max(one, other)
        winner = None if result == TIE else (one if result == LEFT else other)
        cell = 2 if winner is None else int(winner == second)
        expected.setdefault((first, second), [0, 0, 0])[cell] += 1
    pairs = many.pair_counts
    got = {
        (first, second): [int(value) for value in counts]
        for first, second, *counts in zip(*pairs, strict=True)
    }  # fmt: skip
    assert got == expected


def test_repeated_comparisons_follow_the_rule() -> None:
    votes = [("ann", "x", "y", "x"), ("ann", "x", "y", "y")]
    with pytest.raises(InputError, match=r"worker 'ann' compared 'x' with 'y' twice\. Choose duplicates='first'"):
        Comparisons.from_tuples(votes)
    assert Comparisons.from_tuples(votes, duplicates="first").outcome.tolist() == [LEFT]
    assert Comparisons.from_tuples(votes, duplicates="last").outcome.tolist() == [RIGHT]
    assert Comparisons.from_tuples(votes, duplicates="keep").n_votes == 2


@pytest.mark.parametrize(("second", "reconciled"), [("x", LEFT), ("y", TIE), ("tie", TIE)])
def test_both_orders_count_as_one_comparison(second: str, reconciled: int) -> None:
    votes = [("ann", "x", "y", "x"), ("ann", "y", "x", second), ("bob", "x", "y", "y")]
    average = Comparisons.from_tuples(votes)
    assert average.n_votes == 3
    assert average.to_frame().groupby("worker")["weight"].sum().tolist() == [1, 1]
    merged = Comparisons.from_tuples(votes, swapped="reconcile")
    assert merged.select_workers(["ann"]).outcome.tolist() == [reconciled]
    assert merged.n_votes == 2
    assert Comparisons.from_tuples(votes, swapped="keep").weight is None


def test_pairs_on_different_tasks_are_no_repetition() -> None:
    frame = {"task": ["p", "q"], "worker": ["ann"] * 2, "left": ["x", "y"], "right": ["y", "x"], "label": ["x", "x"]}
    comparisons = Comparisons.from_frame(frame, task="task")
    assert (comparisons.n_tasks, comparisons.weight) == (2, None)


def test_components() -> None:
    votes = [
        ("ann", "a", "b", "a"),
        ("ann", "b", "c", "b"),
        ("ann", "c", "a", "c"),
        ("ann", "d", "a", "d"),
        ("ann", "y", "z", "tie"),
    ]
    comparisons = Comparisons.from_tuples(votes)
    assert comparisons.find_components().tolist() == [0, 0, 0, 0, 1, 1]
    assert comparisons.find_components(strong=True).tolist() == [0, 0, 0, 2, 1, 1]  # nobody beat d


def test_parts_are_concatenated_by_id() -> None:
    whole = Comparisons.from_tuples(VOTES)
    visible, heldout = whole.hide(0.5)
    assert visible.n_votes == heldout.n_votes == 2
    assert Comparisons.concat([visible, heldout]) == whole
    other = Comparisons.from_tuples([("zoe", "beer", "tea", "beer")])
    assert Comparisons.concat([whole, other]).items.tolist() == ["beer", "milk", "tea", "water"]
    with pytest.raises(UsageError, match="all with worker ids or none"):
        Comparisons.concat([whole, Comparisons.from_tuples(VOTES, worker=None)])


def test_codes_are_validated() -> None:
    items = pd.Index(["a", "b"])
    with pytest.raises(InputError, match="left item"):
        Comparisons([-1], [0], [0], items=items)
    with pytest.raises(InputError, match="outcome"):
        Comparisons([1], [0], [3], items=items)
    with pytest.raises(InputError, match="one value per comparison"):
        Comparisons([1, 0], [0], [0], items=items)


def test_arrays_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Comparisons.from_tuples(VOTES).left[0] = 1


def test_missing_values_are_refused_or_dropped() -> None:
    frame = {"worker": ["ann", "bob"], "left": ["x", None], "right": ["y", "x"], "label": ["x", "x"]}
    with pytest.raises(InputError, match="left item"):
        Comparisons.from_frame(frame)
    assert Comparisons.from_frame(frame, missing="drop").n_votes == 1


def test_a_notebook_shows_the_first_rows() -> None:
    assert "33% ties" not in Comparisons.from_tuples(VOTES)._repr_html_()
    assert "25% ties" in Comparisons.from_tuples(VOTES)._repr_html_()


@pytest.mark.parametrize("workers", [True, False])
def test_sums_over_parts_give_the_same_fit(workers: bool) -> None:
    made = wc.simulate_comparisons(n_items=6, n_workers=5, votes_per_worker=60, random_state=4).comparisons
    parts = [made.take(np.arange(made.n_votes) % 3 == number) for number in range(3)]
    total = Comparisons.concat([part.sum_equal(workers=workers) for part in parts]).sum_equal()
    assert total.n_votes < made.n_votes
    assert total.vote_weight.sum() == pytest.approx(made.n_votes)
    assert total.has_workers == workers
    method = wc.JudgeAwareBradleyTerry(interval="none") if workers else wc.BradleyTerry(interval="none")
    whole, summed = method.fit(made).score_, method.clone_unfitted().fit(total).score_
    assert summed == pytest.approx(whole, abs=1e-5)


def test_sums_keep_tasks_apart() -> None:
    frame = {"worker": ["x"] * 4, "left": ["a"] * 4, "right": ["b"] * 4, "label": ["a"] * 4, "task": [1, 1, 2, 2]}
    comparisons = Comparisons.from_frame(frame, task="task", duplicates="keep")
    assert comparisons.sum_equal().vote_weight.tolist() == [2, 2]
    assert comparisons.sum_equal(tasks=False).vote_weight.tolist() == [4]
    assert comparisons.sum_equal(tasks=False).tasks is None
