"""Aggregators that say what they want of the votes as work on chunks, so that an engine can do it (see `engines.base`)."""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar

from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.data.types import AnyCrowd
from wisecrowd.engines import base as work
from wisecrowd.engines import engine_for
from wisecrowd.engines.base import Chunk, Engine, Work


def jobs_field() -> int:
    """The parameter ``n_jobs``, for every method that has it.

    >>> from wisecrowd import DawidSkene, MajorityVote
    >>> DawidSkene().n_jobs == MajorityVote().n_jobs == 1
    True
    """
    return field(default=1, metadata={"help": "threads"})


def engine_field() -> str:
    """The parameter ``engine``, for every method that has it.

    >>> from wisecrowd import DawidSkene, MajorityVote
    >>> DawidSkene().engine, MajorityVote().engine
    ('local', 'local')
    """
    return field(
        default="local", metadata={"help": "where sums are taken: 'local', 'ray', or 'ray:ADDRESS' of a cluster"}
    )


def checkpoint_field() -> str | None:
    """The parameter ``checkpoint``, for every method that has it.

    >>> from wisecrowd import GLAD, DawidSkene
    >>> DawidSkene().checkpoint is GLAD().checkpoint is None
    True
    """
    return field(
        default=None, metadata={"help": "file to keep a long fit in: one that was interrupted goes on from it"}
    )


class OnEngine(Aggregator):
    """Runs on a crowd in memory, in shards or on a cluster; has the parameters ``n_jobs`` and ``engine``.

    >>> from wisecrowd import MajorityVote
    >>> issubclass(MajorityVote, OnEngine)
    True
    """

    streams: ClassVar[bool] = True

    n_jobs: int
    engine: str

    def _engine(self, crowd: AnyCrowd, truth: Any) -> Engine:
        """Where the sums are taken."""
        return engine_for(self.engine, crowd, truth, n_jobs=self.n_jobs)

    def _conclude(self, engine: Engine, answer: Work, *shared: Any) -> None:
        """Learn from the posterior that ``answer`` gives of a chunk, which of a crowd in shards is not kept."""
        if isinstance(engine.crowd, ShardedCrowd):
            self._set_fitted_from_engine(engine, engine.total(_count, answer, *shared), answer, *shared)
            return
        posterior = engine.keep(answer, *shared)
        self._set_fitted_from_engine(engine, engine.total(work.tally, posterior), _itself, posterior)


def _count(chunk: Chunk, answer: Work, *shared: Any) -> NDArray[Any]:
    """Work: the tally of the posteriors that other work gives."""
    return work.tally(chunk, answer(chunk, *shared))


def _itself(chunk: Chunk, value: Any) -> Any:  # noqa: ARG001  # one signature for all work
    """Work: what was kept for the chunk."""
    return value
