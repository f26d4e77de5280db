"""Groups with an opinion on every task: the joint probability of their members' votes.

A member of a group repeats the group's opinion with a probability of its own, and otherwise answers independently. Given
the truth, the votes of a group depend on each other only through the opinion, which is summed over exactly:

    P(votes of g on i | z_i = k) = Π_r own_r[k, y_ir] · Σ_m σ_g[k, m] Π_{r: y_ir = m} repeated_r[k, m] / own_r[k, m]

with own = (1 − a) π, the probability of an independent vote for the label, and repeated = a + (1 − a) π, the probability of
the label if it is the group's opinion. An opinion that no member voted for leaves the product at one, so the sum runs over
the labels given, and costs votes x classes.
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
from wisecrowd.kernels import MIN_PROB, Expectation

Array = NDArray[np.float64]
Codes = NDArray[np.int64]


class OpinionTables(NamedTuple):
    """Two tables over (worker, label) pairs and one over groups, which EM treats as a single array.

    As statistics: independent votes and repeated votes by class, and opinions by class. As parameters: ``own``,
    ``repeated`` and σ.

    Examples
    --------
    >>> tables = OpinionTables(np.zeros((3, 2)), np.ones((3, 2)), np.ones((1, 2, 2)))
    >>> tables.pack().shape, OpinionTables.unpack(tables.pack(), 3).opinion.shape
    ((5, 4), (1, 2, 2))
    """

    own: Array
    """(n_pairs, n_classes)."""
    repeated: Array
    """(n_pairs, n_classes)."""
    opinion: Array
    """(n_groups, n_opinions, n_classes); the true class is last, as in the other tables."""

    def pack(self) -> Array:
        """Return one array with a row for each pair, then one for each group and opinion."""
        groups = self.opinion.reshape(-1, self.opinion.shape[2])
        return np.concatenate([np.concatenate(self[:2], axis=1), np.pad(groups, ((0, 0), (0, groups.shape[1])))])

    @classmethod
    def unpack(cls, packed: NDArray[Any], n_pairs: int) -> OpinionTables:
        """Return the tables of a packed array, as views.

        Parameters
        ----------
        packed : ndarray
            Result of `pack`.
        n_pairs : int
            Number of pairs.

        Returns
        -------
        OpinionTables
        """
        n_classes = packed.shape[1] // 2
        rows = packed[:n_pairs]
        groups = packed[n_pairs:, :n_classes].reshape(-1, n_classes, n_classes)
        return cls(rows[:, :n_classes], rows[:, n_classes:], groups)


@dataclass(frozen=True, eq=False)
class GroupVotes:
    """Votes of group members: votes within *ballots* (equal labels of one group on one task) within *cells* (task and group).

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", worker, label) for worker, label in zip("abcd", "xxyx")])
    >>> votes = GroupVotes.from_crowd(crowd, np.array([0, 0, 0, -1]))  # d is in no group
    >>> votes.vote.tolist(), votes.label.tolist(), votes.cell.tolist()
    ([0, 1, 2], [0, 1], [0, 0])
    """

    vote: Codes
    """Votes of group members, as rows of the crowd, in the order of ballots."""
    ballot: Codes
    """Ballot of each of these votes."""
    label: Codes
    """Label of each ballot."""
    cell: Codes
    """Cell of each ballot; cells are in the order of tasks."""
    task: Codes
    """Task of each cell."""
    group: Codes
    """Group of each cell."""
    first_ballot: Codes
    """First ballot of each cell."""
    sum_by_ballot: Any
    """Sparse matrix of the weights of votes, ballots x pairs."""
    sum_by_task: Any
    """Sparse 0/1 matrix, tasks x cells."""

    @classmethod
    def from_crowd(cls, crowd: Crowd, group: NDArray[np.int32]) -> GroupVotes:
        """Return the votes of workers in groups.

        Parameters
        ----------
        crowd : Crowd
            Votes.
        group : ndarray of shape (n_workers,)
            Group codes, −1 for workers without a group.

        Returns
        -------
        GroupVotes
        """
        vote_group = group[crowd.worker_codes].astype(np.int64)
        votes = np.flatnonzero(vote_group >= 0)
        n_groups, n_classes = int(group.max(initial=-1)) + 1, crowd.n_classes
        key = (crowd.task[votes] * np.int64(n_groups) + vote_group[votes]) * n_classes + crowd.label[votes]
        order = np.argsort(key, kind="stable")
        votes, key = votes[order], key[order]
        starts_ballot = np.diff(key, prepend=-1) != 0
        cell_key = key[starts_ballot] // n_classes
        starts_cell = np.diff(cell_key, prepend=-1) != 0
        ballot, cell = np.cumsum(starts_ballot) - 1, np.cumsum(starts_cell) - 1
        task, cell_group = np.divmod(cell_key[starts_cell], max(n_groups, 1))
        pair_coords = ballot, crowd.pairs.vote_pairs[votes]
        sum_by_ballot = sp.csr_array((crowd.weight[votes], pair_coords), shape=(len(cell), len(crowd.pairs)))
        cell_coords = task, np.arange(len(task))
        sum_by_task = sp.csr_array((np.ones(len(task)), cell_coords), shape=(crowd.n_tasks, len(task)))
        return cls(
            vote=votes,
            ballot=ballot,
            label=key[starts_ballot] % n_classes,
            cell=cell,
            task=task,
            group=cell_group,
            first_ballot=np.flatnonzero(starts_cell),
            sum_by_ballot=sum_by_ballot,
            sum_by_task=sum_by_task,
        )


class OpinionPosterior(NamedTuple):
    """Posterior of the opinions of all cells, given each class."""

    evidence: Array
    """log Σ_m σ[k, m] Π repeated / own, (n_cells, n_classes)."""
    voted: Array
    """Probability that the opinion is the label of the ballot, (n_ballots, n_classes)."""
    unvoted: Array
    """Probability that the opinion is m, divided by σ[k, m], for any m without a ballot, (n_cells, n_classes)."""


def infer_opinions(votes: GroupVotes, tables: OpinionTables) -> OpinionPosterior:
    """Infer the opinion of every cell, given each class.

    Parameters
    ----------
    votes : GroupVotes
        Votes of group members.
    tables : OpinionTables
        Probabilities of labels and opinions.

    Returns
    -------
    OpinionPosterior

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "a", "x"), ("t1", "b", "x")], classes=["x", "y"])
    >>> tables = OpinionTables(np.full((2, 2), 0.05), np.full((2, 2), 0.95), np.array([[[0.8, 0.2], [0.2, 0.8]]]))
    >>> infer_opinions(GroupVotes.from_crowd(crowd, np.zeros(2, dtype=np.int32)), tables).voted.round(3).tolist()
    [[0.999, 0.989]]
    """
    gain = votes.sum_by_ballot @ compute_log_ratio(tables)
    share = tables.opinion[votes.group[votes.cell], votes.label]
    if not len(votes.cell):
        return OpinionPosterior(np.zeros((0, share.shape[1])), share, np.zeros((0, share.shape[1])))
    # Opinions without a ballot have the remaining probability and a gain of zero.
    rest = np.maximum(1 - np.add.reduceat(share, votes.first_ballot), 0.0)
    peak = np.maximum(np.maximum.reduceat(gain, votes.first_ballot), 0.0)
    voted = share * np.exp(gain - peak[votes.cell])
    unvoted = np.exp(-peak)
    total = np.maximum(rest * unvoted + np.add.reduceat(voted, votes.first_ballot), MIN_PROB)
    return OpinionPosterior(peak + np.log(total), voted / total[votes.cell], unvoted / total)


def compute_cell_log_probs(votes: GroupVotes, tables: OpinionTables) -> Array:
    """Compute log P(all votes of a group on a task given class).

    Parameters
    ----------
    votes : GroupVotes
        Votes of group members.
    tables : OpinionTables
        Probabilities of labels and opinions.

    Returns
    -------
    ndarray of shape (n_cells, n_classes)

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "a", "x"), ("t1", "b", "x")], classes=["x", "y"])
    >>> tables = OpinionTables(np.full((2, 2), 0.05), np.full((2, 2), 0.95), np.array([[[0.8, 0.2], [0.2, 0.8]]]))
    >>> votes = GroupVotes.from_crowd(crowd, np.zeros(2, dtype=np.int32))
    >>> np.exp(compute_cell_log_probs(votes, tables)).round(2).tolist()
    [[0.72, 0.18]]
    """
    evidence = infer_opinions(votes, tables).evidence
    if not len(evidence):
        return evidence
    own = votes.sum_by_ballot @ np.log(np.maximum(tables.own, MIN_PROB))
    return np.add.reduceat(own, votes.first_ballot) + evidence


def compute_vote_log_probs(crowd: Crowd, group: NDArray[np.int32], tables: OpinionTables) -> Array:
    """Compute log P of each vote, or of all votes of its group on the task, given class.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    group : ndarray of shape (n_workers,)
        Group codes, −1 for workers without a group.
    tables : OpinionTables
        Probabilities of labels and opinions.

    Returns
    -------
    ndarray of shape (n_votes, n_classes)

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "a", "x"), ("t1", "b", "x"), ("t1", "c", "x")], classes=["x", "y"])
    >>> own, repeated = np.array([[0.05], [0.05], [0.9]]), np.array([[0.95], [0.95], [0.9]])
    >>> opinion = np.array([[[0.8, 0.2], [0.2, 0.8]]])
    >>> tables = OpinionTables(own.repeat(2, axis=1), repeated.repeat(2, axis=1), opinion)
    >>> np.exp(compute_vote_log_probs(crowd, np.array([0, 0, -1], dtype=np.int32), tables)).round(2).tolist()
    [[0.72, 0.18], [0.72, 0.18], [0.9, 0.9]]
    """
    log_probs = np.log(np.maximum(tables.own, MIN_PROB))[crowd.pairs.vote_pairs]
    log_probs *= crowd.weight[:, None]
    votes = GroupVotes.from_crowd(crowd, group)
    log_probs[votes.vote] = compute_cell_log_probs(votes, tables)[votes.cell[votes.ballot]]
    return log_probs


def compute_log_ratio(tables: OpinionTables) -> Array:
    """Compute log repeated − log own, the evidence of a vote that its label is the opinion; zero without a group.

    Parameters
    ----------
    tables : OpinionTables
        Probabilities of labels and opinions.

    Returns
    -------
    ndarray of shape (n_pairs, n_classes)

    Examples
    --------
    >>> compute_log_ratio(OpinionTables(np.array([[0.1]]), np.array([[0.1]]), np.zeros((0, 1, 1)))).tolist()
    [[0.0]]
    """
    return np.log(np.maximum(tables.repeated, MIN_PROB)) - np.log(np.maximum(tables.own, MIN_PROB))


def compute_group_vote_shares(crowd: Crowd, group: NDArray[np.int32]) -> Array:
    """Compute vote shares in which all members of a group together have one vote on a task.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    group : ndarray of shape (n_workers,)
        Group codes, −1 for workers without a group.

    Returns
    -------
    ndarray of shape (n_tasks, n_classes)
        Uniform for tasks without votes.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "a", "x"), ("t1", "b", "x"), ("t1", "c", "y")])
    >>> compute_group_vote_shares(crowd, np.array([0, 0, -1])).tolist()
    [[0.5, 0.5]]
    """
    vote_group, n_groups = group[crowd.worker_codes], int(group.max(initial=-1)) + 1
    cell = np.where(vote_group >= 0, crowd.task * np.int64(max(n_groups, 1)) + vote_group, -1)
    _, inverse = np.unique(cell, return_inverse=True)
    cell_weight = np.bincount(inverse, crowd.weight)[inverse]
    weight = np.where(vote_group >= 0, crowd.weight / np.maximum(cell_weight, MIN_PROB), crowd.weight)
    class_cell = crowd.task.astype(np.int64) * crowd.n_classes + crowd.label
    votes = np.bincount(class_cell, weight, minlength=crowd.n_tasks * crowd.n_classes)
    votes = votes.reshape(crowd.n_tasks, crowd.n_classes)
    total = votes.sum(axis=1, keepdims=True)
    return np.divide(votes, total, out=np.full_like(votes, 1 / crowd.n_classes), where=total > 0)


class OpinionEngine(LocalEngine):
    """Engine of a model in which groups have opinions; its tables are packed `OpinionTables`.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    gold : ndarray of shape (n_tasks,), optional
        Class codes, −1 where the truth is unknown.
    n_jobs : int, default 1
        Number of threads.
    group : ndarray of shape (n_workers,)
        Group codes, −1 for workers without a group.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "a", "x"), ("t1", "b", "x"), ("t1", "c", "y")])
    >>> engine = OpinionEngine(crowd, None, group=np.array([0, 0, -1]))
    >>> repeated = np.array([[0.75] * 2, [0.75] * 2, [0.25] * 2])
    >>> tables = OpinionTables(np.full((3, 2), 0.25), repeated, np.full((1, 2, 2), 0.5))
    >>> engine.compute_posterior(np.array([0.5, 0.5]), tables.pack()).tolist()
    [[0.5, 0.5]]
    """

    def __init__(
        self, crowd: Crowd, gold: NDArray[np.int32] | None = None, n_jobs: int = 1, *, group: NDArray[np.int32]
    ) -> None:
        super().__init__(crowd, gold, n_jobs)
        self.group_votes = GroupVotes.from_crowd(crowd, group)

    def expect(self, prior: Array, label_probs: NDArray[Any]) -> Expectation:
        """Compute the statistics of the posteriors of classes and opinions.

        Parameters
        ----------
        prior : ndarray of shape (n_classes,)
            Class prior.
        label_probs : ndarray
            Packed tables of parameters.

        Returns
        -------
        Expectation
            Its tally is packed tables of statistics.
        """
        layout, votes = self.crowd.layout, self.group_votes
        tables = OpinionTables.unpack(label_probs, layout.n_pairs)
        opinions = infer_opinions(votes, tables)
        posterior, log_likelihood = self._infer_classes(prior, tables, opinions)
        tally = layout.vote_matrix.T @ posterior
        cell_posterior = posterior[votes.task]
        voted = opinions.voted * cell_posterior[votes.cell]
        # A vote for the opinion repeats it with probability a / (a + (1 − a) π).
        repeats = (votes.sum_by_ballot.T @ voted) * -np.expm1(-compute_log_ratio(tables))
        repeated = np.minimum(repeats, tally)
        opinion = self._sum_opinions(tables.opinion, voted, opinions.unvoted * cell_posterior)
        sums = OpinionTables(tally - repeated, repeated, opinion).pack()
        return Expectation(log_likelihood, posterior[layout.has_votes].sum(axis=0), sums, None)

    def compute_posterior(self, prior: Array, label_probs: NDArray[Any]) -> Array:
        """Compute the posterior of the class of every task.

        Parameters
        ----------
        prior : ndarray of shape (n_classes,)
            Class prior.
        label_probs : ndarray
            Packed tables of parameters.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
        """
        tables = OpinionTables.unpack(label_probs, self.crowd.layout.n_pairs)
        return self._infer_classes(prior, tables, infer_opinions(self.group_votes, tables))[0]

    def _infer_classes(self, prior: Array, tables: OpinionTables, opinions: OpinionPosterior) -> tuple[Array, float]:
        """Return the posterior of the classes, and the log-likelihood."""
        layout = self.crowd.layout
        joint = layout.vote_matrix @ np.log(np.maximum(tables.own, MIN_PROB))
        joint += self.group_votes.sum_by_task @ opinions.evidence
        joint += np.log(np.maximum(prior, MIN_PROB) / np.maximum(prior, MIN_PROB).sum())
        peak = reduce(np.maximum, joint.T)  # column by column: numpy reduces short rows slowly
        share = np.exp(joint - peak[:, None])
        total = np.einsum("ik->i", share)
        log_evidence = peak + np.log(total)
        if self.gold is not None:
            tasks = np.flatnonzero(self.gold >= 0)
            log_evidence[tasks] = joint[tasks, self.gold[tasks]]
        return apply_gold(share / total[:, None], self.gold), float(log_evidence[layout.has_votes].sum())

    def _sum_opinions(self, share: Array, voted: Array, unvoted: Array) -> Array:
        """Return the expected number of times each group had each opinion, (n_groups, n_opinions, n_classes)."""
        votes = self.group_votes
        n_groups, n_classes = share.shape[:2]
        index = votes.group[votes.cell] * n_classes + votes.label
        voted_sum = _sum_rows(voted, index, n_groups * n_classes).reshape(share.shape)
        excluded = _sum_rows(unvoted[votes.cell], index, n_groups * n_classes).reshape(share.shape)
        remaining = _sum_rows(unvoted, votes.group, n_groups)[:, None] - excluded
        return voted_sum + share * np.maximum(remaining, 0.0)


def _sum_rows(rows: Array, index: Codes, size: int) -> Array:
    """Return the sum of rows by index, (size, n_classes)."""
    return np.stack([np.bincount(index, column, size) for column in rows.T], axis=1)
