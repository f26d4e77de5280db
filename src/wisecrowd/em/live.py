"""Votes that come one after the other: what they say now, at the cost of the tasks that they are on.

`ConfusionEM.partial_fit` makes the same step with whole crowds, and so at the cost of all votes; here everything is kept
where the next vote will change it. Tasks, workers and classes are numbers from 0 on, and whoever has names keeps them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.em import incremental as online
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.em.vote_buffers import Cast, Growing
from wisecrowd.errors import UsageError
from wisecrowd.kernels import reference as kernels

Numbers = NDArray[np.float64]
Codes = NDArray[np.int64]
#: Task -> worker -> label: all votes that stand on some tasks.
Votes = Mapping[int, Mapping[int, int]]

_NOBODY: dict[int, int] = {}
#: What a method must not do in a way of its own for its votes to be followed one by one.
_PLAIN = ("_predictive_label_probs", "_fold", "_statistics", "_expect")


@dataclass(frozen=True, kw_only=True, eq=False)
class Doubt:
    """What tempers how sure a model is, as found by hiding votes from it (see `wisecrowd.diagnose.plan`).

    >>> Doubt(prior=np.full(2, 0.5), toward=np.eye(2), strength=1.0, exponent=0.5, tally=np.zeros((0, 2))).exponent
    0.5
    """

    prior: Numbers
    #: The matrix of the crowd (true, said), and how many votes of a worker it outweighs.
    toward: Numbers
    strength: float
    exponent: float
    #: By pair, what the *other* votes on its tasks say: (pairs, true).
    tally: Numbers


@dataclass(frozen=True, kw_only=True, eq=False)
class Known:
    """What a fit to all votes left behind: the votes by task, the tally by pair, and the posterior.

    >>> from wisecrowd import Crowd, DawidSkene
    >>> crowd = Crowd.from_triples([(t, w, t % 2) for t in range(8) for w in range(3)])
    >>> Known.of(DawidSkene().fit(crowd), crowd).posterior.shape
    (8, 2)
    """

    offset: Codes
    worker: NDArray[np.int32]
    label: NDArray[np.int32]
    pair_worker: NDArray[np.int32]
    pair_label: NDArray[np.int32]
    tally: Numbers
    posterior: Numbers
    n_workers: int
    #: By which method; None where it is the one that is there already.
    method: ConfusionEM | None = None
    doubt: Doubt | None = None
    #: Of each task, the posterior that `doubt` leaves.
    belief: Numbers | None = None

    @classmethod
    def of(cls, fitted: Any, crowd: Any, doubt: Doubt | None = None, belief: Numbers | None = None) -> Known:
        """From a fitted method and the crowd that it was fitted to.

        The tally is that of the posterior, and not the one of a step before, which the fit itself keeps: what is taken away
        when a task changes must be what it had added.
        """
        posterior = np.asarray(fitted.posterior_, dtype=np.float64)
        pairs = crowd.pairs
        return cls(
            offset=crowd.offset, worker=crowd.worker, label=crowd.label, pair_worker=pairs.worker,
            pair_label=pairs.label, tally=kernels.tally(crowd.layout, posterior), posterior=posterior,
            n_workers=crowd.n_workers, method=fitted.unfitted(), doubt=doubt, belief=belief,
        )  # fmt: skip

    @classmethod
    def nothing(cls, n_classes: int) -> Known:
        """Before the first vote."""
        none, table = np.empty(0, dtype=np.int32), np.empty((0, n_classes))
        return cls(
            offset=np.zeros(1, dtype=np.int64), worker=none, label=none, pair_worker=none, pair_label=none,
            tally=table, posterior=table, n_workers=0,
        )  # fmt: skip


@dataclass(eq=False)
class Live:
    """A crowd that grows, and what a model of worker confusion makes of it after every change.

    A change is one step of incremental EM (Neal and Hinton 1998): the tasks that it touches are inferred by what is known of
    the workers, and what they say of the workers then takes the place of what they said before. It equals ``partial_fit``
    with the same votes, and costs what was voted on these tasks. What is fitted to all votes elsewhere, by this method or by
    another, is taken over with `hold`; from then on it is as if that fit had been made here.

    >>> from wisecrowd import DawidSkene
    >>> live = Live(DawidSkene(), n_classes=2)
    >>> live.change({0: {7: 1, 8: 1}, 1: {7: 0}})
    >>> live.posterior.argmax(axis=1).tolist(), live.n_votes
    ([1, 0], 3)
    >>> live.change({1: {7: 0, 8: 1, 9: 1}})
    >>> bool(live.posterior[1, 1] > 0.5)
    True
    """

    method: ConfusionEM
    n_classes: int = 1
    known: Known = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._gold: dict[int, int] = {}
        self._follow(self.method)
        self.hold(Known.nothing(self.n_classes))

    # ------------------------------------------------------------------ what there is

    @property
    def posterior(self) -> Numbers:
        """The posterior of each task, (tasks, classes); a task without votes has the prior of when it was met."""
        return self._posterior.rows

    @property
    def belief(self) -> Numbers:
        """The same with no more confidence than hidden votes bear out; as sure as the model before the first fit."""
        return self._belief.rows

    @property
    def n_votes(self) -> int:
        """How many votes count."""
        return self._n_votes

    @property
    def votes_per_task(self) -> NDArray[np.int64]:
        """How many votes each task has."""
        return self._counts.rows[:, 0]

    @property
    def gold(self) -> Mapping[int, int]:
        """Tasks of known truth."""
        return self._gold

    def votes_on(self, task: int) -> Mapping[int, int]:
        """Worker -> label, as it stands."""
        found = self._changed.get(task)
        if found is not None:
            return found
        if task + 1 >= len(self.known.offset):
            return _NOBODY
        rows = slice(self.known.offset[task], self.known.offset[task + 1])
        return dict(zip(self.known.worker[rows].tolist(), self.known.label[rows].tolist(), strict=True))

    def workers(self) -> tuple[Numbers, Numbers]:
        """Votes and accuracy of each worker, as ``workers_`` of a fitted method has them."""
        worker, label = self._pair_worker.rows[:, 0], self._pair_label.rows[:, 0]
        n = int(worker.max(initial=-1)) + 1
        tally = self._tally.rows
        right = np.bincount(worker, tally[np.arange(len(label)), label], minlength=n)
        total: Numbers = np.bincount(worker, tally.sum(axis=1), minlength=n).astype(np.float64)
        right_before, total_before = self.method._pseudo_votes(self.n_classes)
        return total, (right + right_before) / (total + total_before)

    def confusion_of(self, worker: int) -> Numbers:
        """What a worker says when each class is true, drawn toward the crowd's where votes are few: (true, said)."""
        label = np.arange(self.n_classes, dtype=np.int64)
        doubt = self.known.doubt
        if doubt is None:
            pairs = worker * self.n_classes + label
            return np.asarray(self._label_probs(pairs).T)
        label_probs = self._doubted(np.full(self.n_classes, worker), label)
        return np.asarray(label_probs.T / label_probs.T.sum(axis=1, keepdims=True))

    # ------------------------------------------------------------------ what changes it

    def hold(self, known: Known, since: Votes | None = None) -> None:
        """Take over a fit to all votes; ``since`` are those on tasks that changed while it was made, as they stand now."""
        self.known = known
        if known.method is not None:
            self._follow(known.method)
        n_tasks = len(known.offset) - 1
        counts = np.diff(known.offset)
        voted = counts > 0
        self._changed: dict[int, Mapping[int, int]] = {}
        self._posterior, self._counts = Growing(known.posterior), Growing(counts[:, None])
        self._belief = Growing(known.posterior if known.belief is None else known.belief)
        self._tally = Growing(known.tally)
        self._pair_worker = Growing(known.pair_worker[:, None].astype(np.int64))
        self._pair_label = Growing(known.pair_label[:, None].astype(np.int64))
        self._first = np.searchsorted(known.pair_worker, np.arange(known.n_workers + 1))
        self._later: dict[int, dict[int, int]] = {}  # worker -> label -> row of the tally, for pairs that came later
        self._n_votes = int(counts.sum())
        self._pooled = np.zeros((known.posterior.shape[1], known.posterior.shape[1]))
        np.add.at(self._pooled, known.pair_label, known.tally)
        self._totals = known.posterior[voted].sum(axis=0) if n_tasks else np.zeros(known.posterior.shape[1])
        doubt = known.doubt
        self._held_pairs = known.pair_worker.astype(np.int64) * known.posterior.shape[1] + known.pair_label
        if doubt is not None:
            self._base_total = np.zeros((known.n_workers, len(doubt.prior)))
            np.add.at(self._base_total, known.pair_worker, doubt.tally)
        n_classes, self.n_classes = max(self.n_classes, known.posterior.shape[1]), known.posterior.shape[1]
        self.widen(n_classes)
        if since:
            self.change(since)

    def widen(self, n_classes: int) -> None:
        """Let there be more classes; nothing is known of the new ones until somebody votes for them."""
        more = n_classes - self.n_classes
        if more <= 0:
            return
        self._posterior, self._belief, self._tally = (
            each.wider(more) for each in (self._posterior, self._belief, self._tally)
        )
        self._pooled = np.pad(self._pooled, ((0, more), (0, more)))
        self._totals = np.pad(self._totals, (0, more))
        self.n_classes = n_classes

    def expect(self, n_tasks: int) -> None:
        """Let there be tasks up to this number; those that nobody voted on have the prior."""
        more = n_tasks - len(self.posterior)
        if more > 0:
            prior = self._prior()
            prior = np.repeat(prior[None] / prior.sum(), more, axis=0)
            self._posterior.append(prior)
            self._belief.append(prior)
            self._counts.append(np.zeros((more, 1), dtype=np.int64))

    def know(self, truth: Mapping[int, int | None]) -> None:
        """Truth of some tasks; None takes it back."""
        for task, label in truth.items():
            if label is None:
                self._gold.pop(task, None)
            else:
                self._gold[task] = label
        self.change({task: self.votes_on(task) for task in truth})

    def change(self, votes: Votes) -> None:
        """Take in what now stands on some tasks, with all their votes, of new workers and old ones."""
        if not votes:
            return
        self.widen(1 + max((label for cast in votes.values() for label in cast.values()), default=-1))
        self.widen(1 + max((self._gold[task] for task in votes if task in self._gold), default=-1))
        self.expect(1 + max(votes))
        tasks = np.fromiter(votes, dtype=np.int64, count=len(votes))
        before = Cast.of(self.votes_on(task) for task in votes)
        after = Cast.of(votes.values())
        label_probs = self._label_probs(after.worker * self.n_classes + after.label)
        posterior = self._clamped(tasks, after.posterior(self._prior(), label_probs))
        self._count(before, self._posterior.rows[tasks], -1.0)
        self._count(after, posterior, 1.0)
        self._posterior.rows[tasks] = posterior
        self._belief.rows[tasks] = self._tempered(tasks, after, posterior)
        self._counts.rows[tasks, 0] = after.count
        self._n_votes += len(after.worker) - len(before.worker)
        self._changed.update((task, dict(cast)) for task, cast in votes.items())

    # ------------------------------------------------------------------ inside

    def _follow(self, method: ConfusionEM) -> None:
        kind = type(method)
        if any(getattr(kind, name) is not getattr(ConfusionEM, name) for name in _PLAIN):
            raise UsageError(
                f"{method.name} has more to learn than a matrix for each worker, and cannot follow votes one by one; "
                "use dawid-skene, ibcc, lfc, one-coin, hds or zencrowd"
            )
        if not isinstance(method.prior, str):
            raise UsageError("classes may come later, so that the prior cannot be given; use 'estimate' or 'uniform'")
        self.method = method.unfitted()

    def _prior(self) -> Numbers:
        totals = self._totals
        if not totals.sum() > 0:
            return np.full(self.n_classes, 1 / self.n_classes)
        # A class that came after the fit has half a task to begin with; with none it could never win one.
        totals = np.where(totals > 0, totals, 0.5)
        self.method.classes_ = pd.RangeIndex(self.n_classes)
        return self.method._class_prior(totals)

    def _clamped(self, tasks: Codes, posterior: Numbers) -> Numbers:
        for place, task in enumerate(tasks.tolist()):
            if task in self._gold:
                posterior[place] = np.eye(self.n_classes)[self._gold[task]]
        return posterior

    def _count(self, cast: Cast, posterior: Numbers, sign: float) -> None:
        """Add what the posterior of some tasks says of their workers, or take it away."""
        rows = self._rows(cast.worker, cast.label)
        share = sign * posterior[cast.place]
        np.add.at(self._tally.rows, rows, share)
        np.add.at(self._pooled, cast.label, share)
        self._totals += sign * posterior[cast.count > 0].sum(axis=0)
        if sign < 0:  # what was added and taken away again may leave less than nothing, by rounding
            self._tally.rows[rows] = np.maximum(self._tally.rows[rows], 0.0)
            np.maximum(self._pooled, 0.0, out=self._pooled)
            np.maximum(self._totals, 0.0, out=self._totals)

    def _rows(self, worker: Codes, label: Codes) -> Codes:
        """Where in the tally some pairs are counted; new ones get a place."""
        found = self._held(worker, label)
        for n in np.flatnonzero(found < 0).tolist():
            found[n] = self._later_row(int(worker[n]), int(label[n]))
        return found

    def _held(self, worker: Codes, label: Codes) -> Codes:
        """Where in the tally of the last fit some pairs are; −1 of those that came later."""
        if not len(self._held_pairs):
            return np.full(len(worker), -1, dtype=np.int64)
        n_classes = self.known.posterior.shape[1]
        wanted = np.where(label < n_classes, worker * n_classes + label, -1)
        place = np.minimum(np.searchsorted(self._held_pairs, wanted), len(self._held_pairs) - 1)
        return np.where(self._held_pairs[place] == wanted, place, -1)

    def _later_row(self, worker: int, label: int) -> int:
        theirs = self._later.setdefault(worker, {})
        if label not in theirs:
            theirs[label] = len(self._tally.rows)
            self._tally.append(np.zeros((1, self.n_classes)))
            self._pair_worker.append(np.array([[worker]]))
            self._pair_label.append(np.array([[label]]))
        return theirs[label]

    def _label_probs(self, wanted: Codes) -> Numbers:
        """What the E-step needs for some pairs, worker·K + label."""
        rows: list[int] = []
        for worker in np.unique(wanted // self.n_classes).tolist():
            if worker < self.known.n_workers:
                rows.extend(range(self._first[worker], self._first[worker + 1]))
            rows.extend(self._later.get(worker, {}).values())
        counted = np.array(rows, dtype=np.int64)
        known = self._pair_worker.rows[counted, 0] * self.n_classes + self._pair_label.rows[counted, 0]
        pairs, place = np.unique(wanted, return_inverse=True)
        return np.asarray(
            online.label_probs_of_pairs(self.method, known, self._tally.rows[counted], pairs, self._pooled)[place]
        )

    def _tempered(self, tasks: Codes, cast: Cast, posterior: Numbers) -> Numbers:
        """The posterior by matrices that are drawn toward the crowd's, to the power that hidden votes ask for."""
        doubt = self.known.doubt
        if doubt is None:
            return posterior
        prior = np.pad(doubt.prior, (0, self.n_classes - len(doubt.prior)), constant_values=1e-6)
        belief = cast.posterior(prior / prior.sum(), self._doubted(cast.worker, cast.label))
        voted = cast.count > 0
        belief[voted] = belief[voted] ** doubt.exponent
        return self._clamped(tasks, belief / belief.sum(axis=1, keepdims=True))

    def _doubted(self, worker: Codes, label: Codes) -> Numbers:
        """P(worker says label | true class) as `Doubt` has it, (votes, true)."""
        doubt = self.known.doubt
        assert doubt is not None
        place = self._held(worker, label)
        counted = np.where((place >= 0)[:, None], doubt.tally[place], 0.0)
        total = np.where(
            (worker < self.known.n_workers)[:, None],
            self._base_total[np.minimum(worker, self.known.n_workers - 1)],
            0.0,
        )
        toward, more = doubt.toward, self.n_classes - len(doubt.prior)
        if more:  # classes that came after the fit
            toward = np.pad(toward, (0, more), constant_values=1 / self.n_classes)
            counted, total = (np.pad(each, ((0, 0), (0, more))) for each in (counted, total))
        return np.asarray((counted + doubt.strength * toward.T[label]) / (total + doubt.strength))
