"""Simulated crowds of a few patterns of confusion, in which workers may imitate each other: Zhang et al. (2024).

In the paper, five patterns of fifty workers each label ten classes. Each worker has an activity from Beta(1.5, 3), by
which every task draws its three workers. Besides the labels of these workers, only those of the imitated peers are
drawn, so no array has the size tasks × workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

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
from wisecrowd.simulate.spec import RandomState
from wisecrowd.simulate.votes import draw_labels, make_ids

#: Class, worker, task or pattern codes.
Codes = NDArray[np.int32]
#: Confusion matrices, whose last two axes are (true, given).
Matrix = NDArray[np.float64]

# ---------------------------------------------------------------------- patterns


def build_symmetric_pattern(n_classes: int, error: float) -> Matrix:
    """Build a confusion matrix with one error rate for all classes and uniform errors.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    error : float
        Error rate.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        Confusion matrix.

    Examples
    --------
    >>> build_symmetric_pattern(3, 0.4).round(2).tolist()
    [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]
    """
    right = 1 - spec.check_fraction("the error of a symmetric worker", error)
    return kinds.build_symmetric_confusion(np.array([right]), n_classes)[0]


def build_pair_pattern(n_classes: int, error: float) -> Matrix:
    """Build the confusion matrix of workers who confuse each class with the next one (the last with the first).

    The paper does not say which classes form pairs; consecutive ones are usual.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    error : float
        Error rate.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        Confusion matrix.

    Examples
    --------
    >>> build_pair_pattern(3, 0.25).tolist()
    [[0.75, 0.25, 0.0], [0.0, 0.75, 0.25], [0.25, 0.0, 0.75]]
    """
    right = 1 - spec.check_fraction("the error of a pair worker", error)
    return right * np.eye(n_classes) + (1 - right) * np.roll(np.eye(n_classes), 1, axis=1)


def build_class_wise_pattern(n_classes: int, *mastered: float) -> Matrix:
    """Build the confusion matrix of workers who are always right about some classes and guess about the others.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    *mastered : float
        Codes of the classes about which the workers are right.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        Confusion matrix.

    Examples
    --------
    >>> build_class_wise_pattern(2, 1).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    invalid = [code for code in mastered if code not in range(n_classes)]
    if invalid or not mastered:
        raise UsageError(f"class-wise takes the known classes as codes from 0 to {n_classes - 1}; got {list(mastered)}")
    matrix, codes = np.full((n_classes, n_classes), 1 / n_classes), np.array(mastered, dtype=np.int64)
    matrix[codes] = np.eye(n_classes)[codes]
    return matrix


def build_dummy_pattern(n_classes: int) -> Matrix:
    """Build the confusion matrix of workers who guess.

    Parameters
    ----------
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        Uniform confusion matrix.

    Examples
    --------
    >>> build_dummy_pattern(2).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    return np.full((n_classes, n_classes), 1 / n_classes)


class PeerPattern(NamedTuple):
    """Pattern of workers whose labels depend on the label of a peer.

    Parameters
    ----------
    respond : callable
        Returns the label, given the peer's label, the truth and a guess.
    expected_confusion : callable
        Returns the confusion matrix that follows from the mean confusion matrix of the peers.

    Examples
    --------
    >>> PEER_PATTERNS["opposite"].respond(np.array([1, 2]), np.array([1, 1]), np.array([0, 0])).tolist()
    [0, 1]
    """

    respond: Callable[[Codes, Codes, Codes], Codes]
    expected_confusion: Callable[[Matrix], Matrix]


#: Patterns of workers who vote by themselves: functions (n_classes, numbers…) that return a confusion matrix.
PATTERNS: dict[str, Callable[..., Matrix]] = {
    "symmetric": build_symmetric_pattern,
    "pair": build_pair_pattern,
    "class-wise": build_class_wise_pattern,
    "dummy": build_dummy_pattern,
}
#: Patterns of workers who draw, for every task, an independent peer: "copy" repeats the peer's label;
#: "supportive" is right where the peer is right and guesses elsewhere; "opposite" is right where the peer is wrong and
#: guesses elsewhere.
PEER_PATTERNS: dict[str, PeerPattern] = {
    "copy": PeerPattern(lambda peer, true, guess: peer, lambda mean: mean),
    "supportive": PeerPattern(
        lambda peer, true, guess: np.where(peer == true, true, guess),
        lambda mean: _build_guessing_matrix(np.diagonal(mean)),
    ),
    "opposite": PeerPattern(
        lambda peer, true, guess: np.where(peer == true, guess, true),
        lambda mean: _build_guessing_matrix(1 - np.diagonal(mean)),
    ),
}

#: Crowds of Zhang et al. (2024), table 4: IND with independent workers, COR also with workers who imitate peers.
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


def _build_guessing_matrix(share: NDArray[np.float64]) -> Matrix:
    """Return the confusion matrix of workers who know this share of the tasks of each class and guess the others."""
    return np.diag(share) + (1 - share)[:, None] / len(share)


# ---------------------------------------------------------------------- noise rates


class NoiseRates(NamedTuple):
    """Noise rates of a crowd as defined by Zhang et al. (2024).

    Parameters
    ----------
    no_right_label : float
        Share of the tasks with votes that have no right vote (N.R.1 of the paper).
    wrong_labels : float
        Share of wrong votes (N.R.2 of the paper).

    Examples
    --------
    >>> NoiseRates(no_right_label=0.1, wrong_labels=0.5).wrong_labels
    0.5
    """

    no_right_label: float
    wrong_labels: float


def compute_noise_rates(crowd: Crowd, truth: pd.Series) -> NoiseRates:
    """Compute the share of tasks without a right vote and the share of wrong votes.

    Parameters
    ----------
    crowd : Crowd
        Votes for classes.
    truth : Series
        True class by task; tasks without truth are ignored.

    Returns
    -------
    NoiseRates
        Both shares.

    Raises
    ------
    InputError
        If no task with votes has a truth, or the votes are numbers.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "ann", "cat")])
    >>> compute_noise_rates(crowd, pd.Series({"t1": "cat", "t2": "dog"}))
    NoiseRates(no_right_label=0.5, wrong_labels=0.666...)
    """
    if crowd.is_numeric:
        raise InputError("noise rates need votes for classes, but these votes are numbers")
    position = truth.index.get_indexer(crowd.tasks)
    codes = as_index(crowd.classes).get_indexer(pd.Index(truth))
    rows = position[crowd.task] >= 0
    if not rows.any():
        raise InputError(
            f"no task with votes has a truth. The crowd starts with {preview(crowd.tasks)}, the truth with "
            f"{preview(truth.index)}; use the same ids in both"
        )
    task = crowd.task[rows]
    is_right = crowd.label[rows] == codes[position[task]]
    n_votes, n_right = (np.bincount(task, weights=weights, minlength=crowd.n_tasks) for weights in (None, is_right))
    return NoiseRates(float((n_right[n_votes > 0] == 0).mean()), float(1 - is_right.mean()))


# ---------------------------------------------------------------------- simulation


@dataclass(frozen=True, eq=False, repr=False)
class PatternSimulation:
    """Simulated crowd of a few patterns of confusion.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    truth : Series
        True class by task.
    pattern : Series
        Pattern by worker.
    activity : Series
        Relative activity by worker.
    confusion : dict of str to ndarray
        Confusion matrix by pattern; for workers who imitate peers, the mean over the peers.

    Examples
    --------
    >>> simulation = simulate_patterns("COR-II", n_tasks=500)
    >>> simulation
    PatternSimulation(50 pair(0.5), 50 class-wise(0, 6, 8), 50 supportive, 50 opposite, 50 copy; Crowd(1,500 votes: ...))
    >>> simulation.confusion["copy"][0, :2].tolist()  # half of the peers know class 0, the others half of its tasks
    [0.75, 0.25]
    """

    crowd: Crowd
    truth: pd.Series
    pattern: pd.Series
    activity: pd.Series
    confusion: dict[str, Matrix]

    @property
    def noise_rates(self) -> NoiseRates:
        """Share of tasks without a right vote, and share of wrong votes.

        Examples
        --------
        >>> round(simulate_patterns("IND-IV", n_tasks=5000).noise_rates.wrong_labels, 2)
        0.47
        """
        return compute_noise_rates(self.crowd, self.truth)

    def __repr__(self) -> str:
        counts = Counter(self.pattern)
        patterns = ", ".join(f"{counts[pattern]} {pattern}" for pattern in self.confusion)
        return f"PatternSimulation({patterns}; {self.crowd!r})"


def simulate_patterns(
    patterns: str | Sequence[str] = "IND-I",
    *,
    truth: ArrayLike | pd.Series | None = None,
    n_tasks: int | None = None,
    n_classes: int | None = None,
    workers_per_pattern: int = 50,
    votes_per_task: int | tuple[int, int] | ArrayLike = 3,
    activity: str | ArrayLike = "beta(1.5, 3)",
    random_state: RandomState = 0,
) -> PatternSimulation:
    """Simulate the votes of workers with a few patterns of confusion.

    A worker who imitates peers draws, on each task, one of the workers who vote by themselves. If that peer also votes
    on the task, the peer's vote is the one that is imitated.

    Parameters
    ----------
    patterns : str or sequence of str, default="IND-I"
        Name of a set of Zhang et al. (see `PATTERN_SETS`), or a list of patterns such as ``symmetric(0.3)``,
        ``pair(0.6)``, ``class-wise(0, 6, 8)``, ``dummy``, ``copy``, ``supportive`` and ``opposite`` (see `PATTERNS` and
        `PEER_PATTERNS`).
    truth : array-like of shape (n_tasks,) or Series, default=None
        Class codes, or classes by task; drawn by default.
    n_tasks : int, default=None
        Number of tasks; 1,000 by default.
    n_classes : int, default=None
        Number of classes; 10 by default.
    workers_per_pattern : int, default=50
        Number of workers of each pattern.
    votes_per_task : int, tuple (low, high) or array-like of shape (n_tasks,), default=3
        Number of votes of each task.
    activity : str or array-like of shape (n_workers,), default="beta(1.5, 3)"
        Distribution of the activity, or one number per worker.
    random_state : int or Generator, default=0
        Seed.

    Returns
    -------
    PatternSimulation
        Votes, truth and patterns.

    Examples
    --------
    >>> simulate_patterns("COR-I", n_tasks=2000, votes_per_task=5).crowd
    Crowd(10,000 votes: 2,000 tasks x 250 workers, 10 classes, 5.0 votes/task)
    >>> truth = pd.Series({"photo-1": "cat", "photo-2": "dog"})
    >>> simulation = simulate_patterns(["pair(0.1)", "supportive"], truth=truth, workers_per_pattern=3)
    >>> simulation.pattern.value_counts().sort_index().to_dict()
    {'pair(0.1)': 3, 'supportive': 3}
    """
    truth_rng, order_rng, activity_rng, size_rng, assignment_rng, peer_rng, vote_rng = np.random.default_rng(
        random_state
    ).spawn(7)
    true = make_truth(truth, n_tasks, 10 if truth is None and n_classes is None else n_classes, None, truth_rng)
    names = _list_patterns(patterns)
    confusion, peer_patterns = _build_confusion(names, len(true.classes))
    if workers_per_pattern < 1:
        raise UsageError(f"workers_per_pattern must be 1 or more; got {workers_per_pattern}")
    # In random order, so that the number of a worker says nothing about the pattern.
    pattern = order_rng.permutation(np.repeat(np.arange(len(names), dtype=np.int32), workers_per_pattern))
    share = resolve_activity(activity, len(pattern), activity_rng)
    task, worker = assign(resolve_votes_per_task(votes_per_task, len(true.codes), size_rng), share, assignment_rng)
    true_codes = true.codes.astype(np.int32)
    label = _draw_pattern_labels(task, worker, pattern, true_codes, confusion, peer_patterns, peer_rng, vote_rng)
    worker_ids = make_ids("w", len(pattern))
    worker_index = worker_ids.rename("worker")
    return PatternSimulation(
        crowd=Crowd.from_codes(task, worker, label, tasks=true.tasks, workers=worker_ids, classes=true.classes),
        truth=pd.Series(true.classes[true.codes], index=true.tasks.rename("task"), name="truth"),
        pattern=pd.Series(np.array(names)[pattern], index=worker_index, name="pattern"),
        activity=pd.Series(share, index=worker_index, name="activity"),
        confusion=dict(zip(names, confusion, strict=True)),
    )


def _list_patterns(patterns: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(patterns, str):
        check_choice("patterns", patterns, PATTERN_SETS)
        return PATTERN_SETS[patterns]
    names = tuple(patterns)
    if not names or len(set(names)) < len(names):
        raise UsageError(f"patterns must be a list of different patterns, one at least; got {list(names)}")
    return names


def _build_confusion(patterns: Sequence[str], n_classes: int) -> tuple[Matrix, dict[int, PeerPattern]]:
    """Return the confusion matrix of each pattern, and the patterns that imitate peers by position."""
    confusion = np.empty((len(patterns), n_classes, n_classes))
    peer_patterns: dict[int, PeerPattern] = {}
    for position, pattern in enumerate(patterns):
        name, numbers = spec.parse_spec(pattern, "pattern")
        check_choice("pattern", name, [*PATTERNS, *PEER_PATTERNS])
        if name in PATTERNS:
            confusion[position] = spec.call_spec(PATTERNS, "pattern", pattern, n_classes)
        elif numbers:
            raise UsageError(f"pattern {pattern!r} has {len(numbers)} numbers, but {name!r} takes none")
        else:
            peer_patterns[position] = PEER_PATTERNS[name]
    if len(peer_patterns) == len(patterns):
        raise UsageError(
            f"{preview(patterns)} imitate peers; add a pattern that votes by itself: {', '.join(PATTERNS)}"
        )
    peer_confusion = np.delete(confusion, list(peer_patterns), axis=0).mean(axis=0)
    for position, peer_pattern in peer_patterns.items():
        confusion[position] = peer_pattern.expected_confusion(peer_confusion)
    return confusion, peer_patterns


def _draw_pattern_labels(
    task: Codes,
    worker: Codes,
    pattern: Codes,
    true: Codes,
    confusion: Matrix,
    peer_patterns: dict[int, PeerPattern],
    peer_rng: np.random.Generator,
    vote_rng: np.random.Generator,
) -> Codes:
    """Draw the label of each vote."""
    n_workers = len(pattern)
    is_independent = ~np.isin(pattern, list(peer_patterns))
    own_rows, peer_rows = np.flatnonzero(is_independent[worker]), np.flatnonzero(~is_independent[worker])
    peer = peer_rng.choice(np.flatnonzero(is_independent), size=len(peer_rows))
    guess = peer_rng.integers(confusion.shape[-1], size=len(peer_rows), dtype=np.int32)

    # An independent worker gives one label to a task, however many workers imitate it.
    task_start = task.astype(np.int64) * n_workers
    cells = np.concatenate([task_start[own_rows] + worker[own_rows], task_start[peer_rows] + peer])
    distinct_cells, cell_index = np.unique(cells, return_inverse=True)
    cell_label = draw_labels(
        confusion, pattern[distinct_cells % n_workers], true[distinct_cells // n_workers], vote_rng
    )

    label = np.empty(len(task), dtype=np.int32)
    label[own_rows] = cell_label[cell_index[: len(own_rows)]]
    peer_label, peer_truth = cell_label[cell_index[len(own_rows) :]], true[task[peer_rows]]
    for position, peer_pattern in peer_patterns.items():
        members = pattern[worker[peer_rows]] == position
        label[peer_rows[members]] = peer_pattern.respond(peer_label[members], peer_truth[members], guess[members])
    return label
