"""Rules that choose the next votes, replayed on real crowds: accuracy while votes are bought in batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.registry import find
from wisecrowd.bench.benchmark import Benchmark
from wisecrowd.bench.code_digest import code_digest
from wisecrowd.bench.data import StoredDataset
from wisecrowd.bench.entries import Portable
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.rows import shuffle_within_groups
from wisecrowd.diagnose.workers import WorkerDiagnosis
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import InputError, ignore_fit_warnings
from wisecrowd.evaluate import metrics
from wisecrowd.io.datasets import Dataset
from wisecrowd.plan.acquisition import plan_votes

#: Figures: mean accuracy from the first budget to all votes, and up to `UP_TO` votes per task.
AREA, EARLY = "area", "early area"
UP_TO = 5
#: Number of votes per task at the start, and size of a batch as a share of the votes bought so far.
START, BATCH = 2, 0.15

Rows = NDArray[np.intp]


class ReplayRound(NamedTuple):
    """State that a rule sees: votes bought so far, votes still open, and the fitted model.

    >>> ReplayRound._fields
    ('crowd', 'bought', 'open_votes', 'model', 'bought_crowd', 'rng')
    """

    crowd: Crowd
    """All votes; of open votes, rules use only the task and the worker."""
    bought: Rows
    open_votes: Rows
    model: ConfusionEM
    bought_crowd: Crowd
    rng: np.random.Generator


def random_votes(now: ReplayRound) -> NDArray[np.float64]:
    """Order the open votes at random.

    >>> random_votes(ReplayRound(None, None, np.arange(3), None, None, np.random.default_rng(0))).shape
    (3,)
    """
    return now.rng.random(len(now.open_votes))


def fewest_votes(now: ReplayRound) -> NDArray[np.float64]:
    """Order the open votes by the number of votes on their tasks, fewest first.

    >>> crowd = Crowd.from_triples([(task, worker, 0) for task in "ab" for worker in "xyz"])
    >>> rng = np.random.default_rng(0)
    >>> now = ReplayRound(crowd, np.array([0, 1, 3]), np.array([2, 4]), None, crowd.take([0, 1, 3]), rng)
    >>> fewest_votes(now).argmin().item()
    1
    """
    return _in_turns(now, now.bought_crowd.votes_per_task.astype(np.float64))


def most_uncertain(now: ReplayRound) -> NDArray[np.float64]:
    """Order the open votes by the entropy of the posterior of their tasks, largest first.

    >>> crowd = Crowd.from_triples([("a", w, 0) for w in "xyz"] + [("b", "x", 0), ("b", "y", 1), ("b", "z", 1)])
    >>> bought = np.array([0, 1, 3, 4])  # two of three votes on each task; they differ on the second
    >>> bought_crowd, rng = crowd.take(bought), np.random.default_rng(0)
    >>> now = ReplayRound(crowd, bought, np.array([2, 5]), _fit_dawid_skene(bought_crowd), bought_crowd, rng)
    >>> most_uncertain(now).argmin().item()
    1
    """
    from scipy.special import entr

    return _in_turns(now, -entr(now.model.posterior_).sum(axis=1))


def most_uncertain_best_worker(now: ReplayRound) -> NDArray[np.float64]:
    """Order the open votes by the entropy of the posterior, and within a task by the information of the worker.

    >>> crowd = Crowd.from_triples([("a", w, 0) for w in "xyz"] + [("b", "x", 0), ("b", "y", 1), ("b", "z", 1)])
    >>> bought = np.array([0, 1, 3, 4])  # two of three votes on each task; they differ on the second
    >>> bought_crowd, rng = crowd.take(bought), np.random.default_rng(0)
    >>> now = ReplayRound(crowd, bought, np.array([2, 5]), _fit_dawid_skene(bought_crowd), bought_crowd, rng)
    >>> most_uncertain_best_worker(now).argmin().item()
    1
    """
    from scipy.special import entr

    information = WorkerDiagnosis(now.bought_crowd, now.model).information[now.crowd.worker_codes[now.open_votes]]
    return _in_turns(now, -entr(now.model.posterior_).sum(axis=1), first=information)


def active_lab(now: ReplayRound) -> NDArray[np.float64]:
    """Order the open votes by the ActiveLab score of their tasks without a classifier, lowest first.

    >>> crowd = Crowd.from_triples([("a", w, 0) for w in "xyz"] + [("b", "x", 0), ("b", "y", 1), ("b", "z", 1)])
    >>> bought = np.array([0, 1, 3, 4])  # two of three votes on each task; they differ on the second
    >>> bought_crowd, rng = crowd.take(bought), np.random.default_rng(0)
    >>> now = ReplayRound(crowd, bought, np.array([2, 5]), _fit_dawid_skene(bought_crowd), bought_crowd, rng)
    >>> active_lab(now).argmin().item()
    1
    """
    return _in_turns(now, active_lab_scores(now.bought_crowd))


def expected_information(now: ReplayRound) -> NDArray[np.float64]:
    """Order the open votes by `wisecrowd.plan_votes` without stopping; votes that it does not request come last.

    >>> crowd = Crowd.from_triples([("a", w, 0) for w in "xyz"] + [("b", "x", 0), ("b", "y", 1), ("b", "z", 1)])
    >>> bought = np.array([0, 1, 3, 4])  # two of three votes on each task; they differ on the second
    >>> bought_crowd, rng = crowd.take(bought), np.random.default_rng(0)
    >>> now = ReplayRound(crowd, bought, np.array([2, 5]), _fit_dawid_skene(bought_crowd), bought_crowd, rng)
    >>> expected_information(now).argmin().item()
    1
    """
    crowd, open_votes = now.crowd, now.open_votes
    assert crowd.workers is not None
    offers = pd.DataFrame(
        {"task": crowd.tasks[crowd.task[open_votes]], "worker": crowd.workers[crowd.worker_codes[open_votes]]}
    )
    requests = plan_votes(now.bought_crowd, _batch(now), model=now.model, target=1.0, among=offers).requests
    order = 1 + now.rng.random(len(open_votes))
    positions = pd.MultiIndex.from_frame(offers).get_indexer(pd.MultiIndex.from_frame(requests[["task", "worker"]]))
    order[positions] = np.arange(len(positions)) / max(len(positions), 1)
    return order


def active_lab_scores(crowd: Crowd) -> NDArray[np.float64]:
    """Return the ActiveLab score of every task without a classifier; tasks with low scores are labelled next.

    (Q_i Σ_r w_r + w̄ / K) / (Σ_r w_r + w̄), over the workers r on the task, is ActiveLab's score with a classifier of weight zero.
    Q_i is CROWDLAB's quality of the majority class: the average over votes that are right with probability P, the share of votes
    that agree with the majority. w_r = 1 − (1 − s_r) / e, where s_r is the agreement of worker r with others on the same tasks
    and e is the error of the most frequent class.

    >>> active_lab_scores(Crowd.from_triples([(t, w, int(t == 0 and w == "b")) for t in range(4) for w in "abc"])).round(2)
    array([0.6 , 0.81, 0.81, 0.81])
    """
    votes, size = crowd.vote_counts, crowd.vote_counts.sum(axis=1)
    consensus = votes.argmax(axis=1)
    cast = np.flatnonzero(size[crowd.task] > 1)
    task, label, worker = crowd.task[cast], crowd.label[cast], crowd.worker_codes[cast]
    n_meetings = np.bincount(worker, size[task] - 1, minlength=crowd.n_workers)
    agreed = np.bincount(worker, votes[task, label] - 1, minlength=crowd.n_workers)
    with np.errstate(invalid="ignore"):
        agreement = agreed / n_meetings
    agreement = np.where(n_meetings > 0, agreement, np.nanmean(agreement))
    shared = np.flatnonzero(size > 1)
    error = max(1 - np.bincount(consensus[shared]).max() / len(shared), 1e-6)
    weight = np.maximum(1 - (1 - agreement) / error, 1e-6)
    right = float((votes[shared, consensus[shared]] / size[shared]).mean())
    chance = np.where(
        crowd.label == consensus[crowd.task], right, (1 - right) / max(crowd.n_classes - 1, 1)
    )  # of the consensus, by each vote
    vote_weight = weight[crowd.worker_codes]
    total = np.bincount(crowd.task, vote_weight, minlength=crowd.n_tasks)
    quality = np.bincount(crowd.task, vote_weight * chance, minlength=crowd.n_tasks)
    mean = weight[crowd.votes_per_worker > 0].mean()
    return np.asarray((quality + mean / crowd.n_classes) / (total + mean))


def _in_turns(
    now: ReplayRound, score: NDArray[np.float64], first: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return the order of the open votes by the score of their tasks, with one vote per task in every turn.

    Within a task, votes with a high ``first`` come first; the default is a random order.
    """
    task, n_open = now.crowd.task[now.open_votes], len(now.open_votes)
    within = now.rng.random(n_open) if first is None else -first
    order = np.lexsort((within, task))
    counts = np.bincount(task, minlength=now.crowd.n_tasks)
    turn = np.empty(n_open)
    turn[order] = np.arange(n_open) - np.repeat(np.cumsum(counts) - counts, counts)
    position = np.empty(n_open)
    position[np.lexsort((now.rng.random(n_open), score[task], turn))] = np.arange(n_open)
    return position


def _batch(now: ReplayRound) -> int:
    """Return the number of votes in the next batch."""
    return min(max(round(BATCH * len(now.bought)), 1), len(now.open_votes))


RULES: Mapping[str, Callable[[ReplayRound], NDArray[np.float64]]] = {
    "random": random_votes,
    "fewest votes": fewest_votes,
    "most uncertain": most_uncertain,
    "most uncertain, best worker": most_uncertain_best_worker,
    "ActiveLab, no classifier": active_lab,
    "wisecrowd plan": expected_information,
}


@dataclass(frozen=True)
class Replay(Portable):
    """Entry that buys the votes of a dataset by a rule and scores Dawid–Skene's labels after every batch.

    >>> from wisecrowd.bench.data import SimulatedDataset
    >>> sorted(Replay("random")(SimulatedDataset({"n_tasks": 60, "n_workers": 8, "votes_per_task": 6}).load(0), 0))
    ['area', 'early area']
    """

    rule: str

    is_random: ClassVar[bool] = True

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Return the areas under the curve of accuracy against votes."""
        curve = self.curve(dataset, seed)
        start, end = curve["votes"].iloc[[0, -1]]
        early = min(start + (UP_TO - START) * dataset.crowd.n_tasks, end)
        return {AREA: _mean_until(curve, end), EARLY: _mean_until(curve, early)}

    def curve(self, dataset: Dataset, seed: int) -> pd.DataFrame:
        """Return the accuracy after every batch.

        Parameters
        ----------
        dataset : Dataset
            Dataset with truth.
        seed : int
            Seed of the first votes and of the rule.

        Returns
        -------
        DataFrame
            Columns ``votes`` and ``accuracy``.
        """
        if dataset.truth is None:
            raise InputError("the dataset has no truth; this entry needs it for scoring")
        crowd, rng = dataset.crowd, np.random.default_rng(seed)
        bought = _first(crowd, seed)
        points = []
        while True:
            bought_crowd = crowd.take(bought)
            model = _fit_dawid_skene(bought_crowd)
            points.append((len(bought), metrics.accuracy(dataset.truth, model)))
            open_votes = np.setdiff1d(np.arange(crowd.n_votes), bought)
            if not len(open_votes):
                return pd.DataFrame(points, columns=["votes", "accuracy"])
            now = ReplayRound(crowd, bought, open_votes, model, bought_crowd, rng)
            order = np.argsort(RULES[self.rule](now), kind="stable")
            bought = np.union1d(bought, open_votes[order[: _batch(now)]])

    def identity(self) -> Any:
        """Return the rule and the digest of the code."""
        return [self.rule, code_digest(type(self))]


def _first(crowd: Crowd, seed: int) -> Rows:
    """Return two random votes per task, the same for every rule."""
    order, rank = shuffle_within_groups(crowd.task, crowd.n_tasks, np.random.default_rng(seed))
    return np.sort(order[rank < START])


def _fit_dawid_skene(crowd: Crowd) -> ConfusionEM:
    """Fit Dawid–Skene to a crowd."""
    method: Any = find("dawid-skene")
    with ignore_fit_warnings():
        fitted: ConfusionEM = method().fit(crowd)
    return fitted


def _mean_until(curve: pd.DataFrame, end: float) -> float:
    """Return the mean of a piecewise linear curve from its start to a number of votes."""
    votes, accuracy = curve["votes"].to_numpy(dtype=np.float64), curve["accuracy"].to_numpy()
    at = np.append(votes[votes < end], end)
    if len(at) < 2:
        return float(accuracy[0])
    return float(np.trapezoid(np.interp(at, votes, accuracy), at) / (end - votes[0]))


DATASETS = {
    "Bluebirds": "bluebirds",
    "Dogs": "dog",
    "RTE": "rte",
    "Weather (AMT)": "weather_amt",
    "Faces": "face_sentiment",
    "Sentiment": "d_possent",
    "Income": "income",
    "Leaves": "leaves",
}


def benchmark() -> Benchmark:
    """Return the benchmark of rules on crowds with many votes per task.

    >>> "wisecrowd plan" in benchmark().entries
    True
    """
    return Benchmark(
        title="What to label next: accuracy while votes are bought",
        entries={title: Replay(title) for title in RULES},
        data={title: StoredDataset(name, "distinct", figures=(AREA, EARLY)) for title, name in DATASETS.items()},
        notes={
            "random": "The remaining votes in random order.",
            "fewest votes": "Tasks with the fewest votes first.",
            "most uncertain": "Tasks with the largest entropy of Dawid–Skene's posterior first.",
            "most uncertain, best worker": "The same tasks, given to the worker whose vote is most informative.",
            "ActiveLab, no classifier": "The score of Goh and Mueller (2023) from votes alone, as most of these crowds have no "
            "features: the classifier's weight is zero. With a good classifier it knows more than this row shows.",
            "wisecrowd plan": "Task and worker together, by expected information. The prior of its confidence is fitted to public "
            "crowds, these among them, by how far confidence is from accuracy, not by what stands here.",
        },
        seeds=3,
        rows="data",
        remarks=(
            f"Every rule begins with the same {START} votes on each task, drawn at random, and buys batches of {BATCH:.0%} of what "
            "it has until nothing is left. After every batch Dawid–Skene is fitted and scored by the truth. *Area* is the mean "
            f"accuracy from the first budget to the last, *early area* that up to {UP_TO} votes for each task on average, where "
            "budgets are in practice. Mean and standard deviation over seeds (the first votes, and all that is drawn).",
            "Only votes that somebody cast can be bought, which is not how a platform works: a rule that wants one worker "
            "for everything gets the tasks that this worker happened to do, a task that a rule wants more of runs out, and towards "
            "the end every rule must buy what it did not want. All end at the same accuracy, with all votes. So "
            "differences between rules are probably smaller here than where anybody can be asked about anything.",
        ),
        time_limit=300,
    )
