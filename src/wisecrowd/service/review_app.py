"""Page on which a person settles tasks one by one, and the requests that it sends.

Requests that change something need the session of the browser, which other sites cannot send (``SameSite=Strict``), a secret of
the page in a header, which other sites can neither read nor send, and JSON as their content.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictStr

from wisecrowd import __version__
from wisecrowd.errors import InputError
from wisecrowd.report.page import render_review
from wisecrowd.report.thumbnails import encode_preview
from wisecrowd.service import schemas
from wisecrowd.service.authentication import SessionCookie, tokens_match
from wisecrowd.service.middleware import BodySizeLimit
from wisecrowd.service.review_decisions import Decision, DecisionLog, current_time
from wisecrowd.service.review_queue import ReviewQueue
from wisecrowd.service.status_page import PAGE_HEADERS
from wisecrowd.utils.text import display_name

#: Header with the secret of the page.
CSRF_HEADER = "X-Wisecrowd-Review"
#: Maximum size of a request body in bytes. A note is the largest part of one.
MAX_BODY_BYTES = 100_000
#: Maximum number of characters of a note, and of the name of a reviewer.
MAX_NOTE_CHARACTERS, MAX_NAME_CHARACTERS = 10_000, 100
#: Number of images that are kept encoded; a reviewer goes back and forth.
MAX_CACHED_IMAGES = 32

#: File name, content type and content of a file for a labelling tool.
ExportedFile = tuple[str, str, bytes]


def _clean_text(text: str) -> str:
    """Return a text without space around it; characters that no file can hold are an error."""
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError("text contains invalid characters (NUL or lone surrogate)")
    return text.strip()


Text = Annotated[StrictStr, AfterValidator(_clean_text)]


class ReviewRequest(BaseModel):
    """Decision on a task, or a skip.

    Examples
    --------
    >>> ReviewRequest(number=0, truth="cat", reviewer="ann").note
    ''
    """

    model_config = ConfigDict(extra="forbid")

    number: Annotated[int, Field(ge=0, description="Position of the task in the queue.")]
    truth: Annotated[schemas.QuestionName | None, Field(description="True class; null skips the task.")]
    reviewer: Annotated[Text, Field(min_length=1, max_length=MAX_NAME_CHARACTERS, description="Name of the person.")]
    note: Annotated[Text, Field(max_length=MAX_NOTE_CHARACTERS, description="Remark.")] = ""
    saw_votes: Annotated[bool, Field(description="Whether the votes were on the page.")] = False


@dataclass(kw_only=True, eq=False)
class ReviewSession:
    """Tasks of a review, the decisions on them, and what the page shows beside them.

    Attributes
    ----------
    queue : ReviewQueue
        Tasks.
    log : DecisionLog
        Decisions.
    title : str
        Title of the page.
    reviewer : str
        Name that the page proposes.
    warnings : tuple of str
        Reasons not to trust the labels.
    is_blind : bool
        Whether the votes are hidden until the reviewer asks for them.
    next_commands : tuple of str
        Command lines that use the decisions.
    export : callable or None
        Function of a table of gold that returns a file for the labelling tool of the votes.
    lock : threading.Lock
        Lock of the decisions.
    """

    queue: ReviewQueue
    log: DecisionLog
    title: str = "Review"
    reviewer: str = ""
    warnings: tuple[str, ...] = ()
    is_blind: bool = False
    next_commands: tuple[str, ...] = ()
    export: Callable[[dict[str, str]], ExportedFile] | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def describe_progress(self) -> dict[str, Any]:
        """Return the state of all tasks.

        Returns
        -------
        dict
            Letter of each task: ``d`` decided, ``s`` skipped, ``o`` open; and whether something can be taken back.
        """
        decisions = (self.log.decisions.get(name) for name in self.queue.names)
        letters = ("o" if decision is None else "s" if decision.is_skip else "d" for decision in decisions)
        return {"states": "".join(letters), "can_undo": self.log.can_undo}

    def describe_task(self, number: int) -> dict[str, Any]:
        """Return everything that the page shows of a task.

        Parameters
        ----------
        number : int
            Position in the queue.

        Returns
        -------
        dict
            Task, decision, label and votes. The last two are left out while they are hidden.
        """
        decision = self.log.decisions.get(self.queue.names[number])
        described = self.queue.describe_task(number) | {
            "number": number,
            "truth": None if decision is None else decision.truth,
            "decided_by": None if decision is None else display_name(decision.reviewer),
            "time": None if decision is None else decision.time,
            "note": "" if decision is None else decision.note,
        }
        return described if self.is_blind else described | self.describe_votes(number)

    def describe_votes(self, number: int) -> dict[str, Any]:
        """Return the votes on a task and what they lead to.

        Parameters
        ----------
        number : int
            Position in the queue.

        Returns
        -------
        dict
            Votes, label and confidence.
        """
        return {"votes": self.queue.describe_votes(number), **self.queue.describe_label(number)}

    def decide(self, request: ReviewRequest) -> None:
        """Store a decision.

        Parameters
        ----------
        request : ReviewRequest
            Decision.
        """
        name = self.queue.names[request.number]
        self.log.add(
            Decision(name, request.truth, request.reviewer, current_time(), request.saw_votes, request.note)
        )  # fmt: skip


def create_review_app(session: ReviewSession, token: str) -> FastAPI:
    """Create the review page as an ASGI application.

    Parameters
    ----------
    session : ReviewSession
        Review.
    token : str
        Token in the link that opens the page.

    Returns
    -------
    fastapi.FastAPI
        Application.

    Examples
    --------
    >>> import inspect
    >>> list(inspect.signature(create_review_app).parameters)
    ['session', 'token']
    """
    app = FastAPI(
        title="wisecrowd review", version=__version__, openapi_url=None, docs_url=None, redoc_url=None,
        redirect_slashes=False,
    )  # fmt: skip
    check_session, secret = SessionCookie(token), secrets.token_urlsafe(32)
    _add_error_handlers(app)
    _add_page(app, session, token, check_session, secret)
    _add_reading_routes(app, session, [Depends(check_session)])
    _add_writing_routes(app, session, [Depends(check_session), Depends(_require_secret(secret))])
    app.add_middleware(BodySizeLimit, max_bytes=MAX_BODY_BYTES)
    return app


def _add_error_handlers(app: FastAPI) -> None:
    async def handle_invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        problems = (f"{part['loc'][-1]}: {part['msg']}" for part in error.errors())
        # A name that no text can hold may be among them.
        return JSONResponse({"detail": "; ".join(problems).encode("ascii", "backslashreplace").decode()}, 422)

    async def handle_input(_: Request, error: Exception) -> Response:
        return JSONResponse({"detail": str(error)}, 422)

    async def handle_disk(_: Request, error: Exception) -> Response:
        return JSONResponse({"detail": f"the decision could not be written: {error}"}, 503)

    app.add_exception_handler(RequestValidationError, handle_invalid)
    app.add_exception_handler(InputError, handle_input)
    app.add_exception_handler(OSError, handle_disk)


def _require_secret(secret: str) -> Callable[[Request], Awaitable[None]]:
    """Return a dependency that refuses requests which the page did not send."""

    async def check(request: Request) -> None:
        is_json = request.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"
        is_own_site = request.headers.get("sec-fetch-site", "same-origin") == "same-origin"
        if not is_json or not is_own_site or not tokens_match(request.headers.get(CSRF_HEADER), secret):
            raise HTTPException(403, "only the review page may send this; reload the page and try again")

    return check


def _add_page(app: FastAPI, session: ReviewSession, token: str, check_session: SessionCookie, secret: str) -> None:
    @app.get("/health")
    async def get_health() -> schemas.ServiceHealth:
        """Return the version; needs no token."""
        return schemas.ServiceHealth(status="ok", version=__version__)

    @app.get("/favicon.ico")
    async def get_icon() -> Response:
        """Return nothing; every browser asks for it."""
        return Response(status_code=204)

    @app.get("/")
    async def show_page(request: Request, link_token: Annotated[str | None, Query(alias="token")] = None) -> Response:
        """Show the page. A token in the address is replaced by a session."""
        if tokens_match(link_token, token):
            response = RedirectResponse("/", 303)
            check_session.log_in(request, response)
            return response
        await check_session(request)
        with session.lock:
            progress = session.describe_progress()
        data = {
            "secret": secret, "header": CSRF_HEADER, "classes": session.queue.classes,
            "class_names": [display_name(name) for name in session.queue.classes],
            "task_names": [display_name(name) for name in session.queue.names],
            "is_blind": session.is_blind, **progress,
        }  # fmt: skip
        html, policy = render_review(
            data=data, title=session.title, reviewer=session.reviewer, version=__version__, is_blind=session.is_blind,
            max_note=MAX_NOTE_CHARACTERS, max_name=MAX_NAME_CHARACTERS, table=session.log.path.name,
            commands=session.next_commands, has_export=session.export is not None, warnings=session.warnings,
        )  # fmt: skip
        return HTMLResponse(html, headers={**PAGE_HEADERS, "Content-Security-Policy": policy})


def _add_reading_routes(app: FastAPI, session: ReviewSession, authenticated: list[Any]) -> None:
    images: dict[int, tuple[str, bytes]] = {}

    def check_number(number: int) -> None:
        if not 0 <= number < len(session.queue):
            raise HTTPException(404, f"there is no task {number}; the queue has {len(session.queue):,} tasks")

    @app.get("/tasks/{number}", dependencies=authenticated)
    async def get_task(number: int) -> JSONResponse:
        """Return a task with its decision, and its votes unless they are hidden."""
        check_number(number)
        with session.lock:
            return JSONResponse(session.describe_task(number), headers=PAGE_HEADERS)

    @app.get("/tasks/{number}/votes", dependencies=authenticated)
    async def get_votes(number: int) -> JSONResponse:
        """Return the votes on a task."""
        check_number(number)
        return JSONResponse(session.describe_votes(number), headers=PAGE_HEADERS)

    @app.get("/tasks/{number}/image", dependencies=authenticated)
    async def get_image(number: int) -> Response:
        """Return the image of a task, encoded again."""
        check_number(number)
        image = session.queue.aligned_images[number]
        if image is None:
            raise HTTPException(404, "this task has no image")
        if number not in images:
            while len(images) >= MAX_CACHED_IMAGES:
                images.pop(next(iter(images)))
            images[number] = await asyncio.to_thread(encode_preview, image)
        media_type, content = images[number]
        return Response(content, media_type=media_type, headers={**PAGE_HEADERS, "Content-Disposition": "inline"})

    @app.get("/table", dependencies=authenticated)
    async def get_table() -> Response:
        """Return the table of the decisions."""
        with session.lock:
            content = session.log.format_table()
        return _download(session.log.path.name, "text/csv", content.encode())

    @app.get("/export", dependencies=authenticated)
    async def get_export() -> Response:
        """Return the decisions as a file for the labelling tool of the votes."""
        if session.export is None:
            raise HTTPException(404, "the votes are not an export of a labelling tool; download the table instead")
        with session.lock:
            gold = session.log.gold
        if not gold:
            raise HTTPException(409, "nothing is settled yet")
        return _download(*await asyncio.to_thread(session.export, gold))


def _download(name: str, media_type: str, content: bytes) -> Response:
    safe_name = "".join(char if char.isascii() and (char.isalnum() or char in "._-") else "_" for char in name)
    disposition = {"Content-Disposition": f'attachment; filename="{safe_name}"'}
    return Response(content, media_type=media_type, headers={**PAGE_HEADERS, **disposition})


def _add_writing_routes(app: FastAPI, session: ReviewSession, protected: list[Any]) -> None:
    def write(request: ReviewRequest) -> dict[str, Any]:
        with session.lock:
            session.decide(request)
            return session.describe_progress()

    def take_back() -> dict[str, Any]:
        with session.lock:
            decision = session.log.undo()
            progress = session.describe_progress()
        numbers = {name: number for number, name in enumerate(session.queue.names)}
        return progress | {"number": None if decision is None else numbers.get(decision.task)}

    @app.post("/decisions", dependencies=protected)
    async def decide(body: ReviewRequest) -> dict[str, Any]:
        """Store a decision or a skip. The answer means that it is on disk."""
        if body.number >= len(session.queue):
            raise HTTPException(404, f"there is no task {body.number}; the queue has {len(session.queue):,} tasks")
        return await asyncio.to_thread(write, body)

    @app.post("/undo", dependencies=protected)
    async def undo() -> dict[str, Any]:
        """Take the last decision or skip back, and return the number of its task."""
        return await asyncio.to_thread(take_back)
