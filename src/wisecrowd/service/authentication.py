"""Authentication by a shared token."""

from __future__ import annotations

import hmac
import os
import secrets
from pathlib import Path

from fastapi import HTTPException, Request
from fastapi.security import HTTPBearer

from wisecrowd.errors import InputError, UsageError

#: Environment variable that holds the token.
TOKEN_VARIABLE = "WISECROWD_TOKEN"
#: Minimum length of a token; shorter ones can be guessed.
MIN_TOKEN_CHARACTERS = 16
#: Name of the cookie that holds the token in a browser.
COOKIE_NAME = "wisecrowd"


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


class TokenCookie:
    """Dependency of pages: the token may be in a cookie instead of the header.

    Parameters
    ----------
    token : str
        Token of the service.

    Examples
    --------
    >>> TokenCookie("a-token-of-sixteen").token
    'a-token-of-sixteen'
    """

    def __init__(self, token: str) -> None:
        self.token = token

    async def __call__(self, request: Request) -> None:
        """Raise an HTTP 401 error where neither cookie nor header has the token."""
        candidates = (request.cookies.get(COOKIE_NAME), read_bearer_token(request))
        if not any(tokens_match(candidate, self.token) for candidate in candidates):
            raise HTTPException(
                401,
                "open the link that wisecrowd serve printed at the start, which ends in ?token=…, or send the token",
            )
