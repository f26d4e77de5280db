"""The family of models in which every worker has a confusion matrix, fitted by EM."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from importlib.util import find_spec
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.checkpoints import open_checkpoint
from wisecrowd.base.fields import CHECKPOINT_HELP, ENGINE_HELP, N_JOBS_HELP, fitted, method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.pairs import Pairs
from wisecrowd.data.types import AnyCrowd, CrowdLike, TruthLike
from wisecrowd.data.vocabulary import locate_ids
from wisecrowd.em import incremental
from wisecrowd.em.initialization import align_posterior, apply_gold, compute_vote_shares, make_class_prior
from wisecrowd.em.loop import EMResult, StateCallback, Statistics, run_em, run_restarts
from wisecrowd.engines import engine_for
from wisecrowd.engines.base import Chunk, Engine, compute_chunk_posterior, tally_chunk
from wisecrowd.errors import DataWarning, InputError, UsageError
from wisecrowd.kernels import COMPILED_MIN_CELLS, Expectation
from wisecrowd.utils import progress

#: Help texts of parameters that members of the family redefine with other defaults.
PRIOR_HELP = "Class prior: 'estimate', 'uniform', or one number per class."
SMOOTHING_HELP = "Number of pseudo-votes in every cell of a worker's confusion matrix."
DIAGONAL_HELP = "Number of further pseudo-votes on the diagonal of a worker's confusion matrix."
N_INIT_HELP = (
    "Number of starts: the first from the votes, the others from random perturbations. The best result is kept."
)
ACCELERATE_HELP = "Extrapolate every third EM step (SQUAREM)."

#: Cells above which a tally is kept in single precision and not extrapolated: such tables dominate the memory of a fit.
LARGE_TABLE_CELLS = 2**25
#: Total variation between the inferred classes and the votes above which a fit counts as collapsed. On 18 public crowds every
#: fit above this value was less accurate than majority vote.
COLLAPSE_DISTANCE = 0.3
#: Mean number of votes per task below which a collapse is possible.
COLLAPSE_MAX_VOTES_PER_TASK = 3
#: Number of tasks below which the distribution of classes is too uncertain to judge.
COLLAPSE_MIN_TASKS = 20


@method_class
class ConfusionEM(Aggregator):
    """Base class of models in which a task has a class and a worker answers by a confusion matrix.

    z_i ~ ρ,  y_ir | z_i = k ~ π_r[k, ·]

    A subclass defines the M-step of the workers (`_label_probs`) and, if it has a prior on π, its logarithm (`_log_prior`).
    This class provides initialisation, E-step, class prior, gold, restarts and the trace.
    """

    streams: ClassVar[bool] = True
    #: Whether EM is exact, so that its objective never falls.
    monotone: ClassVar[bool] = True
    #: Whether the parameters follow from the tally alone although the method replaces a step of EM, so that single votes can
    #: update the model.
    tally_is_sufficient: ClassVar[bool] = False
    #: Whether a fit warns of votes that are too few for the method.
    warns_of_collapse: ClassVar[bool] = True
    #: Whether, given the true class, all labels that a worker never gave are equally probable, except the true class itself.
    #: Sums over the labels of a matrix then cost no more than the labels that were given.
    unused_labels_are_equal: ClassVar[bool] = False

    smoothing: float = parameter(default=0.1, help=SMOOTHING_HELP)
    diagonal: float = parameter(default=1.0, help=DIAGONAL_HELP)
    prior: Literal["estimate", "uniform"] | Any = parameter(default="estimate", help=PRIOR_HELP)
    max_iter: int = parameter(default=500, help="Maximum number of passes over the votes.")
    tol: float = parameter(default=1e-7, help="Relative change of the objective below which EM has converged.")
    accelerate: bool = parameter(default=True, help=ACCELERATE_HELP)
    n_init: int = parameter(default=1, help=N_INIT_HELP)
    random_state: int = parameter(default=0, help="Seed of the random starts.")
    n_jobs: int = parameter(default=1, help=N_JOBS_HELP)
    engine: str = parameter(default="local", help=ENGINE_HELP)
    checkpoint: str | None = parameter(default=None, help=CHECKPOINT_HELP)
    verbose: bool = parameter(default=False, help="Show a progress bar.")

    prior_: NDArray[np.float64] = fitted(help="Class prior.", shape=("n_classes",), finite=True)
    e_step_prior_: NDArray[np.float64] = fitted(
        help="Weights of the columns of the E-step; equal to `prior_` unless the model splits classes, is variational or "
        "averages several models.",
        shape=("n_states",),
        finite=True,
    )
    trace_: NDArray[np.float64] = fitted(help="Objective of every iteration of the best start.", shape=("n_iter",))
    n_iter_: int = fitted(help="Number of iterations of the best start.")
    converged_: bool = fitted(help="Whether the best start converged.")
    restarts_: pd.DataFrame = fitted(help="Objective, number of iterations and convergence of every start.")

    # ------------------------------------------------------------------ hooks: the model

    @abstractmethod
    def _label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        """Estimate P(label of the pair given class), (n_pairs, n_classes), from the tally."""

    def _log_prior(self, tally: NDArray[Any], pairs: Pairs) -> float:
        """Return the log prior density of the workers' parameters that follow from the tally, up to a constant."""
        return 0.0

    def estimate_class_prior(self, class_counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Estimate the class prior ρ from the sum of the posteriors.

        Parameters
        ----------
        class_counts : ndarray of shape (n_classes,)
            Sum of the posteriors by class.

        Returns
        -------
        ndarray of shape (n_classes,)
        """
        return make_class_prior(self.prior, class_counts, getattr(self, "classes_", None))

    def _class_log_prior(self, class_counts: NDArray[np.float64]) -> float:
        """Return the log prior density of the class prior that follows from the counts, up to a constant."""
        return 0.0

    def _check_parameters(self) -> None:
        """Raise an error if a parameter is out of range."""
        if self.max_iter < 1 or self.n_init < 1:
            raise UsageError(f"max_iter and n_init must be 1 or more; got {self.max_iter} and {self.n_init}")
        if self.smoothing < 0 or self.diagonal < 0:
            raise UsageError(f"smoothing and diagonal must not be negative; got {self.smoothing} and {self.diagonal}")

    def _set_hyperparameters(self, crowd: Any) -> None:
        """Set fitted attributes that follow from the crowd before EM starts, such as priors that depend on the data."""

    def _make_engine(self, crowd: AnyCrowd, gold: Any) -> Engine:
        """Return the engine that sums over the votes."""
        # Several starts share the cost of loading the compiled kernels.
        is_large = self.n_init * crowd.n_votes * crowd.n_classes >= COMPILED_MIN_CELLS
        compiled = True if is_large and find_spec("numba") else None
        return engine_for(self.engine, crowd, gold, n_jobs=self.n_jobs, compiled=compiled)

    # ------------------------------------------------------------------ hooks: models with further latent variables

    def _complete_statistics(
        self, expectation: Expectation, label_probs: NDArray[Any], previous: Statistics, pairs: Pairs
    ) -> Statistics:
        """Return the statistics for the next M-step; a model with further latent variables splits the tally by them."""
        return Statistics(expectation.class_counts, expectation.tally)

    def fold_to_classes(self, columns: NDArray[Any]) -> NDArray[Any]:
        """Sum the columns of the E-step by class, along the last axis.

        Parameters
        ----------
        columns : ndarray of shape (..., n_columns)
            Values by column; a model that splits classes into subtypes has several columns per class.

        Returns
        -------
        ndarray of shape (..., n_classes)
        """
        return columns

    @property
    def e_step_tally(self) -> NDArray[Any]:
        """Tally by column of the E-step, from which `predictive_label_probs` follows."""
        return self._check_fitted("tally_")

    def predictive_label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        """Estimate P(label of the pair given class) of some workers after the fit.

        It differs from `_label_probs` if the parameters of workers depend on each other; these dependencies stay as fitted.

        Parameters
        ----------
        tally : ndarray of shape (n_pairs, n_columns)
            Expected counts.
        pairs : Pairs
            Worker and label of every row of the tally.

        Returns
        -------
        ndarray of shape (n_pairs, n_columns)
        """
        return self._label_probs(tally, pairs)

    def e_step_label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        """Estimate the label probabilities that the E-step uses for some workers after the fit.

        They equal `predictive_label_probs`, unless the method averages several models.

        Parameters
        ----------
        tally : ndarray of shape (n_pairs, n_columns)
            Expected counts.
        pairs : Pairs
            Worker and label of every row of the tally.

        Returns
        -------
        ndarray of shape (n_pairs, n_columns)
        """
        return self.predictive_label_probs(tally, pairs)

    def e_step_posterior(
        self,
        compute: Callable[[NDArray[np.float64], NDArray[Any]], NDArray[Any]],
        prior: NDArray[np.float64],
        label_probs: NDArray[Any],
    ) -> NDArray[Any]:
        """Infer classes from the parameters of the E-step.

        Parameters
        ----------
        compute : callable
            Function from the weights of columns and their label probabilities to a posterior over the columns, such as a
            kernel with the votes to infer from.
        prior : ndarray of shape (n_columns,)
            Weights of the columns.
        label_probs : ndarray of shape (n_rows, n_columns)
            Label probabilities.

        Returns
        -------
        ndarray of shape (..., n_classes)
            Posterior over classes.
        """
        return self.fold_to_classes(compute(prior, label_probs))

    # ------------------------------------------------------------------ EM

    def _fit(self, crowd: AnyCrowd, gold: Any, *, X: Any, start: Any) -> None:
        self._check_parameters()
        checked = crowd if self.warns_of_collapse and isinstance(crowd, Crowd) else None
        if checked is not None and checked.votes_per_task.max() < 2 and gold is None:
            warnings.warn(
                f"no task has two votes, so nothing distinguishes the workers, and {type(self).__name__} may put every task "
                "into one class; use model-average, or get a second vote on some tasks",
                DataWarning,
                stacklevel=3,
            )
        self._set_hyperparameters(crowd)
        with progress.show_if(self.verbose), closing(self._make_engine(crowd, gold)) as engine:
            self._run(engine, start)
        if checked is not None and checked.votes_per_task.max() > 1:
            self._warn_if_collapsed(checked)

    def _warn_if_collapsed(self, crowd: Crowd) -> None:
        """Warn if the inferred classes differ from the votes so much that the model has probably collapsed."""
        voted = crowd.votes_per_task > 0
        if voted.sum() < COLLAPSE_MIN_TASKS or crowd.n_votes >= COLLAPSE_MAX_VOTES_PER_TASK * voted.sum():
            return
        inferred = self.posterior_[voted].mean(axis=0)
        votes = compute_vote_shares(crowd)[voted].mean(axis=0)
        if 0.5 * np.abs(inferred - votes).sum() > COLLAPSE_DISTANCE:
            largest = int((inferred - votes).argmax())
            warnings.warn(
                f"{type(self).__name__} gives {inferred[largest]:.0%} of the tasks to the class {self.classes_[largest]!r}, "
                f"which has {votes[largest]:.0%} of the votes; {crowd.n_votes / voted.sum():.1f} votes per task are too few to "
                "estimate confusion matrices. Use model-average, or get more votes",
                DataWarning,
                stacklevel=4,
            )

    def _run(self, engine: Engine, start: Any) -> None:
        """Run EM from all starting points and set the fitted attributes."""
        crowd = engine.crowd
        pairs = crowd.pairs
        is_large = len(pairs) * crowd.n_classes > LARGE_TABLE_CELLS

        def step(statistics: Statistics) -> tuple[Statistics, float]:
            prior, label_probs = self._m_step(statistics, pairs)
            expectation = self._e_step(engine, prior, label_probs)
            log_prior = self._log_prior(statistics.tally, pairs) + self._class_log_prior(statistics.class_counts)
            completed = self._complete_statistics(expectation, label_probs, statistics, pairs)
            return completed, expectation.log_likelihood + log_prior

        def run(first: Statistics, trace: Sequence[float], callback: StateCallback) -> EMResult:
            return run_em(
                step,
                first,
                max_iter=self.max_iter,
                tol=self.tol,
                monotone=self.monotone,
                title=type(self).__name__,
                accelerate=self.accelerate and first.tally.size <= LARGE_TABLE_CELLS,
                trace=trace,
                callback=callback,
            )

        starts = self._initialize(engine, start, np.float32 if is_large else np.float64)
        checkpoint = open_checkpoint(self.checkpoint, self, crowd, engine.gold, start)
        best, restarts = run_restarts(starts, run, tol=self.tol, checkpoint=checkpoint)
        prior, label_probs = self._m_step(best.statistics, pairs)
        self.e_step_prior_, self.prior_ = prior, self.fold_to_classes(prior) / prior.sum()
        self.trace_, self.n_iter_, self.converged_ = np.asarray(best.trace), len(best.trace), best.converged
        self.restarts_ = pd.DataFrame(restarts, columns=["objective", "n_iter", "converged"])
        self._set_fitted_from_engine(
            engine, self._compute_chunk_posterior, prior, label_probs, tally=best.statistics.tally
        )

    def _m_step(self, statistics: Statistics, pairs: Pairs) -> tuple[NDArray[np.float64], NDArray[Any]]:
        """Estimate class prior and label probabilities from the statistics."""
        return self.estimate_class_prior(statistics.class_counts), self._label_probs(statistics.tally, pairs)

    def _e_step(self, engine: Engine, prior: NDArray[np.float64], label_probs: NDArray[Any]) -> Expectation:
        """Compute the statistics of the posteriors that follow from the parameters."""
        return engine.expect(prior, label_probs)

    def _compute_chunk_posterior(
        self, chunk: Chunk, prior: NDArray[np.float64], label_probs: NDArray[Any]
    ) -> NDArray[Any]:
        """Compute the posterior of the tasks of a chunk."""
        return self.e_step_posterior(partial(compute_chunk_posterior, chunk), prior, label_probs)

    # ------------------------------------------------------------------ initialisation

    def _initialize(self, engine: Engine, start: Any, dtype: type) -> Iterator[Statistics]:
        """Yield starting points: from vote shares, from a given posterior, or from the workers of a fitted method."""
        if isinstance(start, Aggregator):
            yield self._carry_over(start, engine.crowd)
            return
        for attempt in range(1 if start is not None else self.n_init):
            yield Statistics(*engine.sum(self._sum_initial_posterior, start, dtype, attempt))

    def _sum_initial_posterior(
        self, chunk: Chunk, start: Any, dtype: type, attempt: int, accumulate_into: tuple[Any, Any] = (0.0, None)
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Compute the statistics of the initial posterior of a chunk."""
        class_counts, tally = accumulate_into
        for block in chunk.blocks():
            posterior = self._initial_posterior(block, start, dtype, attempt)
            class_counts, tally = add_posterior(block, posterior, class_counts, tally)
        return class_counts, tally

    _sum_initial_posterior.accumulates = True  # type: ignore[attr-defined]  # see engines.base

    def _initial_posterior(self, chunk: Chunk, start: Any, dtype: type, attempt: int) -> NDArray[Any]:
        """Return the initial posterior: vote shares (perturbed if ``attempt`` > 0), or the given posterior."""
        crowd = chunk.crowd
        posterior = compute_vote_shares(crowd, dtype) if start is None else align_posterior(start, crowd)
        if attempt:
            if chunk.n_chunks > 1:
                raise UsageError(
                    f"n_init={self.n_init} perturbs the posterior of all tasks together, but this crowd has "
                    f"{chunk.n_chunks:,} chunks; leave n_init at 1, or fit a crowd in memory"
                )
            rng = np.random.default_rng(self.random_state)
            posterior = posterior + 1 / crowd.n_classes
            for _ in range(attempt):  # an attempt continues the random sequence of the previous one
                noise = rng.exponential(size=posterior.shape)
            posterior *= noise
            posterior /= posterior.sum(axis=1, keepdims=True)
        return apply_gold(posterior, chunk.gold)

    def _carry_over(self, source: Aggregator, crowd: AnyCrowd) -> Statistics:
        """Return statistics of another fit for the same workers and labels; new workers have none."""
        if source.worker_index_ is None or crowd.workers is None or crowd.classes is None:
            raise InputError("parameters of workers carry over only between crowds with worker ids")
        pairs, n_source_classes = crowd.pairs, len(source.classes_)
        worker, column = locate_ids(crowd.workers, source.worker_index_), locate_ids(crowd.classes, source.classes_)
        is_shared = (worker[pairs.worker] >= 0) & (column[pairs.label] >= 0)
        key = worker[pairs.worker] * n_source_classes + column[pairs.label]
        source_key = source.pair_worker_.astype(np.int64) * n_source_classes + source.pair_label_
        row = np.where(is_shared, pd.Index(source_key).get_indexer(pd.Index(key)), -1)
        tally = np.zeros((len(pairs), crowd.n_classes))
        shared_cells = np.ix_(row >= 0, column >= 0)
        tally[shared_cells] = source.tally_[np.ix_(row[row >= 0], column[column >= 0])]
        class_counts = np.zeros(crowd.n_classes)
        class_counts[column >= 0] = source.posterior_.sum(axis=0)[column[column >= 0]]
        return Statistics(np.maximum(class_counts, 1e-12), tally)

    # ------------------------------------------------------------------ new votes

    def predict(self, crowd: CrowdLike) -> pd.Series:
        """Return the most probable class of tasks, old or new.

        Parameters
        ----------
        crowd : crowd-like
            Votes on the tasks.

        Returns
        -------
        Series
            Label by task.
        """
        table = self.predict_proba(crowd)
        return pd.Series(self.classes_[table.to_numpy().argmax(axis=1)], index=table.index, name="label")

    def predict_proba(self, crowd: CrowdLike) -> pd.DataFrame:
        """Return the posterior of tasks, old or new.

        Parameters
        ----------
        crowd : crowd-like
            Votes on the tasks. A worker who was not in the fit has the confusion matrix of the whole crowd.

        Returns
        -------
        DataFrame
            Tasks x classes.
        """
        self._check_fitted("posterior_")
        votes = incremental.recode_classes(self.validate_votes(crowd), self.classes_)
        incremental.warn_misspelled_workers(self, votes)
        posterior = incremental.infer_posterior(self, votes)
        return pd.DataFrame(posterior, index=votes.tasks.rename("task"), columns=self.classes_.rename("class"))

    def _predictive_class_shares(self) -> NDArray[np.float64]:
        return np.asarray(self.prior_, dtype=np.float64)

    def _predictive_label_probs(self, votes: Crowd) -> NDArray[np.float64]:
        has_subtypes = self.e_step_tally.shape[1] != len(self.classes_)
        if votes.workers is None or self.worker_index_ is None or has_subtypes:
            return super()._predictive_label_probs(votes)
        return np.asarray(incremental.estimate_crowd_label_probs(self, votes), dtype=np.float64)

    def partial_fit(self, crowd: CrowdLike, *, truth: TruthLike | None = None) -> Self:
        """Update the fit with new votes, at the cost of one pass.

        Only tasks with new votes are inferred again. `converge` continues to the result of ``fit`` on all votes.

        Parameters
        ----------
        crowd : crowd-like
            New votes, on old or new tasks, by old or new workers.
        truth : truth-like, optional
            Known truth of some tasks.

        Returns
        -------
        ConfusionEM
            The method itself.
        """
        self._history = incremental.partial_fit(self, self.validate_votes(crowd), truth)
        return self

    @property
    def history(self) -> incremental.VoteHistory:
        """All votes and gold of the partial fits."""
        if not hasattr(self, "_history"):
            raise UsageError(
                "this fit does not hold its votes, which partial_fit needs (a saved model contains no votes); begin with "
                "partial_fit, or fit all votes with start=this"
            )
        return self._history

    def converge(self) -> Self:
        """Run EM to convergence on all votes of the partial fits, starting from the current posterior.

        Returns
        -------
        ConfusionEM
            The method itself.
        """
        return self.fit(self.history.votes, truth=self.history.truth, start=self.proba_)

    def restart_from(self, crowd: Crowd, posterior: NDArray[Any]) -> None:
        """Re-estimate all parameters from a posterior, in one M-step.

        Parameters
        ----------
        crowd : Crowd
            All votes.
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior of all tasks.
        """
        self.task_index_, self.worker_index_ = crowd.tasks, crowd.workers
        self._set_hyperparameters(crowd)
        self._set_fitted(crowd, posterior)
        self.e_step_prior_ = self.estimate_class_prior(posterior[crowd.votes_per_task > 0].sum(axis=0))
        self.prior_ = self.e_step_prior_ / self.e_step_prior_.sum()

    def reported_label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        """Return P(label of the pair given class) for users; equal to the E-step's unless that is not a probability.

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
        return self._label_probs(tally, pairs)

    def accuracy_pseudo_votes(self, n_classes: int) -> tuple[float, float]:
        """Return the prior of a worker's accuracy as pseudo-votes.

        Parameters
        ----------
        n_classes : int
            Number of classes.

        Returns
        -------
        correct, total : float
            Number of correct pseudo-votes, and of all pseudo-votes.
        """
        return self.smoothing + self.diagonal, n_classes * self.smoothing + self.diagonal


def add_posterior(
    chunk: Chunk, posterior: NDArray[Any], class_counts: NDArray[Any] | float = 0.0, tally: NDArray[Any] | None = None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Add the statistics of a chunk's posterior to class counts and tally.

    Parameters
    ----------
    chunk : Chunk
        Tasks with their votes.
    posterior : ndarray of shape (n_tasks, n_classes)
        Posterior of the tasks.
    class_counts : ndarray of shape (n_classes,), default 0
        Class counts of previous chunks.
    tally : ndarray of shape (n_pairs, n_classes), optional
        Tally of previous chunks; changed in place.

    Returns
    -------
    class_counts : ndarray of shape (n_classes,)
    tally : ndarray of shape (n_pairs, n_classes)

    Examples
    --------
    >>> chunk = Chunk(Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")]))
    >>> class_counts, tally = add_posterior(chunk, np.array([[0.9, 0.1], [0.2, 0.8]]))
    >>> class_counts.round(1).tolist(), tally.tolist()
    ([1.1, 0.9], [[0.9, 0.1], [0.2, 0.8]])
    """
    voted = chunk.crowd.votes_per_task > 0
    counts: NDArray[Any] = class_counts + posterior[voted].sum(axis=0, dtype=np.float64)
    return counts, tally_chunk(chunk, posterior, tally)
