"""``wisecrowd plan``: which votes to buy."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from wisecrowd import simulate_crowd

Run = Callable[..., Any]


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    """Three votes on each of 80 tasks, of ten who mostly know and two who do not."""
    made = simulate_crowd(
        n_tasks=80, workers=["noisy(0.8)"] * 10 + ["spammer"] * 2, n_classes=3, votes_per_task=3, random_state=0
    )
    path = tmp_path / "votes.csv"
    made.crowd.to_frame().to_csv(path, index=False)
    return path


def test_it_says_whom_to_ask_and_what_it_is_worth(run: Run, votes: Path) -> None:
    said = run("plan", votes, "--budget", 30)
    assert said.exit_code == 0
    assert "Buy 30 votes on" in said.stdout
    assert "expected accuracy" in said.stdout
    assert "and 25 more" in said.stdout
    assert "money" not in said.stdout


def test_money_is_shown_where_a_vote_has_a_price(run: Run, votes: Path) -> None:
    said = run("plan", votes, "--budget", 2, "--price", 0.1, "--json")
    found = json.loads(said.stdout)
    assert found["requests"] == 20
    assert [point["votes"] for point in found["curve"]] == [0, 5, 10, 15, 20]
    assert found["curve"][-1]["money"] == pytest.approx(2)
    accuracies = [point["expected_accuracy"] for point in found["curve"]]
    assert accuracies == sorted(accuracies)
    assert "money" in run("plan", votes, "--budget", 2, "--price", 0.1).stdout


def test_tables_are_written_and_read_back(run: Run, votes: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("plan", votes, "--budget", 40, "--per-worker", 6, "--target", 0.8, "-o", out, "-q").exit_code == 0
    assert sorted(path.name for path in out.iterdir()) == ["curve.csv", "finished.csv", "requests.csv", "run.json"]
    asks, curve, finished = (pd.read_csv(out / name) for name in ("requests.csv", "curve.csv", "finished.csv"))
    assert asks.columns[:2].tolist() == ["task", "worker"]
    assert len(asks) == 40
    assert asks["worker"].value_counts().max() <= 6
    cast = pd.read_csv(votes)
    assert asks.merge(cast, on=["task", "worker"]).empty
    assert len(curve) == 41
    assert not set(finished["task"]) & set(asks["task"])
    assert (finished["confidence"] >= 0.8).all()
    assert json.loads((out / "run.json").read_text())["per_worker"] == 6


def test_mistakes_end_in_a_message(run: Run, votes: Path, tmp_path: Path) -> None:
    for arguments, message in [
        ((votes,), "--budget"),
        ((votes, "--budget", 0), "budget must cover at least one vote"),
        ((votes, "--budget", 5, "--target", 95), "target"),
        ((votes, "--budget", 5, "--no-workers"), "worker ids"),
        ((tmp_path / "nothing.csv", "--budget", 5), "nothing.csv"),
    ]:
        said = run("plan", *arguments)
        assert said.exit_code != 0
        assert message in said.stderr


def test_confidence_is_that_of_aggregate(run: Run, votes: Path, tmp_path: Path) -> None:
    options = ("--budget", 30, "--target", 0.7, "-o", tmp_path / "plan", "-q")
    assert run("plan", votes, *options).exit_code == 0
    assert run("aggregate", votes, "-o", tmp_path / "labels", "-q").exit_code == 0
    finished = pd.read_csv(tmp_path / "plan" / "finished.csv", index_col="task")
    labels = pd.read_csv(tmp_path / "labels" / "labels.csv", index_col="task")
    assert 0 < len(finished) < len(labels)
    pd.testing.assert_frame_equal(
        finished[["label", "confidence"]], labels.loc[finished.index, ["label", "confidence"]]
    )


def test_another_method_can_judge(run: Run, votes: Path, tmp_path: Path) -> None:
    asks = {}
    for name in ("dawid-skene", "one-coin"):
        assert run("plan", votes, "--budget", 30, "-m", name, "-o", tmp_path / name, "-q").exit_code == 0
        asks[name] = (tmp_path / name / "requests.csv").read_text()
    assert asks["dawid-skene"] != asks["one-coin"]
    members = tmp_path / "members.csv"
    members.write_text("worker,kind\nw0,machine\n", encoding="utf-8")
    said = run("plan", votes, "--budget", 30, "-m", "one-coin", "--members", members)
    assert said.exit_code == 2
    assert "does not use --members" in " ".join(said.stderr.split())
