"""Averages by worker against a loop over votes."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import Crowd
from wisecrowd.nn import worker_averages
from wisecrowd.nn.crowd_network import CrowdNetwork
from wisecrowd.nn.worker_averages import average_by_worker, iterate_voted_batches

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(1)
CROWD = Crowd.from_codes(
    RNG.integers(9, size=25), RNG.integers(4, size=25), RNG.integers(2, size=25), weight=RNG.uniform(0.5, 2, 25),
    tasks=range(10), workers=range(5), classes=range(2), duplicates="last",
)  # fmt: skip
X = RNG.normal(size=(10, 3))


@pytest.fixture
def network() -> CrowdNetwork:
    network = CrowdNetwork("mlp", (3,), 2, hidden=4, dropout=0.9)
    network.prepare_inputs(X, fit=True)
    network.module.double()
    return network


@pytest.mark.parametrize("size", [1, 3, 100])
def test_batches_hold_every_task_with_its_votes(network: CrowdNetwork, size: int) -> None:
    votes, n_tasks = [], 0
    for start, batch in iterate_voted_batches(network, X, CROWD, size):
        assert start == n_tasks
        n_tasks += len(batch.inputs)
        votes += list(zip((batch.task + start).tolist(), batch.worker.tolist(), batch.label.tolist(), strict=True))
        assert not batch.logits.requires_grad
    assert n_tasks == 10
    assert sorted(votes) == sorted(zip(CROWD.task.tolist(), CROWD.worker.tolist(), CROWD.label.tolist(), strict=True))


def test_dropout_is_off(network: CrowdNetwork) -> None:
    network.module.train()
    first = [batch.logits.tolist() for _, batch in iterate_voted_batches(network, X, CROWD)]
    assert first == [batch.logits.tolist() for _, batch in iterate_voted_batches(network, X, CROWD)]


def test_means_are_weighted_and_nan_without_votes(network: CrowdNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_averages, "PREDICTION_BATCH_SIZE", 3)
    averages = average_by_worker(network, X, CROWD, lambda batch: batch.class_probs[batch.task, batch.label])
    ((_, whole),) = iterate_voted_batches(network, X, CROWD)
    probs = whole.class_probs.numpy()
    for worker in range(5):
        mine = CROWD.worker == worker
        if not mine.any():
            assert np.isnan(averages[worker])
            continue
        values = probs[CROWD.task[mine], CROWD.label[mine]]
        assert averages[worker] == pytest.approx(np.average(values, weights=CROWD.weight[mine]))
    assert np.isnan(averages[4])
