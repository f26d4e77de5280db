"""Limits of requests."""

from __future__ import annotations

import json
from typing import Any


def test_large_requests_are_refused(service: Any) -> None:
    vote = {"task": "t1", "worker": "ann", "label": "x" * 900}
    many = json.dumps([vote] * 5000).encode()
    assert service.ask("POST", "/votes", content=many).status_code == 413

    async def in_pieces() -> Any:
        for start in range(0, len(many), 65536):
            yield many[start : start + 65536]

    for path in ("/votes", "/truth"):
        response = service.ask("POST", path, content=in_pieces(), headers={"Content-Type": "application/json"})
        assert response.status_code == 413
        assert "4,000,000 bytes" in response.json()["detail"]
    assert service.ask("POST", "/votes", json=[{"task": "t", "worker": "w", "label": "x"}] * 10_001).status_code == 422
