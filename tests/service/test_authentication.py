"""Tokens of requests."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from wisecrowd.service import authentication
from wisecrowd.service.app import create_app
from wisecrowd.service.authentication import LoginSessions

TOKEN = "a-token-of-sixteen-or-more"


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


# ---------------------------------------------------------------------- sessions of browsers


def test_the_link_starts_a_session(service: Any) -> None:
    response = service.ask("GET", "/", token=None, params={"token": TOKEN})
    assert (response.status_code, response.headers["location"]) == (303, "/")
    cookie = response.headers["set-cookie"]
    assert TOKEN not in cookie  # a browser sends cookies to all ports of this machine, and so to other programs
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert "Max-Age=86400" in cookie
    assert service.ask("GET", "/", token=None, headers=service.log_in()).status_code == 200
    assert service.ask("GET", "/", token=None, params={"token": "wrong"}).status_code == 401


def test_a_session_opens_pages_only(service: Any) -> None:
    cookie = service.log_in()
    vote = {"task": "t", "worker": "w", "label": "x"}
    assert service.ask("POST", "/votes", token=None, json=vote, headers=cookie).status_code == 401
    assert service.ask("GET", "/consensus", token=None, headers=cookie).status_code == 401
    session_id = cookie["Cookie"].split("=", 1)[1]
    assert service.ask("GET", "/questions", token=session_id).status_code == 401
    assert service.ask("GET", "/", token=None, params={"token": session_id}).status_code == 401


def test_the_token_is_no_session(service: Any) -> None:
    name = service.log_in()["Cookie"].split("=", 1)[0]
    for value in (TOKEN, "", "x" * 43):
        assert service.ask("GET", "/", token=None, headers={"Cookie": f"{name}={value}"}).status_code == 401


def test_a_session_belongs_to_one_service(service: Any) -> None:
    cookie = service.log_in()
    service.app = create_app(service.coordinator, TOKEN)  # as after a restart
    assert service.ask("GET", "/", token=None, headers=cookie).status_code == 401


def test_the_name_of_the_cookie_has_the_port(service: Any, run_server: Any) -> None:
    import httpx

    with run_server(service.app) as address:
        response = httpx.get(f"{address}/", params={"token": TOKEN}, trust_env=False)
    assert response.headers["set-cookie"].startswith(f"wisecrowd_{address.rsplit(':', 1)[1]}=")


def test_the_cookie_is_secure_behind_a_proxy_with_tls(service: Any) -> None:
    params = {"token": TOKEN}
    plain = service.ask("GET", "/", token=None, params=params)
    proxied = service.ask("GET", "/", token=None, params=params, headers={"X-Forwarded-Proto": "https"})
    assert "Secure" not in plain.headers["set-cookie"]
    assert "Secure" in proxied.headers["set-cookie"]


def test_a_link_with_bytes_that_are_no_text_starts_a_session(service: Any) -> None:
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http", "path": "/",
        "raw_path": b"/", "query_string": b"question=\x9a&token=" + TOKEN.encode(), "root_path": "",
        "headers": [(b"host", b"service")], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2),
    }  # fmt: skip
    messages: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        messages.append(message)

    asyncio.run(service.app(scope, receive, send))
    assert messages[0]["status"] == 303


def test_sessions_expire_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(authentication.time, "monotonic", lambda: now)
    monkeypatch.setattr(authentication, "MAX_SESSIONS", 3)
    sessions = LoginSessions()
    ids = [sessions.create() for _ in range(4)]
    assert [sessions.is_valid(each) for each in ids] == [False, True, True, True]
    now += authentication.SESSION_SECONDS
    assert not sessions.is_valid(ids[3])
    assert len(sessions) == 2
