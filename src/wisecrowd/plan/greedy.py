"""Choosing questions greedily: the one that tells most, then the one that tells most given what the first may have told."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.utils.slices import slice_rows

#: Ways in which earlier answers on a task may turn out that are followed up; where there are more, as many are drawn.
MAX_OUTCOMES = 64
#: Two gains that differ by less are the same, and a smaller one is none (nats).
GAIN_TOLERANCE = 1e-9
#: Where workers have limits, a question is taken that is this near to the best: whenever one of them has done their share, what
#: was known of every task is out of date, and to bring all of it up to date each time would take most of the time.
LAZY_TOLERANCE = 0.01

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


def information_gains(belief: FloatArray, confusion: FloatArray) -> FloatArray:
    """How much entropy an answer takes away, in nats: (beliefs, workers).

    H(q) − Σ_l P(y = l) H(q | y = l) is the information that truth and answer share, and the other side of it is cheaper:
    H(y) − Σ_k q(k) H(y | k).

    >>> information_gains(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([[[1.0, 0.0], [0.0, 1.0]]])).round(3).tolist()
    [[0.693], [0.0]]
    """
    from scipy.special import entr

    n_workers, n_classes, _ = confusion.shape
    label_probs = belief @ confusion.transpose(1, 0, 2).reshape(n_classes, n_workers * n_classes)
    label_entropy: FloatArray = entr(label_probs).reshape(len(belief), n_workers, n_classes).sum(axis=2)
    return np.maximum(label_entropy - belief @ entr(confusion).sum(axis=2).T, 0.0)


def best_information_gains(belief: FloatArray, confusion: FloatArray, costs: FloatArray | float = 1.0) -> FloatArray:
    """The largest gain that any of some workers offers, for each belief; for the money, where workers have prices.

    >>> best_information_gains(np.array([[0.5, 0.5]]), np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]])).round(3).tolist()
    [0.693]
    """
    parts = slice_rows(len(belief), confusion[..., 0].size)
    return np.concatenate(
        [np.empty(0), *((information_gains(belief[part], confusion) / costs).max(axis=1) for part in parts)]
    )


def pair_information_gains(belief: FloatArray, confusion: FloatArray, task: IntArray, worker: IntArray) -> FloatArray:
    """As `information_gains`, for pairs of a belief and a worker, by position.

    >>> pair_information_gains(np.array([[0.5, 0.5]]), np.array([[[1.0, 0.0], [0.0, 1.0]]]), np.array([0]), np.array([0])).round(3)
    array([0.693])
    """
    from scipy.special import entr

    conditional_entropy = entr(confusion).sum(axis=2)
    gain = np.empty(len(task))
    for part in slice_rows(len(task), confusion.shape[1] ** 2):
        beliefs = belief[task[part]]
        label_probs = np.einsum("nk,nkl->nl", beliefs, confusion[worker[part]])
        gain[part] = entr(label_probs).sum(axis=1) - (beliefs * conditional_entropy[worker[part]]).sum(axis=1)
    return np.maximum(gain, 0.0)


class OutcomeDistribution(NamedTuple):
    """What may be believed of a task once the questions chosen so far are answered, and how likely each belief is.

    >>> sure = OutcomeDistribution(np.array([[0.5, 0.5]]), np.ones(1)).update(np.eye(2), np.random.default_rng(0))
    >>> sure.belief.tolist(), sure.weight.tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5])
    """

    belief: FloatArray
    weight: FloatArray

    def update(self, matrix: FloatArray, rng: np.random.Generator) -> OutcomeDistribution:
        """One more answer, of a worker with this matrix: all that it may be, or a fair draw where that is too much."""
        joint = self.weight[:, None, None] * self.belief[:, None, :] * matrix.T[None]  # (belief, said, true)
        joint = joint.reshape(-1, joint.shape[2])
        weight = joint.sum(axis=1)
        joint, weight = joint[weight > 0], weight[weight > 0]
        belief = joint / weight[:, None]
        if len(weight) <= MAX_OUTCOMES:
            return OutcomeDistribution(belief, weight / weight.sum())
        # Systematic: a future with twice the weight is drawn twice as often, up to rounding.
        positions = (rng.random() + np.arange(MAX_OUTCOMES)) / MAX_OUTCOMES
        chosen = np.minimum(np.searchsorted(np.cumsum(weight) / weight.sum(), positions), len(weight) - 1)
        return OutcomeDistribution(belief[chosen], np.full(MAX_OUTCOMES, 1 / MAX_OUTCOMES))

    def confidence_gain(self, matrix: FloatArray) -> float:
        """By how much an answer raises the confidence that is to be expected."""
        update = (self.belief[:, :, None] * matrix).max(axis=1).sum(axis=1)
        return float(np.maximum(update - self.belief.max(axis=1), 0) @ self.weight)


class VoteRequest(NamedTuple):
    """A question, by position.

    >>> VoteRequest(task=3, worker=0, gain=0.2, confidence=0.6, expected_confidence=0.8).gain
    0.2
    """

    task: int
    worker: int
    gain: float
    confidence: float
    expected_confidence: float


@dataclass
class GreedySelector:
    """Chooses questions one after the other, always one that takes away most entropy for its price (or nearly, see `LAZY_TOLERANCE`).

    As answers are independent given the truth, a question never gains by other questions on its task: gains from before are
    bounds, and only tasks whose bound is the largest are looked at again.

    >>> knows, guesses = np.array([[0.9, 0.1], [0.1, 0.9]]), np.full((2, 2), 0.5)
    >>> asking = GreedySelector(np.array([[0.5, 0.5], [0.9, 0.1]]), np.stack([knows, guesses]), lambda task: np.arange(2), per_task=1)
    >>> [(ask.task, ask.worker) for ask in asking.choose(np.array([0, 1]), np.array([1.0, 1.0]), 5)]
    [(0, 0), (1, 0)]
    """

    belief: FloatArray
    confusion: FloatArray
    candidates: Callable[[int], IntArray]
    """Who may be asked about a task; those who tell more come first, if not all are to be weighed."""
    per_task: int = 2
    per_worker: int | None = None
    max_candidates: int | None = None
    """How many of those who are free are weighed for a question; all unless given."""
    random_state: int = 0
    outcomes: dict[int, OutcomeDistribution] = field(default_factory=dict)
    """Of tasks that something was asked about."""
    costs: FloatArray | None = None
    """What an answer of each worker costs; one unless given."""
    task_confusion: Callable[[int, IntArray], FloatArray] | None = None
    """What some workers would say of a task, where that depends on what was said before; as ``confusion``, which it replaces."""
    group: IntArray | None = None
    """Workers of one group (−1: none) are not asked about the same task: what a second adds depends on what the first will say."""

    def choose(self, tasks: IntArray, bound: FloatArray, budget: float) -> list[VoteRequest]:
        """The questions, best first, for ``budget`` of money; ``bound`` is no less than any gain for its price on a task."""
        rng = np.random.default_rng(self.random_state)
        n_requests = np.zeros(len(self.confusion), dtype=np.int64)
        assigned: dict[int, list[int]] = {}
        confidence: dict[int, float] = {}
        tolerance_factor = 1.0 if self.per_worker is None else 1 + LAZY_TOLERANCE
        queue = list(zip((-bound).tolist(), tasks.tolist(), strict=True))
        heapq.heapify(queue)
        requests: list[VoteRequest] = []
        budget_left = budget * (1 + GAIN_TOLERANCE)  # sums of prices are rounded
        while queue and budget_left >= self._min_cost:
            _, task = heapq.heappop(queue)
            worker, gain = self._best_worker(task, assigned.get(task, []), n_requests, budget_left)
            if gain <= GAIN_TOLERANCE:
                continue
            cost = 1.0 if self.costs is None else float(self.costs[worker])
            if queue and -queue[0][0] > tolerance_factor * gain / cost + GAIN_TOLERANCE:
                heapq.heappush(queue, (-gain / cost, task))
                continue
            budget_left -= cost
            outcomes, matrix = self._get_outcomes(task), self._label_probs(task, np.array([worker]))[0]
            confidence_before = confidence.get(task, float(outcomes.belief[0].max()))
            confidence[task] = min(confidence_before + outcomes.confidence_gain(matrix), 1.0)
            requests.append(VoteRequest(task, worker, gain, confidence_before, confidence[task]))
            n_requests[worker] += 1
            assigned.setdefault(task, []).append(worker)
            if len(assigned[task]) < self.per_task:
                self.outcomes[task] = outcomes.update(matrix, rng)
                heapq.heappush(queue, (-gain / cost, task))
        return requests

    @property
    def _min_cost(self) -> float:
        return 1.0 if self.costs is None else float(self.costs.min(initial=np.inf))

    def _label_probs(self, task: int, workers: IntArray) -> FloatArray:
        """Matrices of some workers on a task."""
        return self.confusion[workers] if self.task_confusion is None else self.task_confusion(task, workers)

    def _best_worker(
        self, task: int, assigned: list[int], n_requests: NDArray[np.int64], budget_left: float
    ) -> tuple[int, float]:
        """Whom to ask about a task with the money that is left, and what it gains; of equals, who was asked least."""
        candidates = self.candidates(task)
        for worker in assigned:
            candidates = candidates[candidates != worker]
            if self.group is not None and self.group[worker] >= 0:
                candidates = candidates[self.group[candidates] != self.group[worker]]
        if self.costs is not None:
            candidates = candidates[self.costs[candidates] <= budget_left]
        if self.per_worker is not None:
            candidates = candidates[n_requests[candidates] < self.per_worker]
        if not len(candidates):
            return -1, 0.0
        candidates = candidates[: self.max_candidates]
        outcomes = self._get_outcomes(task)
        gain = outcomes.weight @ information_gains(outcomes.belief, self._label_probs(task, candidates))
        value = gain if self.costs is None else gain / self.costs[candidates]
        ties = np.flatnonzero(value >= value.max() - GAIN_TOLERANCE)
        best = ties[n_requests[candidates[ties]].argmin()]
        return int(candidates[best]), float(gain[best])

    def _get_outcomes(self, task: int) -> OutcomeDistribution:
        return self.outcomes.get(task) or OutcomeDistribution(self.belief[task][None], np.ones(1))
