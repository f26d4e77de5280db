"""Former base class of methods that run on an engine; to be deleted with its last subclass."""

from __future__ import annotations

from typing import Any, ClassVar

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.data.types import AnyCrowd
from wisecrowd.engines import ChunkFunction, Engine, engine_for


class OnEngine(Aggregator):
    """Shell around `Aggregator._set_fitted_from_engine`."""

    streams: ClassVar[bool] = True

    n_jobs: int
    engine: str

    def _engine(self, crowd: AnyCrowd, truth: Any) -> Engine:
        return engine_for(self.engine, crowd, truth, n_jobs=self.n_jobs)

    def _conclude(self, engine: Engine, posterior_function: ChunkFunction, *shared: Any) -> None:
        self._set_fitted_from_engine(engine, posterior_function, *shared)
