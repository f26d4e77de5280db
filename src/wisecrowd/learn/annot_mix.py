"""Annot-Mix: mixup of tasks, workers and labels (Herde et al., 2024)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.initialization import apply_gold
from wisecrowd.errors import UsageError
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.crowd_network import CrowdNetwork, ModelSizes
from wisecrowd.nn.deep_learner import DeepLearner
from wisecrowd.nn.deep_training import TrainedNetworks, TrainingJob
from wisecrowd.nn.mixup import draw_mixup
from wisecrowd.nn.per_task_confusion import DIAGONAL_HELP, EMBEDDING_HELP, PerTaskConfusion, apply_batch_layers
from wisecrowd.nn.schedules import ScheduleName
from wisecrowd.nn.softmax_confusion import mix_label_log_probs
from wisecrowd.nn.trainer import OptimiserName
from wisecrowd.nn.training_set import TrainingSet
from wisecrowd.nn.vote_loss import VoteLoss
from wisecrowd.nn.vote_tensors import MIN_TOTAL_WEIGHT, Batch

if TYPE_CHECKING:
    from torch import Tensor


@method_class
class AnnotMix(DeepLearner):
    """Network with confusion matrices by worker and task, trained on mixtures of votes.

    A vote is a triple: features x, worker e_r (one-hot) and label e_y (one-hot). Every vote of a batch is mixed with
    another one, λ ~ Beta(α, α):

        x̃ = λ x + (1 − λ) x',   ã = λ a_r + (1 − λ) a_r',   ỹ = λ e_y + (1 − λ) e_y'
        loss = −mean Σ_l ỹ_l log Σ_k f_k(x̃) π̃[k, l],   π̃ = softmax of rows of V h(ã, t̃) + b I

    Label probabilities then change gradually between tasks and between workers, which keeps the network from
    memorising single votes. t̃ is an embedding of the inputs of the last layer for x̃, which sends no gradient into
    the network. h is a layer with dropout and a norm on ã and t̃ together. Features are mixed before the network,
    which therefore processes as many rows as there are votes. A vote with a weight is mixed as if it were multiplied
    by it. ``alpha=0`` mixes nothing.

    Gold tasks are mixed with gold tasks and train the network alone. Votes on gold tasks are mixed like other votes.

    ``confusion_`` is the mean of a worker's matrices over the tasks that they labelled, with every class weighted by
    f. ``posterior_`` uses one matrix per worker, estimated from f and the votes. Embeddings start at zero, where the
    authors draw them.

    The defaults are the authors' settings for features: RAdam with a step size of 0.01 on a cosine schedule, for 50
    epochs. With a few hundred tasks, train for fewer epochs. Choose it when votes are few and noisy, and a mixture of
    the features of two tasks is meaningful, as for numbers and images. Benchmark: ``wisecrowd bench show
    annotmix2024``.

    Examples
    --------
    >>> from wisecrowd import AnnotMix, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> x = 3.0 * (simulation.truth == simulation.crowd.classes[1]) + rng.normal(size=200)
    >>> X = pd.DataFrame({"x": x}, index=simulation.truth.index)
    >>> model = AnnotMix(epochs=20).fit(X, simulation.crowd)
    >>> bool(model.score(X, simulation.truth) > 0.9), model.confusion_.shape
    (True, (10, 2, 2))
    """

    references: ClassVar[tuple[str, ...]] = ("herde2024annotmix",)
    breaks: ClassVar[dict[str, str]] = DeepLearner.breaks | {
        "worker_names_do_not_matter": "votes are mixed by position, and names decide on the order of workers",
    }

    alpha: float = parameter(default=1.0, help="Votes are mixed in shares from Beta(alpha, alpha); 0 mixes nothing.")
    embedding: int = parameter(default=128, help=EMBEDDING_HELP)
    diagonal: float = parameter(default=0.9, help=DIAGONAL_HELP)
    optimiser: OptimiserName = parameter(
        default="radam", help="Optimiser of the network: 'adam', 'adamw', 'radam' or 'sgd'."
    )
    epochs: int | Literal["auto"] | None = parameter(
        default=50, help="Number of epochs; 'auto' chooses it by hidden votes, None by the number of tasks."
    )
    learning_rate: float = parameter(default=1e-2, help="Step size.")
    schedule: ScheduleName = parameter(
        default="cosine", help="Schedule of the step size: 'constant', 'cosine', 'onecycle' or 'step'."
    )

    matrices_: NDArray[np.float64] = fitted(
        help="Mean confusion matrices.", shape=("n_workers", "n_classes", "n_classes"), finite=True
    )

    @property
    def _confusion(self) -> PerTaskConfusion:
        return PerTaskConfusion(self.embedding, self.diagonal, self._make_layers, self._combine, detaches_tasks=True)

    def _check_parameters(self, crowd: Crowd) -> None:
        super()._check_parameters(crowd)
        self._confusion.check_parameters()
        if not self.alpha >= 0:
            raise UsageError(f"alpha must be positive, or 0 to mix nothing; got {self.alpha}")

    def _make_layers(self) -> dict[str, Any]:
        """Return the layer of h."""
        nn, size = import_torch().nn, self.embedding
        layers = (nn.Dropout(self.dropout), nn.Linear(2 * size, size), nn.BatchNorm1d(size), nn.ReLU())
        return {"combining": nn.Sequential(*layers)}

    def _combine(self, network: CrowdNetwork, worker: Tensor, task: Tensor) -> Tensor:
        """Return h of worker and task embeddings."""
        inputs = import_torch().cat([task, worker], dim=1)
        combined: Tensor = apply_batch_layers(network.worker_parameters.combining, network, inputs)
        return combined

    def _make_worker_parameters(self, sizes: ModelSizes) -> dict[str, Any]:
        return self._confusion.make_parameters(sizes)

    def _label_log_probs(self, batch: Batch) -> Tensor:
        return self._confusion.label_log_probs(batch)

    def _make_vote_loss(self) -> VoteLoss:
        return MixupLoss(self._label_log_probs, self._loss, confusion=self._confusion, alpha=self.alpha)

    def _set_method_attributes(
        self,
        trained: TrainedNetworks,
        job: TrainingJob,
        X: NDArray[np.float64],
        crowd: Crowd,
        gold: NDArray[np.int32] | None,
    ) -> None:
        class_probs = apply_gold(self._predict_with(trained.networks, X), gold)
        self.matrices_ = self._confusion.average_matrices(trained.networks[0], X, crowd, class_probs)

    def confusion_of(self, workers: Iterable[int]) -> NDArray[np.float64]:
        """Return the mean confusion matrices of some workers.

        Parameters
        ----------
        workers : iterable of int
            Positions of workers in ``worker_index_``.

        Returns
        -------
        ndarray of shape (len(workers), n_classes, n_classes)
        """
        self._check_fitted("posterior_")
        return self.matrices_[self._check_positions(workers)]


@dataclass(frozen=True, kw_only=True)
class MixupLoss(VoteLoss):
    """Loss of mixtures of votes, and of mixtures of gold tasks.

    Attributes
    ----------
    label_log_probs, batch_loss, gold_loss : callable
        Functions as in `VoteLoss`.
    vote_weights : callable or None
        Function as in `VoteLoss`.
    separable : bool
        Whether the loss is the weighted mean of the losses of single tasks, as in `VoteLoss`.
    confusion : PerTaskConfusion
        Confusion matrices by worker and task.
    alpha : float
        Parameter of the beta distribution of shares.

    Examples
    --------
    >>> model = AnnotMix(alpha=0.5)
    >>> isinstance(MixupLoss(print, print, confusion=None, alpha=model.alpha), VoteLoss)
    True
    """

    confusion: PerTaskConfusion
    alpha: float

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
        torch, inputs = import_torch(), training_set.inputs[tasks]
        one_hot = torch.eye(network.n_classes).to(inputs)
        task, worker, label, weight = training_set.vote_tensors.select_tasks(tasks)
        gold = torch.full_like(tasks, -1) if training_set.gold is None else training_set.gold[tasks]
        gold_tasks = torch.nonzero(gold >= 0)[:, 0]
        mix_votes = draw_mixup(len(task), self.alpha, inputs)
        mix_gold = draw_mixup(len(gold_tasks), self.alpha, inputs)
        hidden, logits = network(torch.cat([mix_votes(inputs[task]), mix_gold(inputs[gold_tasks])]))
        class_log_probs = torch.log_softmax(logits, dim=1)
        embeddings = mix_votes(self.confusion.embed_workers(network, worker))
        log_matrices = self.confusion.log_matrices(network, embeddings, hidden[: len(task)])
        label_log_probs = mix_label_log_probs(class_log_probs[: len(task)], log_matrices)
        label_targets = mix_votes(weight[:, None] * one_hot[label])
        gold_targets = mix_gold(one_hot[gold[gold_tasks]])
        log_likelihood = (label_targets * label_log_probs).sum() + (gold_targets * class_log_probs[len(task) :]).sum()
        return -log_likelihood / (label_targets.sum() + gold_targets.sum()).clamp_min(MIN_TOTAL_WEIGHT)
