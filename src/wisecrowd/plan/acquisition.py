"""What to buy next: which worker to ask about which task, when a task is done, and what the money will be worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.diagnose.workers import FLAG_PROBABILITY, WorkerDiagnosis
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import InputError, UsageError, preview
from wisecrowd.plan.belief import GroupedWorkers, assess_crowd, require_votes
from wisecrowd.plan.costs import vote_costs
from wisecrowd.plan.greedy import (
    GreedySelector,
    VoteRequest,
    best_information_gains,
    information_gains,
    pair_information_gains,
)
from wisecrowd.plan.stopping import check_target, is_finished
from wisecrowd.utils.slices import slice_rows

#: Tasks that are looked at beyond twice those that can be asked about, the least certain first.
EXTRA_TASKS = 1000
#: Workers that are weighed for a question, the most informative first; and how many who voted on a task are looked past to find
#: as many.
MAX_WORKERS, MAX_SKIPPED = 64, 1000


@dataclass(frozen=True, eq=False)
class Plan:
    """Which votes to buy, best first, and what they are expected to be worth.

    >>> from wisecrowd import simulate_crowd
    >>> found = plan_votes(simulate_crowd(n_tasks=100, n_workers=10, votes_per_task=2).crowd, budget=20)
    >>> found.requests.columns.tolist(), len(found.requests), len(found.curve)
    (['task', 'worker', 'gain', 'confidence', 'expected_confidence'], 20, 21)
    """

    requests: pd.DataFrame
    """The questions, best first: ``task``, ``worker``, ``gain`` (entropy that the answer is expected to take away, in nats, after
    the questions on the same task that stand above), ``confidence`` before the answer and ``expected_confidence`` after it."""
    curve: pd.DataFrame
    """After so many ``labels``, for so much ``money``: ``expected_accuracy``, the mean confidence over all tasks."""
    finished_tasks: pd.DataFrame
    """Tasks that may stop, by task: ``label``, ``confidence`` and ``n_votes``."""
    excluded_workers: pd.Index
    """Workers who are not asked, because their answers have nothing to do with the truth."""
    summary: str
    """What to buy and what it is worth."""

    def __repr__(self) -> str:
        return f"Plan: {self.summary}"


def plan_votes(
    crowd: Any,
    budget: float,
    *,
    model: ConfusionEM | str | None = None,
    target: float = 0.95,
    per_task: int = 2,
    per_worker: int | None = None,
    workers: Iterable[Any] | None = None,
    among: Any = None,
    cost: float = 1.0,
    costs: Mapping[Any, float] | None = None,
    random_state: int = 0,
) -> Plan:
    """Which votes to buy next, so that the most is learnt for the money.

    An answer of worker r on task i is expected to take away the entropy

        H(q_i) − Σ_l P(y_ir = l) H(q_i | y_ir = l),   P(y_ir = l) = Σ_k q_i(k) π_r[k, l]

    with matrices π that are drawn toward the crowd's where votes are few, and a q that follows from them, no surer than hidden
    votes bear out. Questions are chosen one after the other; the second on a task counts what it adds to the first, whatever
    that will be answered.

    ``budget`` is what may be spent, where a vote costs ``cost``; with the default cost it is the number of votes. A task is done
    when its likeliest class has the probability ``target`` and there are two votes or more. At most ``per_task`` questions are
    asked about a task, and ``per_worker`` of a worker: unless given, a tenth of all, or twice an equal share where workers are few,
    for whoever is best is not always there, and errs alike every time. ``workers`` are those who can be asked, all unless given;
    one without votes is taken for an average one. ``among`` restricts it further, to the rows of a table with columns task and
    worker, and then limits what is asked of a worker unless ``per_worker`` does. Who is more probably a spammer than not is not
    asked. ``model`` is a fitted method with confusion matrices, or its name; Dawid–Skene unless given.

    ``costs`` are prices by worker, or by kind where the model knows kinds (`Panel`): ``{"person": 0.2, "machine": 0.01}``; who is
    not named costs ``cost``. The question is then taken that tells most for its price. A `Panel` with groups knows what the
    group of a judge said of a task already, and expects of a further judge only what that leaves open; of one group, one
    judge is asked about a task in a plan. Its confidence is then taken as it is.

    Where workers err together, on tasks that mislead all of them, no vote shows it, and a plan promises too much. Buy in rounds,
    and plan again with the answers; know some truth, to see what the confidence is worth.

    >>> from wisecrowd import simulate_crowd
    >>> made = simulate_crowd(n_tasks=400, workers=["noisy(0.8)"] * 9 + ["spammer"], n_classes=2, votes_per_task=3)
    >>> found = plan_votes(made.crowd, budget=50, per_worker=20)
    >>> len(found.requests), int(found.requests["worker"].value_counts().max()), found.excluded_workers.tolist()
    (50, 20, ['w9'])
    """
    votes = require_votes(crowd)
    if costs is None:  # who asks for too much is told before the work begins
        _count_affordable_votes(budget, cost, target, per_task, per_worker)
    assessment, belief = assess_crowd(votes, model, random_state)
    is_done = is_finished(votes.votes_per_task, belief, target)
    offers = None if among is None else _as_offers(among)
    worker_ids, worker_position = _resolve_workers(votes, workers, offers)
    spammers = np.zeros(len(worker_ids), dtype=bool)
    spammers[worker_position >= 0] = assessment.type_probs[worker_position[worker_position >= 0], 1] > FLAG_PROBABILITY
    worker_costs = None if costs is None else vote_costs(costs, worker_ids, cost, votes, assessment.model)[~spammers]
    min_cost = cost if worker_costs is None else float(worker_costs.min(initial=np.inf))
    max_votes = _count_affordable_votes(budget, min_cost, target, per_task, per_worker)
    if per_worker is None and offers is None:
        per_worker = _default_per_worker(max_votes, int((~spammers).sum()))
    pool = _CandidatePool(
        assessment,
        belief,
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
        request_table["cost"] = pool.costs[[ask.worker for ask in requests]]
        money = np.cumsum([0.0, *request_table["cost"]])
    curve = _expected_curve(requests, belief, money)
    finished_tasks = _tabulate_finished(assessment, belief, is_done)
    excluded_workers = worker_ids[spammers]
    unspent = f"{max_votes - len(request_table):,} of {max_votes:,} votes are" if len(request_table) < max_votes else ""
    if worker_costs is not None:
        money_left = budget - money[-1]
        unspent = f"{money_left:,.2f} of the budget is" if money_left >= min_cost else ""
    has_costs = cost != 1 or worker_costs is not None
    summary = _write_summary(
        request_table, curve, votes, len(finished_tasks), excluded_workers, unspent, target, has_costs=has_costs
    )
    return Plan(request_table, curve, finished_tasks, excluded_workers, summary)


# ---------------------------------------------------------------------- inside


@dataclass
class _CandidatePool:
    """Who may be asked about what, few enough to be weighed against each other."""

    workers: WorkerDiagnosis | GroupedWorkers
    belief: NDArray[np.float64]
    worker_ids: pd.Index
    worker_position: NDArray[np.intp]
    """Of each name among the crowd's workers; −1 for strangers."""
    max_votes: int
    per_task: int
    per_worker: int | None
    costs: NDArray[np.float64] | None = None
    """Of each name; None where all cost the same."""

    def select_from_all(
        self, is_open: NDArray[np.bool_]
    ) -> tuple[GreedySelector, NDArray[np.intp], NDArray[np.float64]]:
        """Everybody about everything that they did not vote on: the least certain tasks, the most informative workers."""
        from scipy.special import entr

        crowd = self.workers.crowd
        tasks = np.flatnonzero(is_open)
        entropy = entr(self.belief[tasks]).sum(axis=1)
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
        if selector.task_confusion is not None:  # what the groups said is looked up task by task
            return selector, tasks, np.full(len(tasks), np.inf)
        return (
            selector,
            tasks,
            best_information_gains(self.belief[tasks], selector.confusion, 1.0 if self.costs is None else self.costs),
        )

    def select_from_offers(
        self, is_open: NDArray[np.bool_], offers: pd.DataFrame
    ) -> tuple[GreedySelector, NDArray[np.intp], NDArray[np.float64]]:
        """Only certain workers about certain tasks."""
        crowd = self.workers.crowd
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
        gain = pair_information_gains(self.belief, selector.confusion, task, worker)
        if self.costs is not None:
            gain /= self.costs[worker]
        bound = np.maximum.reduceat(gain, starts[tasks]) if len(tasks) else np.empty(0)
        return selector, tasks, bound

    def _encode_offers(self, offers: pd.DataFrame) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        crowd = self.workers.crowd
        task = crowd.tasks.get_indexer(pd.Index(offers["task"]))
        if (task < 0).any():
            unknown = pd.unique(offers["task"].to_numpy()[task < 0])
            raise InputError(f"among names tasks that the crowd does not know: {preview(unknown)}")
        worker = self.worker_ids.get_indexer(pd.Index(offers["worker"]))
        is_available = worker >= 0  # others are spammers, or not among those who can be asked
        return task[is_available], worker[is_available]

    def _most_informative(self, tasks: NDArray[np.intp]) -> NDArray[np.intp]:
        """Positions of the workers whose answers tell most about some of the tasks, the best first."""
        crowd = self.workers.crowd
        n_workers = MAX_WORKERS + (0 if self.per_worker is None else -(-self.max_votes // self.per_worker))
        n_workers += min(int(crowd.votes_per_task[tasks].max(initial=0)), MAX_SKIPPED)
        if len(self.worker_ids) <= MAX_WORKERS or not len(tasks):
            return np.arange(len(self.worker_ids))
        probe = self.belief[tasks[np.linspace(0, len(tasks) - 1, MAX_WORKERS).astype(int)]]
        parts = slice_rows(len(self.worker_ids), crowd.n_classes * max(crowd.n_classes, len(probe)))
        gain = np.concatenate([information_gains(probe, self._confusion(part)).mean(axis=0) for part in parts])
        if self.costs is not None:
            gain /= self.costs
        return np.argsort(-gain, kind="stable")[:n_workers]

    def _restrict(self, positions: NDArray[np.intp]) -> None:
        self.worker_ids, self.worker_position = self.worker_ids[positions], self.worker_position[positions]
        self.costs = None if self.costs is None else self.costs[positions]

    def _confusion(self, part: slice) -> NDArray[np.float64]:
        worker_position = self.worker_position[part]
        confusion = np.repeat(self.workers.confusion[None], len(worker_position), axis=0)
        confusion[worker_position >= 0] = self.workers.confusion_of(worker_position[worker_position >= 0])
        return confusion

    def _make_selector(self, candidates: Any) -> GreedySelector:
        confusion = self._confusion(slice(None))
        selector = GreedySelector(self.belief, confusion, candidates, self.per_task, self.per_worker, costs=self.costs)
        if isinstance(self.workers, GroupedWorkers):
            position, in_crowd = self.worker_position, self.worker_position >= 0
            expected = self.workers.model.expected_answers(self.workers.crowd)

            def task_confusion(task: int, candidates: NDArray[np.intp]) -> NDArray[np.float64]:
                label_probs = confusion[candidates]
                label_probs[in_crowd[candidates]] = expected.task_confusion(
                    task, position[candidates[in_crowd[candidates]]]
                )
                return label_probs

            selector.task_confusion, selector.group = task_confusion, np.where(in_crowd, expected.group[position], -1)
        return selector


def _count_affordable_votes(budget: float, cost: float, target: float, per_task: int, per_worker: int | None) -> int:
    """How many votes the budget buys."""
    check_target(target)
    if not (np.isfinite(cost) and cost > 0):
        raise UsageError(f"cost must be a positive number, the price of a vote; got {cost}")
    if not np.isfinite(budget) or budget < cost:
        raise UsageError(f"a budget of {budget:g} buys no vote at {cost:g} each; give more")
    if per_task < 1 or (per_worker is not None and per_worker < 1):
        raise UsageError(f"per_task and per_worker must be 1 or more; got {per_task} and {per_worker}")
    return int(budget / cost * (1 + 1e-12))


def _default_per_worker(n_questions: int, n_workers: int) -> int:
    """How much is asked of one worker where nobody says: a tenth, or twice an equal share."""
    return int(np.ceil(n_questions * max(0.1, 2 / max(n_workers, 1))))


def _as_offers(offers: Any) -> pd.DataFrame:
    table = offers if isinstance(offers, pd.DataFrame) else pd.DataFrame(offers)
    if not {"task", "worker"} <= set(table.columns):
        raise InputError(f"among needs the columns task and worker; it has {preview(map(str, table.columns), 8)}")
    return table


def _resolve_workers(
    crowd: Crowd, workers: Iterable[Any] | None, offers: pd.DataFrame | None
) -> tuple[pd.Index, NDArray[np.intp]]:
    """Who can be asked, and where each stands among the crowd's workers."""
    assert crowd.workers is not None
    if isinstance(workers, str):
        raise UsageError(f"a list of workers was wanted; got {workers!r}")
    worker_ids = None if workers is None else pd.Index(list(workers)).unique()
    if worker_ids is not None and not len(worker_ids):
        raise UsageError("the list of workers who can be asked is empty; leave it out to ask any of the crowd")
    if offers is not None:
        offered_ids = pd.Index(offers["worker"].unique())
        worker_ids = offered_ids if worker_ids is None else offered_ids[offered_ids.isin(worker_ids)]
    if worker_ids is None:
        return crowd.workers, np.arange(crowd.n_workers)
    return worker_ids, crowd.workers.get_indexer(worker_ids)


def _tabulate_requests(requests: list[VoteRequest], crowd: Crowd, worker_ids: pd.Index) -> pd.DataFrame:
    table = pd.DataFrame(requests, columns=list(VoteRequest._fields))
    return table.assign(
        task=crowd.tasks.take(table["task"].to_numpy(dtype=np.intp)),
        worker=worker_ids.take(table["worker"].to_numpy(dtype=np.intp)),
        **{name: table[name].astype(np.float64) for name in VoteRequest._fields[2:]},
    )


def _expected_curve(
    requests: list[VoteRequest], belief: NDArray[np.float64], money: NDArray[np.float64]
) -> pd.DataFrame:
    increases = np.cumsum([0.0, *(ask.expected_confidence - ask.confidence for ask in requests)])
    labels = np.arange(len(requests) + 1)
    expected = belief.max(axis=1).mean() + increases / len(belief)
    return pd.DataFrame({"labels": labels, "money": money, "expected_accuracy": expected})


def _tabulate_finished(
    workers: WorkerDiagnosis | GroupedWorkers, belief: NDArray[np.float64], is_done: NDArray[np.bool_]
) -> pd.DataFrame:
    crowd = workers.crowd
    table = {
        "label": workers.model.classes_[belief.argmax(axis=1)],
        "confidence": belief.max(axis=1),
        "n_votes": crowd.votes_per_task,
    }
    return pd.DataFrame(table, index=crowd.tasks.rename("task"))[is_done]


def _write_summary(
    request_table: pd.DataFrame, curve: pd.DataFrame, crowd: Crowd, n_finished: int, excluded_workers: pd.Index, unspent: str,
    target: float, *, has_costs: bool,
) -> str:  # fmt: skip
    """What to buy and what it is worth, for people."""
    from wisecrowd.utils.text import count_noun

    now, then = curve["expected_accuracy"].iloc[[0, -1]]
    if len(request_table):
        price = f" for {curve['money'].iloc[-1]:,.2f}" if has_costs else ""
        text = (
            f"Buy {count_noun(len(request_table), 'vote')}{price} on {count_noun(request_table['task'].nunique(), 'task')} from "
            f"{count_noun(request_table['worker'].nunique(), 'worker')}: the labels, of which {now:.1%} should be right now, should then be "
            f"right on {then:.1%} of all tasks."
        )
        if unspent:
            text += f" The limits allow nothing else that tells anything: {unspent} saved."
    else:
        n_open = crowd.n_tasks - n_finished
        reason = (
            f": who can be asked has voted on the {count_noun(n_open, 'task')} that {'is' if n_open == 1 else 'are'} open"
            if n_open
            else ""
        )
        text = f"There is nothing to ask{reason}; the labels should be right on {now:.1%} of the tasks."
        text += " Invite other workers." if n_open else ""
    if n_finished:
        text += f" {count_noun(n_finished, 'task')} of {crowd.n_tasks:,} may stop, with {target:.0%} or more."
    if len(excluded_workers):
        verb = "is" if len(excluded_workers) == 1 else "are"
        text += f" Nothing is asked of {preview(excluded_workers)}, who {verb} flagged as spammer{'s' if len(excluded_workers) > 1 else ''}."
    return text
