"""Minimax conditional entropy: worker matrices and task matrices that add up in the exponent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.checkpoints import open_checkpoint
from wisecrowd.base.fields import CHECKPOINT_HELP, fitted, method_class, parameter
from wisecrowd.base.method import MAX_DENSE_CELLS
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.vocabulary import locate_ids
from wisecrowd.em.confusion import PRIOR_HELP
from wisecrowd.em.gradient import Array, GaussianPrior, GradientEM, GradientModel, make_gradient_start
from wisecrowd.em.initialization import compute_vote_shares
from wisecrowd.errors import UsageError, check_choice
from wisecrowd.utils import progress
from wisecrowd.utils.slices import slice_rows


class _VoteBlock(NamedTuple):
    """Consecutive votes, few enough that one matrix per vote fits into memory."""

    votes: slice
    workers: NDArray[np.intp]
    """Distinct workers of the votes."""
    sum_by_worker: Any
    """Sparse 0/1 matrix, workers of the block x votes of the block."""
    tasks: NDArray[np.intp]
    """Distinct tasks of the votes."""
    sum_by_task: Any
    """Sparse 0/1 matrix, tasks of the block x votes of the block."""


class _ScoreModel(GradientModel):
    """P(y_ir = l | z_i = k) ∝ exp(T_r[k, l] + S_i[k, l]), with ridge penalties on T and S.

    A point is all T, then all S. Sums over votes run over blocks, as products with sparse 0/1 matrices.
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
        n_cells = [self.n_worker_cells, int(np.prod(self.task_shape))]
        self.prior = GaussianPrior(np.zeros(sum(n_cells)), np.repeat(np.asarray(ridge), n_cells))
        self.blocks = [self._make_block(votes) for votes in slice_rows(crowd.n_votes, k * k)]

    def _make_block(self, votes: slice) -> _VoteBlock:
        """Return a block of votes."""
        return _VoteBlock(votes, *_make_incidence(self.worker[votes]), *_make_incidence(self.task[votes]))

    def split_point(self, point: Array) -> tuple[Array, Array]:
        """Return T and S of a point.

        Parameters
        ----------
        point : ndarray
            T of all workers, then S of all tasks, flattened.

        Returns
        -------
        worker : ndarray of shape (n_workers, n_classes, n_classes)
            T, a view of the point.
        task : ndarray of shape (n_tasks, n_classes or 1, n_classes)
            S, a view of the point.
        """
        k = self.n_classes
        worker, task = np.split(point, [self.n_worker_cells])
        return worker.reshape(self.n_workers, k, k), task.reshape(self.task_shape)

    def _iterate_blocks(self, point: Array) -> Iterator[tuple[_VoteBlock, Array, Array]]:
        """Yield, by block, probabilities of all labels (votes, true, label), and log-probabilities of the votes (votes, true)."""
        # exp is taken of every matrix instead of every vote; rows may be shifted freely before a softmax.
        worker, task = (part - part.max(axis=2, keepdims=True) for part in self.split_point(point))
        worker_exp, task_exp = np.exp(worker), np.exp(task)
        for block in self.blocks:
            workers, tasks, label = self.worker[block.votes], self.task[block.votes], self.label[block.votes]
            probs = worker_exp[workers] * task_exp[tasks]
            total = probs.sum(axis=2, keepdims=True)
            shift: Any = 0.0
            if not total.all():  # scores are so large that products underflow
                scores = worker[workers] + task[tasks]
                peak = scores.max(axis=2, keepdims=True)
                probs, shift = np.exp(scores - peak), peak[..., 0]
                total = probs.sum(axis=2, keepdims=True)
            probs /= total
            log_total = np.log(total[..., 0]) + shift
            vote_log_probs = worker[workers, :, label] + task[tasks, :, label] - log_total
            yield block, probs, vote_log_probs

    def log_evidence(self, point: Array) -> Array:
        """Return log P(votes of the task given class).

        Parameters
        ----------
        point : ndarray
            T of all workers, then S of all tasks, flattened.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
            Zero for tasks without votes.
        """
        evidence = np.zeros((self.n_tasks, self.n_classes))
        for block, _, vote_log_probs in self._iterate_blocks(point):
            evidence[block.tasks] += block.sum_by_task @ (self.weight[block.votes, None] * vote_log_probs)
        return evidence

    def expected_log_joint(self, point: Array, posterior: Array) -> tuple[float, Array]:
        """Return the objective of the M-step and its gradient: log prior of the point plus expected log-likelihood of the votes.

        The log-probability of the classes is left out, because it does not depend on the point. In the gradient, a cell of
        a worker's or task's matrix is the number of votes with this label minus its expectation under the model.

        Parameters
        ----------
        point : ndarray
            T of all workers, then S of all tasks, flattened.
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior q_i(k) of the E-step, by which votes count for class k.

        Returns
        -------
        value : float
            Objective.
        gradient : ndarray
            Derivative by every coordinate of the point; zero for fixed ones.
        """
        value, gradient = self.log_prior(point), self.prior.gradient(point)
        for block, probs, vote_log_probs in self._iterate_blocks(point):
            # Weight with which each vote counts for each class: (votes, true).
            share = self.weight[block.votes, None] * posterior[self.task[block.votes]]
            value += float(np.sum(share * vote_log_probs))
            # In place, since this is the largest array: probs becomes observed minus expected labels.
            probs *= -share[..., None]
            probs[np.arange(len(probs)), :, self.label[block.votes]] += share
            self._add_cells(gradient, block, probs)
        return value, np.where(self.prior.free, gradient, 0)

    def curvature(self, point: Array, posterior: Array) -> Array:
        """Return the curvature along every coordinate: Σ q_i(k)·P(1 − P) over the votes of its matrix, plus the ridge.

        Parameters
        ----------
        point : ndarray
            T of all workers, then S of all tasks, flattened.
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior q_i(k) of the E-step.

        Returns
        -------
        ndarray
            One positive number per coordinate.
        """
        curvature = self.prior.precision + 1e-9
        for block, probs, _ in self._iterate_blocks(point):
            share = self.weight[block.votes, None] * posterior[self.task[block.votes]]
            self._add_cells(curvature, block, probs * (1 - probs) * share[..., None])
        return curvature

    def _add_cells(self, total: Array, block: _VoteBlock, cells: Array) -> None:
        """Add cells (votes, true, label) to the matrices of the votes' workers and tasks, in place."""
        worker, task = self.split_point(total)
        flat = cells.reshape(len(cells), -1)
        worker[block.workers] += (block.sum_by_worker @ flat).reshape(-1, *cells.shape[1:])
        if task.shape[1] != cells.shape[1]:
            cells = cells.sum(axis=1, keepdims=True)
        task[block.tasks] += (block.sum_by_task @ cells.reshape(len(cells), -1)).reshape(-1, *cells.shape[1:])


@method_class
class MinimaxEntropy(Aggregator):
    """Minimax conditional entropy: workers confuse classes in their own ways, and tasks mislead everybody in theirs.

    Model: P(y_ir = l | z_i = k) = softmax_l(T_r[k, l] + S_i[k, l]), the distribution of highest entropy that matches how
    often each worker, and each task, has label l for class k; the truth minimises that entropy. Both matrices have ridge
    penalties, γK²/2·|T|² and γK²·(tasks per worker)/2·|S|². The dual is solved by generalised EM from the vote shares, with
    a few L-BFGS steps on all matrices together in every M-step (they are jointly concave). ``task_terms="vector"`` has
    S_i[l] instead of S_i[k, l], as in the first paper (2012).

    Choose it when every task has many labels and some tasks attract particular wrong labels; ``tasks_`` has the difficulty
    of each task, the probability that an average worker is wrong. `DawidSkene` is the same model without tasks. With many
    classes and few votes per worker, the papers' ridge grows with K² and outweighs the votes; choose a smaller ``gamma`` by
    the prediction of held-out votes (`Crowd.hide`), as the papers do with values from 2⁻² to 2².

    Examples
    --------
    >>> from wisecrowd import MinimaxEntropy, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=100, n_workers=20, n_classes=3, votes_per_task=10, random_state=1)
    >>> fitted = MinimaxEntropy().fit(simulation.crowd)
    >>> float((fitted.labels_ == simulation.truth).mean()) > 0.9
    True
    >>> fitted.tasks_.columns.tolist()
    ['difficulty', 'n_votes']
    """

    references: ClassVar[tuple[str, ...]] = ("zhou2012learning", "zhou2014aggregating")
    breaks: ClassVar[dict[str, str]] = {
        "unanimity_wins": "a ridge that grows with the square of the number of classes can outweigh few votes"
    }

    prior: Literal["estimate", "uniform"] | Any = parameter(default="uniform", help=PRIOR_HELP)
    max_iter: int = parameter(default=100, help="Maximum number of EM iterations.")
    tol: float = parameter(default=1e-6, help="Relative change of the objective below which EM has converged.")
    m_steps: int = parameter(default=3, help="Number of L-BFGS steps in every M-step.")
    checkpoint: str | None = parameter(default=None, help=CHECKPOINT_HELP)
    verbose: bool = parameter(default=False, help="Show a progress bar.")
    gamma: float = parameter(default=0.25, help="Ridge γ on a worker's matrix, in units of K².")
    task_gamma: float | None = parameter(
        default=None, help="Ridge on a task's matrix, in units of K²; gamma times the tasks per worker if None."
    )
    task_terms: Literal["matrix", "vector"] = parameter(
        default="matrix", help="Parameters of a task: 'matrix' [true, given], or 'vector' [given]."
    )

    prior_: NDArray[np.float64] = fitted(help="Class prior.", shape=("n_classes",), finite=True)
    trace_: NDArray[np.float64] = fitted(help="Objective of every iteration.", shape=("n_iter",))
    n_iter_: int = fitted(help="Number of iterations.")
    converged_: bool = fitted(help="Whether EM converged.")
    worker_scores_: NDArray[np.float64] = fitted(
        help="Matrix T of each worker.", shape=("n_workers", "n_classes", "n_classes"), finite=True
    )
    tasks_: pd.DataFrame = fitted(help="Difficulty and number of votes by task.", shape=("n_tasks", "n_columns"))

    def _fit(self, crowd: Crowd, gold: NDArray[np.int32] | None, *, X: Any, start: Any) -> None:
        check_choice("task_terms", self.task_terms, ("matrix", "vector"))
        if not self.gamma > 0 or not (self.task_gamma is None or self.task_gamma > 0):
            raise UsageError(f"gamma and task_gamma must be positive; got {self.gamma} and {self.task_gamma}")
        em = GradientEM(self.prior, self.max_iter, self.tol, self.m_steps, type(self).__name__)
        with progress.show_if(self.verbose):
            model = self._make_model(crowd, gold)
            checkpoint = open_checkpoint(self.checkpoint, self, crowd, gold, start, chunks=1)

            def make_start() -> Any:
                return make_gradient_start(
                    self,
                    model,
                    crowd,
                    start,
                    first_posterior=lambda: compute_vote_shares(crowd),
                    carry_over=lambda source: _carry_over(source, crowd, model),
                )

            result = em.run(model, make_start, self.classes_, checkpoint)
        self.prior_, self.trace_ = result.class_prior, np.asarray(result.trace)
        self.n_iter_, self.converged_ = len(result.trace), result.converged
        self._set_fitted(crowd, result.posterior)
        worker, task = model.split_point(result.point)
        self.worker_scores_ = worker.copy()
        self.tasks_ = pd.DataFrame(
            {
                "difficulty": _compute_difficulty(crowd, worker, task, result.posterior),
                "n_votes": crowd.vote_counts.sum(axis=1),
            },
            index=crowd.tasks.rename("task"),
        )

    def _make_model(self, crowd: Crowd, gold: NDArray[np.int32] | None = None) -> _ScoreModel:
        """Return the model of the votes."""
        vectors = self.task_terms == "vector"
        k = crowd.n_classes
        n_cells = crowd.n_workers * k**2 + crowd.n_tasks * (k if vectors else k**2)
        if n_cells > MAX_DENSE_CELLS:
            raise UsageError(
                f"a matrix of {k:,} x {k:,} for each of {crowd.n_workers:,} workers and {crowd.n_tasks:,} tasks would not "
                "fit in memory; " + ("use one-coin" if vectors else "use task_terms='vector', or one-coin")
            )
        n_workers, n_tasks = np.count_nonzero(crowd.votes_per_worker), np.count_nonzero(crowd.votes_per_task)
        task_gamma = self.gamma * n_tasks / n_workers if self.task_gamma is None else self.task_gamma
        return _ScoreModel(crowd, gold, (self.gamma * k**2, task_gamma * k**2), vectors=vectors)


def _compute_difficulty(crowd: Crowd, worker: Array, task: Array, posterior: Array) -> Array:
    """Return the probability that an average worker is wrong about each task."""
    average = np.einsum("r,rkl->kl", crowd.votes_per_worker / crowd.n_votes, worker)
    difficulty = np.empty(crowd.n_tasks)
    for rows in slice_rows(crowd.n_tasks, crowd.n_classes**2):
        score = average + task[rows]
        probs = np.exp(score - score.max(axis=2, keepdims=True))
        prob_right = np.einsum("ikk->ik", probs) / probs.sum(axis=2)
        difficulty[rows] = 1 - (posterior[rows] * prob_right).sum(axis=1)
    return difficulty


def _carry_over(source: MinimaxEntropy, crowd: Crowd, model: _ScoreModel) -> Array:
    """Return the initial point with the matrices of the workers that another fit has, by id."""
    if not hasattr(source, "worker_scores_"):
        raise UsageError("the MinimaxEntropy given as start is not fitted yet; call fit first")
    assert source.worker_index_ is not None
    assert crowd.workers is not None
    assert crowd.classes is not None
    point = model.initial_point()
    worker, _ = model.split_point(point)
    position = locate_ids(crowd.workers, source.worker_index_)
    column = locate_ids(crowd.classes, source.classes_)
    workers, classes = np.flatnonzero(position >= 0), np.flatnonzero(column >= 0)
    scores = source.worker_scores_[np.ix_(position[workers], column[classes], column[classes])]
    worker[np.ix_(workers, classes, classes)] = scores
    return np.where(model.prior.free, point, 0)


def _make_incidence(code: NDArray[Any]) -> tuple[NDArray[np.intp], Any]:
    """Return the distinct codes, and a sparse 0/1 matrix (codes, rows) that sums the rows of each code."""
    distinct, inverse = np.unique(code, return_inverse=True)
    coords = inverse, np.arange(len(code))
    matrix = sp.csr_array((np.ones(len(code)), coords), shape=(len(distinct), len(code)))
    return distinct.astype(np.intp), matrix
