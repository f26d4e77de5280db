"""Ids and labels that try something go through every command: files keep them, and the terminal shows but never obeys."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from rich.cells import cell_len
from typer.testing import CliRunner, Result

import wisecrowd as wc
from wisecrowd.cli import _console, build_app
from wisecrowd.io.dataset_folder import write_dataset

#: Ten commands on hundreds of hostile votes.
pytestmark = pytest.mark.slow

GROUPS = json.loads((Path(__file__).parents[1] / "hostile.json").read_text(encoding="utf-8"))
HOSTILE = [*(text for texts in GROUPS.values() for text in texts), "x" * 10_000]
CLASSES = sorted(HOSTILE[::6])
WIDTH = 80
APP = build_app()
#: Characters that move the cursor, hide, reverse or join text. None of them may reach a terminal.
OBEYED = re.compile(
    "[\0-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\uffff\ud800-\udfff]"
)

COMMANDS = {
    "check": ["check", "votes.parquet"],
    "aggregate": ["aggregate", "votes.parquet", "-o", "aggregate", "--proba", "--save", "--score", "truth.parquet"],
    "gold": ["aggregate", "votes.jsonl", "-m", "majority-vote", "--gold", "truth.parquet", "-o", "gold"],
    "diagnose": ["diagnose", "votes.parquet", "-o", "diagnose"],
    "compare": [
        "compare", "votes.parquet", "-m", "majority-vote", "-m", "wawa", "--folds", "2", "--score", "truth.parquet",
        "-o", "compare",
    ],
    "plan": ["plan", "votes.parquet", "--budget", "30", "-o", "plan"],
    "complete": ["complete", "votes.parquet", "-m", "gmv", "--evaluate", "--score", "truth.parquet", "-o", "complete"],
    "learn": [
        "learn", "votes.parquet", "-m", "raykar", "-p", "max_iter=3", "-x", "X.parquet", "--predict", "X.parquet",
        "--proba", "-o", "learn",
    ],
    "report": ["report", "votes.parquet", "--texts", "texts.parquet", "--no-compare", "-o", "report.html"],
    "show": ["datasets", "show", "dataset"],
}  # fmt: skip


@dataclass
class Done:
    """Outputs of commands, and their folder."""

    folder: Path
    results: dict[str, Result]


def hostile_votes() -> list[tuple[str, str, str]]:
    """Nine votes on every task, by workers who are right mostly, never, or say one thing only."""
    rng, n, rows = np.random.default_rng(0), len(HOSTILE), []
    for i, task in enumerate(HOSTILE):
        for j in rng.choice(n, 9, replace=False):
            right = rng.random() < 0.7
            said = 0 if j % 7 == 0 else int(rng.integers(len(CLASSES))) if j % 5 == 0 else i + (not right)
            rows.append((task, HOSTILE[j], CLASSES[said % len(CLASSES)]))
    return rows


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    """Every command, once."""
    folder = tmp_path_factory.mktemp("hostile")
    crowd = wc.Crowd.from_triples(hostile_votes(), classes=CLASSES)
    truth = pd.Series({task: CLASSES[i % len(CLASSES)] for i, task in enumerate(HOSTILE)})
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("votes.parquet", "votes.jsonl"):
            wc.write(crowd, name)
        truth.rename_axis("task").rename("truth").reset_index().to_parquet("truth.parquet")
        pd.DataFrame({"task": HOSTILE, "text": HOSTILE[::-1]}).to_parquet("texts.parquet")
        X = np.random.default_rng(1).normal(size=(len(HOSTILE), 3))
        pd.DataFrame(X, columns=HOSTILE[:3]).assign(task=HOSTILE).to_parquet("X.parquet")
        write_dataset("dataset", crowd, truth=truth, meta={"licence": HOSTILE[0] + "\x1b[31m", "source": {"x": ["\n"]}})
        yield Done(folder, {name: invoke(*words) for name, words in COMMANDS.items()})


def invoke(*words: object, **env: str) -> Result:
    runner = CliRunner(env={"COLUMNS": str(WIDTH), **env})
    return runner.invoke(APP, [str(word) for word in words], prog_name="wisecrowd", catch_exceptions=False)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# ---------------------------------------------------------------------- the terminal


@pytest.mark.parametrize("name", COMMANDS)
def test_it_works_and_nothing_is_obeyed(done: Done, name: str) -> None:
    result = done.results[name]
    assert result.exit_code == 0, result.stderr
    assert result.stdout
    for text in (result.stdout, result.stderr):
        assert not OBEYED.search(text), OBEYED.search(text)


@pytest.mark.parametrize("name", COMMANDS)
def test_lines_fit(done: Done, name: str) -> None:
    long = [line for line in done.results[name].stdout.splitlines() if cell_len(line) > WIDTH]
    assert long == []
    assert max(map(len, done.results[name].stderr.splitlines()), default=0) < 1000


@pytest.mark.slow
@pytest.mark.parametrize("name", ["aggregate", "diagnose", "plan", "compare"])
def test_a_record_on_a_terminal_is_json_that_can_be_seen(done: Done, name: str) -> None:
    words = COMMANDS[name]
    again = invoke(*words[: words.index("-o")], "--json")
    assert again.exit_code == 0, again.stderr
    assert not OBEYED.search(again.stdout)
    told = json.loads(again.stdout)
    assert told["input"]["classes"] == CLASSES
    record = json.loads((done.folder / name / "run.json").read_text(encoding="utf-8"))
    assert told["input"] == record["input"]


@pytest.fixture
def few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Three workers with names that ask for colours; the report shows all of them."""
    monkeypatch.chdir(tmp_path)
    names = ["[bold red]loud[/]", "\x1b[31mred", "[/]"]
    wc.write(wc.Crowd.from_triples([(f"t{n}", who, "[b]"[: 2 + n % 2]) for n in range(6) for who in names]), "few.csv")
    return names


def test_markup_is_text(few: list[str]) -> None:
    for env in ({}, {"FORCE_COLOR": "1", "TERM": "xterm"}):
        result = invoke("aggregate", "few.csv", **env)
        assert result.exit_code == 0, result.stderr
        plain = re.sub(r"\x1b\[[0-9;]*m", "", result.stdout)
        assert ("\x1b[1m" in result.stdout) == bool(env), "headings are bold where somebody sees it"
        for name in few:
            assert _console.escape_controls(name) in plain
        assert "\x1b[31m" not in result.stdout
        assert not OBEYED.search(plain)


def test_ids_are_shortened_by_what_is_seen() -> None:
    assert _console.shorten_id("") == "''"
    assert _console.shorten_id("  ") == "'  '"
    assert _console.shorten_id("\x1b" * 30, 20) == r"\x1b" * 4 + r"\x1" + "…"
    assert cell_len(_console.shorten_id("\u65e5" * 30, 20)) <= 20
    assert len(_console.shorten_id("\u0301" * 10_000, 20)) <= 21
    for text in HOSTILE:
        shown = _console.shorten_id(text, 20)
        assert cell_len(shown) <= 20
        assert shown.isprintable()
        assert shown.strip(" ")


def test_wide_letters_are_wrapped_by_their_width(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    _console.show_facts([("Read", "\u65e5\u672c\u8a9e " * 20)])
    assert all(cell_len(line) <= 40 for line in capsys.readouterr().out.splitlines())


# ---------------------------------------------------------------------- files


def test_files_hold_every_id_as_it_is(done: Done) -> None:
    def column(file: str, name: str) -> set[str]:
        return {row[name] for row in rows_of(done.folder / file)}

    everything, answers = set(HOSTILE), set(CLASSES)
    for file in ("aggregate/labels.csv", "gold/labels.csv", "learn/labels.csv", "learn/predictions.csv"):
        assert column(file, "task") == everything
        assert column(file, "label") <= answers
    for file in ("aggregate/workers.csv", "gold/workers.csv", "learn/workers.csv", "diagnose/workers.csv"):
        assert column(file, "worker") == everything
    assert column("diagnose/tasks.csv", "task") == everything
    asks = rows_of(done.folder / "plan/requests.csv")
    assert {row["task"] for row in asks} | {row["worker"] for row in asks} <= everything
    assert column("plan/finished.csv", "task") <= everything
    assert column("compare/disputed.csv", "task") <= everything
    assert column("gold/labels.csv", "label") == answers, "gold is kept"


def test_classes_may_be_called_as_columns_are(done: Done) -> None:
    for name in ("aggregate", "learn"):
        first, *classes = rows_of(done.folder / name / "posterior.csv")[0]
        assert classes == CLASSES
        assert first == "task_id", "there is a class called task"
    first, *classes = rows_of(done.folder / "diagnose/confusion.csv")[0]
    assert classes == CLASSES
    assert first == "true"


def test_what_names_the_rows_steps_aside_for_a_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["task", "task_id", "true", "worker", "__index_level_0__"]
    wc.write(wc.Crowd.from_triples([(f"t{n}", who, names[n % 5]) for n in range(20) for who in "abc"]), "v.csv")
    assert invoke("aggregate", "v.csv", "--proba", "-o", "labels").exit_code == 0
    assert list(rows_of(Path("labels/posterior.csv"))[0]) == ["task_id_id", *sorted(names)]
    assert invoke("diagnose", "v.csv", "-o", "diagnosis").exit_code == 0
    assert list(rows_of(Path("diagnosis/confusion.csv"))[0]) == ["true_id", *sorted(names)]


@pytest.mark.skipif(
    int(pa.__version__.split(".")[0]) < 26, reason="pyarrow before 26 refuses some quoted values with a null character"
)
@pytest.mark.filterwarnings("ignore:.*but count as different:wisecrowd.errors.DataWarning")
def test_completed_votes_can_be_read_again(done: Done) -> None:
    completed = wc.read(done.folder / "complete/completed.csv", classes=CLASSES)
    real = completed.select_observed().to_frame()[["task", "worker", "label"]]
    assert set(real.itertuples(index=False, name=None)) == set(hostile_votes())
    assert set(completed.tasks) == set(completed.workers) == set(HOSTILE)


def test_models_know_every_id(done: Done) -> None:
    for name in ("aggregate", "learn"):
        fitted: Any = wc.load(done.folder / name / "model")
        labels = {row["task"]: row["label"] for row in rows_of(done.folder / name / "labels.csv")}
        assert fitted.labels_.to_dict() == labels
        assert fitted.classes_.tolist() == CLASSES


# ---------------------------------------------------------------------- names of columns and files


@pytest.mark.parametrize("text", ["[/]", "[bold]", "\x1b[31m", "a\nb", "\u202e", "=1", "{x}", "%s", " "])
def test_columns_may_be_called_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({text: ["t1", "t1", "t2", "t2"], "worker": list("abab"), "label": list("xxyx")})
    frame.to_parquet("votes.parquet")
    for command in (["check"], ["aggregate", "-m", "majority-vote"]):
        named = invoke(*command, "votes.parquet", f"--task={text}")
        assert named.exit_code == 0, named.stderr
        unnamed = invoke(*command, "votes.parquet")
        assert unnamed.exit_code == 1
        assert "there is no task column" in " ".join(unnamed.output.split())
        assert repr(text) in " ".join(unnamed.output.split()) or text == " "
        for result in (named, unnamed):
            assert not OBEYED.search(result.output)


def test_files_may_be_called_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = "\x1b[31m\n[bold] $(id).csv"
    wc.write(wc.Crowd.from_triples([(f"t{n}", who, "xy"[n % 2]) for n in range(6) for who in "abc"]), name)
    for words in (["check"], ["aggregate", "-o", "out"], ["diagnose"], ["report", "--no-compare"]):
        result = invoke(*words, name)
        assert result.exit_code == 0, result.stderr
        assert not OBEYED.search(result.output)
    assert json.loads(Path("out/run.json").read_text(encoding="utf-8"))["source"] == name
    gone = invoke("check", f"{name}.gone")
    assert gone.exit_code == 1
    assert not OBEYED.search(gone.output)


def test_an_endless_message_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke("aggregate", "x" * 50_000)
    assert result.exit_code == 1
    assert len(result.stderr) < 3000
    assert " … " in result.stderr


def test_a_place_of_another_encoding_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wc.write(wc.Crowd.from_triples([("t", "ann", "cat")]), "votes.csv")
    result = invoke("aggregate", "votes.csv", "-o", "caf\udce9")
    assert result.exit_code == 2
    assert "the path is not valid UTF-8" in " ".join(result.stderr.replace("│", " ").split())
