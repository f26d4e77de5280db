"""A way to run commands in this process, and a small file of votes to run them on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from wisecrowd.cli import build_app

Run = Callable[..., Result]


@pytest.fixture(scope="session")
def app() -> typer.Typer:
    """The program with all commands, built once because that is slow."""
    return build_app()


@pytest.fixture
def run(app: typer.Typer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command line in an empty folder, as in a pipe of 80 columns; a bug raises instead of becoming an exit code."""
    monkeypatch.chdir(tmp_path)

    def command(*words: object) -> Result:
        return CliRunner(env={"COLUMNS": "80"}).invoke(
            app, [str(word) for word in words], prog_name="wisecrowd", catch_exceptions=False
        )

    return command


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    """Twelve tasks, three careful workers and one who always says cat; on t01 to t04 somebody slips."""
    rows = ["task,worker,label"]
    for number in range(12):
        truth, other = ("cat", "dog") if number % 2 else ("dog", "cat")
        slip = ["ann", "bob", "cy", "bob"][number - 1] if 1 <= number <= 4 else None
        rows += [f"t{number:02d},{who},{other if who == slip else truth}" for who in ("ann", "bob", "cy")]
        rows.append(f"t{number:02d},zed,cat")
    path = tmp_path / "votes.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    """The truth of all twelve tasks."""
    rows = [f"t{number:02d},{'cat' if number % 2 else 'dog'}" for number in range(12)]
    path = tmp_path / "gold.csv"
    path.write_text("\n".join(["task,truth", *rows]) + "\n", encoding="utf-8")
    return path
