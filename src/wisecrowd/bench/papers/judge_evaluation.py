"""Coverage and width of intervals from judges and few labels of people, on real judges and in simulations."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.bench.benchmark import Benchmark, Entry
from wisecrowd.bench.code_digest import code_digest
from wisecrowd.bench.entries import Portable
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import DataWarning, InputError
from wisecrowd.evaluate.evaluation_items import EvaluationItems
from wisecrowd.evaluate.judged_systems import difference, rank, rate
from wisecrowd.evaluate.label_plan import plan_labels
from wisecrowd.evaluate.prediction_powered import Interval
from wisecrowd.io.datasets import Dataset
from wisecrowd.simulate.evaluations import simulate_arena, simulate_evaluation

Array = NDArray[np.float64]

#: Figures: share of 95 % intervals that contain the truth, and their mean width.
COVERAGE, WIDTH = "coverage", "width"
#: Stored figure: root mean square error of the estimate.
ERROR = "error"
#: Number of draws of a row with real judges and real labels, of the other rows, and of all rows in the quick version.
DRAWS, FEWER_DRAWS, QUICK_DRAWS = 1000, 200, 50
#: Folder of the real judges, below the folder that the variable names.
VARIABLE, JUDGES = "WISECROWD_ANSWER_TYPES", "civilcomments_judges"
PEOPLE, BOTH = "people only", "people and judges"

#: Estimate of one draw: by entry, interval and truth of every target of the draw.
Draw = Mapping[str, Sequence[tuple[float, ...]]]


@dataclass(frozen=True)
class Study:
    """Data source: a design that is drawn again and again, with known truth.

    >>> Study("rate", {"n_labelled": 20}, n_draws=2).load(0).meta["kind"]
    'rate'
    """

    kind: str
    """Function of this module, see `STUDIES`."""
    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    n_draws: int = DRAWS
    needs_data: bool = False
    figures: tuple[str, ...] = (WIDTH, COVERAGE)

    is_random: ClassVar[bool] = False

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"settings": dict(self.settings)}

    def load(self, seed: int) -> Dataset:
        """Return the settings as a dataset; entries draw from them.

        Parameters
        ----------
        seed : int
            Ignored: every draw has a seed of its own.

        Returns
        -------
        Dataset
        """
        meta = {"kind": self.kind, "settings": dict(self.settings), "n_draws": self.n_draws}
        return Dataset(name=self.kind, crowd=Crowd.from_triples([("t", "judge", "score")]), meta=meta)

    def score(self, dataset: Dataset, prediction: Any) -> dict[str, float]:
        """Return the figures, which entries compute themselves.

        Parameters
        ----------
        dataset : Dataset
            Dataset that `load` returned.
        prediction : object
            Figures.

        Returns
        -------
        dict of str to float
        """
        return dict(prediction)

    def absence(self) -> str | None:
        """Return a message if the real judges are not on this machine."""
        if not self.needs_data or _find_folder() is not None:
            return None
        return _describe_absence()

    def identity(self) -> Any:
        """Return kind, settings and number of draws."""
        return [self.kind, dict(self.settings), self.n_draws]

    def size(self) -> int:
        """Return the number of draws."""
        return self.n_draws


@dataclass(frozen=True)
class Estimator(Portable):
    """Entry that reports the intervals of one way of estimation, by its title.

    >>> round(Estimator(PEOPLE)(Study("rate", {"n_tasks": 100, "n_labelled": 30}, n_draws=3).load(0), 0)["coverage"] * 3) <= 3
    True
    """

    title: str

    is_random: ClassVar[bool] = False

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Return coverage, width and error over all draws."""
        if "kind" not in dataset.meta:
            raise InputError("the dataset is not a study of evaluations; use bench.papers.judge_evaluation.Study")
        kind, settings = dataset.meta["kind"], dataset.meta["settings"]
        if self.title == PEOPLE and kind.endswith("ranks"):
            raise InputError("intervals of ranks are those of people and judges")
        draws = [_draw(kind, tuple(settings.items()), number)[self.title] for number in range(dataset.meta["n_draws"])]
        rows = np.array([row for draw in draws for row in draw])
        low, estimate, high, truth = rows.T
        covered = (low <= truth) & (truth <= high)
        return {
            WIDTH: float((high - low).mean()), COVERAGE: float(covered.mean()),
            ERROR: float(np.sqrt(((estimate - truth) ** 2).mean())),
        }  # fmt: skip

    def identity(self) -> Any:
        """Return the title and the digest of the code."""
        return [self.title, code_digest(type(self))]


@lru_cache(maxsize=2 * DRAWS)
def _draw(kind: str, settings: tuple[tuple[str, Any], ...], number: int) -> Draw:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return STUDIES[kind](number, **dict(settings))


def _row(interval: Interval, truth: float) -> tuple[float, ...]:
    return interval.low, interval.estimate, interval.high, truth


def draw_real(number: int, n_labelled: int) -> Draw:
    """Draw comments with replacement from the real judges, and label the first of them."""
    scores, label = _load_judges()
    rows = np.random.default_rng([number, n_labelled]).integers(0, len(label), len(label))
    items = EvaluationItems.from_arrays(scores[rows], np.where(np.arange(len(rows)) < n_labelled, label[rows], np.nan))
    estimate = rate(items, random_state=number)
    truth = float(label.mean())
    return {PEOPLE: [_row(estimate.people_only, truth)], BOTH: [_row(estimate.corrected, truth)]}


def draw_real_raters(number: int, n_labelled: int, n_raters: int) -> Draw:
    """Label comments of the real judges by two of several raters with severity and errors."""
    scores, label = _load_judges()
    rng = np.random.default_rng([number, n_labelled, n_raters])
    rows = rng.integers(0, len(label), len(label))
    # A rater's probability of saying toxic, for comments that are not and that are; the target is the mean over all raters.
    severity = rng.normal(0, 0.12, n_raters)
    people = rng.permuted(np.tile(np.arange(n_raters), (n_labelled, 1)), axis=1)[:, :2]
    probability = np.clip(np.where(label[rows[:n_labelled]] > 0, 0.8, 0.2)[:, None] + severity[people], 0.02, 0.98)
    rating = (rng.random(people.shape) < probability).astype(float)
    mean = np.full(len(rows), np.nan)
    mean[:n_labelled] = rating.mean(axis=1)
    items = replace(
        EvaluationItems.from_arrays(scores[rows], mean), rating_item=np.repeat(np.arange(n_labelled), 2),
        rating_rater=people.ravel(), rating=rating.ravel(), raters=pd.RangeIndex(n_raters, name="rater"),
    )  # fmt: skip
    estimate = rate(items, random_state=number)
    truth = float(0.2 + 0.6 * label.mean())
    return {PEOPLE: [_row(estimate.people_only, truth)], BOTH: [_row(estimate.corrected, truth)]}


def draw_real_design(number: int, n_labelled: int, design: str) -> Draw:
    """Label half of the comments at random and the other half by a plan; people only stands for a random sample with judges."""
    scores, label = _load_judges()
    rng = np.random.default_rng([number, n_labelled])
    rows = rng.integers(0, len(label), len(label))
    return _compare_designs(scores[rows], label[rows], n_labelled, design, number, float(label.mean()))


def draw_sharp_design(number: int, n_labelled: int, design: str) -> Draw:
    """Do the same with simulated judges who are sure of most items."""
    rng = np.random.default_rng([number, n_labelled])
    p = rng.choice([0.02, 0.5, 0.98], 1000, p=[0.45, 0.2, 0.35])
    label = (rng.random(1000) < p).astype(float)
    truth = 0.45 * 0.02 + 0.2 * 0.5 + 0.35 * 0.98
    return _compare_designs(p[:, None], label, n_labelled, design, number, truth)


def _compare_designs(scores: Array, label: Array, n_labelled: int, design: str, number: int, truth: float) -> Draw:
    n, half = len(label), n_labelled // 2
    pilot = EvaluationItems.from_arrays(scores, np.where(np.arange(n) < half, label, np.nan))
    plan = plan_labels(pilot, size=n_labelled - half, design=design, random_state=number)  # type: ignore[arg-type]
    is_labelled = plan.items["labelled"].to_numpy() | plan.items["chosen"].to_numpy()
    inclusion = plan.items["inclusion"].to_numpy() if design == "active" else None
    items = EvaluationItems.from_arrays(scores, np.where(is_labelled, label, np.nan), inclusion=inclusion)
    estimate = rate(items, random_state=number)
    return {PEOPLE: [_row(estimate.people_only, truth)], BOTH: [_row(estimate.corrected, truth)]}


def draw_rate(number: int, **settings: Any) -> Draw:
    """Simulate a system, and estimate its rate."""
    simulation = simulate_evaluation(random_state=number, **settings)
    estimate = rate(simulation.scores, simulation.labels, random_state=number)
    truth = float(simulation.rates.iloc[0])
    return {PEOPLE: [_row(estimate.people_only, truth)], BOTH: [_row(estimate.corrected, truth)]}


def draw_difference(number: int, **settings: Any) -> Draw:
    """Simulate two systems, and estimate their difference."""
    simulation = simulate_evaluation(random_state=number, **settings)
    estimate = difference(simulation.scores, simulation.labels, random_state=number)
    truth = float(simulation.rates.iloc[0] - simulation.rates.iloc[1])
    return {PEOPLE: [_row(estimate.people_only, truth)], BOTH: [_row(estimate.corrected, truth)]}


def draw_ranks(number: int, **settings: Any) -> Draw:
    """Simulate systems, and check that all ranks lie in their intervals; the width is the mean number of ranks."""
    simulation = simulate_evaluation(random_state=number, **settings)
    return _check_ranks(rank(simulation.scores, simulation.labels, random_state=number).table, simulation.rates)


def draw_arena_ranks(number: int, **settings: Any) -> Draw:
    """Simulate an arena, and check all ranks."""
    arena = simulate_arena(random_state=number, **settings)
    return _check_ranks(rank(arena.judges, arena.people, random_state=number).table, arena.scores)


def draw_arena(number: int, **settings: Any) -> Draw:
    """Simulate an arena, and estimate the scores of all systems."""
    arena = simulate_arena(random_state=number, **settings)
    table = rank(arena.judges, arena.people, random_state=number).table
    truth = arena.scores.reindex(table.index).to_numpy()
    both, people = (
        [
            tuple(row)
            for row in table[[f"{prefix}{name}" for name in ("low", "estimate", "high")]].assign(truth=truth).to_numpy()
        ]
        for prefix in ("", "people_")
    )
    return {PEOPLE: people, BOTH: both}


def _check_ranks(table: pd.DataFrame, truth: pd.Series[Any]) -> Draw:
    ranks = truth.rank(ascending=False).reindex(table.index)
    is_covered = ((table["rank_low"] <= ranks) & (ranks <= table["rank_high"])).all()
    mean = float((table["rank_high"] - table["rank_low"] + 1).mean())
    row = (0.0, 0.0, mean, 0.0 if is_covered else mean + 1)
    return {BOTH: [row]}


STUDIES: Mapping[str, Callable[..., Draw]] = {
    "real": draw_real,
    "real raters": draw_real_raters,
    "real design": draw_real_design,
    "sharp design": draw_sharp_design,
    "rate": draw_rate,
    "difference": draw_difference,
    "ranks": draw_ranks,
    "arena": draw_arena,
    "arena ranks": draw_arena_ranks,
}


def _find_folder() -> Path | None:
    value = os.environ.get(VARIABLE)
    folders = [Path(part) / JUDGES for part in (value or "").split(os.pathsep) if part]
    return next((folder for folder in folders if folder.is_dir()), None)


def _describe_absence() -> str:
    """Return a message about the missing folder of scores, which depends on whether the variable is set."""
    value = os.environ.get(VARIABLE)
    content = f"the folder {JUDGES} (scores.parquet and truth.parquet)"
    if not value:
        return f"{content} was not found, because the variable {VARIABLE} is not set; set it to the folder that contains {JUDGES}"
    return f"{content} is not in {value}, the value of the variable {VARIABLE}; put it there, or correct the variable"


@lru_cache(maxsize=1)
def _load_judges() -> tuple[Array, Array]:
    """Return scores by comment and judge, and whether each comment is toxic."""
    folder = _find_folder()
    if folder is None:
        raise InputError(_describe_absence())
    scores = pd.read_parquet(folder / "scores.parquet").pivot(index="task", columns="worker", values="score")
    truth = pd.read_parquet(folder / "truth.parquet").set_index("task")["label"].reindex(scores.index)
    return scores.to_numpy(dtype=np.float64), truth.to_numpy(dtype=np.float64)


def findings(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Describe the range of coverage, and what judges and designs are worth.

    >>> figures = {"width": 0.16, "coverage": 0.95}
    >>> findings([{"entry": BOTH, "data": "a", "figures": figures}])[0].split(";")[0]
    'Coverage of people and judges: 95.0 to 95.0 % over 1 rows'
    """
    stored = {(row["entry"], row["data"]): row["figures"] for row in rows if row.get("figures")}
    titles = [data for entry, data in stored if entry == BOTH]
    if not titles:
        return ()
    coverage = [100 * stored[BOTH, title][COVERAGE] for title in titles if "ranks" not in title]
    paragraphs = [
        f"Coverage of people and judges: {min(coverage):.1f} to {max(coverage):.1f} % over {len(coverage)} rows; the "
        "standard error is 0.7 points with 1,000 draws and 1.5 with 200."
    ]
    for name in (CIVIL, SHARP):
        active, random = (
            f"{name}, {DESIGN_LABELS} labels, {design}" for design in ("half active", "half and half random")
        )
        if (BOTH, active) in stored and (BOTH, random) in stored:
            ratio = stored[BOTH, active][WIDTH] / stored[BOTH, random][WIDTH]
            paragraphs.append(
                f"{name}: intervals of the active design are {100 * (1 - ratio):.1f} % narrower than those of the random design."
            )
    return tuple(paragraphs)


CIVIL, SHARP = "Civil Comments, 24 judges", "sharp judges"
DESIGN_LABELS = 200


def _data(n_draws: int) -> dict[str, Study]:
    raters = {"raters_per_item": 2, "severity_spread": 0.5, "n_raters": 20}
    arena = {"scores": (0.8, 0.4, 0.0, -0.4, -0.8), "n_labelled": 200}
    systems = {"rates": (0.7, 0.65, 0.6, 0.5, 0.4), "n_labelled": 80}
    real: dict[str, tuple[str, dict[str, Any]]] = {
        **{f"{CIVIL}, {n} labels": ("real", {"n_labelled": n}) for n in (50, 100, 200)},
        f"{CIVIL}, 100 items by two of 20 raters": ("real raters", {"n_labelled": 100, "n_raters": 20}),
        f"{CIVIL}, {DESIGN_LABELS} labels, half and half random": (
            "real design", {"n_labelled": DESIGN_LABELS, "design": "random"}),
        f"{CIVIL}, {DESIGN_LABELS} labels, half active": ("real design", {"n_labelled": DESIGN_LABELS, "design": "active"}),
    }  # fmt: skip
    simulated: dict[str, tuple[str, dict[str, Any]]] = {
        f"{SHARP}, {DESIGN_LABELS} labels, half and half random": (
            "sharp design", {"n_labelled": DESIGN_LABELS, "design": "random"}),
        f"{SHARP}, {DESIGN_LABELS} labels, half active": ("sharp design", {"n_labelled": DESIGN_LABELS, "design": "active"}),
        "rate .5, 30 labels": ("rate", {"n_labelled": 30}),
        "rate .05, 100 labels": ("rate", {"n_labelled": 100, "rates": (0.05,)}),
        "useless judges, 100 labels": ("rate", {"judge_noise": 50.0, "shared_noise": 50.0}),
        "two of 20 raters, 100 items": ("rate", raters),
        "difference, 100 tasks": ("difference", {"rates": (0.6, 0.5), "task_spread": 1.0}),
        "difference, two of 20 raters": ("difference", {"rates": (0.6, 0.5), "task_spread": 1.0, **raters}),
        "arena, scores": ("arena", arena),
        "arena, all ranks": ("arena ranks", arena),
        "five systems, all ranks": ("ranks", systems),
    }  # fmt: skip
    return {
        title: Study(kind, settings, n_draws if kind == "real" else min(n_draws, FEWER_DRAWS), needs_data=title in real)
        for title, (kind, settings) in (real | simulated).items()
    }


ENTRIES: Mapping[str, Entry] = {PEOPLE: Estimator(PEOPLE), BOTH: Estimator(BOTH)}


def benchmark() -> Benchmark:
    """Return the benchmark with 1,000 draws of rows with real judges and labels, and 200 of the others.

    >>> list(benchmark().entries)
    ['people only', 'people and judges']
    """
    return _make_benchmark(DRAWS)


def quick() -> Benchmark:
    """Return the benchmark with 50 draws.

    >>> quick().data["arena, scores"].n_draws
    50
    """
    return _make_benchmark(QUICK_DRAWS)


def _make_benchmark(n_draws: int) -> Benchmark:
    return Benchmark(
        title="Evaluation with judges and few labels: are 95 % intervals true?",
        entries=ENTRIES,
        data=_data(n_draws),
        notes={
            PEOPLE: "Labels of people alone, with a score (Wilson) interval for rates.",
            BOTH: "`wisecrowd evaluate`: cross-fitted predictions of 24 (Civil Comments) or 5 judges, corrected by the labels.",
            "arena, all ranks": "Covered if all five ranks lie in their intervals; the width is the mean number of ranks in one.",
            "five systems, all ranks": "As above, by mean labels.",
        },
        rows="data",
        findings=findings,
        remarks=(
            "Civil Comments: 2,500 comments, half of them toxic, with scores of 24 judges; every draw takes 2,500 comments with "
            "replacement, and the target is the rate over all comments. The prior of the judges' weights and the use of ranks of "
            "scores were chosen on 60 to 200 samples of this data set (other seeds), so its widths are "
            "slightly favourable; coverage was not a criterion. Two of 20 raters: raters say toxic for 80 % of toxic and 20 % of "
            "other comments, shifted by a severity with standard deviation .12 (real judges) or .5 (probit scale, simulated), and "
            "the target is the mean over all such people. Designs: half of the labels at random, and the other half by `--plan`, "
            "active or random. Simulations: `simulate_evaluation` and `simulate_arena`, 1,000 tasks. The first "
            "three rows have 1,000 draws, the others 200.",
        ),
        time_limit=3600,
    )
