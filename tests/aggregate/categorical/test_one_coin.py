"""One accuracy per worker."""

from __future__ import annotations

import numpy as np

from wisecrowd.aggregate.categorical.one_coin import OneCoin
from wisecrowd.data.crowd import Crowd


def test_one_coin_recovers_accuracies_as_data_grow() -> None:
    rng = np.random.default_rng(0)
    truth_accuracy = rng.uniform(0.5, 0.95, 10)
    errors = []
    for n_tasks in (50, 2000):
        truth = rng.integers(3, size=n_tasks)
        task, worker = np.repeat(np.arange(n_tasks), 10), np.tile(np.arange(10), n_tasks)
        right = rng.random(len(task)) < truth_accuracy[worker]
        label = np.where(right, truth[task], (truth[task] + rng.integers(1, 3, len(task))) % 3)
        crowd = Crowd.from_codes(task, worker, label, tasks=range(n_tasks), workers=range(10), classes=range(3))
        errors.append(np.abs(OneCoin().fit(crowd).workers_["accuracy"].to_numpy() - truth_accuracy).mean())
    assert errors[1] < 0.02
    assert errors[1] < errors[0]
