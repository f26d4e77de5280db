"""``wisecrowd complete``: votes in, the same and those that nobody cast out."""

from __future__ import annotations

import csv
import dataclasses
import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd.base import completer as completion
from wisecrowd.cli._completion import verdict
from wisecrowd.evaluate import metrics
from wisecrowd.evaluate.completion import CompleterScore

DS = ("-m", "ds-fill")


def rows_of(path: str | Path) -> list[dict[str, str]]:
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def sparse(votes: Path) -> Path:
    """The votes less every fifth of them."""
    header, *rows = votes.read_text(encoding="utf-8").splitlines()
    kept = [row for number, row in enumerate(rows) if number % 5 != 1]
    votes.write_text("\n".join([header, *kept]) + "\n", encoding="utf-8")
    return votes


@pytest.fixture
def features(tmp_path: Path) -> Path:
    """Cats (odd numbers) are small, dogs are large; a task more than there are votes on."""
    rng = np.random.default_rng(0)
    numbers = range(12, -1, -1)
    size = [(-1.0 if number % 2 else 1.0) + 0.1 * rng.normal() for number in numbers]
    table = pd.DataFrame({"task": [f"t{number:02d}" for number in numbers], "size": size, "noise": rng.normal(size=13)})
    table.to_csv(tmp_path / "X.csv", index=False)
    return tmp_path / "X.csv"


def test_writes_every_vote_and_the_record(run: Any, sparse: Path) -> None:
    result = run("complete", sparse, *DS, "-o", "out")
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in Path("out").iterdir()) == ["completed.csv", "run.json"]
    wanted = wc.DSFill().complete(wc.read(sparse))
    assert wc.read("out/completed.csv") == wanted
    rows = rows_of("out/completed.csv")
    assert list(rows[0]) == ["task", "worker", "label", "weight", "observed"]
    real = {(row["task"], row["worker"]): row["label"] for row in rows if row["observed"] == "true"}
    assert real == {(row["task"], row["worker"]): row["label"] for row in rows_of(sparse)}
    assert all(row["weight"] == "1" for row in rows if row["observed"] == "true")
    record = json.loads(Path("out/run.json").read_text(encoding="utf-8"))
    assert (record["method"], record["parameters"]["fill_weight"]) == ("ds-fill", "shared")
    assert record["files"] == ["completed.csv", "run.json"]
    filled = ~wanted.observed
    assert record["summary"]["filled"] == {
        "cells": int(filled.sum()),
        "rows": int(filled.sum()),
        "weight": pytest.approx(wanted.weight[filled].sum()),
    }


@pytest.mark.parametrize("fill_mode", ["hard", "sample", "soft"])
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_what_was_written_is_read_again_with_weights_and_marks(
    run: Any, sparse: Path, form: str, fill_mode: str
) -> None:
    parquet = ["--parquet"] if form == "parquet" else []
    told = run(
        "complete", sparse, *DS, "-p", f"fill_mode={fill_mode}", "-p", "fill_weight=0.3", "-o", "out", *parquet
    ).stdout
    [command] = [line.split(maxsplit=2)[2] for line in told.splitlines() if line.startswith("Go on")]
    assert command.startswith(f"wisecrowd aggregate out/completed.{form}")
    assert ("--duplicates keep" in command) == (fill_mode == "soft")
    assert run(*command.split()[1:], "-o", "labels", "--proba").exit_code == 0
    filled = wc.DSFill(fill_mode=fill_mode, fill_weight=0.3).complete(wc.read(sparse))  # type: ignore[arg-type]
    again = wc.read(f"out/completed.{form}", duplicates="keep")
    assert again == filled
    assert again.is_weighted
    assert not again.observed.all()
    wanted = wc.ModelAverage().fit(filled).posterior_
    posterior = pd.read_csv("labels/posterior.csv", index_col="task").to_numpy()
    np.testing.assert_allclose(posterior, wanted, atol=1e-6)


def test_pieces_make_the_same_file(run: Any, sparse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fill is written block by block; how large the blocks are does not show."""
    run("complete", sparse, *DS, "-o", "whole")
    monkeypatch.setattr(completion, "BLOCK_CELLS", 16)
    assert len(list(wc.DSFill().fit(wc.read(sparse)).stream())) == 6
    run("complete", sparse, *DS, "-o", "chunks")
    assert Path("chunks/completed.csv").read_bytes() == Path("whole/completed.csv").read_bytes()


def test_a_dense_fill_is_never_held(run: Any, sparse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wc.Crowd, "join_chunks", lambda *_: pytest.fail("all chunks were put together"))
    assert run("complete", sparse, *DS, "-o", "out").exit_code == 0
    assert run("complete", sparse, *DS, "--evaluate").exit_code == 0


def test_says_the_handful_of_things_a_person_wants(run: Any, sparse: Path) -> None:
    text = run("complete", sparse.name, *DS, "-p", "min_votes=9", "-o", "out").stdout
    lines = {line.partition("  ")[0]: line for line in text.splitlines() if not line.startswith(" ")}
    assert list(lines) == ["Read", "Votes", "Method", "Filled in", "Left open", "Wrote", "Go on"]
    crowd = wc.read(sparse)
    filled = wc.DSFill(min_votes=9).complete(crowd)
    n = filled.n_votes - crowd.n_votes
    assert f"{n} votes: {n / 12:.1f} per task, with the weight of" in lines["Filled in"]
    assert lines["Left open"].endswith(f"{48 - filled.n_votes} cells of 48")
    assert max(map(len, text.splitlines()[1:])) <= 80  # the first has a path, which stays in one chunk


def test_nothing_to_fill_in(run: Any, votes: Path) -> None:
    result = run("complete", votes, *DS, "-o", "out")
    assert result.exit_code == 0, result.output
    assert "nothing: no cell is empty" in " ".join(result.stdout.split())
    assert wc.read("out/completed.csv") == wc.read(votes)


def test_without_a_folder_nothing_is_written(run: Any, sparse: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    result = run("complete", sparse, *DS)
    assert result.exit_code == 0
    assert "nothing; write the results with -o FOLDER" in result.stdout
    assert "Go on" not in result.stdout
    assert sorted(tmp_path.iterdir()) == before
    for option in ("--save", "--parquet"):
        result = run("complete", sparse, *DS, option)
        assert result.exit_code == 2
        assert "-o FOLDER" in result.stderr


def test_json_quiet_and_save(run: Any, sparse: Path) -> None:
    result = run("complete", sparse, *DS, "-o", "out", "--json", "--evaluate", "--save")
    assert json.loads(result.stdout) == json.loads(Path("out/run.json").read_text(encoding="utf-8"))
    loaded = wc.load("out/model")
    assert isinstance(loaded, wc.DSFill)
    assert loaded.fill() == wc.read("out/completed.csv")
    result = run("complete", sparse, *DS, "-o", "out2", "--quiet", "--evaluate")
    assert (result.exit_code, result.output) == (0, "")


# ---------------------------------------------------------------------- is it worth it?


def test_evaluate(run: Any, sparse: Path) -> None:
    result = run("complete", sparse, "-m", "gmv", "--evaluate", "-o", "out")
    assert result.exit_code == 0, result.output
    judged = wc.score_completer(wc.GMV(), wc.read(sparse))
    table = pd.read_csv("out/heldout.csv", index_col="forecast")
    pd.testing.assert_frame_equal(table, judged.table.round(6), check_index_type=False, check_dtype=False)
    recorded = json.loads(Path("out/run.json").read_text(encoding="utf-8"))["summary"]["heldout"]
    assert (recorded["hidden"], recorded["votes"], recorded["coverage"]) == (0.2, judged.n_votes, 1.0)
    assert recorded["mixed_with_uniform"] == 0.001
    assert recorded["forecasts"]["gmv"]["log_loss"] == pytest.approx(judged.table.loc["gmv", "log_loss"], abs=1e-6)
    shown = result.stdout.partition("held-out votes (20%)")[2]
    for name, row in judged.table.iterrows():
        [line] = [line for line in shown.splitlines() if line.startswith(f"{name}  ")]
        assert f"{row['accuracy']:.1%} ± {row['accuracy_se']:.1%}" in line
        assert f"{row['log_loss']:.3f} ± {row['log_loss_se']:.3f}" in line
    assert "gmv predicts held-out votes" in shown
    assert max(map(len, result.stdout.splitlines()[1:])) <= 80  # the first has a path, which stays in one chunk


def test_what_is_not_filled_in_is_told(run: Any, sparse: Path) -> None:
    shown = run("complete", sparse, "-m", "gmv", "-p", "min_votes=8", "--evaluate").stdout
    assert "gmv would fill in " in shown
    none = run("complete", sparse, "-m", "gmv", "-p", "min_votes=80", "--evaluate", "--json")
    judged = json.loads(none.stdout)["summary"]["heldout"]
    assert judged["coverage"] == 0
    assert judged["forecasts"]["gmv"]["filled_log_loss"] is None


@pytest.mark.parametrize(
    ("gain", "words"),
    [
        (0.5, "better than every baseline"),
        (-0.5, "worse than b"),
        (0.1, "and b predict held-out votes equally well"),
        (-0.1, "equally well"),
    ],
)
def test_the_verdict(gain: float, words: str) -> None:
    table = pd.DataFrame({"log_loss": [1.0, 2.0, 1.0 + gain], "gain": [0, 1, gain], "gain_se": [0, 0.1, 0.1]})
    assert words in verdict(CompleterScore(table.set_axis(["mine", "a", "b"]), 1.0, 10))


def test_score(run: Any, sparse: Path, gold: Path) -> None:
    result = run("complete", sparse, *DS, "--score", gold, "-o", "out")
    assert result.exit_code == 0, result.output
    crowd, truth = wc.read(sparse), wc.read_truth(gold)
    wanted = wc.accuracy_after_completion(wc.DSFill(), crowd, None, truth)
    table = pd.read_csv("out/accuracy.csv", index_col=["aggregator", "votes"])
    np.testing.assert_allclose(table, wanted, atol=1e-6)
    recorded = json.loads(Path("out/run.json").read_text(encoding="utf-8"))["summary"]["accuracy"]
    before = metrics.accuracy(truth, wc.MajorityVote().fit(crowd))
    assert recorded["majority-vote"]["before"]["accuracy"] == pytest.approx(before, abs=1e-6)
    assert "majority-vote  after, weight 1 " in result.stdout
    assert wc.read("out/completed.csv") == wc.DSFill().complete(crowd), "truth is never used for filling in"
    assert max(map(len, result.stdout.splitlines()[1:])) <= 80  # the first has a path, which stays in one chunk


# ---------------------------------------------------------------------- features


@pytest.mark.torch
def test_the_methods_of_choice(run: Any, sparse: Path, features: Path) -> None:
    from wisecrowd.cli.complete import DEFAULT, DEFAULT_WITH_FEATURES

    assert json.loads(run("complete", sparse, "--json").stdout)["method"] == DEFAULT == "ds-fill"
    assert wc.methods("complete")[DEFAULT_WITH_FEATURES].uses_features  # type: ignore[attr-defined]
    result = run("complete", sparse, "-x", features, "--json")
    if "need an optional dependency" in result.stderr:
        pytest.skip(result.stderr)
    assert json.loads(result.stdout)["method"] == DEFAULT_WITH_FEATURES
    assert json.loads(result.stdout)["command"]["features"] == str(features)


def test_features_are_asked_for_or_refused(run: Any, sparse: Path, features: Path) -> None:
    result = run("complete", sparse, "-m", "ldplc")
    assert result.exit_code == 2
    assert "name their file with --features X.npz" in result.stderr
    result = run("complete", sparse, "-x", features, *DS)
    assert result.exit_code == 2
    assert "ds-fill does not use features. Leave --features out" in result.stderr


def test_a_dataset_folder_has_everything(run: Any, sparse: Path, features: Path) -> None:
    from wisecrowd.io.dataset_folder import write_dataset

    write_dataset("pets", wc.read(sparse), features=pd.read_csv(features, index_col="task"))
    result = run("complete", "pets", "-m", "ldplc")
    assert result.exit_code == 0, result.stderr
    assert "2 for each task" in result.stdout


def test_bad_features(run: Any, sparse: Path) -> None:
    Path("X.csv").write_text("task,size\nt01,1\n", encoding="utf-8")
    result = run("complete", sparse, "-x", "X.csv", "-m", "ldplc", "-o", "out")
    assert result.exit_code == 1
    assert "no features for 11 tasks, for example 't00'" in result.stderr
    assert not Path("out").exists()


# ---------------------------------------------------------------------- at the door


def test_methods_of_another_kind_are_sent_to_their_command(run: Any, sparse: Path) -> None:
    result = run("complete", sparse, "-m", "one-coin")
    assert result.exit_code == 2
    assert "one-coin belongs to another command: wisecrowd aggregate -m one-coin" in result.stderr
    result = run("aggregate", sparse, *DS)
    assert result.exit_code == 2
    assert "ds-fill belongs to another command: wisecrowd complete -m ds-fill" in result.stderr


def test_votes_that_cannot_be_completed(run: Any, sparse: Path) -> None:
    Path("ratings.csv").write_text("task,worker,label\na,x,1\na,y,2\n", encoding="utf-8")
    result = run("complete", "ratings.csv", "--numeric")
    assert result.exit_code == 1
    assert "leave --numeric out" in result.stderr
    result = run("complete", sparse, "--no-workers")
    assert result.exit_code == 1
    assert "needs worker ids, and these votes have none" in result.stderr


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ("fill_weight=-1", "fill_weight must be 'shared' or a positive number"),
        ("fill_mode=loud", "fill_mode of ds-fill must be hard or sample or soft; got 'loud'"),
        ("max_per_task=0", "max_per_task must be a whole number of 1 or more"),
    ],
)
def test_wrong_parameters(run: Any, sparse: Path, parameter: str, message: str) -> None:
    result = run("complete", sparse, *DS, "-p", parameter, "-o", "out")
    assert result.exit_code == 2
    assert message in result.stderr
    assert not Path("out").exists()


def test_truth_of_other_tasks(run: Any, sparse: Path) -> None:
    Path("gold.csv").write_text("task,truth\nelsewhere,cat\n", encoding="utf-8")
    result = run("complete", sparse, "--score", "gold.csv", "-o", "out")
    assert result.exit_code == 1
    assert "its only task has no votes" in result.stderr
    assert not Path("out").exists()


def test_votes_that_were_filled_in_before_are_filled_in_anew(run: Any, sparse: Path) -> None:
    run("complete", sparse, "-m", "gmv", "-o", "out")
    result = run("complete", "out/completed.csv", *DS, "-o", "again")
    assert "are ignored and predicted again" in result.stderr
    assert wc.read("again/completed.csv") == wc.DSFill().complete(wc.read(sparse))
    result = run("complete", "out/completed.csv", *DS, "-o", "out")
    assert result.exit_code == 2
    assert "is an input file and would be overwritten" in result.stderr


def test_classes_that_nobody_chose_are_named_again(run: Any, sparse: Path) -> None:
    told = run("complete", sparse, *DS, "--classes", "cat,dog,emu", "-o", "out").stdout
    assert "--classes cat,dog,emu" in told
    told = run("complete", sparse, *DS, "--classes", "cat,dog,it's$HOME", "-o", "a b").stdout
    words = shlex.split(told.partition("Go on")[2])
    assert words == ["wisecrowd", "aggregate", "a b/completed.csv", "--classes", "cat,dog,it's$HOME"]


def test_what_an_earlier_run_left(run: Any, sparse: Path) -> None:
    run("complete", sparse, *DS, "--evaluate", "-o", "out")
    result = run("complete", sparse, *DS, "--parquet", "-o", "out")
    assert "completed.csv, heldout.csv in out: written by an earlier run, not by this one" in result.stderr


@pytest.mark.torch
@pytest.mark.parametrize("name", wc.methods("complete"))
def test_every_completer_runs_from_the_command_line(run: Any, sparse: Path, features: Path, name: str) -> None:
    kind: Any = wc.methods("complete")[name]
    given = ["-x", features] if kind.uses_features else []
    if any(field.name == "epochs" for field in dataclasses.fields(kind)):
        given += ["-p", "epochs=3"]
    result = run("complete", sparse, *given, "-m", name, "-o", "out", "--quiet", "--save")
    if "need an optional dependency" in result.stderr:
        pytest.skip(result.stderr)
    assert result.exit_code == 0, result.output
    filled = wc.read("out/completed.csv")
    assert filled.select_observed() == wc.read(sparse)
    assert wc.load("out/model").name == name
    assert run("cite", name).stdout.startswith("@")


def test_gold_is_refused_with_the_option_for_evaluation(run: Any, votes: Path, gold: Path) -> None:
    result = run("complete", votes, "-o", "c", "--gold", gold.name)
    assert result.exit_code == 2
    assert "to evaluate against known truth: --score gold.csv" in " ".join(result.stderr.split())
    assert "--gold " not in run("complete", "--help").stdout
