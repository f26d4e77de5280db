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
from wisecrowd.evaluate import uncertainty
from wisecrowd.plan.costs import has_groups

#: Share of a spammer's votes on one label from which it is one button that they press.
ONE_BUTTON = 0.9


def admitted(crowd: Any, what: str) -> Crowd:
    """The votes that somebody cast; ``what`` is done with them takes classes and worker ids.

    >>> admitted(Crowd.from_triples([("t1", "ann", 0.5)], numeric=True), "votes are planned")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: votes are planned by classes and worker ids, and the labels of this crowd are numbers
    """
    if isinstance(crowd, str):
        raise UsageError(f"votes were wanted; got {crowd!r}. Read the file first: wisecrowd.read({crowd!r})")
    votes = crowd if isinstance(crowd, Crowd) else Crowd.from_frame(crowd)
    if votes.is_numeric:
        raise UsageError(f"{what} by classes and worker ids, and the labels of this crowd are numbers")
    if not votes.has_workers:
        raise UsageError(f"{what} by classes and worker ids, and this crowd has no worker ids")
    return votes.only_observed()


def model_of(votes: Crowd, fitted: Any = None) -> ConfusionEM:
    """The fitted method that was given, or the one of that name, if it has confusion matrices; Dawid–Skene if none was.

    >>> votes = Crowd.from_triples([("t1", "ann", 0), ("t1", "bob", 0)])
    >>> model_of(votes).name, model_of(votes, "one-coin").name
    ('dawid-skene', 'one-coin')
    """
    if fitted is None or isinstance(fitted, str):
        from wisecrowd.base.registry import find

        kind: Any = find(fitted or "dawid-skene")
        if not issubclass(kind, ConfusionEM):
            raise UsageError(
                "workers and tasks are judged by a method with confusion matrices, such as dawid-skene, ibcc or one-coin; "
                f"{kind.name} has none"
            )
        if votes.n_votes == 0:
            raise InputError("there are no votes to look at")
        fitted = kind().fit(votes)
    if not isinstance(fitted, ConfusionEM):
        raise UsageError(
            f"a fitted method with confusion matrices was wanted, such as DawidSkene, or its name; got {type(fitted).__name__}"
        )
    if not hasattr(fitted, "posterior_"):
        raise UsageError(f"this {type(fitted).__name__} is not fitted yet; give {type(fitted).__name__}().fit(crowd)")
    return fitted


@dataclass(frozen=True, eq=False)
class Look:
    """A crowd, and the model by which it is looked at."""

    crowd: Crowd
    fitted: ConfusionEM | str | None = None

    #: What is done, for messages.
    what: ClassVar[str] = "crowds are diagnosed"

    def __post_init__(self) -> None:
        object.__setattr__(self, "crowd", admitted(self.crowd, self.what))
        object.__setattr__(self, "fitted", model_of(self.crowd, self.fitted))
        # What a group says of a task is looked up vote by vote: a model with groups must know these votes and no others.
        known = not has_groups(self.model) or self.crowd.tasks.equals(self.model.task_index_)
        if not known or (has_groups(self.model) and self.crowd.n_votes != self.model.n_votes_):
            raise UsageError("give the crowd that the model was fitted on, or fit the model to these votes")

    @property
    def model(self) -> ConfusionEM:
        """The model, which is there from the beginning."""
        assert isinstance(self.fitted, ConfusionEM)
        return self.fitted


def groups_of(model: Any) -> NDArray[np.int32] | None:
    """The group of each worker, −1 for none, of a model in which members of a group err together (`Panel`); None of others.

    >>> votes = Crowd.from_triples([("t1", "ann", 0), ("t1", "bob", 0)])
    >>> print(groups_of(model_of(votes)))
    None
    """
    return np.asarray(model.group_) if has_groups(model) else None


def members_of(model: Any, names: pd.Index) -> dict[str, NDArray[Any]]:
    """What a model was told of workers: their ``kind``, and the group that each ``belongs_to``; nothing of most models.

    >>> members_of(model_of(Crowd.from_triples([("t1", "ann", 0), ("t1", "bob", 0)])), pd.Index(["ann"]))
    {}
    """
    told = {"kind": getattr(model, "kinds", None), "belongs_to": getattr(model, "groups", None)}
    return {
        column: np.array([given.get(str(name), "") for name in names], dtype=object)
        for column, given in told.items()
        if given is not None
    }


def others_of(model: ConfusionEM, crowd: Crowd) -> NDArray[np.float64]:
    """For every vote, the posterior of its task by the votes that are witnesses of it: (n_votes, n_classes).

    These are all other votes but those of the worker's own group, of a model that has groups: who errs together with somebody
    confirms nothing. Where nobody else voted, it is the prior.

    >>> votes = Crowd.from_triples([("t1", "ann", 0), ("t1", "bob", 0), ("t2", "ann", 1)])
    >>> others_of(model_of(votes), votes).shape
    (3, 2)
    """
    if not has_groups(model):
        return uncertainty.leave_one_out(model, crowd)
    panel: Any = model
    told = np.log(np.maximum(model.posterior_, np.finfo(np.float64).tiny))[crowd.task] - panel.evidence(crowd)
    return shares(told)


def shares(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows of logarithms as probabilities.

    >>> shares(np.log([[1.0, 3.0]])).tolist()
    [[0.25, 0.75]]
    """
    found = np.exp(log_odds - log_odds.max(axis=1, keepdims=True))
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def alike(crowd: Crowd, group: NDArray[np.int32] | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of each vote, how many other votes on its task say the same, and how many others there are; members of the worker's own
    ``group`` are no others.

    >>> votes = Crowd.from_triples([("t1", "ann", 0), ("t1", "bob", 0), ("t1", "cy", 1)])
    >>> [part.tolist() for part in alike(votes)]
    [[1, 1, 0], [2, 2, 2]]
    >>> [part.tolist() for part in alike(votes, np.array([0, 0, -1]))]
    [[0, 0, 0], [1, 1, 2]]
    """
    task = crowd.task.astype(np.int64)
    cell = task * crowd.n_classes + crowd.label
    same = np.bincount(cell, minlength=crowd.n_tasks * crowd.n_classes)[cell] - 1
    others = crowd.votes_per_task[crowd.task] - 1
    if group is not None:
        theirs, n_groups = group[crowd.worker_codes].astype(np.int64), int(group.max(initial=-1)) + 1
        rows = np.flatnonzero(theirs >= 0)
        for counts, where in ((same, cell), (others, task)):
            _, place, size = np.unique(where[rows] * n_groups + theirs[rows], return_inverse=True, return_counts=True)
            counts[rows] -= size[place] - 1
    return same, others


def favourites(crowd: Crowd) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The label that each worker gives most, and how large a share of their votes it has; NaN without votes.

    >>> favourites(Crowd.from_triples([("t1", "ann", 0), ("t2", "ann", 1), ("t3", "ann", 1)]))[1].round(2).tolist()
    [0.67]
    """
    pairs, n_workers = crowd.pairs, crowd.n_workers
    counts = np.bincount(pairs.of_vote, minlength=len(pairs))
    order = np.lexsort((-pairs.label, counts, pairs.worker))  # the last of each worker is the most frequent
    last = np.flatnonzero(np.diff(pairs.worker[order], append=-1))
    top, most = np.zeros(n_workers, dtype=np.intp), np.zeros(n_workers)
    top[pairs.worker[order[last]]] = pairs.label[order[last]]
    most[pairs.worker[order[last]]] = counts[order[last]]
    with np.errstate(invalid="ignore"):
        return top, most / crowd.votes_per_worker
