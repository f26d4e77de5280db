"""Thumbnails that are embedded in the page. The first bytes of a file decide its format, and only bitmaps are accepted."""

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

from wisecrowd.errors import UsageError
from wisecrowd.utils.progress import report as report_progress

if TYPE_CHECKING:
    from PIL.Image import Image

#: Longest side in pixels and JPEG quality of a thumbnail; the first pair that fits is used.
SIZES = ((320, 82), (240, 76), (160, 70), (112, 60), (80, 50))
#: Largest file that is embedded unchanged where Pillow is not installed, in bytes.
MAX_UNSCALED_BYTES = 150_000
#: Largest file that Pillow reads, in bytes.
MAX_FILE_BYTES = 100_000_000
#: Length of the prefix of a data URI.
_URI_PREFIX_CHARACTERS = 40

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


def embed_thumbnails(images: list[Any], max_characters: int) -> Thumbnails:
    """Embed images as data URIs within a limited space.

    Every image may use an equal share of the remaining space; what it does not use is available to the next ones.

    Parameters
    ----------
    images : list of path-like, bytes or None
        Image of each task.
    max_characters : int
        Maximum total length of the URIs.

    Returns
    -------
    Thumbnails
        URIs and notes.
    """
    pillow = _import_pillow()
    positions = [position for position, image in enumerate(images) if image is not None]
    sources: list[str | None] = [None] * len(images)
    reasons: Counter[str] = Counter()
    remaining = max_characters
    for number, position in enumerate(positions):
        report_progress("reading images", number, len(positions))
        share = remaining // (len(positions) - number)
        source = _embed_image(images[position], pillow, share, remaining)
        if source in _REASONS:
            reasons[source] += 1
            continue
        sources[position] = source
        remaining -= len(source)
    n_without = len(images) - len(positions)
    return Thumbnails(sources, _write_notes(n_without, reasons, has_pillow=pillow is not None))


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


def _write_notes(n_without: int, reasons: Counter[str], *, has_pillow: bool) -> list[str]:
    if has_pillow:
        too_large = ("file is too large to be read", "files are too large to be read")
    else:
        limit = (
            f"larger than {MAX_UNSCALED_BYTES // 1000:,} kB; install Pillow to scale large images (pip install pillow)"
        )
        too_large = (f"image is left out because it is {limit}", f"images are left out because they are {limit}")
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


def _embed_image(image: Any, pillow: Any, share: int, max_characters: int) -> str:
    """Return a data URI, scaled to its share of the space if possible, or the reason why there is none."""
    data = _read_bytes(image, MAX_UNSCALED_BYTES if pillow is None else MAX_FILE_BYTES)
    if isinstance(data, str):
        return data
    image_format = detect_image_format(data)
    if image_format is None:
        return UNSUPPORTED
    if pillow is not None:
        try:
            image_format, data = _scale_image(pillow, image_format, data, share)
        except Exception:  # a decoder may raise anything for a damaged file or a decompression bomb
            return DAMAGED
    uri = f"data:image/{image_format.lower()};base64,{base64.b64encode(data).decode()}"
    return uri if len(uri) <= max_characters else NO_SPACE


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
            return file.read()
    except (OSError, ValueError):  # no permission, or a name that no file can have
        return MISSING


def _import_pillow() -> Any:
    try:
        from PIL import Image, ImageOps
    except ImportError:
        return None
    return Image, ImageOps


def _scale_image(pillow: Any, image_format: str, data: bytes, share: int) -> tuple[str, bytes]:
    """Return the format and the bytes of a thumbnail; of an animation, the first frame."""
    images, operations = pillow
    max_side = SIZES[0][0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # readable files with minor defects are shown
        warnings.simplefilter("error", images.DecompressionBombWarning)
        with images.open(io.BytesIO(data), formats=(image_format,)) as opened:
            is_small = max(opened.size) <= max_side and 4 * len(data) / 3 <= share
            if is_small and not getattr(opened, "is_animated", False):
                opened.load()  # finds damage here instead of in the browser
                return image_format, data
            opened.draft("RGB", (2 * max_side,) * 2)
            image = _convert_to_rgb(images, operations.exif_transpose(opened))
        for side, quality in SIZES:
            image.thumbnail((side, side))
            file = io.BytesIO()
            image.save(file, "JPEG", quality=quality, optimize=True)
            if 4 * file.tell() / 3 <= share - _URI_PREFIX_CHARACTERS:
                break
    return "JPEG", file.getvalue()


def _convert_to_rgb(images: Any, image: Image) -> Image:
    """Return an image with eight bits per channel on a white background."""
    if image.mode[0] in "IF":  # more than eight bits: scale from the darkest to the lightest value
        values = np.asarray(image, dtype=np.float64)
        span = max(float(np.ptp(values)), 1e-300)
        return images.fromarray(np.rint(255 * (values - values.min()) / span).astype(np.uint8)).convert("RGB")
    if "A" in image.getbands() or "transparency" in image.info:
        image = image.convert("RGBA")
        background = images.new("RGBA", image.size, "white")
        return images.alpha_composite(background, image).convert("RGB")
    return image.convert("RGB")
