"""Many-facet Rasch analysis: severities and fit statistics on simulated raters."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import Crowd
from wisecrowd.diagnose.raters import RaterDiagnosis, diagnose_raters
from wisecrowd.errors import InputError

THRESHOLDS = np.array([-1.5, -0.5, 0.5, 1.5])


def simulate_rasch(
    seed: int, *, n_tasks: int = 300, n_workers: int = 12, votes_per_task: int = 5, severity_sd: float = 0.8
) -> tuple[Crowd, np.ndarray, np.ndarray]:
    """Return ratings that follow the rating scale model, with severities and scores."""
    rng = np.random.default_rng(seed)
    score, severity = 1.5 * rng.normal(size=n_tasks), severity_sd * rng.normal(size=n_workers)
    worker = np.concatenate([rng.permutation(n_workers)[:votes_per_task] for _ in range(n_tasks)])
    task = np.repeat(np.arange(n_tasks), votes_per_task)
    logits = (score[task] - severity[worker])[:, None] * np.arange(5) - np.concatenate([[0], THRESHOLDS.cumsum()])
    probs = np.exp(logits - logits.max(axis=1, keepdims=True))
    probs /= probs.sum(axis=1, keepdims=True)
    label = (rng.random(len(task))[:, None] > probs.cumsum(axis=1)).sum(axis=1)
    crowd = Crowd.from_codes(
        task, worker, label, tasks=range(n_tasks), workers=range(n_workers), classes=range(5), ordered=True
    )
    return crowd, severity - severity.mean(), score - severity.mean()


@pytest.fixture(scope="module")
def simulated() -> list[tuple[RaterDiagnosis, np.ndarray, np.ndarray]]:
    made = [simulate_rasch(seed) for seed in range(6)]
    return [(diagnose_raters(crowd), severity, score) for crowd, severity, score in made]


@pytest.mark.slow
def test_severities_are_recovered_without_inflation(
    simulated: list[tuple[RaterDiagnosis, np.ndarray, np.ndarray]],
) -> None:
    lines = [np.polyfit(severity, result.workers["severity"], 1) for result, severity, _ in simulated]
    slopes, shifts = np.transpose(lines)
    assert slopes.mean() == pytest.approx(1, abs=0.08)
    assert np.abs(shifts).max() < 1e-9
    for result, severity, _ in simulated:
        assert np.corrcoef(severity, result.workers["severity"])[0, 1] > 0.97


@pytest.mark.slow
def test_standard_errors_are_right(simulated: list[tuple[RaterDiagnosis, np.ndarray, np.ndarray]]) -> None:
    z = np.concatenate([(r.workers["severity"] - truth) / r.workers["standard_error"] for r, truth, _ in simulated])
    assert 0.75 < z.std() < 1.25


def test_fit_statistics_are_one_on_average(simulated: list[tuple[RaterDiagnosis, np.ndarray, np.ndarray]]) -> None:
    for name in ("infit", "outfit"):
        squares = np.concatenate([result.workers[name] for result, _, _ in simulated])
        z = np.concatenate([result.workers[f"{name}_z"] for result, _, _ in simulated])
        assert squares.mean() == pytest.approx(1, abs=0.04)
        assert 0.7 < z.std() < 1.3


def test_scores_and_thresholds_are_recovered(simulated: list[tuple[RaterDiagnosis, np.ndarray, np.ndarray]]) -> None:
    for result, _, score in simulated:
        assert np.corrcoef(score, result.tasks["score"])[0, 1] > 0.9
    thresholds = np.mean([result.thresholds for result, _, _ in simulated], axis=0)
    assert np.allclose(thresholds, THRESHOLDS, atol=0.15)


def test_erratic_muted_and_severe_raters_are_flagged() -> None:
    crowd, _, _ = simulate_rasch(1, severity_sd=0.2)
    rng = np.random.default_rng(0)
    label, worker = crowd.label.copy(), crowd.worker_codes
    label[worker == 0] = rng.integers(0, 5, (worker == 0).sum())  # answers at random
    average = np.bincount(crowd.task, crowd.label, crowd.n_tasks) / 5
    label[worker == 1] = np.clip(np.round(average[crowd.task[worker == 1]]), 1, 3)  # the average of the others
    label[worker == 2] = np.maximum(label[worker == 2] - 2, 0)
    flags = diagnose_raters(crowd.replace_fields(label=label)).workers["flags"]
    assert flags[0] == "erratic"
    assert flags[1] == "muted"
    assert "severe" in flags[2]
    assert (flags.iloc[3:] == "").sum() >= 8


@pytest.mark.slow
def test_raters_who_are_alike_have_no_reliable_differences() -> None:
    alike, _, _ = simulate_rasch(2, severity_sd=0.0)
    different, _, _ = simulate_rasch(2, severity_sd=1.0)
    assert diagnose_raters(alike).reliability < 0.5
    assert diagnose_raters(different).reliability > 0.9


def test_extreme_and_idle_raters_have_finite_or_missing_severities() -> None:
    votes = [(task, rater, 3) for task in range(6) for rater in "ab"] + [(task, "c", 1) for task in range(6)]
    crowd = Crowd.from_triples(votes, ordered=True, classes=[1, 2, 3], workers=["a", "b", "c", "idle"])
    workers = diagnose_raters(crowd).workers
    assert np.isfinite(workers.loc[["a", "b", "c"], ["severity", "standard_error", "infit"]]).all(axis=None)
    assert workers["severity"].idxmax() == "c"
    assert workers.loc["idle", ["severity", "infit"]].isna().all()
    assert workers.loc["idle", "flags"] == ""


def test_the_summary_names_flagged_raters() -> None:
    crowd, _, _ = simulate_rasch(3, severity_sd=1.5)
    result = diagnose_raters(crowd)
    assert "severe" in repr(result)
    assert "RaterDiagnosis of 12 raters" in result._repr_html_()


@pytest.mark.parametrize("numeric", [True, False])
def test_other_votes_are_refused_with_advice(numeric: bool) -> None:
    crowd = Crowd.from_triples([("t", "w", 1.5 if numeric else "a")], numeric=numeric)
    with pytest.raises(InputError, match="ordered=True"):
        diagnose_raters(crowd)
