"""The review page: its requests, its protection, and its use in a browser with nothing but a keyboard."""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wisecrowd as wc
from wisecrowd.diagnose.assessment import assess_crowd

pytest.importorskip("fastapi", reason="the extra serve is not installed")
import httpx
import pandas as pd

from wisecrowd.service.review_app import CSRF_HEADER, ReviewSession, create_review_app
from wisecrowd.service.review_decisions import DecisionLog
from wisecrowd.service.review_queue import ReviewQueue, find_disputed_tasks

TOKEN = "a-token-of-sixteen-or-more"
HOSTILE = "<img src='https://example.com/x'><script>document.title='run'</script>"


def build_session(folder: Path, n_classes: int = 3, **more: Any) -> ReviewSession:
    kinds = ["expert"] * 3 + ["noisy(0.6)"] * 5
    votes = wc.simulate_crowd(30, workers=kinds, n_classes=n_classes, votes_per_task=4, random_state=2).crowd.to_frame()
    crowd = wc.Crowd.from_frame(votes.replace({"worker": {"w3": HOSTILE}, "label": {"c1": f"c1 {HOSTILE}"}}))
    assessment = assess_crowd(crowd)
    queue = ReviewQueue(
        assessment=assessment, tasks=find_disputed_tasks(crowd, assessment.labels, 4),
        texts=pd.Series({task: f"Text of {task}. {HOSTILE}" for task in crowd.tasks}), images=more.pop("images", None),
    )  # fmt: skip
    return ReviewSession(queue=queue, log=DecisionLog(folder / "checked.csv"), title=HOSTILE, reviewer="Maria", **more)


class Page:
    """Client of the review page, with the session and the secret of a browser."""

    def __init__(self, session: ReviewSession) -> None:
        self.session, self.app = session, create_review_app(session, TOKEN)
        opened = self.ask("GET", "/", params={"token": TOKEN})
        assert (opened.status_code, opened.headers["location"]) == (303, "/")
        self.cookie = {"Cookie": opened.headers["set-cookie"].split(";")[0]}
        page = self.ask("GET", "/", headers=self.cookie)
        self.html, self.policy = page.text, page.headers["content-security-policy"]
        data = json.loads(re.search(r'id="data">(.*?)</script>', self.html)[1])  # type: ignore[index]
        self.headers = {**self.cookie, CSRF_HEADER: data["secret"]}

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://review") as client:
                return await client.request(method, path, **more)

        return asyncio.run(send())

    def get(self, path: str) -> Any:
        response = self.ask("GET", path, headers=self.cookie)
        assert response.status_code == 200, response.text
        return response.json()

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self.ask("POST", path, json=body, headers=self.headers)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[ReviewSession]:
    session = build_session(tmp_path)
    yield session
    session.log.close()


@pytest.fixture
def page(session: ReviewSession) -> Page:
    return Page(session)


def test_decisions_skips_and_undo(page: Page) -> None:
    names = page.session.queue.names
    answer = page.post("/decisions", number=1, truth="c0", reviewer=" Maria ", note="clear\n", saw_votes=True)
    assert answer.json() == {"states": "odoo", "can_undo": True}
    assert page.post("/decisions", number=2, truth=None, reviewer="Maria").json()["states"] == "odso"
    assert page.get("/tasks/1")["truth"] == "c0"
    assert page.get("/tasks/1")["note"] == "clear"
    row = page.session.log.path.read_text().splitlines()[1].split(",")
    assert row[:3] == [names[1], "c0", "Maria"]
    assert row[4:] == ["true", "clear"]
    assert page.post("/undo").json() == {"states": "odoo", "can_undo": True, "number": 2}
    assert page.post("/undo").json() == {"states": "oooo", "can_undo": False, "number": 1}
    assert page.post("/undo").json()["number"] is None


def test_requests_of_strangers_are_refused(page: Page) -> None:
    body = {"number": 0, "truth": "c0", "reviewer": "eve"}
    for path in ("/", "/tasks/0", "/tasks/0/votes", "/tasks/0/image", "/table", "/export"):
        assert page.ask("GET", path).status_code == 401, path
    assert page.ask("GET", "/", params={"token": "wrong"}).status_code == 401
    stolen = {CSRF_HEADER: page.headers[CSRF_HEADER]}
    assert page.ask("POST", "/decisions", json=body, headers=stolen).status_code == 401, "no session"
    assert page.ask("POST", "/decisions", json=body, headers=page.cookie).status_code == 403, "no secret"
    other = {**page.headers, CSRF_HEADER: "guess"}
    assert page.ask("POST", "/decisions", json=body, headers=other).status_code == 403, "wrong secret"
    for site in ("cross-site", "same-site", "none"):
        foreign = {**page.headers, "Sec-Fetch-Site": site}
        assert page.ask("POST", "/decisions", json=body, headers=foreign).status_code == 403, site
    form = {**page.headers, "Content-Type": "application/x-www-form-urlencoded"}
    assert page.ask("POST", "/decisions", content=json.dumps(body), headers=form).status_code == 403, "a form"
    assert page.ask("POST", "/undo", json={}, headers=page.cookie).status_code == 403
    assert page.ask("GET", "/decisions", headers=page.headers).status_code == 405
    assert page.session.log.decisions == {}


@pytest.mark.parametrize(
    "change",
    [
        {"number": 4}, {"number": -1}, {"number": "x"}, {"truth": ""}, {"truth": " "}, {"truth": "a\0"}, {"truth": 3},
        {"reviewer": " "}, {"reviewer": "x" * 101}, {"note": "x" * 10_001}, {"note": "\0"}, {"more": 1},
    ],
)  # fmt: skip
def test_invalid_decisions_are_refused(page: Page, change: dict[str, Any]) -> None:
    response = page.post("/decisions", **{"number": 0, "truth": "c0", "reviewer": "Maria", **change})
    assert response.status_code in (404, 422), response.text
    assert isinstance(response.json()["detail"], str), "the page shows it"
    assert page.session.log.decisions == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(), max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
FIELDS = st.sampled_from(["number", "truth", "reviewer", "note", "saw_votes", "more\ud800"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.dictionaries(FIELDS, JSON, max_size=6) | JSON, raw=st.none() | st.binary(max_size=20))
def test_no_request_makes_the_page_fail(page: Page, body: Any, raw: bytes | None) -> None:
    content = json.dumps(body).encode() if raw is None else raw
    headers = {**page.headers, "Content-Type": "application/json"}
    for path in ("/decisions", "/undo"):
        response = page.ask("POST", path, content=content, headers=headers)
        assert response.status_code in (200, 400, 404, 422), response.text
    valid = {"number": 0, "truth": "c0", "reviewer": "Maria"}
    if isinstance(body, dict):
        response = page.ask("POST", "/decisions", content=json.dumps(valid | body).encode(), headers=headers)
        assert response.status_code in (200, 400, 404, 422), response.text


def test_large_requests_are_refused(page: Page) -> None:
    assert page.post("/decisions", number=0, truth="c0", reviewer="x", note="x" * 200_000).status_code == 413


def test_votes_of_an_audit_are_hidden_until_asked_for(tmp_path: Path) -> None:
    session = build_session(tmp_path, is_blind=True)
    page = Page(session)
    assert page.get("/tasks/0").keys().isdisjoint({"votes", "label", "confidence"})
    votes = page.get("/tasks/0/votes")
    assert [set(vote) for vote in votes["votes"]] == [{"worker", "label", "accuracy", "n_votes", "flags"}] * 4
    assert 0 < votes["confidence"] <= 1
    session.log.close()


def test_images_are_encoded_anew(tmp_path: Path) -> None:
    images = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    metadata = images.Exif()
    metadata[0x010E] = "secret place"
    images.new("RGB", (3000, 300), "red").save(tmp_path / "a.jpg", exif=metadata, comment=b"secret place")
    (tmp_path / "b.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>")
    (tmp_path / "c.png").write_bytes(b"\x89PNG\r\n\x1a\n damaged")
    session = build_session(tmp_path)
    paths = {
        name: tmp_path / file for name, file in zip(session.queue.names, ("a.jpg", "b.svg", "c.png"), strict=False)
    }
    session.log.close()
    session = build_session(tmp_path, images=pd.Series(paths))
    page = Page(session)
    assert [page.get(f"/tasks/{number}")["has_image"] for number in range(4)] == [True, True, True, False]
    response = page.ask("GET", "/tasks/0/image", headers=page.cookie)
    assert response.headers["content-type"] == "image/jpeg"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert b"secret" not in response.content
    assert images.open(io.BytesIO(response.content)).size == (1600, 160)
    refusals = [page.ask("GET", f"/tasks/{number}/image", headers=page.cookie) for number in (1, 2, 3)]
    assert [refusal.status_code for refusal in refusals] == [422, 422, 404]
    assert "SVG can contain scripts" in refusals[0].json()["detail"]
    session.log.close()


def test_downloads(tmp_path: Path) -> None:
    files = []

    def export(gold: dict[str, str]) -> tuple[str, str, bytes]:
        files.append(gold)
        return 'ch"e.json', "application/json", b"[]"

    session = build_session(tmp_path, export=export)
    page = Page(session)
    assert page.ask("GET", "/export", headers=page.cookie).status_code == 409
    page.post("/decisions", number=0, truth="c0", reviewer="Maria")
    response = page.ask("GET", "/export", headers=page.cookie)
    assert response.headers["content-disposition"] == 'attachment; filename="ch_e.json"'
    assert files == [{session.queue.names[0]: "c0"}]
    assert page.ask("GET", "/table", headers=page.cookie).text == session.log.path.read_text()
    session.log.close()


def test_warnings_are_at_the_top(tmp_path: Path) -> None:
    session = build_session(tmp_path, warnings=(f"nobody agrees {HOSTILE}",))
    html = Page(session).html
    assert html.index("nobody agrees") < html.index('class="progress"')
    session.log.close()


def test_headers_forbid_everything_else(page: Page) -> None:
    assert "default-src 'none'" in page.policy
    assert "unsafe" not in page.policy
    assert "frame-ancestors 'none'" in page.policy
    assert "<script>document" not in page.html
    assert "<img src='https" not in page.html
    assert page.ask("GET", "/health").status_code == 200


# ---------------------------------------------------------------------- in a browser


@pytest.fixture
def review(browser: Any, tmp_path: Path, run_server: Any) -> Iterator[Any]:
    """Open a review of four tasks; at the end, check that the browser reported no errors and asked nobody else."""
    session = build_session(tmp_path)
    with run_server(create_review_app(session, TOKEN)) as address:
        browser.get_log("browser")
        browser.get_log("performance")
        shape(browser, 1280)
        browser.get(f"{address}/?token={TOKEN}")
        wait_for(browser, "document.getElementById('task').textContent.startsWith('Task 1 of 4')")
        browser.session = session
        yield browser
        assert browser.get_log("browser") == []
        messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
        urls = {one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"}
        assert {url.partition(address)[0] for url in urls if not url.startswith("data:")} == {""}
        browser.delete_all_cookies()
    session.log.close()


def shape(browser: Any, width: int, scheme: str = "light") -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wish = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", wish)


def wait_for(browser: Any, condition: str) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 10, poll_frequency=0.02).until(lambda page: page.execute_script(f"return {condition}"))


def press(browser: Any, *keys: str) -> None:
    """Press keys wherever the focus is."""
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(browser, duration=0).send_keys(*keys).perform()


def wait_for_task(browser: Any, number: int) -> None:
    wait_for(browser, f"document.getElementById('task').textContent.startsWith('Task {number} of 4')")


def wait_for_count(browser: Any, text: str) -> None:
    wait_for(browser, f"document.getElementById('count').textContent === '{text}'")


def accessible_nodes(browser: Any) -> list[tuple[str, str, dict[str, Any]]]:
    """Return role, name and properties of everything that a screen reader finds."""
    nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    return [
        (
            node.get("role", {}).get("value", ""),
            node.get("name", {}).get("value", ""),
            {entry["name"]: entry["value"].get("value") for entry in node.get("properties", ())},
        )
        for node in nodes
        if not node.get("ignored")
    ]


def test_a_whole_review_with_the_keyboard_alone(review: Any) -> None:
    session, names = review.session, review.session.queue.names
    press(review, "2")
    wait_for_task(review, 2)
    assert review.switch_to.active_element.get_attribute("id") == "task", "a screen reader reads the next task"
    press(review, "s")
    wait_for_task(review, 3)
    press(review, "n")
    press(review, "1 of 9, unsure")  # typing a note does not decide anything
    press(review, "\ue00c")  # Escape
    press(review, "1")
    wait_for_task(review, 4)
    press(review, "o")
    press(review, "something else\ue007")  # Enter
    wait_for(review, "!document.getElementById('finished').hidden")
    assert review.find_element("css selector", "#finished-h").text == "No task is left, 1 skipped"
    assert session.log.gold == {
        names[0]: session.queue.classes[1],
        names[2]: session.queue.classes[0],
        names[3]: "something else",
    }
    assert session.log.decisions[names[2]].note == "1 of 9, unsure"
    assert {decision.reviewer for decision in session.log.decisions.values()} == {"Maria"}
    assert all(decision.saw_votes for decision in session.log.decisions.values())
    press(review, "u")  # takes the last decision back
    wait_for(review, "document.getElementById('status').textContent.includes('is undone')")
    assert names[3] not in session.log.gold
    press(review, "\ue012")  # left
    wait_for_task(review, 3)
    pressed = review.find_elements("css selector", ".classes [aria-pressed=true]")
    assert [button.text.splitlines()[-1] for button in pressed] == [session.queue.classes[0]]
    review.refresh()
    wait_for_task(review, 4)
    wait_for_count(review, "2 of 4 settled, 1 skipped")


def test_every_control_is_reached_by_tab_and_has_a_name(review: Any) -> None:
    nodes = accessible_nodes(review)
    controls = [
        (role, name) for role, name, _ in nodes if role in ("button", "textbox", "link", "checkbox", "searchbox")
    ]
    assert all(name for _, name in controls), controls
    assert {name for _, name in controls} >= {"Your name", "Another label", "Save label", "Note", "Skip S", "Undo U"}
    shortcuts = {
        name: facts["keyshortcuts"] for role, name, facts in nodes if role == "button" and "keyshortcuts" in facts
    }
    assert shortcuts == {name: str(place + 1) for place, name in enumerate(review.session.queue.classes)}
    roles = {role for role, _, _ in nodes}
    assert {"banner", "main", "status", "table", "rowheader", "columnheader", "progressbar", "group"} <= roles
    assert ("group", "What is the true label?") in {(role, name) for role, name, _ in nodes}
    headings = [name for role, name, _ in nodes if role == "heading"]
    assert headings == [HOSTILE, headings[1], "What is the true label?", "Votes", "Use the decisions"]
    review.execute_script("document.activeElement.blur()")
    reached = []
    for _ in range(40):
        press(review, "\ue004")  # Tab
        element = review.switch_to.active_element
        reached.append(element.get_attribute("id") or element.text)
    assert set(reached) >= {"reviewer", "other", "other-save", "note", "skip", "previous", "next"}
    assert set(review.session.queue.classes) <= {text.splitlines()[-1] for text in reached if text}


def test_status_is_announced_and_failures_are_alerts(review: Any) -> None:
    press(review, "1")
    wait_for_task(review, 2)
    wait_for(review, "document.getElementById('status').textContent.endsWith('saved. 1 of 4 settled.')")
    field = review.find_element("css selector", "#reviewer")
    field.clear()
    press(review, "\ue00c")
    press(review, "1")
    wait_for(review, "!document.getElementById('alert').hidden")
    assert ("alert", "") in {(role, "") for role, _, _ in accessible_nodes(review)}
    assert "Enter your name first" in review.find_element("css selector", "#alert").text
    assert len(review.session.log.decisions) == 1
    press(review, "Ann\ue00c")
    press(review, "1")
    wait_for_task(review, 3)
    assert not review.find_element("css selector", "#alert").is_displayed()


def test_keys_can_be_turned_off(review: Any) -> None:
    review.execute_script("document.querySelector('details').open = true; document.getElementById('shortcuts').click()")
    press(review, "1")
    press(review, "s")
    assert review.session.log.decisions == {}
    review.find_element("css selector", ".classes button").click()
    wait_for_task(review, 2)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_works_on_a_phone(review: Any, scheme: str) -> None:
    shape(review, 390, scheme)
    widths = review.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert widths[0] <= widths[1]
    table = review.execute_script(
        "const box = document.querySelector('.votes .scroll'); return [box.scrollWidth, box.clientWidth]"
    )
    assert table[0] <= table[1], "no column of the votes is cut off"
    button = review.find_element("css selector", ".classes button")
    assert button.size["height"] >= 44, "as large as a finger"
    button.click()
    wait_for_task(review, 2)
    wait_for_count(review, "1 of 4 settled")
    shape(review, 1280)


def test_hostile_names_are_text(review: Any) -> None:
    assert review.title == HOSTILE
    assert HOSTILE in review.find_element("css selector", "#text").text
    assert review.execute_script("return document.querySelectorAll('img:not(#image)').length") == 0


def test_many_classes_are_found_by_name(browser: Any, tmp_path: Path, run_server: Any) -> None:
    session = build_session(tmp_path, n_classes=12)
    with run_server(create_review_app(session, TOKEN)) as address:
        shape(browser, 1280)
        browser.get(f"{address}/?token={TOKEN}")
        wait_for_task(browser, 1)
        assert len(browser.find_elements("css selector", ".classes kbd")) == 9
        press(browser, "f")
        press(browser, "c11")
        assert [one.text.splitlines()[-1] for one in browser.find_elements("css selector", ".classes button")] == [
            "c11"
        ]
        press(browser, "\ue007")
        wait_for_task(browser, 2)
        assert list(session.log.gold.values()) == ["c11"]
        browser.delete_all_cookies()
    session.log.close()


def test_a_server_that_is_gone_is_reported(browser: Any, tmp_path: Path, run_server: Any) -> None:
    session = build_session(tmp_path)
    with run_server(create_review_app(session, TOKEN)) as address:
        browser.get(f"{address}/?token={TOKEN}")
        wait_for_task(browser, 1)
    press(browser, "1")
    wait_for(browser, "document.getElementById('alert').textContent.startsWith('Not saved')")
    assert browser.find_element("css selector", "#task").text.startswith("Task 1 of 4")
    assert session.log.decisions == {}
    browser.delete_all_cookies()
    session.log.close()
