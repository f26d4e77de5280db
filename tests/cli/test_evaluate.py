from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from wisecrowd.cli import build_app
from wisecrowd.simulate.evaluations import simulate_arena, simulate_evaluation

APP = build_app(["evaluate"])


def run(*arguments: object) -> Result:
    return CliRunner().invoke(APP, ["evaluate", *map(str, arguments)])


def run_json(*arguments: object) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code in (0, 3), result.output
    summary: dict[str, Any] = json.loads(result.stdout)["summary"]
    return summary


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluation")
    for name, rates in (("one", (0.5,)), ("three", (0.7, 0.6, 0.4))):
        simulation = simulate_evaluation(n_tasks=500, rates=rates, n_labelled=60, random_state=1)
        scores = simulation.scores.melt(ignore_index=False, var_name="judge", value_name="score").reset_index()
        if name == "one":
            scores, labels = scores.drop(columns="system"), simulation.labels.drop(columns="system")
        else:
            labels = simulation.labels
        scores.to_csv(folder / f"{name}.csv", index=False)
        labels.to_csv(folder / f"{name}-labels.csv", index=False)
    arena = simulate_arena(n_tasks=300, n_labelled=100, random_state=1)
    arena.judges.to_frame().to_csv(folder / "judges.csv", index=False)
    arena.people.to_frame().to_csv(folder / "people.csv", index=False)
    both = [arena.judges.to_frame().assign(kind="machine"), arena.people.to_frame().assign(kind="person")]
    pd.concat(both).to_parquet(folder / "arena.parquet", index=False)
    return folder


def test_rate_beside_people_alone(folder: Path) -> None:
    result = run(folder / "one.csv", "--labels", folder / "one-labels.csv")
    assert result.exit_code == 0, result.output
    for text in ("Estimate", "People only", "Worth"):
        assert text in result.stdout


def test_results_are_written(folder: Path, tmp_path: Path) -> None:
    result = run(folder / "three.csv", "--labels", folder / "three-labels.csv", "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    estimates = pd.read_csv(tmp_path / "out" / "estimates.csv")
    assert sorted(estimates["system"]) == ["system0", "system1", "system2"]
    assert estimates["estimate"].is_monotonic_decreasing
    assert {"rank_low", "rank_high", "people_estimate", "effective_labels"} <= set(estimates)
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["command"]["level"] == 0.95
    assert record["files"] == ["estimates.csv", "run.json"]


def test_exit_codes(folder: Path) -> None:
    files = (folder / "one.csv", "--labels", folder / "one-labels.csv")
    assert run(*files, "--within", 0.3).exit_code == 0
    missed = run(*files, "--within", 0.01)
    assert missed.exit_code == 3
    assert "missed" in missed.stdout
    assert run(*files, "--at-least", 0.2, "--at-most", 0.8).exit_code == 0
    assert run(*files, "--at-least", 0.5).exit_code == 3
    assert run(*files, "--at-most", 0.5).exit_code == 3
    assert run(folder / "absent.csv", "--labels", folder / "one-labels.csv").exit_code == 1
    assert run(folder / "one.csv").exit_code == 2
    assert run(*files, "--plan").exit_code == 2
    assert run(*files, "--size", 5).exit_code == 2
    assert run(*files, "--level", 95).exit_code == 2
    assert run(*files, "--population", "all").exit_code == 2


def test_difference_and_rate_of_named_systems(folder: Path) -> None:
    files = (folder / "three.csv", "--labels", folder / "three-labels.csv")
    difference = run_json(*files, "--system", "system0", "--system", "system2")
    assert difference["systems"] == ["system0", "system2"]
    assert difference["corrected"]["low"] < 0.3 < difference["corrected"]["high"]
    single = run_json(*files, "--system", "system1")
    assert single["labelled_items"] == 60
    assert run(*files, "--system", "system9").exit_code == 2
    assert run(*files, *("--system", "system0") * 3).exit_code == 2


def test_a_plan_is_carried_out(folder: Path, tmp_path: Path) -> None:
    files = (folder / "one.csv", "--labels", folder / "one-labels.csv")
    first = run(*files, "--plan", "--size", 40, "-o", tmp_path / "next")
    assert first.exit_code == 0, first.output
    form = pd.read_csv(tmp_path / "next" / "next.csv")
    assert form.columns.tolist() == ["task", "label", "inclusion"]
    assert len(form) == 40
    assert form["label"].isna().all()
    before = pd.read_csv(folder / "one-labels.csv")
    assert not set(form["task"]) & set(before["task"])
    rng = np.random.default_rng(0)
    labels = pd.concat([before, form.assign(label=rng.integers(0, 2, 40), rater="new")[["task", "rater", "label"]]])
    labels.to_csv(tmp_path / "labels.csv", index=False)
    after = run_json(
        folder / "one.csv", "--labels", tmp_path / "labels.csv", "--items", tmp_path / "next" / "items.csv"
    )
    assert after["labelled_items"] == 100


def test_plans_by_width(folder: Path) -> None:
    files = (folder / "one.csv", "--labels", folder / "one-labels.csv", "--raters", "panel")
    plan = run_json(*files, "--plan", "--within", 0.07)["plan"]
    assert plan["reachable"]
    assert plan["expected_half_width"] <= 0.07
    assert run_json(*files, "--plan", "--within", 0.4)["plan"]["further_items"] == 0
    assert "out of reach" in run(*files, "--plan", "--within", 0.001).stdout


def test_comparisons(folder: Path) -> None:
    two_files = run_json(folder / "judges.csv", "--labels", folder / "people.csv")
    one_file = run_json(folder / "arena.parquet")
    assert two_files["scale"] == "logit"
    assert two_files["systems"] == one_file["systems"]
    result = run(folder / "judges.csv", "--labels", folder / "people.csv")
    assert "Bradley" in result.stdout
    assert run(folder / "judges.csv").exit_code == 2
    assert run(folder / "judges.csv", "--labels", folder / "people.csv", "--plan", "--size", 3).exit_code == 2
    wins = run_json(folder / "arena.parquet", "--system", "system0", "--system", "system4")
    assert wins["corrected"]["estimate"] > 0


def test_people_in_the_same_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 200)
    rows = pd.DataFrame(
        {"task": np.arange(200), "judge": "gpt", "score": truth * 0.6 + rng.random(200) * 0.4, "kind": "machine"}
    )
    people = pd.DataFrame({"task": np.arange(50), "judge": "ann", "score": truth[:50], "kind": "human"})
    pd.concat([rows, people]).to_csv(tmp_path / "all.csv", index=False)
    summary = run_json(tmp_path / "all.csv")
    assert summary["labels"] == 50
    assert summary["labels_saved"] > 50
    assert "All labels are by ann" in summary["notes"][0]


def test_words_need_the_positive_class(tmp_path: Path) -> None:
    pd.DataFrame({"task": range(60), "judge": "gpt", "score": ["toxic", "fine"] * 30}).to_csv(
        tmp_path / "s.csv", index=False
    )
    pd.DataFrame({"task": range(30), "label": ["toxic", "fine"] * 15}).to_csv(tmp_path / "l.csv", index=False)
    refused = run(tmp_path / "s.csv", "--labels", tmp_path / "l.csv")
    assert refused.exit_code == 1
    assert run_json(tmp_path / "s.csv", "--labels", tmp_path / "l.csv", "--positive", "toxic")["judges_only"] == 0.5


def test_several_files_are_combined(folder: Path, tmp_path: Path) -> None:
    scores = pd.read_csv(folder / "three.csv")
    for name, part in scores.groupby("system"):
        part.to_csv(tmp_path / f"{name}.csv", index=False)
    paths = sorted(tmp_path.glob("system*.csv"))
    assert len(run_json(*paths, "--labels", folder / "three-labels.csv")["systems"]) == 3
    mixed = run(paths[0], folder / "one.csv", "--labels", folder / "three-labels.csv")
    assert mixed.exit_code == 1
    assert "add the column system to all" in " ".join(mixed.output.split())


def write_answers(folder: Path, n_items: int = 60, n_models: int = 25) -> None:
    rng = np.random.default_rng(0)
    ability, difficulty = rng.normal(1, 1, n_models), rng.normal(0, 1, n_items)
    right = rng.random((n_items, n_models)) < 1 / (1 + np.exp(difficulty[:, None] - ability))
    right[0] = ability < np.median(ability)  # only weak models agree with the key
    item, model = np.divmod(np.arange(right.size), n_models)
    rows = pd.DataFrame({"task": item, "model": model, "score": right.ravel().astype(int)})
    rows.to_csv(folder / "scores.csv", index=False)
    answer = np.where(right.ravel(), "a", np.where(item == 0, "b", rng.choice(["b", "c", "d"], right.size)))
    pd.DataFrame({"task": item, "worker": model, "label": answer}).to_csv(folder / "answers.csv", index=False)
    pd.DataFrame({"task": range(n_items), "label": "a"}).to_csv(folder / "key.csv", index=False)


def test_benchmarks_are_tests_of_items(tmp_path: Path) -> None:
    write_answers(tmp_path)
    result = run(tmp_path / "answers.csv", "--labels", tmp_path / "key.csv", "--benchmark", "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "able models answer b" in result.stdout
    items = pd.read_csv(tmp_path / "out" / "items.csv", index_col="item")
    assert items.loc[0, "flag"] == "mis-keyed"
    models = pd.read_csv(tmp_path / "out" / "models.csv")
    assert models["ability"].is_monotonic_decreasing
    assert run_json(tmp_path / "scores.csv", "--benchmark")["flagged"]["mis-keyed"] >= 1


def test_benchmarks_need_one_score_for_an_item(tmp_path: Path) -> None:
    write_answers(tmp_path)
    scores = pd.read_csv(tmp_path / "scores.csv")
    pd.concat([scores.assign(judge=name) for name in ("acc", "f1")]).to_csv(tmp_path / "two.csv", index=False)
    assert "--metric" in run(tmp_path / "two.csv", "--benchmark").output
    assert run(tmp_path / "two.csv", "--benchmark", "--metric", "acc").exit_code == 0
    assert run(tmp_path / "two.csv", "--benchmark", "--metric", "bleu").exit_code == 2
    assert run(tmp_path / "scores.csv", "--benchmark", "--plan", "--size", 3).exit_code == 2
    assert run(tmp_path / "key.csv", "--benchmark").exit_code == 1
    pd.concat([scores, scores]).to_csv(tmp_path / "twice.csv", index=False)
    assert "more than once" in " ".join(run(tmp_path / "twice.csv", "--benchmark").output.split())
