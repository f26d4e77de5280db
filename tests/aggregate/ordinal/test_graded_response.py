"""Graded response model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from wisecrowd import Crowd, GradedResponse, MajorityVote
from wisecrowd.errors import InputError, UsageError
from wisecrowd.simulate.ratings import simulate_ratings

MADE = simulate_ratings(n_tasks=400, n_workers=20, n_classes=5, votes_per_task=6, random_state=0)


@pytest.fixture(scope="module")
def fitted() -> GradedResponse:
    return GradedResponse().fit(MADE.crowd)


def test_severities_are_recovered(fitted: GradedResponse) -> None:
    workers = fitted.workers_
    assert workers["severity"].corr(MADE.workers["severity"]) > 0.95
    gap = workers["severity"] - MADE.workers["severity"]
    z = (gap - gap.mean()) / workers["severity_error"]
    assert 0.6 < z.std() < 1.5


def test_discrimination_and_spread_are_recovered() -> None:
    made = simulate_ratings(
        n_tasks=1500, n_workers=12, votes_per_task=8, discrimination_sd=0.5, spread_sd=0.4, random_state=1
    )
    workers = GradedResponse().fit(made.crowd).workers_
    for name in ("discrimination", "spread"):
        assert np.log(workers[name]).corr(np.log(made.workers[name])) > 0.9


def test_scores_and_their_intervals(fitted: GradedResponse) -> None:
    tasks = fitted.tasks_
    assert tasks["score"].corr(MADE.scores) > 0.9
    covered = ((tasks["lower"] <= MADE.scores) & (MADE.scores <= tasks["upper"])).mean()
    assert 0.83 < covered < 0.97


def test_labels_are_more_accurate_than_the_majority(fitted: GradedResponse) -> None:
    majority = (MajorityVote().fit(MADE.crowd).labels_ == MADE.truth).mean()
    assert (fitted.labels_ == MADE.truth).mean() > majority + 0.1


def test_estimates_are_expected_classes(fitted: GradedResponse) -> None:
    expected = fitted.proba_.to_numpy() @ np.arange(1, 6)
    assert np.allclose(fitted.tasks_["estimate"], expected)


def test_three_tasks_by_brute_force() -> None:
    # With all raters equal, posterior means follow from a fine grid and the fitted thresholds.
    votes = [("a", "r", 1), ("a", "s", 1), ("b", "r", 2), ("b", "s", 1), ("c", "r", 3), ("c", "s", 2)]
    crowd = Crowd.from_triples(votes, ordered=True)
    fitted = GradedResponse(discrimination_sd=0, severity_sd=0, spread_sd=0, tol=1e-10).fit(crowd)
    z = np.linspace(-8, 8, 20_001)
    slope, (low, high) = fitted.discrimination_[0], fitted.thresholds_
    probs = np.stack(
        [1 - expit(slope * (z - low)), expit(slope * (z - low)) - expit(slope * (z - high)), expit(slope * (z - high))]
    )
    density = np.exp(-(z**2) / 2)
    for task, (first, second) in {"a": (0, 0), "b": (1, 0), "c": (2, 1)}.items():
        posterior = density * probs[first] * probs[second]
        mean = (posterior * z).sum() / posterior.sum()
        assert fitted.tasks_.loc[task, "score"] == pytest.approx(mean, abs=1e-3)


def test_a_reversed_scale_negates_the_scores(fitted: GradedResponse) -> None:
    crowd = MADE.crowd
    other = GradedResponse().fit(crowd.replace_fields(label=4 - crowd.label, classes=crowd.classes[::-1]))  # type: ignore[index]
    assert np.allclose(other.score_, -fitted.score_, atol=1e-4)
    assert np.allclose(other.severity_, -fitted.severity_, atol=1e-4)


def test_a_rater_who_prefers_the_middle_has_spread_thresholds() -> None:
    rows = MADE.crowd.to_frame()
    is_central = rows["worker"] == "w3"
    rows.loc[is_central, "label"] = rows.loc[is_central, "label"].clip(3, 3)
    crowd = Crowd.from_frame(rows, ordered=True, classes=[1, 2, 3, 4, 5])
    assert GradedResponse().fit(crowd).workers_["spread"].idxmax() == "w3"


def test_classes_without_votes_stay_possible() -> None:
    crowd = Crowd.from_frame(MADE.crowd.to_frame(), ordered=True, classes=[0, 1, 2, 3, 4, 5, 6])
    fitted = GradedResponse().fit(crowd)
    assert (np.diff(fitted.thresholds_) > 0).all()
    assert set(fitted.labels_) <= {1, 2, 3, 4, 5}


@pytest.mark.slow
def test_gold_moves_the_thresholds() -> None:
    # All tasks with gold are one class higher than the raters say.
    gold = (MADE.truth + 1).clip(upper=5).iloc[:200]
    plain, informed = GradedResponse().fit(MADE.crowd), GradedResponse().fit(MADE.crowd, truth=gold)
    assert (informed.labels_[gold.index] == gold).all()
    assert informed.labels_.iloc[200:].mean() > plain.labels_.iloc[200:].mean() + 0.2


def test_raters_carry_over(fitted: GradedResponse) -> None:
    again = GradedResponse().fit(MADE.crowd, start=fitted)
    assert again.n_iter_ <= fitted.n_iter_
    assert np.allclose(again.score_, fitted.score_, atol=0.05)
    with pytest.raises(UsageError, match="start must be a fitted GradedResponse"):
        GradedResponse().fit(MADE.crowd, start=MajorityVote().fit(MADE.crowd))


def test_a_task_without_votes_has_the_prior(fitted: GradedResponse) -> None:
    crowd = MADE.crowd.replace_fields(tasks=MADE.crowd.tasks.append(pd.Index(["~none"])))
    assert np.allclose(GradedResponse().fit(crowd).proba_.loc["~none"], fitted.prior_, atol=1e-6)


@pytest.mark.parametrize(
    ("numeric", "advice"), [(False, "--ordered --classes low,middle,high"), (True, "rater-mean, mean, median")]
)
def test_other_answer_types_are_refused_with_advice(numeric: bool, advice: str) -> None:
    votes = [("t", "w", 1.5 if numeric else "happy"), ("t", "v", 2.5 if numeric else "sad")]
    with pytest.raises(InputError, match=advice):
        GradedResponse().fit(Crowd.from_triples(votes, numeric=numeric))


@pytest.mark.parametrize("options", [{"severity_sd": -1.0}, {"n_nodes": 2}, {"level": 1.0}, {"m_steps": 0}])
def test_parameters_out_of_range_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="must be"):
        GradedResponse(**options).fit(MADE.crowd)  # type: ignore[arg-type]
