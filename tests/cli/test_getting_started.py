"""The page for newcomers tells the truth: every command line on it is run, and prints what the page shows."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "getting-started.md"


def sessions() -> list[tuple[str, str]]:
    """Command lines and what the page shows below each, in order."""
    blocks = re.findall(r"^```console\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    parts = [part for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE) if part]
    return [(command, output) for command, _, output in (part.partition("\n") for part in parts)]


def pattern(shown: str) -> str:
    """What matches the shown output: … stands for anything, the time for any time, and blanks for blanks."""
    text = re.escape(" ".join(shown.split()))
    text = text.replace("…", ".*")
    return re.sub(r"\d+\\\.\d+\\ s\b", r"\\d+\\.\\d+\\ s", text)


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a 0.04 s, b", "a 1.23 s, b", True),
        ("a\n…\nb", "a\nx\ny\nb", True),
        ("a  b", "a b", True),
        ("a b", "a c", False),
        ("accuracy 85.6%", "accuracy 85.7%", False),
    ],
)
def test_how_outputs_are_compared(shown: str, printed: str, same: bool) -> None:
    assert bool(re.fullmatch(pattern(shown), " ".join(printed.split()))) is same


def test_the_page_is_true(run: Any, tmp_path: Path) -> None:
    seen = sessions()
    assert sum(command.startswith("wisecrowd ") for command, _ in seen) >= 8
    for command, shown in seen:
        words = shlex.split(command)
        if words[0] == "wisecrowd":
            result = run(*words[1:])
            assert result.exit_code == 0, result.stderr
            printed = result.stdout
        else:
            printed = subprocess.run(
                command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=True
            ).stdout
        assert re.fullmatch(pattern(shown), " ".join(printed.split())), f"$ {command}\n{printed}"


def test_the_same_crowd_in_python_and_on_the_command_line(run: Any) -> None:
    """The page says so."""
    import wisecrowd as wc

    [command] = [command for command, _ in sessions() if command.startswith("wisecrowd simulate")]
    run(*shlex.split(command)[1:])
    made = wc.simulate_crowd(500, 25, 3, labels_per_task=5, workers={"expert": 0.1, "spammer": 0.3, "noisy": 0.6})
    assert wc.read("votes.csv") == made.crowd
