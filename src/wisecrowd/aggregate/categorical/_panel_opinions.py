"""Groups that have an opinion of their own on every task: what their members' votes say, taken together.

A member of a group repeats the group's opinion with a probability of its own, and answers for itself otherwise. Given the
truth, the votes of a group depend on each other through the opinion only, and the opinion can be summed over exactly:

    P(votes of g on i | z_i = k) = Π_r own_r[k, y_ir] · Σ_m σ_g[k, m] Π_{r: y_ir = m} alike_r[k, m] / own_r[k, m]

with own = (1 − a) π, the probability of saying so for oneself, and alike = a + (1 − a) π, that of saying so where it is the
group's opinion, too. An opinion that nobody voiced leaves the product at one: the sum runs over what was said, and costs votes
x classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.em.initialization import apply_gold
from wisecrowd.engines.local import LocalEngine
from wisecrowd.kernels.reference import LEAST, Expectation

Numbers = NDArray[np.float64]
Codes = NDArray[np.int64]


class Tables(NamedTuple):
    """Two tables over (worker, label) pairs and one over groups, which travel through an iteration as one array.

    Of statistics: votes that a worker gave for itself and that repeat the opinion, by class, and opinions by class. Of
    parameters: ``own``, ``alike`` and σ, as above.

    >>> tables = Tables(np.zeros((3, 2)), np.ones((3, 2)), np.ones((1, 2, 2)))
    >>> tables.packed().shape, Tables.of(tables.packed(), 3).opinion.shape
    ((5, 4), (1, 2, 2))
    """

    own: Numbers
    """(pairs, classes)."""
    alike: Numbers
    """(pairs, classes)."""
    opinion: Numbers
    """(groups, opinions, classes): the true class is last, as in the others."""

    def packed(self) -> Numbers:
        """One array: a row for each pair, and then one for each group and opinion."""
        groups = self.opinion.reshape(-1, self.opinion.shape[2])
        return np.concatenate([np.concatenate(self[:2], axis=1), np.pad(groups, ((0, 0), (0, groups.shape[1])))])

    @classmethod
    def of(cls, packed: NDArray[Any], n_pairs: int) -> Tables:
        """The parts of such an array, as views."""
        n_classes = packed.shape[1] // 2
        rows = packed[:n_pairs]
        groups = packed[n_pairs:, :n_classes].reshape(-1, n_classes, n_classes)
        return cls(rows[:, :n_classes], rows[:, n_classes:], groups)


@dataclass(frozen=True, eq=False)
class Sayings:
    """Who of a group said the same of a task: votes, within sayings, within cells of a task and a group.

    >>> crowd = Crowd.from_triples([("t1", worker, label) for worker, label in zip("abcd", "xxyx")])
    >>> label_probs = Sayings.of(crowd, np.array([0, 0, 0, -1]))  # d is in no group
    >>> label_probs.vote.tolist(), label_probs.label.tolist(), label_probs.cell.tolist()
    ([0, 1, 2], [0, 1], [0, 0])
    """

    vote: Codes
    """Rows of the crowd that members of groups cast, in the order of sayings."""
    of_vote: Codes
    """The saying of each of these."""
    label: Codes
    """What was said, of each saying."""
    cell: Codes
    """The cell of each saying; cells are in the order of tasks."""
    task: Codes
    """Of each cell."""
    group: Codes
    """Of each cell."""
    begins: Codes
    """The first saying of each cell."""
    by_pair: Any
    """Sayings x pairs, sparse, with the weights of votes."""
    by_task: Any
    """Tasks x cells, sparse."""

    @classmethod
    def of(cls, crowd: Crowd, group: NDArray[np.int32]) -> Sayings:
        """The votes of workers whose ``group`` is not −1."""
        theirs = group[crowd.worker_codes].astype(np.int64)
        rows = np.flatnonzero(theirs >= 0)
        n_groups, n_classes = int(group.max(initial=-1)) + 1, crowd.n_classes
        key = (crowd.task[rows] * np.int64(n_groups) + theirs[rows]) * n_classes + crowd.label[rows]
        order = np.argsort(key, kind="stable")
        rows, key = rows[order], key[order]
        new = np.diff(key, prepend=-1) != 0
        cell_key = key[new] // n_classes
        first = np.diff(cell_key, prepend=-1) != 0
        of_vote, cell = np.cumsum(new) - 1, np.cumsum(first) - 1
        task, of_group = np.divmod(cell_key[first], max(n_groups, 1))
        by_pair = sp.csr_array(
            (crowd.weight[rows], (of_vote, crowd.pairs.of_vote[rows])), shape=(len(cell), len(crowd.pairs))
        )
        by_task = sp.csr_array((np.ones(len(task)), (task, np.arange(len(task)))), shape=(crowd.n_tasks, len(task)))
        return cls(
            rows, of_vote, key[new] % n_classes, cell, task, of_group, np.flatnonzero(first), by_pair, by_task
        )  # fmt: skip


class Heard(NamedTuple):
    """What the votes of the cells say of opinions, for each class that may be true.

    >>> Heard._fields
    ('evidence', 'voiced', 'silent')
    """

    evidence: Numbers
    """(cells, classes): log Σ_m σ[k, m] Π alike / own."""
    voiced: Numbers
    """(sayings, classes): the probability that the opinion is what was said."""
    silent: Numbers
    """(cells, classes): the probability that it is m, divided by σ[k, m], for any m that nobody said."""


def hear(label_probs: Sayings, tables: Tables) -> Heard:
    """Sum over the opinions of every cell.

    >>> crowd = Crowd.from_triples([("t1", "a", "x"), ("t1", "b", "x")], classes=["x", "y"])
    >>> certain = Tables(np.full((2, 2), 0.05), np.full((2, 2), 0.95), np.array([[[0.8, 0.2], [0.2, 0.8]]]))
    >>> hear(Sayings.of(crowd, np.zeros(2, dtype=np.int32)), certain).voiced.round(3).tolist()
    [[0.999, 0.989]]
    """
    gain = label_probs.by_pair @ ratio(tables)
    share = tables.opinion[label_probs.group[label_probs.cell], label_probs.label]
    if not len(label_probs.cell):
        return Heard(np.zeros((0, share.shape[1])), share, np.zeros((0, share.shape[1])))
    # Opinions that nobody voiced have the rest of the probability, and a gain of zero.
    rest = np.maximum(1 - np.add.reduceat(share, label_probs.begins), 0.0)
    peak = np.maximum(np.maximum.reduceat(gain, label_probs.begins), 0.0)
    voiced = share * np.exp(gain - peak[label_probs.cell])
    silent = np.exp(-peak)
    total = np.maximum(rest * silent + np.add.reduceat(voiced, label_probs.begins), LEAST)
    return Heard(peak + np.log(total), voiced / total[label_probs.cell], silent / total)


def evidence_of_cells(label_probs: Sayings, tables: Tables) -> Numbers:
    """log P of all that a group says of a task, for each class that may be true: (cells, classes).

    >>> crowd = Crowd.from_triples([("t1", "a", "x"), ("t1", "b", "x")], classes=["x", "y"])
    >>> certain = Tables(np.full((2, 2), 0.05), np.full((2, 2), 0.95), np.array([[[0.8, 0.2], [0.2, 0.8]]]))
    >>> np.exp(evidence_of_cells(Sayings.of(crowd, np.zeros(2, dtype=np.int32)), certain)).round(2).tolist()
    [[0.72, 0.18]]
    """
    heard = hear(label_probs, tables).evidence
    if not len(heard):
        return heard
    return np.add.reduceat(label_probs.by_pair @ np.log(np.maximum(tables.own, LEAST)), label_probs.begins) + heard


def evidence_of_votes(crowd: Crowd, group: NDArray[np.int32], tables: Tables) -> Numbers:
    """log P of what each vote comes with, (votes, classes): the vote by itself, or all that its group says of the task.

    >>> crowd = Crowd.from_triples([("t1", "a", "x"), ("t1", "b", "x"), ("t1", "c", "x")], classes=["x", "y"])
    >>> own, alike = np.array([[0.05], [0.05], [0.9]]), np.array([[0.95], [0.95], [0.9]])
    >>> known = Tables(own.repeat(2, axis=1), alike.repeat(2, axis=1), np.array([[[0.8, 0.2], [0.2, 0.8]]]))
    >>> np.exp(evidence_of_votes(crowd, np.array([0, 0, -1], dtype=np.int32), known)).round(2).tolist()
    [[0.72, 0.18], [0.72, 0.18], [0.9, 0.9]]
    """
    found = np.log(np.maximum(tables.own, LEAST))[crowd.pairs.of_vote]
    found *= crowd.weight[:, None]
    label_probs = Sayings.of(crowd, group)
    found[label_probs.vote] = evidence_of_cells(label_probs, tables)[label_probs.cell[label_probs.of_vote]]
    return found


def ratio(tables: Tables) -> Numbers:
    """log alike − log own, (pairs, classes): what a vote says for its being the opinion; zero of who is in no group.

    >>> ratio(Tables(np.array([[0.1]]), np.array([[0.1]]), np.zeros((0, 1, 1)))).tolist()
    [[0.0]]
    """
    return np.log(np.maximum(tables.alike, LEAST)) - np.log(np.maximum(tables.own, LEAST))


def shares_by_group(crowd: Crowd, group: NDArray[np.int32]) -> Numbers:
    """The soft vote in which all of a group have one vote on a task together: (tasks, classes), uniform without votes.

    >>> crowd = Crowd.from_triples([("t1", "a", "x"), ("t1", "b", "x"), ("t1", "c", "y")])
    >>> shares_by_group(crowd, np.array([0, 0, -1])).tolist()
    [[0.5, 0.5]]
    """
    theirs, n_groups = group[crowd.worker_codes], int(group.max(initial=-1)) + 1
    cell = np.where(theirs >= 0, crowd.task * np.int64(max(n_groups, 1)) + theirs, -1)
    _, place = np.unique(cell, return_inverse=True)
    together = np.bincount(place, crowd.weight)[place]
    weight = np.where(theirs >= 0, crowd.weight / np.maximum(together, LEAST), crowd.weight)
    votes = np.bincount(
        crowd.task.astype(np.int64) * crowd.n_classes + crowd.label, weight, minlength=crowd.n_tasks * crowd.n_classes
    ).reshape(crowd.n_tasks, crowd.n_classes)
    total = votes.sum(axis=1, keepdims=True)
    return np.divide(votes, total, out=np.full_like(votes, 1 / crowd.n_classes), where=total > 0)


class OpinionEngine(LocalEngine):
    """Takes the sums of a model in which groups have opinions; its tables are packed `Tables`.

    >>> crowd = Crowd.from_triples([("t1", "a", "x"), ("t1", "b", "x"), ("t1", "c", "y")])
    >>> engine = OpinionEngine(crowd, None, group=np.array([0, 0, -1]))
    >>> half = Tables(np.full((3, 2), 0.25), np.array([[0.75] * 2, [0.75] * 2, [0.25] * 2]), np.full((1, 2, 2), 0.5))
    >>> engine.posterior(np.array([0.5, 0.5]), half.packed()).tolist()
    [[0.5, 0.5]]
    """

    def __init__(
        self, crowd: Crowd, gold: NDArray[np.int32] | None = None, n_jobs: int = 1, *, group: NDArray[np.int32]
    ) -> None:
        super().__init__(crowd, gold, n_jobs)
        self.sayings = Sayings.of(crowd, group)

    def expect(self, prior: Numbers, label_probs: NDArray[Any]) -> Expectation:
        """Statistics of the posteriors of classes and opinions."""
        layout, here = self.crowd.layout, self.sayings
        tables = Tables.of(label_probs, layout.n_pairs)
        heard = hear(here, tables)
        share, log_likelihood = self._classes(prior, tables, heard)
        tally = layout.matrix.T @ share
        of_cell = share[here.task]
        voiced = heard.voiced * of_cell[here.cell]
        # A vote that says the opinion repeats it with the probability a / (a + (1 − a) π).
        alike = np.minimum((here.by_pair.T @ voiced) * -np.expm1(-ratio(tables)), tally)
        opinion = self._opinions(tables.opinion, voiced, heard.silent * of_cell)
        sums = Tables(tally - alike, alike, opinion).packed()
        return Expectation(log_likelihood, share[layout.voted].sum(axis=0), sums, None)

    def posterior(self, prior: Numbers, label_probs: NDArray[Any]) -> Numbers:
        """The posterior of every task's class."""
        tables = Tables.of(label_probs, self.crowd.layout.n_pairs)
        return self._classes(prior, tables, hear(self.sayings, tables))[0]

    def _classes(self, prior: Numbers, tables: Tables, heard: Heard) -> tuple[Numbers, float]:
        layout = self.crowd.layout
        joint = layout.matrix @ np.log(np.maximum(tables.own, LEAST)) + self.sayings.by_task @ heard.evidence
        joint += np.log(np.maximum(prior, LEAST) / np.maximum(prior, LEAST).sum())
        peak = reduce(np.maximum, joint.T)  # column by column: numpy reduces short rows slowly
        share = np.exp(joint - peak[:, None])
        total = np.einsum("ik->i", share)
        evidence = peak + np.log(total)
        if self.gold is not None:
            known = np.flatnonzero(self.gold >= 0)
            evidence[known] = joint[known, self.gold[known]]
        return apply_gold(share / total[:, None], self.gold), float(evidence[layout.voted].sum())

    def _opinions(self, share: Numbers, voiced: Numbers, silent: Numbers) -> Numbers:
        """How often each group had each opinion, by class: (groups, opinions, classes)."""
        here = self.sayings
        place = here.group[here.cell] * share.shape[1] + here.label
        label_probs = _added(voiced, place, len(share) * share.shape[1]).reshape(share.shape)
        voiced_cells = _added(silent[here.cell], place, len(share) * share.shape[1]).reshape(share.shape)
        unsaid = _added(silent, here.group, len(share))[:, None] - voiced_cells
        return label_probs + share * np.maximum(unsaid, 0.0)


def _added(rows: Numbers, where: Codes, n: int) -> Numbers:
    """Rows added up by where they belong, (n, classes)."""
    return np.stack([np.bincount(where, column, n) for column in rows.T], axis=1)
