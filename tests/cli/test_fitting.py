"""Record and messages of a run of ``wisecrowd aggregate``."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd.base import method as base_method
from wisecrowd.cli._fitting import assess_fit, rate_workers, summarise_assessment


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# ---------------------------------------------------------------------- what a run leaves behind


def test_the_record_tells_how_to_repeat_the_run(run: Any, votes: Path, gold: Path) -> None:
    text = votes.read_text(encoding="utf-8").replace("task,worker,label", "photo,who,said")
    Path("odd.txt").write_text(text + "t00,ann,dog\nt99,ann,\n", encoding="utf-8")
    options = {"task": "photo", "worker": "who", "label": "said", "duplicates": "distinct", "missing": "drop",
               "format": "csv", "gold": "some.csv", "score": gold.name}  # fmt: skip
    Path("some.csv").write_text("task,truth\nt00,dog\n", encoding="utf-8")
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    result = run("aggregate", "odd.txt", *words, "-o", "out", "--quiet")
    assert result.exit_code == 0, result.stderr
    record = json.loads(Path("out/run.json").read_text(encoding="utf-8"))
    command = record["command"]
    assert options.items() <= command.items()
    assert (command["votes"], command["numeric"], command["weight"]) == ("odd.txt", False, None)
    again = [
        word
        for name, value in command.items()
        if isinstance(value, str) and name != "votes"
        for word in (f"--{name}", value)
    ]
    repeated = json.loads(run("aggregate", command["votes"], *again, "--json").stdout)
    assert repeated["input"] == record["input"]
    assert repeated["summary"] == record["summary"]


def test_the_record_names_the_format_that_was_recognised(run: Any, votes: Path) -> None:
    record = json.loads(run("aggregate", votes.name, "--json").stdout)
    assert (record["command"]["format"], record["command"]["gold"]) == ("csv", None)


@pytest.mark.parametrize(
    ("method", "columns"),
    [
        ("glad", ["task", "difficulty", "standard_error", "n_votes"]),
        ("two-pl", ["task", "difficulty", "standard_error", "discrimination", "n_votes"]),
        ("minimax-entropy", ["task", "difficulty", "n_votes"]),
    ],
)
def test_a_method_that_knows_of_difficulty_tells_it(run: Any, votes: Path, method: str, columns: list[str]) -> None:
    result = run("aggregate", votes, "-m", method, "-o", "out")
    assert "tasks.csv" in result.stdout
    rows = rows_of(Path("out/tasks.csv"))
    assert (list(rows[0]), len(rows), rows[0]["n_votes"]) == (columns, 12, "4")
    fitted = wc.find(method)().fit(wc.read(votes))
    np.testing.assert_allclose([float(row["difficulty"]) for row in rows], fitted.tasks_["difficulty"], atol=1e-6)
    assert "tasks.csv" in run("aggregate", votes, "-o", "out").stderr  # it is of an earlier run


def test_tasks_do_not_overwrite_the_votes(run: Any, votes: Path) -> None:
    text = votes.read_text(encoding="utf-8")
    mine = votes.rename(votes.with_name("tasks.csv"))
    result = run("aggregate", "tasks.csv", "-m", "glad", "-o", ".")
    assert result.exit_code == 2
    assert "tasks.csv is an input file and would be overwritten" in result.stderr
    assert mine.read_text(encoding="utf-8") == text
    assert run("aggregate", "tasks.csv", "-o", ".").exit_code == 0


# ---------------------------------------------------------------------- what is said on the way


def test_gold_of_a_class_that_nobody_chose_is_named(run: Any, votes: Path, gold: Path) -> None:
    gold.write_text(gold.read_text(encoding="utf-8").replace("t00,dog", "t00,Dog"), encoding="utf-8")
    result = run("aggregate", votes, "--score", gold.name, "--json")
    assert result.stderr == (
        "Warning: gold.csv: no label of the crowd is 'Dog', so 1 task of known truth counts as wrong. Did you mean 'dog'?\n"
    )
    score = json.loads(result.stdout)["summary"]["score"]
    assert score["unknown_classes"] == {"Dog": 1}
    assert score["accuracy"] <= 11 / 12


def test_labels_that_look_alike_are_mentioned(run: Any, votes: Path) -> None:
    assert run("aggregate", votes.name).stderr == ""
    votes.write_text(votes.read_text(encoding="utf-8").replace("ann,dog", "ann,Dog"), encoding="utf-8")
    [line] = run("aggregate", votes.name).stderr.splitlines()
    assert line.startswith("Warning: votes.csv: 2 labels differ only by case or space")
    assert line.endswith("see wisecrowd check votes.csv")


COMMANDS = [("aggregate",), ("diagnose",), ("compare", "-m", "majority-vote"), ("plan", "--budget", "2"), ("audit", "--size", "2"),
            ("report", "--no-compare")]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
def test_every_command_warns_of_ids_that_probably_mean_the_same(
    run: Any, votes: Path, command: tuple[str, ...]
) -> None:
    text = votes.read_text(encoding="utf-8").replace("t0", "").replace("\n5,ann", "\n5.0,ann").replace("7,cy,", "7,Cy,")
    votes.write_text(text, encoding="utf-8")
    result = run(command[0], votes.name, *command[1:])
    assert result.exit_code == 0, result.output
    assert "Warning: votes.csv: 2 task ids are equal as numbers, but count as different ('5', '5.0')" in result.stderr
    assert (
        "Warning: votes.csv: 2 worker ids differ only by case or space, but count as different ('Cy', 'cy')"
        in result.stderr
    )
    assert "2 task ids" not in run(command[0], votes.name, *command[1:], "--normalise").stderr


def test_notes_are_on_columns_that_were_guessed(run: Any, votes: Path) -> None:
    text = votes.read_text(encoding="utf-8").replace("task,worker,label", "question,worker,answer")
    votes.write_text(text, encoding="utf-8")
    guessed = run("aggregate", votes, "--task", "question", "--json").stderr
    assert "'answer' as the label column" in guessed
    assert "'question'" not in guessed
    assert run("aggregate", votes, "--task", "question", "--label", "answer").stderr == ""
    assert run("aggregate", votes, "--quiet").output == ""


def test_one_of_each_is_told_in_the_singular(run: Any, tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("task,worker,label\n1,ann,cat\n", encoding="utf-8")
    told = run("aggregate", "one.csv", "-m", "one-coin", "-p", "max_iter=1").stdout
    assert "1 iteration," in told
    assert "(1 vote)" in told


def test_flags_are_left_out_with_too_many_rare_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = wc.Crowd.from_triples([(task, worker, worker) for task in range(6) for worker in range(20)])
    monkeypatch.setattr(base_method, "MAX_CELLS_BY_VOTES_PER_CLASS", {30: 6 * 20 * 20 - 1})
    fitted = wc.ModelAverage().fit(crowd)
    assessment = assess_fit(fitted, crowd, None)
    assert "not checked for 20 classes" in summarise_assessment(assessment)["flagged"]
    pd.testing.assert_frame_equal(rate_workers(fitted, assessment), fitted.workers_)


def test_results_of_other_votes_that_are_replaced_are_named(run: Any, votes: Path) -> None:
    Path("other.csv").write_bytes(votes.read_bytes())
    words = ("-m", "majority-vote", "-o", "out")
    assert "replaced" not in run("aggregate", votes, *words).stderr
    assert "replaced" not in run("aggregate", votes.name, *words).stderr
    assert f"replaced the results of {votes.name}, which were in out" in run("aggregate", "other.csv", *words).stderr
    assert "replaced the results of other.csv" in run("diagnose", votes, "-o", "out").stderr
    assert "replaced the results of" in run("diagnose", "other.csv", "-o", "out").stderr
