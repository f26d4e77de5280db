"""Distances of the true confusion matrices of workers."""

from __future__ import annotations

import numpy as np
import pandas as pd

from wisecrowd.bench.papers.zhang2024ccc_distances import (
    MEAN,
    NEAR,
    ConfusionDistances,
    compute_distances,
    draw_alike,
)
from wisecrowd.data.crowd import Crowd
from wisecrowd.io.datasets import Dataset


def test_distances_of_workers_by_hand() -> None:
    counts = np.array([[[8, 2], [0, 10]], [[8, 2], [0, 10]], [[0, 10], [10, 0]]])
    np.testing.assert_allclose(compute_distances(counts), [0, 0.82, 0.82])  # (.8² + 1²) / 2
    rng = np.random.default_rng(0)
    alike = draw_alike(counts, rng)
    np.testing.assert_array_equal(alike.sum(axis=2), counts.sum(axis=2))


def test_workers_of_two_kinds_are_farther_apart_than_chance() -> None:
    rng = np.random.default_rng(0)
    z = rng.integers(2, size=200)
    task, worker = np.nonzero(rng.random((200, 10)) < 0.5)
    right = rng.random(len(task)) < np.where(worker < 5, 0.9, 0.4)
    label = np.where(right, z[task], 1 - z[task])
    crowd = Crowd.from_codes(task, worker, label, tasks=range(200), workers=range(10), classes=[0, 1])
    dataset = Dataset(name="kinds", crowd=crowd, truth=pd.Series(z, index=range(200)))
    workers, alike = (ConfusionDistances(is_alike)(dataset, 0) for is_alike in (False, True))
    assert workers[MEAN] > 3 * alike[MEAN]
    assert workers[NEAR] < alike[NEAR] * 3
