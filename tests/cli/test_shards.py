"""``wisecrowd aggregate`` on a folder of shards: the same answers, streamed, and gone on with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import wisecrowd as wc
from wisecrowd import simulate_crowd
from wisecrowd.base import checkpoints
from wisecrowd.utils.stored_files import StoredTable, write_table


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the same votes as CSV and as shards, and the truth of some tasks."""
    made = simulate_crowd(n_tasks=200, n_classes=3, votes_per_task=4, workers={"expert": 3, "noisy": 6})
    made.crowd.to_frame().to_csv(tmp_path / "votes.csv", index=False)
    made.crowd.to_shards(tmp_path / "crowd", votes_per_shard=150)
    truth = made.truth.rename("label").rename_axis("task")
    truth.iloc[:20].to_csv(tmp_path / "gold.csv")
    truth.iloc[10:].to_csv(tmp_path / "known.csv")
    return tmp_path


@pytest.mark.slow
def test_the_answers_are_those_of_the_file(run: Callable[..., Any], place: Path) -> None:
    for votes, output in (("votes.csv", "one"), ("crowd", "other")):
        done = run("aggregate", place / votes, "-o", place / output, "--score", place / "known.csv", "--proba")
        assert done.exit_code == 0, done.stderr
        assert "Score" in done.stdout
    one = pd.read_csv(place / "one" / "labels.csv").set_index("task")
    other = pd.read_parquet(place / "other" / "labels.parquet").set_index("task")
    assert other["label"].equals(one["label"])
    assert (other["confidence"] - one["confidence"]).abs().max() < 1e-6
    assert other.columns.tolist() == ["label", "confidence", "p_c0", "p_c1", "p_c2"]
    workers = [pd.read_csv(place / name / "workers.csv").set_index("worker").sort_index() for name in ("one", "other")]
    assert workers[1]["n_votes"].equals(workers[0]["n_votes"])
    # A file is read whole, so that each vote is compared with the other votes of its task, as in the report. Votes in shards have
    # the accuracy that the method estimates.
    crowd = wc.read(place / "votes.csv")
    estimated = wc.ModelAverage().fit(crowd).workers_["accuracy"]
    np.testing.assert_allclose(workers[1]["accuracy"], estimated.loc[workers[1].index], atol=1e-6)
    records = [json.loads((place / name / "run.json").read_text()) for name in ("one", "other")]
    for key in ("classes", "confidence"):
        assert records[1]["summary"][key] == records[0]["summary"][key]
    assert (
        records[1]["summary"]["workers"]["best"][0]["worker"] == records[0]["summary"]["workers"]["best"][0]["worker"]
    )
    assert records[1]["summary"]["score"] == pytest.approx(records[0]["summary"]["score"], abs=1e-9)
    assert records[1]["files"] == ["workers.csv", "labels.parquet", "run.json"]
    assert sorted(path.name for path in (place / "other").iterdir()) == sorted(records[1]["files"])


def test_gold_is_kept_and_not_scored(run: Callable[..., Any], place: Path) -> None:
    done = run(
        "aggregate", place / "crowd", "--gold", place / "gold.csv", "--score", place / "known.csv", "--json"
    )  # fmt: skip
    summary = json.loads(done.stdout)["summary"]
    assert summary["gold"]["tasks"] == 20
    assert summary["score"]["n_tasks"] == 180


def test_without_a_folder_nothing_is_written(run: Callable[..., Any], place: Path) -> None:
    before = sorted(place.rglob("*"))
    done = run("aggregate", place / "crowd", "-m", "one-coin")
    assert done.exit_code == 0
    assert "nothing; write the results with -o FOLDER" in done.stdout
    assert sorted(place.rglob("*")) == before


@pytest.mark.slow
def test_an_interrupted_run_goes_on(run: Callable[..., Any], place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wisecrowd.em import loop

    monkeypatch.setattr(checkpoints, "TIME_SHARE", 1e9)  # write after every pass
    passes, report = 0, loop.progress.report

    def stop(*news: Any) -> None:
        nonlocal passes
        passes += 1
        if passes == 4:
            raise KeyboardInterrupt
        report(*news)

    monkeypatch.setattr(loop.progress, "report", stop)
    assert run("aggregate", place / "crowd", "-o", place / "results").exit_code != 0
    assert [path.name for path in (place / "results").iterdir()] == [".fit.npz"]
    assert run("aggregate", place / "crowd", "-o", place / "results").exit_code == 0
    interrupted = passes
    assert run("aggregate", place / "crowd", "-o", place / "whole").exit_code == 0
    assert interrupted - 4 < passes - interrupted
    assert not (place / "results" / ".fit.npz").exists()
    one, other = (pd.read_parquet(place / name / "labels.parquet") for name in ("results", "whole"))
    assert one.equals(other)


def test_what_does_not_stream_is_refused(run: Callable[..., Any], place: Path) -> None:
    done = run("aggregate", place / "crowd", "-m", "kos")
    assert done.exit_code != 0
    assert "needs all votes in memory" in done.stderr
    done = run("aggregate", place / "votes.csv", "-m", "kos", "--engine", "ray")
    assert "runs on this machine only" in done.stderr
    done = run("aggregate", place / "crowd", "--address", "auto")
    assert "add --engine ray" in done.stderr
    for command in ("check", "compare", "diagnose"):
        done = run(command, place / "crowd")
        assert done.exit_code != 0
        assert "is a folder of shards" in done.stderr


def test_half_a_folder_says_how_to_go_on(run: Callable[..., Any], place: Path) -> None:
    (place / "crowd" / "crowd.json").unlink()
    done = run("aggregate", place / "crowd")
    assert done.exit_code != 0
    assert "interrupted" in done.stderr
    assert "wisecrowd shard" in done.stderr


def test_changed_shards_are_refused_unless_asked_not_to(run: Callable[..., Any], place: Path) -> None:
    file = place / "crowd" / "shards" / "000000.votes.arrow"
    pair = StoredTable(file, "").read_numbers("pair", [np.int32]).copy()
    write_table(file, {"pair": pa.array(pair[::-1].copy())})
    done = run("aggregate", place / "crowd", "-o", place / "results")
    assert done.exit_code == 1
    assert "was changed after it was written" in " ".join(done.stderr.split())
    assert "--no-verify" in done.stderr
    assert "Traceback" not in done.stderr
    done = run("aggregate", place / "crowd", "-o", place / "results", "--no-verify")
    assert done.exit_code == 0, done.stderr
    pair[5] = -7
    write_table(file, {"pair": pa.array(pair)})
    done = run("aggregate", place / "crowd", "-o", place / "other", "--no-verify")
    assert done.exit_code == 1
    assert "has the pair -7" in " ".join(done.stderr.split())
    done = run("aggregate", place / "votes.csv", "--no-verify")
    assert "these votes are not in shards" in " ".join(done.stderr.split())


@pytest.mark.parametrize("option", [("--normalise",), ("--task", "id"), ("--duplicates", "last")])
def test_options_for_files_are_refused_on_shards(run: Callable[..., Any], place: Path, option: tuple[str, ...]) -> None:
    done = run("aggregate", place / "crowd", *option)
    assert done.exit_code == 2
    assert f"{' '.join(option)} applies to files, but" in " ".join(done.stderr.split())


@pytest.mark.slow
def test_columns_of_gold_are_taken_on_shards(run: Callable[..., Any], place: Path) -> None:
    gold = pd.read_csv(place / "gold.csv").rename(columns={"task": "nr"})
    gold.to_csv(place / "gold.csv", index=False)
    for option in ("--task", "--gold-task"):
        done = run("aggregate", place / "crowd", "--gold", place / "gold.csv", option, "nr", "--json")
        assert json.loads(done.stdout)["summary"]["gold"]["tasks"] == 20
