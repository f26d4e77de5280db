"""Embeddings in which tasks with the same label are near and others at distance one: for all, then for every worker.

A network has one hidden layer. Many are trained at once, as tensors with a leading axis of networks; each is trained as if
it were alone, in steps of its own, whoever stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.complete.tllc._sampling import uniform
from wisecrowd.nn.backend import need_torch
from wisecrowd.utils.hashing import Keys

if TYPE_CHECKING:
    from torch import Tensor

#: Numbers that training or answering may hold at a time for a group of networks.
NUMBERS = 2**25
#: Of Adam.
DECAYS, TINY = (0.9, 0.999), 1e-8


class Layers(NamedTuple):
    """Networks of one hidden layer, stacked: (networks, inputs, hidden), (networks, 1, hidden), and the same again.

    >>> torch = need_torch()
    >>> net = Layers(torch.zeros(2, 3, 4), torch.zeros(2, 1, 4), torch.zeros(2, 4, 5), torch.ones(2, 1, 5))
    >>> net.embed(torch.zeros(2, 7, 3)).shape
    torch.Size([2, 7, 5])
    """

    weight: Tensor
    bias: Tensor
    out_weight: Tensor
    out_bias: Tensor

    @classmethod
    def drawn(cls, n_inputs: int, hidden: int, dimension: int, dtype: Any) -> Layers:
        """One network with random weights, as torch draws those of its layers: uniform within 1/√inputs."""
        torch = need_torch()

        def within(*shape: int, inputs: int) -> Tensor:
            return ((torch.rand(*shape, dtype=torch.float64) * 2 - 1) / max(inputs, 1) ** 0.5).to(dtype)

        return cls(
            within(1, n_inputs, hidden, inputs=n_inputs), within(1, 1, hidden, inputs=n_inputs),
            within(1, hidden, dimension, inputs=hidden), within(1, 1, dimension, inputs=hidden),
        )  # fmt: skip

    def embed(self, rows: Tensor) -> Tensor:
        """(networks, rows, dimension) of (networks, rows, inputs)."""
        torch = need_torch()
        hidden = torch.baddbmm(self.bias, rows, self.weight).relu()
        return torch.baddbmm(self.out_bias, hidden, self.out_weight)

    def slopes(self, rows: Tensor, labels: Tensor, valid: Tensor, balance: bool) -> Layers:
        """The gradient of the loss over all pairs of the rows, by hand: half the time of a recorded one."""
        torch = need_torch()
        hidden = torch.baddbmm(self.bias, rows, self.weight).relu_()
        back = pair_slope(torch.baddbmm(self.out_bias, hidden, self.out_weight), labels, valid, balance)
        below = torch.bmm(back, self.out_weight.transpose(1, 2)).mul_(hidden > 0)
        return Layers(
            torch.bmm(rows.transpose(1, 2), below), below.sum(dim=1, keepdim=True),
            torch.bmm(hidden.transpose(1, 2), back), back.sum(dim=1, keepdim=True),
        )  # fmt: skip

    def embed_all(self, rows: Tensor) -> Tensor:
        """(networks, rows, dimension) of the same (rows, inputs) for every network: the first layers are one product."""
        torch = need_torch()
        n_networks, n_inputs, n_hidden = self.weight.shape
        wide = self.weight.transpose(0, 1).reshape(n_inputs, n_networks * n_hidden)
        hidden = torch.addmm(self.bias.reshape(1, -1), rows, wide).relu_()
        hidden = hidden.reshape(len(rows), n_networks, n_hidden).transpose(0, 1)
        return torch.baddbmm(self.out_bias, hidden, self.out_weight)


def pair_slope(points: Tensor, labels: Tensor, valid: Tensor, balance: bool) -> Tensor:
    """The gradient, by each network's points, of the mean of (y′ − d′)² over all their pairs.

    y′ is 0 for equal labels and 1 for others; d′ is the distance, whose gradient is taken for zero where two points coincide.
    With ``balance``, equal and unequal pairs weigh the same together, where there are both.

    >>> torch = need_torch()
    >>> points, labels = torch.tensor([[[0.0], [0.5], [1.0]]]), torch.tensor([[0, 0, 1]])
    >>> pair_slope(points, labels, torch.ones(1, 3, dtype=torch.bool), False).ravel().mul(3).tolist()
    [-1.0, 2.0, -1.0]
    """
    torch = need_torch()
    apart = labels[:, :, None] != labels[:, None]
    weight = (valid[:, :, None] & valid[:, None]).to(points.dtype)  # of both orders of a pair
    weight.diagonal(dim1=1, dim2=2).zero_()
    if balance:
        unequal, equal = (
            part / part.sum(dim=(1, 2), keepdim=True).clamp(min=1) for part in (weight * apart, weight * ~apart)
        )
        weight = unequal + equal
    away = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")
    pull = torch.where(away > 0, (away - apart.to(away.dtype)) / away, 0).mul_(weight)
    pull.mul_(4 / weight.sum(dim=(1, 2), keepdim=True).clamp(min=1e-30))
    return points * pull.sum(dim=2, keepdim=True) - torch.bmm(pull, points)


@dataclass(frozen=True)
class Lessons:
    """What networks are taught: (network, task, label) rows in the order of networks, and a key of each network and task.

    >>> keys = np.arange(3, dtype=np.uint64)
    >>> Lessons(np.array([0, 0, 1]), np.arange(3), np.zeros(3, int), keys[:2], keys).counts.tolist()
    [2, 1]
    """

    network: NDArray[np.intp]
    task: NDArray[np.intp]
    label: NDArray[np.intp]
    network_keys: Keys
    task_keys: Keys

    @property
    def counts(self) -> NDArray[np.int64]:
        """Rows of each network."""
        return np.bincount(self.network, minlength=len(self.network_keys))

    def order(self, seed: int, epoch: int) -> NDArray[np.intp]:
        """The rows of each network in an order of its own, another one in every epoch."""
        chance = uniform(seed, self.network_keys[self.network], self.task_keys[self.task], epoch)
        return np.lexsort((chance, self.network))

    def some(self, networks: NDArray[np.intp]) -> Lessons:
        """Those of some networks, which are numbered anew in the given order."""
        place = np.full(len(self.network_keys), -1)
        place[networks] = np.arange(len(networks))
        rows = np.flatnonzero(place[self.network] >= 0)
        rows = rows[np.argsort(place[self.network[rows]], kind="stable")]
        return Lessons(
            place[self.network[rows]], self.task[rows], self.label[rows], self.network_keys[networks], self.task_keys
        )


def taught(
    start: Layers, rows: Tensor, lessons: Lessons, *, epochs: int, batch_size: int, learning_rate: float, balance: bool,
    seed: int, told: Callable[[int], None] | None = None,
) -> Iterator[tuple[NDArray[np.intp], Layers]]:  # fmt: skip
    """Copies of one network, each taught its own lessons by Adam: yields groups of networks as large as memory allows.

    A step takes ``batch_size`` tasks of every network that has so many left, embeds each once, and uses all their pairs.
    """
    n_inputs, hidden = start.weight.shape[1:]
    size = hidden * (n_inputs + start.out_weight.shape[2] + 1)
    per_network = 6 * size + batch_size * (n_inputs + 2 * hidden + 4 * batch_size * start.out_weight.shape[2])
    group = max(1, NUMBERS // per_network)
    # Networks with most to learn first: those that have a batch left are then always the first of a group.
    order = np.argsort(-lessons.counts, kind="stable")
    done = 0
    for begin in range(0, len(order), group):
        networks = order[begin : begin + group]
        own = Layers(*(part.repeat(len(networks), 1, 1) for part in start))
        _teach(own, rows, lessons.some(networks), epochs, batch_size, learning_rate, balance, seed)
        yield networks, own
        done += len(networks)
        if told is not None:
            told(done)


def _teach(
    own: Layers, rows: Tensor, lessons: Lessons, epochs: int, batch_size: int, learning_rate: float, balance: bool, seed: int
) -> None:  # fmt: skip
    torch = need_torch()
    counts = lessons.counts
    begins = np.concatenate([[0], np.cumsum(counts)])
    moments = [(torch.zeros_like(part), torch.zeros_like(part)) for part in own]
    steps = np.zeros(len(counts))
    for epoch in range(epochs):
        shuffled = lessons.order(seed, epoch)
        for first in range(0, int(counts.max(initial=0)), batch_size):
            active = int((counts > first + 1).sum())  # a single task makes no pair
            if active == 0:
                break
            width = min(batch_size, int(counts[0]) - first)
            column = first + np.arange(width)
            valid = column < counts[:active, None]
            chosen = shuffled[np.where(valid, begins[:active, None] + column, 0)]
            steps[:active] += 1
            live = Layers(*(part[:active] for part in own))
            labels = torch.from_numpy(np.asarray(lessons.label[chosen], dtype=np.int64))
            slopes = live.slopes(rows[torch.from_numpy(lessons.task[chosen])], labels, torch.from_numpy(valid), balance)
            fading = [torch.as_tensor(1 - decay ** steps[:active], dtype=rows.dtype)[:, None, None] for decay in DECAYS]
            for part, slope, (mean, square) in zip(live, slopes, moments, strict=True):
                _adam(part, slope, mean[:active], square[:active], fading, learning_rate)


def _adam(
    part: Tensor, slope: Tensor, mean: Tensor, square: Tensor, fading: list[Tensor], learning_rate: float
) -> None:
    """A step of Adam in place; every network counts its own steps."""
    mean.lerp_(slope, 1 - DECAYS[0])
    square.mul_(DECAYS[1]).addcmul_(slope, slope, value=1 - DECAYS[1])
    part.addcdiv_(mean / fading[0], (square / fading[1]).sqrt_().add_(TINY), value=-learning_rate)
