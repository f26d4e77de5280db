"""TLLC: missing votes by a network fine-tuned to every worker (Zhang, Jiang and Li)."""

from __future__ import annotations

import contextlib
import warnings
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.completer import Completer, WorkerLabelProbs
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.classifiers.standardiser import Standardiser
from wisecrowd.complete.tllc._confident_tasks import select_confident_tasks
from wisecrowd.complete.tllc._random_keys import compute_task_keys, compute_voter_keys, draw_uniform
from wisecrowd.complete.tllc._siamese_networks import GROUP_FLOATS, NetworkVotes, StackedNetworks, train_networks
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import AnyCrowd
from wisecrowd.data.vocabulary import as_index
from wisecrowd.errors import DataWarning, InputError, UsageError, check_choice
from wisecrowd.nn.backend import import_torch, limit_threads
from wisecrowd.nn.seeding import fork_random_state, select_device
from wisecrowd.utils.progress import report

if TYPE_CHECKING:
    from torch import Tensor

RULES = ("nearest", "nearest_inside", "first", "all")
#: Relative and absolute tolerance of a radius, so that rounding does not exclude a task at exactly that distance.
RADIUS_TOLERANCE = 1e-5
#: Number of floats in a step below which one thread is fastest.
SINGLE_THREAD_FLOATS = 2**21


class _WorkerNetworks(NamedTuple):
    """Networks of the workers as arrays; the first network is shared by all."""

    weight: NDArray[Any]
    bias: NDArray[Any]
    out_weight: NDArray[Any]
    out_bias: NDArray[Any]


@method_class
class TLLC(Completer):
    """Transfer learning-based label completion: a network of all tasks, fine-tuned to every worker.

    The method has three steps. n_ik are the votes for class k on task i, of n_i in total.

    *Filter.* The network starts from tasks on which workers agree:

        ẑ_i = argmax_k n_ik,   P(k | L_i) = n_ik / n_i,   μ_k = mean of P(k | L_i) over the tasks with ẑ_i = k     (1–3)
        X_S = {x_i : P(ẑ_i | L_i) ≥ μ_ẑ_i},   D_S = {(x_i, ẑ_i) : x_i in X_S}                                  (4, 5)

    *Learn.* z = f(x) embeds tasks with equal labels near each other and others at distance one. f is trained on D_S; then a copy
    f_r for each worker is trained on the tasks and labels of that worker:

        y′ = 0 for two tasks with the same label, 1 for others,   d′ = |z − z′|,   minimise the mean of (y′ − d′)²   (8–11)

    *Fill.* c_rk is the mean of f_r(x) over the tasks that r labelled k, ρ_rk their mean distance from it. A task without a vote
    of r gets the class of the nearest centre if its distance is at most ρ_rk, and no vote otherwise (16–19).

    **Reconstruction.** The available slides of the paper state (4) to (6), the squared loss, the order of the steps and the loop
    that fills in. (1) to (3), (8) to (10), (16) to (19) and the network are reconstructed: one hidden layer of ``hidden``
    rectified units, Adam, batches of tasks of which all pairs are used, and dimension K − 1, which K points at distance one
    from each other need. Taken literally, the loop fills in the first class whose ball contains the task (``rule="first"``),
    which depends on the order of classes; ``"nearest_inside"`` takes the nearest of those balls, ``"all"`` the nearest centre
    at any distance. The probabilities are not from the paper: P(label k) ∝ exp(−``sharpness`` · d²) among the classes that r
    used, mixed with ``smoothing`` votes' worth of a uniform distribution; the most probable label is always the one that the
    rule fills in. Learning rates, epochs, width, batch size, sharpness and smoothing were chosen by hidden votes, never by the
    truth.

    A worker who used only one class has no pair with unequal labels and keeps the shared network; so do all workers if
    ``epochs`` is 0. A class with one vote has radius zero. If workers agree on fewer than two classes, a warning says that there
    is no pretraining. Random numbers depend on the features of tasks and the seed, not on names or positions.

    Encode categories as columns of ones and zeros, which stay as they are; other features are standardised. Use the method where
    features are informative and tasks have few votes. It looks at the features of a task and never at its votes, so it predicts
    held-out votes better than simple baselines only where workers follow the features. `LDPLC` and `MMLCFill` use features as
    well. Not all results of the paper are reproduced. Benchmark: ``wisecrowd bench show zhang2025tllc``.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from wisecrowd import TLLC, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> x = 3.0 * (simulation.truth == simulation.crowd.classes[1]) + rng.normal(size=200)
    >>> X = pd.DataFrame({"x": x}, index=simulation.truth.index)
    >>> model = TLLC().fit(simulation.crowd, X)
    >>> filled = model.fill()
    >>> simulation.crowd.n_votes < filled.n_votes <= 2000, filled.select_observed() == simulation.crowd
    (True, True)
    """

    references: ClassVar[tuple[str, ...]] = ("zhang2025tllc",)
    uses_features: ClassVar[bool] = True

    rule: Literal["nearest", "nearest_inside", "first", "all"] = parameter(
        default="nearest",
        help="Class to fill in: 'nearest' if the task lies in its ball, 'nearest_inside' of the balls that contain the task, "
        "'first' of those balls, or 'all' for the nearest class at any distance.",
    )
    hidden: int = parameter(default=128, help="Width of the hidden layer.")
    embedding: int | Literal["auto"] = parameter(
        default="auto", help="Dimension of the embedding; 'auto' is the number of classes minus one, and at least 2."
    )
    pretrain_epochs: int = parameter(default=50, help="Number of epochs of the shared network; 0 skips pretraining.")
    epochs: int = parameter(
        default=10, help="Number of epochs on the votes of each worker; 0 uses the shared network for all."
    )
    pretrain_rate: float = parameter(default=1e-3, help="Learning rate of the shared network.")
    learning_rate: float = parameter(default=3e-4, help="Learning rate of the network of each worker.")
    batch_size: int = parameter(default=32, help="Number of tasks in a batch, of which all pairs are used.")
    balance: bool = parameter(
        default=False, help="Give pairs with equal and with unequal labels the same total weight."
    )
    filtering: bool = parameter(default=True, help="Train the shared network on confident tasks only.")
    sharpness: float = parameter(
        default=6.0, help="Rate at which probabilities fall with the squared distance to a centre."
    )
    smoothing: float = parameter(
        default=16.0, help="Number of votes that the uniform distribution in a worker's probabilities is worth."
    )
    precision: Literal["single", "double"] = parameter(default="single", help="Floating-point precision.")

    majority_: NDArray[np.intp] = fitted(
        help="Class with most votes on every task; −1 without votes.", shape=("n_tasks",), codes="n_classes", lowest=-1
    )
    confidence_: NDArray[np.float64] = fitted(help="Share of the votes for that class.", shape=("n_tasks",))
    threshold_: NDArray[np.float64] = fitted(help="Mean confidence of every class.", shape=("n_classes",))
    confident_: NDArray[np.bool_] = fitted(
        help="Whether a task was used to train the shared network.", shape=("n_tasks",)
    )
    features_: NDArray[Any] = fitted(help="Scaled features of the tasks.", shape=("n_tasks", "n_features"), finite=True)
    network_index_: NDArray[np.intp] = fitted(
        help="Network of every worker; 0 is the shared network.", shape=("n_workers",), codes="n_networks"
    )
    weight_: NDArray[Any] = fitted(
        help="Weights of the hidden layers.", shape=("n_networks", "n_features", "hidden"), finite=True
    )
    bias_: NDArray[Any] = fitted(help="Biases of the hidden layers.", shape=("n_networks", 1, "hidden"), finite=True)
    out_weight_: NDArray[Any] = fitted(
        help="Weights of the output layers.", shape=("n_networks", "hidden", "embedding"), finite=True
    )
    out_bias_: NDArray[Any] = fitted(
        help="Biases of the output layers.", shape=("n_networks", 1, "embedding"), finite=True
    )
    label_counts_: NDArray[np.int64] = fitted(
        help="Number of votes by worker and class.", shape=("n_workers", "n_classes")
    )
    centre_: NDArray[Any] = fitted(help="Centres c.", shape=("n_workers", "n_classes", "embedding"), finite=True)
    radius_: NDArray[Any] = fitted(help="Radii ρ.", shape=("n_workers", "n_classes"), finite=True)

    # ------------------------------------------------------------------ fitting

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("rule", self.rule, RULES)
        check_choice("precision", self.precision, ("single", "double"))
        dimension: Any = self.embedding
        if dimension != "auto" and not (isinstance(dimension, int | np.integer) and dimension >= 1):
            raise UsageError(f"embedding must be 'auto' or a whole number of 1 or more; got {self.embedding!r}")
        if self.hidden < 1 or self.batch_size < 2:
            raise UsageError(f"hidden must be 1 or more, batch_size 2 or more; got {self.hidden} and {self.batch_size}")
        if self.epochs < 0 or self.pretrain_epochs < 0:
            raise UsageError(
                f"epochs must be 0 or more; got {self.epochs} and {self.pretrain_epochs} (pretrain_epochs)"
            )
        for name in ("learning_rate", "pretrain_rate", "sharpness"):
            if not 0 < getattr(self, name) < np.inf:
                raise UsageError(f"{name} must be a positive number; got {getattr(self, name)!r}")
        if not 0 <= self.smoothing < np.inf:
            raise UsageError(f"smoothing must be 0 or more; got {self.smoothing!r}")

    def _count_matrices(self, votes: AnyCrowd) -> int:
        return votes.n_workers

    def _fit(self, crowd: Crowd, X: NDArray[np.float64] | None) -> None:
        assert X is not None
        X = X.reshape(len(X), -1)
        task_keys = compute_task_keys(X)
        worker_keys, class_keys = compute_voter_keys(crowd, task_keys)
        tie_breakers = draw_uniform(self.random_state, task_keys[:, None], class_keys[None])
        confident = select_confident_tasks(crowd.vote_counts, tie_breakers, select_all=not self.filtering)
        features = _scale_features(X).astype(self._dtype)
        label_counts = np.zeros((crowd.n_workers, crowd.n_classes), dtype=np.int64)
        np.add.at(label_counts, (crowd.worker_codes, crowd.label), 1)
        tasks = np.flatnonzero(confident.selected)
        shared_network = np.zeros(len(tasks), dtype=np.intp)
        shared_votes = NetworkVotes(shared_network, tasks, confident.majority[tasks], task_keys[:1] * 0, task_keys)
        # A worker with one class has no pair with unequal labels: training would move all tasks to one point.
        tuned = np.flatnonzero((label_counts > 0).sum(axis=1) > 1) if self.epochs else np.empty(0, dtype=np.intp)
        rows = np.flatnonzero(np.isin(crowd.worker_codes, tuned))
        rows = rows[np.argsort(crowd.worker_codes[rows], kind="stable")]
        position = np.zeros(crowd.n_workers, dtype=np.intp)
        position[tuned] = np.arange(len(tuned))
        worker_votes = NetworkVotes(
            position[crowd.worker_codes[rows]],
            np.asarray(crowd.task[rows]),
            np.asarray(crowd.label[rows]),
            worker_keys[tuned],
            task_keys,
        )
        network_index = np.zeros(crowd.n_workers, dtype=np.intp)
        network_index[tuned] = 1 + np.arange(len(tuned))
        networks = self._train(features, shared_votes, worker_votes)
        points = _embed_votes(crowd, features, network_index, networks)
        self.centre_, self.radius_ = _measure_classes(crowd, points, label_counts)
        self.majority_, self.confidence_, self.threshold_, self.confident_ = confident
        self.features_, self.label_counts_, self.network_index_ = features, label_counts, network_index
        self.weight_, self.bias_, self.out_weight_, self.out_bias_ = networks

    def _train(self, features: NDArray[Any], shared_votes: NetworkVotes, worker_votes: NetworkVotes) -> _WorkerNetworks:
        """Train the shared network, then a copy for each worker."""
        torch = import_torch("the networks of TLLC")
        dimension = max(2, len(self.classes_) - 1) if self.embedding == "auto" else int(self.embedding)
        rows = torch.from_numpy(features)
        settings: dict[str, Any] = {"batch_size": self.batch_size, "balance": self.balance, "seed": self.random_state}
        with fork_random_state(select_device("cpu"), self.random_state):
            shared = StackedNetworks.initialize(features.shape[1], self.hidden, dimension, rows.dtype)
        if self.pretrain_epochs and len(np.unique(shared_votes.label)) < 2:
            warnings.warn(
                "TLLC has no two classes that workers agree on, and skips the pretraining of the shared network",
                DataWarning,
                stacklevel=4,
            )
        elif self.pretrain_epochs:
            with limit_threads(1):  # one small network
                groups = train_networks(
                    shared,
                    rows,
                    shared_votes,
                    epochs=self.pretrain_epochs,
                    learning_rate=self.pretrain_rate,
                    **settings,
                )
                ((_, shared),) = groups
        n_tuned = len(worker_votes.network_keys)
        networks = _WorkerNetworks(*(np.empty((1 + n_tuned, *part.shape[1:]), self._dtype) for part in shared))
        for array, part in zip(networks, shared, strict=True):
            array[0] = part[0].numpy()
        with _limit_threads_for(n_tuned * networks.weight[0].size):
            groups = train_networks(
                shared,
                rows,
                worker_votes,
                epochs=self.epochs,
                learning_rate=self.learning_rate,
                **settings,
                callback=lambda n_trained: report("TLLC: learning workers", n_trained, n_tuned),
            )
            for positions, group in groups:
                for array, part in zip(networks, group, strict=True):
                    array[1 + positions] = part.numpy()
        return networks

    # ------------------------------------------------------------------ prediction

    def embed(self, worker: Any = None) -> pd.DataFrame:
        """Embed the tasks of the fit by the network of a worker, or by the shared network.

        The network of a worker starts from the shared one (transfer). Embeddings *without* transfer are those of a fit with
        ``pretrain_epochs=0``, in which each network starts from random weights.

        Parameters
        ----------
        worker : object, optional
            Id of the worker; the shared network by default, as for workers who used only one class.

        Returns
        -------
        DataFrame
            One row per task, one column per dimension.

        Raises
        ------
        InputError
            If the crowd has no such worker.

        Examples
        --------
        >>> import numpy as np
        >>> from wisecrowd import TLLC, Crowd
        >>> crowd = Crowd.from_triples([(task, worker, "ab"[task % 2]) for task in range(6) for worker in ("ann", "bob")])
        >>> X = np.array([[0.0], [1.0]] * 3)
        >>> model = TLLC(hidden=4, pretrain_epochs=5, epochs=5).fit(crowd, X)
        >>> model.embed("ann").shape, model.embed().equals(model.embed("ann"))
        ((6, 2), False)
        """
        torch = import_torch("the networks of TLLC")
        network = 0
        if worker is not None:
            position = int(as_index(self._crowd.workers).get_indexer([worker])[0])  # type: ignore[arg-type]
            if position < 0:
                raise InputError(f"the crowd has no worker {worker!r}; workers_ lists them")
            network = int(self.network_index_[position])
        arrays = (self.weight_, self.bias_, self.out_weight_, self.out_bias_)
        networks = StackedNetworks.from_arrays(arrays, np.array([network]))
        points = networks.embed_shared(torch.from_numpy(self.features_))[0].numpy()
        return pd.DataFrame(points, index=self._crowd.tasks)

    def _worker_label_probs(self, tasks: NDArray[np.intp], workers: NDArray[np.intp]) -> WorkerLabelProbs:
        torch = import_torch("the networks of TLLC")
        n_classes = len(self.classes_)
        proba = np.empty((len(tasks), len(workers), n_classes), self._dtype)
        fillable = np.zeros((len(tasks), len(workers)), dtype=bool)
        rows = torch.from_numpy(self.features_[tasks])
        per_worker = self.weight_[0].size + len(tasks) * (self.hidden + 4 * n_classes)
        size = max(1, GROUP_FLOATS // max(1, per_worker))
        for start in range(0, len(workers), size):
            part = slice(start, start + size)
            with _limit_threads_for(len(tasks) * len(workers[part]) * self.hidden):
                distance = self._compute_distances(rows, workers[part])
            proba[:, part], fillable[:, part] = self._apply_rule(distance, workers[part])
        return WorkerLabelProbs(proba, fillable)

    def _compute_distances(self, rows: Tensor, workers: NDArray[np.intp]) -> NDArray[Any]:
        """Return the distances of tasks from the centres, (tasks, workers, classes); infinite without a centre."""
        torch = import_torch()
        positions, inverse = np.unique(self.network_index_[workers], return_inverse=True)
        arrays = (self.weight_, self.bias_, self.out_weight_, self.out_bias_)
        networks = StackedNetworks.from_arrays(arrays, positions)
        points = networks.embed_shared(rows)[torch.from_numpy(inverse)]
        centres = torch.from_numpy(self.centre_[workers])
        distance = torch.cdist(points, centres, compute_mode="donot_use_mm_for_euclid_dist").numpy()
        return np.where(self.label_counts_[workers] > 0, distance.transpose(1, 0, 2), np.inf)

    def _apply_rule(self, distance: NDArray[Any], workers: NDArray[np.intp]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return label probabilities and the cells to fill, from the distances to the centres."""
        counts = self.label_counts_[workers]
        nearest = distance.argmin(axis=2)
        fillable: NDArray[np.bool_]
        inside = distance <= (self.radius_[workers] * (1 + RADIUS_TOLERANCE) + RADIUS_TOLERANCE)
        if self.rule == "nearest":
            chosen, fillable = nearest, np.take_along_axis(inside, nearest[..., None], axis=2)[..., 0]
        elif self.rule == "all":
            chosen, fillable = nearest, np.asarray((distance < np.inf).any(axis=2))
        else:
            fillable = np.asarray(inside.any(axis=2))
            preference = inside if self.rule == "first" else np.where(inside, -distance, -np.inf)
            chosen = np.where(fillable, preference.argmax(axis=2), nearest)
        n_votes = counts.sum(axis=1)
        least = np.where(n_votes > 0, distance.min(axis=2), 0)[..., None]
        with np.errstate(invalid="ignore"):
            density = np.where(counts > 0, np.exp(-self.sharpness * (distance**2 - least**2)), 0)
        density[:, n_votes == 0] = 1
        share = (n_votes / (n_votes + self.smoothing) if self.smoothing else np.ones(len(n_votes)))[:, None]
        proba = share * density / density.sum(axis=2, keepdims=True) + (1 - share) / counts.shape[1]
        # The class to fill in must be the most probable one; if it is not the nearest, the two swap probabilities.
        nearest_proba, chosen_proba = (
            np.take_along_axis(proba, column[..., None], axis=2) for column in (nearest, chosen)
        )
        np.put_along_axis(proba, nearest[..., None], chosen_proba, axis=2)
        np.put_along_axis(proba, chosen[..., None], nearest_proba, axis=2)
        return proba, fillable

    @property
    def _dtype(self) -> Any:
        return np.float64 if self.precision == "double" else np.float32


def _embed_votes(
    crowd: Crowd, features: NDArray[Any], network_index: NDArray[np.intp], networks: _WorkerNetworks
) -> NDArray[Any]:
    """Return the task of every vote in the embedding of its worker, (votes, dimension)."""
    torch = import_torch()
    points = np.empty((crowd.n_votes, networks.out_bias.shape[2]), features.dtype)
    vote_network = network_index[crowd.worker_codes]
    order = np.argsort(vote_network, kind="stable")
    network, task = vote_network[order], np.asarray(crowd.task)[order]
    _, first, count = np.unique(network, return_index=True, return_counts=True)
    # Networks with similar numbers of votes are embedded together, padded to the largest number.
    by_size = np.argsort(count, kind="stable")
    for part in _group_by_size(count[by_size], networks.weight[0].size + features.shape[1] + networks.bias.shape[2]):
        group = by_size[part]
        column = np.arange(count[group].max())
        valid = column < count[group, None]
        row = np.where(valid, first[group, None] + column, first[group, None])
        stacked = StackedNetworks.from_arrays(networks, network[first[group]])
        embedded = stacked.embed(torch.from_numpy(features[task[row]])).numpy()
        points[order[row[valid]]] = embedded[valid]
    return points


def _measure_classes(
    crowd: Crowd, points: NDArray[Any], label_counts: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return centre and radius of every class of every worker."""
    worker, label = crowd.worker_codes, crowd.label
    centre = np.zeros((*label_counts.shape, points.shape[1]), points.dtype)
    np.add.at(centre, (worker, label), points)
    centre /= np.maximum(label_counts, 1)[..., None]
    distance = np.linalg.norm(points - centre[worker, label], axis=1)
    radius = np.zeros(label_counts.shape, points.dtype)
    np.add.at(radius, (worker, label), distance)
    radius /= np.maximum(label_counts, 1)
    return centre, radius


def _limit_threads_for(n_floats: int) -> contextlib.AbstractContextManager[None]:
    """Use one thread for steps over few numbers, where several would wait for each other."""
    return limit_threads(1 if n_floats < SINGLE_THREAD_FLOATS else None)


def _scale_features(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standardise features; features with two values become 0 and 1, because rare categories would dominate otherwise."""
    low, high = X.min(axis=0), X.max(axis=0)
    is_binary = ((low == X) | (high == X)).all(axis=0) & (high > low)
    width = np.where(is_binary, high - low, 1)
    return np.where(is_binary, (X - low) / width, Standardiser().fit(X).apply(X))


def _group_by_size(counts: NDArray[np.integer[Any]], floats_per_row: int) -> list[slice]:
    """Return slices of ascending counts whose networks, padded to the largest count, fit in memory."""
    groups, start = [], 0
    while start < len(counts):
        stop = start + 1
        while stop < len(counts) and (stop + 1 - start) * floats_per_row * int(counts[stop]) <= GROUP_FLOATS:
            stop += 1
        groups.append(slice(start, stop))
        start = stop
    return groups
