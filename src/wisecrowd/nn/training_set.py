"""Training sets: features, votes and gold classes of the tasks that a network is trained on, as tensors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.em.classifier_prior import find_training_tasks
from wisecrowd.errors import UsageError
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.crowd_network import CrowdNetwork, NetworkBuilder
from wisecrowd.nn.modules import PREDICTION_BATCH_SIZE
from wisecrowd.nn.seeding import get_sum_dtype, select_device
from wisecrowd.nn.vote_tensors import Batch, VoteTensors

if TYPE_CHECKING:
    from torch import Tensor


class HeldoutTasks(NamedTuple):
    """Tasks whose votes are held out of training to compare epochs.

    Attributes
    ----------
    features : ndarray of shape (n_tasks, ...)
        Features of the tasks.
    votes : Crowd
        Votes on the tasks.

    Examples
    --------
    >>> HeldoutTasks(np.zeros((1, 2)), Crowd.from_triples([("t1", "ann", "cat")])).votes.n_votes
    1
    """

    features: NDArray[np.float64]
    votes: Crowd


@dataclass
class TrainingSet:
    """Tasks to train on, as tensors; their codes count the training tasks only.

    Attributes
    ----------
    inputs : Tensor of shape (n_tasks, ...)
        Prepared features.
    vote_tensors : VoteTensors
        Votes on the tasks.
    gold : Tensor of shape (n_tasks,) or None
        True class of each task, −1 where it is unknown; None if no truth is known.
    heldout : HeldoutTasks or None
        Tasks whose votes are held out.
    crowd : Crowd
        Votes on the training tasks.

    Examples
    --------
    >>> builder = NetworkBuilder(
    ...     classifier="linear", input_shape=(1,), n_workers=2, n_classes=2, hidden=1, dropout=0.0,
    ...     make_worker_parameters=lambda sizes: {},
    ... )
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "cat"), ("t2", "bob", "dog")])
    >>> network, training_set = prepare_training(
    ...     builder, np.array([[-1.0], [1.0]]), crowd, None, validation=0.0, random_state=0, device="cpu", precision="double"
    ... )
    >>> training_set.task_weights(import_torch().tensor([0, 1])).tolist()
    [1.0, 2.0]
    """

    inputs: Tensor
    vote_tensors: VoteTensors
    gold: Tensor | None
    heldout: HeldoutTasks | None
    crowd: Crowd

    def __len__(self) -> int:
        return len(self.inputs)

    def task_weights(self, tasks: Tensor) -> Tensor:
        """Return the weights of tasks in the mean loss: the weight of their votes, and one for a gold class.

        Parameters
        ----------
        tasks : Tensor of int
            Task codes.

        Returns
        -------
        Tensor of shape (n_selected_tasks,)
        """
        return self._task_weights[tasks]

    @cached_property
    def _task_weights(self) -> Tensor:
        torch = import_torch()
        vote_weights = self.vote_tensors.weight.cpu().double()  # not every device has double precision
        cumulative = torch.nn.functional.pad(vote_weights, (1, 0)).cumsum(0)
        weights: Tensor = cumulative[self.vote_tensors.offset.cpu()].diff().to(get_sum_dtype(self.inputs.device))
        weights = weights.to(self.inputs.device)
        return weights if self.gold is None else weights + (self.gold >= 0)

    def make_batch(self, network: CrowdNetwork, tasks: Tensor, epoch: int = 0) -> Batch:
        """Apply a network to some tasks and gather the votes on them.

        Parameters
        ----------
        network : CrowdNetwork
            Network.
        tasks : Tensor of int
            Task codes.
        epoch : int, default 0
            Number of completed epochs.

        Returns
        -------
        Batch
        """
        inputs = self.inputs.index_select(0, tasks)
        gold = None if self.gold is None else self.gold.index_select(0, tasks)
        votes = self.vote_tensors.select_tasks(tasks)
        return Batch(network, inputs, *network(inputs), *votes, gold=gold, epoch=epoch)

    def compute_logits(self, network: CrowdNetwork) -> Tensor:
        """Return the logits of all tasks, without dropout and gradients.

        Parameters
        ----------
        network : CrowdNetwork
            Network.

        Returns
        -------
        Tensor of shape (n_tasks, n_classes)
        """
        torch = import_torch()
        with network.eval_mode(), torch.no_grad():
            blocks = torch.split(self.inputs, PREDICTION_BATCH_SIZE)
            logits: Tensor = network.head(torch.cat([network.compute_hidden(block) for block in blocks]))
        return logits

    def with_votes(self, votes: Crowd) -> Self:
        """Return the same tasks with other votes and without held-out tasks.

        Parameters
        ----------
        votes : Crowd
            Votes on the training tasks.

        Returns
        -------
        TrainingSet
        """
        return replace(self, vote_tensors=VoteTensors.from_crowd(votes, like=self.inputs), crowd=votes, heldout=None)


def prepare_training(
    builder: NetworkBuilder,
    X: NDArray[np.float64],
    crowd: Crowd,
    gold: NDArray[np.int32] | None,
    *,
    validation: float,
    random_state: int,
    device: str,
    precision: str,
) -> tuple[CrowdNetwork, TrainingSet]:
    """Build a network and the tasks to train it on.

    Parameters
    ----------
    builder : NetworkBuilder
        Builder of the network.
    X : ndarray of shape (n_tasks, ...)
        Features of all tasks.
    crowd : Crowd
        All votes.
    gold : ndarray of shape (n_tasks,) or None
        Known classes, −1 where unknown.
    validation : float
        Share of the tasks with votes whose votes are held out.
    random_state : int
        Seed of the weights and of the choice of held-out tasks.
    device : str
        Device, as in `select_device`.
    precision : {"single", "double"}
        Precision of the network.

    Returns
    -------
    network : CrowdNetwork
        Network on the device, with worker parameters initialised from the training votes.
    training_set : TrainingSet

    Examples
    --------
    >>> builder = NetworkBuilder(
    ...     classifier="linear", input_shape=(1,), n_workers=2, n_classes=2, hidden=1, dropout=0.0,
    ...     make_worker_parameters=lambda sizes: {},
    ... )
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "cat"), ("t2", "bob", "dog")])
    >>> network, training_set = prepare_training(
    ...     builder, np.array([[-1.0], [1.0]]), crowd, None, validation=0.0, random_state=0, device="cpu", precision="double"
    ... )
    >>> len(training_set), network.n_classes
    (2, 2)
    """
    torch = import_torch()
    is_heldout = select_heldout_tasks(crowd, gold, validation, random_state)
    tasks = np.flatnonzero(find_training_tasks(crowd.layout, gold) & ~is_heldout)
    training_votes = crowd[tasks]
    network = builder.build(random_state)
    rows = network.prepare_inputs(X[tasks], fit=True)
    builder.initialize(network, training_votes)
    selected_device = select_device(device)
    network.module.to(selected_device, torch.float32 if precision == "single" else torch.float64)
    inputs = network.to_tensor(rows)
    gold_classes = None
    if gold is not None and (gold[tasks] >= 0).any():
        gold_classes = torch.from_numpy(gold[tasks].astype(np.int64)).to(selected_device)
    heldout = HeldoutTasks(X[is_heldout], crowd[np.flatnonzero(is_heldout)]) if is_heldout.any() else None
    votes = VoteTensors.from_crowd(crowd, tasks, inputs)
    return network, TrainingSet(inputs, votes, gold_classes, heldout, training_votes)


def select_heldout_tasks(
    crowd: Crowd, gold: NDArray[np.int32] | None, share: float, random_state: int
) -> NDArray[np.bool_]:
    """Draw tasks whose votes are held out, among those with votes and without a known class.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    gold : ndarray of shape (n_tasks,) or None
        Known classes, −1 where unknown.
    share : float
        Share of the tasks to draw; 0 draws none.
    random_state : int
        Seed.

    Returns
    -------
    ndarray of bool of shape (n_tasks,)

    Raises
    ------
    UsageError
        If the share leaves no task on one of the two sides.

    Examples
    --------
    >>> crowd = Crowd.from_triples([(task, "ann", "cat") for task in range(10)])
    >>> int(select_heldout_tasks(crowd, None, share=0.3, random_state=0).sum())
    3
    """
    is_heldout = np.zeros(crowd.n_tasks, dtype=bool)
    if share == 0:
        return is_heldout
    has_votes = crowd.layout.has_votes
    tasks = np.flatnonzero(has_votes if gold is None else has_votes & (gold < 0))
    number = round(share * len(tasks))
    if not 0 < number < len(tasks):
        raise UsageError(
            f"validation={share} of {len(tasks):,} tasks with votes holds out none or all of them; choose another share, or 0"
        )
    is_heldout[np.random.default_rng(random_state).choice(tasks, size=number, replace=False)] = True
    return is_heldout
