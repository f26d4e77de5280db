"""Sums over classes that are split into subtypes: where the columns of the E-step are (class, subtype)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.layout import Layout
from wisecrowd.em.priors import blocks
from wisecrowd.engines.local import LocalEngine
from wisecrowd.kernels import reference as kernels
from wisecrowd.kernels.reference import Expectation

#: A column whose weight is less than this part of the largest is left out: it would take evidence of e**92 to revive it.
FAINT = 1e-40


class SubtypeEngine(LocalEngine):
    """Takes the sums of a model in which every class has ``n_subtypes`` columns, most of which end up empty.

    Empty columns are left out of a pass, which makes it several times faster. Gold is a vote of somebody who cannot
    err: it rules out all columns of the other classes and leaves the subtype open.

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    >>> engine = SubtypeEngine(crowd, gold=np.array([1]), n_subtypes=2)
    >>> engine.expect(np.full(4, 0.25), np.full((2, 4), 0.5)).classes.round(3).tolist()
    [0.0, 0.0, 0.5, 0.5]
    """

    def __init__(
        self, crowd: Crowd, gold: NDArray[np.int32] | None = None, n_jobs: int = 1, compiled: bool | None = None, *,
        n_subtypes: int = 1,
    ) -> None:  # fmt: skip
        super().__init__(crowd, gold, n_jobs, compiled)
        self.n_jobs, self.compiled, self.n_subtypes = n_jobs, compiled, n_subtypes

    @cached_property
    def layout(self) -> Layout:
        """The votes, and after those of each task its gold."""
        votes = self.crowd.layout
        if self.gold is None:
            return votes
        known = np.flatnonzero((self.gold >= 0) & votes.voted)
        offset = votes.offset.copy()
        offset[1:] += np.cumsum(np.bincount(known, minlength=votes.n_tasks))
        after = votes.offset[known + 1]
        pair = np.insert(votes.pair, after, votes.n_pairs + self.gold[known])
        weight = None if votes.weight is None else np.insert(votes.weight, after, 1.0)
        return Layout(offset, pair, weight, votes.n_pairs + self.crowd.n_classes)

    def expect(self, prior: NDArray[Any], label_probs: NDArray[Any]) -> Expectation:
        """Statistics of the posteriors of all columns; those that were left out have none."""
        alive, weights, table = self._alive(prior, label_probs)
        found = kernels.expect(self.layout, weights, table, n_jobs=self.n_jobs, compiled=self.compiled)
        classes, tally = np.zeros(len(prior)), np.zeros(label_probs.shape, dtype=label_probs.dtype)
        classes[alive] = found.classes[: len(alive)]
        tally[:, alive] = found.tally[: len(label_probs), : len(alive)]
        return Expectation(found.log_likelihood, classes, tally, None)

    def posterior(self, prior: NDArray[Any], label_probs: NDArray[Any]) -> NDArray[Any]:
        """The posterior of every task's class: subtypes are added up a block of tasks at a time."""
        n_tasks, n_classes = self.crowd.n_tasks, self.crowd.n_classes
        alive, weights, table = self._alive(prior, label_probs)
        into = np.zeros((len(weights), n_classes), dtype=label_probs.dtype)
        into[np.arange(len(alive)), alive // self.n_subtypes] = 1
        result = np.empty((n_tasks, n_classes), dtype=label_probs.dtype)
        for some in blocks(n_tasks, len(weights)):
            votes = self.layout.block(some.start, min(some.stop, n_tasks))
            result[some] = kernels.posterior(votes, weights, table, n_jobs=self.n_jobs, compiled=self.compiled) @ into
        if self.gold is not None:
            known = np.flatnonzero(self.gold >= 0)
            result[known] = np.eye(n_classes)[self.gold[known]]
        return result

    def _alive(
        self, prior: NDArray[Any], label_probs: NDArray[Any]
    ) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[Any]]:
        """Which columns take part, and both tables of them, with rows for gold."""
        alive = np.flatnonzero(prior > FAINT * prior.max())
        width = self._width(len(alive))
        weights, table = np.zeros(width), np.zeros((self.layout.n_pairs, width), dtype=label_probs.dtype)
        weights[: len(alive)] = prior[alive]
        table[: len(label_probs), : len(alive)] = label_probs[:, alive]
        if self.gold is not None:
            own = alive // self.n_subtypes
            table[len(label_probs) + own, np.arange(len(alive))] = 1
        return alive, weights, table

    def _width(self, n_alive: int) -> int:
        """Columns to work on; the compiled kernels come in so many widths that filling up to a few of them pays."""
        if not self.compiled:
            return n_alive
        return next((width for width in (4, 8) if n_alive <= width), max(n_alive, kernels.REGISTERS + 1))
