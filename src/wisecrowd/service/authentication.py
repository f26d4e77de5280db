"""Authentication by a shared token."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from pathlib import Path

from fastapi import HTTPException, Request, Response
from fastapi.security import HTTPBearer

from wisecrowd.errors import InputError, UsageError

#: Environment variable that holds the token.
TOKEN_VARIABLE = "WISECROWD_TOKEN"
#: Minimum length of a token; shorter ones can be guessed.
MIN_TOKEN_CHARACTERS = 16
#: Seconds after which a browser has to open the link with the token again.
SESSION_SECONDS = 24 * 3600
#: Maximum number of sessions of browsers.
MAX_SESSIONS = 100


def load_token(path: Path | None = None) -> tuple[str, bool]:
    """Return the token from a file, from the environment, or a new one.

    Parameters
    ----------
    path : pathlib.Path, default=None
        File that holds the token. Without a file, the environment variable ``WISECROWD_TOKEN`` is read.

    Returns
    -------
    token : str
        Token.
    is_new : bool
        Whether the token was generated.

    Raises
    ------
    InputError
        If the file cannot be read.
    UsageError
        If the token is too short or contains other characters than printable ASCII.

    Examples
    --------
    >>> load_token()[1]
    True
    """
    if path is not None:
        try:
            token = path.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise InputError(f"the token cannot be read from {path}: {error.strerror}") from None
        origin = str(path)
    else:
        token, origin = os.environ.get(TOKEN_VARIABLE, "").strip(), TOKEN_VARIABLE
        if not token:
            return secrets.token_urlsafe(24), True
    if len(token) < MIN_TOKEN_CHARACTERS or not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(
            f"the token in {origin} must have {MIN_TOKEN_CHARACTERS} or more printable ASCII characters and no spaces; "
            'generate one with: python -c "import secrets; print(secrets.token_urlsafe())"'
        )
    return token, False


def tokens_match(candidate: str | None, token: str) -> bool:
    """Compare a token in constant time, so that the duration reveals nothing about it.

    Parameters
    ----------
    candidate : str or None
        Token of a request.
    token : str
        Token of the service.

    Returns
    -------
    bool
        Whether both are equal.

    Examples
    --------
    >>> tokens_match("guess", "secret"), tokens_match(None, "secret"), tokens_match("secret", "secret")
    (False, False, True)
    """
    return candidate is not None and hmac.compare_digest(candidate.encode(), token.encode())


def read_bearer_token(request: Request) -> str | None:
    """Return the token in the ``Authorization`` header of a request.

    Parameters
    ----------
    request : fastapi.Request
        Request.

    Returns
    -------
    str or None
        Token; None where the header is missing or has another scheme.

    Examples
    --------
    >>> read_bearer_token(Request({"type": "http", "headers": [(b"authorization", b"Bearer secret")]}))
    'secret'
    """
    for name, value in request.scope["headers"]:
        if name == b"authorization":
            scheme, _, token = value.decode("latin-1").partition(" ")
            return str(token).strip() if scheme.lower() == "bearer" else None
    return None


class TokenHeader(HTTPBearer):
    """Dependency that refuses requests without the token in the ``Authorization`` header.

    Parameters
    ----------
    token : str
        Token of the service.

    Examples
    --------
    >>> TokenHeader("a-token-of-sixteen").token
    'a-token-of-sixteen'
    """

    def __init__(self, token: str) -> None:
        super().__init__(scheme_name="token", description="The token that the service was started with.")
        self.token = token

    async def __call__(self, request: Request) -> None:  # type: ignore[override]
        """Raise an HTTP 401 error where the token is missing or wrong."""
        candidate = read_bearer_token(request)
        if not tokens_match(candidate, self.token):
            detail = (
                "the token is wrong" if candidate else "a token is missing: send the header Authorization: Bearer …"
            )
            raise HTTPException(401, detail, {"WWW-Authenticate": "Bearer"})
        trust_connection(request)


def trust_connection(request: Request) -> None:
    """Record that a request has carried the token, so that its connection is not closed when there are too many.

    Parameters
    ----------
    request : fastapi.Request
        Request.

    Examples
    --------
    >>> trust_connection(Request({"type": "http", "headers": []}))
    """
    connection = request.scope.get("state", {}).get("connection")
    if connection is not None:
        connection.trust()


class LoginSessions:
    """Sessions of browsers that have opened the link with the token.

    A browser sends its cookies to every port of a host, and so to other programs on this machine. The cookie therefore
    holds a random session id instead of the token. The id is known to this process only, expires, and opens pages but not
    the API.

    Examples
    --------
    >>> sessions = LoginSessions()
    >>> session_id = sessions.create()
    >>> sessions.is_valid(session_id), sessions.is_valid("guess"), sessions.is_valid(None)
    (True, False, False)
    """

    def __init__(self) -> None:
        self._expiry_by_digest: dict[bytes, float] = {}  # in order of creation

    def __len__(self) -> int:
        return len(self._expiry_by_digest)

    def create(self) -> str:
        """Start a session. The oldest one ends if there are too many.

        Returns
        -------
        str
            Session id.
        """
        session_id = secrets.token_urlsafe(32)
        while len(self._expiry_by_digest) >= MAX_SESSIONS:
            del self._expiry_by_digest[next(iter(self._expiry_by_digest))]
        self._expiry_by_digest[_digest(session_id)] = time.monotonic() + SESSION_SECONDS
        return session_id

    def is_valid(self, session_id: str | None) -> bool:
        """Return whether a session exists and has not expired.

        Parameters
        ----------
        session_id : str or None
            Session id of a request.

        Returns
        -------
        bool
            Whether the request belongs to a session.
        """
        if not session_id:
            return False
        digest = _digest(session_id)  # the time of a look-up reveals nothing about an id that is compared by its hash
        expiry = self._expiry_by_digest.get(digest)
        if expiry is None:
            return False
        if time.monotonic() >= expiry:
            del self._expiry_by_digest[digest]
            return False
        return True


def _digest(session_id: str) -> bytes:
    return hashlib.sha256(session_id.encode("utf-8", "surrogateescape")).digest()


def cookie_name(request: Request) -> str:
    """Return the name of the session cookie. It contains the port because browsers share cookies between ports of a host.

    Parameters
    ----------
    request : fastapi.Request
        Request.

    Returns
    -------
    str
        Name of the cookie.

    Examples
    --------
    >>> cookie_name(Request({"type": "http", "headers": [], "server": ("127.0.0.1", 8765)}))
    'wisecrowd_8765'
    """
    return f"wisecrowd_{(request.scope.get('server') or (None, None))[1]}"


class SessionCookie:
    """Dependency of pages: a session of a browser, or the token in the header.

    Parameters
    ----------
    token : str
        Token of the service.

    Attributes
    ----------
    sessions : LoginSessions
        Sessions of browsers.

    Examples
    --------
    >>> len(SessionCookie("a-token-of-sixteen").sessions)
    0
    """

    def __init__(self, token: str) -> None:
        self.token = token
        self.sessions = LoginSessions()

    async def __call__(self, request: Request) -> None:
        """Raise an HTTP 401 error where the request has neither a session nor the token."""
        is_known = self.sessions.is_valid(request.cookies.get(cookie_name(request)))
        if not is_known and not tokens_match(read_bearer_token(request), self.token):
            raise HTTPException(
                401,
                "open the link that wisecrowd printed at the start, which ends in ?token=…, or send the token",
            )
        trust_connection(request)

    def log_in(self, request: Request, response: Response) -> None:
        """Start a session and put its id into a cookie.

        Parameters
        ----------
        request : fastapi.Request
            Request with the token.
        response : fastapi.Response
            Response that sets the cookie.
        """
        # Not request.url, which cannot be built if the query is not UTF-8.
        is_https = "https" in (request.scope["scheme"], request.headers.get("x-forwarded-proto"))
        response.set_cookie(
            cookie_name(request), self.sessions.create(), max_age=SESSION_SECONDS, httponly=True, samesite="strict",
            secure=is_https,
        )  # fmt: skip
        trust_connection(request)
