"""The distinct ids of a column, in order: what reading millions of rows spends its time on."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wisecrowd.errors import InputError

Codes: TypeAlias = NDArray[np.int32]

#: Texts of up to this many bytes are packed into integers; beyond two words, hashing the text itself is faster.
PACKED_BYTES = 16


def factorize_ids(column: pa.ChunkedArray, what: str) -> tuple[Codes, pa.Array]:
    """Which id each row holds, and the ids that occur, ascending; the column must have no holes.

    >>> codes, ids = factorize_ids(pa.chunked_array([["b", "a"], ["b"]]), "worker")
    >>> codes.tolist(), ids.to_pylist()
    ([1, 0, 1], ['a', 'b'])
    """
    if pa.types.is_dictionary(column.type):
        return _used(_one_array(column.unify_dictionaries()))
    if len(column) == 0:
        return np.empty(0, dtype=np.int32), pa.array([], column.type)
    if pa.types.is_integer(column.type):
        codes, numbers = _ranked(column.to_numpy())
        return codes, pa.array(numbers, column.type)
    if _is_text(column.type):
        packed = _packed(column)
        if packed is not None:
            return packed
        column = column.cast(pa.large_string())  # one array of all rows may pass the 2 GB of 32-bit offsets
    try:
        # Encoding chunk by chunk and uniting the dictionaries afterwards takes many times as long.
        return _used(_one_array(column).dictionary_encode())
    except pa.ArrowNotImplementedError:
        raise InputError(
            f"the {what} column holds {column.type} values; ids must be text, numbers, booleans or dates"
        ) from None


def is_strictly_ascending(ids: pa.Array) -> bool:
    """Whether ids are sorted and none comes twice; cheaper to see than to sort or to hash.

    >>> is_strictly_ascending(pa.array(["a", "b"])), is_strictly_ascending(pa.array(["a", "a"]))
    (True, False)
    """
    return bool(pc.all(pc.less(ids[:-1], ids[1:]), min_count=0).as_py())


def _used(encoded: pa.DictionaryArray) -> tuple[Codes, pa.Array]:
    """Sort a dictionary and drop the entries that no row refers to."""
    if pa.types.is_string_view(encoded.dictionary.type):  # polars' categories; Arrow cannot sort such texts
        encoded = pa.DictionaryArray.from_arrays(encoded.indices, encoded.dictionary.cast(pa.large_string()))
    local = encoded.indices.to_numpy(zero_copy_only=False)
    used = np.bincount(local, minlength=len(encoded.dictionary)) > 0
    if used.all() and is_strictly_ascending(encoded.dictionary):
        return local.astype(np.int32, copy=False), encoded.dictionary
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    order = order[used[order]]
    place = np.full(len(used), -1, dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return np.take(place, local), encoded.dictionary.take(pa.array(order))


def _packed(column: pa.ChunkedArray) -> tuple[Codes, pa.Array] | None:
    """Distinct short texts by integer arithmetic; None when a text is too long or holds a zero byte.

    Eight bytes of UTF-8 read as a big-endian integer sort as the text does. Ids are mostly built of parts with
    few values each, and integers of few values are hashed several times faster than text.
    """
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    lengths = pc.binary_length(column)
    longest = pc.max(lengths).as_py()
    if longest > PACKED_BYTES:
        return None
    n_words = max(1, -(-longest // 8))
    codes, parts, zeros = np.zeros(len(column), dtype=np.int32), np.empty((1, 0), dtype=np.uint64), 0
    for place in range(n_words):  # one word at a time, for each is a large array
        word = _word(column, place, n_words)
        zeros += int(np.count_nonzero(word.view(np.uint8) == 0))
        low, values = _ranked(word)
        del word
        codes, pairs = _ranked(codes.astype(np.int64) * len(values) + low)
        before, last = np.divmod(pairs, len(values))
        parts = np.column_stack([parts[before], values[last]])
    if zeros != 8 * n_words * len(column) - pc.sum(lengths).as_py():
        return None  # an id holds a zero byte, and padding would make one of "a" and "a\0"
    return codes, _unpacked(parts)


def _word(column: pa.ChunkedArray, place: int, n_words: int) -> NDArray[np.uint64]:
    """Eight bytes of each text, as an integer that sorts as they do."""
    word = np.empty(len(column), dtype=np.uint64)
    start = 0
    for chunk in column.chunks:
        if len(chunk):
            padded = pc.ascii_rpad(chunk, width=8 * n_words, padding="\0").buffers()[2]
            rows = np.frombuffer(padded, dtype=">u8", count=n_words * len(chunk))
            word[start : start + len(chunk)] = rows[place::n_words]
            start += len(chunk)
    return word


def _unpacked(words: NDArray[np.uint64]) -> pa.Array:
    """The texts again: the bytes of the words, without the padding."""
    letters = words.astype(">u8").view(np.uint8)
    filled = letters != 0
    ends = np.cumsum(np.count_nonzero(filled, axis=1), dtype=np.int64)
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), ends])
    return pa.LargeStringArray.from_buffers(len(words), pa.py_buffer(offsets), pa.py_buffer(letters[filled]))


def _ranked(values: NDArray[Any]) -> tuple[Codes, NDArray[Any]]:
    """The rank of each integer among the distinct ones, and those, ascending."""
    if values.dtype != np.uint64:
        values = values.astype(np.int64, copy=False)
    low = values.min()
    span = int(values.max()) - int(low) + 1
    if span <= 4 * len(values) + 1_000_000:  # few enough to give each possible value a place, without hashing
        shifted = (values if low == 0 else values - low).view(np.int64)
        occurs = np.zeros(span, dtype=bool)
        occurs[shifted] = True
        rank = np.cumsum(occurs, dtype=np.int32)
        rank -= 1
        return rank[shifted], np.flatnonzero(occurs).astype(values.dtype) + low
    codes, found = pd.factorize(values)
    order = np.argsort(found)
    place = np.empty(len(found), dtype=np.int32)
    place[order] = np.arange(len(found), dtype=np.int32)
    return place[codes], found[order]


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 0:
        return pa.array([], column.type)
    joined = column.combine_chunks()
    return joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined
