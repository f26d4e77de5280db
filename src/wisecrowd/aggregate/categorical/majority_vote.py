"""Majority vote, hard and soft: the yardstick."""

from __future__ import annotations

from contextlib import closing
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.fields import ENGINE_HELP, N_JOBS_HELP, method_class, parameter
from wisecrowd.base.on_engine import OnEngine
from wisecrowd.data.types import AnyCrowd
from wisecrowd.em.initialization import apply_gold, vote_shares
from wisecrowd.engines.base import Chunk
from wisecrowd.errors import UsageError, one_of


@method_class
class MajorityVote(OnEngine):
    """The class that most workers chose.

    The posterior is the share of votes, c_ik / Σ_k c_ik; with ``soft=False`` all of it goes to the most voted class.
    ``ties`` says what a tied task gets: ``"split"`` shares the posterior between the tied classes, ``"first"`` takes
    the first of them, ``"random"`` draws one (seeded). A task nobody labelled gets the uniform distribution.

    Choose it as the yardstick, or when every task has many labels by equally good workers, or when nobody knows who
    said what. Anything that weighs workers beats it as soon as workers differ.

    >>> from wisecrowd import Crowd, MajorityVote
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "ann", "cat")])
    >>> MajorityVote().fit(crowd).proba_.loc["t1"].to_dict()
    {'cat': 0.5, 'dog': 0.5}
    >>> MajorityVote(ties="first").fit(crowd).proba_.loc["t1"].to_dict()
    {'cat': 1.0, 'dog': 0.0}
    """

    references: ClassVar[tuple[str, ...]] = ("sheng2008get",)
    needs_workers: ClassVar[bool] = False

    soft: bool = parameter(default=True, help="keep the shares of votes as posterior")
    ties: Literal["split", "first", "random"] = parameter(
        default="split", help="what a tied task gets: 'split', 'first' or 'random'"
    )
    random_state: int = parameter(default=0, help="seed of ties='random'")

    n_jobs: int = parameter(default=1, help=N_JOBS_HELP)
    engine: str = parameter(default="local", help=ENGINE_HELP)

    def _fit(self, crowd: AnyCrowd, gold: Any, *, X: Any, start: Any) -> None:
        one_of("ties", self.ties, ("split", "first", "random"))
        with closing(self._engine(crowd, gold)) as engine:
            self._conclude(engine, self._answer)

    def _answer(self, chunk: Chunk) -> NDArray[np.float64]:
        """Work: the posterior of a chunk's tasks."""
        if self.ties == "random" and chunk.of > 1:
            raise UsageError(
                f"ties='random' draws for all tasks together, which are in {chunk.of:,} chunks here; use 'split' or 'first', "
                "or fit a crowd in memory"
            )
        posterior = vote_shares(chunk.crowd)
        if not self.soft or self.ties != "split":
            posterior = self._decide(posterior, chunk.crowd.votes_per_task > 0)
        return apply_gold(posterior, chunk.gold)

    def _decide(self, shares: NDArray[np.float64], voted: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Break the ties, and make the answer hard where that is asked for."""
        best = shares == shares.max(axis=1, keepdims=True)
        tied = (best.sum(axis=1) > 1) & voted
        if self.ties != "split":
            rng = np.random.default_rng(self.random_state)
            preference = best * (rng.random(shares.shape) + 1 if self.ties == "random" else 1.0)
            best[tied] = np.eye(shares.shape[1], dtype=bool)[preference[tied].argmax(axis=1)]
        hard = best / best.sum(axis=1, keepdims=True)
        return np.where(tied[:, None], hard, shares) if self.soft else hard
