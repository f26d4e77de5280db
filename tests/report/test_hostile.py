"""Hostile names change nothing on the page except the names."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd import report
from wisecrowd.utils.text import MAX_TEXT_CHARS, display_name, quote_name

GROUPS = json.loads((Path(__file__).parents[1] / "hostile.json").read_text(encoding="utf-8"))
LONG = "x" * 10_000
HOSTILE = sorted([*(text for texts in GROUPS.values() for text in texts), LONG])
CLASSES = HOSTILE[::9]
#: The same names for harmless people, in the same order.
HARMLESS = {text: f"name {place:03d}" for place, text in enumerate(HOSTILE)}


def votes() -> list[tuple[str, str, str]]:
    rng, rows = np.random.default_rng(3), []
    for i, task in enumerate(HOSTILE):
        for j in rng.choice(len(HOSTILE), 8, replace=False):
            label = 0 if j % 9 == 0 else i + (rng.random() < 0.3) + (j % 5 == 0)
            rows.append((task, HOSTILE[j], CLASSES[int(label) % len(CLASSES)]))
    return rows


def build(called: dict[str, str]) -> report.Report:
    """Build the page with replaced names."""
    triples = [(called[task], called[worker], called[label]) for task, worker, label in votes()]
    texts = {called[task]: called[text] for task, text in zip(HOSTILE, HOSTILE[::-1], strict=True)}
    truth = {called[task]: called[CLASSES[n % len(CLASSES)]] for n, task in enumerate(HOSTILE) if n % 2}
    first = called[HOSTILE[60]]
    return report.build(
        wc.Crowd.from_triples(triples), texts=texts, truth=truth, title=first, command=first, compare=False
    )


@pytest.fixture(scope="module")
def hostile() -> report.Report:
    return build({text: text for text in HOSTILE})


@pytest.mark.slow
def test_names_change_nothing_but_names(hostile: report.Report, page_of: Any) -> None:
    page, other = page_of(hostile.html), page_of(build(HARMLESS).html)
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in other.tags]
    for (tag, actual), (_, expected) in zip(page.tags, other.tags, strict=True):
        assert list(actual) == list(expected)
        if actual.get("name") == "wisecrowd-votes":
            continue  # the digest of the votes, which depends on names
        for name in set(actual) - {"data-text"}:
            assert actual[name] == expected[name], (tag, name)
    for table in ("worker-table", "task-table", "class-table"):
        assert page.captions[table] == other.captions[table]


@pytest.mark.slow
def test_all_names_are_shown(hostile: report.Report, page_of: Any) -> None:
    page = page_of(hostile.html)
    for table, column in (("worker-table", 0), ("task-table", 0)):
        shown = [row[column].text for row in page.tables[table][1:]]
        assert sorted(shown) == sorted(display_name(text) for text in HOSTILE)
        assert all(text.strip() for text in shown)
    data = page.data
    assert sorted(worker["name"] for worker in data["workers"]) == sorted(display_name(text) for text in HOSTILE)
    assert len(data["classes"]) == len(CLASSES)


def test_no_control_characters_remain(hostile: report.Report) -> None:
    joiners = "\u200c\u200d"
    obeyed = re.findall(
        "[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2067\ufeff\ufff9-\uffff]",
        hostile.html,
    )
    assert obeyed == []
    unclosed = hostile.html.count("\u2068") - hostile.html.count("\u2069")
    assert unclosed == 0, "what is isolated is let go again"
    assert set(re.findall(f"[{joiners}]", hostile.html)) <= set(joiners)
    raw = re.search(r'id="data">(.*?)</script>', hostile.html, re.DOTALL)
    assert raw is not None
    assert raw.group(1).isascii()
    assert "7 * 7" in html.unescape(hostile.html)
    assert ">49<" not in hostile.html


@pytest.mark.slow
def test_long_names_are_shortened(hostile: report.Report) -> None:
    assert LONG[:MAX_TEXT_CHARS] not in hostile.html
    endless = {text: f"{(text * 10_000 or ' ' * 10_000)[:9_996]}{place:04d}" for place, text in enumerate(HOSTILE)}
    page = build(endless)
    parts = sum(map(len, endless.values()))
    # Each name stands in the rows of a task, of a worker and of what others voted; a text of a task is longer.
    assert len(page.html) - len(hostile.html) < parts
    assert page.html.count("(10,000 characters)") > 3 * len(HOSTILE)
    assert max(map(len, re.findall(r"<bdi[^>]*>(.*?)</bdi>", page.html, re.DOTALL))) < 10 * MAX_TEXT_CHARS


def test_invisible_names_are_quoted() -> None:
    assert [display_name(text) for text in ("", " ", "\u200d", "a", "\n")] == ["‘’", "‘ ’", r"‘\u200d’", "a", r"\n"]
    assert quote_name("") == "“\u2068‘’\u2069”"


def test_browser_runs_no_name(hostile: report.Report, browser: Any, tmp_path: Path) -> None:
    path = hostile.save(tmp_path / "page.html")
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(path.as_uri())
    names = browser.execute_script(
        "return Array.from(document.querySelectorAll('#worker-table tbody th'), th => th.textContent)"
    )
    assert sorted(names) == sorted(display_name(text) for text in HOSTILE)
    count = "return document.querySelectorAll(arguments[0]).length"
    assert browser.execute_script(count, "script") == 2
    assert browser.execute_script(count, "img, iframe, object, embed, link, form, base, textarea") == 0
    opened = browser.execute_script(
        "const said = []; for (const one of document.querySelectorAll('#worker-table button.open'))"
        " { one.click(); said.push(document.getElementById('card-name').textContent);"
        " document.getElementById('card').close(); } return said"
    )
    assert opened == names
    for head in browser.execute_script(
        "return Array.from(document.querySelectorAll('#worker-table thead button, #task-table thead button'))"
    ):
        browser.execute_script("arguments[0].click()", head)
    # Nothing sticks out of the page to the side, however names are written.
    assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    assert browser.get_log("browser") == []
    requested = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = {one["params"]["request"]["url"] for one in requested if one["method"] == "Network.requestWillBeSent"}
    assert urls == {path.as_uri()}
