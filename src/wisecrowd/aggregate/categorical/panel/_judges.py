"""Results about machine judges and groups, in comparison with people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logsumexp

from wisecrowd import kernels
from wisecrowd.aggregate.categorical.panel._opinions import GroupVotes, OpinionTables, compute_cell_log_probs
from wisecrowd.data.alignment import as_truth_series
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.layout import Layout
from wisecrowd.data.types import TruthLike
from wisecrowd.data.vocabulary import match_id_type
from wisecrowd.errors import InputError, preview
from wisecrowd.kernels import MIN_PROB
from wisecrowd.utils.binning import assign_bins

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class JudgeEvidence:
    """Information that votes contain about the truth of a crowd.

    A vote (or several votes together) with likelihoods L[k] has an information of Σ_k q(k) log L[k] / Σ_k' ρ_k' L[k'] nats
    on a task with posterior q. The mean over votes is their mutual information with the truth.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", 0), ("t2", "ann", 1)])
    >>> label_probs = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> evidence = JudgeEvidence(crowd, np.eye(2), np.full(2, 0.5), label_probs, np.array([True]))
    >>> round(evidence.person_information, 3)
    0.588
    """

    crowd: Crowd
    """Votes."""
    posterior: Array
    """Posterior, (n_tasks, n_classes)."""
    prior: Array
    """Class prior, (n_classes,)."""
    label_probs: Array
    """P(label of the pair given class), (n_pairs, n_classes)."""
    is_person: NDArray[np.bool_]
    """Whether each worker is a person, (n_workers,)."""

    def compute_information(self, log_likelihood: Array, task: NDArray[Any]) -> Array:
        """Compute the information of votes in nats.

        Parameters
        ----------
        log_likelihood : ndarray of shape (n, n_classes)
            Log-likelihoods of one or several votes on a task.
        task : ndarray of shape (n,)
            Task codes.

        Returns
        -------
        ndarray of shape (n,)
        """
        prior = np.log(np.maximum(self.prior, MIN_PROB))
        normalized = log_likelihood - logsumexp(log_likelihood + prior, axis=1, keepdims=True)
        return np.asarray((self.posterior[task] * normalized).sum(axis=1))

    @cached_property
    def vote_information(self) -> Array:
        """Information of each vote in nats."""
        log_probs = np.log(np.maximum(self.label_probs, MIN_PROB))
        return self.compute_information(log_probs[self.crowd.pairs.vote_pairs], self.crowd.task)

    @cached_property
    def worker_information(self) -> Array:
        """Mean information of the votes of each worker; NaN without votes."""
        worker, n_workers = self.crowd.worker_codes, self.crowd.n_workers
        with np.errstate(invalid="ignore"):
            return np.bincount(worker, self.vote_information, n_workers) / np.bincount(worker, minlength=n_workers)

    @cached_property
    def person_information(self) -> float:
        """Mean information of the votes of people; NaN without people."""
        votes = self.vote_information[self.is_person[self.crowd.worker_codes]]
        return float(votes.mean()) if len(votes) else float("nan")

    def convert_to_person_votes(self, nats: Any) -> Any:
        """Convert information to the number of votes of an average person.

        Parameters
        ----------
        nats : float or ndarray
            Information; negative values count as zero.

        Returns
        -------
        float or ndarray
        """
        return np.maximum(nats, 0.0) / (self.person_information if self.person_information > 0 else float("nan"))

    @cached_property
    def people_posterior(self) -> tuple[Array, NDArray[np.bool_]]:
        """Posterior given the votes of people only, and whether people voted on each task."""
        crowd = self.crowd
        by_person = self.is_person[crowd.worker_codes]
        weight = np.where(by_person, crowd.weight, 0.0)
        layout = Layout(crowd.layout.offset, crowd.pairs.vote_pairs, weight, len(crowd.pairs))
        posterior = kernels.posterior(layout, self.prior, self.label_probs, compiled=False)
        return posterior, np.bincount(crowd.task[by_person], minlength=crowd.n_tasks) > 0


def summarize_opinions(
    evidence: JudgeEvidence, group: NDArray[np.int32], names: Sequence[str], tables: OpinionTables
) -> pd.DataFrame:
    """Return a table of groups: members, tasks, accuracy of the opinion, and joint worth of the votes on a task.

    Parameters
    ----------
    evidence : JudgeEvidence
        Information of votes.
    group : ndarray of shape (n_workers,)
        Group codes, −1 for workers without a group.
    names : sequence of str
        Names of the groups.
    tables : OpinionTables
        Probabilities of labels and opinions.

    Returns
    -------
    DataFrame
        ``n_workers``, ``n_tasks``, ``accuracy`` and ``worth`` (in votes of an average person) by group.

    Examples
    --------
    >>> crowd = Crowd.from_triples([(task, worker, task % 2) for task in range(4) for worker in "abp"])
    >>> right = np.where(crowd.pairs.label[:, None] == np.arange(2), 0.9, 0.1)
    >>> is_person = np.array([False, False, True])
    >>> evidence = JudgeEvidence(crowd, np.tile(np.eye(2), (2, 1)), np.full(2, 0.5), right, is_person)
    >>> a = np.array([0.999, 0.999, 0.0])[crowd.pairs.worker, None]
    >>> copies = OpinionTables((1 - a) * right, a + (1 - a) * right, np.array([[[0.9, 0.1], [0.1, 0.9]]]))
    >>> summarize_opinions(evidence, np.array([0, 0, -1], dtype=np.int32), ["gpt"], copies)["worth"].round(2).tolist()
    [1.0]
    """
    votes = GroupVotes.from_crowd(evidence.crowd, group)
    nats = evidence.compute_information(compute_cell_log_probs(votes, tables), votes.task)
    n_tasks = np.bincount(votes.group, minlength=len(names))
    mean_nats = np.bincount(votes.group, nats, len(names)) / np.maximum(n_tasks, 1)
    return pd.DataFrame(
        {
            "n_workers": np.bincount(group[group >= 0], minlength=len(names)),
            "n_tasks": n_tasks,
            "accuracy": np.einsum("k,gkk->g", evidence.prior, tables.opinion),
            "worth": evidence.convert_to_person_votes(mean_nats),
        },
        index=pd.Index(list(names), name="group"),
    )


def summarize_judges(
    evidence: JudgeEvidence,
    is_machine: NDArray[np.bool_],
    worker_columns: Mapping[str, NDArray[Any]],
    shared: Array,
    group: NDArray[np.int32],
    opinions: pd.DataFrame | None,
) -> tuple[pd.DataFrame, Array]:
    """Return a table of machines, and counts of their labels by the class that people infer.

    Parameters
    ----------
    evidence : JudgeEvidence
        Information of votes.
    is_machine : ndarray of shape (n_workers,)
        Whether each worker is a machine.
    worker_columns : mapping
        Columns ``n_votes`` and ``accuracy`` of ``workers_``.
    shared : ndarray of shape (n_workers,)
        Share of each worker's votes that repeat the opinion of the group.
    group : ndarray of shape (n_workers,)
        Group codes, −1 for workers without a group.
    opinions : DataFrame or None
        Result of `summarize_opinions`.

    Returns
    -------
    judges : DataFrame
        By machine: ``group``, ``n_votes``, ``accuracy``; ``agreement``, the mean probability of its labels given the votes
        of people; ``shared``; ``alone``, the information of one vote in votes of an average person; ``worth``, the same if
        the information of a group is divided among its members.
    confusion : ndarray of shape (n_machines, n_classes, n_classes)
        Counts [machine, class inferred from people, label].

    Examples
    --------
    >>> crowd = Crowd.from_triples([(task, worker, task % 2) for task in range(4) for worker in "ap"])
    >>> right = np.where(crowd.pairs.label[:, None] == np.arange(2), 0.9, 0.1)
    >>> evidence = JudgeEvidence(crowd, np.tile(np.eye(2), (2, 1)), np.full(2, 0.5), right, np.array([False, True]))
    >>> columns = {"n_votes": np.full(2, 4.0), "accuracy": np.full(2, 0.9)}
    >>> is_machine, no_group = np.array([True, False]), np.full(2, -1)
    >>> table, confusion = summarize_judges(evidence, is_machine, columns, np.zeros(2), no_group, None)
    >>> table[["agreement", "worth"]].round(2).values.tolist(), confusion.round(1).tolist()
    ([[0.9, 1.0]], [[[1.8, 0.2], [0.2, 1.8]]])
    """
    crowd = evidence.crowd
    assert crowd.workers is not None
    machines = np.flatnonzero(is_machine)
    position = np.full(crowd.n_workers, -1)
    position[machines] = np.arange(len(machines))
    posterior, has_people = evidence.people_posterior
    votes = np.flatnonzero((position[crowd.worker_codes] >= 0) & has_people[crowd.task])
    machine, task, label = position[crowd.worker_codes[votes]], crowd.task[votes], crowd.label[votes]
    confusion = np.zeros((len(machines), crowd.n_classes, crowd.n_classes))
    np.add.at(confusion.transpose(0, 2, 1), (machine, label), posterior[task])
    n_compared = confusion.sum(axis=(1, 2))
    n_agreeing = np.trace(confusion, axis1=1, axis2=2)
    alone = evidence.convert_to_person_votes(evidence.worker_information)
    names = np.array([*([] if opinions is None else opinions.index), ""], dtype=object)
    no_agreement = np.full(len(machines), np.nan)
    columns = {
        "group": names[group[machines]],
        "n_votes": worker_columns["n_votes"][machines],
        "accuracy": worker_columns["accuracy"][machines],
        "agreement": np.divide(n_agreeing, n_compared, out=no_agreement, where=n_compared > 0),
        "shared": shared[machines],
        "alone": alone[machines],
        "worth": _divide_group_worth(alone, crowd, group, opinions)[machines],
    }
    return pd.DataFrame(columns, index=crowd.workers[machines].rename("worker")), confusion


def _divide_group_worth(alone: Array, crowd: Crowd, group: NDArray[np.int32], opinions: pd.DataFrame | None) -> Array:
    """Return the worth of a vote of each worker, with the worth of groups divided in proportion to ``alone``."""
    if opinions is None:
        return alone
    worth = alone.copy()
    members = np.flatnonzero(group >= 0)
    sum_alone = np.bincount(group[members], (alone * crowd.votes_per_worker)[members], len(opinions))
    joint = (opinions["worth"] * opinions["n_tasks"]).to_numpy()
    factor = np.divide(joint, sum_alone, out=np.zeros(len(opinions)), where=sum_alone > 0)
    worth[members] *= factor[group[members]]
    return worth


def encode_truth_as_posterior(truth: TruthLike, classes: pd.Index) -> pd.DataFrame:
    """Return known truth as a posterior.

    Parameters
    ----------
    truth : truth-like
        Known truth by task.
    classes : Index
        Classes.

    Returns
    -------
    DataFrame
        Tasks x classes; zero for a true class that is not among the classes, so every label is wrong.

    Examples
    --------
    >>> encode_truth_as_posterior({"t1": "x", "t2": "z"}, pd.Index(["x", "y"])).to_numpy().tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    series = as_truth_series(truth)
    code = classes.get_indexer(match_id_type(pd.Index(series), classes))
    table = np.equal.outer(code, np.arange(len(classes))).astype(float)
    return pd.DataFrame(table, index=series.index, columns=classes)


def summarize_calibration(scores: pd.DataFrame, posterior: pd.DataFrame, n_bins: int) -> pd.DataFrame:
    """Return the calibration of workers who gave scores.

    Parameters
    ----------
    scores : DataFrame
        Columns task, worker, label and score, the worker's probability that the label is right.
    posterior : DataFrame
        Tasks x classes.
    n_bins : int
        Number of bins of equal width.

    Returns
    -------
    DataFrame
        ``n_scores``, mean ``score``, ``accuracy``, ``calibration_error`` and ``brier`` by worker.

    Raises
    ------
    InputError
        If columns are missing, scores are not probabilities, or no score matches the posterior.

    Examples
    --------
    >>> scores = pd.DataFrame({"task": ["t1", "t2"], "worker": "judge", "label": ["x", "x"], "score": [0.9, 0.9]})
    >>> posterior = pd.DataFrame([[1.0, 0.0], [0.0, 1.0]], index=["t1", "t2"], columns=["x", "y"])
    >>> summarize_calibration(scores, posterior, 10).round(2).to_dict("index")
    {'judge': {'n_scores': 2, 'score': 0.9, 'accuracy': 0.5, 'calibration_error': 0.4, 'brier': 0.41}}
    """
    required = ["task", "worker", "label", "score"]
    if not set(required) <= set(scores.columns):
        raise InputError(f"scores need the columns {', '.join(required)}; got {preview(map(str, scores.columns), 8)}")
    score = pd.to_numeric(scores["score"], errors="coerce").to_numpy(dtype=np.float64)
    is_valid = (score >= 0) & (score <= 1)
    if not is_valid.all():
        raise InputError(
            f"a score is the probability of being right, between 0 and 1; got {preview(scores['score'][~is_valid])}"
        )
    task = posterior.index.get_indexer(match_id_type(pd.Index(scores["task"]), posterior.index))
    label = posterior.columns.get_indexer(match_id_type(pd.Index(scores["label"]), posterior.columns))
    is_matched = (task >= 0) & (label >= 0)
    if not is_matched.any():
        raise InputError("no score matches a task and a class of the panel; check that ids and labels are the same")
    score, right = score[is_matched], posterior.to_numpy()[task[is_matched], label[is_matched]]
    worker, names = pd.factorize(scores["worker"][is_matched], sort=True)
    n_scores = np.bincount(worker)

    def average(values: Array) -> Array:
        return np.asarray(np.bincount(worker, values) / n_scores)

    bins = assign_bins(score, n_bins, "width")
    gap = np.bincount(worker * n_bins + bins, right - score, len(n_scores) * n_bins).reshape(-1, n_bins)
    return pd.DataFrame(
        {
            "n_scores": n_scores,
            "score": average(score),
            "accuracy": average(right),
            "calibration_error": np.abs(gap).sum(axis=1) / n_scores,
            "brier": average(right * (1 - score) ** 2 + (1 - right) * score**2),
        },
        index=pd.Index(names, name="worker"),
    )
