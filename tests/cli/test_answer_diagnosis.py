"""``wisecrowd diagnose`` on comparisons, label sets, marks and texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from wisecrowd.simulate.comparisons import simulate_comparisons
from wisecrowd.simulate.label_sets import simulate_label_sets
from wisecrowd.simulate.marks import simulate_boxes, simulate_spans
from wisecrowd.simulate.texts import simulate_texts


@pytest.fixture
def arena(tmp_path: Path) -> Path:
    frame = simulate_comparisons(
        n_items=8, n_workers=5, votes_per_worker=40, n_tasks=99, random_state=0
    ).comparisons.to_frame()
    lefty = frame[frame["worker"] == "w0"].assign(worker="lefty", label=lambda rows: rows["left"])
    pd.concat([frame, lefty]).to_csv(tmp_path / "arena.csv", index=False)
    return tmp_path / "arena.csv"


@pytest.mark.slow
def test_comparisons(run: Any, arena: Path, tmp_path: Path) -> None:
    result = run("diagnose", arena, "-o", "out", "--duplicates", "first")
    assert result.exit_code == 0, result.output
    assert "Krippendorff's alpha" in result.stdout
    assert "lefty" in result.stdout
    workers = pd.read_csv(tmp_path / "out" / "workers.csv", index_col=0)
    assert "left" in workers.loc["lefty", "flags"]
    assert len(pd.read_csv(tmp_path / "out" / "items.csv")) == 8
    assert json.loads((tmp_path / "out" / "run.json").read_text())["answers"] == "pairwise"


def test_label_sets(run: Any, tmp_path: Path) -> None:
    frame = simulate_label_sets(n_tasks=40, n_workers=6, n_labels=4, random_state=0).crowd.to_frame()
    frame.assign(labels=["|".join(labels) for labels in frame["labels"]]).to_csv(tmp_path / "tags.csv", index=False)
    result = run("diagnose", "tags.csv", "-m", "binary-relevance", "-o", "out")
    assert result.exit_code == 0, result.output
    assert "by MASI" in result.stdout
    assert "lowest agreement" in result.stdout
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "workers.csv",
        "labels.csv",
        "tasks.csv",
        "run.json",
    }
    figures = json.loads(run("diagnose", "tags.csv", "-m", "binary-relevance", "--json").stdout)
    assert -1 < figures["crowd"]["alpha_jaccard"] < 1


def test_options_for_classes_are_refused(run: Any, arena: Path) -> None:
    result = run("diagnose", arena, "--members", arena)
    assert result.exit_code != 0
    assert "--members" in result.output


@pytest.mark.parametrize(
    ("simulate", "phrases"),
    [
        (simulate_boxes, ["mean intersection over union", "expected precision", "edges off"]),
        (simulate_spans, ["on equal ones", "alpha for unitizing"]),
        (simulate_texts, ["of words (WER)", "of characters (CER)", "omitted"]),
    ],
)
def test_marks_and_texts(run: Any, tmp_path: Path, simulate: Any, phrases: list[str]) -> None:
    simulate(n_tasks=30, n_workers=6, random_state=0).crowd.to_frame().to_csv(tmp_path / "answers.csv", index=False)
    result = run("diagnose", "answers.csv", "-o", "out")
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    for phrase in [*phrases, "Least certain tasks"]:
        assert phrase in text
    assert max(map(len, result.stdout.splitlines())) <= 80
    workers = pd.read_csv(tmp_path / "out" / "workers.csv", index_col=0)
    assert (workers["flags"].notna().astype(int).diff().dropna() <= 0).all()  # flagged workers come first
    assert len(pd.read_csv(tmp_path / "out" / "tasks.csv")) == 30


def test_few_objects_have_the_same_warning_in_every_view(run: Any, tmp_path: Path) -> None:
    simulate_boxes(n_tasks=3, n_workers=6, random_state=0).crowd.to_frame().to_csv(tmp_path / "few.csv", index=False)
    results = [run("aggregate", "few.csv", "--json"), run("diagnose", "few.csv", "--json")]
    warnings = [
        json.loads(results[0].stdout)["summary"]["warnings"],
        json.loads(results[1].stdout)["crowd"]["warnings"],
    ]
    results.append(run("report", "few.csv", "--no-compare", "-o", "page.html"))
    assert "Confidences are not reliable" in warnings[0][0]
    assert warnings[0] == warnings[1]
    assert all(f"Warning: {warnings[0][0]}" in result.stderr for result in results)
    assert f"<strong>Warning:</strong> {warnings[0][0]}" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert not json.loads(run("aggregate", "few.csv", "-p", "model=majority", "--json").stdout)["summary"]["warnings"]
