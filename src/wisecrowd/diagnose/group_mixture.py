"""A mixture over workers: each belongs to one of a few groups, and has a confusion matrix near that of the group."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

#: Votes that the crowd's matrix is worth, for every true class of a group's.
PSEUDO_VOTES = 1.0
#: Between which the votes are sought that a group's matrix is worth for those of its workers. Posteriors that are unsure blur how
#: workers differ; without a limit, a group can end as one of equals, and every difference as one of groups.
STRENGTH_BOUNDS = (1.0, 50.0)
#: Steps of EM after which starts are compared, how many of them go on, and when these end.
SHORT_STEPS, FINALISTS, MAX_STEPS, TOLERANCE = 5, 3, 200, 1e-7
#: How often it is asked again how alike the workers of a group are.
STRENGTH_ROUNDS = 3

FloatArray = NDArray[np.float64]


class GroupMixture(NamedTuple):
    """Matrices (groups, true, said) and shares of the groups.

    >>> GroupMixture(np.eye(2)[None] * 0.8 + 0.1, np.ones(1)).memberships(csr_array([[3.0, 0.0, 0.0, 2.0]])).tolist()
    [[1.0]]
    """

    confusion: FloatArray
    share: FloatArray
    objective: float = -np.inf
    """Of the matrices before the last step."""
    strength: float = STRENGTH_BOUNDS[1]

    def log_evidence(self, counts: csr_array) -> FloatArray:
        """log P of what each worker said in each group, (workers, groups), shares included."""
        return np.asarray(counts @ np.log(self.confusion.reshape(len(self.share), -1)).T + np.log(self.share))

    def memberships(self, counts: csr_array) -> FloatArray:
        """Probability of each group for each worker, (workers, groups)."""
        return self.memberships_and_likelihood(counts)[0]

    def memberships_and_likelihood(self, counts: csr_array) -> tuple[FloatArray, float]:
        """As `memberships`, and log P of what all said, whatever their groups."""
        log_evidence = self.log_evidence(counts)
        max_evidence = log_evidence.max(axis=1, keepdims=True)
        memberships = np.exp(log_evidence - max_evidence)
        total = memberships.sum(axis=1, keepdims=True)
        return memberships / total, float((np.log(total) + max_evidence).sum())


@dataclass(frozen=True, eq=False)
class ConfusionTally:
    """How often each worker said l when k was true: (workers, true x said), sparse.

    >>> ConfusionTally(csr_array([[3.0, 0.0, 1.0, 2.0]]), n_classes=2).row_totals.tolist()
    [3.0, 3.0]
    """

    counts: csr_array
    n_classes: int

    @cached_property
    def entry_worker(self) -> NDArray[np.intp]:
        """Of each entry."""
        return np.repeat(np.arange(self.counts.shape[0]), np.diff(self.counts.indptr))

    @cached_property
    def row_totals(self) -> FloatArray:
        """Votes of each worker on tasks of each true class: (workers, true), flat."""
        size = self.counts.shape[0] * self.n_classes
        return np.bincount(self.entry_row, self.counts.data, minlength=size).astype(np.float64)

    @cached_property
    def entry_row(self) -> NDArray[np.intp]:
        """Of each entry: worker and true class."""
        return self.entry_worker * self.n_classes + self.counts.indices // self.n_classes

    def effective_counts(self, estimate_strength: float) -> csr_array:
        """ñ: votes of one worker on one true class count for what as many of different workers would tell of the group."""
        data = self.counts.data * np.minimum(
            (1 + estimate_strength) / (self.row_totals[self.entry_row] + estimate_strength), 1.0
        )
        return csr_array((data, self.counts.indices, self.counts.indptr), shape=self.counts.shape)

    def estimate_strength(self, confusion: FloatArray, group: NDArray[np.intp]) -> float:
        """c under which the votes are most probable, each worker's matrix drawn about that of their group."""
        from scipy.optimize import minimize_scalar
        from scipy.special import gammaln

        share = confusion.reshape(len(confusion), -1)[group[self.entry_worker], self.counts.indices]

        def negative_log_likelihood(log_strength: float) -> float:
            c = np.exp(log_strength)
            cells = gammaln(self.counts.data + c * share) - gammaln(c * share)
            return -float((gammaln(c) - gammaln(self.row_totals + c)).sum() + cells.sum())

        bounds = tuple(np.log(STRENGTH_BOUNDS))
        return float(
            np.exp(minimize_scalar(negative_log_likelihood, bounds=bounds, method="bounded", options={"xatol": 1e-2}).x)
        )


def fit_group_mixture(
    tally: ConfusionTally, crowd_confusion: FloatArray, n_groups: int, n_init: int, rng: np.random.Generator
) -> GroupMixture:
    """The groups, by EM from several starts; how alike their workers are is asked again when the groups are known better.

    ``crowd_confusion`` is the matrix of the crowd.

    >>> said = csr_array([[9.0, 1.0, 1.0, 9.0]] * 5 + [[1.0, 9.0, 9.0, 1.0]] * 5)
    >>> found = fit_group_mixture(ConfusionTally(said, 2), np.full((2, 2), 0.5), 2, 5, np.random.default_rng(0))
    >>> sorted(found.confusion[:, 0, 0].round(1).tolist())
    [0.1, 0.9]
    """
    single_group = np.zeros(tally.counts.shape[0], dtype=np.intp)
    strength = tally.estimate_strength(crowd_confusion[None], single_group)
    mixture = _fit_from_starts(tally.effective_counts(strength), crowd_confusion, n_groups, n_init, rng)
    for _ in range(STRENGTH_ROUNDS - 1):
        strength = tally.estimate_strength(
            mixture.confusion, mixture.memberships(tally.effective_counts(strength)).argmax(axis=1)
        )
        mixture = _run_em(
            mixture._replace(objective=-np.inf), tally.effective_counts(strength), crowd_confusion, MAX_STEPS
        )
    return mixture._replace(strength=strength)


def estimate_confusion(sums: FloatArray, crowd_confusion: FloatArray) -> FloatArray:
    """Π (groups, true, said) from sums over workers, (true x said, groups), with pseudo-votes of the crowd's matrix.

    >>> estimate_confusion(np.array([[3.0], [1.0], [0.0], [0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
    [[[0.8, 0.2], [0.0, 1.0]]]
    """
    counts = sums.T.reshape(-1, *crowd_confusion.shape) + PSEUDO_VOTES * crowd_confusion
    return np.asarray(counts / counts.sum(axis=2, keepdims=True))


# ---------------------------------------------------------------------- inside


def _fit_from_starts(
    counts: csr_array, crowd_confusion: FloatArray, n_groups: int, n_init: int, rng: np.random.Generator
) -> GroupMixture:
    if n_groups == 1:
        return _run_em(GroupMixture(crowd_confusion[None], np.ones(1)), counts, crowd_confusion, 1)
    starts = [
        _run_em(start, counts, crowd_confusion, SHORT_STEPS)
        for start in _draw_starts(counts, crowd_confusion, n_groups, n_init, rng)
    ]
    starts.sort(key=lambda groups: -groups.objective)
    ends = [_run_em(start, counts, crowd_confusion, MAX_STEPS) for start in starts[:FINALISTS]]
    return max(ends, key=lambda groups: groups.objective)


def _run_em(mixture: GroupMixture, counts: csr_array, crowd_confusion: FloatArray, steps: int) -> GroupMixture:
    """EM until it settles, or for so many steps."""
    by_cell = counts.T
    for _ in range(steps):
        memberships, likelihood = mixture.memberships_and_likelihood(counts)
        prior = PSEUDO_VOTES * (crowd_confusion * np.log(mixture.confusion)).sum() + np.log(mixture.share).sum()
        objective = likelihood + float(prior)
        share = (memberships.sum(axis=0) + 1) / (len(memberships) + len(mixture.share))
        is_converged = objective - mixture.objective <= TOLERANCE * abs(objective)
        mixture = GroupMixture(estimate_confusion(by_cell @ memberships, crowd_confusion), share, objective)
        if is_converged:
            break
    return mixture


def _draw_starts(
    counts: csr_array, crowd_confusion: FloatArray, n_groups: int, n_init: int, rng: np.random.Generator
) -> list[GroupMixture]:
    """Matrices of single workers, each drawn from those whom the ones before explain badly, as K-means++ draws centres."""
    votes = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
    own = _own_likelihood(counts, crowd_confusion)
    starts = []
    for _ in range(n_init):
        draw_weight, best = votes, np.full(len(votes), -np.inf)
        confusion: list[FloatArray] = []
        for _ in range(n_groups):
            total = draw_weight.sum()
            worker = rng.choice(len(votes), p=draw_weight / total if total > 0 else None)
            confusion.append(estimate_confusion(counts[[worker]].toarray().T, crowd_confusion)[0])
            best = np.maximum(best, counts @ np.log(confusion[-1].ravel()))
            draw_weight = np.maximum(own - best, 0.0)
        starts.append(GroupMixture(np.stack(confusion), np.full(n_groups, 1 / n_groups)))
    return starts


def _own_likelihood(counts: csr_array, crowd_confusion: FloatArray) -> FloatArray:
    """log P of what each worker said by a matrix of their own."""
    tally = ConfusionTally(counts, len(crowd_confusion))
    share = (counts.data + PSEUDO_VOTES * crowd_confusion.ravel()[counts.indices]) / (
        tally.row_totals[tally.entry_row] + PSEUDO_VOTES
    )
    return np.bincount(tally.entry_worker, counts.data * np.log(share), minlength=counts.shape[0]).astype(np.float64)
