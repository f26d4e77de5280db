"""Enhanced Bayesian classifier combination: subtypes of classes, on which workers err together."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from wisecrowd import kernels
from wisecrowd.aggregate.categorical._subtype_engine import SubtypeEngine
from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.pairs import Pairs
from wisecrowd.data.types import AnyCrowd
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.em.dirichlet import DirichletRows, compute_divergence, compute_geometric_mean
from wisecrowd.em.incremental import estimate_crowd_label_probs
from wisecrowd.em.initialization import compute_vote_shares
from wisecrowd.em.loop import Statistics
from wisecrowd.engines.base import Chunk, Engine
from wisecrowd.errors import UsageError
from wisecrowd.utils.slices import slice_rows

#: Smallest prior parameter of a class, so that a class without votes has a proper Dirichlet prior.
MIN_CLASS_VOTES = 1e-3


@method_class
class EBCC(ConfusionEM):
    """Bayesian classifier combination with subtypes of classes, on which the errors of workers are correlated.

    Model: τ ~ Dir(α), z_i ~ τ; within class k, a task has subtype m with probability π_k[m], π_k ~ Dir(a / M, …); worker r
    then gives label l with probability v_r[k, m, l], v_r[k, m, ·] ~ Dir(β_k). Given the class, the labels of two workers
    depend on each other through the subtype. Mean field over (z, m) jointly,

        q_i(k, m) ∝ exp( E log τ_k + E log π_k[m] + Σ_r E log v_r[k, m, y_ir] )

    maximises the evidence lower bound (`trace_`). As in the paper's experiments, M = 10, a = 0.1, β_kk = 4 and 1 elsewhere,
    α is the sum of the vote shares of each class, subtypes start at random, and the best bound of 40 starts is kept. Most
    subtypes become empty after a few passes and then cost nothing.

    Choose it when tasks of one class differ and workers err on the same ones, and every task has several labels. It takes
    hundreds of times as long as `IBCC`, which it equals with ``n_subtypes=1`` except for α. On some crowds the result
    depends on the random starts.

    Examples
    --------
    >>> from wisecrowd import EBCC
    >>> from wisecrowd.simulate import simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=15, n_classes=2, votes_per_task=5, random_state=1)
    >>> fitted = EBCC(n_init=5).fit(simulation.crowd)
    >>> float((fitted.labels_ == simulation.truth).mean()) > 0.9
    True
    >>> len(fitted.restarts_)
    5
    """

    references: ClassVar[tuple[str, ...]] = ("li2019exploiting",)
    unused_labels_are_equal: ClassVar[bool] = True
    breaks: ClassVar[dict[str, str]] = {
        "task_names_do_not_matter": "subtypes start at random, task by task: other names, another draw and another optimum",
        "class_names_do_not_matter": "subtypes start at random, class by class: other names, another draw",
    }
    streams: ClassVar[bool] = False

    n_subtypes: int = parameter(default=10, help="Maximum number M of subtypes of each class.")
    concentration: float = parameter(
        default=0.1, help="Prior parameter a of the subtypes; a smaller value concentrates tasks on fewer subtypes."
    )
    smoothing: float = parameter(
        default=1.0, help="Prior parameter β off the diagonal, in pseudo-votes per wrong label."
    )
    diagonal: float = parameter(default=3.0, help="Difference between β on and off the diagonal.")
    class_votes: float | None = parameter(
        default=None, help="Prior parameter α, in pseudo-tasks per class; the sums of the vote shares if None."
    )
    n_init: int = parameter(default=40, help="Number of starts with random subtypes.")

    class_votes_: NDArray[np.float64] = fitted(
        help="Prior parameter α of each class.", shape=("n_classes",), finite=True
    )
    subtype_tally_: NDArray[Any] = fitted(
        help="Tally by subtype.", shape=("n_pairs", "n_classes * n_subtypes"), finite=True
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_subtypes < 1:
            raise UsageError(f"n_subtypes must be 1 or more; got {self.n_subtypes}")
        positive = {"concentration": self.concentration, "smoothing": self.smoothing, "class_votes": self.class_votes}
        for name, value in positive.items():
            if value is not None and not value > 0:
                raise UsageError(
                    f"{name} must be positive, since it is a parameter of a Dirichlet distribution; got {value}"
                )

    def _set_hyperparameters(self, crowd: Crowd) -> None:
        if self.class_votes is not None:
            self.class_votes_ = np.full(crowd.n_classes, float(self.class_votes))
        else:
            shares = compute_vote_shares(crowd)[crowd.votes_per_task > 0]
            self.class_votes_ = np.maximum(shares.sum(axis=0), MIN_CLASS_VOTES)

    # ------------------------------------------------------------------ the model

    @property
    def _estimates_prior(self) -> bool:
        return isinstance(self.prior, str) and self.prior == "estimate"

    def _make_rows(self, columns: NDArray[np.intp], n_classes: int) -> DirichletRows:
        """Return the priors of some columns."""
        return DirichletRows(columns // self.n_subtypes, n_classes, self.smoothing, self.diagonal)

    def fold_to_classes(self, columns: NDArray[Any]) -> NDArray[Any]:
        """Sum the subtypes of each class, along the last axis.

        Parameters
        ----------
        columns : ndarray of shape (..., n_classes * n_subtypes) or (..., n_classes)
            Values by subtype; values by class are returned as they are.

        Returns
        -------
        ndarray of shape (..., n_classes)
        """
        n_classes = len(self.classes_)
        if columns.shape[-1] == n_classes:
            return columns
        return columns.reshape(*columns.shape[:-1], n_classes, self.n_subtypes).sum(axis=-1)

    def estimate_class_prior(self, class_counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return exp E log of the weights of all columns.

        Parameters
        ----------
        class_counts : ndarray of shape (n_classes * n_subtypes,)
            Sum of the posteriors by subtype.

        Returns
        -------
        ndarray of shape (n_classes * n_subtypes,)
        """
        counts = class_counts.reshape(-1, self.n_subtypes)
        within = compute_geometric_mean(counts + self.concentration / self.n_subtypes)
        if self._estimates_prior:
            between = compute_geometric_mean(counts.sum(axis=1) + self.class_votes_)
        else:
            between = super().estimate_class_prior(counts.sum(axis=1))
        return (between[:, None] * within).ravel()

    def _class_log_prior(self, class_counts: NDArray[np.float64]) -> float:
        counts = class_counts.reshape(-1, self.n_subtypes)
        within = compute_divergence(np.full(self.n_subtypes, self.concentration / self.n_subtypes), counts)
        return -within - compute_divergence(self.class_votes_, counts.sum(axis=1)) if self._estimates_prior else -within

    def _label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        n_classes, used = tally.shape[1] // self.n_subtypes, np.flatnonzero(tally.any(axis=0))
        # Empty subtypes have the prior: one value on the diagonal, another off it.
        votes = np.array([self.smoothing + self.diagonal, self.smoothing])
        right, wrong = np.exp(digamma(votes) - digamma(n_classes * self.smoothing + self.diagonal)).astype(tally.dtype)
        label_probs = np.where(pairs.label[:, None] == np.arange(tally.shape[1]) // self.n_subtypes, right, wrong)
        label_probs[:, used] = self._make_rows(used, n_classes).geometric_mean(tally[:, used], pairs)
        return label_probs

    def _log_prior(self, tally: NDArray[Any], pairs: Pairs) -> float:
        used = np.flatnonzero(tally.any(axis=0))
        return -self._make_rows(used, tally.shape[1] // self.n_subtypes).divergence(tally[:, used], pairs)

    def reported_label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        """Return the posterior mean of P(label of the pair given class), over all subtypes of a class together.

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
        n_classes = tally.shape[1]
        return DirichletRows(np.arange(n_classes), n_classes, self.smoothing, self.diagonal).mean(tally, pairs)

    # ------------------------------------------------------------------ EM

    def _make_engine(self, crowd: Crowd, gold: NDArray[np.int32] | None) -> SubtypeEngine:  # type: ignore[override]
        n_cells = self.n_init * self.n_subtypes * crowd.n_votes * crowd.n_classes
        compiled = True if n_cells >= kernels.COMPILED_MIN_CELLS and find_spec("numba") else None
        return SubtypeEngine(crowd, gold, self.n_jobs, compiled, n_subtypes=self.n_subtypes)

    def _compute_chunk_posterior(
        self, chunk: Chunk, prior: NDArray[np.float64], label_probs: NDArray[Any]
    ) -> NDArray[Any]:
        engine = SubtypeEngine(chunk.crowd, chunk.gold, chunk.n_jobs, chunk.compiled, n_subtypes=self.n_subtypes)
        return engine.compute_posterior(prior, label_probs)

    def _initialize(self, engine: Engine, start: Any, dtype: type) -> Iterator[Statistics]:
        rng, crowd = np.random.default_rng(self.random_state), engine.crowd
        assert isinstance(crowd, Crowd)
        if isinstance(start, Aggregator):
            class_counts, tally = self._carry_over(start, crowd)
            for _ in range(self.n_init):
                yield Statistics(self._split_randomly(class_counts, rng), self._split_randomly(tally, rng))
            return
        shares = next(engine.map(self._initial_posterior, start, dtype, 0))
        for _ in range(self.n_init):
            yield self._draw_start(crowd, shares, rng)

    def _draw_start(self, crowd: Crowd, shares: NDArray[Any], rng: np.random.Generator) -> Statistics:
        """Return the statistics of an initial posterior that is split between subtypes at random."""
        n_columns = crowd.n_classes * self.n_subtypes
        class_counts, tally = np.zeros(n_columns), np.zeros((len(crowd.pairs), n_columns), dtype=shares.dtype)
        for tasks in slice_rows(crowd.n_tasks, n_columns):
            columns = self._split_randomly(shares[tasks], rng)
            votes = crowd.layout.slice_tasks(tasks.start, min(tasks.stop, crowd.n_tasks))
            class_counts += columns.sum(axis=0, where=votes.has_votes[:, None])
            tally += kernels.tally(votes, columns)
        return Statistics(class_counts, tally)

    def _split_randomly(self, shares: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """Return values by class split into subtypes, uniformly at random, along the last axis."""
        parts = rng.exponential(size=(*shares.shape, self.n_subtypes))
        parts *= (shares / parts.sum(axis=-1))[..., None]
        return parts.reshape(*shares.shape[:-1], -1).astype(shares.dtype, copy=False)

    def _set_fitted(self, crowd: AnyCrowd, posterior: NDArray[Any] | None, tally: NDArray[Any] | None = None) -> None:
        assert tally is not None
        self.subtype_tally_ = tally
        super()._set_fitted(crowd, posterior, self.fold_to_classes(tally))

    @property
    def e_step_tally(self) -> NDArray[Any]:
        """Tally by subtype."""
        return self._check_fitted("subtype_tally_")

    def restart_from(self, crowd: Crowd, posterior: NDArray[Any]) -> None:
        """Re-estimate all parameters from a posterior, in one M-step; subtypes are inferred with the previous parameters.

        Parameters
        ----------
        crowd : Crowd
            All votes.
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior of all tasks.
        """
        columns = kernels.posterior(crowd.layout, self.e_step_prior_, estimate_crowd_label_probs(self, crowd))
        shares = self.fold_to_classes(columns)
        within = np.divide(posterior, shares, out=np.zeros_like(shares), where=shares > 0)
        columns *= np.repeat(within, self.n_subtypes, axis=1)
        self.task_index_, self.worker_index_ = crowd.tasks, crowd.workers
        self._set_hyperparameters(crowd)
        self._set_fitted(crowd, posterior, kernels.tally(crowd.layout, columns))
        self.e_step_prior_ = self.estimate_class_prior(columns[crowd.votes_per_task > 0].sum(axis=0))
        self.prior_ = self.fold_to_classes(self.e_step_prior_) / self.e_step_prior_.sum()
