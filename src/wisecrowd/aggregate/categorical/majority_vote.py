"""Majority vote, hard and soft."""

from __future__ import annotations

from contextlib import closing
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.fields import ENGINE_HELP, N_JOBS_HELP, method_class, parameter
from wisecrowd.data.types import AnyCrowd
from wisecrowd.em.initialization import apply_gold, compute_vote_shares
from wisecrowd.engines import engine_for
from wisecrowd.engines.base import Chunk
from wisecrowd.errors import UsageError, check_choice


@method_class
class MajorityVote(Aggregator):
    """The class that most workers chose.

    The posterior is the share of votes, c_ik / Σ_k c_ik; with ``soft=False`` it is 1 for the class with the most votes. A task
    without votes has the uniform distribution.

    Choose it as a baseline, when every task has many votes by equally good workers, or when votes have no worker ids. Methods
    that weigh workers are better as soon as workers differ.

    Examples
    --------
    >>> from wisecrowd import Crowd, MajorityVote
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "ann", "cat")])
    >>> MajorityVote().fit(crowd).proba_.loc["t1"].to_dict()
    {'cat': 0.5, 'dog': 0.5}
    >>> MajorityVote(ties="first").fit(crowd).proba_.loc["t1"].to_dict()
    {'cat': 1.0, 'dog': 0.0}
    """

    references: ClassVar[tuple[str, ...]] = ("sheng2008get",)
    needs_workers: ClassVar[bool] = False
    streams: ClassVar[bool] = True

    soft: bool = parameter(default=True, help="Keep the shares of votes as posterior.")
    ties: Literal["split", "first", "random"] = parameter(
        default="split",
        help="Posterior of a tied task: 'split' shares it between the tied classes, 'first' takes the first of them, "
        "'random' draws one.",
    )
    random_state: int = parameter(default=0, help="Seed of ties='random'.")
    n_jobs: int = parameter(default=1, help=N_JOBS_HELP)
    engine: str = parameter(default="local", help=ENGINE_HELP)

    def _fit(self, crowd: AnyCrowd, gold: Any, *, X: Any, start: Any) -> None:
        check_choice("ties", self.ties, ("split", "first", "random"))
        with closing(engine_for(self.engine, crowd, gold, n_jobs=self.n_jobs)) as engine:
            self._set_fitted_from_engine(engine, self._compute_chunk_posterior)

    def _compute_chunk_posterior(self, chunk: Chunk) -> NDArray[np.float64]:
        """Return the posterior of the tasks of a chunk."""
        if self.ties == "random" and chunk.n_chunks > 1:
            raise UsageError(
                f"ties='random' draws for all tasks together, but this crowd has {chunk.n_chunks:,} chunks; use 'split' or "
                "'first', or fit a crowd in memory"
            )
        posterior = compute_vote_shares(chunk.crowd)
        if not self.soft or self.ties != "split":
            posterior = self._break_ties(posterior, chunk.crowd.votes_per_task > 0)
        return apply_gold(posterior, chunk.gold)

    def _break_ties(self, shares: NDArray[np.float64], voted: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Break ties, and make the posterior hard unless ``soft``."""
        best = shares == shares.max(axis=1, keepdims=True)
        tied = (best.sum(axis=1) > 1) & voted
        if self.ties != "split":
            rng = np.random.default_rng(self.random_state)
            preference = best * (rng.random(shares.shape) + 1 if self.ties == "random" else 1.0)
            best[tied] = False
            best[np.flatnonzero(tied), preference[tied].argmax(axis=1)] = True
        hard = best / best.sum(axis=1, keepdims=True)
        return np.where(tied[:, None], hard, shares) if self.soft else hard
