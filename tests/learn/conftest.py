"""A small crowd whose tasks have features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd, simulate_crowd
from wisecrowd.em import loop as iteration
from wisecrowd.simulate import DifficultyCrowd, Simulation, gaussian_difficulty, gaussian_difficulty_2019

Featured = tuple[Simulation, pd.DataFrame]


def _featured(n_tasks: int = 150, n_features: int = 4, seed: int = 0) -> Featured:
    made = simulate_crowd(n_tasks=n_tasks, n_workers=12, n_classes=3, votes_per_task=3, random_state=seed)
    place = made.crowd.classes.get_indexer(made.truth)
    rows = np.random.default_rng(seed).normal(size=(n_tasks, n_features)) + 2 * np.eye(n_features)[place]
    return made, pd.DataFrame(rows, index=made.truth.index)


@pytest.fixture(scope="session")
def featured() -> Callable[..., Featured]:
    """Make a crowd of three classes, and features that tell them apart somewhat."""
    return _featured


@pytest.fixture(scope="session")
def made() -> Simulation:
    """Votes and truth of 150 tasks."""
    return _featured()[0]


@pytest.fixture(scope="session")
def X() -> pd.DataFrame:  # noqa: N802
    """Four features of the same tasks."""
    return _featured()[1]


@pytest.fixture(scope="session")
def seen_by() -> Callable[..., Any]:
    """Tasks and votes as a fitted learner that trains by gradients sees them in a batch, without dropout."""

    def see(model: Any, X: pd.DataFrame, crowd: Crowd, *, n_tasks: int | None = None, epoch: int = 0) -> Any:
        """All tasks, or the first."""
        import torch

        from wisecrowd.nn.vote_tensors import Batch, VoteTensors

        network = model.network_
        network.module.eval()
        network.module.zero_grad()  # what the last step of the fit left
        inputs = network.tensor(network.rows(X.to_numpy()[:n_tasks]))
        votes = VoteTensors.of(crowd, like=inputs).on(torch.arange(len(inputs)))
        return Batch(network, inputs, *network(inputs), *votes, epoch=epoch)

    return see


@pytest.fixture(scope="session")
def start_of() -> Callable[..., Any]:
    """The network with which a learner that trains by gradients begins."""
    return lambda model, X, crowd: model.fit(X, crowd)._begin_lesson(X.to_numpy(), crowd, None)[0]


@pytest.fixture
def never_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    """An EM step that lowers its objective is an error."""
    monkeypatch.setattr(iteration, "assert_monotone", True)


@pytest.fixture(scope="session")
def published() -> DifficultyCrowd:
    """The Gaussian data of Xu et al. (2019)."""
    return gaussian_difficulty_2019()


@pytest.fixture(scope="session")
def small() -> DifficultyCrowd:
    """Few tasks of the same kind, with three labels each."""
    return gaussian_difficulty(300, 200, votes_per_task=3, random_state=2)
