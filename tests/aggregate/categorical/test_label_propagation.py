"""Label propagation: against matrix algebra, and on crowds that show what it does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd, DawidSkene, LabelPropagation, MajorityVote, load_dataset
from wisecrowd.errors import InputError, NotConverged, UsageError
from wisecrowd.evaluate.metrics import accuracy


@pytest.mark.parametrize("gold", [None, {"0": "a"}])
def test_it_is_the_closed_form(gold: dict[str, str] | None) -> None:
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(25, 3))
    X[0], X[1] = 0, 1  # on the range 0 to 1 already
    votes = [(str(task), who, "ab"[int(rng.integers(2))]) for task in range(25) for who in "xyz" if task != 5]
    crowd = Crowd.from_triples(votes, tasks=[str(task) for task in range(25)])
    found = LabelPropagation(k=4, alpha=0.7, tol=1e-12).fit(crowd, pd.DataFrame(X, index=crowd.tasks), truth=gold)

    distance = np.linalg.norm(X[:, None] - X, axis=2)
    np.fill_diagonal(distance, np.inf)
    linked = distance <= np.sort(distance, axis=1)[:, [3]]
    sigma = np.median(np.sort(distance, axis=1)[:, :4])
    assert found.bandwidth_ == pytest.approx(sigma)
    A = np.where(linked | linked.T, np.exp(-(distance**2) / (2 * sigma**2)), 0)
    S = A / np.sqrt(A.sum(axis=1)[:, None] * A.sum(axis=0))
    Y = DawidSkene().fit(crowd, truth=gold).posterior_.copy()
    Y[5] = 0
    alpha = np.full((25, 1), 0.7)
    if gold is not None:
        alpha[0] = 0
    F = np.linalg.solve(np.eye(25) - alpha * S, (1 - alpha) * Y)
    np.testing.assert_allclose(found.posterior_, F / F.sum(axis=1, keepdims=True), atol=1e-9)
    assert found.converged_


def test_neighbours_help_and_who_knows_workers_starts_better(clustered: Any) -> None:
    crowd, X, truth = clustered(150, workers=("expert",) * 6 + ("spammer",) * 8)
    alone = accuracy(truth, DawidSkene().fit(crowd))
    spread = accuracy(truth, LabelPropagation().fit(crowd, X))
    assert spread > alone
    assert spread > accuracy(truth, LabelPropagation(aggregator="majority-vote").fit(crowd, X))


def test_with_no_say_for_neighbours_the_answer_is_that_of_the_start(clustered: Any) -> None:
    crowd, X, _ = clustered()
    found = LabelPropagation(alpha=0, aggregator="majority-vote").fit(crowd, X)
    np.testing.assert_allclose(found.posterior_, MajorityVote().fit(crowd).posterior_)


def test_truth_reaches_tasks_without_votes_through_each_other() -> None:
    X = pd.DataFrame({"x": [0.0, 1, 2, 3, 4, 10, 11, 12]})
    crowd = Crowd.from_triples([(7, "ann", "b"), (6, "ann", "b")], tasks=X.index, classes=["a", "b"])
    found = LabelPropagation(k=2, aggregator="majority-vote").fit(crowd, X, truth={0: "a"})
    assert found.labels_.tolist() == list("aaaaabbb")
    assert found.proba_.loc[0, "a"] == 1


def test_who_is_cut_off_knows_nothing() -> None:
    X = pd.DataFrame({"x": [0.0, 1, 2, 100, 101, 102]})
    crowd = Crowd.from_triples([(0, "ann", "a"), (1, "ann", "b"), (2, "ann", "a")], tasks=X.index)
    found = LabelPropagation(k=2, aggregator="majority-vote").fit(crowd, X)
    assert found.posterior_[3:].tolist() == [[0.5, 0.5]] * 3


def test_a_task_far_from_all_others_still_hears_them() -> None:
    X = pd.DataFrame({"x": [*np.linspace(0, 0.001, 20), 1.0]})
    crowd = Crowd.from_triples([(task, "ann", "ab"[task > 5]) for task in range(20)], tasks=X.index)
    found = LabelPropagation(k=3, aggregator="majority-vote").fit(crowd, X)
    assert found.labels_[20] == "b"


def test_many_tasks_that_look_the_same() -> None:
    X = pd.DataFrame({"x": [0.0] * 20 + [1.0] * 20})
    crowd = Crowd.from_triples([(task, "ann", "ab"[task > 19]) for task in range(40) if task % 3], tasks=X.index)
    for bandwidth in (None, 0.3):
        found = LabelPropagation(k=5, bandwidth=bandwidth, aggregator="majority-vote").fit(crowd, X)
        assert found.labels_.tolist() == ["a"] * 20 + ["b"] * 20


def test_without_worker_ids_it_says_where_to_start(clustered: Any) -> None:
    crowd, X, _ = clustered()
    nameless = Crowd.from_codes(crowd.task, None, crowd.label, tasks=crowd.tasks, workers=None, classes=crowd.classes)
    with pytest.raises(InputError, match=r"dawid-skene, which needs worker ids.*aggregator='majority-vote'"):
        LabelPropagation().fit(nameless, X)
    assert LabelPropagation(aggregator="majority-vote").fit(nameless, X).worker_index_ is None


def test_it_says_when_it_was_cut_short(clustered: Any) -> None:
    crowd, X, _ = clustered()
    with pytest.warns(NotConverged, match="LabelPropagation stopped after 3 iterations"):
        LabelPropagation(alpha=0.99, max_iter=3).fit(crowd, X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 1.0}, "alpha must be at least 0 and below 1"),
        ({"alpha": -0.1}, "alpha must be at least 0 and below 1"),
        ({"bandwidth": 0.0}, "bandwidth must be a number above 0, or None"),
        ({"bandwidth": float("nan")}, "bandwidth must be a number above 0, or None"),
        ({"bandwidth": "wide"}, "bandwidth of LabelPropagation must be a number or None"),
        ({"k": 0}, "k, the number of neighbours"),
    ],
)
def test_parameters_that_make_no_sense(options: dict[str, Any], message: str, clustered: Any) -> None:
    crowd, X, _ = clustered(20)
    with pytest.raises(UsageError, match=message):
        LabelPropagation(**options).fit(crowd, X)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "before", "after"),
    [("music_genre_ceka", 0.780, 0.786), ("labelme", 0.795, 0.807), ("rte", 0.9275, 0.9287)],
)
def test_real_crowds(name: str, before: float, after: float, data_folder: Path) -> None:
    data = load_dataset(data_folder / name)
    assert accuracy(data.truth, DawidSkene().fit(data.crowd)) == pytest.approx(before, abs=0.002)
    assert accuracy(data.truth, LabelPropagation().fit(data.crowd, data.features)) == pytest.approx(after, abs=0.003)
