"""E-step in which a classifier gives every task its own class prior.

With class probabilities f(x_i) as the prior of task i and confusion matrices π_r, the posterior is
q_i(k) ∝ f_k(x_i) Π_r π_r[k, y_ir].
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.sharpness import safe_log
from wisecrowd.data.layout import Layout
from wisecrowd.em.initialization import apply_gold

#: Smallest prior probability of a class when the classifier is not fitted exactly: an over-confident prediction
#: would otherwise outweigh any number of votes.
PROBABILITY_FLOOR = 1e-6

Mask = NDArray[np.bool_]


def find_training_tasks(layout: Layout, gold: NDArray[np.int32] | None) -> Mask:
    """Return a mask of the tasks that have votes or gold.

    Parameters
    ----------
    layout : Layout
        Votes by task.
    gold : ndarray of shape (n_tasks,), optional
        Class codes of gold tasks, −1 elsewhere.

    Returns
    -------
    ndarray of bool, shape (n_tasks,)

    Examples
    --------
    >>> layout = Layout(np.array([0, 1, 1, 1]), np.zeros(1, dtype=np.int32), None, 1)
    >>> find_training_tasks(layout, np.array([-1, 0, -1])).tolist()
    [True, True, False]
    """
    return layout.has_votes if gold is None else layout.has_votes | (gold >= 0)


def split_folds(training: Mask, n_folds: int, random_state: int) -> Iterator[tuple[Mask, Mask]]:
    """Yield the folds of cross-fitting.

    Folds are drawn among the training tasks only, so that other tasks do not change them. The classifier of the
    first fold also predicts those other tasks.

    Parameters
    ----------
    training : ndarray of bool, shape (n_tasks,)
        Tasks that classifiers may be fitted to.
    n_folds : int
        Number of folds.
    random_state : int
        Seed of the assignment of tasks to folds.

    Yields
    ------
    train : ndarray of bool, shape (n_tasks,)
        Tasks to fit the classifier of the fold to.
    test : ndarray of bool, shape (n_tasks,)
        Tasks to predict with it.

    Examples
    --------
    >>> [(int(train.sum()), int(test.sum())) for train, test in split_folds(np.array([True] * 4 + [False]), 2, 0)]
    [(2, 3), (2, 2)]
    """
    fold = np.zeros(len(training), dtype=np.intp)
    fold[training] = np.random.default_rng(random_state).permutation(int(training.sum())) % n_folds
    for number in range(n_folds):
        yield training & (fold != number), fold == number


def e_step(
    layout: Layout, class_probs: NDArray[np.float64], label_probs: NDArray[Any], gold: NDArray[np.int32] | None
) -> tuple[NDArray[np.float64], float]:
    """Compute posteriors from a class prior for every task and the label probabilities of the workers.

    Parameters
    ----------
    layout : Layout
        Votes by task.
    class_probs : ndarray of shape (n_tasks, n_classes)
        Prior of every task.
    label_probs : ndarray of shape (n_pairs, n_classes)
        P(label of the pair given class), by (worker, label) pair.
    gold : ndarray of shape (n_tasks,), optional
        Class codes of gold tasks, −1 elsewhere.

    Returns
    -------
    posterior : ndarray of shape (n_tasks, n_classes)
    log_likelihood : float
        Of the tasks that have votes or gold.

    Examples
    --------
    >>> from wisecrowd import Crowd
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    >>> posterior, log_likelihood = e_step(crowd.layout, np.array([[0.9, 0.1]]), np.full((2, 2), 0.5), None)
    >>> posterior.round(6).tolist(), round(log_likelihood, 4)
    ([[0.9, 0.1]], -1.3863)
    """
    joint = safe_log(class_probs) + compute_vote_log_probs(layout, label_probs)
    return normalize_joint(joint, find_training_tasks(layout, gold), gold)


def compute_vote_log_probs(layout: Layout, label_probs: NDArray[Any]) -> NDArray[np.float64]:
    """Compute log P(votes on a task given class).

    Parameters
    ----------
    layout : Layout
        Votes by task.
    label_probs : ndarray of shape (n_pairs, n_classes)
        P(label of the pair given class), by (worker, label) pair.

    Returns
    -------
    ndarray of shape (n_tasks, n_classes)

    Examples
    --------
    >>> from wisecrowd import Crowd
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    >>> compute_vote_log_probs(crowd.layout, np.full((2, 2), 0.5)).round(4).tolist()
    [[-1.3863, -1.3863]]
    """
    return np.asarray(layout.vote_matrix @ safe_log(label_probs))


def normalize_joint(
    joint: NDArray[np.float64], counted: Mask, gold: NDArray[np.int32] | None
) -> tuple[NDArray[np.float64], float]:
    """Normalize the log-joint of classes and votes to posteriors.

    Parameters
    ----------
    joint : ndarray of shape (n_tasks, n_classes)
        log f_k(x_i) P(votes on i given k).
    counted : ndarray of bool, shape (n_tasks,)
        Tasks that count in the log-likelihood.
    gold : ndarray of shape (n_tasks,), optional
        Class codes of gold tasks, −1 elsewhere.

    Returns
    -------
    posterior : ndarray of shape (n_tasks, n_classes)
    log_likelihood : float

    Examples
    --------
    >>> posterior, log_likelihood = normalize_joint(np.log([[0.3, 0.1]]), np.array([True]), None)
    >>> posterior.round(6).tolist(), round(log_likelihood, 4)
    ([[0.75, 0.25]], -0.9163)
    """
    peak = joint.max(axis=1, keepdims=True)
    share = np.exp(joint - peak)
    total = share.sum(axis=1, keepdims=True)
    value = (peak + np.log(total))[:, 0]
    if gold is not None:
        gold_tasks = np.flatnonzero(gold >= 0)
        value[gold_tasks] = joint[gold_tasks, gold[gold_tasks]]
    return apply_gold(share / total, gold), float(value[counted].sum())
