"""Commands of the page for getting started."""

from __future__ import annotations

import functools
import shlex
from typing import Any

import pytest

import wisecrowd as wc
from wisecrowd.report import build

PAGE = "getting-started.md"

#: Methods of the demo that the page shows.
SHOWN = ("concord", "dawid-skene", "ebcc", "majority-vote", "gmv")


@pytest.mark.slow
def test_outputs_match(follow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from wisecrowd import demo

    # To save time: tests/cli/test_demo.py runs all methods and the comparison in the report.
    monkeypatch.setattr(demo, "run_demo", functools.partial(demo.run_demo, only=SHOWN))
    monkeypatch.setattr(demo.Demo, "report", lambda demo, _: build(demo.crowd, compare=False))
    commands = [step.code for step in follow(PAGE)]
    assert sum(command.startswith("wisecrowd ") for command in commands) >= 8
    [simulate] = [command for command in commands if command.startswith("wisecrowd simulate")]
    python = wc.simulate_crowd(500, 25, 3, votes_per_task=5, workers={"expert": 0.1, "spammer": 0.3, "noisy": 0.6})
    assert wc.read(shlex.split(simulate)[3]) == python.crowd, "the command and the Python code simulate the same crowd"
