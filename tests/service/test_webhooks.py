"""Webhooks of Label Studio."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

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
