"""CoupledView: two networks and an aggregator that label the tasks for each other (Li et al., 2020), without gold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd import kernels
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import AnyCrowd
from wisecrowd.em.classifier_prior import e_step
from wisecrowd.em.initialization import apply_gold, compute_vote_shares
from wisecrowd.em.priors import estimate_crowd_prior, shrink_to_crowd
from wisecrowd.errors import UsageError
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.crowd_network import CrowdNetwork, ModelSizes
from wisecrowd.nn.deep_learner import DeepLearner
from wisecrowd.nn.deep_training import TrainedNetworks, TrainingJob, build_twin, train_networks
from wisecrowd.nn.trainer import Trainer
from wisecrowd.nn.training_set import TrainingSet

if TYPE_CHECKING:
    from torch import Tensor

#: Smallest share of tasks that one side learns from the other, however often that one is wrong.
MIN_SHARE = 0.1


@method_class
class CoupledView(DeepLearner):
    """Two networks of the features and an aggregator of the votes, each of which learns from the labels of the other side.

    The aggregator is naive Bayes, q_i(k) ∝ Π_r π_r[k, y_ir], with labels yˡ = argmax q. The labels yᵈ of the networks
    change only where both networks agree. After every epoch past the first ``warmup`` epochs:

        π is counted against yᵈ, on the tasks with the smallest −log q_i(yᵈ_i), a share of 1 − β e; each network is
        trained on yˡ, in every batch on the tasks with the smallest loss of the *other* network, a share of 1 − β e,
        with classes weighted by the inverse of their frequency in yˡ.

    e is the error rate of the side that teaches. Li et al. measure it on tasks with known truth. **Here no truth is
    known**, and e is one number for both sides: the mean uncertainty of naive Bayes about the first labels, 1 −
    mean_i max_k q_i(k), with matrices counted against the soft vote. It is too small where workers make the same
    mistakes; ``beta``, which the paper sets from 1 to 2, compensates for it.

    Two more things differ from the paper. The first labels are those of naive Bayes against the soft vote, which
    breaks ties of the majority, and the omitted share grows from zero to β e during the warm-up. The second filter of
    the paper, on losses far from their mean, is omitted.

    ``predict_proba`` is the mean of both networks. ``confusion_`` is estimated from the class probabilities and the
    votes. A gold task has its known class on both sides and is never omitted.

    Choose it when votes are few and features are informative.

    Examples
    --------
    >>> from wisecrowd import CoupledView, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> x = 3.0 * (simulation.truth == simulation.crowd.classes[1]) + rng.normal(size=200)
    >>> X = pd.DataFrame({"x": x}, index=simulation.truth.index)
    >>> model = CoupledView(epochs=20).fit(X, simulation.crowd)
    >>> bool(model.score(X, simulation.truth) > 0.9), bool(0 < model.doubt_ < 0.5)
    (True, True)
    """

    references: ClassVar[tuple[str, ...]] = ("li2020coupled",)
    predicts_votes: ClassVar[bool] = False

    beta: float = parameter(
        default=1.5, help="Number of tasks omitted per task that is expected to have a wrong label."
    )
    warmup: int | None = parameter(
        default=None, help="Number of epochs on the first labels; None for a fifth of all epochs."
    )

    twin_: CrowdNetwork = fitted(help="Second trained network.")
    doubt_: float = fitted(help="Expected error rate e of the first labels.")

    def _check_parameters(self, crowd: Crowd) -> None:
        super()._check_parameters(crowd)
        if not self.beta >= 0:
            raise UsageError(f"beta must be 0 or more; got {self.beta}")
        if self.warmup is not None and self.warmup < 0:
            raise UsageError(f"warmup must be 0 or more; got {self.warmup}")

    def _count_matrices(self, votes: AnyCrowd) -> int:
        return 0

    def _make_worker_parameters(self, sizes: ModelSizes) -> dict[str, Any]:
        return {}

    def _train(self, job: TrainingJob, network: CrowdNetwork) -> TrainedNetworks:
        networks = (network, build_twin(job, network, self.random_state + 1))
        warmup = job.settings.epochs // 5 if self.warmup is None else self.warmup
        views = _ViewLoss(networks, job.training_set, self.beta, warmup)
        network_labels = import_torch().from_numpy(views.first_posterior.argmax(axis=1))
        trained = train_networks(job, networks, views, separable=False, buffers={"network_labels": network_labels})
        return TrainedNetworks(networks, trained.history, {"doubt_": views.doubt})

    def _set_networks(self, networks: Sequence[CrowdNetwork]) -> None:
        self.network_, self.twin_ = networks

    @property
    def _networks(self) -> tuple[CrowdNetwork, ...]:
        return self.network_, self.twin_

    def _worker_label_probs(self, X: NDArray[np.float64], workers: NDArray[np.intp]) -> NDArray[np.float64]:
        return np.einsum("nk,rkl->nrl", self._predict_proba(X), self.confusion_of(workers))


class _ViewLoss:
    """Labels of either side for the other, and the loss of both networks on a batch."""

    def __init__(self, networks: Sequence[CrowdNetwork], training_set: TrainingSet, beta: float, warmup: int) -> None:
        self.networks, self.training_set, self.beta, self.warmup = networks, training_set, beta, warmup
        self.crowd = training_set.crowd
        self.gold = None if training_set.gold is None else training_set.gold.cpu().numpy().astype(np.int32)
        self.first_posterior = aggregate_by_naive_bayes(self.crowd, compute_vote_shares(self.crowd), self.gold)
        self.doubt = float(1 - self.first_posterior.max(axis=1).mean())
        self.epoch = -1
        self._set_vote_labels(self.first_posterior.argmax(axis=1))

    def __call__(self, tasks: Tensor, trainer: Trainer) -> Tensor:
        """Return the loss of each network on the tasks with the smallest loss of the other one, summed."""
        torch, epoch, gold = import_torch(), len(trainer.history), self.training_set.gold
        if epoch >= self.warmup and epoch != self.epoch:
            self._relabel(trainer.model.network_labels)
        self.epoch = epoch
        warmth = min(1.0, (epoch + 1) / self.warmup) if epoch < self.warmup else 1.0
        targets = self.vote_labels[tasks]
        logits = [network(self.training_set.inputs[tasks])[1] for network in self.networks]
        losses = [torch.nn.functional.cross_entropy(output, targets, reduction="none") for output in logits]
        total = torch.zeros(()).to(self.training_set.inputs)
        for own_loss, other_loss in (losses, losses[::-1]):
            rank = other_loss.detach()
            if gold is not None:
                rank = torch.where(gold[tasks] >= 0, -1.0, rank)
            selected = torch.argsort(rank, stable=True)[: self._count_selected(len(tasks), warmth)]
            weight = self.class_weight[targets[selected]]
            total = total + (weight * own_loss[selected]).sum() / weight.sum()
        return total

    def _count_selected(self, n_tasks: int, warmth: float = 1.0) -> int:
        """Return the number of tasks that one side learns from the other."""
        share = max(MIN_SHARE, 1 - warmth * self.beta * self.doubt)
        return max(1, round(share * n_tasks))

    def _relabel(self, network_labels: Any) -> None:
        """Update the labels of the networks where both agree, and the labels of the aggregator from them."""
        torch, training_set = import_torch(), self.training_set
        first, second = (training_set.compute_logits(network).argmax(dim=1) for network in self.networks)
        network_labels.copy_(torch.where(first == second, first, network_labels))
        if training_set.gold is not None:
            network_labels.copy_(torch.where(training_set.gold >= 0, training_set.gold, network_labels))
        labels = network_labels.cpu().numpy()
        targets = np.eye(self.crowd.n_classes)[labels]
        certainty = aggregate_by_naive_bayes(self.crowd, targets, self.gold)[np.arange(len(labels)), labels]
        targets[np.argsort(-certainty, kind="stable")[self._count_selected(len(labels)) :]] = 0
        self._set_vote_labels(aggregate_by_naive_bayes(self.crowd, targets, self.gold).argmax(axis=1))

    def _set_vote_labels(self, labels: NDArray[np.intp]) -> None:
        """Set the labels of the aggregator and the weights of their classes."""
        torch, inputs = import_torch(), self.training_set.inputs
        count = np.bincount(labels, minlength=self.crowd.n_classes)
        weight = len(labels) / np.maximum(count, 1) / len(count)
        self.class_weight: Tensor = torch.from_numpy(weight).to(inputs)
        self.vote_labels: Tensor = torch.from_numpy(labels).to(inputs.device)


def aggregate_by_naive_bayes(
    crowd: Crowd, targets: NDArray[np.float64], gold: NDArray[np.int32] | None = None
) -> NDArray[np.float64]:
    """Return the posterior of naive Bayes with confusion matrices counted against targets and a uniform class prior.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    targets : ndarray of shape (n_tasks, n_classes)
        Class probabilities of the tasks; a task with a row of zeros does not count.
    gold : ndarray of shape (n_tasks,), optional
        Known classes, −1 where unknown.

    Returns
    -------
    ndarray of shape (n_tasks, n_classes)

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t2", "ann", "dog"), ("t2", "bob", "cat")])
    >>> aggregate_by_naive_bayes(crowd, np.eye(2)).argmax(axis=1).tolist()
    [0, 1]
    """
    tally = kernels.tally(crowd.layout, apply_gold(targets.copy(), gold))
    label_probs = shrink_to_crowd(tally, crowd.pairs, *estimate_crowd_prior(tally, crowd.pairs))
    posterior, _ = e_step(crowd.layout, np.full(targets.shape, 1 / targets.shape[1]), label_probs, gold)
    return posterior
