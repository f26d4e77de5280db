"""Shared parts of MaDL and AnnotMix: matrices by worker and task, and results after training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import AnnotMix, Crowd, MaDL
from wisecrowd.errors import UsageError
from wisecrowd.nn import per_task_confusion as _per_task_confusion
from wisecrowd.nn.crowd_network import ModelSizes
from wisecrowd.nn.per_task_confusion import _divide_by_class
from wisecrowd.simulate import Simulation

torch = pytest.importorskip("torch")

METHODS = [MaDL, AnnotMix]
QUICK: dict[str, Any] = {"epochs": 3, "hidden": 8, "embedding": 4, "precision": "double"}


def fitted(kind: type[MaDL | AnnotMix], X: pd.DataFrame, made: Simulation, **settings: object) -> MaDL | AnnotMix:
    return kind(**QUICK | settings).fit(X, made.crowd)


def log_matrices(model: MaDL | AnnotMix, X: pd.DataFrame, worker: int) -> np.ndarray[Any, Any]:
    network = model.network_
    ((_, hidden, _),) = list(network.iterate_batches(X.to_numpy()))
    with torch.no_grad():
        who = model._confusion.embed_workers(network, torch.full((len(X),), worker))
        return np.asarray(model._confusion.log_matrices(network, who, hidden))


@pytest.mark.parametrize("kind", METHODS)
@pytest.mark.parametrize(("n_classes", "right"), [(2, 0.6), (5, 0.9)])
def test_at_first_everybody_is_right_with_the_given_probability(
    kind: type[MaDL | AnnotMix], n_classes: int, right: float
) -> None:
    model = kind(diagonal=right, embedding=4)
    own = model._make_worker_parameters(ModelSizes(7, n_classes, 6))
    odds = own["matrix"].bias.reshape(n_classes, n_classes)
    assert (own["matrix"].weight == 0).all()
    pi = torch.softmax(odds, dim=1).detach().numpy()
    assert np.diagonal(pi) == pytest.approx(right)
    assert pi[0, 1:] == pytest.approx((1 - right) / (n_classes - 1))
    assert own["worker"].initial.shape == (7, 4)


@pytest.mark.parametrize("kind", METHODS)
def test_answers_are_the_network_through_the_matrices(
    kind: type[MaDL | AnnotMix], X: pd.DataFrame, made: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = fitted(kind, X, made)
    workers = made.crowd.workers
    assert workers is not None
    found = model.predict_worker_proba(X, workers[[3, 5]])
    p = model.predict_proba(X)
    for place, worker in enumerate((3, 5)):
        pi = np.exp(log_matrices(model, X, worker))
        assert pi.sum(axis=2) == pytest.approx(1)
        assert found[:, place] == pytest.approx(np.einsum("nk,nkl->nl", p, pi))
    monkeypatch.setattr(_per_task_confusion, "MAX_CELLS", 100)  # in many chunks, the same
    assert model.predict_worker_proba(X, workers[[3, 5]]) == pytest.approx(found)


@pytest.mark.parametrize("kind", METHODS)
def test_confusion_is_the_mean_of_a_workers_matrices(
    kind: type[MaDL | AnnotMix], X: pd.DataFrame, made: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_per_task_confusion, "MAX_CELLS", 500)
    model, crowd = fitted(kind, X, made), made.crowd
    assert crowd.worker is not None
    p = model.predict_proba(X)
    pi = np.stack([np.exp(log_matrices(model, X, worker)) for worker in range(crowd.n_workers)])
    said, met = np.zeros((12, 3, 3)), np.zeros((12, 3))
    for task, worker in zip(crowd.task, crowd.worker, strict=True):
        said[worker] += p[task][:, None] * pi[worker, task]
        met[worker] += p[task]
    assert model.confusion_ == pytest.approx(said / met[:, :, None], abs=1e-9)
    assert model.confusion_of([4]) == pytest.approx(model.confusion_[[4]])


@pytest.mark.parametrize("kind", METHODS)
def test_truth_that_is_known_teaches(kind: type[MaDL | AnnotMix]) -> None:
    """Votes are noise; only the known truth of some tasks tells the two classes apart."""
    rng = np.random.default_rng(0)
    z = rng.integers(2, size=120)
    X = pd.DataFrame(3.0 * z[:, None] + rng.normal(size=(120, 2)))
    crowd = Crowd.from_codes(np.arange(120), rng.integers(4, size=120), rng.integers(2, size=120), tasks=np.arange(120),
                  workers=list("abcd"), classes=[0, 1])  # fmt: skip
    model = kind(epochs=30, batch_size=16, hidden=16, embedding=4).fit(X, crowd, truth=dict(enumerate(z[:60])))
    assert model.score(X.iloc[60:], z[60:]) > 0.85
    assert (model.posterior_[np.arange(60), z[:60]] == 1).all()


@pytest.mark.parametrize("kind", METHODS)
def test_a_worker_whose_skill_depends_on_the_task_is_understood(kind: type[MaDL | AnnotMix]) -> None:
    """Half of the workers are right where x₂ > 0 and guess elsewhere: no single matrix says so."""
    rng = np.random.default_rng(1)
    n_tasks, n_workers = 400, 10
    z = rng.integers(2, size=n_tasks)
    where = rng.normal(size=n_tasks)
    X = np.column_stack([4.0 * z - 2 + rng.normal(size=n_tasks), 2 * where])
    task = np.repeat(np.arange(n_tasks), 4)
    worker = np.concatenate([rng.choice(n_workers, 4, replace=False) for _ in range(n_tasks)])
    knows = np.where(worker < 5, 0.95, np.where(where[task] > 0, 0.95, 0.5))
    label = np.where(rng.random(len(task)) < knows, z[task], 1 - z[task])
    crowd = Crowd.from_codes(
        task, worker, label, tasks=np.arange(n_tasks), workers=np.arange(n_workers), classes=[0, 1]
    )
    fast: dict[str, Any] = {"optimiser": "adam", "learning_rate": 5e-3, "schedule": "constant"}
    model = kind(epochs=25, batch_size=32, random_state=1, **fast).fit(X, crowd)
    assert model.score(X, z) > 0.9
    pi = np.exp(log_matrices(model, pd.DataFrame(X), 8))
    right = pi[np.arange(n_tasks), z, z]
    assert right[where > 0.5].mean() > right[where < -0.5].mean() + 0.15


@pytest.mark.parametrize("kind", METHODS)
def test_one_vote_is_enough_for_an_answer(kind: type[MaDL | AnnotMix]) -> None:
    crowd = Crowd.from_codes([0], [0], [1], tasks=["t1", "t2"], workers=["ann", "bob"], classes=["cat", "dog"])
    model = kind(epochs=2, embedding=3).fit(np.eye(2), crowd)
    assert np.isfinite(model.posterior_).all()
    assert model.confusion_[1] == pytest.approx(
        model.confusion_[0]
    )  # a worker without votes is like the average worker


@pytest.mark.parametrize("kind", METHODS)
@pytest.mark.parametrize("wrong", [{"embedding": 0}, {"diagonal": 1.0}, {"diagonal": 0.0}])
def test_options_are_checked(
    kind: type[MaDL | AnnotMix], wrong: dict[str, Any], X: pd.DataFrame, made: Simulation
) -> None:
    with pytest.raises(UsageError, match="embedding must be"):
        kind(**wrong).fit(X, made.crowd)


def test_means_of_who_never_met_a_class_are_everybodys() -> None:
    said = np.array([[[3.0, 1.0], [0.0, 0.0]], [[1.0, 1.0], [0.5, 1.5]]])
    found = _divide_by_class(said, said.sum(axis=2))
    assert found[0].tolist() == [[0.75, 0.25], [0.25, 0.75]]
    assert _divide_by_class(np.zeros((1, 2, 2)), np.zeros((1, 2)))[0].tolist() == [[0.5, 0.5], [0.5, 0.5]]
