"""Groups of options, and paths of outputs."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from wisecrowd.cli._options import flag, parse_output_path, with_options


@dataclass
class Limits:
    lowest: Annotated[int, typer.Option(help="Lowest.")] = 1
    loud: Annotated[bool, flag("--loud", help="Shout.")] = False


@with_options(Limits)
def command(name: str, *, limits: Limits, times: int = 2) -> str:
    """Greet somebody."""
    return f"{name} {limits.lowest} {limits.loud} {times}"


def test_fields_become_options_and_arrive_as_one_argument() -> None:
    assert list(inspect.signature(command).parameters) == ["name", "times", "lowest", "loud"]
    assert command("ann", lowest=3) == "ann 3 False 2"
    assert command("ann", times=5) == "ann 1 False 5"
    assert command.__doc__ == "Greet somebody."


def test_the_command_line_has_them() -> None:
    app = typer.Typer()
    app.command()(print_greeting)
    result = CliRunner().invoke(app, ["bob", "--lowest", "4", "--loud"])
    assert result.stdout.strip() == "bob 4 True 2"
    text = CliRunner(env={"COLUMNS": "80"}).invoke(app, ["--help"]).stdout
    assert "--lowest" in text
    assert "Shout." in text
    assert "--no-loud" not in text, "a flag has no opposite"


@with_options(Limits)
def print_greeting(name: str, *, limits: Limits, times: int = 2) -> None:
    print(name, limits.lowest, limits.loud, times)


def test_output_paths() -> None:
    assert parse_output_path("results") == Path("results")
    with pytest.raises(typer.BadParameter, match="the path is empty"):
        parse_output_path("")
    with pytest.raises(typer.BadParameter, match="not valid UTF-8"):
        parse_output_path("caf\udce9")
