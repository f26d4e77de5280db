"""Shared parts of learners with a confusion matrix per worker, tested with the simplest one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from wisecrowd import CCEM, Crowd
from wisecrowd.errors import UsageError
from wisecrowd.nn import softmax_confusion
from wisecrowd.simulate import Simulation

torch = pytest.importorskip("torch")

Batch = Callable[..., Any]
QUICK: dict[str, Any] = {"epochs": 3, "hidden": 8, "batch_size": 16, "learning_rate": 0.05, "precision": "double"}


def matrices_of(model: CCEM) -> np.ndarray[Any, Any]:
    return softmax(model.network_.worker_table("A").detach().numpy(), axis=2)


def one_by_one(rows: int, *_: int) -> list[slice]:
    return [slice(row, row + 1) for row in range(rows)]


@pytest.fixture(scope="module")
def fitted(made: Simulation, X: pd.DataFrame) -> CCEM:
    return CCEM(**QUICK).fit(X, made.crowd)


def test_a_worker_says_what_the_matrix_makes_of_the_prediction(
    made: Simulation, X: pd.DataFrame, seen_by: Batch
) -> None:
    model = CCEM(**QUICK).fit(X, made.crowd)
    batch = seen_by(model, X, made.crowd, n_tasks=20)
    f, pi = model.predict_proba(X), matrices_of(model)
    said = model._label_log_probs(batch).exp().detach().numpy()
    loss = []
    for vote, (row, worker, label) in enumerate(zip(batch.task, batch.worker, batch.label, strict=True)):
        expected = [sum(f[row, k] * pi[worker, k, said_] for k in range(3)) for said_ in range(3)]
        assert np.allclose(said[vote], expected)
        loss.append(-np.log(expected[label]))
    assert np.isclose(model._loss(batch).item(), np.mean(loss))


def test_a_known_truth_is_certain_for_its_workers(made: Simulation, X: pd.DataFrame, seen_by: Batch) -> None:
    model = CCEM(**QUICK).fit(X, made.crowd)
    batch = seen_by(model, X, made.crowd, n_tasks=20)
    known = torch.full((20,), -1)
    known[0] = 2
    batch = dataclasses.replace(batch, gold=known)
    first = (batch.task == 0).numpy()
    pi = matrices_of(model)[batch.worker.numpy()[first], 2]
    assert np.allclose(model._label_log_probs(batch).exp().detach().numpy()[first], pi)


def test_confusion_is_the_models_make_worker_parameters(fitted: CCEM) -> None:
    pi = matrices_of(fitted)
    assert np.allclose(fitted.confusion_, pi)
    assert np.allclose(fitted.confusion_of([3, 1]), pi[[3, 1]])


def test_it_starts_near_the_identity(made: Simulation, X: pd.DataFrame, start_of: Any) -> None:
    pi = start_of(CCEM(sure=2.0, **QUICK), X, made.crowd).worker_table("A").softmax(dim=2).detach().numpy()
    right, wrong = np.exp(2) / (np.exp(2) + 2), 1 / (np.exp(2) + 2)
    assert np.allclose(pi, wrong + (right - wrong) * np.eye(3))


@pytest.mark.parametrize("parts", [False, True])
def test_it_starts_from_what_workers_said_against_the_soft_vote(
    made: Simulation, X: pd.DataFrame, start_of: Any, monkeypatch: pytest.MonkeyPatch, parts: bool
) -> None:
    crowd = made.crowd
    share = np.zeros((crowd.n_tasks, 3))
    np.add.at(share, (crowd.task, crowd.label), 1)
    share /= share.sum(axis=1, keepdims=True)
    counts = np.zeros((crowd.n_workers, 3, 3))
    for task, worker, label in zip(crowd.task, crowd.worker, crowd.label, strict=True):
        counts[worker, :, label] += share[task]
    if parts:
        monkeypatch.setattr(softmax_confusion, "slice_rows", one_by_one)
    pi = start_of(CCEM(start="votes", **QUICK), X, crowd).worker_table("A").exp().detach().numpy()
    assert np.allclose(pi.sum(axis=2), 1)
    # Between the worker's own shares and those of the crowd, in the same proportion for every label.
    own, toward = counts / counts.sum(axis=2, keepdims=True), counts.sum(axis=0) + 0.1 + np.eye(3)
    toward /= toward.sum(axis=1, keepdims=True)
    strength = (pi[0, 0, 0] - own[0, 0, 0]) / (toward[0, 0] - pi[0, 0, 0]) * counts[0, 0].sum()
    total = counts.sum(axis=2, keepdims=True)
    assert strength > 0
    assert np.allclose(pi, (counts + strength * toward) / (total + strength), atol=1e-6)


def test_a_step_touches_only_who_voted(made: Simulation, X: pd.DataFrame, seen_by: Batch) -> None:
    model = CCEM(**QUICK).fit(X, made.crowd)
    batch = seen_by(model, X, made.crowd, n_tasks=2)
    model._loss(batch).backward()
    gradient = batch.network.worker_parameters.A.grad
    assert gradient.is_sparse
    assert set(gradient.coalesce().indices()[0].tolist()) == set(batch.worker.tolist())
    assert len(set(batch.worker.tolist())) < made.crowd.n_workers


def test_a_worker_who_did_not_vote_stays_at_the_start(made: Simulation, X: pd.DataFrame) -> None:
    frame = made.crowd.to_frame()
    crowd = Crowd.from_frame(frame, workers=[*made.crowd.workers, "silent"])
    model = CCEM(**QUICK).fit(X, crowd)
    place = list(crowd.workers).index("silent")
    assert np.allclose(model.confusion_of([place])[0], softmax(np.eye(3), axis=1))
    assert not np.allclose(model.confusion_of([0])[0], softmax(np.eye(3), axis=1), atol=0.01)


@pytest.mark.parametrize("start", ["identity", "votes"])
def test_it_learns_who_says_what(start: str) -> None:
    """Two kinds of workers, one of which says the next class most of the time; half of all votes are wrong."""
    rng = np.random.default_rng(0)
    n_tasks, kinds = 400, np.array([0, 0, 0, 1, 1])
    truth = rng.integers(3, size=n_tasks)
    planted = np.stack([np.eye(3) * 0.85 + 0.05, np.roll(np.eye(3), 1, axis=1) * 0.55 + 0.15])
    said = np.array([[rng.choice(3, p=planted[kind, z]) for kind in kinds] for z in truth])
    crowd = Crowd.from_triples([(f"t{i:03d}", f"w{r}", said[i, r]) for i in range(n_tasks) for r in range(5)])
    X = pd.DataFrame(3.5 * np.eye(3)[truth] + rng.normal(size=(n_tasks, 3)), index=crowd.tasks)
    model = CCEM(start=start, epochs=30, learning_rate=0.02, hidden=16, dropout=0.0).fit(X, crowd)
    assert model.score(X, truth) > 0.93
    assert np.abs(model.confusion_ - planted[kinds]).max() < 0.12
    answers = model.predict_worker_proba(X.iloc[:7], ["w0", "w3", "stranger"])
    assert answers.shape == (7, 3, 3)
    assert np.allclose(answers.sum(axis=2), 1, atol=1e-5)
    assert np.allclose(answers[:, 1], model.predict_proba(X.iloc[:7]) @ model.confusion_[3], atol=1e-5)


def test_gold_is_kept_and_teaches(made: Simulation, X: pd.DataFrame) -> None:
    gold = made.truth.iloc[:40]
    model = CCEM(**QUICK).fit(X, made.crowd, truth=gold)
    assert (model.labels_.loc[gold.index] == gold).all()
    assert not np.allclose(model.confusion_, CCEM(**QUICK).fit(X, made.crowd).confusion_)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"start": "random"}, "start"), ({"sure": 0.0}, "sure must be positive"), ({"sure": np.inf}, "sure")],
)
def test_options(made: Simulation, X: pd.DataFrame, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        CCEM(**settings).fit(X, made.crowd)
