"""Annot-Mix: mixup of tasks, workers and labels (Herde et al. 2024)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError
from wisecrowd.nn.backend import need_torch
from wisecrowd.nn.crowd_network import CrowdNetwork
from wisecrowd.nn.mixup import mixing
from wisecrowd.nn.per_task_confusion import PerTaskConfusion, label_log_probs_of, trained_together
from wisecrowd.nn.training_set import TrainingSet

if TYPE_CHECKING:
    from torch import Tensor


@method_class
class AnnotMix(PerTaskConfusion):
    """A network and confusion matrices of worker and task, trained on mixtures of votes.

    A vote is a triple: features x, worker e_r (one-hot), label e_y (one-hot). Every vote of a batch is mixed with
    another one, λ ~ Beta(α, α):

        x̃ = λ x + (1 − λ) x',   ã = λ a_r + (1 − λ) a_r',   ỹ = λ e_y + (1 − λ) e_y'
        loss = −mean Σ_l ỹ_l log Σ_k f_k(x̃) π̃[k, l],   π̃ = softmax of rows of V h(ã, t̃) + b I

    so that not only between tasks, but also between workers, answers change gradually; that keeps a network from
    learning single votes by heart. t̃ is an embedding of what the last layer is given of x̃, from which no gradient goes
    back into the network, and h is a layer with dropout and a norm on ã and t̃ together. Features are mixed before the
    network, which therefore goes through as many rows as there are votes. Votes with weights mix as if multiplied by
    them. ``alpha=0`` mixes nothing.

    Truth that is known is mixed with truth that is known, and teaches the network alone: votes on such tasks
    are mixed like others, for a mixture of a task that is known and one that is not has no class.

    ``confusion_`` is the mean of a worker's matrices over the tasks that he voted on, each class weighted by f;
    ``posterior_`` weighs votes by one matrix per worker, estimated from f and the votes, as for any network. Nothing is
    mixed then. Where the authors draw first embeddings at random, ours are zero.

    On Music, in the setting of Herde et al. (2024) and over five seeds, the last epoch is right on 74.2 ± 0.2 % of the test
    tasks (theirs: 73.8 ± 1.1); with our smaller network, the default, on 71.8 %, and on 80.4 % of LabelMe's (two seeds;
    its best epoch has 86.2: trained for long, it fits the noise). Choose it when votes are few and noisy and there is
    time. Features must be such that a mixture of two tasks makes sense, as numbers and images do.

    >>> from wisecrowd import AnnotMix, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> made = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"x": 3.0 * (made.truth == made.crowd.classes[1]) + rng.normal(size=200)}, index=made.truth.index)
    >>> model = AnnotMix(epochs=20).fit(X, made.crowd)
    >>> bool(model.score(X, made.truth) > 0.9), model.confusion_.shape
    (True, (10, 2, 2))
    """

    references: ClassVar[tuple[str, ...]] = ("herde2024annotmix",)
    breaks: ClassVar[dict[str, str]] = PerTaskConfusion.breaks | {
        "worker_names_do_not_matter": "votes are mixed by position, and names decide on the order of workers",
    }

    alpha: float = parameter(default=1.0, help="votes are mixed in shares drawn from Beta(alpha, alpha)")
    embedding: int = parameter(default=128, help="numbers by which a worker, and a task, is described")
    diagonal: float = parameter(default=0.9, help="how often a worker is right before anything was learnt")

    def _check(self, crowd: Crowd) -> None:
        super()._check(crowd)
        if not self.alpha >= 0:
            raise UsageError(f"alpha must be positive, or 0 to mix nothing; got {self.alpha}")

    def _joint(self) -> dict[str, Any]:
        nn, size = need_torch().nn, self.embedding
        layers = (nn.Dropout(self.dropout), nn.Linear(2 * size, size), nn.BatchNorm1d(size), nn.ReLU())
        return {"meeting": nn.Sequential(*layers)}

    def _meet(self, network: CrowdNetwork, worker: Tensor, task: Tensor) -> Tensor:
        found: Tensor = trained_together(network.own.meeting, network, need_torch().cat([task, worker], dim=1))
        return found

    def _log_matrices(self, network: CrowdNetwork, worker: Tensor, hidden: Tensor) -> Tensor:
        return super()._log_matrices(network, worker, hidden.detach())

    def _lesson_loss(self, network: CrowdNetwork, training_set: TrainingSet, tasks: Tensor, epoch: int) -> Tensor:
        torch, inputs = need_torch(), training_set.inputs[tasks]
        classes = torch.eye(network.n_classes).to(inputs)
        row, worker, label, weight = training_set.vote_tensors.on(tasks)
        known = torch.full_like(tasks, -1) if training_set.known is None else training_set.known[tasks]
        given = torch.nonzero(known >= 0)[:, 0]
        votes, truths = mixing(len(row), self.alpha, inputs), mixing(len(given), self.alpha, inputs)
        hidden, logits = network(torch.cat([votes(inputs[row]), truths(inputs[given])]))
        log_p = torch.log_softmax(logits, dim=1)
        log_matrices = self._log_matrices(network, votes(self._embedded(network, worker)), hidden[: len(row)])
        said = votes(weight[:, None] * classes[label])
        true = truths(classes[known[given]])
        total = (said * label_log_probs_of(log_p[: len(row)], log_matrices)).sum() + (true * log_p[len(row) :]).sum()
        return -total / (said.sum() + true.sum()).clamp_min(1e-12)
