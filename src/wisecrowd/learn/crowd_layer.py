"""CrowdLayer: what a network says of a task, through a layer of every worker's own (Rodrigues and Pereira)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError, one_of
from wisecrowd.nn.backend import need_torch
from wisecrowd.nn.crowd_network import CrowdNetwork, Sizes
from wisecrowd.nn.deep_learner import DeepLearner
from wisecrowd.nn.trainer import Group
from wisecrowd.nn.vote_tensors import Batch, PerWorker

if TYPE_CHECKING:
    from torch import Tensor


@method_class
class CrowdLayer(DeepLearner):
    """A network, and a layer for every worker that turns its answer into what the worker says.

        s_r = T_rᵀ f(x),  P(r says l | x) = softmax(s_r)_l                        variant "matrix" (MW)
        s_r = w_r ⊙ f(x)  and  s_r = w_r ⊙ f(x) + b_r                             "scale" (VW), "affine" (VW+B)

    f is a distribution already when the layer gets it, and a second softmax follows: T_r starts as the identity and
    grows, for with T = I nothing could be more probable than e / (e + K − 1). It is therefore no confusion matrix;
    ``confusion_`` is estimated from the network's answers and the votes, and ``layer_`` has T (or w and b) as it is. Trained
    for long, the layers and the network together explain the noise, and accuracy falls from its best.

    The program that Rodrigues and Pereira published averages a batch's loss over all tasks x workers, with zeros where
    nobody voted, so that its steps shrink with the number of workers; here the mean is over votes, and only matrices of
    workers who voted are touched. crowd-kit's version gives the layer logits instead of probabilities; this does not.

    Layers have an Adam of their own, in which those of workers without a vote in the batch rest. With
    ``worker_steps="network"`` all take the network's steps, and ``worker_l2`` draws them toward zero as ``l2`` does weights.

    >>> from wisecrowd import CrowdLayer, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> made = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"x": 3.0 * (made.truth == made.crowd.classes[1]) + rng.normal(size=200)}, index=made.truth.index)
    >>> model = CrowdLayer(epochs=20).fit(X, made.crowd)
    >>> bool(model.score(X, made.truth) > 0.9), model.layer_["T"].shape
    (True, (10, 2, 2))
    """

    references: ClassVar[tuple[str, ...]] = ("rodrigues2018deep",)
    separable: ClassVar[bool] = True

    variant: Literal["matrix", "scale", "affine"] = parameter(
        default="matrix", help="'matrix' (MW), 'scale' (VW) or 'affine' (VW+B)"
    )
    worker_steps: Literal["own", "network"] = parameter(
        default="own", help="of layers: 'own', Adam for those who voted; or 'network', as it learns"
    )
    worker_l2: float = parameter(default=0.0, help="ridge on layers, as l2; for worker_steps='network'")

    def _check(self, crowd: Crowd) -> None:
        super()._check(crowd)
        one_of("variant", self.variant, ("matrix", "scale", "affine"))
        one_of("worker_steps", self.worker_steps, ("own", "network"))
        if not self.worker_l2 >= 0 or (self.worker_l2 and self.worker_steps == "own"):
            raise UsageError(
                "worker_l2 must not be negative, and needs worker_steps='network', since layers of who did not vote rest "
                f"otherwise; got {self.worker_l2} and {self.worker_steps!r}"
            )

    def _own(self, sizes: Sizes) -> dict[str, Any]:
        torch, (n_workers, n_classes, _) = need_torch(), sizes
        sparse = self.worker_steps == "own"
        if self.variant == "matrix":
            return {"T": PerWorker(torch.eye(n_classes).repeat(n_workers, 1, 1), sparse)}
        scale = {"w": PerWorker(torch.ones(n_workers, n_classes), sparse)}
        return scale if self.variant == "scale" else scale | {"b": PerWorker(torch.zeros(n_workers, n_classes), sparse)}

    def _groups(self, network: CrowdNetwork, n_rows: int) -> list[Group]:
        return network.groups(self.worker_learning_rate, self.l2 / n_rows, self.worker_l2 / n_rows)

    def _label_log_probs(self, batch: Batch) -> Tensor:
        torch, p = need_torch(), batch.p[batch.row]
        if self.variant == "matrix":
            s = torch.bmm(p[:, None], batch.of_worker("T"))[:, 0]
        else:
            s = batch.of_worker("w") * p
            if self.variant == "affine":
                s = s + batch.of_worker("b")
        found: Tensor = torch.log_softmax(s, dim=1)
        return found

    @property
    def layer_(self) -> dict[str, Any]:
        """The workers' layers as they were learnt: "T" (workers, true, said), or "w" and "b" (workers, classes)."""
        self._check_fitted("posterior_")
        network = self.network_
        return {name: network.table(name).detach().cpu().numpy() for name in network.tables}
