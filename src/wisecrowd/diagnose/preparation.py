"""Models and vote statistics that all diagnoses share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.method import check_class_count
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import TruthLike
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate.inputs import require_categorical_crowd
from wisecrowd.evaluate.leave_one_out import RemovedVotes, leave_one_out_posterior

#: Share of one label among a spammer's votes from which the spammer counts as a single-label voter.
SINGLE_LABEL_SHARE = 0.9

#: Model that rates workers if the caller names none. The default of `aggregate` infers better labels, but two of its three members
#: cannot describe workers who confuse particular classes, such as adversaries, and it finds fewer of them.
WORKER_MODEL = "dawid-skene"


def resolve_model(votes: Crowd, model: Any = None, gold: TruthLike | None = None) -> ConfusionEM:
    """Return a fitted method with confusion matrices.

    Parameters
    ----------
    votes : Crowd
        Votes to fit if the model is not fitted yet.
    model : ConfusionEM or str, default=None
        Fitted method, or the name of one. Defaults to Dawid–Skene.
    gold : Series, mapping or table, default=None
        Known truth of some tasks, for a model that is not fitted yet.

    Returns
    -------
    ConfusionEM

    Raises
    ------
    InputError
        If there are no votes, or too many classes with hardly any votes.
    UsageError
        If the method has no confusion matrices or is not fitted.

    Examples
    --------
    >>> votes = Crowd.from_triples([("t1", "ann", 0), ("t1", "bob", 0)])
    >>> resolve_model(votes).name, resolve_model(votes, "one-coin").name
    ('dawid-skene', 'one-coin')
    """
    check_class_count(votes, has_vote_tables=True)
    if model is None or isinstance(model, str):
        from wisecrowd.base.registry import find

        method_class: Any = find(model or WORKER_MODEL)
        if not issubclass(method_class, ConfusionEM):
            raise UsageError(
                f"{method_class.name} has no confusion matrices; use a method that has, such as {WORKER_MODEL} or one-coin"
            )
        if votes.n_votes == 0:
            raise InputError("the crowd has no votes; give at least one")
        model = method_class().fit(votes, truth=gold)
    if not isinstance(model, ConfusionEM):
        raise UsageError(
            f"model must be a fitted method with confusion matrices, such as DawidSkene, or its name; got {type(model).__name__}"
        )
    if not hasattr(model, "posterior_"):
        raise UsageError(f"this {type(model).__name__} is not fitted; pass {type(model).__name__}().fit(crowd)")
    return model


@dataclass(frozen=True, eq=False)
class ModelledCrowd:
    """Crowd with the fitted model that diagnoses it.

    Parameters
    ----------
    crowd : Crowd
        Votes with classes and worker ids.
    fitted : ConfusionEM or str, default=None
        Fitted method with confusion matrices, or its name. Defaults to Dawid–Skene.
    """

    crowd: Crowd
    fitted: ConfusionEM | str | None = None

    #: Subject of error messages about unsuitable crowds.
    purpose: ClassVar[str] = "diagnosing a crowd"

    def __post_init__(self) -> None:
        object.__setattr__(self, "crowd", require_categorical_crowd(self.crowd, self.purpose))
        object.__setattr__(self, "fitted", resolve_model(self.crowd, self.fitted))
        # A model with groups stores evidence by vote, so it must have been fitted to exactly these votes.
        same_tasks = not has_worker_groups(self.model) or self.crowd.tasks.equals(self.model.task_index_)
        if not same_tasks or (has_worker_groups(self.model) and self.crowd.n_votes != self.model.n_votes_):
            raise UsageError(
                "crowd differs from the crowd that the model was fitted to; pass that crowd, or refit the model"
            )

    @property
    def model(self) -> ConfusionEM:
        """Fitted model."""
        assert isinstance(self.fitted, ConfusionEM)
        return self.fitted


def has_worker_groups(model: Any) -> bool:
    """Return whether a model has groups of workers who err together, such as `Panel`.

    Parameters
    ----------
    model : Method or None
        Fitted model.

    Returns
    -------
    bool

    Examples
    --------
    >>> has_worker_groups(None)
    False
    """
    return bool(getattr(model, "group_names_", ()))


def get_worker_groups(model: Any) -> NDArray[np.int32] | None:
    """Return the groups of workers that were declared to a model such as `Panel`.

    Parameters
    ----------
    model : Method
        Fitted model.

    Returns
    -------
    ndarray of shape (n_workers,) or None
        Number of the group of each worker, -1 without a group. None if the model has no groups.

    Examples
    --------
    >>> votes = Crowd.from_triples([("t1", "ann", 0), ("t1", "bob", 0)])
    >>> print(get_worker_groups(resolve_model(votes)))
    None
    """
    return np.asarray(model.group_) if has_worker_groups(model) else None


def get_member_columns(model: Any, worker_ids: pd.Index) -> dict[str, NDArray[Any]]:
    """Return the kind and the group of each worker, as far as the model has them.

    Parameters
    ----------
    model : Method
        Fitted model, which may have ``kinds`` and ``groups`` such as `Panel`.
    worker_ids : Index
        Worker ids.

    Returns
    -------
    dict of str to ndarray
        Columns ``kind`` and ``belongs_to``, or an empty dict.

    Examples
    --------
    >>> get_member_columns(resolve_model(Crowd.from_triples([("t1", "ann", 0), ("t1", "bob", 0)])), pd.Index(["ann"]))
    {}
    """
    attributes = {"kind": getattr(model, "kinds", None), "belongs_to": getattr(model, "groups", None)}
    return {
        column: np.array([by_worker.get(str(name), "") for name in worker_ids], dtype=object)
        for column, by_worker in attributes.items()
        if by_worker is not None
    }


def compute_peer_posterior(
    model: ConfusionEM, crowd: Crowd, also_removed: Sequence[RemovedVotes] = ()
) -> NDArray[np.float64]:  # fmt: skip
    """Compute the posterior of each vote's task by the votes of other workers.

    Votes of the worker's own group are excluded if the model has groups, because its members err together. Without other votes the
    result is the class prior.

    Parameters
    ----------
    model : ConfusionEM
        Model fitted to ``crowd``.
    crowd : Crowd
        Votes.
    also_removed : sequence of (ndarray, ndarray), default ()
        Votes, and for each of them another vote on the same task that is left out as well; with groups, all votes of its
        group.

    Returns
    -------
    ndarray of shape (n_votes, n_classes)

    Examples
    --------
    >>> votes = Crowd.from_triples([("t1", "ann", 0), ("t1", "bob", 0), ("t2", "ann", 1)])
    >>> compute_peer_posterior(resolve_model(votes), votes).shape
    (3, 2)
    """
    if not has_worker_groups(model):
        return leave_one_out_posterior(model, crowd, also_removed)
    panel: Any = model
    evidence = panel.evidence(crowd)
    log_posterior = np.log(np.maximum(model.posterior_, np.finfo(np.float64).tiny))[crowd.task] - evidence
    for rows, other_rows in also_removed:
        log_posterior[rows] -= evidence[other_rows]
    return normalize_log_probs(log_posterior)


def normalize_log_probs(log_probs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Convert rows of unnormalised log-probabilities to probabilities.

    Parameters
    ----------
    log_probs : ndarray of shape (n_rows, n_classes)
        Unnormalised log-probabilities.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)

    Examples
    --------
    >>> normalize_log_probs(np.log([[1.0, 3.0]])).tolist()
    [[0.25, 0.75]]
    """
    probs = np.exp(log_probs - log_probs.max(axis=1, keepdims=True))
    return np.asarray(probs / probs.sum(axis=1, keepdims=True))


def count_agreeing_votes(
    crowd: Crowd, group: NDArray[np.int32] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count, for each vote, the other votes on its task with the same label and all other votes.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    group : ndarray of shape (n_workers,), default=None
        Group of each worker, -1 for none. Votes of the worker's own group are not counted.

    Returns
    -------
    n_same : ndarray of shape (n_votes,)
        Number of other votes with the same label.
    n_others : ndarray of shape (n_votes,)
        Number of other votes.

    Examples
    --------
    >>> votes = Crowd.from_triples([("t1", "ann", 0), ("t1", "bob", 0), ("t1", "cy", 1)])
    >>> [part.tolist() for part in count_agreeing_votes(votes)]
    [[1, 1, 0], [2, 2, 2]]
    >>> [part.tolist() for part in count_agreeing_votes(votes, np.array([0, 0, -1]))]
    [[0, 0, 0], [1, 1, 2]]
    """
    task = crowd.task.astype(np.int64)
    cell = task * crowd.n_classes + crowd.label
    n_same = np.bincount(cell, minlength=crowd.n_tasks * crowd.n_classes)[cell] - 1
    n_others = crowd.votes_per_task[crowd.task] - 1
    if group is not None:
        vote_group, n_groups = group[crowd.worker_codes].astype(np.int64), int(group.max(initial=-1)) + 1
        rows = np.flatnonzero(vote_group >= 0)
        for counts, keys in ((n_same, cell), (n_others, task)):
            _, inverse, size = np.unique(
                keys[rows] * n_groups + vote_group[rows], return_inverse=True, return_counts=True
            )
            counts[rows] -= size[inverse] - 1
    return n_same, n_others


def most_frequent_labels(crowd: Crowd) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the most frequent label of each worker and its share.

    Parameters
    ----------
    crowd : Crowd
        Votes.

    Returns
    -------
    label : ndarray of shape (n_workers,)
        Code of the most frequent label.
    share : ndarray of shape (n_workers,)
        Share of the worker's votes; NaN without votes.

    Examples
    --------
    >>> most_frequent_labels(Crowd.from_triples([("t1", "ann", 0), ("t2", "ann", 1), ("t3", "ann", 1)]))[1].round(2).tolist()
    [0.67]
    """
    pairs, n_workers = crowd.pairs, crowd.n_workers
    counts = np.bincount(pairs.vote_pairs, minlength=len(pairs))
    order = np.lexsort((-pairs.label, counts, pairs.worker))  # the last row of each worker is the most frequent label
    last = np.flatnonzero(np.diff(pairs.worker[order], append=-1))
    top, max_count = np.zeros(n_workers, dtype=np.intp), np.zeros(n_workers)
    top[pairs.worker[order[last]]] = pairs.label[order[last]]
    max_count[pairs.worker[order[last]]] = counts[order[last]]
    with np.errstate(invalid="ignore"):
        return top, max_count / crowd.votes_per_worker
