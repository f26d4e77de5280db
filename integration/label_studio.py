"""Label Studio: the real server on SQLite, with several users, webhooks, exports, and answers pushed into its tasks.

    python integration/label_studio.py [--label-studio EXECUTABLE] [--record] [--screenshot FILE]

The server listens on loopback, keeps everything in a temporary folder, and is stopped at the end. Without an executable, Label
Studio is installed into an environment of its own. With chromium and its driver, somebody logs in and looks at what was pushed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from _label_studio_people import PASSWORD, Listener, Person, answer, choice, listening
from _label_studio_service import served
from _running import RECORDED, Trial, free_port, offline, running, wait_until

from wisecrowd.io import read_project

OWNER, OTHERS = "ann@example.com", ("bob@example.com", "cy@example.com")
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
#: What each of three people said of the first tasks: mood, topics and stars. The last two tasks nobody labels.
SAID = [
    [("good", ["food"], 5), ("good", ["food", "staff"], 4), ("good", ["food"], 5)],
    [("bad", ["price"], 2), ("bad", ["price"], 1), ("good", ["price", "food"], 3)],
    [("good", ["food"], 4), ("good", [], 4), ("bad", ["food"], 2)],
    [("bad", ["staff"], 2), ("bad", ["staff"], 2), ("bad", [], 3)],
    [("good", ["food"], 3), ("bad", ["price"], 3)],
    [("good", ["staff"], 5), ("good", ["staff"], 5), ("good", ["staff", "food"], 4)],
]
#: What the webhooks of the trial are called, in the order in which they come.
HOOKS = [
    "tasks_created", "annotation_created", "annotation_created_by_another", "annotation_created_cancelled", "annotation_updated",
    "annotation_created_ground_truth", "annotations_deleted", "project_updated", "annotations_deleted_in_data_manager",
    "tasks_deleted",
]  # fmt: skip


def trial(tried: Trial, executable: Path, screenshot: Path | None) -> None:
    """Start the server, fill it, and try everything."""
    address = f"http://127.0.0.1:{(port := free_port())}"
    data = tried.folder / "label-studio"
    env = offline(
        LABEL_STUDIO_BASE_DATA_DIR=str(data), COLLECT_ANALYTICS="false", LATEST_VERSION_CHECK="false", SENTRY_DSN="",
        SSRF_PROTECTION_ENABLED="false",  # else it posts nothing to this machine
    )  # fmt: skip
    command = [executable, "start", "--no-browser", "--internal-host", "127.0.0.1", "--port", port, "--data-dir", data]
    command += ["--username", OWNER, "--password", PASSWORD]
    log = tried.folder / "label-studio.log"
    with listening() as listener, running(command, tried.folder, env, log):
        wait_until(lambda: httpx.get(f"{address}/api/version", trust_env=False).status_code == 200, "the server", 300)
        version = httpx.get(f"{address}/api/version", trust_env=False).json()["release"]
        print(f"Label Studio {version}", flush=True)
        ann = Person(address, OWNER, new=False)
        bob, cy = (Person(address, email, new=True) for email in OTHERS)
        _webhooks(tried, ann, bob, cy, listener)
        served(tried, (ann, bob, cy), _labelled)
        project = _labelled(ann, bob, cy)
        secrets = {"personal": ann.told("POST", "/api/token/")["token"]}
        ann.told("POST", "/api/jwt/settings", json={"api_tokens_enabled": True, "legacy_api_tokens_enabled": True})
        secrets["legacy"] = ann.told("GET", "/api/current-user/token")["token"]
        _exports(tried, ann, project)
        _there_and_back(tried, ann, address, project, secrets)
        _many(tried, ann, address, secrets["personal"])
        if screenshot is not None:
            _looked_at(tried, address, project, screenshot)


def _webhooks(tried: Trial, ann: Person, bob: Person, cy: Person, listener: Listener) -> None:
    """All that happens in a project, and what the server posts of it."""
    project = ann.told("POST", "/api/projects/", json={"title": "Reviews", "label_config": CONFIG})["id"]
    hook = {"url": f"http://127.0.0.1:{listener.server_port}/hook", "project": project, "send_payload": True}
    ann.told("POST", "/api/webhooks/", json={**hook, "send_for_all_actions": True, "headers": {"X-Secret": "example"}})
    guess = {"model_version": "bert-1", "score": 0.75, "result": [choice("mood", "good")]}
    tasks = [{"data": {"text": f"Review {number}"}, "predictions": [guess]} for number in range(4)]
    ann.told("POST", f"/api/projects/{project}/import", json=tasks)
    ids = [task["id"] for task in ann.told("GET", "/api/tasks/", params={"project": project})["tasks"]]
    first = f"/api/tasks/{ids[0]}/annotations/"
    ann.told("POST", first, json={"result": answer("good", ["food", "price"], 4), "lead_time": 4.5})
    second = bob.told("POST", first, json={"result": answer("bad", ["food"], 2), "lead_time": 6.5})["id"]
    cy.told("POST", first, json={"result": [], "was_cancelled": True})
    bob.told("PATCH", f"/api/annotations/{second}/", json={"result": answer("good", ["food"], 4)})
    gold = {"result": [choice("mood", "bad")], "ground_truth": True}
    ann.told("POST", f"/api/tasks/{ids[1]}/annotations/", json=gold)
    cy.told("POST", f"/api/tasks/{ids[1]}/drafts", json={"result": [choice("mood", "bad")], "lead_time": 2.0})
    bob.told("DELETE", f"/api/annotations/{second}/")
    ann.told("PATCH", f"/api/projects/{project}/", json={"title": "Reviews, renamed"})
    for action, task in (("delete_tasks_annotations", ids[0]), ("delete_tasks", ids[3])):
        chosen = {"selectedItems": {"all": False, "included": [task]}}
        ann.told("POST", "/api/dm/actions/", params={"id": action, "project": project}, json=chosen)
    with contextlib.suppress(TimeoutError):
        wait_until(lambda: len(listener.heard) >= len(HOOKS), "the webhooks", 20)
    actions = [body["action"] for body in listener.heard]
    wanted = ["_".join(name.split("_")[:2]).upper() for name in HOOKS]
    tried.check("webhooks come in the order of what happened", actions == wanted, actions)
    for name, body in zip(HOOKS, listener.heard, strict=False):
        _record(tried, f"webhooks/{name}.json", body)


def _labelled(ann: Person, bob: Person, cy: Person, prepare: Callable[[int], object] = bool) -> int:
    """A project that three people labelled, with one skipped task, one mark of gold, one draft, and a model's predictions."""
    title = {"title": "Restaurants", "label_config": CONFIG, "maximum_annotations": 3}
    project: int = ann.told("POST", "/api/projects/", json=title)["id"]
    prepare(project)
    guess = {"model_version": "bert-1", "score": 0.75, "result": [choice("mood", "good")]}
    tasks = [{"data": {"text": text}, "predictions": [guess] if place < 4 else []} for place, text in enumerate(TEXTS)]
    ann.told("POST", f"/api/projects/{project}/import", json=tasks)
    ids = [task["id"] for task in ann.told("GET", "/api/tasks/", params={"project": project})["tasks"]]
    for task, answers in zip(ids, SAID, strict=False):
        for person, said in zip((ann, bob, cy), answers, strict=False):
            body = {"result": answer(*said), "lead_time": 3.5}
            person.told("POST", f"/api/tasks/{task}/annotations/", json=body)
    cy.told("POST", f"/api/tasks/{ids[4]}/annotations/", json={"result": [], "was_cancelled": True})
    gold = {"result": [choice("mood", "good")], "ground_truth": True}
    ann.told("POST", f"/api/tasks/{ids[5]}/annotations/", json=gold)
    bob.told("POST", f"/api/tasks/{ids[6]}/drafts", json={"result": [choice("mood", "bad")], "lead_time": 2.0})
    return project


def _exports(tried: Trial, ann: Person, project: int) -> None:
    """What the server itself exports is read."""
    for kind in ("JSON", "JSON_MIN"):
        asked = {"exportType": kind, "download_all_tasks": "true"}
        told = ann.told("GET", f"/api/projects/{project}/export", params=asked)
        path = tried.folder / f"{kind}.json"
        path.write_text(json.dumps(told))
        _record(tried, f"export_{kind.lower()}.json", told)
        found = {name: one.people.n_votes for name, one in read_project(path, duplicates="keep").questions.items()}
        print(f"  {kind}: {found}")
        tried.check(f"{kind} is read", found.get("mood", 0) >= 17, found)
    for name, path in (
        ("tasks", f"/api/tasks/?project={project}&fields=all&resolve_uri=false"),
        ("version", "/api/version"),
    ):
        _record(tried, f"{name}.json", ann.told("GET", path))
    _record(tried, "project.json", ann.told("GET", f"/api/projects/{project}/"))


def _there_and_back(tried: Trial, ann: Person, address: str, project: int, secrets: dict[str, str]) -> None:
    place = ("--url", address, "--project", project)
    ids = [task["id"] for task in ann.told("GET", "/api/tasks/", params={"project": project})["tasks"]]

    def said_by(prefix: str) -> dict[int, list[dict[str, Any]]]:
        told = ann.told("GET", "/api/predictions/", params={"project": project})
        ours = [{**one, "created_ago": ""} for one in told if one["model_version"].startswith(prefix)]
        return {task: [one for one in ours if one["task"] == task] for task in ids}

    def command(*words: object, token: str = secrets["personal"]) -> str:
        program = [sys.executable, "-c", "from wisecrowd.cli import main; main()", *map(str, words)]
        env = offline(LABEL_STUDIO_API_KEY=token, COLUMNS="120")
        done = subprocess.run(program, cwd=tried.folder, env=env, capture_output=True, text=True, timeout=300)
        shown = done.stdout + done.stderr
        tried.check("no token is shown", not any(secret in shown for secret in secrets.values()))
        return shown

    for kind, secret in secrets.items():
        print(command("label-studio", "pull", *place, "-o", f"{kind}.json", token=secret))
    tried.check(
        "both kinds of token pull the same", *_equal(tried.folder / "personal.json", tried.folder / "legacy.json")
    )
    pulled, exported = (read_project(tried.folder / name, duplicates="keep") for name in ("personal.json", "JSON.json"))
    for name, one in exported.questions.items():
        tried.check(f"{name}: what is pulled is what is exported", one.people == pulled.questions[name].people)
    tried.check("tasks that nobody labelled are there", len(pulled.tasks) == len(TEXTS), len(pulled.tasks))
    tried.check("predictions are there, too", pulled.questions["mood"].machines == ["bert-1"])
    before = said_by("bert")
    for question in ("mood", "topics", "stars"):
        command("aggregate", "personal.json", "--question", question, "--duplicates", "keep", "-o", question)
    print(dry := command("label-studio", "push", "mood", *place, "--dry-run"))
    tried.check("a dry run puts nothing", "6 added" in dry and not any(said_by("wisecrowd").values()), dry)
    print(command("label-studio", "push", "mood", *place))
    first = said_by("wisecrowd dawid-skene")
    tried.check("one prediction for each answer", sorted(map(len, first.values())) == [0, 0, 1, 1, 1, 1, 1, 1], first)
    tried.check("with the confidence", all(0.5 <= one["score"] <= 1 for held in first.values() for one in held))
    print(again := command("label-studio", "push", "mood", *place))
    tried.check("pushed twice, nothing changes", said_by("wisecrowd") == first and "6 as they were" in again, again)
    ann.told("DELETE", f"/api/predictions/{first[ids[0]][0]['id']}/")
    ann.told(
        "POST", "/api/predictions/", json={key: first[ids[1]][0][key] for key in ("task", "model_version", "result")}
    )
    print(command("label-studio", "push", "mood", *place))
    tried.check(
        "what was lost comes back, doubles go", sorted(map(len, said_by("wisecrowd").values())) == [0, 0] + [1] * 6
    )
    for question in ("topics", "stars"):
        print(command("label-studio", "push", question, *place))
    tried.check("questions stand beside each other", [len(said_by("wisecrowd")[task]) for task in ids[:6]] == [3] * 6)
    command(
        "aggregate", "personal.json", "--question", "mood", "--duplicates", "keep", "-m", "majority-vote", "-o", "votes"
    )
    print(changed := command("label-studio", "push", "votes", *place))
    tried.check("another method takes the place of the first", "6 changed" in changed, changed)
    tried.check("other models are not touched", said_by("bert") == before)
    command("label-studio", "pull", *place, "-o", "again.json")
    back = read_project(tried.folder / "again.json", duplicates="keep").questions["mood"]
    tried.check("what was pushed is no vote", back.crowd == pulled.questions["mood"].crowd)
    tried.check("and is known again", back.consensus is not None and len(back.consensus) == 6, back.consensus)
    wrong = command("label-studio", "pull", *place, "-o", "no.json", token=f"{secrets['personal'][:-4]}AAAA")
    tried.check("a wrong token is refused in words", "does not take this personal access token" in wrong, wrong)
    print(wrong)


def _equal(one: Path, other: Path) -> tuple[bool, str]:
    return one.read_text() == other.read_text(), "they differ"


def _many(tried: Trial, ann: Person, address: str, token: str) -> None:
    """More tasks than a page holds, and answers to a question that nobody answered there."""
    project = ann.told("POST", "/api/projects/", json={"title": "Many", "label_config": CONFIG})["id"]
    ann.told("POST", f"/api/projects/{project}/import", json=[{"data": {"text": f"Text {n}"}} for n in range(1205)])
    env = offline(LABEL_STUDIO_API_KEY=token, COLUMNS="120")
    words = [sys.executable, "-c", "from wisecrowd.cli import main; main()", "label-studio"]
    place = ["--url", address, "--project", str(project)]

    def said(*more: str) -> str:
        done = subprocess.run(
            [*words, *more, *place], cwd=tried.folder, env=env, capture_output=True, text=True, timeout=600
        )
        return done.stdout + done.stderr

    print(pulled := said("pull", "-o", "many.json"))
    tasks = json.loads((tried.folder / "many.json").read_text())
    tried.check("all pages are read", "1,205 tasks" in pulled and len({task["id"] for task in tasks}) == 1205, pulled)
    rows = [f"{task['id']},good" for task in tasks]
    (tried.folder / "many.csv").write_text("\n".join(["task,label", *rows]))
    print(pushed := said("push", "many.csv", "--question", "mood"))
    held = ann.told("GET", "/api/predictions/", params={"project": project})
    tried.check("all predictions arrive", len({one["task"] for one in held}) == len(held) == 1205, pushed)


def _looked_at(tried: Trial, address: str, project: int, screenshot: Path) -> None:
    """Somebody logs in, and looks at a task."""
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        print("  --    nobody looked: there is no chromium and chromedriver")
        return
    from selenium import webdriver
    from selenium.webdriver.common.by import By

    options = webdriver.ChromeOptions()
    flags = "headless no-sandbox disable-gpu disable-background-networking disable-quic no-first-run disable-component-update"
    for flag in (*flags.split(), "disable-sync", "window-size=1500,1000", f"user-data-dir={tried.folder / 'chromium'}"):
        options.add_argument(f"--{flag}")
    options.binary_location = str(shutil.which("chromium"))
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(shutil.which("chromedriver"))))
    try:
        browser.set_page_load_timeout(120)
        browser.get(f"{address}/user/login/")
        browser.find_element(By.NAME, "email").send_keys(OWNER)
        browser.find_element(By.NAME, "password").send_keys(PASSWORD)
        browser.find_element(By.CSS_SELECTOR, "button[type=submit]").click()
        wait_until(lambda: "login" not in browser.current_url, "the login", 60)
        asked = Person(address, OWNER, new=False).told("GET", "/api/tasks/", params={"project": project})
        task = asked["tasks"][0]["id"]
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
        tried.check("the task shows the prediction of wisecrowd", shown in text, text[:1500])
        tried.check("with its answers chosen", {"good", "food"} <= checked, checked)
    finally:
        browser.quit()


def _record(tried: Trial, name: str, told: Any) -> None:
    """Keep what the server said for the tests: without tokens, and small."""
    if tried.record is None:
        return
    path = tried.record / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(_anonymous(told), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _anonymous(told: Any) -> Any:
    if isinstance(told, dict):
        return {key: "0" * 40 if key == "token" else _anonymous(value) for key, value in told.items()}
    return [_anonymous(one) for one in told] if isinstance(told, list) else told


def main() -> None:
    """Find or make a Label Studio, try, clean up, and say how it went by words and exit code."""
    parser = argparse.ArgumentParser(description="Try wisecrowd with a real Label Studio.")
    parser.add_argument(
        "--label-studio", type=Path, help="its executable; else it is installed, and removed afterwards"
    )
    parser.add_argument("--record", action="store_true", help="keep what the server says under tests/recorded")
    parser.add_argument("--screenshot", type=Path, help="look at it with chromium, and keep what was seen in this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wisecrowd-label-studio-") as made:
        folder = Path(made)
        executable = options.label_studio
        if executable is None:
            venv.create(folder / "venv", with_pip=True)
            pip = [
                folder / "venv/bin/python",
                "-m",
                "pip",
                "install",
                "-q",
                "--disable-pip-version-check",
                "label-studio",
            ]
            subprocess.run(pip, check=True, timeout=3600)
            executable = folder / "venv/bin/label-studio"
        work = folder / "work"
        work.mkdir()
        record = RECORDED / "label_studio" if options.record else None
        tried = Trial("label-studio", work, Path(os.path.realpath(executable)), record)
        try:
            trial(tried, executable.absolute(), options.screenshot)
        except Exception:
            traceback.print_exc()
            log = work / "label-studio.log"
            print(log.read_text(errors="replace")[-3000:] if log.exists() else "")
            tried.failed.append("it did not run to its end")
    print(f"label-studio: {'FAILED: ' + '; '.join(tried.failed) if tried.failed else 'all is well'}")
    sys.exit(bool(tried.failed))


if __name__ == "__main__":
    main()
