"""Tokens of servers, which show themselves to nobody, and the addresses that they may be sent to."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from wisecrowd.errors import UsageError

#: The environment variable with the token; Label Studio's own client reads the same.
VARIABLE = "LABEL_STUDIO_API_KEY"


class Token:
    """A secret that shows itself to nobody: an access token of old, or a personal access token (a JWT).

    >>> Token("0123456789abcdef"), Token("0123456789abcdef").is_jwt
    (Token(hidden), False)
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: str) -> None:
        if not (secret.isascii() and secret.isprintable() and secret and " " not in secret):
            raise UsageError(
                "the token has letters that no token of Label Studio has; copy it again from its account page"
            )
        self._secret = secret

    @property
    def is_jwt(self) -> bool:
        """Whether it is a personal access token."""
        return bool(self.claims)

    @property
    def claims(self) -> dict[str, Any]:
        """What a JWT says of itself: its kind and its end."""
        parts = self._secret.split(".")
        try:
            told = (
                json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))) if len(parts) == 3 else {}
            )
        except (binascii.Error, ValueError):
            return {}
        return told if isinstance(told, dict) else {}

    def reveal(self) -> str:
        """The secret itself, for a request."""
        return self._secret

    def __repr__(self) -> str:
        return "Token(hidden)"

    def __reduce__(self) -> Any:
        raise TypeError("a token is not stored")


def token_from(file: str | os.PathLike[str] | None = None) -> Token:
    """The token: the first line of a file, or the environment variable ``LABEL_STUDIO_API_KEY``.

    >>> os.environ.pop("LABEL_STUDIO_API_KEY", None) and None
    >>> token_from()
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: Label Studio wants a token, and there is none: put it into the variable LABEL_STUDIO_API_KEY ...
    """
    if file is not None:
        try:
            secret = Path(file).read_text(encoding="utf-8").split("\n", 1)[0].strip()
        except OSError as error:
            raise UsageError(f"the file of the token cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise UsageError("the file of the token holds no text") from None
    else:
        secret = os.environ.get(VARIABLE, "").strip()
    if not secret:
        raise UsageError(
            f"Label Studio wants a token, and there is none: put it into the variable {VARIABLE} or into a file "
            "(--token-file). Its account page has it: a personal access token, or an access token of old"
        )
    return Token(secret)


def address_of(url: str, *, insecure: bool) -> tuple[str, str]:
    """The address that all others begin with, and its host; whoever copies the address of a page is understood."""
    text = url.strip()
    try:
        parts = urlsplit(text if "://" in text else f"https://{text}")
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise UsageError("the address of a Label Studio was wanted, such as https://label-studio.example.com")
    if parts.username is not None or parts.password is not None:
        raise UsageError(f"the address of {host} has a user or a password in it; leave them out, the token is enough")
    if parts.scheme == "http" and not (insecure or is_loopback(host)):
        raise UsageError(
            f"the token would travel in the clear to {host}; give an https:// address, or say that everybody on the way may "
            "read it: insecure=True (--insecure)"
        )
    path = parts.path.split("/projects", 1)[0].rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path}", host


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
