from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import wisecrowd as wc

pytest.importorskip("duckdb", reason="sharding files needs duckdb, of the extra [cluster]")


def test_files_become_a_folder(run: Any, votes: Path) -> None:
    result = run("shard", votes, "-o", "crowd", "--votes-per-shard", 12)
    assert result.exit_code == 0, result.stderr
    assert "48 votes on 12 tasks, 4 workers, 2 classes" in result.stdout
    assert "crowd: 4 shards," in result.stdout
    assert "wisecrowd aggregate crowd -o results" in result.stdout
    loaded = wc.Crowd.open("crowd").load()
    assert sorted(loaded.to_frame().itertuples(index=False)) == sorted(
        wc.read(votes).to_frame().itertuples(index=False)
    )


def test_figures_for_programs(run: Any, votes: Path) -> None:
    figures = json.loads(run("shard", votes, "-o", "crowd", "--json", "--no-workers", "-j", 1).stdout)
    assert (figures["votes"], figures["tasks"], figures["workers"], figures["classes"]) == (48, 12, None, 2)
    assert (figures["folder"], figures["shards"]) == ("crowd", 1)
    assert figures["bytes"] == sum(file.stat().st_size for file in Path("crowd").rglob("*") if file.is_file())
    assert figures["sha256"] == wc.Crowd.open("crowd").digest


def test_quiet(run: Any, votes: Path) -> None:
    result = run("shard", votes, "-o", "crowd", "-q")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_columns_by_other_names(run: Any) -> None:
    Path("in put").mkdir()
    for name in ("a.tsv", "b.tsv"):
        Path("in put", name).write_text(f"item\twho\tsaid\n{name}\tann\tcat\n{name}\tann\tdog\n")
    options = ["--worker", "who", "--label", "said", "--duplicates", "last", "-o", "my crowd"]
    result = run("shard", "in put", *options)
    assert result.exit_code == 0, result.stderr
    assert "Note: in put/a.tsv: read 'item' as the task column" in result.stderr
    assert "who" not in result.stderr
    assert "wisecrowd aggregate 'my crowd' -o results" in result.stdout
    assert wc.Crowd.open("my crowd").load().to_frame()["label"].tolist() == ["dog", "dog"]


def test_a_format_can_be_named(run: Any, votes: Path) -> None:
    votes.rename("votes.dat")
    Path("votes.dat").write_text(Path("votes.dat").read_text().replace("task,worker,label", "photo,who,answer"))
    columns = ("--task", "photo", "--worker", "who", "--label", "answer")
    assert "--format csv" in " ".join(run("shard", "votes.dat", "-o", "crowd", *columns).stderr.split())
    assert run("shard", "votes.dat", "--format", "csv", *columns, "-o", "crowd").exit_code == 0


def test_going_on_and_beginning_anew(run: Any, votes: Path) -> None:
    Path("more.csv").write_text("task,worker,label\nt00,ann,cat\n")
    failed = run("shard", votes, "more.csv", "-o", "crowd")
    assert failed.exit_code == 1
    assert "worker 'ann' labelled task 't00' twice" in failed.stderr
    assert "--duplicates" in failed.stderr
    changed = run("shard", votes, "-o", "crowd")
    assert changed.exit_code == 2
    assert "more.csv is not among the files any more" in changed.stderr
    assert "--fresh" in changed.stderr
    assert "49 votes" in run("shard", votes, "more.csv", "-o", "crowd", "--duplicates", "keep").stdout
    assert "48 votes" in run("shard", votes, "-o", "crowd", "--fresh").stdout


@pytest.mark.parametrize(
    ("words", "code", "advice"),
    [
        (["votes.csv"], 2, "--output"),
        (["nowhere.csv", "-o", "crowd"], 1, "no file or folder nowhere.csv"),
        (["votes.csv", "-o", "crowd", "--memory", "much"], 2, "memory must be given as 4GB or 500MB; got 'much'"),
        (["votes.csv", "-o", "crowd", "--duplicates", "lats"], 2, "Did you mean 'last'?"),
        (["votes.csv", "-o", "crowd", "--no-workers", "--worker", "x"], 2, "contradict"),
        (["votes.csv", "-o", "votes.csv"], 2, "is a file"),
    ],
)
def test_refused(run: Any, votes: Path, words: list[str], code: int, advice: str) -> None:
    result = run("shard", *words)
    assert result.exit_code == code
    assert advice in result.stderr
    assert votes.exists()
    assert not Path("crowd").exists()


@pytest.mark.slow
def test_interrupted_by_hand(tmp_path: Path) -> None:
    made = wc.simulate_crowd(40_000, 50, 4, votes_per_task=5, random_state=0).crowd
    for number in range(6):
        wc.write(made, tmp_path / f"{number}.parquet")
    command = [sys.executable, "-m", "wisecrowd", "shard", "--duplicates", "distinct", "--votes-per-shard", "200000"]
    command += ["-o", str(tmp_path / "crowd"), *(str(tmp_path / f"{number}.parquet") for number in range(6))]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    record = tmp_path / "crowd" / ".sharding" / "progress.json"
    while not record.exists() and child.poll() is None:
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    output, errors = child.communicate()
    assert child.returncode == 130, output + errors
    assert errors.splitlines() == [
        "Interrupted: finished steps are kept; the same command resumes.",
    ]
    assert record.exists()
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "200,000 votes on 40,000 tasks" in again.stdout
    assert again.stderr == ""


@pytest.mark.parametrize("place", ["register", "execute"])
def test_an_interruption_that_the_engine_reports_as_its_own_error(
    run: Any, votes: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """DuckDB calls Python to read a table, and turns a KeyboardInterrupt there into an error of its own."""
    import duckdb

    connect = duckdb.connect

    class InterruptedEngine:
        def __init__(self, **settings: Any) -> None:
            self.engine = connect(**settings)

        def __getattr__(self, name: str) -> Any:
            return self.fail if name == place else getattr(self.engine, name)

        def fail(self, *_: object) -> None:
            with contextlib.suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            raise duckdb.InvalidInputException("reading the schema of 'arrow_table' failed: KeyboardInterrupt")

    with monkeypatch.context() as patch:
        patch.setattr(duckdb, "connect", InterruptedEngine)
        stopped = run("shard", votes, "-o", "crowd")
    assert (stopped.exit_code, stopped.stdout) == (130, "")
    assert stopped.stderr.splitlines()[-1].startswith("Interrupted: ")
    assert run("shard", votes, "-o", "crowd").exit_code == 0


def test_labels_and_workers_that_probably_mean_the_same_are_named(run: Any, votes: Path) -> None:
    votes.write_text(votes.read_text().replace("t05,cy,", "t05,Cy,").replace("t00,ann,dog", "t00,ann,dog "))
    result = run("shard", votes, "-o", "crowd")
    assert "Warning: 2 worker ids differ only by case or space, but count as different ('Cy', 'cy')" in result.stderr
    assert "2 labels differ only by case or space" in result.stderr
    assert "unify them in the files" in result.stderr
