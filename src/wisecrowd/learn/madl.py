"""MaDL: confusion matrices of worker and task, and less weight for workers who are alike (Herde et al. 2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import one_of
from wisecrowd.nn.backend import need_torch
from wisecrowd.nn.crowd_network import CrowdNetwork, Sizes
from wisecrowd.nn.per_task_confusion import PerTaskConfusion, trained_together
from wisecrowd.nn.vote_tensors import Batch

if TYPE_CHECKING:
    from torch import Tensor

#: Units of the layer in which worker and task meet.
MEETING = 128
#: Shape and rate of the Gamma prior on the bandwidth; its mode is 1, where the bandwidth starts.
SHAPE, RATE = 1.25, 0.25


@method_class
class MaDL(PerTaskConfusion):
    """A network, confusion matrices that depend on worker and task, and less weight for workers who are alike.

        π_ir = softmax of rows of V h_ir + b I,   h_ir = relu(a_r + g(a_r, t_i, W (a_r + t_i) ⊗ (a_r + t_i)))
        loss = mean over votes of w_r · −log Σ_k f_k(x_i) π_ir[k, y_ir]  −  log Gamma(γ; 1.25, 0.25)
        w_r ∝ 1 / Σ_s exp(−γ |a_r − a_s|²),  with a mean of one

    a_r are embeddings of workers, t_i of what the network's last layer is given, g is a layer of 128 units with norms.
    Workers who answer alike get embeddings that are alike, and share the weight of one: ten copies of a spammer count
    little more than a single one. The bandwidth γ is learnt, under a prior that keeps it near 1.

    ``confusion_`` is the mean of a worker's matrices over the tasks that he voted on, each class weighted by f;
    ``posterior_`` weighs votes by one matrix per worker, estimated from f and the votes, as for any network.
    ``embedding_`` has the workers' embeddings.

    The paper's sum over s goes over all workers, at a cost of workers² in every step. Here it goes over those who
    voted on the batch (``weigh="batch"``), among whom the weights have a mean of one; ``weigh="all"`` is the paper's
    way and ``weigh="none"`` leaves weights out. Where the authors draw first embeddings at random, ours are zero, so
    that nobody's name decides.

    On Music, in the setting of Herde et al. (2024) and over five seeds, the last epoch is right on 72.1 ± 1.6 % of the test
    tasks (theirs: 72.0 ± 2.0), on 71.8 ± 1.4 % with the sum over all workers, and on 73.2 ± 1.5 % without weights: careful
    workers agree with each other, so that there the weights are lower the more often a worker is right.

    With the defaults it has 71.8 % there and 81.5 % on LabelMe (two seeds, best epochs 73.5 and 84.9): trained for long, it
    fits the noise.

    Choose it where workers are good at some tasks and bad at others, or where some copy others. Embeddings that learn faster
    than the network explain the votes before it does: when the network had RAdam and they had Adam with the same step,
    accuracy on Music was 67 %. Beside ``optimiser="radam"``, tables of workers therefore warm up as the network does.

    >>> from wisecrowd import MaDL, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> made = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"x": 3.0 * (made.truth == made.crowd.classes[1]) + rng.normal(size=200)}, index=made.truth.index)
    >>> model = MaDL(epochs=20).fit(X, made.crowd)
    >>> bool(model.score(X, made.truth) > 0.9), model.embedding_.shape
    (True, (10, 16))
    """

    references: ClassVar[tuple[str, ...]] = ("herde2023madl",)

    weigh: Literal["batch", "all", "none"] = parameter(
        default="batch", help="workers by those who are like them in the batch, or among all of them, or not at all"
    )

    def _check(self, crowd: Crowd) -> None:
        super()._check(crowd)
        one_of("weigh", self.weigh, ("batch", "all", "none"))

    def _own(self, sizes: Sizes) -> dict[str, Any]:
        return super()._own(sizes) | {"log_bandwidth": need_torch().zeros(())}

    def _joint(self) -> dict[str, Any]:
        nn, size = need_torch().nn, self.embedding
        product = nn.Bilinear(size, size, size, bias=False)
        nn.init.xavier_uniform_(product.weight)
        layers = (nn.Linear(3 * size, MEETING), nn.BatchNorm1d(MEETING), nn.ReLU(), nn.Linear(MEETING, size))
        return {"product": product, "meeting": nn.Sequential(*layers, nn.BatchNorm1d(size))}

    def _meet(self, network: CrowdNetwork, worker: Tensor, task: Tensor) -> Tensor:
        torch, both = need_torch(), worker + task
        together = torch.cat([worker, task, network.own.product(both, both)], dim=1)
        found: Tensor = torch.relu(worker + trained_together(network.own.meeting, network, together))
        return found

    def _loss(self, batch: Batch) -> Tensor:
        against = -self._label_log_probs(batch).gather(1, batch.label[:, None])[:, 0]
        if self.weigh == "none":
            return batch.mean(against)
        torch = need_torch()
        log_bandwidth: Tensor = batch.own("log_bandwidth")
        workers, which = torch.unique(batch.worker, return_inverse=True)
        if self.weigh == "all":
            workers, which = torch.arange(self.n_workers_, device=batch.worker.device), batch.worker
        weight = weights(batch.network.table("worker")[workers].detach(), log_bandwidth.exp())
        log_prior = (SHAPE - 1) * log_bandwidth - RATE * log_bandwidth.exp()
        return batch.mean(weight[which] * against) - log_prior

    @property
    def embedding_(self) -> Any:
        """Embeddings of workers, (workers, numbers)."""
        self._check_fitted("posterior_")
        network = self.network_
        return (network.table("worker") + network.own.everybody).detach().cpu().numpy()

    @property
    def bandwidth_(self) -> float:
        """γ, by which it is judged who is alike."""
        self._check_fitted("posterior_")
        return float(self.network_.own.log_bandwidth.detach().exp())


def weights(embedding: Tensor, bandwidth: Tensor) -> Tensor:
    """1 / Σ_s exp(−γ |a_r − a_s|²) of each worker, scaled to a mean of one.

    >>> torch = need_torch()
    >>> weights(torch.tensor([[0.0], [0.0], [100.0]]), torch.tensor(1.0)).tolist()
    [0.75, 0.75, 1.5]
    """
    torch = need_torch()
    found: Tensor = 1 / torch.exp(-bandwidth * torch.cdist(embedding, embedding) ** 2).sum(dim=1)
    return found / found.mean()
