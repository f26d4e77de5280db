"""CrowdAR against its formulas, and crowds with votes that say nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax

from wisecrowd import Crowd, CrowdAR, CrowdLayer
from wisecrowd.errors import UsageError
from wisecrowd.simulate import Simulation

torch = pytest.importorskip("torch")

QUICK: dict[str, Any] = {"hidden": 16, "precision": "double", "epochs": 8, "learning_rate": 0.01}


@pytest.fixture(scope="module")
def model(made: Simulation, X: pd.DataFrame) -> CrowdAR:
    return CrowdAR(warm_up=2, **QUICK).fit(X, made.crowd)


def reliability(model: CrowdAR, hidden: np.ndarray[Any, Any], X: pd.DataFrame, crowd: Crowd) -> np.ndarray[Any, Any]:
    state = {name: each.detach().numpy() for name, each in model.network_.module.state_dict().items()}
    inner = expit(
        hidden @ state["worker_parameters.difficulty.0.weight"].T + state["worker_parameters.difficulty.0.bias"]
    )
    d = expit(inner @ state["worker_parameters.difficulty.2.weight"].T + state["worker_parameters.difficulty.2.bias"])
    a, f = np.log1p(np.exp(state["worker_parameters.a"])), model.predict_proba(X)
    e = expit(state["worker_parameters.E"])
    pairs = zip(crowd.task, crowd.worker, strict=True)
    return np.array(
        [expit(a @ ((e[worker] - d[task]) * f[task]) + state["worker_parameters.c"][0]) for task, worker in pairs]
    )


def test_reliability_and_loss_are_as_written(
    model: CrowdAR, made: Simulation, X: pd.DataFrame, seen_by: Callable[..., Any]
) -> None:
    crowd, batch = made.crowd, seen_by(model, X, made.crowd, epoch=2)
    m = reliability(model, batch.hidden.detach().numpy(), X, crowd)
    np.testing.assert_allclose(model._reliability_logits(batch).sigmoid().detach(), m, atol=1e-10)
    f, W = model.predict_proba(X), model.network_.worker_table("W").detach().numpy()
    total = 0.0
    for vote, (task, worker, label) in enumerate(zip(crowd.task, crowd.worker, crowd.label, strict=True)):
        target = np.full(3, (1 - m[vote]) / 3)
        target[label] += m[vote]
        agrees = f[task].argmax() == label
        total += 0.9 * -(target * np.log(softmax(f[task] @ W[worker]))).sum()
        total += 0.1 * -np.log(m[vote] if agrees else 1 - m[vote])
    assert model._loss(batch).item() == pytest.approx(total / len(crowd.label), abs=1e-10)


def test_the_warm_up_is_the_crowd_layer(made: Simulation, X: pd.DataFrame) -> None:
    warm = CrowdAR(warm_up=8, **QUICK).fit(X, made.crowd)
    assert np.allclose(warm.expertise_, 0.5)  # nothing but the warm-up's loss was lowered
    assert set(warm.network_.table_shapes) == {"W", "E"}
    layer = CrowdLayer(**QUICK).fit(X, made.crowd)
    # Dropout draws the same numbers, for layers of the reliability are made after those of the network.
    np.testing.assert_allclose(warm.network_.worker_table("W").detach(), layer.layer_["T"], atol=1e-8)
    assert not np.allclose(CrowdAR(**QUICK).fit(X, made.crowd).expertise_, 0.5)


def test_who_is_trained_by_whom(model: CrowdAR, made: Simulation, X: pd.DataFrame, seen_by: Any) -> None:
    batch = seen_by(model, X, made.crowd, epoch=2)
    model._reliability_logits(batch).sum().backward()
    trunk = [each.grad for each in model.network_.module.trunk.parameters()]
    assert all(gradient is None for gradient in trunk)
    assert model.network_.worker_parameters.difficulty[0].weight.grad.abs().sum() > 0
    assert model.network_.worker_parameters.E.grad.is_sparse

    def slope(**options: Any) -> Any:
        other = CrowdAR(weight=1.0, warm_up=0, **options)
        other._loss(seen_by(model, X, made.crowd, epoch=2)).backward()
        return model.network_.worker_parameters.c.grad

    assert slope(through_target=True).abs() > 0
    assert slope(through_target=False).abs() == 0


def test_expertise_never_makes_a_vote_less_reliable(
    model: CrowdAR, made: Simulation, X: pd.DataFrame, seen_by: Any
) -> None:
    model.network_.worker_parameters.a.data -= 5  # however it was trained, the softplus of it is positive
    try:
        before = model._reliability_logits(seen_by(model, X, made.crowd))
        model.network_.worker_parameters.E.data += 1
        assert (model._reliability_logits(seen_by(model, X, made.crowd)) > before).all()
    finally:
        model.network_.worker_parameters.E.data -= 1
        model.network_.worker_parameters.a.data += 5


def test_who_votes_at_random_is_trusted_less() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=500)
    task = np.repeat(np.arange(500), 4)
    worker = rng.permuted(np.tile(np.arange(20), (500, 1)), axis=1)[:, :4].ravel()
    label = np.where(worker < 6, rng.integers(3, size=2000), truth[task])
    crowd = Crowd.from_codes(task, worker, label, tasks=range(500), workers=range(20), classes=range(3))
    X = np.eye(3)[truth] + 0.4 * rng.normal(size=(500, 3))
    fitted = CrowdAR(hidden=16, learning_rate=0.01, epochs=30).fit(X, crowd)
    assert fitted.reliability_[:6].max() < fitted.reliability_[6:].min()
    assert (fitted.predict(X) == truth).mean() > 0.9


@pytest.mark.parametrize("bad", [{"weight": 1.5}, {"weight": -0.1}, {"warm_up": -1}])
def test_options_that_make_no_sense_are_refused(bad: dict[str, Any], made: Simulation, X: pd.DataFrame) -> None:
    with pytest.raises(UsageError, match="weight must be a share"):
        CrowdAR(**bad).fit(X, made.crowd)
