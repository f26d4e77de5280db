"""M-MSR: skills from agreement, by robust completion of a matrix of rank one."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd import progress
from wisecrowd.aggregate._agreement import Agreement
from wisecrowd.aggregate._weighting import Poll, WeightedVote
from wisecrowd.errors import NotConverged, UsageError


@dataclass(kw_only=True, eq=False, repr=False)
class MMSR(WeightedVote):
    """Skills are read off who agrees with whom, leaving out the extremes, and weigh the votes.
    """

    references: ClassVar[tuple[str, ...]] = ("ma2020adversarial",)

    trim: int | None = field(default=None, metadata={"help": "partners left out at each end; half the least number of partners unless given"})
    max_iter: int = field(default=1000, metadata={"help": "rounds of completion at most"})
    tol: float = field(default=1e-8, metadata={"help": "stop when the completed matrix moves by less than this fraction"})

    def _weigh(self, poll: Poll) -> NDArray[np.float64]:
        crowd = poll.crowd
        n_classes = crowd.n_classes
        pairs = Agreement.of(crowd, poll.clamp)
        skill = self._complete(pairs, poll.clamp is not None) * pairs.signs()
        skill = skill[: crowd.n_workers]
        linked = pairs.degree[: crowd.n_workers] > 0
        margin = min(1 / np.sqrt(np.count_nonzero(crowd.labels_per_task)), 0.5)
        skill = np.clip(skill, -1 / max(n_classes - 1, 1) + margin, 1 - margin)
        skill[~linked] = skill[linked].mean() if linked.any() else 0.5
        self.skill_ = skill
        right = (skill * (n_classes - 1) + 1) / n_classes
        if n_classes == 1: return np.ones_like(skill)
        return np.log((n_classes - 1) * right / (1 - right))

    def _complete(self, pairs: Agreement, gold: bool):
        size = np.abs(pairs.skew)
        deg = pairs.degree[pairs.degree > 0]
        F = max(int(deg.min()) // 2 - 1, 0) if self.trim is None else self.trim
        if isinstance(F, float): F = np.floor(F * pairs.degree).astype(int)
        least = 1e-3
        start = np.sqrt(np.average(size, weights=pairs.common))
        u = np.full(pairs.n_workers, start); v = u.copy()
        for n in range(self.max_iter):
            u0, v0 = u, v
            v = np.maximum(_tm(pairs, size / u[pairs.second], v, F), least)
            u = np.maximum(_tm(pairs, size / v[pairs.second], u, F), least)
            if gold: u[-1]=v[-1]=1
            du, dv = u - u0, v - v0
            m = np.sqrt(max((du @ du) * (v @ v) + (u0 @ u0) * (dv @ dv) + 2 * (du @ u0) * (v @ dv), 0)) / np.sqrt((u @ u) * (v @ v))
            if m < self.tol: break
        self.n_iter_ = n + 1; self.F=F
        return u * np.sqrt(np.linalg.norm(v) / np.linalg.norm(u))

    def _posterior(self, poll, scores):
        return poll.odds(scores)

def _tm(pairs, ratio, now, F):
    t = pairs.first; n = pairs.n_workers
    if np.ndim(F) == 0 and F == 0:
        s = np.bincount(t, ratio, n); c = pairs.degree
        return np.where(c > 0, s / np.maximum(c, 1), now)
    order = np.lexsort((ratio, t))
    r = ratio[order]
    below = np.minimum(np.bincount(t, ratio < now[t], n), F); above = np.minimum(np.bincount(t, ratio > now[t], n), F)
    off = np.concatenate([[0], np.cumsum(pairs.degree)])
    rank = np.arange(len(r)) - off[t]   # t sorted
    keep = (rank >= below[t]) & (rank < (pairs.degree - above)[t])
    c = np.bincount(t, keep, n); s = np.bincount(t, np.where(keep, r, 0), n)
    return np.where(c > 0, s / np.maximum(c, 1), now)
