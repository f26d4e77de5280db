"""Label propagation: labels that change little between similar tasks."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from wisecrowd.aggregate.categorical._feature_aggregator import FeatureAggregator, infer_initial_posterior
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.classifiers.neighbours import build_graph, find_neighbours, propagate_labels, scale_to_range
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError

#: Smallest log-affinity of neighbours, so that a task far from all others still has neighbours.
MIN_LOG_AFFINITY = -200.0


@method_class
class LabelPropagation(FeatureAggregator):
    """Posterior of another method, smoothed over a graph of similar tasks.

    Local and global consistency (Zhou et al.): with y_i the posterior that ``aggregator`` infers for task i, zero for a task
    without votes,

        A_ij = exp(−|x_i − x_j|² / 2σ²) if i is among the k nearest of j or j of i, else 0
        S = D^−½ A D^−½,   D = diag(Σ_j A_ij)
        F ← α S F + (1 − α) Y   until convergence: F = (1 − α) (I − α S)⁻¹ Y,

    which minimises ½ Σ_ij A_ij |f_i/√d_i − f_j/√d_j|² + (1/α − 1) Σ_i |f_i − y_i|²: the first term ties labels to
    neighbours and the second to votes. Rows of F are then scaled to sum to one. Features are scaled to the range 0 to 1; σ
    is the median distance between neighbours unless ``bandwidth`` is given. Gold tasks keep their truth in every iteration.

    Choose it when features put tasks of one class together and workers differ. The default start, Dawid and Skene's
    posterior, is better than votes if workers have many labels; ``aggregator="majority-vote"`` is better if they have few,
    or if votes have no worker ids. Tasks without votes are part of the graph and pass labels on; in `MNLDP` they only
    receive them.

    The paper's α of .99 is meant for few labels that are certain. Here every task has votes of its own, which such an α
    overrides. The method does not detect features that say little about classes. Posteriors are averages over neighbours: they
    rank labels, but are not calibrated.

    Examples
    --------
    >>> import pandas as pd
    >>> from wisecrowd import Crowd, LabelPropagation
    >>> votes = [("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t4", "ann", "dog"), ("t4", "bob", "dog")]
    >>> X = pd.DataFrame({"size": [1.0, 1.5, 4.5, 5.0]}, index=["t1", "t2", "t3", "t4"])
    >>> LabelPropagation(k=1).fit(Crowd.from_triples(votes, tasks=X.index), X).labels_.to_dict()
    {'t1': 'cat', 't2': 'cat', 't3': 'dog', 't4': 'dog'}
    """

    references: ClassVar[tuple[str, ...]] = ("zhou2003learning",)
    breaks: ClassVar[dict[str, str]] = {
        "an_unlabelled_task_changes_nothing": "tasks without votes are part of the graph and pass labels on",
    }

    k: int = parameter(default=10, help="Number of neighbours of a task.")
    alpha: float = parameter(default=0.5, help="Weight of the neighbours, at least 0 and below 1.")
    bandwidth: float | None = parameter(
        default=None,
        help="Bandwidth σ, in features scaled to the range 0 to 1; the median distance between neighbours if None.",
    )
    max_iter: int = parameter(default=2000, help="Maximum number of iterations.")
    tol: float = parameter(default=1e-6, help="Largest change of a probability in a converged fit.")
    aggregator: Any = parameter(default="dawid-skene", help="Aggregator, or its name, whose posterior is smoothed.")

    bandwidth_: float = fitted(help="Bandwidth σ.")
    n_iter_: int = fitted(help="Number of iterations.")
    converged_: bool = fitted(help="Whether the posterior converged.")

    def _infer(
        self,
        crowd: Crowd,
        gold: NDArray[np.int32] | None,
        X: NDArray[np.float64],
        informed: NDArray[np.bool_],
        start: Any,
    ) -> NDArray[np.float64]:
        if not 0 <= self.alpha < 1:
            raise UsageError(f"alpha must be at least 0 and below 1; got {self.alpha}")
        if self.bandwidth is not None and not 0 < self.bandwidth < np.inf:
            raise UsageError(f"bandwidth must be a number above 0, or None; got {self.bandwidth}")
        first = infer_initial_posterior(self.aggregator, crowd, gold, X, start)
        first[~informed] = 0
        own_share = np.full(len(X), 1 - self.alpha)
        if gold is not None:
            own_share[gold >= 0] = 1
        neighbours, distance = find_neighbours(scale_to_range(X), self.k)
        bandwidth = _compute_median_distance(distance) if self.bandwidth is None else self.bandwidth
        graph = _build_affinity_graph(neighbours, distance, bandwidth)
        result = propagate_labels(
            graph, first, own_share, max_iter=self.max_iter, tol=self.tol, title="LabelPropagation"
        )
        self.bandwidth_, self.n_iter_, self.converged_ = bandwidth, result.n_iter, result.converged
        total = result.state.sum(axis=1, keepdims=True)
        # A task without a path to any label has the uniform distribution.
        uniform = np.full_like(result.state, 1 / crowd.n_classes)
        return np.divide(result.state, total, out=uniform, where=total > 0)


def _build_affinity_graph(neighbours: NDArray[np.intp], distance: NDArray[np.float64], bandwidth: float) -> csr_array:
    """Return S, the symmetrically normalised affinities of neighbours."""
    affinity = np.exp(np.maximum(-((distance / bandwidth) ** 2) / 2, MIN_LOG_AFFINITY))
    affinity[neighbours == np.arange(len(neighbours))[:, None]] = 0  # a single task is its own neighbour
    graph = build_graph(neighbours, affinity)
    graph = graph.maximum(graph.T)
    degree = graph.sum(axis=1)
    scale = diags_array(np.divide(1, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0))
    return csr_array(scale @ graph @ scale)


def _compute_median_distance(distance: NDArray[np.float64]) -> float:
    """Return the median distance; that of positive distances if it is zero, and one if all are zero."""
    median = float(np.median(distance))
    if median > 0:
        return median
    positive = distance[distance > 0]
    return float(np.median(positive)) if len(positive) else 1.0
