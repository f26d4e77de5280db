"""Distinct ids of a column, sorted.

Reading a crowd with millions of votes spends most of its time here, so each type of id has its own algorithm.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wisecrowd.errors import InputError

#: Positions in a vocabulary.
Codes: TypeAlias = NDArray[np.int32]

#: Longest text, in bytes, that is packed into integers; beyond two 64-bit words, hashing the text itself is faster.
PACKED_BYTES = 16
#: A table of all possible integers is cheaper than hashing if there are at most so many of them per row, …
DENSE_VALUES_PER_ROW = 4
#: … and so many in addition, whatever the number of rows.
DENSE_RANGE = 1_000_000


def factorize_ids(column: pa.ChunkedArray, kind: str) -> tuple[Codes, pa.Array]:
    """Encode ids as positions in the sorted array of distinct ids.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Ids without missing values.
    kind : str
        Kind of the ids, for messages: "task", "worker" or "label".

    Returns
    -------
    codes : ndarray of int32
        Position of each id.
    ids : pyarrow.Array
        Distinct ids, ascending.

    Raises
    ------
    InputError
        If the column has a type that cannot be an id.

    Examples
    --------
    >>> codes, ids = factorize_ids(pa.chunked_array([["b", "a"], ["b"]]), "worker")
    >>> codes.tolist(), ids.to_pylist()
    ([1, 0, 1], ['a', 'b'])
    """
    check_id_type(column.type, kind)
    if pa.types.is_dictionary(column.type):
        return _sort_dictionary(_combine_chunks(column.unify_dictionaries()))
    if len(column) == 0:
        return np.empty(0, dtype=np.int32), pa.array([], column.type)
    if pa.types.is_integer(column.type):
        codes, numbers = _rank_integers(column.to_numpy())
        return codes, pa.array(numbers, column.type)
    if _is_text(column.type):
        result = _factorize_short_text(column)
        if result is not None:
            return result
        column = column.cast(pa.large_string())  # one array of all rows may pass the 2 GB of 32-bit offsets
    try:
        # Encoding chunk by chunk and unifying the dictionaries afterwards takes many times as long.
        return _sort_dictionary(_combine_chunks(column).dictionary_encode())
    except pa.ArrowNotImplementedError:
        raise _invalid_type(column.type, kind) from None


def check_id_type(kind: pa.DataType, noun: str) -> None:
    """Raise when values of a type cannot be ids.

    Parameters
    ----------
    kind : pyarrow.DataType
        Type of a column.
    noun : str
        Name of the column, for messages.

    Raises
    ------
    InputError
        If the values are nested, binary, or of another type that is neither text, number, boolean nor date.

    Examples
    --------
    >>> check_id_type(pa.binary(), "task")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: the task column holds binary values; ids must be text, numbers, booleans or dates
    """
    value_type = kind.value_type if pa.types.is_dictionary(kind) else kind
    is_number = pa.types.is_integer(value_type) or pa.types.is_floating(value_type)
    is_date = pa.types.is_date(value_type) or pa.types.is_timestamp(value_type)
    is_other = pa.types.is_boolean(value_type) or pa.types.is_decimal128(value_type) or pa.types.is_null(value_type)
    if not (_is_text(value_type) or is_number or is_date or is_other):
        raise _invalid_type(kind, noun)


def _invalid_type(kind: pa.DataType, noun: str) -> InputError:
    return InputError(f"the {noun} column holds {kind} values; ids must be text, numbers, booleans or dates")


def is_strictly_ascending(ids: pa.Array) -> bool:
    """Return whether ids are sorted and unique; this is cheaper than sorting or hashing them.

    Parameters
    ----------
    ids : pyarrow.Array
        Ids.

    Returns
    -------
    bool
        True if each id is greater than the one before.

    Examples
    --------
    >>> is_strictly_ascending(pa.array(["a", "b"])), is_strictly_ascending(pa.array(["a", "a"]))
    (True, False)
    """
    return bool(pc.all(pc.less(ids[:-1], ids[1:]), min_count=0).as_py())


def _sort_dictionary(encoded: pa.DictionaryArray) -> tuple[Codes, pa.Array]:
    """Sort a dictionary and drop its unused entries."""
    if pa.types.is_string_view(encoded.dictionary.type):  # categories of polars; Arrow cannot sort string views
        encoded = pa.DictionaryArray.from_arrays(encoded.indices, encoded.dictionary.cast(pa.large_string()))
    local_codes = encoded.indices.to_numpy(zero_copy_only=False)
    is_used = np.bincount(local_codes, minlength=len(encoded.dictionary)) > 0
    if is_used.all() and is_strictly_ascending(encoded.dictionary):
        return local_codes.astype(np.int32, copy=False), encoded.dictionary
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    order = order[is_used[order]]
    rank = np.full(len(is_used), -1, dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return np.take(rank, local_codes), encoded.dictionary.take(pa.array(order))


def _factorize_short_text(column: pa.ChunkedArray) -> tuple[Codes, pa.Array] | None:
    """Factorize short texts by integer arithmetic; return None when a text is too long or contains a zero byte.

    Eight bytes of UTF-8 read as a big-endian integer sort as the text does. Most ids consist of parts with few values
    each, and integers with few values are hashed several times faster than text.
    """
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    lengths = pc.binary_length(column)
    longest = pc.max(lengths).as_py()
    if longest > PACKED_BYTES:
        return None
    n_words = max(1, -(-longest // 8))
    codes, words, n_zeros = np.zeros(len(column), dtype=np.int32), np.empty((1, 0), dtype=np.uint64), 0
    for position in range(n_words):  # one word at a time, because each is a large array
        word = _pack_word(column, position, n_words)
        n_zeros += int(np.count_nonzero(word.view(np.uint8) == 0))
        word_codes, values = _rank_integers(word)
        del word
        codes, prefixes = _rank_integers(codes.astype(np.int64) * len(values) + word_codes)
        before, last = np.divmod(prefixes, len(values))
        words = np.column_stack([words[before], values[last]])
    if n_zeros != 8 * n_words * len(column) - pc.sum(lengths).as_py():
        return None  # padding cannot tell "a" from "a\0"
    return codes, _unpack_text(words)


def _pack_word(column: pa.ChunkedArray, position: int, n_words: int) -> NDArray[np.uint64]:
    """Pack eight bytes of each text into an integer that sorts as they do."""
    word = np.empty(len(column), dtype=np.uint64)
    start = 0
    for chunk in column.chunks:
        if len(chunk):
            padded = pc.ascii_rpad(chunk, width=8 * n_words, padding="\0").buffers()[2]
            rows = np.frombuffer(padded, dtype=">u8", count=n_words * len(chunk))
            word[start : start + len(chunk)] = rows[position::n_words]
            start += len(chunk)
    return word


def _unpack_text(words: NDArray[np.uint64]) -> pa.Array:
    """Return the texts whose bytes are packed into words, without the padding."""
    characters = words.astype(">u8").view(np.uint8)
    is_padding = characters == 0
    ends = np.cumsum(np.count_nonzero(~is_padding, axis=1), dtype=np.int64)
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), ends])
    return pa.LargeStringArray.from_buffers(len(words), pa.py_buffer(offsets), pa.py_buffer(characters[~is_padding]))


def _rank_integers(values: NDArray[Any]) -> tuple[Codes, NDArray[Any]]:
    """Return the code of each integer, and the distinct integers in ascending order.

    A code is the position of an integer among the distinct ones. There must be at least one integer.
    """
    if values.dtype != np.uint64:
        values = values.astype(np.int64, copy=False)
    smallest = values.min()
    span = int(values.max()) - int(smallest) + 1
    if span <= DENSE_VALUES_PER_ROW * len(values) + DENSE_RANGE:
        # Differences of unsigned integers fit into signed ones, because the span is small.
        shifted = (values if smallest == 0 else values - smallest).view(np.int64)
        occurs = np.zeros(span, dtype=bool)
        occurs[shifted] = True
        rank = np.cumsum(occurs, dtype=np.int32)
        rank -= 1
        return rank[shifted], np.flatnonzero(occurs).astype(values.dtype) + smallest
    codes, distinct = pd.factorize(values)
    order = np.argsort(distinct)
    rank = np.empty(len(distinct), dtype=np.int32)
    rank[order] = np.arange(len(distinct), dtype=np.int32)
    return rank[codes], distinct[order]


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _combine_chunks(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 0:
        return pa.array([], column.type)
    combined = column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined
