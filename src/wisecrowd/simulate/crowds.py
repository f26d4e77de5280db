"""A whole crowd from a description of its workers, with everything that a method should find out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.vocabulary import as_index, as_vocabulary
from wisecrowd.errors import UsageError, preview
from wisecrowd.simulate import spec
from wisecrowd.simulate.activity import draw_beta, resolve_activity
from wisecrowd.simulate.assignment import resolve_votes_per_task
from wisecrowd.simulate.copying import choose_sources
from wisecrowd.simulate.kinds import KINDS
from wisecrowd.simulate.votes import make_ids, simulate_votes

#: The workers of a crowd about which nothing is said: shares by kind.
DEFAULT_WORKER_MIX: dict[str, float] = {"expert": 0.2, "noisy": 0.5, "spammer": 0.2, "adversary": 0.05, "copier": 0.05}

#: Tasks of a crowd that is made in memory; their names alone take several gigabytes.
MAX_TASKS = 100_000_000

#: Confusion matrices of all workers together may have this many cells (1 GB).
MAX_CONFUSION_CELLS = 2**27


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    """A crowd and what is true of it.

    ``truth`` and ``difficulty`` are Series by task; ``kind``, ``activity`` and ``accuracy`` are Series by worker;
    ``copies`` tells by copier who is copied. ``confusion`` (workers, true, said) is how workers vote on a task of no
    difficulty, a copier's being what copying makes of it and a drifter's the mean over time; `expected_confusion` is how they
    vote on these tasks.

    >>> made = simulate_crowd(n_tasks=100, workers=["expert(0.9)", "noisy(0.6)", "copier(1)"])
    >>> made
    Simulation(1 expert(0.9), 1 noisy(0.6), 1 copier(1); Crowd(300 votes: 100 tasks x 3 workers, 4 classes, 3.0 votes/task))
    >>> made.accuracy.round(2).to_dict(), made.copies.to_dict()
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
        """The truth as codes of the crowd's classes, in the order of its tasks.

        >>> simulate_crowd(truth=[1, 0], workers=["expert"] * 3).truth_codes.tolist()
        [1, 0]
        """
        return np.asarray(as_index(self.crowd.classes).get_indexer(as_index(self.truth)), dtype=np.int64)

    @property
    def expected_confusion(self) -> NDArray[np.float64]:
        """What each worker says of each class on average over these tasks, difficulty included.

        >>> made = simulate_crowd(n_tasks=50, n_classes=2, difficulty=1.0, workers=["expert"] * 3)
        >>> made.expected_confusion[0].round(6).tolist()
        [[0.5, 0.5], [0.5, 0.5]]
        """
        blind = self.confusion.mean(axis=1, keepdims=True)  # what is said when any class may be true
        missed = self._by_class(self.difficulty.to_numpy(dtype=np.float64))[:, None]
        return np.asarray((1 - missed) * self.confusion + missed * blind)

    @property
    def accuracy(self) -> pd.Series:
        """How probable it is that each worker is right about one of these tasks, drawn at random.

        >>> simulate_crowd(workers=["expert(0.9)", "spammer", "noisy(0.6)"]).accuracy.round(6).tolist()
        [0.9, 0.25, 0.6]
        """
        share = np.bincount(self.truth_codes, minlength=self.crowd.n_classes) / max(self.crowd.n_tasks, 1)
        right = np.einsum("k,wkk->w", share, self.expected_confusion)
        return pd.Series(right, index=self.kind.index, name="accuracy")

    def _by_class(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mean over the tasks of each class; over all tasks for a class that has none."""
        codes, n_classes = self.truth_codes, self.crowd.n_classes
        number = np.bincount(codes, minlength=n_classes)
        total = np.bincount(codes, weights=values, minlength=n_classes)
        overall = values.mean() if len(values) else 0.0
        return np.divide(total, number, out=np.full(n_classes, overall), where=number > 0)

    def __repr__(self) -> str:
        kinds = ", ".join(f"{number} {kind}" for kind, number in Counter(self.kind).items())
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
    random_state: Any = 0,
) -> Simulation:
    """Make a crowd of known workers and known truth; 1,000 tasks, 50 workers and 4 classes unless something else is said.

    ``workers`` says who votes: shares by kind that sum to one (`DEFAULT_WORKER_MIX` unless given), whole numbers by kind, a list with
    a kind or a confusion matrix for each worker, or all matrices (workers, true, said). Kinds are the names in `KINDS`,
    with numbers where wanted: ``noisy``, ``noisy(0.7)``, ``copier(0.95)``.

    ``votes_per_task`` is a number, a tuple (low, high) or one number per task; ``activity`` is ``uniform``, ``zipf``,
    ``beta``, with numbers where wanted (``zipf(1.5)``), or one number per worker. ``difficulty`` runs from 0 (as the
    confusion says) to 1 (nobody sees the truth): a number, one per task, or drawn, ``beta(1.5, 3)``. ``truth`` is drawn
    from ``prior`` (uniform), or given: class codes, or a Series of classes by task. Truth, workers, assignment and votes
    have random streams of their own, so that other workers, for example, meet the same truth.

    >>> made = simulate_crowd(300, 12, 3, workers={"expert": 4, "noisy(0.6)": 8}, activity="zipf", random_state=1)
    >>> made.crowd
    Crowd(900 votes: 300 tasks x 12 workers, 3 classes, 3.0 votes/task)
    >>> made.truth.head(2).to_dict()
    {'t000': 'c0', 't001': 'c2'}
    >>> truth = pd.Series({"photo-1": "cat", "photo-2": "dog"})
    >>> simulate_crowd(truth=truth, workers=["expert"] * 3).crowd.classes.tolist()
    ['cat', 'dog']
    """
    truths, kinds, sources, activities, difficulties, sizes, votes = np.random.default_rng(random_state).spawn(7)
    known = make_truth(truth, n_tasks, n_classes, prior, truths)
    size = len(known.codes)
    given = _given_workers(DEFAULT_WORKER_MIX if workers is None else workers, n_workers, kinds)
    own, fidelity, later = _behaviours(given, len(known.classes), kinds)
    counts = resolve_votes_per_task(votes_per_task, size, sizes)
    source = choose_sources(fidelity > 0, sources)
    if (source >= 0).any() and counts.max(initial=0) < 2:
        raise UsageError("a copier votes beside the worker whom he copies; give some tasks two labels or more")
    share = resolve_activity(activity, len(given), activities)
    hard = _difficulty(difficulty, known.tasks, difficulties)
    names = make_ids("w", len(given))
    crowd = simulate_votes(
        known.codes, own, votes_per_task=counts, activity=share, difficulty=hard, source=source, fidelity=fidelity,
        later=later, tasks=known.tasks, workers=names, classes=known.classes, random_state=votes,
    )  # fmt: skip
    own = own if later is None else (own + later) / 2
    copier = np.flatnonzero(source >= 0)
    repeated = fidelity[copier, None, None]
    own[copier] = (1 - repeated) * own[copier] + repeated * own[source[copier]]
    task_index, worker_index = known.tasks.rename("task"), names.rename("worker")
    return Simulation(
        crowd=crowd,
        truth=pd.Series(known.classes[known.codes], index=task_index, name="truth"),
        confusion=own,
        kind=pd.Series([one if isinstance(one, str) else "given" for one in given], index=worker_index, name="kind"),
        activity=pd.Series(share, index=worker_index, name="activity"),
        difficulty=pd.Series(hard.copy(), index=task_index, name="difficulty"),
        copies=pd.Series(names[source[copier]], index=worker_index[copier], name="copies"),
    )


class SimulatedTruth(NamedTuple):
    """Tasks and classes by name, and the class of each task.

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
    """The truth as it was given, or drawn from the prior.

    >>> make_truth([1, 0], None, 3, None, np.random.default_rng(0)).classes.tolist()
    ['c0', 'c1', 'c2']
    """
    if truth is None:
        shares = None if prior is None else spec.check_distributions(prior, "prior", (n_classes,))
        k = n_classes if n_classes is not None else 4 if shares is None else len(shares)
        n = 1000 if n_tasks is None else n_tasks
        if n > MAX_TASKS:
            raise UsageError(f"a simulated crowd is made in memory, of at most {MAX_TASKS:,} tasks; got {n:,}")
        if n < 1 or k < 2:
            raise UsageError(f"a simulated crowd needs a task and two classes at least; got {n} tasks, {k} classes")
        return SimulatedTruth(rng.choice(k, size=n, p=shares), make_ids("t", n), make_ids("c", k))
    if prior is not None:
        raise UsageError("truth is given, so there is nothing to draw from the prior; leave one of them out")
    if isinstance(truth, pd.Series):
        if truth.isna().any():
            raise UsageError(
                f"truth is missing for {preview(truth.index[truth.isna()])}; drop those tasks: truth.dropna()"
            )
        named = truth.astype("category")
        codes, classes = named.cat.codes.to_numpy(dtype=np.int64), named.cat.categories
        tasks = as_vocabulary(truth.index, "task")
    else:
        codes = np.asarray(truth)
        if codes.ndim != 1 or codes.dtype.kind not in "iu" or (codes.size and codes.min() < 0):
            raise UsageError("truth must hold class codes from 0, one per task; give a Series for classes by name")
        classes = make_ids("c", max(int(codes.max(initial=-1)) + 1, n_classes or 2))
        tasks = make_ids("t", len(codes))
    for what, wanted, found in (("n_tasks", n_tasks, len(tasks)), ("n_classes", n_classes, len(classes))):
        if wanted not in (None, found):
            raise UsageError(f"{what} is {wanted}, but the given truth has {found}; leave {what} out")
    if len(tasks) == 0 or len(classes) < 2:
        raise UsageError(f"truth must have a task and two classes at least; got {len(tasks)} and {len(classes)}")
    return SimulatedTruth(codes.astype(np.int64), tasks, classes)


def _given_workers(
    workers: Mapping[str, float] | Iterable[str | ArrayLike], n_workers: int | None, rng: np.random.Generator
) -> list[str | NDArray[np.float64]]:
    """A kind or a matrix for each worker."""
    if isinstance(workers, str):
        raise UsageError(f"workers must be shares by kind or a list; for one kind write {{{workers!r}: 1.0}}")
    if not isinstance(workers, Mapping):
        listed = [one if isinstance(one, str) else np.asarray(one, dtype=np.float64) for one in workers]
        if not listed or n_workers not in (None, len(listed)):
            raise UsageError(f"{len(listed)} workers are listed, but {n_workers or 'at least one'} wanted")
        return listed
    value = np.array(list(workers.values()), dtype=np.float64)
    if not np.isfinite(value).all() or (value < 0).any():
        raise UsageError(f"shares of workers must not be negative; got {dict(workers)}")
    if all(isinstance(number, int) for number in workers.values()) and value.sum() != 1:
        number = value.astype(np.int64)
        if number.sum() == 0 or n_workers not in (None, number.sum()):
            raise UsageError(f"{number.sum()} workers are described, but {n_workers or 'at least one'} wanted")
    elif abs(value.sum() - 1) > 1e-6:
        raise UsageError(f"shares of workers must sum to one; these sum to {value.sum():g}")
    else:
        number = _apportion(value, 50 if n_workers is None else n_workers)
    # Mixed, so that a worker's number says nothing about the worker.
    return rng.permutation(np.repeat(np.array(list(workers), dtype=object), number)).tolist()


def _apportion(share: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Whole numbers in proportion to shares, by largest remainder."""
    if total < 1:
        raise UsageError(f"a crowd needs a worker at least; got n_workers={total}")
    exact = share / share.sum() * total
    number = np.floor(exact + 1e-9).astype(np.int64)
    number[np.argsort(number - exact, kind="stable")[: total - number.sum()]] += 1
    return number


def _behaviours(
    workers: list[str | NDArray[np.float64]], n_classes: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None]:
    """Confusion matrix and fidelity of each worker, and the later matrices if somebody has others; one call per kind."""
    if len(workers) * n_classes**2 > MAX_CONFUSION_CELLS:
        raise UsageError(
            f"{len(workers):,} confusion matrices of {n_classes:,} x {n_classes:,} would not fit in memory; "
            "simulate fewer workers or classes"
        )
    confusion = np.empty((len(workers), n_classes, n_classes))
    fidelity = np.zeros(len(workers))
    changed: dict[str, NDArray[np.float64]] = {}
    positions: dict[str, list[int]] = {}
    for position, one in enumerate(workers):
        if isinstance(one, str):
            positions.setdefault(one, []).append(position)
        else:
            confusion[position] = spec.check_distributions(
                one, f"confusion of worker {position}", (n_classes, n_classes)
            )
    for kind, who in positions.items():
        found = spec.call_spec(KINDS, "worker kind", kind, rng, len(who), n_classes)
        confusion[who], fidelity[who] = found.confusion, found.fidelity
        if found.later is not None:
            changed[kind] = found.later
    if not changed:
        return confusion, fidelity, None
    later = confusion.copy()
    for kind, matrix in changed.items():
        later[positions[kind]] = matrix
    return confusion, fidelity, later


def _difficulty(
    difficulty: str | float | ArrayLike | pd.Series | None, tasks: pd.Index, rng: np.random.Generator
) -> NDArray[np.float64]:
    if difficulty is None:
        return np.zeros(len(tasks))
    if isinstance(difficulty, str):
        return spec.call_spec({"beta": draw_beta}, "difficulty", difficulty, rng, len(tasks))
    if isinstance(difficulty, pd.Series):
        absent = tasks.difference(difficulty.index)
        if len(absent):
            raise UsageError(f"no difficulty for {len(absent):,} tasks, for example {preview(absent)}")
        return difficulty.loc[tasks].to_numpy(dtype=np.float64)
    return spec.broadcast_fractions("difficulty", difficulty, len(tasks), "task")
