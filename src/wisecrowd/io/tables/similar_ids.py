"""Ids that differ from each other only by case, space, Unicode form or invisible characters."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from wisecrowd.io.tables.spellings import INVISIBLE, SPACES, find_equal_numbers, fold_unicode, list_equal
from wisecrowd.utils.text import count_noun, escape_lookalikes, shorten


def find_similar_ids(index: pd.Index) -> list[str]:
    """Return the ids that differ from another id only by case or space.

    Parameters
    ----------
    index : Index
        Ids.

    Returns
    -------
    list of str
        Ids, similar ones together.

    Examples
    --------
    >>> find_similar_ids(pd.Index(["Cat", "dog", "cat "]))
    ['Cat', 'cat ']
    """
    if index.inferred_type != "string":
        return []
    ids = pa.array(index)
    simplified = _simplify(ids)
    if ids.equals(simplified):  # distinct ids without capitals and spaces; comparing the rest takes far longer
        return []
    return list_equal(index, simplified.to_pandas())


def find_lookalike_ids(index: pd.Index) -> list[str]:
    """Return the ids that look like another id, but differ by Unicode form or by invisible characters.

    Parameters
    ----------
    index : Index
        Ids.

    Returns
    -------
    list of str
        Ids, similar ones together. Ids that differ only by case or space are not among them.

    Examples
    --------
    >>> [ascii(text) for text in find_lookalike_ids(pd.Index(["caf\\u00e9", "cafe\\u0301", "tea"]))]
    ["'caf\\\\xe9'", "'cafe\\\\u0301'"]
    """
    if index.inferred_type != "string":
        return []
    ids = pa.array(index)
    is_ascii = pc.string_is_ascii(ids)
    if pc.all(is_ascii, min_count=0).as_py():  # so are most ids, and the rest takes far longer
        return []
    simplified = _simplify(ids)
    key = pc.if_else(is_ascii, simplified, fold_unicode(ids, SPACES + INVISIBLE))
    frame = pd.DataFrame({"key": key.to_pandas(), "simplified": simplified.to_pandas()})
    n_forms = frame.drop_duplicates().groupby("key", sort=False).size()
    return list_equal(index, frame["key"].where(frame["key"].isin(n_forms.index[n_forms > 1])))


def describe_similar_ids(vocabularies: Mapping[str, pd.Index | None]) -> list[str]:
    """Describe ids that probably mean the same, but count as different.

    Votes are read more often than they are checked, so every reader calls this function. Its time is small beside that of reading.

    Parameters
    ----------
    vocabularies : mapping of str to Index or None
        Vocabularies by noun, such as "label" or "task id".

    Returns
    -------
    list of str
        A sentence for each vocabulary and kind of difference.

    Examples
    --------
    >>> describe_similar_ids({"task id": pd.Index(["12", "12.0", "13"])})
    ["2 task ids are equal as numbers, but count as different ('12', '12.0')"]
    """
    sentences = []
    for noun, index in vocabularies.items():
        for find, difference in _DIFFERENCES:
            if index is not None and (similar := find(index)):
                listed = ", ".join(f"'{shorten(escape_lookalikes(text))}'" for text in similar[:3])
                sentences.append(
                    f"{count_noun(len(similar), noun)} {difference}, but count as different ({listed}{', …' * (len(similar) > 3)})"
                )
    return sentences


def list_similar_ids(index: pd.Index) -> list[str]:
    """Return all ids that `describe_similar_ids` describes.

    Parameters
    ----------
    index : Index
        Ids.

    Returns
    -------
    list of str

    Examples
    --------
    >>> list_similar_ids(pd.Index(["12", "12.0", "Cat", "cat", "dog"]))
    ['12', '12.0', 'Cat', 'cat']
    """
    return [name for find, _ in _DIFFERENCES for name in find(index)]


#: Functions that find ids, and what they differ by.
_DIFFERENCES: tuple[tuple[Callable[[pd.Index], list[str]], str], ...] = (
    (find_equal_numbers, "are equal as numbers"),
    (find_similar_ids, "differ only by case or space"),
    (find_lookalike_ids, "differ only by Unicode form or invisible characters"),
)


def _simplify(ids: pa.Array) -> pa.Array:
    return pc.replace_substring(pc.utf8_lower(pc.utf8_trim_whitespace(ids)), " ", "")
