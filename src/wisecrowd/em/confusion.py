"""Every model in which a worker has a confusion matrix, but for one formula."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing
from importlib.util import find_spec
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.checkpoints import standing_of
from wisecrowd.base.fields import CHECKPOINT_HELP, ENGINE_HELP, N_JOBS_HELP, method_class, parameter
from wisecrowd.base.on_engine import OnEngine
from wisecrowd.data.crowd import Crowd, Pairs
from wisecrowd.data.types import AnyCrowd
from wisecrowd.em import incremental as online
from wisecrowd.em.initialization import apply_gold, class_prior, given_posterior, vote_shares
from wisecrowd.em.loop import Run, Statistics, Watch, best_of, iterate
from wisecrowd.engines import base as work
from wisecrowd.engines import engine_for
from wisecrowd.engines.base import Chunk, Engine
from wisecrowd.errors import DataWarning, InputError, UsageError
from wisecrowd.kernels.reference import COMPILED_FROM, Expectation
from wisecrowd.utils import progress

#: Tables larger than this (in cells) are kept in single precision and not extrapolated: they are what fills memory.
LARGE_TABLE = 2**25
#: How far the classes that are found may be from those of the votes, in total variation, where tasks have fewer votes than
#: this and are more than a handful.
COLLAPSED, COLLAPSE_BELOW, HANDFUL = 0.3, 3, 20


@method_class
class ConfusionEM(OnEngine):
    """Every model in which a task has a class and a worker answers by a confusion matrix.

    z_i ~ ρ,  y_ir | z_i = k ~ π_r[k, ·].  A family member says how π follows from the tally (`_label_probs`) and, when it has
    a prior on π, its logarithm (`_log_prior`); the rest is here: start, E-step, class prior, gold, restarts, trace.

    >>> from wisecrowd import DawidSkene
    >>> issubclass(DawidSkene, ConfusionEM)
    True
    """

    smoothing: float = parameter(default=0.1, help="pseudo-votes in every cell of a worker's confusion matrix")
    diagonal: float = parameter(default=1.0, help="further pseudo-votes for being right")
    prior: Literal["estimate", "uniform"] | Any = parameter(
        default="estimate", help="class prior: 'estimate', 'uniform', or one number per class"
    )
    max_iter: int = parameter(default=500, help="passes over the votes at most")
    tol: float = parameter(default=1e-7, help="stop when the objective rises by less than this fraction")
    accelerate: bool = parameter(default=True, help="extrapolate every third pass (SQUAREM)")
    n_init: int = parameter(default=1, help="starts; the first from the votes, the others perturbed at random")
    random_state: int = parameter(default=0, help="seed of the perturbed starts")
    n_jobs: int = parameter(default=1, help=N_JOBS_HELP)
    engine: str = parameter(default="local", help=ENGINE_HELP)
    checkpoint: str | None = parameter(default=None, help=CHECKPOINT_HELP)
    verbose: bool = parameter(default=False, help="draw a progress bar")

    #: Hard assignments and variational bounds have their own objective; exact EM never lowers this one.
    monotone: ClassVar[bool] = True

    # A family member answers the first question, and the others where its answer differs.

    @abstractmethod
    def _label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        """P(the pair's worker says the pair's label | true class), (pairs, classes): the model's M-step."""

    def _log_prior(self, tally: NDArray[Any], pairs: Pairs) -> float:
        """Logarithm of the prior density of the worker parameters that follow from the tally, up to a constant."""
        return 0.0

    def _class_log_prior(self, classes: NDArray[np.float64]) -> float:
        """Logarithm of the prior density of the class prior that follows from the posteriors, up to a constant."""
        return 0.0

    def _expect(self, engine: Engine, prior: NDArray[np.float64], label_probs: NDArray[Any]) -> Expectation:
        """The E-step: the posteriors that follow from the parameters, added up."""
        return engine.expect(prior, label_probs)

    def _statistics(
        self, found: Expectation, label_probs: NDArray[Any], before: Statistics, pairs: Pairs
    ) -> Statistics:
        """What the next M-step needs of an E-step; a model with latent variables of its own splits the tally by them."""
        return Statistics(found.classes, found.tally)

    def _class_prior(self, classes: NDArray[np.float64]) -> NDArray[np.float64]:
        """ρ: estimated from the posteriors, or as given."""
        return class_prior(self.prior, classes, self.classes_)

    def _fold(self, columns: NDArray[Any]) -> NDArray[Any]:
        """From the columns of the E-step to classes, along the last axis; a model that splits classes adds their parts."""
        return columns

    def _predictive_label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        """As `_label_probs`, after the fit and for some workers only, whom a model that ties workers must not tie anew."""
        return self._label_probs(tally, pairs)

    @property
    def _e_step_tally(self) -> NDArray[Any]:
        """What `_predictive_label_probs` follows from; the tally of classes unless the model splits them."""
        return self._check_fitted("tally_")

    def _engine(self, crowd: AnyCrowd, truth: Any) -> Engine:
        """Where the sums are taken. Several starts share the price of loading the compiled kernels."""
        much = self.n_init * crowd.n_votes * crowd.n_classes >= COMPILED_FROM
        compiled = True if much and find_spec("numba") else None
        return engine_for(self.engine, crowd, truth, n_jobs=self.n_jobs, compiled=compiled)

    def _fit(self, crowd: AnyCrowd, gold: NDArray[np.int32] | None, *, X: Any, start: Any) -> None:
        self._check()
        if isinstance(crowd, Crowd) and crowd.votes_per_task.max() < 2 and gold is None:
            warnings.warn(
                f"no task has two votes, so that nothing tells the workers apart and {type(self).__name__} may put every "
                "task into one class; use majority-vote, or get a second vote on some tasks",
                DataWarning,
                stacklevel=3,
            )
        with progress.shown(self.verbose), closing(self._engine(crowd, gold)) as engine:
            self._run(engine, start)
        if isinstance(crowd, Crowd) and crowd.votes_per_task.max() > 1:
            self._warn_of_collapse(crowd)

    def _warn_of_collapse(self, crowd: Crowd) -> None:
        """Say so when few votes left the model free to find classes that nobody voted for.

        On 18 public crowds, of which random parts were kept, every fit whose classes were further from those of the votes than
        this, in total variation, was right less often than the votes themselves; no fit to a whole crowd with a second vote was.
        """
        voted = crowd.votes_per_task > 0
        if voted.sum() < HANDFUL or crowd.n_votes >= COLLAPSE_BELOW * voted.sum():
            return
        found, label_probs = self.posterior_[voted].mean(axis=0), vote_shares(crowd)[voted].mean(axis=0)
        if 0.5 * np.abs(found - label_probs).sum() > COLLAPSED:
            most = int((found - label_probs).argmax())
            warnings.warn(
                f"{type(self).__name__} gives {found[most]:.0%} of the tasks to the class {self.classes_[most]!r}, for which "
                f"{label_probs[most]:.0%} of the votes are: {crowd.n_votes / voted.sum():.1f} votes for each task are too few to tell "
                "how workers err; use one-coin or majority-vote, or get more votes",
                DataWarning,
                stacklevel=4,
            )

    def _check(self) -> None:
        if self.max_iter < 1 or self.n_init < 1:
            raise UsageError(f"max_iter and n_init must be 1 or more; got {self.max_iter} and {self.n_init}")
        if self.smoothing < 0 or self.diagonal < 0:
            raise UsageError(f"smoothing and diagonal must not be negative; got {self.smoothing} and {self.diagonal}")

    def _run(self, engine: Engine, start: Any) -> None:
        crowd = engine.crowd
        pairs = crowd.pairs
        large = len(pairs) * crowd.n_classes > LARGE_TABLE

        def parameters(statistics: Statistics) -> tuple[NDArray[np.float64], NDArray[Any]]:
            return self._class_prior(statistics.classes), self._label_probs(statistics.tally, pairs)

        def step(statistics: Statistics) -> tuple[Statistics, float]:
            prior, label_probs = parameters(statistics)
            found = self._expect(engine, prior, label_probs)
            penalty = self._log_prior(statistics.tally, pairs) + self._class_log_prior(statistics.classes)
            return self._statistics(found, label_probs, statistics, pairs), found.log_likelihood + penalty

        def go(first: Statistics, before: Sequence[float], watch: Watch) -> Run:
            return iterate(
                step, first, max_iter=self.max_iter, tol=self.tol, monotone=self.monotone, what=type(self).__name__,
                accelerate=self.accelerate and first.tally.size <= LARGE_TABLE, before=before, watch=watch,
            )  # fmt: skip

        starts = self._starts(engine, start, np.float32 if large else np.float64)
        best, restarts = best_of(starts, go, tol=self.tol, standing=standing_of(self, crowd, engine.gold, start))
        prior, label_probs = parameters(best.statistics)
        self.e_step_prior_, self.prior_ = prior, self._fold(prior) / prior.sum()
        self.trace_, self.n_iter_, self.converged_ = np.asarray(best.trace), len(best.trace), best.converged
        self.restarts_ = pd.DataFrame(restarts, columns=["objective", "n_iter", "converged"])
        self._set_fitted_from_engine(engine, best.statistics.tally, self._answer, prior, label_probs)

    def _answer(self, chunk: Chunk, prior: NDArray[np.float64], label_probs: NDArray[Any]) -> NDArray[Any]:
        """Work: the posterior of a chunk's tasks."""
        return self._fold(work.posterior(chunk, prior, label_probs))

    def _starts(self, engine: Engine, start: Any, dtype: type) -> Iterator[Statistics]:
        """Statistics to start from: of the vote shares, of a given posterior, or of what is known of the workers."""
        if isinstance(start, Aggregator):
            yield Statistics(*self._carried_over(start, engine.crowd))
            return
        for attempt in range(1 if start is not None else self.n_init):
            yield Statistics(*engine.total(self._first_sums, start, dtype, attempt))

    def _first_sums(
        self, chunk: Chunk, start: Any, dtype: type, attempt: int, into: tuple[Any, Any] = (0.0, None)
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Work: the posteriors that an attempt starts from, by class, and by pair and class."""
        classes, tally = into
        for block in chunk.blocks():
            posterior = self._start_posterior(block, start, dtype, attempt)
            voted = block.crowd.votes_per_task > 0
            classes = classes + posterior[voted].sum(axis=0, dtype=np.float64)
            tally = work.tally(block, posterior, tally)
        return classes, tally

    _first_sums.accumulates = True  # type: ignore[attr-defined]  # see engines.base

    def _start_posterior(self, chunk: Chunk, start: Any, dtype: type, attempt: int) -> NDArray[Any]:
        """A posterior to start from: the vote shares at first, perturbed in further attempts; or the one that was given."""
        crowd = chunk.crowd
        posterior = vote_shares(crowd, dtype) if start is None else given_posterior(start, crowd)
        if attempt:
            if chunk.of > 1:
                raise UsageError(
                    f"n_init={self.n_init} perturbs the posterior of all tasks together, which are in {chunk.of:,} chunks "
                    "here; leave n_init at 1, or fit a crowd in memory"
                )
            rng = np.random.default_rng(self.random_state)
            posterior = posterior + 1 / crowd.n_classes
            for _ in range(attempt):  # each attempt has the draws after those of the attempt before
                noise = rng.exponential(size=posterior.shape)
            posterior *= noise
            posterior /= posterior.sum(axis=1, keepdims=True)
        return apply_gold(posterior, chunk.gold)

    def _carried_over(self, known: Aggregator, crowd: AnyCrowd) -> tuple[NDArray[np.float64], NDArray[Any]]:
        """The tally that another fit left for the same workers and labels; strangers start without a history."""
        if known.worker_index_ is None or crowd.workers is None or crowd.classes is None:
            raise InputError("worker knowledge carries over only between crowds with worker ids")
        source = pd.MultiIndex.from_arrays(
            [known.worker_index_[known.pair_worker_], known.classes_[known.pair_label_]])  # fmt: skip
        pairs = crowd.pairs
        target = pd.MultiIndex.from_arrays([crowd.workers[pairs.worker], crowd.classes[pairs.label]])
        found = source.get_indexer(target)
        column = known.classes_.get_indexer(crowd.classes)
        tally = np.zeros((len(pairs), crowd.n_classes))
        both = np.ix_(found >= 0, column >= 0)
        tally[both] = known.tally_[np.ix_(found[found >= 0], column[column >= 0])]
        classes = np.zeros(crowd.n_classes)
        classes[column >= 0] = known.posterior_.sum(axis=0)[column[column >= 0]]
        return np.maximum(classes, 1e-12), tally

    # ------------------------------------------------------------------ new votes

    def predict(self, crowd: Any) -> pd.Series:
        """The most probable class of tasks that may be new, by what is known of their workers."""
        table = self.predict_proba(crowd)
        return pd.Series(self.classes_[table.to_numpy().argmax(axis=1)], index=table.index, name="label")

    def predict_proba(self, crowd: Any) -> pd.DataFrame:
        """The posterior of tasks that may be new; a worker never seen before is taken for the average of the crowd."""
        self._check_fitted("posterior_")
        votes = online.in_classes_of(self, self._admit(crowd))
        posterior = online.posterior_of(self, votes)
        return pd.DataFrame(posterior, index=votes.tasks.rename("task"), columns=self.classes_.rename("class"))

    def partial_fit(self, crowd: Any, *, truth: Any = None) -> Self:
        """Take in new votes, on old or new tasks, by old or new workers, at the cost of one pass.

        Only the tasks with new votes are inferred again; `converge` goes on to where ``fit`` on all votes would end.
        """
        self._history = online.partial_fit(self, self._admit(crowd), truth)
        return self

    @property
    def history(self) -> online.History:
        """All votes and gold that partial fits took in."""
        if not hasattr(self, "_history"):
            raise UsageError(
                "new votes join those that came before, and this fit does not hold them (votes are not saved with a "
                "model); begin with partial_fit, or refit on all votes with start=this"
            )
        return self._history

    def converge(self) -> Self:
        """Iterate over all votes that partial fits took in, from what is known now, until nothing changes."""
        return self.fit(self.history.votes, truth=self.history.known_truth, start=self.proba_)

    def restart_from(self, crowd: Crowd, posterior: NDArray[Any]) -> None:
        """Re-estimate everything from a posterior, as one M-step does."""
        self.task_index_, self.worker_index_ = crowd.tasks, crowd.workers
        self._set_fitted(crowd, posterior)
        self.e_step_prior_ = self._class_prior(posterior[crowd.votes_per_task > 0].sum(axis=0))
        self.prior_ = self.e_step_prior_ / self.e_step_prior_.sum()

    def _reported_label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        """Confusion matrices for people: the model's own, unless its E-step uses something that is no probability."""
        return self._label_probs(tally, pairs)

    def _pseudo_votes(self, n_classes: int) -> tuple[float, float]:
        """Pseudo-votes of a worker for being right, and in all, where the model has no class to speak of."""
        return self.smoothing + self.diagonal, n_classes * self.smoothing + self.diagonal
