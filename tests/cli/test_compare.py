"""``wisecrowd compare``: which method to believe."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from wisecrowd import simulate_comparisons, simulate_crowd, simulate_label_sets, simulate_spans, simulate_texts

Run = Callable[..., Any]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Votes of four who know and six who do not, and the truth of half of the tasks."""
    made = simulate_crowd(
        n_tasks=150, workers=["expert"] * 4 + ["spammer"] * 6, n_classes=3, votes_per_task=5, random_state=0
    )
    votes, truth = tmp_path / "votes.csv", tmp_path / "gold.csv"
    made.crowd.to_frame().to_csv(votes, index=False)
    made.truth.iloc[:75].rename_axis("task").rename("label").reset_index().to_csv(truth, index=False)
    return votes, truth


TWO = ("-m", "majority-vote", "-m", "dawid-skene")


def test_it_says_what_to_use_and_why(run: Run, files: tuple[Path, Path]) -> None:
    said = run("compare", files[0], *TWO)
    assert said.exit_code == 0
    assert "Use dawid-skene" in said.stdout
    assert "majority-vote" in said.stdout
    assert "accuracy" not in said.stdout


def test_known_truth_is_shown_and_does_not_choose(run: Run, files: tuple[Path, Path]) -> None:
    votes, truth = files
    said = run("compare", votes, *TWO, "--score", truth, "--json")
    found = json.loads(said.stdout)
    assert found["use"] == json.loads(run("compare", votes, *TWO, "--json").stdout)["use"]
    best = next(row for row in found["methods"] if row["method"] == "dawid-skene")
    assert best["accuracy"] > 0.9


def test_tables_are_written_and_read_back(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("compare", files[0], *TWO, "-o", out, "-q").exit_code == 0
    assert sorted(path.name for path in out.iterdir()) == ["agreement.csv", "disputed.csv", "methods.csv", "run.json"]
    assert pd.read_csv(out / "methods.csv")["method"].tolist() == ["dawid-skene", "majority-vote"]
    disputed = pd.read_csv(out / "disputed.csv")
    assert (disputed["majority-vote"] != disputed["dawid-skene"]).all()


def test_mistakes_end_in_a_message(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    said = run("compare", files[0], "-m", "dawid-skeen")
    assert said.exit_code == 2
    assert "Did you mean" in said.stderr
    said = run("compare", files[0], "-m", "raykar")
    assert said.exit_code != 0
    assert "features" in said.stderr
    said = run("compare", tmp_path / "nothing.csv")
    assert said.exit_code != 0
    assert "nothing.csv" in said.stderr


def test_comparisons_and_label_sets(run: Any, tmp_path: Path) -> None:
    arena = simulate_comparisons(n_items=5, n_workers=12, votes_per_worker=15, n_tasks=999, random_state=0)
    arena.comparisons.to_frame().to_csv(tmp_path / "arena.csv", index=False)
    result = run("compare", "arena.csv", "-m", "bradley-terry", "-m", "win-rate", "-o", "out")
    assert result.exit_code == 0, result.output
    assert "held-out comparisons" in result.stdout.replace("\n", " ")
    assert set(pd.read_csv(tmp_path / "out" / "methods.csv")["method"]) == {"bradley-terry", "win-rate"}
    tags = simulate_label_sets(n_tasks=30, n_labels=3, random_state=0).crowd.to_frame()
    tags.assign(labels=["|".join(labels) for labels in tags["labels"]]).to_csv(tmp_path / "tags.csv", index=False)
    figures = json.loads(run("compare", "tags.csv", "-m", "binary-relevance", "--folds", "2", "--json").stdout)
    assert (figures["use"], figures["answers"]) == ("binary-relevance", "multilabel")
    assert run("compare", "tags.csv", "--score", "tags.csv").exit_code != 0


def test_marks_are_compared_with_their_truth(run: Any, tmp_path: Path) -> None:
    simulation = simulate_spans(n_tasks=30, n_workers=6, random_state=0)
    simulation.crowd.to_frame().to_csv(tmp_path / "spans.csv", index=False)
    simulation.truth.to_csv(tmp_path / "truth.csv", index=False)
    result = run("compare", "spans.csv", "-m", "span-consensus", "-m", "hmm-crowd", "--score", "truth.csv", "-o", "out")
    assert result.exit_code == 0, result.output
    assert "F1" in result.stdout
    assert "decisions of held-out workers" in " ".join(result.stdout.split())
    assert pd.read_csv(tmp_path / "out" / "methods.csv")["f1"].between(0.5, 1).all()
    assert json.loads((tmp_path / "out" / "run.json").read_text())["score"] == "truth.csv"


def test_texts_are_compared_with_their_truth(run: Any, tmp_path: Path) -> None:
    simulation = simulate_texts(n_tasks=30, n_workers=6, random_state=0)
    simulation.crowd.to_frame().to_csv(tmp_path / "texts.csv", index=False)
    simulation.truth.rename("reference").to_csv(tmp_path / "truth.csv")
    result = run("compare", "texts.csv", "--score", "truth.csv", "-o", "out")
    assert result.exit_code == 0, result.output
    assert "WER" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert len(pd.read_csv(tmp_path / "out" / "agreement.csv")) == 4


def test_votes_without_a_second_vote_are_pointed_out(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label\n" + "".join(f"{task},ann,{'ab'[task % 2]}\n" for task in range(20)))
    assert "Warning: No task has two votes" in run("compare", path, *TWO).stderr
    assert "Warning: No task has two votes" in run("aggregate", path).stderr
    path.write_text(path.read_text() + "1,bob,a\n")
    assert "No task has two votes" not in run("compare", path, *TWO).stderr


def test_gold_is_refused_with_the_option_for_evaluation(run: Any, votes: Path, gold: Path) -> None:
    result = run("compare", votes, "--gold", gold.name)
    assert result.exit_code == 2
    assert "to evaluate against known truth: --score gold.csv" in " ".join(result.stderr.split())
    assert "--gold " not in run("compare", "--help").stdout
