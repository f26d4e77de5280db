"""UnionNet: who says what of a task, as one choice among all workers' labels (Wei et al.)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import one_of
from wisecrowd.nn.backend import need_torch
from wisecrowd.nn.stochastic_confusion import StochasticLearner
from wisecrowd.nn.vote_tensors import Batch

if TYPE_CHECKING:
    from torch import Tensor


@method_class
class UnionNet(StochasticLearner):
    """A network, and one layer in which all workers' labels are outcomes of a single draw.

        P(r says l | x) = softmax over all (r, l) of Σ_k f_k(x) A_r[k, l]                           variant "A"
        P(r says l | x) = Σ_k f_k(x) Θ_r[k, l],  Θ[k] = softmax over all (r, l) of A_r[k, l]        variant "B"

    A vote is one of workers x classes things that could have been said, so that the crowd is one source, and who votes
    is evidence too. `predict_worker_proba` says what they say once they vote, P(r says l | x) / Σ_l P(r says l | x).
    ``confusion_`` is what that comes to where f is certain, π_r[k, ·] = softmax(A_r[k, ·]) in both variants; in "A" it is
    exact only there, for a softmax of means is no mean of softmaxes.

    The normaliser runs over all workers, by nature: a step costs workers x classes² however few voted, and in "A" tasks x
    workers x classes. With ten classes and 10,000 workers, "B" took six times as long per epoch as with 100 workers, "A" 26
    times. Outcomes so many are each improbable; Herde et al. (2024) measured 1.3 % on the 100 classes of CIFAR-100N. Choose
    another of this family for large crowds.

    A starts from the logarithm of each worker's answers counted against the soft vote, as in the paper, but drawn toward
    the crowd's, where zero counts would be −∞. From the identity, "B" would start almost uniform: e against 1 among all
    outcomes. The paper divides a task's votes by their number, so that tasks weigh alike; here votes do. A public port
    mixes Θ by logits in place of f.

    Test accuracy of "B" after the last epoch, five seeds: 82.5 ± 0.2 % on LabelMe (512 features of VGG-16, 1,188 tasks), where
    Zhang et al. (2024) report 82.7 ± 0.4; 69.3 ± 1.1 % on music genres, 68.3 ± 0.9 there and 68.6 ± 1.0 in Herde et al.

    >>> from wisecrowd import UnionNet, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> made = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"x": 3.0 * (made.truth == made.crowd.classes[1]) + rng.normal(size=200)}, index=made.truth.index)
    >>> model = UnionNet(epochs=20).fit(X, made.crowd)
    >>> bool(model.score(X, made.truth) > 0.9), model.confusion_.shape
    (True, (10, 2, 2))
    """

    references: ClassVar[tuple[str, ...]] = ("wei2022deep",)
    separable: ClassVar[bool] = True
    sparse: ClassVar[bool] = False

    variant: Literal["A", "B"] = parameter(
        default="B", help="'A': a softmax of mixed scores; 'B': a mixture of softmaxes"
    )
    start: Literal["identity", "votes"] = parameter(
        default="votes", help="confusion matrices at first: near the 'identity', or counted against the soft 'votes'"
    )
    sure: float = parameter(
        default=1.0, help="log-odds of a right label against each wrong one in a start near the identity"
    )

    def _check(self, crowd: Crowd) -> None:
        super()._check(crowd)
        one_of("variant", self.variant, ("A", "B"))

    def _loss(self, batch: Batch) -> Tensor:
        return batch.mean(-self._spoken(batch).gather(1, batch.label[:, None])[:, 0])

    def _label_log_probs(self, batch: Batch) -> Tensor:
        found: Tensor = need_torch().log_softmax(self._spoken(batch), dim=1)
        return found

    def _spoken(self, batch: Batch) -> Tensor:
        """log P(it is the worker of the vote who speaks, and says each label | x), (votes, classes)."""
        torch = need_torch()
        mine = batch.of_worker("A")
        of_class = batch.network.table("A").transpose(0, 1).flatten(1)  # (classes, workers x labels)
        if self.variant == "A":
            everybody = torch.logsumexp(batch.p @ of_class, dim=1)
            return torch.bmm(batch.p[batch.row][:, None], mine)[:, 0] - everybody[batch.row][:, None]
        log_theta = mine - torch.logsumexp(of_class, dim=1)[:, None]
        found: Tensor = torch.logsumexp(batch.log_p[batch.row][:, :, None] + log_theta, dim=1)
        return found
