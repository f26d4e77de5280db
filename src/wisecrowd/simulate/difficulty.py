"""Simulated crowds in which easy tasks get more right votes than hard ones.

A worker with ability a for class k (the log-odds of the label k against any one other class, where k is true, on the
easiest task) votes on a task of easiness s, from 0 to 1, with

    P(label k | class k) = e^(a s) / (e^(a s) + K − 1),   and 1 / (e^(a s) + K − 1) for every other label.

On a task of easiness 0 all workers guess. With two classes, a = logit(accuracy), and the model is that of Xu et al.
(2019) with λ = 4a.
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
from wisecrowd.simulate.spec import RandomState
from wisecrowd.simulate.votes import make_ids

#: Accuracy of the five workers of Xu et al. (2019) on the easiest task, for class 0 (specificity) and 1 (sensitivity).
XU2019_ACCURACIES = ((0.6, 0.8), (0.7, 0.6), (0.6, 0.6), (0.7, 0.7), (0.7, 0.6))


@dataclass(frozen=True, eq=False)
class DifficultyCrowd:
    """Simulated crowd with features, truth, easiness of tasks and accuracy of workers.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    features : DataFrame
        Features by task.
    truth : Series
        True class by task.
    easiness : Series
        Easiness by task, from 0 (all workers guess) to 1.
    accuracy : DataFrame
        Accuracy on the easiest task, by worker and true class.
    test_features : DataFrame
        Features of further tasks.
    test_truth : Series
        True class of further tasks.

    Examples
    --------
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
        """Ability of each worker (row) for each true class (column), on the easiest task.

        The ability is the log-odds that the worker gives the true class instead of one particular other class. It is computed from
        ``accuracy``. An ability of 0 means that the worker guesses.

        Examples
        --------
        >>> simulate_gaussian_difficulty(100, accuracy=[[0.5, 0.75]]).ability.round(3).to_numpy().tolist()
        [[0.0, 1.099]]
        """
        odds = self.accuracy * (self.accuracy.shape[1] - 1) / (1 - self.accuracy)
        return pd.DataFrame(np.log(odds), index=self.accuracy.index, columns=self.accuracy.columns)


def compute_easiness(belief: ArrayLike) -> NDArray[np.float64]:
    """Compute the distance of a distribution over K classes from uniform, K/(K − 1) Σ_k (c_k − 1/K)².

    With two classes it is 4 (c − 1/2)².

    Parameters
    ----------
    belief : array-like of shape (..., n_classes)
        Distributions.

    Returns
    -------
    ndarray of shape (...)
        Easiness from 0 (uniform) to 1 (one class is certain).

    Examples
    --------
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
    random_state: RandomState = 0,
) -> Crowd:
    """Simulate votes on tasks of known easiness.

    Parameters
    ----------
    truth : array-like of shape (n_tasks,)
        Class code of each task.
    easiness : array-like of shape (n_tasks,)
        Easiness of each task, from 0 (all workers guess) to 1.
    accuracy : array-like of shape (n_workers, n_classes)
        Accuracy of each worker on tasks of easiness 1, by true class.
    votes_per_task : int, tuple (low, high) or array-like of shape (n_tasks,), default=None
        Number of votes of each task; every worker votes on every task by default.
    activity : array-like of shape (n_workers,), default=None
        Relative activity of each worker; uniform by default.
    tasks : sequence or Index, default=None
        Task ids; made up by default.
    random_state : int or Generator, default=0
        Seed.

    Returns
    -------
    Crowd
        The votes.

    Examples
    --------
    >>> simulate_by_difficulty([0, 1, 1, 0], [1.0, 0.5, 0.0, 1.0], [[0.9, 0.9], [0.8, 0.7]])
    Crowd(8 votes: 4 tasks x 2 workers, 2 classes, 2.0 votes/task)
    """
    best_accuracy = _check_accuracies(accuracy)
    n_workers, n_classes = best_accuracy.shape
    true, ease = np.asarray(truth), np.asarray(easiness, dtype=np.float64)
    if true.ndim != 1 or true.dtype.kind not in "iu" or not ((true >= 0) & (true < n_classes)).all():
        raise UsageError(f"truth must be class codes from 0 to {n_classes - 1}, one per task; got {truth!r}")
    if ease.shape != true.shape or not ((ease >= 0) & (ease <= 1)).all():
        raise UsageError(f"easiness must be a number from 0 to 1 for each of the {len(true):,} tasks")
    sizing, assigning, voting = np.random.default_rng(random_state).spawn(3)
    task, worker = _assign_workers(len(true), n_workers, votes_per_task, activity, sizing, assigning)
    ability = np.log(best_accuracy * (n_classes - 1) / (1 - best_accuracy))
    right = 1 / (1 + (n_classes - 1) * np.exp(-ability[worker, true[task]] * ease[task]))
    return _draw_votes(task, worker, true[task], right, len(true), n_workers, n_classes, tasks, voting)


def simulate_unstructured(
    truth: ArrayLike,
    n_workers: int = 5,
    *,
    n_classes: int = 2,
    levels: int = 6,
    votes_per_task: int | tuple[int, int] | ArrayLike | None = None,
    tasks: Sequence[Any] | pd.Index | None = None,
    random_state: RandomState = 0,
) -> Crowd:
    """Simulate votes whose error rates depend neither on the worker nor on the task.

    Each vote is wrong with probability 1/(3 + k), where k is drawn uniformly from 0 … ``levels`` − 1 for that vote.

    Parameters
    ----------
    truth : array-like of shape (n_tasks,)
        Class code of each task.
    n_workers : int, default=5
        Number of workers.
    n_classes : int, default=2
        Number of classes.
    levels : int, default=6
        Number of error rates: six in the text of Xu et al. (2019), five in their program.
    votes_per_task : int, tuple (low, high) or array-like of shape (n_tasks,), default=None
        Number of votes of each task; every worker votes on every task by default.
    tasks : sequence or Index, default=None
        Task ids; made up by default.
    random_state : int or Generator, default=0
        Seed.

    Returns
    -------
    Crowd
        The votes.

    Examples
    --------
    >>> crowd = simulate_unstructured(np.ones(2000, dtype=int))
    >>> round(float((crowd.label == 1).mean()), 2)  # 1 − (1/3 + … + 1/8) / 6
    0.8
    """
    if levels < 1 or n_workers < 1 or n_classes < 2:
        raise UsageError(
            f"levels and n_workers must be 1 or more and n_classes 2 or more; got {levels}, {n_workers}, {n_classes}"
        )
    true = np.asarray(truth)
    sizing, assigning, voting = np.random.default_rng(random_state).spawn(3)
    task, worker = _assign_workers(len(true), n_workers, votes_per_task, None, sizing, assigning)
    right = 1 - 1 / (3 + voting.integers(levels, size=len(task)))
    return _draw_votes(task, worker, true[task], right, len(true), n_workers, n_classes, tasks, voting)


def simulate_gaussian_difficulty(
    n_tasks: int = 1000,
    n_test: int = 1000,
    *,
    accuracy: ArrayLike = XU2019_ACCURACIES,
    sharpness: float = 0.5,
    votes_per_task: int | tuple[int, int] | ArrayLike | None = None,
    random_state: RandomState = 0,
) -> DifficultyCrowd:
    """Simulate tasks that are points around one centre per class; points between the centres are hard.

    The K centres lie on a circle through (1, 1), and all classes have variance 1. The easiness of a point x is that of
    softmax(``sharpness`` · x'c_k). For K = 2, the default sharpness gives the σ(x₁ + x₂) of Xu et al. (2019).

    Parameters
    ----------
    n_tasks, n_test : int, default=1000
        Number of tasks with votes and of further tasks.
    accuracy : array-like of shape (n_workers, n_classes), default=XU2019_ACCURACIES
        Accuracy of each worker on the easiest task, by true class.
    sharpness : float, default=0.5
        Slope of the easiness.
    votes_per_task : int, tuple (low, high) or array-like of shape (n_tasks,), default=None
        Number of votes of each task; every worker votes on every task by default.
    random_state : int or Generator, default=0
        Seed.

    Returns
    -------
    DifficultyCrowd
        Votes, features and truth.

    Examples
    --------
    >>> simulation = simulate_gaussian_difficulty(300, votes_per_task=3)
    >>> simulation.crowd
    Crowd(900 votes: 300 tasks x 5 workers, 2 classes, 3.0 votes/task)
    >>> simulation.features.shape, simulation.test_features.shape
    ((300, 2), (1000, 2))
    """
    best_accuracy = _check_accuracies(accuracy)
    n_classes = best_accuracy.shape[1]
    # Class 0 lies opposite of (1, 1), which is the centre of class 1 if there are two classes.
    angle = np.pi * 5 / 4 + 2 * np.pi * np.arange(n_classes) / n_classes
    centre = np.sqrt(2) * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    placing, voting = np.random.default_rng(random_state).spawn(2)
    true = np.arange(n_tasks) % n_classes
    test_true = np.arange(n_test) % n_classes
    X = centre[true] + placing.normal(size=(n_tasks, 2))
    test_X = centre[test_true] + placing.normal(size=(n_test, 2))
    unnormalized = np.exp(sharpness * X @ centre.T)
    ease = compute_easiness(unnormalized / unnormalized.sum(axis=1, keepdims=True))
    crowd = simulate_by_difficulty(true, ease, best_accuracy, votes_per_task=votes_per_task, random_state=voting)
    return _collect_results(crowd, X, true, ease, best_accuracy, test_X, test_true)


def simulate_xu2019() -> DifficultyCrowd:
    """Reproduce the data of Xu et al. (2019): 1,000 points, five workers who label all of them, and 1,000 test points.

    Their program draws with numpy's legacy generator from the seeds 1228 (points) and 1234 (votes). The difficulty is
    the σ(x₁ + x₂) of their program; the 1/(1 + w'x) of their text is unbounded.

    Returns
    -------
    DifficultyCrowd
        Votes, features and truth.

    Examples
    --------
    >>> simulation = simulate_xu2019()
    >>> right = simulation.crowd.label == simulation.truth.to_numpy()[simulation.crowd.task]
    >>> [round(float(right[simulation.crowd.worker == worker].mean()), 3) for worker in range(5)]
    [0.617, 0.589, 0.538, 0.606, 0.58]
    """
    points = np.random.RandomState(1228)
    # In the order of their draws: train and test, class 1 then 0, first then second coordinate, 500 points each.
    draws = points.randn(2, 2, 2, 500) + np.array([1, -1])[None, :, None, None]
    X, test_X = draws.transpose(0, 1, 3, 2).reshape(2, 1000, 2)
    true = np.repeat([1, 0], 500)
    best_accuracy = _check_accuracies(XU2019_ACCURACIES)
    ease = 4 * (1 / (1 + np.exp(-X.sum(axis=1))) - 0.5) ** 2
    ability = np.log(best_accuracy / (1 - best_accuracy))
    right = 1 / (1 + np.exp(-ability[:, true].T * ease[:, None]))
    zero_probability = np.where(true[:, None] == 0, right, 1 - right)
    uniform = np.random.RandomState(1234).random_sample(zero_probability.shape)
    label = (uniform >= zero_probability).astype(np.int32)
    task, worker = np.divmod(np.arange(label.size), label.shape[1])
    crowd = _build_crowd(task, worker, label.ravel(), len(true), len(best_accuracy), 2, None)
    return _collect_results(crowd, X, true, ease, best_accuracy, test_X, true)


def _collect_results(
    crowd: Crowd,
    X: NDArray[np.float64],
    true: NDArray[Any],
    ease: NDArray[np.float64],
    accuracy: NDArray[np.float64],
    test_X: NDArray[np.float64],
    test_true: NDArray[Any],
) -> DifficultyCrowd:
    tasks, test_tasks = crowd.tasks, make_ids("test", len(test_true))
    return DifficultyCrowd(
        crowd=crowd,
        features=pd.DataFrame(X, index=tasks, columns=["x1", "x2"]),
        truth=pd.Series(true, index=tasks, name="truth"),
        easiness=pd.Series(ease, index=tasks, name="easiness"),
        accuracy=pd.DataFrame(accuracy, index=crowd.workers, columns=crowd.classes),
        test_features=pd.DataFrame(test_X, index=test_tasks, columns=["x1", "x2"]),
        test_truth=pd.Series(test_true, index=test_tasks, name="truth"),
    )


def _check_accuracies(accuracy: ArrayLike) -> NDArray[np.float64]:
    table = np.asarray(accuracy, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < 2 or not len(table) or not ((table > 0) & (table < 1)).all():
        raise UsageError(
            "accuracy must be (workers, true classes), each a probability above 0 and below 1 of being right on the "
            f"easiest task; got shape {table.shape}"
        )
    return table


def _assign_workers(
    n_tasks: int,
    n_workers: int,
    votes_per_task: int | tuple[int, int] | ArrayLike | None,
    activity: ArrayLike | None,
    sizing: np.random.Generator,
    assigning: np.random.Generator,
) -> tuple[NDArray[Any], NDArray[Any]]:
    if votes_per_task is None:
        return np.divmod(np.arange(n_tasks * n_workers), n_workers)
    counts = resolve_votes_per_task(votes_per_task, n_tasks, sizing)
    return assign(counts, np.ones(n_workers) if activity is None else activity, assigning)


def _draw_votes(
    task: NDArray[Any],
    worker: NDArray[Any],
    true: NDArray[Any],
    right: NDArray[np.float64],
    n_tasks: int,
    n_workers: int,
    n_classes: int,
    tasks: Sequence[Any] | pd.Index | None,
    rng: np.random.Generator,
) -> Crowd:
    """Draw votes that are right with given probabilities and otherwise any other class."""
    other = (true + rng.integers(1, n_classes, size=len(true))) % n_classes
    label = np.where(rng.random(len(true)) < right, true, other)
    return _build_crowd(task, worker, label, n_tasks, n_workers, n_classes, tasks)


def _build_crowd(
    task: NDArray[Any],
    worker: NDArray[Any],
    label: NDArray[Any],
    n_tasks: int,
    n_workers: int,
    n_classes: int,
    tasks: Sequence[Any] | pd.Index | None,
) -> Crowd:
    task_ids = make_ids("t", n_tasks) if tasks is None else tasks
    worker_ids = make_ids("w", n_workers)
    return Crowd.from_codes(task, worker, label, tasks=task_ids, workers=worker_ids, classes=range(n_classes))
