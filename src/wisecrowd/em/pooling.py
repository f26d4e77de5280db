"""What learners have in common whose workers' matrices are drawn toward the crowd's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.learner import Learner
from wisecrowd.data.crowd import Pairs
from wisecrowd.em import priors as matrices
from wisecrowd.utils.progress import speaks


class PoolingLearner(Learner):
    """Workers' matrices follow from the tally and from the crowd's matrix, which is worth ``strength_`` votes.

    >>> from wisecrowd import CrowdLayer, Raykar
    >>> issubclass(CrowdLayer, PoolingLearner), issubclass(Raykar, PoolingLearner)
    (True, True)
    """

    if TYPE_CHECKING:  # left by _fit

        @property
        def strength_(self) -> float: ...

        @strength_.setter
        def strength_(self, found: float) -> None: ...

    def save(self, folder: str | Path) -> None:
        """As of any method; of several processes that trained together and have the same, the first writes."""
        if speaks():
            super().save(folder)

    def _prior(self, tally: NDArray[Any], pairs: Pairs, strength: float | None = None) -> matrices.Prior:
        """What matrices are drawn toward; how strongly follows from the tally unless it is said."""
        return matrices.crowd_prior(tally, pairs, strength=strength)

    def _reported_label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        return matrices.shrunk(tally, pairs, *self._prior(self.tally_, self._pairs, self.strength_))

    def _pseudo_votes(self, n_classes: int) -> tuple[float, float]:
        share = self.posterior_.mean(axis=0) @ np.diagonal(self.crowd_confusion_)
        return self.strength_ * float(share), self.strength_
