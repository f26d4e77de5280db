"""Crowds whose workers fail on hard tasks: easiness and abilities are known, so that a method can be asked for them.

A worker of ability a_rk (the log-odds of naming class k where it is true, on the easiest task, against any one other
class) meets a task of easiness s from 0 to 1:

    P(says k | k is true) = e^(a s) / (e^(a s) + K − 1),   every other class 1 / (e^(a s) + K − 1)

so that s = 0 is guessing. With two classes a = logit(accuracy), and it is the model of Xu et al. (2019), λ = 4a.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError
from wisecrowd.simulate.assignment import assign, resolve_votes_per_task
from wisecrowd.simulate.votes import make_ids

#: Probability of being right on the easiest task when class 0 (specificity) and class 1 (sensitivity) is true: the five
#: workers of Xu et al. (2019).
XU2019_ACCURACIES = ((0.6, 0.8), (0.7, 0.6), (0.6, 0.6), (0.7, 0.7), (0.7, 0.6))


@dataclass(frozen=True, eq=False)
class DifficultyCrowd:
    """A crowd with features, and what is true of it.

    ``features`` and ``test_features`` are tables by task, ``truth`` and ``test_truth`` Series by task, ``easiness`` a
    Series by task (0: everybody guesses), ``accuracy`` a table workers x true classes: how often right on the easiest task.

    >>> simulate_gaussian_difficulty(100, random_state=1).easiness.between(0, 1).all()
    np.True_
    """

    crowd: Crowd
    features: pd.DataFrame
    truth: pd.Series
    easiness: pd.Series
    accuracy: pd.DataFrame
    test_features: pd.DataFrame
    test_truth: pd.Series

    @property
    def ability(self) -> pd.DataFrame:
        """The same as log-odds against any one other class.

        >>> simulate_gaussian_difficulty(100, accuracy=[[0.5, 0.75]]).ability.round(3).to_numpy().tolist()
        [[0.0, 1.099]]
        """
        odds = self.accuracy * (self.accuracy.shape[1] - 1) / (1 - self.accuracy)
        return pd.DataFrame(np.log(odds), index=self.accuracy.index, columns=self.accuracy.columns)


def compute_easiness(belief: ArrayLike) -> NDArray[np.float64]:
    """How far a distribution over K classes is from uniform: K/(K−1) Σ_k (c_k − 1/K)², from 0 to 1.

    With two classes it is 4 (c − 1/2)².

    >>> compute_easiness([[0.5, 0.5], [0.75, 0.25], [0.0, 1.0]]).tolist()
    [0.0, 0.25, 1.0]
    """
    share = np.asarray(belief, dtype=np.float64)
    n_classes = share.shape[-1]
    return np.asarray(n_classes / (n_classes - 1) * ((share - 1 / n_classes) ** 2).sum(axis=-1))


def simulate_by_difficulty(
    truth: ArrayLike,
    easiness: ArrayLike,
    accuracy: ArrayLike,
    *,
    votes_per_task: int | tuple[int, int] | ArrayLike | None = None,
    activity: ArrayLike | None = None,
    tasks: Sequence[Any] | pd.Index | None = None,
    random_state: Any = 0,
) -> Crowd:
    """Votes of workers who are right as often as ``accuracy`` (workers, true classes) says on tasks of easiness 1.

    ``truth`` holds class codes. Without ``votes_per_task`` every worker labels every task.

    >>> simulate_by_difficulty([0, 1, 1, 0], [1.0, 0.5, 0.0, 1.0], [[0.9, 0.9], [0.8, 0.7]])
    Crowd(8 votes: 4 tasks x 2 workers, 2 classes, 2.0 votes/task)
    """
    right_at_best = _accuracies(accuracy)
    n_workers, n_classes = right_at_best.shape
    true, ease = np.asarray(truth), np.asarray(easiness, dtype=np.float64)
    if true.ndim != 1 or true.dtype.kind not in "iu" or not ((true >= 0) & (true < n_classes)).all():
        raise UsageError(f"truth must be class codes from 0 to {n_classes - 1}, one per task; got {truth!r}")
    if ease.shape != true.shape or not ((ease >= 0) & (ease <= 1)).all():
        raise UsageError(f"easiness must be a number from 0 to 1 for each of the {len(true):,} tasks")
    sizing, assigning, speaking = np.random.default_rng(random_state).spawn(3)
    task, worker = _who_labels_what(len(true), n_workers, votes_per_task, activity, sizing, assigning)
    ability = np.log(right_at_best * (n_classes - 1) / (1 - right_at_best))
    right = 1 / (1 + (n_classes - 1) * np.exp(-ability[worker, true[task]] * ease[task]))
    return _speak(task, worker, true[task], right, len(true), n_workers, n_classes, tasks, speaking)


def simulate_unstructured(
    truth: ArrayLike,
    n_workers: int = 5,
    *,
    n_classes: int = 2,
    levels: int = 6,
    votes_per_task: int | tuple[int, int] | ArrayLike | None = None,
    tasks: Sequence[Any] | pd.Index | None = None,
    random_state: Any = 0,
) -> Crowd:
    """Votes that no model of workers explains: each one is wrong with probability 1/(3 + k), k drawn for that vote alone.

    k is uniform on 0 … ``levels`` − 1: six levels in the text of Xu et al. (2019), five in their program.

    >>> crowd = simulate_unstructured(np.ones(2000, dtype=int))
    >>> round(float((crowd.label == 1).mean()), 2)  # 1 − (1/3 + … + 1/8) / 6
    0.8
    """
    if levels < 1 or n_workers < 1 or n_classes < 2:
        raise UsageError(
            f"levels and n_workers must be 1 or more and n_classes 2; got {levels}, {n_workers}, {n_classes}"
        )
    true = np.asarray(truth)
    sizing, assigning, speaking = np.random.default_rng(random_state).spawn(3)
    task, worker = _who_labels_what(len(true), n_workers, votes_per_task, None, sizing, assigning)
    right = 1 - 1 / (3 + speaking.integers(levels, size=len(task)))
    return _speak(task, worker, true[task], right, len(true), n_workers, n_classes, tasks, speaking)


def simulate_gaussian_difficulty(
    n_tasks: int = 1000,
    n_test: int = 1000,
    *,
    accuracy: ArrayLike = XU2019_ACCURACIES,
    sharpness: float = 0.5,
    votes_per_task: int | tuple[int, int] | ArrayLike | None = None,
    random_state: Any = 0,
) -> DifficultyCrowd:
    """Points in the plane around one centre per class; a point between the centres is hard.

    The K centres, as many as ``accuracy`` has columns, lie on a circle through (1, 1), all with variance 1. Easiness is
    that of softmax(``sharpness`` · x'c_k), at the default the σ(x₁ + x₂) of Xu et al. (2019) where K = 2.

    >>> made = simulate_gaussian_difficulty(300, votes_per_task=3)
    >>> made.crowd
    Crowd(900 votes: 300 tasks x 5 workers, 2 classes, 3.0 votes/task)
    >>> made.features.shape, made.test_features.shape
    ((300, 2), (1000, 2))
    """
    right_at_best = _accuracies(accuracy)
    n_classes = right_at_best.shape[1]
    # Class 0 opposite of (1, 1), where class 1 is if there are two.
    angle = np.pi * 5 / 4 + 2 * np.pi * np.arange(n_classes) / n_classes
    centre = np.sqrt(2) * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    placing, voting = np.random.default_rng(random_state).spawn(2)
    true = np.arange(n_tasks) % n_classes
    test_true = np.arange(n_test) % n_classes
    X = centre[true] + placing.normal(size=(n_tasks, 2))
    test_X = centre[test_true] + placing.normal(size=(n_test, 2))
    pull = np.exp(sharpness * X @ centre.T)
    ease = compute_easiness(pull / pull.sum(axis=1, keepdims=True))
    crowd = simulate_by_difficulty(true, ease, right_at_best, votes_per_task=votes_per_task, random_state=voting)
    return _described(crowd, X, true, ease, right_at_best, test_X, test_true)


def simulate_xu2019() -> DifficultyCrowd:
    """The very data of Xu et al. (2019): 1,000 points, five workers who label all of them, and 1,000 points to test on.

    Their program draws with numpy's old generator from the seeds 1228 (points) and 1234 (votes). Difficulty is their
    program's σ(x₁ + x₂); the 1/(1 + w'x) of their text has no bounds.

    >>> made = simulate_xu2019()
    >>> right = made.crowd.label == made.truth.to_numpy()[made.crowd.task]
    >>> [round(float(right[made.crowd.worker == worker].mean()), 3) for worker in range(5)]
    [0.617, 0.589, 0.538, 0.606, 0.58]
    """
    points = np.random.RandomState(1228)
    # In the order of their draws: train and test, class 1 then 0, first then second coordinate, 500 points each.
    drawn = points.randn(2, 2, 2, 500) + np.array([1, -1])[None, :, None, None]
    X, test_X = drawn.transpose(0, 1, 3, 2).reshape(2, 1000, 2)
    true = np.repeat([1, 0], 500)
    right_at_best = _accuracies(XU2019_ACCURACIES)
    ease = 4 * (1 / (1 + np.exp(-X.sum(axis=1))) - 0.5) ** 2
    ability = np.log(right_at_best / (1 - right_at_best))
    right = 1 / (1 + np.exp(-ability[:, true].T * ease[:, None]))
    zero = np.where(true[:, None] == 0, right, 1 - right)
    label = (np.random.RandomState(1234).random_sample(zero.shape) >= zero).astype(np.int32)
    task, worker = np.divmod(np.arange(label.size), label.shape[1])
    crowd = _crowd(task, worker, label.ravel(), len(true), len(right_at_best), 2, None)
    return _described(crowd, X, true, ease, right_at_best, test_X, true)


def _described(
    crowd: Crowd, X: NDArray[np.float64], true: NDArray[Any], ease: NDArray[np.float64], accuracy: NDArray[np.float64],
    test_X: NDArray[np.float64], test_true: NDArray[Any],
) -> DifficultyCrowd:  # fmt: skip
    names, test_names = crowd.tasks, make_ids("test", len(test_true))
    return DifficultyCrowd(
        crowd=crowd,
        features=pd.DataFrame(X, index=names, columns=["x1", "x2"]),
        truth=pd.Series(true, index=names, name="truth"),
        easiness=pd.Series(ease, index=names, name="easiness"),
        accuracy=pd.DataFrame(accuracy, index=crowd.workers, columns=crowd.classes),
        test_features=pd.DataFrame(test_X, index=test_names, columns=["x1", "x2"]),
        test_truth=pd.Series(test_true, index=test_names, name="truth"),
    )


def _accuracies(accuracy: ArrayLike) -> NDArray[np.float64]:
    table = np.asarray(accuracy, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < 2 or not len(table) or not ((table > 0) & (table < 1)).all():
        raise UsageError(
            "accuracy must be (workers, true classes), each a probability above 0 and below 1 of being right on the "
            f"easiest task; got shape {table.shape}"
        )
    return table


def _who_labels_what(
    n_tasks: int, n_workers: int, votes_per_task: Any, activity: ArrayLike | None, sizing: Any, assigning: Any
) -> tuple[NDArray[Any], NDArray[Any]]:
    if votes_per_task is None:
        return np.divmod(np.arange(n_tasks * n_workers), n_workers)
    counts = resolve_votes_per_task(votes_per_task, n_tasks, sizing)
    return assign(counts, np.ones(n_workers) if activity is None else activity, assigning)


def _speak(
    task: NDArray[Any], worker: NDArray[Any], seen: NDArray[Any], right: NDArray[np.float64],
    n_tasks: int, n_workers: int, n_classes: int, tasks: Any, rng: np.random.Generator,
) -> Crowd:  # fmt: skip
    """Votes that are right with their probabilities, and otherwise any other class alike."""
    other = (seen + rng.integers(1, n_classes, size=len(seen))) % n_classes
    label = np.where(rng.random(len(seen)) < right, seen, other)
    return _crowd(task, worker, label, n_tasks, n_workers, n_classes, tasks)


def _crowd(
    task: NDArray[Any],
    worker: NDArray[Any],
    label: NDArray[Any],
    n_tasks: int,
    n_workers: int,
    n_classes: int,
    tasks: Any,
) -> Crowd:
    names = make_ids("t", n_tasks) if tasks is None else tasks
    return Crowd.from_codes(
        task, worker, label, tasks=names, workers=make_ids("w", n_workers), classes=range(n_classes)
    )
