"""KOS: message passing between tasks and workers."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.initialization import compute_vote_shares
from wisecrowd.em.poll import Poll
from wisecrowd.errors import UsageError
from wisecrowd.utils import progress

#: Total message weight of a task below which there is no evidence.
MIN_EVIDENCE = 1e-12


@method_class
class KOS(Aggregator):
    """Message passing of Karger, Oh and Shah between tasks and workers.

    With A_ir = ±1 for the two classes, a task sends each of its workers the opinion of the other workers, and a worker sends
    each of their tasks the agreement on the other tasks:

        x_i→r = Σ_{r' ≠ r} A_ir' y_r'→i,     y_r→i = Σ_{i' ≠ i} A_i'r x_i'→r,     label: sign Σ_r A_ir y_r→i

    Messages grow geometrically, so they are normalised after every sweep, which changes no label. The posterior is the share
    of the messages' weight for a class; a worker with negative messages supports the opposite label. It is a share of evidence,
    not a calibrated probability. Where no message has weight it is the share of votes. With more than two classes, each class
    is compared with the rest.

    Messages start at one, which makes the first sweep a majority vote; the paper draws them from N(1, 1), as ``noise=1``
    does. The message of a gold task is as strong as the strongest one.

    Choose it for binary tasks that are assigned at random with about equally many votes per worker; there it is provably close
    to optimal. In real crowds a few busy workers outweigh all others; prefer `DawidSkene` or `OneCoin`.

    Examples
    --------
    >>> from wisecrowd import Crowd, KOS
    >>> crowd = Crowd.from_triples([(task, worker, (task + (worker == "bad")) % 2) for task in range(8) for worker in
    ...                             ("ann", "bob", "bad")])
    >>> KOS().fit(crowd).workers_["weight"].round(2).to_dict()
    {'ann': 1.0, 'bad': -1.0, 'bob': 1.0}
    """

    references: ClassVar[tuple[str, ...]] = ("karger2014budget",)

    max_iter: int = parameter(default=10, help="Number of sweeps over all messages.")
    noise: float = parameter(default=0.0, help="Standard deviation of the first messages around one.")
    random_state: int = parameter(default=0, help="Seed of the first messages if they are noisy.")

    weight_: NDArray[np.float64] = fitted(help="Mean message of each worker.", shape=("n_workers",))

    def _fit(self, crowd: Crowd, gold: NDArray[np.int32] | None, *, X: Any, start: Any) -> None:
        if self.max_iter < 1 or self.noise < 0:
            raise UsageError(f"max_iter must be 1 or more, noise 0 or more; got {self.max_iter} and {self.noise}")
        graph = _MessageGraph(crowd)
        first = np.random.default_rng(self.random_state).normal(1, self.noise, len(graph.task))
        n_classes = crowd.n_classes
        evidence = compute_vote_shares(crowd)
        messages = np.zeros(len(graph.task))
        # Of two classes, one is enough: the other has opposite signs and equal messages.
        for target in range(n_classes if n_classes > 2 else n_classes - 1):
            progress.report("KOS", target + 1, n_classes, "one class against the rest")
            sign = graph.compute_signs(target)
            message = self._exchange_messages(graph, sign, first, None if gold is None else _sign_gold(gold, target))
            support, total = graph.sum_support(sign * message)
            np.divide(support, total, out=evidence[:, target], where=total > MIN_EVIDENCE)
            messages += message
        if n_classes == 2:
            evidence[:, 1] = 1 - evidence[:, 0]
        self.weight_ = graph.average_by_worker(messages) / max(n_classes if n_classes > 2 else 1, 1)
        self._set_fitted(crowd, Poll(crowd, gold).normalize_scores(evidence))

    def _exchange_messages(
        self,
        graph: _MessageGraph,
        sign: NDArray[np.float64],
        message: NDArray[np.float64],
        gold_sign: NDArray[np.float64] | None,
    ) -> NDArray[np.float64]:
        """Return the final message of every worker to each of their tasks."""
        # The algorithm makes a fixed number of sweeps without a convergence test, so the shared loop does not apply.
        for _ in range(self.max_iter):
            to_worker = graph.sum_others(graph.task, sign * message)
            if gold_sign is not None:
                strongest = np.abs(to_worker).max(initial=0) or 1.0
                to_worker = np.where(gold_sign[graph.task] != 0, strongest * gold_sign[graph.task], to_worker)
            to_task = graph.sum_others(graph.worker, sign * to_worker)
            size = np.sqrt((to_task**2).mean())
            if size == 0:  # no worker has a second vote
                break
            message = to_task / size
        return message

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        return super()._worker_columns() | {"weight": self._check_fitted("weight_")}


class _MessageGraph:
    """Edges between tasks and workers, one per pair, however often the worker voted on the task."""

    def __init__(self, crowd: Crowd) -> None:
        assert crowd.worker is not None
        self._crowd = crowd
        is_repeated = (np.diff(crowd.task, prepend=-1) == 0) & (np.diff(crowd.worker, prepend=-1) == 0)
        self._first = np.flatnonzero(~is_repeated)
        self.task, self.worker = crowd.task[self._first], crowd.worker[self._first]

    def compute_signs(self, target: int) -> NDArray[np.float64]:
        """Compute A_ir, the weight of votes for a class minus that of votes against it.

        Parameters
        ----------
        target : int
            Class.

        Returns
        -------
        ndarray of shape (n_edges,)
        """
        votes = np.where(self._crowd.label == target, self._crowd.weight, -self._crowd.weight)
        return np.add.reduceat(votes, self._first)

    def sum_others(self, end: NDArray[np.int32], value: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum all other values at the same end (task or worker) of an edge.

        Parameters
        ----------
        end : ndarray of shape (n_edges,)
            Task or worker of each edge.
        value : ndarray of shape (n_edges,)
            Values.

        Returns
        -------
        ndarray of shape (n_edges,)
        """
        return np.bincount(end, value)[end] - value

    def sum_support(self, value: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Sum positive and absolute values by task.

        Parameters
        ----------
        value : ndarray of shape (n_edges,)
            Values.

        Returns
        -------
        positive : ndarray of shape (n_tasks,)
        absolute : ndarray of shape (n_tasks,)
        """
        positive, negative = (
            np.bincount(self.task, np.maximum(part, 0), self._crowd.n_tasks) for part in (value, -value)
        )
        return positive.astype(np.float64), (positive + negative).astype(np.float64)

    def average_by_worker(self, message: NDArray[np.float64]) -> NDArray[np.float64]:
        """Average messages by worker.

        Parameters
        ----------
        message : ndarray of shape (n_edges,)
            Messages.

        Returns
        -------
        ndarray of shape (n_workers,)
            NaN for workers without votes.
        """
        n_workers = self._crowd.n_workers
        with np.errstate(invalid="ignore"):
            return np.bincount(self.worker, message, n_workers) / np.bincount(self.worker, minlength=n_workers)


def _sign_gold(gold: NDArray[np.int32], target: int) -> NDArray[np.float64]:
    """Return +1 for gold tasks of the class, −1 for gold tasks of other classes, 0 for tasks without gold."""
    return np.where(gold < 0, 0.0, np.where(gold == target, 1.0, -1.0))
