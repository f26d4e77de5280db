"""``wisecrowd diagnose``: quality of workers and difficulty of tasks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from wisecrowd import diagnose_crowd, simulate_crowd, simulate_ratings
from wisecrowd.diagnose.assessment import sort_flagged_first

Run = Callable[..., Any]


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """Nine who are good, one who guesses."""
    made = simulate_crowd(
        n_tasks=200, workers=["noisy(0.85)"] * 9 + ["spammer"], n_classes=3, votes_per_task=5, random_state=3
    )
    path = tmp_path / "votes.csv"
    made.crowd.to_frame().to_csv(path, index=False)
    return path


def test_it_names_the_worker_and_gives_the_reason(run: Run, planted: Path) -> None:
    said = run("diagnose", planted)
    assert said.exit_code == 0
    assert "w9" in said.stdout
    assert "are unrelated to the other votes" in " ".join(said.stdout.split())
    assert "Krippendorff's alpha" in said.stdout


def test_tables_are_those_of_the_library(run: Run, planted: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("diagnose", planted, "-o", out, "-q").exit_code == 0
    names = sorted(path.name for path in out.iterdir())
    assert names == ["confusion.csv", "copies.csv", "run.json", "tasks.csv", "workers.csv"]
    found = diagnose_crowd(pd.read_csv(planted))
    workers = pd.read_csv(out / "workers.csv", index_col="worker")
    flagged_first = sort_flagged_first(found.workers)
    assert flagged_first["flags"].iloc[0]
    assert workers.index.tolist() == flagged_first.index.tolist()
    assert workers["n_votes"].tolist() == flagged_first["n_votes"].tolist()
    assert workers["accuracy"].to_numpy() == pytest.approx(flagged_first["accuracy"].to_numpy())
    assert json.loads((out / "run.json").read_text())["crowd"]["votes"] == 1000
    tasks = pd.read_csv(out / "tasks.csv")
    assert tasks["kind"].tolist() == found.tasks["kind"].tolist()


def test_the_record_is_json(run: Run, planted: Path) -> None:
    found = json.loads(run("diagnose", planted, "--json").stdout)["crowd"]
    assert found["flagged_workers"] == 1
    assert found["fleiss_kappa"] is not None  # five votes on every task
    assert sum(found["tasks_by_kind"].values()) == 200


def test_small_and_odd_files(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "few.csv"
    path.write_text("task,worker,label\n1,ann,cat\n1,bob,cat\n", encoding="utf-8")
    said = run("diagnose", path)
    assert said.exit_code == 0
    assert "undefined: no task has votes of two workers" in said.stdout
    path.write_text("task,label\n1,cat\n2,dog\n", encoding="utf-8")
    assert run("diagnose", path, "--no-workers").exit_code != 0


def test_results_of_another_command_are_told_apart(run: Any, planted: Path) -> None:
    run("aggregate", planted, "-m", "majority-vote", "-o", "out")
    result = run("diagnose", planted, "-o", "out")
    assert "labels.csv in out: written by an earlier run, not by this one" in result.stderr


def test_another_method_can_judge(run: Run, planted: Path, tmp_path: Path) -> None:
    assert run("diagnose", planted, "-m", "one-coin", "-o", tmp_path / "out", "-q").exit_code == 0
    found = diagnose_crowd(pd.read_csv(planted), model="one-coin")
    tasks = pd.read_csv(tmp_path / "out" / "tasks.csv")
    assert tasks["confidence"].to_numpy() == pytest.approx(found.tasks["confidence"].to_numpy(), abs=1e-6)
    assert tasks["confidence"].tolist() != pytest.approx(
        diagnose_crowd(pd.read_csv(planted)).tasks["confidence"].tolist()
    )
    assert json.loads((tmp_path / "out" / "run.json").read_text())["method"] == "one-coin"
    said = run("diagnose", planted, "-m", "majority-vote")
    assert said.exit_code == 2
    assert "majority-vote has no confusion matrices" in " ".join(said.stderr.split())


def test_groups_have_figures_and_names_of_their_own(run: Run, tmp_path: Path) -> None:
    kinds = ["expert(0.9)"] * 12 + ["mixer(0.6)"] * 8
    made = simulate_crowd(n_tasks=500, workers=kinds, n_classes=3, votes_per_task=5)
    made.crowd.to_frame().to_csv(tmp_path / "votes.csv", index=False)
    said = " ".join(run("diagnose", tmp_path / "votes.csv").stdout.split())
    groups = diagnose_crowd(made.crowd).groups
    first, second = groups.descriptions
    assert f"1 {first} (" in said
    assert f"2 {second} ({', '.join(groups.members(1, 5))})" in said
    assert first.split("right")[1][:4] != second.split("right")[1][:4]
    assert "and 3 more)" in said


def test_ordered_classes_have_severities(run: Run, tmp_path: Path) -> None:
    made = simulate_ratings(n_tasks=150, n_workers=8, n_classes=4, votes_per_task=4, severity_sd=1.0, random_state=0)
    path, out = tmp_path / "ratings.csv", tmp_path / "out"
    made.crowd.to_frame().to_csv(path, index=False)
    said = run("diagnose", path, "--ordered", "-o", out)
    assert said.exit_code == 0
    assert "ordinal alpha" in said.stdout
    assert "infit" in said.stdout
    raters = pd.read_csv(out / "raters.csv", index_col="worker")
    assert raters["severity"].corr(made.workers["severity"]) > 0.9
    assert json.loads((out / "run.json").read_text())["crowd"]["flagged_raters"] == raters["flags"].notna().sum()


def test_gold_is_used_as_in_aggregate(run: Any, votes: Path, gold: Path) -> None:
    gold.write_text("".join(gold.read_text(encoding="utf-8").splitlines(keepends=True)[:6]), encoding="utf-8")
    diagnosed = json.loads(run("diagnose", votes, "--gold", gold, "--json").stdout)
    aggregated = json.loads(run("aggregate", votes, "--gold", gold, "--json").stdout)
    assert diagnosed["figures"] == aggregated["summary"]["figures"]
    assert diagnosed["figures"] != json.loads(run("diagnose", votes, "--json").stdout)["figures"]
