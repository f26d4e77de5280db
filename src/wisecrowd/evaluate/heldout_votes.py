"""Predictive probabilities of held-out votes by cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.learner import Learner
from wisecrowd.base.method import Method
from wisecrowd.data import rows as _rows
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import FeaturesLike
from wisecrowd.em.priors import estimate_crowd_confusion, estimate_prior_strength
from wisecrowd.errors import ignore_fit_warnings

#: Exponents for tempering a posterior. Values below 1 correct overconfident methods.
EXPONENTS = np.array([0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0])


def fit_method(method: Method, crowd: Crowd, X: FeaturesLike | None) -> Method:
    """Fit a clone of a method without warnings.

    Parameters
    ----------
    method : Method
        Aggregator or learner; it is not changed.
    crowd : Crowd
        Votes to fit.
    X : DataFrame, ndarray or None
        Features of the tasks, used by learners and by aggregators with ``uses_features``.

    Returns
    -------
    Method
        The fitted clone.
    """
    clone: Any = method.clone_unfitted()
    with ignore_fit_warnings():  # the checks of `check_votes` report problems of the crowd once
        if isinstance(clone, Learner):
            features: Any = X
            fitted: Method = clone.fit(features, crowd)
            return fitted
        return clone.fit(crowd, X) if clone.uses_features else clone.fit(crowd)


def assign_vote_folds(crowd: Crowd, folds: int, seed: int) -> NDArray[np.intp]:
    """Assign every vote to a fold, spreading the votes of a task over the folds.

    Parameters
    ----------
    crowd : Crowd
        Votes to split.
    folds : int
        Number of folds.
    seed : int
        Seed of the random assignment.

    Returns
    -------
    ndarray of shape (n_votes,)

    Examples
    --------
    >>> sorted(assign_vote_folds(Crowd.from_triples([("t1", worker, 0) for worker in "abc"]), 3, 0).tolist())
    [0, 1, 2]
    """
    return _rows.assign_folds(crowd.task, crowd.n_tasks, folds, np.random.default_rng(seed))


def order_workers_by_votes(crowd: Crowd) -> Crowd:
    """Return the same votes with workers in an order that does not depend on their names.

    Folds and random starts of methods follow the order of workers. In this order, a comparison of methods is the same if workers
    are renamed.

    Parameters
    ----------
    crowd : Crowd
        Votes.

    Returns
    -------
    Crowd
        Votes with workers ordered by a hash of all their votes. Workers with the same votes on the same tasks are interchangeable.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", 0), ("t1", "bob", 1)])
    >>> renamed = Crowd.from_triples([("t1", "zoe", 0), ("t1", "bob", 1)])
    >>> order_workers_by_votes(crowd).label.tolist() == order_workers_by_votes(renamed).label.tolist()
    True
    """
    assert crowd.workers is not None
    vote_hash = crowd.task.astype(np.uint64) * np.uint64(max(crowd.n_classes, 1)) + crowd.label.astype(np.uint64)
    # Steps of the generator SplitMix64, which mix all bits.
    vote_hash = (vote_hash + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        vote_hash = (vote_hash ^ (vote_hash >> np.uint64(shift))) * np.uint64(factor)
    worker_hash = np.zeros(crowd.n_workers, dtype=np.uint64)
    np.add.at(worker_hash, crowd.worker_codes, vote_hash)
    order = np.argsort(worker_hash, kind="stable")
    rank = np.empty(crowd.n_workers, dtype=np.int32)
    rank[order] = np.arange(crowd.n_workers, dtype=np.int32)
    return crowd.replace_fields(worker=rank[crowd.worker_codes], workers=crowd.workers[order])


def heldout_log_probs(
    method: Method, crowd: Crowd, X: FeaturesLike | None, fold: NDArray[np.intp], folds: int
) -> NDArray[np.float64]:
    """Compute the log-probability of every vote under a fit to the other folds.

    Parameters
    ----------
    method : Method
        Unfitted aggregator or learner.
    crowd : Crowd
        Votes.
    X : DataFrame, ndarray or None
        Features of the tasks.
    fold : ndarray of shape (n_votes,)
        Fold of each vote, from `assign_vote_folds`.
    folds : int
        Number of folds.

    Returns
    -------
    ndarray of shape (n_votes, n_exponents)
        One column per exponent in `EXPONENTS`.

    Examples
    --------
    >>> crowd = Crowd.from_triples([(task, worker, task % 2) for task in range(4) for worker in "abc"])
    >>> from wisecrowd import MajorityVote
    >>> heldout_log_probs(MajorityVote(), crowd, None, assign_vote_folds(crowd, 3, 0), 3).shape
    (12, 7)
    """
    log_probs = np.empty((crowd.n_votes, len(EXPONENTS)))
    for number in range(folds):
        rows = np.flatnonzero(fold == number)
        training_votes = crowd.take(fold != number)
        posterior = fit_method(method, training_votes, X).posterior_
        label_probs = _estimate_label_probs(posterior, training_votes, crowd, rows)
        log_posterior = np.log(np.maximum(posterior, 1e-300))
        for column, exponent in enumerate(EXPONENTS):
            tempered = np.exp(exponent * (log_posterior - log_posterior.max(axis=1, keepdims=True)))
            tempered /= tempered.sum(axis=1, keepdims=True)
            log_probs[rows, column] = np.log(np.maximum((tempered[crowd.task[rows]] * label_probs).sum(axis=1), 1e-12))
    return log_probs


def _estimate_label_probs(
    posterior: NDArray[Any], training_votes: Crowd, crowd: Crowd, rows: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Estimate π_r[·, y] of held-out votes, (rows, classes), from a posterior and the training votes."""
    from wisecrowd import kernels

    pairs, n_classes = training_votes.pairs, training_votes.n_classes
    tally = kernels.tally(training_votes.layout, np.asarray(posterior, dtype=np.float64))
    crowd_confusion = estimate_crowd_confusion(tally, pairs)
    strength = estimate_prior_strength(tally, pairs, crowd_confusion)
    key = pairs.worker.astype(np.int64) * n_classes + pairs.label
    heldout_key = crowd.worker_codes[rows].astype(np.int64) * n_classes + crowd.label[rows]
    position = np.minimum(np.searchsorted(key, heldout_key), len(key) - 1)
    heldout_tally = np.where((key[position] == heldout_key)[:, None], tally[position], 0.0)
    total = pairs.sum_by_worker(tally)[crowd.worker_codes[rows]]
    return np.asarray((heldout_tally + strength * crowd_confusion.T[crowd.label[rows]]) / (total + strength))
