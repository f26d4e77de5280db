"""``wisecrowd aggregate`` with methods that also look at features."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc

MNLDP = ("-m", "mnldp", "-p", "k=2")


@pytest.fixture
def features(tmp_path: Path) -> Path:
    """Features of the twelve tasks, and of one that nobody labelled; cats (odd numbers) are small."""
    numbers = np.arange(12, -1, -1)
    table = pd.DataFrame({"task": [f"t{n:02d}" for n in numbers], "size": np.where(numbers % 2, 1, 5) + 0.01 * numbers})
    table.to_csv(tmp_path / "X.csv", index=False)
    return tmp_path / "X.csv"


#: Aggregators of votes on tasks; methods for comparisons take features of items.
WITH_FEATURES = [
    name
    for name, kind in wc.methods("aggregate").items()
    if kind.uses_features and "pairwise" not in kind.answer_types  # type: ignore[attr-defined]
]


@pytest.mark.parametrize("name", WITH_FEATURES)
def test_it_is_what_python_gives(run: Any, votes: Path, features: Path, name: str) -> None:
    result = run("aggregate", votes, "--features", features, "-m", name, "-o", "out", "--proba", "--save")
    assert result.exit_code == 0, result.stderr
    X = pd.read_csv(features, index_col="task")
    wanted = wc.find(name)().fit(wc.read(votes), X)  # type: ignore[attr-defined]
    labels = pd.read_csv("out/labels.csv", index_col="task")["label"]
    assert labels.to_dict() == wanted.labels_.to_dict()
    record = json.loads(Path("out/run.json").read_text(encoding="utf-8"))
    assert record["command"]["features"] == str(features)
    assert record["summary"]["features"] == {"shape": [1], "tasks": 13}
    assert np.array_equal(wc.load("out/model").posterior_, wanted.posterior_)  # type: ignore[attr-defined]


def test_says_what_was_read(run: Any, votes: Path, features: Path) -> None:
    text = run("aggregate", votes.name, "-x", features.name, *MNLDP).stdout
    assert "votes.csv and X.csv" in text
    assert "1 for each task; 1 further task not labelled" in text
    assert "mnldp, after 5 iterations" in text


def test_a_dataset_folder_has_everything_and_tasks_without_votes_are_answered_for(
    run: Any, votes: Path, features: Path
) -> None:
    from wisecrowd.io.dataset_folder import write_dataset

    X = pd.read_csv(features, index_col="task")
    write_dataset("pets", wc.Crowd.from_frame(pd.read_csv(votes), tasks=sorted(X.index)), features=X)
    result = run("aggregate", "pets", *MNLDP, "-o", "out")
    assert result.exit_code == 0, result.stderr
    labels = pd.read_csv("out/labels.csv", index_col="task")["label"]
    assert labels["t12"] == "dog"
    assert "1 task without a vote, labelled from features" in result.stdout
    plain = run("aggregate", "pets", "-o", "plain")  # features that lie beside the votes disturb nobody
    assert plain.exit_code == 0, plain.stderr


def test_features_are_needed(run: Any, votes: Path) -> None:
    result = run("aggregate", votes, *MNLDP)
    assert result.exit_code == 2
    assert "mnldp needs features of the tasks" in result.stderr
    assert "name their file with --features X.npz" in result.stderr.replace("\n", " ")


def test_features_that_nobody_looks_at(run: Any, votes: Path, features: Path) -> None:
    result = run("aggregate", votes, "-x", features)
    assert result.exit_code == 2
    assert "model-average does not use features. Leave --features out" in result.stderr


def test_results_never_overwrite_features(run: Any, votes: Path, features: Path) -> None:
    Path("out").mkdir()
    features.rename("out/labels.csv")
    result = run("aggregate", votes, "-x", "out/labels.csv", *MNLDP, "-o", "out")
    assert result.exit_code != 0
    assert "size" in Path("out/labels.csv").read_text(encoding="utf-8")


def test_the_list_and_the_page_tell_who_looks_at_features(run: Any) -> None:
    listed = run("methods").stdout
    kinds = [kind for kind in wc.methods().values() if "pairwise" not in kind.answer_types]
    assert listed.count("[features]") == 1 + sum(getattr(kind, "uses_features", False) for kind in kinds)
    assert "wisecrowd aggregate votes.csv --features X.npz -m mnldp -o results" in run("methods", "mnldp").stdout


def test_normalise_matches_features_to_votes(run: Any, tmp_path: Path) -> None:
    rows = [f"{task},{who},{task % 2}" for task in range(12) for who in ("ann", "bob")]
    (tmp_path / "votes.csv").write_text("\n".join(["task,worker,label", *rows]), encoding="utf-8")
    (tmp_path / "X.csv").write_text(
        "task,x\n" + "".join(f"{task}.0,{task % 2}\n" for task in range(12)), encoding="utf-8"
    )
    words = ("learn", "votes.csv", "-x", "X.csv", "-m", "raykar", "--json")
    refused = run(*words)
    assert refused.exit_code == 1
    assert "another spelling of 12 tasks" in " ".join(refused.stderr.split())
    assert json.loads(run(*words, "--normalise").stdout)["summary"]["features"]["tasks"] == 12


def test_the_column_of_ids_is_recognised_by_its_contents(run: Any, votes: Path) -> None:
    rows = [f"{number / 7:.2f},{number % 5},t{number:02d}" for number in range(12)]
    Path("X.csv").write_text("\n".join(["length,size,nr", *rows]) + "\n")
    result = run("aggregate", votes, "-x", "X.csv", "-m", "mnldp")
    assert result.exit_code == 0, result.output
    assert "read 'nr' as the task column, because its values are tasks of the votes" in " ".join(result.stderr.split())
