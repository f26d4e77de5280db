"""The page for newcomers."""

from __future__ import annotations

import functools
import shlex
from typing import Any

import pytest

import wisecrowd as wc
from wisecrowd.report import build

PAGE = "getting-started.md"

#: Methods of the demo that the page has lines of.
SHOWN = ("concord", "dawid-skene", "ebcc", "majority-vote", "gmv")


def test_the_page_is_true(follow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from wisecrowd import demo

    # Methods that the page does not show, and the report's comparison of methods, are left to tests/cli/test_demo.py.
    monkeypatch.setattr(demo, "run_demo", functools.partial(demo.run_demo, only=SHOWN))
    monkeypatch.setattr(demo.Demo, "report", lambda found, _: build(found.crowd, compare=False))
    commands = [step.code for step in follow(PAGE)]
    assert sum(command.startswith("wisecrowd ") for command in commands) >= 8
    [made] = [command for command in commands if command.startswith("wisecrowd simulate")]
    python = wc.simulate_crowd(500, 25, 3, votes_per_task=5, workers={"expert": 0.1, "spammer": 0.3, "noisy": 0.6})
    assert wc.read(shlex.split(made)[3]) == python.crowd, "the page makes the same crowd in Python"
