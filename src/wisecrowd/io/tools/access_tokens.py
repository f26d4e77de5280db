"""Access tokens of Label Studio, which never appear in messages, and the server addresses that receive them."""

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

#: Environment variable with the token. Label Studio's own client reads the same.
VARIABLE = "LABEL_STUDIO_API_KEY"


class Token:
    """Access token, either a legacy token or a personal access token (a JWT). Its ``repr`` hides it.

    Parameters
    ----------
    secret : str
        The token.

    Examples
    --------
    >>> Token("0123456789abcdef"), Token("0123456789abcdef").is_jwt
    (Token(hidden), False)
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: str) -> None:
        if not (secret.isascii() and secret.isprintable() and secret and " " not in secret):
            raise UsageError("the token contains invalid characters; copy it again from Label Studio's account page")
        self._secret = secret

    @property
    def is_jwt(self) -> bool:
        """True for a personal access token."""
        return bool(self.claims)

    @property
    def claims(self) -> dict[str, Any]:
        """Claims of a JWT, such as its type and its expiry."""
        parts = self._secret.split(".")
        if len(parts) != 3:
            return {}
        try:
            claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        except (binascii.Error, ValueError):
            return {}
        return claims if isinstance(claims, dict) else {}

    def reveal(self) -> str:
        """Return the token itself, for the header of a request.

        Returns
        -------
        str
            The secret.
        """
        return self._secret

    def __repr__(self) -> str:
        return "Token(hidden)"

    def __reduce__(self) -> Any:
        raise TypeError("a token cannot be pickled")


def load_token(file: str | os.PathLike[str] | None = None) -> Token:
    """Load the token from a file or from the environment variable ``LABEL_STUDIO_API_KEY``.

    Parameters
    ----------
    file : path-like, optional
        File with the token on its first line.

    Returns
    -------
    Token
        The token.

    Raises
    ------
    UsageError
        If there is no token.

    Examples
    --------
    >>> os.environ.pop("LABEL_STUDIO_API_KEY", None) and None
    >>> load_token()
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: there is no token for Label Studio; put it into the variable LABEL_STUDIO_API_KEY ...
    """
    if file is not None:
        try:
            secret = Path(file).read_text(encoding="utf-8").split("\n", 1)[0].strip()
        except OSError as error:
            raise UsageError(f"the token file cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise UsageError("the token file is not text; write the token alone into it") from None
    else:
        secret = os.environ.get(VARIABLE, "").strip()
    if not secret:
        raise UsageError(
            f"there is no token for Label Studio; put it into the variable {VARIABLE} or into a file (--token-file). "
            "Label Studio's account page shows it: a personal access token or a legacy token"
        )
    return Token(secret)


def parse_server_url(url: str, *, insecure: bool) -> tuple[str, str]:
    """Return the base address of a server. The address of any page of a project is accepted.

    Parameters
    ----------
    url : str
        Address.
    insecure : bool
        Allow ``http://`` to another machine.

    Returns
    -------
    url : str
        Address that all others begin with.
    host : str
        Host name.

    Raises
    ------
    UsageError
        If the address is invalid, or the token would be sent unencrypted.
    """
    text = url.strip()
    try:
        parts = urlsplit(text if "://" in text else f"https://{text}")
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise UsageError(
            "the address of Label Studio is invalid; expected one such as https://label-studio.example.com"
        )
    if parts.username is not None or parts.password is not None:
        raise UsageError(f"the address of {host} contains a user or a password; leave them out, the token is enough")
    if parts.scheme == "http" and not (insecure or is_loopback(host)):
        raise UsageError(
            f"the token would be sent unencrypted to {host}; give an https:// address, or allow this with insecure=True "
            "(--insecure)"
        )
    path = parts.path.split("/projects", 1)[0].rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path}", host


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine.

    Parameters
    ----------
    host : str
        Host name or address.

    Returns
    -------
    bool
        Whether the host is ``localhost`` or a loopback address.
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
