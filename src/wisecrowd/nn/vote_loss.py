"""Loss of a network on votes and gold classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.crowd_network import CrowdNetwork
from wisecrowd.nn.modules import PREDICTION_BATCH_SIZE
from wisecrowd.nn.training_set import TrainingSet
from wisecrowd.nn.vote_tensors import Batch

if TYPE_CHECKING:
    from torch import Tensor


def compute_vote_nll(batch: Batch, label_log_probs: Tensor) -> Tensor:
    """Return the negative log-likelihood of every vote.

    Parameters
    ----------
    batch : Batch
        Votes.
    label_log_probs : Tensor of shape (n_votes, n_classes)
        Log-probability of each label.

    Returns
    -------
    Tensor of shape (n_votes,)

    Examples
    --------
    >>> torch = import_torch()
    >>> one = torch.tensor([1])
    >>> batch = Batch(None, None, None, None, task=one, worker=one, label=one, weight=torch.ones(1))
    >>> compute_vote_nll(batch, torch.tensor([[-0.1, -2.0]])).tolist()
    [2.0]
    """
    nll: Tensor = import_torch().nn.functional.nll_loss(label_log_probs, batch.label, reduction="none")
    return nll


def compute_gold_cross_entropy(batch: Batch, is_gold: Tensor, gold: Tensor) -> Tensor:
    """Return the sum of −log f_z(x) over the tasks with a gold class z.

    Parameters
    ----------
    batch : Batch
        Tasks.
    is_gold : Tensor of bool of shape (n_tasks,)
        Tasks with a gold class.
    gold : Tensor of shape (n_gold_tasks,)
        Their classes.

    Returns
    -------
    Tensor
        A scalar.

    Examples
    --------
    >>> torch = import_torch()
    >>> votes = torch.zeros(0, dtype=torch.int64)
    >>> batch = Batch(None, None, None, torch.zeros(2, 4), task=votes, worker=votes, label=votes, weight=torch.zeros(0))
    >>> round(float(compute_gold_cross_entropy(batch, torch.tensor([True, False]), torch.tensor([3]))), 3)
    1.386
    """
    total: Tensor = import_torch().nn.functional.cross_entropy(batch.logits[is_gold], gold, reduction="sum")
    return total


@dataclass(frozen=True)
class VoteLoss:
    """Mean loss of the votes in a batch, in which a gold class counts like one vote that is certainly right.

    Attributes
    ----------
    label_log_probs : callable
        Function from a `Batch` to log P(label given task and worker) of every vote, (n_votes, n_classes).
    batch_loss : callable
        Function from a `Batch` to the mean loss of its votes.
    gold_loss : callable
        Function of (batch, is_gold, gold) that returns the sum of the losses of gold tasks.
    vote_weights : callable or None
        Function from a `Batch` to the weights of its votes, if they differ from those of the crowd.
    separable : bool
        Whether the loss is the weighted mean of the losses of single tasks, except for terms of the parameters alone.

    Examples
    --------
    >>> torch = import_torch()
    >>> loss = VoteLoss(lambda batch: batch.class_log_probs[batch.task], lambda batch: torch.tensor(1.0))
    >>> votes = torch.zeros(1, dtype=torch.int64)
    >>> batch = Batch(None, None, None, torch.zeros(1, 2), votes, votes, votes, torch.ones(1), gold=torch.tensor([1]))
    >>> round(float(loss.add_gold_loss(torch.tensor(1.0), batch)), 3)  # the mean of 1 and log 2
    0.847
    """

    label_log_probs: Callable[[Batch], Tensor]
    batch_loss: Callable[[Batch], Tensor]
    gold_loss: Callable[[Batch, Tensor, Tensor], Tensor] = compute_gold_cross_entropy
    vote_weights: Callable[[Batch], Tensor] | None = None
    separable: bool = False

    def __call__(self, network: CrowdNetwork, training_set: TrainingSet, tasks: Tensor, epoch: int) -> Tensor:
        """Return the mean loss of some training tasks.

        Parameters
        ----------
        network : CrowdNetwork
            Network to train.
        training_set : TrainingSet
            Training tasks.
        tasks : Tensor of int
            Task codes.
        epoch : int
            Number of completed epochs.

        Returns
        -------
        Tensor
            A scalar.
        """
        batch = training_set.make_batch(network, tasks, epoch)
        if self.vote_weights is not None:
            batch = replace(batch, weight=self.vote_weights(batch))
        return self.add_gold_loss(self.batch_loss(batch), batch)

    def add_gold_loss(self, vote_loss: Tensor, batch: Batch) -> Tensor:
        """Return the mean over votes and gold classes.

        Parameters
        ----------
        vote_loss : Tensor
            Mean loss of the votes.
        batch : Batch
            Votes and gold classes.

        Returns
        -------
        Tensor
            A scalar.
        """
        if batch.gold is None or not bool((batch.gold >= 0).any()):
            return vote_loss
        is_gold = batch.gold >= 0
        gold_loss = self.gold_loss(batch, is_gold, batch.gold[is_gold])
        total_weight = batch.weight.sum()
        return (total_weight * vote_loss + gold_loss) / (total_weight + is_gold.sum())

    def mean_vote_nll(self, network: CrowdNetwork, training_set: TrainingSet) -> float:
        """Return the mean negative log-likelihood of votes, which need not be training votes.

        Parameters
        ----------
        network : CrowdNetwork
            Network in evaluation mode.
        training_set : TrainingSet
            Tasks and votes.

        Returns
        -------
        float
        """
        torch = import_torch()
        total, weight = 0.0, 0.0
        codes = torch.arange(len(training_set), device=training_set.inputs.device)
        for tasks in codes.split(PREDICTION_BATCH_SIZE):
            with torch.no_grad():
                batch = training_set.make_batch(network, tasks)
                nll = compute_vote_nll(batch, self.label_log_probs(batch))
            total += float((batch.weight * nll).sum())
            weight += float(batch.weight.sum())
        return total / weight
