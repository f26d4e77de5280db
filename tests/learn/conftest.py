"""A small crowd whose tasks have features."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from wisecrowd import em, simulate_crowd
from wisecrowd.simulate import DifficultyCrowd, Simulation, gaussian_difficulty, gaussian_difficulty_2019

Featured = tuple[Simulation, pd.DataFrame]


def _featured(n_tasks: int = 150, n_features: int = 4, seed: int = 0) -> Featured:
    made = simulate_crowd(n_tasks=n_tasks, n_workers=12, n_classes=3, labels_per_task=3, random_state=seed)
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


@pytest.fixture
def never_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    """An EM step that lowers its objective is an error."""
    monkeypatch.setattr(em, "assert_monotone", True)


@pytest.fixture(scope="session")
def published() -> DifficultyCrowd:
    """The Gaussian data of Xu et al. (2019)."""
    return gaussian_difficulty_2019()


@pytest.fixture(scope="session")
def small() -> DifficultyCrowd:
    """Few tasks of the same kind, with three labels each."""
    return gaussian_difficulty(300, 200, labels_per_task=3, random_state=2)
