"""The status page: what people see, in a browser too."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

HOSTILE = "<img src='https://example.com/x'><script>document.title='run'</script>"
TOKEN = "a-token-of-sixteen-or-more"


def page(service: Any, **params: Any) -> str:
    told = service.ask("GET", "/", token=None, params=params, headers={"Cookie": f"wisecrowd={TOKEN}"})
    assert told.status_code == 200, told.text
    assert told.headers["cache-control"] == "no-store"
    return told.text


def test_it_waits_for_votes(service: Any) -> None:
    assert "Waiting for votes" in page(service)


def test_it_tells_how_it_stands(service: Any, votes: Any) -> None:
    service.post("/votes", votes)
    assert "No fit to all votes yet" in page(service)
    service.post("/refit")
    told = page(service)
    assert f"<strong>{len(votes):,}</strong>" in told
    assert f"Last fit: dawid-skene on {len(votes):,} votes" in told
    assert "of the labels" in told
    assert '<span class="flag">spammer</span>' in told
    assert "All 12 workers." in told


def test_names_do_not_run(service: Any) -> None:
    service.post("/votes", [{"question": HOSTILE, "task": HOSTILE, "worker": HOSTILE, "label": HOSTILE}])
    service.post("/votes", {"question": "other", "task": "t", "worker": "w", "label": "x"})
    told = page(service, question=HOSTILE)
    assert "<script>document" not in told
    assert "<img" not in told


def test_the_link_becomes_a_cookie(service: Any) -> None:
    told = service.ask("GET", "/", token=None, params={"token": TOKEN})
    assert told.status_code == 303
    cookie = told.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert service.ask("GET", "/", token=None, params={"token": "wrong"}).status_code == 401
    # The cookie opens pages alone: what a page of somebody else sends in a browser's name is refused.
    told = service.ask("POST", "/votes", token=None, json={"task": "t", "worker": "w", "label": "x"},
                       headers={"Cookie": f"wisecrowd={TOKEN}"})  # fmt: skip
    assert told.status_code == 401


def test_the_whole_report(service: Any, votes: Any) -> None:
    service.post("/votes", votes)
    told = service.ask("GET", "/report", token=None, headers={"Cookie": f"wisecrowd={TOKEN}"})
    assert told.status_code == 200
    assert "Recommended next steps" in told.text
    assert 'content="wisecrowd' in told.text


@pytest.fixture
def address(service: Any) -> Iterator[str]:
    """The service on a port, in a thread of this process."""
    import uvicorn

    from wisecrowd.service.server import bind_socket

    bound_socket, address = bind_socket("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(service.app, log_level="warning", access_log=False, lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound_socket]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield address
    server.should_exit = True
    thread.join()


def test_in_a_browser(browser: Any, address: str, service: Any, votes: Any) -> None:
    service.post("/votes", votes)
    service.post("/votes", [{"question": HOSTILE, "task": HOSTILE, "worker": HOSTILE, "label": HOSTILE}])
    service.post("/refit", question="votes")
    browser.get_log("browser")
    browser.get(f"{address}/?token={TOKEN}")
    assert browser.current_url == f"{address}/"  # the token is in no history and no picture
    assert browser.title == "wisecrowd: votes"
    rows = browser.find_elements("css selector", "#worker-table tbody tr")
    assert len(rows) == 12
    assert len(browser.find_elements("css selector", "#next-table tbody tr")) == 20
    browser.find_element("css selector", "nav li:nth-child(2) a").click()
    assert browser.find_element("css selector", "h1").text == HOSTILE
    assert browser.title == f"wisecrowd: {HOSTILE}"
    width = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert width[0] <= width[1]
    quiet = [entry for entry in browser.get_log("browser") if "favicon" not in entry["message"]]
    assert quiet == []
    browser.delete_all_cookies()


def test_the_token_opens_pages_in_a_header_too(service: Any, votes: Any) -> None:
    told = service.ask("GET", "/")
    assert told.status_code == 200
    assert "http://service/votes" in told.text  # where this service is
    service.post("/votes", {**votes[0], "question": "a&b"})
    told = service.ask("GET", "/", token=None, params={"token": TOKEN, "question": "a&b"})
    assert told.headers["location"] == "/?question=a%26b"


def test_it_says_when_labels_are_not_settled(service: Any, votes: Any) -> None:
    service.post("/votes", votes)
    service.post("/refit")
    state = service.coordinator.question()
    assert "not settled" not in page(service)  # all votes were new, and labels had to change
    state.n_new_votes = 20
    for changed, is_said in ((0.002, False), (0.02, True)):
        state.changed_share = changed
        assert ("not settled" in page(service)) == is_said
