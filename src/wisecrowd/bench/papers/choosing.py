"""Which method to believe without gold: what a rule chooses, and how far that is from the best candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.registry import find
from wisecrowd.bench.benchmark import Benchmark, Entry
from wisecrowd.bench.data import Stored
from wisecrowd.bench.entries import Portable, code_digest
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import InputError, UsageError, ignore_fit_warnings
from wisecrowd.evaluate import metrics
from wisecrowd.evaluate.model_selection import CANDIDATES, choose_method
from wisecrowd.io.datasets import Dataset

#: Figures: accuracy, and how much less it is than that of the best candidate. Kept beside them: whether it is within a point
#: (for a rule that draws lots, how often), and which candidate was taken, by its place among them.
ACCURACY, BEHIND, WITHIN, TAKEN = "accuracy", "behind", "within a point", "taken"
#: One point of accuracy, and what sums of fractions may differ by.
POINT, SLACK = 0.01, 1e-9

BY_VOTES, BY_GOLD, BY_LOT = "choose", "best with gold", "any, by lot"


@dataclass(frozen=True)
class Rule(Portable):
    """A way to take one of the candidates: ``choose``, ``best with gold``, ``any, by lot``, or a method's name.

    >>> from wisecrowd.bench.data import Simulated
    >>> Rule("best with gold")(Simulated({"n_tasks": 60, "n_workers": 8}).load(0), 0)["behind"]
    0.0
    """

    name: str

    is_random: ClassVar[bool] = False

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Take a candidate, and compare its accuracy with that of the best."""
        if dataset.truth is None:
            raise InputError("candidates are scored by truth, and this dataset has none")
        right = {name: metrics.accuracy(dataset.truth, method) for name, method in candidates(dataset.crowd).items()}
        best = max(right.values())
        if self.name == BY_LOT:
            gaps = best - np.array(list(right.values()))
            return {
                ACCURACY: float(best - gaps.mean()), BEHIND: float(gaps.mean()), WITHIN: float((gaps <= POINT + SLACK).mean()),
            }  # fmt: skip
        chosen = self._choose(dataset.crowd, right)
        gap = best - right[chosen]
        place = float(CANDIDATES.index(chosen))
        return {ACCURACY: right[chosen], BEHIND: gap, WITHIN: float(gap <= POINT + SLACK), TAKEN: place}

    def _choose(self, crowd: Crowd, right: Mapping[str, float]) -> str:
        if self.name == BY_VOTES:
            return choose_method(crowd).name
        if self.name == BY_GOLD:
            return max(right, key=right.__getitem__)
        if self.name not in right:
            raise UsageError(f"{self.name} is none of the candidates: {', '.join(right)}")
        return self.name

    def identity(self) -> Any:
        """The rule, and the code behind it and the candidates."""
        methods = [find(name).__module__ for name in CANDIDATES]
        return [self.name, code_digest(__name__, *methods)]


@lru_cache(maxsize=1)  # rules on the same crowd follow each other
def candidates(crowd: Crowd) -> dict[str, Aggregator]:
    """All candidates, fitted.

    >>> crowd = Crowd.from_triples([(task, worker, task % 2) for task in range(9) for worker in "abc"])
    >>> tuple(candidates(crowd)) == CANDIDATES
    True
    """
    fitted: dict[str, Aggregator] = {}
    with ignore_fit_warnings():
        for name in CANDIDATES:
            method: Any = find(name)
            fitted[name] = method().fit(crowd)
    return fitted


def findings(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """How often each rule is within a point of the best, how far behind on average, and what `choose` took.

    >>> figures = {"accuracy": 0.9, "behind": 0.02, "within a point": 0.0, "chosen": 0.0}
    >>> findings([{"entry": "choose", "data": "rte", "figures": figures}])[0]
    'Within one point of the best candidate: choose on 0 of 1 crowds (0 %), .020 behind on average and .020 at worst.'
    """
    by_rule: dict[str, dict[str, Mapping[str, float]]] = {}
    for row in rows:
        if row.get("figures"):
            by_rule.setdefault(row["entry"], {})[row["data"]] = row["figures"]
    paragraphs = []
    for rule in (title for title in ENTRIES if title in by_rule and title != BY_GOLD):
        gaps = list(by_rule[rule].values())
        within, behind = [one[WITHIN] for one in gaps], [one[BEHIND] for one in gaps]
        paragraphs.append(
            f"{rule} on {sum(within):.3g} of {len(within)} crowds ({np.mean(within):.0%}".replace("%", " %)")
            + f", {_short(float(np.mean(behind)))} behind on average and {_short(max(behind))} at worst"
        )
    if not paragraphs:
        return ()
    return f"Within one point of the best candidate: {'; '.join(paragraphs)}.", *_choices(by_rule.get(BY_VOTES, {}))


def _choices(chosen: Mapping[str, Mapping[str, float]]) -> tuple[str, ...]:
    by_method: dict[str, list[str]] = {}
    for data in sorted(chosen):
        by_method.setdefault(CANDIDATES[int(chosen[data][TAKEN])], []).append(data)
    order = sorted(by_method, key=lambda name: -len(by_method[name]))
    parts = [f"{name} for {', '.join(by_method[name])}" for name in order]
    missed = [data for data in sorted(chosen) if not chosen[data][WITHIN]]
    if not parts:
        return ()
    return (
        f"What `choose` took: {'; '.join(parts)}. "
        + (f"More than a point behind on {', '.join(missed)}." if missed else "Never more than a point behind."),
    )


def _short(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


#: Crowds with classes, worker ids and gold, of at most 250,000 votes; one vote on every task (CIFAR-100N) leaves nothing to
#: foretell a hidden one from.
DATASETS = (
    "adult_content2",
    "bluebirds",
    "cifar10n",
    "crowdtruth_relations_13",
    "d_possent",
    "dog",
    "face_sentiment",
    "fact_eval",
    "income",
    "labelme",
    "leaves",
    "music_genre",
    "product_matching",
    "rte",
    "sentiment_polarity",
    "trec2010_rf",
    "trec2011",
    "weather_amt",
    "weather_cf",
    "web_search",
    "wsd",
    "zencrowd_all",
    "zencrowd_in",
)

ENTRIES: Mapping[str, Entry] = {
    BY_GOLD: Rule(BY_GOLD),
    BY_VOTES: Rule(BY_VOTES),
    "always ibcc": Rule("ibcc"),
    "always dawid-skene": Rule("dawid-skene"),
    "always glad": Rule("glad"),
    "always majority-vote": Rule("majority-vote"),
    BY_LOT: Rule(BY_LOT),
}


def benchmark() -> Benchmark:
    """Rules for choosing a method x crowds with gold.

    >>> "choose" in benchmark().entries
    True
    """
    return _of(DATASETS)


def quick() -> Benchmark:
    """The same on five small crowds.

    >>> len(quick().data)
    5
    """
    return _of(("bluebirds", "labelme", "rte", "weather_cf", "wsd"))


def _of(names: Sequence[str]) -> Benchmark:
    return Benchmark(
        title="Which method to believe without gold",
        entries=ENTRIES,
        data={name: Stored(name, "distinct", figures=(ACCURACY, BEHIND)) for name in names},
        notes={
            BY_GOLD: "The most accurate of the candidates on this crowd, which only gold can tell: what a rule could reach at "
            "best. Its time is that of fitting all candidates once.",
            BY_VOTES: "`wisecrowd.choose`: the first, in the order of the candidates, of the methods that cannot be told from "
            "the one that foretells hidden votes best. It never sees gold, but that order was settled by how often each method "
            "was right on 24 public crowds, most of these among them.",
            BY_LOT: "The mean over all candidates.",
            "cifar10n": "The worker ids of this release do not tell workers apart, so models of workers have nothing to learn.",
        },
        rows="data",
        findings=findings,
        remarks=(
            f"The candidates are {', '.join(CANDIDATES)}, each with its defaults. *Accuracy* is that of the candidate that a rule "
            "takes, with ties split and exact repeats of a vote dropped; *behind* is how much less it is than that of the best "
            "candidate. All votes are used. The best is the best of nine on finite gold, so that it is partly lucky: where gold "
            "is a few hundred tasks, two methods that are equally good differ by a point.",
            "To come close is one thing, to be worth the trouble another: on these crowds `choose` is within a point of the best "
            "as often as whoever always takes iBCC or Dawid–Skene, and not nearer to it on average. What it spares is the harm "
            "of a bad habit: majority vote and GLAD are far behind much more often. Where `choose` itself is far behind, a method "
            "that foretells votes better is less accurate, probably because workers who err alike can be foretold without the "
            "truth.",
        ),
        time_limit=900,
    )
