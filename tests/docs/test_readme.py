"""The commands, links and extras in the README."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wisecrowd as wc

ROOT = Path(__file__).parents[2]


def read_commands(machinery: Any, text: str) -> list[Any]:
    """Return the wisecrowd commands of a page: those of console blocks, then those of tables."""
    in_blocks = [step for step in machinery.steps(text) if step.code.startswith("wisecrowd ")]
    rows = [line for line in text.splitlines() if line.startswith("|")]
    in_tables = [
        machinery.Step("command", code, None) for row in rows for code in re.findall(r"`(wisecrowd [^`]+)`", row)
    ]
    return in_blocks + in_tables


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::wisecrowd.errors.NotConverged")
def test_commands_work(machinery: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wisecrowd.evaluate import model_selection

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(model_selection, "CANDIDATES", ("dawid-skene", "majority-vote"))  # the test is of commands
    simulated = wc.simulate_crowd(40, 6, 2, votes_per_task=3)
    wc.write(simulated.crowd, "votes.csv")
    Path("arena.csv").write_text("judge,model_a,model_b,winner\nann,m1,m2,model_a\nbob,m2,m3,tie\n", encoding="utf-8")
    Path("votes").mkdir()
    wc.write(simulated.crowd, "votes/monday.parquet")
    answer = {"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": ["good"]}}
    task = {"id": 1, "data": {"text": "Lovely!"}, "annotations": [{"completed_by": 7, "result": [answer]}]}
    Path("export.json").write_text(json.dumps([task]), encoding="utf-8")
    one_hot = np.eye(2)[simulated.crowd.classes.get_indexer(simulated.truth)]
    X = one_hot + np.random.default_rng(0).normal(size=(40, 2))
    np.savez("X.npz", task=simulated.truth.index.to_numpy(dtype=str), X=X)
    commands = read_commands(machinery, (ROOT / "README.md").read_text(encoding="utf-8"))
    assert {step.code.split()[1] for step in commands} >= {
        "check",
        "aggregate",
        "learn",
        "complete",
        "diagnose",
        "compare",
        "plan",
        "report",
        "questions",
        "serve",
        "shard",
        "methods",
        "cite",
    }
    inputs = {path.name for path in tmp_path.iterdir()}
    for step in commands:
        if step.code.split()[1] not in (
            "serve",
            "review",
        ):  # they run until they are stopped; their own tests start them
            machinery.run_step(step, tmp_path, {})
    assert {path.name for path in tmp_path.iterdir()} - inputs == {
        "results",
        "report.html",
        "completed",
        "crowd",
        "audit",
    }


def test_pages_exist(machinery: Any) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    linked = [part.split(")")[0] for part in text.split("](")[1:]]
    local = [link for link in linked if "://" not in link]
    assert local
    assert [link for link in local if not (ROOT / link).exists()] == []
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {str(path.relative_to(machinery.DOCS)) for path in machinery.DOCS.rglob("*.md")}
    assert sorted(page for page in pages if page not in site) == [], "pages missing in mkdocs.yml"


def test_extras_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    patterns = {
        "README.md": r'"\.\[([\w,]+)\]"',
        "docs/getting-started.md": r'"\.\[([\w,]+)\]"',
        "Makefile": r"^\w+: \$\(VENV\)/installed-([\w,]+)",
    }
    for name, pattern in patterns.items():
        lists = re.findall(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        assert lists, name
        assert sorted({extra for named in lists for extra in named.split(",")} - set(extras)) == [], name
