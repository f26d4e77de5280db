"""MMLC: workers as mixtures of experts, and an oracle worker at their centre (Han et al.)."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.data.alignment import align_truth
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import AnyCrowd, FeaturesLike
from wisecrowd.errors import InputError, UsageError, check_choice, preview
from wisecrowd.learn.mmlc._centres import Centre, compute_centre, compute_centre_weights
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.crowd_network import CrowdNetwork, ModelSizes, NetworkBuilder
from wisecrowd.nn.deep_learner import MAX_PREDICTED_VOTES, DeepLearner
from wisecrowd.nn.deep_training import TrainedNetworks, TrainingJob
from wisecrowd.nn.modules import compute_input_shape
from wisecrowd.nn.vote_loss import VoteLoss
from wisecrowd.nn.vote_tensors import Batch, WorkerTable

if TYPE_CHECKING:
    from torch import Tensor

#: Units of the last layer of an expert, and of the layer after the mixture, when no size of the paper is chosen.
DEFAULT_EXPERT_UNITS = 32
#: Number of experts when no size of the paper is chosen.
DEFAULT_EXPERTS = 10
#: Smallest share of an expert in the start of the search for the best oracle, whose logarithm must be finite.
MIN_EXPERT_SHARE = 1e-6
#: Iterations of L-BFGS in that search.
ORACLE_ITERATIONS = 200


class ExpertSizes(NamedTuple):
    """Sizes of the experts and of the layers after them.

    Attributes
    ----------
    n_experts : int
        Number of experts.
    widths : tuple of int
        Units of each layer of an expert.
    output_widths : tuple of int
        Units of each layer between the mixture and the classes.

    Examples
    --------
    >>> SIZES["music"].n_experts
    10
    """

    n_experts: int
    widths: tuple[int, ...]
    output_widths: tuple[int, ...]


#: Sizes of the paper for its three datasets.
SIZES = {
    "labelme": ExpertSizes(16, (500, 128, 32), (32, 32)),
    "text": ExpertSizes(10, (780, 128, 32), (32, 32)),
    "music": ExpertSizes(10, (128, 16), (16,)),
}


@method_class
class MMLC(DeepLearner):
    """Model of single workers as mixtures of shared experts, with the centre of the crowd as the prediction.

        u_e(x)                                   E experts, networks of the task's features
        v_r = softmax(gate(r))                   mixture of worker r
        P(r gives · | x) = softmax(out(Σ_e v_re u_e(x)))

    The model is trained on the votes and has no true class. The *oracle worker* is the centre v* of all v_r, and its
    labels are the prediction. The ``centre`` is the mode of the density of each coordinate ("kde", as in the paper),
    the mode of the joint density ("joint"), the "mean" or the "median"; ``weights="labels"`` weighs workers by their
    votes. Bandwidths follow Silverman's rule; the authors chose theirs by the true accuracy. With ``centre="truth"``,
    v* is the mixture with the highest likelihood of the truth given to ``fit``. No centre has a higher one, but a centre can
    be more accurate.

    The oracle is the centre of the crowd: where most workers make the same mistake, it makes the same mistake. Its
    advantage over a vote comes from the features and from common traits of the workers. The number of epochs matters
    most: at first all workers are equal, and at the end the model memorises the noise of each. By default it is
    chosen by hidden votes (``search_`` has the curve).

    All workers start equal. A worker with a single vote stays near the centre, and a worker without training votes
    equals the oracle. `predict_worker_proba` is the model's own; ``confusion_`` is estimated from the oracle's
    probabilities and the votes.

    The program of the authors lets each worker's vector attend to itself alone, which has no effect and is omitted.
    It has no ridge penalty, although the paper has one. It weighs vectors by multiplication, which gives no weighted
    median or density. For its bound it retrains the layers after the mixture instead of v*. It has no dropout;
    here half of the units are dropped, which predicts hidden votes better on each of the paper's three crowds.
    Benchmark: ``wisecrowd bench show han2025mmlc``.

    Examples
    --------
    >>> from wisecrowd import MMLC, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> x = 3.0 * (simulation.truth == simulation.crowd.classes[1]) + rng.normal(size=200)
    >>> X = pd.DataFrame({"x": x}, index=simulation.truth.index)
    >>> model = MMLC(epochs=20, n_experts=4).fit(X, simulation.crowd)
    >>> bool(model.score(X, simulation.truth) > 0.9), model.worker_vectors_.shape, bool(np.isclose(model.oracle_.sum(), 1))
    (True, (10, 4), True)
    """

    references: ClassVar[tuple[str, ...]] = ("han2025mmlc",)

    classifier: Literal["auto", "labelme", "text", "music"] = parameter(
        default="auto", help="Sizes of the experts: 'auto', or those of the paper for 'labelme', 'text' or 'music'."
    )
    n_experts: int | None = parameter(default=None, help="Number of experts; None for that of the sizes.")
    gate_hidden: int = parameter(default=32, help="Number of hidden units of a worker's gate.")
    centre: Literal["kde", "joint", "mean", "median", "truth"] = parameter(
        default="kde", help="Centre of the workers: 'kde', 'joint', 'mean', 'median' or 'truth'."
    )
    weights: Literal["none", "labels"] = parameter(
        default="none", help="Weights of workers in the centre: 'none', or their number of 'labels'."
    )
    bandwidth: float | None = parameter(default=None, help="Bandwidth of densities; None for Silverman's rule.")
    weighting: Literal["annotation", "worker"] = parameter(
        default="annotation", help="Unit of equal weight in training: every 'annotation' (vote), or every 'worker'."
    )
    epochs: int | Literal["auto"] | None = parameter(
        default="auto", help="Number of epochs; 'auto' chooses it by hidden votes, None by the number of tasks."
    )
    dropout: float = parameter(default=0.5, help="Share of an expert's units that dropout sets to zero.")
    l2: float = parameter(
        default=0.0, help="Ridge penalty on the weights of the experts, relative to the loss summed over all tasks."
    )

    oracle_: NDArray[np.float64] = fitted(help="Mixture v* of the oracle worker.", shape=("n_experts",), finite=True)
    counts_: NDArray[np.float64] = fitted(
        help="Number of votes of every worker that weigh the centre.", shape=("n_workers",), finite=True
    )

    def _check_parameters(self, crowd: Crowd) -> None:
        super()._check_parameters(crowd)
        check_choice("classifier", self.classifier, ("auto", *SIZES))
        check_choice("centre", self.centre, ("kde", "joint", "mean", "median", "truth"))
        check_choice("weights", self.weights, ("none", "labels"))
        check_choice("weighting", self.weighting, ("annotation", "worker"))
        if (self.n_experts is not None and self.n_experts < 1) or self.gate_hidden < 1:
            raise UsageError(
                f"n_experts and gate_hidden must be 1 or more; got {self.n_experts} and {self.gate_hidden}"
            )
        if self.bandwidth is not None and not self.bandwidth > 0:
            raise UsageError(f"bandwidth must be positive; got {self.bandwidth}")

    # ------------------------------------------------------------------ the model

    @property
    def _sizes(self) -> ExpertSizes:
        default = ExpertSizes(DEFAULT_EXPERTS, (self.hidden, DEFAULT_EXPERT_UNITS), (DEFAULT_EXPERT_UNITS,))
        sizes = SIZES.get(self.classifier, default)
        return sizes if self.n_experts is None else sizes._replace(n_experts=self.n_experts)

    def _make_builder(self, feature_shape: Sequence[int], n_workers: int, n_classes: int) -> NetworkBuilder:
        return NetworkBuilder(
            classifier=_ExpertLayers(self._sizes, self.dropout),
            input_shape=compute_input_shape(list(feature_shape), "mlp"), n_workers=n_workers, n_classes=n_classes,
            hidden=self.hidden, dropout=0.0, make_worker_parameters=self._make_worker_parameters,
            initialize=self._initialize_parameters, has_head=False,
        )  # fmt: skip

    def _count_matrices(self, votes: AnyCrowd) -> int:
        return 0

    def _make_worker_parameters(self, sizes: ModelSizes) -> dict[str, Any]:
        torch, expert_sizes = import_torch(), self._sizes
        nn, width = torch.nn, expert_sizes.widths[-1]
        layers: list[Any] = []
        for units in expert_sizes.output_widths:
            layers += [nn.Linear(width, units), nn.ReLU()]
            width = units
        return {
            # W1 is zero at first, so that all workers start equal; the random bias b1 breaks the symmetry of the units.
            "W1": WorkerTable(torch.zeros(sizes.n_workers, self.gate_hidden)),
            "b1": torch.randn(self.gate_hidden),
            "W2": nn.Linear(self.gate_hidden, expert_sizes.n_experts),
            "out": nn.Sequential(*layers, nn.Linear(width, sizes.n_classes)),
        }

    def _initialize_parameters(self, network: CrowdNetwork, crowd: Crowd) -> None:
        """Add the votes per worker to the network, as constants."""
        votes = import_torch().from_numpy(_count_votes(crowd))
        network.worker_parameters.register_buffer("votes", votes, persistent=False)

    def _mixtures(self, network: CrowdNetwork, rows: Tensor) -> Tensor:
        """Return v of rows of W1, (n_rows, n_experts)."""
        torch, gate = import_torch(), network.worker_parameters
        mixtures: Tensor = torch.softmax(gate.W2(torch.relu(rows + gate.b1)), dim=1)
        return mixtures

    def _mix_experts(self, network: CrowdNetwork, hidden: Tensor, mixture: Tensor) -> Tensor:
        """Return log P of each label from the units of the experts and a mixture per row, (n_rows, n_classes)."""
        torch, sizes = import_torch(), self._sizes
        experts = hidden.view(len(hidden), sizes.n_experts, sizes.widths[-1])
        mixed = torch.bmm(mixture[:, None], experts)[:, 0]
        log_probs: Tensor = torch.log_softmax(network.worker_parameters.out(mixed), dim=1)
        return log_probs

    def _label_log_probs(self, batch: Batch) -> Tensor:
        mixture = self._mixtures(batch.network, batch.worker_rows("W1"))
        return self._mix_experts(batch.network, batch.hidden.index_select(0, batch.task), mixture)

    def _make_vote_loss(self) -> VoteLoss:
        vote_weights = self._equal_worker_weights if self.weighting == "worker" else None
        return VoteLoss(self._label_log_probs, self._loss, self._gold_loss, vote_weights)

    def _equal_worker_weights(self, batch: Batch) -> Tensor:
        """Return weights of votes with which every worker has the same total weight."""
        votes = batch.shared("votes").to(batch.weight)
        mean_votes = votes.sum() / (votes > 0).sum()
        return batch.weight * mean_votes / votes[batch.worker]

    def _gold_loss(self, batch: Batch, is_gold: Tensor, gold: Tensor) -> Tensor:
        """Return the loss of gold classes as votes of a worker with the initial mixture."""
        hidden = batch.hidden[is_gold]
        initial = self._mixtures(batch.network, hidden.new_zeros(1, self.gate_hidden)).expand(len(hidden), -1)
        return -self._mix_experts(batch.network, hidden, initial).gather(1, gold[:, None]).sum()

    # ------------------------------------------------------------------ the oracle

    def _worker_mixtures(self, network: CrowdNetwork) -> NDArray[np.float64]:
        """Return v of all workers, (n_workers, n_experts)."""
        with import_torch().no_grad():
            return np.asarray(self._mixtures(network, network.worker_table("W1")).cpu().double().numpy())

    def _find_centre(self, network: CrowdNetwork, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the centre of the workers; their mean with ``centre="truth"``, as the start of a search."""
        kind = "mean" if self.centre == "truth" else self.centre
        weights = compute_centre_weights(counts, self.weights)
        return compute_centre(self._worker_mixtures(network), kind, weights, self.bandwidth)

    def _network_class_probs(self, network: CrowdNetwork, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the class probabilities of the current centre, for validation during training."""
        counts = network.worker_parameters.votes.cpu().double().numpy()
        return self._mixture_class_probs(network, X, self._find_centre(network, counts))

    def _predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._mixture_class_probs(self.network_, X, self.oracle_)

    def _mixture_class_probs(
        self, network: CrowdNetwork, X: NDArray[np.float64], mixture: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the label probabilities of a worker with a given mixture, (n_tasks, n_classes)."""
        row = network.to_tensor(mixture[None])
        batches = [
            self._mix_experts(network, hidden, row.expand(len(hidden), -1)).exp().cpu().double().numpy()
            for _, hidden, _ in network.iterate_batches(X)
        ]
        return np.concatenate(batches) if batches else np.empty((0, network.n_classes))

    def _set_method_attributes(
        self,
        trained: TrainedNetworks,
        job: TrainingJob,
        X: NDArray[np.float64],
        crowd: Crowd,
        gold: NDArray[np.int32] | None,
    ) -> None:
        (network,) = trained.networks
        self.counts_ = _count_votes(job.training_set.crowd)
        self.oracle_ = self._find_centre(network, self.counts_)
        if self.centre == "truth":
            self.oracle_ = self._find_best_mixture(network, X, gold, self.oracle_)

    def _find_best_mixture(
        self,
        network: CrowdNetwork,
        X: NDArray[np.float64],
        gold: NDArray[np.int32] | None,
        start: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return the mixture under which the gold classes are most probable, with all else fixed."""
        torch = import_torch()
        if gold is None or not (gold >= 0).any():
            raise UsageError("centre='truth' finds the oracle by known truth; give some: fit(X, crowd, truth=...)")
        tasks = np.flatnonzero(gold >= 0)
        hidden = torch.cat([units for _, units, _ in network.iterate_batches(X[tasks])])
        targets = torch.from_numpy(gold[tasks].astype(np.int64)).to(hidden.device)
        logits = torch.from_numpy(np.log(np.maximum(start, MIN_EXPERT_SHARE))).to(hidden).requires_grad_()
        # L-BFGS on all tasks and a handful of numbers, where the minibatches of a Trainer would only add noise.
        optimiser = torch.optim.LBFGS([logits], max_iter=ORACLE_ITERATIONS, line_search_fn="strong_wolfe")

        def compute_loss() -> Tensor:
            optimiser.zero_grad()
            mixture = torch.softmax(logits, dim=0).expand(len(hidden), -1)
            loss: Tensor = -self._mix_experts(network, hidden, mixture).gather(1, targets[:, None]).mean()
            loss.backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
            return loss

        optimiser.step(compute_loss)
        network.module.zero_grad(set_to_none=True)
        return np.asarray(torch.softmax(logits.detach().cpu().double(), dim=0).numpy())

    # ------------------------------------------------------------------ results

    @property
    def worker_vectors_(self) -> pd.DataFrame:
        """Mixture v_r of every worker, with one column per expert."""
        self._check_fitted("posterior_")
        index = None if self.worker_index_ is None else self.worker_index_.rename("worker")
        return pd.DataFrame(self._worker_mixtures(self.network_), index=index).rename_axis(columns="expert")

    @property
    def vector_spread_(self) -> pd.Series:
        """Standard deviation over the workers of every expert's share in v_r, largest first.

        Near zero, all workers have the same mixture: the model has learned the features and not the workers.
        """
        return self.worker_vectors_.std(axis=0, ddof=0).sort_values(ascending=False).rename("spread")

    def worker_map(self, n_neighbors: int = 36) -> pd.DataFrame:
        """Return the workers and the oracle in the plane, by Isomap of their mixtures.

        Parameters
        ----------
        n_neighbors : int, default 36
            Number of neighbours of Isomap.

        Returns
        -------
        pandas.DataFrame
            Columns ``x``, ``y`` and ``n_votes`` by worker; the last row is the oracle.
        """
        import warnings

        from sklearn.manifold import Isomap

        vectors = self.worker_vectors_
        points = np.concatenate([vectors.to_numpy(), self.oracle_[None]])
        if len(points) < 4:
            raise UsageError(f"a map needs three workers at least; there are {len(vectors)}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about neighbourhoods in several components, which Isomap connects
            plane = Isomap(n_neighbors=min(n_neighbors, len(points) - 1), n_components=2).fit_transform(points)
        index = pd.Index([*vectors.index, "(oracle)"], name="worker")
        counts = [*self.counts_, np.nan]
        return pd.DataFrame({"x": plane[:, 0], "y": plane[:, 1], "n_votes": counts}, index=index)

    def oracle_by(
        self, centre: Centre = "kde", weights: Literal["none", "labels"] = "none", bandwidth: float | None = None
    ) -> NDArray[np.float64]:
        """Return v* for another kind of centre of the same fit, for `answer_as`.

        Parameters
        ----------
        centre : {"kde", "joint", "mean", "median"}, default "kde"
            Kind of centre.
        weights : {"none", "labels"}, default "none"
            Weights of the workers.
        bandwidth : float, optional
            Bandwidth of densities; Silverman's rule by default.

        Returns
        -------
        ndarray of shape (n_experts,)
        """
        self._check_fitted("posterior_")
        centre_weights = compute_centre_weights(self.counts_, weights)
        return compute_centre(self._worker_mixtures(self.network_), centre, centre_weights, bandwidth)

    def oracle_for(self, X: FeaturesLike, truth: Any) -> NDArray[np.float64]:
        """Return v* under which the true classes of some tasks are most probable.

        No centre has a higher likelihood, but a centre can be more accurate.

        Parameters
        ----------
        X : DataFrame or array of shape (n_tasks, ...)
            Features.
        truth : array-like of shape (n_tasks,)
            True classes. A Series is aligned by task id with a table that contains no other ids.

        Returns
        -------
        ndarray of shape (n_experts,)

        Raises
        ------
        InputError
            If there is not one class per row of X, or a class is unknown.
        """
        classes = self._encode_classes(X, truth)
        return self._find_best_mixture(self.network_, self._validate_features(X), classes, self.oracle_)

    def _encode_classes(self, X: FeaturesLike, truth: Any) -> NDArray[np.int32]:
        """Return the class codes of the truth of some tasks."""
        self._check_fitted("posterior_")
        truth = np.asarray(align_truth(truth, X))
        if truth.shape != (len(X),):
            raise InputError(f"truth must have one class per row of X, shape ({len(X)},); got shape {truth.shape}")
        classes = self.classes_.get_indexer(pd.Index(truth)).astype(np.int32)
        if (classes < 0).any():
            raise InputError(
                f"the truth contains unknown classes: {preview(pd.unique(truth[classes < 0]))}. The model was fitted to "
                f"{preview(self.classes_, 8)}; leave out tasks of other classes"
            )
        return classes

    def retrain_output(self, X: FeaturesLike, truth: Any, *, epochs: int = 200) -> NDArray[np.float64]:
        """Retrain the layers after the mixture with the truth, and return the class probabilities of the oracle.

        This is the upper bound of the authors' program; that of the paper is `oracle_for`. The fitted model does not change.

        Parameters
        ----------
        X : DataFrame or array of shape (n_tasks, ...)
            Features.
        truth : array-like of shape (n_tasks,)
            True classes, in the order of X or as a Series by task id.
        epochs : int, default 200
            Number of steps of Adam over all tasks, at the learning rate of the fit times ten.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)

        Raises
        ------
        InputError
            If there is not one class per row of X, or a class is unknown.
        """
        torch = import_torch()
        classes = self._encode_classes(X, truth)
        network, rows = self.network_, self._validate_features(X)
        mixture = network.to_tensor(self.oracle_[None])
        sizes = self._sizes
        mixed = torch.cat(
            [
                torch.bmm(
                    mixture.expand(len(hidden), -1)[:, None],
                    hidden.view(len(hidden), sizes.n_experts, sizes.widths[-1]),
                )[:, 0]
                for _, hidden, _ in network.iterate_batches(rows)
            ]
        )
        output = copy.deepcopy(network.worker_parameters.out)
        targets = torch.from_numpy(classes.astype(np.int64)).to(mixed.device)
        # All tasks fit into one step, where the minibatches of a Trainer would only add noise.
        optimiser = torch.optim.Adam(output.parameters(), lr=10 * self.learning_rate)
        for _ in range(epochs):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(output(mixed), targets).backward()
            optimiser.step()
        with torch.no_grad():
            return np.asarray(torch.softmax(output(mixed), dim=1).double().cpu().numpy())

    def answer_as(self, X: FeaturesLike, vectors: Any) -> NDArray[np.float64]:
        """Return the label probabilities of workers with given mixtures.

        Parameters
        ----------
        X : DataFrame or array of shape (n_tasks, ...)
            Features.
        vectors : array-like of shape (n_workers, n_experts)
            Mixtures.

        Returns
        -------
        ndarray of shape (n_tasks, n_workers, n_classes)
        """
        self._check_fitted("posterior_")
        mixtures = np.atleast_2d(np.asarray(vectors, dtype=np.float64))
        if mixtures.shape[1] != self._sizes.n_experts:
            raise UsageError(
                f"vectors must have one column for each of {self._sizes.n_experts} experts; got {mixtures.shape[1]}"
            )
        return self._mixtures_label_probs(self.network_, self._validate_features(X), self.network_.to_tensor(mixtures))

    def _average_worker_probs(self, class_probs: NDArray[np.float64]) -> NDArray[np.float64]:
        return class_probs

    def _network_label_probs(
        self, network: CrowdNetwork, X: NDArray[np.float64], workers: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        torch = import_torch()
        with torch.no_grad():
            table = network.worker_table("W1")
            mixtures = self._mixtures(network, table[torch.from_numpy(workers).to(table.device)])
        return self._mixtures_label_probs(network, X, mixtures)

    def _mixtures_label_probs(
        self, network: CrowdNetwork, X: NDArray[np.float64], mixtures: Tensor
    ) -> NDArray[np.float64]:
        """Return label probabilities, (n_tasks, n_workers, n_classes).

        The first layer after the mixture is linear, so that it is applied to the experts, once per task.
        """
        torch, (first, *later) = import_torch(), network.worker_parameters.out
        probs = np.empty((len(X), len(mixtures), network.n_classes))
        start = 0
        for _, hidden, _ in network.iterate_batches(X, size=max(1, MAX_PREDICTED_VOTES // max(len(mixtures), 1))):
            experts = hidden.view(len(hidden), mixtures.shape[1], -1) @ first.weight.T
            units = mixtures @ experts + first.bias
            for layer in later:
                units = layer(units)
            probs[start : start + len(units)] = torch.softmax(units, dim=2).cpu().numpy()
            start += len(units)
        return probs


class _ExpertLayers:
    """Builder of the experts: their first layers are one product, later layers one product per expert."""

    is_small = True

    def __init__(self, sizes: ExpertSizes, dropout: float) -> None:
        self.sizes, self.dropout = sizes, dropout

    def __call__(self, shape: tuple[int, ...], n_classes: int) -> Any:
        nn, n_experts = import_torch().nn, self.sizes.n_experts
        first, *later = self.sizes.widths
        width = n_experts * first
        layers: list[Any] = [nn.Flatten(), nn.Linear(math.prod(shape), width), nn.ReLU(), nn.Dropout(self.dropout)]
        layers.append(nn.Unflatten(1, (width, 1)))
        for units in later:
            layers += [nn.Conv1d(width, n_experts * units, 1, groups=n_experts), nn.ReLU(), nn.Dropout(self.dropout)]
            width = n_experts * units
        return nn.Sequential(*layers, nn.Flatten())


def _count_votes(crowd: Crowd) -> NDArray[np.float64]:
    """Return the weight of the votes of every worker, (n_workers,)."""
    assert crowd.worker is not None
    return np.asarray(np.bincount(crowd.worker, crowd.weight, minlength=crowd.n_workers), dtype=np.float64)
