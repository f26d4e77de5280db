"""Callbacks after every epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch")

from wisecrowd import CrowdLayer
from wisecrowd.nn.epoch_watchers import watch_epochs
from wisecrowd.simulate import Simulation

QUICK: dict[str, Any] = {"epochs": 6, "hidden": 16}


def test_who_watches_sees_every_epoch_and_changes_nothing(made: Simulation, X: pd.DataFrame) -> None:
    rows, batch = X.to_numpy(), []
    with watch_epochs(lambda model: batch.append(model.classify(rows))):
        watched = CrowdLayer(**QUICK).fit(X, made.crowd)
    alone = CrowdLayer(**QUICK).fit(X, made.crowd)
    assert len(batch) == 6
    assert np.array_equal(batch[-1], alone.predict_proba(X))
    assert np.array_equal(watched.posterior_, alone.posterior_)
