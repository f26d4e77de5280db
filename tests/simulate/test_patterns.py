from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wisecrowd import Crowd
from wisecrowd.errors import InputError, UsageError
from wisecrowd.io.datasets import Dataset
from wisecrowd.simulate import (
    PATTERN_SETS,
    PATTERNS,
    PEER_PATTERNS,
    PatternSimulation,
    compute_noise_rates,
    simulate_patterns,
)

#: N.R.1 and N.R.2 in per cent of the crowds on Fashion-MNIST, table 3 of Zhang et al. (2024).
PUBLISHED = {
    "IND-I": (18.73, 55.82),
    "IND-II": (26.14, 62.62),
    "IND-III": (21.45, 57.98),
    "IND-IV": (9.66, 45.97),
    "COR-I": (19.39, 56.64),
    "COR-II": (15.77, 51.74),
    "COR-III": (9.27, 45.03),
    "COR-IV": (10.67, 47.66),
}


def codes(made: PatternSimulation) -> np.ndarray[Any, Any]:
    assert made.crowd.classes is not None
    return made.crowd.classes.get_indexer(pd.Index(made.truth))


def tally(made: PatternSimulation, pattern: str) -> np.ndarray[Any, Any]:
    """Votes of a pattern's workers counted by (true, said)."""
    crowd = made.crowd
    assert crowd.worker is not None
    mine = (made.pattern == pattern).to_numpy()[crowd.worker]
    counts = np.zeros((crowd.n_classes, crowd.n_classes))
    np.add.at(counts, (codes(made)[crowd.task[mine]], crowd.label[mine]), 1)
    return counts


@pytest.mark.parametrize("name", PATTERN_SETS)
def test_noise_is_that_of_the_paper(name: str) -> None:
    truth = np.arange(20_000) % 10
    found = np.array([simulate_patterns(name, truth=truth, random_state=seed).noise_rates for seed in range(3)])
    # A draw of 250 propensities moves both rates by about a point, and the paper has one draw.
    np.testing.assert_allclose(100 * found, np.tile(PUBLISHED[name], (3, 1)), atol=3)
    np.testing.assert_allclose(100 * found.mean(axis=0), PUBLISHED[name], atol=2)


@pytest.mark.parametrize("name", PATTERN_SETS)
def test_workers_say_what_their_pattern_says(name: str) -> None:
    made = simulate_patterns(name, n_tasks=40_000, random_state=1)
    assert set(made.pattern) == set(PATTERN_SETS[name])
    assert (made.pattern.value_counts() == 50).all()
    for pattern, matrix in made.confusion.items():
        counts = tally(made, pattern)
        total = counts.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(matrix.sum(axis=1), 1)
        # Five standard errors of every cell; what cannot be said never is.
        assert (np.abs(counts - total * matrix) <= 5 * np.sqrt(total * matrix * (1 - matrix)) + 1e-9).all()
        assert not counts[matrix == 0].any()


def test_matrices_are_exact() -> None:
    np.testing.assert_allclose(np.diagonal(PATTERNS["symmetric"](10, 0.3)), 0.7)
    np.testing.assert_allclose(PATTERNS["symmetric"](10, 0.3)[0, 1:], 0.3 / 9)
    assert PATTERNS["pair"](4, 0.5)[3].tolist() == [0.5, 0, 0, 0.5]
    matrix = PATTERNS["class-wise"](4, 0, 3)
    assert matrix[[0, 3]].tolist() == np.eye(4)[[0, 3]].tolist()
    assert (matrix[[1, 2]] == 0.25).all()
    assert (PATTERNS["dummy"](5) == 0.2).all()


@pytest.mark.parametrize("look", PEER_PATTERNS)
def test_what_is_expected_of_who_looks_is_the_sum_over_others_and_guesses(look: str) -> None:
    mean = np.random.default_rng(0).dirichlet(np.ones(3), size=3)
    brute = np.zeros((3, 3))
    for true in range(3):
        for other in range(3):
            for guess in range(3):
                said = PEER_PATTERNS[look].respond(*(np.array([code]) for code in (other, true, guess)))[0]
                brute[true, said] += mean[true, other] / 3
    np.testing.assert_allclose(PEER_PATTERNS[look].expected_confusion(mean), brute)


def test_who_looks_sees_what_was_voted() -> None:
    """With one worker to look at, who votes on every task, nothing is left to chance but guesses."""
    together: dict[str, Any] = {"workers_per_pattern": 1, "votes_per_task": 2, "n_tasks": 2000}
    said = {
        look: simulate_patterns(["symmetric(0.5)", look], random_state=3, **together) for look in PEER_PATTERNS
    }  # fmt: skip
    for look, made in said.items():
        first = int(np.flatnonzero(made.pattern == "symmetric(0.5)")[0])
        other, mine = made.crowd.label.reshape(-1, 2)[:, [first, 1 - first]].T
        true = codes(made)
        if look == "copy":
            assert (mine == other).all()
            continue
        knows = (other == true) if look == "supportive" else (other != true)
        assert (mine[knows] == true[knows]).all()
        assert (mine[~knows] == true[~knows]).mean() == pytest.approx(0.1, abs=0.05)


def test_two_who_look_at_one_absent_worker_see_the_same() -> None:
    pattern = simulate_patterns(["dummy", "copy"], workers_per_pattern=3, n_tasks=1).pattern
    activity = np.where(pattern == "copy", 1.0, 0.0)
    alone = simulate_patterns(
        ["dummy", "copy"], workers_per_pattern=3, n_tasks=300, votes_per_task=3, activity=activity
    )
    assert set(alone.pattern.iloc[np.unique(alone.crowd.worker)]) == {"copy"}
    agreed = (alone.crowd.label.reshape(-1, 3) == alone.crowd.label.reshape(-1, 3)[:, :1]).mean(axis=0)[1:]
    # Each copies one of the same three: the same one in a third of all cases, otherwise equal by chance.
    np.testing.assert_allclose(agreed, 1 / 3 + 2 / 3 / 10, atol=0.08)


@given(
    labels=st.integers(1, 9),
    name=st.sampled_from(sorted(PATTERN_SETS)),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=min(25, settings.default.max_examples), deadline=None)
def test_every_task_has_so_many_different_workers(labels: int, name: str, seed: int) -> None:
    made = simulate_patterns(name, n_tasks=60, votes_per_task=labels, random_state=seed)
    crowd = made.crowd
    assert (crowd.votes_per_task == labels).all()
    assert crowd.worker is not None
    assert len(np.unique(crowd.task.astype(np.int64) * 250 + crowd.worker)) == crowd.n_votes
    assert crowd.shape == (60, 250)
    assert made.truth.index.equals(crowd.tasks)
    assert made.pattern.index.equals(crowd.workers)


def test_some_workers_label_hardly_anything() -> None:
    number = simulate_patterns(truth=np.arange(45_000) % 10).crowd.votes_per_worker
    assert np.quantile(number, 0.05) < 0.25 * np.median(number)
    assert number.max() > 2 * np.median(number)


def test_given_truth_is_kept_and_seeds_matter() -> None:
    truth = pd.Series(list("abcab" * 20), index=[f"photo-{n}" for n in range(100)])
    one, same, other = (
        simulate_patterns(["pair(0.2)", "opposite"], truth=truth, random_state=seed) for seed in (1, 1, 2)
    )  # fmt: skip
    pd.testing.assert_series_equal(one.truth, truth, check_names=False, check_dtype=False)
    assert one.crowd == same.crowd
    assert one.crowd != other.crowd
    assert one.pattern.equals(same.pattern)


def test_cost_is_what_was_labelled() -> None:
    """A hundred thousand workers on as many tasks: tasks x workers would be 10 GB even as bytes."""
    simulate_patterns("COR-II", n_tasks=10)
    tracemalloc.start()
    try:
        made = simulate_patterns("COR-II", n_tasks=100_000, workers_per_pattern=20_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert made.crowd.shape == (100_000, 100_000)
    assert peak < 300 * 2**20


def test_noise_rates_by_hand() -> None:
    crowd = Crowd.from_triples(
        [("a", "x", "1"), ("a", "y", "2"), ("b", "x", "1"), ("b", "y", "1"), ("c", "x", "2"), ("d", "x", "2")]
    )
    # Nobody said of b what is true, and d has no truth.
    found = compute_noise_rates(crowd, pd.Series({"b": "3", "a": "1", "c": "2", "never seen": "1"}))
    assert found == (pytest.approx(1 / 3), pytest.approx(3 / 5))
    with pytest.raises(InputError, match="no task with votes has a truth"):
        compute_noise_rates(crowd, pd.Series({"z": "1"}))


@pytest.mark.data
@pytest.mark.parametrize(("name", "rates"), [("labelme", (0.1110, 0.2595)), ("music_genre", (0.1271, 0.4397))])
def test_noise_of_real_crowds_is_the_published(
    name: str, rates: tuple[float, float], dataset: Callable[[str], Dataset]
) -> None:
    found = dataset(name)
    assert found.truth is not None
    assert compute_noise_rates(found.crowd, found.truth) == pytest.approx(rates, abs=5e-5)


@pytest.mark.parametrize(
    ("patterns", "options", "message"),
    [
        ("IND-V", {}, "patterns must be one of"),
        ([], {}, "one at least"),
        (["dummy", "dummy"], {}, "different patterns"),
        (["copy", "supportive"], {}, "votes by itself"),
        (["copy(1)", "dummy"], {}, "takes none"),
        (["symmetric(1.3)"], {}, "between 0 and 1"),
        (["class-wise(10)"], {}, "codes from 0 to 9"),
        (["class-wise"], {}, "codes from 0 to 9"),
        (["expert"], {}, "pattern must be one of"),
        (["pair(0.2)"], {"workers_per_pattern": 0}, "1 or more"),
        (["pair(0.2)"], {"workers_per_pattern": 2, "votes_per_task": 3}, "only 2 are active"),
        (["pair(0.2)"], {"truth": [0, 1], "n_classes": 1}, "leave n_classes out"),
    ],
)
def test_bad_input_is_refused(patterns: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        simulate_patterns(patterns, **options)
