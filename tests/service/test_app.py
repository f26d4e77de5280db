"""Routes of the service."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.fuzz import service as fuzz

import wisecrowd as wc
from wisecrowd.service.coordinator import ServiceBusy


def labels(service: Any, **params: Any) -> dict[str, str]:
    """Return the label of every task, read page by page."""
    result: dict[str, str] = {}
    start: int | None = 0
    while start is not None:
        page = service.get("/consensus", start=start, limit=33, **params)
        result.update((row["task"], row["label"]) for row in page["tasks"])
        start = page["next"]
    return result


# ---------------------------------------------------------------------- votes and answers


def test_spellings_of_a_label_are_named(service: Any, caplog: pytest.LogCaptureFixture) -> None:
    labels = ("good", "Good", "good ", "bad")
    votes = [{"task": "t1", "worker": f"w{number}", "label": label} for number, label in enumerate(labels)]
    receipt = service.post("/votes", votes)
    sentence = "3 labels differ only by case or space, but count as different"
    assert receipt["new"] == 4
    assert [sentence in warning for warning in receipt["warnings"]] == [True]
    assert "warnings" not in service.post("/votes", {"task": "t2", "worker": "w1", "label": "bad"})
    (summary,) = service.get("/questions")
    assert sentence in summary["warnings"][0]
    page = service.ask("GET", "/", token=None, headers=service.log_in()).text
    assert f"<strong>Warning:</strong> {sentence}" in page
    logged = [record.getMessage() for record in caplog.records if "spelling" in record.getMessage()]
    assert [message.startswith("3 classes") for message in logged] == [True]
    assert "good" not in logged[0].lower(), "logs have no names"


def test_answers_after_a_fit_equal_a_batch_fit(service: Any, simulated: Any, votes: Any) -> None:
    assert service.post("/votes", votes) == {"new": len(votes), "changed": 0, "unchanged": 0}
    figures = service.post("/refit")
    assert (figures["n_votes"], figures["is_current"], figures["fit"]["n_votes"]) == (len(votes), True, len(votes))
    batch = wc.DawidSkene().fit(simulated.crowd)
    assert labels(service) == batch.labels_.to_dict()
    for task in simulated.crowd.tasks[:10]:
        response = service.get("/task", task=task)
        assert response["probabilities"] == pytest.approx(batch.proba_.loc[task].to_dict(), abs=1e-6)
        mine = simulated.crowd.to_frame().query("task == @task")
        assert response["votes"] == dict(zip(mine["worker"], mine["label"], strict=True))
    by_worker = {row["worker"]: row for row in service.get("/workers")["workers"]}
    assert {name: row["n_votes"] for name, row in by_worker.items()} == batch.workers_["n_votes"].astype(int).to_dict()
    accuracy = {name: row["accuracy"] for name, row in by_worker.items()}
    rated = wc.diagnose_crowd(simulated.crowd, model=batch).workers
    assert accuracy == pytest.approx(rated["accuracy"].to_dict(), abs=1e-3)
    assert {name: row["flags"] for name, row in by_worker.items()} == rated["flags"].to_dict()


def test_finished_tasks_agree_with_the_plan(service: Any, simulated: Any, votes: Any) -> None:
    from wisecrowd.plan.stopping import find_finished_tasks

    service.post("/votes", votes)
    assert service.get("/questions")[0]["n_finished"] == 0  # no task is finished before the first fit
    service.post("/refit")
    response = {row["task"]: row["is_finished"] for row in service.get("/consensus", limit=1000)["tasks"]}
    planned = find_finished_tasks(simulated.crowd, model="dawid-skene")
    assert 0 < planned.sum() < len(planned)
    assert (planned == planned.index.map(response)).all()


def test_confidence_and_expected_accuracy_agree_with_aggregate(service: Any, simulated: Any, votes: Any) -> None:
    service.post("/votes", votes)
    gold = {str(task): str(label) for task, label in simulated.truth[:20].items()}
    service.post("/truth", [{"task": task, "label": label} for task, label in gold.items()])
    summary = service.post("/refit")["expected_accuracy"]
    crowd = simulated.crowd
    estimate = wc.estimate_confidence(wc.DawidSkene().fit(crowd, truth=gold), crowd, truth=gold)
    # The parts of the gold tasks depend on the order of the tasks, which differs.
    assert summary["accuracy"] == pytest.approx(estimate.accuracy.accuracy, abs=0.01)
    assert (summary["tasks"], summary["gold_tasks"]) == (crowd.n_tasks, 20)
    assert summary["low"] < summary["accuracy"] < summary["high"]
    answers = service.get("/consensus", limit=1000)["tasks"]
    confidence = pd.Series({answer["task"]: answer["confidence"] for answer in answers})[estimate.tasks]
    np.testing.assert_allclose(confidence, estimate.confidence, atol=0.02)
    page = service.ask("GET", "/", token=None, headers=service.log_in()).text
    assert "90 % interval" in page
    assert "by votes and 20 gold tasks" in page


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
    assert service.get("/questions")[0]["n_votes"] == 1  # the last vote of a worker on a task counts
    assert service.get("/task", task="t1")["label"] == "good"
    assert service.ask("DELETE", "/votes", params={"id": "5"}).json()["changed"] == 1
    assert service.get("/task", task="t1")["label"] == "bad"
    assert service.ask("DELETE", "/votes", params={"id": "5"}).json()["unchanged"] == 1


def test_votes_that_come_during_a_fit_are_not_lost(service: Any, simulated: Any, votes: Any) -> None:
    service.post("/votes", votes[:200])
    state = service.coordinator.question()
    with service.coordinator.lock:
        state.start_fit()
    from wisecrowd.service.refits import refit_question

    result = refit_question(service.coordinator.store.url, 0, service.coordinator.method)
    service.post("/votes", votes[200:])
    with service.coordinator.lock:
        state.finish_fit(result)
    assert service.get("/questions")[0]["n_votes"] == len(votes)
    assert not service.get("/questions")[0]["is_current"]
    service.post("/refit")
    assert labels(service) == wc.DawidSkene().fit(simulated.crowd).labels_.to_dict()


def test_gold(service: Any, votes: Any) -> None:
    service.post("/votes", votes)
    task = votes[0]["task"]
    wrong = next(name for name in ("c0", "c1", "c2") if name != service.get("/task", task=task)["label"])
    service.post("/truth", {"task": task, "label": wrong})
    response = service.get("/task", task=task)
    assert (response["label"], response["is_gold"], response["is_finished"], response["confidence"]) == (
        wrong,
        True,
        True,
        1.0,
    )
    service.post("/refit")
    assert service.get("/task", task=task)["label"] == wrong
    assert task not in {row["task"] for row in service.get("/next", limit=100)["tasks"]}
    service.post("/truth", {"task": task, "label": None})
    assert not service.get("/task", task=task)["is_gold"]


def test_suggested_tasks(service: Any, simulated: Any, votes: Any) -> None:
    service.post("/votes", votes)
    service.post("/tasks", {"tasks": ["new 1", "new 2", 3]})
    service.post("/refit")
    response = service.get("/next", worker="stranger")
    unlabelled = {row["task"]: row["label"] for row in response["tasks"] if row["n_votes"] == 0}
    assert unlabelled == {"new 1": None, "new 2": None, "3": None}
    gains = [row["gain"] for row in response["tasks"]]
    assert gains == sorted(gains, reverse=True)
    expert = simulated.crowd.workers[0]
    suggested = {row["task"] for row in service.get("/next", worker=expert, limit=100)["tasks"]}
    assert not suggested & set(simulated.crowd.to_frame().query("worker == @expert")["task"])
    spammer = simulated.crowd.workers[-1]
    response = service.get("/next", worker=spammer)
    assert response["tasks"] == []
    assert "independent of the truth" in response["reason"]


def test_several_questions(service: Any) -> None:
    assert service.ask("GET", "/consensus").status_code == 404
    for question in ("mood", "topic"):
        service.post("/votes", {"question": question, "task": "t1", "worker": "ann", "label": f"some {question}"})
    assert labels(service, question="topic") == {"t1": "some topic"}
    response = service.ask("GET", "/consensus")
    assert response.status_code == 404
    assert "name a question: mood, topic" in response.json()["detail"]
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
def test_invalid_votes_are_refused(service: Any, body: Any) -> None:
    response = service.ask("POST", "/votes", json=body)
    assert response.status_code == 422, response.text
    assert response.json()["detail"]
    assert service.get("/questions") == []  # all or nothing


def test_invalid_json_is_refused(service: Any) -> None:
    for body in (b"{", b"\xff\xfe", b'{"task": "\\ud800", "worker": "a", "label": "x"}', b"[" * 5000):
        for path in ("/votes", "/truth"):
            response = service.ask("POST", path, content=body, headers={"Content-Type": "application/json"})
            assert response.status_code in (400, 422), (path, body[:20], response.text)


def test_infinite_numbers_are_refused(service: Any) -> None:
    response = service.ask(
        "POST", "/tasks", content=b'[{"x": -Infinity}]', headers={"Content-Type": "application/json"}
    )
    assert response.status_code == 422


def test_busy_service_answers_503(service: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: Any, **__: Any) -> Any:
        raise ServiceBusy("more votes come than can be written")

    monkeypatch.setattr(service.coordinator, "submit", busy)
    for path, body in (("/votes", {"task": "t1", "worker": "ann", "label": "x"}), ("/tasks", {"tasks": ["t1"]})):
        response = service.ask("POST", path, json=body)
        assert (response.status_code, response.headers["retry-after"]) == (503, "1")


def test_failed_write_answers_503(service: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    service.post("/votes", {"task": "t1", "worker": "ann", "label": "x"})

    def full(_: Any) -> Any:
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(service.coordinator.store, "apply", full)
        response = service.ask("POST", "/votes", json={"task": "t2", "worker": "ann", "label": "x"})
        assert response.status_code == 503
        assert "nothing was stored: no space left" in response.json()["detail"]
    assert service.post("/votes", {"task": "t2", "worker": "ann", "label": "x"})["new"] == 1


# ---------------------------------------------------------------------- as it is described


@pytest.mark.slow
def test_answers_match_the_openapi_description(service: Any) -> None:
    """Every status of a request drawn from the OpenAPI description is documented; ``benchmarks/serve.py fuzz`` sends more."""
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, Phase, given, settings

    described = service.app.openapi()
    schema = schemathesis.openapi.from_dict(described)
    limits = settings(max_examples=8, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
                      suppress_health_check=list(HealthCheck))  # fmt: skip
    requested = set()

    def asking(operation: Any) -> Any:
        documented = set(described["paths"][operation.path][operation.method]["responses"])

        def ask(case: Any) -> None:
            more = {"json": case.body} if isinstance(case.body, dict | list) else {}
            response = service.ask(case.method, case.formatted_path, params=dict(case.query or {}), **more)
            assert str(response.status_code) in documented, (response.status_code, response.text, case)
            requested.add(operation.path)

        return ask

    for operation in (result.ok() for result in schema.get_all_operations()):
        limits(given(operation.as_strategy())(asking(operation)))()
    assert {"/votes", "/truth", "/tasks", "/webhooks/label-studio", "/consensus", "/next", "/refit"} <= requested


def test_the_description_is_encoded_once(service: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger must not make the service encode its description again and again."""
    described = service.app.openapi()
    assert service.ask("GET", "/openapi.json", token=None).json() == described
    monkeypatch.setattr(service.app, "openapi", lambda: pytest.fail("encoded again"))
    assert service.ask("GET", "/openapi.json", token=None).json() == described


def test_vote_ids_are_scoped_to_a_question(service: Any) -> None:
    for question, label in (("mood", "good"), ("topic", "food")):
        vote = {"id": "form-1", "task": "t1", "worker": "ann", "label": label, "question": question}
        assert service.post("/votes", vote)["new"] == 1
    assert service.get("/task", task="t1", question="mood")["votes"] == {"ann": "good"}
    assert service.get("/task", task="t1", question="topic")["votes"] == {"ann": "food"}
    response = service.ask("DELETE", "/votes", params={"id": "form-1", "question": "mood"})
    assert response.json()["changed"] == 1
    assert service.get("/task", task="t1", question="mood")["votes"] == {}
    assert service.get("/task", task="t1", question="topic")["votes"] == {"ann": "food"}


def test_votes_without_ids_can_be_deleted(service: Any) -> None:
    service.post("/votes", [{"task": "t1", "worker": who, "label": "good"} for who in ("ann", "bob")])
    assert service.ask("DELETE", "/votes", params={"task": "t1", "worker": "bob"}).json()["changed"] == 1
    assert service.get("/task", task="t1")["votes"] == {"ann": "good"}
    for params in ({}, {"task": "t1"}, {"id": "x", "task": "t1", "worker": "ann"}):
        response = service.ask("DELETE", "/votes", params=params)
        assert response.status_code == 422
        assert "name the vote" in response.json()["detail"]


def test_stored_votes_can_be_listed(service: Any) -> None:
    service.post("/votes", {"id": 7, "task": "t1", "worker": "ann", "label": "good", "time": 12.5})
    service.post("/votes", [{"task": f"t{n}", "worker": "bob", "label": "bad"} for n in range(5)])
    service.post("/truth", [{"task": "t0", "label": "bad"}, {"task": "t1", "label": "good"}])
    first = service.get("/votes", limit=6)
    assert first["votes"][0] == {"task": "t1", "worker": "ann", "label": "good", "time": 12.5, "id": "7"}
    rest = service.get("/votes", limit=6, after=first["next"])
    assert [(each["task"], each["worker"]) for each in rest["votes"]] == [("t0", None), ("t1", None)]
    assert rest["next"] is None


def test_confidence_is_null_before_the_first_fit(service: Any, votes: Any) -> None:
    service.post("/votes", {"task": "t1", "worker": "ann", "label": "good", "question": "young"})
    service.post("/tasks", {"tasks": ["t2"], "question": "young"})
    one, none = service.get("/consensus", question="young")["tasks"]
    assert (one["label"], one["confidence"], one["is_finished"]) == ("good", None, False)
    assert (none["label"], none["probability"], none["confidence"]) == (None, None, None)
    assert service.get("/questions")[0]["expected_accuracy"] is None
    service.post("/votes", votes)
    service.post("/refit", question="votes")
    assert all(0 < each["confidence"] <= 1 for each in service.get("/consensus", question="votes", limit=1000)["tasks"])


@pytest.mark.slow
def test_content_type_is_ignored(service: Any) -> None:
    for path, body in (("/truth", {"task": "t1", "label": "x"}), ("/tasks", {"tasks": ["t2"]})):
        response = service.ask("POST", path, content=json.dumps(body).encode(),
                           headers={"Content-Type": "application/x-www-form-urlencoded"})  # fmt: skip
        assert response.status_code == 200, response.text


def test_each_invalid_field_has_one_error(service: Any) -> None:
    good = {"task": "t1", "worker": "ann", "label": "good"}
    response = service.ask(
        "POST", "/votes", json=[good, {**good, "label": 1.5}, {"task": "t1", "worker": "ann"}]
    ).json()
    assert response["detail"] == [
        {"loc": [1, "label"], "msg": "expected a string, an integer, a boolean or a list of strings"},
        {"loc": [2, "label"], "msg": "Field required"},
    ]
    for time in (True, "2026-05-01T10:00:00", "soon", -1, "0001-01-01T00:02:00+00:03", "1969-12-31T23:59:59Z"):
        response = service.ask("POST", "/votes", json={**good, "time": time})
        assert response.status_code == 422, time
        assert {tuple(each["loc"]) for each in response.json()["detail"]} == {("time",)}
    assert service.post("/votes", {**good, "time": "2026-05-01T10:00:00+02:00"})["new"] == 1


def test_votes_with_too_many_classes_are_refused(service: Any, caplog: pytest.LogCaptureFixture) -> None:
    service.coordinator.store.max_classes = 3
    votes = [{"task": f"t{n}", "worker": "ann", "label": f"text {n}"} for n in range(5)]
    response = service.ask("POST", "/votes", json=votes)
    assert response.status_code == 422
    assert "--max-classes" in response.json()["detail"]
    assert service.get("/questions") == []
    assert service.post("/votes", votes[:3])["new"] == 3
    assert service.ask("POST", "/truth", json={"task": "t0", "label": "another"}).status_code == 422
    assert service.post("/votes", {**votes[3], "label": "text 0"})["new"] == 1
    assert caplog.records == []


def test_unknown_paths_with_any_query_are_refused(service: Any) -> None:
    for path in (b"/votes/", b"/health/", b"/nothing", b""):
        for query in (b"", b"question=\xab"):
            call = fuzz.Call("GET", path, query)
            assert fuzz.ask(service.app, call)[0] == 401
            assert fuzz.ask(service.app, fuzz._authorize(call))[0] == 404
