"""Label Studio: the real server on SQLite, with several users, webhooks, exports, and answers pushed into its tasks.

    python integration/label_studio.py [--label-studio EXECUTABLE] [--record] [--screenshot FILE]

The server listens on loopback, keeps everything in a temporary folder, and is stopped at the end. Without an executable, Label
Studio is installed into an environment of its own. With chromium and its driver, a browser shows the pushed predictions.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _label_studio_people import Listener, Person, answer, choice, run_listener
from _label_studio_running import OTHERS, OWNER, main, open_browser, record, run_label_studio
from _label_studio_service import check_service
from _running import Trial, offline, wait_until

from wisecrowd.io import read_project

CONFIG = """<View><Text name="text" value="$text"/>
<Choices name="mood" toName="text" choice="single"><Choice value="good"/><Choice value="bad"/></Choices>
<Choices name="topics" toName="text" choice="multiple">
<Choice value="food"/><Choice value="price"/><Choice value="staff"/></Choices>
<Rating name="stars" toName="text" maxRating="5"/></View>"""
TEXTS = [
    "Lovely food!",
    "Too dear.",
    "Grüße, 東京 🍜",
    'He said "fine",\nand left',
    "So-so",
    "Kind people.",
    "Never again",
    "…",
]
#: Answers of three people to the first tasks: mood, topics and stars. The last two tasks have no labels.
ANSWERS = [
    [("good", ["food"], 5), ("good", ["food", "staff"], 4), ("good", ["food"], 5)],
    [("bad", ["price"], 2), ("bad", ["price"], 1), ("good", ["price", "food"], 3)],
    [("good", ["food"], 4), ("good", [], 4), ("bad", ["food"], 2)],
    [("bad", ["staff"], 2), ("bad", ["staff"], 2), ("bad", [], 3)],
    [("good", ["food"], 3), ("bad", ["price"], 3)],
    [("good", ["staff"], 5), ("good", ["staff"], 5), ("good", ["staff", "food"], 4)],
]
#: Names of the webhooks of the trial, in the order of arrival.
HOOKS = [
    "tasks_created", "annotation_created", "annotation_created_by_another", "annotation_created_cancelled", "annotation_updated",
    "annotation_created_ground_truth", "annotations_deleted", "project_updated", "annotations_deleted_in_data_manager",
    "tasks_deleted",
]  # fmt: skip


def run_trial(context: Trial, executable: Path, screenshot: Path | None) -> None:
    """Start the server, fill it, and run all checks."""
    with run_listener() as listener, run_label_studio(context, executable) as address:
        ann = Person(address, OWNER, new=False)
        bob, cy = (Person(address, email, new=True) for email in OTHERS)
        _check_webhooks(context, ann, bob, cy, listener)
        check_service(context, (ann, bob, cy), _label_project)
        project = _label_project(ann, bob, cy)
        secrets = {"personal": ann.request_json("POST", "/api/token/")["token"]}
        ann.request_json(
            "POST", "/api/jwt/settings", json={"api_tokens_enabled": True, "legacy_api_tokens_enabled": True}
        )
        secrets["legacy"] = ann.request_json("GET", "/api/current-user/token")["token"]
        _check_exports(context, ann, project)
        _check_round_trip(context, ann, address, project, secrets)
        _check_many_tasks(context, ann, address, secrets["personal"])
        if screenshot is not None:
            _check_in_browser(context, address, project, screenshot)


def _check_webhooks(context: Trial, ann: Person, bob: Person, cy: Person, listener: Listener) -> None:
    """Cause all events of a project, and check the webhooks."""
    project = ann.request_json("POST", "/api/projects/", json={"title": "Reviews", "label_config": CONFIG})["id"]
    hook = {"url": f"http://127.0.0.1:{listener.server_port}/hook", "project": project, "send_payload": True}
    ann.request_json(
        "POST", "/api/webhooks/", json={**hook, "send_for_all_actions": True, "headers": {"X-Secret": "example"}}
    )
    guess = {"model_version": "bert-1", "score": 0.75, "result": [choice("mood", "good")]}
    tasks = [{"data": {"text": f"Review {number}"}, "predictions": [guess]} for number in range(4)]
    ann.request_json("POST", f"/api/projects/{project}/import", json=tasks)
    ids = [task["id"] for task in ann.request_json("GET", "/api/tasks/", params={"project": project})["tasks"]]
    first = f"/api/tasks/{ids[0]}/annotations/"
    ann.request_json("POST", first, json={"result": answer("good", ["food", "price"], 4), "lead_time": 4.5})
    second = bob.request_json("POST", first, json={"result": answer("bad", ["food"], 2), "lead_time": 6.5})["id"]
    cy.request_json("POST", first, json={"result": [], "was_cancelled": True})
    bob.request_json("PATCH", f"/api/annotations/{second}/", json={"result": answer("good", ["food"], 4)})
    gold = {"result": [choice("mood", "bad")], "ground_truth": True}
    ann.request_json("POST", f"/api/tasks/{ids[1]}/annotations/", json=gold)
    cy.request_json("POST", f"/api/tasks/{ids[1]}/drafts", json={"result": [choice("mood", "bad")], "lead_time": 2.0})
    bob.request_json("DELETE", f"/api/annotations/{second}/")
    ann.request_json("PATCH", f"/api/projects/{project}/", json={"title": "Reviews, renamed"})
    for action, task in (("delete_tasks_annotations", ids[0]), ("delete_tasks", ids[3])):
        chosen = {"selectedItems": {"all": False, "included": [task]}}
        ann.request_json("POST", "/api/dm/actions/", params={"id": action, "project": project}, json=chosen)
    with contextlib.suppress(TimeoutError):
        wait_until(lambda: len(listener.received) >= len(HOOKS), "the webhooks", 20)
    actions = [body["action"] for body in listener.received]
    expected = ["_".join(name.split("_")[:2]).upper() for name in HOOKS]
    context.check("webhooks come in the order of what happened", actions == expected, actions)
    for name, body in zip(HOOKS, listener.received, strict=False):
        record(context, f"webhooks/{name}.json", body)


def _label_project(ann: Person, bob: Person, cy: Person, prepare: Callable[[int], object] = bool) -> int:
    """Create a project with labels of three people, a skipped task, a gold label, a draft, and predictions of a model."""
    title = {"title": "Restaurants", "label_config": CONFIG, "maximum_annotations": 3}
    project: int = ann.request_json("POST", "/api/projects/", json=title)["id"]
    prepare(project)
    guess = {"model_version": "bert-1", "score": 0.75, "result": [choice("mood", "good")]}
    tasks = [{"data": {"text": text}, "predictions": [guess] if place < 4 else []} for place, text in enumerate(TEXTS)]
    ann.request_json("POST", f"/api/projects/{project}/import", json=tasks)
    ids = [task["id"] for task in ann.request_json("GET", "/api/tasks/", params={"project": project})["tasks"]]
    for task, answers in zip(ids, ANSWERS, strict=False):
        for person, answers_of_person in zip((ann, bob, cy), answers, strict=False):
            body = {"result": answer(*answers_of_person), "lead_time": 3.5}
            person.request_json("POST", f"/api/tasks/{task}/annotations/", json=body)
    cy.request_json("POST", f"/api/tasks/{ids[4]}/annotations/", json={"result": [], "was_cancelled": True})
    gold = {"result": [choice("mood", "good")], "ground_truth": True}
    ann.request_json("POST", f"/api/tasks/{ids[5]}/annotations/", json=gold)
    bob.request_json("POST", f"/api/tasks/{ids[6]}/drafts", json={"result": [choice("mood", "bad")], "lead_time": 2.0})
    return project


def _check_exports(context: Trial, ann: Person, project: int) -> None:
    """Check that exports of the server are read."""
    for kind in ("JSON", "JSON_MIN"):
        parameters = {"exportType": kind, "download_all_tasks": "true"}
        content = ann.request_json("GET", f"/api/projects/{project}/export", params=parameters)
        path = context.folder / f"{kind}.json"
        path.write_text(json.dumps(content))
        record(context, f"export_{kind.lower()}.json", content)
        n_votes = {name: one.people.n_votes for name, one in read_project(path, duplicates="keep").questions.items()}
        print(f"  {kind}: {n_votes}")
        context.check(f"{kind} is read", n_votes.get("mood", 0) >= 17, n_votes)
    for name, path in (
        ("tasks", f"/api/tasks/?project={project}&fields=all&resolve_uri=false"),
        ("version", "/api/version"),
    ):
        record(context, f"{name}.json", ann.request_json("GET", path))
    record(context, "project.json", ann.request_json("GET", f"/api/projects/{project}/"))


def _check_round_trip(context: Trial, ann: Person, address: str, project: int, secrets: dict[str, str]) -> None:
    place = ("--url", address, "--project", project)
    ids = [task["id"] for task in ann.request_json("GET", "/api/tasks/", params={"project": project})["tasks"]]

    def get_predictions(prefix: str) -> dict[int, list[dict[str, Any]]]:
        content = ann.request_json("GET", "/api/predictions/", params={"project": project})
        ours = [{**one, "created_ago": ""} for one in content if one["model_version"].startswith(prefix)]
        return {task: [one for one in ours if one["task"] == task] for task in ids}

    def command(*words: object, token: str = secrets["personal"]) -> str:
        program = [sys.executable, "-c", "from wisecrowd.cli import main; main()", *map(str, words)]
        env = offline(LABEL_STUDIO_API_KEY=token, COLUMNS="120")
        process = subprocess.run(program, cwd=context.folder, env=env, capture_output=True, text=True, timeout=300)
        shown = process.stdout + process.stderr
        context.check("no token is shown", not any(secret in shown for secret in secrets.values()))
        return shown

    for kind, secret in secrets.items():
        print(command("label-studio", "pull", *place, "-o", f"{kind}.json", token=secret))
    context.check(
        "both kinds of token pull the same", *_equal(context.folder / "personal.json", context.folder / "legacy.json")
    )
    pulled, exported = (
        read_project(context.folder / name, duplicates="keep") for name in ("personal.json", "JSON.json")
    )
    for name, one in exported.questions.items():
        context.check(f"{name}: what is pulled is what is exported", one.people == pulled.questions[name].people)
    context.check("tasks that nobody labelled are there", len(pulled.tasks) == len(TEXTS), len(pulled.tasks))
    context.check("predictions are there, too", pulled.questions["mood"].machines == ["bert-1"])
    before = get_predictions("bert")
    for question in ("mood", "topics", "stars"):
        command("aggregate", "personal.json", "--question", question, "--duplicates", "last", "-o", question)
    print(dry := command("label-studio", "push", "mood", *place, "--dry-run"))
    context.check("a dry run puts nothing", "6 added" in dry and not any(get_predictions("wisecrowd").values()), dry)
    print(command("label-studio", "push", "mood", *place))
    first = get_predictions("wisecrowd model-average")
    context.check("one prediction for each answer", sorted(map(len, first.values())) == [0, 0, 1, 1, 1, 1, 1, 1], first)
    context.check(
        "with the confidence", all(0 < one["score"] <= 1 for predictions in first.values() for one in predictions)
    )
    print(again := command("label-studio", "push", "mood", *place))
    context.check(
        "pushed twice, nothing changes", get_predictions("wisecrowd") == first and "6 as they were" in again, again
    )
    ann.request_json("DELETE", f"/api/predictions/{first[ids[0]][0]['id']}/")
    ann.request_json(
        "POST", "/api/predictions/", json={key: first[ids[1]][0][key] for key in ("task", "model_version", "result")}
    )
    print(command("label-studio", "push", "mood", *place))
    context.check(
        "what was lost comes back, doubles go",
        sorted(map(len, get_predictions("wisecrowd").values())) == [0, 0] + [1] * 6,
    )
    for question in ("topics", "stars"):
        print(command("label-studio", "push", question, *place))
    context.check(
        "questions stand beside each other", [len(get_predictions("wisecrowd")[task]) for task in ids[:6]] == [3] * 6
    )
    command(
        "aggregate", "personal.json", "--question", "mood", "--duplicates", "last", "-m", "majority-vote", "-o", "votes"
    )
    print(changed := command("label-studio", "push", "votes", *place))
    context.check("another method takes the place of the first", "6 changed" in changed, changed)
    context.check("other models are not touched", get_predictions("bert") == before)
    command("label-studio", "pull", *place, "-o", "again.json")
    back = read_project(context.folder / "again.json", duplicates="keep").questions["mood"]
    context.check("what was pushed is no vote", back.crowd == pulled.questions["mood"].crowd)
    context.check("and is known again", back.consensus is not None and len(back.consensus) == 6, back.consensus)
    wrong = command("label-studio", "pull", *place, "-o", "no.json", token=f"{secrets['personal'][:-4]}AAAA")
    context.check("a wrong token is refused in words", "does not accept this personal access token" in wrong, wrong)
    print(wrong)


def _equal(one: Path, other: Path) -> tuple[bool, str]:
    return one.read_text() == other.read_text(), "they differ"


def _check_many_tasks(context: Trial, ann: Person, address: str, token: str) -> None:
    """Check more tasks than a page holds, and labels for a question without answers."""
    project = ann.request_json("POST", "/api/projects/", json={"title": "Many", "label_config": CONFIG})["id"]
    ann.request_json(
        "POST", f"/api/projects/{project}/import", json=[{"data": {"text": f"Text {n}"}} for n in range(1205)]
    )
    env = offline(LABEL_STUDIO_API_KEY=token, COLUMNS="120")
    words = [sys.executable, "-c", "from wisecrowd.cli import main; main()", "label-studio"]
    place = ["--url", address, "--project", str(project)]

    def answers_of_person(*more: str) -> str:
        process = subprocess.run(
            [*words, *more, *place], cwd=context.folder, env=env, capture_output=True, text=True, timeout=600
        )
        return process.stdout + process.stderr

    print(pulled := answers_of_person("pull", "-o", "many.json"))
    tasks = json.loads((context.folder / "many.json").read_text())
    context.check("all pages are read", "1,205 tasks" in pulled and len({task["id"] for task in tasks}) == 1205, pulled)
    rows = [f"{task['id']},good" for task in tasks]
    (context.folder / "many.csv").write_text("\n".join(["task,label", *rows]))
    print(pushed := answers_of_person("push", "many.csv", "--question", "mood"))
    predictions = ann.request_json("GET", "/api/predictions/", params={"project": project})
    context.check(
        "all predictions arrive", len({one["task"] for one in predictions}) == len(predictions) == 1205, pushed
    )


def _check_in_browser(context: Trial, address: str, project: int, screenshot: Path) -> None:
    """Check in a browser that a task shows the prediction."""
    from selenium.webdriver.common.by import By

    with open_browser(context, address) as browser:
        if browser is None:
            return
        parameters = Person(address, OWNER, new=False).request_json("GET", "/api/tasks/", params={"project": project})
        task = parameters["tasks"][0]["id"]
        browser.get(f"{address}/projects/{project}/data?task={task}")
        shown = "wisecrowd"
        with contextlib.suppress(TimeoutError):
            wait_until(lambda: shown in browser.find_element(By.TAG_NAME, "body").text, "the prediction", 60)
        text = browser.find_element(By.TAG_NAME, "body").text
        checked: set[str | None] = set()
        tabs = f"//*[starts-with(normalize-space(text()), '{shown}')]"
        for place in range(len(browser.find_elements(By.XPATH, tabs))):
            browser.find_elements(By.XPATH, tabs)[place].click()
            time.sleep(2)
            checked |= {box.get_attribute("name") for box in browser.find_elements(By.CSS_SELECTOR, "input:checked")}
        screenshot.parent.mkdir(parents=True, exist_ok=True)
        browser.save_screenshot(str(screenshot))
        context.check("the task shows the prediction of wisecrowd", shown in text, text[:1500])
        context.check("with its answers chosen", {"good", "food"} <= checked, checked)


if __name__ == "__main__":
    main(run_trial, "label_studio")
