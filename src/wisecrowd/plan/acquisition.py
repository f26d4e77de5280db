"""Acquisition of votes: which worker to ask about which task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import CrowdLike, TruthLike
from wisecrowd.data.vocabulary import locate_ids
from wisecrowd.diagnose.assessment import CrowdAssessment
from wisecrowd.diagnose.workers import SPAMMER_FLAG_PROBABILITY, WorkerDiagnosis
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import InputError, UsageError, preview
from wisecrowd.plan.costs import vote_costs
from wisecrowd.plan.greedy import (
    GreedySelector,
    VoteRequest,
    best_information_gains,
    information_gains,
    pair_information_gains,
)
from wisecrowd.plan.starting_point import GroupedWorkers, assess_votes, get_planned_workers, require_votes
from wisecrowd.plan.stopping import DEFAULT_TARGET, check_target, is_finished
from wisecrowd.utils.notebook import render_html
from wisecrowd.utils.slices import slice_rows

#: Number of tasks that are considered beyond twice the number of affordable votes, most uncertain first.
EXTRA_TASKS = 1000
#: Number of candidates that are evaluated for a task, most informative first.
MAX_WORKERS = 64
#: Largest number of workers added to the candidates because others may have voted on a task already.
MAX_SKIPPED = 1000


@dataclass(frozen=True, eq=False)
class Plan:
    """Votes to request, best first, and their expected value.

    Attributes
    ----------
    requests : DataFrame
        One row per requested vote: ``task``, ``worker``, ``gain`` (expected reduction of entropy in nats, after the earlier
        requests on the same task), ``confidence`` before and ``expected_confidence`` after the vote; with costs also ``cost``.
    curve : DataFrame
        ``expected_accuracy``, the mean confidence over all tasks, by number of bought ``votes`` and ``money``.
    finished_tasks : DataFrame
        ``label``, ``confidence`` and ``n_votes`` of tasks that need no more votes.
    excluded_workers : Index
        Workers who are not asked because they are flagged as spammers.
    summary : str
        Recommendation in one or two sentences.
    assessment : CrowdAssessment
        Labels, confidence, worker flags and warnings of the votes that the plan starts from.

    Examples
    --------
    >>> from wisecrowd import simulate_crowd
    >>> plan = plan_votes(simulate_crowd(n_tasks=100, n_workers=10, votes_per_task=2).crowd, budget=20)
    >>> plan.requests.columns.tolist(), len(plan.requests), len(plan.curve)
    (['task', 'worker', 'gain', 'confidence', 'expected_confidence'], 20, 21)
    """

    requests: pd.DataFrame
    curve: pd.DataFrame
    finished_tasks: pd.DataFrame
    excluded_workers: pd.Index
    summary: str
    assessment: CrowdAssessment = field(repr=False)

    def _repr_html_(self) -> str:
        return render_html(self.summary, self.requests)

    def __repr__(self) -> str:
        return f"Plan: {self.summary}"


def plan_votes(
    crowd: CrowdLike,
    budget: float,
    *,
    model: ConfusionEM | str | None = None,
    gold: TruthLike | None = None,
    target: float = DEFAULT_TARGET,
    per_task: int = 2,
    per_worker: int | None = None,
    workers: Iterable[Any] | None = None,
    among: Any = None,
    cost: float = 1.0,
    costs: Mapping[Any, float] | None = None,
    random_state: int = 0,
) -> Plan:
    """Plan which votes to buy next, by expected information gain per cost.

    A vote of worker r on task i is expected to reduce the entropy by

        H(q_i) − Σ_l P(y_ir = l) H(q_i | y_ir = l),   P(y_ir = l) = Σ_k q_i(k) π_r[k, l]

    The matrices π are shrunk towards the matrix of the crowd if votes are few. q is the calibrated posterior, in which the
    probability of a label is its confidence (see `estimate_confidence`). Requests are chosen greedily; the gain of a second request
    on a task is its expectation over the possible labels of the first. Workers who are probably spammers are not asked.

    With a `Panel` with groups as model, a further member of a group is expected to add only what the earlier votes of the group
    leave open, and at most one member per group is asked about a task.

    If workers err together on misleading tasks, no vote shows it and the expected accuracy is too high. Buy votes in rounds, plan
    again after each, and collect some ground truth to check the confidence.

    Parameters
    ----------
    crowd : Crowd or DataFrame
        Votes with classes and worker ids.
    budget : float
        Largest total cost. With the default cost of 1 it is the number of votes.
    model : ConfusionEM or str, default=None
        Fitted model, or the name of a method, of workers and labels. By default workers are rated by Dawid–Skene, and labels are
        those of ``wisecrowd aggregate``.
    gold : Series, mapping or table, default=None
        Known truth of some tasks. It is used in fitting and calibrates the confidence; these tasks need no votes. A fitted
        ``model`` must have been fitted with it.
    target : float, default=0.9
        Confidence at which a task with two or more votes is finished.
    per_task : int, default=2
        Largest number of requests per task.
    per_worker : int, default=None
        Largest number of requests per worker. Defaults to a tenth of all requests, or twice an equal share if workers are few.
        There is no default limit if ``among`` is given.
    workers : iterable, default=None
        Ids of workers who can be asked. Defaults to all workers of the crowd. A worker without votes counts as average.
    among : DataFrame, default=None
        Table with columns task and worker. Only these pairs are requested.
    cost : float, default=1.0
        Cost of a vote.
    costs : mapping, default=None
        Costs by worker, or by kind if the model has kinds: ``{"person": 0.2, "machine": 0.01}``. Other workers cost ``cost``.
    random_state : int, default=0
        Seed for sampled outcomes.

    Returns
    -------
    Plan

    Examples
    --------
    >>> from wisecrowd import simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=400, workers=["noisy(0.8)"] * 9 + ["spammer"], n_classes=2, votes_per_task=3)
    >>> plan = plan_votes(simulation.crowd, budget=50, per_worker=20)
    >>> len(plan.requests), int(plan.requests["worker"].value_counts().max()), plan.excluded_workers.tolist()
    (50, 20, ['w9'])
    """
    votes = require_votes(crowd)
    if costs is None:  # invalid arguments fail before the expensive part
        _count_affordable_votes(budget, cost, target, per_task, per_worker)
    assessment = assess_votes(votes, model, gold)
    diagnosis = get_planned_workers(assessment)
    is_done = is_finished(votes.votes_per_task, assessment.labels.confidence, target) | (assessment.labels.truth >= 0)
    offers = None if among is None else _as_offers(among)
    worker_ids, worker_position = _resolve_workers(votes, workers, offers)
    spammers = np.zeros(len(worker_ids), dtype=bool)
    spammers[worker_position >= 0] = (
        diagnosis.type_probs[worker_position[worker_position >= 0], 1] > SPAMMER_FLAG_PROBABILITY
    )
    worker_costs = None if costs is None else vote_costs(costs, worker_ids, cost, votes, diagnosis.model)[~spammers]
    min_cost = cost if worker_costs is None else float(worker_costs.min(initial=np.inf))
    max_votes = _count_affordable_votes(budget, min_cost, target, per_task, per_worker)
    if per_worker is None and offers is None:
        per_worker = _default_per_worker(max_votes, int((~spammers).sum()))
    pool = _CandidatePool(
        diagnosis,
        assessment.posterior,
        worker_ids[~spammers],
        worker_position[~spammers],
        max_votes,
        per_task,
        per_worker,
        worker_costs,
    )
    selector, tasks, bound = (
        pool.select_from_all(~is_done) if offers is None else pool.select_from_offers(~is_done, offers)
    )
    selector.random_state = random_state
    requests = selector.choose(tasks, bound, max_votes if costs is None else budget)
    request_table = _tabulate_requests(requests, votes, pool.worker_ids)
    money = np.asarray(np.arange(len(requests) + 1) * cost, dtype=np.float64)
    if pool.costs is not None:
        request_table["cost"] = pool.costs[[request.worker for request in requests]]
        money = np.cumsum([0.0, *request_table["cost"]])
    curve = _expected_curve(requests, assessment.labels.confidence, money)
    finished_tasks = _tabulate_finished(assessment, is_done)
    excluded_workers = worker_ids[spammers]
    unspent = f"{max_votes - len(request_table):,} of {max_votes:,} votes are" if len(request_table) < max_votes else ""
    if worker_costs is not None:
        money_left = budget - money[-1]
        unspent = f"{money_left:,.2f} of the budget is" if money_left >= min_cost else ""
    has_costs = cost != 1 or worker_costs is not None
    summary = _write_summary(
        request_table, curve, votes, len(finished_tasks), excluded_workers, unspent, target, has_costs=has_costs
    )
    return Plan(request_table, curve, finished_tasks, excluded_workers, summary, assessment)


@dataclass
class _CandidatePool:
    """Candidate workers and tasks of a plan."""

    diagnosis: WorkerDiagnosis | GroupedWorkers
    posterior: NDArray[np.float64]
    worker_ids: pd.Index
    #: Position of each id among the workers of the crowd; -1 for workers without votes.
    worker_position: NDArray[np.intp]
    max_votes: int
    per_task: int
    per_worker: int | None
    #: Cost of a vote of each id; None if all cost the same.
    costs: NDArray[np.float64] | None = None

    def select_from_all(
        self, is_open: NDArray[np.bool_]
    ) -> tuple[GreedySelector, NDArray[np.intp], NDArray[np.float64]]:
        """Return a selector, tasks and bounds for all open tasks, most uncertain first, and the most informative workers."""
        from scipy.special import entr

        crowd = self.diagnosis.crowd
        tasks = np.flatnonzero(is_open)
        entropy = entr(self.posterior[tasks]).sum(axis=1)
        tasks = tasks[np.argsort(-entropy, kind="stable")[: 2 * self.max_votes + EXTRA_TASKS]]
        self._restrict(self._most_informative(tasks))
        pool_position = np.full(crowd.n_workers, -1)
        in_crowd = self.worker_position >= 0
        pool_position[self.worker_position[in_crowd]] = np.flatnonzero(in_crowd)
        all_workers = np.arange(len(self.worker_ids))

        def free_workers(task: int) -> NDArray[np.intp]:
            is_free = np.ones(len(all_workers), dtype=bool)
            voters = pool_position[crowd.worker_codes[crowd.offset[task] : crowd.offset[task + 1]]]
            is_free[voters[voters >= 0]] = False
            return all_workers[is_free]

        selector = self._make_selector(free_workers)
        selector.max_candidates = MAX_WORKERS
        if len(self.worker_ids) == 0:
            return selector, tasks, np.zeros(len(tasks))
        if selector.task_confusion is not None:  # gains depend on earlier votes of the groups and have no cheap bound
            return selector, tasks, np.full(len(tasks), np.inf)
        return (
            selector,
            tasks,
            best_information_gains(
                self.posterior[tasks], selector.confusion, 1.0 if self.costs is None else self.costs
            ),
        )

    def select_from_offers(
        self, is_open: NDArray[np.bool_], offers: pd.DataFrame
    ) -> tuple[GreedySelector, NDArray[np.intp], NDArray[np.float64]]:
        """Return a selector, tasks and bounds for the offered pairs of task and worker.

        Parameters
        ----------
        is_open : ndarray of bool of shape (n_tasks,)
            Whether each task may get more votes.
        offers : DataFrame
            Table with columns task and worker.

        Returns
        -------
        selector : GreedySelector
            Selector of the offered votes.
        tasks : ndarray of shape (n_offered_tasks,)
            Positions of the tasks.
        bound : ndarray of shape (n_offered_tasks,)
            Largest gain per cost on each task.
        """
        crowd = self.diagnosis.crowd
        task, worker = self._encode_offers(offers)
        existing = pd.MultiIndex.from_arrays([crowd.task, crowd.worker_codes])
        is_new = is_open[task] & ~pd.MultiIndex.from_arrays([task, self.worker_position[worker]]).isin(existing)
        order = np.flatnonzero(is_new)[np.argsort(task[is_new], kind="stable")]
        task, worker = task[order], worker[order]
        starts = np.searchsorted(task, np.arange(crowd.n_tasks + 1))
        selector = self._make_selector(lambda task: worker[starts[task] : starts[task + 1]])
        tasks = np.unique(task)
        if selector.task_confusion is not None:
            return selector, tasks, np.full(len(tasks), np.inf)
        gain = pair_information_gains(self.posterior, selector.confusion, task, worker)
        if self.costs is not None:
            gain /= self.costs[worker]
        bound = np.maximum.reduceat(gain, starts[tasks]) if len(tasks) else np.empty(0)
        return selector, tasks, bound

    def _encode_offers(self, offers: pd.DataFrame) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the positions of the tasks and workers of the offers."""
        crowd = self.diagnosis.crowd
        task = locate_ids(pd.Index(offers["task"]), crowd.tasks)
        if (task < 0).any():
            unknown = pd.unique(offers["task"].to_numpy()[task < 0])
            raise InputError(f"among has tasks that are not in the crowd: {preview(unknown)}; drop these rows")
        worker = locate_ids(pd.Index(offers["worker"]), self.worker_ids)
        is_available = worker >= 0  # the others are spammers, or cannot be asked
        return task[is_available], worker[is_available]

    def _most_informative(self, tasks: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the positions of the workers with the largest mean gain on a sample of tasks, best first."""
        crowd = self.diagnosis.crowd
        n_workers = MAX_WORKERS + (0 if self.per_worker is None else -(-self.max_votes // self.per_worker))
        n_workers += min(int(crowd.votes_per_task[tasks].max(initial=0)), MAX_SKIPPED)
        if len(self.worker_ids) <= MAX_WORKERS or not len(tasks):
            return np.arange(len(self.worker_ids))
        probe = self.posterior[tasks[np.linspace(0, len(tasks) - 1, MAX_WORKERS).astype(int)]]
        parts = slice_rows(len(self.worker_ids), crowd.n_classes * max(crowd.n_classes, len(probe)))
        gain = np.concatenate([information_gains(probe, self._confusion(part)).mean(axis=0) for part in parts])
        if self.costs is not None:
            gain /= self.costs
        return np.argsort(-gain, kind="stable")[:n_workers]

    def _restrict(self, positions: NDArray[np.intp]) -> None:
        """Keep only some of the workers."""
        self.worker_ids, self.worker_position = self.worker_ids[positions], self.worker_position[positions]
        self.costs = None if self.costs is None else self.costs[positions]

    def _confusion(self, part: slice) -> NDArray[np.float64]:
        """Return the confusion matrices of a slice of the workers; workers without votes get that of the crowd."""
        worker_position = self.worker_position[part]
        confusion = np.repeat(self.diagnosis.confusion[None], len(worker_position), axis=0)
        confusion[worker_position >= 0] = self.diagnosis.confusion_of(worker_position[worker_position >= 0])
        return confusion

    def _make_selector(self, candidates: Any) -> GreedySelector:
        """Return a selector for these workers."""
        confusion = self._confusion(slice(None))
        selector = GreedySelector(
            self.posterior, confusion, candidates, self.per_task, self.per_worker, costs=self.costs
        )
        if isinstance(self.diagnosis, GroupedWorkers):
            position, in_crowd = self.worker_position, self.worker_position >= 0
            expected = self.diagnosis.model.expected_answers(self.diagnosis.crowd)

            def task_confusion(task: int, candidates: NDArray[np.intp]) -> NDArray[np.float64]:
                label_probs = confusion[candidates]
                label_probs[in_crowd[candidates]] = expected.confusion_on(
                    task, position[candidates[in_crowd[candidates]]]
                )
                return label_probs

            selector.task_confusion, selector.group = task_confusion, np.where(in_crowd, expected.group[position], -1)
        return selector


def _count_affordable_votes(budget: float, cost: float, target: float, per_task: int, per_worker: int | None) -> int:
    """Return the number of votes that the budget buys."""
    check_target(target)
    if not (np.isfinite(cost) and cost > 0):
        raise UsageError(f"cost must be a positive number; got {cost}")
    if not np.isfinite(budget) or budget < cost:
        raise UsageError(f"budget must cover at least one vote at a cost of {cost:g}; got {budget:g}")
    if per_task < 1 or (per_worker is not None and per_worker < 1):
        raise UsageError(f"per_task and per_worker must be 1 or more; got {per_task} and {per_worker}")
    return int(budget / cost * (1 + 1e-12))


def _default_per_worker(n_requests: int, n_workers: int) -> int:
    """Return the default limit per worker: a tenth of all requests, or twice an equal share."""
    return int(np.ceil(n_requests * max(0.1, 2 / max(n_workers, 1))))


def _as_offers(offers: Any) -> pd.DataFrame:
    """Return ``among`` as a DataFrame with columns task and worker."""
    table = offers if isinstance(offers, pd.DataFrame) else pd.DataFrame(offers)
    if not {"task", "worker"} <= set(table.columns):
        raise InputError(f"among must have the columns task and worker; got {preview(map(str, table.columns), 8)}")
    return table


def _resolve_workers(
    crowd: Crowd, workers: Iterable[Any] | None, offers: pd.DataFrame | None
) -> tuple[pd.Index, NDArray[np.intp]]:
    """Return the ids of workers who can be asked and their positions in the crowd."""
    assert crowd.workers is not None
    if isinstance(workers, str):
        raise UsageError(f"workers must be a list of ids; got {workers!r}. For one worker: [{workers!r}]")
    worker_ids = None if workers is None else pd.Index(list(workers)).unique()
    if worker_ids is not None and not len(worker_ids):
        raise UsageError("workers is empty; omit it to ask all workers of the crowd")
    if offers is not None:
        offered_ids = pd.Index(offers["worker"].unique())
        worker_ids = offered_ids if worker_ids is None else offered_ids[offered_ids.isin(worker_ids)]
    if worker_ids is None:
        return crowd.workers, np.arange(crowd.n_workers)
    return worker_ids, locate_ids(worker_ids, crowd.workers)


def _tabulate_requests(requests: list[VoteRequest], crowd: Crowd, worker_ids: pd.Index) -> pd.DataFrame:
    """Return the requests as a table with ids."""
    table = pd.DataFrame(requests, columns=list(VoteRequest._fields))
    return table.assign(
        task=crowd.tasks.take(table["task"].to_numpy(dtype=np.intp)),
        worker=worker_ids.take(table["worker"].to_numpy(dtype=np.intp)),
        **{name: table[name].astype(np.float64) for name in VoteRequest._fields[2:]},
    )


def _expected_curve(
    requests: list[VoteRequest], confidence: NDArray[np.float64], money: NDArray[np.float64]
) -> pd.DataFrame:
    """Return the expected accuracy after each request."""
    increases = np.cumsum([0.0, *(request.expected_confidence - request.confidence for request in requests)])
    n_bought = np.arange(len(requests) + 1)
    expected = confidence.mean() + increases / len(confidence)
    return pd.DataFrame({"votes": n_bought, "money": money, "expected_accuracy": expected})


def _tabulate_finished(assessment: CrowdAssessment, is_done: NDArray[np.bool_]) -> pd.DataFrame:
    """Return label, confidence and votes of the finished tasks."""
    return assessment.labels.table.assign(n_votes=assessment.crowd.votes_per_task)[is_done]


def _write_summary(
    request_table: pd.DataFrame, curve: pd.DataFrame, crowd: Crowd, n_finished: int, excluded_workers: pd.Index, unspent: str,
    target: float, *, has_costs: bool,
) -> str:  # fmt: skip
    """Write the recommendation."""
    from wisecrowd.utils.text import count_noun

    now, then = curve["expected_accuracy"].iloc[[0, -1]]
    if len(request_table):
        price = f" for {curve['money'].iloc[-1]:,.2f}" if has_costs else ""
        text = (
            f"Buy {count_noun(len(request_table), 'vote')}{price} on {count_noun(request_table['task'].nunique(), 'task')} from "
            f"{count_noun(request_table['worker'].nunique(), 'worker')}. The expected accuracy rises from {now:.1%} to {then:.1%}."
        )
        if unspent:
            text += f" No other vote within the limits is expected to add information, so {unspent} not needed."
    else:
        n_open = crowd.n_tasks - n_finished
        reason = (
            f", because all available workers have voted on the {count_noun(n_open, 'unfinished task')}"
            if n_open
            else ""
        )
        text = f"No vote is worth requesting{reason}. The expected accuracy is {now:.1%}."
        text += " Invite other workers." if n_open else ""
    if n_finished:
        verb = "is" if n_finished == 1 else "are"
        text += f" {n_finished:,} of {count_noun(crowd.n_tasks, 'task')} {verb} finished (confidence at least {target:.0%})."
    if len(excluded_workers):
        kind = "a spammer" if len(excluded_workers) == 1 else "spammers"
        text += f" Excluded as {kind}: {preview(excluded_workers)}."
    return text
