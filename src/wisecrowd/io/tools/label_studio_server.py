"""Client of a running Label Studio server: tasks page by page, and predictions for them.

The token is sent in the header of requests to that server only. It appears in no message, URL, file or ``repr``. It is not
sent unencrypted to another machine unless the caller allows it, and redirects are never followed.

Responses are untrusted. Their size, the number of pages and the time of all requests together are limited.
"""

from __future__ import annotations

import contextlib
import json
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from wisecrowd.errors import MissingExtra, UsageError, WisecrowdError
from wisecrowd.io.tools.access_tokens import VARIABLE, Token, is_loopback, load_token, parse_server_url

if TYPE_CHECKING:
    import httpx

__all__ = ["VARIABLE", "LabelStudioClient", "ServerError", "Token", "UnconfirmedWrite", "load_token"]

#: Tasks per page, as many as the server allows by default.
PAGE_SIZE = 100
#: Predictions per request.
BATCH_SIZE = 500
CONNECT_TIMEOUT_SECONDS = 10.0
#: A server can take long for a page of tasks.
READ_TIMEOUT_SECONDS = 120.0
#: Time of all requests of a client together, in seconds.
TIMEOUT_SECONDS = 3600.0
#: Bytes of a response after decompression. A page of tasks has far fewer.
MAX_RESPONSE_BYTES = 1 << 28
#: Pages of a project: ten million tasks.
MAX_PAGES = 100_000
#: Number of times that all pages are read because tasks were deleted meanwhile.
MAX_RESTARTS = 10
#: Attempts per request.
MAX_ATTEMPTS = 5
#: Pause after the first attempt. It doubles after every further attempt.
FIRST_PAUSE_SECONDS = 1.0
#: Longest pause, also if the server asks for more.
MAX_PAUSE_SECONDS = 60.0
#: An access token is renewed this long before it expires.
RENEWAL_MARGIN_SECONDS = 30.0
_BUSY_STATUSES = frozenset({429, 502, 503, 504})


class ServerError(WisecrowdError):
    """Error for a server that is unreachable, is not Label Studio, or refuses a request.

    Examples
    --------
    >>> raise ServerError("no Label Studio answers at https://example.com")
    Traceback (most recent call last):
        ...
    wisecrowd.io.tools.label_studio_server.ServerError: no Label Studio answers at https://example.com
    """


class UnconfirmedWrite(ServerError):
    """Error for a connection that broke during a write, so that its outcome is unknown. Check before repeating it.

    Examples
    --------
    >>> issubclass(UnconfirmedWrite, ServerError)
    True
    """


@dataclass(frozen=True)
class _Response:
    """Response that was read completely."""

    status_code: int
    headers: Mapping[str, str]
    content: bytes

    def parse_json(self) -> Any:
        """Return the content as JSON, or raise ValueError or RecursionError."""
        return json.loads(self.content)


class LabelStudioClient:
    """Client of a Label Studio server.

    Parameters
    ----------
    url : str
        Address of the server.
    token : Token
        Access token.
    insecure : bool, default=False
        Allow sending the token unencrypted to another machine.
    timeout : float, default=3600
        Longest time of all requests together, in seconds.
    transport : httpx.BaseTransport, optional
        Transport, for tests.
    wait : callable, default=time.sleep
        Function that waits for a number of seconds, for tests.

    Examples
    --------
    >>> LabelStudioClient("http://label-studio.example.com", Token("0123456789abcdef"))
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: the token would be sent unencrypted to label-studio.example.com; give an https:// address, ...
    """

    def __init__(
        self,
        url: str,
        token: Token,
        *,
        insecure: bool = False,
        timeout: float = TIMEOUT_SECONDS,
        transport: httpx.BaseTransport | None = None,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        self.url, host = parse_server_url(url, insecure=insecure)
        if not timeout > 0:
            raise UsageError(f"timeout must be a positive number of seconds; got {timeout}")
        self._token, self._wait = token, wait
        self._timeout, self._deadline = timeout, time.monotonic() + timeout
        self._access_token: Token | None = None
        httpx = _import_httpx()
        # A proxy of the environment must not read requests to this machine.
        mounts = {f"all://{'[' + host + ']' if ':' in host else host}": None} if is_loopback(host) else {}
        limits = httpx.Timeout(READ_TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS)
        self._http = httpx.Client(timeout=limits, follow_redirects=False, transport=transport, mounts=mounts)

    def __repr__(self) -> str:
        return f"LabelStudioClient({self.url!r})"

    def __enter__(self) -> LabelStudioClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def get_version(self) -> str:
        """Return the release of Label Studio. The token is not sent, so this checks who would receive it.

        Returns
        -------
        str
            Release, or ``"unknown"`` if the server shows it to members only.
        """
        response = self._send("GET", "/api/version", None, None, {})
        if response.status_code in (401, 403):
            return "unknown"
        content = self._read_json(response)
        release = content.get("release") if isinstance(content, dict) else None
        if not isinstance(release, str):
            raise self._not_label_studio()
        return release

    def get_project(self, number: int) -> dict[str, Any]:
        """Return the title, labelling interface and number of tasks of a project.

        Parameters
        ----------
        number : int
            Project id.

        Returns
        -------
        dict
            Project as the server describes it.
        """
        project = self._call("GET", f"/api/projects/{number}/", missing=lambda: self._no_project(number))
        if not isinstance(project, dict) or "id" not in project:
            raise self._not_label_studio()
        return project

    def iter_tasks(self, project: int) -> Iterator[tuple[dict[str, Any], int]]:
        """Yield all tasks of a project with annotations and predictions, in the order of their ids.

        If a task is deleted meanwhile, others move to pages that were read already. All pages are then read again, and new
        tasks are yielded.

        Parameters
        ----------
        project : int
            Project id.

        Yields
        ------
        task : dict
            Task, with or without annotations.
        total : int
            Number of tasks.

        Raises
        ------
        ServerError
            If the pages do not add up to the number of tasks, or tasks are deleted all the time.
        """
        task_ids: set[int] = set()
        for _ in range(MAX_RESTARTS):
            ids_of_pass: set[int] = set()
            previous_total, page_size = 0, 1
            for page in range(1, MAX_PAGES + 1):
                tasks, total = self._get_page(project, page)
                page_size = len(tasks) if page == 1 else page_size  # a server may return fewer than requested
                for task in tasks:
                    if task["id"] not in task_ids:
                        task_ids.add(task["id"])
                        yield task, total
                if total < previous_total:
                    break
                if page * page_size >= total:
                    return
                if ids_of_pass.issuperset(task["id"] for task in tasks):  # also of an empty page
                    raise ServerError(
                        f"{self.url} counts {total:,} tasks, but page {page:,} of project {project} has no new ones; try again, or "
                        "export the project in Label Studio"
                    )
                ids_of_pass.update(task["id"] for task in tasks)
                previous_total = total
            else:
                raise ServerError(
                    f"project {project} has more than {MAX_PAGES:,} pages of tasks; export it in Label Studio instead"
                )
        raise ServerError(
            f"tasks of project {project} were deleted while they were read, {MAX_RESTARTS} times; try again when nobody deletes "
            "tasks"
        )

    def _get_page(self, project: int, page: int) -> tuple[list[dict[str, Any]], int]:
        # Addresses of files stay as they are stored, because resolved ones expire.
        query = {"project": project, "fields": "all", "resolve_uri": "false", "page": page, "page_size": PAGE_SIZE}
        content = self._call("GET", "/api/tasks/", params=query, missing=lambda: None)
        if content is None:  # there are fewer pages
            return [], 0
        tasks = content.get("tasks") if isinstance(content, dict) else content
        if not isinstance(tasks, list) or not all(
            isinstance(task, dict) and isinstance(task.get("id"), int) for task in tasks
        ):
            raise self._not_label_studio()
        total = content.get("total") if isinstance(content, dict) else None
        return tasks, total if isinstance(total, int) else len(tasks)

    def add_predictions(self, project: int, predictions: Sequence[dict[str, Any]]) -> int:
        """Add predictions to existing tasks. The server silently skips those that do not fit the labelling interface.

        Parameters
        ----------
        project : int
            Project id.
        predictions : sequence of dict
            Predictions, each with the id of its ``task``.

        Returns
        -------
        int
            Number of predictions that the server accepted.
        """
        n_created = 0
        for first in range(0, len(predictions), BATCH_SIZE):
            batch = list(predictions[first : first + BATCH_SIZE])
            path = f"/api/projects/{project}/import/predictions"
            content = self._call("POST", path, body=batch, missing=lambda: self._no_project(project))
            created = content.get("created") if isinstance(content, dict) else None
            n_created += created if isinstance(created, int) else 0
        return n_created

    def update_prediction(self, prediction: int, values: dict[str, Any]) -> None:
        """Update a prediction. One that no longer exists is ignored.

        Parameters
        ----------
        prediction : int
            Prediction id.
        values : dict
            New values.
        """
        self._call("PATCH", f"/api/predictions/{prediction}/", body=values, missing=lambda: None)

    def delete_prediction(self, prediction: int) -> None:
        """Delete a prediction. Do nothing if the server no longer has it.

        Parameters
        ----------
        prediction : int
            Prediction id.
        """
        self._call("DELETE", f"/api/predictions/{prediction}/", missing=lambda: None)

    # ------------------------------------------------------------------ requests

    def _call(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, Any] | None = None,
        body: Any = None,
        authorised: bool = True,
        missing: Callable[[], Exception | None] | None = None,
    ) -> Any:
        """Return the JSON response. On status 404, ``missing`` returns the error to raise, or None to return None."""
        response = self._send(method, path, params, body, self._authorisation() if authorised else {})
        if response.status_code == 401 and authorised and self._access_token is not None:
            self._access_token = None  # it may have expired early, because the clocks of two machines differ
            response = self._send(method, path, params, body, self._authorisation())
        if response.status_code == 404 and missing is not None and self._get_detail(response):
            error = missing()
            if error is None:
                return None
            raise error
        return self._read_json(response)

    def _read_json(self, response: _Response) -> Any:
        if not 200 <= response.status_code < 300:
            raise self._refusal(response)
        if response.status_code == 204 or not response.content:
            return None
        try:
            return response.parse_json()
        except (ValueError, RecursionError):
            raise self._not_label_studio() from None

    def _send(self, method: str, path: str, params: Any, body: Any, headers: dict[str, str]) -> _Response:
        """Send a request. Idempotent ones are repeated if the server is busy or the connection breaks."""
        httpx = _import_httpx()
        is_idempotent = method != "POST" or path == "/api/token/refresh/"
        pause = FIRST_PAUSE_SECONDS
        for n_remaining in reversed(range(MAX_ATTEMPTS)):
            requested_pause = 0.0
            self._http.cookies.clear()  # a session would be another way to log in than the token
            try:
                response = self._exchange(method, self.url + path, params=params, json=body, headers=headers)
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError) as error:
                if not n_remaining:
                    raise ServerError(
                        f"{self.url} cannot be reached: {_describe(error)}; is the server running there?"
                    ) from None
            except httpx.TransportError as error:
                if not is_idempotent:
                    raise UnconfirmedWrite(
                        f"the connection to {self.url} broke during a write: {_describe(error)}"
                    ) from None
                if not n_remaining:
                    raise ServerError(
                        f"the connection to {self.url} broke {MAX_ATTEMPTS} times: {_describe(error)}"
                    ) from None
            else:
                if response.status_code not in _BUSY_STATUSES:
                    return response
                if not is_idempotent and response.status_code != 429:
                    raise UnconfirmedWrite(f"{self.url} returned status {response.status_code} during a write")
                if not n_remaining:
                    return response
                requested_pause = _parse_retry_after(response.headers.get("retry-after"))
            self._wait(min(max(pause, requested_pause), MAX_PAUSE_SECONDS, self._get_remaining_seconds()))
            pause *= 2
        raise AssertionError("unreachable")  # pragma: no cover

    def _exchange(self, method: str, url: str, **options: Any) -> _Response:
        """Send one request and read its response within the remaining time.

        A thread of its own does it, because the timeout of a socket restarts with every byte that arrives.
        """
        results: queue.SimpleQueue[_Response | Exception] = queue.SimpleQueue()

        def exchange() -> None:
            try:
                with self._http.stream(method, url, **options) as response:
                    content = bytearray()
                    for part in response.iter_bytes():
                        content += part
                        if len(content) > MAX_RESPONSE_BYTES:
                            raise self._too_long()
                    results.put(_Response(response.status_code, response.headers, bytes(content)))
            except Exception as error:  # raised again below
                results.put(error)

        seconds = self._get_remaining_seconds()
        threading.Thread(target=exchange, name="wisecrowd-request", daemon=True).start()
        try:
            result = results.get(timeout=seconds)
        except queue.Empty:
            raise self._out_of_time() from None
        if isinstance(result, Exception):
            raise result
        return result

    def _get_remaining_seconds(self) -> float:
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise self._out_of_time()
        return remaining

    def _authorisation(self) -> dict[str, str]:
        """Return the header with the token. A personal access token is exchanged for one that expires soon."""
        if not self._token.is_jwt:
            return {"Authorization": f"Token {self._token.reveal()}"}
        if self._token.claims.get("token_type") == "access":
            return {"Authorization": f"Bearer {self._token.reveal()}"}
        if self._access_token is None or _get_expiry(self._access_token) < time.time() + RENEWAL_MARGIN_SECONDS:
            self._access_token = None
            body = {"refresh": self._token.reveal()}
            content = self._call("POST", "/api/token/refresh/", body=body, authorised=False)
            access_token = content.get("access") if isinstance(content, dict) else None
            if not isinstance(access_token, str):
                raise self._not_label_studio()
            self._access_token = Token(access_token)
        return {"Authorization": f"Bearer {self._access_token.reveal()}"}

    # ------------------------------------------------------------------ errors

    def _out_of_time(self) -> ServerError:
        return ServerError(
            f"{self.url} did not finish within {self._timeout:,.4g} seconds; try again, or allow more time: timeout=... (--timeout)"
        )

    def _too_long(self) -> ServerError:
        return ServerError(
            f"{self.url} sent more than {MAX_RESPONSE_BYTES >> 20:,} MB in one response, far more than a page of Label Studio; "
            "export the project in Label Studio instead"
        )

    def _not_label_studio(self) -> ServerError:
        return ServerError(
            f"no Label Studio answers at {self.url}, but another server does; give the address that its pages begin with, "
            "such as https://label-studio.example.com"
        )

    def _no_project(self, number: int) -> ServerError:
        projects: list[str] = []
        with contextlib.suppress(WisecrowdError):
            content = self._call("GET", "/api/projects/", params={"page_size": 12, "include": "id,title"})
            rows = content.get("results") if isinstance(content, dict) else None
            rows = rows[:12] if isinstance(rows, list) else []
            projects = [f"{row.get('id')} {row.get('title')!r}"[:80] for row in rows if isinstance(row, dict)]
        listing = f"there are {', '.join(projects)}" if projects else "the token sees no project"
        return ServerError(
            self._redact(f"there is no project {number} at {self.url}; {listing}. Its number is in its address")
        )

    def _refusal(self, response: _Response) -> ServerError:
        status, detail = response.status_code, self._get_detail(response)
        if 300 <= status < 400:
            try:
                target = urlsplit(response.headers.get("location", ""))
            except ValueError:
                return self._not_label_studio()
            if "login" in target.path or "signin" in target.path:
                return ServerError(f"{self.url} requires a login and accepts no token; is it behind another gate?")
            address = f"{target.scheme or urlsplit(self.url).scheme}://{target.netloc or urlsplit(self.url).netloc}"
            return ServerError(
                f"{self.url} redirects to {address}, where no token is sent unasked; give that address if it is right"
            )
        if status == 401:
            kind = "personal access token" if self._token.is_jwt else "access token"
            advice = (
                "it may have expired or been revoked"
                if self._token.is_jwt
                else "legacy tokens may be disabled there (Organization, API Tokens); use a personal access token"
            )
            return ServerError(f"{self.url} does not accept this {kind}{detail}; {advice}")
        if status == 403:
            return ServerError(f"{self.url} does not allow this to the owner of the token{detail}")
        if status == 404:
            return self._not_label_studio()
        if status in _BUSY_STATUSES:
            return ServerError(f"{self.url} was busy {MAX_ATTEMPTS} times ({status}){detail}; try again later")
        return ServerError(f"{self.url} refused ({status}){detail}")

    def _get_detail(self, response: _Response) -> str:
        """Return the reason of a refusal if the server gives one in JSON."""
        try:
            content = response.parse_json()
        except (ValueError, RecursionError):
            return ""
        if not isinstance(content, dict):
            return ""
        errors = content.get("validation_errors")
        text = f"{content.get('detail') or ''} {json.dumps(errors, ensure_ascii=False) if errors else ''}".strip()
        return f" ({self._redact(text)[:300]})" if text else ""

    def _redact(self, text: str) -> str:
        """Remove tokens from a text of the server."""
        for token in (self._token, self._access_token):
            text = text if token is None else text.replace(token.reveal(), "…")
        return text


def _import_httpx() -> Any:
    try:
        import httpx
    except ImportError:
        raise MissingExtra("tools", "connections to labelling tools") from None
    return httpx


def _get_expiry(token: Token) -> float:
    expiry = token.claims.get("exp")
    return float(expiry) if isinstance(expiry, int | float) and abs(expiry) < 1e15 else float("inf")


def _parse_retry_after(text: str | None) -> float:
    try:
        seconds = float(text or 0)
    except ValueError:  # a date; the usual pause is long enough
        return 0.0
    return seconds if seconds > 0 else 0.0  # not a number is no pause


def _describe(error: Exception) -> str:
    return str(error) or type(error).__name__
