"""Simulated crowds from a description of their workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.vocabulary import as_index, as_vocabulary
from wisecrowd.errors import UsageError, preview
from wisecrowd.simulate import spec
from wisecrowd.simulate.activity import draw_beta, resolve_activity
from wisecrowd.simulate.assignment import resolve_votes_per_task
from wisecrowd.simulate.copiers import choose_sources
from wisecrowd.simulate.kinds import KINDS
from wisecrowd.simulate.spec import RandomState
from wisecrowd.simulate.votes import make_ids, simulate_votes
from wisecrowd.utils.text import count_noun

#: Default shares of the kinds of workers.
DEFAULT_WORKER_MIX: dict[str, float] = {"expert": 0.2, "noisy": 0.5, "spammer": 0.2, "adversary": 0.05, "copier": 0.05}

#: Largest number of tasks of a simulated crowd: it is built in memory, and the task ids alone take several gigabytes.
MAX_TASKS = 100_000_000

#: Largest number of cells of all confusion matrices together: 1 GB.
MAX_CONFUSION_CELLS = 2**27


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    """Simulated crowd with its truth and the behaviour of its workers.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    truth : Series
        True class by task.
    confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrix of each worker on tasks of difficulty zero. That of a copier includes the copied labels,
        and that of a drifter is the mean over time.
    kind : Series
        Kind by worker; "custom" for workers whose confusion matrix was passed.
    activity : Series
        Relative activity by worker.
    difficulty : Series
        Difficulty by task.
    copies : Series
        Copied worker by copier.

    Examples
    --------
    >>> simulation = simulate_crowd(n_tasks=100, workers=["expert(0.9)", "noisy(0.6)", "copier(1)"])
    >>> simulation
    Simulation(1 expert(0.9), 1 noisy(0.6), 1 copier(1); Crowd(300 votes: 100 tasks x 3 workers, 4 classes, 3.0 votes/task))
    >>> simulation.accuracy.round(2).to_dict(), simulation.copies.to_dict()
    ({'w0': 0.9, 'w1': 0.6, 'w2': 0.6}, {'w2': 'w1'})
    """

    crowd: Crowd
    truth: pd.Series
    confusion: NDArray[np.float64]
    kind: pd.Series
    activity: pd.Series
    difficulty: pd.Series
    copies: pd.Series

    @property
    def truth_codes(self) -> NDArray[np.int64]:
        """True class of each task as a code of the crowd's classes.

        Examples
        --------
        >>> simulate_crowd(truth=[1, 0], workers=["expert"] * 3).truth_codes.tolist()
        [1, 0]
        """
        return np.asarray(as_index(self.crowd.classes).get_indexer(as_index(self.truth)), dtype=np.int64)

    @property
    def expected_confusion(self) -> NDArray[np.float64]:
        """Mean confusion matrix of each worker on these tasks, including their difficulty.

        Examples
        --------
        >>> simulation = simulate_crowd(n_tasks=50, n_classes=2, difficulty=1.0, workers=["expert"] * 3)
        >>> simulation.expected_confusion[0].round(6).tolist()
        [[0.5, 0.5], [0.5, 0.5]]
        """
        guess = self.confusion.mean(axis=1, keepdims=True)  # labels of a worker who perceives a random class
        guess_share = self._average_by_class(self.difficulty.to_numpy(dtype=np.float64))[:, None]
        return np.asarray((1 - guess_share) * self.confusion + guess_share * guess)

    @property
    def accuracy(self) -> pd.Series:
        """Probability that each worker is right about a random one of these tasks.

        Examples
        --------
        >>> simulate_crowd(workers=["expert(0.9)", "spammer", "noisy(0.6)"]).accuracy.round(6).tolist()
        [0.9, 0.25, 0.6]
        """
        share = np.bincount(self.truth_codes, minlength=self.crowd.n_classes) / max(self.crowd.n_tasks, 1)
        right = np.einsum("k,wkk->w", share, self.expected_confusion)
        return pd.Series(right, index=self.kind.index, name="accuracy")

    def _average_by_class(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Average over the tasks of each class; over all tasks for a class without tasks."""
        codes, n_classes = self.truth_codes, self.crowd.n_classes
        counts = np.bincount(codes, minlength=n_classes)
        total = np.bincount(codes, weights=values, minlength=n_classes)
        overall = values.mean() if len(values) else 0.0
        return np.divide(total, counts, out=np.full(n_classes, overall), where=counts > 0)

    def __repr__(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(self.kind).items())
        return f"Simulation({kinds}; {self.crowd!r})"


def simulate_crowd(
    n_tasks: int | None = None,
    n_workers: int | None = None,
    n_classes: int | None = None,
    *,
    votes_per_task: int | tuple[int, int] | ArrayLike = 3,
    workers: Mapping[str, float] | Sequence[str | ArrayLike] | NDArray[np.float64] | None = None,
    activity: str | ArrayLike = "uniform",
    difficulty: str | float | ArrayLike | pd.Series | None = None,
    prior: ArrayLike | None = None,
    truth: ArrayLike | pd.Series | None = None,
    random_state: RandomState = 0,
) -> Simulation:
    """Simulate a crowd with known workers and known truth.

    Truth, workers, assignment and votes have random streams of their own. For example, crowds with different workers
    and the same seed have the same truth.

    Parameters
    ----------
    n_tasks : int, default=None
        Number of tasks; 1,000 by default.
    n_workers : int, default=None
        Number of workers; 50 by default.
    n_classes : int, default=None
        Number of classes; 4 by default.
    votes_per_task : int, tuple (low, high) or array-like of shape (n_tasks,), default=3
        Number of votes of each task.
    workers : mapping, sequence or ndarray, default=None
        Shares by kind that sum to one (`DEFAULT_WORKER_MIX` by default), numbers of workers by kind, a list with a kind
        or a confusion matrix for each worker, or all confusion matrices. Kinds are the names in `KINDS`, with numbers
        where needed: ``noisy``, ``noisy(0.7)``, ``copier(0.95)``.
    activity : str or array-like of shape (n_workers,), default="uniform"
        Distribution of the activity, ``uniform``, ``zipf`` or ``beta``, with numbers where needed (``zipf(1.5)``); or
        one number per worker.
    difficulty : str, float, array-like of shape (n_tasks,) or Series, default=None
        Probability that workers perceive a random class instead of the truth: one number, one per task, or a
        distribution, ``beta(1.5, 3)``. Zero by default.
    prior : array-like of shape (n_classes,), default=None
        Probability of each class; uniform by default.
    truth : array-like of shape (n_tasks,) or Series, default=None
        Class codes, or classes by task; drawn from ``prior`` by default.
    random_state : int or Generator, default=0
        Seed.

    Returns
    -------
    Simulation
        Votes, truth and behaviour.

    Examples
    --------
    >>> simulation = simulate_crowd(300, 12, 3, workers={"expert": 4, "noisy(0.6)": 8}, activity="zipf", random_state=1)
    >>> simulation.crowd
    Crowd(900 votes: 300 tasks x 12 workers, 3 classes, 3.0 votes/task)
    >>> simulation.truth.head(2).to_dict()
    {'t000': 'c0', 't001': 'c2'}
    >>> truth = pd.Series({"photo-1": "cat", "photo-2": "dog"})
    >>> simulate_crowd(truth=truth, workers=["expert"] * 3).crowd.classes.tolist()
    ['cat', 'dog']
    """
    truth_rng, kind_rng, source_rng, activity_rng, difficulty_rng, size_rng, vote_rng = np.random.default_rng(
        random_state
    ).spawn(7)
    true = make_truth(truth, n_tasks, n_classes, prior, truth_rng)
    kinds = _list_workers(DEFAULT_WORKER_MIX if workers is None else workers, n_workers, kind_rng)
    confusion, fidelity, later_confusion = _make_behaviours(kinds, len(true.classes), kind_rng)
    counts = resolve_votes_per_task(votes_per_task, len(true.codes), size_rng)
    source = choose_sources(fidelity > 0, source_rng)
    if (source >= 0).any() and counts.max(initial=0) < 2:
        raise UsageError("a copier votes on tasks of the copied worker; ask for two or more votes on some tasks")
    share = resolve_activity(activity, len(kinds), activity_rng)
    task_difficulty = _resolve_difficulty(difficulty, true.tasks, difficulty_rng)
    worker_ids = make_ids("w", len(kinds))
    crowd = simulate_votes(
        true.codes,
        confusion,
        votes_per_task=counts,
        activity=share,
        difficulty=task_difficulty,
        source=source,
        fidelity=fidelity,
        later_confusion=later_confusion,
        tasks=true.tasks,
        workers=worker_ids,
        classes=true.classes,
        random_state=vote_rng,
    )
    confusion = confusion if later_confusion is None else (confusion + later_confusion) / 2
    copier = np.flatnonzero(source >= 0)
    copied_share = fidelity[copier, None, None]
    confusion[copier] = (1 - copied_share) * confusion[copier] + copied_share * confusion[source[copier]]
    task_index, worker_index = true.tasks.rename("task"), worker_ids.rename("worker")
    kind_names = [kind if isinstance(kind, str) else "custom" for kind in kinds]
    return Simulation(
        crowd=crowd,
        truth=pd.Series(true.classes[true.codes], index=task_index, name="truth"),
        confusion=confusion,
        kind=pd.Series(kind_names, index=worker_index, name="kind"),
        activity=pd.Series(share, index=worker_index, name="activity"),
        difficulty=pd.Series(task_difficulty.copy(), index=task_index, name="difficulty"),
        copies=pd.Series(worker_ids[source[copier]], index=worker_index[copier], name="copies"),
    )


class SimulatedTruth(NamedTuple):
    """True class of each simulated task, with the ids of tasks and classes.

    Parameters
    ----------
    codes : ndarray of shape (n_tasks,)
        Class codes.
    tasks, classes : Index
        Ids.

    Examples
    --------
    >>> SimulatedTruth(np.array([1]), pd.Index(["t0"]), pd.Index(["cat", "dog"])).codes.tolist()
    [1]
    """

    codes: NDArray[np.int64]
    tasks: pd.Index
    classes: pd.Index


def make_truth(
    truth: ArrayLike | pd.Series | None,
    n_tasks: int | None,
    n_classes: int | None,
    prior: ArrayLike | None,
    rng: np.random.Generator,
) -> SimulatedTruth:
    """Validate the truth of simulated tasks, or draw it.

    Parameters
    ----------
    truth : array-like of shape (n_tasks,), Series or None
        Class codes, or classes by task; None to draw it.
    n_tasks : int or None
        Number of tasks; 1,000 by default.
    n_classes : int or None
        Number of classes; 4 by default.
    prior : array-like of shape (n_classes,) or None
        Probability of each class; uniform by default.
    rng : Generator
        Random numbers.

    Returns
    -------
    SimulatedTruth
        Codes and ids.

    Raises
    ------
    UsageError
        If the arguments are invalid or contradict each other.

    Examples
    --------
    >>> make_truth([1, 0], None, 3, None, np.random.default_rng(0)).classes.tolist()
    ['c0', 'c1', 'c2']
    """
    if truth is None:
        shares = None if prior is None else spec.check_distributions(prior, "prior", (n_classes,))
        k = n_classes if n_classes is not None else 4 if shares is None else len(shares)
        n = 1000 if n_tasks is None else n_tasks
        if n > MAX_TASKS:
            raise UsageError(f"a simulated crowd can have at most {MAX_TASKS:,} tasks, as it is in memory; got {n:,}")
        if n < 1 or k < 2:
            raise UsageError(f"a simulated crowd needs a task and two classes at least; got {n} tasks, {k} classes")
        return SimulatedTruth(rng.choice(k, size=n, p=shares), make_ids("t", n), make_ids("c", k))
    if prior is not None:
        raise UsageError("truth and prior exclude each other; leave one of them out")
    if isinstance(truth, pd.Series):
        if truth.isna().any():
            raise UsageError(
                f"truth is missing for {preview(truth.index[truth.isna()])}; drop those tasks: truth.dropna()"
            )
        categories = truth.astype("category")
        codes, classes = categories.cat.codes.to_numpy(dtype=np.int64), categories.cat.categories
        tasks = as_vocabulary(truth.index, "task")
    else:
        codes = np.asarray(truth)
        if codes.ndim != 1 or codes.dtype.kind not in "iu" or (codes.size and codes.min() < 0):
            raise UsageError("truth must hold class codes from 0, one per task; give a Series for classes by name")
        classes = make_ids("c", max(int(codes.max(initial=-1)) + 1, n_classes or 2))
        tasks = make_ids("t", len(codes))
    for name, argument, actual in (("n_tasks", n_tasks, len(tasks)), ("n_classes", n_classes, len(classes))):
        if argument not in (None, actual):
            raise UsageError(f"{name} is {argument}, but the given truth has {actual}; leave {name} out")
    if len(tasks) == 0 or len(classes) < 2:
        raise UsageError(f"truth must have a task and two classes at least; got {len(tasks)} and {len(classes)}")
    return SimulatedTruth(codes.astype(np.int64), tasks, classes)


def _list_workers(
    workers: Mapping[str, float] | Iterable[str | ArrayLike], n_workers: int | None, rng: np.random.Generator
) -> list[str | NDArray[np.float64]]:
    """Return a kind or a confusion matrix for each worker."""
    if isinstance(workers, str):
        raise UsageError(f"workers must be shares by kind or a list; for one kind write {{{workers!r}: 1.0}}")
    if not isinstance(workers, Mapping):
        kinds = [kind if isinstance(kind, str) else np.asarray(kind, dtype=np.float64) for kind in workers]
        if not kinds or n_workers not in (None, len(kinds)):
            raise _mismatched_workers(len(kinds), n_workers)
        return kinds
    value = np.array(list(workers.values()), dtype=np.float64)
    if not np.isfinite(value).all() or (value < 0).any():
        raise UsageError(f"shares of workers must not be negative; got {dict(workers)}")
    if all(isinstance(number, int) for number in workers.values()) and value.sum() != 1:
        counts = value.astype(np.int64)
        if counts.sum() == 0 or n_workers not in (None, counts.sum()):
            raise _mismatched_workers(int(counts.sum()), n_workers)
    elif abs(value.sum() - 1) > 1e-6:
        raise UsageError(f"shares of workers must sum to one; these sum to {value.sum():g}")
    else:
        counts = _apportion(value, 50 if n_workers is None else n_workers)
    # In random order, so that the number of a worker says nothing about the kind.
    return rng.permutation(np.repeat(np.array(list(workers), dtype=object), counts)).tolist()


def _mismatched_workers(n_described: int, n_workers: int | None) -> UsageError:
    """Return the error for an argument ``workers`` that describes no worker, or another number than ``n_workers``."""
    if n_described == 0:
        return UsageError("workers describes nobody; name at least one worker")
    described = count_noun(n_described, "worker")
    return UsageError(f"workers describes {described}, but n_workers is {n_workers}; leave n_workers out")


def _apportion(share: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Return integers in proportion to shares, by largest remainder."""
    if total < 1:
        raise UsageError(f"a crowd needs at least one worker; got n_workers={total}")
    exact = share / share.sum() * total
    counts = np.floor(exact + 1e-9).astype(np.int64)
    counts[np.argsort(counts - exact, kind="stable")[: total - counts.sum()]] += 1
    return counts


def _make_behaviours(
    workers: list[str | NDArray[np.float64]], n_classes: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None]:
    """Return the confusion matrix, the fidelity and, if any worker drifts, the later confusion matrix of each worker."""
    if len(workers) * n_classes**2 > MAX_CONFUSION_CELLS:
        raise UsageError(
            f"{len(workers):,} confusion matrices of {n_classes:,} x {n_classes:,} do not fit in memory; "
            "simulate fewer workers or classes"
        )
    confusion = np.empty((len(workers), n_classes, n_classes))
    fidelity = np.zeros(len(workers))
    later_by_kind: dict[str, NDArray[np.float64]] = {}
    positions: dict[str, list[int]] = {}
    for position, worker in enumerate(workers):
        if isinstance(worker, str):
            positions.setdefault(worker, []).append(position)
        else:
            confusion[position] = spec.check_distributions(
                worker, f"confusion of worker {position}", (n_classes, n_classes)
            )
    for kind, members in positions.items():
        behaviour = spec.call_spec(KINDS, "worker kind", kind, rng, len(members), n_classes)
        confusion[members], fidelity[members] = behaviour.confusion, behaviour.fidelity
        if behaviour.later_confusion is not None:
            later_by_kind[kind] = behaviour.later_confusion
    if not later_by_kind:
        return confusion, fidelity, None
    later_confusion = confusion.copy()
    for kind, matrix in later_by_kind.items():
        later_confusion[positions[kind]] = matrix
    return confusion, fidelity, later_confusion


def _resolve_difficulty(
    difficulty: str | float | ArrayLike | pd.Series | None, tasks: pd.Index, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return the difficulty of each task."""
    if difficulty is None:
        return np.zeros(len(tasks))
    if isinstance(difficulty, str):
        return spec.call_spec({"beta": draw_beta}, "difficulty", difficulty, rng, len(tasks))
    if isinstance(difficulty, pd.Series):
        absent = tasks.difference(difficulty.index)
        if len(absent):
            raise UsageError(
                f"no difficulty for {count_noun(len(absent), 'task')}, for example {preview(absent)}; give one number per task"
            )
        return difficulty.loc[tasks].to_numpy(dtype=np.float64)
    return spec.broadcast_fractions("difficulty", difficulty, len(tasks), "task")
