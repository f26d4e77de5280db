"""Max-MIG: its objective against loops over pairs of tasks, its forecast, and what it is for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from wisecrowd import Crowd, MaxMIG
from wisecrowd.em.classifier_prior import PROBABILITY_FLOOR
from wisecrowd.errors import UsageError
from wisecrowd.simulate import Simulation

torch = pytest.importorskip("torch")

Batch = Callable[..., Any]
QUICK: dict[str, Any] = {"epochs": 3, "hidden": 8, "batch_size": 16, "learning_rate": 0.05, "precision": "double"}


def votes_of(model: MaxMIG, crowd: Crowd, prior: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """g, (tasks, classes)."""
    score = np.tile(np.log(prior), (crowd.n_tasks, 1))
    for task, worker, label, weight in zip(crowd.task, crowd.worker, crowd.label, crowd.weight, strict=True):
        score[task] += weight * model.votes_weigh_[worker, :, label]
    return softmax(score, axis=1)


def shares(crowd: Crowd) -> np.ndarray[Any, Any]:
    found = np.zeros((crowd.n_tasks, crowd.n_classes))
    np.add.at(found, (crowd.task, crowd.label), crowd.weight)
    return (found / found.sum(axis=1, keepdims=True)).mean(axis=0)


@pytest.mark.parametrize("weighted", [False, True])
def test_objective_is_that_of_all_pairs(made: Simulation, X: pd.DataFrame, seen_by: Batch, weighted: bool) -> None:
    crowd = made.crowd
    if weighted:
        weight = np.random.default_rng(0).uniform(0.5, 2, size=crowd.n_votes)
        crowd = Crowd.from_frame(crowd.to_frame().assign(weight=weight), weight="weight", tasks=crowd.tasks)
    model = MaxMIG(**QUICK).fit(X, crowd)
    batch = seen_by(model, X, crowd, n_tasks=20)
    prior = shares(crowd)
    f, g = model.predict_proba(X), votes_of(model, crowd, prior)
    together, apart = 0.0, 0.0
    for i in range(20):
        for j in range(20):
            s = sum(f[i, k] * g[j, k] / prior[k] for k in range(3))
            together += (1 + np.log(s)) / 20 if i == j else 0
            apart += s / (20 * 19) if i != j else 0
    assert np.isclose(model._loss(batch).item(), apart - together)


def test_the_prior_is_given_and_not_learnt(made: Simulation, X: pd.DataFrame) -> None:
    for prior, expected in (
        ("estimate", shares(made.crowd)),
        ("uniform", np.full(3, 1 / 3)),
        ([2, 1, 1], [0.5, 0.25, 0.25]),
    ):
        network = MaxMIG(prior=prior, **QUICK).fit(X, made.crowd).network_
        assert np.allclose(network.worker_parameters.log_prior.exp().detach().numpy(), expected)


def test_a_step_touches_only_who_voted(made: Simulation, X: pd.DataFrame, seen_by: Batch) -> None:
    model = MaxMIG(**QUICK).fit(X, made.crowd)
    batch = seen_by(model, X, made.crowd, n_tasks=2)
    model._loss(batch).backward()
    gradient = batch.network.worker_parameters.U.grad
    assert gradient.is_sparse
    assert set(gradient.coalesce().indices()[0].tolist()) == set(batch.worker.tolist())
    assert batch.network.worker_parameters.log_prior.grad is None


def test_a_task_that_is_alone_says_nothing(made: Simulation, X: pd.DataFrame, seen_by: Batch) -> None:
    model = MaxMIG(**QUICK).fit(X, made.crowd)
    alone = model._loss(seen_by(model, X, made.crowd, n_tasks=1))
    assert alone.item() == 0
    alone.backward()


def test_tasks_without_votes_are_not_compared(made: Simulation, X: pd.DataFrame, seen_by: Batch) -> None:
    model = MaxMIG(**QUICK).fit(X, made.crowd)
    batch = seen_by(model, X, made.crowd, n_tasks=6)
    few = seen_by(model, X, made.crowd, n_tasks=4)
    kept = batch.task < 4
    silent = {name: getattr(batch, name)[kept] for name in ("task", "worker", "label", "weight")}
    assert np.isclose(model._loss(dataclasses.replace(batch, **silent)).item(), model._loss(few).item())


def test_posterior_is_the_forecast_of_features_and_votes(made: Simulation, X: pd.DataFrame) -> None:
    model = MaxMIG(**QUICK).fit(X, made.crowd)
    prior = shares(made.crowd)
    f = np.maximum(model.predict_proba(X), PROBABILITY_FLOOR)
    forecast = f * votes_of(model, made.crowd, prior) / prior
    assert np.allclose(model.posterior_, forecast / forecast.sum(axis=1, keepdims=True))


def test_confusion_and_answers_are_estimated(made: Simulation, X: pd.DataFrame) -> None:
    model = MaxMIG(**QUICK).fit(X, made.crowd)
    assert np.allclose(model.confusion_.sum(axis=2), 1)
    assert not np.allclose(np.exp(model.votes_weigh_).sum(axis=2), 1, atol=0.01)
    answers = model.predict_worker_proba(X.iloc[:4], [*made.crowd.workers[:2], "stranger"])
    assert answers.shape == (4, 3, 3)
    assert np.allclose(answers[:, 0], model.predict_proba(X.iloc[:4]) @ model.confusion_[0])
    assert np.allclose(answers.sum(axis=2), 1)


def test_it_learns_and_takes_gold(featured: Callable[..., tuple[Simulation, pd.DataFrame]]) -> None:
    made, X = featured(n_tasks=300, seed=3)
    gold = made.truth.iloc[:50]
    model = MaxMIG(epochs=40, hidden=32, learning_rate=5e-3).fit(X, made.crowd, truth=gold)
    assert (model.labels_.loc[gold.index] == gold).all()
    assert model.score(X, made.truth) > 0.8
    assert (model.labels_ == made.truth).mean() > 0.85


def test_a_class_that_nobody_chose(made: Simulation, X: pd.DataFrame) -> None:
    crowd = Crowd.from_frame(made.crowd.to_frame(), classes=[*made.crowd.classes, "never"], tasks=made.crowd.tasks)
    model = MaxMIG(epochs=30, hidden=16, learning_rate=0.01).fit(X, crowd)
    assert np.isfinite(model.posterior_).all()
    assert not (model.labels_ == "never").any()


def test_copies_do_not_fool_the_network() -> None:
    """Five workers repeat what a sixth says, who is right half of the time: a vote follows them, the network does not."""
    rng = np.random.default_rng(0)
    n_tasks = 600
    truth = rng.integers(2, size=n_tasks)
    right = rng.random((n_tasks, 5)) < np.array([0.85, 0.85, 0.85, 0.85, 0.55])
    said = np.where(right, truth[:, None], 1 - truth[:, None])
    said = np.column_stack([said, *[said[:, 4]] * 5])
    crowd = Crowd.from_triples([(f"t{i:03d}", f"w{r}", said[i, r]) for i in range(n_tasks) for r in range(10)])
    X = pd.DataFrame(2.0 * np.eye(2)[truth] + rng.normal(size=(n_tasks, 2)), index=crowd.tasks)
    vote = (said.mean(axis=1) > 0.5) == truth
    model = MaxMIG(epochs=40, hidden=16, learning_rate=0.01).fit(X, crowd)
    assert vote.mean() < 0.75
    assert model.score(X, truth) > 0.88


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"batch_size": 1}, "batch_size must be 2 or more"), ({"prior": "flat"}, "prior"), ({"prior": [1, 2]}, "prior")],
)
def test_options(made: Simulation, X: pd.DataFrame, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        MaxMIG(**settings).fit(X, made.crowd)
