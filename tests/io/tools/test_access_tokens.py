"""Tokens of Label Studio, and addresses that receive them."""

from __future__ import annotations

import base64
import json
import pickle
from pathlib import Path

import pytest

from wisecrowd.errors import UsageError
from wisecrowd.io.tools.access_tokens import VARIABLE, Token, is_loopback, load_token, parse_server_url

SECRET = "0123456789abcdef"


def make_jwt(claims: object) -> str:
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({"alg": "x"}, claims)
    ]
    return ".".join([*parts, "signature"])


class TestToken:
    def test_it_is_hidden(self) -> None:
        token = Token(SECRET)
        assert SECRET not in f"{token!r} {token}"
        assert token.reveal() == SECRET
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(token)
        assert not hasattr(token, "__dict__")

    def test_personal_access_tokens_have_claims(self) -> None:
        token = Token(make_jwt({"exp": 5, "token_type": "refresh"}))
        assert token.is_jwt
        assert token.claims["exp"] == 5

    @pytest.mark.parametrize("secret", [SECRET, "a.b.c", "a.!!!!.c", make_jwt([1, 2]), make_jwt("text")])
    def test_others_have_none(self, secret: str) -> None:
        assert not Token(secret).is_jwt

    @pytest.mark.parametrize("secret", ["", "with space", "with\nbreak", "tokén", "nul\0"])
    def test_what_cannot_be_in_a_header_is_refused(self, secret: str) -> None:
        with pytest.raises(UsageError, match="invalid characters") as caught:
            Token(secret)
        assert not secret or secret not in str(caught.value)


class TestLoad:
    def test_from_the_variable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(VARIABLE, f" {SECRET}\n")
        assert load_token().reveal() == SECRET

    def test_the_first_line_of_a_file_takes_precedence(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv(VARIABLE, "other")
        file = tmp_path / "token"
        file.write_text(f"{SECRET}\r\nanything else\n")
        assert load_token(file).reveal() == SECRET

    def test_without_a_token_the_message_says_where_to_put_it(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.delenv(VARIABLE, raising=False)
        (tmp_path / "empty").write_text("\n")
        for file in (None, tmp_path / "empty"):
            with pytest.raises(UsageError, match=VARIABLE):
                load_token(file)

    def test_files_that_cannot_be_read(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="cannot be read: No such file"):
            load_token(tmp_path / "absent")
        (tmp_path / "image").write_bytes(b"\x89PNG\xff")
        with pytest.raises(UsageError, match="the token file is not text"):
            load_token(tmp_path / "image")


class TestAddress:
    @pytest.mark.parametrize(
        ("url", "expected"),
        [
            ("label.example.com", "https://label.example.com"),
            ("https://label.example.com/", "https://label.example.com"),
            (" https://label.example.com:8080/tools/projects/7/data?tab=3 ", "https://label.example.com:8080/tools"),
            ("http://localhost:8080/projects/1", "http://localhost:8080"),
            ("http://[::1]:8080", "http://[::1]:8080"),
        ],
    )
    def test_any_page_of_a_project_names_the_server(self, url: str, expected: str) -> None:
        assert parse_server_url(url, insecure=False)[0] == expected

    def test_a_token_is_not_sent_unencrypted_to_another_machine(self) -> None:
        with pytest.raises(UsageError, match=r"would be sent unencrypted to label\.example\.com"):
            parse_server_url("http://label.example.com", insecure=False)
        assert parse_server_url("http://label.example.com", insecure=True) == (
            "http://label.example.com",
            "label.example.com",
        )

    @pytest.mark.parametrize("url", ["", "https://", "ftp://label.example.com", "http://[::1", "https://a:port"])
    def test_other_addresses_are_refused(self, url: str) -> None:
        with pytest.raises(UsageError, match="invalid"):
            parse_server_url(url, insecure=False)

    def test_passwords_are_refused_and_not_repeated(self) -> None:
        with pytest.raises(UsageError, match="contains a user or a password") as caught:
            parse_server_url("https://me:secret@label.example.com", insecure=False)
        assert "secret" not in str(caught.value)

    @pytest.mark.parametrize(
        ("host", "expected"),
        [
            ("localhost", True),
            ("127.0.0.2", True),
            ("::1", True),
            ("10.0.0.1", False),
            ("localhost.example.com", False),
        ],
    )
    def test_this_machine(self, host: str, expected: bool) -> None:
        assert is_loopback(host) is expected
