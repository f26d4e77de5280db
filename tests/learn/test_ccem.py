"""CCEM is the plain form of its family, whose tests are in test_stochastic; here is what is its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from wisecrowd import CCEM, MajorityVote
from wisecrowd.evaluate.metrics import accuracy
from wisecrowd.simulate import Simulation

pytest.importorskip("torch")


def test_it_starts_from_a_softmax_of_the_identity(made: Simulation, X: pd.DataFrame) -> None:
    model = CCEM(epochs=1, learning_rate=1e-9).fit(X, made.crowd)
    assert np.allclose(np.diagonal(model.confusion_, axis1=1, axis2=2), np.e / (np.e + 2), atol=1e-4)


def test_it_beats_the_votes(featured: Callable[..., tuple[Simulation, pd.DataFrame]]) -> None:
    made, X = featured(n_tasks=400, seed=1)
    model = CCEM(epochs=40, hidden=32, learning_rate=5e-3).fit(X, made.crowd)
    assert accuracy(made.truth, model) > accuracy(made.truth, MajorityVote().fit(made.crowd)) + 0.02
