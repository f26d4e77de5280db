"""Confidence and expected accuracy, with and without gold, on crowds that the coefficients were not fitted to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.registry import find
from wisecrowd.bench.benchmark import Benchmark, Entry
from wisecrowd.bench.code_digest import code_digest
from wisecrowd.bench.confidence_prior import FAMILIES, METHOD, SHARES, GoldPart, fit_prior, measure_crowds
from wisecrowd.bench.data import StoredDataset
from wisecrowd.bench.entries import Portable
from wisecrowd.errors import InputError
from wisecrowd.evaluate.accuracy import CrowdCalibration
from wisecrowd.evaluate.audit import allocate_checks, assign_strata, draw_audit_sample
from wisecrowd.evaluate.confidence import LabelConfidence, confidence_error
from wisecrowd.io.datasets import Dataset

#: Figures: |mean confidence − accuracy|, and expected calibration error with 15 bins of equal width.
GAP, ECE = "gap", "calibration_error"
#: Stored figures: share of intervals that contain the accuracy, their width, and the width of the gold tasks alone.
COVERED, WIDTH, GOLD_WIDTH = "covered", "width", "width of gold alone"
#: Stored figures of an audit: variance and mean square error relative to a simple random sample of the same size.
VARIANCE, SQUARE_ERROR, UNBIASED_VARIANCE = "variance ratio", "square error ratio", "variance ratio of checks alone"
#: Number of random samples of gold tasks.
N_SAMPLES = 100
#: Number of checked tasks in an audit.
AUDIT_SIZE = 50
#: Number of divisions into strata, which differ in the order of tasks with the same confidence.
N_STRATIFICATIONS = 20
#: A sample may have at most this share of the gold tasks of a crowd.
MAX_SAMPLED_SHARE = 0.5


@dataclass(frozen=True)
class Assessment(Portable):
    """Entry that compares the confidence of labels with their accuracy.

    The coefficients come from all crowds of other families.

    >>> Assessment("confidence", share=50).share
    50
    """

    kind: str
    """``posterior``, ``confidence``, ``gold`` or ``audit``."""
    share: int = 100
    n_gold: int = 0

    is_random: ClassVar[bool] = False

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Return the figures of a crowd."""
        part = _find_part(dataset.name, self.share)
        if self.kind == "posterior":
            return _compare(part.posterior, part.right)
        score, prior = _score(dataset.name, self.share)
        if self.n_gold > MAX_SAMPLED_SHARE * len(score):
            raise InputError(f"fewer than {self.n_gold / MAX_SAMPLED_SHARE:.0f} gold tasks")
        if self.kind == "audit":
            return _audit(part, score, prior, self.n_gold)
        if self.n_gold:
            return _sample_gold(part, score, prior, self.n_gold)
        calibration = CrowdCalibration.from_outcomes(prior)
        estimate = calibration.expect_accuracy(score)
        accuracy = part.right.mean()
        return _compare(calibration.confidence(score), part.right) | {
            COVERED: float(estimate.low <= accuracy <= estimate.high), WIDTH: estimate.high - estimate.low,
        }  # fmt: skip

    def identity(self) -> Any:
        """Return the settings and the digest of the code."""
        return [self.kind, self.share, self.n_gold, code_digest(type(self), find(METHOD))]


def _find_part(name: str, share: int) -> GoldPart:
    for part in measure_crowds(SHARES):
        if (part.name, part.share) == (name, share):
            return part
    raise InputError("too few gold tasks with votes")


@lru_cache(maxsize=64)
def _score(name: str, share: int) -> tuple[NDArray[np.float64], Any]:
    """Return the scores of a part with coefficients from other families, and these coefficients."""
    part, prior = _find_part(name, share), _fit_without(FAMILIES[name])
    return prior.intercept + part.features @ np.array([prior.evidence, prior.agreement]), prior


@lru_cache(maxsize=64)
def _fit_without(family: str) -> Any:
    return fit_prior(part for part in measure_crowds(SHARES) if part.family != family)


def _compare(confidence: NDArray[np.float64], right: NDArray[np.float64]) -> dict[str, float]:
    """Return gap and calibration error."""
    gap = abs(float(confidence.mean() - right.mean()))
    return {GAP: gap, ECE: confidence_error(confidence, right > 0), "accuracy": float(right.mean())}


def _sample_gold(part: GoldPart, score: NDArray[np.float64], prior: Any, n_gold: int) -> dict[str, float]:
    """Return mean figures over random samples of gold tasks. The gap is that of the expected accuracy of all labels."""
    from scipy.stats import beta

    accuracy, rows = part.right.mean(), []
    for seed in range(N_SAMPLES):
        is_gold = np.zeros(len(score), dtype=bool)
        is_gold[np.random.default_rng([seed, n_gold]).choice(len(score), n_gold, replace=False)] = True
        right = part.right[is_gold]
        calibration = CrowdCalibration.from_outcomes(prior, score[is_gold], right)
        estimate = calibration.expect_accuracy(score[~is_gold], n_known=n_gold, n_known_right=int(right.sum()))
        # Jeffreys interval of the gold tasks alone.
        low, high = beta.ppf([0.05, 0.95], right.sum() + 0.5, n_gold - right.sum() + 0.5)
        rest = part.right[~is_gold]
        rows.append((
            abs(estimate.accuracy - accuracy), confidence_error(calibration.confidence(score[~is_gold]), rest > 0),
            estimate.low <= accuracy <= estimate.high, estimate.high - estimate.low, high - low,
        ))  # fmt: skip
    gap, error, covered, width, gold_width = np.mean(rows, axis=0).tolist()
    return {GAP: gap, ECE: error, COVERED: covered, WIDTH: width, GOLD_WIDTH: gold_width}


def _audit(part: GoldPart, score: NDArray[np.float64], prior: Any, size: int) -> dict[str, float]:
    """Return the errors of an audit relative to those of a simple random sample."""
    n_tasks, accuracy = len(score), float(part.right.mean())
    calibration = CrowdCalibration.from_outcomes(prior)
    nothing = np.full(n_tasks, -1, dtype=np.int32)
    labels = LabelConfidence(
        tasks=pd.RangeIndex(n_tasks), classes=pd.RangeIndex(int(part.label.max()) + 1), label=part.label,
        confidence=calibration.confidence(score), score=score, n_votes=np.ones(n_tasks, dtype=np.int64), truth=nothing,
        outcomes=pd.DataFrame({"score": [], "right": []}), checked=nothing, calibration=calibration,
    )  # fmt: skip
    estimates, covered = [], []
    for seed in range(2 * N_SAMPLES):
        sample = draw_audit_sample(labels, size, random_state=seed)
        rows = sample.index.to_numpy()
        is_checked = np.zeros(n_tasks, dtype=bool)
        is_checked[rows] = True
        updated = CrowdCalibration.from_outcomes(prior, score[rows], part.right[rows])
        n_right = int(part.right[rows].sum())
        estimate = updated.expect_accuracy(score[~is_checked], n_known=size, n_known_right=n_right)
        estimates.append(estimate.accuracy)
        covered.append(estimate.low <= accuracy <= estimate.high)
    simple = accuracy * (1 - accuracy) / size * (n_tasks - size) / (n_tasks - 1)
    return {
        GAP: float(np.abs(np.array(estimates) - accuracy).mean()),
        ECE: np.nan,
        COVERED: float(np.mean(covered)),
        VARIANCE: float(np.var(estimates) / simple),
        SQUARE_ERROR: float(np.mean((np.array(estimates) - accuracy) ** 2) / simple),
        UNBIASED_VARIANCE: _stratified_variance(part.right, labels.confidence, size) / simple,
    }


def _stratified_variance(right: NDArray[np.float64], confidence: NDArray[np.float64], size: int) -> float:
    """Return the variance of the prediction-powered estimate over all samples of an audit, by the formula for strata.

    The variance of repeated draws would have an error of several per cent.
    """
    error, variances = right - confidence, []
    for seed in range(N_STRATIFICATIONS):
        stratum = assign_strata(confidence, size, np.random.default_rng(seed))
        n_tasks = np.bincount(stratum)
        n_checks = allocate_checks(n_tasks, size)
        spread = (
            pd.Series(error).groupby(stratum).var().fillna(0.0).reindex(range(len(n_tasks)), fill_value=0.0).to_numpy()
        )
        share = n_tasks / len(error)
        variances.append((share**2 * spread * (1 / np.maximum(n_checks, 1) - 1 / np.maximum(n_tasks, 1))).sum())
    return float(np.mean(variances))


def findings(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Describe means over crowds, the coverage of intervals and the variance of audits.

    >>> findings([{"entry": "posterior", "data": "rte", "figures": {"gap": 0.1, "calibration_error": 0.2}}])[0]
    'Means over crowds: posterior: gap .100, ECE .200 (1 crowds).'
    """
    by_entry: dict[str, list[Mapping[str, float]]] = {}
    for row in rows:
        if row.get("figures"):
            by_entry.setdefault(row["entry"], []).append(row["figures"])

    def mean(title: str, figure: str) -> float:
        return float(np.mean([figures[figure] for figures in by_entry[title]]))

    parts = [
        f"{title}: gap {_short(mean(title, GAP))}"
        + ("" if title == AUDIT else f", ECE {_short(mean(title, ECE))}")
        + f" ({len(by_entry[title])} crowds)"
        for title in ENTRIES
        if title in by_entry
    ]
    paragraphs = [f"Means over crowds: {'; '.join(parts)}."] if parts else []
    intervals = [
        f"{title}: {100 * mean(title, COVERED):.0f} % of intervals contain the accuracy, mean width {_short(mean(title, WIDTH))}"
        + (f" ({_short(mean(title, GOLD_WIDTH))} by the gold tasks alone)" if GOLD_WIDTH in by_entry[title][0] else "")
        for title in ENTRIES
        if title in by_entry and WIDTH in by_entry[title][0]
    ]
    if intervals:
        paragraphs.append(f"Intervals of 90 %: {'; '.join(intervals)}.")
    if audits := by_entry.get(AUDIT):
        for figure, name in (
            (VARIANCE, "Variance of the accuracy"), (SQUARE_ERROR, "Mean square error"),
            (UNBIASED_VARIANCE, "Variance of the prediction-powered estimate"),
        ):  # fmt: skip
            ratio = np.array([figures[figure] for figures in audits])
            paragraphs.append(
                f"{name} by an audit of {AUDIT_SIZE} tasks, relative to a simple random sample: median {_short(np.median(ratio))}, "
                f"at most .75 on {(ratio <= 0.75).sum()} of {len(ratio)} crowds, largest {_short(ratio.max())}."
            )
    return tuple(paragraphs)


def _short(value: float) -> str:
    return f"{value:.3f}".removeprefix("0") if value < 1 else f"{value:.2f}"


CONFIDENCE, AUDIT = "confidence", f"audit of {AUDIT_SIZE}"
ENTRIES: Mapping[str, Entry] = {
    "posterior": Assessment("posterior"),
    CONFIDENCE: Assessment("confidence"),
    **{f"confidence, {share} % of votes": Assessment("confidence", share=share) for share in SHARES if share < 100},
    **{f"{n} gold tasks": Assessment("gold", n_gold=n) for n in (20, 50, 200)},
    AUDIT: Assessment("audit", n_gold=AUDIT_SIZE),
}


def benchmark() -> Benchmark:
    """Return the benchmark on all crowds.

    >>> "posterior" in benchmark().entries
    True
    """
    return _make_benchmark(tuple(FAMILIES))


def quick() -> Benchmark:
    """Return the benchmark on three small crowds; the coefficients come from all others.

    >>> len(quick().data)
    3
    """
    return _make_benchmark(("bluebirds", "labelme", "rte"))


def _make_benchmark(names: Sequence[str]) -> Benchmark:
    return Benchmark(
        title="Is the confidence true? Leave one crowd out",
        entries=ENTRIES,
        data={name: StoredDataset(name, "distinct", figures=(GAP, ECE)) for name in names},
        notes={
            "posterior": f"Posterior of {METHOD}.",
            CONFIDENCE: "Calibrated confidence, from votes alone.",
            AUDIT: f"Tasks that `wisecrowd audit --size {AUDIT_SIZE}` draws; mean over {2 * N_SAMPLES} draws.",
            "cifar100n": "One vote per task: no vote can be compared with another.",
        },
        rows="data",
        findings=findings,
        remarks=(
            f"Labels of {METHOD}. The coefficients of the confidence are fitted to all crowds of other families and random parts "
            "of them; crowds with the same tasks or workers are one family (weather, ZenCrowd, TREC, CIFAR). *Gap* is |mean "
            "confidence − accuracy| on the tasks with gold, *ECE* the expected calibration error with 15 bins of equal width. With "
            f"gold tasks, the figures are means over {N_SAMPLES} random samples; the gap is then |expected accuracy − accuracy| "
            "of all labels, and ECE that of the other tasks. The coefficients never use the crowd that they are measured on; the "
            "two features of the score and the share of Neyman allocation in audits (.9) were chosen on these crowds.",
        ),
        time_limit=1800,
    )
