"""The Davidson model of comparisons with ties, with effects of workers, tasks and covariates.

A comparison has a logit difference d and a tie utility κ:

    P(left) ∝ exp(d/2),   P(right) ∝ exp(−d/2),   P(tie) ∝ exp(κ),
    d = a_r (θ_L − θ_R + βᵀ(x_L − x_R)) + u_Lt − u_Rt + π + π_r,   κ = κ_0 + κ_r + κ_t.

θ are the scores of items, u_it deviations of an item on a task, β coefficients of covariates, a_r the discrimination of worker r,
π the common lean to the left side, π_r that of a worker, and κ the inclination to call a tie, in general, by worker and by task.
Without ties and effects it is the Bradley–Terry model. The discrimination does not act on u: deviations are so many that they can
explain the comparisons of one judge without error, and that judge's discrimination would grow without limit.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from wisecrowd.aggregate.pairwise._worker_information import WorkerCells, WorkerInformation
from wisecrowd.data.comparisons import LEFT, RIGHT, TIE, Comparisons

Array = NDArray[np.float64]

#: Tie utility that stands for "no ties": their probability is below 1e-100.
NO_TIES = -300.0
#: Largest number of parameters for which the information matrix is factored (seconds, for matrices as sparse as these).
MAX_FACTORED_PARAMETERS = 20_000
#: Fisher scoring converges quadratically near the optimum, so a few steps reach the last digits.
MAX_SCORING_STEPS = 8
#: Fraction of the tolerance that Fisher scoring aims at.
SCORING_PRECISION = 1e-6
#: Largest number of items for which the workers are eliminated from the information (a dense matrix of items is factored).
MAX_ELIMINATED_ITEMS = 2_000
#: Largest change of a parameter at which Newton's method stops; the next step would be its square.
STEP_TOLERANCE = 1e-8
#: Halvings of a step that does not raise the posterior density.
MAX_HALVINGS = 30
#: Relative multiple of the identity that makes an information matrix without a prior on the scores invertible.
NULL_SPACE_JITTER = 1e-9


class OutcomeProbs(NamedTuple):
    """Probabilities of the three outcomes of each row.

    Parameters
    ----------
    left, right, tie : ndarray of shape (n_rows,)
        Probabilities, which sum to one.
    """

    left: Array
    right: Array
    tie: Array

    @property
    def lead(self) -> Array:
        """P(left) − P(right)."""
        return self.left - self.right

    @property
    def difference_information(self) -> Array:
        """Fisher information of a row about the logit difference d."""
        return (self.left + self.right - self.lead**2) / 4

    @property
    def tie_information(self) -> Array:
        """Fisher information of a row about the tie utility κ."""
        return self.tie * (1 - self.tie)

    @property
    def cross_information(self) -> Array:
        """Fisher information of a row about d and κ jointly."""
        return -self.tie * self.lead / 2


def outcome_probs(difference: Array, tie_utility: Array | float) -> OutcomeProbs:
    """Compute the probabilities that the left item wins, that the right one wins, and of a tie.

    Parameters
    ----------
    difference : ndarray of shape (n_rows,)
        Logit differences d between the left and the right item.
    tie_utility : ndarray of shape (n_rows,) or float
        Tie utilities κ; the larger, the more probable is a tie.

    Returns
    -------
    OutcomeProbs

    Examples
    --------
    >>> [round(float(p[0]), 3) for p in outcome_probs(np.zeros(1), 0.0)]
    [0.333, 0.333, 0.333]
    """
    if np.ndim(tie_utility) == 0 and tie_utility == NO_TIES:
        left = expit(difference)
        return OutcomeProbs(left, expit(-difference), np.zeros_like(left))
    half = difference / 2
    largest = np.maximum(np.abs(half), tie_utility)
    left, right, tie = np.exp(half - largest), np.exp(-half - largest), np.exp(tie_utility - largest)
    total = left + right + tie
    return OutcomeProbs(left / total, right / total, tie / total)


@dataclass(frozen=True)
class ComparisonRows:
    """Comparisons as the likelihood reads them: equal rows are summed.

    Parameters
    ----------
    left, right : ndarray of shape (n_rows,)
        Item codes.
    wins : ndarray of shape (n_rows, 3)
        Weight of each outcome: left, right, tie.
    worker, task : ndarray of shape (n_rows,), optional
        Worker and task codes; None for models without effects of workers or tasks.
    covariates : ndarray of shape (n_rows, n_covariates), optional
        Differences x_L − x_R.
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    wins: Array
    worker: NDArray[np.int32] | None = None
    task: NDArray[np.int32] | None = None
    covariates: Array | None = None

    @classmethod
    def summed(
        cls, comparisons: Comparisons, *, workers: bool, tasks: bool, covariates: Array | None = None
    ) -> ComparisonRows:
        """Sum the comparisons by left and right item and, if wanted, by worker and task.

        Parameters
        ----------
        comparisons : Comparisons
            Comparisons.
        workers, tasks : bool
            Keep workers, or tasks, apart.
        covariates : ndarray of shape (n_votes, n_covariates), optional
            Differences of covariates; rows are then not summed.

        Returns
        -------
        ComparisonRows
        """
        left, right, outcome, weight = comparisons.left, comparisons.right, comparisons.outcome, comparisons.vote_weight
        worker = comparisons.worker if workers else None
        task = comparisons.task if tasks else None
        columns = [(column, n) for column, n in _with_sizes(comparisons, worker, task) if column is not None]
        if covariates is not None or math.prod(n for _, n in columns) >= 2**62:
            wins = np.zeros((comparisons.n_votes, 3))
            wins[np.arange(comparisons.n_votes), outcome] = weight
            return cls(left, right, wins, worker, task, covariates)
        key = np.zeros(comparisons.n_votes, dtype=np.int64)
        for column, n in columns:
            key = key * n + column
        n_keys = math.prod(n for _, n in columns)
        if n_keys <= comparisons.n_votes:
            # A table of all combinations is smaller than the comparisons, and needs no sorting.
            keys = np.flatnonzero(np.bincount(key, minlength=n_keys))
            sums = np.bincount(key * 3 + outcome, weight, 3 * n_keys).reshape(-1, 3)[keys]
            first = np.empty(n_keys, dtype=np.int64)
            first[key] = np.arange(comparisons.n_votes)  # any comparison of the combination
            first = first[keys]
        else:
            _, first, row = np.unique(key, return_index=True, return_inverse=True)
            sums = np.bincount(row.astype(np.int64) * 3 + outcome, weight, 3 * len(first)).reshape(-1, 3)
        return cls(
            left[first],
            right[first],
            np.asfortranarray(sums, dtype=np.float64),  # the likelihood reads it by column
            None if worker is None else worker[first],
            None if task is None else task[first],
        )

    @cached_property
    def weight(self) -> Array:
        """Total weight of each row."""
        return np.asarray(self.wins.sum(axis=1), dtype=np.float64)

    def split_ties(self) -> ComparisonRows:
        """Return rows in which a tie counts as half a win of each side.

        Returns
        -------
        ComparisonRows
        """
        half = self.wins[:, TIE] / 2
        wins = np.stack([self.wins[:, LEFT] + half, self.wins[:, RIGHT] + half, np.zeros(len(half))])
        return replace(self, wins=wins.T)


def _with_sizes(
    comparisons: Comparisons, worker: NDArray[np.int32] | None, task: NDArray[np.int32] | None
) -> list[tuple[NDArray[np.int32] | None, int]]:
    """Return the columns that identify a row, with the number of values of each."""
    n_workers = 0 if worker is None else comparisons.n_workers
    n_tasks = 0 if task is None else comparisons.n_tasks
    n_items = comparisons.n_items
    return [(worker, n_workers), (task, n_tasks), (comparisons.left, n_items), (comparisons.right, n_items)]


@dataclass(frozen=True)
class Effects:
    """Effects that a model has beside the scores of the items.

    Parameters
    ----------
    lean : bool, default=False
        Common lean to the left side.
    ties : bool, default=True
        Ties as an outcome of their own.
    workers : bool, default=False
        Discrimination, lean and habit of ties of every worker.
    tasks : bool, default=False
        Deviations of items on tasks, and habit of ties of every task.
    """

    lean: bool = False
    ties: bool = True
    workers: bool = False
    tasks: bool = False


class DavidsonModel:
    """Penalised likelihood of the Davidson model on given rows.

    Parameters are one vector of blocks. ``precision`` holds the precision of the normal prior of every block; a block with
    precision zero has a flat prior.

    Parameters
    ----------
    rows : ComparisonRows
        Comparisons.
    n_items, n_workers, n_tasks : int
        Sizes of the vocabularies; ``n_workers`` and ``n_tasks`` matter only with the effects of workers and tasks.
    effects : Effects
        Effects in the model.
    """

    def __init__(self, rows: ComparisonRows, n_items: int, n_workers: int, n_tasks: int, effects: Effects) -> None:
        self.rows, self.n_items, self.effects = rows, n_items, effects
        sizes = {"score": n_items}
        if rows.covariates is not None:
            sizes["covariate"] = rows.covariates.shape[1]
        if effects.lean:
            sizes["lean"] = 1
        if effects.ties:
            sizes["tie"] = 1
        if effects.workers:
            assert rows.worker is not None
            self._active_workers = np.flatnonzero(np.bincount(rows.worker, minlength=n_workers))
            sizes |= {"worker_slope": n_workers, "worker_lean": n_workers}
            if effects.ties:
                sizes["worker_tie"] = n_workers
        if effects.tasks:
            # Only the combinations of item and task that occur have a deviation.
            assert rows.task is not None
            keys = np.concatenate([side.astype(np.int64) * n_tasks + rows.task for side in (rows.left, rows.right)])
            self.cells, position = np.unique(keys, return_inverse=True)
            self._left_cell, self._right_cell = position[: len(rows.left)], position[len(rows.left) :]
            sizes["task_score"] = len(self.cells)
            if effects.ties:
                sizes["task_tie"] = n_tasks
        ends = np.cumsum(list(sizes.values()))
        self.blocks = {
            name: slice(int(end - size), int(end)) for (name, size), end in zip(sizes.items(), ends, strict=True)
        }
        self.n_parameters = int(ends[-1])
        self._worker_cells: WorkerCells | None = None
        if effects.workers and not effects.tasks and rows.covariates is None and n_items <= MAX_ELIMINATED_ITEMS:
            assert rows.worker is not None
            self._worker_cells = WorkerCells.from_rows(rows.worker, rows.left, rows.right, n_items, n_workers)

    def reweight(self, factor: Array) -> DavidsonModel:
        """Return the same model with the weights of the rows multiplied.

        Parameters
        ----------
        factor : ndarray of shape (n_rows,)
            Factor of each row.

        Returns
        -------
        DavidsonModel
        """
        return self.replace_wins(self.rows.wins * factor[:, None])

    def replace_wins(self, wins: Array) -> DavidsonModel:
        """Return the same model with other weights of the outcomes.

        Parameters
        ----------
        wins : ndarray of shape (n_rows, 3)
            Weight of each outcome of each row: left, right, tie.

        Returns
        -------
        DavidsonModel
        """
        model = copy.copy(self)
        model.rows = replace(self.rows, wins=wins)
        return model

    def initial_parameters(self) -> Array:
        """Return parameters to start from: equal scores, and the share of ties.

        Returns
        -------
        ndarray of shape (n_parameters,)
        """
        parameters = np.zeros(self.n_parameters)
        if self.effects.ties:
            share = self.rows.wins[:, TIE].sum() / self.rows.weight.sum()
            parameters[self.blocks["tie"]] = np.log(2 * share / max(1 - share, 1e-9))
        return parameters

    def outcome_probs(self, parameters: Array) -> OutcomeProbs:
        """Return the probabilities of the outcomes of every row.

        Parameters
        ----------
        parameters : ndarray of shape (n_parameters,)
            Values of the parameters, block by block.

        Returns
        -------
        OutcomeProbs
        """
        advantage, slope = self._advantage(parameters)
        return self._probs(parameters, advantage, slope)

    def _advantage(self, parameters: Array) -> tuple[Array, Array | float]:
        """Return the advantage of the left item in every row, and the discrimination of its worker."""
        rows, block = self.rows, self.blocks
        score = parameters[block["score"]]
        advantage = score[rows.left] - score[rows.right]
        if rows.covariates is not None:
            advantage = advantage + rows.covariates @ parameters[block["covariate"]]
        slope = self.worker_slopes(parameters)[rows.worker] if self.effects.workers else 1.0
        return advantage, slope

    def worker_slopes(self, parameters: Array) -> Array:
        """Return the discrimination of every worker; that of workers with comparisons has the geometric mean one.

        Without this constraint, the scale of the scores could move into the discriminations.

        Parameters
        ----------
        parameters : ndarray of shape (n_parameters,)
            Values of the parameters, block by block.

        Returns
        -------
        ndarray of shape (n_workers,)
        """
        log_slope = parameters[self.blocks["worker_slope"]]
        return np.exp(log_slope - log_slope[self._active_workers].mean())

    def _probs(self, parameters: Array, advantage: Array, slope: Array | float) -> OutcomeProbs:
        rows, block = self.rows, self.blocks
        difference = slope * advantage
        if self.effects.tasks:
            deviation = parameters[block["task_score"]]
            difference = difference + deviation[self._left_cell] - deviation[self._right_cell]
        tie_utility: Array | float = parameters[block["tie"]][0] if self.effects.ties else NO_TIES
        if self.effects.lean:
            difference = difference + parameters[block["lean"]][0]
        if self.effects.workers:
            difference = difference + parameters[block["worker_lean"]][rows.worker]
            if self.effects.ties:
                tie_utility = tie_utility + parameters[block["worker_tie"]][rows.worker]
        if self.effects.tasks and self.effects.ties:
            tie_utility = tie_utility + parameters[block["task_tie"]][rows.task]
        return outcome_probs(difference, tie_utility)

    def prior_precisions(self, precision: Mapping[str, float]) -> Array:
        """Return the prior precision of every parameter.

        Parameters
        ----------
        precision : mapping of str to float
            Precision by block; blocks that are not named have a flat prior.

        Returns
        -------
        ndarray of shape (n_parameters,)
        """
        vector = np.zeros(self.n_parameters)
        for name, block in self.blocks.items():
            vector[block] = precision.get(name, 0.0)
        return vector

    def objective(self, parameters: Array, precisions: Array) -> tuple[float, Array]:
        """Return the negative log-posterior and its gradient.

        Parameters
        ----------
        parameters : ndarray of shape (n_parameters,)
            Values of the parameters, block by block.
        precisions : ndarray of shape (n_parameters,)
            Prior precision of every parameter.

        Returns
        -------
        value : float
        gradient : ndarray of shape (n_parameters,)
        """
        advantage, slope = self._advantage(parameters)
        probs = self._probs(parameters, advantage, slope)
        rows = self.rows
        outcomes = (LEFT, RIGHT, TIE) if self.effects.ties else (LEFT, RIGHT)
        value = sum(float(rows.wins[:, n] @ np.log(np.maximum(probs[n], 1e-300))) for n in outcomes)
        value -= 0.5 * float(precisions @ parameters**2)
        by_difference, by_tie = self._row_scores(probs)
        gradient = self._sum_scores(by_difference, by_tie, advantage, slope) - precisions * parameters
        return -value, -gradient

    def _row_scores(self, probs: OutcomeProbs) -> tuple[Array, Array]:
        """Return the derivatives of the log-likelihood of every row by its logit difference and its tie utility."""
        rows = self.rows
        by_difference = (rows.wins[:, LEFT] - rows.wins[:, RIGHT] - rows.weight * probs.lead) / 2
        return by_difference, rows.wins[:, TIE] - rows.weight * probs.tie

    def _sum_scores(self, by_difference: Array, by_tie: Array, advantage: Array, slope: Array | float) -> Array:
        """Return the gradient of the log-likelihood from the derivatives of the rows."""
        rows, gradient = self.rows, np.zeros(self.n_parameters)

        def add(name: str, index: NDArray[Any], value: Array) -> None:
            block = self.blocks[name]
            gradient[block] += np.bincount(index, value, block.stop - block.start)

        by_advantage = by_difference * slope
        add("score", rows.left, by_advantage)
        add("score", rows.right, -by_advantage)
        if rows.covariates is not None:
            gradient[self.blocks["covariate"]] = by_advantage @ rows.covariates
        if self.effects.lean:
            gradient[self.blocks["lean"]] = by_difference.sum()
        if self.effects.ties:
            gradient[self.blocks["tie"]] = by_tie.sum()
        if self.effects.workers:
            assert rows.worker is not None
            add("worker_slope", rows.worker, by_advantage * advantage)
            by_slope = gradient[self.blocks["worker_slope"]]
            by_slope[self._active_workers] -= by_slope[self._active_workers].mean()  # derivative of the constraint
            add("worker_lean", rows.worker, by_difference)
            if self.effects.ties:
                add("worker_tie", rows.worker, by_tie)
        if self.effects.tasks:
            assert rows.task is not None
            add("task_score", self._left_cell, by_difference)
            add("task_score", self._right_cell, -by_difference)
            if self.effects.ties:
                add("task_tie", rows.task, by_tie)
        return gradient

    def jacobians(self, parameters: Array) -> tuple[Any, Any]:
        """Return the derivatives of every row's logit difference and tie utility by the parameters.

        The constraint on the discriminations is left out: it couples all workers, and concerns the scale of the scores only.

        Parameters
        ----------
        parameters : ndarray of shape (n_parameters,)
            Values of the parameters, block by block.

        Returns
        -------
        difference, tie : scipy.sparse.csr_array of shape (n_rows, n_parameters)
        """
        from scipy.sparse import coo_array

        rows = self.rows
        n_rows = len(rows.left)
        advantage, slope = self._advantage(parameters)
        slope_column, every_row = np.broadcast_to(slope, n_rows), np.arange(n_rows)
        entries: dict[str, list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]] = {"difference": [], "tie": []}

        def add(target: str, name: str, index: NDArray[Any] | int, value: NDArray[Any] | float) -> None:
            column = np.broadcast_to(np.asarray(index), n_rows) + self.blocks[name].start
            entries[target].append((every_row, column, np.broadcast_to(value, n_rows)))

        add("difference", "score", rows.left, slope_column)
        add("difference", "score", rows.right, -slope_column)
        for number in range(0 if rows.covariates is None else rows.covariates.shape[1]):
            assert rows.covariates is not None
            add("difference", "covariate", number, slope_column * rows.covariates[:, number])
        if self.effects.lean:
            add("difference", "lean", 0, 1.0)
        if self.effects.ties:
            add("tie", "tie", 0, 1.0)
        if self.effects.workers:
            assert rows.worker is not None
            add("difference", "worker_slope", rows.worker, slope_column * advantage)
            add("difference", "worker_lean", rows.worker, 1.0)
            if self.effects.ties:
                add("tie", "worker_tie", rows.worker, 1.0)
        if self.effects.tasks:
            assert rows.task is not None
            add("difference", "task_score", self._left_cell, 1.0)
            add("difference", "task_score", self._right_cell, -1.0)
            if self.effects.ties:
                add("tie", "task_tie", rows.task, 1.0)

        def build(parts: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]) -> Any:
            shape = (n_rows, self.n_parameters)
            if not parts:
                return coo_array(shape).tocsr()
            row, column, value = (np.concatenate([part[place] for part in parts]) for place in range(3))
            return coo_array((value, (row, column)), shape=shape).tocsr()

        return build(entries["difference"]), build(entries["tie"])

    def information(self, parameters: Array, precisions: Array) -> Any:
        """Return the Fisher information of the parameters plus their prior precision.

        Parameters
        ----------
        parameters : ndarray of shape (n_parameters,)
            Values of the parameters, block by block.
        precisions : ndarray of shape (n_parameters,)
            Prior precision of every parameter.

        Returns
        -------
        scipy.sparse.csc_array of shape (n_parameters, n_parameters)
        """
        from scipy.sparse import diags_array

        probs, weight = self.outcome_probs(parameters), self.rows.weight
        difference, tie = self.jacobians(parameters)
        cross = difference.T @ (diags_array(weight * probs.cross_information) @ tie)
        total = difference.T @ (diags_array(weight * probs.difference_information) @ difference)
        total = total + cross + cross.T + tie.T @ (diags_array(weight * probs.tie_information) @ tie)
        return (total + diags_array(precisions)).tocsc()

    def has_separate_workers(self, precisions: Array) -> bool:
        """Tell whether `worker_information` applies.

        Parameters
        ----------
        precisions : ndarray of shape (n_parameters,)
            Prior precision of every parameter.

        Returns
        -------
        bool
            False if tasks or covariates connect the workers, the items are too many, or an effect of workers has a flat prior.
        """
        return self._worker_cells is not None and bool((precisions[self.blocks["worker_slope"].start :] > 0).all())

    def worker_information(self, parameters: Array, precisions: Array, *, observed: bool = False) -> WorkerInformation:
        """Return the information of a model with separate workers, in a form in which the workers can be eliminated.

        Parameters
        ----------
        parameters : ndarray of shape (n_parameters,)
            Values of the parameters, block by block.
        precisions : ndarray of shape (n_parameters,)
            Prior precision of every parameter.
        observed : bool, default=False
            Return the observed information, which may be indefinite, instead of the Fisher information.

        Returns
        -------
        WorkerInformation
        """
        from scipy.sparse import csr_array

        cells, worker = self._worker_cells, self.rows.worker
        assert cells is not None
        assert worker is not None
        n_items, n_workers = cells.n_items, cells.n_workers
        advantage, slope = self._advantage(parameters)
        probs, weight = self._probs(parameters, advantage, slope), self.rows.weight
        difference = weight * probs.difference_information
        by_score, by_slope = difference * slope, slope * advantage
        # Every effect beside the scores acts on d or on the tie utility t, with a factor in each row.
        one = np.ones(1)
        kinds: list[tuple[str, Array]] = [("d", by_slope), ("d", one)]
        common: list[tuple[str, Array]] = [("d", one)] if self.effects.lean else []
        information = {("d", "d"): difference}
        if self.effects.ties:
            kinds.append(("t", one))
            common.append(("t", one))
            information |= {("d", "t"): weight * probs.cross_information, ("t", "t"): weight * probs.tie_information}
            information["t", "d"] = information["d", "t"]

        def sum_by_worker(first: tuple[str, Array], second: tuple[str, Array]) -> Array:
            value = information[first[0], second[0]] * first[1] * second[1]
            return np.bincount(worker, value, n_workers).astype(np.float64)

        n_shared, n_kinds = n_items + len(common), len(kinds)
        shared = np.zeros((n_shared, n_shared))
        shared[:n_items, :n_items] = cells.sum_products(by_score * slope)
        own = np.zeros((n_workers, n_kinds, n_kinds))
        tables = {"d": cells.sum_sides(by_score)}
        if self.effects.ties:
            tables["t"] = cells.sum_sides(information["d", "t"] * slope)
        places = np.arange(n_workers)
        row = np.concatenate([cells.worker, *[places] * len(common)])
        column = np.concatenate([cells.item, *(np.full(n_workers, n_items + n) for n in range(len(common)))])
        # The logit difference is not linear in scores and discriminations: its second derivatives enter the observed information.
        curvature = self._row_scores(probs)[0] * slope if observed else np.zeros(1)
        by_both = cells.sum_sides(by_score * by_slope - curvature)
        cross = []
        for k, kind in enumerate(kinds):
            table = by_both if k == 0 else tables[kind[0]]
            by_common = [sum_by_worker(kind, effect) for effect in common]
            cross.append(csr_array((np.concatenate([table, *by_common]), (row, column)), shape=(n_workers, n_shared)))
            for m in range(k + 1):
                own[:, k, m] = own[:, m, k] = sum_by_worker(kind, kinds[m])
        own[:, 0, 0] -= np.bincount(worker, curvature * advantage, n_workers)
        for n, effect in enumerate(common):
            by_item = np.bincount(cells.item, tables[effect[0]], n_items)
            shared[:n_items, n_items + n] = shared[n_items + n, :n_items] = by_item
            for m in range(len(common)):
                shared[n_items + n, n_items + m] = sum_by_worker(effect, common[m]).sum()
        jitter = NULL_SPACE_JITTER * max(float(shared.diagonal().mean()), 1e-12)
        shared[np.diag_indices(n_shared)] += precisions[:n_shared] + jitter
        own[:, range(n_kinds), range(n_kinds)] += precisions[n_shared:].reshape(n_kinds, n_workers).T
        return WorkerInformation(shared, cross, own)

    def cluster_scores(self, parameters: Array, cluster: NDArray[Any], n_clusters: int) -> Any:
        """Return the gradient of the log-likelihood of every cluster of rows.

        Parameters
        ----------
        parameters : ndarray of shape (n_parameters,)
            Values of the parameters, block by block.
        cluster : ndarray of shape (n_rows,)
            Cluster of each row, such as its worker.
        n_clusters : int
            Number of clusters.

        Returns
        -------
        scipy.sparse.csr_array of shape (n_clusters, n_parameters)
        """
        from scipy.sparse import coo_array, diags_array

        by_difference, by_tie = self._row_scores(self.outcome_probs(parameters))
        difference, tie = self.jacobians(parameters)
        rows = diags_array(by_difference) @ difference + diags_array(by_tie) @ tie
        n_rows = len(cluster)
        membership = coo_array((np.ones(n_rows), (cluster, np.arange(n_rows))), shape=(n_clusters, n_rows)).tocsr()
        return (membership @ rows).tocsr()

    def maximize(self, start: Array, precisions: Array, *, max_iter: int, tol: float) -> MaximizedParameters:
        """Find the parameters with the highest posterior density.

        With separate workers, every step is one of Newton's method. Otherwise quasi-Newton steps (L-BFGS) come near the optimum,
        and Fisher scoring reaches it to the last digits if the parameters are few enough for a factorisation.

        Parameters
        ----------
        start : ndarray of shape (n_parameters,)
            Parameters to start from.
        precisions : ndarray of shape (n_parameters,)
            Prior precision of every parameter.
        max_iter : int
            Maximum number of iterations.
        tol : float
            Largest component of the gradient at the optimum, per comparison.

        Returns
        -------
        MaximizedParameters
        """
        from scipy.optimize import minimize

        if self.has_separate_workers(precisions):
            return self._maximize_by_newton(start, precisions, max_iter=max_iter, tol=tol)
        scale = max(float(self.rows.weight.sum()), 1.0)

        def scaled(parameters: Array) -> tuple[float, Array]:
            value, gradient = self.objective(parameters, precisions)
            return value / scale, gradient / scale

        options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "gtol": tol, "ftol": 1e-15, "maxcor": 20}
        result = minimize(scaled, start, jac=True, method="L-BFGS-B", options=options)
        parameters, n_iter = np.asarray(result.x), int(result.nit)
        value, gradient = scaled(parameters)
        if self.n_parameters <= MAX_FACTORED_PARAMETERS:
            for _ in range(MAX_SCORING_STEPS):
                if float(np.abs(gradient).max()) <= tol * SCORING_PRECISION:
                    break
                step = solve_information(self.information(parameters, precisions), gradient * scale)
                candidate = parameters - step
                candidate_value, candidate_gradient = scaled(candidate)
                # At the optimum a step changes the last digits of the value only; the gradient decides.
                if candidate_value > value + 1e-14 * abs(value) or (
                    np.abs(candidate_gradient).max() >= np.abs(gradient).max()
                ):
                    break
                parameters, value, gradient = candidate, candidate_value, candidate_gradient
                n_iter += 1
        converged = bool(np.abs(gradient).max() <= 10 * tol)
        return MaximizedParameters(parameters, -value * scale, n_iter, converged)

    def _maximize_by_newton(self, start: Array, precisions: Array, *, max_iter: int, tol: float) -> MaximizedParameters:
        """Maximise by Newton steps, or Fisher scoring where the observed information is indefinite.

        Steps keep the mean of the logarithms of the discriminations. Without this constraint the information has an almost flat
        direction, in which the scale of the scores moves into the discriminations, and steps would be much too long.
        """
        scale = max(float(self.rows.weight.sum()), 1.0)
        active_slopes = self.blocks["worker_slope"].start + self._active_workers
        constraint = np.zeros(self.n_parameters)
        constraint[active_slopes] = 1.0
        parameters = start.copy()
        parameters[active_slopes] -= parameters[active_slopes].mean()
        value, gradient = self.objective(parameters, precisions)
        n_iter = 0
        while n_iter < max_iter:
            information = self.worker_information(parameters, precisions, observed=True)
            if not information.is_positive_definite():
                information = self.worker_information(parameters, precisions)
            step, correction = information.solve(gradient), information.solve(constraint)
            step -= correction * float(constraint @ step) / float(constraint @ correction)
            n_iter += 1
            for halvings in range(MAX_HALVINGS):
                candidate = parameters - step / 2**halvings
                candidate_value, candidate_gradient = self.objective(candidate, precisions)
                if candidate_value <= value + 1e-14 * abs(value):
                    break
            else:
                break
            change = float(np.abs(candidate - parameters).max())
            parameters, value, gradient = candidate, candidate_value, candidate_gradient
            if change <= STEP_TOLERANCE:
                break
        converged = bool(np.abs(gradient).max() <= 10 * tol * scale)
        return MaximizedParameters(parameters, -value, n_iter, converged)


class MaximizedParameters(NamedTuple):
    """Result of a maximisation.

    Parameters
    ----------
    parameters : ndarray of shape (n_parameters,)
        Parameters with the highest posterior density.
    log_posterior : float
        Log-likelihood plus log-prior, up to a constant.
    n_iter : int
        Number of iterations.
    converged : bool
        Whether the gradient vanished.
    """

    parameters: Array
    log_posterior: float
    n_iter: int
    converged: bool


def solve_information(information: Any, right_side: Array) -> Array:
    """Solve a linear system with a positive semi-definite information matrix.

    Parameters
    ----------
    information : scipy.sparse.csc_array of shape (n, n)
        Information. Its null space, the common shift of all scores, is bounded by a small multiple of the identity.
    right_side : ndarray of shape (n,) or (n, m)
        Right side.

    Returns
    -------
    ndarray
        Solution.
    """
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import splu

    n = information.shape[0]
    jitter = NULL_SPACE_JITTER * max(float(abs(information.diagonal()).mean()), 1e-12)
    factor = splu((information + jitter * eye_array(n, format="csc")).tocsc())
    return np.asarray(factor.solve(np.ascontiguousarray(right_side)), dtype=np.float64)
