"""Groups of votes or workers, each with a weight and a confusion matrix: what both forms of the mixture share."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import softmax

from wisecrowd.classifiers.soft import SoftClassifier
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.loop import Statistics
from wisecrowd.kernels.reference import LEAST

#: Passes of the clustering that an iteration starts from; it need not settle.
CLUSTERING = 50


class Groups(NamedTuple):
    """What a group is.

    >>> Groups(np.array([0.5, 0.5]), np.array([np.eye(2), np.full((2, 2), 0.5)])).pooled.tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """

    weight: NDArray[np.float64]
    """α, (groups,)."""
    confusion: NDArray[np.float64]
    """β, (groups, true, said)."""

    @classmethod
    def estimated(cls, size: NDArray[np.float64], counts: NDArray[np.float64], smoothing: float) -> Groups:
        """The M-step: weights from sizes, matrices from counts, with pseudo-counts everywhere (Laplace).

        >>> Groups.estimated(np.array([4.0]), np.array([[[3.0, 1.0], [0.0, 0.0]]]), 0.0).confusion.tolist()
        [[[0.75, 0.25], [0.5, 0.5]]]
        """
        weight, confusion = size + smoothing, counts + smoothing
        total = confusion.sum(axis=-1, keepdims=True)
        # A class that a group never met leaves the row undefined without pseudo-counts: say nothing, uniformly.
        uniform = np.full_like(confusion, 1 / confusion.shape[-1])
        return cls(weight / weight.sum(), np.divide(confusion, total, out=uniform, where=total > 0))

    @property
    def pooled(self) -> NDArray[np.float64]:
        """B = Σ_m α_m β^m, (true, said): all that the votes can tell of the groups when votes are grouped one by one."""
        return np.einsum("m,mkj->kj", self.weight, self.confusion)

    def log_prior(self, smoothing: float) -> float:
        """Logarithm of the prior density to which the pseudo-counts belong, up to a constant.

        >>> Groups(np.array([1.0]), np.full((1, 2, 2), 0.5)).log_prior(0.0)
        0.0
        """
        return smoothing * float(np.log(self.weight).sum() + np.log(self.confusion).sum()) if smoothing > 0 else 0.0

    def sorted(self) -> tuple[Groups, NDArray[np.intp]]:
        """The heaviest group first, and where each of them stood before.

        >>> Groups(np.array([0.2, 0.8]), np.zeros((2, 2, 2))).sorted()[1].tolist()
        [1, 0]
        """
        order = np.argsort(-self.weight, kind="stable")
        return Groups(self.weight[order], self.confusion[order]), order

    def votes(self, expected: NDArray[np.float64], crowd: Crowd) -> NDArray[np.float64]:
        """p_m(y | x) = Σ_k f_k(x) β^m[k, y] of every vote y, (votes, groups).

        >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
        >>> Groups(np.array([1.0]), np.eye(2)[None]).votes(np.array([[0.9, 0.1]]), crowd).tolist()
        [[0.9], [0.1]]
        """
        found = np.empty((crowd.n_votes, len(self.weight)))
        for column, matrix in enumerate(self.confusion):
            found[:, column] = (expected @ matrix)[crowd.task, crowd.label]
        return found

    def of_workers(self, expected: NDArray[np.float64], crowd: Crowd) -> NDArray[np.float64]:
        """p(g = m | worker) ∝ α_m Π p_m(y | x) over the worker's votes, (workers, groups); without votes, α (eq. 8).

        >>> crowd = Crowd.from_triples([("t1", "ann", "cat")], workers=["ann", "bob"], classes=["cat", "dog"])
        >>> two = Groups(np.array([0.5, 0.5]), np.array([np.eye(2), np.eye(2)[::-1]]))
        >>> two.of_workers(np.array([[0.9, 0.1]]), crowd).round(6).tolist()
        [[0.9, 0.1], [0.5, 0.5]]
        """
        joint = np.tile(np.log(np.maximum(self.weight, LEAST)), (crowd.n_workers, 1))
        for column, matrix in enumerate(self.confusion):  # one group at a time: only a column of votes is ever held
            evidence = np.log(np.maximum(expected @ matrix, LEAST))[crowd.task, crowd.label]
            joint[:, column] += by_worker(evidence, crowd)
        return softmax(joint, axis=1)


class Reached(NamedTuple):
    """One pass: the objective of the parameters, the parameters, and what followed from them."""

    objective: float
    groups: Groups
    found: Statistics
    expected: NDArray[np.float64]
    """f(x), of the tasks that teach."""


class Grouping(Protocol):
    """What is grouped: single votes, or workers with all their votes."""

    def start(self, attempt: int) -> Statistics:
        """Where an iteration starts; the first start is the same whatever the seed."""

    def step(self, statistics: Statistics, classifier: SoftClassifier) -> Reached:
        """M-step, then E-step."""


def by_worker(values: NDArray[np.float64] | float, crowd: Crowd) -> NDArray[np.float64]:
    """Add up a value of each vote, times the vote's weight, within each worker.

    >>> by_worker(1.0, Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "cat")])).tolist()
    [2.0]
    """
    assert crowd.worker is not None
    total = np.bincount(crowd.worker, weights=values * crowd.weight, minlength=crowd.n_workers)
    return np.asarray(total, dtype=np.float64)


def clustered(points: Any, weight: NDArray[np.float64], group: NDArray[np.intp], n_groups: int) -> NDArray[np.intp]:
    """K-means by Lloyd's passes from a first grouping, which alone decides: renaming tasks or classes changes nothing.

    ``points`` is a dense or sparse table; a group that nobody is left in stays empty.

    >>> clustered(np.array([[0.0], [0.1], [5.0]]), np.ones(3), np.array([0, 1, 1]), 2).tolist()
    [0, 0, 1]
    """
    for _ in range(CLUSTERING):
        chosen = sp.csr_array((weight, (group, np.arange(len(group)))), shape=(n_groups, len(group)))
        mass = np.asarray(chosen.sum(axis=1)).reshape(-1, 1)
        total = chosen @ points
        centre = np.asarray(total.toarray() if sp.issparse(total) else total) / np.maximum(mass, LEAST)
        distance = (centre**2).sum(axis=1) - 2 * np.asarray(points @ centre.T)
        distance[:, mass[:, 0] == 0] = np.inf
        nearest = distance.argmin(axis=1)
        if (nearest == group).all():
            break
        group = nearest
    return group
