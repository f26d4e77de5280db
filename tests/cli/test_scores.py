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


def test_judges_are_diagnosed(run: Run, scores: Path) -> None:
    pd.DataFrame(
        {"task": pd.read_csv("truth.csv")["task"], "text": ["some words " * (n % 7 + 1) for n in range(200)]}
    ).to_csv("texts.csv", index=False)
    said = run(
        "diagnose",
        scores,
        "--gold",
        "truth.csv",
        "--texts",
        "texts.csv",
        "--versions",
        "judge0,judge1",
        "-o",
        "results",
    )
    assert said.exit_code == 0, said.stderr
    assert "200 gold tasks" in said.stdout
    judges = pd.read_csv("results/judges.csv", index_col="worker")
    assert {"kappa", "severity", "length_bias", "shared"} <= set(judges)
    assert "consistency" not in judges  # nobody scored a task twice
    assert pd.read_csv("results/drift.csv").loc[0, ["before", "after"]].tolist() == ["judge0", "judge1"]
    assert pd.read_csv("results/curves.csv")["share"].between(0, 1).all()
    assert json.loads(Path("results/run.json").read_text())["crowd"]["reference"] == "truth"
    assert "two judges or more" in run("diagnose", scores, "--versions", "judge0").stderr
    pd.DataFrame({"task": ["t1"], "worker": ["ann"], "label": ["x"]}).to_csv("votes.csv", index=False)
    assert "apply to scores of judges" in run("diagnose", "votes.csv", "--texts", "truth.csv").stderr


def test_the_page_has_judges_and_curves(run: Run, scores: Path) -> None:
    said = run("report", scores, "--score", "truth.csv", "-o", "page.html")
    assert said.exit_code == 0, said.stderr
    page = Path("page.html").read_text()
    assert "Calibration curves" in page
    assert "Effective judges" in page
    assert "Share of toxic" in page
    assert "leave out --images" in run("report", scores, "--images", "truth.csv", "-o", "other.html").stderr
