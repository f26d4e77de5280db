"""Thumbnails: format detection, scaling and embedding."""

from __future__ import annotations

import base64
import io
import struct
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from wisecrowd.errors import MissingExtra, UsageError
from wisecrowd.report import thumbnails as _thumbnails
from wisecrowd.report.thumbnails import detect_image_format, embed_thumbnails

DrawImage = Callable[..., bytes]
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"


#: The smallest GIF, one pixel.
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


def declare_size(png: bytes, width: int, height: int) -> bytes:
    """Return a PNG whose header declares another size."""
    header = b"IHDR" + struct.pack(">II", width, height) + png[24:29]
    return png[:12] + header + struct.pack(">I", zlib.crc32(header)) + png[33:]


@pytest.mark.parametrize("size", [(8_001, 8_000), (60_000, 60_000), (2**31 - 1, 2**31 - 1)])
def test_decompression_bomb_is_left_out(draw_image: DrawImage, size: tuple[int, int]) -> None:
    assert embed_thumbnails([declare_size(draw_image(), *size)], 10**6).notes == [
        "1 image has more than 100 MB or 64 million pixels and is left out."
    ]


def test_truncated_image_is_left_out(draw_image: DrawImage) -> None:
    for kind in ("PNG", "JPEG", "GIF", "WEBP"):
        data = draw_image(kind, (300, 200), noise=True)
        assert embed_thumbnails([data[: len(data) // 2]], 10**6).sources == [None], kind


def test_other_types_are_refused() -> None:
    with pytest.raises(UsageError, match="a path or the bytes of a file; got int"):
        embed_thumbnails([7], 10**6)


def test_small_images_keep_their_pixels_and_large_ones_are_scaled(draw_image: DrawImage) -> None:
    images = pytest.importorskip("PIL.Image")
    small, large = draw_image(noise=True), draw_image("JPEG", (2000, 1000), noise=True)
    result = embed_thumbnails([small, large], 10**6).sources
    assert result[0] is not None
    assert result[0].startswith("data:image/png;base64,")
    shown, drawn = (np.asarray(images.open(io.BytesIO(data))) for data in (decoded(result[0]), small))
    assert np.array_equal(shown, drawn)
    assert result[1] is not None
    assert result[1].startswith("data:image/jpeg;base64,")
    assert images.open(io.BytesIO(decoded(result[1]))).size == (320, 160)


def test_photographs_in_png_are_embedded_as_jpeg(draw_image: DrawImage) -> None:
    (source,) = embed_thumbnails([draw_image("PNG", (320, 320), noise=True)], 10**6).sources
    assert source is not None
    assert source.startswith("data:image/jpeg;base64,")


@pytest.mark.parametrize("size", [(40, 30), (900, 600)], ids=["small", "large"])
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF"])
def test_no_metadata_and_no_trailing_bytes_get_on_the_page(kind: str, size: tuple[int, int]) -> None:
    images, png = pytest.importorskip("PIL.Image"), pytest.importorskip("PIL.PngImagePlugin")
    image, file, texts = images.new("RGB", size, "teal"), io.BytesIO(), png.PngInfo()
    exif = image.getexif()
    exif[0x010E] = "SECRET description"
    exif.get_ifd(0x8825).update({1: "SECRET latitude", 2: (48.0, 12.0, 30.0)})
    texts.add_text("Comment", "SECRET text")
    options = {
        "JPEG": {"exif": exif, "comment": b"SECRET comment", "icc_profile": b"SECRET profile"},
        "PNG": {"exif": exif, "pnginfo": texts, "icc_profile": b"SECRET profile"},
        "WEBP": {"exif": exif, "xmp": b"SECRET location", "icc_profile": b"SECRET profile"},
        "GIF": {"comment": b"SECRET comment"},
    }
    image.save(file, kind, **options[kind])
    data = file.getvalue() + b"SECRET trailing bytes"
    assert data.count(b"SECRET") > 1
    (source,) = embed_thumbnails([data], 10**6).sources
    assert source is not None
    shown = images.open(io.BytesIO(decoded(source)))
    assert b"SECRET" not in decoded(source)
    assert shown.info.keys() <= {"jfif", "jfif_version", "jfif_unit", "jfif_density"}
    assert not shown.getexif()


@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_exif_orientation_is_applied(orientation: int) -> None:
    images, operations = pytest.importorskip("PIL.Image"), pytest.importorskip("PIL.ImageOps")
    pixels = np.zeros((30, 40, 3), dtype=np.uint8)
    pixels[:10, :10] = 255
    file, exif = io.BytesIO(), images.Exif()
    exif[0x0112] = orientation
    images.fromarray(pixels).save(file, "PNG", exif=exif)
    (source,) = embed_thumbnails([file.getvalue()], 10**6).sources
    assert source is not None
    shown = np.asarray(images.open(io.BytesIO(decoded(source))))
    assert np.array_equal(shown, np.asarray(operations.exif_transpose(images.open(file))))


def test_broken_exif_does_not_hide_an_image(draw_image: DrawImage) -> None:
    data = draw_image("JPEG")
    broken = b"Exif\0\0MM\0*\xff\xff\xff\xff" + b"\xff" * 20
    data = data[:2] + b"\xff\xe1" + struct.pack(">H", len(broken) + 2) + broken + data[2:]
    assert embed_thumbnails([data], 10**6).sources[0] is not None


@pytest.mark.parametrize("size", [(40, 30), (800, 600), (3000, 2250)])
@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "L", "I;16", "1", "CMYK"])
def test_every_kind_of_pixels_is_scaled(mode: str, size: tuple[int, int]) -> None:
    images = pytest.importorskip("PIL.Image")
    if mode == "I;16":
        values = np.linspace(0, 4095, size[0] * size[1]).astype(np.uint16)
        simulated = images.fromarray(values.reshape(size[1], size[0]))
    else:
        simulated = images.new(mode, size, 1 if mode in "1P" else 0)
    file = io.BytesIO()
    simulated.save(file, "JPEG" if mode == "CMYK" else "PNG")
    source = embed_thumbnails([file.getvalue()], 10**6).sources[0]
    assert source is not None
    shown = np.asarray(images.open(io.BytesIO(decoded(source))).convert("L"))
    assert max(shown.shape) == min(320, size[0])
    if mode in ("RGBA", "LA"):
        assert shown.min() > 250, "what nothing hides is white paper"
    if mode == "I;16":
        assert shown[:1].mean() < 10 < 245 < shown[-1:].mean(), "twelve bits are spread over what a screen shows"


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
    for kind in ("GIF", "PNG", "WEBP"):
        file = io.BytesIO()
        frames[0].save(file, kind, save_all=True, append_images=frames[1:])
        (source,) = embed_thumbnails([file.getvalue()], 10**6).sources
        assert source is not None
        shown = images.open(io.BytesIO(decoded(source)))
        assert getattr(shown, "n_frames", 1) == 1
        assert np.allclose(np.asarray(shown.convert("RGB")).mean(axis=(0, 1)), [255, 0, 0], atol=3)


@pytest.mark.parametrize("room", [400_000, 60_000, 6_000, 300, -5])
def test_thumbnails_fit_into_the_space(draw_image: DrawImage, room: int) -> None:
    result = embed_thumbnails([draw_image("JPEG", (900, 700), noise=True)] * 12, room)
    shown = [source for source in result.sources if source is not None]
    assert sum(map(len, shown)) <= max(room, 0)
    if room == 400_000:
        assert len(shown) == 12
    if len(shown) < 12:
        assert f"{12 - len(shown)} images are left out to limit the page size." in result.notes


def test_large_files_are_left_out(draw_image: DrawImage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_thumbnails, "MAX_FILE_BYTES", 1000)
    large = draw_image("PNG", (400, 400), noise=True)
    (tmp_path / "large.png").write_bytes(large)
    result = embed_thumbnails([PIXEL, large, tmp_path / "large.png"], 10**6)
    assert [source is None for source in result.sources] == [False, True, True]


def test_images_need_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it, files would have to be embedded with their metadata."""
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtra, match=r"wisecrowd\[report\]"):
        embed_thumbnails([PIXEL], 10**6)
