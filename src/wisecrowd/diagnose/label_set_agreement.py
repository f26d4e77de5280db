"""Agreement on label sets: Krippendorff's alpha with the distances MASI and Jaccard, by crowd, by label and by worker.

Sets that occur several times are compared once, so that the time depends on the number of distinct sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from wisecrowd.data.label_sets import LabelSetCrowd
from wisecrowd.diagnose.agreement import AgreementCoefficient
from wisecrowd.errors import UsageError, check_choice

Array = NDArray[np.float64]
#: Distances between sets of labels.
SetDistance: TypeAlias = Literal["masi", "jaccard", "nominal"]

#: Distinct sets up to which all pairs of them are compared. Beyond it, each is compared with a random sample of votes.
MAX_SETS = 4_000
#: Votes in that sample; the expected disagreement then has a relative error of about 1 %.
SAMPLED_VOTES = 2_000
#: Pairs of sets that are compared at a time.
MAX_PAIRS = 2**21


def label_set_alpha(
    crowd: LabelSetCrowd,
    distance: SetDistance = "masi",
    *,
    interval: float | None = None,
    repeats: int = 1000,
    random_state: int = 0,
) -> AgreementCoefficient:
    """Compute Krippendorff's alpha of label sets.

    With the distance δ between sets, of the m_i sets on task i, and n sets on tasks that have two or more,

        D_o = Σ_i Σ_{a≠b} δ(S_ia, S_ib) / (m_i − 1) / n,   D_e = Σ_{a≠b} δ(S_a, S_b) / (n (n − 1)),   α = 1 − D_o / D_e.

    Jaccard's distance is 1 − |A∩B| / |A∪B|. MASI [1]_ multiplies the overlap |A∩B| / |A∪B| by 1 for equal sets, 2/3 if one contains
    the other and 1/3 if they only overlap. Two empty sets are equal.

    Parameters
    ----------
    crowd : LabelSetCrowd
        Votes.
    distance : {"masi", "jaccard", "nominal"}, default="masi"
        Distance of two sets; "nominal" is 1 for all sets that differ.
    interval : float, default=None
        Confidence level of a bootstrap interval over tasks, such as 0.95.
    repeats : int, default=1000
        Number of bootstrap replicates.
    random_state : int, default=0
        Seed of the bootstrap, and of the sample of votes if there are more than 4,000 distinct sets.

    Returns
    -------
    AgreementCoefficient

    References
    ----------
    .. [1] R. Passonneau (2006). Measuring agreement on set-valued items (MASI) for semantic and pragmatic annotation. LREC.

    Examples
    --------
    >>> votes = {"task": [1, 1, 2, 2], "worker": ["a", "b", "a", "b"], "labels": ["x|y", "x", "z", "z"]}
    >>> round(float(label_set_alpha(LabelSetCrowd.from_frame(votes), "jaccard")), 3)
    0.667
    """
    check_choice("distance", distance, ("masi", "jaccard", "nominal"))
    if interval is not None and not 0 < interval < 1:
        raise UsageError(f"interval must lie between 0 and 1, such as 0.95; got {interval}")
    votes = crowd.take(crowd.votes_per_task[crowd.task] >= 2)
    n_tasks = int((votes.votes_per_task > 0).sum())
    if n_tasks == 0:
        return AgreementCoefficient(float("nan"), None, None, 0)
    space = _SetSpace(votes, distance)
    rng = np.random.default_rng(random_state)
    expect = _make_expectation(votes, space, rng)
    cells = _count_cells(votes)
    observed = np.zeros(votes.n_tasks)
    for task, _, n_pairs, distances in _iter_pairs(cells, space):
        observed += np.bincount(task, n_pairs * distances, votes.n_tasks)
    observed /= np.maximum(votes.votes_per_task - 1, 1)
    counts = sparse.csr_array((cells.n_votes, (cells.task, cells.code)), shape=(votes.n_tasks, space.n_sets))

    def alpha(weights: Array) -> Array:
        n = weights @ votes.votes_per_task
        with np.errstate(invalid="ignore", divide="ignore"):
            expected = expect(weights @ counts) * n / (n - 1)
            return np.where(expected > 1e-12, 1 - (weights @ observed) / n / expected, np.nan)

    has_votes = votes.votes_per_task > 0
    value = float(alpha(has_votes[None].astype(np.float64))[0])
    if interval is None or np.isnan(value):
        return AgreementCoefficient(value, None, None, n_tasks)
    replicates = []
    height = max(1, MAX_PAIRS // max(votes.n_tasks, space.n_sets))
    for start in range(0, repeats, height):
        weights = np.zeros((min(height, repeats - start), votes.n_tasks))
        weights[:, has_votes] = rng.multinomial(n_tasks, np.full(n_tasks, 1 / n_tasks), size=len(weights))
        replicates.append(alpha(weights))
    low, high = np.nanquantile(np.concatenate(replicates), [(1 - interval) / 2, (1 + interval) / 2])
    return AgreementCoefficient(value, float(low), float(high), n_tasks)


def label_alphas(crowd: LabelSetCrowd) -> pd.DataFrame:
    """Compute the agreement on every label: Krippendorff's alpha of the yes/no question whether the label applies.

    Parameters
    ----------
    crowd : LabelSetCrowd
        Votes.

    Returns
    -------
    DataFrame
        Indexed by label, with the columns marked (share of the sets that contain it), agreement (probability that two workers
        agree on a task) and alpha (NaN if the label is in all sets or in none).

    Examples
    --------
    >>> votes = {"task": [1, 1, 2, 2], "worker": ["a", "b", "a", "b"], "labels": ["x|y", "x", "y", "y"]}
    >>> label_alphas(LabelSetCrowd.from_frame(votes))["alpha"].round(2).to_dict()
    {'x': 1.0, 'y': 0.0}
    """
    is_paired = crowd.votes_per_task >= 2
    marks = crowd.mark_counts[is_paired]
    n_votes = crowd.votes_per_task[is_paired].astype(np.float64)[:, None]
    n, n_marked = float(n_votes.sum()), marks.sum(axis=0)
    pairs = 2 * marks * (n_votes - marks) / np.maximum(n_votes - 1, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = 2 * n_marked * (n - n_marked) / (n - 1)
        alpha = np.where(expected > 0, 1 - pairs.sum(axis=0) / expected, np.nan)
        agreement = 1 - (pairs / n_votes).mean(axis=0) if len(marks) else np.full(crowd.n_labels, np.nan)
    columns = {
        "marked": np.bincount(crowd.label, minlength=crowd.n_labels) / max(crowd.n_votes, 1),
        "agreement": agreement,
        "alpha": alpha,
    }
    return pd.DataFrame(columns, index=crowd.labels.rename("label"))


def worker_set_agreement(crowd: LabelSetCrowd, distance: SetDistance = "masi") -> pd.Series:
    """Compute how similar the sets of a worker are to those of other workers on the same tasks.

    Parameters
    ----------
    crowd : LabelSetCrowd
        Votes.
    distance : {"masi", "jaccard", "nominal"}, default="masi"
        Distance of two sets.

    Returns
    -------
    Series
        One minus the mean distance, by worker; NaN for workers without common tasks.

    Examples
    --------
    >>> votes = {"task": [1, 1, 1], "worker": ["a", "b", "c"], "labels": ["x", "x", "y"]}
    >>> worker_set_agreement(LabelSetCrowd.from_frame(votes)).to_dict()
    {'a': 0.5, 'b': 0.5, 'c': 0.0}
    """
    check_choice("distance", distance, ("masi", "jaccard", "nominal"))
    space, cells = _SetSpace(crowd, distance), _count_cells(crowd)
    # Mean distance from every set of a task to the other votes on the task.
    total = np.zeros(len(cells.task))
    for _, row, n_pairs, distances in _iter_pairs(cells, space):
        total += np.bincount(row, n_pairs * distances, len(total))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / cells.n_votes / (crowd.votes_per_task[cells.task] - 1)
        by_vote = mean[cells.of_vote]
        has_others = crowd.votes_per_task[crowd.task] >= 2
        weight = has_others.astype(np.float64)
        distance_sum = np.bincount(crowd.worker, np.where(has_others, by_vote, 0), crowd.n_workers)
        similarity = 1 - distance_sum / np.bincount(crowd.worker, weight, crowd.n_workers)
    return pd.Series(similarity, index=crowd.workers.rename("worker"), name="agreement")


class _SetSpace:
    """Distinct sets of a crowd, and distances between them."""

    def __init__(self, crowd: LabelSetCrowd, distance: SetDistance) -> None:
        sets = crowd.distinct_sets
        self.n_sets, self.distance = len(sets.offset) - 1, distance
        self.size = np.diff(sets.offset).astype(np.float64)
        ones = np.ones(len(sets.label))
        self.members = sparse.csr_array((ones, sets.label, sets.offset), shape=(self.n_sets, crowd.n_labels))

    def compare(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> Array:
        """Return the distances of pairs of sets."""
        common = np.asarray(self.members[first].multiply(self.members[second]).sum(axis=1)).ravel()
        return self._measure(common, self.size[first], self.size[second], first == second)

    def compare_all(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> Array:
        """Return the distances between all members of two lists of sets, (len(first), len(second))."""
        common = (self.members[first] @ self.members[second].T).toarray()
        return self._measure(common, self.size[first][:, None], self.size[second], first[:, None] == second)

    def _measure(self, common: Array, size: Array, other_size: Array, is_equal: NDArray[np.bool_]) -> Array:
        if self.distance == "nominal":
            return np.asarray(~is_equal, dtype=np.float64)
        union = size + other_size - common
        overlap = np.divide(common, union, out=np.ones_like(common), where=union > 0)
        if self.distance == "masi":
            contained = np.where(common == np.minimum(size, other_size), 2 / 3, 1 / 3)
            overlap = overlap * np.where(is_equal, 1.0, contained)
        return np.asarray(1 - overlap, dtype=np.float64)


class _Cells(NamedTuple):
    """Distinct sets of each task, with the number of votes for them, sorted by task."""

    task: NDArray[np.int64]
    code: NDArray[np.int64]
    n_votes: Array
    of_vote: NDArray[np.int64]


def _count_cells(crowd: LabelSetCrowd) -> _Cells:
    code, offset, _ = crowd.distinct_sets
    n_sets = max(len(offset) - 1, 1)
    key, of_vote, count = np.unique(
        crowd.task.astype(np.int64) * n_sets + code, return_inverse=True, return_counts=True
    )
    task, cell_code = np.divmod(key, n_sets)
    return _Cells(task, cell_code, count.astype(np.float64), of_vote.ravel())


def _iter_pairs(cells: _Cells, space: _SetSpace) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], Array, Array]]:
    """Yield pairs of sets of one task: task, row of the first in ``cells``, number of pairs of votes, and distance."""
    _, start, n_cells = np.unique(cells.task, return_index=True, return_counts=True)
    n_pairs = np.cumsum(n_cells.astype(np.int64) ** 2)
    block = n_pairs // MAX_PAIRS
    for number in np.unique(block):
        tasks = np.flatnonzero((block == number) & (n_cells > 1))
        size = n_cells[tasks]
        first = np.repeat(
            np.repeat(start[tasks] - np.concatenate([[0], np.cumsum(size)[:-1]]), size) + np.arange(size.sum()),
            np.repeat(size, size),
        )
        width = np.repeat(size, size**2)
        begin = np.repeat(start[tasks], size**2)
        position = np.arange(len(first)) - np.repeat(np.cumsum(size**2) - size**2, size**2)
        second = begin + position % np.maximum(width, 1)
        distances = space.compare(cells.code[first], cells.code[second])
        yield cells.task[first], first, cells.n_votes[first] * cells.n_votes[second], distances


def _make_expectation(votes: LabelSetCrowd, space: _SetSpace, rng: np.random.Generator) -> Callable[[Array], Array]:
    """Return a function from counts of sets (replicates x sets) to the mean distance of two votes, drawn with replacement."""
    codes = np.arange(space.n_sets)
    if space.n_sets <= MAX_SETS:
        distances = space.compare_all(codes, codes)

        def expect(counts: Array) -> Array:
            shares = counts / counts.sum(axis=1, keepdims=True)
            return np.asarray(((shares @ distances) * shares).sum(axis=1))

        return expect
    # The mean distance to a random vote is linear in the counts; around the counts of the crowd, its square form has twice
    # this slope.
    sample = rng.choice(votes.distinct_sets.code, size=SAMPLED_VOTES)
    to_sample = np.concatenate(
        [space.compare_all(part, sample).mean(axis=1) for part in np.array_split(codes, -(-space.n_sets // 1000))]
    )
    centre = float(np.bincount(votes.distinct_sets.code, minlength=space.n_sets) @ to_sample) / votes.n_votes

    def expect_linear(counts: Array) -> Array:
        return np.asarray(2 * (counts @ to_sample) / counts.sum(axis=1) - centre)

    return expect_linear
