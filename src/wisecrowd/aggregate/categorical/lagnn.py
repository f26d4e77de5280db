"""LAGNN: a small graph network that learns the weights of votes (experimental)."""

from __future__ import annotations

from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.initialization import apply_gold, compute_vote_shares
from wisecrowd.errors import UsageError
from wisecrowd.nn.backend import import_torch, limit_threads
from wisecrowd.utils import progress

#: Number of features of a (worker, label) pair; see `_VoteGraph.compute_features`.
N_FEATURES = 5


@method_class
class LAGNN(Aggregator):
    """Graph network over tasks, workers and labels, trained on tasks with clear votes (experimental).

    Every (worker, label) pair r, l that occurs has a weight s_rl from a small network f, and classes are scored by weighted
    votes:

        b_i = softmax_k Σ_{r: y_ir = k} s_rk,   s_rl = 1 + f(a_rl, a_r, c_r, log n_rl, log n_r)

    a_rl is the mean of b_i(l) over the tasks that r labelled l, a_r the same over all votes of r, and c_r the mean of a
    over the workers who voted on the same tasks. ``rounds`` such convolutions follow each other, starting from the vote
    shares. f is trained to predict the majority of the ``confident`` share of tasks with the clearest votes when one voter
    at a time is left out; gold tasks join them.

    **This implementation follows an abstract.** *Published*: a deep graph network with convolutions that models five
    correlations of an annotation task, a group of good workers found by similar labelling that revises preferences among
    workers, an unsupervised mode, and a mode with a little injected truth. *Guesses*: which five correlations, the nodes and
    edges of the graph, its layers, the loss and the targets of the unsupervised mode; here five features of a worker and
    label stand for them, and the clearest tasks teach the network.

    Choose it for comparisons; gold improves it. Clear tasks teach little, since the remaining voters mostly agree. `OneCoin` is
    faster and mostly more accurate. It treats all classes alike. Requires torch.

    Examples
    --------
    >>> from wisecrowd import LAGNN
    >>> LAGNN(rounds=3)  # LAGNN(rounds=3).fit(crowd).labels_ needs torch
    LAGNN(rounds=3)
    """

    references: ClassVar[tuple[str, ...]] = ("ying2024little",)
    monotone: ClassVar[bool] = False

    rounds: int = parameter(default=2, help="Number of graph convolutions.")
    hidden: int = parameter(default=16, help="Width of the network that weighs votes.")
    confident: float = parameter(default=0.5, help="Share of tasks to train on: those with the clearest votes.")
    max_iter: int = parameter(default=100, help="Number of training steps (Adam, all votes at once).")
    learning_rate: float = parameter(default=0.02, help="Learning rate.")
    decay: float = parameter(default=1e-3, help="Weight decay of the network's coefficients.")
    random_state: int = parameter(default=0, help="Seed of the network's first coefficients.")

    trace_: NDArray[np.float64] = fitted(help="Minus the training loss at every step.", shape=("n_iter",))
    n_iter_: int = fitted(help="Number of training steps.")

    def _fit(self, crowd: Crowd, gold: NDArray[np.int32] | None, *, X: Any, start: Any) -> None:
        self._check_parameters(start)
        torch = import_torch("graph networks")
        with limit_threads(1):
            graph = _VoteGraph(torch, crowd, gold)
            rounds = self._draw_coefficients(torch)
            self.trace_ = np.asarray(self._train(graph, rounds, *self._make_training_set(crowd, graph, gold)))
            with torch.no_grad():
                posterior = torch.softmax(graph.compute_scores(rounds)[0], dim=1).numpy().copy()
        self.n_iter_ = len(self.trace_)
        self._set_fitted(crowd, apply_gold(posterior, gold))

    def _draw_coefficients(self, torch: ModuleType) -> list[list[Any]]:
        """Return random coefficients of f for every round, with which all votes have about the same weight."""
        rng = np.random.default_rng(self.random_state)
        shapes = {(N_FEATURES, self.hidden): N_FEATURES**-0.5, (self.hidden,): 0.1, (self.hidden, 1): 0.1}
        return [
            [torch.tensor(rng.normal(0, scale, shape), requires_grad=True) for shape, scale in shapes.items()]
            for _ in range(self.rounds)
        ]

    def _train(self, graph: _VoteGraph, rounds: list[list[Any]], voters: Any, target: Any) -> list[float]:
        """Train the coefficients and return minus the loss at every step."""
        trace: list[float] = []
        if not len(voters):
            return trace
        torch = graph.torch
        layers = [layer for coefficients in rounds for layer in coefficients]
        optimiser = torch.optim.Adam(layers, lr=self.learning_rate, weight_decay=self.decay)
        # Training makes a fixed number of full-batch steps, so the shared loops do not apply.
        for step in range(self.max_iter):
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(graph.compute_scores(rounds)[1][voters], target)
            loss.backward()
            optimiser.step()
            trace.append(-float(loss.detach()))
            progress.report("LAGNN", step + 1, self.max_iter, f"loss {-trace[-1]:.4f}")
        return trace

    def _check_parameters(self, start: Any) -> None:
        """Raise an error if a parameter is out of range."""
        if start is not None:
            raise UsageError("LAGNN starts from the votes; leave start out")
        if min(self.rounds, self.hidden, self.max_iter) < 1:
            raise UsageError("rounds, hidden and max_iter must be 1 or more; "
                             f"got {self.rounds}, {self.hidden}, {self.max_iter}")  # fmt: skip
        if not 0 < self.confident <= 1:
            raise UsageError(f"confident must be a share of the tasks, above 0 and at most 1; got {self.confident}")

    def _make_training_set(self, crowd: Crowd, graph: _VoteGraph, gold: NDArray[np.int32] | None) -> tuple[Any, Any]:
        """Return the voters to leave out, and the target of the others: the clear majority of the task, or its gold."""
        shares = compute_vote_shares(crowd)
        target = shares.argmax(axis=1)
        best, second = np.sort(np.pad(shares, ((0, 0), (1, 0))), axis=1)[:, [-1, -2]].T
        margin = best - second
        has_several = np.bincount(graph.voter_task, minlength=crowd.n_tasks) > 1
        # All tasks at the threshold are included, so that the order of tasks does not matter.
        threshold = np.quantile(margin[has_several], 1 - self.confident) if has_several.any() else 1.0
        chosen = has_several & (margin >= threshold) & (margin > 0)
        if gold is not None:
            target = np.where(gold >= 0, gold, target)
            chosen |= has_several & (gold >= 0)
        voters = np.flatnonzero(chosen[graph.voter_task])
        return graph.tensor(voters), graph.tensor(target[graph.voter_task[voters]].astype(np.int64))


class _VoteGraph:
    """Votes as edges between tasks, workers and labels, and the convolutions along them."""

    def __init__(self, torch: ModuleType, crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        assert crowd.worker is not None
        self.torch, self.tensor = torch, torch.from_numpy
        pairs = crowd.pairs
        self.n_tasks, self.n_workers, self.n_pairs = crowd.n_tasks, crowd.n_workers, len(pairs)
        self.n_classes = crowd.n_classes
        # A voter is one worker on one task, however many rows there are: all of them are left out together.
        is_first = np.diff(crowd.task, prepend=-1).astype(bool) | np.diff(crowd.worker, prepend=-1).astype(bool)
        self.voter_task = crowd.task[is_first].astype(np.int64)
        voter = np.cumsum(is_first) - 1
        self.task, self.worker, self.label, self.pair, self.pair_worker, self.voter, self.task_by_voter = map(
            self._make_index,
            (crowd.task, crowd.worker, crowd.label, pairs.vote_pairs, pairs.worker, voter, self.voter_task),
        )
        self.weight = self.tensor(np.array(crowd.weight, dtype=np.float64))
        self.gold_tasks = None if gold is None else self.tensor(np.flatnonzero(gold >= 0))
        self.first_posterior = self.tensor(apply_gold(compute_vote_shares(crowd), gold))
        self.pair_size, self.worker_size, self.task_size = (
            self._sum(index, size, self.weight)
            for index, size in ((self.pair, self.n_pairs), (self.worker, self.n_workers), (self.task, self.n_tasks))
        )

    def _make_index(self, codes: NDArray[Any]) -> Any:
        """Return codes as an index tensor."""
        return self.tensor(np.array(codes, dtype=np.int64))

    def _sum(self, index: Any, size: int, values: Any) -> Any:
        """Return the sum of values by index."""
        return self.torch.zeros(size, dtype=self.torch.float64).index_add(0, index, values)

    def _compute_mean(self, index: Any, total: Any, values: Any) -> Any:
        """Return the weighted mean of the votes' values by index; zero without votes."""
        return self._sum(index, len(total), self.weight * values) / total.clamp_min(1e-300)

    def compute_features(self, posterior: Any) -> Any:
        """Compute a_rl, a_r, c_r, log n_rl and log n_r of every (worker, label) pair.

        Parameters
        ----------
        posterior : Tensor of shape (n_tasks, n_classes)
            Posterior b.

        Returns
        -------
        Tensor of shape (n_pairs, 5)
        """
        support = posterior[self.task, self.label]
        by_pair = self._compute_mean(self.pair, self.pair_size, support)
        by_worker = self._compute_mean(self.worker, self.worker_size, support)
        by_task = self._compute_mean(self.task, self.task_size, by_worker[self.worker])
        company = self._compute_mean(self.worker, self.worker_size, by_task[self.task])
        sizes = (self.pair_size.log1p() / 5, self.worker_size.log1p()[self.pair_worker] / 5)
        return self.torch.stack([by_pair, by_worker[self.pair_worker], company[self.pair_worker], *sizes], dim=1)

    def compute_scores(self, rounds: list[list[Any]]) -> tuple[Any, Any]:
        """Compute class scores by task, and by voter when that voter is left out.

        Parameters
        ----------
        rounds : list of list of Tensor
            Coefficients of f in every round.

        Returns
        -------
        by_task : Tensor of shape (n_tasks, n_classes)
        by_voter : Tensor of shape (n_voters, n_classes)
        """
        posterior = self.first_posterior
        for number, (first, shift, last) in enumerate(rounds):
            hidden = self.torch.tanh(self.compute_features(posterior) @ first + shift)
            vote_weight = self.weight * (1 + (hidden @ last)[:, 0])[self.pair]
            cell = self._sum(self.task * self.n_classes + self.label, self.n_tasks * self.n_classes, vote_weight)
            by_task = cell.reshape(self.n_tasks, self.n_classes)
            if number + 1 < len(rounds):
                posterior = self.torch.softmax(by_task, dim=1)
                if self.gold_tasks is not None:
                    posterior = posterior.index_copy(0, self.gold_tasks, self.first_posterior[self.gold_tasks])
        voter_cell = self.voter * self.n_classes + self.label
        own = self._sum(voter_cell, len(self.voter_task) * self.n_classes, vote_weight)
        return by_task, by_task[self.task_by_voter] - own.reshape(-1, self.n_classes)
