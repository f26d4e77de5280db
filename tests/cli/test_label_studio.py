from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wisecrowd.io import read_project
from wisecrowd.io.tools import label_studio_server, label_studio_sync

RECORDED = Path(__file__).parent.parent / "recorded" / "label_studio"
_spec = importlib.util.spec_from_file_location("label_studio_stub", RECORDED / "stub.py")
assert _spec is not None
assert _spec.loader is not None
stub = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(stub)
studio = stub.studio


@pytest.fixture
def ask(run: Any, studio: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Run ``wisecrowd label-studio`` on the stand-in; whatever it does, it shows no token and leaves none in a file."""
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", stub.PERSONAL)
    secrets = (stub.PERSONAL, stub.LEGACY, "personal-secret", "lent-")

    def asked(*words: object, url: str | None = None, project: int | None = None) -> Any:
        result = run("label-studio", *words, "--url", url or studio.url, "--project", project or studio.number)
        assert not any(secret in result.output for secret in secrets)
        return result

    yield asked
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.name != "token":
            assert not any(secret in path.read_text(encoding="utf-8") for secret in secrets), path


@pytest.fixture
def results(run: Any, ask: Any, tmp_path: Path) -> Path:
    """Results of ``wisecrowd aggregate`` on a pulled project."""
    assert ask("pull", "-o", "export.json", "-q").exit_code == 0
    assert run("aggregate", "export.json", "--question", "mood", "-o", "results").exit_code == 0
    return tmp_path / "results"


def test_pull_says_what_came(ask: Any, studio: Any, tmp_path: Path) -> None:
    result = ask("pull", "-o", "export.json")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines() == [
        f"Read       project 2 of {studio.url} (Label Studio 1.23.2)",
        "Wrote      export.json: 8 tasks, 19 annotations, 4 predictions",
        "Questions  mood (21 votes), topics (15 votes), stars (17 votes)",
    ]
    assert len(read_project(tmp_path / "export.json").tasks) == 8


def test_pull_in_json(ask: Any, studio: Any) -> None:
    for task in studio.tasks:
        task.update(annotations=[], predictions=[])
    told = json.loads(ask("pull", "-o", "export.json", "--json").stdout)
    assert told == {
        "url": studio.url, "version": "1.23.2", "project": 2, "tasks": 8, "annotations": 0, "predictions": 0, "questions": {},
    }  # fmt: skip
    assert "no votes yet" in ask("pull", "-o", "again.json").stdout


def test_pull_overwrites_nothing_unasked(ask: Any, tmp_path: Path, studio: Any) -> None:
    (tmp_path / "export.json").write_text("mine")
    refused = ask("pull", "-o", "export.json")
    assert refused.exit_code == 2
    assert "export.json exists; choose another file with -o, or overwrite it with --force" in refused.stderr
    assert studio.seen == []
    studio.troubles = [("GET /api/tasks", 500)]
    failed = ask("pull", "-o", "export.json", "--force")
    assert failed.exit_code == 1
    assert "refused (500)" in failed.stderr
    assert (tmp_path / "export.json").read_text() == "mine"
    assert ask("pull", "-o", "export.json", "--force", "-q").output == ""
    assert len(json.loads((tmp_path / "export.json").read_text())) == 8


@pytest.mark.slow
def test_push_puts_the_consensus_there(ask: Any, results: Path, studio: Any) -> None:
    dry = ask("push", results, "--dry-run")
    assert "Would put  6 answers to 'mood' by 'wisecrowd panel': 6 added" in dry.stdout
    assert studio.predictions() == []
    done = ask("push", results)
    assert done.exit_code == 0, done.stderr
    assert "6 answers to 'mood' by 'wisecrowd panel': 6 added" in done.stdout
    assert "6 as they were" in ask("push", results).stdout
    assert {one["model_version"] for one in studio.predictions()} == {"wisecrowd panel"}
    assert all(0 < one["score"] <= 1 for one in studio.predictions())
    assert len(studio.predictions()) == 6
    again = ask("pull", "-o", "again.json")
    assert "mood (21 votes)" in again.stdout, "what was pushed is no vote"


def test_an_interrupted_push_says_how_to_go_on(ask: Any, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("wisecrowd.io.tools.label_studio_server.LabelStudioClient.add_predictions", interrupted)
    stopped = ask("push", results)
    assert stopped.exit_code == 130
    assert "predictions pushed so far stay; run the same command again to continue" in stopped.stderr


def test_push_in_json_and_what_stays(ask: Any, results: Path, tmp_path: Path, studio: Any) -> None:
    ask("push", results, "-q")
    (tmp_path / "one.csv").write_text("task,label\n4,bad\n")
    told = json.loads(ask("push", "one.csv", "--question", "mood", "--json").stdout)
    assert told == {
        "url": studio.url, "version": "1.23.2", "project": 2, "dry_run": False, "question": "mood", "added": 0, "changed": 1,
        "removed": 0, "same": 0, "stale": 5,
    }  # fmt: skip
    assert "5 predictions of earlier runs on tasks without a label now; not removed" in " ".join(
        ask("push", "one.csv", "--question", "mood").stdout.split()
    )


def test_tokens_can_be_in_a_file(ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, studio: Any) -> None:
    monkeypatch.delenv("LABEL_STUDIO_API_KEY")
    refused = ask("pull", "-o", "export.json")
    assert refused.exit_code == 2
    assert "there is no token for Label Studio" in refused.stderr
    assert studio.seen == []
    (tmp_path / "token").write_text(stub.LEGACY + "\n")
    assert ask("pull", "-o", "export.json", "--token-file", "token", "-q").exit_code == 0
    assert studio.seen[-1][2] == f"Token {stub.LEGACY}"


@pytest.mark.parametrize(
    ("url", "code", "message"),
    [
        ("http://label-studio.example.com", 2, "the token would be sent unencrypted to label-studio.example.com"),
        ("nonsense://x", 2, "the address of Label Studio is invalid; expected one such as"),
    ],
)
def test_addresses_that_are_refused(ask: Any, url: str, code: int, message: str) -> None:
    result = ask("pull", "-o", "export.json", url=url)
    assert result.exit_code == code
    assert message in result.stderr


def test_refusals_end_in_one_line(ask: Any, studio: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = ask("pull", "-o", "export.json", project=77)
    assert missing.exit_code == 1
    assert missing.stderr.startswith(f"Error: there is no project 77 at {studio.url}; there are 2 'Restaurants'.")
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", wrong := stub.jwt("refresh", 9e9, "wrong"))
    refused = ask("pull", "-o", "export.json")
    assert refused.exit_code == 1
    assert "does not accept this personal access token" in refused.stderr
    assert wrong not in refused.output
    assert "wrong-secret" not in refused.output


def test_debug_shows_no_token_either(run: Any, studio: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", stub.LEGACY)
    studio.troubles = [("GET /api/projects", 500)]
    result = run("--debug", "label-studio", "pull", "--url", studio.url, "--project", 2, "-o", "export.json")
    assert "Traceback" in result.stderr
    assert stub.LEGACY not in result.output


def test_plans_and_other_questions_are_refused(ask: Any, results: Path, tmp_path: Path, studio: Any) -> None:
    (tmp_path / "next").mkdir()
    (tmp_path / "next" / "requests.csv").write_text("task,worker\n4,1\n")
    refused = ask("push", "next")
    assert refused.exit_code == 2
    assert "Write the tasks for import with wisecrowd export --queue" in refused.stderr
    refused = ask("push", results, "--question", "topics")
    assert refused.exit_code == 2
    assert "has answers to 'mood', not to 'topics'" in refused.stderr
    assert ask("push", "nowhere").exit_code == 1
    assert studio.calls("POST /api/projects") == 0


def test_the_whole_exchange_has_a_time_limit(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float] = []
    connect = label_studio_server.LabelStudioClient.__init__

    def record(self: Any, *arguments: Any, timeout: float, **options: Any) -> None:
        limits.append(timeout)
        connect(self, *arguments, timeout=timeout, **options)

    monkeypatch.setattr(label_studio_server.LabelStudioClient, "__init__", record)
    assert ask("pull", "-o", "a.json").exit_code == 0
    assert ask("pull", "-o", "b.json", "--timeout", 90).exit_code == 0
    assert limits == [3600, 90]
    assert ask("pull", "-o", "c.json", "--timeout", 0).exit_code == 2


@pytest.mark.parametrize(
    ("name", "text"), [("objects", "task,start,end,label\n4,0,3,PER\n"), ("texts", "task,text\n4,a cat\n")]
)
def test_objects_and_texts_are_pushed(
    ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    pushed: list[Any] = []

    def take(_server: Any, _project: int, table: Any, **options: Any) -> label_studio_sync.PushSummary:
        pushed.append((table, options))
        return label_studio_sync.PushSummary("names", added=1)

    monkeypatch.setattr(label_studio_sync, f"push_{name}", take)
    (tmp_path / f"{name}.csv").write_text(text)
    done = ask("push", tmp_path / f"{name}.csv", "--question", "names")
    assert "1 answer to 'names' by 'wisecrowd': 1 added" in done.stdout
    ((table, options),) = pushed
    assert table.reset_index()["task"].tolist() == ["4"]  # a text, as in the export
    assert options["question"] == "names"
