"""LDPLC: missing votes spread over similar tasks, worker by worker."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from wisecrowd.base.completer import WorkerLabelProbs
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.classifiers.neighbours import compute_reconstruction_weights, scale_to_range
from wisecrowd.complete.wslc import WSLC
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError
from wisecrowd.utils.progress import report
from wisecrowd.utils.slices import slice_rows

#: Maximum size in bytes of the label probabilities that are held in memory.
MAX_BYTES = 2**31


class _SpreadProbs(NamedTuple):
    """Label probabilities of some workers on all tasks."""

    column: NDArray[np.intp]
    """Column of every worker, −1 for workers without one."""
    proba: NDArray[np.float32]
    """(tasks, columns, classes)."""


@method_class
class LDPLC(WSLC):
    """Label distribution propagation-based label completion: `WSLC`, propagated over similar tasks.

    Every worker has a label distribution P_ir for every task. It is the vote where there is one, and stays so. The others start
    with the prediction of `WSLC`, and mix with those of the most similar tasks:

        w_i  = argmin |x_i − Σ_j w_ij x_j|²,   w_ij ≥ 0,  Σ_j w_ij = 1,  j among the k nearest neighbours of i
        P_ir ← λ P⁰_ir + (1 − λ) Σ_j w_ij P_jr,   ``rounds`` times

    with features scaled to the range 0 to 1 and λ = ``keep``. k = 5, λ = 0.5 and 5 rounds are the settings of the authors'
    program. It solves a quadratic program for the weights; here a small ridge makes them unique. A task without votes takes all
    from its neighbours and gives nothing.

    The features are what it adds to `WSLC`: most of what propagates are the votes of other workers on similar tasks. `MNLDP`
    propagates the votes without regard to workers and gains as much. Benchmark:
    ``wisecrowd bench show all-completers``.

    A round passes over tasks x workers x classes numbers, for blocks of workers, when predictions are first needed. They are held
    in single precision, and not saved, for all workers if they fit into 2 GB, otherwise for the requested workers. Leave out
    workers with few votes by ``min_votes`` if these do not fit either.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from wisecrowd import LDPLC, Crowd
    >>> X = pd.DataFrame({"size": [1.0, 1.1, 1.2, 5.0, 5.1, 5.2]}, index=range(6))
    >>> crowd = Crowd.from_triples([(0, "ann", "cat"), (1, "ann", "cat"), (2, "bob", "cat"), (3, "bob", "dog"),
    ...                             (4, "ann", "dog"), (5, "cy", "cat")], tasks=X.index)
    >>> LDPLC(k=2).fit(crowd, X).predict_worker_proba([5], ["ann"]).round(2).tolist()  # half by cy, half by task 4
    [[[0.5, 0.5]]]
    """

    references: ClassVar[tuple[str, ...]] = ("wu2025label",)

    k: int = parameter(default=5, help="Number of neighbours of a task.")
    keep: float = parameter(default=0.5, help="Share λ of the start in every round, above 0 up to 1.")
    rounds: int = parameter(default=5, help="Number of propagation rounds.")

    edge_weight_: NDArray[np.float64] = fitted(
        help="Weights of the links between tasks, in CSR order.", shape=("n_links",), finite=True
    )
    edge_to_: NDArray[np.int32] = fitted(help="Neighbour of every link.", shape=("n_links",), codes="n_tasks")
    edge_offset_: NDArray[np.int32] = fitted(help="First link of every task.", shape=("n_tasks + 1",))

    def check_restored(self) -> None:
        """Raise ValueError if links that were read from files are not those of the tasks."""
        super().check_restored()
        offset, n_links = self.edge_offset_, len(self.edge_to_)
        if offset[0] != 0 or offset[-1] != n_links or (np.diff(offset) < 0).any():
            raise ValueError(f"edge_offset_ must hold ascending positions from 0 to {n_links}")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.k < 1 or self.rounds < 0 or not 0 < self.keep <= 1:
            raise UsageError(
                "k must be 1 or more, rounds 0 or more, and keep a share above 0 and at most 1; "
                f"got {self.k}, {self.rounds} and {self.keep}"
            )

    def _fit(self, crowd: Crowd, X: NDArray[np.float64] | None) -> None:
        assert X is not None
        super()._fit(crowd, X)
        has_votes = crowd.votes_per_task > 0
        graph = compute_reconstruction_weights(scale_to_range(X, has_votes), self.k, has_votes)
        self.edge_weight_, self.edge_to_, self.edge_offset_ = graph.data, graph.indices, graph.indptr
        self._clear_cache()

    def _worker_label_probs(self, tasks: NDArray[np.intp], workers: NDArray[np.intp]) -> WorkerLabelProbs:
        spread = self._get_spread_probs(workers)
        return WorkerLabelProbs(spread.proba[np.ix_(tasks, spread.column[workers])].astype(np.float64))

    def _get_spread_probs(self, workers: NDArray[np.intp]) -> _SpreadProbs:
        """Return the label probabilities of at least these workers, from the cache if it has them."""
        cached: _SpreadProbs | None = vars(self).get("_cached_probs")
        if cached is not None and (cached.column[workers] >= 0).all():
            return cached
        n_tasks, n_workers = self._crowd.shape
        worker_bytes = n_tasks * len(self.classes_) * np.dtype(np.float32).itemsize
        chosen = np.arange(n_workers) if n_workers * worker_bytes <= MAX_BYTES else np.unique(workers)
        if len(chosen) * worker_bytes > MAX_BYTES:
            raise UsageError(
                f"the predictions for {len(chosen):,} workers on {n_tasks:,} tasks with {len(self.classes_):,} classes need "
                f"{len(chosen) * worker_bytes / 2**30:.1f} GB, and LDPLC uses at most {MAX_BYTES / 2**30:.0f} GB; raise "
                f"min_votes until {MAX_BYTES // worker_bytes:,} workers remain, or use WSLC"
            )
        self._clear_cache()
        column = np.full(n_workers, -1)
        column[chosen] = np.arange(len(chosen))
        proba = np.empty((n_tasks, len(chosen), len(self.classes_)), dtype=np.float32)
        parts = slice_rows(len(chosen), n_tasks * len(self.classes_))
        for number, part in enumerate(parts, start=1):
            proba[:, part] = self._propagate(chosen[part])
            report("LDPLC: propagating", number, len(parts))
        spread = _SpreadProbs(column, proba)
        self._cached_probs = spread
        return spread

    def _propagate(self, workers: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the label probabilities of some workers on all tasks: (tasks, workers, classes)."""
        crowd, n_classes = self._crowd, len(self.classes_)
        start = super()._worker_label_probs(np.arange(crowd.n_tasks), workers).proba
        position = np.full(crowd.n_workers, -1)
        position[workers] = np.arange(len(workers))
        vote = np.flatnonzero(position[crowd.worker_codes] >= 0)
        task, column = crowd.task[vote], position[crowd.worker_codes[vote]]
        own_votes = np.zeros_like(start)
        np.add.at(own_votes, (task, column, crowd.label[vote]), crowd.weight[vote])
        own_shares = own_votes[task, column] / own_votes[task, column].sum(axis=1, keepdims=True)
        start[task, column] = own_shares
        graph = csr_array((self.edge_weight_, self.edge_to_, self.edge_offset_), shape=(crowd.n_tasks, crowd.n_tasks))
        keep = np.where(crowd.votes_per_task > 0, self.keep, 0.0)[:, None]
        proba, flat_start = start, start.reshape(crowd.n_tasks, -1)
        for _ in range(self.rounds):  # a fixed number of rounds, in which votes stay: not a fixed-point iteration
            mixed = graph @ proba.reshape(crowd.n_tasks, -1)
            mixed *= 1 - keep
            mixed += keep * flat_start
            proba = mixed.reshape(-1, len(workers), n_classes)
            proba[task, column] = own_shares
        return proba

    def _clear_cache(self) -> None:
        vars(self).pop("_cached_probs", None)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_cached_probs"}
