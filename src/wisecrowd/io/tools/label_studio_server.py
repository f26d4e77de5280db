"""A Label Studio that is running: its tasks page by page, and predictions that are put into them.

The token goes into the header of requests to that one server, and nowhere else: into no message, no URL, no file and no
``repr``. It does not travel in the clear to another machine unless the caller says so, and redirects are never followed.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from wisecrowd.errors import MissingExtra, WisecrowdError
from wisecrowd.io.tools.tokens import VARIABLE, Token, address_of, is_loopback, token_from

if TYPE_CHECKING:
    import httpx

__all__ = ["VARIABLE", "Doubtful", "LabelStudio", "ServerError", "Token", "token_from"]

#: Tasks on a page, and predictions sent at once.
PAGE, BATCH = 100, 500
#: Seconds to wait for a connection, and for an answer; a page of tasks can take a server long.
CONNECT, ANSWER = 10.0, 120.0
#: How often all pages are read again, because tasks went away meanwhile.
RESTARTS = 10
#: How often a call is tried, and seconds between the first two tries; each wait is twice the one before.
TRIES, PAUSE = 5, 1.0
#: Seconds at most that a server may ask for between two tries.
LONGEST_PAUSE = 60.0
#: Seconds before its end at which a token that was lent to us is renewed.
EARLY = 30.0
_BUSY = frozenset({429, 502, 503, 504})


class ServerError(WisecrowdError):
    """A server is not there, is no Label Studio, or refuses.

    >>> raise ServerError("no Label Studio answers at https://example.com")
    Traceback (most recent call last):
        ...
    wisecrowd.io.tools.label_studio_server.ServerError: no Label Studio answers at https://example.com
    """


class Doubtful(ServerError):
    """A connection broke while something was being written, so that nobody knows whether it was; look before you repeat it.

    >>> issubclass(Doubtful, ServerError)
    True
    """


class LabelStudio:
    """A server, and a token for it.

    >>> LabelStudio("http://label-studio.example.com", Token("0123456789abcdef"))
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: the token would travel in the clear to label-studio.example.com; give an https:// address, ...
    """

    def __init__(
        self,
        url: str,
        token: Token,
        *,
        insecure: bool = False,
        transport: httpx.BaseTransport | None = None,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        self.url, host = address_of(url, insecure=insecure)
        self._token, self._wait = token, wait
        self._lent: Token | None = None
        httpx = _httpx()
        # No proxy of the environment may read what is meant for this machine.
        mounts = {f"all://{'[' + host + ']' if ':' in host else host}": None} if is_loopback(host) else {}
        self._http = httpx.Client(
            timeout=httpx.Timeout(ANSWER, connect=CONNECT), follow_redirects=False, transport=transport, mounts=mounts
        )

    def __repr__(self) -> str:
        return f"LabelStudio({self.url!r})"

    def __enter__(self) -> LabelStudio:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def version(self) -> str:
        """Which Label Studio it is. The token is not sent: this is how one finds out whom it would be sent to."""
        response = self._sent("GET", "/api/version", None, None, {})
        if response.status_code in (401, 403):  # some tell it to members only
            return "unknown"
        told = self._read(response)
        release = told.get("release") if isinstance(told, dict) else None
        if not isinstance(release, str):
            raise self._nobody()
        return release

    def project(self, number: int) -> dict[str, Any]:
        """What the server tells of a project: its title, its labelling interface, how many tasks it has."""
        told = self._call("GET", f"/api/projects/{number}/", missing=lambda: self._no_project(number))
        if not isinstance(told, dict) or "id" not in told:
            raise self._nobody()
        return told

    def tasks(self, project: int) -> Iterator[tuple[dict[str, Any], int]]:
        """Every task with its annotations and predictions, also those that nobody labelled, in the order of their ids.

        Each comes with how many there are. A task that goes away meanwhile moves the others forward, perhaps onto a page that
        was read already; then all pages are read again, and what is new on them is given.
        """
        seen: set[Any] = set()
        for _ in range(RESTARTS):
            page, before, size = 1, 0, 1
            while True:
                found, total = self._page(project, page)
                size = len(found) if page == 1 else size  # a server may give less than it is asked for
                for task in found:
                    if task.get("id") not in seen:
                        seen.add(task.get("id"))
                        yield task, total
                if total < before:
                    break
                if page * size >= total:
                    return
                page, before = page + 1, total

    def _page(self, project: int, page: int) -> tuple[list[dict[str, Any]], int]:
        # Addresses of files stay as they are stored; resolved ones end after a while.
        asked = {"project": project, "fields": "all", "resolve_uri": "false", "page": page, "page_size": PAGE}
        told = self._call("GET", "/api/tasks/", params=asked, missing=lambda: None)
        if told is None:  # the pages ended before this one
            return [], 0
        tasks = told.get("tasks") if isinstance(told, dict) else told
        if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
            raise self._nobody()
        total = told.get("total") if isinstance(told, dict) else None
        return tasks, total if isinstance(total, int) else len(tasks)

    def add(self, project: int, predictions: Sequence[dict[str, Any]]) -> int:
        """Put predictions into tasks that are there, each with the id of its ``task``; how many the server took.

        It leaves out those that do not fit the labelling interface, and does not say so.
        """
        created = 0
        for first in range(0, len(predictions), BATCH):
            some_of_them = list(predictions[first : first + BATCH])
            path = f"/api/projects/{project}/import/predictions"
            told = self._call("POST", path, body=some_of_them, missing=lambda: self._no_project(project))
            created += int(told.get("created") or 0) if isinstance(told, dict) else 0
        return created

    def change(self, prediction: int, values: dict[str, Any]) -> None:
        """Give a prediction other values; one that is gone is no error, and stays away."""
        self._call("PATCH", f"/api/predictions/{prediction}/", body=values, missing=lambda: None)

    def remove(self, prediction: int) -> None:
        """Remove a prediction; one that is gone already is no error."""
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
        """What the server answers, as JSON; ``missing`` says what to make of a 404: an error, or nothing."""
        response = self._sent(method, path, params, body, self._authorisation() if authorised else {})
        if response.status_code == 401 and authorised and self._lent is not None:
            self._lent = None  # the clocks of two machines differ
            response = self._sent(method, path, params, body, self._authorisation())
        if response.status_code == 404 and missing is not None and self._detail(response):
            error = missing()
            if error is None:
                return None
            raise error
        return self._read(response)

    def _read(self, response: httpx.Response) -> Any:
        if not 200 <= response.status_code < 300:
            raise self._refusal(response)
        if response.status_code == 204 or not response.content:
            return None
        try:
            return response.json()
        except (ValueError, RecursionError):
            raise self._nobody() from None

    def _sent(self, method: str, path: str, params: Any, body: Any, headers: dict[str, str]) -> httpx.Response:
        """The answer of the server. What may be repeated is tried again when the server is busy or the connection breaks."""
        httpx = _httpx()
        repeatable = method != "POST" or path == "/api/token/refresh/"
        pause = PAUSE
        for left in reversed(range(TRIES)):
            asked = 0.0
            self._http.cookies.clear()  # a session would be another way in than the token
            try:
                response = self._http.request(method, self.url + path, params=params, json=body, headers=headers)
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError) as error:
                if not left:
                    raise ServerError(
                        f"{self.url} cannot be reached: {_reason(error)}; is the server running there?"
                    ) from None
            except httpx.TransportError as error:
                if not repeatable:
                    raise Doubtful(f"the connection to {self.url} broke while writing: {_reason(error)}") from None
                if not left:
                    raise ServerError(f"the connection to {self.url} broke {TRIES} times: {_reason(error)}") from None
            else:
                if response.status_code not in _BUSY:
                    return response
                if not repeatable and response.status_code != 429:
                    raise Doubtful(f"{self.url} said {response.status_code} while something was being written")
                if not left:
                    return response
                asked = _seconds(response.headers.get("retry-after"))
            self._wait(min(max(pause, asked), LONGEST_PAUSE))
            pause *= 2
        raise AssertionError("unreachable")  # pragma: no cover

    def _authorisation(self) -> dict[str, str]:
        """The header with the token. A personal access token is exchanged for one that ends after some minutes."""
        if not self._token.is_jwt:
            return {"Authorization": f"Token {self._token.reveal()}"}
        if self._token.claims.get("token_type") == "access":
            return {"Authorization": f"Bearer {self._token.reveal()}"}
        if self._lent is None or _ends(self._lent) < time.time() + EARLY:
            self._lent = None
            told = self._call("POST", "/api/token/refresh/", body={"refresh": self._token.reveal()}, authorised=False)
            lent = told.get("access") if isinstance(told, dict) else None
            if not isinstance(lent, str):
                raise self._nobody()
            self._lent = Token(lent)
        return {"Authorization": f"Bearer {self._lent.reveal()}"}

    # ------------------------------------------------------------------ what went wrong

    def _nobody(self) -> ServerError:
        return ServerError(
            f"no Label Studio answers at {self.url}, but something else does; give the address that its pages begin with, "
            "such as https://label-studio.example.com"
        )

    def _no_project(self, number: int) -> ServerError:
        known: list[str] = []
        with contextlib.suppress(WisecrowdError):
            told = self._call("GET", "/api/projects/", params={"page_size": 12, "include": "id,title"})
            rows = told.get("results") if isinstance(told, dict) else None
            known = [f"{row.get('id')} {row.get('title')!r}" for row in rows or () if isinstance(row, dict)]
        there = f"there are {', '.join(known)}" if known else "the token sees no project"
        return ServerError(
            self._hidden(f"there is no project {number} at {self.url}; {there}. Its number is in its address")
        )

    def _refusal(self, response: httpx.Response) -> ServerError:
        status, said = response.status_code, self._detail(response)
        if 300 <= status < 400:
            target = urlsplit(response.headers.get("location", ""))
            if "login" in target.path or "signin" in target.path:
                return ServerError(
                    f"{self.url} wants somebody to log in, and takes no token there; is it behind another gate?"
                )
            where = f"{target.scheme or urlsplit(self.url).scheme}://{target.netloc or urlsplit(self.url).netloc}"
            return ServerError(
                f"{self.url} sends us on to {where}, where no token is taken unasked; give that address if it is right"
            )
        if status == 401:
            kind = "personal access token" if self._token.is_jwt else "access token"
            other = (
                "it may have ended, or been revoked"
                if self._token.is_jwt
                else "access tokens of old may be switched off there (Organization, API Tokens); take a personal access token"
            )
            return ServerError(f"{self.url} does not take this {kind}{said}; {other}")
        if status == 403:
            return ServerError(f"{self.url} does not allow this to the owner of the token{said}")
        if status == 404:
            return self._nobody()
        if status in _BUSY:
            return ServerError(f"{self.url} was busy {TRIES} times ({status}){said}; try again later")
        return ServerError(f"{self.url} refused ({status}){said}")

    def _detail(self, response: httpx.Response) -> str:
        """What the server says of its refusal, if that is in JSON; pages for people tell programs nothing."""
        try:
            told = response.json()
        except (ValueError, RecursionError):
            return ""
        if not isinstance(told, dict):
            return ""
        errors = told.get("validation_errors")
        text = f"{told.get('detail') or ''} {json.dumps(errors, ensure_ascii=False) if errors else ''}".strip()
        return f" ({self._hidden(text)[:300]})" if text else ""

    def _hidden(self, text: str) -> str:
        """A text of the server's, in which no token stands."""
        for token in (self._token, self._lent):
            text = text if token is None else text.replace(token.reveal(), "…")
        return text


def _httpx() -> Any:
    try:
        import httpx
    except ImportError:
        raise MissingExtra("tools", "connections to labelling tools") from None
    return httpx


def _ends(token: Token) -> float:
    end = token.claims.get("exp")
    return float(end) if isinstance(end, int | float) else float("inf")


def _seconds(text: str | None) -> float:
    try:
        return max(float(text or 0), 0.0)
    except ValueError:  # a date; the usual pause will do
        return 0.0


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
