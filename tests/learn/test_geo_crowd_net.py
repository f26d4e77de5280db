"""GeoCrowdNet: its volumes against numpy, their limits, and what they do to a fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import CCEM, GeoCrowdNet
from wisecrowd.errors import UsageError
from wisecrowd.learn.geo_crowd_net import RIDGE
from wisecrowd.simulate import Simulation

torch = pytest.importorskip("torch")

Batch = Callable[..., Any]
QUICK: dict[str, Any] = {"epochs": 3, "hidden": 8, "batch_size": 16, "learning_rate": 0.05, "precision": "double"}


def test_volume_of_predictions(made: Simulation, X: pd.DataFrame, seen_by: Batch) -> None:
    model = GeoCrowdNet(lam=0.3, **QUICK).fit(X, made.crowd)
    batch = seen_by(model, X, made.crowd, n_tasks=20)
    f = model.predict_proba(X)[:20]
    volume = np.log(np.linalg.det(f.T @ f / 20 + RIDGE * np.eye(3)))
    assert np.isclose(model._loss(batch).item(), CCEM._loss(model, batch).item() - 0.3 * volume)


def test_volume_of_matrices_is_of_columns_over_true_classes(made: Simulation, X: pd.DataFrame, seen_by: Batch) -> None:
    model = GeoCrowdNet(regulariser="W", lam=0.3, **QUICK).fit(X, made.crowd)
    batch = seen_by(model, X, made.crowd, n_tasks=2)
    voted = np.unique(batch.worker)
    assert 1 < len(voted) < made.crowd.n_workers
    total = sum(pi @ pi.T for pi in model.confusion_of(voted)) / (3 * len(voted))
    volume = np.log(np.linalg.det(total + RIDGE * np.eye(3)))
    assert np.isclose(model._loss(batch).item(), CCEM._loss(model, batch).item() - 0.3 * volume)
    model._loss(batch).backward()
    assert batch.network.worker_parameters.A.grad.is_sparse


@pytest.mark.parametrize("regulariser", ["F", "W"])
def test_a_batch_that_spans_no_volume_has_finite_gradients(
    made: Simulation, X: pd.DataFrame, seen_by: Batch, regulariser: str
) -> None:
    model = GeoCrowdNet(regulariser=regulariser, **QUICK).fit(X, made.crowd)
    batch = seen_by(model, X, made.crowd, n_tasks=2)
    if regulariser == "F":
        assert model._log_volume(batch).item() == 0  # two tasks, three classes
    same = seen_by(model.fit(X * 0 + 1, made.crowd), X * 0 + 1, made.crowd, n_tasks=20)  # so is every prediction
    model._loss(same).backward()
    assert all(torch.isfinite(each.grad.to_dense()).all() for each in same.network.module.parameters())


def test_without_its_term_it_is_ccem(made: Simulation, X: pd.DataFrame) -> None:
    plain = CCEM(start="votes", **QUICK).fit(X, made.crowd)
    assert np.allclose(GeoCrowdNet(lam=0.0, **QUICK).fit(X, made.crowd).posterior_, plain.posterior_, atol=1e-8)
    assert not np.allclose(GeoCrowdNet(lam=0.1, **QUICK).fit(X, made.crowd).posterior_, plain.posterior_, atol=1e-3)


def test_its_term_makes_the_network_surer(made: Simulation, X: pd.DataFrame) -> None:
    sure = [
        GeoCrowdNet(lam=lam, epochs=20, hidden=16, learning_rate=0.01).fit(X, made.crowd).predict_proba(X).max(axis=1)
        for lam in (0.0, 0.05)
    ]
    assert sure[1].mean() > sure[0].mean() + 0.01


def test_its_term_makes_matrices_span_more(made: Simulation, X: pd.DataFrame) -> None:
    volume = []
    for lam in (0.0, 0.5):
        model = GeoCrowdNet(regulariser="W", lam=lam, epochs=20, hidden=16, learning_rate=0.01).fit(X, made.crowd)
        volume.append(np.linalg.slogdet(sum(pi @ pi.T for pi in model.confusion_))[1])
    assert volume[1] > volume[0] + 0.1


@pytest.mark.parametrize("regulariser", ["F", "W"])
def test_it_learns(featured: Callable[..., tuple[Simulation, pd.DataFrame]], regulariser: str) -> None:
    made, X = featured(n_tasks=300, seed=3)
    model = GeoCrowdNet(regulariser=regulariser, epochs=40, hidden=32, learning_rate=5e-3).fit(X, made.crowd)
    assert model.score(X, made.truth) > 0.8
    assert (model.labels_ == made.truth).mean() > 0.85
    assert np.allclose(model.confusion_.sum(axis=2), 1)


@pytest.mark.parametrize(
    ("settings", "message"), [({"regulariser": "f"}, "regulariser"), ({"lam": -1.0}, "lam"), ({"lam": np.nan}, "lam")]
)
def test_options(made: Simulation, X: pd.DataFrame, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        GeoCrowdNet(**settings).fit(X, made.crowd)
