"""Images of tasks: reading, and their place on the page."""

from __future__ import annotations

import base64
import html
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd import report
from wisecrowd.errors import InputError, UsageError
from wisecrowd.io.problems import MissingColumn
from wisecrowd.report import tasks as _tasks
from wisecrowd.report import thumbnails as _thumbnails
from wisecrowd.report.images import read_images

DrawImage = Callable[..., bytes]
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
#: The smallest GIF, one pixel.
PIXEL = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")


@pytest.fixture(scope="module")
def crowd() -> Any:
    return wc.simulate_crowd(n_tasks=12, n_workers=5, votes_per_task=3, n_classes=2, random_state=0).crowd


def pictures(page: Any) -> list[dict[str, str | None]]:
    return [attributes for tag, attributes in page.tags if tag == "img"]


def policy(text: str) -> dict[str, str]:
    result = re.search(r'Security-Policy" content="(.*?)"', text)
    assert result is not None
    return dict(rule.split(" ", 1) for rule in html.unescape(result.group(1)).split("; "))


# ---------------------------------------------------------------------- where they are


def test_folder_file_names_are_task_ids(tmp_path: Path) -> None:
    for name in ("t1.png", "t2.JPG", "img.003.webp", "t1.txt", ".t4.png", "t5.svg"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "t6.png.d").mkdir()
    result = read_images(tmp_path)
    assert set(result.index) == {"t1", "t1.png", "t2", "t2.JPG", "img.003", "img.003.webp"}
    assert result["t2"] == result["t2.JPG"] == tmp_path / "t2.JPG"


def test_ambiguous_stems_need_full_names(tmp_path: Path) -> None:
    for name in ("t1.png", "t1.jpg", "t2.png"):
        (tmp_path / name).write_bytes(b"")
    assert set(read_images(tmp_path).index) == {"t1.png", "t1.jpg", "t2", "t2.png"}


def test_folder_without_images_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t1.svg").write_bytes(SVG)
    with pytest.raises(InputError, match="SVG can contain scripts and is never shown"):
        read_images(tmp_path)


def test_table_paths_are_relative_to_its_folder(tmp_path: Path) -> None:
    table = tmp_path / "tasks.csv"
    inside = tmp_path / "absolute.png"
    table.write_text(f"task,path\nt1,photos/a.png\nt2,./photos/../b.png\nt3,\nt4,{inside}\n", encoding="utf-8")
    result = read_images(table)
    assert result.to_dict() == {"t1": tmp_path / "photos" / "a.png", "t2": tmp_path / "b.png", "t4": inside}
    assert read_images(table, task="task", image="path").equals(result)


@pytest.mark.parametrize("path", ["../secret.png", "photos/../../secret.png", "/etc/secret.png"])
def test_table_paths_outside_its_folder_are_refused(tmp_path: Path, path: str) -> None:
    table = tmp_path / "tasks.csv"
    table.write_text(f"task,image\nt1,a.png\nt2,{path}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"must stay inside the folder of the table; got .*secret"):
        read_images(table)


def test_folder_with_the_same_prefix_is_outside(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    table = tmp_path / "data" / "tasks.csv"
    table.write_text("task,image\nt1,../data-private/a.png\n", encoding="utf-8")
    with pytest.raises(InputError, match="must stay inside the folder"):
        read_images(table)


def test_table_without_paths_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "tasks.csv"
    table.write_text("task,colour\nt1,red\n", encoding="utf-8")
    with pytest.raises(InputError, match="no column of images was recognised; call it 'image'"):
        read_images(table)
    with pytest.raises(MissingColumn, match="'photo'"):
        read_images(table, image="photo")


# ---------------------------------------------------------------------- on the page


def test_images_and_texts_are_in_the_rows_of_their_tasks(
    draw_image: DrawImage, crowd: Any, page_of: Any, tmp_path: Path
) -> None:
    images = pytest.importorskip("PIL.Image")
    shown = {task: (10 + place, 10) for place, task in enumerate(crowd.tasks[:9])}
    for task, size in shown.items():
        (tmp_path / f"{task}.png").write_bytes(draw_image(size=size))
    (tmp_path / f"{crowd.tasks[9]}.png").write_bytes(SVG)
    texts = {task: f"Look at {task}" for task in crowd.tasks}
    built = report.build(crowd, images=tmp_path, texts=texts, compare=False)
    page = page_of(built.html)
    embedded = {one["alt"]: base64.b64decode(str(one["src"]).split(",", 1)[1]) for one in pictures(page)}
    assert {task: images.open(io.BytesIO(data)).size for task, data in embedded.items()} == shown
    rows = page.rows("task-table")
    assert [row["Image"].text for row in rows].count("–") == 3
    assert all(row["Text"].text == f"Look at {row['Task'].text}" for row in rows)
    assert "2 tasks have no image. 1 file is not a PNG" in page.captions["task-table"]
    order = [one["alt"] for one in pictures(page)]
    assert order == [row["Task"].text for row in rows if row["Task"].text in shown]


def test_policy_allows_embedded_images_only(crowd: Any) -> None:
    rules = policy(report.build(crowd, images={crowd.tasks[0]: PIXEL}, compare=False).html)
    assert rules.pop("img-src") == "data:"
    assert set(rules) == {"default-src", "script-src", "style-src", "base-uri", "form-action"}
    assert rules["default-src"] == "'none'"
    assert "img-src" not in policy(report.build(crowd, compare=False).html)


def test_hostile_ids_do_not_escape_from_their_image(page_of: Any) -> None:
    names = ['"><script>alert(1)</script>', "' onerror='alert(2)", "../../etc/passwd", "\u202etxt"]
    votes = wc.Crowd.from_triples([(name, who, "cat") for name in names for who in ("ann", "bob")])
    page = page_of(report.build(votes, images=dict.fromkeys(names, PIXEL), compare=False).html)
    assert sorted(str(one["alt"]) for one in pictures(page)) == sorted([*names[:3], "\\u202etxt"])
    assert all(set(one) == {"src", "alt", "decoding"} for one in pictures(page))
    assert sum(tag == "script" for tag, _ in page.tags) == 2


@pytest.mark.slow
def test_a_page_full_of_photos_stays_below_six_megabytes(
    draw_image: DrawImage, crowd: Any, page_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "MAX_PAGE_BYTES", 200_000)
    photos = dict.fromkeys(crowd.tasks, draw_image("JPEG", (1200, 900), noise=True))
    built = report.build(crowd, images=photos, compare=False)
    assert 120_000 < len(built.html.encode()) <= 200_000
    assert len(pictures(page_of(built.html))) == 12


def test_only_images_of_tasks_that_are_shown_are_read(
    crowd: Any, page_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_tasks, "MAX_TASKS", 4)
    for task in crowd.tasks:
        (tmp_path / f"{task}.gif").write_bytes(PIXEL)
    read: list[Any] = []
    whole = _thumbnails._read_bytes
    monkeypatch.setattr(_thumbnails, "_read_bytes", lambda image, largest: read.append(image) or whole(image, largest))
    page = page_of(report.build(crowd, images=tmp_path, compare=False).html)
    assert len(read) == len(pictures(page)) == 4


def test_unmatched_images_are_refused(crowd: Any) -> None:
    with pytest.raises(InputError, match="none of the images belongs to a task on the page"):
        report.build(crowd, images={"elsewhere": PIXEL}, compare=False)
    with pytest.raises(InputError, match="1 task has several images"):
        report.build(crowd, images=pd.Series([PIXEL] * 2, index=[crowd.tasks[0]] * 2, dtype=object), compare=False)
    with pytest.raises(UsageError, match="expected images by task in a Series or a dict; got list"):
        report.build(crowd, images=[PIXEL], compare=False)


def test_integer_ids_match_file_names(page_of: Any, tmp_path: Path) -> None:
    votes = wc.Crowd.from_triples([(number, who, "cat") for number in range(3) for who in ("ann", "bob")])
    (tmp_path / "1.gif").write_bytes(PIXEL)
    page = page_of(report.build(votes, images=tmp_path, compare=False).html)
    assert [one["alt"] for one in pictures(page)] == ["1"]


def test_browser_shows_images(draw_image: DrawImage, browser: Any, crowd: Any, tmp_path: Path) -> None:
    photos = {
        task: draw_image(kind, (600, 400))
        for task, kind in zip(crowd.tasks, ("PNG", "JPEG", "WEBP", "GIF"), strict=False)
    }
    path = report.build(crowd, images=photos, compare=False).save(tmp_path / "page.html")
    browser.get_log("browser")
    browser.get(path.as_uri())
    shown = browser.execute_async_script(
        "const done = arguments[0], all = Array.from(document.images);"
        "Promise.all(all.map(one => one.decode())).then(() => done(all.map(one => [one.naturalWidth, one.clientWidth])))"
    )
    assert [width for width, _ in shown] == [320] * 4
    assert all(0 < width <= 160 for _, width in shown)
    # What is not within the page stays out, even if somebody gets it in.
    browser.execute_script("document.body.append(Object.assign(new Image(), {src: 'https://example.com/x.png'}))")
    blocked = [entry["message"] for entry in browser.get_log("browser")]
    assert len(blocked) == 1
    assert "Content Security Policy" in blocked[0]
