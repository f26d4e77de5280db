"""LDPLC against its formula, cell by cell."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from wisecrowd import LDPLC, WSLC, Crowd
from wisecrowd.classifiers.neighbours import compute_reconstruction_weights, scale_to_range
from wisecrowd.complete import ldplc
from wisecrowd.errors import UsageError
from wisecrowd.io.datasets import Dataset


def crowd_of(seed: int = 0, silent: int = 2) -> tuple[Crowd, NDArray[np.float64]]:
    """Tasks and workers, the last tasks without votes."""
    rng = np.random.default_rng(seed)
    task, worker = np.nonzero(rng.random((20, 5)) < 0.4)
    label = rng.integers(3, size=len(task))
    crowd = Crowd.from_codes(task, worker, label, tasks=range(20 + silent), workers=range(5), classes=range(3))
    return crowd, rng.normal(size=(20 + silent, 3))


def by_loops(crowd: Crowd, X: NDArray[np.float64], k: int, keep: float, rounds: int) -> NDArray[np.float64]:
    informed = crowd.votes_per_task > 0
    W = compute_reconstruction_weights(scale_to_range(X, informed), k, informed).toarray()
    P = WSLC().fit(crowd, X).predict_worker_proba()
    seen = {(int(t), int(w)): int(c) for t, w, c in zip(crowd.task, crowd.worker, crowd.label, strict=True)}  # type: ignore[arg-type]  # has workers
    for cell, label in seen.items():
        P[cell] = np.eye(3)[label]
    first = P.copy()
    for _ in range(rounds):
        new = np.empty_like(P)
        for i in range(crowd.n_tasks):
            for r in range(crowd.n_workers):
                own = keep if informed[i] else 0
                new[i, r] = P[i, r] if (i, r) in seen else own * first[i, r] + (1 - own) * sum(
                    W[i, j] * P[j, r] for j in range(crowd.n_tasks))  # fmt: skip
        P = new
    return P


@pytest.mark.parametrize(("k", "keep", "rounds"), [(5, 0.5, 5), (2, 0.3, 3), (1, 1.0, 2), (3, 0.5, 0)])
def test_answers_are_passed_on_as_the_formula_says(k: int, keep: float, rounds: int) -> None:
    crowd, X = crowd_of()
    found = LDPLC(k=k, keep=keep, rounds=rounds).fit(crowd, X).predict_worker_proba()
    assert np.allclose(found, by_loops(crowd, X, k, keep, rounds), atol=1e-6)


def test_some_workers_at_a_time_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd, X = crowd_of()
    whole = LDPLC().fit(crowd, X).predict_worker_proba()
    monkeypatch.setattr(ldplc, "slice_rows", lambda rows, columns: [slice(at, at + 2) for at in range(0, rows, 2)])
    assert np.allclose(LDPLC().fit(crowd, X).predict_worker_proba(), whole, atol=1e-6)


def test_without_rounds_it_is_wslc() -> None:
    crowd, X = crowd_of(silent=0)
    assert LDPLC(rounds=0).complete(crowd, X) == WSLC().complete(crowd, X)


def test_a_worker_with_two_answers_to_a_task_keeps_both() -> None:
    crowd, X = crowd_of()
    task, worker = int(crowd.task[0]), int(crowd.worker[0])  # type: ignore[index]  # has workers
    other = (crowd.label[0] + 1) % 3
    twice = Crowd.from_codes(
        [*crowd.task, task], [*crowd.worker_codes, worker], [*crowd.label, other], tasks=crowd.tasks,
        workers=crowd.workers, classes=crowd.classes, duplicates="keep",
    )  # fmt: skip
    said = LDPLC().fit(twice, X).predict_worker_proba()[task, worker]
    assert np.allclose(said[[crowd.label[0], other]], 0.5)


def test_a_task_that_nobody_labelled_changes_nobody_elses() -> None:
    crowd, X = crowd_of()
    without = LDPLC().fit(crowd[:20], X[:20]).predict_worker_proba()
    assert np.allclose(LDPLC().fit(crowd, X).predict_worker_proba()[:20], without, atol=1e-6)


def test_answers_are_made_once_for_all_and_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd, X = crowd_of()
    made: list[int] = []
    spread = LDPLC._propagate

    def counted(self: LDPLC, workers: NDArray[np.intp]) -> NDArray[np.float64]:
        made.append(len(workers))
        return spread(self, workers)

    monkeypatch.setattr(LDPLC, "_propagate", counted)
    fitted = LDPLC().fit(crowd, X)
    assert made == []
    for task in range(20):
        fitted.predict_worker_proba([task], [task % 5])
    assert made == [5]
    assert "_cached_probs" not in vars(pickle.loads(pickle.dumps(fitted)))
    assert "_cached_probs" not in vars(copy.deepcopy(fitted))
    fitted.fit(crowd, X[::-1].copy()).predict_worker_proba([0], [1])
    assert made == [5, 5]


def test_what_does_not_fit_is_made_for_who_is_asked_about_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd, X = crowd_of()
    whole = LDPLC().fit(crowd, X).predict_worker_proba()
    monkeypatch.setattr(ldplc, "MAX_BYTES", 2 * 22 * 3 * 4)  # two workers
    fitted = LDPLC().fit(crowd, X)
    for workers in ([3, 1], [1], [0, 4]):
        assert np.allclose(fitted.predict_worker_proba(workers=workers), whole[:, workers], atol=1e-6)
    with pytest.raises(
        UsageError, match=r"the predictions for 5 workers on 22 tasks .*raise min_votes until 2 workers remain"
    ):
        fitted.fill()
    most = int(np.sort(crowd.votes_per_worker)[-2]) - 1
    assert fitted.set_params(min_votes=most).fill().n_votes > crowd.n_votes


@pytest.mark.parametrize("wrong", [{"k": 0}, {"keep": 0.0}, {"keep": 1.5}, {"keep": float("nan")}, {"rounds": -1}])
def test_parameters_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    crowd, X = crowd_of()
    with pytest.raises(UsageError, match="k must be 1 or more, rounds 0 or more, and keep a share"):
        LDPLC(**wrong).fit(crowd, X)  # type: ignore[arg-type]  # what is tried


@pytest.mark.data
@pytest.mark.parametrize(("name", "after"), [("music_genre_ceka", 0.774), ("labelme", 0.820), ("leaves", 0.646)])
def test_majority_vote_after(dataset: Callable[[str], Dataset], name: str, after: float) -> None:
    data = dataset(name)
    assert data.features is not None
    votes = LDPLC(fill_weight=1).complete(data.crowd, data.features).vote_counts
    best = votes == votes.max(axis=1, keepdims=True)
    truth: pd.Series = data.truth.reindex(data.crowd.tasks)
    right = data.crowd.classes.get_indexer(truth)  # type: ignore[union-attr]  # has classes
    found = (best / best.sum(axis=1, keepdims=True))[np.arange(len(right)), right][right >= 0].mean()
    assert found == pytest.approx(after, abs=0.005)
