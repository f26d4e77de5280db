"""DoctorNet: one softmax per worker on a shared network, averaged over workers (Guan et al.)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import AnyCrowd
from wisecrowd.errors import UsageError, check_choice
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.crowd_network import CrowdNetwork, ModelSizes
from wisecrowd.nn.deep_learner import DeepLearner
from wisecrowd.nn.deep_training import TrainedNetworks, TrainingJob, train_networks
from wisecrowd.nn.trainer import ParameterGroup, Trainer
from wisecrowd.nn.training_set import TrainingSet
from wisecrowd.nn.vote_tensors import MIN_TOTAL_WEIGHT, Batch, WorkerTable

if TYPE_CHECKING:
    from torch import Tensor

#: Numbers in a block of label probabilities (tasks x workers x classes), to bound memory.
MAX_BLOCK_CELLS = 2**22
#: Smallest probability of a gold class in its loss.
MIN_GOLD_PROB = 1e-12


@method_class
class DoctorNet(DeepLearner):
    """Shared network of hidden units h(x) with a softmax for every worker, whose mean is the prediction.

        d_r(x) = softmax(D_rᵀ h(x)),   loss = mean over votes of −log d_r(x)[y] + λ/2 ‖D_r‖² / votes of r
        f(x) = Σ_r w_r(x) d_r(x),      w uniform                                         variant "DN"
                                       w = softmax_r(w_r)                                "WDN"
                                       w(x) = softmax_r(w_r · h(x) / √units)             "IWDN"

    The model has no true class: the prediction follows the workers. The weights w are trained in a second stage, with
    all other parameters fixed, to predict the mean label of a task. Only workers who did **not** label the task are
    averaged there, since the others have memorised it. ``weights_`` are the mean weights; a large weight means that a
    worker predicts the crowd, which need not be the truth. ``history_`` contains the epochs of both stages.

    A softmax per worker overfits when workers have a few dozen votes. λ (``head_l2``) shrinks it toward uniform
    probabilities, more so for fewer votes. With ``tied=True`` it is shrunk toward a softmax of all workers, d_r(x) =
    softmax((D + D_r)ᵀ h(x)), which workers with one or two votes need; the paper has no such term. The weights have
    the same ridge penalty, relative to the sum over tasks. A gold class is a target of f. The division by √units is
    ours, so that a step changes the weights of "IWDN" as much as those of "WDN".

    A step of the first stage changes the softmaxes of workers who voted. Averaging takes tasks x workers x classes
    computations, done in blocks. For large crowds, f averages a ``committee`` of the workers with the most votes. A
    softmax has (units + 1) x classes numbers per worker: 100,000 workers, 128 units and 8 classes need 0.4 GB, and
    three times as much in training.

    ``confusion_`` is estimated from f and the votes. Choose it as a baseline, or when the opinions of single workers
    matter (`predict_worker_proba`). A public port averages logits; Guan et al. average probabilities, and so does
    this class.

    Examples
    --------
    >>> from wisecrowd import DoctorNet, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> x = 3.0 * (simulation.truth == simulation.crowd.classes[1]) + rng.normal(size=200)
    >>> X = pd.DataFrame({"x": x}, index=simulation.truth.index)
    >>> model = DoctorNet(variant="WDN", epochs=20).fit(X, simulation.crowd)
    >>> bool(model.score(X, simulation.truth) > 0.9), bool(np.isclose(model.weights_.sum(), 1))
    (True, True)
    """

    references: ClassVar[tuple[str, ...]] = ("guan2018who",)
    separable: ClassVar[bool] = True

    variant: Literal["DN", "WDN", "IWDN"] = parameter(
        default="DN",
        help="Weights of the workers: 'DN' (equal), 'WDN' (one per worker) or 'IWDN' (dependent on the task).",
    )
    head_l2: float = parameter(
        default=1.0, help="Ridge penalty λ on a worker's softmax, relative to the loss summed over their votes."
    )
    tied: bool = parameter(
        default=False, help="Whether to add a softmax of all workers to that of each, for workers with few votes."
    )
    committee: int = parameter(default=2000, help="Largest number of workers to average: those with the most votes.")
    weight_epochs: int = parameter(default=10, help="Number of epochs in which the weights are trained.")
    weight_learning_rate: float = parameter(default=0.03, help="Step size of the weights.")

    committee_: NDArray[np.intp] = fitted(
        help="Positions of the workers who are averaged, in ascending order.", shape=("n_members",), codes="n_workers"
    )
    weights_: NDArray[np.float64] = fitted(help="Mean weight of every worker over the tasks.", shape=("n_workers",))

    def _check_parameters(self, crowd: Crowd) -> None:
        super()._check_parameters(crowd)
        check_choice("variant", self.variant, ("DN", "WDN", "IWDN"))
        if self.head_l2 < 0 or self.committee < 1 or self.weight_epochs < 1 or not self.weight_learning_rate > 0:
            raise UsageError(
                "head_l2 must not be negative, committee and weight_epochs must be 1 or more, and weight_learning_rate "
                f"positive; got {self.head_l2}, {self.committee}, {self.weight_epochs} and {self.weight_learning_rate}"
            )

    def _count_matrices(self, votes: AnyCrowd) -> int:
        return 0

    def _make_worker_parameters(self, sizes: ModelSizes) -> dict[str, Any]:
        torch, n_workers = import_torch(), sizes.n_workers
        softmaxes = {"D": WorkerTable(torch.zeros(n_workers, sizes.n_hidden + 1, sizes.n_classes))}
        if self.variant == "DN":
            return softmaxes
        n_inputs = 1 if self.variant == "WDN" else sizes.n_hidden + 1
        return softmaxes | {"w": WorkerTable(torch.zeros(n_workers, n_inputs))}

    def _initialize_parameters(self, network: CrowdNetwork, crowd: Crowd) -> None:
        """Add the votes per worker and the committee to the network, as constants."""
        assert crowd.worker is not None
        votes = np.bincount(crowd.worker, crowd.weight, minlength=crowd.n_workers)
        busiest = np.argsort(-votes, kind="stable")[: self.committee]
        network.worker_parameters.register_buffer("votes", import_torch().from_numpy(votes), persistent=False)
        _set_committee(network, np.sort(busiest[votes[busiest] > 0]))

    # ------------------------------------------------------------------ first stage: softmaxes of workers

    def _label_log_probs(self, batch: Batch) -> Tensor:
        torch = import_torch()
        logits = torch.bmm(_append_one(batch.hidden)[batch.task, None], batch.worker_rows("D"))[:, 0]
        log_probs: Tensor = torch.log_softmax(
            logits + batch.logits.index_select(0, batch.task) if self.tied else logits, dim=1
        )
        return log_probs

    def _loss(self, batch: Batch) -> Tensor:
        loss = super()._loss(batch)
        if self.head_l2 == 0:
            return loss
        squared_norm = batch.worker_rows("D").square().sum(dim=(1, 2))
        return loss + batch.weighted_mean(self.head_l2 / 2 * squared_norm / batch.shared("votes")[batch.worker])

    def _gold_loss(self, batch: Batch, is_gold: Tensor, gold: Tensor) -> Tensor:
        """Return the sum of −log f_z(x): the mean of the workers is the only prediction of the model."""
        probs = self._class_probs(batch.network, batch.hidden[is_gold], batch.logits[is_gold])
        return -probs.gather(1, gold[:, None]).clamp_min(MIN_GOLD_PROB).log().sum()

    # ------------------------------------------------------------------ second stage: weights of workers

    def _train(self, job: TrainingJob, network: CrowdNetwork) -> TrainedNetworks:
        trained = super()._train(job, network)
        if self.variant == "DN":
            return trained
        for name, weight in network.module.named_parameters():
            weight.requires_grad_(name == "worker_parameters.w")
        member_index = _invert_index(_get_committee(network), job.builder.n_workers).to(job.training_set.inputs.device)

        def make_groups(network: CrowdNetwork, n_tasks: int) -> list[ParameterGroup]:
            return network.make_parameter_groups(self.weight_learning_rate, self.l2 / n_tasks)

        def loss(tasks: Tensor, _: Trainer) -> Tensor:
            return self._weights_loss(network, job.training_set, tasks, member_index)

        path = None if job.checkpoint is None else job.checkpoint.with_stem(f"{job.checkpoint.stem}-weights")
        settings = replace(job.settings, epochs=self.weight_epochs)
        stage = replace(job, settings=settings, make_groups=make_groups, checkpoint=path)
        second = train_networks(stage, (network,), loss, separable=False)
        second.history.index += len(trained.history)
        return TrainedNetworks((network,), pd.concat([trained.history, second.history]))

    def _weights_loss(
        self, network: CrowdNetwork, training_set: TrainingSet, tasks: Tensor, member_index: Tensor
    ) -> Tensor:
        """Return the loss of the weighted mean of workers who did not label a task against its mean label."""
        torch = import_torch()
        network.module.eval()  # the softmaxes are fixed, so there is no dropout
        batch = training_set.make_batch(network, tasks)
        scores = self._weight_scores(network, batch.hidden)
        member = member_index[batch.worker]
        has_voted = torch.zeros_like(scores, dtype=torch.bool)
        has_voted[batch.task[member >= 0], member[member >= 0]] = True
        is_predicted = ~has_voted.all(dim=1)
        if not bool(is_predicted.any()):
            return 0 * scores.sum()
        log_weights = scores.masked_fill(has_voted, -math.inf)[is_predicted].log_softmax(dim=1)
        with torch.no_grad():
            log_probs = self._softmax_log_probs(network, batch.hidden[is_predicted], _get_committee(network))
        prediction = torch.logsumexp(log_weights[:, :, None] + log_probs, dim=1)
        ridge = self.head_l2 / 2 * self._committee_weights(network).square().sum() / len(training_set)
        return ridge - (_average_labels(batch)[is_predicted] * prediction).sum(dim=1).mean()

    # ------------------------------------------------------------------ the committee

    def _softmax_log_probs(self, network: CrowdNetwork, hidden: Tensor, workers: Tensor) -> Tensor:
        """Return log d_r(x) of some workers, (n_tasks, n_selected_workers, n_classes)."""
        D = network.worker_rows("D", workers)
        logits: Tensor = import_torch().einsum("nh,rhk->nrk", _append_one(hidden), D)
        return (logits + network.head(hidden)[:, None] if self.tied else logits).log_softmax(dim=2)

    def _weight_scores(self, network: CrowdNetwork, hidden: Tensor) -> Tensor:
        """Return the logarithms of the committee's weights up to a constant, (n_tasks, n_members)."""
        if self.variant == "DN":
            return hidden.new_zeros(len(hidden), len(_get_committee(network)))
        w = self._committee_weights(network)
        inputs = hidden.new_ones(len(hidden), 1) if self.variant == "WDN" else _append_one(hidden)
        return inputs @ w.T / math.sqrt(w.shape[1])

    def _committee_weights(self, network: CrowdNetwork) -> Tensor:
        """Return the parameters w of the committee."""
        return network.worker_rows("w", _get_committee(network))

    def _class_probs(self, network: CrowdNetwork, hidden: Tensor, logits: Tensor) -> Tensor:
        committee = _get_committee(network)
        weight = self._weight_scores(network, hidden).softmax(dim=1)
        size = max(1, MAX_BLOCK_CELLS // max(1, logits.numel()))
        probs = logits.new_zeros(logits.shape)
        for start in range(0, len(committee), size):
            block = slice(start, start + size)
            worker_probs = self._softmax_log_probs(network, hidden, committee[block]).exp()
            probs = probs + (weight[:, block, None] * worker_probs).sum(dim=1)
        return probs

    def _set_method_attributes(
        self,
        trained: TrainedNetworks,
        job: TrainingJob,
        X: NDArray[np.float64],
        crowd: Crowd,
        gold: NDArray[np.int32] | None,
    ) -> None:
        (network,) = trained.networks
        total = sum(
            self._weight_scores(network, hidden).softmax(dim=1).sum(dim=0).cpu().double().numpy()
            for _, hidden, _ in network.iterate_batches(X)
        )
        self.committee_ = np.asarray(_get_committee(network).cpu().numpy())
        self.weights_ = np.zeros(crowd.n_workers)
        self.weights_[self.committee_] = total / len(X)

    def restore_part(self, name: str, arrays: dict[str, NDArray[Any]]) -> CrowdNetwork:
        """Return a network, built from its saved arrays.

        Parameters
        ----------
        name : str
            Name of the fitted attribute.
        arrays : dict of ndarray
            Saved arrays.

        Returns
        -------
        CrowdNetwork
        """
        network = super().restore_part(name, arrays)
        _set_committee(network, self.committee_)
        return network


def _set_committee(network: CrowdNetwork, committee: NDArray[np.intp]) -> None:
    """Add the positions of the committee to the network."""
    members = import_torch().from_numpy(committee)
    network.worker_parameters.register_buffer("committee", members, persistent=False)


def _get_committee(network: CrowdNetwork) -> Tensor:
    """Return the positions of the committee."""
    committee: Tensor = network.worker_parameters.committee
    return committee


def _append_one(hidden: Tensor) -> Tensor:
    """Return hidden units and a one, whose weight is the bias."""
    padded: Tensor = import_torch().nn.functional.pad(hidden, (0, 1), value=1.0)
    return padded


def _invert_index(selected: Tensor, number: int) -> Tensor:
    """Return the position of each of ``number`` codes among the selected ones, −1 for the others."""
    torch = import_torch()
    index: Tensor = torch.full((number,), -1, device=selected.device)
    index[selected] = torch.arange(len(selected), device=selected.device)
    return index


def _average_labels(batch: Batch) -> Tensor:
    """Return the mean label of the votes on each task, or its gold class, (n_tasks, n_classes)."""
    torch = import_torch()
    mean = torch.zeros_like(batch.logits)
    mean.index_put_((batch.task, batch.label), batch.weight, accumulate=True)
    mean /= mean.sum(dim=1, keepdim=True).clamp_min(MIN_TOTAL_WEIGHT)
    return mean if batch.gold is None else torch.where(batch.gold[:, None] >= 0, batch.class_probs, mean)
