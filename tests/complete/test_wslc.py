"""WSLC against its formulas, worker by worker and task by task."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from wisecrowd import WSLC, Crowd, MajorityVote
from wisecrowd.complete import wslc
from wisecrowd.errors import UsageError
from wisecrowd.io.datasets import Dataset


def crowd_of(
    n_tasks: int = 30, n_workers: int = 6, n_classes: int = 3, seed: int = 0
) -> tuple[Crowd, NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    task, worker = np.nonzero(rng.random((n_tasks, n_workers)) < 0.5)
    X = rng.normal(size=(n_tasks, 4)) * [1, 10, 0.1, 1] + [0, 1e6, 3, 0]
    X[:, 3] = X[:, 3] > 0
    label = rng.integers(n_classes, size=len(task))
    made = Crowd.from_codes(task, worker, label, tasks=range(n_tasks), workers=range(n_workers), classes=range(n_classes),
                 weight=rng.choice([1.0, 1.0, 2.0], size=len(task)))  # fmt: skip
    return made, X


def correlation(x: NDArray[np.float64], y: NDArray[np.float64], weight: NDArray[np.float64]) -> float:
    x, y = x - np.average(x, weights=weight), y - np.average(y, weights=weight)
    spread = np.sqrt((weight * x**2).sum() * (weight * y**2).sum())
    return float((weight * x * y).sum() / spread) if spread > 1e-9 else 0.0


def vectors_by_loops(crowd: Crowd, X: NDArray[np.float64]) -> NDArray[np.float64]:
    found = np.zeros((crowd.n_workers, X.shape[1]))
    for worker in range(crowd.n_workers):
        mine = crowd.worker == worker
        for c in range(crowd.n_classes):
            said = (crowd.label[mine] == c).astype(float)
            weight = crowd.weight[mine]
            for j in range(X.shape[1]):
                share = np.average(said, weights=weight)
                found[worker, j] += share * correlation(X[crowd.task[mine], j], said, weight)
    return found


def said_by_loops(crowd: Crowd, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    found = np.zeros((*crowd.shape, crowd.n_classes))
    for task in range(crowd.n_tasks):
        for r in range(crowd.n_workers):
            for vote in np.flatnonzero((crowd.task == task) & (crowd.worker != r)):
                s = crowd.worker[vote]  # type: ignore[index]  # has workers
                cosine = vectors[r] @ vectors[s] / np.linalg.norm(vectors[r]) / np.linalg.norm(vectors[s])
                found[task, r, crowd.label[vote]] += crowd.weight[vote] * (1 + cosine) / 2
    total = found.sum(axis=2, keepdims=True)
    return np.divide(found, total, out=np.full_like(found, np.nan), where=total > 0)


def test_vectors_are_correlations_by_share() -> None:
    crowd, X = crowd_of()
    assert np.allclose(wslc.compute_worker_vectors(crowd, X), vectors_by_loops(crowd, X), atol=1e-8)


def test_vectors_in_blocks_of_features_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd, X = crowd_of()
    whole = wslc.compute_worker_vectors(crowd, X)
    monkeypatch.setattr(wslc, "slice_rows", lambda rows, columns: [slice(at, at + 1) for at in range(rows)])
    assert np.allclose(wslc.compute_worker_vectors(crowd, X), whole)


def test_answers_are_votes_weighted_by_likeness(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd, X = crowd_of()
    fitted = WSLC().fit(crowd, X)
    wanted = said_by_loops(crowd, vectors_by_loops(crowd, X))
    alone = np.isnan(wanted).any(axis=2)
    assert alone.mean() < 0.2
    assert np.allclose(fitted.predict_worker_proba()[~alone], wanted[~alone], atol=1e-6)
    monkeypatch.setattr(wslc, "slice_rows", lambda rows, columns: [slice(at, at + 1) for at in range(rows)])
    assert np.allclose(fitted.predict_worker_proba()[~alone], wanted[~alone], atol=1e-6)


def test_every_cell_is_filled() -> None:
    crowd, X = crowd_of()
    assert WSLC().complete(crowd, X).n_votes == np.prod(crowd.shape)


def test_of_workers_who_are_all_alike_it_is_the_majority_vote() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 3))
    truth = (X[:, 0] > 0.3).astype(int)
    asked = [(task, worker, truth[task]) for task in range(20) for worker in range(4)]
    # All four saw every task and agree; five more tasks were seen by some only, who disagree on features that are the same.
    more = [(20, 0, 0), (20, 1, 1), (20, 2, 1), (21, 1, 0), (21, 2, 0), (21, 3, 1)]
    X = np.concatenate([X, X[:2]])
    crowd = Crowd.from_triples([*asked, *more], tasks=range(22))
    fitted = WSLC(fill_weight=1).fit(crowd, X)
    fitted.directions_[:] = fitted.directions_[0]
    filled = fitted.fill()
    wanted = MajorityVote().fit(crowd).labels_
    assert filled.to_frame().query("~observed").set_index("task")["label"].to_dict() == {20: wanted[20], 21: wanted[21]}


def test_who_has_no_vector_answers_by_the_plain_vote() -> None:
    crowd = Crowd.from_triples(
        [(0, "ann", "a"), (1, "ann", "b"), (2, "ann", "b"), (0, "bob", "b"), (1, "bob", "b"), (2, "bob", "a"),
         (0, "cy", "b"), (2, "cy", "a"), (1, "dee", "c")],
        tasks=range(3),
    )  # fmt: skip
    fitted = WSLC().fit(crowd, np.array([[1.0], [2.0], [4.0]]))
    assert not fitted.directions_[3].any()  # dee, with one label
    assert np.allclose(fitted.predict_worker_proba([0], ["dee"])[0, 0], [1 / 3, 2 / 3, 0])


def test_where_no_voter_has_a_vector_the_plain_vote_answers() -> None:
    votes = [(0, "ann", "a"), (1, "ann", "b"), (2, "ann", "b"), (3, "x", "b"), (3, "y", "a"), (3, "z", "a")]
    fitted = WSLC().fit(Crowd.from_triples(votes, tasks=range(4)), np.arange(4.0)[:, None])
    assert np.allclose(fitted.predict_worker_proba([3], ["ann"])[0, 0], [2 / 3, 1 / 3])


def test_a_task_without_other_votes_is_answered_by_habit() -> None:
    votes = [(0, "ann", "a"), (1, "ann", "b"), (2, "ann", "b"), (0, "bob", "a")]
    crowd = Crowd.from_triples(votes, tasks=range(4), workers=["ann", "bob", "new"])
    fitted = WSLC().fit(crowd, np.arange(4.0)[:, None])
    assert np.allclose(fitted.predict_worker_proba([3]), [[[1 / 3, 2 / 3], [1, 0], [1 / 2, 1 / 2]]])
    assert np.allclose(fitted.predict_worker_proba([1], ["ann"]), [[[1 / 3, 2 / 3]]])  # her own vote does not count


def test_of_two_classes_a_balanced_worker_has_no_vector_and_opposite_shares_look_opposite() -> None:
    x = np.array([0.0, 0.1, 1.0, 1.1, 0.05])
    saw = {"even": [0, 1, 2, 3], "more a": [0, 1, 4, 2], "more b": [0, 2, 3]}
    votes = [(task, who, "b" if x[task] > 0.5 else "a") for who, tasks in saw.items() for task in tasks]
    crowd = Crowd.from_triples(votes, tasks=range(5), workers=["even", "more a", "more b"])
    fitted = WSLC().fit(crowd, x[:, None])
    assert not fitted.directions_[0].any()
    assert fitted.similarity(np.array([1]), np.array([2])) == pytest.approx(0)


def test_a_feature_that_is_constant_or_an_image_is_no_trouble() -> None:
    crowd, X = crowd_of()
    X[:, 1] = 7
    assert not WSLC().fit(crowd, X).vectors_[:, 1].any()
    assert np.allclose(WSLC().fit(crowd, X.reshape(-1, 2, 2)).vectors_, WSLC().fit(crowd, X).vectors_)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "before", "after"),
    [("music_genre_ceka", 0.704, 0.774), ("labelme", 0.766, 0.765), ("leaves", 0.643, 0.638)],
)
def test_majority_vote_before_and_after(
    dataset: Callable[[str], Dataset], name: str, before: float, after: float
) -> None:
    data = dataset(name)
    assert data.features is not None
    filled = WSLC(fill_weight=1).complete(data.crowd, data.features)
    assert filled.n_votes == np.prod(data.crowd.shape)
    assert accuracy(data.crowd, data.truth) == pytest.approx(before, abs=0.001)
    assert accuracy(filled, data.truth) == pytest.approx(after, abs=0.004)


def accuracy(crowd: Crowd, truth: pd.Series) -> float:
    """Of majority vote, expected over ties."""
    votes = crowd.vote_counts
    best = votes == votes.max(axis=1, keepdims=True)
    right = crowd.classes.get_indexer(truth.reindex(crowd.tasks))  # type: ignore[union-attr]  # has classes
    return float((best / best.sum(axis=1, keepdims=True))[np.arange(len(right)), right][right >= 0].mean())


def test_a_categorical_feature_has_one_number_per_worker() -> None:
    made, X = crowd_of()
    X[:, 3] = np.arange(30) % 4
    found = WSLC(nominal=(3,)).fit(made, X).vectors_
    np.testing.assert_array_equal(found[:, :3], WSLC().fit(made, X).vectors_[:, :3])
    for worker in range(made.n_workers):
        mine = made.worker == worker
        weight, expected = made.weight[mine], 0.0
        for value in range(4):
            for c in range(made.n_classes):
                is_value = (X[made.task[mine], 3] == value).astype(float)
                is_label = (made.label[mine] == c).astype(float)
                expected += np.average(is_value * is_label, weights=weight) * correlation(is_value, is_label, weight)
        assert found[worker, 3] == pytest.approx(expected)


def test_categories_have_no_order() -> None:
    made, X = crowd_of()
    X[:, 3] = np.arange(30) % 4
    before = WSLC(nominal=(3,)).fit(made, X).vectors_
    X[:, 3] = np.array([5.0, -1.0, 2.0, 7.0])[np.arange(30) % 4]
    np.testing.assert_allclose(WSLC(nominal=(3,)).fit(made, X).vectors_, before)


def test_a_categorical_feature_that_does_not_exist_is_refused() -> None:
    made, X = crowd_of()
    with pytest.raises(UsageError, match="feature 4; expected positions from 0 to 3"):
        WSLC(nominal=(4,)).fit(made, X)
