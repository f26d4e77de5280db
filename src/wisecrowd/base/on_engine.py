"""Aggregators that say what they want of the votes as work on chunks, so that an engine can do it (see `engines.base`)."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.data.types import AnyCrowd
from wisecrowd.engines import base as work
from wisecrowd.engines import engine_for
from wisecrowd.engines.base import Chunk, Engine, Work


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
