"""Pages for newcomers tell the truth: what they tell the reader to run is run, and prints what they show.

Commands stand in ``console`` blocks, each after ``$`` with its output below. Programs stand in ``python`` blocks, and a ``text``
block that follows one at once is what it prints. Blocks with ``>>>`` are examples like those of the code, and are run as such.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from wisecrowd.cli import build_app

DOCS = Path(__file__).parents[2] / "docs"


class Step(NamedTuple):
    """Something that the reader is told to run, and what the page shows that it prints; None if it shows nothing."""

    kind: str
    code: str
    shown: str | None


def steps(text: str) -> list[Step]:
    """What a page tells the reader to run, in order."""
    return list(_steps(text))


def _steps(text: str) -> Iterator[Step]:
    fences = list(re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    for fence, after in zip(fences, [*fences[1:], None], strict=True):
        kind, body = fence.groups()
        if kind == "console":
            for part in filter(None, re.split(r"^\$ ", body, flags=re.MULTILINE)):
                # A command that ends in a backslash goes on in the next line.
                [command] = re.findall(r"\A(?:.*\\\n)*.*", part)
                yield Step("command", command, part[len(command) + 1 :])
        elif kind == "python" and not body.startswith(">>>"):
            at_once = after is not None and after[1] == "text" and not text[fence.end() : after.start()].strip()
            yield Step("program", body, after[2] if after is not None and at_once else None)


def alike(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed: … stands for anything or nothing, and times and blanks do not count."""
    few = re.sub(r"…(?: …)+", "…", timeless(shown))
    wanted = re.escape(few).replace(r"\ …\ ", r"\ (?:.*\ )?").replace("…", ".*")
    return bool(re.fullmatch(wanted, timeless(printed)))


def timeless(text: str) -> str:
    """Text without what differs from run to run: seconds, whether in a sentence or in the last column of a table."""
    lines, timed = [], False
    for line in text.splitlines():
        timed = line.rstrip().endswith("seconds") or (timed and bool(line.strip()))
        lines.append(re.sub(r"\s\d+\.\d+\s*$", "", line) if timed else line)
    return re.sub(r"\d+\.\d+ s\b", "0 s", " ".join(" ".join(lines).split()))


def ran(step: Step, folder: Path, names: dict[str, Any]) -> str:
    """What a step prints on standard output."""
    if step.kind == "program":
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(step.code, "<page>", "exec"), names)
        return printed.getvalue()
    words = shlex.split(step.code.replace("\\\n", " "), comments=True)
    if words[0] != "wisecrowd":
        done = subprocess.run(step.code, shell=True, cwd=folder, capture_output=True, text=True, check=True)
        return done.stdout
    result = CliRunner(env={"COLUMNS": "80"}).invoke(build_app(), words[1:], prog_name="wisecrowd", catch_exceptions=False)
    assert result.exit_code == 0, f"$ {step.code}\n{result.stderr}"
    assert result.stderr == "", f"$ {step.code}\n{result.stderr}"
    return result.stdout


@pytest.fixture
def machinery() -> ModuleType:
    """This module, which tests cannot import."""
    return sys.modules[__name__]


@pytest.fixture
def follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[Step]]:
    """Do what a page says, in an empty folder, and fail where something else is printed than the page shows."""
    monkeypatch.chdir(tmp_path)

    def through(page: str) -> list[Step]:
        names: dict[str, Any] = {}
        found = steps((DOCS / page).read_text(encoding="utf-8"))
        for step in found:
            printed = ran(step, tmp_path, names)
            if step.shown is not None:
                assert alike(step.shown, printed), f"{step.code}\n{printed}"
        return found

    return through
