"""Argilla 2: the real server on SQLite and the real SDK, without a search engine.

    python integration/argilla.py [--venv FOLDER] [--record]

Responses of several users and suggestions of a model are exported by the SDK in all its forms and read. Suggestions that
wisecrowd writes are loaded by ``records.from_json`` and must be recognised beside the same votes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

from _running import INSIDE, Trial, free_port, main, offline, run_server, wait_until

import wisecrowd as wc
from wisecrowd.io import read_project
from wisecrowd.io.tools.consensus_export import write_answers, write_queue
from wisecrowd.io.tools.projects import Project

PACKAGES = ["argilla==2.8.0", "argilla-server==2.8.0", "fakeredis", "pandas"]
KEY = "a-key-for-this-run"
#: Votes of inside/argilla_sdk.py.
MOOD = {
    ("r0", "ann", "good"), ("r0", "bob", "good"), ("r0", "eva", "good"), ("r1", "ann", "bad"), ("r1", "bob", "bad"),
    ("r1", "eva", "good"), ("r2", "ann", "good"),
}  # fmt: skip
TOPICS = {
    ("r0", "ann", "food"), ("r0", "bob", "food|price"), ("r0", "eva", "food"), ("r1", "ann", "price"),
    ("r1", "bob", "price"), ("r2", "ann", "food|place"),
}  # fmt: skip
STARS = {
    ("r0", "ann", "5"), ("r0", "bob", "4"), ("r0", "eva", "5"), ("r1", "ann", "2"), ("r1", "bob", "1"), ("r2", "ann", "4"),
}  # fmt: skip
EXPECTED = {"mood": MOOD, "topics": TOPICS, "stars": STARS}
FORMS = (".json", "-flat.json", ".parquet", ".jsonl")


def run_trial(context: Trial) -> None:
    """Start the server and run all checks."""
    port, log = free_port(), context.folder / "log"
    address = f"http://127.0.0.1:{port}"
    env = offline(ARGILLA_HOME_PATH=str(context.folder / "home"), ARGILLA_ENABLE_TELEMETRY="0")
    command = [context.python, INSIDE / "argilla_serve.py", port, free_port(), KEY]
    opener = build_opener(ProxyHandler({}))
    print(f"argilla {context.version('argilla')}, server {context.version('argilla-server')} on SQLite")
    with run_server(command, context.folder, env, log):
        try:
            wait_until(lambda: opener.open(f"{address}/api/v1/version", timeout=5).status == 200, "the server")
            _run_steps(context, lambda *step: context.run_inside("argilla_sdk.py", address, KEY, *step))
        except Exception:
            print(log.read_text()[-3000:], file=sys.stderr)
            raise


def _votes(project: Project, question: str, names: dict[str, str]) -> set[tuple[str, str, str]]:
    frame = project.questions[question].people.to_frame()
    return {(str(row.task), names.get(str(row.worker), "?"), str(row.label)) for row in frame.itertuples()}


def _export(context: Trial, sdk, name: str, names: dict[str, str]) -> dict[str, Project]:  # type: ignore[no-untyped-def]
    sdk("export", name)
    for form in FORMS:
        context.keep(Path(name + form))
    actual = {form: read_project(name + form) for form in FORMS}
    for form, project in actual.items():
        context.check(f"{name}{form} is recognised", project.format == "argilla", project.format)
        for question, expected in EXPECTED.items():
            # to_json does not mark drafts and discarded responses.
            votes = {
                vote for vote in _votes(project, question, names) if form != ".json" or vote[0] in ("r0", "r1", "r2")
            }
            context.check(f"{name}{form}: votes on {question}", votes == expected, votes ^ expected)
    return actual


def _run_steps(context: Trial, sdk) -> None:  # type: ignore[no-untyped-def]
    sdk("fill")
    context.keep(Path("users.json"))
    names = {number: name for name, number in json.loads(Path("users.json").read_text()).items()}
    before = _export(context, sdk, "before", names)
    context.check("to_json: a note says what is missing", len(before[".json"].notes) == 1)
    for form in (".json", "-flat.json", ".parquet"):
        scores = before[form].questions["mood"].scores
        good = before[form].questions["mood"].machines == ["bert-1"] and len(scores) == 3
        context.check(f"before{form}: suggestions are a machine's, by their words", good, scores)
    expected = {}
    for question in EXPECTED:
        crowd = before[".parquet"].questions[question].people
        model = wc.MajorityVote().fit(crowd)
        answers = model.labels_.to_frame("label").assign(confidence=model.posterior_.max(axis=1))
        # Votes come from the format that marks drafts, fields from the format that separates them.
        write_answers(answers, before[".json"], f"{question}.json", question=question, model="majority-vote")
        sdk("load", f"{question}.json")
        expected[question] = answers["label"].astype(str).to_dict()
    after = _export(context, sdk, "after", names)
    for form, project in after.items():
        for question, labels in expected.items():
            consensus = project.questions[question].consensus
            actual = {} if consensus is None else consensus["label"].astype(str).to_dict()
            has_names = (
                form != ".jsonl" or question != "mood"
            )  # to_datasets numbers labels, and JSON lines lack the names
            context.check(f"after{form}: consensus on {question}", actual == (labels if has_names else {}), actual)
    write_queue(["r2", "r0"], before[".json"], "queue.json")
    sdk("sortable")
    sdk("load", "queue.json")
    sdk("export", "queued")
    queued = read_project("queued.json")
    order = {task: (task_data["metadata"] or {}).get("wisecrowd_priority") for task, task_data in queued.tasks.items()}
    context.check("the queue's order is among the metadata", (order["r2"], order["r0"]) == (1, 2), order)
    context.check("and votes stay", _votes(queued, "stars", names) == STARS)


if __name__ == "__main__":
    main("argilla", PACKAGES, run_trial)
