"""Thumbnails that are embedded in the page.

The first bytes of a file decide its format, and only bitmaps are accepted. Every image is decoded and encoded again, so that no
metadata, colour profile, comment, further frame or trailing byte of the file gets on the page.
"""

from __future__ import annotations

import base64
import io
import os
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wisecrowd.errors import InputError, MissingExtra, UsageError
from wisecrowd.utils.progress import report as report_progress

if TYPE_CHECKING:
    from PIL.Image import Image

#: Longest side in pixels and JPEG quality of a thumbnail; the first pair that fits is used.
SIZES = ((320, 82), (240, 76), (160, 70), (112, 60), (80, 50))
#: The same for images under marks, which are shown larger.
PICTURE_SIZES = ((800, 78), (560, 74), *SIZES)
#: Longest side in pixels and JPEG quality of an image that is shown by itself.
PREVIEW_SIDE, PREVIEW_QUALITY = 1_600, 88
#: Largest file that is read, in bytes.
MAX_FILE_BYTES = 100_000_000
#: Largest image that is decoded, in pixels. A small file can declare billions.
MAX_PIXELS = 64_000_000
#: Largest PNG that is embedded, in bytes. Photographs are several times smaller as JPEG.
_MAX_PNG_BYTES = 40_000
#: Length of the prefix of a data URI.
_URI_PREFIX_CHARACTERS = 40
#: EXIF tag of the orientation.
_ORIENTATION = 0x0112

#: Reasons why an image is not on the page.
MISSING, UNSUPPORTED, DAMAGED, TOO_LARGE, NO_SPACE = "missing", "unsupported", "damaged", "too large", "no space"
_REASONS = (MISSING, UNSUPPORTED, DAMAGED, TOO_LARGE, NO_SPACE)


@dataclass(frozen=True)
class Thumbnails:
    """Thumbnails of some tasks.

    Attributes
    ----------
    sources : list of str or None
        ``data:`` URI of each image; None where there is none.
    notes : list of str
        Sentences about the images that are left out.
    """

    sources: list[str | None]
    notes: list[str]


def embed_thumbnails(
    images: list[Any], max_characters: int, *, sizes: tuple[tuple[int, int], ...] = SIZES
) -> Thumbnails:
    """Embed images as data URIs within a limited space.

    Every image may use an equal share of the remaining space; what it does not use is available to the next ones.

    Parameters
    ----------
    images : list of path-like, bytes or None
        Image of each task.
    max_characters : int
        Maximum total length of the URIs.
    sizes : tuple of tuple of int, optional
        Longest side in pixels and JPEG quality; the first pair that fits is used.

    Returns
    -------
    Thumbnails
        URIs and notes.

    Raises
    ------
    MissingExtra
        If Pillow is not installed.
    """
    images_module = _import_pillow()
    positions = [position for position, image in enumerate(images) if image is not None]
    sources: list[str | None] = [None] * len(images)
    reasons: Counter[str] = Counter()
    remaining = max_characters
    for number, position in enumerate(positions):
        report_progress("reading images", number, len(positions))
        share = remaining // (len(positions) - number)
        source = _embed_image(images[position], images_module, share, remaining, sizes)
        if source in _REASONS:
            reasons[source] += 1
            continue
        sources[position] = source
        remaining -= len(source)
    n_without = len(images) - len(positions)
    return Thumbnails(sources, _write_notes(n_without, reasons))


def measure_image(image: Any) -> tuple[int, int] | None:
    """Return the width and height of an image in pixels, upright.

    Parameters
    ----------
    image : path-like or bytes
        Image file, or its bytes.

    Returns
    -------
    tuple of int, or None
        None if the image cannot be read.

    Examples
    --------
    >>> from PIL import Image
    >>> Image.new("RGB", (40, 30)).save("small.png")
    >>> measure_image("small.png")
    (40, 30)
    """
    images_module = _import_pillow()
    data = _read_bytes(image, MAX_FILE_BYTES)
    image_format = None if isinstance(data, str) else detect_image_format(data)
    if image_format is None or isinstance(data, str):
        return None
    try:
        with images_module.open(io.BytesIO(data), formats=(image_format,)) as opened:
            width, height = opened.size
            is_turned = _read_orientation(opened) in (5, 6, 7, 8)
    except Exception:  # a decoder may raise anything for a damaged file
        return None
    return (height, width) if is_turned else (width, height)


def encode_preview(image: Any) -> tuple[str, bytes]:
    """Encode an image again for a page that shows one image at a time.

    Parameters
    ----------
    image : path-like or bytes
        Image file, or its bytes.

    Returns
    -------
    media_type : str
        Type of the content, such as ``"image/png"``.
    content : bytes
        First frame, upright, without metadata, with at most 1,600 pixels on a side.

    Raises
    ------
    InputError
        If the file is missing, damaged, too large, or not an image that is shown.
    MissingExtra
        If Pillow is not installed.

    Examples
    --------
    >>> from PIL import Image
    >>> Image.new("RGB", (4000, 40)).save("wide.png")
    >>> media_type, content = encode_preview("wide.png")
    >>> media_type, Image.open(io.BytesIO(content)).size
    ('image/png', (1600, 16))
    """
    opened = _open_image(image, _import_pillow(), PREVIEW_SIDE)
    if isinstance(opened, str):
        raise InputError(_write_notes(0, Counter({opened: 1}))[0].removeprefix("1 ").rstrip("."))
    pixels, image_format = opened
    file = io.BytesIO()
    if image_format == "JPEG":
        pixels.save(file, "JPEG", quality=PREVIEW_QUALITY)
        return "image/jpeg", file.getvalue()
    pixels.save(file, "PNG")
    return "image/png", file.getvalue()


def detect_image_format(data: bytes) -> str | None:
    """Return the format of an image by its first bytes.

    Parameters
    ----------
    data : bytes
        At least the first 16 bytes of a file.

    Returns
    -------
    {"PNG", "JPEG", "GIF", "WEBP"} or None
        Format; None for any other file.

    Examples
    --------
    >>> detect_image_format(b"GIF89a"), detect_image_format(b"<svg>")
    ('GIF', None)
    """
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if data.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "GIF"
    return "WEBP" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def _write_notes(n_without: int, reasons: Counter[str]) -> list[str]:
    limit = f"more than {MAX_FILE_BYTES // 10**6} MB or {MAX_PIXELS // 10**6} million pixels"
    too_large = (f"image has {limit} and is left out", f"images have {limit} and are left out")
    formats = "PNG, JPEG, GIF or WebP; other formats are not shown, and SVG can contain scripts"
    sentences = (
        (n_without, "task has no image", "tasks have no image"),
        (reasons[MISSING], "image cannot be found or opened", "images cannot be found or opened"),
        (reasons[UNSUPPORTED], f"file is not a {formats}", f"files are not {formats}"),
        (reasons[DAMAGED], "image is damaged", "images are damaged"),
        (reasons[TOO_LARGE], *too_large),
        (reasons[NO_SPACE], "image is left out to limit the page size", "images are left out to limit the page size"),
    )
    return [f"{n:,} {singular if n == 1 else plural}." for n, singular, plural in sentences if n]


def _embed_image(
    image: Any, images_module: Any, share: int, max_characters: int, sizes: tuple[tuple[int, int], ...]
) -> str:
    """Return a data URI, scaled to its share of the space if possible, or the reason why there is none."""
    opened = _open_image(image, images_module, sizes[0][0])
    if isinstance(opened, str):
        return opened
    pixels, image_format = opened
    new_format, content = _encode_image(pixels, share, lossless=image_format != "JPEG", sizes=sizes)
    uri = f"data:image/{new_format.lower()};base64,{base64.b64encode(content).decode()}"
    return uri if len(uri) <= max_characters else NO_SPACE


def _open_image(image: Any, images_module: Any, max_side: int) -> tuple[Image, str] | str:
    """Return the pixels of an image, at most as large as ``max_side``, and its format, or the reason why there are none."""
    data = _read_bytes(image, MAX_FILE_BYTES)
    if isinstance(data, str):
        return data
    image_format = detect_image_format(data)
    if image_format is None:
        return UNSUPPORTED
    try:
        pixels = _decode_image(images_module, image_format, data, max_side)
    except images_module.DecompressionBombError:
        return TOO_LARGE
    except Exception:  # a decoder may raise anything for a damaged file
        return DAMAGED
    return TOO_LARGE if pixels is None else (pixels, image_format)


def _read_bytes(image: Any, max_bytes: int) -> bytes | str:
    """Return the bytes of an image, or the reason why it cannot be read."""
    if isinstance(image, bytes):
        return image if len(image) <= max_bytes else TOO_LARGE
    if not isinstance(image, str | os.PathLike):
        raise UsageError(f"an image must be a path or the bytes of a file; got {type(image).__name__}")
    path = Path(image)
    try:
        if not path.is_file():
            return MISSING
        with path.open("rb") as file:
            if detect_image_format(file.read(16)) is None:
                return UNSUPPORTED
            if os.fstat(file.fileno()).st_size > max_bytes:
                return TOO_LARGE
            file.seek(0)
            return file.read(max_bytes)
    except (OSError, ValueError):  # no permission, or a name that no file can have
        return MISSING


def _import_pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtra("report", "images of tasks") from None
    return Image


def _decode_image(images_module: Any, image_format: str, data: bytes, max_side: int) -> Image | None:
    """Return the first frame of an image as RGB, upright and at most as large as ``max_side``, or None if it is too large."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # readable files with minor defects are shown
        with images_module.open(io.BytesIO(data), formats=(image_format,)) as opened:
            width, height = opened.size
            if width * height > MAX_PIXELS:
                return None
            orientation = _read_orientation(opened)
            opened.draft("RGB", (2 * max_side,) * 2)  # a JPEG is scaled while it is decoded
            image = _convert_to_rgb(images_module, opened, max_side)
    image.thumbnail((max_side, max_side))
    # The pixels are copied into an image without metadata, because encoders write comments and profiles of their input.
    bare = images_module.new("RGB", image.size)
    bare.paste(image)
    turn = {
        2: images_module.Transpose.FLIP_LEFT_RIGHT,
        3: images_module.Transpose.ROTATE_180,
        4: images_module.Transpose.FLIP_TOP_BOTTOM,
        5: images_module.Transpose.TRANSPOSE,
        6: images_module.Transpose.ROTATE_270,
        7: images_module.Transpose.TRANSVERSE,
        8: images_module.Transpose.ROTATE_90,
    }.get(orientation)
    return bare if turn is None else bare.transpose(turn)


def _read_orientation(image: Image) -> Any:
    """Return the orientation that a camera recorded, or None if there is none or it cannot be read."""
    try:
        return image.getexif().get(_ORIENTATION)
    except Exception:  # the image may be fine although its metadata is not
        return None


def _convert_to_rgb(images_module: Any, image: Image, max_side: int) -> Image:
    """Return an image with eight bits per channel on a white background, reduced if it is much larger than a thumbnail."""
    has_alpha = "A" in image.getbands() or "transparency" in image.info
    is_deep = image.mode[0] in "IF"  # more than eight bits
    converted = image.convert("F" if is_deep else "RGBA" if has_alpha else "RGB")
    factor = max(converted.size) // (2 * max_side)
    if factor > 1:
        converted = converted.reduce(factor)
    if is_deep:  # scale from the darkest to the lightest value
        values = np.asarray(converted, dtype=np.float64)
        span = max(float(np.ptp(values)), 1e-300)
        return images_module.fromarray(np.rint(255 * (values - values.min()) / span).astype(np.uint8)).convert("RGB")
    if has_alpha:
        background = images_module.new("RGBA", converted.size, "white")
        return images_module.alpha_composite(background, converted).convert("RGB")
    return converted


def _encode_image(image: Image, share: int, *, lossless: bool, sizes: tuple[tuple[int, int], ...]) -> tuple[str, bytes]:
    """Return the format and the bytes of a thumbnail: a PNG if it fits into its share, else the largest JPEG that does."""
    limit = 3 * (share - _URI_PREFIX_CHARACTERS) / 4
    file = io.BytesIO()
    if lossless:
        image.save(file, "PNG", optimize=True)
        if file.tell() <= min(limit, _MAX_PNG_BYTES):
            return "PNG", file.getvalue()
    for side, quality in sizes:
        image.thumbnail((side, side))
        file = io.BytesIO()
        image.save(file, "JPEG", quality=quality, optimize=True)
        if file.tell() <= limit:
            break
    return "JPEG", file.getvalue()
