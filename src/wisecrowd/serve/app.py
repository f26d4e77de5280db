"""The routes of the service: votes in, answers out."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any

import numpy as np
from fastapi import Body, Depends, FastAPI, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import Lifespan

from wisecrowd import __version__
from wisecrowd.errors import InputError
from wisecrowd.serve import forms, page, webhooks
from wisecrowd.serve.access import COOKIE, Bounded, LetIn, is_token
from wisecrowd.serve.entries import Entry, Expect, Put, Told, source_of
from wisecrowd.serve.keeper import Busy, Keeper, Unwritten
from wisecrowd.serve.topics import Topic

#: Bytes of a request at most.
LARGEST = 2_000_000
#: Rows of an answer at most.
ROWS = 1_000

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


def create_app(keeper: Keeper, token: str, *, largest: int = LARGEST) -> FastAPI:
    """The service as an ASGI application; it closes the keeper when it ends.

    >>> from wisecrowd import DawidSkene
    >>> from wisecrowd.serve.store import Store
    >>> keeper = Keeper(Store("service.db"), DawidSkene())
    >>> create_app(keeper, "a-token-of-sixteen").title
    'wisecrowd'
    >>> keeper.close()
    """
    app = FastAPI(
        title="wisecrowd", version=__version__, docs_url=None, redoc_url=None, lifespan=_closing(keeper),
        description="Votes in; what is true, whom to trust, what to ask next, and when to stop, out.",
        responses=_PROBLEMS,
    )  # fmt: skip
    app.state.keeper, app.state.token = keeper, token
    app.add_middleware(Bounded, most=largest)
    _handle_problems(app)
    _add_writing(app)
    _add_reading(app)
    _add_page(app)
    return app


def _closing(keeper: Keeper) -> Lifespan[FastAPI]:
    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(keeper.close)

    return lifespan


def _handle_problems(app: FastAPI) -> None:
    def unknown(_: Request, error: Exception) -> Response:
        return JSONResponse({"detail": str(error)}, 404)

    def busy(_: Request, error: Exception) -> Response:
        return JSONResponse({"detail": str(error)}, 503, headers={"Retry-After": "1"})

    app.add_exception_handler(InputError, unknown)
    app.add_exception_handler(Busy, busy)
    app.add_exception_handler(Unwritten, busy)


def _keeper(request: Request) -> Keeper:
    found: Keeper = request.app.state.keeper
    return found


Kept = Annotated[Keeper, Depends(_keeper)]
Question = Annotated[
    str | None, Query(max_length=forms.LONGEST, description="Which question; the only one needs no name.")
]
Start = Annotated[int, Query(ge=0, le=2**31 - 1, description="Rows to leave out.")]
Limit = Annotated[int, Query(ge=1, le=ROWS, description="Rows to give at most.")]


async def _told(keeper: Keeper, told: Sequence[Told]) -> forms.Kept:
    if not told:
        return forms.Kept()
    change = await asyncio.wrap_future(keeper.tell(told))
    count = Counter(change.outcomes)
    return forms.Kept(new=count["new"], changed=count["changed"], same=count["same"])


# ---------------------------------------------------------------------- votes in


def _add_writing(app: FastAPI) -> None:
    @app.post("/votes", dependencies=[LetIn], responses=_BUSY)
    async def add_votes(
        keeper: Kept, votes: forms.Vote | Annotated[list[forms.Vote], Body(min_length=1, max_length=forms.MOST)]
    ) -> forms.Kept:
        """Keep a vote, or a list of them: all or nothing. What was sent before counts once."""
        each = votes if isinstance(votes, list) else [votes]
        told = [Put(source_of(vote.entry, None if vote.id is None else str(vote.id)), (vote.entry,)) for vote in each]
        return await _told(keeper, told)

    @app.delete("/votes", dependencies=[LetIn], responses=_BUSY)
    async def delete_vote(
        keeper: Kept, id: Annotated[str, Query(min_length=1, max_length=forms.LONGEST, pattern=r"^[^\x00]*$")]
    ) -> forms.Kept:
        """Take back the vote that was sent with this id; none is no error."""
        return await _told(keeper, [Put(f"id:{id}", ())])

    @app.post("/truth", dependencies=[LetIn], responses=_BUSY)
    async def add_truth(keeper: Kept, truth: forms.Truth) -> forms.Kept:
        """Tell what is true of a task: gold, which teaches what workers are worth."""
        task, label = str(truth.task), None if truth.label is None else str(truth.label)
        entry = Entry(truth.question, task, None, label or "")
        return await _told(keeper, [Put(source_of(entry), () if label is None else (entry,))])

    @app.post("/tasks", dependencies=[LetIn], responses=_BUSY)
    async def add_tasks(keeper: Kept, tasks: forms.Tasks) -> forms.Kept:
        """Tell of tasks that nobody voted on, so that they can be asked about."""
        return await _told(keeper, [Expect(tasks.question, tuple(map(str, tasks.tasks)))])

    @app.post("/webhooks/label-studio", dependencies=[LetIn], responses=_BUSY)
    async def take_webhook(keeper: Kept, body: dict[str, Any]) -> forms.Kept:
        """What Label Studio posts when somebody annotates, changes or deletes; the rest is let pass."""
        try:
            told = webhooks.told_by(body)
        except InputError as error:
            raise HTTPException(422, str(error)) from None
        return await _told(keeper, told)


# ---------------------------------------------------------------------- answers out


def _add_reading(app: FastAPI) -> None:
    @app.get("/health")
    async def health() -> forms.Health:
        """That the service is there; needs no token."""
        return forms.Health(status="ok", version=__version__)

    @app.get("/questions", dependencies=[LetIn])
    def questions(keeper: Kept) -> list[forms.Overview]:
        """All questions in figures."""
        with keeper.lock:
            return [forms.Overview(**topic.overview()) for topic in keeper.topics()]

    @app.get("/consensus", dependencies=[LetIn], responses=_UNKNOWN)
    def consensus(keeper: Kept, question: Question = None, start: Start = 0, limit: Limit = 100) -> forms.Answers:
        """What is true of every task, how sure that is, and whether it may stop."""
        with keeper.lock:
            topic = keeper.topic(question)
            total = len(topic.words.tasks)
            found = topic.answers(np.arange(start, min(start + limit, total)))
            return forms.Answers(answers=found, total=total, next=_next(start, limit, total))  # type: ignore[arg-type]

    @app.get("/task", dependencies=[LetIn], responses=_UNKNOWN)
    def task(
        keeper: Kept, task: Annotated[str, Query(max_length=forms.LONGEST)], question: Question = None
    ) -> forms.FullAnswer:
        """One task: its label, every class's probability, and who said what."""
        with keeper.lock:
            topic = keeper.topic(question)
            code = _code(topic, "tasks", task)
            workers, classes = topic.words.workers.names, topic.words.classes.names
            said = {workers[who]: classes[label] for who, label in topic.live.votes_on(code).items()}
            return forms.FullAnswer(**topic.answer(code), probabilities=topic.probabilities(code), said=said)

    @app.get("/workers", dependencies=[LetIn], responses=_UNKNOWN)
    def workers(keeper: Kept, question: Question = None, start: Start = 0, limit: Limit = 100) -> forms.Workers:
        """How good every worker is."""
        with keeper.lock:
            topic = keeper.topic(question)
            everybody = topic.workers()
        total = len(everybody)
        return forms.Workers(workers=everybody[start : start + limit], total=total, next=_next(start, limit, total))  # type: ignore[arg-type]

    @app.get("/next", dependencies=[LetIn], responses=_UNKNOWN)
    def next_asks(
        keeper: Kept,
        question: Question = None,
        worker: Annotated[
            str | None, Query(max_length=forms.LONGEST, description="Whom to ask; anybody unless given.")
        ] = None,
        limit: Annotated[int, Query(ge=1, le=100)] = 10,
    ) -> forms.Asks:
        """What to ask next, the most telling first. A worker who was never seen is taken for an average one."""
        with keeper.lock:
            topic = keeper.topic(question)
            who = None if worker is None else topic.words.workers.codes.get(worker)
            asks, why = topic.next(who, limit)
        return forms.Asks(asks=asks, why=why)  # type: ignore[arg-type]

    @app.post("/refit", dependencies=[LetIn], responses={**_UNKNOWN, **_BUSY})
    def refit(keeper: Kept, question: Question = None) -> forms.Overview:
        """Wait for a fit to all votes that were sent before: the answers are then those of ``wisecrowd aggregate``."""
        with keeper.lock:
            topic = keeper.topic(question)
        if not keeper.refit(topic):
            raise Busy("the fit takes longer than five minutes; ask again later")
        with keeper.lock:
            return forms.Overview(**topic.overview())


def _next(start: int, limit: int, total: int) -> int | None:
    return start + limit if start + limit < total else None


def _code(topic: Topic, kind: str, name: str) -> int:
    found: int | None = getattr(topic.words, kind).codes.get(name)
    if found is None:
        raise InputError(f"the question {topic.words.name} knows no such {kind.removesuffix('s')}")
    return found


# ---------------------------------------------------------------------- for people


def _add_page(app: FastAPI) -> None:
    def let_in(request: Request) -> None:
        """A browser has the token as a cookie, from the link that the service printed when it began."""
        if not is_token(request.cookies.get(COOKIE), app.state.token):
            raise HTTPException(
                401,
                "open the link that wisecrowd serve printed when it began, which ends in ?token=…, or send the token",
            )

    @app.get("/", include_in_schema=False)
    def status(request: Request, keeper: Kept, token: str | None = None, question: str | None = None) -> Response:
        if token is not None and is_token(token, app.state.token):
            answer = RedirectResponse("/", 303)
            answer.set_cookie(COOKIE, token, httponly=True, samesite="strict", secure=request.url.scheme == "https")
            return answer
        let_in(request)
        return page.answer(keeper, question)

    @app.get("/report", include_in_schema=False)
    async def report(request: Request, keeper: Kept, question: str | None = None) -> Response:
        let_in(request)
        with keeper.lock:
            name = keeper.topic(question).words.name
        return HTMLResponse(await asyncio.wrap_future(keeper.report(name)), headers=page.HEADERS)
