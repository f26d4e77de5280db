"""CoNAL against its formulas, and crowds whose mistakes are common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax

from wisecrowd import CoNAL, Crowd
from wisecrowd.errors import UsageError
from wisecrowd.simulate import Simulation

torch = pytest.importorskip("torch")

QUICK: dict[str, Any] = {"hidden": 16, "precision": "double", "epochs": 3}


@pytest.fixture(scope="module")
def model(made: Simulation, X: pd.DataFrame) -> CoNAL:
    return CoNAL(separation=0.5, embedding=3, **QUICK).fit(X, made.crowd)


def by_hand(model: CoNAL, X: pd.DataFrame, crowd: Crowd) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Gates and answers of all votes, vote by vote."""
    network = model.network_
    state = {name: each.detach().numpy() for name, each in network.module.state_dict().items()}
    rows, f = network.prepare_inputs(X.to_numpy()), model.predict_proba(X)
    n_classes = len(model.classes_)
    W = state["worker_parameters.W"].reshape(-1, n_classes, n_classes)
    gates, said = [], []
    for task, worker in zip(crowd.task, crowd.worker, strict=True):
        v = (
            state["worker_parameters.v.2.weight"]
            @ (state["worker_parameters.v.1.weight"] @ rows[task] + state["worker_parameters.v.1.bias"])
            + state["worker_parameters.v.2.bias"]
        )
        u = state["worker_parameters.u"][worker]
        gate = expit(v @ u / np.linalg.norm(v) / np.linalg.norm(u))
        gates.append(gate)
        said.append(softmax(gate * f[task] @ state["worker_parameters.C"] + (1 - gate) * f[task] @ W[worker]))
    return np.array(gates), np.array(said)


def test_gate_answers_and_loss_are_as_written(
    model: CoNAL, made: Simulation, X: pd.DataFrame, seen_by: Callable[..., Any]
) -> None:
    gates, said = by_hand(model, X, made.crowd)
    batch = seen_by(model, X, made.crowd)
    np.testing.assert_allclose(model._gate(batch).detach(), gates, atol=1e-10)
    np.testing.assert_allclose(model._label_log_probs(batch).exp().detach(), said, atol=1e-10)
    W, C = model.network_.worker_table("W").detach().numpy(), model.network_.worker_parameters.C.detach().numpy()
    apart = sum(np.linalg.norm(W[worker] - C) for worker in np.unique(made.crowd.worker))
    likelihood = np.log(said[np.arange(len(said)), made.crowd.label]).mean()
    assert model._loss(batch).item() == pytest.approx(-likelihood - 0.5 * apart, abs=1e-10)


def test_workers_who_did_not_vote_are_not_touched(
    model: CoNAL, made: Simulation, X: pd.DataFrame, seen_by: Any
) -> None:
    some = Crowd.from_frame(
        made.crowd.to_frame().query("worker in @made.crowd.workers[:4]"),
        tasks=made.crowd.tasks, workers=made.crowd.workers, classes=made.crowd.classes,
    )  # fmt: skip
    model._loss(seen_by(model, X, some)).backward()
    for name in ("W", "u"):
        gradient = getattr(model.network_.worker_parameters, name).grad
        assert gradient.is_sparse
        assert gradient.coalesce().indices()[0].tolist() == [0, 1, 2, 3]
    assert all(torch.isfinite(each.grad.to_dense()).all() for each in model.network_.module.parameters())


def test_it_starts_with_twice_the_identity_where_the_norm_has_no_slope(
    made: Simulation, X: pd.DataFrame, seen_by: Any
) -> None:
    start = CoNAL(**QUICK | {"epochs": 1}, learning_rate=1e-30).fit(X, made.crowd)
    assert np.allclose(start.network_.worker_table("W").detach(), 2 * np.eye(3))
    assert np.allclose(start.common_, softmax(2 * np.eye(3), axis=1))
    start._loss(seen_by(start, X, made.crowd)).backward()
    assert torch.isfinite(start.network_.worker_parameters.C.grad).all()


def test_separation_drives_matrices_apart(made: Simulation, X: pd.DataFrame) -> None:
    def apart(separation: float) -> float:
        network = CoNAL(separation=separation, **QUICK | {"epochs": 40}).fit(X, made.crowd).network_
        return (network.worker_table("W") - network.worker_parameters.C).flatten(1).norm(dim=1).mean().item()

    assert apart(1.0) > 1.5 * apart(0.0)


def test_the_gate_is_the_mean_over_a_workers_votes(model: CoNAL, made: Simulation, X: pd.DataFrame) -> None:
    gates, _ = by_hand(model, X, made.crowd)
    wanted = pd.Series(gates).groupby(np.asarray(made.crowd.worker)).mean()
    np.testing.assert_allclose(model.gate_, wanted, atol=1e-10)
    assert ((model.gate_ > expit(-1)) & (model.gate_ < expit(1))).all()


def test_common_mistakes_are_found_as_such() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=600)
    task, worker = np.repeat(np.arange(600), 3), rng.integers(30, size=1800)
    label = truth[task].copy()
    mistaken = (label == 2) & (rng.random(1800) < 0.4)
    label[mistaken] = 1  # a 2 may be mistaken for a 1; there are no other mistakes
    X = np.eye(3)[truth] + 0.3 * rng.normal(size=(600, 3))
    crowd = Crowd.from_codes(
        task, worker, label, tasks=range(600), workers=range(30), classes=range(3), duplicates="first"
    )
    fitted = CoNAL(hidden=16, epochs=60).fit(X, crowd)
    off = fitted.common_ - np.diag(np.diagonal(fitted.common_))
    assert np.unravel_index(off.argmax(), off.shape) == (2, 1)
    assert (fitted.predict(X) == truth).mean() > 0.95


@pytest.mark.parametrize("bad", [{"embedding": 0}, {"separation": -1.0}, {"separation": float("inf")}])
def test_options_that_make_no_sense_are_refused(bad: dict[str, Any], made: Simulation, X: pd.DataFrame) -> None:
    with pytest.raises(UsageError, match="embedding must be 1 or more"):
        CoNAL(**bad).fit(X, made.crowd)
