"""What a network is taught: tasks, the votes on them, and the truth that is known, as tensors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.nn.backend import need_torch
from wisecrowd.nn.crowd_network import CrowdNetwork
from wisecrowd.nn.modules import BLOCK
from wisecrowd.nn.vote_tensors import Batch, VoteTensors

if TYPE_CHECKING:
    from torch import Tensor


@dataclass
class TrainingSet:
    """What a fit learns from, as tensors; tasks are numbered among those that teach."""

    inputs: Tensor
    vote_tensors: VoteTensors
    known: Tensor | None
    """The true class of each task, −1 where it is not known; None where no truth is."""
    held: tuple[NDArray[np.float64], Crowd] | None
    """Features of tasks that do not teach, and the votes on them, by which epochs are compared."""
    crowd: Crowd
    """Of the tasks that teach."""

    def __len__(self) -> int:
        return len(self.inputs)

    def weigh(self, tasks: Tensor) -> Tensor:
        """How much each of some tasks counts in the mean loss: the votes on it, and the truth that is known of it."""
        return self._weight[tasks]

    @cached_property
    def _weight(self) -> Tensor:
        torch = need_torch()
        weight = torch.nn.functional.pad(self.vote_tensors.weight.double(), (1, 0))
        found: Tensor = weight.cumsum(0)[self.vote_tensors.offset].diff()
        return found if self.known is None else found + (self.known >= 0)

    def see(self, network: CrowdNetwork, tasks: Tensor, epoch: int = 0) -> Batch:
        """Those tasks and the votes on them, through the network."""
        inputs = self.inputs[tasks]
        known = None if self.known is None else self.known[tasks]
        return Batch(network, inputs, *network(inputs), *self.vote_tensors.on(tasks), known=known, epoch=epoch)

    def logits(self, network: CrowdNetwork) -> Tensor:
        """Of all tasks, (tasks, classes), with dropout off and nothing to learn from."""
        torch = need_torch()
        with network.resting(), torch.no_grad():
            hidden = torch.cat([network.hidden(block) for block in torch.split(self.inputs, BLOCK)])
            found: Tensor = network.head(hidden)
        return found

    def only(self, votes: Crowd) -> Self:
        """The same tasks with some of their votes, nothing held out."""
        return replace(self, vote_tensors=VoteTensors.of(votes, like=self.inputs), crowd=votes, held=None)
