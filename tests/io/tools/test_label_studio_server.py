from __future__ import annotations

import base64
import contextlib
import gzip
import importlib.util
import itertools
import json
import pickle
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from wisecrowd.errors import MissingExtra, UsageError
from wisecrowd.io.tools import label_studio_server
from wisecrowd.io.tools.label_studio_server import LabelStudioClient, Token, UnconfirmedWrite, load_token

RECORDED = Path(__file__).parents[2] / "recorded" / "label_studio"
_spec = importlib.util.spec_from_file_location("label_studio_stub", RECORDED / "stub.py")
assert _spec is not None
assert _spec.loader is not None
stub = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(stub)

studio, waits, connect, refused = stub.studio, stub.waits, stub.connect, stub.refused
Connect = Callable[..., LabelStudioClient]


# ---------------------------------------------------------------------- tokens


def test_a_token_shows_itself_to_nobody() -> None:
    token = Token(stub.PERSONAL)
    assert (repr(token), str(token), f"{token}") == ("Token(hidden)",) * 3
    assert not hasattr(token, "__dict__")
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(token)
    with pytest.raises(UsageError, match="the token contains invalid characters") as caught:
        Token("my sécret")
    assert "sécret" not in str(caught.value)


def test_tokens_come_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", f" {stub.LEGACY}\n")
    assert load_token().reveal() == stub.LEGACY
    (tmp_path / "token").write_text(f"{stub.PERSONAL}\nanother line\n")
    assert load_token(tmp_path / "token").reveal() == stub.PERSONAL
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        load_token(tmp_path / "nowhere")
    (tmp_path / "token").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is not text"):
        load_token(tmp_path / "token")
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", "")
    with pytest.raises(
        UsageError, match="there is no token for Label Studio; put it into the variable LABEL_STUDIO_API_KEY"
    ):
        load_token()


def test_kinds_of_tokens() -> None:
    assert not Token(stub.LEGACY).is_jwt
    assert not Token("a.b.c").is_jwt
    assert not Token("two.parts").is_jwt
    assert Token(stub.PERSONAL).claims["token_type"] == "refresh"


def test_an_access_token_of_old_is_sent_as_such(studio: Any, connect: Connect) -> None:
    client = connect()
    assert client.get_version() == "1.23.2"
    assert studio.seen == [("GET", "/api/version", "")], "the token is not sent before the server is identified"
    assert client.get_project(studio.number)["title"] == "Restaurants"
    assert studio.seen[-1][2] == f"Token {stub.LEGACY}"
    assert stub.LEGACY not in repr(client)


def test_a_personal_access_token_is_exchanged_once(studio: Any, connect: Connect) -> None:
    client = connect(stub.PERSONAL)
    for _ in range(3):
        client.get_project(studio.number)
    assert studio.calls("POST /api/token/refresh/") == 1
    assert studio.seen[-1][2] == f"Bearer {studio.lent[0]}"
    assert all(stub.PERSONAL not in authorisation for _, _, authorisation in studio.seen)


def test_a_lent_token_is_renewed_before_its_end(studio: Any, connect: Connect) -> None:
    client = connect(stub.PERSONAL)
    studio.good_for = 20.0  # seconds, fewer than the client wants to have left
    client.get_project(studio.number)
    client.get_project(studio.number)
    assert len(studio.lent) == 2


def test_a_lent_token_that_is_refused_is_renewed_once(studio: Any, connect: Connect) -> None:
    client = connect(stub.PERSONAL)
    client.get_project(studio.number)
    studio.lent.append("another")
    client.get_project(studio.number)
    assert studio.calls("POST /api/token/refresh/") == 2
    studio.troubles = [(f"GET /api/projects/{studio.number}", 401)] * 2
    with refused("does not accept this personal access token .*it may have expired", secrets=tuple(studio.lent)):
        client.get_project(studio.number)


def test_a_token_that_was_lent_to_somebody_is_sent_as_it_is(studio: Any, connect: Connect) -> None:
    studio.lent.append(stub.jwt("access", 9e9, "mine"))
    connect(studio.lent[0]).get_project(studio.number)
    assert studio.calls("POST") == 0


def test_nothing_travels_in_the_clear_unasked() -> None:
    with refused("would be sent unencrypted to example.com; give an https:// address, or allow", UsageError):
        LabelStudioClient("http://example.com", Token(stub.LEGACY))
    assert LabelStudioClient("http://example.com", Token(stub.LEGACY), insecure=True).url == "http://example.com"
    for host in ("localhost", "127.0.0.1:8080", "[::1]:8080"):
        assert LabelStudioClient(f"http://{host}", Token(stub.LEGACY)).url == f"http://{host}"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("https://example.com/", "https://example.com"),
        ("example.com", "https://example.com"),
        ("https://example.com/projects/12/data?tab=3&task=7", "https://example.com"),
        ("https://example.com/labels/projects/", "https://example.com/labels"),
    ],
)
def test_addresses(given: str, meant: str) -> None:
    assert LabelStudioClient(given, Token(stub.LEGACY)).url == meant


@pytest.mark.parametrize("url", ["", "ftp://example.com", "https://", "https://example.com:port", "https://[example"])
def test_what_is_no_address(url: str) -> None:
    with refused("the address of Label Studio is invalid", UsageError):
        LabelStudioClient(url, Token(stub.LEGACY))


def test_a_password_in_the_address_is_not_repeated() -> None:
    url = "https://ann:{}@example.com".format(password := "hunter" + "2")
    with refused("contains a user or a password", UsageError, (password,)):
        LabelStudioClient(url, Token(stub.LEGACY))


def test_no_proxy_sees_what_is_meant_for_this_machine(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert connect().get_version() == "1.23.2"


def test_httpx_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtra, match=r"wisecrowd\[tools\]"):
        LabelStudioClient("https://example.com", Token(stub.LEGACY))


# ---------------------------------------------------------------------- troubles


def test_what_is_busy_is_asked_again(studio: Any, connect: Connect, waits: list[float]) -> None:
    studio.troubles = [("GET /api/projects", status) for status in (429, 502, 503, 504)]
    assert connect().get_project(studio.number)["id"] == studio.number
    assert waits == [1, 2, 4, 8]


def test_a_server_may_say_when_to_come_back(studio: Any, connect: Connect, waits: list[float]) -> None:
    studio.headers = {"Retry-After": "7"}
    studio.troubles = [("GET /api/projects", 429)]
    connect().get_project(studio.number)
    studio.headers = {"Retry-After": "100000"}
    studio.troubles = [("GET /api/projects", 429)]
    connect().get_project(studio.number)
    studio.headers = {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}
    studio.troubles = [("GET /api/projects", 503)]
    connect().get_project(studio.number)
    assert waits == [7, 60, 1]


def test_patience_ends(studio: Any, connect: Connect, waits: list[float]) -> None:
    studio.troubles = [("GET /api/projects", 503)] * 9
    with refused("was busy 5 times .503. .trouble 503.; try again later"):
        connect().get_project(studio.number)
    assert len(waits) == 4
    studio.troubles = [("GET /api/projects", "break")] * 5
    with refused("broke 5 times"):
        connect().get_project(studio.number)


def test_a_broken_connection_is_tried_again(studio: Any, connect: Connect) -> None:
    studio.troubles = [("GET /api/tasks", "break")]
    assert len(list(connect().iter_tasks(studio.number))) == 8


def test_what_was_being_written_is_not_repeated_blindly(studio: Any, connect: Connect) -> None:
    prediction = {"task": 4, "model_version": "x", "score": None, "result": []}
    for trouble in ("break", "lose", 502):
        studio.troubles = [("POST /api/projects", trouble)]
        with refused("writ", UnconfirmedWrite):
            connect().add_predictions(studio.number, [prediction])
    assert studio.calls("POST /api/projects") == 3
    studio.troubles = [("POST /api/projects", 429)]  # it was not even looked at
    assert connect().add_predictions(studio.number, [prediction]) == 1


def test_nobody_there(connect: Connect) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with refused(f"{url} cannot be reached: .*; is the server running there"):
        connect(url=url).get_version()


def test_no_such_project(connect: Connect) -> None:
    with refused("there is no project 77 .*; there are 2 'Restaurants'. Its number is in its address"):
        connect().get_project(77)
    with refused("there is no project 77"):
        connect().add_predictions(77, [{}])


def test_tokens_that_are_refused(studio: Any, connect: Connect) -> None:
    wrong = "0badc0de" * 5
    with refused("does not accept this access token .Invalid token.*; use a personal access token", secrets=(wrong,)):
        connect(wrong).get_project(studio.number)
    wrong = stub.jwt("refresh", 9e9, "wrong")
    with refused("does not accept this personal access token .Token is invalid", secrets=(wrong, "wrong-secret")):
        connect(wrong).get_project(studio.number)
    studio.troubles = [("GET /api/projects", 403)]
    with refused("does not allow this to the owner of the token .trouble 403."):
        connect().get_project(studio.number)


PAGE = "<!DOCTYPE html><html>Welcome</html>"
ECHO = {"detail": f"no such token: {stub.LEGACY}"}


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (httpx.Response(200, text=PAGE), "no Label Studio answers at https://example.com, but another server does"),
        (httpx.Response(404, text=PAGE), "no Label Studio answers"),
        (httpx.Response(200, json={"hello": "world"}), "no Label Studio answers"),
        (httpx.Response(200, json=[1]), "no Label Studio answers"),
        (httpx.Response(302, headers={"location": "/user/login/?next=/"}), "requires a login"),
        (httpx.Response(302, headers={"location": "https://gate.example.org/signin"}), "requires a login"),
        (
            httpx.Response(301, headers={"location": "https://evil.example.org/x"}),
            "redirects to https://evil.example.org",
        ),
        (httpx.Response(301, headers={"location": "/new/api"}), "redirects to https://example.com, where no token"),
        (httpx.Response(500, text="Traceback"), r"refused \(500\)$"),
        (httpx.Response(500, text="[1]"), r"refused \(500\)$"),
        (httpx.Response(400, json=ECHO), r"refused \(400\) \(no such token: …\)$"),
        (
            httpx.Response(400, json={"detail": "Validation error", "validation_errors": {"x": ["bad"]}}),
            "Validation error .*bad",
        ),
    ],
)
def test_who_is_no_label_studio(response: httpx.Response, message: str) -> None:
    asked: list[httpx.Request] = []

    def answering(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return response

    client = LabelStudioClient("https://example.com", Token(stub.LEGACY), transport=httpx.MockTransport(answering))
    with refused(message):
        client.get_version()
    with refused(message):
        client.get_project(1)
    assert {request.url.host for request in asked} == {"example.com"}, "nobody is sent on"
    assert all(stub.LEGACY not in str(request.url) for request in asked)
    assert asked[0].headers.get("authorization") is None


def test_what_is_not_json_in_the_middle() -> None:
    for told in ("<html>", {"tasks": [1]}, {"tasks": {}}):
        text = told if isinstance(told, str) else json.dumps(told)
        client = LabelStudioClient(
            "https://example.com",
            Token(stub.LEGACY),
            transport=httpx.MockTransport(lambda _, text=text: httpx.Response(200, text=text)),
        )
        with refused("no Label Studio answers"):
            list(client.iter_tasks(1))


def test_a_version_may_be_for_members_only() -> None:
    refusing = httpx.MockTransport(lambda _: httpx.Response(401, json={"detail": "who are you?"}))
    assert LabelStudioClient("https://example.com", Token(stub.LEGACY), transport=refusing).get_version() == "unknown"


# ---------------------------------------------------------------------- pages


@pytest.mark.parametrize("most", [3, 4, 8, 1000])
def test_all_pages_are_read(studio: Any, connect: Connect, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    studio.most = most  # a server may give less than it is asked for
    found = list(connect().iter_tasks(studio.number))
    assert [task["id"] for task, _ in found] == list(range(4, 12))
    assert {total for _, total in found} == {8}
    monkeypatch.setattr(label_studio_server, "PAGE_SIZE", 2)
    assert len(list(connect().iter_tasks(studio.number))) == 8


def test_tasks_that_go_away_hide_no_others(studio: Any, connect: Connect) -> None:
    studio.most = 2
    found = []
    for task, _ in connect().iter_tasks(studio.number):
        found.append(task["id"])
        if task["id"] == 6:  # two pages are read; all that follows moves forward
            del studio.tasks[0:3]
    assert sorted(found) == list(range(4, 12))
    assert len(found) == 8


def test_tasks_may_all_go_away(studio: Any, connect: Connect) -> None:
    studio.most = 2
    found = []
    for task, _ in connect().iter_tasks(studio.number):
        found.append(task["id"])
        studio.tasks.clear()
    assert found == [4, 5]


# ---------------------------------------------------------------------- hostile servers


def serve(respond: Callable[[httpx.Request], httpx.Response], **options: Any) -> LabelStudioClient:
    """Return a client of a server that is a function."""
    return LabelStudioClient(
        "http://127.0.0.1:8080",
        Token(stub.LEGACY),
        transport=httpx.MockTransport(respond),
        wait=lambda _: None,
        **options,
    )


def make_page(*ids: object, total: object) -> dict[str, Any]:
    return {"tasks": [{"id": number, "annotations": []} for number in ids], "total": total}


@pytest.mark.parametrize(
    ("pages", "message"),
    [
        ([make_page(total=5)], "counts 5 tasks, but page 1 of project 1 has no new ones"),
        ([make_page(1, 2, total=5), make_page(total=5)], "counts 5 tasks, but page 2"),
        ([make_page(1, 2, total=5), make_page(1, 2, total=5)], "counts 5 tasks, but page 2"),
        ([make_page(1, total=10**400)] * 3, "page 2 of project 1 has no new ones"),
        ([make_page(1, total=2), make_page(total=1)] * 20, "deleted while they were read, 10 times"),
        ([make_page([], total=1)], "no Label Studio answers"),
        ([make_page({}, total=1)], "no Label Studio answers"),
        ([make_page(None, total=1)], "no Label Studio answers"),
        ([{"tasks": [3], "total": 1}], "no Label Studio answers"),
    ],
)
def test_pages_that_do_not_add_up_are_refused(pages: list[Any], message: str) -> None:
    remaining = iter(pages)
    client = serve(lambda request: httpx.Response(200, content=json.dumps(next(remaining))))
    with refused(message):
        list(client.iter_tasks(1))


def test_endless_pages_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_studio_server, "MAX_PAGES", 20)
    numbers = itertools.count()
    client = serve(lambda request: httpx.Response(200, json=make_page(next(numbers), total=10**9)))
    with refused("project 1 has more than 20 pages of tasks; export it in Label Studio instead"):
        list(client.iter_tasks(1))


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_long_responses_are_refused(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    monkeypatch.setattr(label_studio_server, "MAX_RESPONSE_BYTES", 3 << 20)
    part = b" " * (1 << 20)

    def respond(_: httpx.Request) -> httpx.Response:
        if encoding == "gzip":
            return httpx.Response(200, headers={"content-encoding": "gzip"}, content=gzip.compress(part * 10))
        return httpx.Response(200, content=itertools.repeat(part))

    with refused("sent more than 3 MB in one response"):
        serve(respond).get_version()


def test_a_server_that_sends_byte_by_byte_runs_out_of_time() -> None:
    """Timeouts of sockets do not end this: every byte arrives in time."""
    stopped = threading.Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Header: ")
            while not stopped.wait(0.02):
                connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,))
        thread.start()
        try:
            address = f"http://127.0.0.1:{listener.getsockname()[1]}"
            with (
                LabelStudioClient(address, Token(stub.LEGACY), timeout=0.5) as client,
                refused(r"did not finish within 0.5 seconds; .*\(--timeout\)"),
            ):
                client.get_version()
        finally:
            stopped.set()
            thread.join()


def test_waiting_ends_with_the_time() -> None:
    waits: list[float] = []
    client = LabelStudioClient(
        "http://127.0.0.1:8080",
        Token(stub.LEGACY),
        timeout=5,
        wait=waits.append,
        transport=httpx.MockTransport(lambda request: httpx.Response(503, headers={"retry-after": "1000"})),
    )
    with refused("was busy 5 times"):
        client.get_project(1)
    assert len(waits) == 4
    assert max(waits) <= 5


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_times_that_are_refused(timeout: float) -> None:
    with refused("timeout must be a positive number of seconds", UsageError):
        serve(lambda request: httpx.Response(200), timeout=timeout)


@pytest.mark.parametrize("location", ["http://[", "//[x", "\x7f", "http://example.com:99999999/"])
def test_redirects_to_nowhere_are_refused(location: str) -> None:
    with pytest.raises(label_studio_server.ServerError):
        serve(lambda request: httpx.Response(302, headers={"location": location})).get_project(1)


@pytest.mark.parametrize("expiry", [10**400, -(10**400), float("inf"), "soon", None, True])
def test_access_tokens_with_any_expiry_are_used(expiry: Any) -> None:
    claims = base64.urlsafe_b64encode(json.dumps({"token_type": "access", "exp": expiry}).encode()).decode().rstrip("=")

    def respond(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"access": f"e30.{claims}.x", "id": 1})

    client = LabelStudioClient(
        "http://127.0.0.1:8080", Token(stub.PERSONAL), transport=httpx.MockTransport(respond), wait=lambda _: None
    )
    assert client.get_project(1)["id"] == 1


@pytest.mark.parametrize("rows", [3, "text", {"a": 1}, [3, None], None])
def test_lists_of_projects_of_other_types_are_ignored(rows: Any) -> None:
    def respond(request: httpx.Request) -> httpx.Response:
        is_list = request.url.path == "/api/projects/"
        return httpx.Response(200, json={"results": rows}) if is_list else httpx.Response(404, json={"detail": "none"})

    with refused("there is no project 7 .*the token sees no project"):
        serve(respond).get_project(7)


@pytest.mark.parametrize("created", ["many", [], 1e308, None, {}])
def test_counts_of_other_types_are_ignored(created: Any) -> None:
    client = serve(lambda request: httpx.Response(200, json={"created": created}))
    assert client.add_predictions(1, [{"task": 1}]) == 0
