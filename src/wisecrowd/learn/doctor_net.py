"""DoctorNet: every worker has a softmax of their own on one network, and the answer is their mean (Guan and others)."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError, one_of
from wisecrowd.nn.backend import need_torch
from wisecrowd.nn.crowd_network import CrowdNetwork, Sizes
from wisecrowd.nn.deep_learner import DeepLearner
from wisecrowd.nn.training_set import TrainingSet
from wisecrowd.nn.vote_tensors import Batch, PerWorker

if TYPE_CHECKING:
    from torch import Tensor

#: Numbers that a block of answers (tasks x workers x classes) holds at most.
BLOCK = 2**22


@method_class
class DoctorNet(DeepLearner):
    """One network of hidden units h(x), and a softmax on it for every worker; the answer is what they say on average.

        d_r(x) = softmax(D_rᵀ h(x)),   loss = mean over votes of −log d_r(x)[y] + λ/2 ‖D_r‖² / votes of r
        f(x) = Σ_r w_r(x) d_r(x),      w uniform                                         variant "DN"
                                       w = softmax_r(w_r)                                "WDN"
                                       w(x) = softmax_r(w_r · h(x) / √units)             "IWDN"

    There is no truth in this model: workers are as they are, and right where most of them are. Weights are learnt in a second
    stage, by how well the mean predicts what was said of a task on average, with everything else at rest; of a training
    task only those who did **not** label it are averaged, for the others know it by heart. ``weights_`` are the weights that
    came of it, on average over tasks: whose word tells what the crowd will say, which need not be the truth.
    ``history_`` has the epochs of both stages, one after the other.

    With a few dozen votes per worker a softmax of their own overfits; λ (``head_l2``) draws it to zero, where it says all
    classes alike and leaves the answer to others, the more so the fewer votes it has. With ``tied=True`` it is drawn to a
    softmax of all, d_r(x) = softmax((D + D_r)ᵀ h(x)), without which workers of one or two votes know nothing; the paper
    has none. The weights have the same ridge,
    against the sum over tasks. A known truth is what f should say. The root of the number of units is ours, so that a step
    moves weights as far in "IWDN" as in "WDN"; without it, ten epochs suffice to overfit.

    A step of the first stage touches the softmaxes of those who voted. To average all takes tasks x workers x classes
    computations, which are done in blocks of workers, and for large crowds not at all: f is the mean of a
    ``committee`` of those with the most votes, all of them where there are no more than that, and so the second stage.
    A softmax has (units + 1) x classes numbers, for every worker: 100,000 workers, 128 units and 8 classes are 0.4 GB,
    three times that while it trains. Take fewer units for so many.

    There are no matrices in this model; ``confusion_`` is estimated from f and the votes. Choose it as a yardstick, or when
    workers' opinions are what is asked for (`predict_worker_proba`): a softmax of one's own needs more votes than a
    matrix does. A public port averages logits, so that one worker who is sure and wrong decides alone; Guan and others
    average probabilities, and so does this.

    On LabelMe (512 features of VGG-16, last epoch, five seeds) "DN" has 85.2 ± 0.2 %, as has "WDN", and "IWDN" 84.7 ± 0.7. Zhang
    and others (2024) report 81.7 ± 0.5 for "DN"; the ridge is not the reason (85.0 without), other features may be. On Music
    they have 65.3 ± 0.8 and this 61.7 ± 0.6, but 65.5 ± 0.7 with a batch norm before the softmaxes, as is usual there;
    the weights of "WDN" and "IWDN" bring it to 65.0 ± 0.7 without one.

    >>> from wisecrowd import DoctorNet, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> made = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"x": 3.0 * (made.truth == made.crowd.classes[1]) + rng.normal(size=200)}, index=made.truth.index)
    >>> model = DoctorNet(variant="WDN", epochs=20).fit(X, made.crowd)
    >>> bool(model.score(X, made.truth) > 0.9), bool(np.isclose(model.weights_.sum(), 1))
    (True, True)
    """

    references: ClassVar[tuple[str, ...]] = ("guan2018who",)
    separable: ClassVar[bool] = True

    variant: Literal["DN", "WDN", "IWDN"] = parameter(
        default="DN", help="'DN' (plain mean), 'WDN' (a weight per worker) or 'IWDN' (that depends on the task)"
    )
    head_l2: float = parameter(default=1.0, help="ridge on a worker's softmax, against the sum over their votes")
    tied: bool = parameter(
        default=False, help="whether a softmax of all workers is added to that of each, for crowds with few votes"
    )
    committee: int = parameter(default=2000, help="workers that are averaged at most: those with the most votes")
    weight_epochs: int = parameter(default=10, help="times through all tasks in which weights are learnt")
    weight_learning_rate: float = parameter(default=0.03, help="step size of the weights")

    def _check(self, crowd: Crowd) -> None:
        super()._check(crowd)
        one_of("variant", self.variant, ("DN", "WDN", "IWDN"))
        if self.head_l2 < 0 or self.committee < 1 or self.weight_epochs < 1 or not self.weight_learning_rate > 0:
            raise UsageError(
                "head_l2 must not be negative, committee and weight_epochs must be 1 or more, and weight_learning_rate "
                f"positive; got {self.head_l2}, {self.committee}, {self.weight_epochs} and {self.weight_learning_rate}"
            )

    def _own(self, sizes: Sizes) -> dict[str, Any]:
        torch, (n_workers, n_classes, n_hidden) = need_torch(), sizes
        found = {"D": PerWorker(torch.zeros(n_workers, n_hidden + 1, n_classes))}
        if self.variant == "DN":
            return found
        n_inputs = 1 if self.variant == "WDN" else n_hidden + 1
        return found | {"w": PerWorker(torch.zeros(n_workers, n_inputs))}

    def _prepare(self, network: CrowdNetwork, crowd: Crowd) -> None:
        torch = need_torch()
        assert crowd.worker is not None
        votes = np.bincount(crowd.worker, crowd.weight, minlength=crowd.n_workers)
        busiest = np.argsort(-votes, kind="stable")[: self.committee]
        self.committee_ = np.sort(busiest[votes[busiest] > 0])
        network.own.register_buffer("votes", torch.from_numpy(votes), persistent=False)

    # ------------------------------------------------------------------ first stage: what workers say

    def _label_log_probs(self, batch: Batch) -> Tensor:
        torch = need_torch()
        logits = torch.bmm(_with_one(batch.hidden)[batch.row, None], batch.of_worker("D"))[:, 0]
        found: Tensor = torch.log_softmax(logits + batch.logits[batch.row] if self.tied else logits, dim=1)
        return found

    def _loss(self, batch: Batch) -> Tensor:
        loss = super()._loss(batch)
        if self.head_l2 == 0:
            return loss
        size = batch.of_worker("D").square().sum(dim=(1, 2))
        return loss + batch.mean(self.head_l2 / 2 * size / batch.own("votes")[batch.worker])

    def _against_truth(self, batch: Batch, given: Tensor, truth: Tensor) -> Tensor:
        """A known truth is what the mean of all should say: the network has no other answer."""
        answer = self._proba(batch.network, batch.hidden[given], batch.logits[given])
        return -answer.gather(1, truth[:, None]).clamp_min(1e-12).log().sum()

    # ------------------------------------------------------------------ second stage: whose word counts how much

    def _train(self, network: CrowdNetwork, training_set: TrainingSet, place: Path | None) -> None:
        super()._train(network, training_set, place)
        if self.variant == "DN":
            return
        first = self.history_
        for name, each in network.module.named_parameters():
            each.requires_grad_(name == "own.w")
        stage = replace(self, epochs=self.weight_epochs, worker_learning_rate=self.weight_learning_rate)
        stage.epochs_ = self.weight_epochs
        file = None if place is None else place.with_stem(f"{place.stem}-weights")
        trainer = stage._new_trainer(network, len(training_set), self.random_state, file)
        member = _places(self.committee_, self.n_workers_, training_set.inputs)
        trainer.run(
            lambda tasks: self._weights_loss(network, training_set, tasks, member),
            len(training_set),
            validate=self._validate(training_set),
            separable=False,
        )
        if self.keep == "selected" and trainer.best is not None:
            network.take(trainer.best)
        self._note(trainer)
        self.history_.index += len(first)
        self.history_, self.n_iter_ = pd.concat([first, self.history_]), len(first) + self.n_iter_

    def _weights_loss(self, network: CrowdNetwork, training_set: TrainingSet, tasks: Tensor, member: Tensor) -> Tensor:
        """Against the mean label of each task: the weighted mean of those who did not label it."""
        torch = need_torch()
        network.module.eval()  # what workers say is settled: no dropout
        batch = training_set.see(network, tasks)
        scores = self._scores(network, batch.hidden)
        place = member[batch.worker]
        spoke = torch.zeros_like(scores, dtype=torch.bool)
        spoke[batch.row[place >= 0], place[place >= 0]] = True
        judged = ~spoke.all(dim=1)
        if not bool(judged.any()):
            return 0 * scores.sum()
        log_w = scores.masked_fill(spoke, -math.inf)[judged].log_softmax(dim=1)
        with torch.no_grad():
            log_d = self._heads(network, batch.hidden[judged], self.committee_)
        answer = torch.logsumexp(log_w[:, :, None] + log_d, dim=1)
        ridge = self.head_l2 / 2 * self._weights(network).square().sum() / len(training_set)
        return ridge - (_mean_labels(batch)[judged] * answer).sum(dim=1).mean()

    # ------------------------------------------------------------------ the committee

    def _heads(self, network: CrowdNetwork, hidden: Tensor, workers: NDArray[np.intp]) -> Tensor:
        """log d_r(x) of some workers: (tasks, workers, classes)."""
        torch = need_torch()
        D = network.rows_of("D", torch.from_numpy(workers).to(hidden.device))
        logits: Tensor = torch.einsum("nh,rhk->nrk", _with_one(hidden), D)
        return (logits + network.head(hidden)[:, None] if self.tied else logits).log_softmax(dim=2)

    def _scores(self, network: CrowdNetwork, hidden: Tensor) -> Tensor:
        """Logarithms of the committee's weights for tasks, up to a constant: (tasks, committee)."""
        if self.variant == "DN":
            return hidden.new_zeros(len(hidden), len(self.committee_))
        w = self._weights(network)
        inputs = hidden.new_ones(len(hidden), 1) if self.variant == "WDN" else _with_one(hidden)
        return inputs @ w.T / math.sqrt(w.shape[1])

    def _weights(self, network: CrowdNetwork) -> Tensor:
        members = need_torch().from_numpy(self.committee_)
        return network.rows_of("w", members.to(network.own.w.device))

    def _proba(self, network: CrowdNetwork, hidden: Tensor, logits: Tensor) -> Tensor:
        weight = self._scores(network, hidden).softmax(dim=1)
        size = max(1, BLOCK // max(1, logits.numel()))
        found = logits.new_zeros(logits.shape)
        for start in range(0, len(self.committee_), size):
            block = slice(start, start + size)
            found = found + (weight[:, block, None] * self._heads(network, hidden, self.committee_[block]).exp()).sum(
                dim=1
            )
        return found

    def _conclude(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        super()._conclude(X, crowd, gold)
        total = sum(
            self._scores(self.network_, hidden).softmax(dim=1).sum(dim=0).double().cpu().numpy()
            for _, hidden, _ in self.network_.blocks(X)
        )
        self.weights_ = np.zeros(crowd.n_workers)
        self.weights_[self.committee_] = total / len(X)


def _with_one(hidden: Tensor) -> Tensor:
    """Hidden units, and a one that a bias is the weight of."""
    found: Tensor = need_torch().nn.functional.pad(hidden, (0, 1), value=1.0)
    return found


def _places(chosen: NDArray[np.intp], number: int, like: Tensor) -> Tensor:
    """Where each of so many is among the chosen; −1 of the others."""
    found = np.full(number, -1)
    found[chosen] = np.arange(len(chosen))
    tensor: Tensor = need_torch().from_numpy(found).to(like.device)
    return tensor


def _mean_labels(batch: Batch) -> Tensor:
    """What the votes on each task say on average, or the truth where it is known: (tasks, classes)."""
    torch = need_torch()
    found = torch.zeros_like(batch.logits)
    found.index_put_((batch.row, batch.label), batch.weight, accumulate=True)
    found /= found.sum(dim=1, keepdim=True).clamp_min(1e-12)
    return found if batch.known is None else torch.where(batch.known[:, None] >= 0, batch.p, found)
