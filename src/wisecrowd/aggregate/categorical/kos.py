"""KOS: message passing between tasks and workers."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical._weighting import Poll, WorkerWeights
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.initialization import vote_shares
from wisecrowd.errors import UsageError
from wisecrowd.utils import progress


@method_class
class KOS(WorkerWeights):
    """Tasks and workers tell each other what they make of everybody else's messages.

    With A_ir = ±1 for the two classes, a task tells each of its workers what the others say of it, and a worker tells
    each of their tasks how well they did on the others:

        x_i→r = Σ_{r' ≠ r} A_ir' y_r'→i,     y_r→i = Σ_{i' ≠ i} A_i'r x_i'→r,     answer: sign Σ_r A_ir y_r→i

    Messages grow geometrically, so they are brought back to unit size after every sweep, which changes no answer. The
    posterior is the share of the messages' weight that speaks for a class, a worker with negative messages speaking for
    the opposite of what they said; it is a share of evidence, no calibrated probability. Where no message has weight
    (nobody there voted elsewhere) it is the share of votes. Beyond two classes each class is held against the rest and
    the shares are compared.

    Messages start at one, which makes the first sweep a majority vote; the paper draws them from N(1, 1), which
    ``noise=1`` does. Known truth speaks as loudly as the surest task.

    Choose it for binary tasks dealt out at random, every worker doing about equally many: there it is provably near the
    best possible. Real crowds are not like that, and a few busy workers then drown all others: it has .50 on textual
    entailment (RTE), where majority vote has .90. Prefer `DawidSkene` or `OneCoin`.

    >>> from wisecrowd import Crowd, KOS
    >>> crowd = Crowd.from_triples([(task, worker, (task + (worker == "bad")) % 2) for task in range(8) for worker in
    ...                             ("ann", "bob", "bad")])
    >>> KOS().fit(crowd).workers_["weight"].round(2).to_dict()
    {'ann': 1.0, 'bad': -1.0, 'bob': 1.0}
    """

    references: ClassVar[tuple[str, ...]] = ("karger2014budget",)

    max_iter: int = parameter(default=10, help="sweeps over all messages")
    noise: float = parameter(default=0.0, help="standard deviation of the first messages around one")
    random_state: int = parameter(default=0, help="seed of the first messages when they are noisy")

    def _fit(self, crowd: Crowd, gold: NDArray[np.int32] | None, *, X: Any, start: Any) -> None:
        if self.max_iter < 1 or self.noise < 0:
            raise UsageError(f"max_iter must be 1 or more, noise 0 or more; got {self.max_iter} and {self.noise}")
        graph = _Graph(crowd)
        first = np.random.default_rng(self.random_state).normal(1, self.noise, len(graph.task))
        n_classes = crowd.n_classes
        evidence = vote_shares(crowd)
        messages = np.zeros(len(graph.task))
        # Two classes held against each other get opposite signs and equal messages, so one of them is enough.
        for target in range(n_classes if n_classes > 2 else n_classes - 1):
            progress.report("KOS", target + 1, n_classes, "one class against the rest")
            sign = graph.sign(target)
            message = self._exchange(graph, sign, first, None if gold is None else _gold(gold, target))
            favour, total = graph.favour(sign * message)
            np.divide(favour, total, out=evidence[:, target], where=total > 1e-12)
            messages += message
        if n_classes == 2:
            evidence[:, 1] = 1 - evidence[:, 0]
        self.weight_ = graph.mean_by_worker(messages) / max(n_classes if n_classes > 2 else 1, 1)
        self._set_fitted(crowd, Poll(crowd, gold).shares(evidence))

    def _exchange(
        self,
        graph: _Graph,
        sign: NDArray[np.float64],
        message: NDArray[np.float64],
        gold_sign: NDArray[np.float64] | None,
    ) -> NDArray[np.float64]:
        """What every worker tells each of their tasks in the end."""
        for _ in range(self.max_iter):
            heard = graph.from_others(graph.task, sign * message)
            if gold_sign is not None:
                loudest = np.abs(heard).max(initial=0) or 1.0
                heard = np.where(gold_sign[graph.task] != 0, loudest * gold_sign[graph.task], heard)
            reply = graph.from_others(graph.worker, sign * heard)
            size = np.sqrt((reply**2).mean())
            if size == 0:  # nobody has a second vote to be judged by
                break
            message = reply / size
        return message


class _Graph:
    """Who voted on what, once for every pair of a task and a worker, however often they voted."""

    def __init__(self, crowd: Crowd) -> None:
        assert crowd.worker is not None
        self._crowd = crowd
        again = (np.diff(crowd.task, prepend=-1) == 0) & (np.diff(crowd.worker, prepend=-1) == 0)
        self._first = np.flatnonzero(~again)
        self.task, self.worker = crowd.task[self._first], crowd.worker[self._first]

    def sign(self, target: int) -> NDArray[np.float64]:
        """A_ir: the weight of votes for the class less that of votes against it."""
        votes = np.where(self._crowd.label == target, self._crowd.weight, -self._crowd.weight)
        return np.add.reduceat(votes, self._first)

    def from_others(self, end: NDArray[np.int32], value: NDArray[np.float64]) -> NDArray[np.float64]:
        """What all other messages at the same task, or of the same worker, add up to."""
        return np.bincount(end, value)[end] - value

    def favour(self, label_probs: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Weight that speaks for a class, and weight in all, by task."""
        for_it, against = (
            np.bincount(self.task, np.maximum(side, 0), self._crowd.n_tasks) for side in (label_probs, -label_probs)
        )
        return for_it.astype(np.float64), (for_it + against).astype(np.float64)

    def mean_by_worker(self, message: NDArray[np.float64]) -> NDArray[np.float64]:
        n_workers = self._crowd.n_workers
        with np.errstate(invalid="ignore"):
            return np.bincount(self.worker, message, n_workers) / np.bincount(self.worker, minlength=n_workers)


def _gold(gold: NDArray[np.int32], target: int) -> NDArray[np.float64]:
    """+1 for tasks known to be of the class, −1 for those known to be of another, 0 for the rest."""
    return np.where(gold < 0, 0.0, np.where(gold == target, 1.0, -1.0))
