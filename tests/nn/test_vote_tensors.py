"""Votes as tensors, and batches of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wisecrowd import Crowd
from wisecrowd.nn.vote_tensors import Batch, VoteTensors, cross_tasks_and_workers, log_softmax_rows

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
CROWD = Crowd.from_codes(
    RNG.integers(6, size=30), RNG.integers(4, size=30), RNG.integers(3, size=30), weight=RNG.uniform(0.5, 2, 30),
    tasks=range(8), workers=range(4), classes=range(3), duplicates="keep",
)  # fmt: skip


def collect(votes: tuple[Any, ...], tasks: list[int]) -> dict[tuple[int, int, int], float]:
    """Return the total weight by position of the task, worker and label."""
    total: dict[tuple[int, int, int], float] = {}
    for task, worker, label, weight in zip(*(part.tolist() for part in votes), strict=True):
        assert 0 <= task < len(tasks)
        total[task, worker, label] = total.get((task, worker, label), 0) + weight
    return total


def expect(tasks: list[int]) -> dict[tuple[int, int, int], float]:
    total: dict[tuple[int, int, int], float] = {}
    for position, chosen in enumerate(tasks):
        for task, worker, label, weight in zip(CROWD.task, CROWD.worker, CROWD.label, CROWD.weight, strict=True):
            if task == chosen:
                key = position, int(worker), int(label)
                total[key] = total.get(key, 0) + weight
    return total


@pytest.mark.parametrize("tasks", [[0, 1, 2, 3, 4, 5, 6, 7], [3, 0, 3], [7], [7, 6], []])
def test_votes_on_some_tasks(tasks: list[int]) -> None:
    votes = VoteTensors.from_crowd(CROWD, like=torch.zeros(0, dtype=torch.float64))
    selected = votes.select_tasks(torch.tensor(tasks, dtype=torch.int64))
    assert collect(selected, tasks) == pytest.approx(expect(tasks))


def test_equal_votes_become_one_with_the_sum_of_their_weights() -> None:
    votes = VoteTensors.from_crowd(CROWD)
    keys = list(zip(*(part.tolist() for part in votes.select_tasks(torch.arange(8))[:3]), strict=True))
    assert len(set(keys)) == len(keys) < CROWD.n_votes
    assert float(votes.weight.sum()) == pytest.approx(CROWD.weight.sum(), rel=1e-6)


def test_tasks_are_renumbered_in_the_given_order() -> None:
    chosen = [5, 2, 7]
    votes = VoteTensors.from_crowd(CROWD, np.array(chosen), like=torch.zeros(0, dtype=torch.float64))
    assert collect(votes.select_tasks(torch.arange(3)), chosen) == pytest.approx(expect(chosen))
    assert len(votes.offset) == 4


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_weights_have_the_type_of_the_network(dtype: Any) -> None:
    votes = VoteTensors.from_crowd(CROWD, like=torch.zeros(0, dtype=dtype))
    assert votes.weight.dtype == dtype
    assert votes.worker.dtype == torch.int64


def make_batch(**more: Any) -> Batch:
    logits = torch.tensor([[0.0, 1.0], [2.0, -1.0]], dtype=torch.float64, requires_grad=True)
    votes = {"task": torch.tensor([0, 1, 1]), "worker": torch.tensor([3, 1, 3]), "label": torch.tensor([0, 0, 1])}
    return Batch(None, None, None, logits, weight=torch.tensor([1.0, 3.0, 0.0]).double(), **votes | more)  # type: ignore[arg-type]


class TestBatch:
    def test_gold_is_certain_with_finite_gradients(self) -> None:
        batch = make_batch(gold=torch.tensor([-1, 0]))
        probs = batch.class_probs
        assert probs[0].tolist() == pytest.approx(torch.softmax(batch.logits[0], 0).tolist())
        assert probs[1].tolist() == pytest.approx([1, 0], abs=1e-9)
        batch.class_log_probs.sum().backward()
        assert torch.isfinite(batch.logits.grad).all()
        assert batch.logits.grad[1].tolist() == [0, 0], "what is known teaches the network nothing through its votes"

    def test_means_are_weighted(self) -> None:
        assert float(make_batch().weighted_mean(torch.tensor([1.0, 5.0, 100.0]).double())) == 4

    def test_workers_are_listed_once(self) -> None:
        assert make_batch().unique_workers.tolist() == [1, 3]


def test_a_batch_without_votes_has_mean_zero() -> None:
    none = torch.empty(0, dtype=torch.float64)
    batch = Batch(None, None, None, none, none, none, none, none)  # type: ignore[arg-type]
    assert float(batch.weighted_mean(none)) == 0


def test_rows_of_matrices_are_distributions() -> None:
    matrices = torch.randn(2, 3, 3, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(log_softmax_rows(matrices).exp().sum(dim=-1), torch.ones(2, 3))


def test_every_combination_of_tasks_and_workers() -> None:
    task, worker = cross_tasks_and_workers(3, [5, 7])
    assert list(zip(task.tolist(), worker.tolist(), strict=True)) == [(0, 5), (0, 7), (1, 5), (1, 7), (2, 5), (2, 7)]
    assert cross_tasks_and_workers(0, [5])[0].shape == (0,)
