"""Division of a batch among processes, of which threads take the place. `test_process_group.py` starts real processes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from wisecrowd.errors import UsageError
from wisecrowd.nn import distributed
from wisecrowd.nn.distributed import BatchPart, apply_network, compute_gradients, synchronize_layers
from wisecrowd.nn.process_group import ProcessGroup

torch = pytest.importorskip("torch")

SIZE = 2


class Exchange:
    """Sums over threads, as messages between processes give them."""

    def __init__(self) -> None:
        self.barrier = threading.Barrier(SIZE)
        self.parts: list[Any] = [None] * SIZE

    def sum(self, rank: int, part: Any) -> Any:
        self.parts[rank] = part.detach().clone()
        self.barrier.wait(10)
        total = sum(self.parts[1:], self.parts[0].clone())
        self.barrier.wait(10)
        return total


class ThreadGroup(ProcessGroup):
    exchange: Exchange

    def sum(self, part: Any) -> Any:
        return self.exchange.sum(self.rank, part)

    def sum_gradients(self, dense: Any, sparse: Any, loss: Any) -> Any:
        assert not sparse
        for parameter in dense:
            parameter.grad = self.sum(parameter.grad)
        return self.sum(loss)


def run_in_threads(work: Callable[[ThreadGroup], Any]) -> list[Any]:
    exchange = Exchange()

    def one(rank: int) -> Any:
        group = ThreadGroup(rank, SIZE)
        object.__setattr__(group, "exchange", exchange)
        return work(group)

    with ThreadPoolExecutor(SIZE) as pool:
        return list(pool.map(one, range(SIZE)))


def make_network() -> Any:
    """Return a network with batch norm; all have the same weights."""
    network = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Tanh(), torch.nn.Linear(4, 1)
    )
    for position, parameter in enumerate(network.parameters()):
        values = np.random.default_rng(position).normal(size=tuple(parameter.shape))
        parameter.data = torch.from_numpy(values)
    return network.double()


X = torch.from_numpy(np.random.default_rng(9).normal(size=(7, 3)))
WEIGHTS = torch.from_numpy(np.random.default_rng(8).uniform(0.5, 2, 7))


def train_once(group: ProcessGroup, *, separable: bool) -> tuple[float, list[Any], Any]:
    """Return loss, gradients and running mean after one step."""
    network = make_network()

    def loss(rows: Any) -> Any:
        outputs = apply_network(network, X[rows])[:, 0]
        value = (WEIGHTS[rows] * outputs.square()).sum() / WEIGHTS[rows].sum()
        return value if separable else value + outputs.sort().values[0] * outputs.max()

    with synchronize_layers(network, group):
        value = compute_gradients(
            group,
            loss,
            torch.arange(7),
            lambda rows: WEIGHTS[rows],
            list(network.parameters()),
            [],
            separable=separable,
        )
    return float(value), [parameter.grad for parameter in network.parameters()], network[1].running_mean


@pytest.mark.parametrize("separable", [True, False])
def test_a_divided_step_is_that_of_one_process(separable: bool) -> None:
    value, gradients, running_mean = train_once(ProcessGroup(), separable=separable)
    for other_value, others, other_mean in run_in_threads(lambda group: train_once(group, separable=separable)):
        assert other_value == pytest.approx(value, rel=1e-12)
        torch.testing.assert_close(other_mean, running_mean)
        for gradient, other in zip(gradients, others, strict=True):
            torch.testing.assert_close(other, gradient, rtol=1e-9, atol=1e-12)


def test_dropout_uses_the_rows_of_a_mask_for_the_whole_batch() -> None:
    layer = torch.nn.Dropout(0.5)
    group = ThreadGroup(1, SIZE)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        whole = layer(torch.ones(6, 5))
        with (
            synchronize_layers(layer, group),
            distributed._set_variable(distributed._batch_part, BatchPart(group, slice(3, 6), 6)),
        ):
            torch.manual_seed(0)
            part = layer(torch.ones(3, 5))
    assert torch.equal(part, whole[3:6])


def test_layers_are_as_before_after_the_block() -> None:
    network = make_network()
    with synchronize_layers(network, ThreadGroup(0, SIZE)):
        assert "forward" in vars(network[1])
    assert "forward" not in vars(network[1])
    with synchronize_layers(network, ProcessGroup()):
        assert "forward" not in vars(network[1]), "a single process changes nothing"


class TestPart:
    PART = BatchPart(ProcessGroup(1, 2), slice(3, 6), 6)

    def test_layers_may_have_several_rows_for_a_task(self) -> None:
        assert self.PART.count_repeats(12) == 4
        assert self.PART.own_layer_rows(12) == slice(12, 24)

    def test_rows_that_cannot_be_divided_are_refused(self) -> None:
        with pytest.raises(UsageError, match="received 10 rows for 3 tasks"):
            self.PART.count_repeats(10)


def test_a_third_of_a_loss_is_a_third_in_double_precision() -> None:
    class Third(ProcessGroup):
        def sum_gradients(self, dense: Any, sparse: Any, loss: Any) -> Any:
            assert not sparse
            for each in dense:
                each.grad *= 3
            return 3 * loss

    weight = torch.tensor([0.3, 0.7], dtype=torch.float64, requires_grad=True)
    rows = torch.arange(2)  # too few for three
    found = compute_gradients(
        Third(0, 3), lambda rows: (weight[rows] ** 2).mean(), rows, None, [weight], [], separable=True
    )
    assert float(found) == pytest.approx(0.29, rel=1e-15)
    np.testing.assert_allclose(weight.grad, [0.3, 0.7], rtol=1e-15)
