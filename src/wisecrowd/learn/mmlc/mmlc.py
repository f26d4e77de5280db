"""MMLC: workers as mixtures of experts, and the worker in the middle of them (Han et al.)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError, one_of
from wisecrowd.learn.mmlc._centers import Centre, weights_of
from wisecrowd.learn.mmlc._centers import centre as centre_of
from wisecrowd.nn.backend import need_torch
from wisecrowd.nn.crowd_network import CrowdNetwork, Sizes
from wisecrowd.nn.deep_learner import ANSWERS, DeepLearner
from wisecrowd.nn.modules import prepared_shape
from wisecrowd.nn.seeding import chosen_device, own_chance
from wisecrowd.nn.vote_tensors import Batch, PerWorker

if TYPE_CHECKING:
    from torch import Tensor


class Size(NamedTuple):
    """Of the experts and what comes after them.

    >>> SIZES["music"].n_experts
    10
    """

    n_experts: int
    widths: tuple[int, ...]
    """Units of each layer of an expert."""
    out: tuple[int, ...]
    """Units of each layer between the mixture and the classes."""


#: The paper's, for its three datasets.
SIZES = {
    "labelme": Size(16, (500, 128, 32), (32, 32)),
    "text": Size(10, (780, 128, 32), (32, 32)),
    "music": Size(10, (128, 16), (16,)),
}


@method_class
class MMLC(DeepLearner):
    """What would each worker say? Experts that all share, mixed by every worker in their own way; the truth is in the middle.

        u_e(x)                                   E experts, networks of the task's features
        v_r = softmax(gate(r))                   how worker r mixes them
        P(r says · | x) = softmax(out(Σ_e v_re u_e(x)))

    is trained on the votes; there is no true class in the model. The *oracle worker* is then the centre v* of all v_r, and
    what it would say is the prediction: the ``centre`` is the mode of each coordinate's density ("kde", the paper's), of the
    density of all ("joint"), their "mean" or "median"; ``weights="labels"`` counts workers by their labels. Bandwidths
    follow Silverman's rule; the authors chose theirs by the true accuracy. With ``centre="truth"`` v* is what foretells the
    truth best that is given to ``fit``, an upper bound on what any centre can do.

    The oracle is the centre of the crowd: where most workers make the same mistake, so does it. What it gains over a vote
    it gains from features and from what workers have in common. How long to train decides more than anything else: at first
    all workers are alike, at last everybody's noise is known by heart. By default votes are hidden, the epoch is found at
    which they are foretold best, and all votes are learnt for so many epochs (``search_`` has the curve).

    All workers start alike and differ as much as their votes make them; one with a single vote stays near the centre, and one
    who was not seen in training answers as the oracle. ``predict_worker_proba`` is the model's own; it has no confusion
    matrices, and ``confusion_`` is estimated from the oracle's answers and the votes. ``worker_vectors_`` has the v_r,
    ``oracle_`` v*, and `worker_map` both in the plane.

    The authors' program attends from each worker's vector to itself alone, which changes nothing and is left out; has no
    ridge, though the paper has one; weights vectors by multiplying them, which is no weighted median or density; and for the
    upper bound retrains what comes after the mixture instead of v*. An expert is computed once for each task of a batch.
    Theirs has no dropout; here half of the units rest, because hidden votes are foretold better so on each of the paper's
    three crowds (their mean −log P falls by 0.01 on LabelMe and the sentences, and by 0.05 on Music).

    >>> from wisecrowd import MMLC, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> made = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"x": 3.0 * (made.truth == made.crowd.classes[1]) + rng.normal(size=200)}, index=made.truth.index)
    >>> model = MMLC(epochs=20, n_experts=4).fit(X, made.crowd)
    >>> bool(model.score(X, made.truth) > 0.9), model.worker_vectors_.shape, bool(np.isclose(model.oracle_.sum(), 1))
    (True, (10, 4), True)
    """

    references: ClassVar[tuple[str, ...]] = ("han2025mmlc",)

    classifier: Literal["auto", "labelme", "text", "music"] = parameter(
        default="auto", help="size of the experts: by the data, or that of a dataset of the paper"
    )
    n_experts: int | None = parameter(default=None, help="experts; unless given, by the size")
    gate_hidden: int = parameter(default=32, help="numbers that a worker's mixture is made of")
    centre: Literal["kde", "joint", "mean", "median", "truth"] = parameter(
        default="kde", help="how the oracle is found: 'kde', 'joint', 'mean', 'median', or 'truth'"
    )
    weights: Literal["none", "labels"] = parameter(
        default="none", help="whether workers count in the centre by their labels"
    )
    bandwidth: float | None = parameter(default=None, help="of densities; unless given, by Silverman's rule")
    weighting: Literal["annotation", "worker"] = parameter(
        default="annotation", help="whether every vote counts alike in training, or every worker"
    )
    epochs: int | Literal["auto"] | None = parameter(
        default="auto", help="times through all tasks: a number, or 'auto', by hidden votes"
    )
    dropout: float = parameter(default=0.5, help="share of an expert's units that a step leaves out")
    l2: float = parameter(default=0.0, help="ridge on the experts' weights, against the sum over all tasks")

    def _check(self, crowd: Crowd) -> None:
        super()._check(crowd)
        one_of("classifier", self.classifier, ("auto", *SIZES))
        one_of("centre", self.centre, ("kde", "joint", "mean", "median", "truth"))
        one_of("weights", self.weights, ("none", "labels"))
        one_of("weighting", self.weighting, ("annotation", "worker"))
        if (self.n_experts is not None and self.n_experts < 1) or self.gate_hidden < 1:
            raise UsageError(
                f"n_experts and gate_hidden must be 1 or more; got {self.n_experts} and {self.gate_hidden}"
            )
        if self.bandwidth is not None and not self.bandwidth > 0:
            raise UsageError(f"bandwidth must be positive; got {self.bandwidth}")

    # ------------------------------------------------------------------ the model

    @property
    def _size(self) -> Size:
        size = SIZES.get(self.classifier, Size(10, (self.hidden, 32), (32,)))
        return size if self.n_experts is None else size._replace(n_experts=self.n_experts)

    def _new_network(self, seed: int) -> CrowdNetwork:
        with own_chance(chosen_device("cpu"), seed):
            shape, n_classes = prepared_shape(self.feature_shape_, "mlp"), len(self.classes_)
            network = CrowdNetwork(
                _Experts(self._size, self.dropout), shape, n_classes, self.hidden, 0.0, has_head=False
            )
            return network.add(self._own(Sizes(self.n_workers_, n_classes, network.n_hidden)))

    def _own(self, sizes: Sizes) -> dict[str, Any]:
        torch, size = need_torch(), self._size
        nn, width = torch.nn, size.widths[-1]
        layers: list[Any] = []
        for units in size.out:
            layers += [nn.Linear(width, units), nn.ReLU()]
            width = units
        return {
            # W1 of a worker, zero at first: all begin alike, by a bias whose rectified half is not.
            "W1": PerWorker(torch.zeros(sizes.n_workers, self.gate_hidden)),
            "b1": torch.randn(self.gate_hidden),
            "W2": nn.Linear(self.gate_hidden, size.n_experts),
            "out": nn.Sequential(*layers, nn.Linear(width, sizes.n_classes)),
        }

    def _prepare(self, network: CrowdNetwork, crowd: Crowd) -> None:
        torch = need_torch()
        vars(self).pop("oracle_", None)  # of a fit before
        votes = np.bincount(crowd.worker, crowd.weight, minlength=crowd.n_workers)  # type: ignore[arg-type]  # has workers
        self.counts_ = votes
        network.own.register_buffer("votes", torch.from_numpy(votes), persistent=False)

    def _mixtures(self, network: CrowdNetwork, rows: Tensor) -> Tensor:
        """v of some rows of W1: (rows, experts)."""
        torch, own = need_torch(), network.own
        found: Tensor = torch.softmax(own.W2(torch.relu(rows + own.b1)), dim=1)
        return found

    def _mixed(self, network: CrowdNetwork, hidden: Tensor, mixture: Tensor) -> Tensor:
        """log P of each label, from the experts' units and a mixture for each row: (rows, classes)."""
        torch, size = need_torch(), self._size
        experts = hidden.view(len(hidden), size.n_experts, size.widths[-1])
        found: Tensor = torch.log_softmax(network.own.out(torch.bmm(mixture[:, None], experts)[:, 0]), dim=1)
        return found

    def _label_log_probs(self, batch: Batch) -> Tensor:
        mixture = self._mixtures(batch.network, batch.of_worker("W1"))
        return self._mixed(batch.network, batch.hidden[batch.row], mixture)

    def _loss(self, batch: Batch) -> Tensor:
        if self.weighting == "worker":
            votes = batch.own("votes").to(batch.weight)
            per_worker = votes.sum() / (votes > 0).sum()
            batch.weight = batch.weight * per_worker / votes[batch.worker]
        return super()._loss(batch)

    def _against_truth(self, batch: Batch, given: Tensor, truth: Tensor) -> Tensor:
        """A known truth is a vote of who is as all were at first."""
        hidden = batch.hidden[given]
        start = self._mixtures(batch.network, hidden.new_zeros(1, self.gate_hidden)).expand(len(hidden), -1)
        return -self._mixed(batch.network, hidden, start).gather(1, truth[:, None]).sum()

    # ------------------------------------------------------------------ the oracle

    def _vectors(self, network: CrowdNetwork) -> NDArray[np.float64]:
        with need_torch().no_grad():
            return np.asarray(self._mixtures(network, network.table("W1")).double().cpu().numpy())

    def _centre(self, network: CrowdNetwork) -> NDArray[np.float64]:
        kind = "mean" if self.centre == "truth" else self.centre
        return centre_of(self._vectors(network), kind, weights_of(self.counts_, self.weights), self.bandwidth)

    def _proba_by(self, network: CrowdNetwork, X: NDArray[np.float64]) -> NDArray[np.float64]:
        v = getattr(self, "oracle_", None) if not network.module.training else None
        self._now = network.tensor((self._centre(network) if v is None else v)[None])
        return super()._proba_by(network, X)

    def _proba(self, network: CrowdNetwork, hidden: Tensor, logits: Tensor) -> Tensor:
        return self._mixed(network, hidden, self._now.expand(len(hidden), -1)).exp()

    def _conclude(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        self.oracle_ = self._centre(self.network_)
        if self.centre == "truth":
            self.oracle_ = self._best_for(X, gold)
        super()._conclude(X, crowd, gold)

    def _best_for(self, X: NDArray[np.float64], gold: NDArray[np.int32] | None) -> NDArray[np.float64]:
        """The mixture under which a truth that is known is most probable; nothing else moves."""
        torch = need_torch()
        if gold is None or not (gold >= 0).any():
            raise UsageError("centre='truth' seeks the oracle by known truth; give some: fit(X, crowd, truth=...)")
        known = np.flatnonzero(gold >= 0)
        hidden = torch.cat([units for _, units, _ in self.network_.blocks(X[known])])
        wanted = torch.from_numpy(gold[known].astype(np.int64)).to(hidden.device)
        start = torch.from_numpy(np.log(np.maximum(self.oracle_, 1e-6))).to(hidden)
        logits = start.clone().requires_grad_()
        optimiser = torch.optim.LBFGS([logits], max_iter=200, line_search_fn="strong_wolfe")

        def against() -> Tensor:
            optimiser.zero_grad()
            mixture = torch.softmax(logits, dim=0).expand(len(hidden), -1)
            loss: Tensor = -self._mixed(self.network_, hidden, mixture).gather(1, wanted[:, None]).mean()
            loss.backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
            return loss

        optimiser.step(against)
        self.network_.module.zero_grad(set_to_none=True)
        return np.asarray(torch.softmax(logits.detach().double(), dim=0).cpu().numpy())

    # ------------------------------------------------------------------ what was learnt

    @property
    def worker_vectors_(self) -> pd.DataFrame:
        """How each worker mixes the experts, v_r."""
        self._check_fitted("posterior_")
        index = None if self.worker_index_ is None else self.worker_index_.rename("worker")
        return pd.DataFrame(self._vectors(self.network_), index=index).rename_axis(columns="expert")

    def worker_map(self, n_neighbors: int = 36) -> pd.DataFrame:
        """Workers and the oracle in the plane, by Isomap of their vectors: columns x, y and n_votes; the oracle's is None."""
        import warnings

        from sklearn.manifold import Isomap

        vectors = self.worker_vectors_
        points = np.concatenate([vectors.to_numpy(), self.oracle_[None]])
        if len(points) < 4:
            raise UsageError(f"a map needs three workers at least; there are {len(vectors)}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of neighbourhoods that do not hang together, which it mends
            plane = Isomap(n_neighbors=min(n_neighbors, len(points) - 1), n_components=2).fit_transform(points)
        index = pd.Index([*vectors.index, "(oracle)"], name="worker")
        counts = [*self.counts_, np.nan]
        return pd.DataFrame({"x": plane[:, 0], "y": plane[:, 1], "n_votes": counts}, index=index)

    def oracle_by(
        self, centre: Centre = "kde", weights: Literal["none", "labels"] = "none", bandwidth: float | None = None
    ) -> NDArray[np.float64]:
        """v* as another centre of the same fit would have it, for `answer_as`: nothing is trained again."""
        self._check_fitted("posterior_")
        return centre_of(self._vectors(self.network_), centre, weights_of(self.counts_, weights), bandwidth)

    def oracle_for(self, X: Any, truth: Any) -> NDArray[np.float64]:
        """v* under which the true classes of some tasks are most probable, experts and all else staying as they are.

        What no centre can surpass, and nobody can have who does not know the truth.
        """
        self._check_fitted("posterior_")
        classes = self.classes_.get_indexer(pd.Index(np.asarray(truth)))
        return self._best_for(self._rows(X), classes.astype(np.int32))

    def answer_as(self, X: Any, vectors: Any) -> NDArray[np.float64]:
        """What workers who mix the experts like this, (workers, experts), would say of tasks: (tasks, workers, classes)."""
        self._check_fitted("posterior_")
        mixture = np.atleast_2d(np.asarray(vectors, dtype=np.float64))
        if mixture.shape[1] != self._size.n_experts:
            raise UsageError(
                f"a number for each of {self._size.n_experts} experts was wanted; got {mixture.shape[1]} of them"
            )
        return self._answers_of(self.network_, self._rows(X), self.network_.tensor(mixture))

    def _strangers(self, proba: NDArray[np.float64]) -> NDArray[np.float64]:
        return proba

    def _answers_by(
        self, network: CrowdNetwork, X: NDArray[np.float64], workers: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        with need_torch().no_grad():
            table = network.table("W1")
            mixture = self._mixtures(network, table[need_torch().from_numpy(workers).to(table.device)])
        return self._answers_of(network, X, mixture)

    def _answers_of(self, network: CrowdNetwork, X: NDArray[np.float64], mixture: Tensor) -> NDArray[np.float64]:
        """Experts once for each task, and so the first layer after them, which may as well come before they are mixed."""
        torch, (first, *later) = need_torch(), network.own.out
        found = np.empty((len(X), len(mixture), len(self.classes_)))
        start = 0
        for _, hidden, _ in network.blocks(X, size=max(1, ANSWERS // max(len(mixture), 1))):
            experts = hidden.view(len(hidden), mixture.shape[1], -1) @ first.weight.T
            units = mixture @ experts + first.bias
            for layer in later:
                units = layer(units)
            found[start : start + len(units)] = torch.softmax(units, dim=2).cpu().numpy()
            start += len(units)
        return found


class _Experts:
    """Makes the experts: the first layers of all are one product, later ones a product for each."""

    is_small = True

    def __init__(self, size: Size, dropout: float) -> None:
        self.size, self.dropout = size, dropout

    def __call__(self, shape: tuple[int, ...], n_classes: int) -> Any:
        nn, n_experts = need_torch().nn, self.size.n_experts
        first, *later = self.size.widths
        width = n_experts * first
        layers: list[Any] = [nn.Flatten(), nn.Linear(math.prod(shape), width), nn.ReLU(), nn.Dropout(self.dropout)]
        layers.append(nn.Unflatten(1, (width, 1)))
        for units in later:
            layers += [nn.Conv1d(width, n_experts * units, 1, groups=n_experts), nn.ReLU(), nn.Dropout(self.dropout)]
            width = n_experts * units
        return nn.Sequential(*layers, nn.Flatten())
