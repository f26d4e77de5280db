"""Detection of spammers, adversaries, copiers and drifters in simulated crowds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.registry import find
from wisecrowd.bench.benchmark import Benchmark
from wisecrowd.bench.code_digest import code_digest
from wisecrowd.bench.data import SimulatedDataset
from wisecrowd.bench.entries import Portable
from wisecrowd.data.crowd import Crowd
from wisecrowd.diagnose.workers import WorkerDiagnosis
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import InputError, ignore_fit_warnings
from wisecrowd.io.datasets import Dataset

CLASSES, VOTES = (2, 4, 8), (30, 60, 120)
PER_TASK = 5
#: Number of workers by kind in every crowd.
WORKERS = {
    "expert": 10,
    "noisy(0.65, 0.85)": 40,
    "spammer": 8,
    "one-button": 4,
    "adversary": 5,
    "copier(0.9)": 5,
    "drifter": 6,
}
#: Flags of `WorkerDiagnosis` by kind of worker.
FLAGS: Mapping[str, frozenset[str]] = {
    "spammers": frozenset({"spammer", "one-button"}),
    "adversaries": frozenset({"adversary"}),
    "copiers": frozenset({"copies"}),
    "drifters": frozenset({"drifts"}),
}
FIGURES = tuple(f"{flag} {what}" for flag in FLAGS for what in ("recall", "precision"))
#: Recall and precision that make a diagnosis reliable.
RELIABLE = 0.9

Pairs = set[frozenset[str]]


class FlaggedWorkers(NamedTuple):
    """Workers and pairs of workers that a rule flags.

    >>> FlaggedWorkers({"spammers": {"w1"}}, set()).workers["spammers"]
    {'w1'}
    """

    workers: Mapping[str, set[str]]
    """Workers by kind."""
    pairs: Pairs
    """Pairs of copying workers; votes do not reveal the direction."""


@dataclass(frozen=True)
class PlantedCrowd(SimulatedDataset):
    """Simulated crowd with the kinds of the workers and the sources of the copiers as metadata.

    >>> simulation = PlantedCrowd({"n_tasks": 60, "workers": ["noisy"] * 4 + ["copier(1)"]}).load(0)
    >>> simulation.meta["kind"]["w4"], list(simulation.meta["copies"])
    ('copier', ['w4'])
    """

    figures: tuple[str, ...] = FIGURES

    def load(self, seed: int) -> Dataset:
        """Simulate the crowd."""
        from wisecrowd.simulate import simulate_crowd

        simulation = simulate_crowd(**self.settings, random_state=seed)
        kind = {worker: name.partition("(")[0] for worker, name in simulation.kind.items()}
        meta = {"kind": kind, "copies": simulation.copies.to_dict()}
        return Dataset(name="planted", crowd=simulation.crowd, truth=simulation.truth, meta=meta)


def flag_by_diagnosis(crowd: Crowd, model: ConfusionEM | None = None) -> FlaggedWorkers:
    """Return the workers that `WorkerDiagnosis` flags.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    model : ConfusionEM, optional
        Fitted model; Dawid–Skene if not given.

    Returns
    -------
    FlaggedWorkers

    Examples
    --------
    >>> simulation = PlantedCrowd({"n_tasks": 300, "workers": ["expert"] * 8 + ["spammer"], "votes_per_task": 5}).load(0)
    >>> flag_by_diagnosis(simulation.crowd).workers["spammers"]
    {'w8'}
    """
    diagnosis = WorkerDiagnosis(crowd, model)
    flags_by_worker = {worker: set(flags.split(", ")) for worker, flags in diagnosis.table["flags"].items()}
    workers = {
        flag: {str(worker) for worker, names in flags_by_worker.items() if names & FLAGS[flag]} for flag in FLAGS
    }
    copying = diagnosis.copying.flagged
    return FlaggedWorkers(workers, {frozenset(pair) for pair in zip(copying["first"], copying["second"], strict=True)})


def by_votes(dataset: Dataset) -> FlaggedWorkers:
    """Flag workers by `WorkerDiagnosis` with its defaults.

    >>> by_votes(PlantedCrowd({"n_tasks": 90, "n_workers": 9, "workers": {"expert": 1.0}}).load(0)).pairs
    set()
    """
    return flag_by_diagnosis(dataset.crowd)


def by_truth(dataset: Dataset) -> FlaggedWorkers:
    """Flag workers by `WorkerDiagnosis` with the true class of every task.

    >>> by_truth(PlantedCrowd({"n_tasks": 90, "n_workers": 9, "workers": {"expert": 1.0}}).load(0)).pairs
    set()
    """
    kind: Any = find("dawid-skene")

    class Informed(kind):  # type: ignore[misc]  # the registry returns the class
        """Model that gets the truth in every fit, also in those to a part of the votes."""

        def fit(self, crowd: Any, X: Any = None, **options: Any) -> Any:
            return super().fit(crowd, X, **{**options, "truth": dataset.truth})

    return flag_by_diagnosis(dataset.crowd, Informed().fit(dataset.crowd))


#: Thresholds of the simple rules: maximum distance of a spammer's agreement from chance, share of equal labels of two copiers,
#: minimum number of their common tasks, and change of a drifter's agreement.
NEAR_CHANCE, SAME, COMMON, FALL = 0.1, 0.9, 10, 0.2


def by_agreement(dataset: Dataset) -> FlaggedWorkers:
    """Flag workers by thresholds on their agreement with the majority of the other votes.

    >>> simulation = PlantedCrowd({"n_tasks": 300, "workers": ["expert"] * 8 + ["spammer"], "votes_per_task": 5}).load(0)
    >>> by_agreement(simulation).workers["spammers"]
    {'w8'}
    """
    crowd, names = dataset.crowd, dataset.crowd.workers
    assert names is not None
    votes = np.arange(crowd.n_votes)
    other_counts = crowd.vote_counts[crowd.task].astype(np.float64)
    other_counts[votes, crowd.label] -= 1
    agrees = other_counts[votes, crowd.label] == other_counts.max(axis=1)  # with one of the classes that tie
    chance = 1 / crowd.n_classes

    def agreement_by_worker(rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        agreed, total = (
            np.bincount(crowd.worker_codes[rows], part, minlength=len(names)) for part in (agrees[rows], None)
        )
        return np.asarray(agreed / np.maximum(total, 1))

    agreement = agreement_by_worker(np.ones(crowd.n_votes, dtype=bool))
    late = crowd.time >= np.median(crowd.time) if crowd.has_times else np.zeros(crowd.n_votes, dtype=bool)
    drifts = (
        np.abs(agreement_by_worker(late) - agreement_by_worker(~late)) >= FALL
        if crowd.has_times
        else np.zeros(len(names), dtype=bool)
    )
    hostile = agreement < chance - NEAR_CHANCE
    chosen = {
        "spammers": (agreement < chance + NEAR_CHANCE) & ~hostile, "adversaries": hostile, "drifters": drifts,
    }  # fmt: skip
    pairs = _find_similar_pairs(crowd)
    workers = {flag: {str(name) for name in names[rows]} for flag, rows in chosen.items()}
    return FlaggedWorkers({**workers, "copiers": {name for pair in pairs for name in pair}}, pairs)


def _find_similar_pairs(crowd: Crowd) -> Pairs:
    """Return the pairs of workers with enough common tasks and equal labels."""
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


RULES: Mapping[str, Callable[[Dataset], FlaggedWorkers]] = {
    "truth known": by_truth,
    "wisecrowd diagnose": by_votes,
    "agreement with the majority": by_agreement,
}


@dataclass(frozen=True)
class WorkerSearch(Portable):
    """Entry that flags workers by a rule and scores the flags.

    >>> simulation = PlantedCrowd({"n_tasks": 300, "workers": ["expert"] * 8 + ["spammer"], "votes_per_task": 5}).load(0)
    >>> WorkerSearch("wisecrowd diagnose")(simulation, 0)["spammers recall"]
    1.0
    """

    rule: str

    is_random: ClassVar[bool] = False

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Return recall, precision and counts of every flag."""
        if "kind" not in dataset.meta:
            raise InputError(
                "the kinds of the workers are unknown; use a simulated crowd (bench.papers.planted.PlantedCrowd)"
            )
        with ignore_fit_warnings():
            named = RULES[self.rule](dataset)
        return scored(named, dataset.meta["kind"], dataset.meta["copies"])

    def identity(self) -> Any:
        """Return the rule and the digest of the code."""
        return [self.rule, code_digest(type(self))]


def scored(named: FlaggedWorkers, kind: Mapping[str, str], copies: Mapping[str, str]) -> dict[str, float]:
    """Return recall and precision of every flag, and the counts: found, planted, rightly flagged and flagged.

    A copier of a spammer may be flagged as a spammer or not; neither is an error. Copiers are counted by pairs: a copier and
    its source, or two copiers of the same source.

    Parameters
    ----------
    named : FlaggedWorkers
        Workers and pairs that were flagged.
    kind : mapping
        Simulated kind by worker.
    copies : mapping
        Source by copier.

    Returns
    -------
    dict

    Examples
    --------
    >>> named = FlaggedWorkers({flag: {"a"} if flag == "spammers" else set() for flag in FLAGS}, set())
    >>> figures = scored(named, {"a": "copier", "b": "spammer"}, {"a": "b"})
    >>> figures["spammers recall"], figures["spammers precision"]
    (0.0, 1.0)
    """
    counts: dict[str, tuple[float, float, float, float]] = {}
    effective_kind = {worker: kind[copies.get(worker, worker)] for worker in kind}
    for flag, kinds in (
        ("spammers", {"spammer", "one-button"}),
        ("adversaries", {"adversary"}),
        ("drifters", {"drifter"}),
    ):
        planted = {worker for worker, name in kind.items() if name in kinds}
        guilty = {worker for worker, name in effective_kind.items() if name in kinds} | planted
        flagged = named.workers[flag]
        counts[flag] = len(flagged & planted), len(planted), len(flagged & guilty), len(flagged)
    true = {
        frozenset((copier, other))
        for copier in copies
        for other in kind
        if other != copier and _shares(copier, other, copies)
    }
    caught = {copier for copier in copies if any(copier in pair for pair in named.pairs & true)}
    counts["copiers"] = len(caught), len(copies), len(named.pairs & true), len(named.pairs)
    figures: dict[str, float] = {}
    for flag, (n_found, planted_, right, n_flagged) in counts.items():
        figures[f"{flag} recall"] = n_found / planted_ if planted_ else float("nan")
        figures[f"{flag} precision"] = right / n_flagged if n_flagged else float("nan")
        figures |= dict(zip(_counted(flag), (n_found, planted_, right, n_flagged), strict=True))
    return figures


def _shares(copier: str, other: str, copies: Mapping[str, str]) -> bool:
    """Return whether a copier copies the other worker or the same source as that worker."""
    return copies[copier] in (other, copies.get(other))


def _counted(flag: str) -> tuple[str, str, str, str]:
    """Return the names of the counts of a flag."""
    return f"{flag} found", f"{flag} planted", f"{flag} named rightly", f"{flag} named"


def findings(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Describe recall and precision over all seeds, and the number of crowds in which both are reliable.

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
            counts = {data: total[rule, flag, data] for data in DATA if (rule, flag, data) in total}
            both = {data: (n[0] / max(n[1], 1), n[2] / max(n[3], 1)) for data, n in counts.items()}
            if both:
                flagged = "; ".join(f"{data} {_short(r)}/{_short(p)}" for data, (r, p) in both.items())
                lines.append(f"*{rule}*, {flag}: {flagged}.")
                good.append(f"{flag} in {sum(min(pair) >= RELIABLE for pair in both.values())} of {len(both)}")
        reached.append(f"with *{rule}*, {', '.join(good)} crowds")
    if not lines:
        return ()
    return (
        "Over all seeds together, recall/precision: " + lines[0], *lines[1:],
        f"Recall and precision both .9 or more, over all seeds together: {'; '.join(reached)}.",
    )  # fmt: skip


def _short(value: float) -> str:
    """Format a share with two decimals."""
    return f"{value:.2f}".removeprefix("0")


def crowd(n_classes: int, votes: int) -> PlantedCrowd:
    """Return the crowd with a number of classes and an average number of votes per worker.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    votes : int
        Average number of votes per worker.

    Returns
    -------
    PlantedCrowd

    Examples
    --------
    >>> crowd(4, 30).settings["n_tasks"]
    468
    """
    n_tasks = sum(WORKERS.values()) * votes // PER_TASK
    return PlantedCrowd({"n_tasks": n_tasks, "n_classes": n_classes, "workers": WORKERS, "votes_per_task": PER_TASK})


DATA = {f"{k} classes, {votes} votes": crowd(k, votes) for k in CLASSES for votes in VOTES}


def benchmark() -> Benchmark:
    """Return the benchmark of rules by number of classes and votes per worker.

    >>> "wisecrowd diagnose" in benchmark().entries
    True
    """
    return _make_benchmark(DATA, seeds=10)


def quick() -> Benchmark:
    """Return the benchmark with 30 votes per worker and three seeds.

    >>> quick().seeds
    3
    """
    return _make_benchmark({title: data for title, data in DATA.items() if data.settings["n_tasks"] <= 500}, seeds=3)


def _make_benchmark(data: Mapping[str, PlantedCrowd], seeds: int) -> Benchmark:
    mix = ", ".join(f"{number} {kind}" for kind, number in WORKERS.items())
    return Benchmark(
        title="Planted spammers, adversaries, copiers and drifters",
        entries={rule: WorkerSearch(rule) for rule in RULES},
        data=data,
        notes={
            "truth known": "The same diagnosis with the true class of every task. Its errors come from few votes, or from the "
            "rules of the diagnosis; a better inference of the truth would not remove them.",
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
            "counted by pairs, because votes do not reveal the direction. The source of a copier may be any worker, also a "
            "spammer; flagging a copier of a spammer as a spammer is no error.",
            "Mean and standard deviation over seeds, each another crowd; a crowd in which nobody is flagged has no precision. With "
            "five planted of a kind, one more or less is .2 in a single crowd; what all crowds together give stands below.",
            "With two classes a coin is right half of the time and a noisy worker from .65 of it on: thirty votes measure an "
            "accuracy to ± .09, which does not tell them apart, not even by the truth. A hundred and twenty do, where the truth is "
            "known.",
        ),
        time_limit=120,
    )
