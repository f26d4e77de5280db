"""WSLC: missing votes by the votes of similar workers on the task."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from wisecrowd.base.completer import Completer, WorkerLabelProbs
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.classifiers.standardiser import Standardiser
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError
from wisecrowd.utils.slices import slice_rows

#: Weight of every vote beside its similarity. It decides only where no voter has a similarity.
BASE_WEIGHT = 1e-9
#: Variance relative to the mean square, and length of a vector, below which a value is rounding error.
ROUNDING_ERROR = 1e-10


@method_class
class WSLC(Completer):
    """Worker similarity-based label completion: votes of similar workers on the same task.

    A worker is a vector with one number per feature, the correlation of the worker's labels with it:

        v_rj   = Σ_c p_r(c) · corr(x_j, 1[y_r = c])           over the tasks that r labelled, p_r(c) the share of label c
        s(r,s) = (1 + cos(v_r, v_s)) / 2,   s(r,r) = 0
        P(label l of worker r on task i) = Σ_s s(r,s) 1[y_is = l] / Σ_s s(r,s),   s over the workers who labelled i

    Equations and settings are those of the authors' program, in which all workers are neighbours. That program treats categorical
    features by another formula, v_rj = Σ_a,c p_r(a,c) corr(1[x_j = a], 1[y_r = c]), where p_r(a,c) is the share of the worker's
    tasks with value a and label c. It applies to features with numbers of categories, named by ``nominal``. Alternatively,
    encode a category as columns of ones and zeros, each of which is then a feature of its own.

    The program fills in the first class for workers with one vote or with equal votes, whose vector is zero. Here such a worker
    gets the vote shares of the task, as do all workers on a task whose voters have no vector. On a task without votes of others,
    a worker gets the label shares of all own votes (a worker without votes, those of all workers). Orthogonal vectors have
    similarity ½ here, as in the formula, and 0 in the program.

    Only labels that somebody gave to the task have a positive probability, so judge the method by accuracy, not by log-loss, and
    use `LDPLC`, `MMLCFill` or `DSFill` where probabilities matter. With *two classes* the vector is (p_r(0) − p_r(1)) · corr(x,
    1[y_r = 0]): two workers who agree on everything point in opposite directions if one prefers the first class and the other
    the second, and a worker who uses both equally has no vector. The result depends on the rotation of the features. Benchmark:
    ``wisecrowd bench show all-completers``.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from wisecrowd import WSLC, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=100, n_workers=8, n_classes=3, votes_per_task=3)
    >>> X = pd.get_dummies(simulation.truth).astype(float) + np.random.default_rng(0).normal(size=(100, 3))
    >>> filled = WSLC().complete(simulation.crowd, X)
    >>> filled.n_votes, filled.select_observed() == simulation.crowd
    (800, True)
    """

    uses_features: ClassVar[bool] = True
    references: ClassVar[tuple[str, ...]] = ("wu2025worker",)

    nominal: tuple[int, ...] = parameter(
        default=(), help="Positions of features whose numbers stand for categories and have no order."
    )

    vectors_: NDArray[np.float64] = fitted(
        help="Vector of every worker.", shape=("n_workers", "n_features"), finite=True
    )
    directions_: NDArray[np.float64] = fitted(
        help="Vectors of length one; zero for workers without a vector.", shape=("n_workers", "n_features"), finite=True
    )
    label_shares_: NDArray[np.float64] = fitted(
        help="Label shares of every worker.", shape=("n_workers", "n_classes"), finite=True
    )

    def _fit(self, crowd: Crowd, X: NDArray[np.float64] | None) -> None:
        assert X is not None
        X = X.reshape(len(X), -1)
        vectors = compute_worker_vectors(crowd, X)
        for position in self.nominal:
            if not 0 <= position < X.shape[1]:
                raise UsageError(f"nominal names feature {position}; expected positions from 0 to {X.shape[1] - 1}")
            vectors[:, position] = correlate_categories(crowd, X[:, position])
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        self.vectors_ = vectors
        self.directions_ = np.divide(vectors, length, out=np.zeros_like(vectors), where=length > ROUNDING_ERROR)
        self.label_shares_ = _compute_label_shares(crowd)

    def similarity(self, workers: NDArray[np.integer[Any]], others: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """Return the similarity of some workers to some others.

        Parameters
        ----------
        workers : ndarray of shape (n_workers,)
            Positions of workers.
        others : ndarray of shape (n_others,)
            Positions of workers.

        Returns
        -------
        ndarray of shape (n_workers, n_others)
            0 where either has no vector, or both are the same worker.

        Examples
        --------
        >>> import numpy as np
        >>> from wisecrowd import WSLC, Crowd
        >>> crowd = Crowd.from_triples([(task, worker, "abb"[task]) for task in range(3) for worker in "xyz"])
        >>> WSLC().fit(crowd, np.array([[1.0], [2.0], [3.0]])).similarity(np.array([0]), np.arange(3)).round(6).tolist()
        [[0.0, 1.0, 1.0]]
        """
        u, v = self.directions_[workers], self.directions_[others]
        similarity = np.clip((1 + u @ v.T) / 2, 0, 1)
        similarity[~np.outer(u.any(axis=1), v.any(axis=1)) | (workers[:, None] == others)] = 0
        return similarity

    def _worker_label_probs(self, tasks: NDArray[np.intp], workers: NDArray[np.intp]) -> WorkerLabelProbs:
        crowd, n_classes = self._crowd, len(self.classes_)
        count = crowd.votes_per_task[tasks]
        row = np.repeat(np.arange(len(tasks)), count)
        vote = np.arange(len(row)) + (crowd.offset[tasks] - np.cumsum(count) + count)[row]
        voters, voter = np.unique(crowd.worker_codes[vote], return_inverse=True)
        votes_by_voter = csr_array(
            (crowd.weight[vote], (row * n_classes + crowd.label[vote], voter)),
            shape=(len(tasks) * n_classes, len(voters)),
        )
        proba = np.empty((len(tasks), len(workers), n_classes))
        for part in slice_rows(len(workers), len(voters)):
            chosen = workers[part]
            weight = self.similarity(voters, chosen) + BASE_WEIGHT * (voters[:, None] != chosen)
            proba[:, part] = (votes_by_voter @ weight).reshape(len(tasks), n_classes, -1).transpose(0, 2, 1)
        total = proba.sum(axis=2, keepdims=True)
        np.divide(proba, total, out=proba, where=total > 0)
        task, column = np.nonzero(total[:, :, 0] == 0)
        proba[task, column] = self.label_shares_[workers[column]]
        return WorkerLabelProbs(proba)


def compute_worker_vectors(crowd: Crowd, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the correlation of the labels of every worker with every feature, v_r.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    X : ndarray of shape (n_tasks, n_features)
        Features.

    Returns
    -------
    ndarray of shape (n_workers, n_features)
        Zero where the correlation is undefined.

    Examples
    --------
    >>> crowd = Crowd.from_triples([(0, "ann", "no"), (1, "ann", "yes"), (2, "ann", "yes"), (2, "bob", "yes")])
    >>> compute_worker_vectors(crowd, np.array([[1.0], [2.0], [3.0]])).round(4).tolist()
    [[0.2887], [0.0]]
    """
    pairs = crowd.pairs
    votes = csr_array((crowd.weight, (pairs.vote_pairs, crowd.task)), shape=(len(pairs), crowd.n_tasks))
    number = np.asarray(votes.sum(axis=1))
    total = np.maximum(pairs.sum_by_worker(number), np.finfo(float).tiny)
    share = number / total[pairs.worker]  # p_r(c)
    # p / sd(1[y = c]) = √(p / (1 − p)); a label that is always given correlates with nothing.
    gain = np.sqrt(np.divide(share, 1 - share, out=np.zeros_like(share), where=share < 1))
    vectors = np.empty((crowd.n_workers, X.shape[1]))
    for columns in slice_rows(X.shape[1], max(len(pairs), crowd.n_tasks)):
        rows = X[:, columns]
        rows = Standardiser().fit(rows).apply(rows)  # sums of squares far from zero would lose precision
        sums = votes @ rows
        mean = pairs.sum_by_worker(sums) / total[:, None]
        square = pairs.sum_by_worker(votes @ rows**2) / total[:, None]
        variance = square - mean**2
        covariance = sums / total[pairs.worker, None] - share[:, None] * mean[pairs.worker]
        weighted = pairs.sum_by_worker(gain[:, None] * covariance)
        varies = variance > ROUNDING_ERROR * square
        deviation = np.sqrt(variance, where=varies, out=np.ones_like(variance))
        vectors[:, columns] = np.divide(weighted, deviation, where=varies, out=np.zeros_like(weighted))
    return vectors


def correlate_categories(crowd: Crowd, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the correlation of the labels of every worker with a categorical feature.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    values : ndarray of shape (n_tasks,)
        Number of the category of every task.

    Returns
    -------
    ndarray of shape (n_workers,)
        Σ_a,c p(a,c) corr(1[x = a], 1[y = c]); terms with an undefined correlation count 0.

    Examples
    --------
    >>> crowd = Crowd.from_triples([(0, "ann", "no"), (1, "ann", "yes"), (2, "ann", "yes"), (2, "bob", "yes")])
    >>> correlate_categories(crowd, np.array([7.0, 2.0, 2.0])).round(6).tolist()
    [1.0, 0.0]
    """
    pairs = crowd.pairs
    votes = csr_array((crowd.weight, (pairs.vote_pairs, crowd.task)), shape=(len(pairs), crowd.n_tasks))
    number = np.asarray(votes.sum(axis=1))
    total = np.maximum(pairs.sum_by_worker(number), np.finfo(float).tiny)
    share = (number / total[pairs.worker])[:, None]  # p(c)
    result = np.zeros(crowd.n_workers)
    for value in np.unique(values):
        joint = (votes @ (values == value).astype(np.float64))[:, None] / total[pairs.worker, None]  # p(a, c)
        of_value = (pairs.sum_by_worker(joint))[pairs.worker]  # p(a)
        variance = share * (1 - share) * of_value * (1 - of_value)
        is_defined = variance > ROUNDING_ERROR**2
        covariance = joint - share * of_value
        deviation = np.sqrt(variance, where=is_defined, out=np.ones_like(variance))
        correlation = np.divide(covariance, deviation, where=is_defined, out=np.zeros_like(covariance))
        result += pairs.sum_by_worker(joint * correlation)[:, 0]
    return result


def _compute_label_shares(crowd: Crowd) -> NDArray[np.float64]:
    """Return the label shares of every worker, (workers, classes); those of all for a worker without votes."""
    pairs = crowd.pairs
    number = np.zeros((crowd.n_workers, crowd.n_classes))
    number[pairs.worker, pairs.label] = np.bincount(pairs.vote_pairs, crowd.weight, minlength=len(pairs))
    number[~number.any(axis=1)] = number.sum(axis=0)
    shares: NDArray[Any] = number / number.sum(axis=1, keepdims=True)
    return shares
