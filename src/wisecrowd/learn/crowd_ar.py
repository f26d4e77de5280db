"""CrowdAR: reliability of single votes (Cao et al.)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.crowd_network import ModelSizes
from wisecrowd.nn.deep_learner import DeepLearner
from wisecrowd.nn.deep_training import TrainedNetworks, TrainingJob
from wisecrowd.nn.vote_tensors import Batch, WorkerTable
from wisecrowd.nn.worker_averages import average_by_worker

if TYPE_CHECKING:
    from torch import Tensor

#: Units between the hidden units of a task and its difficulty.
DIFFICULTY_UNITS = 128


@method_class
class CrowdAR(DeepLearner):
    """Model of `CrowdLayer` in which every vote counts by its reliability, which depends on worker and task.

        P(r gives l | x_i) = softmax(W_rᵀ f(x_i))_l
        m_ir = sigmoid(a · ((e_r − d_i) ⊙ f(x_i)) + c)                    reliability, with a ≥ 0
        d_i = sigmoid(A₂ sigmoid(A₁ h(x_i))),   e_r = sigmoid(E_r)       difficulty and expertise: one number per class
        t_ir = m_ir onehot(y_ir) + (1 − m_ir) / K                         target of the vote
        loss = mean over votes of λ CE(t_ir, P(r gives · | x_i)) + (1 − λ) BCE(m_ir, 1[argmax f(x_i) = y_ir])

    An unreliable vote has a uniform target. Reliability is trained on the agreement of votes with the network, so
    that all votes are trusted in the first epochs (``warm_up``), in which the network knows too little.

    m does not train the network: the hidden units h(x) and f(x) are constants in it. Through t, the votes train m,
    since a vote that is hard to explain becomes less reliable; with ``through_target=False``, m is trained on
    agreement alone. a is a softplus and starts at 1, where others clip it after each step. E starts at 0, so that all
    workers are equal and their order does not matter.

    W is not a confusion matrix (see `CrowdLayer`): ``confusion_`` is estimated from the class probabilities and the
    votes.

    Choose it when tasks differ in difficulty and workers in their strengths. λ is that of Herde et al. (2024), and
    all other settings are those of `CrowdLayer`. In their benchmark, as published, W and E are given to the optimiser
    as slices without a gradient.

    Examples
    --------
    >>> from wisecrowd import CrowdAR, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> x = 3.0 * (simulation.truth == simulation.crowd.classes[1]) + rng.normal(size=200)
    >>> X = pd.DataFrame({"x": x}, index=simulation.truth.index)
    >>> model = CrowdAR(epochs=20).fit(X, simulation.crowd)
    >>> bool(model.score(X, simulation.truth) > 0.9), model.reliability_.shape, model.expertise_.shape
    (True, (10,), (10, 2))
    """

    references: ClassVar[tuple[str, ...]] = ("cao2023learning",)
    separable: ClassVar[bool] = True

    weight: float = parameter(
        default=0.9, help="Share λ of the loss of votes; the rest is the loss of their reliability."
    )
    warm_up: int = parameter(default=5, help="Number of epochs at the start in which every vote is trusted.")
    through_target: bool = parameter(
        default=True, help="Whether votes that are hard to explain lower their own reliability."
    )

    reliability_: NDArray[np.float64] = fitted(help="Mean reliability m of a worker's votes.", shape=("n_workers",))

    def _check_parameters(self, crowd: Crowd) -> None:
        super()._check_parameters(crowd)
        if not 0 <= self.weight <= 1 or self.warm_up < 0:
            raise UsageError(
                "weight must be a share, from 0 to 1, and warm_up a number of epochs, not negative; "
                f"got {self.weight} and {self.warm_up}"
            )

    def _make_worker_parameters(self, sizes: ModelSizes) -> dict[str, Any]:
        torch, n_workers, n_classes = import_torch(), sizes.n_workers, sizes.n_classes
        nn = torch.nn
        return {
            "W": WorkerTable(torch.eye(n_classes).repeat(n_workers, 1, 1)),
            "E": WorkerTable(torch.zeros(n_workers, n_classes)),
            "difficulty": nn.Sequential(
                nn.Linear(sizes.n_hidden, DIFFICULTY_UNITS),
                nn.Sigmoid(),
                nn.Linear(DIFFICULTY_UNITS, n_classes),
                nn.Sigmoid(),
            ),
            "a": torch.full((n_classes,), 1.0).expm1().log(),  # its softplus is 1
            "c": torch.zeros(1),
        }

    def _label_log_probs(self, batch: Batch) -> Tensor:
        torch = import_torch()
        scores = torch.bmm(batch.class_probs[batch.task, None], batch.worker_rows("W"))[:, 0]
        log_probs: Tensor = torch.log_softmax(scores, dim=1)
        return log_probs

    def _reliability_logits(self, batch: Batch) -> Tensor:
        """Return logit m of every vote."""
        torch = import_torch()
        d = batch.shared("difficulty")(batch.hidden.detach())  # (tasks, classes)
        e = torch.sigmoid(batch.worker_rows("E"))  # (votes, classes)
        a = torch.nn.functional.softplus(batch.shared("a"))
        f = batch.class_probs.detach().index_select(0, batch.task)
        logits: Tensor = ((e - d.index_select(0, batch.task)) * f) @ a + batch.shared("c")
        return logits

    def _loss(self, batch: Batch) -> Tensor:
        if batch.epoch < self.warm_up:
            return super()._loss(batch)
        torch, log_probs, logits = import_torch(), self._label_log_probs(batch), self._reliability_logits(batch)
        m = torch.sigmoid(logits if self.through_target else logits.detach())
        vote_log_probs = log_probs.gather(1, batch.label[:, None])[:, 0]
        vote_loss = -(m * vote_log_probs + (1 - m) * log_probs.mean(dim=1))
        agrees = (batch.class_probs.argmax(dim=1)[batch.task] == batch.label).to(logits)
        reliability_loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, agrees, reduction="none")
        return batch.weighted_mean(self.weight * vote_loss + (1 - self.weight) * reliability_loss)

    def _set_method_attributes(
        self,
        trained: TrainedNetworks,
        job: TrainingJob,
        X: NDArray[np.float64],
        crowd: Crowd,
        gold: NDArray[np.int32] | None,
    ) -> None:
        def reliability(batch: Batch) -> Tensor:
            return self._reliability_logits(batch).sigmoid()

        self.reliability_ = average_by_worker(trained.networks[0], X, crowd, reliability)

    @property
    def expertise_(self) -> NDArray[np.float64]:
        """Expertise e of every worker for every class, from 0 to 1, (n_workers, n_classes)."""
        self._check_fitted("posterior_")
        return np.asarray(self.network_.worker_table("E").detach().cpu().double().sigmoid().numpy())
