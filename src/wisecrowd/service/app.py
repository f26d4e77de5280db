"""Routes of the service."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
from collections.abc import AsyncIterator
from typing import Annotated, Any
from urllib.parse import urlencode

import numpy as np
from fastapi import Depends, FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from fastapi.routing import APIRoute
from pydantic import ValidationError
from starlette.requests import ClientDisconnect
from starlette.types import Lifespan, Receive, Scope, Send

from wisecrowd import __version__
from wisecrowd.errors import InputError
from wisecrowd.io.tools.label_studio import SERVER_NAME
from wisecrowd.service import schemas
from wisecrowd.service.authentication import (
    SessionCookie,
    TokenHeader,
    read_bearer_token,
    tokens_match,
)
from wisecrowd.service.coordinator import REFIT_SECONDS, Coordinator, ServiceBusy, WriteFailed
from wisecrowd.service.events import RegisterTasks, Upsert, VoteRecord, build_source, parse_vote_id
from wisecrowd.service.metrics import CONTENT_TYPE, RequestMetrics
from wisecrowd.service.middleware import BodySizeLimit, JsonContentType
from wisecrowd.service.question_state import QuestionState
from wisecrowd.service.shared_jobs import ClientGone, JobInterrupted, wait_for_job
from wisecrowd.service.status_page import PAGE_HEADERS, render_status_page
from wisecrowd.service.store import RefusedEvent
from wisecrowd.service.vote_requests import parse_votes, write_events
from wisecrowd.service.webhooks import parse_webhook

#: Default maximum size of a request body in bytes.
MAX_BODY_BYTES = 4_000_000
#: Maximum number of rows in a response.
MAX_ROWS = 1_000
#: Status of a request whose client has gone, as nginx logs it.
CLIENT_GONE = 499
#: Maximum number of errors in a response to an invalid request.
MAX_ERRORS = 20

Responses = dict[int | str, dict[str, Any]]
_ERRORS: Responses = {
    401: {"model": schemas.ErrorMessage, "description": "The token is missing or wrong."},
    413: {"model": schemas.ErrorMessage, "description": "The request is too large."},
}
_INVALID: Responses = {422: {"model": schemas.ErrorMessage, "description": "The request is invalid."}}
_NOT_FOUND: Responses = {404: {"model": schemas.ErrorMessage, "description": "No such question, task or worker."}}
_BUSY: Responses = {
    503: {"model": schemas.ErrorMessage, "description": "Nothing was stored; send the request again in a moment."}
}

QuestionParameter = Annotated[
    str | None,
    Query(max_length=schemas.MAX_NAME_CHARACTERS, description="Question; not needed where there is only one."),
]
NameParameter = Annotated[
    str | None, Query(min_length=1, max_length=schemas.MAX_NAME_CHARACTERS, pattern=r"^[^\x00]*$")
]
ServerParameter = Annotated[
    str,
    Query(
        pattern=f"^({SERVER_NAME.pattern})?$",
        description="Name of the Label Studio server; needed if several servers send votes.",
    ),
]
StartParameter = Annotated[int, Query(ge=0, le=2**31 - 1, description="Number of rows to skip.")]
LimitParameter = Annotated[int, Query(ge=1, le=MAX_ROWS, description="Maximum number of rows.")]


def create_app(coordinator: Coordinator, token: str, *, max_bytes: int = MAX_BODY_BYTES) -> FastAPI:
    """Create the service as an ASGI application.

    Parameters
    ----------
    coordinator : Coordinator
        Coordinator; the application closes it at the end.
    token : str
        Token that requests must carry.
    max_bytes : int, default=4_000_000
        Maximum size of a request body.

    Returns
    -------
    fastapi.FastAPI
        Application.

    Examples
    --------
    >>> from wisecrowd import DawidSkene
    >>> from wisecrowd.service.store import Store
    >>> coordinator = Coordinator(Store("service.db"), DawidSkene())
    >>> create_app(coordinator, "a-token-of-sixteen").title
    'wisecrowd'
    >>> coordinator.close()
    """
    app = FastAPI(
        title="wisecrowd", version=__version__, openapi_url=None, docs_url=None, redoc_url=None,
        redirect_slashes=False,  # a redirect would tell strangers which paths exist
        lifespan=_make_lifespan(coordinator),
        description="Receives votes; returns inferred labels, worker quality and the tasks to ask about next.",
        responses=_ERRORS,
    )  # fmt: skip
    app.router.route_class = AuthenticatedRoute
    _add_error_handlers(app, token)
    check_token = TokenHeader(token)
    _add_writing_routes(app, coordinator, check_token)
    _add_reading_routes(app, coordinator, check_token)
    _add_pages(app, coordinator, token)
    app.add_middleware(JsonContentType)
    app.add_middleware(BodySizeLimit, max_bytes=max_bytes)
    app.add_middleware(RequestMetrics, metrics=coordinator.metrics)
    return app


def _make_lifespan(coordinator: Coordinator) -> Lifespan[FastAPI]:
    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        probe = asyncio.create_task(coordinator.metrics.watch_event_loop())
        yield
        probe.cancel()
        await asyncio.to_thread(coordinator.close)

    return lifespan


def _add_error_handlers(app: FastAPI, token: str) -> None:
    async def handle_unknown_name(_: Request, error: Exception) -> Response:
        return JSONResponse({"detail": str(error)}, 404)

    async def handle_invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return JSONResponse({"detail": schemas.summarize_errors(error.errors())[:MAX_ERRORS]}, 422)

    async def handle_busy(_: Request, error: Exception) -> Response:
        return JSONResponse({"detail": str(error)}, 503, headers={"Retry-After": "1"})

    async def handle_gone(_: Request, __: Exception) -> Response:
        return Response(status_code=CLIENT_GONE)  # nobody receives it

    async def handle_refused(_: Request, error: Exception) -> Response:
        return JSONResponse({"detail": str(error)}, 422)

    async def handle_unknown_path(request: Request, _: Exception) -> Response:
        """Answer requests to unknown paths; without the token, they do not differ from existing ones."""
        if tokens_match(read_bearer_token(request), token):
            return JSONResponse({"detail": f"there is no path {request.scope['path']}; see /openapi.json"}, 404)
        return JSONResponse({"detail": "a token is missing or wrong"}, 401, headers={"WWW-Authenticate": "Bearer"})

    app.add_exception_handler(RequestValidationError, handle_invalid)
    app.add_exception_handler(InputError, handle_unknown_name)
    app.add_exception_handler(ClientGone, handle_gone)
    app.add_exception_handler(RefusedEvent, handle_refused)
    app.add_exception_handler(ServiceBusy, handle_busy)
    app.add_exception_handler(WriteFailed, handle_busy)
    app.add_exception_handler(JobInterrupted, handle_busy)
    app.add_exception_handler(404, handle_unknown_path)


# ---------------------------------------------------------------------- writing


class AuthenticatedRoute(APIRoute):
    """Route that authenticates before FastAPI reads the body, so that strangers cannot make the service parse one."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request.

        Parameters
        ----------
        scope : dict
            ASGI connection.
        receive, send : callable
            Channels of the connection.
        """
        for dependency in self.dependencies:
            if isinstance(dependency.dependency, TokenHeader):
                await dependency.dependency(Request(scope, receive))
        await super().handle(scope, receive, send)


class RequestRoute(APIRoute):
    """Route whose endpoint and dependencies take nothing but the request.

    The route calls them directly and leaves errors to the handlers of the application. FastAPI's resolution of parameters and
    its exit stacks would take longer than the rest of such a request.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request.

        Parameters
        ----------
        scope : dict
            ASGI connection.
        receive, send : callable
            Channels of the connection.
        """
        if scope["method"] not in (self.methods or ()):
            await super().handle(scope, receive, send)  # answers 405
            return
        request = Request(scope, receive)
        for dependency in self.dependencies:
            assert dependency.dependency is not None
            await dependency.dependency(request)
        response = await self.endpoint(request)
        await response(scope, receive, send)


def _describe_vote_body() -> dict[str, Any]:
    """Return the OpenAPI description of a body that the route reads itself."""
    vote = schemas.Vote.model_json_schema()
    votes = {"type": "array", "items": vote, "minItems": 1, "maxItems": schemas.MAX_ITEMS_PER_REQUEST}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": {"anyOf": [vote, votes]}}}}}


def _add_writing_routes(app: FastAPI, coordinator: Coordinator, check_token: TokenHeader) -> None:
    authenticated = [Depends(check_token)]

    async def add_votes(request: Request) -> Response:
        """Store a vote or a list of votes: all of them or none. A vote that was sent before counts once."""
        try:
            events = parse_votes(await request.body())
        except ClientDisconnect:
            raise HTTPException(400, "the request ended before its body was complete") from None
        except ValidationError as error:
            errors = error.errors(include_url=False, include_context=False, include_input=False)
            raise RequestValidationError(errors) from None
        receipt = await write_events(coordinator, events)
        return Response(receipt.model_dump_json(exclude_none=True), media_type="application/json")

    # Added first, because routes are matched in order and this one receives nearly all requests.
    app.router.add_api_route(
        "/votes",
        add_votes,
        methods=["POST"],
        route_class_override=RequestRoute,
        dependencies=authenticated,
        response_model=schemas.VoteReceipt,
        responses={**_INVALID, **_BUSY},
        openapi_extra=_describe_vote_body(),
    )

    @app.delete(
        "/votes", response_model_exclude_none=True, dependencies=authenticated, responses={**_BUSY, **_NOT_FOUND}
    )
    async def delete_vote(
        question: QuestionParameter = None,
        id: NameParameter = None,
        task: NameParameter = None,
        worker: NameParameter = None,
    ) -> schemas.VoteReceipt:
        """Delete the vote with an id, or the vote of a worker on a task. A missing vote is not an error."""
        if (id is None) == (task is None or worker is None):
            raise HTTPException(422, "name the vote by id=…, or by task=… and worker=… where it was sent without an id")
        if question is None:
            states = await asyncio.to_thread(coordinator.questions)
            names = [state.vocabulary.name for state in states]
        else:
            names = [question]
        records = (VoteRecord(name, task or "", worker or "", "") for name in names)
        return await write_events(coordinator, [Upsert(build_source(record, id), ()) for record in records])

    @app.post("/truth", response_model_exclude_none=True, dependencies=authenticated, responses=_BUSY)
    async def add_truth(truth: schemas.TaskTruths) -> schemas.VoteReceipt:
        """Store gold labels, from which the model learns how good the workers are. A null label deletes one."""
        events = []
        for gold in truth if isinstance(truth, list) else [truth]:
            record = VoteRecord(gold.question, str(gold.task), None, "" if gold.label is None else str(gold.label))
            events.append(Upsert(build_source(record), () if gold.label is None else (record,)))
        return await write_events(coordinator, events)

    @app.post("/tasks", response_model_exclude_none=True, dependencies=authenticated, responses=_BUSY)
    async def add_tasks(registration: schemas.TaskRegistration) -> schemas.VoteReceipt:
        """Register tasks without votes, so that they can be suggested."""
        event = RegisterTasks(registration.question, tuple(map(str, registration.tasks)))
        return await write_events(coordinator, [event])

    @app.post("/webhooks/label-studio", response_model_exclude_none=True, dependencies=authenticated, responses=_BUSY)
    async def receive_webhook(body: dict[str, Any], server: ServerParameter = "") -> schemas.VoteReceipt:
        """Store annotations that Label Studio posts when they are created, changed or deleted; ignore other webhooks."""
        try:
            events = parse_webhook(body, server)
        except InputError as error:
            raise HTTPException(422, str(error)) from None
        return await write_events(coordinator, events)


# ---------------------------------------------------------------------- reading


def _add_reading_routes(app: FastAPI, coordinator: Coordinator, check_token: TokenHeader) -> None:
    authenticated = [Depends(check_token)]

    @app.get("/questions", dependencies=authenticated)
    def list_questions() -> list[schemas.QuestionSummary]:
        """Return the counts and the state of all questions."""
        with coordinator.lock:
            return [schemas.QuestionSummary(**state.describe()) for state in coordinator.questions()]

    @app.get("/consensus", dependencies=authenticated, responses=_NOT_FOUND)
    def get_consensus(
        question: QuestionParameter = None, start: StartParameter = 0, limit: LimitParameter = 100
    ) -> schemas.QuestionAnswers:
        """Return the inferred label and the confidence of every task."""
        with coordinator.lock:
            state = coordinator.question(question)
            total = state.n_tasks
            answers = state.describe_tasks(np.arange(start, min(start + limit, total)))
        tasks = [schemas.TaskAnswer(**answer) for answer in answers]
        return schemas.QuestionAnswers(tasks=tasks, total=total, next=_next_start(start, limit, total))

    @app.get("/votes", dependencies=authenticated, responses=_NOT_FOUND)
    def list_votes(
        question: QuestionParameter = None,
        after: Annotated[int, Query(ge=0, le=2**62, description="Value of next in the previous page.")] = 0,
        limit: LimitParameter = 100,
    ) -> schemas.StoredVotes:
        """Return votes and gold labels in order of arrival; a gold label has no worker."""
        with coordinator.lock:
            vocabulary = coordinator.question(question).vocabulary
            rows = coordinator.store.list_records(vocabulary.code, after, limit + 1)
            votes = [
                schemas.StoredVote(
                    task=vocabulary.tasks.names[task],
                    worker=None if worker is None else vocabulary.workers.names[worker],
                    label=vocabulary.classes.names[label],
                    time=time,
                    id=parse_vote_id(source),
                )
                for _, source, task, worker, label, time in rows[:limit]
            ]
        return schemas.StoredVotes(votes=votes, next=rows[limit - 1][0] if len(rows) > limit else None)

    @app.get("/task", dependencies=authenticated, responses=_NOT_FOUND)
    def get_task(
        task: Annotated[str, Query(max_length=schemas.MAX_NAME_CHARACTERS)], question: QuestionParameter = None
    ) -> schemas.TaskDetails:
        """Return the inferred label of a task, the probability of every class, and the votes."""
        with coordinator.lock:
            state = coordinator.question(question)
            code = state.task_code(task)
            return schemas.TaskDetails(
                **state.describe_task(code),
                probabilities=state.class_probabilities(code),
                votes=state.votes_by_name(code),
            )

    @app.get("/workers", dependencies=authenticated, responses=_NOT_FOUND)
    def list_workers(
        question: QuestionParameter = None, start: StartParameter = 0, limit: LimitParameter = 100
    ) -> schemas.QuestionWorkers:
        """Return the quality of every worker."""
        with coordinator.lock:
            state = coordinator.question(question)
            total = state.n_workers
            summaries = state.describe_workers(range(start, min(start + limit, total)))
        workers = [schemas.WorkerSummary(**summary) for summary in summaries]
        return schemas.QuestionWorkers(workers=workers, total=total, next=_next_start(start, limit, total))

    @app.get("/next", dependencies=authenticated, responses=_NOT_FOUND)
    def suggest_tasks(
        question: QuestionParameter = None,
        worker: Annotated[
            str | None, Query(max_length=schemas.MAX_NAME_CHARACTERS, description="Worker to ask; anybody by default.")
        ] = None,
        limit: Annotated[int, Query(ge=1, le=100, description="Maximum number of tasks.")] = 10,
    ) -> schemas.TaskSuggestions:
        """Return the tasks to ask about next, the most informative first. A worker without votes counts as average."""
        with coordinator.lock:
            state = coordinator.question(question)
            suggestions, reason = state.suggest_tasks(None if worker is None else state.worker_code(worker), limit)
        tasks = [schemas.SuggestedTask(**suggestion) for suggestion in suggestions]
        return schemas.TaskSuggestions(tasks=tasks, reason=reason)

    @app.post("/refit", dependencies=authenticated, responses={**_NOT_FOUND, **_BUSY})
    async def refit(request: Request, question: QuestionParameter = None) -> schemas.QuestionSummary:
        """Wait for a fit to all votes so far. The answers then equal those of ``wisecrowd aggregate``."""
        state = await asyncio.to_thread(coordinator.question, question)
        try:
            await wait_for_job(request, coordinator.start_refit(state), REFIT_SECONDS)
        except TimeoutError:
            raise ServiceBusy("the fit takes longer than five minutes; ask again later") from None
        return await asyncio.to_thread(_summarize, coordinator, state)


def _summarize(coordinator: Coordinator, state: QuestionState) -> schemas.QuestionSummary:
    with coordinator.lock:
        return schemas.QuestionSummary(**state.describe())


def _next_start(start: int, limit: int, total: int) -> int | None:
    return start + limit if start + limit < total else None


# ---------------------------------------------------------------------- pages and health


def _add_pages(app: FastAPI, coordinator: Coordinator, token: str) -> None:
    check_cookie = SessionCookie(token)

    @app.get("/health")
    async def get_health() -> schemas.ServiceHealth:
        """Return the version of the running service; needs no token."""
        return schemas.ServiceHealth(status="ok", version=__version__)

    @app.get("/metrics", dependencies=[Depends(TokenHeader(token))], response_class=PlainTextResponse)
    async def get_metrics() -> Response:
        """Return figures about votes, fits, latencies and the queue in the text format of Prometheus."""
        return Response(await asyncio.to_thread(coordinator.render_metrics), media_type=CONTENT_TYPE)

    @functools.cache  # strangers may request it, and encoding takes longer than a vote
    def encode_description() -> bytes:
        return json.dumps(app.openapi(), separators=(",", ":")).encode()

    @app.get("/openapi.json", include_in_schema=False)
    async def get_description() -> Response:
        return Response(encode_description(), media_type="application/json")

    @app.get("/", include_in_schema=False)
    async def show_status(
        request: Request,
        link_token: Annotated[str | None, Query(alias="token")] = None,
        question: str | None = None,
    ) -> Response:
        if tokens_match(link_token, token):  # the token leaves the address, and a session takes its place
            target = "/" if question is None else f"/?{urlencode({'question': question})}"
            response = RedirectResponse(target, 303)
            check_cookie.log_in(request, response)
            return response
        await check_cookie(request)
        address = str(request.base_url).rstrip("/")
        return await asyncio.to_thread(render_status_page, coordinator, question, address)

    @app.get("/report", include_in_schema=False, dependencies=[Depends(check_cookie)])
    async def show_report(request: Request, question: str | None = None) -> Response:
        state = await asyncio.to_thread(coordinator.question, question)
        job = await asyncio.to_thread(coordinator.start_report, state.vocabulary.name)
        try:
            html = await wait_for_job(request, job, REFIT_SECONDS)
        except TimeoutError:
            raise ServiceBusy("the report takes longer than five minutes; use wisecrowd report") from None
        return HTMLResponse(html, headers=PAGE_HEADERS)
