"""TDG4Crowd: workers and tasks as points, and a small network that makes labels of both (Fang et al.)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax

from wisecrowd.base.completer import Answers, Completer
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.priors import blocks
from wisecrowd.errors import InputError, UsageError, one_of, some
from wisecrowd.nn.backend import need_torch
from wisecrowd.nn.crowd_network import CrowdNetwork, Sizes
from wisecrowd.nn.deep_learner import DeepLearner
from wisecrowd.nn.modules import prepared_shape
from wisecrowd.nn.seeding import chosen_device, own_chance
from wisecrowd.nn.vote_tensors import Batch, PerWorker

if TYPE_CHECKING:
    from torch import Tensor

#: Numbers that a worker, a task, and both together are made of; the paper's.
WORKER, TASK, TOGETHER = 8, 50, 16
#: The log variance of all points at first: were they as wide as the normal distribution that they are drawn toward, who a
#: worker is would drown in what is drawn.
NARROW = -4.0


@method_class
class TDG4Crowd(Completer):
    """Workers and tasks are points drawn from distributions that are learnt; what a worker says follows from both points.

        u_r ~ N(m_r, diag σ_r²)  in 8 dimensions,      m and σ learnt for every worker
        v_i ~ N(m(x_i), diag σ(x_i)²)  in 50,          m and σ by a network of the task's features, two layers of ``hidden``
        P(r says · of task i) = softmax(W₂ relu(W₁ [u_r, v_i] + b₁) + b₂),      58 → 16 → classes

    is trained on the votes: −log P of what was said, and what variational autoencoders add to it, ``kl`` times
    KL(N(m, σ²) ‖ N(0, 1)) and ``rebuild`` times the mean squared error with which a second network finds the (standardised)
    features again from v_i. For answers the means m stand for the points; with ``draws``, answers are the mean over so many
    draws of all points. By default ``epochs`` are chosen by hidden votes (``search_`` has the curve).

    It is `MMLC` with another way of putting workers and tasks together, and a close relative of `DoctorNet`: it imitates
    by features alone, and what others said of the task itself counts only as far as the network has learnt it by heart. Choose
    it where features tell what workers see. Of a fifth of the votes that was hidden (5 times), mean −log P was 1.27 on music
    genres (124 features), .71 on scenes, 1.07 on leaves and .48 on incomes; `DSFill` had 1.60, 1.06, 1.35 and .51. Accuracy of
    majority vote with ``fill_weight=1``, before and after (3 seeds): .704 and .806, .766 and .808, .643 and .652, .721 and
    .723; of `DawidSkene` .780 and .820, .795 and .810, .638 and .612, .732 and .727. ``kl``, ``rebuild`` and the narrow points
    at the start were chosen by hidden votes of the first two.

    The numbers 8, 50 and 16 are the paper's (for texts it has 32 instead of 16, and reads words in order). What the
    authors' program does otherwise: its last layer is rectified, so that logits cannot be negative and no answer can be sure;
    it means to freeze the autoencoders by an attribute that torch does not know, and trains them on; points are drawn anew
    for every answer; the divergence is summed over a batch and drowns the error beside it; the worker's autoencoder is a
    network of one-hot rows that finds them again, for which a table of points does as well; and its images are looked up by
    the number of the *worker* instead of the task, so that its figures on LabelMe are of other images, and nothing to aim at.

    >>> import numpy as np, pandas as pd
    >>> from wisecrowd import TDG4Crowd, simulate_crowd
    >>> made = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> x = 3.0 * (made.truth == made.crowd.classes[1]) + np.random.default_rng(0).normal(size=200)
    >>> kept, hidden = made.crowd.hide(0.2)
    >>> fitted = TDG4Crowd(epochs=20).fit(kept, pd.DataFrame({"x": x}))
    >>> bool(fitted.log_proba_of(hidden).mean() > np.log(1 / 2))  # better than a guess
    True
    """

    uses_features: ClassVar[bool] = True
    references: ClassVar[tuple[str, ...]] = ("fang2023tdg4crowd",)
    breaks: ClassVar[dict[str, str]] = DeepLearner.breaks | {
        "worker_names_do_not_matter": "points are drawn vote by vote, and names decide on the order of votes of a task",
    }

    answers: Literal["hard", "sample", "soft"] = parameter(default="sample", help="'sample' draws a label, 'hard' takes the likeliest, 'soft' gives each its share")  # fmt: skip
    kl: float = parameter(default=0.01, help="weight of the divergence of points from a standard normal")
    rebuild: float = parameter(default=1.0, help="weight of the error of features found again from points")
    draws: int = parameter(default=0, help="points drawn for an answer; 0 answers by their means")
    hidden: int = parameter(default=100, help="width of the two layers that make points of features")
    epochs: int | Literal["auto"] = parameter(
        default="auto", help="times through all tasks: a number, or 'auto', by hidden votes"
    )
    batch_size: int = parameter(default=64, help="tasks per step")
    learning_rate: float = parameter(default=1e-3, help="step size")
    l2: float = parameter(default=0.0, help="ridge on the weights of the network of features")
    precision: Literal["single", "double"] = parameter(
        default="single", help="of the numbers that the network computes with"
    )
    device: str = parameter(default="auto", help="'cpu', 'cuda', or the fastest there is")
    checkpoint: str | None = parameter(default=None, help="folder in which a fit that is killed is kept")
    verbose: bool = parameter(default=False, help="draw a progress bar")

    def _check(self) -> None:
        super()._check()
        if not np.isfinite([self.kl, self.rebuild]).all() or min(self.kl, self.rebuild, self.draws) < 0:
            raise UsageError(
                f"kl, rebuild and draws must be finite and not negative; got {self.kl}, {self.rebuild} and {self.draws}"
            )
        one_of("precision", self.precision, ("single", "double"))
        epochs: Any = self.epochs
        if epochs != "auto" and not (isinstance(epochs, int | np.integer) and epochs >= 1):
            raise UsageError(f"epochs must be a whole number from 1, or 'auto'; got {epochs!r}")

    def _fit(self, crowd: Crowd, X: NDArray[np.float64] | None) -> None:
        assert X is not None
        if crowd.n_classes < 2:
            raise InputError(
                f"TDG4Crowd learns to tell labels apart, and these votes name only {some(self.classes_)}; name all classes "
                "when reading if nobody chose the others: classes=[...]"
            )
        model = _Imitator(
            kl=self.kl, rebuild=self.rebuild, hidden=self.hidden, epochs=self.epochs, batch_size=self.batch_size,
            learning_rate=self.learning_rate, l2=self.l2, precision=self.precision, device=self.device,
            checkpoint=self.checkpoint, verbose=self.verbose, random_state=self.random_state, dropout=0.0,
        )  # fmt: skip
        model.classes_, model.feature_shape_ = self.classes_, list(X.shape[1:])
        model._fit(X, crowd, None)
        self.epochs_, self.history_ = model.epochs_, model.history_
        vars(self).pop("search_", None)
        if self.epochs == "auto":
            self.search_: pd.DataFrame = model.search_
        tasks, workers = model.task_points(X), model.worker_points()
        self.worker_means_ = workers.mean
        first, self.last_, self.last_bias_ = model.layers()
        rng = np.random.default_rng(self.random_state)
        number = max(1, self.draws)
        # The first layer is linear, so that its halves are computed once for each worker and each task.
        self.by_worker_ = np.stack([self._points(workers, rng) @ first[:, :WORKER].T for _ in range(number)])
        self.by_task_ = np.stack([self._points(tasks, rng) @ first[:, WORKER:].T for _ in range(number)])
        self.by_task_ += model.first_bias()

    def _points(self, points: Points, rng: np.random.Generator) -> NDArray[np.float64]:
        if self.draws == 0:
            return points.mean
        return points.mean + points.spread * rng.normal(size=points.mean.shape)

    def _worker_label_probs(self, tasks: NDArray[np.intp], workers: NDArray[np.intp]) -> Answers:
        found = np.zeros((len(tasks), len(workers), len(self.classes_)))
        for rows in blocks(len(tasks), len(workers) * TOGETHER):
            for by_task, by_worker in zip(self.by_task_, self.by_worker_, strict=True):
                together = np.maximum(by_task[tasks[rows], None] + by_worker[workers], 0)
                found[rows] += softmax(together @ self.last_.T + self.last_bias_, axis=2)
        return Answers(found / len(self.by_task_))


class Points(NamedTuple):
    """Distributions of points: where they are, and how wide.

    >>> Points(np.zeros((3, 8)), np.ones((3, 8))).mean.shape
    (3, 8)
    """

    mean: NDArray[np.float64]
    spread: NDArray[np.float64]


@method_class
class _Imitator(DeepLearner):
    """The network, by the training loop of learners; it has no class of its own, and infers no truth."""

    kl: float = 0.0
    rebuild: float = 0.0

    def _new_network(self, seed: int) -> CrowdNetwork:
        with own_chance(chosen_device("cpu"), seed):
            shape, n_classes = prepared_shape(self.feature_shape_, "mlp"), len(self.classes_)
            network = CrowdNetwork(_Encoder(self.hidden), shape, n_classes, self.hidden, 0.0, has_head=False)
            network.add(self._own(Sizes(self.n_workers_, n_classes, network.n_hidden)))
            if self.rebuild > 0:
                nn = need_torch().nn
                network.add({"decoder": nn.Sequential(nn.Linear(TASK, self.hidden), nn.ReLU(),
                                                      nn.Linear(self.hidden, int(np.prod(shape))))})  # fmt: skip
            return network

    def _own(self, sizes: Sizes) -> dict[str, Any]:
        torch = need_torch()
        return {
            "points": PerWorker(
                torch.zeros(sizes.n_workers, 2 * WORKER)
            ),  # mean, and log variance beyond `NARROW`; all alike
            "first": torch.nn.Linear(WORKER + TASK, TOGETHER),
            "last": torch.nn.Linear(TOGETHER, sizes.n_classes),
        }

    def _drawn(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Points of the votes' workers and of the tasks, and the divergence of both by vote; means when it is not training."""
        torch = need_torch()
        points, divergence = [], torch.zeros_like(batch.weight)
        for numbers, row in ((batch.of_worker("points"), None), (batch.hidden, batch.row)):
            mean, log_variance = numbers.chunk(2, dim=1)
            log_variance = log_variance + NARROW
            noise = torch.randn_like(mean) if batch.network.module.training else torch.zeros_like(mean)
            points.append(mean + (log_variance / 2).exp() * noise)
            apart = (mean**2 + log_variance.exp() - 1 - log_variance).sum(dim=1) / 2
            divergence = divergence + (apart if row is None else apart[row])
        return points[0], points[1], divergence

    def _labels(self, batch: Batch, worker: Tensor, task: Tensor) -> Tensor:
        torch = need_torch()
        together = torch.relu(batch.own("first")(torch.cat([worker, task[batch.row]], dim=1)))
        found: Tensor = torch.log_softmax(batch.own("last")(together), dim=1)
        return found

    def _label_log_probs(self, batch: Batch) -> Tensor:
        worker, task, _ = self._drawn(batch)
        return self._labels(batch, worker, task)

    def _loss(self, batch: Batch) -> Tensor:
        worker, task, divergence = self._drawn(batch)
        said = self._labels(batch, worker, task).gather(1, batch.label[:, None])[:, 0]
        loss = batch.mean(self.kl * divergence - said)
        if self.rebuild > 0:
            loss = loss + self.rebuild * ((batch.own("decoder")(task) - batch.inputs.flatten(1)) ** 2).mean()
        return loss

    def _conclude(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        """What workers would say is asked for, and nothing else."""

    # ------------------------------------------------------------------ what was learnt, as arrays

    def task_points(self, X: NDArray[np.float64]) -> Points:
        """Of rows of features."""
        found = [hidden.double().cpu().numpy() for _, hidden, _ in self.network_.blocks(X)]
        return _as_points(np.concatenate(found))

    def worker_points(self) -> Points:
        """Of all workers."""
        return _as_points(_array(self.network_.table("points")))

    def layers(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Weights of the first layer, weights of the last, and its bias."""
        own = self.network_.own
        return _array(own.first.weight), _array(own.last.weight), _array(own.last.bias)

    def first_bias(self) -> NDArray[np.float64]:
        """Bias of the first layer."""
        return _array(self.network_.own.first.bias)


class _Encoder:
    """Makes the network of features: mean and log variance of a point."""

    is_small = True

    def __init__(self, hidden: int) -> None:
        self.hidden = hidden

    def __call__(self, shape: tuple[int, ...], n_classes: int) -> Any:
        nn = need_torch().nn
        return nn.Sequential(
            nn.Flatten(), nn.Linear(int(np.prod(shape)), self.hidden), nn.ReLU(),
            nn.Linear(self.hidden, self.hidden), nn.ReLU(), nn.Linear(self.hidden, 2 * TASK),
        )  # fmt: skip


def _as_points(numbers: NDArray[np.float64]) -> Points:
    mean, log_variance = np.split(numbers, 2, axis=1)
    return Points(mean, np.exp((log_variance + NARROW) / 2))


def _array(tensor: Tensor) -> NDArray[np.float64]:
    return np.asarray(tensor.detach().double().cpu().numpy())
