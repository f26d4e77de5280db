"""Runner for the commands and programs on documentation pages, which compares their output with the page.

Commands are in ``console`` blocks, each after ``$`` with its output below. Programs are in ``python`` blocks. A ``text`` block that
follows a program directly is its output. Blocks with ``>>>`` are doctests and are run as such.
"""

from __future__ import annotations

import contextlib
import functools
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
    """Command or program on a page, with the output on the page (None if there is none)."""

    kind: str
    code: str
    shown: str | None


def steps(text: str) -> list[Step]:
    """Return the commands and programs of a page in order."""
    return list(_steps(text))


def _steps(text: str) -> Iterator[Step]:
    fences = list(re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    for fence, after in zip(fences, [*fences[1:], None], strict=True):
        kind, body = fence.groups()
        if kind == "console":
            for part in filter(None, re.split(r"^\$ ", body, flags=re.MULTILINE)):
                # A command that ends in a backslash continues on the next line.
                [command] = re.findall(r"\A(?:.*\\\n)*.*", part)
                yield Step("command", command, part[len(command) + 1 :])
        elif kind == "python" and not body.startswith(">>>"):
            is_next = after is not None and after[1] == "text" and not text[fence.end() : after.start()].strip()
            yield Step("program", body, after[2] if after is not None and is_next else None)


def outputs_match(shown: str, printed: str) -> bool:
    """Return whether the output equals the page. An ellipsis matches any text; seconds and white space are ignored."""
    pattern = re.sub(r"…(?: …)+", "…", remove_seconds(shown))
    expected = re.escape(pattern).replace(r"\ …\ ", r"\ (?:.*\ )?").replace("…", ".*")
    return bool(re.fullmatch(expected, remove_seconds(printed)))


def remove_seconds(text: str) -> str:
    """Return the text without seconds, in sentences and in the last column of a table."""
    lines, timed = [], False
    for line in text.splitlines():
        timed = line.rstrip().endswith("seconds") or (timed and bool(line.strip()))
        lines.append(re.sub(r"\s\d+\.\d+\s*$", "", line) if timed else line)
    return re.sub(r"\d+\.\d+ s\b", "0 s", " ".join(" ".join(lines).split()))


_app = functools.cache(build_app)


def run_step(step: Step, folder: Path, names: dict[str, Any]) -> str:
    """Run a step and return its output, as a terminal shows it."""
    if step.kind == "program":
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(step.code, "<page>", "exec"), names)
        return printed.getvalue()
    words = shlex.split(step.code.replace("\\\n", " "), comments=True)
    if words[0] != "wisecrowd":
        process = subprocess.run(step.code, shell=True, cwd=folder, capture_output=True, text=True, check=True)
        return process.stdout
    result = CliRunner(env={"COLUMNS": "80"}).invoke(_app(), words[1:], prog_name="wisecrowd", catch_exceptions=False)
    assert result.exit_code == 0, f"$ {step.code}\n{result.stderr}"
    # A slow machine reports progress; warnings belong to the output of the page.
    return re.sub(
        r"^.*: (\d+ %|step [\d,]+ of at most [\d,]+) after \d+ (s|min).*\n", "", result.output, flags=re.MULTILINE
    )


@pytest.fixture
def machinery() -> ModuleType:
    """Return this module, which tests cannot import."""
    return sys.modules[__name__]


@pytest.fixture
def follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[Step]]:
    """Return a function that runs a page in an empty folder and fails if an output differs from the page."""
    monkeypatch.chdir(tmp_path)

    def run_page(page: str) -> list[Step]:
        names: dict[str, Any] = {}
        page_steps = steps((DOCS / page).read_text(encoding="utf-8"))
        for step in page_steps:
            printed = run_step(step, tmp_path, names)
            if step.shown is not None:
                assert outputs_match(step.shown, printed), f"{step.code}\n{printed}"
        return page_steps

    return run_page
