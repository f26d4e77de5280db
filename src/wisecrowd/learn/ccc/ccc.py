"""Coupled Confusion Correction: two networks that correct each other's worker matrices (Zhang et al.)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError, check_choice
from wisecrowd.learn.ccc._correction import (
    TrustedLabels,
    cluster_workers,
    compute_full_gradient,
    compute_head_gradient,
    list_voted_labels,
    scale_correction,
    select_trusted_labels,
)
from wisecrowd.learn.crowd_layer import (
    WORKER_L2_HELP,
    WORKER_STEPS_HELP,
    check_worker_steps,
    compute_layer_log_probs,
    compute_layer_scores,
    make_layer_matrices,
)
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.crowd_network import CrowdNetwork, ModelSizes
from wisecrowd.nn.deep_learner import DeepLearner
from wisecrowd.nn.deep_training import TrainedNetworks, TrainingJob, build_twin, train_networks
from wisecrowd.nn.process_group import current_process_group
from wisecrowd.nn.seeding import fork_random_state
from wisecrowd.nn.trainer import ParameterGroup, Trainer
from wisecrowd.nn.vote_tensors import Batch

if TYPE_CHECKING:
    from torch import Tensor

#: Default number of trusted labels: this share of the training tasks, at most `MAX_TRUSTED`.
TRUSTED_SHARE, MAX_TRUSTED = 0.2, 1000


@method_class
class CCC(DeepLearner):
    """Two networks with a crowd layer each, whose matrices are corrected by the labels that the other network trusts.

    Both start as `CrowdLayer`, from different weights. After ``warmup`` epochs, every epoch

    1. clusters the workers by K-means over their matrices T_r, since few have enough votes for a correction of their own;
    2. selects for each network the labels that it finds most probable, equally many of every class (``trusted`` in all), by
       which the *other* network is judged;

    and every step computes the change V of the matrices with which it would lead to a better network on trusted labels:

        θ̂(V) = θ − η ∇_θ L(θ, T + V),    G = ∂ L_meta(θ̂(V)) / ∂V at V = 0,    V = −γ max(T) G / max|G|

    θ and T then take one step of L(θ, T + V) with V fixed, and V is discarded. The prediction is the mean of the two
    networks. With ``gamma=0``, each network equals `CrowdLayer` to the bit.

    ``meta="head"`` looks ahead with the last layer alone, in closed form, at the cost of one pass of trusted tasks
    through the network. ``meta="full"`` differentiates through the whole step. V has a fixed size, so that a gradient
    of pure noise is applied with full strength; lower ``gamma`` for a weaker correction.

    T is not a confusion matrix (see `CrowdLayer`), and ``confusion_`` is estimated.

    Where the program of the authors differs from the paper, this class uses: the mean loss over votes (as the
    program; the paper divides by tasks), a new V in each step, groups for each network, and the largest T, updated in
    each epoch and by the workers of the batch. Different from both: a label that several workers give is trusted
    once, only the head moves in the step ahead, T has a lazy Adam of its own without weight decay, and dropout is off
    for trusted tasks. If the network is trained by SGD, ``worker_steps="network"`` is as in the paper, with
    ``worker_l2=l2`` as in the program. The paper's *best* accuracies are selected on the test set.

    Choose it where workers have few votes each and come in kinds, and a network would memorise their noise. Benchmark:
    ``wisecrowd bench show zhang2024ccc``.

    Examples
    --------
    >>> from wisecrowd import CCC, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> x = 3.0 * (simulation.truth == simulation.crowd.classes[1]) + rng.normal(size=200)
    >>> X = pd.DataFrame({"x": x}, index=simulation.truth.index)
    >>> model = CCC(epochs=20, n_groups=3).fit(X, simulation.crowd)
    >>> bool(model.score(X, simulation.truth) > 0.9), model.correction_.shape
    (True, (2, 3, 2, 2))
    >>> model.groups_.columns.tolist()
    ['first', 'second']
    """

    references: ClassVar[tuple[str, ...]] = ("zhang2024coupled",)
    predicts_votes: ClassVar[bool] = False

    worker_steps: Literal["own", "network"] = parameter(default="own", help=WORKER_STEPS_HELP)
    worker_l2: float = parameter(default=0.0, help=WORKER_L2_HELP)
    n_groups: int = parameter(default=25, help="Number of groups of workers that share a correction.")
    gamma: float = parameter(default=0.5, help="Size of a correction, relative to the largest entry of T.")
    warmup: int | None = parameter(
        default=None, help="Number of epochs without correction; None for a quarter of all epochs."
    )
    trusted: int | None = parameter(
        default=None,
        help="Number of labels that judge the other network; None for a fifth of the tasks, at most 1,000.",
    )
    meta: Literal["head", "full"] = parameter(
        default="head", help="Layers that look a step ahead: the last one ('head') or all ('full')."
    )

    twin_: CrowdNetwork = fitted(help="Second trained network.")
    group_: NDArray[np.int64] = fitted(help="Group of every worker by either network.", shape=(2, "n_workers"))
    correction_: NDArray[Any] = fitted(
        help="Mean of V over the last epoch, by network, group, class and label.",
        shape=(2, "n_groups", "n_classes", "n_classes"),
    )

    def _check_parameters(self, crowd: Crowd) -> None:
        super()._check_parameters(crowd)
        check_worker_steps(self.worker_steps, self.worker_l2)
        check_choice("meta", self.meta, ("head", "full"))
        if self.n_groups < 1 or (self.trusted is not None and self.trusted < 1):
            raise UsageError(f"n_groups and trusted must be 1 or more; got {self.n_groups} and {self.trusted}")
        if self.gamma < 0 or (self.warmup is not None and self.warmup < 0):
            raise UsageError(f"gamma and warmup must not be negative; got {self.gamma} and {self.warmup}")

    # ------------------------------------------------------------------ the model

    def _make_worker_parameters(self, sizes: ModelSizes) -> dict[str, Any]:
        return make_layer_matrices(sizes, sparse=self.worker_steps == "own")

    def _make_parameter_groups(self, network: CrowdNetwork, n_tasks: int) -> list[ParameterGroup]:
        return network.make_parameter_groups(self.worker_learning_rate, self.l2 / n_tasks, self.worker_l2 / n_tasks)

    def _label_log_probs(self, batch: Batch) -> Tensor:
        return compute_layer_log_probs(batch)

    # ------------------------------------------------------------------ training

    def _train(self, job: TrainingJob, network: CrowdNetwork) -> TrainedNetworks:
        torch = import_torch()
        networks = (network, build_twin(job, network, self.random_state + 1))
        loss = _CoupledLoss(self, job, networks)
        with fork_random_state(torch.device("cpu"), self.random_state + 1):
            twin_random_state = torch.get_rng_state()
        buffers = {"twin_random_state": twin_random_state, **loss.make_buffers()}
        trained = train_networks(job, networks, loss, separable=False, buffers=buffers)
        n_steps = int(trained.buffers["n_corrections"])
        attributes = {
            "group_": trained.buffers["group"].cpu().numpy() if n_steps else loss.cluster_workers(),
            "correction_": (trained.buffers["correction_sum"] / max(n_steps, 1)).cpu().numpy(),
        }
        return TrainedNetworks(networks, trained.history, attributes)

    def _set_networks(self, networks: Sequence[CrowdNetwork]) -> None:
        self.network_, self.twin_ = networks

    # ------------------------------------------------------------------ results

    @property
    def _networks(self) -> tuple[CrowdNetwork, ...]:
        return self.network_, self.twin_

    @property
    def groups_(self) -> pd.DataFrame:
        """Group of every worker by the first and the second network.

        They are the groups of ``correction_``, from the start of the last epoch; without correction, from the end.
        """
        group = self._check_fitted("group_")
        index = None if self.worker_index_ is None else self.worker_index_.rename("worker")
        return pd.DataFrame(group.T, index=index, columns=["first", "second"])

    @property
    def layer_(self) -> dict[str, Any]:
        """Matrices "T" of the first network and "T of the second", (n_workers, n_classes, n_classes)."""
        self._check_fitted("posterior_")
        tables = [network.worker_table("T").detach().cpu().numpy() for network in self._networks]
        return dict(zip(("T", "T of the second"), tables, strict=True))


class _CoupledLoss:
    """Sum of the losses of both networks on a batch, with the groups and trusted labels of the current epoch."""

    def __init__(self, method: CCC, job: TrainingJob, networks: Sequence[CrowdNetwork]) -> None:
        self.method, self.job, self.networks, self.training_set = method, job, networks, job.training_set
        size = method.trusted or min(MAX_TRUSTED, round(TRUSTED_SHARE * len(self.training_set)))
        n_classes, n_workers = self.training_set.crowd.n_classes, self.training_set.crowd.n_workers
        self.n_trusted = max(size, n_classes)
        self.n_groups = min(method.n_groups, n_workers)
        self.warmup = job.settings.epochs // 4 if method.warmup is None else method.warmup
        self.labels = list_voted_labels(self.training_set.vote_tensors, n_classes)
        # State of an epoch, one entry per network; it follows from the weights at its start. Groups and corrections are
        # results, so that they are buffers of the trainer, which checkpoints hold.
        self.epoch = -1
        self.trusted: list[TrustedLabels] = []
        self.largest: list[float] = []

    def make_buffers(self) -> dict[str, Tensor]:
        """Return the initial groups (networks, workers), the sum of corrections by network and group, and their number."""
        torch, inputs, crowd = import_torch(), self.training_set.inputs, self.training_set.crowd
        shape = (len(self.networks), self.n_groups, crowd.n_classes, crowd.n_classes)
        return {
            "group": torch.zeros(len(self.networks), crowd.n_workers, dtype=torch.int64, device=inputs.device),
            "correction_sum": inputs.new_zeros(shape),
            "n_corrections": torch.zeros((), dtype=torch.int64),
        }

    def __call__(self, tasks: Tensor, trainer: Trainer) -> Tensor:
        """Return the sum of both losses; their gradients are separate, since the networks share no parameters."""
        epoch = len(trainer.history)
        buffers: Any = trainer.model
        is_correcting = self.method.gamma > 0 and epoch >= self.warmup
        if is_correcting and epoch != self.epoch:
            self._start_epoch(epoch, buffers)
        rate = trainer.optimisers[0].param_groups[0]["lr"] if is_correcting else None
        first = self._network_loss(0, tasks, epoch, rate, buffers)
        with _borrow_random_state(buffers.twin_random_state):
            second = self._network_loss(1, tasks, epoch, rate, buffers)
        if is_correcting:
            buffers.n_corrections.add_(1)
        return first + second

    def _network_loss(self, number: int, tasks: Tensor, epoch: int, rate: float | None, buffers: Any) -> Tensor:
        """Return the loss of one network; ``rate`` is the step size of the look-ahead, None without correction."""
        network, vote_loss = self.networks[number], self.job.loss
        if rate is None:
            return vote_loss(network, self.training_set, tasks, epoch)
        batch = self.training_set.make_batch(network, tasks, epoch)
        correction = self._compute_correction(number, batch, rate, buffers)
        buffers.correction_sum[number] += correction
        corrected = batch.worker_rows("T") + correction[buffers.group[number][batch.worker]]
        scores = compute_layer_scores(batch, corrected)
        loss = import_torch().nn.functional.cross_entropy(scores, batch.label, reduction="none")
        return vote_loss.add_gold_loss(batch.weighted_mean(loss), batch)

    def _compute_correction(self, number: int, batch: Batch, rate: float, buffers: Any) -> Tensor:
        """Return V of every group, (n_groups, n_classes, n_classes)."""
        method, network, group = self.method, self.networks[number], buffers.group[number]
        task, label = self._next_trusted_labels(number, int(buffers.n_corrections))
        inputs = self.training_set.inputs[task]
        if method.meta == "head":
            with network.eval_mode(), import_torch().no_grad():
                hidden = network.compute_hidden(inputs)
            gradient = compute_head_gradient(batch, group, self.n_groups, rate, hidden, label)
        else:
            gradient = compute_full_gradient(batch, group, self.n_groups, rate, inputs, label)
        matrices = network.worker_rows("T", batch.worker).detach()
        largest = max(self.largest[number], float(matrices.max())) if len(matrices) else self.largest[number]
        return scale_correction(gradient, method.gamma, largest)

    def _next_trusted_labels(self, number: int, n_steps: int) -> TrustedLabels:
        """Return the next batch of the labels that the other network trusts, in a cycle."""
        trusted, size = self.trusted[1 - number], self.method.batch_size
        start = n_steps * size
        numbers = import_torch().arange(start, start + min(size, len(trusted.task)), device=trusted.task.device)
        position = numbers % len(trusted.task)
        return TrustedLabels(trusted.task[position], trusted.label[position])

    def _start_epoch(self, epoch: int, buffers: Any) -> None:
        """Set groups and trusted labels from the weights at the start of an epoch."""
        torch = import_torch()
        self.epoch, self.trusted, self.largest = epoch, [], []
        buffers.n_corrections.zero_()
        buffers.correction_sum.zero_()
        buffers.group.copy_(torch.from_numpy(self.cluster_workers()))
        for number, network in enumerate(self.networks):
            class_log_probs = torch.log_softmax(self.training_set.compute_logits(network), dim=1)
            trusted = select_trusted_labels(class_log_probs, self.labels, self.n_trusted)
            rng = np.random.default_rng([self.method.random_state, epoch, number])
            order = torch.from_numpy(rng.permutation(len(trusted.task)))
            self.trusted.append(TrustedLabels(*(codes[order.to(codes.device)] for codes in trusted)))
            self.largest.append(float(network.worker_table("T").detach().max()))

    def cluster_workers(self) -> NDArray[np.int64]:
        """Return the groups of the workers by their current matrices, (2, n_workers)."""
        tables = [network.worker_table("T").detach().cpu().numpy() for network in self.networks]
        groups = np.stack([cluster_workers(table, self.n_groups, self.method.random_state) for table in tables])
        # K-means may sum in another order in another process.
        return current_process_group().broadcast(groups, self.training_set.inputs.device)


@contextlib.contextmanager
def _borrow_random_state(state: Any) -> Iterator[None]:
    """Use and update another random state inside a block, so that the first network draws as if it were alone."""
    torch = import_torch()
    before = torch.get_rng_state()
    torch.set_rng_state(state.cpu())
    try:
        yield
    finally:
        state.copy_(torch.get_rng_state())
        torch.set_rng_state(before)
