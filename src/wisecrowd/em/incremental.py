"""Incremental EM: inference for new votes with a fitted model of confusion matrices, and partial fits."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd import kernels
from wisecrowd.data.alignment import as_truth_series, encode_truth
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.pairs import Pairs
from wisecrowd.data.types import TruthLike
from wisecrowd.data.vocabulary import locate_ids
from wisecrowd.em.initialization import apply_gold
from wisecrowd.errors import DataWarning, InputError, preview
from wisecrowd.io.tables.spellings import match_spellings
from wisecrowd.utils.text import count_noun

if TYPE_CHECKING:
    from wisecrowd.em.confusion import ConfusionEM

#: Function from expected counts and pairs to P(label given class).
LabelProbsEstimator = Callable[[NDArray[Any], Pairs], NDArray[Any]]

_NO_VOTES = np.empty(0, dtype=np.int32)


def infer_posterior(method: ConfusionEM, crowd: Crowd, gold: NDArray[np.int32] | None = None) -> NDArray[Any]:
    """Infer the posterior of tasks, old or new, with the workers' parameters of a fitted method.

    Parameters
    ----------
    method : ConfusionEM
        Fitted method.
    crowd : Crowd
        Votes, over the classes of the method.
    gold : ndarray of shape (n_tasks,), optional
        Class codes, −1 where the truth is unknown.

    Returns
    -------
    ndarray of shape (n_tasks, n_classes)

    Examples
    --------
    >>> from wisecrowd import Crowd, DawidSkene
    >>> fitted = DawidSkene().fit(Crowd.from_triples([(t, w, t % 2) for t in range(8) for w in ("ann", "bob")]))
    >>> new = Crowd.from_triples([("new", "ann", 1), ("new", "stranger", 1)], classes=[0, 1])
    >>> infer_posterior(fitted, new).argmax(axis=1).tolist()
    [1]
    """
    label_probs = estimate_crowd_label_probs(method, crowd, method.e_step_label_probs)
    posterior = method.e_step_posterior(partial(kernels.posterior, crowd.layout), method.e_step_prior_, label_probs)
    return apply_gold(posterior, gold)


def estimate_crowd_label_probs(
    method: ConfusionEM, crowd: Crowd, estimate: LabelProbsEstimator | None = None
) -> NDArray[Any]:  # fmt: skip
    """Estimate P(label given class) for the (worker, label) pairs of another crowd.

    A worker of the fit has the estimates of the fit. A new worker has those of the whole crowd.

    Parameters
    ----------
    method : ConfusionEM
        Fitted method.
    crowd : Crowd
        Votes, over the classes of the method.
    estimate : callable, optional
        Function from expected counts and pairs to label probabilities; by default ``method.predictive_label_probs``, one
        confusion matrix per worker.

    Returns
    -------
    ndarray of shape (n_pairs, n_columns)
        One column per class, or per class and subtype if the method splits classes.

    Raises
    ------
    InputError
        If either crowd has no worker ids.

    Examples
    --------
    >>> from wisecrowd import Crowd, DawidSkene
    >>> votes = Crowd.from_triples([(t, w, t % 2) for t in range(8) for w in ("ann", "bob")])
    >>> estimate_crowd_label_probs(DawidSkene().fit(votes), votes).shape
    (4, 2)
    """
    if crowd.workers is None or method.worker_index_ is None:
        raise InputError("parameters of workers carry over only between crowds with worker ids")
    n_classes, tally = len(method.classes_), method.e_step_tally
    position = locate_ids(crowd.workers, method.worker_index_)
    new_code = np.full(len(method.worker_index_), -1)  # −1 for workers who do not vote in the new crowd
    new_code[position[position >= 0]] = np.flatnonzero(position >= 0)
    rows = np.flatnonzero(new_code[method.pair_worker_] >= 0)
    counted = new_code[method.pair_worker_[rows]].astype(np.int64) * n_classes + method.pair_label_[rows]
    requested = crowd.pairs.worker.astype(np.int64) * n_classes + crowd.pairs.label
    crowd_tally = np.zeros((n_classes, tally.shape[1]))
    np.add.at(crowd_tally, method.pair_label_, tally)
    return estimate_pair_label_probs(
        estimate or method.predictive_label_probs, counted, tally[rows], requested, crowd_tally
    )


def estimate_pair_label_probs(
    estimate: LabelProbsEstimator,
    counted: NDArray[np.int64],
    tally: NDArray[Any],
    requested: NDArray[np.int64],
    crowd_tally: NDArray[Any],
) -> NDArray[Any]:
    """Estimate P(label given class) for some (worker, label) pairs, each coded as worker·n_classes + label.

    Parameters
    ----------
    estimate : callable
        Function from expected counts and pairs to label probabilities, such as ``method.predictive_label_probs``.
    counted : ndarray of shape (n_counted,)
        All pairs with votes of the requested workers. The estimate of one pair needs all votes of its worker.
    tally : ndarray of shape (n_counted, n_columns)
        Expected counts of these pairs.
    requested : ndarray of shape (n_requested,)
        Pairs to estimate. A worker without counted pairs is new, and has the estimates of the whole crowd.
    crowd_tally : ndarray of shape (n_classes, n_columns)
        Expected counts of the whole crowd by label.

    Returns
    -------
    ndarray of shape (n_requested, n_columns)

    Examples
    --------
    >>> from wisecrowd import DawidSkene
    >>> crowd_tally = np.array([[8.0, 2.0], [2.0, 8.0]])
    >>> counted, tally = np.array([0]), np.array([[4.0, 1.0]])
    >>> estimate = DawidSkene().predictive_label_probs
    >>> estimate_pair_label_probs(estimate, counted, tally, np.array([0, 3]), crowd_tally).round(2).tolist()
    [[0.98, 0.5], [0.19, 0.81]]
    """
    n_classes = len(crowd_tally)
    codes = np.union1d(counted, requested)
    counts = np.zeros((len(codes), tally.shape[1]))
    counts[np.searchsorted(codes, counted)] = tally
    worker, label = np.divmod(codes, n_classes)
    workers, position = np.unique(worker, return_inverse=True)
    pairs = Pairs(position.astype(np.int32), label.astype(np.int32), _NO_VOTES, len(workers))
    label_probs = estimate(counts, pairs)[np.searchsorted(codes, requested)]
    labels = np.arange(n_classes, dtype=np.int32)
    crowd_probs = estimate(crowd_tally, Pairs(np.zeros_like(labels), labels, _NO_VOTES, 1))
    is_new = ~np.isin(requested // n_classes, counted // n_classes)
    label_probs[is_new] = crowd_probs[requested[is_new] % n_classes]
    return label_probs


def recode_classes(crowd: Crowd, classes: pd.Index) -> Crowd:
    """Return the same votes over other classes.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    classes : Index
        Classes of a fitted method; they must contain the classes of the crowd.

    Returns
    -------
    Crowd

    Raises
    ------
    InputError
        If the crowd has other classes, or numeric labels.

    Examples
    --------
    >>> from wisecrowd import Crowd
    >>> recode_classes(Crowd.from_triples([("new", "ann", 1)]), pd.Index([0, 1])).n_classes
    2
    """
    if crowd.classes is None:
        raise InputError("labels must be classes; these are numbers")
    if crowd.classes.equals(classes):
        return crowd
    code = locate_ids(crowd.classes, classes)
    if (code < 0).any():
        raise InputError(
            f"the new votes have classes that the fit did not know: {preview(crowd.classes[code < 0])}; its classes are "
            f"{preview(classes, 8)}. List all classes when you read the first votes: classes=[...]"
        )
    return crowd.replace_fields(np.arange(crowd.n_votes), label=code[crowd.label], classes=classes)


def warn_misspelled_workers(method: ConfusionEM, crowd: Crowd) -> None:
    """Warn of workers who are new by their ids, but are workers of the fit in another spelling.

    Parameters
    ----------
    method : ConfusionEM
        Fitted method.
    crowd : Crowd
        New votes.

    Examples
    --------
    >>> from wisecrowd import Crowd, DawidSkene
    >>> votes = Crowd.from_triples([(t, w, t % 2) for t in range(8) for w in ("ann", "bob")])
    >>> warn_misspelled_workers(DawidSkene().fit(votes), votes)
    """
    if crowd.workers is None or method.worker_index_ is None:
        return
    unknown = crowd.workers[locate_ids(crowd.workers, method.worker_index_) < 0]
    if not len(unknown):
        return
    matched = match_spellings(unknown, method.worker_index_)
    is_spelling = matched.isin(method.worker_index_)
    if is_spelling.any():
        warnings.warn(
            f"{count_noun(int(is_spelling.sum()), 'worker')} of the new votes count as new, but are workers of the fit in another "
            f"spelling, such as {preview(unknown[is_spelling][:1])} and {preview(matched[is_spelling][:1])}; if they are the same, "
            "rename them, or read the votes with workers=fitted.worker_index_ and normalise=True",
            DataWarning,
            stacklevel=4,
        )


class VoteHistory(NamedTuple):
    """All votes and gold of a sequence of partial fits.

    Attributes
    ----------
    votes : Crowd
        All votes.
    truth : Series or None
        Known truth by task.

    Examples
    --------
    >>> from wisecrowd import Crowd, DawidSkene
    >>> DawidSkene().partial_fit(Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "cat")])).history.votes.n_votes
    2
    """

    votes: Crowd
    truth: pd.Series | None


def partial_fit(method: ConfusionEM, crowd: Crowd, truth: TruthLike | None = None) -> VoteHistory:
    """Make one incremental EM step (Neal and Hinton 1998) with new votes.

    The step infers the tasks with new votes and then re-estimates the parameters of all workers.

    Parameters
    ----------
    method : ConfusionEM
        Method to update. If it is not fitted, it is fitted to the new votes.
    crowd : Crowd
        New votes.
    truth : truth-like, optional
        Known truth of some tasks. It takes precedence over truth from earlier partial fits.

    Returns
    -------
    VoteHistory
        All votes and gold so far.

    Examples
    --------
    >>> from wisecrowd import Crowd, DawidSkene
    >>> method = DawidSkene()
    >>> method = method.partial_fit(Crowd.from_triples([(t, w, t % 2) for t in range(8) for w in ("ann", "bob")]))
    >>> int(method.partial_fit(Crowd.from_triples([("late", "ann", 1), ("late", "cy", 1)])).labels_["late"])
    1
    """
    new_truth = None if truth is None else as_truth_series(truth, crowd)
    if not hasattr(method, "posterior_"):
        method.fit(crowd, truth=new_truth)
        return VoteHistory(crowd, new_truth)
    old_votes, old_truth = method.history
    votes = Crowd.concat([old_votes, recode_classes(crowd, method.classes_)])
    all_truth = [series for series in (new_truth, old_truth) if series is not None]
    merged_truth = all_truth[0].combine_first(all_truth[-1]) if all_truth else None
    gold = None if merged_truth is None else encode_truth(merged_truth, votes)

    posterior = np.empty((votes.n_tasks, votes.n_classes))
    posterior[locate_ids(old_votes.tasks, votes.tasks)] = method.posterior_
    updated = locate_ids(crowd.tasks, votes.tasks)
    posterior[updated] = infer_posterior(method, votes[updated], None if gold is None else gold[updated])
    method.restart_from(votes, posterior)
    return VoteHistory(votes, merged_truth)
