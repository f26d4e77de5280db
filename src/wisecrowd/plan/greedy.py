"""Greedy selection of votes by expected information gain."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.utils.slices import slice_rows

#: Largest number of outcomes of earlier requests that is tracked per task; from more, this many are sampled.
MAX_OUTCOMES = 64
#: Gains that differ by less are tied, and smaller gains count as zero (in nats).
GAIN_TOLERANCE = 1e-9
#: With limits per worker, a request within this relative distance of the best is accepted. A worker who reaches the limit makes
#: the bounds of all tasks stale, and recomputing all of them each time would dominate the running time.
LAZY_TOLERANCE = 0.01

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


def information_gains(posterior: FloatArray, confusion: FloatArray) -> FloatArray:
    """Compute the expected reduction of entropy by one vote, in nats.

    The mutual information between truth and label, H(q) − Σ_l P(y = l) H(q | y = l), is computed as H(y) − Σ_k q(k) H(y | k),
    which is cheaper.

    Parameters
    ----------
    posterior : ndarray of shape (n_tasks, n_classes)
        Class probabilities q of each task.
    confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices, by true class and label.

    Returns
    -------
    ndarray of shape (n_tasks, n_workers)

    Examples
    --------
    >>> information_gains(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([[[1.0, 0.0], [0.0, 1.0]]])).round(3).tolist()
    [[0.693], [0.0]]
    """
    from scipy.special import entr

    n_workers, n_classes, _ = confusion.shape
    label_probs = posterior @ confusion.transpose(1, 0, 2).reshape(n_classes, n_workers * n_classes)
    label_entropy: FloatArray = entr(label_probs).reshape(len(posterior), n_workers, n_classes).sum(axis=2)
    return np.maximum(label_entropy - posterior @ entr(confusion).sum(axis=2).T, 0.0)


def best_information_gains(posterior: FloatArray, confusion: FloatArray, costs: FloatArray | float = 1.0) -> FloatArray:
    """Compute the largest information gain per cost that any worker offers on each task.

    Parameters
    ----------
    posterior : ndarray of shape (n_tasks, n_classes)
        Class probabilities of each task.
    confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices.
    costs : ndarray of shape (n_workers,) or float, default=1.0
        Cost of a vote of each worker.

    Returns
    -------
    ndarray of shape (n_tasks,)

    Examples
    --------
    >>> confusion = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]])
    >>> best_information_gains(np.array([[0.5, 0.5]]), confusion).round(3).tolist()
    [0.693]
    """
    parts = slice_rows(len(posterior), confusion[..., 0].size)
    return np.concatenate(
        [np.empty(0), *((information_gains(posterior[part], confusion) / costs).max(axis=1) for part in parts)]
    )


def pair_information_gains(
    posterior: FloatArray, confusion: FloatArray, task: IntArray, worker: IntArray
) -> FloatArray:
    """Compute the information gain for given pairs of task and worker.

    Parameters
    ----------
    posterior : ndarray of shape (n_tasks, n_classes)
        Class probabilities of each task.
    confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices.
    task, worker : ndarray of shape (n_pairs,)
        Positions of the pairs.

    Returns
    -------
    ndarray of shape (n_pairs,)

    Examples
    --------
    >>> pair_information_gains(np.array([[0.5, 0.5]]), np.array([[[1.0, 0.0], [0.0, 1.0]]]), np.array([0]), np.array([0])).round(3)
    array([0.693])
    """
    from scipy.special import entr

    conditional_entropy = entr(confusion).sum(axis=2)
    gain = np.empty(len(task))
    for part in slice_rows(len(task), confusion.shape[1] ** 2):
        posteriors = posterior[task[part]]
        label_probs = np.einsum("nk,nkl->nl", posteriors, confusion[worker[part]])
        gain[part] = entr(label_probs).sum(axis=1) - (posteriors * conditional_entropy[worker[part]]).sum(axis=1)
    return np.maximum(gain, 0.0)


class OutcomeDistribution(NamedTuple):
    """Distribution over the posterior of a task after the labels of the requests so far.

    Attributes
    ----------
    posterior : ndarray of shape (n_outcomes, n_classes)
        Class probabilities after each outcome.
    weight : ndarray of shape (n_outcomes,)
        Probability of each outcome.

    Examples
    --------
    >>> sure = OutcomeDistribution(np.array([[0.5, 0.5]]), np.ones(1)).update(np.eye(2), np.random.default_rng(0))
    >>> sure.posterior.tolist(), sure.weight.tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5])
    """

    posterior: FloatArray
    weight: FloatArray

    def update(self, matrix: FloatArray, rng: np.random.Generator) -> OutcomeDistribution:
        """Return the distribution after one more vote.

        Parameters
        ----------
        matrix : ndarray of shape (n_classes, n_classes)
            Confusion matrix of the worker.
        rng : Generator
            Random numbers, used if there are more than `MAX_OUTCOMES` outcomes.

        Returns
        -------
        OutcomeDistribution
        """
        joint = self.weight[:, None, None] * self.posterior[:, None, :] * matrix.T[None]  # (outcome, label, true class)
        joint = joint.reshape(-1, joint.shape[2])
        weight = joint.sum(axis=1)
        joint, weight = joint[weight > 0], weight[weight > 0]
        posterior = joint / weight[:, None]
        if len(weight) <= MAX_OUTCOMES:
            return OutcomeDistribution(posterior, weight / weight.sum())
        # Systematic sampling: an outcome with twice the weight is drawn twice as often, up to rounding.
        positions = (rng.random() + np.arange(MAX_OUTCOMES)) / MAX_OUTCOMES
        chosen = np.minimum(np.searchsorted(np.cumsum(weight) / weight.sum(), positions), len(weight) - 1)
        return OutcomeDistribution(posterior[chosen], np.full(MAX_OUTCOMES, 1 / MAX_OUTCOMES))

    def confidence_gain(self, matrix: FloatArray) -> float:
        """Return the expected increase in confidence by one vote.

        Parameters
        ----------
        matrix : ndarray of shape (n_classes, n_classes)
            Confusion matrix of the worker.

        Returns
        -------
        float
            Difference of two probabilities, 0 or more.
        """
        confidence_after = (self.posterior[:, :, None] * matrix).max(axis=1).sum(axis=1)
        return float(np.maximum(confidence_after - self.posterior.max(axis=1), 0) @ self.weight)


class VoteRequest(NamedTuple):
    """Requested vote of one worker on one task.

    Attributes
    ----------
    task, worker : int
        Positions of the task and the worker.
    gain : float
        Expected reduction of entropy, in nats.
    confidence : float
        Confidence in the label of the task before the vote.
    expected_confidence : float
        Expected confidence after the vote.

    Examples
    --------
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
    """Greedy selection of the request with the largest information gain per cost.

    Votes are independent given the truth, so the gain of a request never grows with other requests on the same task. Earlier gains
    are therefore upper bounds, and only the task with the largest bound is evaluated again.

    Parameters
    ----------
    posterior : ndarray of shape (n_tasks, n_classes)
        Class probabilities of each task.
    confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices.
    candidates : callable
        Maps the position of a task to the positions of workers who can vote on it, most informative first.
    per_task : int, default=2
        Largest number of requests per task.
    per_worker : int, default=None
        Largest number of requests per worker.
    max_candidates : int, default=None
        Number of candidates that are evaluated for a task. Defaults to all.
    random_state : int, default=0
        Seed for sampling outcomes.
    outcomes : dict of int to OutcomeDistribution
        Outcomes of the tasks that have requests.
    costs : ndarray of shape (n_workers,), default=None
        Cost of a vote of each worker. Defaults to 1.
    task_confusion : callable, default=None
        Maps a task and workers to confusion matrices that depend on the votes of the task. Replaces ``confusion``.
    group : ndarray of shape (n_workers,), default=None
        Group of each worker, -1 for none. At most one worker per group is requested for a task, because the gain of a second
        one depends on the label of the first.

    Examples
    --------
    >>> expert, guesser = np.array([[0.9, 0.1], [0.1, 0.9]]), np.full((2, 2), 0.5)
    >>> posterior = np.array([[0.5, 0.5], [0.9, 0.1]])
    >>> selector = GreedySelector(posterior, np.stack([expert, guesser]), lambda task: np.arange(2), per_task=1)
    >>> [(request.task, request.worker) for request in selector.choose(np.array([0, 1]), np.array([1.0, 1.0]), 5)]
    [(0, 0), (1, 0)]
    """

    posterior: FloatArray
    confusion: FloatArray
    candidates: Callable[[int], IntArray]
    per_task: int = 2
    per_worker: int | None = None
    max_candidates: int | None = None
    random_state: int = 0
    outcomes: dict[int, OutcomeDistribution] = field(default_factory=dict)
    costs: FloatArray | None = None
    task_confusion: Callable[[int, IntArray], FloatArray] | None = None
    group: IntArray | None = None

    def choose(self, tasks: IntArray, bound: FloatArray, budget: float) -> list[VoteRequest]:
        """Choose requests, best first.

        Parameters
        ----------
        tasks : ndarray of shape (n_open_tasks,)
            Positions of the tasks to consider.
        bound : ndarray of shape (n_open_tasks,)
            Upper bound of the gain per cost of any request on each task.
        budget : float
            Largest total cost.

        Returns
        -------
        list of VoteRequest
        """
        rng = np.random.default_rng(self.random_state)
        n_requests = np.zeros(len(self.confusion), dtype=np.int64)
        assigned: dict[int, list[int]] = {}
        confidence: dict[int, float] = {}
        tolerance_factor = 1.0 if self.per_worker is None else 1 + LAZY_TOLERANCE
        queue = list(zip((-bound).tolist(), tasks.tolist(), strict=True))
        heapq.heapify(queue)
        requests: list[VoteRequest] = []
        budget_left = budget * (1 + GAIN_TOLERANCE)  # sums of costs have rounding errors
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
            confidence_before = confidence.get(task, float(outcomes.posterior[0].max()))
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
        """Return the confusion matrices of workers on a task."""
        return self.confusion[workers] if self.task_confusion is None else self.task_confusion(task, workers)

    def _best_worker(
        self, task: int, assigned: list[int], n_requests: NDArray[np.int64], budget_left: float
    ) -> tuple[int, float]:
        """Return the worker with the largest gain per cost and the gain; ties go to the worker with fewest requests."""
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
        gain = outcomes.weight @ information_gains(outcomes.posterior, self._label_probs(task, candidates))
        value = gain if self.costs is None else gain / self.costs[candidates]
        ties = np.flatnonzero(value >= value.max() - GAIN_TOLERANCE)
        best = ties[n_requests[candidates[ties]].argmin()]
        return int(candidates[best]), float(gain[best])

    def _get_outcomes(self, task: int) -> OutcomeDistribution:
        return self.outcomes.get(task) or OutcomeDistribution(self.posterior[task][None], np.ones(1))
