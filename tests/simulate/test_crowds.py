from __future__ import annotations

import random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from wisecrowd.errors import InputError, UsageError
from wisecrowd.simulate import DEFAULT_WORKER_MIX, KINDS, Simulation, simulate_crowd


def tally(made: Simulation) -> np.ndarray:
    """Votes counted by (worker, true, said)."""
    crowd = made.crowd
    counts = np.zeros((crowd.n_workers, crowd.n_classes, crowd.n_classes))
    np.add.at(counts, (crowd.worker, made.truth_codes[crowd.task], crowd.label), 1)
    return counts


def test_defaults() -> None:
    made = simulate_crowd()
    assert made.crowd.shape == (1000, 50)
    assert made.crowd.n_votes == 3000
    assert made.crowd.n_classes == 4
    assert made.kind.value_counts().to_dict() == {"noisy": 25, "expert": 10, "spammer": 10, "adversary": 3, "copier": 2}
    assert sum(DEFAULT_WORKER_MIX.values()) == pytest.approx(1)
    assert made.truth.index.equals(made.crowd.tasks)
    assert made.kind.index.equals(made.crowd.workers)


def test_same_seed_same_bits_and_nobody_elses_dice() -> None:
    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002  # to see that it is left alone
    options = {"activity": "zipf", "difficulty": "beta", "votes_per_task": (1, 6)}
    one, two = (simulate_crowd(300, 40, 3, random_state=7, **options) for _ in range(2))
    assert one.crowd == two.crowd
    assert (one.confusion == two.confusion).all()
    for name in ("truth", "kind", "activity", "difficulty", "copies", "accuracy"):
        assert getattr(one, name).equals(getattr(two, name))
    assert simulate_crowd(300, 40, 3, random_state=8, **options).crowd != one.crowd
    assert before == (random.getstate(), np.random.get_state()[1].tolist())  # noqa: NPY002


def test_a_generator_goes_on_from_call_to_call() -> None:
    rng = np.random.default_rng(0)
    assert simulate_crowd(100, random_state=rng).crowd != simulate_crowd(100, random_state=rng).crowd


def test_other_workers_meet_the_same_truth() -> None:
    one = simulate_crowd(200, 30, workers={"expert": 1.0}, difficulty="beta")
    two = simulate_crowd(200, 20, workers={"noisy": 0.9, "copier": 0.1}, difficulty="beta", votes_per_task=5)
    assert one.truth.equals(two.truth)
    assert one.difficulty.equals(two.difficulty)


@given(
    counts=st.lists(st.integers(0, 3), max_size=40),
    n_classes=st.integers(2, 5),
    kinds=st.lists(st.sampled_from([*KINDS, "noisy(0.6)"]), min_size=2, max_size=12),
    activity=st.sampled_from(["uniform", "zipf(2)", "beta"]),
    difficulty=st.sampled_from([None, 0.3, "beta"]),
    seed=st.integers(0, 100),
)
def test_whatever_is_asked_the_crowd_is_sound(
    counts: list[int], n_classes: int, kinds: list[str], activity: str, difficulty: str | float | None, seed: int
) -> None:
    workers = ["noisy", *kinds]  # somebody must be there to be copied,
    counts = [3, *counts]  # and a task where it shows
    made = simulate_crowd(
        len(counts), None, n_classes, votes_per_task=counts, workers=workers, activity=activity,
        difficulty=difficulty, random_state=seed,
    )  # fmt: skip
    assert made.crowd.votes_per_task.tolist() == counts
    frame = made.crowd.to_frame()
    assert not frame.duplicated(["task", "worker"]).any()
    assert made.kind.tolist() == workers
    assert np.allclose(made.confusion.sum(axis=2), 1)
    assert np.allclose(made.expected_confusion.sum(axis=2), 1)
    assert made.accuracy.between(0, 1).all()
    seen = set(zip(frame["task"], frame["worker"], strict=True))
    assert all((task, made.copies[worker]) in seen for task, worker in seen if worker in made.copies.index)


@pytest.mark.parametrize("difficulty", [None, "beta(1, 1)"])
def test_votes_have_the_shares_that_are_reported(difficulty: str | None) -> None:
    workers = ["expert", "noisy(0.6)", "spammer", "one-button", "biased", "mixer", "adversary", "copier(0.8)"]
    made = simulate_crowd(
        40_000,
        None,
        3,
        votes_per_task=8,
        workers=workers,
        difficulty=difficulty,
        prior=[0.5, 0.3, 0.2],
        random_state=3,
    )
    counts = tally(made)
    expected = made.expected_confusion * counts.sum(axis=2, keepdims=True)
    assert counts[expected < 1e-9].sum() == 0
    usable = expected > 5
    statistic = ((counts - expected)[usable] ** 2 / expected[usable]).sum()
    freedom = int((usable.sum(axis=2) - 1).clip(min=0).sum())
    assert stats.chi2.sf(statistic, freedom) > 1e-3
    right = np.einsum("wkk->w", counts) / 40_000
    assert right == pytest.approx(made.accuracy.to_numpy(), abs=5 * 0.5 / np.sqrt(40_000))


def test_prior_is_what_truth_is_drawn_from() -> None:
    made = simulate_crowd(20_000, 5, prior=[0.7, 0.2, 0.1], workers={"noisy": 1.0})
    assert stats.chisquare(np.bincount(made.truth_codes), 20_000 * np.array([0.7, 0.2, 0.1])).pvalue > 1e-3


def test_a_copier_agrees_more_than_chance_allows() -> None:
    workers = ["noisy(0.5)"] * 6 + ["copier(0.9)"]
    made = simulate_crowd(20_000, None, 4, workers=workers, votes_per_task=3)
    assert made.copies.index.tolist() == ["w6"]
    votes = made.crowd.to_frame().pivot(index="task", columns="worker", values="label")
    source = made.copies["w6"]
    shared = votes[["w6", source]].dropna()
    assert len(shared) == votes["w6"].notna().sum() > 5000
    own = made.accuracy["w6"]  # the mixture of his source's accuracy and his own, by construction
    assert 0.5 < own < 0.55
    agreement = (shared["w6"] == shared[source]).mean()
    # 0.9 copied; of the rest, a noisy worker of accuracy 0.55 to 0.8 agrees with the source by chance in 0.35 to 0.44
    assert 0.92 < agreement < 0.96
    other = next(name for name in votes if name not in ("w6", source))
    independent = votes[[source, other]].dropna()
    assert (independent[source] == independent[other]).mean() == pytest.approx(0.25 + 3 * (1 / 6) ** 2, abs=0.04)


def test_zipf_activity_shows_in_the_votes() -> None:
    made = simulate_crowd(50_000, 200, 2, workers={"noisy": 1.0}, votes_per_task=1, activity="zipf(1.2)")
    counts = np.bincount(made.crowd.worker, minlength=200)
    assert stats.chisquare(counts, 50_000 * made.activity.to_numpy()).pvalue > 1e-3
    top = np.sort(counts)[::-1][:20]
    assert np.polyfit(np.log(np.arange(1, 21)), np.log(top), 1)[0] == pytest.approx(-1.2, abs=0.1)


def test_truth_can_be_given_by_name() -> None:
    truth = pd.Series({"b": "dog", "a": "cat", "c": "cat"})
    made = simulate_crowd(truth=truth, workers=["expert(1)"] * 3)
    assert made.truth.to_dict() == truth.to_dict()
    assert made.crowd.tasks.tolist() == ["b", "a", "c"]
    assert (made.crowd.classes.take(made.crowd.label) == np.repeat(["dog", "cat", "cat"], 3)).all()


def test_categories_nobody_has_stay_classes() -> None:
    truth = pd.Series(pd.Categorical(["x", "y"], categories=["z", "y", "x"]), index=[10, 11])
    assert simulate_crowd(truth=truth, workers=["noisy"] * 3).crowd.classes.tolist() == ["z", "y", "x"]


def test_truth_can_be_given_by_code() -> None:
    made = simulate_crowd(truth=[0, 1, 1], n_classes=3, workers=["expert(1)"] * 3)
    assert made.truth.to_dict() == {"t0": "c0", "t1": "c1", "t2": "c1"}
    assert made.crowd.label.tolist() == [0, 0, 0, 1, 1, 1, 1, 1, 1]


def test_matrices_can_be_given() -> None:
    flip = np.array([[0.0, 1.0], [1.0, 0.0]])
    made = simulate_crowd(50, None, 2, workers=[flip, "expert(1)", flip])
    assert made.kind.tolist() == ["custom", "expert(1)", "custom"]
    assert made.accuracy.tolist() == [0, 1, 0]
    stacked = simulate_crowd(50, None, 2, workers=np.stack([flip] * 4))
    assert stacked.confusion.tolist() == [flip.tolist()] * 4


def test_whole_numbers_of_workers() -> None:
    made = simulate_crowd(10, workers={"expert": 2, "spammer": 5})
    assert made.kind.value_counts().to_dict() == {"spammer": 5, "expert": 2}
    assert simulate_crowd(10, 4, workers={"expert": 1}).kind.tolist() == ["expert"] * 4  # a share of one


@given(shares=st.lists(st.integers(1, 50), min_size=1, max_size=5), n=st.integers(3, 80))
def test_shares_become_whole_numbers_of_workers(shares: list[int], n: int) -> None:
    mix = {f"noisy(0.{digit})": share / sum(shares) for digit, share in enumerate(shares, start=1)}
    counts = simulate_crowd(1, n, workers=mix).kind.value_counts()
    assert counts.sum() == n
    assert all(abs(counts.get(kind, 0) - share * n) < 1 for kind, share in mix.items())


def test_difficulty_by_task_is_matched_by_id() -> None:
    truth = pd.Series({"easy": "a", "hard": "b"})
    made = simulate_crowd(
        truth=truth, workers=["noisy"] * 3, difficulty=pd.Series({"hard": 0.9, "easy": 0.1, "other": 0.5})
    )
    assert made.difficulty.to_dict() == {"easy": 0.1, "hard": 0.9}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_tasks": 0}, "needs a task and two classes"),
        ({"n_classes": 1}, "needs a task and two classes"),
        ({"n_workers": 0}, "n_workers=0"),
        ({"n_workers": 2}, "only 2 are active"),
        ({"votes_per_task": 51}, "only 50 are active"),
        ({"votes_per_task": 1}, "two or more votes"),
        ({"workers": {"expert": 0.5}}, "these sum to 0.5"),
        ({"workers": {"expert": 1.5, "noisy": -0.5}}, "not be negative"),
        ({"workers": {"expert": 2, "noisy": 3}, "n_workers": 6}, "but n_workers is 6; leave n_workers out"),
        ({"workers": {}}, "at least one|sum to"),
        ({"workers": []}, "at least one"),
        ({"workers": "expert"}, "for one kind write {'expert': 1.0}"),
        ({"workers": ["expert"] * 3, "n_workers": 4}, "workers describes 3 workers, but n_workers is 4"),
        ({"workers": {"exprt": 1.0}}, "Did you mean 'expert'"),
        ({"workers": {"copier": 1.0}}, "a worker to copy"),
        ({"workers": [np.eye(3)] * 3}, r"confusion of worker 0 must have the shape \(4, 4\)"),
        ({"n_workers": 10_000_000}, "do not fit in memory"),
        ({"prior": [0.5, 0.6]}, "prior must hold probabilities"),
        ({"prior": [0.5, 0.5], "n_classes": 3}, "prior must have the shape"),
        ({"truth": [0, 1], "prior": [0.5, 0.5]}, "leave one of them out"),
        ({"truth": [0, 1], "n_tasks": 3}, "n_tasks is 3, but the given truth has 2"),
        ({"truth": [0, 5], "n_classes": 3}, "n_classes is 3, but the given truth has 6"),
        ({"truth": ["cat", "dog"]}, "give a Series for classes by name"),
        ({"truth": []}, "class codes|a task"),
        ({"truth": pd.Series({"a": "x", "b": None})}, r"missing for 'b'; drop those tasks"),
        ({"truth": pd.Series({"a": "x", "b": "x"})}, "two classes at least"),
        ({"difficulty": "gamma"}, "difficulty must be one of 'beta'"),
        ({"difficulty": 2.0}, "difficulty must lie between 0 and 1"),
        ({"difficulty": [0.1, 0.2]}, "difficulty must be one number, or one for each of the 1,000 tasks"),
        ({"difficulty": pd.Series({"t000": 0.5})}, "no difficulty for 999 tasks"),
        ({"activity": "zipf(1, 2)"}, "takes at most 1"),
    ],
)
def test_bad_input(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        simulate_crowd(**options)  # type: ignore[arg-type]  # that is the test


def test_a_task_named_twice_is_refused() -> None:
    with pytest.raises(InputError, match="repeats 'a'"):
        simulate_crowd(truth=pd.Series(["x", "y"], index=["a", "a"]), workers=["noisy"] * 3)


def test_a_crowd_that_cannot_fit_is_refused_before_it_fills_memory() -> None:
    with pytest.raises(UsageError, match="at most 100,000,000 tasks"):
        simulate_crowd(n_tasks=3_000_000_000)
