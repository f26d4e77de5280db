"""``wisecrowd aggregate`` on comparisons and label sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from wisecrowd.simulate.comparisons import simulate_comparisons
from wisecrowd.simulate.label_sets import simulate_label_sets


@pytest.fixture
def arena(tmp_path: Path) -> Path:
    path = tmp_path / "arena.csv"
    made = simulate_comparisons(n_items=8, n_workers=5, votes_per_worker=40, random_state=0)
    frame = made.comparisons.to_frame().rename(columns={"left": "model_a", "right": "model_b", "label": "winner"})
    frame.drop_duplicates(["worker", "model_a", "model_b"]).to_csv(path, index=False)
    return path


@pytest.fixture
def tags(tmp_path: Path) -> Path:
    path = tmp_path / "tags.csv"
    frame = simulate_label_sets(n_tasks=40, n_workers=6, n_labels=4, random_state=0).crowd.to_frame()
    frame.assign(labels=["|".join(labels) for labels in frame["labels"]]).to_csv(path, index=False)
    return path


def test_comparisons_are_recognised_and_scored(run: Any, arena: Path, tmp_path: Path) -> None:
    result = run("aggregate", arena, "-o", tmp_path / "out", "--save")
    assert "comparisons of two items (columns model_a, model_b, winner, worker)" in result.stdout
    assert "judge-aware-bradley-terry" in result.stdout
    assert "90% interval" in result.stdout
    scores = pd.read_csv(tmp_path / "out" / "scores.csv")
    assert scores.columns[:3].tolist() == ["item", "score", "standard_error"]
    assert scores["rank"].tolist() == list(range(1, 9))
    assert {"discrimination", "lean", "tie_habit"} <= set(pd.read_csv(tmp_path / "out" / "workers.csv").columns)
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["answers"] == "pairwise"
    assert record["input"]["items"] == 8
    assert (tmp_path / "out" / "model" / "method.json").is_file()


def test_a_method_for_comparisons_can_be_chosen(run: Any, arena: Path) -> None:
    result = run("aggregate", arena, "-m", "elo", "-p", "n_orders=5")
    assert "elo" in result.stdout
    assert "interval" not in result.stdout


def test_comparisons_without_workers(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("left,right,label\na,b,a\nb,c,b\nc,a,tie\n")
    assert "bradley-terry, converged" in run("aggregate", path).stdout


def test_label_sets_are_recognised(run: Any, tags: Path, tmp_path: Path) -> None:
    result = run("aggregate", tags, "-m", "binary-relevance", "-o", tmp_path / "out")
    assert "sets of labels (columns task, worker, labels)" in result.stdout
    labels = pd.read_csv(tmp_path / "out" / "labels.csv")
    assert labels.columns.tolist() == ["task", "labels", "expected_f1", "confidence"]
    probs = pd.read_csv(tmp_path / "out" / "posterior.csv")
    assert len(probs) == 160
    assert probs["probability"].between(0, 1).all()


def test_other_methods_and_options_are_refused_with_advice(run: Any, arena: Path, tags: Path) -> None:
    result = run("aggregate", arena, "-m", "glad")
    assert result.exit_code != 0
    assert "glad takes other votes; leave -m out, or choose -m judge-aware-bradley-terry" in " ".join(
        result.stderr.split()
    )
    result = run("aggregate", tags, "--proba", "-o", tags.parent / "out")
    assert "leave out --proba, which applies to votes on classes" in " ".join(result.stderr.split())
