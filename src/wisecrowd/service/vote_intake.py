"""Votes in: the one route that is called a thousand times a second, and so does without the machinery of the others."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from wisecrowd.service import schemas as forms
from wisecrowd.service.access import answer
from wisecrowd.service.coordinator import Busy, Coordinator, Unwritten
from wisecrowd.service.events import Told, Upsert, source_of
from wisecrowd.service.store import Change

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

PATH = "/votes"
#: What is told of what was wrong with votes, at most.
PROBLEMS = 20


class TakeVotes:
    """Keeps what is posted to /votes, a vote or a list of them; all else is passed on.

    FastAPI takes three times as long to find and call a route as this takes for all of it.

    >>> TakeVotes(lambda *_: None, coordinator=None).coordinator is None
    True
    """

    def __init__(self, app: ASGIApp, coordinator: Coordinator) -> None:
        self.app, self.coordinator = app, coordinator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take votes, or pass a request on."""
        if scope["type"] != "http" or scope["path"] != PATH or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        parts, more = [], True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        try:
            votes = forms.VOTES.validate_json(b"".join(parts))
        except ValidationError as error:
            problems = error.errors(include_url=False, include_context=False, include_input=False)
            await answer(send, 422, forms.told_wrong(problems)[:PROBLEMS])
            return
        told = []
        for vote in votes if isinstance(votes, list) else [votes]:
            entry = vote.entry
            told.append(Upsert(source_of(entry, None if vote.id is None else str(vote.id)), (entry,)))
        try:
            found = await kept(self.coordinator, told)
        except (Busy, Unwritten) as error:
            await answer(send, 503, str(error), (b"retry-after", b"1"))
            return
        body = found.model_dump_json().encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


async def kept(coordinator: Coordinator, told: Sequence[Told]) -> forms.Kept:
    """Wait until what was told is on the disk, and taken in."""
    if not told:
        return forms.Kept()
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Change] = loop.create_future()

    def settle(change: Change | None, error: Exception | None) -> None:
        if done.cancelled():  # whoever asked is gone; what they told is kept all the same
            return
        if error is not None:
            done.set_exception(error)
        elif change is not None:
            done.set_result(change)

    coordinator.submit(told, lambda change, error: loop.call_soon_threadsafe(settle, change, error))
    count = Counter((await done).outcomes)
    return forms.Kept(new=count["new"], changed=count["changed"], same=count["same"])


def described_votes(like: dict[str, Any]) -> dict[str, Any]:
    """The route as OpenAPI describes it: as another one that keeps what it is sent, with a body of its own."""
    about = {
        "summary": "Add Votes",
        "operationId": "add_votes",
        "description": "Keep a vote, or a list of them: all or nothing. What was sent before counts once.",
    }
    return {**like, **about, **forms.described(forms.VOTES)}
