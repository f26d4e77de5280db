"""The routes of the service: votes in, answers out."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Annotated, Any
from urllib.parse import urlencode

import numpy as np
from fastapi import FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import Lifespan

from wisecrowd import __version__
from wisecrowd.errors import InputError
from wisecrowd.service import schemas as forms
from wisecrowd.service import status_page as page
from wisecrowd.service import webhooks as webhooks
from wisecrowd.service.access import COOKIE, AsJson, Bounded, Guarded, bearer, is_token
from wisecrowd.service.coordinator import Busy, Coordinator, Unwritten
from wisecrowd.service.events import Entry, RegisterTasks, Upsert, id_of, source_of
from wisecrowd.service.vote_intake import PROBLEMS, TakeVotes, described_votes, kept

#: Bytes of a request at most.
LARGEST = 4_000_000
#: Rows of an answer at most.
ROWS = 1_000

#: Paths that need no token in a header: pages look for a cookie themselves.
OPEN = frozenset({"/health", "/openapi.json", "/", "/report"})

_PROBLEMS: dict[int | str, dict[str, Any]] = {
    401: {"model": forms.Problem, "description": "The token is missing or wrong."},
    413: {"model": forms.Problem, "description": "The request is too large."},
}
_UNKNOWN: dict[int | str, dict[str, Any]] = {
    404: {"model": forms.Problem, "description": "There is no such question, task or worker."}
}
_BUSY: dict[int | str, dict[str, Any]] = {
    503: {"model": forms.Problem, "description": "Nothing of it was kept; send it again in a moment."}
}


def create_app(coordinator: Coordinator, token: str, *, largest: int = LARGEST) -> FastAPI:
    """The service as an ASGI application; it closes the coordinator when it ends.

    >>> from wisecrowd import DawidSkene
    >>> from wisecrowd.service.store import Store
    >>> coordinator = Coordinator(Store("service.db"), DawidSkene())
    >>> create_app(coordinator, "a-token-of-sixteen").title
    'wisecrowd'
    >>> coordinator.close()
    """
    app = FastAPI(
        title="wisecrowd", version=__version__, docs_url=None, redoc_url=None, lifespan=_closing(coordinator),
        description="Votes in; what is true, whom to trust, what to ask next, and when to stop, out.",
        responses=_PROBLEMS,
    )  # fmt: skip
    _handle_problems(app)
    _describe_token(app)
    _add_writing(app, coordinator)
    _add_reading(app, coordinator)
    _add_page(app, coordinator, token)
    # Outside of all that FastAPI puts around its routes, so that a vote does not pass through it.
    routes = TakeVotes(AsJson(app.build_middleware_stack()), coordinator)
    app.middleware_stack = Guarded(Bounded(routes, largest), token, OPEN)
    return app


def _closing(coordinator: Coordinator) -> Lifespan[FastAPI]:
    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(coordinator.close)

    return lifespan


def _describe_token(app: FastAPI) -> None:
    """Say in the service's description that a token is needed."""
    described = app.openapi

    def openapi() -> dict[str, Any]:
        found = described()
        found["components"]["schemas"] |= forms.schemas(forms.VOTES)
        found["paths"].setdefault("/votes", {})["post"] = described_votes(found["paths"]["/tasks"]["post"])
        about = {"type": "http", "scheme": "bearer", "description": "The token that the service was started with."}
        found["components"]["securitySchemes"] = {"token": about}
        for path, routes in found["paths"].items():
            for route in routes.values():
                route["security"] = [] if path in OPEN else [{"token": []}]
        return found

    app.openapi = openapi  # type: ignore[method-assign]  # as FastAPI's documentation has it


def _handle_problems(app: FastAPI) -> None:
    def unknown(_: Request, error: Exception) -> Response:
        return JSONResponse({"detail": str(error)}, 404)

    async def wrong(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return JSONResponse({"detail": forms.told_wrong(error.errors())[:PROBLEMS]}, 422)

    def busy(_: Request, error: Exception) -> Response:
        return JSONResponse({"detail": str(error)}, 503, headers={"Retry-After": "1"})

    app.add_exception_handler(RequestValidationError, wrong)
    app.add_exception_handler(InputError, unknown)
    app.add_exception_handler(Busy, busy)
    app.add_exception_handler(Unwritten, busy)


Question = Annotated[
    str | None, Query(max_length=forms.LONGEST, description="Which question; the only one needs no name.")
]
Named = Annotated[str | None, Query(min_length=1, max_length=forms.LONGEST, pattern=r"^[^\x00]*$")]
Start = Annotated[int, Query(ge=0, le=2**31 - 1, description="Rows to leave out.")]
Limit = Annotated[int, Query(ge=1, le=ROWS, description="Rows to give at most.")]


# ---------------------------------------------------------------------- votes in


def _add_writing(app: FastAPI, coordinator: Coordinator) -> None:
    @app.delete("/votes", responses={**_BUSY, **_UNKNOWN})
    async def delete_vote(
        question: Question = None, id: Named = None, task: Named = None, worker: Named = None
    ) -> forms.Kept:
        """Take back the vote that was sent with this id, or without one by this worker on this task; none is no error."""
        if (id is None) == (task is None or worker is None):
            raise HTTPException(422, "say which vote: id=…, or task=… and worker=… where it was sent without one")
        known = await asyncio.to_thread(coordinator.topics) if question is None else []
        names = [topic.words.name for topic in known] if question is None else [question]
        votes = (Entry(name, task or "", worker or "", "") for name in names)
        return await kept(coordinator, [Upsert(source_of(vote, id), ()) for vote in votes])

    @app.post("/truth", responses=_BUSY)
    async def add_truth(truth: forms.TRUTHS) -> forms.Kept:
        """Tell what is true of a task, or of several: gold, which teaches what workers are worth."""
        told = []
        for each in truth if isinstance(truth, list) else [truth]:
            entry = Entry(each.question, str(each.task), None, "" if each.label is None else str(each.label))
            told.append(Upsert(source_of(entry), () if each.label is None else (entry,)))
        return await kept(coordinator, told)

    @app.post("/tasks", responses=_BUSY)
    async def add_tasks(tasks: forms.Tasks) -> forms.Kept:
        """Tell of tasks that nobody voted on, so that they can be asked about."""
        return await kept(coordinator, [RegisterTasks(tasks.question, tuple(map(str, tasks.tasks)))])

    @app.post("/webhooks/label-studio", responses=_BUSY)
    async def take_webhook(body: dict[str, Any]) -> forms.Kept:
        """What Label Studio posts when somebody annotates, changes or deletes; the rest is let pass."""
        try:
            told = webhooks.told_by(body)
        except InputError as error:
            raise HTTPException(422, str(error)) from None
        return await kept(coordinator, told)


# ---------------------------------------------------------------------- answers out


def _add_reading(app: FastAPI, coordinator: Coordinator) -> None:
    @app.get("/health")
    async def health() -> forms.Health:
        """That the service is there; needs no token."""
        return forms.Health(status="ok", version=__version__)

    @app.get("/questions")
    def questions() -> list[forms.Overview]:
        """All questions in figures."""
        with coordinator.lock:
            return [forms.Overview(**topic.overview()) for topic in coordinator.topics()]

    @app.get("/consensus", responses=_UNKNOWN)
    def consensus(question: Question = None, start: Start = 0, limit: Limit = 100) -> forms.Answers:
        """What is true of every task, how sure that is, and whether it may stop."""
        with coordinator.lock:
            topic = coordinator.topic(question)
            total = topic.n_tasks
            found = topic.answers(np.arange(start, min(start + limit, total)))
            return forms.Answers(answers=found, total=total, next=_next(start, limit, total))  # type: ignore[arg-type]

    @app.get("/votes", responses=_UNKNOWN)
    def votes(
        question: Question = None,
        after: Annotated[int, Query(ge=0, le=2**62, description="Where to go on: next of the answer before.")] = 0,
        limit: Limit = 100,
    ) -> forms.AllSaid:
        """Who said what, in the order in which it came; gold has no worker."""
        with coordinator.lock:
            words = coordinator.topic(question).words
            rows = coordinator.store.said(words.code, after, limit + 1)
            found = [
                forms.Said(
                    task=words.tasks.names[task],
                    worker=None if worker is None else words.workers.names[worker],
                    label=words.classes.names[label],
                    time=time,
                    id=id_of(source),
                )
                for _, source, task, worker, label, time in rows[:limit]
            ]
        return forms.AllSaid(votes=found, next=rows[limit - 1][0] if len(rows) > limit else None)

    @app.get("/task", responses=_UNKNOWN)
    def task(task: Annotated[str, Query(max_length=forms.LONGEST)], question: Question = None) -> forms.FullAnswer:
        """One task: its label, every class's probability, and who said what."""
        with coordinator.lock:
            topic = coordinator.topic(question)
            code = topic.task(task)
            workers, classes = topic.words.workers.names, topic.words.classes.names
            said = {workers[who]: classes[label] for who, label in topic.live.votes_on(code).items()}
            return forms.FullAnswer(**topic.answer(code), probabilities=topic.probabilities(code), said=said)

    @app.get("/workers", responses=_UNKNOWN)
    def workers(question: Question = None, start: Start = 0, limit: Limit = 100) -> forms.Workers:
        """How good every worker is."""
        with coordinator.lock:
            topic = coordinator.topic(question)
            total = topic.n_workers
            found = topic.workers(range(start, min(start + limit, total)))
        return forms.Workers(workers=found, total=total, next=_next(start, limit, total))  # type: ignore[arg-type]

    @app.get("/next", responses=_UNKNOWN)
    def next_asks(
        question: Question = None,
        worker: Annotated[
            str | None, Query(max_length=forms.LONGEST, description="Whom to ask; anybody unless given.")
        ] = None,
        limit: Annotated[int, Query(ge=1, le=100)] = 10,
    ) -> forms.Asks:
        """What to ask next, the most telling first. A worker who was never seen is taken for an average one."""
        with coordinator.lock:
            topic = coordinator.topic(question)
            asks, why = topic.next(None if worker is None else topic.worker(worker), limit)
        return forms.Asks(asks=asks, why=why)  # type: ignore[arg-type]

    @app.post("/refit", responses={**_UNKNOWN, **_BUSY})
    def refit(question: Question = None) -> forms.Overview:
        """Wait for a fit to all votes that were sent before: the answers are then those of ``wisecrowd aggregate``."""
        with coordinator.lock:
            topic = coordinator.topic(question)
        if not coordinator.refit(topic):
            raise Busy("the fit takes longer than five minutes; ask again later")
        with coordinator.lock:
            return forms.Overview(**topic.overview())


def _next(start: int, limit: int, total: int) -> int | None:
    return start + limit if start + limit < total else None


# ---------------------------------------------------------------------- for people


def _add_page(app: FastAPI, coordinator: Coordinator, token: str) -> None:
    def let_in(request: Request) -> None:
        """A browser has the token as a cookie, from the link that the service printed when it began."""
        if not (is_token(request.cookies.get(COOKIE), token) or is_token(bearer(request.scope), token)):
            raise HTTPException(
                401,
                "open the link that wisecrowd serve printed when it began, which ends in ?token=…, or send the token",
            )

    @app.get("/", include_in_schema=False)
    def status(
        request: Request, given: Annotated[str | None, Query(alias="token")] = None, question: str | None = None
    ) -> Response:
        if is_token(given, token):
            answer = RedirectResponse("/" if question is None else f"/?{urlencode({'question': question})}", 303)
            answer.set_cookie(COOKIE, token, httponly=True, samesite="strict", secure=request.url.scheme == "https")
            return answer
        let_in(request)
        return page.answer(coordinator, question, str(request.base_url).rstrip("/"))

    @app.get("/report", include_in_schema=False)
    async def report(request: Request, question: str | None = None) -> Response:
        let_in(request)
        with coordinator.lock:
            name = coordinator.topic(question).words.name
        return HTMLResponse(await asyncio.wrap_future(coordinator.report(name)), headers=page.HEADERS)
