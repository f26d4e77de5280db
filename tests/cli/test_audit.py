"""``wisecrowd audit``: draw tasks to check, and evaluate the checks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import wisecrowd as wc

LABEL_STUDIO = Path(__file__).parents[1] / "recorded" / "label-studio"


@pytest.fixture
def simulated(tmp_path: Path) -> tuple[Path, pd.Series]:
    made = wc.simulate_crowd(n_tasks=200, n_workers=12, n_classes=3, votes_per_task=4, random_state=2)
    made.crowd.to_frame().to_csv(tmp_path / "votes.csv", index=False)
    return tmp_path / "votes.csv", made.truth


def test_draw_check_and_evaluate(run: Any, simulated: tuple[Path, pd.Series]) -> None:
    votes, truth = simulated
    drawn = run("audit", votes, "--size", "40", "-o", "audit")
    assert drawn.exit_code == 0, drawn.output
    assert "40 tasks to check" in drawn.stdout
    assert f"wisecrowd review {votes} --tasks audit -o checked.csv" in " ".join(drawn.stdout.split())
    checks = pd.read_csv("audit/checks.csv", dtype={"truth": object})
    assert list(checks.columns) == ["task", "truth", "stratum", "weight"]
    assert checks["weight"].sum() == pytest.approx(200)

    checks["truth"] = truth[checks["task"]].to_numpy()
    checks.to_csv("checked.csv", index=False)
    result = run("audit", votes, "--checked", "checked.csv", "-o", "audited")
    assert result.exit_code == 0, result.output
    record = json.loads(Path("audited/run.json").read_text())["summary"]
    fitted = wc.ModelAverage().fit(wc.read(votes))
    assert record["checked"] == 40
    assert record["right"] == int((fitted.labels_ == truth)[checks["task"]].sum())
    expected = record["expected_accuracy"]
    assert expected["low"] < (fitted.labels_ == truth).mean() < expected["high"]
    assert expected["gold_tasks"] == 40
    assert f"about {record['further_checks']} more checks for ±2 points" in result.stdout
    labels = pd.read_csv("audited/labels.csv", index_col="task")
    assert (labels["confidence"][checks["task"]] == 1).all()
    assert (labels["label"][checks["task"]].to_numpy() == checks["truth"]).all()
    classes = pd.read_csv("audited/classes.csv", index_col="class")
    assert classes["n_gold"].sum() == 40
    assert classes["n_tasks"].sum() == 200


def test_rows_that_are_not_filled_in_do_not_count(run: Any, simulated: tuple[Path, pd.Series]) -> None:
    votes, truth = simulated
    run("audit", votes, "--size", "30", "-o", "audit")
    empty = run("audit", votes, "--checked", "audit/checks.csv")
    assert empty.exit_code != 0
    assert "no row of audit/checks.csv has a truth yet" in empty.stderr
    checks = pd.read_csv("audit/checks.csv", dtype={"truth": object}, keep_default_na=False)
    checks.loc[:9, "truth"] = truth[checks["task"][:10]].to_numpy()
    checks.to_csv("half.csv", index=False)
    assert json.loads(run("audit", votes, "--checked", "half.csv", "--json").stdout)["summary"]["checked"] == 10


def test_further_tasks_are_new(run: Any, simulated: tuple[Path, pd.Series]) -> None:
    votes, truth = simulated
    truth[:50].rename("truth").rename_axis("task").to_csv("checked.csv")
    result = run("audit", votes, "--checked", "checked.csv", "--size", "20", "-o", "more")
    assert result.exit_code == 0, result.output
    drawn = pd.read_csv("more/checks.csv")
    assert len(drawn) == 20
    assert not drawn["task"].isin(truth.index[:50]).any()


def test_wrong_use_is_explained(run: Any, simulated: tuple[Path, pd.Series], tmp_path: Path) -> None:
    votes, _ = simulated
    assert "say what to do" in run("audit", votes).stderr
    numbers = tmp_path / "numbers.csv"
    numbers.write_text("task,worker,label\nt1,ann,1.5\nt1,bob,2.5\n")
    assert "audit needs classes" in run("audit", numbers, "--numeric", "--size", "1", "-m", "median").stderr
