"""Label propagation: answers that change little between tasks that look alike."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from wisecrowd.aggregate.categorical._spreading import FeatureAggregator, first_answers
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.classifiers.neighbours import edges, nearest, propagate, range_scaled
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError

#: The least log-affinity of neighbours: a task far from everybody still hears its neighbours, if only them.
FAINTEST = -200.0


@method_class
class LabelPropagation(FeatureAggregator):
    """The answers of another method, smoothed over a graph of tasks that look alike.

    Local and global consistency (Zhou et al.): with y_i what ``aggregator`` says of task i, and nothing of a task that
    nobody labelled,

        A_ij = exp(−|x_i − x_j|² / 2σ²) if i is among the k nearest of j or j of i, else 0
        S = D^−½ A D^−½,   D = diag(Σ_j A_ij)
        F ← α S F + (1 − α) Y   until nothing changes: F = (1 − α) (I − α S)⁻¹ Y,

    which minimises ½ Σ_ij A_ij |f_i/√d_i − f_j/√d_j|² + (1/α − 1) Σ_i |f_i − y_i|², the second term tying answers to votes
    and the first to neighbours. Rows of F are then scaled to sum to one. Features are on the range 0 to 1; σ is the median
    distance between neighbours unless ``bandwidth`` is given. Tasks of known truth keep it in every pass.

    Choose it when features put tasks of one class together and workers differ: Dawid and Skene's answers are a better
    start than votes where workers have labelled enough to be known, and ``aggregator="majority-vote"`` is the better one
    where they have not, or where nobody knows who said what. Tasks that nobody labelled are part of the graph and carry
    answers on, as the method intends; in `MNLDP` they only receive.

    The paper's α of .99 is for few labels that are certain. Here every task has votes of its own, which it drowns: on music
    genres (31 features) answers are right for .786 of the tasks with α = .5, .800 with .8 and .350 with .99, and for .780
    before they are smoothed. Nothing in it notices features that say little of classes. Posteriors are averages over
    neighbours: they rank answers, and are no odds.

    >>> import pandas as pd
    >>> from wisecrowd import Crowd, LabelPropagation
    >>> votes = [("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t4", "ann", "dog"), ("t4", "bob", "dog")]
    >>> X = pd.DataFrame({"size": [1.0, 1.5, 4.5, 5.0]}, index=["t1", "t2", "t3", "t4"])
    >>> LabelPropagation(k=1).fit(Crowd.from_triples(votes, tasks=X.index), X).labels_.to_dict()
    {'t1': 'cat', 't2': 'cat', 't3': 'dog', 't4': 'dog'}
    """

    references: ClassVar[tuple[str, ...]] = ("zhou2003learning",)
    breaks: ClassVar[dict[str, str]] = {
        "an_unlabelled_task_changes_nothing": "tasks without votes are part of the graph, and pass answers on",
    }

    k: int = parameter(default=10, help="neighbours of a task")
    alpha: float = parameter(default=0.5, help="how much neighbours say, at least 0 and below 1")
    bandwidth: float | None = parameter(
        default=None, help="σ, in features on the range 0 to 1; None: median distance of neighbours"
    )
    max_iter: int = parameter(default=2000, help="how often answers are passed on at most")
    tol: float = parameter(default=1e-6, help="stop when no answer changes by more")
    aggregator: Any = parameter(default="dawid-skene", help="an aggregator, or its name, whose answers are smoothed")

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
        first = first_answers(self.aggregator, crowd, gold, X, start)
        first[~informed] = 0
        own = np.full(len(X), 1 - self.alpha)
        if gold is not None:
            own[gold >= 0] = 1
        found, self.n_iter_, self.converged_ = propagate(
            self._graph(range_scaled(X)), first, own, max_iter=self.max_iter, tol=self.tol, title="LabelPropagation"
        )
        total = found.sum(axis=1, keepdims=True)
        # Who has no path to anybody with an answer has none.
        return np.divide(found, total, out=np.full_like(found, 1 / found.shape[1]), where=total > 0)

    def _graph(self, X: NDArray[np.float64]) -> csr_array:
        """S: how much neighbours say, the more the nearer they are and the fewer others they speak to."""
        place, distance = nearest(X, self.k)
        self.bandwidth_ = _typical(distance) if self.bandwidth is None else self.bandwidth
        affinity = np.exp(np.maximum(-((distance / self.bandwidth_) ** 2) / 2, FAINTEST))
        affinity[place == np.arange(len(X))[:, None]] = 0  # the only task there is has no neighbour
        graph = edges(place, affinity)
        graph = graph.maximum(graph.T)
        degree = graph.sum(axis=1)
        shrink = diags_array(np.divide(1, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0))
        return csr_array(shrink @ graph @ shrink)


def _typical(distance: NDArray[np.float64]) -> float:
    """The median distance, of those that are not zero if most are; one if all are."""
    median = float(np.median(distance))
    if median > 0:
        return median
    apart = distance[distance > 0]
    return float(np.median(apart)) if len(apart) else 1.0
