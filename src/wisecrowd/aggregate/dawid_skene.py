"""Dawid and Skene's model: every worker has a confusion matrix of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate._spectral import SpectralStart
from wisecrowd.crowd import Pairs
from wisecrowd.em import blocks


@dataclass(kw_only=True, eq=False, repr=False)
class DawidSkene(SpectralStart):
    """Every worker has a full confusion matrix, learnt by EM together with the truth.

    Model: z_i ~ ρ and y_ir | z_i = k ~ π_r[k, ·], with pseudo-votes s_kl = smoothing + diagonal·[k = l] (a Dirichlet
    prior) so that no worker is held to be incapable of what they were not seen doing:

        E:  q_i(k) ∝ ρ_k Π_r π_r[k, y_ir]
        M:  π_r[k, l] = (n_r[k, l] + s_kl) / (n_r[k, ·] + s_k·),   n_r[k, l] = Σ_i q_i(k) [y_ir = l]

    Choose it when workers answer many tasks each (say, five per cell of their matrix) and err in their own ways: it
    sees through class-specific bias and adversaries. With few labels per worker or many classes it has too much
    freedom; take `OneCoin` or majority vote there. Maximum likelihood (``smoothing=0, diagonal=0``) falls below
    majority vote on sparse data. With a single vote on every task nothing tells workers apart, and it can put all tasks
    into one class (CIFAR-100N: .010 for the .598 of the votes themselves); it warns of that.

    >>> from wisecrowd import DawidSkene, MajorityVote, simulate_crowd
    >>> made = simulate_crowd(n_tasks=300, n_workers=20, n_classes=3, labels_per_task=5)
    >>> fitted = DawidSkene().fit(made.crowd)
    >>> majority = MajorityVote().fit(made.crowd)
    >>> bool((fitted.labels_ == made.truth).mean() > (majority.labels_ == made.truth).mean())
    True
    >>> fitted.confusion_.shape
    (20, 3, 3)
    """

    references: ClassVar[tuple[str, ...]] = ("dawid1979maximum",)

    def _said(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        n_classes = tally.shape[1]
        evidence = pairs.by_worker(tally) + (n_classes * self.smoothing + self.diagonal)  # n_r[k, ·] + s_k·
        said = tally + tally.dtype.type(self.smoothing)
        said[np.arange(len(pairs)), pairs.label] += self.diagonal
        for rows in blocks(*said.shape):
            total = evidence[pairs.worker[rows]]
            # Without pseudo-votes, a class that a worker never met leaves the row undefined: say nothing, uniformly.
            np.divide(said[rows], total, out=said[rows], where=total > 0)
            said[rows][total == 0] = 1 / n_classes
        return said

    def _penalty(self, tally: NDArray[Any], pairs: Pairs) -> float:
        """Σ_r Σ_kl s_kl log π_r[k, l] but for a constant: a cell without votes contributes only to its row's total."""
        n_classes = tally.shape[1]
        off, on = self.smoothing, self.smoothing + self.diagonal
        row = n_classes * self.smoothing + self.diagonal
        on_diagonal = tally[np.arange(len(pairs)), pairs.label].astype(np.float64)
        total = 0.0
        if off > 0:
            # log(1 + x), not log1p(x): several times faster, and what it loses is lost against the one in any sum.
            total += off * sum(np.log(tally[rows] / off + 1).sum(dtype=np.float64) for rows in blocks(*tally.shape))
            total -= off * np.log(on_diagonal / off + 1).sum()
        if on > 0:
            total += on * np.log1p(on_diagonal / on).sum()
            total -= row * np.log(pairs.by_worker(tally) + row).sum(dtype=np.float64)
        return float(total)
