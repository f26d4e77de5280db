"""Fast Dawid-Skene: hard decisions in place of posteriors, so that a handful of passes is enough."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from wisecrowd.aggregate.categorical.dawid_skene import DawidSkene
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.em.loop import Statistics
from wisecrowd.engines import base as work
from wisecrowd.engines.base import Chunk, Engine
from wisecrowd.errors import one_of
from wisecrowd.kernels.reference import LEAST, Expectation

#: Hybrid: soft passes end when they move the class prior by no more than this in all (Sinha et al. 2018).
SOFT_UNTIL = 0.005
#: Posteriors that differ by less than this part are tied: the order of a product must not break a tie.
TIED = 1e-9


@method_class
class FastDS(DawidSkene):
    """Dawid and Skene's model with hard decisions in between: every pass gives each task to its most probable class.

    Model and M-step are those of `DawidSkene`; the E-step is

        q_i(k) = [k = argmax_k ρ_k Π_r π_r[k, y_ir]]

    so that the iteration climbs Σ_i max_k log ρ_k Π_r π_r[k, y_ir] (`trace_`) and ends when no decision changes, after 4 to
    20 passes as a rule. ``hybrid=True`` begins with soft passes until the class prior moves by less than 0.005 and
    then decides. Ties are split between the tied classes; ``ties="first"`` takes the first of them, as the authors' code
    does when it does not draw one. At the end, one soft pass gives posteriors that are probabilities again.

    Choose it to compare with published figures, or when passes are what costs. Hard decisions forget what was doubtful, so
    that it ends in a worse likelihood than `DawidSkene`, which is as fast here: its passes are accelerated, and cost less
    because nothing is written down between them.

    >>> from wisecrowd import FastDS
    >>> from wisecrowd.simulate import simulate_crowd
    >>> made = simulate_crowd(n_tasks=300, n_workers=20, n_classes=3, votes_per_task=5, random_state=1)
    >>> fitted = FastDS().fit(made.crowd)
    >>> float((fitted.labels_ == made.truth).mean()) > 0.8, fitted.n_iter_ < 10
    (True, True)
    """

    references: ClassVar[tuple[str, ...]] = ("sinha2018fast",)

    hybrid: bool = parameter(default=False, help="begin with soft passes")
    ties: Literal["split", "first"] = parameter(default="split", help="who gets a tied task: 'split' or 'first'")
    accelerate: bool = parameter(default=False, help="extrapolate every third pass (SQUAREM)")

    def _check(self) -> None:
        super()._check()
        one_of("ties", self.ties, ("split", "first"))

    def _decide(self, posterior: NDArray[Any]) -> NDArray[Any]:
        if self.ties == "first":
            return np.eye(posterior.shape[1], dtype=posterior.dtype)[posterior.argmax(axis=1)]
        highest = reduce(np.maximum, posterior.T) * (1 - TIED)  # class by class: rows are too short for max(axis=1)
        decided = (posterior >= highest[:, None]).astype(posterior.dtype)
        winners = reduce(np.add, decided.T)
        tied = np.flatnonzero(winners > 1)
        decided[tied] /= winners[tied, None]
        return decided

    def _expect(self, engine: Engine, prior: NDArray[np.float64], label_probs: NDArray[Any]) -> Expectation:
        classes, tally = engine.total(self._decided, prior, label_probs)
        # The joint logarithm of the decided classes; a tied class has the same as the others.
        chosen = xlogy(classes, np.maximum(prior, LEAST)).sum() + xlogy(tally, np.maximum(label_probs, LEAST)).sum()
        return Expectation(float(chosen), classes, tally, None)

    def _decided(
        self, chunk: Chunk, prior: NDArray[np.float64], label_probs: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Work: decisions on a chunk's tasks, by class, and by pair and class."""
        decided = self._decide(work.posterior(chunk, prior, label_probs))
        voted = chunk.crowd.votes_per_task[:, None] > 0
        return decided.sum(axis=0, where=voted, dtype=np.float64), work.tally(chunk, decided)

    def _start_posterior(self, chunk: Chunk, start: Any, dtype: type, attempt: int) -> NDArray[Any]:
        posterior = super()._start_posterior(chunk, start, dtype, attempt)
        return posterior if self.hybrid else self._decide(posterior)

    def _starts(self, engine: Engine, start: Any, dtype: type) -> Iterator[Statistics]:
        for here in super()._starts(engine, start, dtype):
            yield self._soften(engine, here) if self.hybrid else here

    def _soften(self, engine: Engine, here: Statistics) -> Statistics:
        """Soft passes, until they hardly move the class prior."""
        for _ in range(self.max_iter):
            found = engine.expect(self._class_prior(here.classes), self._label_probs(here.tally, engine.crowd.pairs))
            moved = np.abs(found.classes / found.classes.sum() - here.classes / here.classes.sum()).sum()
            here = Statistics(found.classes, found.tally)
            if moved <= SOFT_UNTIL:
                break
        return here
