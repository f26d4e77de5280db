"""doccano: the real server on SQLite, with its queue; exports and imports through its API.

    python integration/doccano.py [--venv FOLDER] [--record]

Projects in which annotators do not share labels are filled by several users, exported as JSONL, JSON and CSV, and read. The
consensus is imported by the user ``wisecrowd``, exported with everything else, and must be recognised. The server's own command
listens on every address, so its application is run by gunicorn on loopback.
"""

from __future__ import annotations

import json
import sys
import zipfile
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.request import HTTPCookieProcessor, ProxyHandler, Request, build_opener

from _running import Trial, free_port, main, offline, run_server, wait_until

import wisecrowd as wc
from wisecrowd.io import read_project
from wisecrowd.io.tools.consensus_export import write_answers, write_queue

#: doccano 1.8.4 needs older versions of these packages.
PACKAGES = ["doccano==1.8.4", "numpy<2", "marshmallow<4", "setuptools<80"]
PASSWORD = "a-word-for-this-run"
PEOPLE = ["ann", "bob", "eva.m", "cy@home"]
TEXTS = ["Lovely food!", "Too dear.", "Grüße, 東京 🍜", 'He said "fine",\nand left', "So-so"]
#: Answers by worker and text.
MOOD = {
    "ann": ["good", "bad", "good", "so, so"],
    "bob": ["good", "bad", "bad", "good"],
    "eva.m": ["good", "good", "good"],
    "cy@home": [],
}
TOPICS = {"ann": [["food"], ["price"]], "bob": [["food", "place"], ["price"]], "eva.m": [["food"]]}


class Client:
    """User of the server."""

    def __init__(self, address: str, user: str) -> None:
        self.address = address
        self.cookies = CookieJar()
        self.opener = build_opener(HTTPCookieProcessor(self.cookies), ProxyHandler({}))
        if user:
            self.post("auth/login/", {"username": user, "password": PASSWORD})

    def get(self, path: str) -> Any:
        """Send a GET request and return the answer."""
        return self._ask(Request(f"{self.address}/v1/{path}"))

    def post(self, path: str, body: Any) -> Any:
        """Send a POST request and return the answer."""
        return self._ask(Request(f"{self.address}/v1/{path}", json.dumps(body).encode(), self._headers()))

    def upload(self, text: bytes, name: str) -> str:
        """Upload a file and return its id."""
        edge = "edge-of-a-part"
        head = f'--{edge}\r\nContent-Disposition: form-data; name="filepond"; filename="{name}"\r\n\r\n'
        body = head.encode() + text + f"\r\n--{edge}--\r\n".encode()
        kind = {"Content-Type": f"multipart/form-data; boundary={edge}"}
        answer = self._ask(Request(f"{self.address}/v1/fp/process/", body, self._headers() | kind))
        return answer if isinstance(answer, str) else answer.decode()

    def _headers(self) -> dict[str, str]:
        token = next((cookie.value or "" for cookie in self.cookies if cookie.name == "csrftoken"), "")
        return {"Content-Type": "application/json", "X-CSRFToken": token, "Referer": self.address}

    def _ask(self, request: Request) -> Any:
        with self.opener.open(request, timeout=60) as answer:
            body = answer.read()
            return json.loads(body) if "json" in answer.headers.get("Content-Type", "") else body

    # Imports and exports are done by the queue.

    def import_file(self, project: int, file: Path, task: str) -> None:
        """Import a file as this user."""
        upload = self.upload(file.read_bytes(), file.name)
        body = {"uploadIds": [upload], "format": "JSONL", "task": task, "column_data": "text", "column_label": "label"}
        number = self.post(f"projects/{project}/upload", body)["task_id"]
        wait_until(lambda: bool(self.get(f"tasks/status/{number}")["ready"]), "the import")
        status = self.get(f"tasks/status/{number}")
        errors = status["error"] or status["result"]["error"]
        if errors:
            raise RuntimeError(f"doccano refuses {file.name}: {errors}")

    def export(self, project: int, file: Path, form: str = "JSONL", approved: bool = False) -> Path:
        """Export all labels, or confirmed ones only."""
        number = self.post(f"projects/{project}/download", {"format": form, "exportApproved": approved})["task_id"]

        def ready() -> bool:
            body = self.get(f"projects/{project}/download?taskId={number}")
            if isinstance(body, bytes):
                file.write_bytes(body)
            return isinstance(body, bytes)

        wait_until(ready, f"the export as {form}")
        return file


def fill(
    lead: Client, clients: dict[str, Client], kind: str, answers_by_worker: dict[str, Any], *, one: bool
) -> tuple[int, list[int]]:
    """Create a project with examples, members, labels and answers; return its id and those of its examples."""
    resource = {"DocumentClassification": "TextClassificationProject"}.get(kind, "IntentDetectionAndSlotFillingProject")
    body = {
        "name": f"{kind} {one}", "description": "a trial", "project_type": kind, "resourcetype": resource, "tags": [],
        "collaborative_annotation": False, "single_class_classification": one,
    }  # fmt: skip
    project = lead.post("projects", body)["id"]
    roles = {role["name"]: role["id"] for role in lead.get("roles")}
    users = {user["username"]: user["id"] for user in lead.get("users")}
    for name in clients:
        role = roles["project_admin" if name.startswith("wisecrowd") else "annotator"]
        lead.post(f"projects/{project}/members", {"user": users[name], "role": role})
    # Two files with different columns: the export fills missing columns with null.
    nothing = {"cats": [], "entities": []} if kind.startswith("Intent") else {"label": []}
    for place, more in ((slice(2), {"page": 7, **nothing}), (slice(2, None), {"source": "web", **nothing})):
        source = Path("source.jsonl")
        source.write_text("".join(json.dumps({"text": text} | more) + "\n" for text in TEXTS[place]), encoding="utf-8")
        lead.import_file(project, source, kind)
    examples = sorted(one["id"] for one in lead.get(f"projects/{project}/examples?limit=100")["results"])
    labels: dict[str, int] = {}
    for worker, answers in answers_by_worker.items():
        for example, answer in zip(examples, answers, strict=False):
            for label in [answer] if isinstance(answer, str) else answer:
                if label not in labels:
                    body = {"text": label, "prefix_key": None, "suffix_key": None, "background_color": "#209CEE"}
                    labels[label] = lead.post(f"projects/{project}/category-types", body)["id"]
                path = f"projects/{project}/examples/{example}/categories"
                clients[worker].post(path, {"label": labels[label]})
            if example != examples[0]:
                clients[worker].post(f"projects/{project}/examples/{example}/states", {})
    lead.post(f"projects/{project}/comments?example={examples[0]}", {"text": "a comment", "example": examples[0]})
    return project, examples


def list_votes(answers_by_worker: dict[str, Any], examples: list[int]) -> set[tuple[str, str, str]]:
    """Return the expected votes."""
    return {
        (str(example), worker, answer if isinstance(answer, str) else "|".join(sorted(answer)))
        for worker, answers in answers_by_worker.items()
        for example, answer in zip(examples, answers, strict=False)
    }


def read_votes(path: Path, question: str, format: str | None = None) -> set[tuple[str, str, str]]:
    """Return the votes that wisecrowd reads."""
    frame = read_project(path, format).questions[question].crowd.to_frame()
    return {(str(row.task), str(row.worker), str(row.label)) for row in frame.itertuples()}


def run_trial(context: Trial) -> None:
    """Start the server and its queue, and run all checks."""
    port, backend = free_port(), context.run_inside("doccano_place.py").strip()
    database = f"sqlite:///{context.folder}/doccano.sqlite3"
    env = offline(
        DOCCANO_HOME=str(context.folder), DATABASE_URL=database, MEDIA_ROOT=str(context.folder / "media"), STANDALONE="True",
        DJANGO_SETTINGS_MODULE="config.settings.production", SECRET_KEY=PASSWORD, DEBUG="False",
    )  # fmt: skip
    bin, log = context.python.parent, context.folder / "log"
    for command in (["init"], ["createuser", "--username", "lead", "--password", PASSWORD]):
        with run_server([bin / "doccano", *command], context.folder, env, log) as process:
            if process.wait(300):
                raise RuntimeError(log.read_text()[-3000:])
    print(f"doccano {context.version('doccano')}, server and queue on SQLite")
    address = f"http://127.0.0.1:{port}"
    server = [bin / "gunicorn", "--bind", f"127.0.0.1:{port}", "--workers", "1", "--chdir", backend, "config.wsgi"]
    queue = [bin / "celery", "--app=config", f"--workdir={backend}", "worker", "--pool=solo"]
    with run_server(server, context.folder, env, log), run_server(queue, context.folder, env, log):
        try:
            wait_until(lambda: bool(Client(address, "lead").get("me")), "the server")
            _run_steps(context, address)
        except Exception:
            print(log.read_text()[-3000:], file=sys.stderr)
            raise


def _run_steps(context: Trial, address: str) -> None:
    lead = Client(address, "lead")
    people = [*PEOPLE, "wisecrowd"]
    for name in people:
        lead.post("users/create", {"username": name, "password1": PASSWORD, "password2": PASSWORD})
    clients = {name: Client(address, name) for name in people}
    project, examples = fill(lead, clients, "DocumentClassification", MOOD, one=True)
    expected = list_votes(MOOD, examples)
    for form in ("JSONL", "JSON", "CSV"):
        export = lead.export(project, Path(f"mood-{form.lower()}.zip"), form)
        context.keep(export)
        actual = read_votes(export, "label")
        context.check(f"{form}: recognised, and all votes are there", actual == expected, actual ^ expected)
        folder = Path(f"unpacked-{form}")
        zipfile.ZipFile(export).extractall(folder)
        context.check(f"{form}: the same when unpacked", read_votes(folder, "label", "doccano") == expected)
        approved = lead.export(project, Path(f"approved-{form.lower()}.zip"), form, approved=True)
        context.keep(approved)
        some = {vote for vote in expected if vote[0] != str(examples[0])}
        context.check(
            f"{form}: only what was confirmed",
            read_votes(approved, "label") == some,
            read_votes(approved, "label") ^ some,
        )
    _check_round_trip(context, lead, clients, project, Path("mood-jsonl.zip"), "label")

    project, examples = fill(lead, clients, "DocumentClassification", TOPICS, one=False)
    export = lead.export(project, Path("topics.zip"))
    context.keep(export)
    context.check(
        "several labels are a set",
        read_votes(export, "label") == list_votes(TOPICS, examples),
        read_votes(export, "label"),
    )
    _check_round_trip(context, lead, clients, project, export, "label")

    project, examples = fill(lead, clients, "IntentDetectionAndSlotFilling", MOOD, one=True)
    export = lead.export(project, Path("intents.zip"))
    context.keep(export)
    context.check(
        "intents are read", read_votes(export, "cats") == list_votes(MOOD, examples), read_votes(export, "cats")
    )
    _check_round_trip(context, lead, clients, project, export, "cats")


def _check_round_trip(
    context: Trial, lead: Client, clients: dict[str, Client], project: int, export: Path, question: str
) -> None:
    """Import the consensus and export it again; then import tasks to label again."""
    before = read_project(export)
    model = wc.MajorityVote().fit(before.questions[question].crowd)
    answers = model.labels_.to_frame("label").assign(confidence=model.posterior_.max(axis=1))
    write_answers(answers, before, "consensus.jsonl", question=question, model="majority-vote")
    task = "IntentDetectionAndSlotFilling" if question == "cats" else "DocumentClassification"
    clients["wisecrowd"].import_file(project, Path("consensus.jsonl"), task)
    for form in ("JSONL",) if question == "cats" else ("JSONL", "JSON", "CSV"):
        again = lead.export(project, Path(f"again-{question}-{form}-{project}.zip"), form)
        context.keep(again, f"again-{export.stem.split('-')[0]}-{form.lower()}.zip")
        after = read_project(again)
        exported = after.questions[question]
        where = f"{export.name} and back, {form}"
        context.check(f"{where}: votes are as before", exported.crowd == before.questions[question].crowd)
        labels = {} if exported.consensus is None else exported.consensus["label"].to_dict()
        context.check(f"{where}: the consensus is recognised", labels == answers["label"].to_dict(), labels)
        sure = {} if exported.consensus is None else exported.consensus["confidence"].round(6).to_dict()
        context.check(f"{where}: and its confidence", sure == answers["confidence"].round(6).to_dict(), sure)
    write_queue(list(answers.index[:2]), before, "queue.jsonl")
    lead.import_file(project, Path("queue.jsonl"), task)
    cy = clients["cy@home"]
    newest = max(one["id"] for one in cy.get(f"projects/{project}/examples?limit=100")["results"])
    label = cy.get(f"projects/{project}/category-types")[0]
    cy.post(f"projects/{project}/examples/{newest}/categories", {"label": label["id"]})
    more = read_project(lead.export(project, Path(f"more-{project}.zip"))).questions[question].crowd
    frame = more.to_frame()
    mine = frame[frame["worker"].astype(str) == "cy@home"]
    joined = list(mine["task"].astype(str)) == [str(answers.index[1])]
    context.check("a vote on a task that came again joins the votes on the first", joined, mine)


if __name__ == "__main__":
    main("doccano", PACKAGES, run_trial)
