"""What there is to say of judges and of groups, beside people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logsumexp

from wisecrowd.aggregate.categorical._panel_opinions import Sayings, Tables, evidence_of_cells
from wisecrowd.data.alignment import truth_series
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.layout import Layout
from wisecrowd.data.vocabulary import same_kind
from wisecrowd.errors import InputError, some
from wisecrowd.kernels import reference as kernels
from wisecrowd.kernels.reference import LEAST
from wisecrowd.utils.binning import of_bins

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Told:
    """A crowd, what was inferred of it, and how much votes tell of the truth.

    A vote (or several at once) with the likelihoods L[k] tells Σ_k q(k) log L[k] / Σ_k' ρ_k' L[k'] nats of a task whose
    posterior is q. On average over votes this is the information that they share with the truth.

    >>> crowd = Crowd.from_triples([("t1", "ann", 0), ("t2", "ann", 1)])
    >>> told = Told(crowd, np.eye(2), np.full(2, 0.5), np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([True]))
    >>> round(told.person, 3)
    0.588
    """

    crowd: Crowd
    posterior: Numbers
    prior: Numbers
    label_probs: Numbers
    """(pairs, classes): how probable each pair is when each class is true."""
    is_person: NDArray[np.bool_]

    def tells(self, log_likelihood: Numbers, task: NDArray[Any]) -> Numbers:
        """Nats, of each row of likelihoods on a task."""
        prior = np.log(np.maximum(self.prior, LEAST))
        told = log_likelihood - logsumexp(log_likelihood + prior, axis=1, keepdims=True)
        return np.asarray((self.posterior[task] * told).sum(axis=1))

    @cached_property
    def votes(self) -> Numbers:
        """What each vote tells by itself."""
        pairs = np.log(np.maximum(self.label_probs, LEAST))
        return self.tells(pairs[self.crowd.pairs.of_vote], self.crowd.task)

    @cached_property
    def workers(self) -> Numbers:
        """What a vote of each worker tells on average; NaN without votes."""
        worker, n = self.crowd.worker_codes, self.crowd.n_workers
        with np.errstate(invalid="ignore"):
            return np.bincount(worker, self.votes, n) / np.bincount(worker, minlength=n)

    @cached_property
    def person(self) -> float:
        """What a vote of a person tells on average; NaN if there are none."""
        theirs = self.votes[self.is_person[self.crowd.worker_codes]]
        return float(theirs.mean()) if len(theirs) else float("nan")

    def in_people(self, nats: Any) -> Any:
        """Nats in votes of an average person, and never less than none."""
        return np.maximum(nats, 0.0) / (self.person if self.person > 0 else float("nan"))

    @cached_property
    def people(self) -> tuple[Numbers, NDArray[np.bool_]]:
        """What people alone say of each task, and of which tasks they say anything."""
        crowd = self.crowd
        theirs = self.is_person[crowd.worker_codes]
        weight = np.where(theirs, crowd.weight, 0.0)
        layout = Layout(crowd.layout.offset, crowd.pairs.of_vote, weight, len(crowd.pairs))
        posterior = kernels.posterior(layout, self.prior, self.label_probs, compiled=False)
        return posterior, np.bincount(crowd.task[theirs], minlength=crowd.n_tasks) > 0


def opinions(told: Told, group: NDArray[np.int32], names: Sequence[str], tables: Tables) -> pd.DataFrame:
    """A row for each group: members, tasks, how often the opinion is right, and what its votes on a task are worth together.

    >>> crowd = Crowd.from_triples([(task, worker, task % 2) for task in range(4) for worker in "abp"])
    >>> right = np.where(crowd.pairs.label[:, None] == np.arange(2), 0.9, 0.1)
    >>> told = Told(crowd, np.tile(np.eye(2), (2, 1)), np.full(2, 0.5), right, np.array([False, False, True]))
    >>> a = np.array([0.999, 0.999, 0.0])[crowd.pairs.worker, None]
    >>> copies = Tables((1 - a) * right, a + (1 - a) * right, np.array([[[0.9, 0.1], [0.1, 0.9]]]))
    >>> opinions(told, np.array([0, 0, -1], dtype=np.int32), ["gpt"], copies)["worth"].round(2).tolist()
    [1.0]
    """
    label_probs = Sayings.of(told.crowd, group)
    nats = told.tells(evidence_of_cells(label_probs, tables), label_probs.task)
    n_tasks = np.bincount(label_probs.group, minlength=len(names))
    right = np.einsum("k,gkk->g", told.prior, tables.opinion)
    return pd.DataFrame(
        {"n_workers": np.bincount(group[group >= 0], minlength=len(names)), "n_tasks": n_tasks, "accuracy": right,
         "worth": told.in_people(np.bincount(label_probs.group, nats, len(names)) / np.maximum(n_tasks, 1))},
        index=pd.Index(list(names), name="group"),
    )  # fmt: skip


def judges(
    told: Told, is_machine: NDArray[np.bool_], workers: Mapping[str, NDArray[Any]], shared: Numbers,
    group: NDArray[np.int32], groups: pd.DataFrame | None,
) -> tuple[pd.DataFrame, Numbers]:  # fmt: skip
    """A row for each machine, and what each says where people say each class: (machines, people's class, said), counts.

    ``n_votes`` and ``accuracy`` as in ``workers_``; ``agreement``, how probable it is by the votes of people alone that what
    it says is right, over the tasks that people voted on; ``shared``, the share of its votes that repeat the opinion of its
    ``group``; ``alone``, what a vote of it tells of the truth by itself, in votes of an average person; and ``worth``, the
    same where what the group tells together is divided among its members: ten copies of one judge have a tenth each.

    >>> crowd = Crowd.from_triples([(task, worker, task % 2) for task in range(4) for worker in "ap"])
    >>> right = np.where(crowd.pairs.label[:, None] == np.arange(2), 0.9, 0.1)
    >>> told = Told(crowd, np.tile(np.eye(2), (2, 1)), np.full(2, 0.5), right, np.array([False, True]))
    >>> known = {"n_votes": np.full(2, 4.0), "accuracy": np.full(2, 0.9)}
    >>> table, label_probs = judges(told, np.array([True, False]), known, np.zeros(2), np.full(2, -1), None)
    >>> table[["agreement", "worth"]].round(2).values.tolist(), label_probs.round(1).tolist()
    ([[0.9, 1.0]], [[[1.8, 0.2], [0.2, 1.8]]])
    """
    crowd = told.crowd
    assert crowd.workers is not None
    machines = np.flatnonzero(is_machine)
    place = np.full(crowd.n_workers, -1)
    place[machines] = np.arange(len(machines))
    belief, seen = told.people
    votes = np.flatnonzero((place[crowd.worker_codes] >= 0) & seen[crowd.task])
    who, task, label = place[crowd.worker_codes[votes]], crowd.task[votes], crowd.label[votes]
    confusion = np.zeros((len(machines), crowd.n_classes, crowd.n_classes))
    np.add.at(confusion.transpose(0, 2, 1), (who, label), belief[task])
    met = confusion.sum(axis=(1, 2))
    agreed = np.trace(confusion, axis1=1, axis2=2)
    alone = told.in_people(told.workers)
    names = np.array([*([] if groups is None else groups.index), ""], dtype=object)
    columns = {
        "group": names[group[machines]],
        "n_votes": workers["n_votes"][machines],
        "accuracy": workers["accuracy"][machines],
        "agreement": np.divide(agreed, met, out=np.full(len(machines), np.nan), where=met > 0),
        "shared": shared[machines],
        "alone": alone[machines],
        "worth": _divided(alone, crowd, group, groups)[machines],
    }
    return pd.DataFrame(columns, index=crowd.workers[machines].rename("worker")), confusion


def certain(truth: Any, classes: pd.Index) -> pd.DataFrame:
    """Known truth as a belief, tasks x classes.

    >>> certain({"t1": "x", "t2": "z"}, pd.Index(["x", "y"])).to_numpy().tolist()  # nobody label_probs z: what was label_probs is wrong
    [[1.0, 0.0], [0.0, 0.0]]
    """
    known = truth_series(truth)
    place = classes.get_indexer(same_kind(pd.Index(known), classes))
    return pd.DataFrame(
        np.equal.outer(place, np.arange(len(classes))).astype(float), index=known.index, columns=classes
    )


def calibration(scores: pd.DataFrame, belief: pd.DataFrame, n_bins: int) -> pd.DataFrame:
    """A row for each worker who gave scores: how sure, how often right by a belief (tasks x classes), and the gap between.

    >>> scores = pd.DataFrame({"task": ["t1", "t2"], "worker": "judge", "label": ["x", "x"], "score": [0.9, 0.9]})
    >>> belief = pd.DataFrame([[1.0, 0.0], [0.0, 1.0]], index=["t1", "t2"], columns=["x", "y"])
    >>> calibration(scores, belief, 10).round(2).to_dict("index")
    {'judge': {'n_scores': 2, 'score': 0.9, 'accuracy': 0.5, 'calibration_error': 0.4, 'brier': 0.41}}
    """
    needed = ["task", "worker", "label", "score"]
    if not set(needed) <= set(scores.columns):
        raise InputError(f"scores need the columns {', '.join(needed)}; got {some(map(str, scores.columns), 8)}")
    sure = pd.to_numeric(scores["score"], errors="coerce").to_numpy(dtype=np.float64)
    if not ((sure >= 0) & (sure <= 1)).all():
        bad = scores["score"][~((sure >= 0) & (sure <= 1))]
        raise InputError(f"a score is the probability of being right, between 0 and 1; got {some(bad)}")
    task = belief.index.get_indexer(same_kind(pd.Index(scores["task"]), belief.index))
    label = belief.columns.get_indexer(same_kind(pd.Index(scores["label"]), belief.columns))
    here = (task >= 0) & (label >= 0)
    if not here.any():
        raise InputError(
            "none of the scores is about a task and a class that are known here; see that ids are the same"
        )
    sure, right = sure[here], belief.to_numpy()[task[here], label[here]]
    worker, names = pd.factorize(scores["worker"][here], sort=True)
    n = np.bincount(worker)

    def mean(values: Numbers) -> Numbers:
        return np.asarray(np.bincount(worker, values) / n)

    bins = of_bins(sure, n_bins, "width")
    gap = np.bincount(worker * n_bins + bins, right - sure, len(n) * n_bins).reshape(-1, n_bins)
    return pd.DataFrame(
        {"n_scores": n, "score": mean(sure), "accuracy": mean(right), "calibration_error": np.abs(gap).sum(axis=1) / n,
         "brier": mean(right * (1 - sure) ** 2 + (1 - right) * sure**2)},
        index=pd.Index(names, name="worker"),
    )  # fmt: skip


def _divided(alone: Numbers, crowd: Crowd, group: NDArray[np.int32], groups: pd.DataFrame | None) -> Numbers:
    """What a vote of each worker is worth when what groups tell is divided among members, by what they tell alone."""
    if groups is None:
        return alone
    worth = alone.copy()
    members = np.flatnonzero(group >= 0)
    each = np.bincount(group[members], (alone * crowd.votes_per_worker)[members], len(groups))
    together = (groups["worth"] * groups["n_tasks"]).to_numpy()
    factor = np.divide(together, each, out=np.zeros(len(groups)), where=each > 0)
    worth[members] *= factor[group[members]]
    return worth
