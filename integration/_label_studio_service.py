"""Label Studio posts events to ``wisecrowd serve``, whose votes must equal those of an export."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Callable

import httpx
from _label_studio_people import Person
from _running import Trial, free_port, offline, run_server, wait_until

from wisecrowd.io import read_project


def check_service(trial: Trial, people: tuple[Person, Person, Person], label_project: Callable[..., int]) -> None:
    """Start the service, register it as a webhook, label a project, and compare the votes."""
    ann, token = people[0], secrets.token_hex()
    address = f"http://127.0.0.1:{(port := free_port())}"
    command = [sys.executable, "-c", "from wisecrowd.cli import main; main()", "serve", "served.db", "--port", port]
    headers = {"Authorization": f"Bearer {token}"}
    log = trial.folder / "serve.log"
    with run_server(command, trial.folder, offline(WISECROWD_TOKEN=token), log):
        wait_until(lambda: httpx.get(f"{address}/health", trust_env=False).status_code == 200, "the service", 60)
        hook = {"url": f"{address}/webhooks/label-studio", "send_payload": True, "send_for_all_actions": True}

        def register(project: int) -> None:
            ann.request_json("POST", "/api/webhooks/", json={**hook, "project": project, "headers": headers})

        project = label_project(*people, register)
        parameters = {"exportType": "JSON", "download_all_tasks": "true"}
        path = trial.folder / "served.json"
        path.write_text(json.dumps(ann.request_json("GET", f"/api/projects/{project}/export", params=parameters)))
        exported = read_project(path, duplicates="keep")
        with httpx.Client(base_url=address, headers=headers, trust_env=False, timeout=60) as client:
            for name, question in exported.questions.items():
                which = f"{project}:{name}"
                table = question.people.to_frame()
                expected = {
                    task: dict(zip(part["worker"], part["label"], strict=True)) for task, part in table.groupby("task")
                }
                actual = {
                    task: client.get("/task", params={"question": which, "task": task}).json()["votes"]
                    for task in expected
                }
                ids = {str(person): email for person, email in _emails(ann).items()}
                actual = {
                    task: {ids.get(who, who): label for who, label in votes.items()} for task, votes in actual.items()
                }
                expected = {
                    task: {ids.get(who, who): label for who, label in votes.items()} for task, votes in expected.items()
                }
                trial.check(f"the service has all answers to {name}", actual == expected, (actual, expected))
            client.post("/refit", params={"question": f"{project}:mood"})
            answers = client.get("/consensus", params={"question": f"{project}:mood"}).json()["tasks"]
            trial.check("tasks without labels are listed", sum(row["label"] is None for row in answers) == 2, answers)
            trial.check("gold labels are gold", sum(row["is_gold"] for row in answers) == 1, answers)
        trial.check("no token is in the log", token not in log.read_text())


def _emails(ann: Person) -> dict[int, str]:
    return {one["id"]: one["email"] for one in ann.request_json("GET", "/api/users/")}
