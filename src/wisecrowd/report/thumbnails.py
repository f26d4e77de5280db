"""Images small enough to travel inside the page: what they are their first bytes tell, and only pixels are let in."""

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
from wisecrowd.utils.progress import report

if TYPE_CHECKING:
    from PIL.Image import Image

#: Longest side in pixels and quality of a thumbnail: the first that fits its share of the room is taken.
LADDER = ((320, 82), (240, 76), (160, 70), (112, 60), (80, 50))
#: Bytes of a file that is embedded as it is where Pillow is missing, and of one that is looked at with it.
AS_IT_IS, LARGEST = 150_000, 100_000_000

#: Why an image is not on the page.
ABSENT, FOREIGN, BROKEN, TOO_LARGE, NO_ROOM = "absent", "foreign", "broken", "too large", "no room"


@dataclass(frozen=True)
class Thumbnails:
    """What the page shows of some tasks, and what it says of those that it does not show."""

    sources: list[str | None]
    """``data:`` URIs in the order of the tasks."""
    notes: list[str]


def thumbnails(images: list[Any], room: int) -> Thumbnails:
    """Embed images (paths, bytes, or None where a task has none) in ``room`` characters at most.

    Every image may take its share of what is left; what one does not need is there for the next ones.
    """
    reader = _pillow()
    wanted = [place for place, image in enumerate(images) if image is not None]
    sources: list[str | None] = [None] * len(images)
    why: Counter[str] = Counter()
    for done, place in enumerate(wanted):
        report("reading images", done, len(wanted))
        share = room // (len(wanted) - done)
        found = _embedded(images[place], reader, share, room)
        if found in (ABSENT, FOREIGN, BROKEN, TOO_LARGE, NO_ROOM):
            why[found] += 1
            continue
        sources[place] = found
        room -= len(found)
    return Thumbnails(sources, _notes(len(images) - len(wanted), why, scaled=reader is not None))


def kind_of(head: bytes) -> str | None:
    """PNG, JPEG, GIF or WEBP by the first bytes of a file; None for anything else."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if head.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "GIF"
    return "WEBP" if head[:4] == b"RIFF" and head[8:12] == b"WEBP" else None


def _notes(without: int, why: Counter[str], *, scaled: bool) -> list[str]:
    def told(n: int, one: str, many: str) -> list[str]:
        return [f"{n:,} {one if n == 1 else many}."] if n else []

    larger = (
        ("is too large a file to be read", "are too large files to be read")
        if scaled
        else tuple(
            f"{verb} larger than {AS_IT_IS // 1000:,} kB and left out; with Pillow (pip install pillow), large images are "
            "scaled down"
            for verb in ("is", "are")
        )
    )
    return [
        *told(without, "task has no image", "tasks have no image"),
        *told(why[ABSENT], "image was not found, or cannot be opened", "images were not found, or cannot be opened"),
        *told(
            why[FOREIGN],
            "file is no PNG, JPEG, GIF or WebP; nothing else is shown, and SVG never, as it can run scripts",
            "files are no PNG, JPEG, GIF or WebP; nothing else is shown, and SVG never, as it can run scripts",
        ),
        *told(why[BROKEN], "image is damaged", "images are damaged"),
        *told(why[TOO_LARGE], *larger),
        *told(why[NO_ROOM], "image was left out to keep the page small", "images were left out to keep the page small"),
    ]


def _embedded(image: Any, reader: Any, share: int, room: int) -> str:
    """A ``data:`` URI of at most ``room`` characters, if possible within its share; or why there is none."""
    data = _data(image, AS_IT_IS if reader is None else LARGEST)
    if isinstance(data, str):
        return data
    kind = kind_of(data)
    if kind is None:
        return FOREIGN
    if reader is not None:
        try:
            kind, data = _scaled(reader, kind, data, share)
        except Exception:  # whatever a decoder makes of a damaged file, or of one that unpacks to gigabytes
            return BROKEN
    uri = f"data:image/{kind.lower()};base64,{base64.b64encode(data).decode()}"
    return uri if len(uri) <= room else NO_ROOM


def _data(image: Any, largest: int) -> bytes | str:
    if isinstance(image, bytes):
        return image if len(image) <= largest else TOO_LARGE
    if not isinstance(image, str | os.PathLike):
        raise UsageError(f"an image is a path, or the bytes of a file; got {type(image).__name__}")
    path = Path(image)
    try:
        if not path.is_file():
            return ABSENT
        with path.open("rb") as file:
            if kind_of(file.read(16)) is None:
                return FOREIGN
            if os.fstat(file.fileno()).st_size > largest:
                return TOO_LARGE
            file.seek(0)
            return file.read()
    except (OSError, ValueError):  # no permission, or no name that a file can have
        return ABSENT


def _pillow() -> Any:
    try:
        from PIL import Image, ImageOps
    except ImportError:
        return None
    return Image, ImageOps


def _scaled(reader: Any, kind: str, data: bytes, share: int) -> tuple[str, bytes]:
    """The kind and the bytes of an image that is no larger than people need; a moving one stands still."""
    images, operations = reader
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # oddities of a file that is shown all the same
        warnings.simplefilter("error", images.DecompressionBombWarning)
        with images.open(io.BytesIO(data), formats=(kind,)) as opened:
            small = max(opened.size) <= LADDER[0][0] and 4 * len(data) / 3 <= share
            if small and not getattr(opened, "is_animated", False):
                opened.load()  # so that damage is found here rather than in the browser
                return kind, data
            opened.draft("RGB", (2 * LADDER[0][0],) * 2)
            image = _flat(images, operations.exif_transpose(opened))
        for side, quality in LADDER:
            image.thumbnail((side, side))
            file = io.BytesIO()
            image.save(file, "JPEG", quality=quality, optimize=True)
            if 4 * file.tell() / 3 <= share - 40:
                break
    return "JPEG", file.getvalue()


def _flat(images: Any, image: Image) -> Image:
    """Colours of eight bits, on white where nothing hides it."""
    if image.mode[0] in "IF":  # scans of more than eight bits: from the darkest to the lightest that occurs
        values = np.asarray(image, dtype=np.float64)
        reach = max(float(np.ptp(values)), 1e-300)
        return images.fromarray(np.rint(255 * (values - values.min()) / reach).astype(np.uint8)).convert("RGB")
    if "A" in image.getbands() or "transparency" in image.info:
        image = image.convert("RGBA")
        paper = images.new("RGBA", image.size, "white")
        return images.alpha_composite(paper, image).convert("RGB")
    return image.convert("RGB")
