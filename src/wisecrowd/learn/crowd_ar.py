"""CrowdAR: how far to trust each single vote (Cao and others)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError
from wisecrowd.nn.backend import need_torch
from wisecrowd.nn.crowd_network import Sizes
from wisecrowd.nn.deep_learner import DeepLearner
from wisecrowd.nn.vote_tensors import Batch, PerWorker
from wisecrowd.nn.worker_tables import mean_by_worker

if TYPE_CHECKING:
    from torch import Tensor

#: Units between what the network makes of a task and its difficulty.
DIFFICULTY_UNITS = 128


@method_class
class CrowdAR(DeepLearner):
    """`CrowdLayer`, with votes that count by how reliable each of them is: of that worker, on that task.

        P(r says l | x_i) = softmax(W_rᵀ f(x_i))_l
        m_ir = sigmoid(a · ((e_r − d_i) ⊙ f(x_i)) + c)                    reliability, with a ≥ 0
        d_i = sigmoid(A₂ sigmoid(A₁ h(x_i))),   e_r = sigmoid(E_r)       difficulty, expertise: one number per class
        t_ir = m_ir onehot(y_ir) + (1 − m_ir) / K                         what the vote is taken to say
        loss = mean over votes of λ CE(t_ir, P(r says · | x_i)) + (1 − λ) BCE(m_ir, 1[argmax f(x_i) = y_ir])

    A vote that is not reliable is one that says nothing. Reliability learns from whether votes agree with the network, of
    which it must not be the judge before it knows something: in the first epochs (``warm_up``) all votes are trusted.

    m does not train the network: h(x), the hidden units, and f(x) are constants to it (the program of Herde and others, 2024,
    lets its gradient through f). By way of t, votes train m, for the loss is lowered over all parameters at once: what is
    hard to explain becomes less reliable. With ``through_target=False`` m learns from agreement alone. a is a softplus of
    what is trained and starts at 1, where others clip it after each step; E starts at 0, so that all workers are alike
    and their order is without consequence, not at random.

    W is no confusion matrix (see `CrowdLayer`): ``confusion_`` is estimated from the network's answers and the votes.
    ``reliability_`` is the mean of m over a worker's votes, ``expertise_`` is e.

    Choose it when tasks differ in difficulty and workers in what they are good at; where they do not, it is `CrowdLayer`,
    at some more cost. λ is that of Herde and others, all other settings are those of `CrowdLayer`. In their
    benchmark, as published, W and E are given to the optimiser as slices, which get no gradient: if its figures come of
    that program, they are of a model without them.

    On LabelMe (512 features of VGG-16, last epoch, five seeds) this has 83.8 ± 0.6 %, on Music 67.1 ± 0.8 %, or 83.7 ± 0.5 and
    69.3 ± 1.4 with ``through_target=False``; Herde and others report 84.6 ± 0.7 and 69.0 ± 1.8, of other features and networks.

    >>> from wisecrowd import CrowdAR, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> made = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"x": 3.0 * (made.truth == made.crowd.classes[1]) + rng.normal(size=200)}, index=made.truth.index)
    >>> model = CrowdAR(epochs=20).fit(X, made.crowd)
    >>> bool(model.score(X, made.truth) > 0.9), model.reliability_.shape, model.expertise_.shape
    (True, (10,), (10, 2))
    """

    references: ClassVar[tuple[str, ...]] = ("cao2023learning",)
    separable: ClassVar[bool] = True

    weight: float = parameter(
        default=0.9, help="λ: share of the loss that is about votes; the rest is about reliability"
    )
    warm_up: int = parameter(default=5, help="epochs at the start in which every vote is trusted")
    through_target: bool = parameter(
        default=True, help="whether votes that are hard to explain lower their own reliability"
    )

    def _check(self, crowd: Crowd) -> None:
        super()._check(crowd)
        if not 0 <= self.weight <= 1 or self.warm_up < 0:
            raise UsageError(
                "weight must be a share, from 0 to 1, and warm_up a number of epochs that is not negative; "
                f"got {self.weight} and {self.warm_up}"
            )

    def _own(self, sizes: Sizes) -> dict[str, Any]:
        torch, (n_workers, n_classes, n_hidden) = need_torch(), sizes
        nn = torch.nn
        return {
            "W": PerWorker(torch.eye(n_classes).repeat(n_workers, 1, 1)),
            "E": PerWorker(torch.zeros(n_workers, n_classes)),
            "difficulty": nn.Sequential(
                nn.Linear(n_hidden, DIFFICULTY_UNITS),
                nn.Sigmoid(),
                nn.Linear(DIFFICULTY_UNITS, n_classes),
                nn.Sigmoid(),
            ),
            "a": torch.full((n_classes,), 1.0).expm1().log(),  # of which the softplus is 1
            "c": torch.zeros(1),
        }

    def _label_log_probs(self, batch: Batch) -> Tensor:
        torch = need_torch()
        found: Tensor = torch.log_softmax(torch.bmm(batch.p[batch.row, None], batch.of_worker("W"))[:, 0], dim=1)
        return found

    def _reliability(self, batch: Batch) -> Tensor:
        """logit m of each vote."""
        torch = need_torch()
        d = batch.own("difficulty")(batch.hidden.detach())  # (tasks, classes)
        e = torch.sigmoid(batch.of_worker("E"))  # (votes, classes)
        a = torch.nn.functional.softplus(batch.own("a"))
        found: Tensor = ((e - d[batch.row]) * batch.p.detach()[batch.row]) @ a + batch.own("c")
        return found

    def _loss(self, batch: Batch) -> Tensor:
        if batch.epoch < self.warm_up:
            return super()._loss(batch)
        torch, said, logit = need_torch(), self._label_log_probs(batch), self._reliability(batch)
        m = torch.sigmoid(logit if self.through_target else logit.detach())
        named = said.gather(1, batch.label[:, None])[:, 0]
        votes = -(m * named + (1 - m) * said.mean(dim=1))
        agrees = (batch.p.argmax(dim=1)[batch.row] == batch.label).to(logit)
        trust = torch.nn.functional.binary_cross_entropy_with_logits(logit, agrees, reduction="none")
        return batch.mean(self.weight * votes + (1 - self.weight) * trust)

    def _conclude(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        super()._conclude(X, crowd, gold)
        self.reliability_ = mean_by_worker(self.network_, X, crowd, lambda batch: self._reliability(batch).sigmoid())

    @property
    def expertise_(self) -> NDArray[np.float64]:
        """e of every worker for every class, from 0 to 1: (workers, classes)."""
        self._check_fitted("posterior_")
        return np.asarray(self.network_.table("E").detach().double().sigmoid().cpu().numpy())
