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

from wisecrowd.data.rows import assign_folds
from wisecrowd.diagnose.group_mixture import ConfusionTally, GroupMixture, estimate_confusion, fit_group_mixture
from wisecrowd.diagnose.preparation import SINGLE_LABEL_SHARE
from wisecrowd.diagnose.workers import WorkerDiagnosis
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate.inputs import require_categorical_crowd
from wisecrowd.utils import progress

#: Parts of each worker's votes that are hidden in turn, to see how many groups foretell them best.
FOLDS = 4
#: Steps in which matrices are sharpened at most, and by how much they still change when they are sharp.
MAX_SHARPENING_STEPS, SHARPENING_TOLERANCE = 100, 1e-3
#: Of a tally: less of a vote than this is nothing.
MIN_COUNT = 1e-4
#: Workers that the matrices are learnt from at most; the others are only placed.
MAX_WORKERS = 5000
#: How many further numbers of groups are tried without a gain.
PATIENCE = 2
#: Nats over all hidden votes: with less, groups are told apart by nothing, and have the same figures.
MIN_GAIN = 1.0
#: Votes for each group that is tried: fewer tell nothing apart.
MIN_VOTES_PER_GROUP = 50
#: A mistake is worth a word when a class meets it this often, and so many times as often as mistakes about it on average, ...
MIN_ERROR_RATE, MIN_ERROR_RATIO = 0.15, 1.5
#: ... or this often, and when as many votes of the group are about that class; so many mistakes are told.
HIGH_ERROR_RATE, MIN_CLASS_VOTES, MAX_ERRORS_LISTED = 0.3, 5.0, 2
#: Share of what there is to know below which answers tell nothing about the truth.
MIN_INFORMATION_SHARE = 0.05

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WorkerGroups:
    """Groups of workers who err alike, those who are right most often first.

    >>> from wisecrowd import simulate_crowd
    >>> kinds = ["expert(0.9)"] * 12 + ["mixer(0.6)"] * 8
    >>> found = group_workers(simulate_crowd(n_tasks=500, workers=kinds, n_classes=3, votes_per_task=5).crowd)
    >>> found.size.tolist()
    [12, 8]
    >>> print(found.descriptions[1])
    8 workers: right 60% of the time; say 'c...' for 'c...' in ...% and 'c...' for 'c...' in ...%
    """

    memberships: pd.DataFrame
    """By worker: ``group``, its ``probability``, and ``n_votes``."""
    confusion: FloatArray
    """What each group says, (groups, true, said)."""
    strength: float
    """How alike the workers of a group are: the votes that its matrix is worth, for each true class, before theirs are seen."""
    size: pd.Series
    """By group, how many workers with votes are in it more probably than in any other."""
    accuracy: pd.Series
    """By group, how often a vote is right."""
    descriptions: tuple[str, ...]
    """A sentence about each group."""
    search: pd.DataFrame
    """By number of groups: mean ``log_likelihood`` of a hidden vote, how far all of them are ``behind`` the best, and the
    ``standard_error`` of that; empty when the number was given."""

    def members(self, group: int, max_names: int = 5) -> list[str]:
        """Names of a group, those with most votes first, and how many more there are.

        >>> from wisecrowd import simulate_crowd
        >>> kinds = ["expert(0.9)"] * 12 + ["mixer(0.6)"] * 8
        >>> found = group_workers(simulate_crowd(n_tasks=500, workers=kinds, n_classes=3, votes_per_task=5).crowd)
        >>> found.members(1, max_names=2)[-1]
        'and 6 more'
        """
        members = self.memberships[(self.memberships["group"] == group) & (self.memberships["n_votes"] > 0)]
        names = [str(name) for name in members.sort_values("n_votes", ascending=False, kind="stable").index]
        return names if len(names) <= max_names else [*names[:max_names], f"and {len(names) - max_names:,} more"]


def group_workers(
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
    >>> group_workers(made.crowd).size.tolist()
    [20]
    """
    workers = (
        crowd
        if isinstance(crowd, WorkerDiagnosis)
        else WorkerDiagnosis(require_categorical_crowd(crowd, "workers are grouped"))
    )
    active = np.flatnonzero(workers.crowd.votes_per_worker)
    _check_arguments(n_groups, max_groups, n_init, len(active))
    rng = np.random.default_rng(random_state)
    sample = active if len(active) <= MAX_WORKERS else np.sort(rng.choice(active, MAX_WORKERS, replace=False))
    all_votes = _WorkerVotes.from_diagnosis(workers)
    votes = all_votes.select_workers(sample)
    search, n_chosen = (
        (_NO_SEARCH, n_groups) if n_groups is not None else _choose_n_groups(votes, max_groups, n_init, rng)
    )
    tally = votes.tally()
    mixture = fit_group_mixture(tally, workers.confusion, n_chosen, n_init, rng)
    confusion = votes.sharpen_confusion(mixture, mixture.memberships(tally.effective_counts(mixture.strength)))
    full_tally = tally if len(sample) == workers.crowd.n_workers else all_votes.tally()
    return _build_result(workers, full_tally, mixture, confusion, search)


# ---------------------------------------------------------------------- inside

_NO_SEARCH = pd.DataFrame(
    {"log_likelihood": [], "behind": [], "standard_error": []}, index=pd.Index([], name="n_groups"), dtype=np.float64
)


@dataclass(frozen=True, eq=False)
class _WorkerVotes:
    """Votes by worker, with the posterior of each vote's task by the other votes."""

    worker: NDArray[np.intp]
    label: NDArray[np.int32]
    weight: FloatArray
    peer_posterior: FloatArray
    crowd_confusion: FloatArray
    n_workers: int

    @classmethod
    def from_diagnosis(cls, workers: WorkerDiagnosis) -> _WorkerVotes:
        """All votes."""
        crowd = workers.crowd
        worker = crowd.worker_codes.astype(np.intp)
        return cls(worker, crowd.label, crowd.weight, workers.peer_posterior, workers.confusion, crowd.n_workers)

    def take(self, rows: NDArray[np.bool_]) -> _WorkerVotes:
        """Some of the votes."""
        parts = (self.worker[rows], self.label[rows], self.weight[rows], self.peer_posterior[rows])
        return _WorkerVotes(*parts, self.crowd_confusion, self.n_workers)

    def select_workers(self, workers: NDArray[np.intp]) -> _WorkerVotes:
        """The votes of some workers, who are numbered anew."""
        position = np.full(self.n_workers, -1)
        position[workers] = np.arange(len(workers))
        votes = self.take(position[self.worker] >= 0)
        return _WorkerVotes(
            position[votes.worker], votes.label, votes.weight, votes.peer_posterior, self.crowd_confusion, len(workers)
        )

    def tally(self) -> ConfusionTally:
        """What they add up to."""
        n_classes = self.peer_posterior.shape[1]
        pairs, pair_of_vote = np.unique(self.worker * n_classes + self.label, return_inverse=True)
        worker, label = np.divmod(pairs, n_classes)
        parts = []
        for true in range(n_classes):
            sums = np.bincount(pair_of_vote, self.weight * self.peer_posterior[:, true], minlength=len(pairs))
            is_counted = sums >= MIN_COUNT
            parts.append((sums[is_counted], worker[is_counted], true * n_classes + label[is_counted]))
        sums, worker, cell = (np.concatenate(part) for part in zip(*parts, strict=True))
        return ConfusionTally(csr_array((sums, (worker, cell)), shape=(self.n_workers, n_classes**2)), n_classes)

    def predictive_log_probs(self, mixture: GroupMixture, training_tally: ConfusionTally) -> FloatArray:
        """By worker, log P of these votes by the groups and by what is known of the worker."""
        memberships, strength = mixture.memberships(training_tally.effective_counts(mixture.strength)), mixture.strength
        counts, totals = training_tally.counts.tocsc(), training_tally.row_totals.reshape(self.n_workers, -1)
        label_prob = np.zeros(len(self.worker))
        n_classes = training_tally.n_classes
        for true in range(n_classes):
            smoothed = (
                counts[:, true * n_classes : (true + 1) * n_classes].toarray()
                + strength * memberships @ mixture.confusion[:, true]
            )
            label_prob += (
                self.peer_posterior[:, true]
                * smoothed[self.worker, self.label]
                / (totals[self.worker, true] + strength)
            )
        return np.bincount(self.worker, self.weight * np.log(label_prob), minlength=self.n_workers).astype(np.float64)

    def sharpen_confusion(self, mixture: GroupMixture, memberships: FloatArray) -> FloatArray:
        """The matrices when each vote says something of its own task, too: (groups, true, said).

        The others' posterior blurs a matrix, all the more the fewer they are. To place workers it does not matter, since all are
        blurred alike; to say how often they are right it does. A vote for l on a task that the others hold for k with
        probability u_k is one on class k with the probability u_k Π[k, l] / Σ_j u_j Π[j, l].
        """
        n_classes = len(self.crowd_confusion)
        confusion = mixture.confusion.copy()
        for number in range(len(confusion)):
            weight = self.weight * memberships[self.worker, number]
            for _ in range(MAX_SHARPENING_STEPS):
                class_probs = self.peer_posterior * confusion[number].T[self.label]
                class_probs *= (weight / class_probs.sum(axis=1))[:, None]
                sums = [np.bincount(self.label, class_probs[:, k], minlength=n_classes) for k in range(n_classes)]
                updated = estimate_confusion(np.stack(sums).astype(np.float64).reshape(-1, 1), self.crowd_confusion)[0]
                change = np.abs(updated - confusion[number]).max()
                confusion[number] = updated
                if change < SHARPENING_TOLERANCE:
                    break
        return confusion


def _choose_n_groups(
    votes: _WorkerVotes, max_groups: int, n_init: int, rng: np.random.Generator
) -> tuple[pd.DataFrame, int]:
    """How well each number of groups foretells hidden votes, and the smallest that does as well as the best."""
    fold = assign_folds(votes.worker, votes.n_workers, FOLDS, rng)  # the votes of a worker go to different ones
    splits = [(votes.take(fold != number).tally(), votes.take(fold == number)) for number in range(FOLDS)]
    log_probs: list[FloatArray] = []
    max_groups_tried, best = max(1, min(max_groups, votes.n_workers, len(votes.worker) // MIN_VOTES_PER_GROUP)), 0
    for count in range(1, max_groups_tried + 1):
        progress.report("groups of workers", count - 1, max_groups_tried)
        fits = [
            (fit_group_mixture(training, votes.crowd_confusion, count, n_init, rng), training, heldout)
            for training, heldout in splits
        ]
        log_probs.append(
            np.sum([heldout.predictive_log_probs(mixture, training) for mixture, training, heldout in fits], axis=0)
        )
        if log_probs[-1].sum() > log_probs[best].sum():
            best = count - 1
        if count - 1 - best >= PATIENCE:
            break
    behind = log_probs[best] - np.stack(log_probs)  # (numbers, workers)
    table = {
        "log_likelihood": np.sum(log_probs, axis=1) / votes.weight.sum(),
        "behind": behind.sum(axis=1),
        "standard_error": behind.std(axis=1) * np.sqrt(votes.n_workers),
    }
    n_chosen = int(np.flatnonzero(table["behind"] <= np.maximum(table["standard_error"], MIN_GAIN))[0]) + 1
    return pd.DataFrame(table, index=pd.RangeIndex(1, len(log_probs) + 1, name="n_groups")), n_chosen


def _build_result(
    workers: WorkerDiagnosis, tally: ConfusionTally, mixture: GroupMixture, confusion: FloatArray, search: pd.DataFrame
) -> WorkerGroups:
    """Groups that somebody is in, the most accurate first, with everybody in their place."""
    crowd, counts = workers.crowd, tally.effective_counts(mixture.strength)
    is_active = crowd.votes_per_worker > 0
    prior = workers.model.posterior_[crowd.votes_per_task > 0].mean(axis=0)
    accuracy = np.einsum("k,gkk->g", prior, confusion)
    occupied = np.unique(mixture.memberships(counts)[is_active].argmax(axis=1))
    order = occupied[np.argsort(-accuracy[occupied], kind="stable")]
    confusion = confusion[order]
    memberships = mixture._replace(confusion=mixture.confusion[order], share=mixture.share[order]).memberships(counts)
    group = memberships.argmax(axis=1)
    index = pd.RangeIndex(len(order), name="group")
    size = pd.Series(np.bincount(group[is_active], minlength=len(order)), index=index, name="size")
    class_votes = memberships.T @ tally.row_totals.reshape(memberships.shape[0], -1)
    names = [str(name) for name in workers.model.classes_]
    columns = {"group": group, "probability": memberships.max(axis=1), "n_votes": crowd.votes_per_worker}
    return WorkerGroups(
        memberships=pd.DataFrame(columns, index=workers.worker_ids.rename("worker")),
        confusion=confusion,
        strength=mixture.strength,
        size=size,
        accuracy=pd.Series(accuracy[order], index=index, name="accuracy"),
        descriptions=tuple(
            _describe_group(*parts, prior, names) for parts in zip(size, confusion, class_votes, strict=True)
        ),
        search=search,
    )


def _describe_group(size: int, matrix: FloatArray, class_votes: FloatArray, prior: FloatArray, names: list[str]) -> str:
    """What a group is like; ``class_votes`` is how many of its votes are about each true class."""
    from wisecrowd.utils.text import count_noun

    text = f"{count_noun(size, 'worker')}: right {prior @ np.diagonal(matrix):.0%} of the time"
    n_classes = len(prior)
    if n_classes == 1:
        return text
    label_shares = prior @ matrix
    information = prior @ (matrix * np.log(matrix / label_shares)).sum(axis=1)
    if information < MIN_INFORMATION_SHARE * -(prior * np.log(np.maximum(prior, 1e-300))).sum():
        top = int(label_shares.argmax())
        if label_shares[top] >= SINGLE_LABEL_SHARE:
            return f"{text}; say {names[top]!r} in {label_shares[top]:.0%}, whatever is true"
        return f"{text}; their answers have nothing to do with what is true"
    mean_error_rate = (1 - np.diagonal(matrix)) / (n_classes - 1)
    unusual = (matrix >= MIN_ERROR_RATIO * mean_error_rate[:, None]) | (n_classes == 2)
    stands_out = ((matrix >= MIN_ERROR_RATE) & unusual) | (matrix >= HIGH_ERROR_RATE)
    stands_out &= ~np.eye(n_classes, dtype=bool) & (class_votes >= MIN_CLASS_VOTES)[:, None]
    error_mass = np.where(stands_out, prior[:, None] * matrix, 0.0)
    errors = [
        divmod(int(cell), n_classes) for cell in np.argsort(-error_mass, axis=None, kind="stable")[:MAX_ERRORS_LISTED]
    ]
    listed = [
        f"{names[label]!r} for {names[true]!r} in {matrix[true, label]:.0%}"
        for true, label in errors
        if stands_out[true, label]
    ]
    return f"{text}; say {' and '.join(listed)}" if listed else f"{text}; no mistake stands out"


def _check_arguments(n_groups: int | None, max_groups: int, n_init: int, n_workers: int) -> None:
    if n_workers == 0:
        raise InputError("there are no votes to look at")
    if n_groups is not None and not 1 <= n_groups <= n_workers:
        raise UsageError(f"n_groups must be from 1 to the number of workers with votes, {n_workers:,}; got {n_groups}")
    if max_groups < 1 or n_init < 1:
        raise UsageError(f"max_groups and n_init must be 1 or more; got {max_groups} and {n_init}")
