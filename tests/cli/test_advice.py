"""Advice in messages: every option that a command advises is one of its own."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import typer

import wisecrowd
import wisecrowd as wc
from wisecrowd.cli import build_app, serve

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z_-]*[a-z]")
#: Options of other programs that messages name: Ray, our benchmarks, lm_eval and inspect.
FOREIGN = {"--head", "--quick", "--log_samples", "--no-log-samples", "--scorer"}

QUESTIONS = [
    {"from_name": name, "to_name": "text", "type": "choices", "value": {"choices": ["a"]}} for name in ("mood", "topic")
]
FILES = {
    "unnamed.csv": "x1,x2,x3\n1,2,3\n",
    "label-missing.csv": "task,worker,z\n1,2,3\n",
    "worker-missing.csv": "task,label\n1,2\n2,3\n",
    "ambiguous.csv": "item,unit_id,worker,label\n1,2,a,3\n",
    "repeated.csv": "task,worker,label\n1,a,x\n1,a,y\n2,a,x\n",
    "empty-cell.csv": "task,worker,label\n1,a,x\n1,,y\n",
    "unknown.bin": "hello world",
    "empty.csv": "",
    "header.csv": "task,worker,label\n",
    "numbers.csv": "task,worker,label\n" + "".join(f"t{i},w{j},{i * 1.37 + j}\n" for i in range(20) for j in (1, 2)),
    "equal.csv": "task,worker,label\n1,a,1\n1,b,1.0\n2,a,2\n2,b,1\n",
    "mixed.jsonl": '{"task":1,"worker":"a","label":"x"}\n{"task":"2","worker":"a","label":"x"}\n',
    "export.json": json.dumps(
        [{"id": 1, "data": {"text": "a"}, "annotations": [{"id": 1, "completed_by": 1, "result": QUESTIONS}]}]
    ),
    "sheet.ods": "PK",
}
CALLS = {
    **{name: (name, "{}") for name in ("check", "diagnose", "plan", "aggregate", "questions", "export")},
    "compare": ("compare", "{}", "-m", "majority-vote"),
    "audit": ("audit", "{}", "-o", "audit"),
    "complete": ("complete", "{}", "-m", "gmv", "-o", "completed"),
    "learn": ("learn", "{}", "-x", "X.npz", "-m", "raykar"),
    "report": ("report", "{}", "--no-compare"),
    "shard": ("shard", "{}", "-o", "shards"),
    "serve": ("serve", "votes.db", "--port", "0", "--from", "{}"),
    "review": ("review", "{}", "-o", "checked.csv", "--port", "0"),
    "evaluate": ("evaluate", "{}"),
    "labels": ("evaluate", "scores.csv", "--labels", "{}"),
    "push": ("label-studio", "push", "{}"),
    "gold": ("aggregate", "votes.csv", "--gold", "{}"),
    "score": ("compare", "votes.csv", "-m", "majority-vote", "--score", "{}"),
    "checked": ("audit", "votes.csv", "--checked", "{}"),
    "features": ("learn", "votes.csv", "-m", "raykar", "-x", "{}"),
    "predict": ("learn", "votes.csv", "-m", "raykar", "-x", "X.npz", "--predict", "{}"),
    "new tasks": ("predict", "model", "{}"),
    "members": ("aggregate", "votes.csv", "-m", "panel", "--members", "{}"),
    "texts": ("report", "votes.csv", "--no-compare", "--texts", "{}"),
}


def leaves(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that can be run, by the words that call it."""
    parts = getattr(command, "commands", {})
    if not parts or (command.invoke_without_command and words):
        yield words, command
    for name, part in parts.items():
        yield from leaves(part, (*words, name))


def options_of(command: Any) -> set[str]:
    return {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}


LEAVES = dict(leaves(typer.main.get_command(build_app())))


@pytest.fixture
def folder(votes: Path, tmp_path: Path) -> Path:
    """Files that cannot be read without help, beside some good ones."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    tasks = [f"t{number:02d}" for number in range(12)]
    scores = "".join(f"{task},j1,m{number % 2},0.{number % 9}\n" for number, task in enumerate(tasks))
    (tmp_path / "scores.csv").write_text(f"task,judge,system,score\n{scores}", encoding="utf-8")
    X = np.random.default_rng(0).normal(size=(12, 2))
    np.savez(tmp_path / "X.npz", task=np.array(tasks), X=X)
    wc.Raykar().fit(X, wc.read(votes).order_tasks(tasks)).save(tmp_path / "model")
    return votes.parent


def load_without_service(*arguments: Any, **_: Any) -> None:
    """Read the files of ``serve --from`` as the command does, and drop their votes."""
    *_, paths, reading = arguments
    written = SimpleNamespace(result=lambda: SimpleNamespace(outcomes={}))
    coordinator: Any = SimpleNamespace(apply=lambda _: written, questions=lambda: [])
    for path in paths:
        serve._load_votes(coordinator, path, reading, quiet=False)


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", CALLS)
def test_options_in_messages_belong_to_the_command(run: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "serve":
        pytest.importorskip("fastapi", reason="the extra serve is not installed")
        monkeypatch.setattr(serve, "_run", load_without_service)
    if name == "review":
        pytest.importorskip("fastapi", reason="the extra serve is not installed")
        server = SimpleNamespace(run=lambda **_: None)
        monkeypatch.setattr("wisecrowd.service.server.create_server", lambda _: server)
    if name == "shard":
        pytest.importorskip("duckdb", reason="the extra cluster is not installed")
    call = CALLS[name]
    words = max((leaf for leaf in LEAVES if call[: len(leaf)] == leaf), key=len)
    own_options = options_of(LEAVES[words])
    for file in [*FILES, "absent.csv", "https://example.org/votes.csv"]:
        result = run(*(word.replace("{}", file) for word in call))
        message = " ".join(result.output.split())
        # A whole command line of another command may have other options.
        message = re.sub(r"wisecrowd [a-z][a-z -]* [^;()]*", "", message)
        assert set(OPTION.findall(message)) <= own_options, f"{file}: {result.output}"


def test_every_command_that_reads_a_file_is_called() -> None:
    called = {max((leaf for leaf in LEAVES if call[: len(leaf)] == leaf), key=len) for call in CALLS.values()}
    reading = {
        words
        for words, command in LEAVES.items()
        if any(option in options_of(command) for option in ("--task", "--gold", "--labels", "--question", "--from"))
    }
    assert reading <= called, "add the command to CALLS"


def test_every_option_in_the_source_exists() -> None:
    known = (
        {option for command in LEAVES.values() for option in options_of(command)}
        | {"--debug", "--help", "--version"}
        | FOREIGN
    )
    package = Path(str(wisecrowd.__file__)).parent
    unknown = {}
    for path in package.rglob("*.py"):
        text = path.read_text("utf-8")
        if not set(OPTION.findall(text)) - known:
            continue  # parsing takes longer
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for option in set(OPTION.findall(node.value)) - known:
                    unknown[option] = path.relative_to(package)
    assert not unknown
