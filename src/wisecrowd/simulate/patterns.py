"""Crowds of a few patterns of confusion, whose workers may look at each other: the simulations of Zhang et al. (2024).

Five patterns of fifty workers each label ten classes. Whatever their pattern, some workers label much and some hardly
anything: each has a propensity from Beta(1.5, 3), by which every task draws its three workers. Only labels that are
kept are made, and those of the one other worker at whom a worker looks: tasks x workers never exist.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.vocabulary import as_index
from wisecrowd.errors import InputError, UsageError, check_choice, preview
from wisecrowd.simulate import kinds, spec
from wisecrowd.simulate.activity import resolve_activity
from wisecrowd.simulate.assignment import assign, resolve_votes_per_task
from wisecrowd.simulate.crowds import make_truth
from wisecrowd.simulate.votes import draw_labels, make_ids

Codes = NDArray[np.int32]
Matrix = NDArray[np.float64]

# ---------------------------------------------------------------------- patterns


def build_symmetric_pattern(n_classes: int, error: float) -> Matrix:
    """Wrong with probability ``error``, whatever is true, and then any other class alike.

    >>> build_symmetric_pattern(3, 0.4).round(2).tolist()
    [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]
    """
    right = 1 - spec.check_fraction("the error of a symmetric worker", error)
    return kinds.build_symmetric_confusion(np.array([right]), n_classes)[0]


def build_pair_pattern(n_classes: int, error: float) -> Matrix:
    """Takes each class for the next one (the last for the first) with probability ``error``.

    The paper does not say which classes are pairs; the next one is usual.

    >>> build_pair_pattern(3, 0.25).tolist()
    [[0.75, 0.25, 0.0], [0.0, 0.75, 0.25], [0.25, 0.0, 0.75]]
    """
    right = 1 - spec.check_fraction("the error of a pair worker", error)
    return right * np.eye(n_classes) + (1 - right) * np.roll(np.eye(n_classes), 1, axis=1)


def build_class_wise_pattern(n_classes: int, *known: float) -> Matrix:
    """Always right about the classes of these codes, and guesses about the others.

    >>> build_class_wise_pattern(2, 1).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    unknown = [code for code in known if code not in range(n_classes)]
    if unknown or not known:
        raise UsageError(
            f"class-wise names classes that are known, by codes from 0 to {n_classes - 1}; got {list(known)}"
        )
    matrix, codes = np.full((n_classes, n_classes), 1 / n_classes), np.array(known, dtype=np.int64)
    matrix[codes] = np.eye(n_classes)[codes]
    return matrix


def build_dummy_pattern(n_classes: int) -> Matrix:
    """Guesses.

    >>> build_dummy_pattern(2).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    return np.full((n_classes, n_classes), 1 / n_classes)


class PeerPattern(NamedTuple):
    """How a worker answers who looks at another: on one task, and on average.

    >>> PEER_PATTERNS["opposite"].says(other=np.array([1, 2]), true=np.array([1, 1]), guess=np.array([0, 0])).tolist()
    [0, 1]
    """

    says: Callable[[Codes, Codes, Codes], Codes]
    """The label, from that of the other, the truth, and a guess."""
    expects: Callable[[Matrix], Matrix]
    """The confusion matrix that follows from the mean one of those who may be looked at."""


#: Patterns of workers who vote by themselves: functions (n_classes, numbers…) that give what is said, (true, said).
PATTERNS: dict[str, Callable[..., Matrix]] = {
    "symmetric": build_symmetric_pattern,
    "pair": build_pair_pattern,
    "class-wise": build_class_wise_pattern,
    "dummy": build_dummy_pattern,
}
#: Patterns of workers who look, on every task anew, at somebody of those: "copy" repeats his label; "supportive" is right
#: where he is right and guesses where he is wrong; "opposite" is right where he is wrong and guesses where he is right.
PEER_PATTERNS: dict[str, PeerPattern] = {
    "copy": PeerPattern(lambda other, true, guess: other, lambda mean: mean),
    "supportive": PeerPattern(
        lambda other, true, guess: np.where(other == true, true, guess), lambda mean: _knows(np.diagonal(mean))
    ),
    "opposite": PeerPattern(
        lambda other, true, guess: np.where(other == true, guess, true), lambda mean: _knows(1 - np.diagonal(mean))
    ),
}

#: The crowds of Zhang et al. (2024), table 4: workers who err by themselves, and some who look at each other.
PATTERN_SETS: dict[str, tuple[str, ...]] = {
    "IND-I": ("symmetric(0.3)", "symmetric(0.5)", "pair(0.6)", "class-wise(1, 3, 4, 6, 8)", "dummy"),
    "IND-II": ("symmetric(0.4)", "class-wise(2, 5, 9)", "pair(0.6)", "class-wise(0, 6, 8)", "dummy"),
    "IND-III": ("pair(0.3)", "pair(0.6)", "class-wise(0, 4, 5)", "class-wise(1, 3, 4, 6, 8)", "dummy"),
    "IND-IV": ("symmetric(0.3)", "symmetric(0.5)", "symmetric(0.7)", "pair(0.5)", "pair(0.3)"),
    "COR-I": ("symmetric(0.4)", "class-wise(2, 5, 9)", "dummy", "supportive", "opposite"),
    "COR-II": ("pair(0.5)", "class-wise(0, 6, 8)", "supportive", "opposite", "copy"),
    "COR-III": ("pair(0.4)", "symmetric(0.5)", "opposite", "supportive", "copy"),
    "COR-IV": ("symmetric(0.5)", "pair(0.7)", "pair(0.3)", "opposite", "supportive"),
}


def _knows(share: NDArray[np.float64]) -> Matrix:
    """What is said by who knows this share of the tasks of each class and guesses the others."""
    return np.diag(share) + (1 - share)[:, None] / len(share)


# ---------------------------------------------------------------------- how noisy a crowd is


class NoiseRates(NamedTuple):
    """How wrong a crowd is, as Zhang et al. (2024) count it.

    >>> NoiseRates(no_right_label=0.1, wrong_labels=0.5).wrong_labels
    0.5
    """

    no_right_label: float
    """Share of tasks none of whose labels is right, among tasks with labels (their N.R.1)."""
    wrong_labels: float
    """Share of labels that are wrong (their N.R.2)."""


def compute_noise_rates(crowd: Crowd, truth: pd.Series) -> NoiseRates:
    """How many tasks have no right label, and how many labels are wrong, on tasks whose truth is known.

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "ann", "cat")])
    >>> compute_noise_rates(crowd, pd.Series({"t1": "cat", "t2": "dog"}))
    NoiseRates(no_right_label=0.5, wrong_labels=0.666...)
    """
    if crowd.is_numeric:
        raise InputError("noise rates are of crowds that vote on classes; these votes are numbers")
    place = truth.index.get_indexer(crowd.tasks)
    codes = as_index(crowd.classes).get_indexer(pd.Index(truth))
    rows = place[crowd.task] >= 0
    if not rows.any():
        raise InputError(
            f"no task with votes has a truth; tasks are like {preview(crowd.tasks)}, those of the truth like {preview(truth.index)}"
        )
    task = crowd.task[rows]
    right = crowd.label[rows] == codes[place[task]]
    labels, right_ones = (np.bincount(task, weights=w, minlength=crowd.n_tasks) for w in (None, right))
    return NoiseRates(float((right_ones[labels > 0] == 0).mean()), float(1 - right.mean()))


# ---------------------------------------------------------------------- simulation


@dataclass(frozen=True, eq=False, repr=False)
class PatternSimulation:
    """A crowd of a few patterns of confusion, and what is true of it.

    ``truth`` is by task, ``pattern`` and ``activity`` by worker. ``confusion`` has by pattern what its workers say of each
    class, (true, said): by themselves, or, of those who look at others, on average over whom they look at.

    >>> made = simulate_patterns("COR-II", n_tasks=500)
    >>> made
    PatternSimulation(50 pair(0.5), 50 class-wise(0, 6, 8), 50 supportive, 50 opposite, 50 copy; Crowd(1,500 votes: ...))
    >>> made.confusion["copy"][0, :2].tolist()  # half of those who are copied know class 0, the others half of it
    [0.75, 0.25]
    """

    crowd: Crowd
    truth: pd.Series
    pattern: pd.Series
    activity: pd.Series
    confusion: dict[str, Matrix]

    @property
    def noise_rates(self) -> NoiseRates:
        """How many tasks have no right label, and how many labels are wrong.

        >>> round(simulate_patterns("IND-IV", n_tasks=5000).noise_rates.wrong_labels, 2)
        0.47
        """
        return compute_noise_rates(self.crowd, self.truth)

    def __repr__(self) -> str:
        numbers = Counter(self.pattern)
        return f"PatternSimulation({', '.join(f'{numbers[one]} {one}' for one in self.confusion)}; {self.crowd!r})"


def simulate_patterns(
    patterns: str | Sequence[str] = "IND-I",
    *,
    truth: ArrayLike | pd.Series | None = None,
    n_tasks: int | None = None,
    n_classes: int | None = None,
    workers_per_pattern: int = 50,
    votes_per_task: int | tuple[int, int] | ArrayLike = 3,
    activity: str | ArrayLike = "beta(1.5, 3)",
    random_state: Any = 0,
) -> PatternSimulation:
    """Votes of workers by pattern; ``patterns`` is a set of Zhang et al. (a name in `PATTERN_SETS`), or a list of patterns.

    Patterns read like ``symmetric(0.3)``, ``pair(0.6)``, ``class-wise(0, 6, 8)``, ``dummy``, ``copy``, ``supportive`` and
    ``opposite`` (see `PATTERNS` and `PEER_PATTERNS`). ``truth`` holds class codes, or is a Series of classes by task; without it,
    ``n_tasks`` (1,000) of ``n_classes`` (10) are drawn. Each task keeps ``votes_per_task`` distinct workers, drawn
    successively by ``activity`` as Gumbel top-k would, and a worker who looks at another looks, on each task, at
    anyone of those who vote by themselves, on the task or not; who looks where somebody votes sees that vote.

    >>> simulate_patterns("COR-I", n_tasks=2000, votes_per_task=5).crowd
    Crowd(10,000 votes: 2,000 tasks x 250 workers, 10 classes, 5.0 votes/task)
    >>> pets = pd.Series({"photo-1": "cat", "photo-2": "dog"})
    >>> made = simulate_patterns(["pair(0.1)", "supportive"], truth=pets, workers_per_pattern=3)
    >>> made.pattern.value_counts().sort_index().to_dict()
    {'pair(0.1)': 3, 'supportive': 3}
    """
    truths, mixing, activities, sizes, assigning, looking, speaking = np.random.default_rng(random_state).spawn(7)
    known = make_truth(truth, n_tasks, 10 if truth is None and n_classes is None else n_classes, None, truths)
    titles = _titles(patterns)
    confusion, looks = _behaviours(titles, len(known.classes))
    if workers_per_pattern < 1:
        raise UsageError(f"workers_per_pattern must be 1 or more; got {workers_per_pattern}")
    # Mixed, so that a worker's number says nothing about the worker.
    pattern = mixing.permutation(np.repeat(np.arange(len(titles), dtype=np.int32), workers_per_pattern))
    share = resolve_activity(activity, len(pattern), activities)
    task, worker = assign(resolve_votes_per_task(votes_per_task, len(known.codes), sizes), share, assigning)
    label = _labels(task, worker, pattern, known.codes.astype(np.int32), confusion, looks, looking, speaking)
    names = make_ids("w", len(pattern))
    index = names.rename("worker")
    return PatternSimulation(
        crowd=Crowd.from_codes(task, worker, label, tasks=known.tasks, workers=names, classes=known.classes),
        truth=pd.Series(known.classes[known.codes], index=known.tasks.rename("task"), name="truth"),
        pattern=pd.Series(np.array(titles)[pattern], index=index, name="pattern"),
        activity=pd.Series(share, index=index, name="activity"),
        confusion=dict(zip(titles, confusion, strict=True)),
    )


def _titles(patterns: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(patterns, str):
        check_choice("patterns", patterns, PATTERN_SETS)
        return PATTERN_SETS[patterns]
    titles = tuple(patterns)
    if not titles or len(set(titles)) < len(titles):
        raise UsageError(f"patterns must be a list of different patterns, one at least; got {list(titles)}")
    return titles


def _behaviours(titles: Sequence[str], n_classes: int) -> tuple[Matrix, dict[int, PeerPattern]]:
    """What every pattern says, (patterns, true, said), and which of them look at others, by place."""
    confusion = np.empty((len(titles), n_classes, n_classes))
    looks: dict[int, PeerPattern] = {}
    for place, title in enumerate(titles):
        name, numbers = spec.parse_spec(title, "pattern")
        check_choice("pattern", name, [*PATTERNS, *PEER_PATTERNS])
        if name in PATTERNS:
            confusion[place] = spec.call_spec(PATTERNS, "pattern", title, n_classes)
        elif numbers:
            raise UsageError(f"pattern {title!r} gives {len(numbers)} numbers, but {name!r} takes none")
        else:
            looks[place] = PEER_PATTERNS[name]
    if len(looks) == len(titles):
        raise UsageError(f"{preview(titles)} look at others; add a pattern that votes by itself: {', '.join(PATTERNS)}")
    mean = np.delete(confusion, list(looks), axis=0).mean(axis=0)
    for place, look in looks.items():
        confusion[place] = look.expects(mean)
    return confusion, looks


def _labels(
    task: Codes,
    worker: Codes,
    pattern: Codes,
    true: Codes,
    confusion: Matrix,
    looks: dict[int, PeerPattern],
    looking: np.random.Generator,
    speaking: np.random.Generator,
) -> Codes:
    """What is said in every row of (task, worker)."""
    n_workers = len(pattern)
    by_itself = ~np.isin(pattern, list(looks))
    voting, watching = np.flatnonzero(by_itself[worker]), np.flatnonzero(~by_itself[worker])
    watched = looking.choice(np.flatnonzero(by_itself), size=len(watching))
    guess = looking.integers(confusion.shape[-1], size=len(watching), dtype=np.int32)

    # Who votes by himself says one thing about a task, however many look at it.
    cell = task.astype(np.int64) * n_workers
    wanted = np.concatenate([cell[voting] + worker[voting], cell[watching] + watched])
    cells, place = np.unique(wanted, return_inverse=True)
    said = draw_labels(confusion, pattern[cells % n_workers], true[cells // n_workers], speaking)

    label = np.empty(len(task), dtype=np.int32)
    label[voting] = said[place[: len(voting)]]
    other, truth = said[place[len(voting) :]], true[task[watching]]
    for number, look in looks.items():
        mine = pattern[worker[watching]] == number
        label[watching[mine]] = look.says(other[mine], truth[mine], guess[mine])
    return label
