from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from wisecrowd.errors import UsageError
from wisecrowd.simulate import draw_labels, simulate_votes
from wisecrowd.simulate.votes import _search_cumulative, make_ids


@pytest.mark.parametrize("n_classes", [2, 3, 4, 9, 33])
def test_labels_have_the_shares_of_their_confusion(n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    confusion = rng.dirichlet(np.full(n_classes, 2.0), size=(3, n_classes))
    worker, seen = rng.integers(3, size=200_000), rng.integers(n_classes, size=200_000)
    label = draw_labels(confusion, worker, seen, 1)
    counts = np.zeros_like(confusion)
    np.add.at(counts, (worker, seen, label), 1)
    expected = confusion * counts.sum(axis=2, keepdims=True)
    usable = expected >= 5  # the chi-square law wants no tiny cells
    statistic = ((counts - expected) ** 2 / expected)[usable].sum()
    freedom = usable.sum() - 3 * n_classes
    assert stats.chi2.sf(statistic, freedom) > 1e-3


@given(
    shares=hnp.arrays(np.float64, st.integers(2, 12), elements=st.sampled_from([0.0, 0.1, 1.0, 3.0])).filter(np.any),
    seed=st.integers(0, 20),
)
def test_what_is_impossible_is_never_said(shares: np.ndarray, seed: int) -> None:
    confusion = np.tile(shares / shares.sum(), (1, len(shares), 1))
    label = draw_labels(confusion, np.zeros(200, dtype=int), np.zeros(200, dtype=int), seed)
    assert (shares[label] > 0).all()


@given(shares=hnp.arrays(np.float64, st.integers(2, 20), elements=st.sampled_from([0.0, 1.0, 2.0])).filter(np.any))
def test_bisection_counts_what_does_not_exceed_the_point(shares: np.ndarray) -> None:
    reached = np.cumsum(shares) / shares.sum()
    points = np.concatenate([reached[reached < 1], np.linspace(0, 1, 50, endpoint=False)])
    expected = (reached[:-1] <= points[:, None]).sum(axis=1)
    found = _search_cumulative(reached, np.zeros(len(points), dtype=np.int64), points, len(shares))
    assert (found == expected).all()


def test_difficulty_hides_the_truth_from_those_who_look() -> None:
    right = [[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]]
    button = [[0.0, 0.0, 1.0]] * 3
    truth, difficulty = np.zeros(60_000, dtype=int), np.repeat([0.0, 0.5, 1.0], 20_000)
    crowd = simulate_votes(truth, [right, button], votes_per_task=2, difficulty=difficulty)
    said = crowd.label.reshape(3, 20_000, 2)
    # (1 - d) 0.9 + d / 3, within five standard deviations
    assert (said[:, :, 0] == 0).mean(axis=1) == pytest.approx([0.9, 0.45 + 1 / 6, 1 / 3], abs=0.018)
    assert (said[:, :, 1] == 2).all(), "who does not look cannot be misled"


def test_ids_sort_as_their_numbers() -> None:
    assert make_ids("t", 1000).tolist() == sorted(make_ids("t", 1000)) == [f"t{number:03d}" for number in range(1000)]
    assert make_ids("w", 1).tolist() == ["w0"]
    assert len(make_ids("w", 0)) == 0


def test_given_names_are_used() -> None:
    crowd = simulate_votes(
        [0, 1], [np.eye(2)] * 2, votes_per_task=2, tasks=["a", "b"], workers=[7, 8], classes=["n", "y"]
    )
    assert crowd.to_frame().to_dict("list") == {
        "task": ["a", "a", "b", "b"],
        "worker": [7, 8, 7, 8],
        "label": ["n", "n", "y", "y"],
    }


EYES = [np.eye(2)] * 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"truth": [0, 2]}, "class codes from 0 to 1; got 0 to 2"),
        ({"truth": ["cat", "dog"]}, "list of class codes"),
        ({"confusion": np.eye(2)}, r"\(workers, classes, classes\)"),
        ({"confusion": [np.ones((2, 2))] * 3}, "sum to one"),
        ({"difficulty": 1.5}, "difficulty must lie between 0 and 1"),
        ({"difficulty": [0.1, 0.2, 0.3]}, "one for each of the 2 tasks"),
        ({"difficulty": np.nan}, "difficulty must lie"),
        ({"fidelity": [0.5]}, "one for each of the 4 workers"),
        ({"source": [-1, 0, 1, -1]}, "a copier cannot be copied"),
        ({"source": [-1, 4, -1, -1]}, "the position of the worker to copy, or -1"),
        ({"source": [-1, -1]}, "for each of the 4 workers"),
        ({"votes_per_task": 5}, "only 4 are active"),
    ],
)
def test_bad_input(options: dict[str, object], message: str) -> None:
    given_options = {"truth": [0, 1], "confusion": EYES} | options
    with pytest.raises(UsageError, match=message):
        simulate_votes(**given_options)  # type: ignore[arg-type]  # that is the test
