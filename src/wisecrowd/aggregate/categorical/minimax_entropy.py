"""Minimax conditional entropy: worker matrices and task matrices add up in the exponent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.base.method import DENSE_CELLS
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.gradient import Array, ClimbingEM, Gaussians, Landscape
from wisecrowd.em.initialization import vote_shares
from wisecrowd.em.priors import blocks
from wisecrowd.errors import UsageError, one_of


class _Block(NamedTuple):
    """Some consecutive votes, few enough that a matrix for each of them fits into memory."""

    votes: slice
    workers: NDArray[np.intp]
    """Who cast them, each once."""
    of_worker: Any
    """(workers of the block, votes of the block), sparse, one where the worker cast the vote."""
    tasks: NDArray[np.intp]
    of_task: Any


class _Scores(Landscape):
    """P(y_ir = l | z_i = k) ∝ exp(T_r[k, l] + S_i[k, l]), with ridge penalties on T and S, which both start from zero.

    A point is all T, then all S. Sums over votes run over blocks of them, as products with sparse 0/1 matrices.
    """

    def __init__(
        self, crowd: Crowd, gold: NDArray[np.int32] | None, ridge: tuple[float, float], *, vectors: bool
    ) -> None:
        super().__init__(crowd, gold)
        assert crowd.worker is not None
        k = self.n_classes = crowd.n_classes
        self.n_tasks, self.n_workers = crowd.n_tasks, crowd.n_workers
        self.task, self.worker, self.label = crowd.task, crowd.worker, crowd.label
        self.weight = crowd.weight
        self.task_shape = (self.n_tasks, 1, k) if vectors else (self.n_tasks, k, k)
        self.n_worker_cells = self.n_workers * k * k
        cells = [self.n_worker_cells, int(np.prod(self.task_shape))]
        self.prior = Gaussians(np.zeros(sum(cells)), np.repeat(np.asarray(ridge), cells))
        self.blocks = [self._block(votes) for votes in blocks(crowd.n_votes, k * k)]

    def _block(self, votes: slice) -> _Block:
        workers, of_worker = _incidence(self.worker[votes])
        tasks, of_task = _incidence(self.task[votes])
        return _Block(votes, workers, of_worker, tasks, of_task)

    def split(self, point: Array) -> tuple[Array, Array]:
        """T (workers, true, said), and S (tasks, true or one, said)."""
        k = self.n_classes
        worker, task = np.split(point, [self.n_worker_cells])
        return worker.reshape(self.n_workers, k, k), task.reshape(self.task_shape)

    def _answers(self, point: Array) -> Iterator[tuple[_Block, Array, Array]]:
        """By block of votes: probabilities of all answers (votes, true, said), and log of the one given (votes, true)."""
        # exp is taken of every matrix, not of every vote; rows may be shifted freely before a softmax.
        worker, task = (part - part.max(axis=2, keepdims=True) for part in self.split(point))
        worker_exp, task_exp = np.exp(worker), np.exp(task)
        for block in self.blocks:
            who, what, label_probs = self.worker[block.votes], self.task[block.votes], self.label[block.votes]
            chance = worker_exp[who] * task_exp[what]
            total = chance.sum(axis=2, keepdims=True)
            chance /= total
            given = worker[who, :, label_probs] + task[what, :, label_probs] - np.log(total[..., 0])
            yield block, chance, given

    def evidence(self, point: Array) -> Array:
        """Logarithms of the answers given, added up by task."""
        found = np.zeros((self.n_tasks, self.n_classes))
        for block, _, given in self._answers(point):
            found[block.tasks] += block.of_task @ (self.weight[block.votes, None] * given)
        return found

    def expected(self, point: Array, posterior: Array) -> tuple[float, Array]:
        """What was said less what was to be expected, by worker and by task."""
        value, slope = self.penalty(point), self.prior.pull(point)
        for block, chance, given in self._answers(point):
            share = self.weight[block.votes, None] * posterior[self.task[block.votes]]  # (votes, true)
            value += float(np.sum(share * given))
            chance *= -share[..., None]
            chance[np.arange(len(chance)), :, self.label[block.votes]] += share
            self._add(slope, block, chance)
        return value, np.where(self.prior.free, slope, 0)

    def curvature(self, point: Array, posterior: Array) -> Array:
        """Σ q_i(k)·P(1 − P) of every cell, and the ridge."""
        bend = self.prior.precision + 1e-9
        for block, chance, _ in self._answers(point):
            share = self.weight[block.votes, None] * posterior[self.task[block.votes]]
            self._add(bend, block, chance * (1 - chance) * share[..., None])
        return bend

    def _add(self, total: Array, block: _Block, cells: Array) -> None:
        """Add cells (votes, true, said) to the matrices of the votes' workers and tasks."""
        worker, task = self.split(total)
        flat = cells.reshape(len(cells), -1)
        worker[block.workers] += (block.of_worker @ flat).reshape(-1, *cells.shape[1:])
        if task.shape[1] != cells.shape[1]:
            cells = cells.sum(axis=1, keepdims=True)
        task[block.tasks] += (block.of_task @ cells.reshape(len(cells), -1)).reshape(-1, *cells.shape[1:])


@method_class
class MinimaxEntropy(ClimbingEM):
    """Workers confuse classes in their own ways, and tasks mislead everybody in theirs.

    Model: P(y_ir = l | z_i = k) = softmax_l(T_r[k, l] + S_i[k, l]): the distribution of highest entropy that explains
    how often each worker, and each task, saw k called l; the truth is what leaves that entropy lowest. Both matrices
    are held back by ridges, γK²/2·|T|² and γK²·(tasks per worker)/2·|S|². The dual is solved by EM from the shares of
    votes, with a few steps of L-BFGS on all matrices together in every M-step (they are jointly concave).
    ``task_terms="vector"`` has S_i[l] instead of S_i[k, l], as in the first paper (2012).

    Choose it when every task has many labels and some tasks draw particular wrong answers; ``tasks_`` names them
    (difficulty: how probably an average worker is wrong about it). `DawidSkene` is the same without tasks. Beware of
    many classes with few votes per worker: the papers' ridge grows with K², outweighs the votes, and every answer
    becomes as probable as any other, even a unanimous one (accuracy .64 on LabelMe and .50 on the music genres, where
    majority vote has .77 and .70). There ``gamma`` must be smaller; choose it by how well hidden votes are predicted
    (`Crowd.hide`), as the papers do, who try 2⁻² to 2².

    Zheng et al. (2017) report .841 (product matching), .958 (sentiment) and .576 (relevance); here .841, .958, .577.

    >>> from wisecrowd import MinimaxEntropy, simulate_crowd
    >>> made = simulate_crowd(n_tasks=100, n_workers=20, n_classes=3, votes_per_task=10, random_state=1)
    >>> fitted = MinimaxEntropy().fit(made.crowd)
    >>> float((fitted.labels_ == made.truth).mean()) > 0.9
    True
    >>> fitted.tasks_.columns.tolist()
    ['difficulty', 'n_votes']
    """

    references: ClassVar[tuple[str, ...]] = ("zhou2012learning", "zhou2014aggregating")
    breaks: ClassVar[dict[str, str]] = {
        "unanimity_wins": "a ridge that grows with the square of the classes can outweigh all that few votes say"
    }

    max_iter: int = parameter(default=100, help="EM iterations at most")
    tol: float = parameter(default=1e-6, help="stop when the objective rises by less than this fraction")
    gamma: float = parameter(default=0.25, help="ridge on a worker's matrix, in units of K²")
    task_gamma: float | None = parameter(
        default=None, help="ridge on a task's matrix, in units of K²; gamma x tasks per worker unless given"
    )
    task_terms: Literal["matrix", "vector"] = parameter(
        default="matrix", help="what a task has: 'matrix' (true x said), or 'vector' (said)"
    )

    def _check(self) -> None:
        super()._check()
        one_of("task_terms", self.task_terms, ("matrix", "vector"))
        if not self.gamma > 0 or not (self.task_gamma is None or self.task_gamma > 0):
            raise UsageError(f"gamma and task_gamma must be positive; got {self.gamma} and {self.task_gamma}")

    def _landscape(self, crowd: Crowd, gold: NDArray[np.int32] | None = None) -> _Scores:
        vectors = self.task_terms == "vector"
        k = crowd.n_classes
        cells = crowd.n_workers * k**2 + crowd.n_tasks * (k if vectors else k**2)
        if cells > DENSE_CELLS:
            raise UsageError(
                f"a matrix of {k:,} x {k:,} for each of {crowd.n_workers:,} workers and {crowd.n_tasks:,} tasks would not "
                "fit in memory; " + ("use one-coin" if vectors else "use task_terms='vector', or one-coin")
            )
        busy = np.count_nonzero(crowd.votes_per_worker), np.count_nonzero(crowd.votes_per_task)
        task_gamma = self.gamma * busy[1] / busy[0] if self.task_gamma is None else self.task_gamma
        return _Scores(crowd, gold, (self.gamma * k**2, task_gamma * k**2), vectors=vectors)

    def _first_posterior(self, crowd: Crowd, land: _Scores) -> Array:
        return vote_shares(crowd)

    def _carried_over(self, known: MinimaxEntropy, crowd: Crowd, land: _Scores) -> Array:
        """Matrices of the workers that both fits know."""
        assert known.worker_index_ is not None
        assert crowd.workers is not None
        assert crowd.classes is not None
        point = land.begin()
        worker, _ = land.split(point)
        place = known.worker_index_.get_indexer(crowd.workers)
        column = known.classes_.get_indexer(crowd.classes)
        here, there = np.flatnonzero(place >= 0), np.flatnonzero(column >= 0)
        worker[np.ix_(here, there, there)] = known.worker_scores_[np.ix_(place[here], column[there], column[there])]
        return np.where(land.prior.free, point, 0)

    def _keep(self, crowd: Crowd, land: _Scores, point: Array) -> None:
        worker, task = land.split(point)
        self.worker_scores_ = worker.copy()
        weight = crowd.votes_per_worker / crowd.n_votes
        average = np.einsum("r,rkl->kl", weight, worker)
        difficulty = np.empty(crowd.n_tasks)
        for rows in blocks(crowd.n_tasks, crowd.n_classes**2):
            score = average + task[rows]
            chance = np.exp(score - score.max(axis=2, keepdims=True))
            right = np.einsum("ikk->ik", chance) / chance.sum(axis=2)
            difficulty[rows] = 1 - (self.posterior_[rows] * right).sum(axis=1)
        self.tasks_ = pd.DataFrame(
            {"difficulty": difficulty, "n_votes": crowd.votes.sum(axis=1)}, index=crowd.tasks.rename("task")
        )


def _incidence(code: NDArray[Any]) -> tuple[NDArray[np.intp], Any]:
    """The distinct codes, and a sparse 0/1 matrix (codes, rows) that adds up the rows of each."""
    found, place = np.unique(code, return_inverse=True)
    rows = np.arange(len(code))
    return found.astype(np.intp), sp.csr_array((np.ones(len(code)), (place, rows)), shape=(len(found), len(code)))
