from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import wisecrowd as wc


def test_writes_votes_truth_and_workers(run: Any) -> None:
    options = ["--tasks", 200, "--workers", 20, "--classes", 3, "--votes-per-task", 4, "--seed", 5]
    result = run("simulate", "-o", "votes.csv", *options)
    assert result.exit_code == 0, result.stderr
    assert "800 votes: 200 tasks x 20 workers, 3 classes" in result.stdout
    made = wc.simulate_crowd(200, 20, 3, votes_per_task=4, random_state=5)
    assert wc.read("votes.csv") == made.crowd
    assert wc.read_truth("votes-truth.csv").to_dict() == made.truth.to_dict()
    workers = pd.read_csv("votes-workers.csv", index_col="worker")
    assert workers["kind"].to_dict() == made.kind.to_dict()
    pd.testing.assert_series_equal(workers["accuracy"], made.accuracy, atol=1e-6)
    assert workers["copies"].dropna().to_dict() == made.copies.to_dict()


def test_shares_of_workers(run: Any) -> None:
    run("simulate", "-o", "v.tsv", "--workers", 10, "--spammers", 0.2, "--experts", 0.3, "--one-button", 0.1)
    kinds = pd.read_csv("v-workers.tsv", sep="\t")["kind"].value_counts().to_dict()
    assert kinds == {"noisy": 4, "expert": 3, "spammer": 2, "one-button": 1}


def test_the_whole_mix(run: Any) -> None:
    result = run("simulate", "-o", "v.parquet", "--workers", 10, "--mix", "noisy(0.6, 0.9)=0.7,spammer=0.3")
    assert result.exit_code == 0, result.stderr
    assert pd.read_parquet("v-workers.parquet")["kind"].value_counts().to_dict() == {"noisy(0.6, 0.9)": 7, "spammer": 3}
    assert wc.read("v.parquet").n_workers == 10


def test_range_of_labels_activity_and_difficulty(run: Any) -> None:
    result = run(
        "simulate", "-o", "v.csv", "--votes-per-task", "2-5", "--activity", "zipf(1.5)", "--difficulty", "beta(1, 3)"
    )
    assert result.exit_code == 0, result.stderr
    crowd = wc.read("v.csv")
    assert set(crowd.votes_per_task) == {2, 3, 4, 5}
    assert crowd.votes_per_worker.max() > 5 * crowd.votes_per_worker.min()
    assert run("simulate", "-o", "hard.csv", "--difficulty", "0.5").exit_code == 0


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (["--spammers", "0.7", "--experts", "0.7"], "more than one"),
        (["--mix", "noisy=1", "--spammers", "0.2"], "leave out the options for single types"),
        (["--mix", "noisy"], "--mix takes types with shares, such as"),
        (["--mix", "nosy=1"], "Did you mean 'noisy'?"),
        (["--votes-per-task", "many"], "3 or 2-5"),
        (["--votes-per-task", "99"], "workers"),
        (["--activity", "lazy"], "activity"),
        (["--spammers", "1.5"], "Invalid value for '--spammers'"),
        (["--tasks", "0"], "Invalid value for '--tasks'"),
    ],
)
def test_bad_usage(run: Any, options: list[str], advice: str) -> None:
    result = run("simulate", "-o", "v.csv", *options)
    assert result.exit_code == 2
    assert advice in result.stderr
    assert not Path("v.csv").exists()


def test_never_overwrites_unasked(run: Any) -> None:
    Path("v-truth.csv").write_text("mine", encoding="utf-8")
    result = run("simulate", "-o", "v.csv")
    assert result.exit_code == 2
    assert "--force" in result.stderr
    assert Path("v-truth.csv").read_text(encoding="utf-8") == "mine"
    assert run("simulate", "-o", "v.csv", "--force").exit_code == 0


def test_an_unknown_kind_of_file(run: Any) -> None:
    result = run("simulate", "-o", "v.xlsx")
    assert result.exit_code == 2
    assert ".parquet" in result.stderr
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("name", ["s.xyz", "s"])
def test_a_name_that_does_not_tell_the_format(run: Any, tmp_path: Path, name: str) -> None:
    result = run("simulate", "-o", name)
    assert result.exit_code == 2
    assert result.stderr == f"Error: unknown suffix of {name}; use .csv, .tsv or .parquet\n"
    assert list(tmp_path.iterdir()) == []
