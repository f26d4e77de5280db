"""Who is let in, and with how much: a token, and requests of bounded size."""

from __future__ import annotations

import hmac
import json
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wisecrowd.errors import InputError, UsageError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: The variable that holds the token, unless a file does.
VARIABLE = "WISECROWD_TOKEN"
#: A token has no fewer characters.
SHORTEST = 16
COOKIE = "wisecrowd"


def token_from(file: Path | None = None) -> tuple[str, bool]:
    """The token in a file, or in the environment, or a new one; and whether it is new.

    >>> token_from()[1]
    True
    """
    if file is not None:
        try:
            token = file.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise InputError(f"the token cannot be read from {file}: {error.strerror}") from None
        where = str(file)
    else:
        token, where = os.environ.get(VARIABLE, "").strip(), VARIABLE
        if not token:
            return secrets.token_urlsafe(24), True
    if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(
            f"the token in {where} must have {SHORTEST} or more ASCII letters, digits and signs; make one with: "
            'python -c "import secrets; print(secrets.token_urlsafe())"'
        )
    return token, False


def is_token(given: str | None, token: str) -> bool:
    """Whether it is the one; the time it takes to tell says nothing about it.

    >>> is_token("guess", "secret"), is_token(None, "secret"), is_token("secret", "secret")
    (False, False, True)
    """
    return given is not None and hmac.compare_digest(given.encode(), token.encode())


class Guarded:
    """Lets nobody in without the token, but to what is open to all; a browser's cookie opens pages alone.

    Middleware and no dependency of each route, since FastAPI takes longer to resolve one than to do the rest of a request.

    >>> Guarded(lambda *_: None, "a-token-of-sixteen", frozenset({"/health"})).token
    'a-token-of-sixteen'
    """

    def __init__(self, app: ASGIApp, token: str, is_open: frozenset[str]) -> None:
        self.app, self.token, self.is_open = app, token, is_open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        given = bearer(scope) if scope["type"] == "http" and scope["path"] not in self.is_open else self.token
        if not is_token(given, self.token):
            said = (
                "this is not the token that the service was started with"
                if given
                else "a token is needed: send the header Authorization: Bearer …"
            )
            await answer(send, 401, said, (b"www-authenticate", b"Bearer"))
            return
        await self.app(scope, receive, send)


def bearer(scope: Scope) -> str | None:
    """The token in a request's header.

    >>> bearer({"headers": [(b"authorization", b"Bearer secret")]})
    'secret'
    """
    for name, value in scope["headers"]:
        if name == b"authorization":
            kind, _, token = value.decode("latin-1").partition(" ")
            return token.strip() if kind.lower() == "bearer" else None
    return None


async def answer(send: Send, status: int, detail: Any, *more: tuple[bytes, bytes]) -> None:
    """A problem as JSON, before any route was reached."""
    body = json.dumps({"detail": detail}, ensure_ascii=False).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class AsJson:
    """Takes what is posted for JSON, whatever it is called: curl calls it a form unless it is told otherwise.

    Nothing that a form of somebody else's page could post has the token in its header.

    >>> AsJson(lambda *_: None).app is None
    False
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] == "http" and scope["method"] == "POST":
            kept = [(name, value) for name, value in scope["headers"] if name != b"content-type"]
            scope = {**scope, "headers": [*kept, (b"content-type", b"application/json")]}
        await self.app(scope, receive, send)


class Bounded:
    """Refuses a request whose body is larger than allowed, however it is sent, before anybody reads it.

    >>> Bounded(lambda *_: None, most=10).most
    10
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self.app, self.most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        for name, value in scope["headers"]:
            if name == b"content-length" and (not value.isdigit() or int(value) > self.most):
                await self._refuse(send)
                return
        seen, refused, begun = 0, False, False

        async def counted() -> Message:
            nonlocal seen, refused
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self.most:
                refused = True
                return {"type": "http.disconnect"}
            return message

        async def answered(message: Message) -> None:
            nonlocal begun
            if not refused:
                begun = begun or message["type"] == "http.response.start"
                await send(message)

        try:
            await self.app(scope, counted, answered)
        except Exception:
            if not refused:  # whoever read half a body may complain in any way
                raise
        if refused and not begun:
            await self._refuse(send)

    async def _refuse(self, send: Send) -> None:
        said = f"a request may have {self.most:,} bytes at most; send fewer votes at once"
        await answer(send, 413, said, (b"connection", b"close"))
