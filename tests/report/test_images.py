"""Images of tasks: reading, format detection, scaling and embedding."""

from __future__ import annotations

import base64
import html
import io
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd import report
from wisecrowd.errors import InputError, UsageError
from wisecrowd.io.problems import MissingColumn
from wisecrowd.report import tasks as _tasks
from wisecrowd.report import thumbnails as _thumbnails
from wisecrowd.report.images import read_images
from wisecrowd.report.thumbnails import detect_image_format, embed_thumbnails

SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
#: The smallest GIF, one pixel; enough where no Pillow is.
PIXEL = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")


def drawn(kind: str = "PNG", size: tuple[int, int] = (40, 30), mode: str = "RGB", *, noise: bool = False) -> bytes:
    """Return the bytes of an image: one colour, or noise that does not compress."""
    images = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    simulated = images.new(mode, size, "teal" if mode in ("RGB", "RGBA") else 128)
    if noise:
        simulated = images.fromarray(np.random.default_rng(0).integers(256, size=(size[1], size[0], 3), dtype=np.uint8))
    file = io.BytesIO()
    simulated.save(file, kind)
    return file.getvalue()


def decoded(uri: str) -> bytes:
    return base64.b64decode(uri.split(",", 1)[1])


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


# ---------------------------------------------------------------------- what they are


def test_first_bytes_determine_the_format() -> None:
    assert [detect_image_format(drawn(kind)) for kind in ("PNG", "JPEG", "GIF", "WEBP")] == [
        "PNG",
        "JPEG",
        "GIF",
        "WEBP",
    ]
    for other in (SVG, b"", b"RIFF1234WAVE", b"\x89PNG", b"<html>", b"BM", b"%PDF-1.4", b"II*\x00"):
        assert detect_image_format(other) is None


def test_other_files_are_left_out_and_counted(tmp_path: Path) -> None:
    good, fake, torn = tmp_path / "a.png", tmp_path / "b.png", tmp_path / "c.png"
    good.write_bytes(drawn())
    fake.write_bytes(SVG)
    torn.write_bytes(drawn(size=(400, 400), noise=True)[:900])
    result = embed_thumbnails([good, fake, torn, tmp_path / "absent.png", tmp_path, None, "nul\0.png"], 10**6)
    assert [source is not None for source in result.sources] == [True] + [False] * 6
    assert result.notes == [
        "1 task has no image.",
        "3 images cannot be found or opened.",
        "1 file is not a PNG, JPEG, GIF or WebP; other formats are not shown, and SVG can contain scripts.",
        "1 image is damaged.",
    ]


def test_decompression_bomb_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    images = pytest.importorskip("PIL.Image")
    large = drawn(size=(400, 400))
    monkeypatch.setattr(images, "MAX_IMAGE_PIXELS", 10_000)
    assert embed_thumbnails([large], 10**6).notes == ["1 image is damaged."]


def test_other_types_are_refused() -> None:
    with pytest.raises(UsageError, match="a path or the bytes of a file; got int"):
        embed_thumbnails([7], 10**6)


# ---------------------------------------------------------------------- how they are shown


def test_small_images_stay_as_they_are_and_large_ones_are_scaled() -> None:
    images = pytest.importorskip("PIL.Image")
    small, large = drawn(), drawn("JPEG", (2000, 1000), noise=True)
    result = embed_thumbnails([small, large], 10**6).sources
    assert result[0] == f"data:image/png;base64,{base64.b64encode(small).decode()}"
    assert result[1] is not None
    assert result[1].startswith("data:image/jpeg;base64,")
    assert images.open(io.BytesIO(decoded(result[1]))).size == (320, 160)


@pytest.mark.parametrize("mode", ["RGBA", "P", "L", "I;16", "1", "CMYK"])
def test_every_kind_of_pixels_is_scaled(mode: str) -> None:
    images = pytest.importorskip("PIL.Image")
    if mode == "I;16":
        simulated = images.fromarray(np.linspace(0, 4095, 800 * 600).astype(np.uint16).reshape(600, 800))
    else:
        simulated = images.new(mode, (800, 600), 1 if mode in "1P" else 0)
    file = io.BytesIO()
    simulated.save(file, "JPEG" if mode == "CMYK" else "PNG")
    source = embed_thumbnails([file.getvalue()], 10**6).sources[0]
    assert source is not None
    shown = np.asarray(images.open(io.BytesIO(decoded(source))).convert("L"))
    assert max(shown.shape) == 320
    if mode == "RGBA":
        assert shown.min() > 250, "what nothing hides is white paper"
    if mode == "I;16":
        assert shown[:5].mean() < 10 < 245 < shown[-5:].mean(), "twelve bits are spread over what a screen shows"


def test_exif_rotation_is_applied_and_metadata_removed() -> None:
    images = pytest.importorskip("PIL.Image")
    simulated, file = images.new("RGB", (1000, 500)), io.BytesIO()
    notes = simulated.getexif()
    notes[0x0112], notes[0x010F] = 6, "the maker of the camera"
    simulated.save(file, "JPEG", exif=notes)
    source = embed_thumbnails([file.getvalue()], 10**6).sources[0]
    assert source is not None
    assert images.open(io.BytesIO(decoded(source))).size == (160, 320)
    assert b"camera" not in decoded(source)


def test_animation_becomes_its_first_frame() -> None:
    images = pytest.importorskip("PIL.Image")
    frames = [images.new("RGB", (20, 20), colour) for colour in ("red", "blue")]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    source = embed_thumbnails([file.getvalue()], 10**6).sources[0]
    assert source is not None
    assert source.startswith("data:image/jpeg")


@pytest.mark.parametrize("room", [400_000, 60_000, 6_000, 300, -5])
def test_thumbnails_fit_into_the_space(room: int) -> None:
    result = embed_thumbnails([drawn("JPEG", (900, 700), noise=True)] * 12, room)
    shown = [source for source in result.sources if source is not None]
    assert sum(map(len, shown)) <= max(room, 0)
    if room == 400_000:
        assert len(shown) == 12
    if len(shown) < 12:
        assert f"{12 - len(shown)} images are left out to limit the page size." in result.notes


def test_without_pillow_small_files_are_shown_and_large_ones_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    large = drawn("PNG", (400, 400), noise=True)
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setattr(_thumbnails, "MAX_UNSCALED_BYTES", 1000)
    result = embed_thumbnails([PIXEL, large, large], 10**6)
    assert result.sources == [f"data:image/gif;base64,{base64.b64encode(PIXEL).decode()}", None, None]
    (note,) = result.notes
    assert note.startswith("2 images are left out because they are larger than 1 kB")
    assert "pip install pillow" in note


# ---------------------------------------------------------------------- on the page


def test_images_and_texts_are_in_the_rows_of_their_tasks(crowd: Any, page_of: Any, tmp_path: Path) -> None:
    shown = {task: drawn(size=(10 + place, 10)) for place, task in enumerate(crowd.tasks[:9])}
    for task, data in shown.items():
        (tmp_path / f"{task}.png").write_bytes(data)
    (tmp_path / f"{crowd.tasks[9]}.png").write_bytes(SVG)
    texts = {task: f"Look at {task}" for task in crowd.tasks}
    built = report.build(crowd, images=tmp_path, texts=texts, compare=False)
    page = page_of(built.html)
    assert {one["alt"]: decoded(str(one["src"])) for one in pictures(page)} == shown
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


def test_a_page_full_of_photos_stays_below_six_megabytes(
    crowd: Any, page_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "MAX_PAGE_BYTES", 200_000)
    photos = dict.fromkeys(crowd.tasks, drawn("JPEG", (1200, 900), noise=True))
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
    with pytest.raises(InputError, match="several images for"):
        report.build(crowd, images=pd.Series([PIXEL] * 2, index=[crowd.tasks[0]] * 2, dtype=object), compare=False)
    with pytest.raises(UsageError, match="expected images by task in a Series or a dict; got list"):
        report.build(crowd, images=[PIXEL], compare=False)


def test_integer_ids_match_file_names(page_of: Any, tmp_path: Path) -> None:
    votes = wc.Crowd.from_triples([(number, who, "cat") for number in range(3) for who in ("ann", "bob")])
    (tmp_path / "1.gif").write_bytes(PIXEL)
    page = page_of(report.build(votes, images=tmp_path, compare=False).html)
    assert [one["alt"] for one in pictures(page)] == ["1"]


def test_browser_shows_images(browser: Any, crowd: Any, tmp_path: Path) -> None:
    photos = {
        task: drawn(kind, (600, 400)) for task, kind in zip(crowd.tasks, ("PNG", "JPEG", "WEBP", "GIF"), strict=False)
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
