"""UnionNet: the labels of all workers as outcomes of one draw (Wei et al.)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import check_choice
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.crowd_network import CrowdNetwork, ModelSizes
from wisecrowd.nn.deep_learner import DeepLearner
from wisecrowd.nn.softmax_confusion import START_HELP, SURE_HELP, SoftmaxConfusion, mix_label_log_probs
from wisecrowd.nn.vote_loss import compute_vote_nll
from wisecrowd.nn.vote_tensors import Batch

if TYPE_CHECKING:
    from torch import Tensor


@method_class
class UnionNet(DeepLearner):
    """Network with one layer in which the labels of all workers are outcomes of a single draw.

        P(r gives l | x) = softmax over all (r, l) of Σ_k f_k(x) A_r[k, l]                           variant "A"
        P(r gives l | x) = Σ_k f_k(x) Θ_r[k, l],  Θ[k] = softmax over all (r, l) of A_r[k, l]        variant "B"

    A vote is one of workers x classes possible outcomes, so that the crowd is a single source and the choice of the
    worker is evidence too. `predict_worker_proba` returns label probabilities given the worker, P(r gives l | x) /
    Σ_l P(r gives l | x). ``confusion_`` is their value where f is certain, π_r[k, ·] = softmax(A_r[k, ·]). It holds
    for every f in variant "B", and only there in variant "A".

    The normaliser runs over all workers: a step costs time in proportion to workers x classes², and in variant "A" to
    tasks x workers x classes. Choose `CCEM` or a relative for large crowds, in which every single outcome is also
    improbable.

    A starts from the logarithm of the labels of each worker, counted against the soft vote as in the paper and shrunk
    toward the crowd, since zero counts would give −∞. From the identity, variant "B" starts almost uniform. The paper
    divides the votes of a task by their number, so that tasks have equal weight; here votes have equal weight.

    Benchmark: ``wisecrowd bench show all-learners``.

    Examples
    --------
    >>> from wisecrowd import UnionNet, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> x = 3.0 * (simulation.truth == simulation.crowd.classes[1]) + rng.normal(size=200)
    >>> X = pd.DataFrame({"x": x}, index=simulation.truth.index)
    >>> model = UnionNet(epochs=20).fit(X, simulation.crowd)
    >>> bool(model.score(X, simulation.truth) > 0.9), model.confusion_.shape
    (True, (10, 2, 2))
    """

    references: ClassVar[tuple[str, ...]] = ("wei2022deep",)
    separable: ClassVar[bool] = True

    variant: Literal["A", "B"] = parameter(
        default="B", help="Model: 'A', a softmax of mixed scores, or 'B', a mixture of softmaxes."
    )
    start: Literal["identity", "votes"] = parameter(default="votes", help=START_HELP)
    sure: float = parameter(default=1.0, help=SURE_HELP)

    @property
    def _confusion(self) -> SoftmaxConfusion:
        return SoftmaxConfusion(self.start, self.sure, sparse=False)

    def _check_parameters(self, crowd: Crowd) -> None:
        super()._check_parameters(crowd)
        self._confusion.check_parameters()
        check_choice("variant", self.variant, ("A", "B"))

    def _make_worker_parameters(self, sizes: ModelSizes) -> dict[str, Any]:
        return self._confusion.make_parameters(sizes)

    def _initialize_parameters(self, network: CrowdNetwork, crowd: Crowd) -> None:
        self._confusion.initialize(network, crowd)

    def _loss(self, batch: Batch) -> Tensor:
        return batch.weighted_mean(compute_vote_nll(batch, self._joint_log_probs(batch)))

    def _label_log_probs(self, batch: Batch) -> Tensor:
        log_probs: Tensor = import_torch().log_softmax(self._joint_log_probs(batch), dim=1)
        return log_probs

    def _joint_log_probs(self, batch: Batch) -> Tensor:
        """Return log P(the worker of the vote is drawn and gives each label | x), (n_votes, n_classes)."""
        torch = import_torch()
        rows = batch.worker_rows("A")
        all_scores = batch.network.worker_table("A").transpose(0, 1).flatten(1)  # (classes, workers x labels)
        if self.variant == "A":
            log_total = torch.logsumexp(batch.class_probs @ all_scores, dim=1)
            scores = torch.bmm(batch.class_probs.index_select(0, batch.task)[:, None], rows)[:, 0]
            return scores - log_total.index_select(0, batch.task)[:, None]
        log_theta = rows - torch.logsumexp(all_scores, dim=1)[:, None]
        return mix_label_log_probs(batch.class_log_probs.index_select(0, batch.task), log_theta)

    def confusion_of(self, workers: Iterable[int]) -> NDArray[np.float64]:
        """Return the confusion matrices π of some workers, exact where f is certain.

        Parameters
        ----------
        workers : iterable of int
            Positions of workers in ``worker_index_``.

        Returns
        -------
        ndarray of shape (len(workers), n_classes, n_classes)
        """
        self._check_fitted("posterior_")
        return self._confusion.matrices(self.network_, self._check_positions(workers))
