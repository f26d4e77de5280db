"""Coupled Confusion Correction: two networks that correct each other's worker matrices (Zhang et al.)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError, one_of
from wisecrowd.learn.ccc._correction import (
    Trusted,
    correction_of,
    distilled,
    full_gradient,
    given,
    grouped,
    head_gradient,
    hidden_of,
)
from wisecrowd.learn.crowd_layer import CrowdLayer
from wisecrowd.nn.backend import need_torch
from wisecrowd.nn.crowd_network import CrowdNetwork
from wisecrowd.nn.process_group import my_team
from wisecrowd.nn.seeding import own_chance
from wisecrowd.nn.trainer import Trainer
from wisecrowd.nn.training_set import TrainingSet
from wisecrowd.nn.twins import TwinLearner, Twins
from wisecrowd.nn.vote_tensors import Batch

if TYPE_CHECKING:
    from torch import Tensor

#: Of the tasks that teach: how many are trusted, at most `MOST`, unless it is said.
TRUSTED, MOST = 0.2, 1000


@method_class
class CCC(TwinLearner, CrowdLayer):
    """Two networks with a crowd layer each, whose matrices are corrected by what the other network is sure of.

    Both start as `CrowdLayer`, from different weights. After ``warmup`` epochs, every epoch

    1. groups the workers by K-means over their matrices T_r, since few have labels enough for a correction of their own;
    2. lets each network choose the labels that it believes most, as many of every class (``trusted`` in all): these are
       what the *other* network is judged by;

    and every step asks how the matrices should have been for it to lead to a network that is better on trusted labels:

        θ̂(V) = θ − η ∇_θ L(θ, T + V),    G = ∂ L_meta(θ̂(V)) / ∂V at V = 0,    V = −γ max(T) G / max|G|

    Then θ and T take one step of L(θ, T + V) with V fixed, and V is forgotten: T moves by the gradient at T + V. The
    prediction is the mean of the two networks'. With ``gamma=0`` each network is `CrowdLayer`, to the bit.

    ``meta="head"`` looks ahead with the last layer alone, in closed form: it costs one pass of trusted tasks through
    the network. ``meta="full"`` differentiates through the whole step. V is scaled to a fixed size, so that a gradient which
    is only noise is applied with full strength; a smaller ``gamma`` is a milder medicine.

    As in `CrowdLayer`, T is no confusion matrix and ``confusion_`` is estimated. ``layer_`` has T of both networks,
    ``groups_`` a table by worker, and ``correction_`` the mean of V over the last epoch, (networks, groups, true, said).

    Where the authors' program differs from the paper, this takes: the mean of losses over votes (as the program; the
    paper divides by tasks), V anew in each step, groups for each network, the largest T (the program takes that of a
    copy one step ahead; here it is renewed each epoch, and by the workers at hand). Different from both: an answer that
    several workers give is trusted once, only the head moves in the step ahead, T has a lazy Adam of its own and does not
    decay, and dropout is off where trusted tasks are looked at. Where we looked, only the steps of T matter: V is sized by the
    largest T, and with SGD the matrices of busy workers grow most, so that V is larger beside those of the others. Where the
    network has SGD, ``worker_steps="network"`` is as in the paper, with ``worker_l2=l2`` as in the program. The program stores
    "best" warm-up weights that are the last ones, and the paper's *best* is chosen on the test set.

    Choose it where workers have few labels each and come in kinds, and a network would learn their noise by heart. On the
    eight simulated crowds of Zhang et al. (Fashion-MNIST features, 5,400 tasks, ``wisecrowd bench run zhang2024ccc``) its last
    epoch is above that of all rivals by 2.0 to 6.4 points, and falls from the best by 1.0 to 3.7 where `CrowdLayer` falls by
    up to 6.1. With the paper's SGD and decay of steps, and matrices that move slowly, `CrowdLayer` falls by 5.7 and 6.2 on two of
    them, CCC by 3.7 and 2.6, and with ``gamma=1`` and a shorter warm-up by 1.1 and 0.5 (three seeds); with SGD for the matrices
    too, `CrowdLayer` by 5.1 and 5.2, CCC by 1.7 and 0.4 (5.5 and 4.5, 1.7 and 0.8 with three other seeds). On real data the gain is
    smaller: 84.3 ± 0.5 % of LabelMe's test tasks at last (`CrowdLayer` 83.0, the paper's
    CCC 84.8 ± 0.8); 85.1 ± 0.3 with three in ten features hidden in each step, which stands for the paper's augmentation
    (`CrowdLayer` 83.1); and 70.7 ± 1.1 % of Music's (68.2; the paper's 72.9 ± 0.7), or 72.4 ± 0.6 with a larger network
    (70.9); five seeds each. A stronger ridge does as much:
    with ``l2=30`` plain `CrowdLayer` has 85.4 % on LabelMe. The five patterns are found only in part: an adjusted Rand index of
    0.17 to 0.62 with five groups.

    >>> from wisecrowd import CCC, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> made = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"x": 3.0 * (made.truth == made.crowd.classes[1]) + rng.normal(size=200)}, index=made.truth.index)
    >>> model = CCC(epochs=20, n_groups=3).fit(X, made.crowd)
    >>> bool(model.score(X, made.truth) > 0.9), model.correction_.shape
    (True, (2, 3, 2, 2))
    >>> model.groups_.columns.tolist()
    ['first', 'second']
    """

    references: ClassVar[tuple[str, ...]] = ("zhang2024coupled",)

    variant: Literal["matrix"] = parameter(default="matrix", help="as in crowd-layer; corrections are of matrices")
    n_groups: int = parameter(default=25, help="groups of workers that are corrected alike")
    gamma: float = parameter(default=0.5, help="size of a correction, relative to the largest entry of T")
    warmup: int | None = parameter(
        default=None, help="epochs of plain CrowdLayer before; unless given, a quarter of all"
    )
    trusted: int | None = parameter(
        default=None, help="labels that judge the other network; unless given, a fifth of the tasks, at most 1,000"
    )
    meta: Literal["head", "full"] = parameter(
        default="head", help="which layers look a step ahead: the last one, or all"
    )

    def _check(self, crowd: Crowd) -> None:
        super()._check(crowd)
        one_of("variant", self.variant, ("matrix",))
        one_of("meta", self.meta, ("head", "full"))
        if self.n_groups < 1 or (self.trusted is not None and self.trusted < 1):
            raise UsageError(f"n_groups and trusted must be 1 or more; got {self.n_groups} and {self.trusted}")
        if self.gamma < 0 or (self.warmup is not None and self.warmup < 0):
            raise UsageError(f"gamma and warmup must not be negative; got {self.gamma} and {self.warmup}")

    # ------------------------------------------------------------------ fitting

    def _train(self, network: CrowdNetwork, training_set: TrainingSet, place: Path | None) -> None:
        torch = need_torch()
        coupled = _Coupled(self, self._twins(network, training_set), training_set)
        with own_chance(torch.device("cpu"), self.random_state + 1):
            chance = torch.get_rng_state()
        self._train_twins(coupled.loss, training_set, place, kept={"chance": chance})
        self.group_ = coupled.groups_now()
        self.correction_ = np.stack([each.cpu().numpy() for each in coupled.mean_correction()])

    def _corrected_loss(self, batch: Batch, correction: Tensor, group: Tensor) -> Tensor:
        """The loss of `CrowdLayer` at T + V."""
        torch = need_torch()
        s = torch.bmm(batch.p[batch.row][:, None], batch.of_worker("T") + correction[group[batch.worker]])[:, 0]
        return batch.mean(torch.nn.functional.cross_entropy(s, batch.label, reduction="none"))

    # ------------------------------------------------------------------ what was learnt

    @property
    def groups_(self) -> pd.DataFrame:
        """The group of every worker at the end, as each of the two networks sees it."""
        group = self._check_fitted("group_")
        index = None if self.worker_index_ is None else self.worker_index_.rename("worker")
        return pd.DataFrame(group.T, index=index, columns=["first", "second"])

    @property
    def layer_(self) -> dict[str, Any]:
        """The workers' matrices as they were learnt: "T" of the first network, "T of the second", (workers, true, said)."""
        self._check_fitted("posterior_")
        tables = [each.table("T").detach().cpu().numpy() for each in (self.network_, self.twin_)]
        return dict(zip(("T", "T of the second"), tables, strict=True))

    def _answers(self, X: NDArray[np.float64], workers: NDArray[np.intp]) -> NDArray[np.float64]:
        return (self._answers_by(self.network_, X, workers) + self._answers_by(self.twin_, X, workers)) / 2


class _Coupled:
    """The loss of both networks on a batch; what holds for an epoch is found at the first batch of it."""

    def __init__(self, method: CCC, networks: Twins, training_set: TrainingSet) -> None:
        self.method, self.networks, self.training_set = method, networks, training_set
        size = method.trusted or min(MOST, round(TRUSTED * len(training_set)))
        self.size = max(size, training_set.crowd.n_classes)
        self.warm = method.epochs_ // 4 if method.warmup is None else method.warmup
        self.labels = given(training_set.vote_tensors, training_set.crowd.n_classes)
        self.epoch = -1
        self.group: list[Tensor] = []
        self.trusted: list[Trusted] = []
        self.largest: list[float] = []
        self.total: list[Tensor] = []
        self.steps = 0

    def loss(self, tasks: Tensor, trainer: Trainer) -> Tensor:
        """Of the first network and of its twin, whose parameters are different ones: the sum has both gradients."""
        epoch = len(trainer.history)
        corrects = self.method.gamma > 0 and epoch >= self.warm
        if corrects and epoch != self.epoch:
            self._begin(epoch)
        rate = trainer.optimisers[0].param_groups[0]["lr"] if corrects else None
        first = self._one(0, tasks, epoch, rate)
        with _other_chance(trainer.model.chance):
            second = self._one(1, tasks, epoch, rate)
        self.steps += corrects
        return first + second

    def _one(self, which: int, tasks: Tensor, epoch: int, rate: float | None) -> Tensor:
        """Of one network; ``rate`` is that of the step which is looked ahead, None where nothing is corrected."""
        method, network = self.method, self.networks[which]
        batch = self.training_set.see(network, tasks, epoch)
        if rate is None:
            return method._with_truth(method._loss(batch), batch)
        correction = self._correction(which, batch, rate)
        self.total[which] += correction
        return method._with_truth(method._corrected_loss(batch, correction, self.group[which]), batch)

    def _correction(self, which: int, batch: Batch, rate: float) -> Tensor:
        method, network, group = self.method, self.networks[which], self.group[which]
        task, label = self._some_trusted(which)
        inputs, n_groups = self.training_set.inputs[task], len(self.total[which])
        if method.meta == "head":
            gradient = head_gradient(batch, group, n_groups, rate, hidden_of(network, inputs), label)
        else:
            gradient = full_gradient(batch, group, n_groups, rate, inputs, label)
        now = network.rows_of("T", batch.worker).detach()
        largest = max(self.largest[which], float(now.max())) if len(now) else self.largest[which]
        return correction_of(gradient, method.gamma, largest)

    def _some_trusted(self, which: int) -> Trusted:
        """The next batch of what the other network trusts, going round."""
        trusted, size = self.trusted[1 - which], self.method.batch_size
        start = self.steps * size
        place = need_torch().arange(start, start + min(size, len(trusted.task))) % len(trusted.task)
        return Trusted(trusted.task[place], trusted.label[place])

    def _begin(self, epoch: int) -> None:
        """Groups and trusted labels of an epoch follow from the weights that it starts with."""
        torch = need_torch()
        self.epoch, self.steps = epoch, 0
        inputs, seed = self.training_set.inputs, [self.method.random_state, epoch]
        self.group, self.trusted, self.largest, self.total = [], [], [], []
        groups = self.groups_now()
        for which, network in enumerate(self.networks):
            log_p = torch.log_softmax(self.training_set.logits(network), dim=1)
            trusted = distilled(log_p, self.labels, self.size)
            order = torch.from_numpy(np.random.default_rng([*seed, which]).permutation(len(trusted.task)))
            self.trusted.append(Trusted(*(each[order.to(each.device)] for each in trusted)))
            table = network.table("T").detach()
            self.group.append(torch.from_numpy(groups[which]).to(inputs.device))
            self.largest.append(float(table.max()))
            shape = (self.n_groups, *table.shape[1:])
            self.total.append(torch.zeros(shape, dtype=inputs.dtype, device=inputs.device))

    @property
    def n_groups(self) -> int:
        """No more than there are workers."""
        return min(self.method.n_groups, self.training_set.crowd.n_workers)

    def groups_now(self) -> NDArray[np.int64]:
        """The workers' groups by the matrices as they are, (networks, workers)."""
        tables = [network.table("T").detach().cpu().numpy() for network in self.networks]
        found = np.stack([grouped(table, self.n_groups, self.method.random_state) for table in tables])
        return my_team().word(found, self.training_set.inputs.device)  # K-means in threads may sum in any order

    def mean_correction(self) -> list[Tensor]:
        """The mean of V over the last epoch; zero where there never was one."""
        torch = need_torch()
        if not self.total:
            n_classes = self.training_set.crowd.n_classes
            return [torch.zeros(self.n_groups, n_classes, n_classes)] * 2
        return [total / max(self.steps, 1) for total in self.total]


@contextlib.contextmanager
def _other_chance(kept: Any) -> Iterator[None]:
    """The twin's dropout has a stream of its own, kept with the weights: the first network draws as if alone."""
    torch = need_torch()
    mine = torch.get_rng_state()
    torch.set_rng_state(kept.cpu())
    try:
        yield
    finally:
        kept.copy_(torch.get_rng_state())
        torch.set_rng_state(mine)
