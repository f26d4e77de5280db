"""The service as a client sees it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import wisecrowd as wc
from wisecrowd.service.coordinator import ServiceBusy

RECORDED = Path(__file__).parents[1] / "recorded" / "label_studio" / "webhooks"


def labels(service: Any, **params: Any) -> dict[str, str]:
    """What is said of every task, page by page."""
    found: dict[str, str] = {}
    start: int | None = 0
    while start is not None:
        page = service.get("/consensus", start=start, limit=33, **params)
        found.update((row["task"], row["label"]) for row in page["tasks"])
        start = page["next"]
    return found


# ---------------------------------------------------------------------- votes and answers


def test_after_a_fit_the_answers_are_those_of_a_batch(service: Any, made: Any, votes: Any) -> None:
    assert service.post("/votes", votes) == {"new": len(votes), "changed": 0, "unchanged": 0}
    figures = service.post("/refit")
    assert (figures["n_votes"], figures["is_current"], figures["fit"]["n_votes"]) == (len(votes), True, len(votes))
    batch = wc.DawidSkene().fit(made.crowd)
    assert labels(service) == batch.labels_.to_dict()
    for task in made.crowd.tasks[:10]:
        told = service.get("/task", task=task)
        assert told["probabilities"] == pytest.approx(batch.proba_.loc[task].to_dict(), abs=1e-6)
        mine = made.crowd.to_frame().query("task == @task")
        assert told["votes"] == dict(zip(mine["worker"], mine["label"], strict=True))
    known = {row["worker"]: row for row in service.get("/workers")["workers"]}
    assert {name: row["n_votes"] for name, row in known.items()} == batch.workers_["n_votes"].astype(int).to_dict()
    accuracy = {name: row["accuracy"] for name, row in known.items()}
    assert accuracy == pytest.approx(batch.workers_["accuracy"].to_dict(), abs=1e-3)


def test_what_may_stop_is_what_a_plan_says(service: Any, made: Any, votes: Any) -> None:
    from wisecrowd.plan.stopping import find_finished_tasks

    service.post("/votes", votes)
    assert service.get("/questions")[0]["n_finished"] == 0  # before a fit, nothing is known of anybody
    service.post("/refit")
    told = {row["task"]: row["is_finished"] for row in service.get("/consensus", limit=1000)["tasks"]}
    planned = find_finished_tasks(made.crowd, 0.95)
    # Which votes are hidden to find out how sure one may be depends on the order of tasks, and theirs is another.
    assert (planned == planned.index.map(told)).mean() > 0.95


def test_answers_follow_every_vote(service: Any) -> None:
    service.post("/votes", {"task": "t1", "worker": "ann", "label": "good"})
    assert service.get("/task", task="t1")["label"] == "good"
    service.post("/votes", [{"task": "t1", "worker": who, "label": "bad"} for who in ("bob", "cy", "dee")])
    assert service.get("/task", task="t1")["label"] == "bad"


def test_the_same_vote_counts_once(service: Any) -> None:
    vote = {"task": "t1", "worker": "ann", "label": "good"}
    assert service.post("/votes", vote)["new"] == 1
    assert service.post("/votes", vote)["unchanged"] == 1
    assert service.post("/votes", {**vote, "label": "bad"})["changed"] == 1
    assert service.post("/votes", {**vote, "id": 5})["new"] == 1
    assert service.get("/questions")[0]["n_votes"] == 1  # a worker has one vote on a task, the last
    assert service.get("/task", task="t1")["label"] == "good"
    assert service.ask("DELETE", "/votes", params={"id": "5"}).json()["changed"] == 1
    assert service.get("/task", task="t1")["label"] == "bad"
    assert service.ask("DELETE", "/votes", params={"id": "5"}).json()["unchanged"] == 1


def test_votes_that_come_during_a_fit_are_not_lost(service: Any, made: Any, votes: Any) -> None:
    service.post("/votes", votes[:200])
    state = service.coordinator.question()
    with service.coordinator.lock:
        state.start_fit()
    from wisecrowd.service.refits import refit_question

    found = refit_question(service.coordinator.store.url, 0, service.coordinator.methods)
    service.post("/votes", votes[200:])
    with service.coordinator.lock:
        state.finish_fit(found)
    assert service.get("/questions")[0]["n_votes"] == len(votes)
    assert not service.get("/questions")[0]["is_current"]
    service.post("/refit")
    assert labels(service) == wc.DawidSkene().fit(made.crowd).labels_.to_dict()


def test_gold(service: Any, votes: Any) -> None:
    service.post("/votes", votes)
    task = votes[0]["task"]
    wrong = next(name for name in ("c0", "c1", "c2") if name != service.get("/task", task=task)["label"])
    service.post("/truth", {"task": task, "label": wrong})
    told = service.get("/task", task=task)
    assert (told["label"], told["is_gold"], told["is_finished"], told["confidence"]) == (wrong, True, True, 1.0)
    service.post("/refit")
    assert service.get("/task", task=task)["label"] == wrong
    assert task not in {row["task"] for row in service.get("/next", limit=100)["tasks"]}
    service.post("/truth", {"task": task, "label": None})
    assert not service.get("/task", task=task)["is_gold"]


def test_what_to_ask_next(service: Any, made: Any, votes: Any) -> None:
    service.post("/votes", votes)
    service.post("/tasks", {"tasks": ["new 1", "new 2", 3]})
    service.post("/refit")
    told = service.get("/next", worker="stranger")
    unlabelled = {row["task"]: row["label"] for row in told["tasks"] if row["n_votes"] == 0}
    assert unlabelled == {"new 1": None, "new 2": None, "3": None}
    gains = [row["gain"] for row in told["tasks"]]
    assert gains == sorted(gains, reverse=True)
    expert = made.crowd.workers[0]
    asked = {row["task"] for row in service.get("/next", worker=expert, limit=100)["tasks"]}
    assert not asked & set(made.crowd.to_frame().query("worker == @expert")["task"])
    spammer = made.crowd.workers[-1]
    told = service.get("/next", worker=spammer)
    assert told["tasks"] == []
    assert "independent of the truth" in told["reason"]


def test_several_questions(service: Any) -> None:
    assert service.ask("GET", "/consensus").status_code == 404
    for question in ("mood", "topic"):
        service.post("/votes", {"question": question, "task": "t1", "worker": "ann", "label": f"some {question}"})
    assert labels(service, question="topic") == {"t1": "some topic"}
    told = service.ask("GET", "/consensus")
    assert told.status_code == 404
    assert "name a question: mood, topic" in told.json()["detail"]
    assert "questions: mood, topic" in service.ask("GET", "/workers", params={"question": "x"}).json()["detail"]
    service.post("/votes", {"question": "topic", "task": "t1", "worker": "bob", "label": ["b", "a", "b"]})
    assert service.get("/task", question="topic", task="t1")["votes"]["bob"] == "a|b"


def test_names_of_any_kind(service: Any) -> None:
    path = Path(__file__).parents[1] / "hostile.json"
    texts = [text for text in json.loads(path.read_text(encoding="utf-8")) if text.strip() and "\0" not in text]
    texts = [text for text in texts if len(text) <= 1000 and not any("\ud800" <= char <= "\udfff" for char in text)]
    service.post("/votes", [{"task": text, "worker": text, "label": text} for text in texts])
    assert labels(service) == {text: text for text in texts}
    for text in texts[:20]:
        assert service.get("/task", task=text)["votes"] == {text: text}


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    "body",
    [
        {}, [], "vote", None, 7, {"task": "t1", "worker": "ann"}, {"task": "", "worker": "ann", "label": "x"},
        {"task": "t1", "worker": None, "label": "x"}, {"task": "t1", "worker": "ann", "label": None},
        {"task": "t1", "worker": "ann", "label": 0.5}, {"task": True, "worker": "ann", "label": "x"},
        {"task": "t" * 1001, "worker": "ann", "label": "x"}, {"task": "t\0", "worker": "ann", "label": "x"},
        {"task": "t1", "worker": "ann", "label": "x", "typo": 1}, {"task": "t1", "worker": "ann", "label": "x", "time": "soon"},
        [{"task": "t1", "worker": "ann", "label": "x"}, {"task": "t2"}],
    ],
)  # fmt: skip
def test_votes_that_are_none(service: Any, body: Any) -> None:
    told = service.ask("POST", "/votes", json=body)
    assert told.status_code == 422, told.text
    assert told.json()["detail"]
    assert service.get("/questions") == []  # all or nothing


def test_bodies_that_are_no_json(service: Any) -> None:
    for body in (b"{", b"\xff\xfe", b'{"task": "\\ud800", "worker": "a", "label": "x"}', b"[" * 5000):
        for path in ("/votes", "/truth"):
            told = service.ask("POST", path, content=body, headers={"Content-Type": "application/json"})
            assert told.status_code in (400, 422), (path, body[:20], told.text)


def test_numbers_that_json_has_no_word_for(service: Any) -> None:
    told = service.ask("POST", "/tasks", content=b'[{"x": -Infinity}]', headers={"Content-Type": "application/json"})
    assert told.status_code == 422


def test_without_the_token_nothing_is_told(service: Any) -> None:
    vote = {"task": "t1", "worker": "ann", "label": "x"}
    for token in (None, "wrong", "", "Bearer"):
        assert service.ask("POST", "/votes", json=vote, token=token).status_code == 401
        for path in ("/questions", "/consensus", "/workers", "/next", "/task?task=x", "/", "/report", "/nowhere"):
            told = service.ask("GET", path, token=token)
            assert told.status_code == 401, path
            assert "a-token" not in told.text
    assert service.ask("GET", "/health", token=None).json()["status"] == "ok"
    assert service.get("/questions") == []


def test_requests_are_bounded(service: Any) -> None:
    vote = {"task": "t1", "worker": "ann", "label": "x" * 900}
    many = json.dumps([vote] * 5000).encode()
    assert service.ask("POST", "/votes", content=many).status_code == 413

    async def in_pieces() -> Any:
        for start in range(0, len(many), 65536):
            yield many[start : start + 65536]

    for path in ("/votes", "/truth"):
        told = service.ask("POST", path, content=in_pieces(), headers={"Content-Type": "application/json"})
        assert told.status_code == 413
        assert "4,000,000 bytes" in told.json()["detail"]
    assert service.ask("POST", "/votes", json=[{"task": "t", "worker": "w", "label": "x"}] * 10_001).status_code == 422


def test_a_service_that_cannot_keep_up_says_so(service: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: Any, **__: Any) -> Any:
        raise ServiceBusy("more votes come than can be written")

    monkeypatch.setattr(service.coordinator, "submit", busy)
    for path, body in (("/votes", {"task": "t1", "worker": "ann", "label": "x"}), ("/tasks", {"tasks": ["t1"]})):
        told = service.ask("POST", path, json=body)
        assert (told.status_code, told.headers["retry-after"]) == (503, "1")


def test_a_database_that_fails(service: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    service.post("/votes", {"task": "t1", "worker": "ann", "label": "x"})

    def full(_: Any) -> Any:
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(service.coordinator.store, "apply", full)
        told = service.ask("POST", "/votes", json={"task": "t2", "worker": "ann", "label": "x"})
        assert told.status_code == 503
        assert "nothing was stored: no space left" in told.json()["detail"]
    assert service.post("/votes", {"task": "t2", "worker": "ann", "label": "x"})["new"] == 1


# ---------------------------------------------------------------------- Label Studio


def recorded(name: str) -> dict[str, Any]:
    return json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))


def test_webhooks_of_a_real_label_studio(service: Any) -> None:
    hook = "/webhooks/label-studio"
    assert service.post(hook, recorded("tasks_created"))["new"] == 3
    assert service.post(hook, recorded("annotation_created"))["new"] == 1
    assert service.post(hook, recorded("annotation_created"))["unchanged"] == 1
    service.post(hook, recorded("annotation_created_by_another"))
    service.post(hook, recorded("annotation_created_cancelled"))
    mood = service.get("/task", question="1:mood", task="1")["votes"]
    assert sorted(mood.values()) == ["bad", "good"]
    assert sorted(service.get("/task", question="1:topics", task="1")["votes"].values()) == ["food", "food|price"]
    assert sorted(service.get("/task", question="1:stars", task="1")["votes"].values()) == ["2", "4"]
    service.post(hook, recorded("annotation_updated"))
    assert list(service.get("/task", question="1:mood", task="1")["votes"].values()) == ["good", "good"]
    gold = recorded("annotation_created_ground_truth")
    service.post(hook, gold)
    task = str(gold["annotation"]["task"])
    assert service.get("/task", question="1:mood", task=task)["is_gold"]
    service.post(hook, recorded("annotations_deleted"))
    service.post(hook, recorded("annotations_deleted_in_data_manager"))
    assert service.get("/task", question="1:mood", task="1")["votes"] == {}
    assert service.post(hook, recorded("project_updated")) == {"new": 0, "changed": 0, "unchanged": 0}
    asked = service.get("/next", question="1:mood")["tasks"]
    assert {row["task"] for row in asked} == {"1", "2", "3", "4"} - {task}


@pytest.mark.parametrize(
    "body",
    [
        {"action": "ANNOTATION_CREATED"}, {"action": "ANNOTATION_CREATED", "annotation": 5, "project": {"id": 1}},
        {"action": "ANNOTATION_CREATED", "annotation": {"id": 1, "task": None, "result": []}, "project": {"id": 1}},
        {"action": "ANNOTATION_CREATED", "annotation": {"id": 1, "task": 1, "result": 7}, "project": {"id": 1}},
        {"action": "ANNOTATIONS_DELETED", "annotations": [{}], "project": {"id": 1}},
        {"action": "TASKS_CREATED", "tasks": [{"id": [1]}], "project": {"id": 1}},
        {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": "a\0"}], "project": {"id": 1}},
        {"action": "ANNOTATION_CREATED", "annotation": {"id": 1, "task": "t" * 2000, "result": []}, "project": {"id": 1}},
    ],
)  # fmt: skip
def test_webhooks_that_are_none(service: Any, body: Any) -> None:
    told = service.ask("POST", "/webhooks/label-studio", json=body)
    assert told.status_code == 422, told.text
    assert isinstance(told.json()["detail"], str)


def test_settings_that_are_no_settings(service: Any) -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><View>&b;</View>'
    for settings in (bomb, "<View>", "", 5, None):
        body = {"action": "TASKS_CREATED", "tasks": [{"id": 1}], "project": {"id": 1, "label_config": settings}}
        assert service.post("/webhooks/label-studio", body)["new"] == 0


# ---------------------------------------------------------------------- as it is described


def test_requests_by_its_own_description(service: Any) -> None:
    """A short form of ``benchmarks/serve.py fuzz``: no answer is an error of the service, or one that it does not describe."""
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, Phase, given, settings

    described = service.app.openapi()
    schema = schemathesis.openapi.from_dict(described)
    limits = settings(max_examples=8, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
                      suppress_health_check=list(HealthCheck))  # fmt: skip
    seen = set()

    def asking(operation: Any) -> Any:
        known = set(described["paths"][operation.path][operation.method]["responses"])

        def ask(case: Any) -> None:
            more = {"json": case.body} if isinstance(case.body, dict | list) else {}
            told = service.ask(case.method, case.formatted_path, params=dict(case.query or {}), **more)
            assert str(told.status_code) in known, (told.status_code, told.text, case)
            seen.add(operation.path)

        return ask

    for operation in (found.ok() for found in schema.get_all_operations()):
        limits(given(operation.as_strategy())(asking(operation)))()
    assert {"/votes", "/truth", "/tasks", "/webhooks/label-studio", "/consensus", "/next", "/refit"} <= seen


def test_ids_are_of_a_question(service: Any) -> None:
    for question, label in (("mood", "good"), ("topic", "food")):
        vote = {"id": "form-1", "task": "t1", "worker": "ann", "label": label, "question": question}
        assert service.post("/votes", vote)["new"] == 1
    assert service.get("/task", task="t1", question="mood")["votes"] == {"ann": "good"}
    assert service.get("/task", task="t1", question="topic")["votes"] == {"ann": "food"}
    told = service.ask("DELETE", "/votes", params={"id": "form-1", "question": "mood"})
    assert told.json()["changed"] == 1
    assert service.get("/task", task="t1", question="mood")["votes"] == {}
    assert service.get("/task", task="t1", question="topic")["votes"] == {"ann": "food"}


def test_votes_without_ids_can_be_taken_back(service: Any) -> None:
    service.post("/votes", [{"task": "t1", "worker": who, "label": "good"} for who in ("ann", "bob")])
    assert service.ask("DELETE", "/votes", params={"task": "t1", "worker": "bob"}).json()["changed"] == 1
    assert service.get("/task", task="t1")["votes"] == {"ann": "good"}
    for params in ({}, {"task": "t1"}, {"id": "x", "task": "t1", "worker": "ann"}):
        told = service.ask("DELETE", "/votes", params=params)
        assert told.status_code == 422
        assert "name the vote" in told.json()["detail"]


def test_votes_can_be_had_again(service: Any) -> None:
    service.post("/votes", {"id": 7, "task": "t1", "worker": "ann", "label": "good", "time": 12.5})
    service.post("/votes", [{"task": f"t{n}", "worker": "bob", "label": "bad"} for n in range(5)])
    service.post("/truth", [{"task": "t0", "label": "bad"}, {"task": "t1", "label": "good"}])
    first = service.get("/votes", limit=6)
    assert first["votes"][0] == {"task": "t1", "worker": "ann", "label": "good", "time": 12.5, "id": "7"}
    rest = service.get("/votes", limit=6, after=first["next"])
    assert [(each["task"], each["worker"]) for each in rest["votes"]] == [("t0", None), ("t1", None)]
    assert rest["next"] is None


def test_nothing_is_believed_before_it_was_looked_at(service: Any, votes: Any) -> None:
    service.post("/votes", {"task": "t1", "worker": "ann", "label": "good", "question": "young"})
    service.post("/tasks", {"tasks": ["t2"], "question": "young"})
    one, none = service.get("/consensus", question="young")["tasks"]
    assert (one["label"], one["confidence"], one["is_finished"]) == ("good", None, False)
    assert (none["label"], none["probability"], none["confidence"]) == (None, None, None)
    assert service.get("/questions")[0]["expected_accuracy"] is None
    service.post("/votes", votes)
    service.post("/refit", question="votes")
    assert all(0 < each["confidence"] <= 1 for each in service.get("/consensus", question="votes", limit=1000)["tasks"])


def test_what_is_posted_is_json_whatever_it_is_called(service: Any) -> None:
    for path, body in (("/truth", {"task": "t1", "label": "x"}), ("/tasks", {"tasks": ["t2"]})):
        told = service.ask("POST", path, content=json.dumps(body).encode(),
                           headers={"Content-Type": "application/x-www-form-urlencoded"})  # fmt: skip
        assert told.status_code == 200, told.text


def test_problems_are_told_once_for_each_place(service: Any) -> None:
    good = {"task": "t1", "worker": "ann", "label": "good"}
    told = service.ask("POST", "/votes", json=[good, {**good, "label": 1.5}, {"task": "t1", "worker": "ann"}]).json()
    assert told["detail"] == [
        {"loc": [1, "label"], "msg": "expected a string, an integer, a boolean or a list of strings"},
        {"loc": [2, "label"], "msg": "Field required"},
    ]
    for time in (True, "2026-05-01T10:00:00", "soon", -1, "0001-01-01T00:02:00+00:03", "1969-12-31T23:59:59Z"):
        told = service.ask("POST", "/votes", json={**good, "time": time})
        assert told.status_code == 422, time
        assert {tuple(each["loc"]) for each in told.json()["detail"]} == {("time",)}
    assert service.post("/votes", {**good, "time": "2026-05-01T10:00:00+02:00"})["new"] == 1


def test_a_wrong_token_is_not_a_missing_one(service: Any) -> None:
    assert "a token is missing" in service.ask("GET", "/questions", token=None).json()["detail"]
    assert "the token is wrong" in service.ask("GET", "/questions", token="guess").json()["detail"]
