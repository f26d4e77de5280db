"""What every diagnosis begins with: votes that it can look at, and a model of who gives which answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate.calibration import leave_one_out_posterior
from wisecrowd.evaluate.inputs import require_categorical_crowd

#: Share of a spammer's votes on one label from which it is one button that they press.
SINGLE_LABEL_SHARE = 0.9


def resolve_model(votes: Crowd, model: Any = None) -> ConfusionEM:
    """The fitted method that was given, or the one of that name, if it has confusion matrices; Dawid–Skene if none was.

    >>> votes = Crowd.from_triples([("t1", "ann", 0), ("t1", "bob", 0)])
    >>> resolve_model(votes).name, resolve_model(votes, "one-coin").name
    ('dawid-skene', 'one-coin')
    """
    if model is None or isinstance(model, str):
        from wisecrowd.base.registry import find

        method_class: Any = find(model or "dawid-skene")
        if not issubclass(method_class, ConfusionEM):
            raise UsageError(
                "workers and tasks are judged by a method with confusion matrices, such as dawid-skene, ibcc or one-coin; "
                f"{method_class.name} has none"
            )
        if votes.n_votes == 0:
            raise InputError("there are no votes to look at")
        model = method_class().fit(votes)
    if not isinstance(model, ConfusionEM):
        raise UsageError(
            f"a fitted method with confusion matrices was wanted, such as DawidSkene, or its name; got {type(model).__name__}"
        )
    if not hasattr(model, "posterior_"):
        raise UsageError(f"this {type(model).__name__} is not fitted yet; give {type(model).__name__}().fit(crowd)")
    return model


@dataclass(frozen=True, eq=False)
class ModelledCrowd:
    """A crowd, and the model by which it is looked at."""

    crowd: Crowd
    fitted: ConfusionEM | str | None = None

    #: What is done, for messages.
    purpose: ClassVar[str] = "crowds are diagnosed"

    def __post_init__(self) -> None:
        object.__setattr__(self, "crowd", require_categorical_crowd(self.crowd, self.purpose))
        object.__setattr__(self, "fitted", resolve_model(self.crowd, self.fitted))
        # What a group says of a task is looked up vote by vote: a model with groups must know these votes and no others.
        same_tasks = not has_worker_groups(self.model) or self.crowd.tasks.equals(self.model.task_index_)
        if not same_tasks or (has_worker_groups(self.model) and self.crowd.n_votes != self.model.n_votes_):
            raise UsageError("give the crowd that the model was fitted on, or fit the model to these votes")

    @property
    def model(self) -> ConfusionEM:
        """The model, which is there from the beginning."""
        assert isinstance(self.fitted, ConfusionEM)
        return self.fitted


def has_worker_groups(model: Any) -> bool:
    """Whether a model takes the votes of some workers to depend on each other, and says how (`Panel.expected_answers`).

    >>> has_worker_groups(None)
    False
    """
    return bool(getattr(model, "group_names_", ()))


def get_worker_groups(model: Any) -> NDArray[np.int32] | None:
    """The group of each worker, −1 for none, of a model in which members of a group err together (`Panel`); None of others.

    >>> votes = Crowd.from_triples([("t1", "ann", 0), ("t1", "bob", 0)])
    >>> print(get_worker_groups(resolve_model(votes)))
    None
    """
    return np.asarray(model.group_) if has_worker_groups(model) else None


def get_member_columns(model: Any, names: pd.Index) -> dict[str, NDArray[Any]]:
    """What a model was told of workers: their ``kind``, and the group that each ``belongs_to``; nothing of most models.

    >>> get_member_columns(resolve_model(Crowd.from_triples([("t1", "ann", 0), ("t1", "bob", 0)])), pd.Index(["ann"]))
    {}
    """
    attributes = {"kind": getattr(model, "kinds", None), "belongs_to": getattr(model, "groups", None)}
    return {
        column: np.array([by_worker.get(str(name), "") for name in names], dtype=object)
        for column, by_worker in attributes.items()
        if by_worker is not None
    }


def compute_peer_posterior(model: ConfusionEM, crowd: Crowd) -> NDArray[np.float64]:
    """For every vote, the posterior of its task by the votes that are witnesses of it: (n_votes, n_classes).

    These are all other votes but those of the worker's own group, of a model that has groups: who errs together with somebody
    confirms nothing. Where nobody else voted, it is the prior.

    >>> votes = Crowd.from_triples([("t1", "ann", 0), ("t1", "bob", 0), ("t2", "ann", 1)])
    >>> compute_peer_posterior(resolve_model(votes), votes).shape
    (3, 2)
    """
    if not has_worker_groups(model):
        return leave_one_out_posterior(model, crowd)
    panel: Any = model
    log_posterior = np.log(np.maximum(model.posterior_, np.finfo(np.float64).tiny))[crowd.task] - panel.evidence(crowd)
    return normalize_log_probs(log_posterior)


def normalize_log_probs(log_probs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows of logarithms as probabilities.

    >>> normalize_log_probs(np.log([[1.0, 3.0]])).tolist()
    [[0.25, 0.75]]
    """
    probs = np.exp(log_probs - log_probs.max(axis=1, keepdims=True))
    return np.asarray(probs / probs.sum(axis=1, keepdims=True))


def count_agreeing_votes(
    crowd: Crowd, group: NDArray[np.int32] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of each vote, how many other votes on its task say the same, and how many others there are; members of the worker's own
    ``group`` are no others.

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
    """The label that each worker gives most, and how large a share of their votes it has; NaN without votes.

    >>> most_frequent_labels(Crowd.from_triples([("t1", "ann", 0), ("t2", "ann", 1), ("t3", "ann", 1)]))[1].round(2).tolist()
    [0.67]
    """
    pairs, n_workers = crowd.pairs, crowd.n_workers
    counts = np.bincount(pairs.vote_pairs, minlength=len(pairs))
    order = np.lexsort((-pairs.label, counts, pairs.worker))  # the last of each worker is the most frequent
    last = np.flatnonzero(np.diff(pairs.worker[order], append=-1))
    top, max_count = np.zeros(n_workers, dtype=np.intp), np.zeros(n_workers)
    top[pairs.worker[order[last]]] = pairs.label[order[last]]
    max_count[pairs.worker[order[last]]] = counts[order[last]]
    with np.errstate(invalid="ignore"):
        return top, max_count / crowd.votes_per_worker
