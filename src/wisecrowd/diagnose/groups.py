"""Workers who err alike: a few groups, each about one confusion matrix, and how many the votes can tell apart.

A worker with ten votes has no matrix to speak of, and K-means over matrices groups such workers by chance. Here a worker is
placed by the likelihood of what they said, so that few votes mean an uncertain place and nothing worse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array

from wisecrowd.data.rows import dealt
from wisecrowd.diagnose.group_mixture import Groups, Tally, fitted, matrices_of
from wisecrowd.diagnose.preparation import ONE_BUTTON, admitted
from wisecrowd.diagnose.workers import WorkerDiagnosis
from wisecrowd.errors import InputError, UsageError
from wisecrowd.utils import progress

#: Parts of each worker's votes that are hidden in turn, to see how many groups foretell them best.
FOLDS = 4
#: Steps in which matrices are sharpened at most, and by how much they still change when they are sharp.
SHARPENING, SHARP = 100, 1e-3
#: Of a tally: less of a vote than this is nothing.
LEAST = 1e-4
#: Workers that the matrices are learnt from at most; the others are only placed.
MOST_WORKERS = 5000
#: How many further numbers of groups are tried without a gain.
PATIENCE = 2
#: Nats over all hidden votes: with less, groups are told apart by nothing, and have the same figures.
LEAST_GAIN = 1.0
#: Votes for each group that is tried: fewer tell nothing apart.
VOTES = 50
#: A mistake is worth a word when a class meets it this often, and so many times as often as mistakes about it on average, ...
OFTEN, STANDS_OUT = 0.15, 1.5
#: ... or this often, and when as many votes of the group are about that class; so many mistakes are told.
VERY_OFTEN, SHOWN_BY, MOST_MISTAKES = 0.3, 5.0, 2
#: Share of what there is to know below which answers tell nothing about the truth.
TELLS_NOTHING = 0.05

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WorkerGroups:
    """Groups of workers who err alike, those who are right most often first.

    >>> from wisecrowd import simulate_crowd
    >>> kinds = ["expert(0.9)"] * 12 + ["mixer(0.6)"] * 8
    >>> found = worker_groups(simulate_crowd(n_tasks=500, workers=kinds, n_classes=3, votes_per_task=5).crowd)
    >>> found.size.tolist()
    [12, 8]
    >>> print(found.described[1])
    8 workers: right 60% of the time; say 'c...' for 'c...' in ...% and 'c...' for 'c...' in ...%
    """

    of_worker: pd.DataFrame
    """By worker: ``group``, its ``probability``, and ``n_votes``."""
    matrices: Numbers
    """What each group says, (groups, true, said)."""
    strength: float
    """How alike the workers of a group are: the votes that its matrix is worth, for each true class, before theirs are seen."""
    size: pd.Series
    """By group, how many workers with votes are in it more probably than in any other."""
    accuracy: pd.Series
    """By group, how often a vote is right."""
    described: tuple[str, ...]
    """A sentence about each group."""
    tried: pd.DataFrame
    """By number of groups: mean ``log_likelihood`` of a hidden vote, how far all of them are ``behind`` the best, and the
    ``standard_error`` of that; empty when the number was given."""

    def members(self, group: int, most: int = 5) -> list[str]:
        """Names of a group, those with most votes first, and how many more there are.

        >>> from wisecrowd import simulate_crowd
        >>> kinds = ["expert(0.9)"] * 12 + ["mixer(0.6)"] * 8
        >>> found = worker_groups(simulate_crowd(n_tasks=500, workers=kinds, n_classes=3, votes_per_task=5).crowd)
        >>> found.members(1, most=2)[-1]
        'and 6 more'
        """
        mine = self.of_worker[(self.of_worker["group"] == group) & (self.of_worker["n_votes"] > 0)]
        names = [str(name) for name in mine.sort_values("n_votes", ascending=False, kind="stable").index]
        return names if len(names) <= most else [*names[:most], f"and {len(names) - most:,} more"]


def worker_groups(
    crowd: Any, n_groups: int | None = None, *, max_groups: int = 8, n_init: int = 20, random_state: int = 0
) -> WorkerGroups:
    """Find workers who err alike.

    Every worker belongs to one of G groups, and has a matrix near that of the group, rows drawn from Dirichlet(c Π_g[k]):

        log P(votes of r | group g) ≈ Σ_kl ñ_r[k, l] log Π_g[k, l],    ñ_r[k, l] = n_r[k, l] (1 + c) / (n_r[k, ·] + c)

    where n_r[k, l] is how often r said l when k was true, by the posterior that the *other* votes on each task give. Votes of
    one worker are less than as many of different ones, and ñ counts them for what they are worth; without it, whoever voted
    much would be a group. Matrices and shares of the groups are found by EM, with pseudo-votes of the crowd's matrix, from
    ``n_init`` starts of which the most promising go on; c maximises the probability of the votes given the groups.

    Unless ``n_groups`` says how many, it is the smallest number up to ``max_groups`` with which votes of each worker that were
    hidden are foretold as well as with the best number, within a standard error, or a nat over all of them. One group is the
    answer where workers differ by degrees; more can still be asked for. ``crowd`` may be a `WorkerDiagnosis`, whose model then
    serves; otherwise it is Dawid–Skene. Matrices are learnt from at most 5,000 workers, drawn at random; everybody is placed.

    Of the crowds IND-I to IND-IV of Zhang et al. (2024), with 60 votes of each of 5 x 50 workers on ten classes, five groups
    have adjusted Rand indices of .61, .79, .86 and .45, and as many by K-means over workers' matrices, drawn toward the
    crowd's, .33, .41, .50 and .27; the votes tell four, five, four and three apart. With 240 votes each they tell all five, with
    indices of .92, .97, .97 and .86, against .70, .84, .86 and .81.

    >>> from wisecrowd import simulate_crowd
    >>> made = simulate_crowd(n_tasks=500, workers=["noisy(0.7)"] * 20, n_classes=3, votes_per_task=5)
    >>> worker_groups(made.crowd).size.tolist()
    [20]
    """
    people = crowd if isinstance(crowd, WorkerDiagnosis) else WorkerDiagnosis(admitted(crowd, "workers are grouped"))
    busy = np.flatnonzero(people.crowd.votes_per_worker)
    _check(n_groups, max_groups, n_init, len(busy))
    rng = np.random.default_rng(random_state)
    chosen = busy if len(busy) <= MOST_WORKERS else np.sort(rng.choice(busy, MOST_WORKERS, replace=False))
    everything = _Ballots.of(people)
    ballots = everything.only(chosen)
    tried, count = (_NOT_TRIED, n_groups) if n_groups is not None else _how_many(ballots, max_groups, n_init, rng)
    tally = ballots.tally()
    groups = fitted(tally, people.confusion, count, n_init, rng)
    matrices = ballots.sharpened(groups, groups.members(tally.worth(groups.strength)))
    whole = tally if len(chosen) == people.crowd.n_workers else everything.tally()
    return _result(people, whole, groups, matrices, tried)


# ---------------------------------------------------------------------- inside

_NOT_TRIED = pd.DataFrame(
    {"log_likelihood": [], "behind": [], "standard_error": []}, index=pd.Index([], name="n_groups"), dtype=np.float64
)


@dataclass(frozen=True, eq=False)
class _Ballots:
    """Votes by worker, with the posterior of each vote's task by the other votes."""

    worker: NDArray[np.intp]
    label: NDArray[np.int32]
    weight: Numbers
    others: Numbers
    toward: Numbers
    n_workers: int

    @classmethod
    def of(cls, people: WorkerDiagnosis) -> _Ballots:
        """All votes."""
        crowd = people.crowd
        worker = crowd.worker_codes.astype(np.intp)
        return cls(worker, crowd.label, crowd.weight, people.others, people.confusion, crowd.n_workers)

    def take(self, rows: NDArray[np.bool_]) -> _Ballots:
        """Some of the votes."""
        parts = (self.worker[rows], self.label[rows], self.weight[rows], self.others[rows])
        return _Ballots(*parts, self.toward, self.n_workers)

    def only(self, workers: NDArray[np.intp]) -> _Ballots:
        """The votes of some workers, who are numbered anew."""
        place = np.full(self.n_workers, -1)
        place[workers] = np.arange(len(workers))
        theirs = self.take(place[self.worker] >= 0)
        return _Ballots(place[theirs.worker], theirs.label, theirs.weight, theirs.others, self.toward, len(workers))

    def tally(self) -> Tally:
        """What they add up to."""
        n_classes = self.others.shape[1]
        pairs, of_vote = np.unique(self.worker * n_classes + self.label, return_inverse=True)
        worker, label = np.divmod(pairs, n_classes)
        parts = []
        for true in range(n_classes):
            sums = np.bincount(of_vote, self.weight * self.others[:, true], minlength=len(pairs))
            seen = sums >= LEAST
            parts.append((sums[seen], worker[seen], true * n_classes + label[seen]))
        sums, worker, cell = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Tally(csr_array((sums, (worker, cell)), shape=(self.n_workers, n_classes**2)), n_classes)

    def foretold(self, groups: Groups, known: Tally) -> Numbers:
        """By worker, log P of these votes by the groups and by what is known of the worker."""
        members, c = groups.members(known.worth(groups.strength)), groups.strength
        said, total = known.said.tocsc(), known.total.reshape(self.n_workers, -1)
        found = np.zeros(len(self.worker))
        n_classes = known.n_classes
        for true in range(n_classes):
            own = said[:, true * n_classes : (true + 1) * n_classes].toarray() + c * members @ groups.matrices[:, true]
            found += self.others[:, true] * own[self.worker, self.label] / (total[self.worker, true] + c)
        return np.bincount(self.worker, self.weight * np.log(found), minlength=self.n_workers).astype(np.float64)

    def sharpened(self, groups: Groups, members: Numbers) -> Numbers:
        """The matrices when each vote says something of its own task, too: (groups, true, said).

        The others' posterior blurs a matrix, all the more the fewer they are. To place workers it does not matter, since all are
        blurred alike; to say how often they are right it does. A vote for l on a task that the others hold for k with
        probability u_k is one on class k with the probability u_k Π[k, l] / Σ_j u_j Π[j, l].
        """
        n_classes = len(self.toward)
        found = groups.matrices.copy()
        for number in range(len(found)):
            weight = self.weight * members[self.worker, number]
            for _ in range(SHARPENING):
                true = self.others * found[number].T[self.label]
                true *= (weight / true.sum(axis=1))[:, None]
                sums = [np.bincount(self.label, true[:, k], minlength=n_classes) for k in range(n_classes)]
                after = matrices_of(np.stack(sums).astype(np.float64).reshape(-1, 1), self.toward)[0]
                change = np.abs(after - found[number]).max()
                found[number] = after
                if change < SHARP:
                    break
        return found


def _how_many(ballots: _Ballots, max_groups: int, n_init: int, rng: np.random.Generator) -> tuple[pd.DataFrame, int]:
    """How well each number of groups foretells hidden votes, and the smallest that does as well as the best."""
    fold = dealt(ballots.worker, ballots.n_workers, FOLDS, rng)  # the votes of a worker go to different ones
    parts = [(ballots.take(fold != number).tally(), ballots.take(fold == number)) for number in range(FOLDS)]
    found: list[Numbers] = []
    most, best = max(1, min(max_groups, ballots.n_workers, len(ballots.worker) // VOTES)), 0
    for count in range(1, most + 1):
        progress.report("groups of workers", count - 1, most)
        fits = [(fitted(known, ballots.toward, count, n_init, rng), known, hidden) for known, hidden in parts]
        found.append(np.sum([hidden.foretold(groups, known) for groups, known, hidden in fits], axis=0))
        if found[-1].sum() > found[best].sum():
            best = count - 1
        if count - 1 - best >= PATIENCE:
            break
    behind = found[best] - np.stack(found)  # (numbers, workers)
    table = {
        "log_likelihood": np.sum(found, axis=1) / ballots.weight.sum(),
        "behind": behind.sum(axis=1),
        "standard_error": behind.std(axis=1) * np.sqrt(ballots.n_workers),
    }
    enough = int(np.flatnonzero(table["behind"] <= np.maximum(table["standard_error"], LEAST_GAIN))[0]) + 1
    return pd.DataFrame(table, index=pd.RangeIndex(1, len(found) + 1, name="n_groups")), enough


def _result(
    people: WorkerDiagnosis, tally: Tally, groups: Groups, matrices: Numbers, tried: pd.DataFrame
) -> WorkerGroups:
    """Groups that somebody is in, the most accurate first, with everybody in their place."""
    crowd, said = people.crowd, tally.worth(groups.strength)
    busy = crowd.votes_per_worker > 0
    prior = people.model.posterior_[crowd.votes_per_task > 0].mean(axis=0)
    accuracy = np.einsum("k,gkk->g", prior, matrices)
    used = np.unique(groups.members(said)[busy].argmax(axis=1))
    order = used[np.argsort(-accuracy[used], kind="stable")]
    matrices = matrices[order]
    members = groups._replace(matrices=groups.matrices[order], share=groups.share[order]).members(said)
    group = members.argmax(axis=1)
    index = pd.RangeIndex(len(order), name="group")
    size = pd.Series(np.bincount(group[busy], minlength=len(order)), index=index, name="size")
    seen = members.T @ tally.total.reshape(members.shape[0], -1)
    names = [str(name) for name in people.model.classes_]
    columns = {"group": group, "probability": members.max(axis=1), "n_votes": crowd.votes_per_worker}
    return WorkerGroups(
        of_worker=pd.DataFrame(columns, index=people.names.rename("worker")),
        matrices=matrices,
        strength=groups.strength,
        size=size,
        accuracy=pd.Series(accuracy[order], index=index, name="accuracy"),
        described=tuple(_sentence(*parts, prior, names) for parts in zip(size, matrices, seen, strict=True)),
        tried=tried,
    )


def _sentence(size: int, matrix: Numbers, seen: Numbers, prior: Numbers, names: list[str]) -> str:
    """What a group is like; ``seen`` is how many of its votes are about each true class."""
    from wisecrowd.utils.text import count_noun

    who = f"{count_noun(size, 'worker')}: right {prior @ np.diagonal(matrix):.0%} of the time"
    n_classes = len(prior)
    if n_classes == 1:
        return who
    said = prior @ matrix
    told = prior @ (matrix * np.log(matrix / said)).sum(axis=1)
    if told < TELLS_NOTHING * -(prior * np.log(np.maximum(prior, 1e-300))).sum():
        top = int(said.argmax())
        if said[top] >= ONE_BUTTON:
            return f"{who}; say {names[top]!r} in {said[top]:.0%}, whatever is true"
        return f"{who}; their answers have nothing to do with what is true"
    usual = (1 - np.diagonal(matrix)) / (n_classes - 1)
    unusual = (matrix >= STANDS_OUT * usual[:, None]) | (n_classes == 2)
    stands_out = ((matrix >= OFTEN) & unusual) | (matrix >= VERY_OFTEN)
    stands_out &= ~np.eye(n_classes, dtype=bool) & (seen >= SHOWN_BY)[:, None]
    weighed = np.where(stands_out, prior[:, None] * matrix, 0.0)
    worst = [divmod(int(place), n_classes) for place in np.argsort(-weighed, axis=None, kind="stable")[:MOST_MISTAKES]]
    listed = [
        f"{names[label]!r} for {names[true]!r} in {matrix[true, label]:.0%}"
        for true, label in worst
        if stands_out[true, label]
    ]
    return f"{who}; say {' and '.join(listed)}" if listed else f"{who}; no mistake stands out"


def _check(n_groups: int | None, max_groups: int, n_init: int, n_workers: int) -> None:
    if n_workers == 0:
        raise InputError("there are no votes to look at")
    if n_groups is not None and not 1 <= n_groups <= n_workers:
        raise UsageError(f"n_groups must be from 1 to the number of workers with votes, {n_workers:,}; got {n_groups}")
    if max_groups < 1 or n_init < 1:
        raise UsageError(f"max_groups and n_init must be 1 or more; got {max_groups} and {n_init}")
