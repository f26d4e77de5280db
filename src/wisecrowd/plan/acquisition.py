"""What to buy next: which worker to ask about which task, when a task is done, and what the money will be worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.diagnose.preparation import admitted
from wisecrowd.diagnose.workers import SURE, WorkerDiagnosis
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.em.priors import blocks
from wisecrowd.errors import InputError, UsageError, some
from wisecrowd.plan.belief import belief_of
from wisecrowd.plan.costs import Together, has_groups, prices
from wisecrowd.plan.greedy import Ask, Asking, gains, gains_of_pairs, most

#: A task is done with no fewer votes than this, however sure the model is.
FEWEST = 2
#: Tasks that are looked at beyond twice those that can be asked about, the least certain first.
MORE_TASKS = 1000
#: Workers that are weighed for a question, the most informative first; and how many who voted on a task are looked past to find
#: as many.
MORE_WORKERS, LOOKED_PAST = 64, 1000


@dataclass(frozen=True, eq=False)
class Plan:
    """Which votes to buy, best first, and what they are expected to be worth.

    >>> from wisecrowd import simulate_crowd
    >>> found = plan(simulate_crowd(n_tasks=100, n_workers=10, votes_per_task=2).crowd, budget=20)
    >>> found.asks.columns.tolist(), len(found.asks), len(found.curve)
    (['task', 'worker', 'gain', 'confidence', 'expected_confidence'], 20, 21)
    """

    asks: pd.DataFrame
    """The questions, best first: ``task``, ``worker``, ``gain`` (entropy that the answer is expected to take away, in nats, after
    the questions on the same task that stand above), ``confidence`` before the answer and ``expected_confidence`` after it."""
    curve: pd.DataFrame
    """After so many ``labels``, for so much ``money``: ``expected_accuracy``, the mean confidence over all tasks."""
    finished: pd.DataFrame
    """Tasks that may stop, by task: ``label``, ``confidence`` and ``n_votes``."""
    left_out: pd.Index
    """Workers who are not asked, because their answers have nothing to do with the truth."""
    sentence: str
    """What to buy and what it is worth."""

    def __repr__(self) -> str:
        return f"Plan: {self.sentence}"


def plan(
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
    >>> found = plan(made.crowd, budget=50, per_worker=20)
    >>> len(found.asks), int(found.asks["worker"].value_counts().max()), found.left_out.tolist()
    (50, 20, ['w9'])
    """
    votes = _admitted(crowd)
    if costs is None:  # who asks for too much is told before the work begins
        _questions(budget, cost, target, per_task, per_worker)
    people, belief = _looked_at(votes, model, random_state)
    done = settled(votes.votes_per_task, belief, target)
    offers = None if among is None else _offers(among)
    names, place = _candidates(votes, workers, offers)
    spammers = np.zeros(len(names), dtype=bool)
    spammers[place >= 0] = people.kinds[place[place >= 0], 1] > SURE
    price = None if costs is None else prices(costs, names, cost, votes, people.model)[~spammers]
    cheapest = cost if price is None else float(price.min(initial=np.inf))
    at_most = _questions(budget, cheapest, target, per_task, per_worker)
    if per_worker is None and offers is None:
        per_worker = _not_too_many(at_most, int((~spammers).sum()))
    options = _Options(people, belief, names[~spammers], place[~spammers], at_most, per_task, per_worker, price)
    asking, tasks, bound = options.of_all(~done) if offers is None else options.of_some(~done, offers)
    asking.random_state = random_state
    chosen = asking.choose(tasks, bound, at_most if costs is None else budget)
    asks = _table(chosen, votes, options.names)
    money = np.asarray(np.arange(len(chosen) + 1) * cost, dtype=np.float64)
    if options.price is not None:
        asks["cost"] = options.price[[ask.worker for ask in chosen]]
        money = np.cumsum([0.0, *asks["cost"]])
    curve = _curve(chosen, belief, money)
    finished = _finished(people, belief, done)
    left_out = names[spammers]
    saved = f"{at_most - len(asks):,} of {at_most:,} votes are" if len(asks) < at_most else ""
    if price is not None:
        rest = budget - money[-1]
        saved = f"{rest:,.2f} of the budget is" if rest >= cheapest else ""
    has_price = cost != 1 or price is not None
    sentence = _sentence(asks, curve, votes, len(finished), left_out, saved, target, has_price=has_price)
    return Plan(asks, curve, finished, left_out, sentence)


def may_stop(crowd: Any, target: float = 0.95, *, model: ConfusionEM | str | None = None) -> pd.Series:
    """For each task, whether it needs no more votes: two or more are there, and its label is as probable as wanted.

    >>> from wisecrowd import simulate_crowd
    >>> easy = simulate_crowd(n_tasks=50, workers=["expert"] * 5, votes_per_task=4).crowd
    >>> float(may_stop(easy, 0.9).mean()) > 0.8
    True
    """
    votes = _admitted(crowd)
    _check_target(target)
    done = settled(votes.votes_per_task, _looked_at(votes, model)[1], target)
    return pd.Series(done, index=votes.tasks.rename("task"), name="may_stop")


# ---------------------------------------------------------------------- inside


@dataclass
class _Options:
    """Who may be asked about what, few enough to be weighed against each other."""

    people: WorkerDiagnosis | Together
    belief: NDArray[np.float64]
    names: pd.Index
    place: NDArray[np.intp]
    """Of each name among the crowd's workers; −1 for strangers."""
    at_most: int
    per_task: int
    per_worker: int | None
    price: NDArray[np.float64] | None = None
    """Of each name; None where all cost the same."""

    def of_all(self, is_open: NDArray[np.bool_]) -> tuple[Asking, NDArray[np.intp], NDArray[np.float64]]:
        """Everybody about everything that they did not vote on: the least certain tasks, the most informative workers."""
        from scipy.special import entr

        crowd = self.people.crowd
        tasks = np.flatnonzero(is_open)
        doubt = entr(self.belief[tasks]).sum(axis=1)
        tasks = tasks[np.argsort(-doubt, kind="stable")[: 2 * self.at_most + MORE_TASKS]]
        self._keep(self._most_informative(tasks))
        here = np.full(crowd.n_workers, -1)
        known = self.place >= 0
        here[self.place[known]] = np.flatnonzero(known)
        everybody = np.arange(len(self.names))

        def who(task: int) -> NDArray[np.intp]:
            free = np.ones(len(everybody), dtype=bool)
            voted = here[crowd.worker_codes[crowd.offset[task] : crowd.offset[task + 1]]]
            free[voted[voted >= 0]] = False
            return everybody[free]

        asking = self._asking(who)
        asking.at_once = MORE_WORKERS
        if len(self.names) == 0:
            return asking, tasks, np.zeros(len(tasks))
        if asking.matrices is not None:  # what the groups said is looked up task by task
            return asking, tasks, np.full(len(tasks), np.inf)
        return asking, tasks, most(self.belief[tasks], asking.confusion, 1.0 if self.price is None else self.price)

    def of_some(
        self, is_open: NDArray[np.bool_], among: pd.DataFrame
    ) -> tuple[Asking, NDArray[np.intp], NDArray[np.float64]]:
        """Only certain workers about certain tasks."""
        crowd = self.people.crowd
        task, worker = self._pairs(among)
        cast = pd.MultiIndex.from_arrays([crowd.task, crowd.worker_codes])
        fresh = is_open[task] & ~pd.MultiIndex.from_arrays([task, self.place[worker]]).isin(cast)
        order = np.flatnonzero(fresh)[np.argsort(task[fresh], kind="stable")]
        task, worker = task[order], worker[order]
        begins = np.searchsorted(task, np.arange(crowd.n_tasks + 1))
        asking = self._asking(lambda task: worker[begins[task] : begins[task + 1]])
        tasks = np.unique(task)
        if asking.matrices is not None:
            return asking, tasks, np.full(len(tasks), np.inf)
        gain = gains_of_pairs(self.belief, asking.confusion, task, worker)
        if self.price is not None:
            gain /= self.price[worker]
        bound = np.maximum.reduceat(gain, begins[tasks]) if len(tasks) else np.empty(0)
        return asking, tasks, bound

    def _pairs(self, among: pd.DataFrame) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        crowd = self.people.crowd
        task = crowd.tasks.get_indexer(pd.Index(among["task"]))
        if (task < 0).any():
            unknown = pd.unique(among["task"].to_numpy()[task < 0])
            raise InputError(f"among names tasks that the crowd does not know: {some(unknown)}")
        worker = self.names.get_indexer(pd.Index(among["worker"]))
        can = worker >= 0  # others are spammers, or not among those who can be asked
        return task[can], worker[can]

    def _most_informative(self, tasks: NDArray[np.intp]) -> NDArray[np.intp]:
        """Positions of the workers whose answers tell most about some of the tasks, the best first."""
        crowd = self.people.crowd
        wanted = MORE_WORKERS + (0 if self.per_worker is None else -(-self.at_most // self.per_worker))
        wanted += min(int(crowd.votes_per_task[tasks].max(initial=0)), LOOKED_PAST)
        if len(self.names) <= MORE_WORKERS or not len(tasks):
            return np.arange(len(self.names))
        probe = self.belief[tasks[np.linspace(0, len(tasks) - 1, MORE_WORKERS).astype(int)]]
        parts = blocks(len(self.names), crowd.n_classes * max(crowd.n_classes, len(probe)))
        told = np.concatenate([gains(probe, self._confusion(part)).mean(axis=0) for part in parts])
        if self.price is not None:
            told /= self.price
        return np.argsort(-told, kind="stable")[:wanted]

    def _keep(self, chosen: NDArray[np.intp]) -> None:
        self.names, self.place = self.names[chosen], self.place[chosen]
        self.price = None if self.price is None else self.price[chosen]

    def _confusion(self, part: slice) -> NDArray[np.float64]:
        place = self.place[part]
        found = np.repeat(self.people.confusion[None], len(place), axis=0)
        found[place >= 0] = self.people.confusion_of(place[place >= 0])
        return found

    def _asking(self, who: Any) -> Asking:
        confusion = self._confusion(slice(None))
        asking = Asking(self.belief, confusion, who, self.per_task, self.per_worker, price=self.price)
        if isinstance(self.people, Together):
            place, known = self.place, self.place >= 0
            told = self.people.model.expected_answers(self.people.crowd)

            def said(task: int, who: NDArray[np.intp]) -> NDArray[np.float64]:
                found = confusion[who]
                found[known[who]] = told.matrices(task, place[who[known[who]]])
                return found

            asking.matrices, asking.group = said, np.where(known, told.group[place], -1)
        return asking


def _looked_at(
    votes: Crowd, model: ConfusionEM | str | None, random_state: int = 0
) -> tuple[WorkerDiagnosis | Together, NDArray[np.float64]]:
    """The workers, and what may be believed of each task."""
    if has_groups(model):
        together = Together(votes, model)
        return together, np.asarray(together.model.posterior_)
    people = WorkerDiagnosis(votes, model)
    return people, belief_of(people, random_state)[0]


def _admitted(crowd: Any) -> Crowd:
    votes = admitted(crowd, "votes are planned")
    if votes.n_votes == 0:
        raise InputError("there are no votes yet, so that nothing is known of anybody; begin with two on each task")
    return votes


def _questions(budget: float, cost: float, target: float, per_task: int, per_worker: int | None) -> int:
    """How many votes the budget buys."""
    _check_target(target)
    if not (np.isfinite(cost) and cost > 0):
        raise UsageError(f"cost must be a positive number, the price of a vote; got {cost}")
    if not np.isfinite(budget) or budget < cost:
        raise UsageError(f"a budget of {budget:g} buys no vote at {cost:g} each; give more")
    if per_task < 1 or (per_worker is not None and per_worker < 1):
        raise UsageError(f"per_task and per_worker must be 1 or more; got {per_task} and {per_worker}")
    return int(budget / cost * (1 + 1e-12))


def _not_too_many(n_questions: int, n_workers: int) -> int:
    """How much is asked of one worker where nobody says: a tenth, or twice an equal share."""
    return int(np.ceil(n_questions * max(0.1, 2 / max(n_workers, 1))))


def _check_target(target: float) -> None:
    if not 0 < target <= 1:
        raise UsageError(f"target is the probability at which a task is done, for example 0.95; got {target}")


def settled(n_votes: NDArray[np.int64], belief: NDArray[np.float64], target: float) -> NDArray[np.bool_]:
    """Which tasks need no more votes, by how many they have and what may be believed of them.

    >>> settled(np.array([1, 2, 2]), np.array([[1.0, 0.0], [0.99, 0.01], [0.5, 0.5]]), 0.95).tolist()
    [False, True, False]
    """
    return np.asarray((n_votes >= FEWEST) & (belief.max(axis=1) >= target))


def _offers(among: Any) -> pd.DataFrame:
    table = among if isinstance(among, pd.DataFrame) else pd.DataFrame(among)
    if not {"task", "worker"} <= set(table.columns):
        raise InputError(f"among needs the columns task and worker; it has {some(map(str, table.columns), 8)}")
    return table


def _candidates(
    crowd: Crowd, workers: Iterable[Any] | None, offers: pd.DataFrame | None
) -> tuple[pd.Index, NDArray[np.intp]]:
    """Who can be asked, and where each stands among the crowd's workers."""
    assert crowd.workers is not None
    if isinstance(workers, str):
        raise UsageError(f"a list of workers was wanted; got {workers!r}")
    names = None if workers is None else pd.Index(list(workers)).unique()
    if names is not None and not len(names):
        raise UsageError("the list of workers who can be asked is empty; leave it out to ask any of the crowd")
    if offers is not None:
        offered = pd.Index(offers["worker"].unique())
        names = offered if names is None else offered[offered.isin(names)]
    if names is None:
        return crowd.workers, np.arange(crowd.n_workers)
    return names, crowd.workers.get_indexer(names)


def _table(chosen: list[Ask], crowd: Crowd, names: pd.Index) -> pd.DataFrame:
    table = pd.DataFrame(chosen, columns=list(Ask._fields))
    return table.assign(
        task=crowd.tasks.take(table["task"].to_numpy(dtype=np.intp)),
        worker=names.take(table["worker"].to_numpy(dtype=np.intp)),
        **{name: table[name].astype(np.float64) for name in Ask._fields[2:]},
    )


def _curve(chosen: list[Ask], belief: NDArray[np.float64], money: NDArray[np.float64]) -> pd.DataFrame:
    rises = np.cumsum([0.0, *(ask.expected_confidence - ask.confidence for ask in chosen)])
    labels = np.arange(len(chosen) + 1)
    expected = belief.max(axis=1).mean() + rises / len(belief)
    return pd.DataFrame({"labels": labels, "money": money, "expected_accuracy": expected})


def _finished(people: WorkerDiagnosis | Together, belief: NDArray[np.float64], done: NDArray[np.bool_]) -> pd.DataFrame:
    crowd = people.crowd
    table = {
        "label": people.model.classes_[belief.argmax(axis=1)],
        "confidence": belief.max(axis=1),
        "n_votes": crowd.votes_per_task,
    }
    return pd.DataFrame(table, index=crowd.tasks.rename("task"))[done]


def _sentence(
    asks: pd.DataFrame, curve: pd.DataFrame, crowd: Crowd, n_finished: int, left_out: pd.Index, saved: str,
    target: float, *, has_price: bool,
) -> str:  # fmt: skip
    """What to buy and what it is worth, for people."""
    from wisecrowd.utils.text import count_noun

    now, then = curve["expected_accuracy"].iloc[[0, -1]]
    if len(asks):
        price = f" for {curve['money'].iloc[-1]:,.2f}" if has_price else ""
        told = (
            f"Buy {count_noun(len(asks), 'vote')}{price} on {count_noun(asks['task'].nunique(), 'task')} from "
            f"{count_noun(asks['worker'].nunique(), 'worker')}: the labels, of which {now:.1%} should be right now, should then be "
            f"right on {then:.1%} of all tasks."
        )
        if saved:
            told += f" The limits allow nothing else that tells anything: {saved} saved."
    else:
        left = crowd.n_tasks - n_finished
        why = (
            f": who can be asked has voted on the {count_noun(left, 'task')} that {'is' if left == 1 else 'are'} open"
            if left
            else ""
        )
        told = f"There is nothing to ask{why}; the labels should be right on {now:.1%} of the tasks."
        told += " Invite other workers." if left else ""
    if n_finished:
        told += f" {count_noun(n_finished, 'task')} of {crowd.n_tasks:,} may stop, with {target:.0%} or more."
    if len(left_out):
        them = "is" if len(left_out) == 1 else "are"
        told += (
            f" Nothing is asked of {some(left_out)}, who {them} flagged as spammer{'s' if len(left_out) > 1 else ''}."
        )
    return told
