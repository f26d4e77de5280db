"""Thumbnails: format detection, scaling and embedding."""

from __future__ import annotations

import base64
import io
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from wisecrowd.errors import UsageError
from wisecrowd.report import thumbnails as _thumbnails
from wisecrowd.report.thumbnails import detect_image_format, embed_thumbnails

DrawImage = Callable[..., bytes]
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"


#: The smallest GIF, one pixel; enough where no Pillow is.
PIXEL = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")


def decoded(uri: str) -> bytes:
    return base64.b64decode(uri.split(",", 1)[1])


def test_first_bytes_determine_the_format(draw_image: DrawImage) -> None:
    assert [detect_image_format(draw_image(kind)) for kind in ("PNG", "JPEG", "GIF", "WEBP")] == [
        "PNG",
        "JPEG",
        "GIF",
        "WEBP",
    ]
    for other in (SVG, b"", b"RIFF1234WAVE", b"\x89PNG", b"<html>", b"BM", b"%PDF-1.4", b"II*\x00"):
        assert detect_image_format(other) is None


def test_other_files_are_left_out_and_counted(draw_image: DrawImage, tmp_path: Path) -> None:
    good, fake, torn = tmp_path / "a.png", tmp_path / "b.png", tmp_path / "c.png"
    good.write_bytes(draw_image())
    fake.write_bytes(SVG)
    torn.write_bytes(draw_image(size=(400, 400), noise=True)[:900])
    result = embed_thumbnails([good, fake, torn, tmp_path / "absent.png", tmp_path, None, "nul\0.png"], 10**6)
    assert [source is not None for source in result.sources] == [True] + [False] * 6
    assert result.notes == [
        "1 task has no image.",
        "3 images cannot be found or opened.",
        "1 file is not a PNG, JPEG, GIF or WebP; other formats are not shown, and SVG can contain scripts.",
        "1 image is damaged.",
    ]


def test_decompression_bomb_is_left_out(draw_image: DrawImage, monkeypatch: pytest.MonkeyPatch) -> None:
    images = pytest.importorskip("PIL.Image")
    large = draw_image(size=(400, 400))
    monkeypatch.setattr(images, "MAX_IMAGE_PIXELS", 10_000)
    assert embed_thumbnails([large], 10**6).notes == ["1 image is damaged."]


def test_other_types_are_refused() -> None:
    with pytest.raises(UsageError, match="a path or the bytes of a file; got int"):
        embed_thumbnails([7], 10**6)


def test_small_images_stay_as_they_are_and_large_ones_are_scaled(draw_image: DrawImage) -> None:
    images = pytest.importorskip("PIL.Image")
    small, large = draw_image(), draw_image("JPEG", (2000, 1000), noise=True)
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
def test_thumbnails_fit_into_the_space(draw_image: DrawImage, room: int) -> None:
    result = embed_thumbnails([draw_image("JPEG", (900, 700), noise=True)] * 12, room)
    shown = [source for source in result.sources if source is not None]
    assert sum(map(len, shown)) <= max(room, 0)
    if room == 400_000:
        assert len(shown) == 12
    if len(shown) < 12:
        assert f"{12 - len(shown)} images are left out to limit the page size." in result.notes


def test_large_images_are_left_out_without_pillow(draw_image: DrawImage, monkeypatch: pytest.MonkeyPatch) -> None:
    large = draw_image("PNG", (400, 400), noise=True)
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setattr(_thumbnails, "MAX_UNSCALED_BYTES", 1000)
    result = embed_thumbnails([PIXEL, large, large], 10**6)
    assert result.sources == [f"data:image/gif;base64,{base64.b64encode(PIXEL).decode()}", None, None]
    (note,) = result.notes
    assert note.startswith("2 images are left out because they are larger than 1 kB")
    assert "pip install pillow" in note
