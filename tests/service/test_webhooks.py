"""Webhooks of Label Studio."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from wisecrowd.service.store import OtherServer, Store
from wisecrowd.service.webhooks import parse_webhook

RECORDED = Path(__file__).parents[1] / "recorded" / "label_studio" / "webhooks"


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
    suggested = service.get("/next", question="1:mood")["tasks"]
    assert {row["task"] for row in suggested} == {"1", "2", "3", "4"} - {task}


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
def test_invalid_webhooks_are_refused(service: Any, body: Any) -> None:
    response = service.ask("POST", "/webhooks/label-studio", json=body)
    assert response.status_code == 422, response.text
    assert isinstance(response.json()["detail"], str)


def test_invalid_project_settings_are_ignored(service: Any) -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><View>&b;</View>'
    for settings in (bomb, "<View>", "", 5, None):
        body = {"action": "TASKS_CREATED", "tasks": [{"id": 1}], "project": {"id": 1, "label_config": settings}}
        assert service.post("/webhooks/label-studio", body)["new"] == 0


def annotation(label: str, created_at: str | None, *, annotation_id: int = 5, project: int = 12, task: int = 7) -> Any:
    result = {"from_name": "mood", "type": "choices", "value": {"choices": [label]}}
    described = {"id": project} | ({} if created_at is None else {"created_at": created_at})
    body = {"id": annotation_id, "task": task, "completed_by": 1, "result": [result]}
    return {"action": "ANNOTATION_CREATED", "annotation": body, "project": described}


def votes(service: Any, question: str, task: str) -> Any:
    return service.get("/task", question=question, task=task)["votes"]


HOOK = "/webhooks/label-studio"


def test_annotation_id_of_another_project_moves_no_vote(service: Any) -> None:
    service.post(HOOK, annotation("good", None, project=12, task=7))
    assert service.post(HOOK, annotation("bad", None, project=3, task=9))["new"] == 1
    assert votes(service, "12:mood", "7") == {"1": "good"}
    deleted = {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": 5}], "project": {"id": 3}}
    service.post(HOOK, deleted)
    assert votes(service, "12:mood", "7") == {"1": "good"}
    assert votes(service, "3:mood", "9") == {}


def test_named_servers_have_separate_votes(service: Any) -> None:
    service.post(HOOK, annotation("good", "2026-01-01T00:00:00Z"))
    second = annotation("bad", "2026-02-01T00:00:00Z")
    assert service.post(HOOK, second, server="berlin")["new"] == 1
    assert service.post(HOOK, second, server="berlin")["unchanged"] == 1
    assert votes(service, "12:mood", "7") == {"1": "good"}
    assert votes(service, "berlin/12:mood", "7") == {"1": "bad"}
    for action, field in (
        ("ANNOTATIONS_DELETED", {"annotations": [{"id": 5}]}),
        ("TASKS_DELETED", {"tasks": [{"id": 7}]}),
    ):
        service.post(HOOK, {"action": action, "project": second["project"], **field}, server="berlin")
        assert votes(service, "12:mood", "7") == {"1": "good"}
    assert votes(service, "berlin/12:mood", "7") == {}
    assert service.ask("POST", HOOK, json=second, params={"server": "a/b"}).status_code == 422


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": 5}]},
        {"action": "TASKS_DELETED", "tasks": [{"id": 7}]},
        {"action": "TASKS_CREATED", "tasks": [{"id": 8}]},
    ],
)
def test_projects_of_two_servers_without_names_are_refused(service: Any, change: Any) -> None:
    settings = '<View><Choices name="mood" toName="text"><Choice value="good"/></Choices></View>'
    service.post(HOOK, annotation("good", "2026-01-01T00:00:00.5Z"))
    second = annotation("bad", "2026-02-01T00:00:00Z") | change
    second["project"]["label_config"] = settings
    response = service.ask("POST", HOOK, json=second)
    assert response.status_code == 422
    assert "?server=NAME" in response.json()["detail"]
    assert votes(service, "12:mood", "7") == {"1": "good"}
    assert service.post(HOOK, annotation("bad", "2026-01-01T01:00:00.5+01:00"))["changed"] == 1  # the same time


def test_project_is_known_after_a_restart(database: str) -> None:
    for created_at in ("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"):
        with contextlib.closing(Store(database)) as store:
            events = parse_webhook(annotation("good", created_at))
            if created_at.startswith("2026-01"):
                store.apply(events)
            else:
                with pytest.raises(OtherServer, match="another server"):
                    store.apply(events)
            assert store.vocabularies["12:mood"].origins.names == ["2026-01-01T00:00:00+00:00"]
