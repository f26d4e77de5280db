"""Covariance of scores: from the information, robust to dependent comparisons, or by bootstrap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.pairwise._davidson import (
    MAX_FACTORED_PARAMETERS,
    Array,
    ComparisonRows,
    DavidsonModel,
    solve_information,
)
from wisecrowd.base.pairwise_aggregator import MAX_COVARIANCE_ITEMS, centre_covariance
from wisecrowd.data.comparisons import Comparisons
from wisecrowd.errors import UsageError, check_choice
from wisecrowd.utils import progress

#: Kinds of intervals.
IntervalKind: TypeAlias = Literal["auto", "fisher", "sandwich", "bootstrap", "none"]
#: Workers (or tasks) that a sandwich estimate needs; with fewer clusters it is too small.
MIN_CLUSTERS = 20

INTERVAL_HELP = (
    "Kind of the intervals: 'fisher' assumes independent comparisons; 'sandwich' and 'bootstrap' allow those of a worker to depend "
    "on each other; 'auto' is 'sandwich' with 20 workers or more (or else tasks), and 'fisher' otherwise; 'none' saves the time."
)
N_BOOTSTRAP_HELP = "Number of resamples of workers for interval='bootstrap'."


@dataclass(frozen=True)
class ScoreCovariance:
    """Covariance of the scores of a fitted Davidson model.

    Parameters
    ----------
    model : DavidsonModel
        Model on rows that keep workers and tasks apart.
    parameters : ndarray of shape (n_parameters,)
        Fitted parameters.
    precisions : ndarray of shape (n_parameters,)
        Prior precision of every parameter.
    comparisons : Comparisons
        Comparisons.
    rows : ComparisonRows
        Rows of ``model``.
    """

    model: DavidsonModel
    parameters: Array
    precisions: Array
    comparisons: Comparisons
    rows: ComparisonRows

    def compute(self, kind: IntervalKind, *, n_bootstrap: int, max_iter: int, random_state: int) -> Array | None:
        """Compute the covariance.

        Parameters
        ----------
        kind : {"auto", "fisher", "sandwich", "bootstrap", "none"}
            Kind of the estimate.
        n_bootstrap : int
            Number of resamples.
        max_iter : int
            Maximum number of iterations of the fit to a resample.
        random_state : int
            Seed of the bootstrap.

        Returns
        -------
        ndarray of shape (n_items, n_items) or None
            None if it was not asked for, or there are too many items.
        """
        check_choice("interval", kind, ("auto", "fisher", "sandwich", "bootstrap", "none"))
        n_items, n_parameters = self.model.n_items, self.model.n_parameters
        if kind == "none" or n_items > MAX_COVARIANCE_ITEMS or n_parameters > MAX_FACTORED_PARAMETERS:
            return None
        cluster, n_clusters = self._find_clusters()
        if kind == "auto":
            kind = "sandwich" if n_clusters >= MIN_CLUSTERS else "fisher"
        if kind != "fisher" and n_clusters < 2:
            raise UsageError(f"interval={kind!r} needs the comparisons of two or more workers or tasks; use 'fisher'")
        if kind == "bootstrap":
            return self._bootstrap(cluster, n_clusters, n_bootstrap, max_iter, random_state)
        information = self.model.information(self.parameters, self.precisions)
        scores = np.zeros((n_parameters, n_items))
        scores[np.arange(n_items), np.arange(n_items)] = 1
        scores -= scores.mean(axis=1, keepdims=True)  # only differences of scores are determined
        inverse = solve_information(information, scores)
        if kind == "fisher":
            return centre_covariance(inverse[:n_items])
        by_cluster = self.model.cluster_scores(self.parameters, cluster, n_clusters) @ inverse
        n_active = int((np.bincount(cluster, minlength=n_clusters) > 0).sum())
        return centre_covariance(by_cluster.T @ by_cluster * n_active / max(n_active - 1, 1))

    def _find_clusters(self) -> tuple[NDArray[np.int32], int]:
        """Return the cluster of every row, workers or else tasks, and the number of clusters."""
        if self.rows.worker is not None and self.comparisons.n_workers >= MIN_CLUSTERS:
            return self.rows.worker, self.comparisons.n_workers
        if self.rows.task is not None and self.comparisons.n_tasks >= MIN_CLUSTERS:
            return self.rows.task, self.comparisons.n_tasks
        if self.rows.worker is not None:
            return self.rows.worker, self.comparisons.n_workers
        return np.zeros(len(self.rows.left), dtype=np.int32), 1

    def _bootstrap(
        self, cluster: NDArray[np.int32], n_clusters: int, n_bootstrap: int, max_iter: int, random_state: int
    ) -> Array:
        """Return the covariance of the scores over resamples of the clusters."""
        if n_bootstrap < 2:
            raise UsageError(f"n_bootstrap must be 2 or more; got {n_bootstrap}")
        rng = np.random.default_rng(random_state)
        block = self.model.blocks["score"]
        scores = np.empty((n_bootstrap, self.model.n_items))
        for number in range(n_bootstrap):
            progress.report("Bootstrap", number + 1, n_bootstrap)
            repeats = np.bincount(rng.integers(0, n_clusters, n_clusters), minlength=n_clusters)
            resampled = self.model.reweight(repeats[cluster].astype(np.float64))
            result = resampled.maximize(self.parameters, self.precisions, max_iter=max_iter, tol=1e-6)
            score = result.parameters[block]
            scores[number] = score - score.mean()
        return centre_covariance(np.atleast_2d(np.cov(scores, rowvar=False)))
