"""Status page, also in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

HOSTILE = "<img src='https://example.com/x'><script>document.title='run'</script>"
TOKEN = "a-token-of-sixteen-or-more"


def page(service: Any, **params: Any) -> str:
    response = service.ask("GET", "/", token=None, params=params, headers=service.log_in())
    assert response.status_code == 200, response.text
    assert response.headers["cache-control"] == "no-store"
    return response.text


def test_page_without_votes(service: Any) -> None:
    assert "Waiting for votes" in page(service)


def test_page_shows_progress(service: Any, votes: Any) -> None:
    service.post("/votes", votes)
    html = page(service)
    assert "No fit to all votes yet" in html
    assert ">Accuracy</th>" in html, "there are no intervals before the first calibration"
    assert f"{len(votes):,} votes and changes received since the start" in html
    service.post("/refit")
    html = page(service)
    assert ">Accuracy (90 % interval)</th>" in html
    assert f"<strong>{len(votes):,}</strong>" in html
    assert f"Last fit: dawid-skene on {len(votes):,} votes" in html
    assert "of the labels" in html
    assert '<span class="flag">spammer</span>' in html
    assert "All 12 workers." in html


@pytest.mark.slow
def test_hostile_names_are_escaped(service: Any) -> None:
    service.post("/votes", [{"question": HOSTILE, "task": HOSTILE, "worker": HOSTILE, "label": HOSTILE}])
    service.post("/votes", {"question": "other", "task": "t", "worker": "w", "label": "x"})
    html = page(service, question=HOSTILE)
    assert "<script>document" not in html
    assert "<img" not in html


def test_full_report(service: Any, votes: Any) -> None:
    service.post("/votes", votes)
    response = service.ask("GET", "/report", token=None, headers=service.log_in())
    assert response.status_code == 200
    assert "Recommended next steps" in response.text
    assert 'content="wisecrowd' in response.text


@pytest.fixture
def address(service: Any, run_server: Any) -> Iterator[str]:
    """Return the URL of the service, which runs in a thread."""
    with run_server(service.app) as address:
        yield address


def test_in_a_browser(browser: Any, address: str, service: Any, votes: Any) -> None:
    service.post("/votes", votes)
    service.post("/votes", [{"question": HOSTILE, "task": HOSTILE, "worker": HOSTILE, "label": HOSTILE}])
    service.post("/refit", question="votes")
    browser.get_log("browser")
    browser.get(f"{address}/?token={TOKEN}")
    assert browser.current_url == f"{address}/"  # the token does not appear in the history or in screenshots
    assert browser.title == "wisecrowd: votes"
    rows = browser.find_elements("css selector", "#worker-table tbody tr")
    assert len(rows) == 12
    assert len(browser.find_elements("css selector", "#next-table tbody tr")) == 20
    browser.find_element("css selector", "nav li:nth-child(2) a").click()
    assert browser.find_element("css selector", "h1").text == HOSTILE
    assert browser.title == f"wisecrowd: {HOSTILE}"
    width = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert width[0] <= width[1]
    browser.get(f"{address}/")
    metrics = {"width": 390, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    edges = browser.execute_script(
        "return Array.from(document.querySelectorAll('#next-table thead th, #next-table td'),"
        " cell => cell.getBoundingClientRect().right)"
    )
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert max(edges) <= 390, "no column is cut off on a phone"
    quiet = [entry for entry in browser.get_log("browser") if "favicon" not in entry["message"]]
    assert quiet == []
    browser.delete_all_cookies()


def test_token_header_opens_pages(service: Any, votes: Any) -> None:
    response = service.ask("GET", "/")
    assert response.status_code == 200
    assert "http://service/votes" in response.text  # where this service is
    service.post("/votes", {**votes[0], "question": "a&b"})
    response = service.ask("GET", "/", token=None, params={"token": TOKEN, "question": "a&b"})
    assert response.headers["location"] == "/?question=a%26b"


def test_warning_about_unsettled_labels(service: Any, votes: Any) -> None:
    service.post("/votes", votes)
    service.post("/refit")
    state = service.coordinator.question()
    assert "not settled" not in page(service)  # all votes were new, and labels had to change
    state.n_new_votes = 20
    for changed, is_said in ((0.002, False), (0.02, True)):
        state.changed_share = changed
        assert ("not settled" in page(service)) == is_said
