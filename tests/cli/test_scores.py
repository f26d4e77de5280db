"""``wisecrowd aggregate`` on scores of judges."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from wisecrowd import Panel, load, simulate_scores

Run = Callable[..., Any]


@pytest.fixture
def scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    made = simulate_scores(n_tasks=200, n_judges=4, random_state=1)
    made.scores.to_frame().rename(columns={"worker": "judge"}).to_csv("scores.csv", index=False)
    truth = made.truth.map({0: "fine", 1: "toxic"}).rename("truth").rename_axis("task")
    truth.to_csv("truth.csv")
    truth.iloc[:60].to_csv("gold.csv")
    return tmp_path / "scores.csv"


def test_scores_become_labels_by_gold(run: Run, scores: Path) -> None:
    said = run("aggregate", scores, "--gold", "gold.csv", "--score", "truth.csv", "-o", "results", "--save", "--proba")
    assert said.exit_code == 0
    assert "scores of judges (columns task, judge, score)" in said.stdout
    assert "140 tasks with known truth that the fit did not use" in " ".join(said.stdout.split())
    labels = pd.read_csv("results/labels.csv", index_col="task")
    truth = pd.read_csv("truth.csv", index_col="task")["truth"]
    assert (labels["label"] == truth).mean() > 0.7
    assert labels["confidence"].between(0.5, 1).all()
    record = json.loads(Path("results/run.json").read_text())
    assert record["summary"]["score"]["tasks"] == 140
    assert record["summary"]["n_effective"] >= 1
    assert record["summary"]["gold"] == {"tasks": 60}
    low, high = (record["summary"]["expected_accuracy"][end] for end in ("low", "high"))
    assert 0.4 < low < high < 1
    assert list(pd.read_csv("results/judges.csv", index_col="worker").index) == ["judge0", "judge1", "judge2", "judge3"]
    assert isinstance(load("results/model"), Panel)


def test_people_in_the_same_table(run: Run, scores: Path) -> None:
    people = pd.DataFrame({"task": ["t000", "t001"], "judge": "ann", "label": ["fine", "toxic"]})
    pd.concat([pd.read_csv(scores), people]).to_csv("both.csv", index=False)
    said = run("aggregate", "both.csv", "--classes", "fine,toxic")
    assert said.exit_code == 0, said.stderr
    assert "2 votes of 1 person" in said.stdout


def test_what_cannot_be_done_with_scores_is_said(run: Run, scores: Path) -> None:
    assert "leave out --members" in run("aggregate", scores, "--members", "gold.csv").stderr
    assert "--label score --numeric" in run("aggregate", scores, "-m", "dawid-skene").stderr.replace("\n", " ")
    assert "does not take" in run("compare", scores).stderr
    assert run("aggregate", scores, "--label", "score", "--numeric", "-m", "median").exit_code == 0
