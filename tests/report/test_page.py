"""Escaping of data and the content policy of the page."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest

import wisecrowd as wc
from wisecrowd import report

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<img src=x onerror=alert(3)>",
    '" onmouseover="alert(4)" x=\'',
    "{{ 7 * 7 }}{% for x in y %}",
    '=HYPERLINK("http://example.com", "click")',
    "line\nbreak\ttab\x00nul\x1b[31m",
    "\u202eright-to-left override\u202c",
    "שלום עולם",
    "a\u2028b\u2029c",
    "x" * 10_000,
    "&lt;b&gt; &amp;",
    "]]> --> <!--",
    "\ud800 alone",
]


@pytest.fixture(scope="module")
def hostile() -> report.Report:
    """Page of a crowd whose names, texts and title are hostile."""
    rows = [
        (f"{task}{n}", worker, HOSTILE[(n + (place % 4 == 0)) % len(HOSTILE)])
        for n, task in enumerate(HOSTILE)
        for place, worker in enumerate(HOSTILE)
        if "\ud800" not in worker + task + HOSTILE[n] + HOSTILE[(n + 1) % len(HOSTILE)]
    ]
    texts = {f"{task}{n}": HOSTILE[n - 3] for n, task in enumerate(HOSTILE[:-1])}
    return report.build(
        wc.Crowd.from_triples(rows), texts=texts, title=HOSTILE[0] + HOSTILE[-1], command=HOSTILE[1] + HOSTILE[-1]
    )


@pytest.mark.slow
def test_hostile_names_are_escaped(hostile: report.Report, page: Any, page_of: Any) -> None:
    harmless, page = page, page_of(hostile.html)
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in harmless.tags}
    scripts = [attributes for tag, attributes in page.tags if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "data"}, {}]
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")]
        assert not {"style", "src", "srcdoc", "srcset", "action", "formaction"} & set(attributes)
        assert (attributes.get("href") or "#").startswith("#")
    names = page.workers
    for text in HOSTILE[:6]:
        assert text in names
    assert "line\\nbreak\\ttab\\x00nul\\x1b[31m" in names
    assert any(name.startswith("\\u202eright-to-left") for name in names)
    assert "שלום עולם" in names
    assert "a\\u2028b\\u2029c" in names
    assert any(name.startswith("xxx") and name.endswith("xxx (10,000 characters)") for name in names)


def test_control_characters_and_long_texts_are_removed(hostile: report.Report) -> None:
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2028\u2029\ud800-\udfff]", hostile.html)
    assert "x" * 200 not in hostile.html
    assert "{{ 7 * 7 }}" in html.unescape(hostile.html)
    assert "49{%" not in hostile.html


def test_script_data_cannot_end_the_element(hostile: report.Report, page_of: Any) -> None:
    raw = re.search(r'<script type="application/json" id="data">(.*?)</script>', hostile.html, re.DOTALL)
    assert raw is not None
    assert not set("<>&") & set(raw.group(1))
    assert raw.group(1).isascii()
    assert "<script>alert(1)</script>" in [worker["name"] for worker in page_of(hostile.html).data["workers"]]


def test_policy_allows_only_the_own_script_and_style(hostile: report.Report) -> None:
    import base64
    import hashlib

    policy = html.unescape(re.search(r'Security-Policy" content="(.*?)"', hostile.html).group(1))  # type: ignore[union-attr]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in policy
    for kind, tag in (("script-src", "script"), ("style-src", "style")):
        text = re.search(rf"<{tag}>(.*?)</{tag}>", hostile.html, re.DOTALL).group(1)  # type: ignore[union-attr]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[kind] == f"'sha256-{digest}'"
    assert not re.search(r"url\(|@import|https?:", re.search(r"<style>(.*?)</style>", hostile.html, re.DOTALL).group(1))  # type: ignore[union-attr]
