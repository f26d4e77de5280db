"""``wisecrowd predict``: a saved model labels new tasks."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc


def make_features(numbers: range) -> pd.DataFrame:
    size = [(-1.0 if number % 2 else 1.0) + 0.1 * np.sin(number) for number in numbers]
    return pd.DataFrame(
        {"size": size, "noise": np.cos(numbers)}, index=pd.Index([f"t{n:02d}" for n in numbers], name="task")
    )


@pytest.fixture
def model(votes: Path) -> Path:
    wc.Raykar().fit(make_features(range(12)), wc.read(votes)).save("results/model")
    return Path("results/model")


@pytest.fixture
def new() -> pd.DataFrame:
    return make_features(range(20, 26))


@pytest.fixture
def run_here(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    return run


@pytest.mark.parametrize("form", ["csv", "parquet", "npz"])
def test_predictions_are_those_of_the_model(run_here: Any, model: Path, new: pd.DataFrame, form: str) -> None:
    if form == "npz":
        np.savez("new.npz", task=new.index.to_numpy(dtype=str), X=new.to_numpy())
    else:
        getattr(new, f"to_{form}")(f"new.{form}")
    result = run_here("predict", model, f"new.{form}", "--proba", "-o", "predictions.csv")
    assert result.exit_code == 0, result.output
    table = pd.read_csv("predictions.csv", index_col="task")
    expected = wc.load(model).predict_proba(new)  # type: ignore[attr-defined]
    assert list(table.columns) == ["label", "confidence", "P(cat)", "P(dog)"]
    np.testing.assert_allclose(table[["P(cat)", "P(dog)"]], expected, atol=1e-6)
    np.testing.assert_allclose(table["confidence"], expected.max(axis=1), atol=1e-6)
    assert table["label"].tolist() == ["dog", "cat"] * 3
    assert "6 tasks, mean confidence" in result.stdout
    assert "not calibrated" in result.stdout


def test_results_of_learn_are_a_model(run_here: Any, votes: Path, new: pd.DataFrame) -> None:
    make_features(range(12)).to_csv("X.csv")
    new.to_csv("new.csv")
    assert run_here("learn", votes, "-x", "X.csv", "-m", "raykar", "-o", "results").exit_code == 0
    pd.DataFrame({"task": new.index, "label": ["dog", "cat"] * 3}).to_csv("truth.csv", index=False)
    result = run_here("predict", "results", "new.csv", "--score", "truth.csv", "--json", "-o", "predictions.parquet")
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert summary["labels"] == {"dog": 3, "cat": 3}
    assert summary["score"]["accuracy"] == 1
    assert summary["is_calibrated"]
    assert list(pd.read_parquet("predictions.parquet").columns) == ["task", "label", "confidence"]
    text = run_here("predict", "results", "new.csv", "--score", "truth.csv").stdout
    assert "Score" in text
    assert "nothing; write the predictions with -o FILE" in text


def test_texts(run_here: Any, votes: Path) -> None:
    words = ["it barks and runs", "it purrs and sleeps"]
    pd.DataFrame({"task": [f"t{n:02d}" for n in range(12)], "text": words * 6}).to_csv("tasks.csv", index=False)
    assert run_here("learn", votes, "--texts", "tasks.csv", "-m", "raykar", "-o", "results").exit_code == 0
    pd.DataFrame({"id": ["a", "b"], "words": ["it runs", "it sleeps"]}).to_csv("new.csv", index=False)
    options = ("--texts", "new.csv", "--text-column", "words", "--task", "id", "-o", "out.tsv", "-q")
    result = run_here("predict", "results/model", *options)
    assert (result.exit_code, result.stdout) == (0, ""), result.output
    assert pd.read_csv("out.tsv", sep="\t")["label"].tolist() == ["dog", "cat"]
    result = run_here("predict", "results/model")
    assert "this model was trained with --texts FILE" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("new.csv", "-o", "new.csv"), "is an input file and would be overwritten"),
        (("new.csv", "-o", "new.txt"), "-o takes a file .csv, .tsv or .parquet"),
        (("new.csv", "--proba"), "name it with -o FILE"),
        (("--texts", "new.csv"), "--texts does not fit: this model was trained with a file of features"),
        ((), "name the new tasks"),
        (("new.csv", "--texts", "new.csv"), "features and --texts exclude each other"),
        (("other.csv",), "other.csv: X must have the columns of training"),
        (("new.csv", "--score", "unrelated.csv"), "none of the 1 tasks with truth is predicted"),
    ],
)
def test_what_is_wrong(run_here: Any, model: Path, new: pd.DataFrame, words: tuple[str, ...], message: str) -> None:
    new.to_csv("new.csv")
    new.rename(columns={"size": "length"}).to_csv("other.csv")
    Path("unrelated.csv").write_text("task,label\nx,cat\n", encoding="utf-8")
    result = run_here("predict", model, *words)
    assert result.exit_code != 0
    assert message in " ".join(result.stderr.split())


def test_an_aggregator_does_not_predict(run_here: Any, votes: Path) -> None:
    wc.MajorityVote().fit(wc.read(votes)).save("majority")
    result = run_here("predict", "majority", "X.csv")
    assert result.exit_code != 0
    assert "majority-vote, which does not predict new tasks" in " ".join(result.stderr.split())


def test_columns_of_the_truth_are_named(run_here: Any, model: Path, new: pd.DataFrame) -> None:
    new.to_csv("new.csv")
    rows = "".join(f"{task},{label},x\n" for task, label in zip(new.index, ["dog", "cat"] * 3, strict=True))
    Path("truth.csv").write_text(f"nr,expert_says,note\n{rows}")
    words = ("predict", model, "new.csv", "--gold-task", "nr", "--gold-label", "expert_says")
    result = run_here(*words, "--score", "truth.csv", "--json")
    assert json.loads(result.stdout)["score"]["accuracy"] == 1
    assert "give it with --score FILE" in run_here(*words).stderr
    recognised = run_here(*words[:3], "--score", "truth.csv", "--json")
    assert json.loads(recognised.stdout)["score"]["accuracy"] == 1
    assert "read 'nr' as the task column" in " ".join(recognised.stderr.split())


def test_features_before_the_model_are_pointed_out(run_here: Any, model: Path, new: pd.DataFrame) -> None:
    new.to_csv("new.csv")
    for folder in (model, model.parent):
        result = run_here("predict", "new.csv", folder)
        assert result.exit_code == 2
        assert f"give the model first: wisecrowd predict {folder} new.csv" in result.stderr


def test_features_in_another_unit_are_named(run_here: Any, model: Path) -> None:
    new = make_features(range(20, 40))
    new.to_csv("new.csv")
    new.assign(size=255 * new["size"]).to_csv("scaled.csv")
    assert run_here("predict", model, "new.csv").stderr == ""
    result = run_here("predict", model, "scaled.csv")
    assert result.exit_code == 0, result.output
    assert "Warning: 1 of 2 features lie far outside their range in training: 'size' from -" in result.stderr
    assert "(training: -1.1 to 1.1). They may have other units" in result.stderr


def test_a_model_of_an_earlier_version_predicts(run_here: Any, model: Path) -> None:
    (model / "feature_profile_.npz").unlink()
    state = json.loads((model / "method.json").read_text(encoding="utf-8"))
    state["parts"].remove("feature_profile_")
    state["sha256"].pop("feature_profile_.npz")
    (model / "method.json").write_text(json.dumps(state), encoding="utf-8")
    new = make_features(range(20, 40))
    new.assign(size=255 * new["size"]).to_csv("scaled.csv")
    result = run_here("predict", model, "scaled.csv", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads(result.stdout)["training_tasks"] == 0
    make_features(range(12)).to_csv("same.csv")
    assert "Note: 12 of 12 tasks were training tasks" in run_here("predict", model, "same.csv").stderr  # by id


def test_predictions_of_training_tasks_are_noted(run_here: Any, model: Path) -> None:
    Path("results/labels.csv").write_text("task,label,confidence\n", encoding="utf-8")
    table = make_features(range(9, 15))
    table.to_csv("new.csv")
    note = "Note: 3 of 6 tasks were training tasks, for example 't09', 't10', 't11'."
    for folder in ("results", "results/model"):
        result = run_here("predict", folder, "new.csv")
        assert note in result.stderr
        assert "results/labels.csv has the labels by votes and features" in result.stderr
    assert json.loads(run_here("predict", model, "new.csv", "--json").stdout)["training_tasks"] == 3
    table.set_axis([f"n{n}" for n in range(6)]).rename_axis("task").to_csv("renamed.csv")
    assert (
        "Note: 3 of 6 tasks were training tasks, for example 'n0'" in run_here("predict", model, "renamed.csv").stderr
    )
    assert run_here("predict", model, "new.csv", "-q").stderr == ""


def test_training_tasks_with_rows_of_other_tasks(run_here: Any, model: Path) -> None:
    table = make_features(range(12))
    table.set_axis(np.roll(table.index, 1)).rename_axis("task").to_csv("rolled.csv")
    result = run_here("predict", model, "rolled.csv")
    assert "Warning: 12 tasks of 12 have the id of a training task, but other features than it had" in result.stderr
    assert "Note" not in result.stderr


def test_features_without_names_are_matched_by_position(run_here: Any, model: Path, new: pd.DataFrame) -> None:
    np.savez("new.npz", task=new.index.to_numpy(dtype=str), X=new.to_numpy())
    result = run_here("predict", model, "new.npz")
    assert "no names and are matched by position with those of training: 'size', 'noise'" in result.stderr


@pytest.fixture
def sized_model(tmp_path: Path) -> Path:
    """Model of 100 tasks with three features of different sizes."""
    made = wc.simulate_crowd(n_tasks=100, n_workers=8, n_classes=2, votes_per_task=3, random_state=0)
    wc.Raykar().fit(draw_sizes(100, 0).set_axis(made.crowd.tasks), made.crowd).save(tmp_path / "sized")
    return tmp_path / "sized"


def draw_sizes(n: int, seed: int) -> pd.DataFrame:
    rows = np.random.default_rng(seed).normal([170, 70, 30], [10, 9, 6], size=(n, 3))
    index = pd.Index([f"new {seed} {row}" for row in range(n)], name="task")
    return pd.DataFrame(rows, columns=["height", "weight", "age"], index=index)


def test_columns_in_another_order_are_named(run_here: Any, sized_model: Path) -> None:
    new = draw_sizes(60, 1)
    new.to_csv("new.csv")
    assert run_here("predict", sized_model, "new.csv").stderr == ""
    new.set_axis(["height", "age", "weight"], axis=1).to_csv("new.csv")
    message = "2 of 3 features have values like other features in training: 'weight' like 'age', 'age' like 'weight'"
    assert message in run_here("predict", sized_model, "new.csv").stderr
    np.savez("new.npz", task=new.index.to_numpy(dtype=str), X=new.to_numpy()[:, [0, 2, 1]])
    result = run_here("predict", sized_model, "new.npz")
    assert message in result.stderr
    assert "matched by position" in result.stderr


def test_standardised_features_are_reported(run_here: Any, sized_model: Path) -> None:
    new = draw_sizes(60, 1)
    ((new - new.mean()) / new.std()).to_csv("new.csv")
    assert "the features have mean 0 and standard deviation 1" in run_here("predict", sized_model, "new.csv").stderr


def test_codes_for_missing_values_are_reported(run_here: Any, sized_model: Path) -> None:
    new = draw_sizes(60, 1)
    new.iloc[:7, 2] = -999
    new.to_csv("new.csv")
    message = "new.csv: the feature column 'age' has 7 times the value -999"
    assert message in run_here("predict", sized_model, "new.csv").stderr


def test_a_profile_without_distributions_is_read(run_here: Any, sized_model: Path) -> None:
    place = sized_model / "feature_profile_.npz"
    with np.load(place) as file:
        arrays = {name: file[name] for name in ("lowest", "highest", "spread", "digests")}
    np.savez(place, **arrays)
    state = json.loads((sized_model / "method.json").read_text(encoding="utf-8"))
    state["sha256"][place.name] = hashlib.sha256(place.read_bytes()).hexdigest()
    (sized_model / "method.json").write_text(json.dumps(state), encoding="utf-8")
    new = draw_sizes(60, 1)
    new.assign(age=new["age"] + 6).to_csv("new.csv")
    result = run_here("predict", sized_model, "new.csv")
    assert (result.exit_code, result.stderr) == (0, "")
