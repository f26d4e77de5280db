"""Choosing questions greedily: the one that tells most, then the one that tells most given what the first may have told."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.em.priors import blocks

#: Ways in which earlier answers on a task may turn out that are followed up; where there are more, as many are drawn.
FUTURES = 64
#: Two gains that differ by less are the same, and a smaller one is none (nats).
SAME = 1e-9
#: Where workers have limits, a question is taken that is this near to the best: whenever one of them has done their share, what
#: was known of every task is out of date, and to bring all of it up to date each time would take most of the time.
NEAR = 0.01

Numbers = NDArray[np.float64]
Codes = NDArray[np.intp]


def gains(belief: Numbers, confusion: Numbers) -> Numbers:
    """How much entropy an answer takes away, in nats: (beliefs, workers).

    H(q) − Σ_l P(y = l) H(q | y = l) is the information that truth and answer share, and the other side of it is cheaper:
    H(y) − Σ_k q(k) H(y | k).

    >>> gains(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([[[1.0, 0.0], [0.0, 1.0]]])).round(3).tolist()
    [[0.693], [0.0]]
    """
    from scipy.special import entr

    n_workers, n_classes, _ = confusion.shape
    said = belief @ confusion.transpose(1, 0, 2).reshape(n_classes, n_workers * n_classes)
    known: Numbers = entr(said).reshape(len(belief), n_workers, n_classes).sum(axis=2)
    return np.maximum(known - belief @ entr(confusion).sum(axis=2).T, 0.0)


def most(belief: Numbers, confusion: Numbers, price: Numbers | float = 1.0) -> Numbers:
    """The largest gain that any of some workers offers, for each belief; for the money, where workers have prices.

    >>> most(np.array([[0.5, 0.5]]), np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]])).round(3).tolist()
    [0.693]
    """
    parts = blocks(len(belief), confusion[..., 0].size)
    return np.concatenate([np.empty(0), *((gains(belief[part], confusion) / price).max(axis=1) for part in parts)])


def gains_of_pairs(belief: Numbers, confusion: Numbers, task: Codes, worker: Codes) -> Numbers:
    """As `gains`, for pairs of a belief and a worker, by position.

    >>> gains_of_pairs(np.array([[0.5, 0.5]]), np.array([[[1.0, 0.0], [0.0, 1.0]]]), np.array([0]), np.array([0])).round(3)
    array([0.693])
    """
    from scipy.special import entr

    blur = entr(confusion).sum(axis=2)
    found = np.empty(len(task))
    for part in blocks(len(task), confusion.shape[1] ** 2):
        beliefs = belief[task[part]]
        said = np.einsum("nk,nkl->nl", beliefs, confusion[worker[part]])
        found[part] = entr(said).sum(axis=1) - (beliefs * blur[worker[part]]).sum(axis=1)
    return np.maximum(found, 0.0)


class Futures(NamedTuple):
    """What may be believed of a task once the questions chosen so far are answered, and how likely each belief is.

    >>> sure = Futures(np.array([[0.5, 0.5]]), np.ones(1)).after(np.eye(2), np.random.default_rng(0))
    >>> sure.belief.tolist(), sure.weight.tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5])
    """

    belief: Numbers
    weight: Numbers

    def after(self, matrix: Numbers, rng: np.random.Generator) -> Futures:
        """One more answer, of a worker with this matrix: all that it may be, or a fair draw where that is too much."""
        joint = self.weight[:, None, None] * self.belief[:, None, :] * matrix.T[None]  # (belief, said, true)
        joint = joint.reshape(-1, joint.shape[2])
        weight = joint.sum(axis=1)
        joint, weight = joint[weight > 0], weight[weight > 0]
        belief = joint / weight[:, None]
        if len(weight) <= FUTURES:
            return Futures(belief, weight / weight.sum())
        # Systematic: a future with twice the weight is drawn twice as often, up to rounding.
        at = (rng.random() + np.arange(FUTURES)) / FUTURES
        chosen = np.minimum(np.searchsorted(np.cumsum(weight) / weight.sum(), at), len(weight) - 1)
        return Futures(belief[chosen], np.full(FUTURES, 1 / FUTURES))

    def surer_by(self, matrix: Numbers) -> float:
        """By how much an answer raises the confidence that is to be expected."""
        after = (self.belief[:, :, None] * matrix).max(axis=1).sum(axis=1)
        return float(np.maximum(after - self.belief.max(axis=1), 0) @ self.weight)


class Ask(NamedTuple):
    """A question, by position.

    >>> Ask(task=3, worker=0, gain=0.2, confidence=0.6, expected_confidence=0.8).gain
    0.2
    """

    task: int
    worker: int
    gain: float
    confidence: float
    expected_confidence: float


@dataclass
class Asking:
    """Chooses questions one after the other, always one that takes away most entropy for its price (or nearly, see `NEAR`).

    As answers are independent given the truth, a question never gains by other questions on its task: gains from before are
    bounds, and only tasks whose bound is the largest are looked at again.

    >>> knows, guesses = np.array([[0.9, 0.1], [0.1, 0.9]]), np.full((2, 2), 0.5)
    >>> asking = Asking(np.array([[0.5, 0.5], [0.9, 0.1]]), np.stack([knows, guesses]), lambda task: np.arange(2), per_task=1)
    >>> [(ask.task, ask.worker) for ask in asking.choose(np.array([0, 1]), np.array([1.0, 1.0]), 5)]
    [(0, 0), (1, 0)]
    """

    belief: Numbers
    confusion: Numbers
    who: Callable[[int], Codes]
    """Who may be asked about a task; those who tell more come first, if not all are to be weighed."""
    per_task: int = 2
    per_worker: int | None = None
    at_once: int | None = None
    """How many of those who are free are weighed for a question; all unless given."""
    random_state: int = 0
    futures: dict[int, Futures] = field(default_factory=dict)
    """Of tasks that something was asked about."""
    price: Numbers | None = None
    """What an answer of each worker costs; one unless given."""
    matrices: Callable[[int, Codes], Numbers] | None = None
    """What some workers would say of a task, where that depends on what was said before; as ``confusion``, which it replaces."""
    group: Codes | None = None
    """Workers of one group (−1: none) are not asked about the same task: what a second adds depends on what the first will say."""

    def choose(self, tasks: Codes, bound: Numbers, at_most: float) -> list[Ask]:
        """The questions, best first, for ``at_most`` of money; ``bound`` is no less than any gain for its price on a task."""
        rng = np.random.default_rng(self.random_state)
        times = np.zeros(len(self.confusion), dtype=np.int64)
        asked: dict[int, list[int]] = {}
        sure: dict[int, float] = {}
        slack = 1.0 if self.per_worker is None else 1 + NEAR
        queue = list(zip((-bound).tolist(), tasks.tolist(), strict=True))
        heapq.heapify(queue)
        chosen: list[Ask] = []
        left = at_most * (1 + SAME)  # sums of prices are rounded
        while queue and left >= self._cheapest:
            _, task = heapq.heappop(queue)
            worker, gain = self._best(task, asked.get(task, []), times, left)
            if gain <= SAME:
                continue
            price = 1.0 if self.price is None else float(self.price[worker])
            if queue and -queue[0][0] > slack * gain / price + SAME:
                heapq.heappush(queue, (-gain / price, task))
                continue
            left -= price
            futures, matrix = self._futures(task), self._said(task, np.array([worker]))[0]
            before = sure.get(task, float(futures.belief[0].max()))
            sure[task] = min(before + futures.surer_by(matrix), 1.0)
            chosen.append(Ask(task, worker, gain, before, sure[task]))
            times[worker] += 1
            asked.setdefault(task, []).append(worker)
            if len(asked[task]) < self.per_task:
                self.futures[task] = futures.after(matrix, rng)
                heapq.heappush(queue, (-gain / price, task))
        return chosen

    @property
    def _cheapest(self) -> float:
        return 1.0 if self.price is None else float(self.price.min(initial=np.inf))

    def _said(self, task: int, who: Codes) -> Numbers:
        """Matrices of some workers on a task."""
        return self.confusion[who] if self.matrices is None else self.matrices(task, who)

    def _best(self, task: int, asked: list[int], times: NDArray[np.int64], left: float) -> tuple[int, float]:
        """Whom to ask about a task with the money that is left, and what it gains; of equals, who was asked least."""
        who = self.who(task)
        for worker in asked:
            who = who[who != worker]
            if self.group is not None and self.group[worker] >= 0:
                who = who[self.group[who] != self.group[worker]]
        if self.price is not None:
            who = who[self.price[who] <= left]
        if self.per_worker is not None:
            who = who[times[who] < self.per_worker]
        if not len(who):
            return -1, 0.0
        who = who[: self.at_once]
        futures = self._futures(task)
        gain = futures.weight @ gains(futures.belief, self._said(task, who))
        value = gain if self.price is None else gain / self.price[who]
        near = np.flatnonzero(value >= value.max() - SAME)
        best = near[times[who[near]].argmin()]
        return int(who[best]), float(gain[best])

    def _futures(self, task: int) -> Futures:
        return self.futures.get(task) or Futures(self.belief[task][None], np.ones(1))
