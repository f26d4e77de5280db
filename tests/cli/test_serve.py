"""The command serve: options, refusals, and loading of earlier votes."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from typer.testing import CliRunner

from wisecrowd.cli import build_app, serve

pytest.importorskip("fastapi", reason="the extra serve is not installed")

TOKEN = "a-token-of-sixteen-or-more"
RECORDED = Path(__file__).parents[1] / "recorded"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--host", "0.0.0.0"], "unencrypted"),
        (["--method", "majority-vote"], "cannot be updated vote by vote"),
        (["--method", "dawid-skeene"], "Did you mean 'dawid-skene'?"),
        (["--target", "95"], "must be a probability above 0, such as 0.9"),
        (["--token-file", "nowhere"], "cannot be read from nowhere"),
        (["--task", "photo"], "--task photo describes a file of votes, but none is given"),
    ],
)
def test_bad_usage(words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(build_app(), ["serve", "votes.db", *words])
    assert result.exit_code in (1, 2)
    assert message in result.stderr
    assert not (tmp_path / "votes.db").exists()


def test_short_tokens_and_used_ports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WISECROWD_TOKEN", "short")
    result = CliRunner().invoke(build_app(), ["serve", "votes.db"])
    assert result.exit_code == 2
    assert "16 or more" in result.stderr
    assert "short" not in result.stderr
    monkeypatch.setenv("WISECROWD_TOKEN", TOKEN)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        result = CliRunner().invoke(build_app(), ["serve", "votes.db", "--port", str(other.getsockname()[1])])
    assert result.exit_code == 1
    assert "choose another one with --port" in result.stderr


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Any, dict[str, Any]]]:
    """Run the command with a server that returns at once; give the result, and what the server was to serve."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WISECROWD_TOKEN", TOKEN)

    def serve(*words: str) -> tuple[Any, dict[str, Any]]:
        seen: dict[str, Any] = {}

        def run(coordinator: Any, token: str, bound_socket: Any, *, max_bytes: int, **_: Any) -> None:
            questions = coordinator.questions()
            seen.update(token=token, host=bound_socket.getsockname()[0], max_bytes=max_bytes)
            seen.update(votes=sum(question.live.n_votes for question in questions))

        monkeypatch.setattr("wisecrowd.service.server.run", run)
        return CliRunner().invoke(build_app(), ["serve", "votes.db", "--port", "0", *words]), seen

    return serve


def test_options_reach_the_server(served: Callable[..., tuple[Any, dict[str, Any]]]) -> None:
    result, seen = served("--max-bytes", "5000")
    assert result.exit_code == 0, result.stderr
    assert seen == {"token": TOKEN, "host": "127.0.0.1", "max_bytes": 5000, "votes": 0}
    assert "method model-average" in result.stderr
    assert TOKEN not in result.stderr, "the token of the user is not repeated in what may be a log"
    assert "/?token= followed by your token" in result.stderr


def test_the_link_works_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    token, address = "a+b/c&d=e%f?g#hijk", "http://127.0.0.1:8765"
    assert token not in serve.describe_link(address, token, is_new=False)
    monkeypatch.setattr("sys.stderr", SimpleNamespace(isatty=lambda: True))
    link = urlsplit(serve.describe_link(address, token, is_new=False))
    assert dict(parse_qsl(link.query)) == {"token": token}
    assert not link.fragment


def test_quiet_prints_nothing(served: Callable[..., tuple[Any, dict[str, Any]]]) -> None:
    result, _ = served("--quiet", "--method", "ibcc")
    assert (result.stdout, result.stderr) == ("", "")


def test_a_new_token_is_printed_even_if_quiet(
    served: Callable[..., tuple[Any, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody could use the service otherwise."""
    monkeypatch.delenv("WISECROWD_TOKEN")
    result, seen = served("--quiet")
    assert len(seen["token"]) >= 16
    assert seen["token"] in result.stderr


@pytest.mark.slow
def test_earlier_votes_are_loaded_once(
    served: Callable[..., tuple[Any, dict[str, Any]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wisecrowd.cli.serve.VOTES_PER_TRANSACTION", 2)
    (tmp_path / "old.csv").write_text("photo,worker,x\n" + "".join(f"t{n},w{n % 2},x\n" for n in range(5)))
    columns = ("--task", "photo", "--label", "x")
    result, seen = served("--from", "old.csv", *columns)
    assert seen["votes"] == 5
    assert "Votes in old.csv: 5 new, 0 changed, 0 unchanged" in result.stderr
    result, seen = served("--from", "old.csv", *columns)
    assert seen["votes"] == 5
    assert "0 new, 0 changed, 5 unchanged" in result.stderr


@pytest.mark.slow
def test_what_an_export_leaves_out_is_named(
    served: Callable[..., tuple[Any, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    folder = RECORDED / "label_studio"
    result, seen = served("--from", str(folder / "export_json.json"))
    assert f"18 new, 0 changed, 1 unchanged, with {seen['votes'] + 1} votes" in result.stderr  # one is gold
    assert "left out 4 predictions of models" in result.stderr
    assert "is stored beside" not in result.stderr
    result, seen = served("--from", str(folder / "export_json_min.json"))
    assert "the question 'mood' is stored beside '2:mood'" in result.stderr


def test_an_export_without_classes_is_refused(served: Callable[..., tuple[Any, dict[str, Any]]]) -> None:
    result, seen = served("--from", str(RECORDED / "label_studio_objects" / "export_json.json"))
    assert (result.exit_code, seen) == (1, {})
    assert "only votes on classes can be served" in result.stderr
    assert "names (spans), objects (boxes)" in " ".join(result.stderr.split())
    assert "--question" not in result.stderr


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("example.com", False)],
)
def test_this_machine(host: str, expected: bool) -> None:
    assert serve._is_loopback(host) is expected


def test_json_logs_contain_no_secrets(
    served: Callable[..., tuple[Any, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    result, _ = served("--log-format", "json")
    assert result.exit_code == 0, result.stderr
    entries = [json.loads(line) for line in result.stderr.splitlines()]
    assert entries[0]["message"] == "the service starts"
    assert entries[0]["database"] == "votes.db"
    assert TOKEN not in result.stderr
    result, _ = served("--log-format", "xml")
    assert "must be text or json" in result.stderr
    monkeypatch.delenv("WISECROWD_TOKEN")
    result, _ = served("--log-format", "json")
    assert result.exit_code == 2
    assert "needs a token of your own" in result.stderr
