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
STRENGTHS = (1.0, 50.0)
#: Steps of EM after which starts are compared, how many of them go on, and when these end.
SHORT, FINALISTS, STEPS, TOLERANCE = 5, 3, 200, 1e-7
#: How often it is asked again how alike the workers of a group are.
ROUNDS = 3

Numbers = NDArray[np.float64]


class Groups(NamedTuple):
    """Matrices (groups, true, said) and shares of the groups.

    >>> Groups(np.eye(2)[None] * 0.8 + 0.1, np.ones(1)).members(csr_array([[3.0, 0.0, 0.0, 2.0]])).tolist()
    [[1.0]]
    """

    matrices: Numbers
    share: Numbers
    objective: float = -np.inf
    """Of the matrices before the last step."""
    strength: float = STRENGTHS[1]

    def evidence(self, said: csr_array) -> Numbers:
        """log P of what each worker said in each group, (workers, groups), shares included."""
        return np.asarray(said @ np.log(self.matrices.reshape(len(self.share), -1)).T + np.log(self.share))

    def members(self, said: csr_array) -> Numbers:
        """Probability of each group for each worker, (workers, groups)."""
        return self.placed(said)[0]

    def placed(self, said: csr_array) -> tuple[Numbers, float]:
        """As `members`, and log P of what all said, whatever their groups."""
        evidence = self.evidence(said)
        most = evidence.max(axis=1, keepdims=True)
        members = np.exp(evidence - most)
        total = members.sum(axis=1, keepdims=True)
        return members / total, float((np.log(total) + most).sum())


@dataclass(frozen=True, eq=False)
class Tally:
    """How often each worker said l when k was true: (workers, true x said), sparse.

    >>> Tally(csr_array([[3.0, 0.0, 1.0, 2.0]]), n_classes=2).total.tolist()
    [3.0, 3.0]
    """

    said: csr_array
    n_classes: int

    @cached_property
    def worker(self) -> NDArray[np.intp]:
        """Of each entry."""
        return np.repeat(np.arange(self.said.shape[0]), np.diff(self.said.indptr))

    @cached_property
    def total(self) -> Numbers:
        """Votes of each worker on tasks of each true class: (workers, true), flat."""
        size = self.said.shape[0] * self.n_classes
        return np.bincount(self.row, self.said.data, minlength=size).astype(np.float64)

    @cached_property
    def row(self) -> NDArray[np.intp]:
        """Of each entry: worker and true class."""
        return self.worker * self.n_classes + self.said.indices // self.n_classes

    def worth(self, strength: float) -> csr_array:
        """ñ: votes of one worker on one true class count for what as many of different workers would tell of the group."""
        data = self.said.data * np.minimum((1 + strength) / (self.total[self.row] + strength), 1.0)
        return csr_array((data, self.said.indices, self.said.indptr), shape=self.said.shape)

    def strength(self, matrices: Numbers, group: NDArray[np.intp]) -> float:
        """c under which the votes are most probable, each worker's matrix drawn about that of their group."""
        from scipy.optimize import minimize_scalar
        from scipy.special import gammaln

        share = matrices.reshape(len(matrices), -1)[group[self.worker], self.said.indices]

        def against(log_strength: float) -> float:
            c = np.exp(log_strength)
            cells = gammaln(self.said.data + c * share) - gammaln(c * share)
            return -float((gammaln(c) - gammaln(self.total + c)).sum() + cells.sum())

        bounds = tuple(np.log(STRENGTHS))
        return float(np.exp(minimize_scalar(against, bounds=bounds, method="bounded", options={"xatol": 1e-2}).x))


def fitted(tally: Tally, toward: Numbers, n_groups: int, n_init: int, rng: np.random.Generator) -> Groups:
    """The groups, by EM from several starts; how alike their workers are is asked again when the groups are known better.

    ``toward`` is the matrix of the crowd.

    >>> said = csr_array([[9.0, 1.0, 1.0, 9.0]] * 5 + [[1.0, 9.0, 9.0, 1.0]] * 5)
    >>> found = fitted(Tally(said, 2), np.full((2, 2), 0.5), 2, 5, np.random.default_rng(0))
    >>> sorted(found.matrices[:, 0, 0].round(1).tolist())
    [0.1, 0.9]
    """
    everybody = np.zeros(tally.said.shape[0], dtype=np.intp)
    strength = tally.strength(toward[None], everybody)
    groups = _settled(tally.worth(strength), toward, n_groups, n_init, rng)
    for _ in range(ROUNDS - 1):
        strength = tally.strength(groups.matrices, groups.members(tally.worth(strength)).argmax(axis=1))
        groups = _stepped(groups._replace(objective=-np.inf), tally.worth(strength), toward, STEPS)
    return groups._replace(strength=strength)


def matrices_of(sums: Numbers, toward: Numbers) -> Numbers:
    """Π (groups, true, said) from sums over workers, (true x said, groups), with pseudo-votes of the crowd's matrix.

    >>> matrices_of(np.array([[3.0], [1.0], [0.0], [0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
    [[[0.8, 0.2], [0.0, 1.0]]]
    """
    found = sums.T.reshape(-1, *toward.shape) + PSEUDO_VOTES * toward
    return np.asarray(found / found.sum(axis=2, keepdims=True))


# ---------------------------------------------------------------------- inside


def _settled(said: csr_array, toward: Numbers, n_groups: int, n_init: int, rng: np.random.Generator) -> Groups:
    if n_groups == 1:
        return _stepped(Groups(toward[None], np.ones(1)), said, toward, 1)
    starts = [_stepped(start, said, toward, SHORT) for start in _starts(said, toward, n_groups, n_init, rng)]
    starts.sort(key=lambda groups: -groups.objective)
    ends = [_stepped(start, said, toward, STEPS) for start in starts[:FINALISTS]]
    return max(ends, key=lambda groups: groups.objective)


def _stepped(groups: Groups, said: csr_array, toward: Numbers, steps: int) -> Groups:
    """EM until it settles, or for so many steps."""
    by_cell = said.T
    for _ in range(steps):
        members, likelihood = groups.placed(said)
        prior = PSEUDO_VOTES * (toward * np.log(groups.matrices)).sum() + np.log(groups.share).sum()
        objective = likelihood + float(prior)
        share = (members.sum(axis=0) + 1) / (len(members) + len(groups.share))
        settled = objective - groups.objective <= TOLERANCE * abs(objective)
        groups = Groups(matrices_of(by_cell @ members, toward), share, objective)
        if settled:
            break
    return groups


def _starts(said: csr_array, toward: Numbers, n_groups: int, n_init: int, rng: np.random.Generator) -> list[Groups]:
    """Matrices of single workers, each drawn from those whom the ones before explain badly, as K-means++ draws centres."""
    votes = np.asarray(said.sum(axis=1), dtype=np.float64).ravel()
    own = _own_likelihood(said, toward)
    starts = []
    for _ in range(n_init):
        chance, best = votes, np.full(len(votes), -np.inf)
        drawn: list[Numbers] = []
        for _ in range(n_groups):
            total = chance.sum()
            worker = rng.choice(len(votes), p=chance / total if total > 0 else None)
            drawn.append(matrices_of(said[[worker]].toarray().T, toward)[0])
            best = np.maximum(best, said @ np.log(drawn[-1].ravel()))
            chance = np.maximum(own - best, 0.0)
        starts.append(Groups(np.stack(drawn), np.full(n_groups, 1 / n_groups)))
    return starts


def _own_likelihood(said: csr_array, toward: Numbers) -> Numbers:
    """log P of what each worker said by a matrix of their own."""
    tally = Tally(said, len(toward))
    share = (said.data + PSEUDO_VOTES * toward.ravel()[said.indices]) / (tally.total[tally.row] + PSEUDO_VOTES)
    return np.bincount(tally.worker, said.data * np.log(share), minlength=said.shape[0]).astype(np.float64)
