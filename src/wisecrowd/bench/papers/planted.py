"""Workers who were planted in simulated crowds: who finds them, and who accuses others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.registry import find
from wisecrowd.bench.benchmark import Benchmark
from wisecrowd.bench.data import Simulated
from wisecrowd.bench.entries import Portable, code_digest
from wisecrowd.data.crowd import Crowd
from wisecrowd.diagnose.workers import WorkerDiagnosis
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import InputError, ignore_fit_warnings
from wisecrowd.io.datasets import Dataset

CLASSES, VOTES = (2, 4, 8), (30, 60, 120)
PER_TASK = 5
#: Who is in every crowd: half of it or more is of some use.
WORKERS = {
    "expert": 10,
    "noisy(0.65, 0.85)": 40,
    "spammer": 8,
    "one-button": 4,
    "adversary": 5,
    "copier(0.9)": 5,
    "drifter": 6,
}
#: What is to be found, and the flags by which `WorkerDiagnosis` says so.
FLAGS: Mapping[str, frozenset[str]] = {
    "spammers": frozenset({"spammer", "one-button"}),
    "adversaries": frozenset({"adversary"}),
    "copiers": frozenset({"copies"}),
    "drifters": frozenset({"drifts"}),
}
FIGURES = tuple(f"{flag} {what}" for flag in FLAGS for what in ("recall", "precision"))
#: What a diagnosis must reach to be relied on.
ENOUGH = 0.9

Pairs = set[frozenset[str]]


class Named(NamedTuple):
    """Whom somebody names.

    >>> Named({"spammers": {"w1"}}, set()).workers["spammers"]
    {'w1'}
    """

    workers: Mapping[str, set[str]]
    """By what they are said to be; of copiers, see below."""
    pairs: Pairs
    """Two who are said to give each other's answers: who copied whom, votes do not tell."""


@dataclass(frozen=True)
class Planted(Simulated):
    """A simulated crowd whose dataset says, as ``meta``, of what kind each worker is and who copies whom.

    >>> simulation = Planted({"n_tasks": 60, "workers": ["noisy"] * 4 + ["copier(1)"]}).load(0)
    >>> simulation.meta["kind"]["w4"], list(simulation.meta["copies"])
    ('copier', ['w4'])
    """

    figures: tuple[str, ...] = FIGURES

    def load(self, seed: int) -> Dataset:
        """Simulate."""
        from wisecrowd.simulate import simulate_crowd

        simulation = simulate_crowd(**self.settings, random_state=seed)
        kind = {worker: name.partition("(")[0] for worker, name in simulation.kind.items()}
        meta = {"kind": kind, "copies": simulation.copies.to_dict()}
        return Dataset(name="planted", crowd=simulation.crowd, truth=simulation.truth, meta=meta)


def diagnosed(crowd: Crowd, model: ConfusionEM | None = None) -> Named:
    """Whom `WorkerDiagnosis` flags.

    >>> simulation = Planted({"n_tasks": 300, "workers": ["expert"] * 8 + ["spammer"], "votes_per_task": 5}).load(0)
    >>> diagnosed(simulation.crowd).workers["spammers"]
    {'w8'}
    """
    diagnosis = WorkerDiagnosis(crowd, model)
    flags_by_worker = {worker: set(flags.split(", ")) for worker, flags in diagnosis.table["flags"].items()}
    workers = {
        flag: {str(worker) for worker, names in flags_by_worker.items() if names & FLAGS[flag]} for flag in FLAGS
    }
    together = diagnosis.copying.flagged
    return Named(workers, {frozenset(pair) for pair in zip(together["first"], together["second"], strict=True)})


def by_votes(dataset: Dataset) -> Named:
    """`WorkerDiagnosis` as it comes.

    >>> by_votes(Planted({"n_tasks": 90, "n_workers": 9, "workers": {"expert": 1.0}}).load(0)).pairs
    set()
    """
    return diagnosed(dataset.crowd)


def by_truth(dataset: Dataset) -> Named:
    """The same diagnosis where every vote is judged by the truth, not by what the other votes make of it.

    >>> by_truth(Planted({"n_tasks": 90, "n_workers": 9, "workers": {"expert": 1.0}}).load(0)).pairs
    set()
    """
    kind: Any = find("dawid-skene")

    class Informed(kind):  # type: ignore[misc]  # found by name, as all methods are
        """Knows the truth whenever it is fitted, also to a part of the votes, as the search for copies does."""

        def fit(self, crowd: Any, X: Any = None, **options: Any) -> Any:
            return super().fit(crowd, X, **{**options, "truth": dataset.truth})

    return diagnosed(dataset.crowd, Informed().fit(dataset.crowd))


#: Of the simple rules: how far from chance agreement with the majority may be for a spammer, how much of their common answers
#: two copiers share, on how many tasks at least, and by how much agreement falls or rises for one who drifts.
NEAR_CHANCE, SAME, COMMON, FALL = 0.1, 0.9, 10, 0.2


def by_agreement(dataset: Dataset) -> Named:
    """What people do with a spreadsheet: how often each worker agrees with the majority of the others, and thresholds.

    >>> simulation = Planted({"n_tasks": 300, "workers": ["expert"] * 8 + ["spammer"], "votes_per_task": 5}).load(0)
    >>> by_agreement(simulation).workers["spammers"]
    {'w8'}
    """
    crowd, names = dataset.crowd, dataset.crowd.workers
    assert names is not None
    each = np.arange(crowd.n_votes)
    rest = crowd.vote_counts[crowd.task].astype(np.float64)
    rest[each, crowd.label] -= 1
    agrees = rest[each, crowd.label] == rest.max(axis=1)  # with one of the largest, where several are
    chance = 1 / crowd.n_classes

    def share(rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        agreed, total = (
            np.bincount(crowd.worker_codes[rows], part, minlength=len(names)) for part in (agrees[rows], None)
        )
        return np.asarray(agreed / np.maximum(total, 1))

    agreement = share(np.ones(crowd.n_votes, dtype=bool))
    late = crowd.time >= np.median(crowd.time) if crowd.has_times else np.zeros(crowd.n_votes, dtype=bool)
    fell = np.abs(share(late) - share(~late)) >= FALL if crowd.has_times else np.zeros(len(names), dtype=bool)
    hostile = agreement < chance - NEAR_CHANCE
    chosen = {
        "spammers": (agreement < chance + NEAR_CHANCE) & ~hostile, "adversaries": hostile, "drifters": fell,
    }  # fmt: skip
    pairs = _same_answers(crowd)
    workers = {flag: {str(name) for name in names[rows]} for flag, rows in chosen.items()}
    return Named({**workers, "copiers": {name for pair in pairs for name in pair}}, pairs)


def _same_answers(crowd: Crowd) -> Pairs:
    """Two workers with ten common tasks or more and the same answer to nine in ten of them."""
    table = pd.DataFrame({"task": crowd.task, "worker": crowd.worker_codes, "label": crowd.label})
    meetings = table.merge(table, on="task")
    meetings = meetings[meetings["worker_x"] < meetings["worker_y"]]
    same = (
        (meetings["label_x"] == meetings["label_y"])
        .groupby([meetings["worker_x"], meetings["worker_y"]])
        .agg(["size", "mean"])
    )
    names = crowd.workers
    assert names is not None
    suspects = same[(same["size"] >= COMMON) & (same["mean"] >= SAME)]
    return {frozenset((str(names[first]), str(names[second]))) for first, second in suspects.index}


RULES: Mapping[str, Callable[[Dataset], Named]] = {
    "truth known": by_truth,
    "wisecrowd diagnose": by_votes,
    "agreement with the majority": by_agreement,
}


@dataclass(frozen=True)
class Search(Portable):
    """Names workers by a rule, and is scored by who was planted.

    >>> simulation = Planted({"n_tasks": 300, "workers": ["expert"] * 8 + ["spammer"], "votes_per_task": 5}).load(0)
    >>> Search("wisecrowd diagnose")(simulation, 0)["spammers recall"]
    1.0
    """

    rule: str

    is_random: ClassVar[bool] = False

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Recall and precision of each flag, and the counts behind them."""
        if "kind" not in dataset.meta:
            raise InputError(
                "workers are sought where it is known who was planted, in simulated crowds (bench.planted.Planted)"
            )
        with ignore_fit_warnings():
            named = RULES[self.rule](dataset)
        return scored(named, dataset.meta["kind"], dataset.meta["copies"])

    def identity(self) -> Any:
        """The rule and the code behind it."""
        return [self.rule, code_digest(__name__)]


def scored(named: Named, kind: Mapping[str, str], copies: Mapping[str, str]) -> dict[str, float]:
    """Recall and precision of each flag, and the counts behind them: found, planted, right and named.

    Whoever copies a spammer is one, too: naming them so is no error, and not naming them is none either. Copiers are counted
    by pairs, of a copier and whom they copy, or of two who copy the same.

    >>> named = Named({flag: {"a"} if flag == "spammers" else set() for flag in FLAGS}, set())
    >>> found = scored(named, {"a": "copier", "b": "spammer"}, {"a": "b"})
    >>> found["spammers recall"], found["spammers precision"]
    (0.0, 1.0)
    """
    counts: dict[str, tuple[float, float, float, float]] = {}
    acts = {worker: kind[copies.get(worker, worker)] for worker in kind}
    for flag, kinds in (
        ("spammers", {"spammer", "one-button"}),
        ("adversaries", {"adversary"}),
        ("drifters", {"drifter"}),
    ):
        planted = {worker for worker, name in kind.items() if name in kinds}
        guilty = {worker for worker, name in acts.items() if name in kinds} | planted
        flagged = named.workers[flag]
        counts[flag] = len(flagged & planted), len(planted), len(flagged & guilty), len(flagged)
    true = {frozenset((one, other)) for one in copies for other in kind if other != one and _shares(one, other, copies)}
    caught = {one for one in copies if any(one in pair for pair in named.pairs & true)}
    counts["copiers"] = len(caught), len(copies), len(named.pairs & true), len(named.pairs)
    figures: dict[str, float] = {}
    for flag, (n_found, planted_, right, n_flagged) in counts.items():
        figures[f"{flag} recall"] = n_found / planted_ if planted_ else float("nan")
        figures[f"{flag} precision"] = right / n_flagged if n_flagged else float("nan")
        figures |= dict(zip(_counted(flag), (n_found, planted_, right, n_flagged), strict=True))
    return figures


def _shares(one: str, other: str, copies: Mapping[str, str]) -> bool:
    return copies[one] in (other, copies.get(other))


def _counted(flag: str) -> tuple[str, str, str, str]:
    return f"{flag} found", f"{flag} planted", f"{flag} named rightly", f"{flag} named"


def findings(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Recall and precision over all crowds together, and where both are enough.

    >>> figures = dict(zip(_counted("spammers"), (9, 10, 9, 9)))
    >>> findings([{"entry": "truth known", "data": "4 classes, 30 votes", "figures": figures}])[1]
    'Recall and precision both .9 or more, over all seeds together: with *truth known*, spammers in 1 of 1 crowds.'
    """
    total: dict[tuple[str, str, str], NDArray[np.float64]] = {}
    for row in rows:
        for flag in FLAGS if row.get("figures") else ():
            if (names := _counted(flag))[0] in row["figures"]:
                key = row["entry"], flag, row["data"]
                total[key] = total.get(key, np.zeros(4)) + [row["figures"][name] for name in names]
    lines, reached = [], []
    for rule in (rule for rule in RULES if any(key[0] == rule for key in total)):
        good = []
        for flag in FLAGS:
            here = {data: total[rule, flag, data] for data in DATA if (rule, flag, data) in total}
            both = {data: (n[0] / max(n[1], 1), n[2] / max(n[3], 1)) for data, n in here.items()}
            if both:
                flagged = "; ".join(f"{data} {_short(r)}/{_short(p)}" for data, (r, p) in both.items())
                lines.append(f"*{rule}*, {flag}: {flagged}.")
                good.append(f"{flag} in {sum(min(pair) >= ENOUGH for pair in both.values())} of {len(both)}")
        reached.append(f"with *{rule}*, {', '.join(good)} crowds")
    if not lines:
        return ()
    return (
        "Over all seeds together, recall/precision: " + lines[0], *lines[1:],
        f"Recall and precision both .9 or more, over all seeds together: {'; '.join(reached)}.",
    )  # fmt: skip


def _short(value: float) -> str:
    return f"{value:.2f}".removeprefix("0")


def crowd(n_classes: int, votes: int) -> Planted:
    """The crowd with so many classes and about so many votes by each worker.

    >>> crowd(4, 30).settings["n_tasks"]
    468
    """
    n_tasks = sum(WORKERS.values()) * votes // PER_TASK
    return Planted({"n_tasks": n_tasks, "n_classes": n_classes, "workers": WORKERS, "votes_per_task": PER_TASK})


DATA = {f"{k} classes, {votes} votes": crowd(k, votes) for k in CLASSES for votes in VOTES}


def benchmark() -> Benchmark:
    """Rules that name workers x classes and votes by each worker.

    >>> "wisecrowd diagnose" in benchmark().entries
    True
    """
    return _of(DATA, seeds=10)


def quick() -> Benchmark:
    """The same with thirty votes by each worker and three seeds.

    >>> quick().seeds
    3
    """
    return _of({title: data for title, data in DATA.items() if data.settings["n_tasks"] <= 500}, seeds=3)


def _of(data: Mapping[str, Planted], seeds: int) -> Benchmark:
    mix = ", ".join(f"{number} {kind}" for kind, number in WORKERS.items())
    return Benchmark(
        title="Planted spammers, adversaries, copiers and drifters",
        entries={rule: Search(rule) for rule in RULES},
        data=data,
        notes={
            "truth known": "The same diagnosis, with every vote judged by the truth: what is lost here is lost because votes are "
            "few, or by how workers are told apart, and no better inference of the truth would bring it back.",
            "wisecrowd diagnose": "`WorkerDiagnosis` with its defaults. The weights of its priors were settled on other seeds of "
            "the same simulation; so was from where on, below chance, an adversary begins, but after a first "
            "look at these, and from which probability on a spammer is named (.3), after a second. "
            "Who copies somebody who presses one button cannot be told from another who presses it, and two adversaries of these "
            "crowds give the same wrong answers: they count as copiers that were missed, and as pairs that were named wrongly.",
            "agreement with the majority": "Thresholds that people use: agreement with the majority of the other votes at "
            f"most {NEAR_CHANCE:g} from chance makes a spammer and less than that an adversary; two who share {COMMON} tasks and "
            f"{SAME:.0%} of the answers are copiers; a change of {FALL:g} or more between the halves of the time is a drift.",
        },
        rows="data",
        seeds=seeds,
        findings=findings,
        remarks=(
            f"Crowds of {sum(WORKERS.values())} workers ({mix}), {PER_TASK} votes on each task, and about as many votes by each "
            "worker as the row says. *Recall* is the share of the planted workers who are flagged, *precision* the share of "
            "those flagged who were planted. One-button workers are spammers, whichever of the two flags they get. Who copies is "
            "counted by pairs, for votes do not tell who copied whom; a copier's source may be anybody, a spammer too, and whoever "
            "copies a spammer is not wrongly called one.",
            "Mean and standard deviation over seeds, each another crowd; a crowd in which nobody is flagged has no precision. With "
            "five planted of a kind, one more or less is .2 in a single crowd; what all crowds together give stands below.",
            "With two classes a coin is right half of the time and a noisy worker from .65 of it on: thirty votes measure an "
            "accuracy to ± .09, which does not tell them apart, not even by the truth. A hundred and twenty do, where the truth is "
            "known.",
        ),
        time_limit=120,
    )
