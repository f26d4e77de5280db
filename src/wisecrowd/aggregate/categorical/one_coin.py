"""The one-coin model: one accuracy per worker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical._spectral_initialization import (
    INIT_HELP,
    compute_spectral_statistics,
    uses_spectral_start,
)
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.pairs import Pairs
from wisecrowd.em.confusion import PRIOR_HELP, ConfusionEM
from wisecrowd.em.loop import Statistics
from wisecrowd.em.priors import compute_beta_log_density, estimate_accuracy, spread_errors
from wisecrowd.engines.base import Engine


@method_class
class OneCoin(ConfusionEM):
    """One-coin model with one accuracy per worker and errors uniform over the other classes, fitted by EM.

    Model: y_ir = z_i with probability a_r, otherwise any other class with equal probability. With S = smoothing + diagonal
    pseudo-votes for right and (K − 1)·smoothing for wrong labels (a Beta prior):

        M:  a_r = (Σ_i q_i(y_ir) + S) / (n_r + S + (K − 1)·smoothing)

    Choose it when workers have few labels each or classes are many; use `DawidSkene` when workers confuse particular classes or
    prefer some of them. The class prior is uniform by default: an estimated prior can dominate the posterior where classes are
    unequal and workers biased.

    Examples
    --------
    >>> from wisecrowd import Crowd, OneCoin
    >>> crowd = Crowd.from_triples([(task, worker, (task + (worker == "bad")) % 2) for task in range(8) for worker in
    ...                             ("ann", "bob", "bad")])
    >>> OneCoin().fit(crowd).workers_["accuracy"].round(2).to_dict()
    {'ann': 0.99, 'bad': 0.12, 'bob': 0.99}
    """

    references: ClassVar[tuple[str, ...]] = ("li2014error", "demartini2012zencrowd")
    unused_labels_are_equal: ClassVar[bool] = True

    prior: Literal["estimate", "uniform"] | Any = parameter(default="uniform", help=PRIOR_HELP)
    init: Literal["votes", "spectral"] = parameter(default="votes", help=INIT_HELP)

    def _estimate_accuracy(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[np.float64]:
        """Return the accuracy of every worker."""
        return estimate_accuracy(tally, pairs, *self.accuracy_pseudo_votes(tally.shape[1]))

    def _label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        return spread_errors(self._estimate_accuracy(tally, pairs).astype(tally.dtype), pairs, tally.shape[1])

    def _log_prior(self, tally: NDArray[Any], pairs: Pairs) -> float:
        accuracy = self._estimate_accuracy(tally, pairs)
        return compute_beta_log_density(accuracy, *self.accuracy_pseudo_votes(tally.shape[1]))

    def _initialize(self, engine: Engine, start: Any, dtype: type) -> Iterator[Statistics]:
        if uses_spectral_start(self.init, start):
            yield compute_spectral_statistics(engine, dtype, self.random_state, "one-coin")
        else:
            yield from super()._initialize(engine, start, dtype)
