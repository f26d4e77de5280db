"""Masks in image files: PNG and npy files that a table names, and folders of PNG files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wisecrowd.data.mask_runs import MaskRuns
from wisecrowd.errors import InputError, MissingExtra, preview
from wisecrowd.io.tables.arrays import read_npy
from wisecrowd.utils.files import atomic_folder

#: Endings of files that hold masks.
SUFFIXES = (".png", ".npy")
#: Largest image that is decoded, in pixels. A small file can declare billions.
MAX_PIXELS = 256_000_000


def load_mask_files(column: pa.ChunkedArray, folder: Path) -> pa.ChunkedArray:
    """Replace names of PNG and npy files in a column of masks by the masks.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Cells of a column of masks.
    folder : Path
        Folder of the table; files must be in it or below.

    Returns
    -------
    pyarrow.ChunkedArray
        The same column if no cell names a file.

    Raises
    ------
    InputError
        If a file is missing, outside the folder, damaged, or holds no mask.

    Examples
    --------
    >>> np.save("ann.npy", np.eye(2))
    >>> load_mask_files(pa.chunked_array([["ann.npy", None]]), Path(".")).to_pylist()
    ['{"size": [2, 2], "counts": "0120"}', None]
    """
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    cells = column.to_pylist()
    rows = [row for row, cell in enumerate(cells) if cell is not None and cell.strip().lower().endswith(SUFFIXES)]
    for row in rows:  # one image at a time, so that memory is bounded by the largest
        cells[row] = MaskRuns.from_arrays([_read_pixels(cells[row].strip(), folder)]).to_texts()[0]
    return pa.chunked_array([pa.array(cells, type=pa.large_string())]) if rows else column


def write_mask_images(masks: MaskRuns, names: Sequence[Any], folder: str | os.PathLike[str]) -> list[Path]:
    """Write masks as black and white PNG files.

    Parameters
    ----------
    masks : MaskRuns
        Masks, such as ``fitted.runs_``.
    names : sequence
        Names of the files without ending, such as ``fitted.task_index_``. Characters that files cannot have are escaped.
    folder : path-like
        New folder.

    Returns
    -------
    list of Path

    Raises
    ------
    MissingExtra
        If pillow is not installed.

    Examples
    --------
    >>> [path.name for path in write_mask_images(MaskRuns.from_arrays([np.eye(2)]), ["i/1"], "masks")]
    ['i%2F1.png']
    """
    images = _import_pillow()
    files = [f"{quote(str(name), safe=' ')}.png" for name in names]
    if len(set(files)) != len(masks):
        raise InputError(
            f"there are {len(masks):,} masks and {len(set(files)):,} different names; expected one for each"
        )
    with atomic_folder(folder) as temporary:
        for row, file in enumerate(files):
            images.fromarray((masks.to_array(row) * 255).astype(np.uint8)).save(temporary / file)
    return [Path(folder) / file for file in files]


def _read_pixels(name: str, folder: Path) -> NDArray[Any]:
    """Return the pixels of a file."""
    # Links are followed because they belong to the user; only the text of the table is checked.
    path = Path(os.path.abspath(folder / name))
    if not path.is_relative_to(os.path.abspath(folder)):
        raise InputError(
            f"the mask {preview([name])} is outside the folder of the table; put the table beside or above the masks, "
            "and write paths "
            "relative to it"
        )
    if not path.is_file():
        raise InputError(f"there is no mask file {preview([name])}; paths are relative to the folder of the table")
    if path.suffix.lower() == ".npy":
        array = read_npy(path)
        if array.ndim != 2 or array.dtype.kind not in "biuf":
            raise InputError(f"{name} holds an array of shape {array.shape}; expected numbers of shape (height, width)")
        return array
    images = _import_pillow()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with images.open(path, formats=("PNG",)) as image:
                if image.width * image.height > MAX_PIXELS:
                    raise InputError(
                        f"{name} has {image.width} x {image.height} pixels; the limit is {MAX_PIXELS:,} in all"
                    )
                has_alpha = image.mode in ("LA", "PA", "RGBA")
                pixels = np.asarray(image.convert("RGBA" if has_alpha else "L"))
    except InputError:
        raise
    except Exception as error:  # pillow raises exceptions of all kinds for damaged files
        raise InputError(f"{name} cannot be read as a PNG image: {error}") from None
    # Transparent pixels are outside the mask, whatever their colour.
    return np.asarray(pixels[..., :3].any(axis=2) & (pixels[..., 3] > 0)) if has_alpha else pixels


def _import_pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtra("report", "PNG masks") from None
    return Image
