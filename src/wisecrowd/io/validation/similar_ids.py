"""Ids that differ from each other only by case, space, Unicode form or invisible characters."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from wisecrowd.io.tables.spellings import INVISIBLE, SPACES, fold_unicode, list_equal


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
    return list_equal(index, _simplify(pa.array(index)).to_pandas())


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
    simplified = _simplify(ids)
    is_ascii = pc.string_is_ascii(ids)
    if pc.all(is_ascii, min_count=0).as_py():  # so are most ids, and the rest takes far longer
        return []
    key = pc.if_else(is_ascii, simplified, fold_unicode(ids, SPACES + INVISIBLE))
    frame = pd.DataFrame({"key": key.to_pandas(), "simplified": simplified.to_pandas()})
    n_forms = frame.drop_duplicates().groupby("key", sort=False).size()
    return list_equal(index, frame["key"].where(frame["key"].isin(n_forms.index[n_forms > 1])))


def _simplify(ids: pa.Array) -> pa.Array:
    return pc.replace_substring(pc.utf8_lower(pc.utf8_trim_whitespace(ids)), " ", "")
