"""``wisecrowd learn``: features and votes in, labels, predictions and a model out."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc

RAYKAR = ("-m", "raykar")


def rows_of(path: str | Path) -> list[dict[str, str]]:
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def features_of(numbers: list[int]) -> pd.DataFrame:
    """Cats (odd numbers) are small, dogs are large."""
    rng = np.random.default_rng(0)
    size = [(-1.0 if number % 2 else 1.0) + 0.1 * rng.normal() for number in numbers]
    table = pd.DataFrame({"size": size, "noise": rng.normal(size=len(numbers))})
    return table.set_axis(pd.Index([f"t{number:02d}" for number in numbers], name="task"))


@pytest.fixture
def features(tmp_path: Path) -> Path:
    """Features of the twelve tasks and of one that nobody labelled, in another order than the votes."""
    features_of(list(range(12, -1, -1))).to_csv(tmp_path / "X.csv")
    return tmp_path / "X.csv"


@pytest.fixture
def new(tmp_path: Path) -> Path:
    """Features of two further tasks, a cat and a dog."""
    features_of([21, 22])[["noise", "size"]].to_csv(tmp_path / "new.csv")
    return tmp_path / "new.csv"


def test_writes_labels_workers_model_and_record(run: Any, votes: Path, features: Path) -> None:
    result = run("learn", votes, "--features", features, *RAYKAR, "-p", "l2=3", "-o", "out")
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in Path("out").iterdir()) == ["labels.csv", "model", "run.json", "workers.csv"]
    fitted = wc.Raykar(l2=3.0).fit(pd.read_csv(features, index_col="task"), wc.read(votes))
    labels = rows_of("out/labels.csv")
    assert list(labels[0]) == ["task", "label", "confidence"]
    assert {row["task"]: row["label"] for row in labels} == fitted.labels_.to_dict()
    expected = wc.estimate_confidence(fitted, wc.read(votes)).confidence
    np.testing.assert_allclose([float(row["confidence"]) for row in labels], expected, atol=1e-6)
    accuracy = {row["worker"]: float(row["accuracy"]) for row in rows_of("out/workers.csv")}
    assert accuracy == pytest.approx(fitted.workers_["accuracy"].to_dict(), abs=1e-6)
    record = json.loads(Path("out/run.json").read_text(encoding="utf-8"))
    assert (record["method"], record["parameters"]["l2"]) == ("raykar", 3.0)
    assert record["command"]["features"] == str(features)
    assert record["files"] == ["labels.csv", "workers.csv", "model", "run.json"]
    loaded = wc.load("out/model")
    assert isinstance(loaded, wc.Raykar)
    np.testing.assert_allclose(loaded.predict_proba([[-1.0, 0.0]]), fitted.predict_proba([[-1.0, 0.0]]), rtol=1e-12)


def test_says_the_handful_of_things_a_person_wants(run: Any, votes: Path, features: Path, new: Path) -> None:
    text = run("learn", votes.name, "-x", features.name, *RAYKAR, "--predict", new.name, "-o", "out").stdout
    lines = {line.split()[0]: line for line in text.splitlines() if not line.startswith(" ")}
    assert list(lines) == [
        "Read", "Votes", "Features", "Method", "Classes", "Accuracy", "Certainty", "Flagged", "Best", "Worst", "Predicted", "Wrote",
    ]  # fmt: skip
    assert lines["Read"].endswith("votes.csv and X.csv")
    assert "2 for each task; 1 further task not labelled" in lines["Features"]
    assert "raykar, converged after" in lines["Method"]
    assert "2 tasks, mean confidence 0." in lines["Predicted"]
    assert max(map(len, text.splitlines())) <= 80


def test_says_how_much_the_features_add(run: Any, votes: Path, features: Path) -> None:
    result = run("learn", votes, "--features", features)
    assert "by held-out votes" in " ".join(result.stdout.split())
    assert "by held-out votes" not in run("learn", votes, "--features", features, *RAYKAR).stdout


def test_predictions(run: Any, votes: Path, features: Path, new: Path) -> None:
    assert run("learn", votes, "-x", features, *RAYKAR, "--predict", new, "-o", "out").exit_code == 0
    rows = rows_of("out/predictions.csv")
    assert [(row["task"], row["label"]) for row in rows] == [("t21", "cat"), ("t22", "dog")]
    loaded = wc.load("out/model")
    assert isinstance(loaded, wc.Raykar)
    wanted = loaded.predict_proba(pd.read_csv(new, index_col="task")).max(axis=1)
    np.testing.assert_allclose([float(row["confidence"]) for row in rows], wanted, atol=1e-6)
    again = run("learn", votes, "-x", features, *RAYKAR, "-o", "out")
    assert "predictions.csv in out: written by an earlier run, not by this one" in again.stderr


@pytest.mark.slow
def test_predictions_are_calibrated(run: Any, tmp_path: Path) -> None:
    made = wc.simulate_crowd(n_tasks=80, n_workers=6, n_classes=2, votes_per_task=3, random_state=0)
    votes, features = tmp_path / "votes.csv", tmp_path / "X.csv"
    made.crowd.to_frame().to_csv(votes, index=False)
    rng = np.random.default_rng(0)
    pd.DataFrame({"x": (made.truth == "c1") + rng.normal(size=80)}).rename_axis("task").to_csv(features)
    sharpness = []
    for options in ((), ("--predict", features), ("--predict", features, "-p", "calibration=0")):
        assert run("learn", votes, "-x", features, *RAYKAR, *options, "-o", "out").exit_code == 0
        sharpness.append(wc.load("out/model").prediction_sharpness_)  # type: ignore[attr-defined]
    assert sharpness[0] == sharpness[1] != 1.0  # a saved model is calibrated for later predictions
    assert sharpness[2] == 1.0


def test_the_method_of_choice_is_the_default(run: Any, votes: Path, features: Path) -> None:
    if "concord" not in wc.methods():
        pytest.skip("concord is not here yet")
    result = run("learn", votes, "-x", features, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["method"] == "concord"


@pytest.mark.parametrize("form", ["npz", "parquet", "tsv"])
def test_all_forms_of_features_give_the_same(run: Any, votes: Path, features: Path, form: str) -> None:
    table = pd.read_csv(features, index_col="task")
    if form == "npz":
        np.savez("Y.npz", task=table.index.to_numpy(dtype=str), X=table.to_numpy())
    elif form == "parquet":
        table.to_parquet("Y.parquet")
    else:
        table.to_csv("Y.tsv", sep="\t")
    plain = json.loads(run("learn", votes, "-x", features, *RAYKAR, "--json").stdout)
    other = json.loads(run("learn", votes, "-x", f"Y.{form}", *RAYKAR, "--json").stdout)
    assert other["objective"] == pytest.approx(plain["objective"])
    assert other["summary"]["classes"] == plain["summary"]["classes"]


def test_a_dataset_folder_has_everything(run: Any, votes: Path, features: Path) -> None:
    from wisecrowd.io.dataset_folder import write_dataset

    write_dataset("pets", wc.read(votes), features=pd.read_csv(features, index_col="task"))
    result = run("learn", "pets", *RAYKAR)
    assert result.exit_code == 0, result.stderr
    assert "pets and pets" in result.stdout
    write_dataset("bare", wc.read(votes))
    result = run("learn", "bare", *RAYKAR)
    assert result.exit_code == 1
    assert "this folder has no features" in result.stderr


def test_ids_meet_though_one_file_has_numbers_and_the_other_text(run: Any) -> None:
    Path("votes.csv").write_text("task,worker,label\n7,a,x\n7,b,x\n8,a,y\n8,b,y\n", encoding="utf-8")
    np.savez("X.npz", task=[8, 7], X=[[1.0], [0.0]])
    result = run("learn", "votes.csv", "-x", "X.npz", *RAYKAR, "--predict", "X.npz", "-o", "out")
    assert result.exit_code == 0, result.stderr
    assert [(row["task"], row["label"]) for row in rows_of("out/predictions.csv")] == [("8", "y"), ("7", "x")]


def test_gold_and_score(run: Any, votes: Path, features: Path, gold: Path, tmp_path: Path) -> None:
    some = tmp_path / "some.csv"
    some.write_text("\n".join(gold.read_text(encoding="utf-8").splitlines()[:4]) + "\n", encoding="utf-8")
    told = run("learn", votes, "-x", features, *RAYKAR, "--gold", some, "--score", gold, "--json")
    summary = json.loads(told.stdout)["summary"]
    assert summary["gold"]["tasks"] == 3
    assert summary["score"]["n_tasks"] == 9
    assert summary["score"]["gold_left_out"] == 3
    assert summary["score"]["accuracy"] == 1


def test_predictions_are_scored_where_their_truth_is_known(run: Any, votes: Path, features: Path, new: Path) -> None:
    Path("known.csv").write_text("task,truth\nt00,dog\nt21,cat\nt22,cat\n", encoding="utf-8")
    options = ("-x", features, *RAYKAR, "--predict", new, "--score", "known.csv")
    summary = json.loads(run("learn", votes, *options, "--json").stdout)["summary"]
    assert (summary["score"]["n_tasks"], summary["score"]["accuracy"]) == (1, 1)
    assert (summary["predicted"]["score"]["n_tasks"], summary["predicted"]["score"]["accuracy"]) == (2, 0.5)
    assert "accuracy 50.0%" in run("learn", votes, *options).stdout.partition("Predicted")[2]
    Path("known.csv").write_text("task,truth\nt21,cat\n", encoding="utf-8")
    summary = json.loads(run("learn", votes, *options, "--json").stdout)["summary"]
    assert "score" not in summary
    assert summary["predicted"]["score"]["n_tasks"] == 1
    Path("known.csv").write_text("task,truth\nt99,cat\n", encoding="utf-8")
    assert run("learn", votes, *options).exit_code == 1


def test_without_a_folder_nothing_is_written(run: Any, votes: Path, features: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    result = run("learn", votes, "-x", features, *RAYKAR)
    assert "nothing; write the results with -o FOLDER" in result.stdout
    assert sorted(tmp_path.iterdir()) == before
    result = run("learn", votes, "-x", features, *RAYKAR, "--proba")
    assert result.exit_code == 2
    assert "-o FOLDER" in result.stderr


def test_json_quiet_and_proba(run: Any, votes: Path, features: Path) -> None:
    result = run("learn", votes, "-x", features, *RAYKAR, "-o", "out", "--json", "--proba")
    assert json.loads(result.stdout) == json.loads(Path("out/run.json").read_text(encoding="utf-8"))
    assert list(rows_of("out/posterior.csv")[0]) == ["task", "cat", "dog"]
    result = run("learn", votes, "-x", features, *RAYKAR, "-o", "out2", "--quiet")
    assert (result.exit_code, result.output) == (0, "")


def test_a_task_column_by_another_name(run: Any, votes: Path, features: Path) -> None:
    votes.write_text(votes.read_text(encoding="utf-8").replace("task,", "photo,", 1), encoding="utf-8")
    assert run("learn", votes, "-x", features, *RAYKAR, "--task", "photo").exit_code == 0
    features.write_text(features.read_text(encoding="utf-8").replace("task,", "photo,", 1), encoding="utf-8")
    result = run("learn", votes, "-x", features, *RAYKAR, "--task", "photo")
    assert (result.exit_code, result.stderr) == (0, "")


def test_features_are_needed(run: Any, votes: Path) -> None:
    result = run("learn", votes, *RAYKAR)
    assert result.exit_code == 2
    assert "name their file with --features X.npz" in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task,size\nt01,1\n", "no features for 11 tasks, for example 't00'"),
        ("task\nt01\n", "there are no features in it"),
        (None, "X.csv: there is no such file"),
    ],
    ids=["other tasks", "no columns", "no file"],
)
def test_bad_features(run: Any, votes: Path, text: str | None, message: str) -> None:
    if text is not None:
        Path("X.csv").write_text(text, encoding="utf-8")
    result = run("learn", votes, "-x", "X.csv", *RAYKAR, "-o", "out")
    assert result.exit_code == 1
    assert message in result.stderr
    assert not Path("out").exists()


def test_strings_dates_and_missing_values_are_encoded(run: Any, votes: Path, features: Path) -> None:
    table = pd.read_csv(features, index_col="task").assign(day="2026-11-18", noise=None)
    table["animal"] = ["small" if size < 0 else "" for size in table["size"]]
    table.loc["t03", "size"] = np.nan
    table.to_csv(features)
    result = run("learn", votes, "-x", features, *RAYKAR, "-o", "out")
    assert result.exit_code == 0, result.output
    learner = wc.load("out/model")
    assert learner.feature_names_ == ["size", "noise", "day", "animal"]  # type: ignore[attr-defined]
    assert "animal=small" in learner.feature_encoder_.feature_names  # type: ignore[attr-defined]
    table.assign(size="big").to_csv("new.csv")
    result = run("learn", votes, "-x", features, *RAYKAR, "--predict", "new.csv")
    assert result.exit_code == 1
    assert "new.csv: the column 'size' holds numbers in training" in result.stderr


def test_texts_instead_of_features(run: Any, votes: Path) -> None:
    words = {0: "it barks and runs", 1: "it purrs and sleeps"}
    tasks = pd.DataFrame(
        {"task": [f"t{n:02d}" for n in range(14)], "text": [words[n % 2] + f" {n}" for n in range(14)]}
    )
    tasks.to_csv("tasks.csv", index=False)
    result = run("learn", votes, "--texts", "tasks.csv", *RAYKAR, "--predict", "tasks.csv", "-o", "out", "--json")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record["command"]["encoder"] == "text"
    assert record["summary"]["features"]["tasks"] == 14
    predictions = {row["task"]: row["label"] for row in rows_of("out/predictions.csv")}
    assert predictions["t12"] == "dog"
    assert predictions["t13"] == "cat"
    assert wc.load("out/model").predict(["it barks"]).tolist() == ["dog"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--texts", "tasks.csv", "-x", "X.csv"), "features and --texts exclude each other"),
        (("-x", "X.csv", "--encoder", "small"), "--encoder needs the contents of the tasks"),
        (("-x", "X.csv", "--text-column", "a"), "--text-column names a column of --texts"),
        (("--texts", "tasks.csv", "--encoder", "no-such-model"), "no-such-model"),
    ],
)
def test_sources_of_features(run: Any, votes: Path, options: tuple[str, ...], message: str) -> None:
    Path("tasks.csv").write_text("task,text\n" + "".join(f"t{n:02d},word\n" for n in range(12)), encoding="utf-8")
    result = run("learn", votes, *RAYKAR, *options)
    assert result.exit_code != 0
    assert message in " ".join(result.stderr.split())


def test_new_tasks_with_other_features(run: Any, votes: Path, features: Path) -> None:
    features_of([21])[["size"]].to_csv("new.csv")
    result = run("learn", votes, "-x", features, *RAYKAR, "--predict", "new.csv", "-o", "out")
    assert result.exit_code == 1
    assert "new.csv: X must have the columns of training, in any order; this table lacks 'noise'" in result.stderr
    assert not Path("out").exists()


def test_methods_of_the_other_kind_are_sent_to_their_command(run: Any, votes: Path, features: Path) -> None:
    result = run("learn", votes, "-x", features, "-m", "one-coin")
    assert result.exit_code == 2
    assert "one-coin belongs to another command: wisecrowd aggregate -m one-coin" in result.stderr
    result = run("aggregate", votes, "-m", "raykar")
    assert result.exit_code == 2
    assert "raykar belongs to another command: wisecrowd learn -m raykar" in result.stderr
    assert "Did you mean 'raykar'?" in run("learn", votes, "-x", features, "-m", "raykaar").stderr


def test_a_wrong_parameter(run: Any, votes: Path, features: Path) -> None:
    result = run("learn", votes, "-x", features, *RAYKAR, "-p", "l2=much")
    assert result.exit_code == 2
    assert "l2 of raykar must be a finite number or none; got 'much'" in result.stderr


def test_results_never_overwrite_what_is_read(run: Any, votes: Path, features: Path, new: Path) -> None:
    run("learn", votes, "-x", features, *RAYKAR, "--predict", new, "-o", "out")
    new.rename("out/predictions.csv")
    result = run("learn", votes, "-x", features, *RAYKAR, "--predict", "out/predictions.csv", "-o", "out")
    assert result.exit_code == 2
    assert "is an input file and would be overwritten" in result.stderr


@pytest.mark.torch
@pytest.mark.parametrize("name", wc.methods("learn"))
def test_every_learner_runs_from_the_command_line(run: Any, votes: Path, features: Path, name: str) -> None:
    by_epochs = any(field.name == "epochs" for field in dataclasses.fields(wc.methods("learn")[name]))
    few = ["-p", "epochs=3"] if by_epochs else []
    result = run("learn", votes, "-x", features, "-m", name, *few, "-o", "out", "--quiet")
    if "need an optional dependency" in result.stderr:
        pytest.skip(result.stderr)
    assert result.exit_code == 0, result.output
    assert wc.load("out/model").name == name
    assert run("cite", name).stdout.startswith("@")


def test_the_votes_are_no_features(run: Any, votes: Path) -> None:
    result = run("learn", votes, "-x", votes, *RAYKAR)
    assert result.exit_code != 0
    assert "is the file of the votes; expected another file" in " ".join(result.stderr.split())
    Path("copy.csv").write_bytes(votes.read_bytes())
    result = run("learn", votes, "-x", "copy.csv", *RAYKAR)
    assert result.exit_code != 0
    assert "it looks like a file of votes, with the columns 'worker', 'label'" in " ".join(result.stderr.split())


@pytest.fixture
def crowd_with_features(tmp_path: Path) -> tuple[Path, pd.DataFrame, pd.Series]:
    """Votes on 120 tasks, useful features and the truth."""
    made = wc.simulate_crowd(n_tasks=120, n_workers=8, n_classes=2, votes_per_task=3, random_state=0)
    path = tmp_path / "many.csv"
    wc.write(made.crowd, path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(120, 3)), columns=list("abc"), index=made.truth.index.rename("task"))
    table["a"] += 2.0 * (made.truth == "c1")
    return path, table, made.truth


def test_warns_about_features_of_other_tasks(
    run: Any, crowd_with_features: tuple[Path, pd.DataFrame, pd.Series]
) -> None:
    votes, table, _ = crowd_with_features
    table.to_csv("X.csv")
    assert "features may belong" not in run("learn", votes, "-x", "X.csv", *RAYKAR).stderr
    table.set_axis(np.roll(table.index, 1)).rename_axis("task").to_csv("rolled.csv")
    result = run("learn", votes, "-x", "rolled.csv", *RAYKAR)
    assert result.exit_code == 0
    assert "Warning: the features may belong to other tasks, or say nothing about the labels" in result.stderr
    assert f"'t000' has {table['a'].iloc[1]:.3g}, " in result.stderr


def test_warns_about_columns_that_are_no_features(
    run: Any, crowd_with_features: tuple[Path, pd.DataFrame, pd.Series]
) -> None:
    votes, table, truth = crowd_with_features
    table.assign(nr=range(120), gold=truth).to_csv("X.csv")
    result = run("learn", votes, "-x", "X.csv", *RAYKAR)
    assert "Warning: the feature column 'gold' may hold the answer: its values stand for the classes" in result.stderr
    assert "Warning: the feature column 'nr' numbers the rows or repeats the task ids" in result.stderr
    assert "'a'" not in result.stderr
    np.savez("X.npz", task=table.index.to_numpy(dtype=str), X=table.assign(nr=range(120)).to_numpy())
    assert "the feature column 'number 3' numbers the rows" in run("learn", votes, "-x", "X.npz", *RAYKAR).stderr


def test_predictions_of_training_tasks_are_noted(run: Any, votes: Path, features: Path, new: Path) -> None:
    result = run("learn", votes, "-x", features, *RAYKAR, "--predict", features, "-o", "out")
    assert "Note: 12 of 13 tasks were training tasks" in result.stderr
    assert "out/labels.csv has the labels by votes and features" in result.stderr
    assert "Note" not in run("learn", votes, "-x", features, *RAYKAR, "--predict", new).stderr
    table = pd.read_csv(features, index_col="task")
    table.set_axis(np.roll(table.index, 1)).rename_axis("task").to_csv("rolled.csv")
    result = run("learn", votes, "-x", features, *RAYKAR, "--predict", "rolled.csv", "-q")
    assert "have the id of a training task, but other features than it had" in result.stderr


def test_tasks_without_features_can_be_left_out(run: Any, votes: Path, features: Path, gold: Path) -> None:
    table = pd.read_csv(features, index_col="task")
    table.iloc[::2].to_csv("half.csv")
    refused = run("learn", votes, "-x", "half.csv", *RAYKAR)
    assert refused.exit_code == 1
    assert "wisecrowd learn --features-missing drop" in " ".join(refused.stderr.split())
    options = ("--features-missing", "drop", "--score", gold)
    result = run("learn", votes, "-x", "half.csv", *RAYKAR, *options, "-o", "out")
    assert result.exit_code == 0, result.output
    assert "left out 6 tasks of 12 and" in result.stderr
    crowd = wc.read(votes)
    kept = crowd[crowd.tasks.isin(table.index[::2])]
    labels = {row["task"]: row["label"] for row in rows_of("out/labels.csv")}
    assert set(labels) == set(kept.tasks)
    record = json.loads(Path("out/run.json").read_text(encoding="utf-8"))
    assert record["command"]["features_missing"] == "drop"
    assert "left out" not in run("learn", votes, "-x", features, *RAYKAR, "--features-missing", "drop").stderr
    wrong = run("learn", votes, "-x", features, *RAYKAR, "--features-missing", "skip")
    assert (wrong.exit_code, "takes error or drop; got 'skip'" in wrong.stderr) == (2, True)


def test_tasks_without_texts_can_be_left_out(run: Any, votes: Path) -> None:
    lines = [f"t{n:02d},it {['barks', 'purrs'][n % 2]} {n}\n" for n in range(8)]
    Path("tasks.csv").write_text("task,text\n" + "".join(lines), encoding="utf-8")
    refused = run("learn", votes, "--texts", "tasks.csv", *RAYKAR)
    assert "--features-missing drop" in " ".join(refused.stderr.split())
    result = run("learn", votes, "--texts", "tasks.csv", *RAYKAR, "--features-missing", "drop", "-o", "out")
    assert result.exit_code == 0, result.output
    assert len(rows_of("out/labels.csv")) == 8


def test_warns_about_codes_for_missing_values(
    run: Any, crowd_with_features: tuple[Path, pd.DataFrame, pd.Series]
) -> None:
    votes, table, _ = crowd_with_features
    table.iloc[:9, 1] = -999
    table.to_csv("X.csv")
    result = run("learn", votes, "-x", "X.csv", *RAYKAR, "--predict", "X.csv")
    assert "Warning: the feature column 'b' has 9 times the value -999, far from all others" in result.stderr
    assert "Warning: X.csv: the feature column 'b' has 9 times the value -999" in result.stderr
    table.replace(-999, np.nan).to_csv("X.csv")
    result = run("learn", votes, "-x", "X.csv", *RAYKAR)
    assert (result.exit_code, "-999" in result.stderr) == (0, False)
