"""CrowdLayer: the label probabilities of its three variants, and the settings of worker layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from wisecrowd import CrowdLayer
from wisecrowd.errors import UsageError
from wisecrowd.simulate import Simulation

torch = pytest.importorskip("torch")

QUICK: dict[str, Any] = {"epochs": 3, "hidden": 8, "batch_size": 16, "learning_rate": 0.05, "precision": "double"}


@pytest.mark.parametrize("variant", ["matrix", "scale", "affine"])
def test_label_probabilities_and_loss_are_as_written(
    variant: Any, made: Simulation, X: pd.DataFrame, seen_by: Callable[..., Any]
) -> None:
    model = CrowdLayer(variant=variant, **QUICK).fit(X, made.crowd)
    batch = seen_by(model, X, made.crowd, n_tasks=20)
    f, layer = model.predict_proba(X), model.layer_
    expected = []
    for task, worker in zip(batch.task.tolist(), batch.worker.tolist(), strict=True):
        if variant == "matrix":
            scores = layer["T"][worker].T @ f[task]
        else:
            scores = layer["w"][worker] * f[task] + (layer["b"][worker] if variant == "affine" else 0)
        expected.append(softmax(scores))
    assert np.allclose(model._label_log_probs(batch).exp().detach().numpy(), expected)
    nll = -np.log(np.array(expected)[np.arange(len(expected)), batch.label.numpy()])
    assert model._loss(batch).item() == pytest.approx(nll.mean())


@pytest.mark.parametrize("worker_steps", ["own", "network"])
def test_a_step_touches_only_who_voted_unless_all_take_the_steps_of_the_network(
    worker_steps: Any, made: Simulation, X: pd.DataFrame, seen_by: Callable[..., Any]
) -> None:
    model = CrowdLayer(worker_steps=worker_steps, **QUICK).fit(X, made.crowd)
    batch = seen_by(model, X, made.crowd, n_tasks=2)
    model._loss(batch).backward()  # type: ignore[no-untyped-call]
    gradient = model.network_.worker_parameters.T.grad
    assert gradient.is_sparse == (worker_steps == "own")
    touched = set(torch.nonzero(gradient.to_dense().abs().sum(dim=1))[:, 0].tolist())
    assert touched <= set(batch.worker.tolist())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"variant": "vector"}, "variant"),
        ({"worker_steps": "both"}, "worker_steps"),
        ({"worker_l2": 0.1}, "worker_l2 must not be negative, and needs worker_steps='network'"),
        ({"worker_l2": -0.1, "worker_steps": "network"}, "worker_l2"),
    ],
)
def test_settings_are_checked(made: Simulation, X: pd.DataFrame, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        CrowdLayer(**settings).fit(X, made.crowd)
