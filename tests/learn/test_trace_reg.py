"""TraceReg: its term against numpy, when it counts, and which way it pushes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import CCEM, TraceReg
from wisecrowd.errors import UsageError
from wisecrowd.simulate import Simulation

torch = pytest.importorskip("torch")

Batch = Callable[..., Any]
QUICK: dict[str, Any] = {"epochs": 3, "hidden": 8, "batch_size": 16, "learning_rate": 0.05, "precision": "double"}


def test_the_trace_of_each_worker_of_the_batch_counts_once(made: Simulation, X: pd.DataFrame, seen_by: Batch) -> None:
    model = TraceReg(lam=0.3, **QUICK).fit(X, made.crowd)
    batch = seen_by(model, X, made.crowd, n_tasks=2)
    voted = np.unique(batch.worker)
    assert len(voted) < made.crowd.n_workers
    trace = np.mean([np.trace(pi) for pi in model.confusion_of(voted)])
    plain = -model._label_log_probs(batch).gather(1, batch.label[:, None]).mean()
    assert np.isclose(model._loss(batch).item(), plain.item() + 0.3 * trace)
    model._loss(batch).backward()
    gradient = batch.network.worker_parameters.A.grad
    assert gradient.is_sparse
    assert set(gradient.coalesce().indices()[0].tolist()) == set(voted)


def test_a_warm_up_leaves_the_trace_out(made: Simulation, X: pd.DataFrame, seen_by: Batch) -> None:
    model = TraceReg(lam=0.3, warm_up=2, **QUICK).fit(X, made.crowd)
    losses = [model._loss(seen_by(model, X, made.crowd, n_tasks=20, epoch=epoch)).item() for epoch in (0, 1, 2)]
    assert losses[0] == losses[1]
    assert losses[2] > losses[0] + 0.3
    plain = CCEM(sure=6.0, **QUICK).fit(X, made.crowd).posterior_
    assert np.allclose(TraceReg(warm_up=3, **QUICK).fit(X, made.crowd).posterior_, plain, atol=1e-8)


def test_it_starts_from_workers_who_are_nearly_always_right(made: Simulation, X: pd.DataFrame, start_of: Any) -> None:
    table = start_of(TraceReg(**QUICK), X, made.crowd).worker_table("A").softmax(dim=2).detach().numpy()
    assert np.allclose(np.diagonal(table, axis1=1, axis2=2), np.exp(6) / (np.exp(6) + 2))


def test_the_trace_is_held_down(made: Simulation, X: pd.DataFrame) -> None:
    settings = {"epochs": 20, "hidden": 16, "learning_rate": 0.01, "start": "votes"}
    free, held = (TraceReg(lam=lam, **settings).fit(X, made.crowd).confusion_ for lam in (0.0, 0.1))
    assert np.trace(held, axis1=1, axis2=2).mean() < np.trace(free, axis1=1, axis2=2).mean() - 0.02


def test_it_learns_and_takes_gold(featured: Callable[..., tuple[Simulation, pd.DataFrame]]) -> None:
    made, X = featured(n_tasks=300, seed=3)
    gold = made.truth.iloc[:50]
    model = TraceReg(epochs=40, hidden=32, learning_rate=5e-3).fit(X, made.crowd, truth=gold)
    assert (model.labels_.loc[gold.index] == gold).all()
    assert model.score(X, made.truth) > 0.8
    answers = model.predict_worker_proba(X.iloc[:4], [*made.crowd.workers[:2], "stranger"])
    assert answers.shape == (4, 3, 3)
    assert np.allclose(answers.sum(axis=2), 1, atol=1e-5)


@pytest.mark.parametrize("settings", [{"lam": -0.1}, {"lam": np.nan}, {"warm_up": -1}])
def test_options(made: Simulation, X: pd.DataFrame, settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="lam and warm_up"):
        TraceReg(**settings).fit(X, made.crowd)
