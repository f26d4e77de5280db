"""Masks of images as runs of pixels, and COCO's run-length encoding of them.

Pixels are numbered by columns, from top to bottom and then from left to right, as in COCO: pixel ``row + height * column``.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from wisecrowd.errors import InputError, preview

Codes: TypeAlias = NDArray[np.int64]

#: Largest height and width of a mask.
MAX_SIDE = 1 << 24
#: First character of the alphabet of compressed counts, and the number of characters.
FIRST_CHARACTER, N_CHARACTERS = 48, 64
#: Longest number in compressed counts, in characters of five bits: 2^48 pixels have ten.
MAX_CHARACTERS = 11


@dataclass(frozen=True)
class MaskRuns:
    """Masks, each as the runs of its pixels.

    Mask ``n`` has the pixels ``start[i]`` to ``end[i] - 1`` for ``i`` in ``offset[n]:offset[n + 1]``. Runs of a mask are
    sorted and do not touch. Build masks with `from_counts`, `from_arrays` or `parse_masks`.

    Parameters
    ----------
    offset : ndarray of shape (n_masks + 1,)
        Position of the first run of every mask.
    start, end : ndarray of shape (n_runs,)
        First pixel of a run, and the pixel after its last.
    height, width : ndarray of shape (n_masks,)
        Size of the image of every mask.

    Examples
    --------
    >>> masks = MaskRuns.from_arrays([[[0, 1], [1, 1]]])
    >>> masks.start.tolist(), masks.end.tolist()
    ([1], [4])
    >>> masks.to_coco()
    [{'size': [2, 2], 'counts': '13'}]
    """

    offset: Codes
    start: Codes
    end: Codes
    height: Codes
    width: Codes

    def __len__(self) -> int:
        return len(self.height)

    @property
    def mask(self) -> Codes:
        """Mask of every run."""
        return np.repeat(np.arange(len(self)), np.diff(self.offset))

    @property
    def area(self) -> Codes:
        """Number of pixels of every mask."""
        cumulated = np.concatenate([[0], np.cumsum(self.end - self.start)])
        return np.asarray(cumulated[self.offset[1:]] - cumulated[self.offset[:-1]])

    def take(self, rows: ArrayLike) -> MaskRuns:
        """Select masks.

        Parameters
        ----------
        rows : array-like of int
            Positions of masks, in any order.

        Returns
        -------
        MaskRuns
        """
        selected = np.asarray(rows, dtype=np.int64)
        count = np.diff(self.offset)[selected]
        offset = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
        run = np.repeat(self.offset[selected] - offset[:-1], count) + np.arange(offset[-1])
        return MaskRuns(offset, self.start[run], self.end[run], self.height[selected], self.width[selected])

    # ------------------------------------------------------------------ construction

    @classmethod
    def from_runs(cls, mask: Codes, start: Codes, end: Codes, height: ArrayLike, width: ArrayLike) -> MaskRuns:
        """Build masks from sorted runs that do not overlap; empty runs vanish, and runs that touch become one.

        Parameters
        ----------
        mask, start, end : ndarray of shape (n_runs,)
            Mask, first pixel, and the pixel after the last one of every run, sorted by mask and start.
        height, width : array-like of shape (n_masks,)
            Size of every mask.

        Returns
        -------
        MaskRuns

        Examples
        --------
        >>> runs = np.array([[0, 0, 1], [0, 1, 2], [0, 5, 5]]).T
        >>> MaskRuns.from_runs(*runs, [3], [2]).end.tolist()
        [2]
        """
        is_filled = end > start
        mask, start, end = mask[is_filled], start[is_filled], end[is_filled]
        touches = (np.diff(mask) == 0) & (start[1:] == end[:-1])
        if touches.any():
            start, end, mask = (
                start[np.append(True, ~touches)], end[np.append(~touches, True)], mask[np.append(True, ~touches)],
            )  # fmt: skip
        heights, widths = np.asarray(height, dtype=np.int64), np.asarray(width, dtype=np.int64)
        offset = np.concatenate([[0], np.cumsum(np.bincount(mask, minlength=len(heights)))]).astype(np.int64)
        return cls(offset, start.astype(np.int64), end.astype(np.int64), heights, widths)

    @classmethod
    def from_counts(cls, counts: Codes, offset: Codes, height: ArrayLike, width: ArrayLike) -> MaskRuns:
        """Build masks from COCO counts: alternating lengths of runs outside and inside the mask, the first one outside.

        Parameters
        ----------
        counts : ndarray of int
            Counts of all masks.
        offset : ndarray of shape (n_masks + 1,)
            Mask ``n`` has the counts ``counts[offset[n]:offset[n + 1]]``. A mask without counts is empty.
        height, width : array-like of shape (n_masks,)
            Size of every mask.

        Returns
        -------
        MaskRuns

        Raises
        ------
        InputError
            If a count is negative or too large, or the sum of a mask's counts is not its number of pixels.

        Examples
        --------
        >>> MaskRuns.from_counts(np.array([1, 2, 3]), np.array([0, 3]), [2], [3]).area.tolist()
        [2]
        """
        heights, widths = np.asarray(height, dtype=np.int64), np.asarray(width, dtype=np.int64)
        n_counts = np.diff(offset)
        mask = np.repeat(np.arange(len(n_counts)), n_counts)
        is_invalid = (counts < 0) | (counts > MAX_SIDE**2)
        if is_invalid.any():
            row = int(np.flatnonzero(is_invalid)[0])
            raise InputError(
                f"the counts of mask {mask[row]} have the entry {counts[row]}; expected lengths of runs from 0 to {MAX_SIDE**2:,}"
            )
        cumulated = np.concatenate([[0], np.cumsum(counts)])
        total = cumulated[offset[1:]] - cumulated[offset[:-1]]
        is_wrong = (n_counts > 0) & (total != heights * widths)
        if is_wrong.any():
            row = int(np.flatnonzero(is_wrong)[0])
            raise InputError(
                f"the counts of mask {row} have the sum {total[row]:,}; expected {heights[row] * widths[row]:,}, the pixels of "
                f"{heights[row]} x {widths[row]}. Give counts of all pixels, starting outside, and check height and width"
            )
        position = np.arange(len(counts)) - np.repeat(offset[:-1], n_counts)
        inside = np.flatnonzero(position % 2 == 1)
        begin = cumulated[offset[:-1]][mask[inside]]
        return cls.from_runs(mask[inside], cumulated[inside] - begin, cumulated[inside + 1] - begin, heights, widths)

    @classmethod
    def from_arrays(cls, arrays: Sequence[Any]) -> MaskRuns:
        """Build masks from arrays of pixels.

        Parameters
        ----------
        arrays : sequence of array-like of shape (height, width)
            Pixels other than 0 belong to a mask.

        Returns
        -------
        MaskRuns

        Raises
        ------
        InputError
            If an array does not have two dimensions.

        Examples
        --------
        >>> MaskRuns.from_arrays([np.eye(2)]).area.tolist()
        [2]
        """
        starts, ends, sizes = [], [], []
        for array in arrays:
            pixels = np.asarray(array)
            if pixels.ndim != 2:
                raise InputError(f"a mask has the shape {pixels.shape}; expected (height, width)")
            flat = np.zeros(pixels.size + 2, dtype=np.int8)
            flat[1:-1] = (pixels != 0).ravel(order="F")
            edges = np.flatnonzero(np.diff(flat))
            starts.append(edges[::2])
            ends.append(edges[1::2])
            sizes.append(pixels.shape)
        height, width = np.array(sizes, dtype=np.int64).reshape(-1, 2).T
        mask = np.repeat(np.arange(len(starts)), [len(part) for part in starts]).astype(np.int64)
        empty = [np.empty(0, dtype=np.int64)]
        return cls.from_runs(mask, np.concatenate(starts or empty), np.concatenate(ends or empty), height, width)

    # ------------------------------------------------------------------ output

    def to_counts(self) -> tuple[Codes, Codes]:
        """Return COCO's counts and their offsets; see `from_counts`.

        Returns
        -------
        counts, offset : ndarray of int

        Examples
        --------
        >>> MaskRuns.from_arrays([np.eye(2)]).to_counts()[0].tolist()
        [0, 1, 2, 1]
        """
        size, n_runs = self.height * self.width, np.diff(self.offset)
        last = np.zeros(len(self), dtype=np.int64)
        has_runs = n_runs > 0
        last[has_runs] = self.end[self.offset[1:][has_runs] - 1]
        has_rest = (last < size) | ~has_runs  # outside after the last run
        offset = np.concatenate([[0], np.cumsum(2 * n_runs + has_rest)]).astype(np.int64)
        counts = np.empty(offset[-1], dtype=np.int64)
        place = np.repeat(offset[:-1] - 2 * self.offset[:-1], n_runs) + 2 * np.arange(len(self.start))
        previous = np.concatenate([[0], self.end[:-1]]) if len(self.end) else self.end
        is_first = np.zeros(len(self.start), dtype=bool)
        is_first[self.offset[:-1][has_runs]] = True
        counts[place] = self.start - np.where(is_first, 0, previous)
        counts[place + 1] = self.end - self.start
        counts[offset[1:][has_rest] - 1] = (size - last)[has_rest]
        return counts, offset

    def to_coco(self, *, compressed: bool = True) -> list[dict[str, Any]]:
        """Return masks in COCO's run-length encoding, as pycocotools and labelling tools read it.

        Parameters
        ----------
        compressed : bool, default=True
            Write counts as a text instead of a list of numbers.

        Returns
        -------
        list of dict
            Entries size (height and width) and counts.

        Examples
        --------
        >>> MaskRuns.from_arrays([np.eye(2)]).to_coco(compressed=False)
        [{'size': [2, 2], 'counts': [0, 1, 2, 1]}]
        """
        counts, offset = self.to_counts()
        values: list[Any]
        if compressed:
            values = compress_counts(counts, offset)
        else:
            flat, ends = counts.tolist(), offset.tolist()
            values = [flat[begin:end] for begin, end in itertools.pairwise(ends)]
        sizes = zip(self.height.tolist(), self.width.tolist(), values, strict=True)
        return [{"size": [height, width], "counts": value} for height, width, value in sizes]

    def to_texts(self) -> list[str]:
        """Return masks in COCO's run-length encoding as JSON texts, for tables.

        Returns
        -------
        list of str

        Examples
        --------
        >>> MaskRuns.from_arrays([np.eye(2)]).to_texts()
        ['{"size": [2, 2], "counts": "0120"}']
        """
        return [json.dumps(mask) for mask in self.to_coco()]

    def to_array(self, row: int) -> NDArray[np.bool_]:
        """Return one mask as an array of pixels.

        Parameters
        ----------
        row : int
            Position of the mask.

        Returns
        -------
        ndarray of bool of shape (height, width)

        Examples
        --------
        >>> MaskRuns.from_arrays([np.eye(2)]).to_array(0).astype(int).tolist()
        [[1, 0], [0, 1]]
        """
        runs = slice(self.offset[row], self.offset[row + 1])
        height, width = int(self.height[row]), int(self.width[row])
        change = np.zeros(height * width + 1, dtype=np.int8)
        change[self.start[runs]] = 1
        change[self.end[runs]] -= 1
        return np.asarray(np.cumsum(change[:-1], dtype=np.int8).astype(bool).reshape((height, width), order="F"))


def compress_counts(counts: Codes, offset: Codes) -> list[str]:
    """Return counts as COCO's compressed texts.

    A count, from the fourth on its difference from the last but one, is written in characters of five bits, lowest bits
    first; a sixth bit tells that more follow.

    Parameters
    ----------
    counts : ndarray of int
        Counts of all masks.
    offset : ndarray of shape (n_masks + 1,)
        Mask ``n`` has the counts ``counts[offset[n]:offset[n + 1]]``.

    Returns
    -------
    list of str

    Examples
    --------
    >>> compress_counts(np.array([6, 1, 40, 4, 5, 4, 5, 4, 21]), np.array([0, 9]))
    ['61X13mN000`0']
    """
    position = np.arange(len(counts)) - np.repeat(offset[:-1], np.diff(offset))
    value = counts.astype(np.int64).copy()
    differs = np.flatnonzero(position > 2)
    value[differs] -= counts[differs - 2]
    # Characters of a number: as many as leave only copies of its sign, with the sign in the highest bit that is written.
    magnitude = np.where(value < 0, ~value, value)
    n_characters = np.ones(len(value), dtype=np.int64)
    for character in range(1, MAX_CHARACTERS):
        n_characters += magnitude >= (1 << (5 * character - 1))
    first = np.cumsum(n_characters) - n_characters
    total = int(n_characters.sum())
    number = np.repeat(np.arange(len(value)), n_characters)
    within = np.arange(total) - first[number]
    bits = (value[number] >> (5 * within)) & 31
    follows = within < n_characters[number] - 1
    text = (bits + 32 * follows + FIRST_CHARACTER).astype(np.uint8).tobytes().decode("ascii")
    ends = np.concatenate([[0], np.cumsum(n_characters)])[offset].tolist()
    return [text[begin:end] for begin, end in itertools.pairwise(ends)]


def decompress_counts(texts: Sequence[str]) -> tuple[Codes, Codes]:
    """Return the counts of COCO's compressed texts.

    Parameters
    ----------
    texts : sequence of str
        Compressed counts, one text per mask.

    Returns
    -------
    counts, offset : ndarray of int
        Mask ``n`` has the counts ``counts[offset[n]:offset[n + 1]]``.

    Raises
    ------
    InputError
        If a text is damaged.

    Examples
    --------
    >>> decompress_counts(["61X13mN000`0"])[0].tolist()
    [6, 1, 40, 4, 5, 4, 5, 4, 21]
    """
    length = np.array([len(text) for text in texts], dtype=np.int64)
    ends = np.cumsum(length)
    try:
        characters = np.frombuffer("".join(texts).encode("ascii"), dtype=np.uint8).astype(np.int64) - FIRST_CHARACTER
    except UnicodeEncodeError:
        characters = np.array([-1])
    is_last = (characters & 32) == 0
    is_valid = ((characters >= 0) & (characters < N_CHARACTERS)).all()
    if not is_valid or not is_last[ends[length > 0] - 1].all():
        raise InputError(
            f"counts are damaged: {preview([text for text in texts if text][:1])}; expected COCO's compressed counts, a list of "
            "numbers, or a dictionary with size and counts"
        )
    last = np.flatnonzero(is_last)
    first = np.concatenate([[0], last[:-1] + 1]) if len(last) else last
    n_characters = last - first + 1
    if n_characters.max(initial=0) > MAX_CHARACTERS:
        raise InputError("counts are damaged: a number is too long; expected COCO's compressed counts")
    within = np.arange(len(characters)) - np.repeat(first, n_characters)
    value = np.add.reduceat((characters & 31) << (5 * within), first) if len(first) else first
    is_negative = (characters[last] & 16) > 0
    value = np.where(is_negative, value - (np.int64(1) << (5 * n_characters)), value)
    offset = np.concatenate([[0], np.cumsum(np.bincount(np.searchsorted(ends, first, "right"), minlength=len(texts)))])
    offset = offset.astype(np.int64)
    # From the fourth count on, differences from the last but one: sums along the odd and the even counts of every mask.
    position = np.arange(len(value)) - np.repeat(offset[:-1], np.diff(offset))
    chain = np.lexsort(
        (position, np.where(position == 0, 2, position % 2), np.repeat(np.arange(len(texts)), np.diff(offset)))
    )
    begins = position[chain] <= 2
    cumulated = np.cumsum(value[chain])
    before = np.where(begins, cumulated - value[chain], 0)
    group = np.cumsum(begins) - 1
    counts = np.empty(len(value), dtype=np.int64)
    counts[chain] = cumulated - before[begins][group] if len(group) else cumulated
    return counts, offset


def parse_masks(
    cells: Sequence[Any], height: Sequence[Any] | None = None, width: Sequence[Any] | None = None
) -> MaskRuns:
    """Build masks from cells of a table.

    Parameters
    ----------
    cells : sequence
        Masks: COCO dictionaries with size and counts, their JSON texts, lists of counts, compressed counts, or arrays of pixels. A
        missing or empty cell is an empty mask.
    height, width : sequence of int, default=None
        Sizes of the masks that have none.

    Returns
    -------
    MaskRuns
        Empty masks without a size have height and width 0.

    Raises
    ------
    InputError
        If a cell holds no mask, or its counts do not agree with its size.

    Examples
    --------
    >>> parse_masks([{"size": [2, 2], "counts": [0, 1, 2, 1]}, '{"size": [2, 2], "counts": "13"}', None]).area.tolist()
    [2, 3, 0]
    """
    n = len(cells)
    sizes = np.zeros((n, 2), dtype=np.int64)
    for axis, column in enumerate((height, width)):
        if column is not None:
            sizes[:, axis] = [_read_side(value) for value in column]
    texts: dict[int, str] = {}
    lists: dict[int, Any] = {}
    arrays: dict[int, Any] = {}
    for row, cell in enumerate(cells):
        mask: Any = cell
        if isinstance(mask, str):
            stripped = mask.strip()
            if stripped[:1] == "{" or (stripped[:1] == "[" and stripped[-1:] == "]"):
                try:
                    mask = json.loads(stripped)
                except (ValueError, RecursionError):
                    raise InputError(f"row {row} has no mask: {preview([cell])} is no valid JSON") from None
            elif stripped:
                texts[row] = stripped
                continue
            else:
                mask = None
        if isinstance(mask, dict):
            mask = _read_coco(mask, sizes, row)
            if isinstance(mask, str | bytes):
                texts[row] = mask.decode("ascii", "replace") if isinstance(mask, bytes) else mask
                continue
        if mask is None or (isinstance(mask, float) and np.isnan(mask)):
            continue
        array = _as_numbers(mask, row)
        if array.ndim == 2 and array.size:
            arrays[row] = array
            sizes[row] = array.shape
        else:
            lists[row] = array
    is_counted = np.zeros(n, dtype=bool)
    is_counted[[*texts, *lists]] = True
    is_invalid = is_counted & ((sizes < 1) | (sizes > MAX_SIDE)).any(axis=1)
    if is_invalid.any():
        row = int(np.flatnonzero(is_invalid)[0])
        raise InputError(
            f"row {row} has a mask of the size {sizes[row, 0]} x {sizes[row, 1]}; expected a height and width from 1 to "
            f"{MAX_SIDE:,}, "
            "in the mask (size) or in the columns height and width"
        )
    counts, n_counts = _collect_counts(texts, lists, n)
    offset = np.concatenate([[0], np.cumsum(n_counts)]).astype(np.int64)
    runs = MaskRuns.from_counts(counts, offset, sizes[:, 0], sizes[:, 1])
    if not arrays:
        return runs
    dense = MaskRuns.from_arrays(list(arrays.values()))
    rows = np.arange(n)
    rows[list(arrays)] = n + np.arange(len(arrays))
    return concatenate_masks([runs, dense]).take(rows)


def concatenate_masks(parts: Sequence[MaskRuns]) -> MaskRuns:
    """Join several collections of masks.

    Parameters
    ----------
    parts : sequence of MaskRuns
        Masks.

    Returns
    -------
    MaskRuns

    Examples
    --------
    >>> masks = MaskRuns.from_arrays([np.eye(2)])
    >>> len(concatenate_masks([masks, masks]))
    2
    """
    n_runs = np.concatenate([np.diff(part.offset) for part in parts])
    offset = np.concatenate([[0], np.cumsum(n_runs)]).astype(np.int64)
    columns = [np.concatenate([getattr(part, name) for part in parts]) for name in ("start", "end", "height", "width")]
    return MaskRuns(offset, *columns)


def _read_coco(mask: dict[str, Any], sizes: Codes, row: int) -> Any:
    """Return the counts of a COCO dictionary, and set the size of the row."""
    size, counts = mask.get("size"), mask.get("counts")
    if counts is None or not isinstance(size, list | tuple | np.ndarray) or len(size) != 2:
        raise InputError(
            f'row {row} has a mask with the entries {preview(mask)}; expected {{"size": [height, width], "counts": ...}}'
        )
    sizes[row] = [_read_side(value) for value in size]
    return counts


def _read_side(value: Any) -> int:
    """Return a height or width; 0 if it is missing or no whole number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return 0
    return int(number) if 0 < number <= MAX_SIDE and number == int(number) else 0


def _as_numbers(mask: Any, row: int) -> NDArray[Any]:
    """Return counts or pixels as an array."""
    try:
        array = np.asarray(mask)
        if array.dtype == object and array.ndim == 1 and array.size:
            array = np.stack([np.asarray(line) for line in array])
    except ValueError:  # lists of different lengths
        array = np.empty(0, dtype=object)
    is_numeric = array.dtype.kind in "biu" or (array.dtype.kind == "f" and bool((array == np.floor(array)).all()))
    if array.ndim not in (1, 2) or not (is_numeric or array.size == 0) or array.dtype == object:
        raise InputError(
            f"row {row} has no mask but {preview([mask])}; expected COCO's run-length encoding, a list of counts, or an "
            "array of pixels"
        )
    return array


def _collect_counts(texts: dict[int, str], lists: dict[int, Any], n: int) -> tuple[Codes, Codes]:
    """Return the counts of all rows, and their number by row."""
    n_counts = np.zeros(n, dtype=np.int64)
    flat, offset = decompress_counts(list(texts.values()))
    n_counts[list(texts)] = np.diff(offset)
    if not lists:
        return flat, n_counts
    n_counts[list(lists)] = [len(part) for part in lists.values()]
    row = np.concatenate(
        [np.repeat(list(texts), np.diff(offset)), np.repeat(list(lists), [len(p) for p in lists.values()])]
    )
    counts = np.concatenate([flat, *(np.asarray(part).astype(np.int64) for part in lists.values())])
    return counts[np.argsort(row, kind="stable")], n_counts


def read_mask_column(column: pa.ChunkedArray) -> list[Any]:
    """Return the cells of a column of masks as Python objects.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Column of texts, lists or structs.

    Returns
    -------
    list

    Raises
    ------
    InputError
        If the column cannot hold masks.

    Examples
    --------
    >>> read_mask_column(pa.chunked_array([["13"]]))
    ['13']
    """
    kind = column.type
    is_possible = (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)
        or pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_struct(kind)
    )  # fmt: skip
    if not is_possible:
        raise InputError(f"the masks are {kind}; expected COCO's run-length encoding: texts, lists or structs")
    return column.to_pylist()
