"""Tokens of requests."""

from __future__ import annotations

from typing import Any

import pytest


def test_requests_without_the_token_are_refused(service: Any) -> None:
    vote = {"task": "t1", "worker": "ann", "label": "x"}
    for token in (None, "wrong", "", "Bearer"):
        assert service.ask("POST", "/votes", json=vote, token=token).status_code == 401
        for path in ("/questions", "/consensus", "/workers", "/next", "/task?task=x", "/", "/report", "/nowhere"):
            response = service.ask("GET", path, token=token)
            assert response.status_code == 401, path
            assert "a-token" not in response.text
    assert service.ask("GET", "/health", token=None).json()["status"] == "ok"
    assert service.get("/questions") == []


@pytest.mark.parametrize("path", ["/votes", "/truth", "/tasks", "/webhooks/label-studio"])
def test_the_token_is_checked_before_the_body_is_parsed(service: Any, path: str) -> None:
    body = {"content": b"{not json", "headers": {"Content-Type": "application/json"}}
    assert service.ask("POST", path, token=None, **body).status_code == 401
    assert service.ask("POST", path, **body).status_code == 422


def test_wrong_and_missing_tokens_have_different_messages(service: Any) -> None:
    assert "a token is missing" in service.ask("GET", "/questions", token=None).json()["detail"]
    assert "the token is wrong" in service.ask("GET", "/questions", token="guess").json()["detail"]
