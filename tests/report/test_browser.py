"""Report in a browser: sorting, filtering, clicking, accessibility and isolation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wisecrowd as wc
from wisecrowd import report

#: Contrast of text that the Web Content Accessibility Guidelines want (AA), for plain and for large text.
PLAIN, LARGE = 4.5, 3.0

HOSTILE = "<img src='https://example.com/x'><script>document.title='run'</script>"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Page with flags, gold labels, texts and hostile names."""
    kinds = ["expert"] * 4 + ["noisy(0.75)"] * 10 + ["spammer", "adversary", "copier(1)"]
    simulated = wc.simulate_crowd(n_tasks=120, workers=kinds, votes_per_task=5, n_classes=3, random_state=4)
    votes = simulated.crowd.to_frame().replace({"worker": {"w05": HOSTILE}, "label": {"c1": f"c1 {HOSTILE}"}})
    texts = {task: f"Look at {task}. {HOSTILE}" for task in simulated.crowd.tasks}
    page = report.build(votes, texts=texts, truth=simulated.truth.replace({"c1": f"c1 {HOSTILE}"}), title=HOSTILE)
    return page.save(tmp_path_factory.mktemp("report") / "page.html").as_uri()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """Open the page; at the end, check that the browser reported no errors and sent no requests."""
    browser.get_log("performance")
    shape(browser, 1200)
    browser.get(address)
    yield browser
    assert browser.get_log("browser") == []
    requested = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = {one["params"]["request"]["url"] for one in requested if one["method"] == "Network.requestWillBeSent"}
    assert urls == {address}


def shape(browser: Any, width: int, scheme: str = "light") -> None:
    """Set the width and the colour scheme of the screen."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wish = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", wish)


def find(page: Any, selector: str) -> Any:
    return page.find_element("css selector", selector)


def column(page: Any, table: str, number: int) -> list[str]:
    """Return the sort keys of the visible rows, from top to bottom."""
    return page.execute_script(
        "return Array.from(document.querySelectorAll(`#${arguments[0]} tbody tr:not([hidden])`),"
        " row => row.cells[arguments[1]].dataset.v ?? row.cells[arguments[1]].innerText)",
        table,
        number,
    )


# ---------------------------------------------------------------------- what it does


def test_click_sorts_a_table_and_sets_aria_sort(page: Any) -> None:
    head = find(page, "#worker-table thead th:nth-child(3)")
    before = sorted(map(float, column(page, "worker-table", 2)))
    head.find_element("css selector", "button").click()
    assert list(map(float, column(page, "worker-table", 2))) == before[::-1]
    assert head.get_attribute("aria-sort") == "descending"
    head.find_element("css selector", "button").click()
    assert list(map(float, column(page, "worker-table", 2))) == before
    assert head.get_attribute("aria-sort") == "ascending"
    name = find(page, "#worker-table thead th:first-child")
    name.find_element("css selector", "button").send_keys("\ue007")  # Enter: the keyboard does what the mouse does
    assert name.get_attribute("aria-sort") == "ascending"
    assert head.get_attribute("aria-sort") is None
    plain = [text for text in column(page, "worker-table", 0) if text.startswith("w")]
    assert plain == sorted(plain)


def test_empty_values_come_last_in_both_orders(page: Any) -> None:
    page.execute_script("document.querySelector('#worker-table tbody tr').cells[2].dataset.v = ''")
    button = find(page, "#worker-table thead th:nth-child(3) button")
    for _ in range(2):
        button.click()
        assert column(page, "worker-table", 2)[-1] == ""


def test_filters_narrow_the_table_and_count(page: Any) -> None:
    total = len(column(page, "worker-table", 0))
    status = find(page, "[data-count=worker-table]")
    find(page, "[data-table=worker-table][data-filter=tag] option[value='+']").click()
    flagged = column(page, "worker-table", 0)
    assert 0 < len(flagged) < total
    assert status.text == f"{len(flagged)} of {total} shown"
    find(page, "[data-table=worker-table][data-filter=tag] option[value='-']").click()
    assert len(column(page, "worker-table", 0)) == total - len(flagged)
    find(page, "[data-table=worker-table][data-filter=tag] option[value='']").click()
    search = find(page, "[data-table=worker-table][data-filter=text]")
    search.send_keys("W03")
    assert column(page, "worker-table", 0) == ["w03"]
    search.clear()
    search.send_keys("<script>")
    assert len(column(page, "worker-table", 0)) == 1
    search.clear()
    find(page, "[data-table=worker-table][data-filter=least]").send_keys("36")
    assert all(float(n) >= 36 for n in column(page, "worker-table", 2))
    assert 0 < len(column(page, "worker-table", 2)) < total
    find(page, "[data-table=task-table][data-filter=text]").send_keys("look at t007")
    assert len(column(page, "task-table", 0)) == 1


def test_click_on_a_worker_shows_the_matrix(page: Any) -> None:
    button = find(page, "#worker-table tbody tr:nth-child(3) button.open")
    place = int(button.get_attribute("data-worker"))
    data = json.loads(page.execute_script("return document.getElementById('data').textContent"))
    button.click()
    card = find(page, "#card")
    assert card.get_attribute("open") is not None
    assert find(page, "#card-name").text == data["workers"][place]["name"] == button.text
    cells = [cell.text for cell in card.find_elements("css selector", "tbody td")]
    assert cells == [f"{share}%" for share in data["workers"][place]["matrix"]]
    counts = [int(cell.text) for cell in card.find_elements("css selector", "tfoot td")]
    assert sum(counts) == data["workers"][place]["n_votes"]
    page.switch_to.active_element.send_keys("\ue00c")  # Escape
    assert card.get_attribute("open") is None
    assert page.switch_to.active_element == button, "the keyboard goes on where it was"


def test_click_on_the_map_shows_the_matrix(page: Any) -> None:
    place = 2
    point = find(page, f"#map [data-worker='{place}']")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", point)
    page.execute_script("arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", point)
    name = find(page, f"#worker-table [data-worker='{place}']").get_attribute("textContent")
    assert find(page, "#card-name").text == name
    find(page, "#card-close").click()


def test_hostile_names_are_text(page: Any) -> None:
    assert page.title == HOSTILE
    assert page.execute_script("return document.querySelectorAll('img').length") == 0
    opener = next(one for one in page.find_elements("css selector", "button.open") if "<img" in one.text)
    opener.click()
    assert find(page, "#card-name").text == opener.text
    assert "<script>" in opener.text
    assert page.title == HOSTILE


# ---------------------------------------------------------------------- who can use it


def test_theme_follows_the_system_and_the_button(page: Any) -> None:
    def paper() -> str:
        return page.execute_script("return getComputedStyle(document.body).backgroundColor")

    light = paper()
    shape(page, 1200, "dark")
    dark = paper()
    assert dark != light
    assert find(page, "#theme").text == "Switch to light"  # says what a click does
    find(page, "#theme").click()
    assert paper() == light
    assert find(page, "#theme").text == "Switch to dark"
    shape(page, 1200, "light")
    find(page, "#theme").click()
    assert paper() == dark


#: Every text that can be seen, with its colour and what it stands on.
TEXTS = """
const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode, element = node.parentElement;
  if (!node.data.trim() || !element.checkVisibility({visibilityProperty: true})) continue;
  const style = getComputedStyle(element);
  if (element.closest('script, style, noscript, title, desc, option, .pic-badge')) continue;
  let below = element, paper = 'rgba(0, 0, 0, 0)';
  while (below && /rgba\\(0, 0, 0, 0\\)|transparent/.test(paper)) {
    paper = getComputedStyle(below).backgroundColor; below = below.parentElement;
  }
  const ink = element.closest('svg') ? style.fill : style.color;
  const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
  found.push([node.data.trim().slice(0, 40), ink, paper, large]);
}
return found;
"""


def luminance(page: Any, colours: set[str]) -> dict[str, float]:
    """Return the relative luminance of colours in the notation of the browser."""
    painted = page.execute_script(
        "const one = document.createElement('canvas').getContext('2d', {willReadFrequently: true});"
        "return arguments[0].map(c => { one.clearRect(0, 0, 1, 1); one.fillStyle = c; one.fillRect(0, 0, 1, 1);"
        " return Array.from(one.getImageData(0, 0, 1, 1).data); })",
        sorted(colours),
    )
    observed = {}
    for colour, (*rgb, _) in zip(sorted(colours), painted, strict=True):
        linear = [c / 255 / 12.92 if c / 255 <= 0.03928 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in rgb]
        observed[colour] = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return observed


def find_weak_texts(page: Any, texts: list[Any]) -> set[tuple[str, str, str]]:
    """Return the texts with too little contrast."""
    light = luminance(page, {colour for _, ink, paper, _ in texts for colour in (ink, paper)})
    weak = set()
    for text, ink, paper, large in texts:
        bright, dim = sorted((light[ink], light[paper]), reverse=True)
        if (bright + 0.05) / (dim + 0.05) < (LARGE if large else PLAIN):
            weak.add((text, ink, paper))
    return weak


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(page: Any, scheme: str) -> None:
    shape(page, 1200, scheme)
    texts = page.execute_script(TEXTS)
    find(page, "button.open").click()
    texts += page.execute_script(TEXTS)
    assert len(texts) > 500
    assert find_weak_texts(page, texts) == set()


def test_controls_have_accessible_names(page: Any) -> None:
    def nameless(where: str) -> list[str]:
        kinds = ("button", "input", "select", "a[href]", "summary", "[tabindex='0']")
        observed = page.find_elements("css selector", ", ".join(f"{where} {kind}" for kind in kinds))
        assert len(observed) >= 2
        return [one.get_attribute("outerHTML")[:80] for one in observed if not one.accessible_name.strip()]

    assert nameless("header") + nameless("main") == []
    find(page, "button.open").click()
    assert nameless("#card") == []
    ids = page.execute_script("return Array.from(document.querySelectorAll('[id]'), one => one.id)")
    assert len(ids) == len(set(ids))
    named = page.execute_script(
        "return Array.from(document.querySelectorAll('[aria-labelledby]'), one => one.getAttribute('aria-labelledby'))"
    )
    assert {part for one in named for part in one.split()} <= set(ids)


def test_tables_have_captions_and_scopes(page: Any) -> None:
    tables = page.find_elements("css selector", "main table")
    assert len(tables) >= 8
    for table in tables:
        assert table.find_element("css selector", "caption").get_attribute("textContent").strip()
        assert not table.find_elements("css selector", "th:not([scope])")
    headings = page.execute_script("return Array.from(document.querySelectorAll('h1, h2, h3'), one => one.tagName)")
    assert headings[0] == "H1"
    assert headings.count("H1") == 1


def test_keyboard_can_skip_to_the_report(page: Any) -> None:
    find(page, "body").send_keys("\ue004")  # Tab
    first = page.switch_to.active_element
    assert first.text == "Skip to the report"
    assert first.location["x"] >= 0
    assert page.execute_script("return getComputedStyle(arguments[0]).outlineStyle", first) != "none"


def test_a_wide_screen_is_used(page: Any) -> None:
    shape(page, 1280)
    for selector in (".sentences", ".advice", "#worker-table", ".map-and-groups"):
        assert find(page, selector).size["width"] > 0.9 * 1280, selector
    script = (
        "const box = document.querySelector('#worker-table').parentElement; return box.scrollWidth - box.clientWidth"
    )
    assert page.execute_script(script) <= 1, "no column of the workers is cut off"


def test_a_phone_shows_all_columns(page: Any) -> None:
    """Rows are cards: every figure is within the screen, beside the name of its column, and flags have their reason."""
    shape(page, 390)
    edges, labels = page.execute_script(
        "const cells = Array.from(document.querySelectorAll('#worker-table tbody td:not(.empty)'));"
        "return [cells.map(cell => cell.getBoundingClientRect().right),"
        " cells.map(cell => getComputedStyle(cell, '::before').content)]"
    )
    assert max(edges) <= 390
    assert {'"Votes"', '"Accuracy"', '"Reliability"', '"Flags and reasons"'} <= set(labels)
    reason = find(page, "#worker-table tbody .why:not(.empty)")
    assert reason.is_displayed()
    assert "votes" in reason.text
    find(page, "#worker-table thead th:nth-child(3) button").click()  # cards can be sorted, too
    counts = [float(text) for text in column(page, "worker-table", 2)]
    assert counts == sorted(counts, reverse=True)


@pytest.mark.parametrize("width", [375, 768])
def test_narrow_screens_scroll_tables_only(page: Any, width: int) -> None:
    shape(page, width)
    wide = page.execute_script("return document.documentElement.scrollWidth")
    assert wide <= width
    find(page, "button.open").click()
    assert find(page, "#card").size["width"] <= width


def test_printed_page_has_all_rows_on_white(page: Any) -> None:
    shape(page, 1200, "dark")
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert page.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.execute_script("return getComputedStyle(document.querySelector('.tall')).maxHeight") == "none"
    assert not find(page, "nav").is_displayed()
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_small_page_opens(browser: Any, tmp_path: Path) -> None:
    rows = [(f"t{n // 3}", ["ann", "bob", "cy"][n % 3], "cat" if n % 4 else "dog") for n in range(10)]
    path = report.build(wc.Crowd.from_triples(rows), compare=False).save(tmp_path / "ten.html")
    browser.get(path.as_uri())
    assert browser.title == "Crowd report"
    assert len(browser.find_elements("css selector", "#worker-table tbody tr")) == 3
    assert browser.get_log("browser") == []


def make_span_page() -> report.Report:
    crowd = wc.simulate_spans(n_tasks=15, n_workers=11, votes_per_task=10, random_state=0).crowd
    frame = crowd.to_frame().replace({"worker": {"w3": HOSTILE}, "label": {"c1": HOSTILE}})
    texts = {task: [HOSTILE, *(f"word{number}" for number in range(200))] for task in crowd.tasks}
    return report.build(wc.SpanCrowd.from_frame(frame), texts=texts, compare=False)


def make_box_page() -> report.Report:
    crowd = wc.simulate_boxes(n_tasks=15, n_workers=11, votes_per_task=10, random_state=0).crowd
    return report.build(wc.BoxCrowd.from_frame(crowd.to_frame().replace({"worker": {"w3": HOSTILE}})), compare=False)


def make_text_page() -> report.Report:
    crowd = wc.simulate_texts(n_tasks=15, n_workers=6, accuracy=0.6, words_per_text=30, random_state=0).crowd
    frame = crowd.to_frame()
    return report.build(wc.TextCrowd.from_frame(frame.assign(text=HOSTILE + " " + frame["text"])), compare=False)


@pytest.mark.parametrize("make_page", [make_span_page, make_box_page, make_text_page])
def test_pages_of_objects_and_texts(browser: Any, tmp_path: Path, make_page: Any) -> None:
    address = make_page().save(tmp_path / "page.html").as_uri()
    for width, scheme in ((1280, "light"), (390, "dark")):
        shape(browser, width, scheme)
        browser.get(address)
        assert browser.title == "Crowd report"
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert len(browser.find_elements("css selector", ".pic-card")) == 12
        if width == 1280:  # flags are in sight, however many columns follow
            head = browser.find_element("css selector", "#workers-table thead th:nth-child(2)")
            assert head.text.startswith("Flags and reasons")
            assert head.rect["x"] + head.rect["width"] <= width
        assert find_weak_texts(browser, browser.execute_script(TEXTS)) == set()
    assert browser.get_log("browser") == []
