"""Siamese networks that embed tasks with equal labels near each other and others at distance one.

A network has one hidden layer. Many networks are trained at once, as tensors with a leading axis of networks. The result of each
does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.complete.tllc._random_keys import draw_uniform
from wisecrowd.nn.backend import import_torch
from wisecrowd.utils.hashing import Keys

if TYPE_CHECKING:
    from torch import Tensor

#: Number of floats that training or prediction holds at a time for a group of networks.
GROUP_FLOATS = 2**25
#: Decay rates of the moments of Adam.
ADAM_DECAYS = (0.9, 0.999)
#: Constant in the denominator of Adam.
ADAM_EPSILON = 1e-8


class StackedNetworks(NamedTuple):
    """Networks with one hidden layer, stacked along the first axis.

    Examples
    --------
    >>> torch = import_torch()
    >>> networks = StackedNetworks(torch.zeros(2, 3, 4), torch.zeros(2, 1, 4), torch.zeros(2, 4, 5), torch.ones(2, 1, 5))
    >>> networks.embed(torch.zeros(2, 7, 3)).shape
    torch.Size([2, 7, 5])
    """

    weight: Tensor
    """(networks, inputs, hidden)."""
    bias: Tensor
    """(networks, 1, hidden)."""
    out_weight: Tensor
    """(networks, hidden, dimension)."""
    out_bias: Tensor
    """(networks, 1, dimension)."""

    @classmethod
    def initialize(cls, n_inputs: int, hidden: int, dimension: int, dtype: Any) -> StackedNetworks:
        """Return one network with random weights, uniform within 1/√inputs as in torch.

        Parameters
        ----------
        n_inputs : int
            Number of features.
        hidden : int
            Width of the hidden layer.
        dimension : int
            Dimension of the embedding.
        dtype : torch.dtype
            Type of the weights.

        Returns
        -------
        StackedNetworks
        """
        torch = import_torch()

        def draw(*shape: int, inputs: int) -> Tensor:
            return ((torch.rand(*shape, dtype=torch.float64) * 2 - 1) / max(inputs, 1) ** 0.5).to(dtype)

        return cls(
            draw(1, n_inputs, hidden, inputs=n_inputs),
            draw(1, 1, hidden, inputs=n_inputs),
            draw(1, hidden, dimension, inputs=hidden),
            draw(1, 1, dimension, inputs=hidden),
        )

    @classmethod
    def from_arrays(cls, arrays: tuple[NDArray[Any], ...], networks: NDArray[np.intp]) -> StackedNetworks:
        """Return some of the networks of numpy arrays.

        Parameters
        ----------
        arrays : tuple of ndarray
            Weights and biases in the order of the fields.
        networks : ndarray of int
            Positions of the networks.

        Returns
        -------
        StackedNetworks
        """
        torch = import_torch()
        return cls(*(torch.from_numpy(array[networks]) for array in arrays))

    def embed(self, rows: Tensor) -> Tensor:
        """Embed rows of each network.

        Parameters
        ----------
        rows : Tensor of shape (n_networks, n_rows, n_inputs)
            Features.

        Returns
        -------
        Tensor of shape (n_networks, n_rows, dimension)
        """
        torch = import_torch()
        hidden = torch.baddbmm(self.bias, rows, self.weight).relu()
        return torch.baddbmm(self.out_bias, hidden, self.out_weight)

    def embed_shared(self, rows: Tensor) -> Tensor:
        """Embed the same rows by all networks, whose first layers are one matrix product.

        Parameters
        ----------
        rows : Tensor of shape (n_rows, n_inputs)
            Features.

        Returns
        -------
        Tensor of shape (n_networks, n_rows, dimension)
        """
        torch = import_torch()
        n_networks, n_inputs, n_hidden = self.weight.shape
        wide = self.weight.transpose(0, 1).reshape(n_inputs, n_networks * n_hidden)
        hidden = torch.addmm(self.bias.reshape(1, -1), rows, wide).relu_()
        hidden = hidden.reshape(len(rows), n_networks, n_hidden).transpose(0, 1)
        return torch.baddbmm(self.out_bias, hidden, self.out_weight)

    def compute_gradients(self, rows: Tensor, labels: Tensor, valid: Tensor, balance: bool) -> StackedNetworks:
        """Compute the gradient of the loss over all pairs of rows, without autograd, which takes twice as long.

        Parameters
        ----------
        rows : Tensor of shape (n_networks, n_rows, n_inputs)
            Features.
        labels : Tensor of shape (n_networks, n_rows)
            Labels.
        valid : Tensor of bool, shape (n_networks, n_rows)
            Rows that count.
        balance : bool
            Give pairs with equal and with unequal labels the same total weight.

        Returns
        -------
        StackedNetworks
            Gradients in the place of the weights.
        """
        torch = import_torch()
        hidden = torch.baddbmm(self.bias, rows, self.weight).relu_()
        points = torch.baddbmm(self.out_bias, hidden, self.out_weight)
        point_gradient = compute_pair_gradient(points, labels, valid, balance)
        hidden_gradient = torch.bmm(point_gradient, self.out_weight.transpose(1, 2)).mul_(hidden > 0)
        return StackedNetworks(
            torch.bmm(rows.transpose(1, 2), hidden_gradient),
            hidden_gradient.sum(dim=1, keepdim=True),
            torch.bmm(hidden.transpose(1, 2), point_gradient),
            point_gradient.sum(dim=1, keepdim=True),
        )


def compute_pair_gradient(points: Tensor, labels: Tensor, valid: Tensor, balance: bool) -> Tensor:
    """Compute the gradient of the mean of (y′ − d′)² over all pairs of points of each network.

    y′ is 0 for equal labels and 1 for others. d′ is the distance, whose gradient is zero where two points coincide.

    Parameters
    ----------
    points : Tensor of shape (n_networks, n_points, dimension)
        Embedded tasks.
    labels : Tensor of shape (n_networks, n_points)
        Labels.
    valid : Tensor of bool, shape (n_networks, n_points)
        Points that count.
    balance : bool
        Give pairs with equal and with unequal labels the same total weight, where there are both.

    Returns
    -------
    Tensor of shape (n_networks, n_points, dimension)

    Examples
    --------
    >>> torch = import_torch()
    >>> points, labels = torch.tensor([[[0.0], [0.5], [1.0]]]), torch.tensor([[0, 0, 1]])
    >>> compute_pair_gradient(points, labels, torch.ones(1, 3, dtype=torch.bool), False).ravel().mul(3).tolist()
    [-1.0, 2.0, -1.0]
    """
    torch = import_torch()
    differs = labels[:, :, None] != labels[:, None]
    weight = (valid[:, :, None] & valid[:, None]).to(points.dtype)  # of both orders of a pair
    weight.diagonal(dim1=1, dim2=2).zero_()
    if balance:
        unequal, equal = (
            part / part.sum(dim=(1, 2), keepdim=True).clamp(min=1) for part in (weight * differs, weight * ~differs)
        )
        weight = unequal + equal
    distance = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")
    pull = torch.where(distance > 0, (distance - differs.to(distance.dtype)) / distance, 0).mul_(weight)
    pull.mul_(4 / weight.sum(dim=(1, 2), keepdim=True).clamp(min=1e-30))
    return points * pull.sum(dim=2, keepdim=True) - torch.bmm(pull, points)


@dataclass(frozen=True)
class NetworkVotes:
    """Training rows (network, task, label), sorted by network, and a random key of every network and task.

    Parameters
    ----------
    network, task, label : ndarray of shape (n_rows,)
        Columns of the training rows.
    network_keys : ndarray of uint64, shape (n_networks,)
        Key of every network.
    task_keys : ndarray of uint64, shape (n_tasks,)
        Key of every task.

    Examples
    --------
    >>> keys = np.arange(3, dtype=np.uint64)
    >>> NetworkVotes(np.array([0, 0, 1]), np.arange(3), np.zeros(3, int), keys[:2], keys).counts.tolist()
    [2, 1]
    """

    network: NDArray[np.intp]
    task: NDArray[np.intp]
    label: NDArray[np.intp]
    network_keys: Keys
    task_keys: Keys

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of rows of every network."""
        return np.bincount(self.network, minlength=len(self.network_keys))

    def shuffle(self, seed: int, epoch: int) -> NDArray[np.intp]:
        """Return the rows of every network in a random order.

        Parameters
        ----------
        seed : int
            Seed.
        epoch : int
            Number of the epoch.

        Returns
        -------
        ndarray of int, shape (n_rows,)
        """
        number = draw_uniform(seed, self.network_keys[self.network], self.task_keys[self.task], epoch)
        return np.lexsort((number, self.network))

    def select(self, networks: NDArray[np.intp]) -> NetworkVotes:
        """Return the rows of some networks, which are numbered in the given order.

        Parameters
        ----------
        networks : ndarray of int
            Positions of the networks.

        Returns
        -------
        NetworkVotes
        """
        position = np.full(len(self.network_keys), -1)
        position[networks] = np.arange(len(networks))
        rows = np.flatnonzero(position[self.network] >= 0)
        rows = rows[np.argsort(position[self.network[rows]], kind="stable")]
        return NetworkVotes(
            position[self.network[rows]],
            self.task[rows],
            self.label[rows],
            self.network_keys[networks],
            self.task_keys,
        )


def train_networks(
    start: StackedNetworks,
    rows: Tensor,
    votes: NetworkVotes,
    *,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    balance: bool,
    seed: int,
    callback: Callable[[int], None] | None = None,
) -> Iterator[tuple[NDArray[np.intp], StackedNetworks]]:
    """Train copies of one network, each on its own votes, in groups that fit in memory.

    A step takes ``batch_size`` tasks of every network that has as many left, embeds each task once, and uses all pairs.

    Parameters
    ----------
    start : StackedNetworks
        One network, to start from.
    rows : Tensor of shape (n_tasks, n_inputs)
        Features of all tasks.
    votes : NetworkVotes
        Training rows.
    epochs : int
        Number of passes over the rows of a network.
    batch_size : int
        Number of tasks in a step.
    learning_rate : float
        Learning rate of Adam.
    balance : bool
        Give pairs with equal and with unequal labels the same total weight.
    seed : int
        Seed of the order of the rows.
    callback : callable, optional
        Function called with the number of trained networks after every group.

    Yields
    ------
    networks : ndarray of int
        Positions of the networks of a group.
    trained : StackedNetworks
    """
    n_inputs, hidden = start.weight.shape[1:]
    dimension = start.out_weight.shape[2]
    size = hidden * (n_inputs + dimension + 1)
    per_network = 6 * size + batch_size * (n_inputs + 2 * hidden + 4 * batch_size * dimension)
    group_size = max(1, GROUP_FLOATS // per_network)
    # Networks with most rows come first, so that those with a batch left are always the first of a group.
    order = np.argsort(-votes.counts, kind="stable")
    n_trained = 0
    for first in range(0, len(order), group_size):
        networks = order[first : first + group_size]
        group = StackedNetworks(*(part.repeat(len(networks), 1, 1) for part in start))
        _train_group(group, rows, votes.select(networks), epochs, batch_size, learning_rate, balance, seed)
        yield networks, group
        n_trained += len(networks)
        if callback is not None:
            callback(n_trained)


def _train_group(
    group: StackedNetworks,
    rows: Tensor,
    votes: NetworkVotes,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    balance: bool,
    seed: int,
) -> None:
    """Train stacked networks in place."""
    # nn.trainer cannot be used: every network has its own rows and its own number of Adam steps.
    torch = import_torch()
    counts = votes.counts
    offsets = np.concatenate([[0], np.cumsum(counts)])
    moments = [(torch.zeros_like(part), torch.zeros_like(part)) for part in group]
    steps = np.zeros(len(counts))
    for epoch in range(epochs):
        shuffled = votes.shuffle(seed, epoch)
        for first in range(0, int(counts.max(initial=0)), batch_size):
            n_active = int((counts > first + 1).sum())  # a single task has no pair
            if n_active == 0:
                break
            width = min(batch_size, int(counts[0]) - first)
            column = first + np.arange(width)
            valid = column < counts[:n_active, None]
            batch = shuffled[np.where(valid, offsets[:n_active, None] + column, 0)]
            steps[:n_active] += 1
            active = StackedNetworks(*(part[:n_active] for part in group))
            labels = torch.from_numpy(np.asarray(votes.label[batch], dtype=np.int64))
            batch_rows = rows[torch.from_numpy(votes.task[batch])]
            gradients = active.compute_gradients(batch_rows, labels, torch.from_numpy(valid), balance)
            corrections = [
                torch.as_tensor(1 - decay ** steps[:n_active], dtype=rows.dtype)[:, None, None] for decay in ADAM_DECAYS
            ]
            for part, gradient, (mean, square) in zip(active, gradients, moments, strict=True):
                _step_adam(part, gradient, mean[:n_active], square[:n_active], corrections, learning_rate)


def _step_adam(
    part: Tensor, gradient: Tensor, mean: Tensor, square: Tensor, corrections: list[Tensor], learning_rate: float
) -> None:
    """Take a step of Adam in place; ``corrections`` are the bias corrections of every network."""
    mean.lerp_(gradient, 1 - ADAM_DECAYS[0])
    square.mul_(ADAM_DECAYS[1]).addcmul_(gradient, gradient, value=1 - ADAM_DECAYS[1])
    part.addcdiv_(mean / corrections[0], (square / corrections[1]).sqrt_().add_(ADAM_EPSILON), value=-learning_rate)
