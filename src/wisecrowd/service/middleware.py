"""ASGI middleware: size limit of request bodies, and JSON as the only content type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_JSON_HEADER = (b"content-type", b"application/json")


class BodySizeLimit:
    """Middleware that refuses a request whose body is too large, before any route reads it.

    Parameters
    ----------
    app : ASGI application
        Application behind the middleware.
    max_bytes : int
        Maximum size of a body.

    Examples
    --------
    >>> BodySizeLimit(lambda *_: None, max_bytes=10).max_bytes
    10
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self.app, self.max_bytes = app, max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the application or answer it with HTTP 413."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        length = headers.get(b"content-length")
        if length is not None and (not length.isdigit() or int(length) > self.max_bytes):
            await self._refuse(scope, receive, send)
        elif length is None or b"transfer-encoding" in headers:
            await self._count_chunks(scope, receive, send)
        else:  # the server reads no more than the announced length
            await self.app(scope, receive, send)

    async def _count_chunks(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request without a length and stop it as soon as its chunks are too large."""
        n_bytes, is_refused, is_answered = 0, False, False

        async def receive_counted() -> Message:
            nonlocal n_bytes, is_refused
            message = await receive()
            n_bytes += len(message.get("body", b""))
            if n_bytes > self.max_bytes:
                is_refused = True
                return {"type": "http.disconnect"}
            return message

        async def send_unless_refused(message: Message) -> None:
            nonlocal is_answered
            if not is_refused:
                is_answered = is_answered or message["type"] == "http.response.start"
                await send(message)

        try:
            await self.app(scope, receive_counted, send_unless_refused)
        except Exception:
            if not is_refused:  # a route that loses its body in the middle may raise anything
                raise
        if is_refused and not is_answered:
            await self._refuse(scope, receive, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        detail = f"the request is larger than {self.max_bytes:,} bytes; send fewer votes per request"
        await JSONResponse({"detail": detail}, 413, {"Connection": "close"})(scope, receive, send)


class JsonContentType:
    """Middleware that treats every posted body as JSON, because ``curl -d`` announces a form by default.

    This opens no door to forms on other web pages: they cannot send the token in a header.

    Parameters
    ----------
    app : ASGI application
        Application behind the middleware.

    Examples
    --------
    >>> JsonContentType(lambda *_: None).app is None
    False
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the application."""
        if scope["type"] == "http" and scope["method"] == "POST" and _JSON_HEADER not in scope["headers"]:
            headers = [header for header in scope["headers"] if header[0] != _JSON_HEADER[0]]
            scope = {**scope, "headers": [*headers, _JSON_HEADER]}
        await self.app(scope, receive, send)
