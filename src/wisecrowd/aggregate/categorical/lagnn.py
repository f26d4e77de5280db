"""LAGNN: a small graph network that learns whose votes to follow."""

from __future__ import annotations

from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.initialization import apply_gold, vote_shares
from wisecrowd.errors import UsageError
from wisecrowd.nn.backend import need_torch, threads
from wisecrowd.utils import progress

#: What the network is told of a (worker, label) pair; see `_Graph.features`.
N_FEATURES = 5


@method_class
class LAGNN(Aggregator):
    """A graph network over tasks, workers and labels, trained on the tasks that the crowd is sure of (experimental).

    This is a reading of the paper's abstract, not its program: the abstract names graph convolutions over five
    correlations, groups of good workers found by similar labelling, and a little injected truth. Here, every (worker,
    label) pair r, l that occurs gets a weight s_rl from a small network f, and classes are scored by weighted votes:

        b_i = softmax_k Σ_{r: y_ir = k} s_rk,   s_rl = 1 + f(a_rl, a_r, c_r, log n_rl, log n_r)

    a_rl is how far the tasks that r called l agree (mean of b_i(l)), a_r the same over all that r said, c_r the mean of a
    over the company that r keeps (those who voted on the same tasks). ``rounds`` such convolutions follow each other,
    from the shares of votes. f learns to say what the crowd is sure of, the ``confident`` share of tasks with the
    clearest votes, when one voter at a time is left out; tasks of known truth join them.

    Choose it to compare with; gold for some tasks helps it. Clear tasks teach little, since whoever is left says the same:
    of eleven public crowds it beats majority vote on seven (music genres .78 to .70) and loses on two (textual
    entailment .88 to .90), with every parameter as it stands here. `OneCoin` is quicker and mostly better. It treats
    all classes alike, and sees leanings of a worker only through a_rl. Needs torch. No figure of the paper is
    reproduced, since none could be read.

    >>> from wisecrowd import LAGNN
    >>> LAGNN(rounds=3)  # LAGNN(rounds=3).fit(crowd).labels_ needs torch
    LAGNN(rounds=3)
    """

    references: ClassVar[tuple[str, ...]] = ("ying2024little",)
    monotone: ClassVar[bool] = False

    rounds: int = parameter(default=2, help="graph convolutions, one after the other")
    hidden: int = parameter(default=16, help="width of the network that weighs votes")
    confident: float = parameter(default=0.5, help="share of tasks to learn from: those with the clearest votes")
    max_iter: int = parameter(default=100, help="steps of training (Adam, all votes at once)")
    learning_rate: float = parameter(default=0.02, help="size of a step")
    decay: float = parameter(default=1e-3, help="ridge on the network's coefficients")
    random_state: int = parameter(default=0, help="seed of the network's first coefficients")

    def _fit(self, crowd: Crowd, gold: NDArray[np.int32] | None, *, X: Any, start: Any) -> None:
        self._check(start)
        torch = need_torch("graph networks")
        with threads(1):
            graph = _Graph(torch, crowd, gold)
            rounds = self._untrained(torch)
            self.trace_ = np.asarray(self._train(graph, rounds, *self._lessons(crowd, graph, gold)))
            with torch.no_grad():
                belief = torch.softmax(graph.scores(rounds)[0], dim=1).numpy().copy()
        self.n_iter_ = len(self.trace_)
        self._set_fitted(crowd, apply_gold(belief, gold))

    def _untrained(self, torch: ModuleType) -> list[list[Any]]:
        """Coefficients of f for every round, drawn so that all votes weigh about the same."""
        rng = np.random.default_rng(self.random_state)
        shapes = {(N_FEATURES, self.hidden): N_FEATURES**-0.5, (self.hidden,): 0.1, (self.hidden, 1): 0.1}
        return [
            [torch.tensor(rng.normal(0, scale, shape), requires_grad=True) for shape, scale in shapes.items()]
            for _ in range(self.rounds)
        ]

    def _train(self, graph: _Graph, rounds: list[list[Any]], case: Any, target: Any) -> list[float]:
        """Change the coefficients until the voters who are left say what they should; minus the loss at every step."""
        trace: list[float] = []
        if not len(case):
            return trace
        torch = graph.torch
        layers = [layer for coefficients in rounds for layer in coefficients]
        optimiser = torch.optim.Adam(layers, lr=self.learning_rate, weight_decay=self.decay)
        for step in range(self.max_iter):
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(graph.scores(rounds)[1][case], target)
            loss.backward()
            optimiser.step()
            trace.append(-float(loss.detach()))
            progress.report("LAGNN", step + 1, self.max_iter, f"loss {-trace[-1]:.4f}")
        return trace

    def _check(self, start: Any) -> None:
        if start is not None:
            raise UsageError("LAGNN starts from the votes; leave start out")
        if min(self.rounds, self.hidden, self.max_iter) < 1:
            raise UsageError("rounds, hidden and max_iter must be 1 or more; "
                             f"got {self.rounds}, {self.hidden}, {self.max_iter}")  # fmt: skip
        if not 0 < self.confident <= 1:
            raise UsageError(f"confident must be a share of the tasks, above 0 and at most 1; got {self.confident}")

    def _lessons(self, crowd: Crowd, graph: _Graph, gold: NDArray[np.int32] | None) -> tuple[Any, Any]:
        """Voters to leave out, and what the others should say of the task: its clear majority, or its known truth."""
        shares = vote_shares(crowd)
        target = shares.argmax(axis=1)
        best, second = np.sort(np.pad(shares, ((0, 0), (1, 0))), axis=1)[:, [-1, -2]].T
        clear = best - second
        shared = np.bincount(graph.voter_task, minlength=crowd.n_tasks) > 1
        # All tasks that are as clear as the last of them, so that no order of tasks decides.
        least = np.quantile(clear[shared], 1 - self.confident) if shared.any() else 1.0
        chosen = shared & (clear >= least) & (clear > 0)
        if gold is not None:
            target = np.where(gold >= 0, gold, target)
            chosen |= shared & (gold >= 0)
        case = np.flatnonzero(chosen[graph.voter_task])
        return graph.tensor(case), graph.tensor(target[graph.voter_task[case]].astype(np.int64))


class _Graph:
    """The votes as edges, and what is computed along them."""

    def __init__(self, torch: ModuleType, crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        assert crowd.worker is not None
        self.torch, self.tensor = torch, torch.from_numpy
        pairs = crowd.pairs
        self.n_tasks, self.n_workers, self.n_pairs = crowd.n_tasks, crowd.n_workers, len(pairs)
        self.n_classes = crowd.n_classes
        # A voter is a worker on a task, once, however many rows there are: all of them are left out together.
        new = np.diff(crowd.task, prepend=-1).astype(bool) | np.diff(crowd.worker, prepend=-1).astype(bool)
        self.voter_task = crowd.task[new].astype(np.int64)
        self.task, self.worker, self.label, self.pair, self.pair_worker, self.voter, self.task_of_voter = map(
            self._index,
            (crowd.task, crowd.worker, crowd.label, pairs.of_vote, pairs.worker, np.cumsum(new) - 1, self.voter_task),
        )
        self.weight = self.tensor(np.array(crowd.weight, dtype=np.float64))
        self.known = None if gold is None else self.tensor(np.flatnonzero(gold >= 0))
        self.belief = self.tensor(apply_gold(vote_shares(crowd), gold))
        self.pair_size, self.worker_size, self.task_size = (
            self._sum(index, size, self.weight)
            for index, size in ((self.pair, self.n_pairs), (self.worker, self.n_workers), (self.task, self.n_tasks))
        )

    def _index(self, codes: NDArray[Any]) -> Any:
        return self.tensor(np.array(codes, dtype=np.int64))

    def _sum(self, index: Any, size: int, values: Any) -> Any:
        return self.torch.zeros(size, dtype=self.torch.float64).index_add(0, index, values)

    def _mean(self, index: Any, total: Any, values: Any) -> Any:
        """Weighted mean of the votes' values by index; zero where there are no votes."""
        return self._sum(index, len(total), self.weight * values) / total.clamp_min(1e-300)

    def features(self, belief: Any) -> Any:
        """What is told of every (worker, label) pair: a_rl, a_r, c_r, log n_rl, log n_r."""
        agreed = belief[self.task, self.label]
        by_pair = self._mean(self.pair, self.pair_size, agreed)
        by_worker = self._mean(self.worker, self.worker_size, agreed)
        by_task = self._mean(self.task, self.task_size, by_worker[self.worker])
        company = self._mean(self.worker, self.worker_size, by_task[self.task])
        sizes = (self.pair_size.log1p() / 5, self.worker_size.log1p()[self.pair_worker] / 5)
        return self.torch.stack([by_pair, by_worker[self.pair_worker], company[self.pair_worker], *sizes], dim=1)

    def scores(self, rounds: list[list[Any]]) -> tuple[Any, Any]:
        """Of every class: by task (tasks, classes), and by voter when that voter is left out (voters, classes)."""
        belief = self.belief
        for number, (first, shift, last) in enumerate(rounds):
            told = self.torch.tanh(self.features(belief) @ first + shift)
            pull = self.weight * (1 + (told @ last)[:, 0])[self.pair]
            cell = self._sum(self.task * self.n_classes + self.label, self.n_tasks * self.n_classes, pull)
            by_task = cell.reshape(self.n_tasks, self.n_classes)
            if number + 1 < len(rounds):
                belief = self.torch.softmax(by_task, dim=1)
                if self.known is not None:
                    belief = belief.index_copy(0, self.known, self.belief[self.known])
        own = self._sum(self.voter * self.n_classes + self.label, len(self.voter_task) * self.n_classes, pull)
        return by_task, by_task[self.task_of_voter] - own.reshape(-1, self.n_classes)
