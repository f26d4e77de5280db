"""Fast path of ``POST /votes``."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest
from pydantic import ValidationError

from wisecrowd.service import vote_requests
from wisecrowd.service.events import Event
from wisecrowd.service.schemas import VOTES
from wisecrowd.service.vote_requests import parse_votes

VALUES: list[Any] = [
    "t1", " a", "", " ", "\n", "\u3000", "x\0", "é", "\ud800", "\u202e", "a" * 1000, "a" * 1001, 0, -1, 10**17, 10**30, True, None,
    1.5, ["b", "a"], [], {}, "2026-05-01T10:00:00Z",
]  # fmt: skip
TOKEN = "a-token-of-sixteen-or-more"
TIMES: list[Any] = [None, 0, 1.5, -1, 1e11, 1e12, True, "2026-05-01T10:00:00Z", "x", float("nan"), 10**20]


def parse_with_model(body: bytes) -> list[Event]:
    votes = VOTES.validate_json(body)
    return [
        vote_requests._build_event(vote.to_record(), None if vote.id is None else str(vote.id))
        for vote in (votes if isinstance(votes, list) else [votes])
    ]


def draw_body(rng: random.Random) -> bytes:
    vote: dict[str, Any] = {}
    for field, probability in (
        ("task", 0.97),
        ("worker", 0.97),
        ("label", 0.97),
        ("question", 0.4),
        ("id", 0.4),
        ("x", 0.03),
    ):
        if rng.random() < probability:
            vote[field] = rng.choice(VALUES) if rng.random() < 0.35 else f"{field} {rng.randrange(9)}"
    if rng.random() < 0.4:
        vote["time"] = rng.choice(TIMES)
    text = json.dumps([vote] if rng.random() < 0.3 else vote, ensure_ascii=rng.random() < 0.5)
    return text.encode("utf-8", "surrogatepass")


def test_fast_path_accepts_only_bodies_that_the_model_accepts() -> None:
    rng = random.Random(0)
    bodies = [draw_body(rng) for _ in range(4000)]
    events = [(body, vote_requests._parse_plain_votes(body)) for body in bodies]
    accepted = [(body, parsed) for body, parsed in events if parsed is not None]
    assert len(accepted) > 500
    for body, parsed in accepted:
        assert parsed == parse_with_model(body), body


@pytest.mark.parametrize(
    "body",
    [
        b'{"task": "a", "task": "b", "worker": "w", "label": "x"}',
        b'{"task": -0, "worker": "w", "label": "x", "time": -0.0}',
        b'{"task": "\\u00e9", "worker": "w", "label": "x"} ',
        b'[{"task": 7, "worker": "w", "label": "x", "id": 5, "question": "mood", "time": 12}]',
    ],
)
def test_fast_path_equals_the_model(body: bytes) -> None:
    assert vote_requests._parse_plain_votes(body) == parse_with_model(body)


@pytest.mark.parametrize(
    "body", ['{"task": "a", "worker": "w", "label": "x"}'.encode("utf-16"), b"[]", b"[" * 100_000, b"\xff"]
)
def test_other_bodies_are_left_to_the_model(body: bytes) -> None:
    assert vote_requests._parse_plain_votes(body) is None
    with pytest.raises(ValidationError):
        parse_votes(body)


def test_forms_that_only_the_model_accepts() -> None:
    (event,) = parse_votes(b'{"task": "t", "worker": "w", "label": ["b", "a"], "time": "1970-01-01T00:00:05Z"}')
    assert (event.records[0].label, event.records[0].time) == ("a|b", 5.0)  # type: ignore[union-attr]


def test_incomplete_request_is_refused(service: Any) -> None:
    messages = [{"type": "http.request", "body": b"[", "more_body": True}, {"type": "http.disconnect"}]
    statuses: list[int] = []

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def send(message: dict[str, Any]) -> None:
        statuses.extend([message["status"]] if message["type"] == "http.response.start" else [])

    headers = [(b"authorization", f"Bearer {TOKEN}".encode()), (b"content-length", b"100")]
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http", "path": "/votes",
        "raw_path": b"/votes", "query_string": b"", "root_path": "", "headers": headers, "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
    }  # fmt: skip
    asyncio.run(service.app(scope, receive, send))
    assert statuses == [400]
    assert service.get("/questions") == []
