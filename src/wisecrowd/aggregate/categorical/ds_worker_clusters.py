"""Dawid and Skene's model for clusters of workers: one confusion matrix per cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import softmax, xlogy

from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.data.pairs import Pairs
from wisecrowd.data.types import AnyCrowd
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.em.loop import Statistics
from wisecrowd.engines.base import Engine
from wisecrowd.errors import UsageError
from wisecrowd.kernels import MIN_PROB, Expectation
from wisecrowd.utils.slices import slice_rows

#: Pseudo-votes of the matrices by which workers are first grouped, in every cell.
INITIAL_SMOOTHING = 0.01


class _WorkerClusters(NamedTuple):
    """Parameters of the clusters."""

    share: NDArray[np.float64]
    """Share of workers, (n_clusters,)."""
    confusion: NDArray[np.float64]
    """Confusion matrices, [cluster, true, given]."""

    def compute_log_probs(self, cluster: int, pairs: Pairs) -> NDArray[np.float64]:
        """Compute log P(label of the pair given class) in a cluster.

        Parameters
        ----------
        cluster : int
            Cluster.
        pairs : Pairs
            Worker and label of every pair.

        Returns
        -------
        ndarray of shape (n_pairs, n_classes)
        """
        return np.log(np.maximum(self.confusion[cluster], MIN_PROB)).T[pairs.label]


@method_class
class DSWorkerClusters(ConfusionEM):
    """Dawid–Skene model with clusters of workers, each with one confusion matrix.

    Model: worker r belongs to cluster g_r ~ τ, and y_ir | z_i = k, g_r = m ~ Λ_m[k, ·], z_i ~ ρ. Mean field over q(z) and the
    memberships φ, with Λ, ρ and τ estimated (Imamura, Sato and Sugiyama 2018):

        φ_r(m) ∝ τ_m exp Σ_i Σ_k q_i(k) log Λ_m[k, y_ir]
        q_i(k) ∝ ρ_k exp Σ_r Σ_m φ_r(m) log Λ_m[k, y_ir]
        Λ_m[k, l] ∝ smoothing + diagonal·[k = l] + Σ_r φ_r(m) n_r[k, l]

    which maximises the evidence lower bound (`trace_`). Workers are first grouped by the nuclear norm of their own matrices, in
    clusters of equal size.

    Choose it when there are many workers with too few labels each for `DawidSkene`, or when the clusters are of interest
    themselves: `groups_` has the cluster of each worker. Where workers have enough labels, their own matrices are better.

    Examples
    --------
    >>> from wisecrowd import DSWorkerClusters
    >>> from wisecrowd.simulate import simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=300, n_workers=60, n_classes=3, votes_per_task=5, random_state=1,
    ...                       workers={"expert": 0.5, "spammer": 0.5})
    >>> fitted = DSWorkerClusters(n_clusters=2).fit(simulation.crowd)
    >>> pd.crosstab(simulation.kind, fitted.groups_).to_numpy().tolist()
    [[30, 0], [0, 30]]
    """

    references: ClassVar[tuple[str, ...]] = ("imamura2018analysis",)

    n_clusters: int = parameter(default=3, help="Number of clusters of workers.")

    group_shares_: NDArray[np.float64] = fitted(
        help="Share of workers in each cluster.", shape=("n_clusters",), finite=True
    )
    group_confusion_: NDArray[np.float64] = fitted(
        help="Confusion matrix of each cluster, by cluster, true class and label.",
        shape=("n_clusters", "n_classes", "n_classes"),
        finite=True,
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_clusters < 1:
            raise UsageError(f"n_clusters must be 1 or more; got {self.n_clusters}")

    # The table in place of the tally has further columns: the memberships of the pair's worker, one per cluster.

    def _split_table(self, table: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the tally, (n_pairs, n_classes), and the memberships, (n_pairs, n_clusters)."""
        tally, membership = np.split(table, [-self.n_clusters], axis=1)
        total = membership.sum(axis=1, keepdims=True)
        uniform = np.full_like(membership, 1 / self.n_clusters)
        return tally, np.divide(membership, total, out=uniform, where=total > 0)

    def _count_matrices(self, votes: AnyCrowd) -> int:
        return self.n_clusters

    def _estimate_clusters(self, table: NDArray[Any], pairs: Pairs) -> _WorkerClusters:
        """Estimate shares and confusion matrices of the clusters from tally and memberships."""
        tally, membership = self._split_table(table)
        n_classes = tally.shape[1]
        shape, coords = (n_classes, len(pairs)), (pairs.label, np.arange(len(pairs)))
        sums = [sp.csr_array((weight, coords), shape=shape) @ tally for weight in membership.T]
        votes = np.stack(sums).transpose(0, 2, 1)
        votes = votes.astype(np.float64) + self.smoothing + self.diagonal * np.eye(n_classes)
        total = votes.sum(axis=2, keepdims=True)
        confusion = np.divide(votes, total, out=np.full_like(votes, 1 / n_classes), where=total > 0)
        first_pair = np.flatnonzero(np.diff(pairs.worker, prepend=-1))
        return _WorkerClusters(membership[first_pair].mean(axis=0, dtype=np.float64), confusion)

    def _infer_memberships(self, tally: NDArray[Any], pairs: Pairs, clusters: _WorkerClusters) -> NDArray[np.float64]:
        """Return the memberships φ, (n_workers, n_clusters)."""
        fit = [
            np.einsum("pk,pk->p", tally, clusters.compute_log_probs(cluster, pairs))
            for cluster in range(len(clusters.share))
        ]
        log_share = np.log(np.maximum(clusters.share, MIN_PROB))
        return softmax(pairs.sum_by_worker(np.stack(fit, axis=1)) + log_share, axis=1)

    def _average_label_probs(self, tally: NDArray[Any], pairs: Pairs, clusters: _WorkerClusters) -> NDArray[Any]:
        """Return the geometric mean of the clusters' label probabilities, weighted by membership."""
        membership = self._infer_memberships(tally, pairs, clusters)[pairs.worker]
        terms = (
            weight[:, None] * clusters.compute_log_probs(cluster, pairs) for cluster, weight in enumerate(membership.T)
        )
        return np.exp(sum(terms))

    def _label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        clusters = self._estimate_clusters(tally, pairs)
        return self._average_label_probs(self._split_table(tally)[0], pairs, clusters).astype(tally.dtype)

    def _log_prior(self, tally: NDArray[Any], pairs: Pairs) -> float:
        """Return the part of the bound about clusters: memberships, their entropy, and the prior of the matrices."""
        clusters = self._estimate_clusters(tally, pairs)
        membership = self._infer_memberships(self._split_table(tally)[0], pairs, clusters)[np.unique(pairs.worker)]
        membership_term = xlogy(membership, np.maximum(clusters.share, MIN_PROB)) - xlogy(membership, membership)
        pseudo_votes = self.smoothing + self.diagonal * np.eye(clusters.confusion.shape[1])
        return float(membership_term.sum() + xlogy(pseudo_votes, clusters.confusion).sum())

    def _complete_statistics(
        self, expectation: Expectation, label_probs: NDArray[Any], previous: Statistics, pairs: Pairs
    ) -> Statistics:
        clusters = self._estimate_clusters(previous.tally, pairs)
        tally = self._split_table(previous.tally)[0]
        membership = self._infer_memberships(tally, pairs, clusters).astype(expectation.tally.dtype)
        table = np.concatenate([expectation.tally, membership[pairs.worker]], axis=1)
        return Statistics(expectation.class_counts, table)

    def _initialize(self, engine: Engine, start: Any, dtype: type) -> Iterator[Statistics]:
        pairs = engine.crowd.pairs
        for class_counts, tally in super()._initialize(engine, start, dtype):
            membership = self._assign_first_clusters(tally, pairs).astype(tally.dtype)
            yield Statistics(class_counts, np.concatenate([tally, membership[pairs.worker]], axis=1))

    def _assign_first_clusters(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[np.float64]:
        """Return memberships in clusters of equal size, by decreasing nuclear norm of the workers' own matrices."""
        n_classes = tally.shape[1]
        norm = np.empty(pairs.n_workers)
        for workers in slice_rows(pairs.n_workers, n_classes**2):
            rows = slice(*np.searchsorted(pairs.worker, [workers.start, workers.stop]))
            first_votes = INITIAL_SMOOTHING + np.eye(n_classes) / n_classes
            votes = np.tile(first_votes, (len(norm[workers]), 1, 1))
            votes[pairs.worker[rows] - workers.start, :, pairs.label[rows]] += tally[rows]
            confusion = votes / votes.sum(axis=2, keepdims=True)
            norm[workers] = np.linalg.svd(confusion, compute_uv=False).sum(axis=1)
        norm = -norm.round(9)  # equal workers belong to one cluster, whatever their names
        cuts = np.quantile(norm[np.unique(pairs.worker)], np.arange(1, self.n_clusters) / self.n_clusters)
        return np.eye(self.n_clusters)[np.searchsorted(cuts, norm, side="left")]

    # ------------------------------------------------------------------ results

    def _set_fitted(self, crowd: Any, posterior: Any, tally: NDArray[Any] | None = None) -> None:
        if tally is not None:
            clusters = self._estimate_clusters(tally, crowd.pairs)
            best_first = np.argsort(-np.trace(clusters.confusion, axis1=1, axis2=2), kind="stable")
            self.group_shares_, self.group_confusion_ = (part[best_first] for part in clusters)
            tally = self._split_table(tally)[0]
        super()._set_fitted(crowd, posterior, tally)

    @property
    def _fitted_clusters(self) -> _WorkerClusters:
        return _WorkerClusters(self._check_fitted("group_shares_"), self._check_fitted("group_confusion_"))

    @property
    def groups_(self) -> pd.Series:
        """Cluster of each worker, numbered in decreasing order of accuracy."""
        membership = self._infer_memberships(self.tally_, self._pairs, self._fitted_clusters).argmax(axis=1)
        return pd.Series(membership, index=self.workers_.index, name="group")

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        membership = self._infer_memberships(self.tally_, self._pairs, self._fitted_clusters)
        return super()._worker_columns() | {
            "group": membership.argmax(axis=1),
            "membership": membership.max(axis=1),
        }

    def predictive_label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        """Estimate P(label of the pair given class) of some workers, with the clusters of the fit.

        Parameters
        ----------
        tally : ndarray of shape (n_pairs, n_classes)
            Expected counts.
        pairs : Pairs
            Worker and label of every row of the tally.

        Returns
        -------
        ndarray of shape (n_pairs, n_classes)
        """
        return self._average_label_probs(tally, pairs, self._fitted_clusters)

    def reported_label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        """Return P(label of the pair given class), averaged over clusters by membership.

        Parameters
        ----------
        tally : ndarray of shape (n_pairs, n_classes)
            Expected counts.
        pairs : Pairs
            Worker and label of every row of the tally.

        Returns
        -------
        ndarray of shape (n_pairs, n_classes)
        """
        clusters = self._fitted_clusters
        membership = self._infer_memberships(tally, pairs, clusters)[pairs.worker]
        return np.einsum("pm,mkp->pk", membership, clusters.confusion[:, :, pairs.label])
