"""Training tasks, held-out tasks, and their weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch")

from wisecrowd import CrowdLayer
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.training_set import select_heldout_tasks
from wisecrowd.simulate import Simulation

QUICK: dict[str, Any] = {"epochs": 6, "hidden": 16}


def test_votes_that_are_held_out_do_not_teach(made: Simulation, X: pd.DataFrame) -> None:
    model = CrowdLayer(validation=0.3, **QUICK).fit(X, made.crowd)
    assert model.history_["validation"].between(0, 1).all()
    held = select_heldout_tasks(made.crowd, None, 0.3, model.random_state)
    assert held.sum() == round(0.3 * 150)
    rest = made.crowd[np.flatnonzero(~held)]
    alone = CrowdLayer(**QUICK).fit(X, rest)
    np.testing.assert_allclose(alone.predict_proba(X), model.predict_proba(X), atol=1e-6)


def test_weights_of_tasks_are_their_votes_and_gold(made: Simulation, X: pd.DataFrame) -> None:
    gold = np.where(np.arange(150) < 5, 1, -1).astype(np.int32)
    job, network = CrowdLayer(**QUICK)._prepare_job(X.to_numpy(), made.crowd, gold)
    torch = import_torch()
    tasks = torch.tensor([0, 7, 149])
    votes = np.bincount(made.crowd.task, minlength=150)
    assert job.training_set.task_weights(tasks).tolist() == [votes[0] + 1, votes[7], votes[149]]
    batch = job.training_set.make_batch(network, tasks, epoch=3)
    assert batch.epoch == 3
    assert batch.gold is not None
    assert batch.gold.tolist() == [1, -1, -1]
    assert batch.class_probs[0].tolist() == pytest.approx([0, 1, 0], abs=1e-6)
