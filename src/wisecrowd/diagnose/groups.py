"""Groups of workers with similar errors.

A worker with ten votes has no usable confusion matrix, so clustering of matrices groups such workers at random. Here workers are
assigned by the likelihood of their votes: few votes mean an uncertain membership.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array

from wisecrowd.data.rows import assign_folds
from wisecrowd.data.types import CrowdLike
from wisecrowd.diagnose.group_mixture import ConfusionTally, GroupMixture, estimate_confusion, fit_group_mixture
from wisecrowd.diagnose.preparation import SINGLE_LABEL_SHARE
from wisecrowd.diagnose.workers import WorkerDiagnosis
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate.inputs import require_categorical_crowd
from wisecrowd.utils import progress

#: Number of folds of each worker's votes for choosing the number of groups.
FOLDS = 4
#: Largest number of steps for sharpening the matrices of the groups.
MAX_SHARPENING_STEPS = 100
#: Largest change of a probability at which sharpening stops.
SHARPENING_TOLERANCE = 1e-3
#: Counts below this fraction of a vote are dropped to keep the tally sparse.
MIN_COUNT = 1e-4
#: Largest number of workers that the mixture is fitted to. The others are only assigned to groups.
MAX_WORKERS = 5000
#: Votes, and smallest number of workers, by which the number of groups is chosen. A random sample of workers with that many votes
#: shows the groups that all workers have, and the search fits dozens of mixtures. If few workers have very many votes, a random
#: part of these is enough, because a worker's votes on a class count for at most fifty.
MAX_SEARCH_VOTES, MIN_SEARCH_WORKERS, MAX_VOTES_OF_FEW_WORKERS = 25_000, 500, 200_000
#: Entries of the tally that the mixture is fitted to, and smallest number of workers. With thousands of classes, a vote has an
#: entry for every class, and a sample of fewer workers has as many entries as a fit should take.
MAX_FITTED_ENTRIES, MIN_WORKERS = 2**20, 200
#: Cells of the matrices of all groups that the search for the number of groups may take, if the crowd does not have more votes.
MAX_GROUP_CELLS = 2**18
#: Number of further group counts that are tried without improvement.
PATIENCE = 2
#: Gain in log-likelihood over all held-out votes (nats) below which two numbers of groups count as equal.
MIN_GAIN = 1.0
#: Smallest number of votes per group; fewer cannot distinguish groups.
MIN_VOTES_PER_GROUP = 50
#: Smallest rate of an error that a description mentions, if it is also frequent relative to other errors.
MIN_ERROR_RATE = 0.15
#: Smallest ratio of such an error's rate to the mean error rate of its true class.
MIN_ERROR_RATIO = 1.5
#: Rate from which an error is mentioned in any case.
HIGH_ERROR_RATE = 0.3
#: Smallest number of the group's votes on a true class whose errors are mentioned.
MIN_CLASS_VOTES = 5.0
#: Largest number of errors in a description.
MAX_ERRORS_LISTED = 2
#: Share of the entropy of the truth below which votes count as uninformative.
MIN_INFORMATION_SHARE = 0.05

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WorkerGroups:
    """Groups of workers with similar errors, most accurate group first.

    Attributes
    ----------
    memberships : DataFrame
        ``group``, its ``probability`` and ``n_votes`` by worker.
    confusion : ndarray of shape (n_groups, n_classes, n_classes)
        Confusion matrix of each group.
    strength : float
        Prior strength of a group's matrix for its workers, in votes per true class. Larger values mean more similar workers.
    size : Series
        Number of workers with votes in each group.
    accuracy : Series
        Accuracy of each group.
    descriptions : tuple of str
        One sentence per group.
    search : DataFrame
        By number of groups: mean ``log_likelihood`` of a held-out vote, total distance ``behind`` the best number and its
        ``standard_error``. Empty if the number of groups was given, or if classes are too many for two groups.

    Examples
    --------
    >>> from wisecrowd import simulate_crowd
    >>> kinds = ["expert(0.9)"] * 12 + ["mixer(0.6)"] * 8
    >>> groups = group_workers(simulate_crowd(n_tasks=500, workers=kinds, n_classes=3, votes_per_task=5).crowd)
    >>> groups.size.tolist()
    [12, 8]
    >>> print(groups.descriptions[1])
    8 workers: right 60% of the time; say 'c...' for 'c...' in ...% and 'c...' for 'c...' in ...%
    """

    memberships: pd.DataFrame
    confusion: FloatArray
    strength: float
    size: pd.Series
    accuracy: pd.Series
    descriptions: tuple[str, ...]
    search: pd.DataFrame

    def members(self, group: int, max_names: int = 5) -> list[str]:
        """Return names of a group's workers, those with most votes first, and the number of further ones.

        Parameters
        ----------
        group : int
            Group number.
        max_names : int, default=5
            Largest number of names.

        Returns
        -------
        list of str

        Examples
        --------
        >>> from wisecrowd import simulate_crowd
        >>> kinds = ["expert(0.9)"] * 12 + ["mixer(0.6)"] * 8
        >>> groups = group_workers(simulate_crowd(n_tasks=500, workers=kinds, n_classes=3, votes_per_task=5).crowd)
        >>> groups.members(1, max_names=2)[-1]
        'and 6 more'
        """
        members = self.memberships[(self.memberships["group"] == group) & (self.memberships["n_votes"] > 0)]
        names = [str(name) for name in members.sort_values("n_votes", ascending=False, kind="stable").index]
        return names if len(names) <= max_names else [*names[:max_names], f"and {len(names) - max_names:,} more"]


def group_workers(
    crowd: CrowdLike | WorkerDiagnosis,
    n_groups: int | None = None,
    *,
    max_groups: int = 8,
    n_init: int = 20,
    random_state: int = 0,
) -> WorkerGroups:
    """Find groups of workers with similar errors.

    Every worker belongs to one of G groups and has a confusion matrix near that of the group, with rows drawn from
    Dirichlet(c Π_g[k]):

        log P(votes of r | group g) ≈ Σ_kl ñ_r[k, l] log Π_g[k, l],    ñ_r[k, l] = n_r[k, l] (1 + c) / (n_r[k, ·] + c)

    Here n_r[k, l] counts the votes of worker r for label l on tasks of class k, by the posterior of the *other* votes on each task.
    The factor in ñ accounts for the dependence of votes of one worker; without it, workers with many votes would form their own
    groups. Matrices and shares are estimated by EM with pseudo-votes of the crowd's matrix, and c by maximum likelihood.

    If ``n_groups`` is None, it is the smallest number whose predictions of held-out votes are within one standard error, or one nat
    in total, of the best number. The result is one group if workers differ only gradually, or if there are hundreds of classes and
    fewer votes than cells in the matrices of two groups.

    Parameters
    ----------
    crowd : Crowd, DataFrame or WorkerDiagnosis
        Votes with classes and worker ids. A `WorkerDiagnosis` brings its own model; otherwise it is Dawid–Skene.
    n_groups : int, default=None
        Number of groups. Chosen by held-out votes if None.
    max_groups : int, default=8
        Largest number of groups to try.
    n_init : int, default=20
        Number of random starts of EM.
    random_state : int, default=0
        Seed of the folds, the starts and the sample of workers.

    Returns
    -------
    WorkerGroups

    Examples
    --------
    >>> from wisecrowd import simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=500, workers=["noisy(0.7)"] * 20, n_classes=3, votes_per_task=5)
    >>> group_workers(simulation.crowd).size.tolist()
    [20]
    """
    workers = (
        crowd
        if isinstance(crowd, WorkerDiagnosis)
        else WorkerDiagnosis(require_categorical_crowd(crowd, "grouping workers"))
    )
    active = np.flatnonzero(workers.crowd.votes_per_worker)
    _check_arguments(n_groups, max_groups, n_init, len(active))
    rng = np.random.default_rng(random_state)
    all_votes = _WorkerVotes.from_diagnosis(workers)
    full_tally = all_votes.tally()
    n_fitted = min(MAX_WORKERS, max(MIN_WORKERS, MAX_FITTED_ENTRIES * len(active) // max(full_tally.counts.nnz, 1)))
    sample = active if len(active) <= n_fitted else np.sort(rng.choice(active, n_fitted, replace=False))
    votes = all_votes.select_workers(sample)
    # A matrix per group with more cells than there are votes says nothing, and many starts with such matrices take minutes.
    affordable_groups = max(MAX_GROUP_CELLS, workers.crowd.n_votes) // workers.crowd.n_classes**2
    if n_groups is not None or affordable_groups < 2:
        search, n_chosen = _NO_SEARCH, n_groups or 1
    else:
        search_votes = _sample_workers(votes, rng)
        search, n_chosen = _choose_n_groups(search_votes, min(max_groups, affordable_groups), n_init, rng)
    tally = full_tally if len(sample) == workers.crowd.n_workers else votes.tally()
    mixture = fit_group_mixture(tally, workers.confusion, n_chosen, n_init, rng)
    confusion = votes.sharpen_confusion(mixture, mixture.memberships(tally.effective_counts(mixture.strength)))
    return _build_result(workers, full_tally, mixture, confusion, search)


#: Value of `WorkerGroups.search` if the number of groups is given.
_NO_SEARCH = pd.DataFrame(
    {"log_likelihood": [], "behind": [], "standard_error": []}, index=pd.Index([], name="n_groups"), dtype=np.float64
)


@dataclass(frozen=True, eq=False)
class _WorkerVotes:
    """Votes by worker with the posterior of each vote's task by the other votes."""

    worker: NDArray[np.intp]
    label: NDArray[np.int32]
    weight: FloatArray
    peer_posterior: FloatArray
    crowd_confusion: FloatArray
    n_workers: int

    @classmethod
    def from_diagnosis(cls, workers: WorkerDiagnosis) -> _WorkerVotes:
        """Return all votes of a diagnosis."""
        crowd = workers.crowd
        worker = crowd.worker_codes.astype(np.intp)
        return cls(worker, crowd.label, crowd.weight, workers.peer_posterior, workers.confusion, crowd.n_workers)

    def take(self, rows: NDArray[np.bool_]) -> _WorkerVotes:
        """Return some of the votes."""
        parts = (self.worker[rows], self.label[rows], self.weight[rows], self.peer_posterior[rows])
        return _WorkerVotes(*parts, self.crowd_confusion, self.n_workers)

    def select_workers(self, workers: NDArray[np.intp]) -> _WorkerVotes:
        """Return the votes of some workers, renumbered in the given order."""
        position = np.full(self.n_workers, -1)
        position[workers] = np.arange(len(workers))
        votes = self.take(position[self.worker] >= 0)
        return _WorkerVotes(
            position[votes.worker], votes.label, votes.weight, votes.peer_posterior, self.crowd_confusion, len(workers)
        )

    def tally(self) -> ConfusionTally:
        """Count the votes by worker, true class and label."""
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
        """Return the log-probability of each worker's votes by the groups and by the worker's training votes.

        Parameters
        ----------
        mixture : GroupMixture
            Groups fitted to the training votes.
        training_tally : ConfusionTally
            Counts of the training votes.

        Returns
        -------
        ndarray of shape (n_workers,)
        """
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
        """Return confusion matrices in which each vote also counts as evidence about its own task.

        The posterior of the other votes blurs a matrix, more so if there are few of them. Assignments do not suffer, because all
        matrices are blurred alike, but accuracies do. A vote for label l on a task with class probabilities u by the other votes
        counts for class k with weight u_k Π[k, l] / Σ_j u_j Π[j, l].

        Parameters
        ----------
        mixture : GroupMixture
            Groups of the workers.
        memberships : ndarray of shape (n_workers, n_groups)
            Probability of each group for each worker.

        Returns
        -------
        ndarray of shape (n_groups, n_classes, n_classes)
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


def _sample_workers(votes: _WorkerVotes, rng: np.random.Generator) -> _WorkerVotes:
    """Return the votes of random workers by which the number of groups is chosen."""
    if votes.n_workers > MIN_SEARCH_WORKERS and len(votes.worker) > MAX_SEARCH_VOTES:
        order = rng.permutation(votes.n_workers)
        n_votes = np.cumsum(np.bincount(votes.worker, minlength=votes.n_workers)[order])
        n_workers = max(int(np.searchsorted(n_votes, MAX_SEARCH_VOTES)) + 1, MIN_SEARCH_WORKERS)
        votes = votes.select_workers(np.sort(order[:n_workers]))
    if len(votes.worker) > MAX_VOTES_OF_FEW_WORKERS:
        votes = votes.take(rng.random(len(votes.worker)) < MAX_VOTES_OF_FEW_WORKERS / len(votes.worker))
    return votes


def _choose_n_groups(
    votes: _WorkerVotes, max_groups: int, n_init: int, rng: np.random.Generator
) -> tuple[pd.DataFrame, int]:
    """Return the scores of each number of groups on held-out votes, and the smallest number that is about as good as the best."""
    fold = assign_folds(votes.worker, votes.n_workers, FOLDS, rng)  # spreads the votes of each worker over the folds
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
    """Order the occupied groups by accuracy and assign all workers."""
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
    """Describe the accuracy and the main errors of a group; ``class_votes`` counts its votes by true class."""
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
            return f"{text}; say {names[top]!r} in {label_shares[top]:.0%}, whatever the true class"
        return f"{text}; their labels are unrelated to the true class"
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
    return f"{text}; say {' and '.join(listed)}" if listed else f"{text}; no dominant error"


def _check_arguments(n_groups: int | None, max_groups: int, n_init: int, n_workers: int) -> None:
    """Raise an error for invalid arguments."""
    if n_workers == 0:
        raise InputError("the crowd has no votes; give at least one")
    if n_groups is not None and not 1 <= n_groups <= n_workers:
        raise UsageError(
            f"n_groups must lie between 1 and the number of workers with votes ({n_workers:,}); got {n_groups}"
        )
    if max_groups < 1 or n_init < 1:
        raise UsageError(f"max_groups and n_init must be 1 or more; got {max_groups} and {n_init}")
