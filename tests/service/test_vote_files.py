"""Import of votes from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import wisecrowd as wc
from wisecrowd.cli import build_app
from wisecrowd.errors import InputError
from wisecrowd.io.tools.projects import read_project
from wisecrowd.service import server as server_module
from wisecrowd.service.events import RegisterTasks, Upsert
from wisecrowd.service.store import Store
from wisecrowd.service.vote_files import read_events

RECORDED = Path(__file__).parents[1] / "recorded"


def test_table_of_votes(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label,time\nt1,ann,good,2026-01-01T00:00:00Z\nt1,bob,bad,\n", encoding="utf-8")
    first, second = read_events(path)
    assert isinstance(first, Upsert)
    assert isinstance(second, Upsert)
    assert first.records[0] == ("votes", "t1", "ann", "good", 1767225600.0)
    assert second.records[0].time is None


def test_service_has_the_votes_of_the_export(tmp_path: Path) -> None:
    export = next(path for path in sorted((RECORDED / "label_studio").glob("*.json")) if "min" not in path.name.lower())
    project = read_project(export, duplicates="last")
    store = Store(str(tmp_path / "votes.db"))
    events = list(read_events(export))
    store.apply(events)
    assert set(store.apply(events).outcomes) <= {"unchanged"}  # told again
    number = json.loads(export.read_text(encoding="utf-8"))[0]["project"]
    for name, question in project.questions.items():
        if question.kind == "number" or not question.people.n_votes:
            continue
        words = store.vocabularies[f"{number}:{name}"]
        actual = store.votes_on(words.code, range(len(words.tasks)))
        mine = {
            (words.tasks.names[task], words.workers.names[who], words.classes.names[label])
            for task, votes in actual.items() for who, label in votes.items()
        }  # fmt: skip
        theirs = question.people.to_frame()
        assert mine == set(zip(*(theirs[column].astype(str) for column in ("task", "worker", "label")), strict=True))
    store.close()


def test_exports_of_other_tools() -> None:
    export = next((RECORDED / "doccano").glob("*.zip"))
    events = list(read_events(export))
    expected = {name: each.crowd.n_votes for name, each in read_project(export).questions.items()}
    actual: dict[str, int] = dict.fromkeys(expected, 0)
    for each in events:
        if isinstance(each, Upsert):
            actual[each.records[0].question] += each.records[0].worker is not None
        else:
            assert isinstance(each, RegisterTasks)
    assert actual == expected


def test_long_names_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(f"task,worker,label\n{'t' * 1001},ann,good\n", encoding="utf-8")
    with pytest.raises(InputError, match="1,000 characters at most"):
        list(read_events(path))


def test_option_from_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    captured: dict[str, Any] = {}

    def run(coordinator: Any, *_: Any, **__: Any) -> None:
        captured["votes"] = coordinator.question().live.n_votes
        raise KeyboardInterrupt

    monkeypatch.setattr(server_module, "run", run)
    monkeypatch.setenv("WISECROWD_TOKEN", "")
    path = tmp_path / "votes.csv"
    wc.simulate_crowd(n_tasks=20, votes_per_task=3).crowd.to_frame().to_csv(path, index=False)
    words = ["serve", str(tmp_path / "votes.db"), "--port", "0", "--from", str(path)]
    result = CliRunner().invoke(build_app(), words)
    assert result.exit_code == 0, result.output
    assert captured["votes"] == 60
    assert "60 new, 0 changed, 0 unchanged" in result.stderr
    result = CliRunner().invoke(build_app(), [*words, "--quiet"])
    assert "New token" in result.stderr  # which nobody could know otherwise
    assert "Votes in" not in result.stderr
    assert captured["votes"] == 60


def test_refusals_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(f"task,worker,label\n{'t' * 2000},ann,cat\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"votes\.csv: names have 1,000 characters at most"):
        list(read_events(path))
