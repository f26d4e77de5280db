from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from wisecrowd.cli._reading import GoldReading
from wisecrowd.errors import UsageError


def test_gold_columns_without_gold_are_refused() -> None:
    GoldReading(gold_task="nr").check_gold_columns(None, Path("gold.csv"))
    with pytest.raises(UsageError, match="no such table is given"):
        GoldReading(gold_task="nr").check_gold_columns(None, None)


@pytest.mark.parametrize(
    "command", [("check",), ("aggregate", "-m", "majority-vote", "--json"), ("diagnose",), ("plan", "--budget", "3")]
)
def test_votes_come_through_a_pipe(app: Any, votes: Path, command: tuple[str, ...]) -> None:
    name, *options = command
    result = CliRunner().invoke(app, [name, "-", *options], input=votes.read_bytes())
    assert result.exit_code == 0, result.output
    assert "48 votes" in result.output or '"votes": "-"' in result.output


def test_votes_and_gold_come_from_remote_storage(run: Any, votes: Path, gold: Path) -> None:
    fsspec = pytest.importorskip("fsspec", reason="the extra remote is not installed")
    storage = fsspec.filesystem("memory")
    storage.put(str(votes), "/bucket/votes.csv")
    storage.put(str(gold), "/bucket/gold.csv")
    words = ("aggregate", "memory://bucket/votes.csv", "--score", "memory://bucket/gold.csv", "--json")
    assert json.loads(run(*words).stdout)["summary"]["score"]["accuracy"] == 1
    assert "memory://bucket/absent.csv" in run("check", "memory://bucket/absent.csv").stderr
    assert "curl -L -O https://example.org/v.csv" in " ".join(run("check", "https://example.org/v.csv").stderr.split())


@pytest.mark.parametrize(
    ("role", "advice"),
    [
        ("worker", "if the votes have no worker ids, say worker=False (--no-workers)"),
        ("task", 'say which column holds the task ids: task="NAME" (--task NAME)'),
        ("label", 'say which column holds the labels: label="NAME" (--label NAME)'),
    ],
)
@pytest.mark.parametrize("rule", ["error", "drop"])
def test_empty_columns_get_advice_that_leaves_votes(
    run: Any, tmp_path: Path, role: str, advice: str, rule: str
) -> None:
    row = {"task": "t1", "worker": "ann", "label": "cat"} | {role: ""}
    (tmp_path / "votes.csv").write_text(
        "task,worker,label\n" + ",".join(row.values()) + "\n" + ",".join(row.values()) + "\n"
    )
    message = " ".join(run("aggregate", "votes.csv", "--missing", rule).stderr.split())
    assert f"no row has a {role}: the column is empty in all 2 rows" in message
    assert advice in message
    assert "--missing drop" not in message
    assert "--missing drop" not in run("check", "votes.csv").stdout


def test_the_check_of_votes_with_an_empty_worker_column_ends_in_a_command_that_works(run: Any, tmp_path: Path) -> None:
    rows = "".join(f"t{number},,{'ab'[number % 2]}\n" for number in range(6))
    (tmp_path / "votes.csv").write_text(f"task,worker,label\n{rows}")
    result = run("check", "votes.csv")
    assert "empty-column" in result.stdout
    assert "empty-file" not in result.stdout
    command = result.stdout.split("Fix all  wisecrowd ")[1].split()
    assert command == ["aggregate", "votes.csv", "--no-workers"]
    assert run(*command, "-m", "majority-vote").exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "words"), [("t1,ann,cat\n", "there is one vote"), ("t1,ann,cat\nt1,bob,cat\n", "all 2 votes are equal")]
)
def test_votes_that_are_all_equal_are_pointed_out(run: Any, tmp_path: Path, rows: str, words: str) -> None:
    (tmp_path / "votes.csv").write_text(f"task,worker,label\n{rows}")
    for command in ("aggregate", "diagnose", "plan"):
        message = " ".join(run(command, "votes.csv", *(["--budget", "1"] if command == "plan" else [])).stderr.split())
        assert words in message
        assert "--classes A,B,…" in message
        assert words not in run(command, "votes.csv", "--classes", "cat,dog").stderr
    assert "name all of them" in " ".join(run("check", "votes.csv").stdout.split())


def test_few_votes_get_advice_for_comparing_methods(run: Any, tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text("task,worker,label\n" + "".join(f"t{n},w{n % 2},{n % 3}\n" for n in range(6)))
    message = " ".join(run("compare", "votes.csv").stderr.split())
    assert "5 folds need at least 10 votes; got 6; use fewer folds: folds=3 (--folds 3)" in message


def test_swapped_columns_of_tasks_and_labels_are_pointed_out(run: Any, votes: Path) -> None:
    columns = ("--task", "label", "--label", "task", "--duplicates", "distinct")
    assert "are the columns of tasks and labels swapped?" in run("aggregate", votes, *columns).stderr
    assert "swapped" not in run("aggregate", votes).stderr


def test_swapped_names_of_columns_are_pointed_out(run: Any, tmp_path: Path) -> None:
    rows = "".join(f"i{task},w{worker},{'ab'[task % 2]}\n" for task in range(4) for worker in range(3))
    (tmp_path / "votes.csv").write_text(f"image_id,rater,label\n{rows}")
    words = ("aggregate", tmp_path / "votes.csv", "-m", "majority-vote")
    swapped = run(*words, "--task", "rater", "--worker", "image_id")
    assert "'rater' usually holds workers and 'image_id' tasks" in swapped.stderr
    assert "--task image_id --worker rater" in swapped.stderr
    assert "swapped" not in run(*words, "--task", "image_id", "--worker", "rater").stderr


def test_tasks_and_workers_that_changed_places_are_pointed_out_by_every_command(run: Any, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows = [(f"t{t}", f"w{w}", "ab"[t % 2]) for t in range(60) for w in random.choice(6, 3, replace=False)]
    path = tmp_path / "votes.csv"
    path.write_text("worker,task,label\n" + "".join(",".join(row) + "\n" for row in rows))
    question, options = "are tasks and workers swapped?", "--task worker --worker task"
    for command in ("aggregate", "compare", "diagnose"):
        words = (command, path, *(() if command == "diagnose" else ("-m", "majority-vote")))
        message = run(*words).stderr
        assert question in message, command
        assert options in message
        assert "swapped" not in run(*words, *options.split()).stderr, "the header is wrong, and the options are right"
    assert question in run("check", path).stdout
    path.write_text("task,worker,label\n" + "".join(",".join(row) + "\n" for row in rows))
    assert run("aggregate", path, *options.split()).stderr.count("swapped?") == 1
