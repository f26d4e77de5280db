"""The commands of the README work, on some votes and features of anybody's."""

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


@pytest.mark.filterwarnings("ignore::wisecrowd.errors.NotConverged")
def test_commands_work(machinery: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wisecrowd.evaluate import model_selection as choosing

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(choosing, "CANDIDATES", ("dawid-skene", "majority-vote"))  # it is the commands that are tried
    made = wc.simulate_crowd(40, 6, 2, votes_per_task=3)
    wc.write(made.crowd, "votes.csv")
    Path("votes").mkdir()
    wc.write(made.crowd, "votes/monday.parquet")
    said = {"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": ["good"]}}
    task = {"id": 1, "data": {"text": "Lovely!"}, "annotations": [{"completed_by": 7, "result": [said]}]}
    Path("export.json").write_text(json.dumps([task]), encoding="utf-8")
    seen = np.eye(2)[made.crowd.classes.get_indexer(made.truth)] + np.random.default_rng(0).normal(size=(40, 2))
    np.savez("X.npz", task=made.truth.index.to_numpy(dtype=str), X=seen)
    steps = machinery.steps((ROOT / "README.md").read_text(encoding="utf-8"))
    commands = [step for step in steps if step.code.startswith("wisecrowd ")]
    assert {step.code.split()[1] for step in commands} >= {
        "check",
        "aggregate",
        "learn",
        "diagnose",
        "compare",
        "plan",
        "report",
    }
    given = {path.name for path in tmp_path.iterdir()}
    for step in commands:
        machinery.ran(step, tmp_path, {})
    assert {path.name for path in tmp_path.iterdir()} - given == {"crowd", "out", "full", "report.html"}


def test_pages_exist(machinery: Any) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    linked = [part.split(")")[0] for part in text.split("](")[1:]]
    here = [link for link in linked if "://" not in link]
    assert here
    assert [link for link in here if not (ROOT / link).exists()] == []
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {str(path.relative_to(machinery.DOCS)) for path in machinery.DOCS.rglob("*.md")}
    assert sorted(page for page in pages if page not in site) == [], "pages that the site does not lead to"


def test_what_is_to_be_installed_can_be() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    told = {
        "README.md": r'"\.\[([\w,]+)\]"',
        "docs/getting-started.md": r'"\.\[([\w,]+)\]"',
        "Makefile": r"^\w+: \$\(VENV\)/installed-([\w,]+)",
    }
    for name, pattern in told.items():
        lists = re.findall(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        assert lists, name
        assert sorted({extra for named in lists for extra in named.split(",")} - set(extras)) == [], name
