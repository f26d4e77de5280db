"""Max-MIG: a network and a vote that tell as much of each other as they can (Cao, Xu, Kong and Wang)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd, Pairs
from wisecrowd.em.initialization import class_prior, vote_shares
from wisecrowd.em.priors import Prior
from wisecrowd.errors import UsageError
from wisecrowd.nn.backend import need_torch
from wisecrowd.nn.crowd_network import CrowdNetwork, Sizes
from wisecrowd.nn.deep_learner import DeepLearner
from wisecrowd.nn.stochastic_confusion import start_from_votes
from wisecrowd.nn.vote_tensors import Batch, PerWorker

if TYPE_CHECKING:
    from torch import Tensor

#: The least that a class prior may be, for it divides.
RAREST = 1e-6


@method_class
class MaxMIG(DeepLearner):
    """A network and a weighted vote, trained so that each tells as much as possible of the other.

        g(y_i) = softmax(log p + Σ_r U_r[:, y_ir]),   S(i, j) = Σ_k f_k(x_i) g_k(y_j) / p_k
        maximise  mean_i (1 + log S(i, i))  −  mean_{i ≠ j} S(i, j)                         over the tasks of a batch

    f sees only features and g only votes. What one knows of the other is the mutual information of the two, of which the
    objective is a lower bound (by the f-divergence of Kullback and Leibler); it is reached when both forecast the true class,
    as long as features and votes have nothing else in common. Workers may copy one another: that does not harm f as it does
    in models where votes are independent given the class.

    The objective does not change when classes are renamed in f and g at once, so that the start decides what they mean: U is
    the logarithm of the confusion matrices against the soft vote. The paper adds 0.01 to them; here they are drawn toward
    the crowd's, by as much as workers seem alike, so that few votes weigh little. p stays as it is at first: the shares of the
    soft vote, or uniform, as in the authors' program for LabelMe. Batches must hold several tasks of several classes.

    ``posterior_`` is the forecast of features and votes together, q_i ∝ f(x_i) g(y_i) / p. U is trained to aggregate, not to
    describe, and is no confusion matrix: ``confusion_`` and what `predict_worker_proba` says are estimated from the network's
    answers and the votes; ``votes_weigh_`` has U.

    The authors' program reports the best test accuracy of all epochs, and adds noise where S may be zero; here S is
    computed by logarithms. Test accuracy after the last epoch, five seeds: 84.1 ± 0.6 % on LabelMe (512 features of VGG-16,
    1,188 tasks), where Zhang et al. (2024) report 83.2 ± 0.7; 70.9 ± 1.1 % on music genres, where they report 71.7 ± 0.9. With a
    uniform prior: 84.8 ± 0.3 and 73.3 ± 0.9 %.

    >>> from wisecrowd import MaxMIG, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> made = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"x": 3.0 * (made.truth == made.crowd.classes[1]) + rng.normal(size=200)}, index=made.truth.index)
    >>> model = MaxMIG(epochs=20).fit(X, made.crowd)
    >>> bool(model.score(X, made.truth) > 0.9), model.votes_weigh_.shape
    (True, (10, 2, 2))
    """

    references: ClassVar[tuple[str, ...]] = ("cao2019maxmig",)
    foretells: ClassVar[bool] = False

    prior: Any = parameter(
        default="estimate", help="class prior: 'estimate' from the soft vote, 'uniform', or one number per class"
    )

    def _check(self, crowd: Crowd) -> None:
        super()._check(crowd)
        if self.batch_size < 2:
            raise UsageError(
                f"batch_size must be 2 or more, for tasks are compared with one another; got {self.batch_size}"
            )

    def _own(self, sizes: Sizes) -> dict[str, Any]:
        torch, (n_workers, n_classes, _) = need_torch(), sizes
        return {"U": PerWorker(torch.zeros(n_workers, n_classes, n_classes)), "log_prior": torch.zeros(n_classes)}

    def _prepare(self, network: CrowdNetwork, crowd: Crowd) -> None:
        torch = need_torch()
        start_from_votes(network, "U", crowd)
        prior = np.maximum(class_prior(self.prior, vote_shares(crowd).sum(axis=0), self.classes_), RAREST)
        with torch.no_grad():
            network.own.log_prior.copy_(torch.from_numpy(np.log(prior / prior.sum())))

    def _loss(self, batch: Batch) -> Tensor:
        torch = need_torch()
        voted = torch.unique(batch.row)
        if len(voted) < 2:
            return 0 * batch.logits.sum()
        log_prior = batch.own("log_prior").detach()  # it is given, not learnt
        log_f, log_g = batch.log_p[voted], self._log_vote(batch, log_prior)[voted]
        same = torch.logsumexp(log_f + log_g - log_prior, dim=1)
        # Σ_ij S(i, j) is a product of two sums, without a table of tasks x tasks.
        others = log_f.exp().sum(dim=0) @ (log_g - log_prior).exp().sum(dim=0) - same.exp().sum()
        return others / (len(voted) * (len(voted) - 1)) - (1 + same).mean()

    def _log_vote(self, batch: Batch, log_prior: Tensor) -> Tensor:
        """log g of the votes on each task, (tasks, classes)."""
        torch = need_torch()
        label = batch.label[:, None, None].expand(-1, len(log_prior), 1)
        evidence = batch.weight[:, None] * batch.of_worker("U").gather(2, label)[:, :, 0]
        found: Tensor = torch.zeros_like(batch.logits).index_add(0, batch.row, evidence) + log_prior
        return torch.log_softmax(found, dim=1)

    # ------------------------------------------------------------------ what was learnt

    @property
    def votes_weigh_(self) -> NDArray[np.float64]:
        """U, what a worker's saying each label adds to the logarithm of each class: (workers, true, said)."""
        self._check_fitted("posterior_")
        found: NDArray[np.float64] = self.network_.table("U").detach().double().cpu().numpy()
        return found

    def _pair_label_probs(self, pairs: Pairs, tally: NDArray[np.float64], prior: Prior) -> NDArray[np.float64]:
        """exp(U_r[k, l]): the posterior f Π_r exp(U_r[:, y_ir]) is then f g / p, whatever the scale."""
        torch = need_torch()
        worker, label = (torch.from_numpy(side.astype(np.int64)) for side in (pairs.worker, pairs.label))
        chosen = self.network_.table("U").detach().cpu()[worker, :, label]
        return np.asarray(np.exp(chosen.double().numpy()))

    def _answers(self, X: NDArray[np.float64], workers: NDArray[np.intp]) -> NDArray[np.float64]:
        return np.einsum("nk,rkl->nrl", self._predict_proba(X), self.confusion_of(workers))
