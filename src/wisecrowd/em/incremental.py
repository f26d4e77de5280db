"""New votes without starting over: what a fitted model of worker confusion makes of votes that were not there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.alignment import encode_truth, truth_series
from wisecrowd.data.crowd import Crowd, Pairs
from wisecrowd.errors import InputError, some
from wisecrowd.kernels import reference as kernels

if TYPE_CHECKING:
    from wisecrowd.em.confusion import ConfusionEM

_NO_VOTES = np.empty(0, dtype=np.int32)


def posterior_of(method: ConfusionEM, crowd: Crowd, gold: NDArray[np.int32] | None = None) -> NDArray[Any]:
    """The posterior of tasks that may be new, by what is known of their workers.

    >>> from wisecrowd import Crowd, DawidSkene
    >>> fitted = DawidSkene().fit(Crowd.from_triples([(t, w, t % 2) for t in range(8) for w in ("ann", "bob")]))
    >>> new = Crowd.from_triples([("new", "ann", 1), ("new", "stranger", 1)], classes=[0, 1])
    >>> posterior_of(fitted, new).argmax(axis=1).tolist()
    [1]
    """
    posterior = method._fold(kernels.posterior(crowd.layout, method.e_step_prior_, label_probs_of_crowd(method, crowd)))
    if gold is not None:
        known = np.flatnonzero(gold >= 0)
        posterior[known] = np.eye(posterior.shape[1])[gold[known]]
    return posterior


def label_probs_of_crowd(method: ConfusionEM, crowd: Crowd) -> NDArray[Any]:
    """What the E-step needs for the pairs of other votes: each worker's own numbers, the pooled ones for strangers.

    >>> from wisecrowd import Crowd, DawidSkene
    >>> votes = Crowd.from_triples([(t, w, t % 2) for t in range(8) for w in ("ann", "bob")])
    >>> label_probs_of_crowd(DawidSkene().fit(votes), votes).shape
    (4, 2)
    """
    if crowd.workers is None or method.worker_index_ is None:
        raise InputError("what is known of workers helps only where it is known who cast each vote")
    n_classes = len(method.classes_)
    theirs = crowd.workers.get_indexer(method.worker_index_)  # my worker -> their code, −1 when they have no say here
    mine = np.flatnonzero(theirs[method.pair_worker_] >= 0)
    known = theirs[method.pair_worker_[mine]].astype(np.int64) * n_classes + method.pair_label_[mine]
    wanted = crowd.pairs.worker.astype(np.int64) * n_classes + crowd.pairs.label
    counted = method._e_step_tally
    pooled = np.zeros((n_classes, counted.shape[1]))
    np.add.at(pooled, method.pair_label_, counted)
    return label_probs_of_pairs(method, known, counted[mine], wanted, pooled)


def label_probs_of_pairs(
    method: ConfusionEM, known: NDArray[np.int64], tally: NDArray[Any], wanted: NDArray[np.int64], pooled: NDArray[Any]
) -> NDArray[Any]:
    """What the E-step needs for some pairs, each written as worker·K + label: (wanted, true).

    ``known`` are all pairs of these workers that were counted, with their ``tally``, for a worker's probabilities need all
    that the worker ever said; whoever has none is a stranger, and taken for the whole crowd as one worker, whose tally is
    ``pooled`` (said, true).

    >>> from wisecrowd import DawidSkene
    >>> pooled = np.array([[8.0, 2.0], [2.0, 8.0]])
    >>> label_probs_of_pairs(DawidSkene(), np.array([0]), np.array([[4.0, 1.0]]), np.array([0, 3]), pooled).round(2).tolist()
    [[0.98, 0.5], [0.19, 0.81]]
    """
    n_classes = len(pooled)
    codes = np.union1d(known, wanted)
    counted = np.zeros((len(codes), tally.shape[1]))
    counted[np.searchsorted(codes, known)] = tally
    worker, label = np.divmod(codes, n_classes)
    workers, place = np.unique(worker, return_inverse=True)
    pairs = Pairs(place.astype(np.int32), label.astype(np.int32), _NO_VOTES, len(workers))
    label_probs = method._predictive_label_probs(counted, pairs)[np.searchsorted(codes, wanted)]
    label = np.arange(n_classes, dtype=np.int32)
    everybody = method._predictive_label_probs(pooled, Pairs(np.zeros_like(label), label, _NO_VOTES, 1))
    stranger = ~np.isin(wanted // n_classes, known // n_classes)
    label_probs[stranger] = everybody[wanted[stranger] % n_classes]
    return label_probs


def in_classes_of(method: ConfusionEM, crowd: Crowd) -> Crowd:
    """The same votes over the classes that the method was fitted with.

    >>> from wisecrowd import Crowd, DawidSkene
    >>> fitted = DawidSkene().fit(Crowd.from_triples([(t, w, t % 2) for t in range(8) for w in ("ann", "bob")]))
    >>> in_classes_of(fitted, Crowd.from_triples([("new", "ann", 1)])).n_classes
    2
    """
    if crowd.classes is None:
        raise InputError("votes for classes were wanted; these are numbers")
    if crowd.classes.equals(method.classes_):
        return crowd
    place = method.classes_.get_indexer(crowd.classes)
    if (place < 0).any():
        raise InputError(
            f"the new votes name classes that the fit did not know: {some(crowd.classes[place < 0])}; "
            f"it knows {some(method.classes_, 8)}. Name all classes when reading the first votes: classes=[...]"
        )
    return crowd._replace(np.arange(crowd.n_votes), label=place[crowd.label], classes=method.classes_)


class History(NamedTuple):
    """All votes and known_truth that partial fits took in.

    >>> from wisecrowd import Crowd, DawidSkene
    >>> DawidSkene().partial_fit(Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "cat")])).history.votes.n_votes
    2
    """

    votes: Crowd
    known_truth: pd.Series | None


def partial_fit(method: ConfusionEM, new: Crowd, truth: Any = None) -> History:
    """One incremental EM step (Neal and Hinton 1998): infer the tasks with new votes, then re-estimate the workers.

    >>> from wisecrowd import Crowd, DawidSkene
    >>> method = DawidSkene()
    >>> method = method.partial_fit(Crowd.from_triples([(t, w, t % 2) for t in range(8) for w in ("ann", "bob")]))
    >>> int(method.partial_fit(Crowd.from_triples([("late", "ann", 1), ("late", "cy", 1)])).labels_["late"])
    1
    """
    known_truth = None if truth is None else truth_series(truth, new)
    if not hasattr(method, "posterior_"):
        method.fit(new, truth=known_truth)
        return History(new, known_truth)
    before = method.history
    votes = Crowd.concat([before.votes, in_classes_of(method, new)])
    known = [series for series in (known_truth, before.known_truth) if series is not None]
    known_truth = (
        known[0].combine_first(known[-1]) if known else None
    )  # what was said last, completed by what was said before
    gold = None if known_truth is None else encode_truth(known_truth, votes)

    posterior = np.empty((votes.n_tasks, votes.n_classes))
    posterior[votes.tasks.get_indexer(before.votes.tasks)] = method.posterior_
    touched = votes.tasks.get_indexer(new.tasks)
    posterior[touched] = posterior_of(method, votes[touched], None if gold is None else gold[touched])
    method.restart_from(votes, posterior)
    return History(votes, known_truth)
