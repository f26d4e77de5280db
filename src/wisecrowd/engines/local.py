"""The engine for one machine: the crowd in memory, the kernels on one core or several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd import kernels
from wisecrowd.crowd import Crowd


@dataclass(frozen=True)
class LocalEngine:
    """Takes the two sums of the Dawid-Skene family over a crowd in memory.

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t2", "ann", "dog")])
    >>> engine = LocalEngine(crowd)
    >>> engine.tally(np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
    [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    """

    crowd: Crowd
    clamp: NDArray[np.int32] | None = None
    n_jobs: int = 1
    compiled: bool | None = None

    def expect(self, prior: NDArray[Any], said: NDArray[Any]) -> kernels.Expectation:
        """Statistics of the posteriors that follow from parameters, without keeping the posteriors."""
        return kernels.expect(self.crowd.layout, prior, said, self.clamp, n_jobs=self.n_jobs, compiled=self.compiled)

    def posterior(self, prior: NDArray[Any], said: NDArray[Any]) -> NDArray[Any]:
        """The posterior of every task."""
        return kernels.posterior(self.crowd.layout, prior, said, self.clamp, n_jobs=self.n_jobs, compiled=self.compiled)

    def tally(self, posterior: NDArray[Any]) -> NDArray[Any]:
        """The posteriors added up by (worker, label) pair."""
        return kernels.tally(self.crowd.layout, posterior, n_jobs=self.n_jobs, compiled=self.compiled)
