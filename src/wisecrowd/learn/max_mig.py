"""Max-MIG: maximal mutual information of a network and a weighted vote (Cao, Xu, Kong and Wang)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.pairs import Pairs
from wisecrowd.em.initialization import compute_vote_shares, make_class_prior
from wisecrowd.em.priors import CrowdPrior
from wisecrowd.errors import UsageError
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.crowd_network import CrowdNetwork, ModelSizes
from wisecrowd.nn.deep_learner import DeepLearner
from wisecrowd.nn.softmax_confusion import initialize_from_votes
from wisecrowd.nn.vote_tensors import Batch, WorkerTable

if TYPE_CHECKING:
    from torch import Tensor

#: Smallest prior probability of a class, since the objective divides by it.
MIN_CLASS_PRIOR = 1e-6


@method_class
class MaxMIG(DeepLearner):
    """Network and weighted vote, trained to have maximal mutual information.

        g(y_i) = softmax(log p + Σ_r U_r[:, y_ir]),   S(i, j) = Σ_k f_k(x_i) g_k(y_j) / p_k
        maximise  mean_i (1 + log S(i, i))  −  mean_{i ≠ j} S(i, j)                         over the tasks of a batch

    f sees only features and g only votes. The objective is a lower bound of the mutual information of the two, by the
    f-divergence of Kullback and Leibler. It is maximal when both predict the true class, if features and votes have
    nothing else in common. Workers who copy each other do not harm f, unlike in models with independent votes.

    The objective does not change when the classes of f and g are permuted together, so the start determines their
    meaning: U is the logarithm of confusion matrices against the soft vote. The paper adds 0.01 to them; here they
    are shrunk toward that of the crowd. p keeps its initial value, the shares of the soft vote, or uniform as in the
    authors' program for LabelMe. A batch must contain several tasks of several classes.

    ``posterior_`` is the forecast of features and votes together, q_i ∝ f(x_i) g(y_i) / p. U is trained to aggregate
    and is not a confusion matrix: ``confusion_`` and `predict_worker_proba` are estimated from the class
    probabilities and the votes. ``votes_weigh_`` is U.

    Examples
    --------
    >>> from wisecrowd import MaxMIG, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> x = 3.0 * (simulation.truth == simulation.crowd.classes[1]) + rng.normal(size=200)
    >>> X = pd.DataFrame({"x": x}, index=simulation.truth.index)
    >>> model = MaxMIG(epochs=20).fit(X, simulation.crowd)
    >>> bool(model.score(X, simulation.truth) > 0.9), model.votes_weigh_.shape
    (True, (10, 2, 2))
    """

    references: ClassVar[tuple[str, ...]] = ("cao2019maxmig",)
    predicts_votes: ClassVar[bool] = False

    prior: Any = parameter(
        default="estimate", help="Class prior: 'estimate' from the soft vote, 'uniform', or one number per class."
    )

    def _check_parameters(self, crowd: Crowd) -> None:
        super()._check_parameters(crowd)
        if self.batch_size < 2:
            raise UsageError(
                f"batch_size must be 2 or more, since tasks are compared with each other; got {self.batch_size}"
            )

    def _make_worker_parameters(self, sizes: ModelSizes) -> dict[str, Any]:
        torch, n_classes = import_torch(), sizes.n_classes
        return {
            "U": WorkerTable(torch.zeros(sizes.n_workers, n_classes, n_classes)),
            "log_prior": torch.zeros(n_classes),
        }

    def _initialize_parameters(self, network: CrowdNetwork, crowd: Crowd) -> None:
        torch = import_torch()
        initialize_from_votes(network, "U", crowd)
        shares = compute_vote_shares(crowd).sum(axis=0)
        prior = np.maximum(make_class_prior(self.prior, shares, self.classes_), MIN_CLASS_PRIOR)
        with torch.no_grad():
            network.worker_parameters.log_prior.copy_(torch.from_numpy(np.log(prior / prior.sum())))

    def _loss(self, batch: Batch) -> Tensor:
        torch = import_torch()
        voted = torch.unique(batch.task)
        if len(voted) < 2:
            return 0 * batch.logits.sum()
        log_prior = batch.shared("log_prior").detach()  # a constant
        log_f, log_g = batch.class_log_probs[voted], self._vote_log_probs(batch, log_prior)[voted]
        same = torch.logsumexp(log_f + log_g - log_prior, dim=1)
        # Σ_ij S(i, j) is a product of two sums, so that no table of tasks x tasks is needed.
        others = log_f.exp().sum(dim=0) @ (log_g - log_prior).exp().sum(dim=0) - same.exp().sum()
        return others / (len(voted) * (len(voted) - 1)) - (1 + same).mean()

    def _vote_log_probs(self, batch: Batch, log_prior: Tensor) -> Tensor:
        """Return log g of the votes on each task, (n_tasks, n_classes)."""
        torch = import_torch()
        label = batch.label[:, None, None].expand(-1, len(log_prior), 1)
        evidence = batch.weight[:, None] * batch.worker_rows("U").gather(2, label)[:, :, 0]
        scores: Tensor = torch.zeros_like(batch.logits).index_add(0, batch.task, evidence) + log_prior
        return torch.log_softmax(scores, dim=1)

    @property
    def votes_weigh_(self) -> NDArray[np.float64]:
        """Weights U of the votes, (n_workers, n_classes, n_classes), by worker, true class and label."""
        self._check_fitted("posterior_")
        return np.asarray(self.network_.worker_table("U").detach().cpu().double().numpy())

    def _pair_label_probs(
        self, network: CrowdNetwork, pairs: Pairs, tally: NDArray[np.float64], prior: CrowdPrior
    ) -> NDArray[Any]:
        """Return exp(U_r[k, l]): the posterior f Π_r exp(U_r[:, y_ir]) then equals f g / p up to its scale."""
        torch = import_torch()
        worker, label = (torch.from_numpy(codes.astype(np.int64)) for codes in (pairs.worker, pairs.label))
        weights = network.worker_table("U").detach().cpu()[worker, :, label]
        return np.asarray(np.exp(weights.double().numpy()))

    def _worker_label_probs(self, X: NDArray[np.float64], workers: NDArray[np.intp]) -> NDArray[np.float64]:
        return np.einsum("nk,rkl->nrl", self._predict_proba(X), self.confusion_of(workers))
