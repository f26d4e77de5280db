"""``wisecrowd review``: from an audit to checks and back, through kills, and into every labelling tool."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import wisecrowd as wc
from wisecrowd.cli import build_app

pytest.importorskip("fastapi", reason="the extra serve is not installed")
from wisecrowd.io import read_project
from wisecrowd.io.tools.consensus_export import TOOLS
from wisecrowd.service.review_app import ReviewRequest, ReviewSession

RECORDED = Path(__file__).parents[1] / "recorded"
Reviewed = Callable[..., tuple[Any, ReviewSession]]


@pytest.fixture
def reviewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reviewed:
    """Run the command with a server at whose place a function decides; give the result and the session."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WISECROWD_TOKEN", raising=False)

    def review(*words: object, decide: Callable[[ReviewSession], None] = lambda _: None) -> tuple[Any, ReviewSession]:
        sessions: list[ReviewSession] = []

        class Server:
            def run(self, sockets: list[Any]) -> None:
                assert sockets[0].getsockname()[0] == "127.0.0.1"
                decide(sessions[0])

        def create_app(session: ReviewSession, token: str) -> None:
            assert len(token) >= 16
            sessions.append(session)

        monkeypatch.setattr("wisecrowd.service.review_app.create_review_app", create_app)
        monkeypatch.setattr("wisecrowd.service.server.create_server", lambda app: Server())
        result = CliRunner(env={"COLUMNS": "200"}).invoke(
            build_app(["review"]), ["review", *map(str, words), "--port", "0"], catch_exceptions=False
        )
        return result, sessions[0] if sessions else None  # type: ignore[return-value]

    return review


def decide_all(truth: Callable[[str], str | None], name: str = "Maria") -> Callable[[ReviewSession], None]:
    def decide(session: ReviewSession) -> None:
        for number, task in enumerate(session.queue.names):
            session.decide(ReviewRequest(number=number, truth=truth(task), reviewer=name))

    return decide


@pytest.fixture
def simulated(tmp_path: Path) -> pd.Series:
    made = wc.simulate_crowd(n_tasks=200, n_workers=12, n_classes=3, votes_per_task=4, random_state=2)
    made.crowd.to_frame().to_csv(tmp_path / "votes.csv", index=False)
    return made.truth


@pytest.mark.slow
def test_audit_review_audit(reviewed: Reviewed, run: Any, simulated: pd.Series) -> None:
    run("audit", "votes.csv", "--size", "40", "-o", "audit")
    result, session = reviewed(
        "votes.csv", "--tasks", "audit", "-o", "checked.csv", decide=decide_all(simulated.__getitem__)
    )
    assert result.exit_code == 0, result.output
    assert "40 of 40 tasks to settle" in result.stderr
    assert "40 decisions in checked.csv" in result.stderr
    assert session.is_blind, "an audit does not depend on the votes"
    drawn = pd.read_csv("audit/checks.csv")
    assert session.queue.names == drawn["task"].tolist()
    checked = pd.read_csv("checked.csv", index_col="task")
    assert checked["weight"].to_dict() == drawn.set_index("task")["weight"].to_dict()
    assert set(checked["reviewer"]) == {"Maria"}
    audited = run("audit", "votes.csv", "--checked", "checked.csv", "--json")
    by_hand = drawn.assign(truth=simulated[drawn["task"]].to_numpy())
    by_hand.to_csv("by_hand.csv", index=False)
    expected = run("audit", "votes.csv", "--checked", "by_hand.csv", "--json")
    assert json.loads(audited.stdout)["summary"] == json.loads(expected.stdout)["summary"]
    assert "audit votes.csv --checked checked.csv" in session.next_commands[0]


@pytest.mark.slow
def test_disputed_tasks_become_gold(reviewed: Reviewed, run: Any, simulated: pd.Series) -> None:
    result, session = reviewed("votes.csv", "--limit", "10", decide=decide_all(simulated.__getitem__))
    assert result.exit_code == 0, result.output
    assert len(session.queue) == 10
    assert not session.is_blind
    before = json.loads(run("aggregate", "votes.csv", "--json").stdout)["summary"]
    after = json.loads(run("aggregate", "votes.csv", "--gold", "checked.csv", "--json").stdout)["summary"]
    assert after["gold"]["tasks"] == 10
    assert "gold" not in before
    again, resumed = reviewed("votes.csv", "--limit", "20")
    assert "10 of 20 tasks to settle" in again.stderr, "a review goes on where it ended"
    assert resumed.describe_progress()["states"].count("d") == 10


@pytest.mark.usefixtures("simulated")
def test_labels_are_those_of_aggregate(reviewed: Reviewed, run: Any) -> None:
    run("aggregate", "votes.csv", "-o", "results")
    labels = pd.read_csv("results/labels.csv", index_col="task")
    workers = pd.read_csv("results/workers.csv", index_col="worker", keep_default_na=False)
    _, session = reviewed("votes.csv")
    for number, task in enumerate(session.queue.names):
        shown = session.describe_votes(number)
        assert shown["label"] == labels["label"][task]
        assert shown["confidence"] == pytest.approx(labels["confidence"][task], abs=6e-4)
        for vote in shown["votes"]:
            assert vote["accuracy"] == pytest.approx(float(workers["accuracy"][vote["worker"]]), abs=6e-4)
            assert vote["flags"] == workers["flags"][vote["worker"]]


@pytest.mark.usefixtures("simulated")
def test_checks_that_were_filled_in_by_hand_are_kept(reviewed: Reviewed, run: Any) -> None:
    run("audit", "votes.csv", "--size", "5", "-o", "audit")
    checks = pd.read_csv("audit/checks.csv", dtype={"truth": object})
    checks.loc[1, "truth"] = "c2"
    checks.to_csv("half.csv", index=False)
    result, session = reviewed("votes.csv", "--tasks", "half.csv", "-o", "checked.csv")
    assert "4 of 5 tasks to settle" in result.stderr
    assert session.describe_progress()["states"] == "odooo"


@pytest.mark.usefixtures("simulated")
def test_columns_of_the_votes_do_not_hide_those_of_an_audit(reviewed: Reviewed, run: Any) -> None:
    Path("votes.csv").write_text(Path("votes.csv").read_text().replace("task,", "photo nr,", 1))
    options = ("--task", "photo nr", "-m", "one-coin")
    assert run("audit", "votes.csv", *options, "--size", "5", "-o", "audit").exit_code == 0
    _, session = reviewed("votes.csv", *options, "--tasks", "audit", decide=decide_all(lambda _: "c1"))
    assert session.is_blind
    assert list(pd.read_csv("checked.csv"))[-3:] == ["stratum", "weight", "draw"]
    words = shlex.split(session.next_commands[0])
    assert words[:2] == ["wisecrowd", "audit"]
    evaluated = run(*words[1:], "--json")
    assert json.loads(evaluated.stdout)["summary"]["checked"] == 5, evaluated.output


@pytest.mark.usefixtures("simulated")
def test_decisions_of_other_votes_and_classes_are_named(reviewed: Reviewed, run: Any) -> None:
    run("audit", "votes.csv", "--size", "5", "-o", "audit")
    checks = pd.read_csv("audit/checks.csv", dtype={"truth": object})
    checks.loc[1, "truth"] = "c22"
    checks.to_csv("half.csv", index=False)
    result, _ = reviewed("votes.csv", "--tasks", "half.csv")
    assert result.exit_code == 1
    assert f"'c22' for task '{checks['task'][1]}' (did you mean 'c2'?)" in " ".join(result.stderr.split())
    checks.loc[1, "truth"] = " C2"
    checks.to_csv("half.csv", index=False)
    _, session = reviewed("votes.csv", "--tasks", "half.csv", "--normalise")
    assert list(session.log.gold.values()) == ["c2"]
    votes = Path("votes.csv").read_text().replace("\nt", "\nx")
    Path("other.csv").write_text(votes)
    assert "give the --tasks of that review" in reviewed("votes.csv", "--normalise")[0].stderr
    again, _ = reviewed("other.csv", "--tasks", "half.csv")
    assert "5 of 5 tasks to review have no votes" in again.stderr
    Path("plain.csv").write_text(f"task,truth\n{checks['task'][1]},c2\n")
    reviewed("votes.csv", "--tasks", "plain.csv", "-o", "plain_checked.csv")
    again, _ = reviewed("other.csv", "-o", "plain_checked.csv")
    assert again.exit_code == 1, again.stderr
    assert "plain_checked.csv: its only task has no votes" in " ".join(again.stderr.split())


TOOL_FILES = {
    "label-studio": ("label_studio/export_json.json", "mood"),
    "argilla": ("argilla/before.json", "mood"),
    "doccano": ("doccano/mood-jsonl.zip", "label"),
    "prodigy": (None, None),
}


def write_prodigy(path: Path) -> None:
    options = [{"id": name, "text": name} for name in ("good", "bad")]
    rows = [
        {"text": f"Text {task}", "_input_hash": task, "_session_id": f"s-{worker}", "_view_id": "choice", "options": options,
         "accept": [label], "answer": "accept"}
        for task, worker, label in [(1, "ann", "good"), (1, "bob", "bad"), (2, "ann", "good"), (2, "bob", "good")]
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize("tool", TOOL_FILES)
@pytest.mark.slow
def test_decisions_are_exported_for_every_tool(reviewed: Reviewed, run: Any, tmp_path: Path, tool: str) -> None:
    file, question = TOOL_FILES[tool]
    if file is None:
        write_prodigy(tmp_path / "export.jsonl")
        export: Path = tmp_path / "export.jsonl"
    else:
        export = RECORDED / file
    project = read_project(export, duplicates="keep")
    asked = project.get_question(question)
    label = str(asked.crowd.classes[0])
    (tmp_path / "tasks.csv").write_text("task\n" + "".join(f"{task}\n" for task in asked.crowd.tasks[:2]))
    words = ["--question", question] if question and len(project.questions) > 1 else []
    downloads, sessions = [], []

    def decide(session: ReviewSession) -> None:
        decide_all(lambda _: label)(session)
        assert session.export is not None
        sessions.append(session)
        downloads.append(session.export(session.log.gold))
        assert session.queue.describe_task(0)["text"], "the text of the export is shown"

    result, _ = reviewed(export, "--tasks", "tasks.csv", *words, "--duplicates", "last", decide=decide)
    assert result.exit_code == 0, result.output
    done = run("export", "checked.csv", "--project", export, *words, "-o", downloads[0][0])
    assert done.exit_code == 0, done.output
    assert Path(downloads[0][0]).read_bytes() == downloads[0][2], "the page and the command write the same"
    for command in sessions[0].next_commands:
        words = shlex.split(command)[1:]
        assert run(*words).exit_code == 0, f"the page advises {command}"
    records = [
        json.loads(line.strip(",")) for line in Path(downloads[0][0]).read_text().splitlines() if line not in "[]"
    ]
    assert len(records) == 2
    again = read_project(downloads[0][0], duplicates="keep").get_question(question)
    tasks = set(map(str, asked.crowd.tasks[:2]))
    if tool == "label-studio":
        assert all(record["annotations"][0]["ground_truth"] is True for record in records)
        assert again.truth is not None
        assert again.truth.to_dict() == dict.fromkeys(tasks, label)
    else:
        assert again.consensus is not None
        assert again.consensus["label"].to_dict() == dict.fromkeys(tasks, label)
        assert set(again.consensus["confidence"]) == {1.0}
    assert {name.removesuffix("-min") for name in TOOLS} == set(TOOL_FILES), "every tool is tested"


@pytest.mark.usefixtures("simulated")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["votes.csv", "--host", "0.0.0.0"], "unencrypted"),
        (["votes.csv", "-o", "votes.csv"], "would be overwritten"),
        (["votes.csv", "-o", "."], "is a folder"),
        (["votes.csv", "--tasks", "nowhere.csv"], "nowhere.csv"),
        (["votes.csv", "--tasks", "other.csv"], "have no votes"),
        (["numbers.csv", "--numeric", "-m", "median"], "review needs classes"),
    ],
)
def test_wrong_use_is_explained(reviewed: Reviewed, tmp_path: Path, words: list[str], message: str) -> None:
    (tmp_path / "other.csv").write_text("task\nelsewhere\n")
    (tmp_path / "numbers.csv").write_text("task,worker,label\nt1,ann,1.5\nt1,bob,2.5\n")
    result, _ = reviewed(*words)
    assert result.exit_code in (1, 2)
    assert message in " ".join(result.stderr.split())
    assert not (tmp_path / "checked.csv").exists()


# ---------------------------------------------------------------------- as a program


class Program:
    """The command in a process of its own, and a browser's worth of requests."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "wisecrowd", "review", "votes.csv", "--port", "0", "--limit", "40"]
        environment = {key: value for key, value in os.environ.items() if key != "WISECROWD_TOKEN"}
        self.process = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        link = next(
            match for line in self.process.stderr if (match := re.search(r"Open (http\S+)/\?token=(\S+)", line))
        )
        self.address = link[1]

        class Stay(urllib.request.HTTPRedirectHandler):
            def redirect_request(self, *_: Any) -> None:
                return None

        try:
            urllib.request.build_opener(Stay).open(f"{self.address}/?token={link[2]}")
        except urllib.error.HTTPError as answer:
            cookie = SimpleCookie(answer.headers["set-cookie"])
        self.headers = {"Cookie": "; ".join(f"{key}={entry.value}" for key, entry in cookie.items())}
        html = self.ask("/").decode()
        self.data = json.loads(re.search(r'id="data">(.*?)</script>', html)[1])  # type: ignore[index]

    def ask(self, path: str, body: Any = None) -> bytes:
        content = None if body is None else json.dumps(body).encode()
        headers = dict(self.headers)
        if body is not None:
            headers |= {"Content-Type": "application/json", self.data["header"]: self.data["secret"]}
        request = urllib.request.Request(f"{self.address}{path}", data=content, headers=headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read()

    def end(self, how: signal.Signals) -> str:
        self.process.send_signal(how)
        self.process.wait(30)
        assert self.process.stderr is not None
        rest = self.process.stderr.read()
        self.process.stderr.close()
        return rest


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[], Program]]:
    programs: list[Program] = []

    def start() -> Program:
        programs.append(Program(tmp_path))
        return programs[-1]

    yield start
    for program in programs:
        if program.process.poll() is None:
            program.end(signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.usefixtures("simulated")
def test_nothing_is_lost_in_a_kill(start: Callable[[], Program], tmp_path: Path) -> None:
    first = start()
    for number in range(5):
        first.ask("/decisions", {"number": number, "truth": "c1", "reviewer": "Maria", "note": f"note {number}"})
    first.end(signal.SIGKILL)
    checked = pd.read_csv(tmp_path / "checked.csv")
    assert checked["note"].tolist() == [f"note {number}" for number in range(5)]
    second = start()
    assert second.data["states"][:6] == "dddddo"
    second.ask("/undo", {})
    assert json.loads(second.ask("/tasks/4"))["truth"] is None
    assert "4 decisions in checked.csv" in second.end(signal.SIGTERM), "SIGTERM ends the program in order"
    assert len(pd.read_csv(tmp_path / "checked.csv")) == 4
