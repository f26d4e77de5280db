"""Import of votes from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import CliRunner

import wisecrowd as wc
from wisecrowd.cli import build_app
from wisecrowd.errors import InputError, UsageError
from wisecrowd.io.tools.label_studio_sync import pull
from wisecrowd.io.tools.projects import read_project
from wisecrowd.service import server as server_module
from wisecrowd.service.events import RegisterTasks, Upsert
from wisecrowd.service.store import Store
from wisecrowd.service.vote_files import read_events
from wisecrowd.service.webhooks import parse_webhook

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


def pull_task(path: Path, *, name: str, created_at: str) -> None:
    """Pull a project with one annotation from a server."""
    result = {"from_name": "mood", "type": "choices", "value": {"choices": ["good"]}}

    class Studio:
        def get_project(self, _: int) -> Any:
            return {"title": "Reviews", "created_at": created_at}

        def iter_tasks(self, project: int) -> Any:
            annotations = [{"id": 5, "completed_by": 1, "result": [result]}]
            yield {"id": 7, "project": project, "data": {}, "annotations": annotations, "predictions": []}, 1

    pull(cast(Any, Studio()), 12, path, name=name)


def test_pulled_votes_of_two_servers_stay_apart(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "votes.db"))
    times = {"": "2026-01-01T00:00:00Z", "berlin": "2026-02-01T00:00:00Z"}
    for name, created_at in times.items():
        pull_task(tmp_path / "export.json", name=name, created_at=created_at)
        events = list(read_events(tmp_path / "export.json"))
        assert store.apply(events).outcomes == ["new"]
        # Webhooks of the server continue where the file ends.
        project = {"id": 12, "created_at": created_at}
        deletion = {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": 5}], "project": project}
        sources = {cast(Upsert, event).source for event in [*events, *parse_webhook(deletion, name)]}
        assert len(sources) == 1
    assert set(store.vocabularies) == {"12:mood", "berlin/12:mood"}
    pull_task(tmp_path / "export.json", name="", created_at="2026-03-01T00:00:00Z")
    with pytest.raises(InputError, match="another server"):
        store.apply(list(read_events(tmp_path / "export.json")))
    store.close()


def test_invalid_server_of_a_pulled_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    pull_task(path, name="berlin", created_at="2026-02-01T00:00:00Z")
    for text in ('"a/b"', "5", '{"a": []}', "null"):
        damaged = tmp_path / "damaged.json"
        damaged.write_text(path.read_text(encoding="utf-8").replace('"berlin"', text), encoding="utf-8")
        with pytest.raises(InputError, match="names the server"):
            list(read_events(damaged))
    with pytest.raises(UsageError, match=r"'a/b'; expected at most 100"):
        pull_task(path, name="a/b", created_at="")


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


def test_marks_are_refused(tmp_path: Path) -> None:
    span = {
        "text": "Ann",
        "_input_hash": 1,
        "_session_id": "ann",
        "_view_id": "ner_manual",
        "answer": "accept",
        "spans": [],
    }
    (tmp_path / "db.jsonl").write_text(json.dumps(span) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="only votes on classes can be served; this export has spans"):
        list(read_events(tmp_path / "db.jsonl"))
