"""Networks that are split into trunk and head."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

pytest.importorskip("torch")

from wisecrowd import CrowdLayer
from wisecrowd.errors import UsageError
from wisecrowd.nn.backend import import_torch
from wisecrowd.simulate import Simulation

QUICK: dict[str, Any] = {"epochs": 6, "hidden": 16}


def ends_in_softmax(shape: tuple[int, ...], n_classes: int) -> Any:
    nn = import_torch().nn
    return nn.Sequential(nn.Linear(*shape, 8), nn.ReLU(), nn.Linear(8, n_classes), nn.Softmax(-1))


def test_a_network_ends_in_a_linear_layer_wherever_that_was_declared(made: Simulation, X: pd.DataFrame) -> None:
    nn = import_torch().nn

    class Backwards(nn.Module):  # type: ignore[misc,name-defined]  # torch is not imported here
        def __init__(self) -> None:
            super().__init__()
            self.out, self.inner, self.unused = nn.Linear(8, 3), nn.Linear(4, 8), nn.Linear(2, 2)

        def forward(self, rows: Any) -> Any:
            return self.out(self.inner(rows).relu())

    model = CrowdLayer(classifier=Backwards(), **QUICK).fit(X, made.crowd)
    assert model.network_.head.weight.shape == (3, 8)
    with pytest.raises(UsageError, match="must end in a linear layer"):
        CrowdLayer(classifier=ends_in_softmax, **QUICK).fit(X, made.crowd)


def test_frozen_layers_stay_as_they_are(made: Simulation, X: pd.DataFrame) -> None:
    torch = import_torch()
    body = torch.nn.Linear(4, 8).requires_grad_(False)
    net = torch.nn.Sequential(body, torch.nn.ReLU(), torch.nn.Linear(8, 3))
    model = CrowdLayer(classifier=net, **QUICK).fit(X, made.crowd)
    assert torch.equal(model.network_.trunk[0].weight, body.weight)
    assert not torch.equal(model.network_.head.weight, net[2].weight)
