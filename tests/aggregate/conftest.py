"""Crowds whose tasks have features."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd, simulate_crowd
from wisecrowd.data.alignment import encode_truth

Clustered = Callable[..., tuple[Crowd, pd.DataFrame, pd.Series]]


@pytest.fixture(scope="session")
def clustered() -> Clustered:
    """Make a crowd of three classes that lie apart in four features: votes, features by task, and truth."""

    def make(
        n_tasks: int = 200, votes_per_task: int = 3, workers: tuple[str, ...] = ("noisy",) * 20
    ) -> tuple[Crowd, pd.DataFrame, pd.Series]:
        made = simulate_crowd(
            n_tasks, len(workers), 3, votes_per_task=votes_per_task, workers=list(workers), random_state=0
        )
        X = np.random.default_rng(0).normal(size=(n_tasks, 4))
        X[np.arange(n_tasks), encode_truth(made.truth, made.crowd)] += 4
        return made.crowd, pd.DataFrame(X, index=made.crowd.tasks), made.truth

    return make
