"""Rules that choose a method without gold, compared with the best candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.registry import find
from wisecrowd.bench.benchmark import Benchmark, Entry
from wisecrowd.bench.code_digest import code_digest
from wisecrowd.bench.data import StoredDataset
from wisecrowd.bench.entries import Portable
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import InputError, UsageError, ignore_fit_warnings
from wisecrowd.evaluate import metrics
from wisecrowd.evaluate.model_selection import CANDIDATES, compare_methods
from wisecrowd.io.datasets import Dataset

#: Figures: accuracy, and its difference from the best candidate. Also stored: whether it is within a point of the best (for the
#: random rule, how often), and the position of the chosen candidate.
ACCURACY, BEHIND, WITHIN, CHOICE = "accuracy", "behind", "within a point", "taken"
#: One point of accuracy, and a tolerance for rounding errors.
POINT, SLACK = 0.01, 1e-9

BY_VOTES, BY_GOLD, BY_LOT = "held-out votes", "best with gold", "any, by lot"


@dataclass(frozen=True)
class Rule(Portable):
    """Entry that chooses a candidate by a rule: ``held-out votes``, ``best with gold``, ``any, by lot``, or a method's name.

    >>> from wisecrowd.bench.data import SimulatedDataset
    >>> Rule("best with gold")(SimulatedDataset({"n_tasks": 60, "n_workers": 8}).load(0), 0)["behind"]
    0.0
    """

    name: str

    is_random: ClassVar[bool] = False

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Choose a candidate and compare its accuracy with that of the best."""
        if dataset.truth is None:
            raise InputError("the dataset has no truth; this entry needs it for scoring")
        right = {
            name: metrics.accuracy(dataset.truth, method) for name, method in fit_candidates(dataset.crowd).items()
        }
        best = max(right.values())
        if self.name == BY_LOT:
            gaps = best - np.array(list(right.values()))
            return {
                ACCURACY: float(best - gaps.mean()), BEHIND: float(gaps.mean()), WITHIN: float((gaps <= POINT + SLACK).mean()),
            }  # fmt: skip
        chosen = self._choose(dataset.crowd, right)
        gap = best - right[chosen]
        position = float(CANDIDATES.index(chosen))
        return {ACCURACY: right[chosen], BEHIND: gap, WITHIN: float(gap <= POINT + SLACK), CHOICE: position}

    def _choose(self, crowd: Crowd, right: Mapping[str, float]) -> str:
        if self.name == BY_VOTES:
            return compare_methods(crowd).tied_methods[0]
        if self.name == BY_GOLD:
            return max(right, key=right.__getitem__)
        if self.name not in right:
            raise UsageError(f"{self.name} is not a candidate; the candidates are {', '.join(right)}")
        return self.name

    def identity(self) -> Any:
        """Return the rule and the digest of its code and of the candidates."""
        methods = [find(name) for name in CANDIDATES]
        return [self.name, code_digest(type(self), *methods)]


@lru_cache(maxsize=1)  # consecutive cells have the same crowd
def fit_candidates(crowd: Crowd) -> dict[str, Aggregator]:
    """Fit all candidates.

    >>> crowd = Crowd.from_triples([(task, worker, task % 2) for task in range(9) for worker in "abc"])
    >>> tuple(fit_candidates(crowd)) == CANDIDATES
    True
    """
    fitted: dict[str, Aggregator] = {}
    with ignore_fit_warnings():
        for name in CANDIDATES:
            method: Any = find(name)
            fitted[name] = method().fit(crowd)
    return fitted


def findings(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Describe the gaps between every rule and the best candidate, and the choices by held-out votes.

    >>> figures = {"accuracy": 0.9, "behind": 0.02, "within a point": 0.0, "taken": 0.0}
    >>> findings([{"entry": "held-out votes", "data": "rte", "figures": figures}])[0]
    'Within one point of the best candidate: held-out votes on 0 of 1 crowds (0 %), .020 behind on average and .020 at worst.'
    """
    by_rule: dict[str, dict[str, Mapping[str, float]]] = {}
    for row in rows:
        if row.get("figures"):
            by_rule.setdefault(row["entry"], {})[row["data"]] = row["figures"]
    paragraphs = []
    for rule in (title for title in ENTRIES if title in by_rule and title != BY_GOLD):
        gaps = list(by_rule[rule].values())
        within, behind = [figures[WITHIN] for figures in gaps], [figures[BEHIND] for figures in gaps]
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
        by_method.setdefault(CANDIDATES[int(chosen[data][CHOICE])], []).append(data)
    order = sorted(by_method, key=lambda name: -len(by_method[name]))
    parts = [f"{name} for {', '.join(by_method[name])}" for name in order]
    missed = [data for data in sorted(chosen) if not chosen[data][WITHIN]]
    if not parts:
        return ()
    return (
        f"Chosen by held-out votes: {'; '.join(parts)}. "
        + (f"More than a point behind on {', '.join(missed)}." if missed else "Never more than a point behind."),
    )


def _short(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


#: Crowds with classes, worker ids and gold, of at most 250,000 votes. CIFAR-100N has one vote per task, so that hidden votes
#: cannot be predicted from others.
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
    "always model-average": Rule("model-average"),
    "always ibcc": Rule("ibcc"),
    "always dawid-skene": Rule("dawid-skene"),
    "always glad": Rule("glad"),
    "always majority-vote": Rule("majority-vote"),
    BY_LOT: Rule(BY_LOT),
}


def benchmark() -> Benchmark:
    """Return the benchmark of rules on crowds with gold.

    >>> "held-out votes" in benchmark().entries
    True
    """
    return _make_benchmark(DATASETS)


def quick() -> Benchmark:
    """Return the benchmark on five small crowds.

    >>> len(quick().data)
    5
    """
    return _make_benchmark(("bluebirds", "labelme", "rte", "weather_cf", "wsd"))


def _make_benchmark(names: Sequence[str]) -> Benchmark:
    return Benchmark(
        title="Which method to believe without gold",
        entries=ENTRIES,
        data={name: StoredDataset(name, "distinct", figures=(ACCURACY, BEHIND)) for name in names},
        notes={
            BY_GOLD: "The most accurate candidate on this crowd by gold: the best that any rule could reach. Its "
            "time is that of fitting all candidates once.",
            BY_VOTES: "The first, in the order of the candidates, of the methods that are statistically tied with the one that "
            "predicts hidden votes best. It does not use gold, but the order was chosen by the accuracy of the methods on 24 "
            "public crowds, most of them in this table.",
            "always model-average": "The default of wisecrowd, which `choose` and `compare` recommend.",
            BY_LOT: "The mean over all candidates, as if one were drawn at random.",
            "cifar10n": "The worker ids of this release do not tell workers apart, so models of workers have nothing to learn.",
        },
        rows="data",
        findings=findings,
        remarks=(
            f"The candidates are {', '.join(CANDIDATES)}, each with its defaults. *Accuracy* is that of the candidate that a rule "
            "takes, with ties split and exact repeats of a vote dropped; *behind* is how much less it is than that of the best "
            "candidate. All votes are used. The best is the best of ten on finite gold, so that it is partly lucky: where gold "
            "is a few hundred tasks, two methods that are equally good differ by a point.",
            "No rule is within a point of the best more often than always using model-average, so that is what `choose` and "
            "`compare` recommend. Where the rule by held-out votes is far behind, a method that predicts votes better is less "
            "accurate, probably because workers with common errors can be predicted without the truth.",
        ),
        time_limit=900,
    )
