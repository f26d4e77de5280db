"""Diagnosis of judges: agreement beyond chance, severity, repeats, length, versions, curves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from wisecrowd import Panel, ScoreCrowd, diagnose_judges, simulate_scores
from wisecrowd.diagnose import JudgeDiagnosis
from wisecrowd.errors import InputError, UsageError

N = 600


@pytest.fixture(scope="module")
def truth() -> pd.Series:
    return pd.Series(np.random.default_rng(0).integers(2, size=N), index=[f"t{n:03d}" for n in range(N)])


@pytest.fixture(scope="module")
def lengths(truth: pd.Series) -> pd.Series:
    return pd.Series(np.random.default_rng(1).integers(5, 100, size=N), index=truth.index)


@pytest.fixture(scope="module")
def frame(truth: pd.Series, lengths: pd.Series) -> pd.DataFrame:
    """Judges with one habit each, on a scale from 0 to 10."""
    rng = np.random.default_rng(2)
    z = truth.to_numpy()
    noise = rng.normal(0, 1, (8, N))
    length = (lengths.to_numpy() - 52) / 27
    columns = {
        "fair": 5 + 2.5 * (2 * z - 1) + noise[0],
        "strict": 2 + 1.5 * (2 * z - 1) + 0.8 * noise[1],
        "lenient": 8 + 1.5 * (2 * z - 1) + 0.8 * noise[2],
        "random": 5 + 2 * noise[3],
        "wordy": 5 + 1.5 * (2 * z - 1) + 1.5 * length + noise[4],
        "v1": 4 + 0.7 * (2 * z - 1) + noise[5],
        "v2": 5 + 2.5 * (2 * z - 1) + noise[6],
    }
    wide = pd.DataFrame(columns, index=truth.index).clip(0, 10)
    for judge in wide:  # every judge uses the whole scale
        wide.iloc[0, wide.columns.get_loc(judge)], wide.iloc[1, wide.columns.get_loc(judge)] = 0.0, 10.0
    long = wide.rename_axis("task").reset_index().melt("task", var_name="worker", value_name="score")
    first = long[long["worker"].isin(["fair", "random"])]
    again = first.assign(
        score=first["score"] + np.where(first["worker"] == "fair", 0.1, 4) * rng.normal(0, 1, len(first))
    )
    return pd.concat([long, again])


@pytest.fixture(scope="module")
def result(frame: pd.DataFrame, truth: pd.Series, lengths: pd.Series) -> JudgeDiagnosis:
    return diagnose_judges(frame, gold=truth.iloc[:300], truth=truth, lengths=lengths, versions={"v": ["v1", "v2"]})


@pytest.mark.slow
def test_every_habit_is_flagged_and_no_other(result: JudgeDiagnosis) -> None:
    flags = result.judges["flags"].to_dict()
    assert flags["fair"] == flags["v2"] == ""
    assert flags["strict"] == "strict"
    assert flags["lenient"] == "lenient"
    assert flags["random"] == "uninformative, inconsistent"
    assert flags["wordy"] == "length"
    assert "below the truth" in result.judges["why"]["strict"]
    assert result.overview["flagged_judges"] == 4
    assert result.overview["reference_tasks"] == N


def test_kappa_is_that_of_cohen(result: JudgeDiagnosis, truth: pd.Series) -> None:
    """Labels of a judge are recovered from the accuracy of its bins."""
    scores = result.scores.select_workers(["fair"]).to_frame().groupby("task")["score"].mean()
    labels = (scores > 5).astype(int)
    assert result.judges.loc["fair", "kappa"] == pytest.approx(cohen_kappa_score(truth[labels.index], labels), abs=0.05)
    assert result.judges.loc["fair", "accuracy"] > 0.95
    assert abs(result.judges.loc["random", "kappa"]) < 0.2


def test_repeats_and_length(result: JudgeDiagnosis) -> None:
    judges = result.judges
    assert judges.loc["fair", "consistency"] > 0.95
    assert judges.loc["random", "consistency"] < 0.5
    assert np.isnan(judges.loc["v1", "consistency"])
    assert judges.loc["wordy", "length_bias"] == pytest.approx(0.8, abs=0.1)
    assert abs(judges.loc["fair", "length_bias"]) < 3 * judges.loc["fair", "length_error"]


def test_versions_are_compared_on_common_tasks(result: JudgeDiagnosis) -> None:
    row = result.drift.iloc[0]
    assert (row["before"], row["after"], row["n_tasks"]) == ("v1", "v2", N)
    assert row["shift"] == pytest.approx(1.0, abs=0.25)
    assert row["kappa_change"] > 0.2
    assert row["significant"]
    assert result.overview["drifting_versions"] == 1
    same = diagnose_judges(result.scores, truth=None, versions={"fair": ["fair", "v2"]}).drift.iloc[0]
    assert abs(same["shift"]) < 0.3


def test_curves_rise_with_the_score(result: JudgeDiagnosis, truth: pd.Series) -> None:
    curve = result.curves[result.curves["worker"] == "fair"]
    assert curve["score"].is_monotonic_increasing
    assert curve["share"].iloc[0] < 0.05 < 0.95 < curve["share"].iloc[-1]
    assert (curve["share"] * curve["n_scores"]).sum() == pytest.approx(truth.sum(), abs=1e-6)


@pytest.mark.slow
def test_people_are_the_ceiling() -> None:
    made = simulate_scores(n_tasks=500, n_judges=4, n_people=4, people_accuracy=0.9, separation=1.0, random_state=1)
    result = diagnose_judges(made.scores)
    assert result.judges["kappa_ceiling"].iloc[0] == pytest.approx(0.64, abs=0.05)  # (2 · 0.9 − 1)²
    assert (result.judges["kappa_people"] < result.judges["kappa_ceiling"]).all()
    assert result.overview["reference"] == "panel"
    assert result.overview["people"] == 4
    assert "effective judges" in repr(result)
    assert "<table" in result._repr_html_()


def test_misuse_is_explained(frame: pd.DataFrame) -> None:
    scores = ScoreCrowd.from_frame(frame, duplicates="keep")
    with pytest.raises(InputError, match="unknown judges: 'v3'"):
        diagnose_judges(scores, versions={"v": ["v1", "v3"]})
    with pytest.raises(UsageError, match="two judges or more"):
        diagnose_judges(scores, versions={"v": ["v1"]})
    other = Panel().fit(simulate_scores(n_tasks=50, n_judges=2).scores)
    with pytest.raises(UsageError, match="fitted to these scores"):
        diagnose_judges(scores, model=other)


def test_truth_names_the_classes_of_a_panel_that_does_not_use_it(truth: pd.Series, frame: pd.DataFrame) -> None:
    for names in (
        {0: "a-low", 1: "b-high"},
        {0: "z-low", 1: "b-high"},
    ):  # low scores may be either in alphabetical order
        result = diagnose_judges(frame, truth=truth.map(names))
        assert result.model.classes_.tolist() == [names[0], names[1]]
        assert result.judges.loc["fair", "accuracy"] > 0.9
    with pytest.raises(UsageError, match="pass the truth as gold"):
        diagnose_judges(frame, truth=pd.Series(np.arange(N) % 3, index=truth.index))
