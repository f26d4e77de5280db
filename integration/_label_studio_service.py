"""Label Studio posts what happens to ``wisecrowd serve``, which must come to what an export says."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Callable

import httpx
from _label_studio_people import Person
from _running import Trial, free_port, offline, running, wait_until

from wisecrowd.io import read_project


def served(tried: Trial, people: tuple[Person, Person, Person], labelled: Callable[..., int]) -> None:
    """Start the service, have everything posted to it, label a project, and compare."""
    ann, token = people[0], secrets.token_hex()
    address = f"http://127.0.0.1:{(port := free_port())}"
    command = [sys.executable, "-c", "from wisecrowd.cli import main; main()", "serve", "served.db", "--port", port]
    headers = {"Authorization": f"Bearer {token}"}
    log = tried.folder / "serve.log"
    with running(command, tried.folder, offline(WISECROWD_TOKEN=token), log):
        wait_until(lambda: httpx.get(f"{address}/health", trust_env=False).status_code == 200, "the service", 60)
        hook = {"url": f"{address}/webhooks/label-studio", "send_payload": True, "send_for_all_actions": True}

        def register(project: int) -> None:
            ann.told("POST", "/api/webhooks/", json={**hook, "project": project, "headers": headers})

        project = labelled(*people, register)
        asked = {"exportType": "JSON", "download_all_tasks": "true"}
        path = tried.folder / "served.json"
        path.write_text(json.dumps(ann.told("GET", f"/api/projects/{project}/export", params=asked)))
        exported = read_project(path, duplicates="keep")
        with httpx.Client(base_url=address, headers=headers, trust_env=False, timeout=60) as client:
            for name, question in exported.questions.items():
                which = f"{project}:{name}"
                table = question.people.to_frame()
                wanted = {
                    task: dict(zip(part["worker"], part["label"], strict=True)) for task, part in table.groupby("task")
                }
                found = {
                    task: client.get("/task", params={"question": which, "task": task}).json()["votes"]
                    for task in wanted
                }
                ids = {str(person): email for person, email in _emails(ann).items()}
                found = {task: {ids.get(who, who): said for who, said in cast.items()} for task, cast in found.items()}
                wanted = {
                    task: {ids.get(who, who): said for who, said in cast.items()} for task, cast in wanted.items()
                }
                tried.check(f"the service heard all answers to {name}", found == wanted, (found, wanted))
            client.post("/refit", params={"question": f"{project}:mood"})
            told = client.get("/consensus", params={"question": f"{project}:mood"}).json()["tasks"]
            tried.check(
                "tasks that nobody labelled are there, too", sum(row["label"] is None for row in told) == 2, told
            )
            tried.check("gold is gold", sum(row["is_gold"] for row in told) == 1, told)
        tried.check("no token is in the log", token not in log.read_text())


def _emails(ann: Person) -> dict[int, str]:
    return {one["id"]: one["email"] for one in ann.told("GET", "/api/users/")}
