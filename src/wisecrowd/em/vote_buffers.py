"""What votes that come one after the other are held in: some tasks' votes in a row, and tables that grow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Cast:
    """Votes on some tasks, one after the other."""

    count: NDArray[np.int64]
    place: NDArray[np.int64]
    worker: NDArray[np.int64]
    label: NDArray[np.int64]

    @classmethod
    def of(cls, votes: Iterable[Mapping[int, int]]) -> Cast:
        """Worker -> label for each task, in order."""
        each = list(votes)
        count = np.array([len(cast) for cast in each], dtype=np.int64)
        worker = np.array([who for cast in each for who in cast], dtype=np.int64)
        label = np.array([label_probs for cast in each for label_probs in cast.values()], dtype=np.int64)
        return cls(count, np.repeat(np.arange(len(each)), count), worker, label)

    def posterior(self, prior: NDArray[np.float64], label_probs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of each task, where ``label_probs`` has P(what was said | true class) of each vote: ρ_k Π P, normalised.

        As `wisecrowd.kernels.reference.posterior` has it, which is made for many tasks and takes its time to begin.
        """
        with np.errstate(divide="ignore"):  # what is impossible has the logarithm −∞
            evidence = np.repeat(np.log(prior)[None], len(self.count), axis=0)
            np.add.at(evidence, self.place, np.log(label_probs))
        evidence -= evidence.max(axis=1, keepdims=True)
        np.exp(evidence, out=evidence)
        return np.asarray(evidence / evidence.sum(axis=1, keepdims=True))


class Growing:
    """A table to which rows are added, with room for more, so that most additions move nothing."""

    def __init__(self, rows: NDArray[Any]) -> None:
        self._held, self._n = np.array(rows), len(rows)

    @property
    def rows(self) -> NDArray[Any]:
        """What there is; it can be written to."""
        return self._held[: self._n]

    def append(self, rows: NDArray[Any]) -> None:
        """Add rows at the end."""
        need = self._n + len(rows)
        if need > len(self._held):
            held = np.zeros((max(need, 2 * len(self._held), 64), self._held.shape[1]), dtype=self._held.dtype)
            held[: self._n] = self.rows
            self._held = held
        self._held[self._n : need] = rows
        self._n = need

    def wider(self, more: int) -> Growing:
        """The same with further columns of zeros."""
        return Growing(np.pad(self.rows, ((0, 0), (0, more))))
