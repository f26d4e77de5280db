"""Ids that differ from each other only by case or space."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc


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
    simplified = pc.replace_substring(pc.utf8_lower(pc.utf8_trim_whitespace(pa.array(index))), " ", "").to_pandas()
    is_repeated = simplified.duplicated(keep=False)
    if not is_repeated.any():
        return []
    return index[is_repeated[is_repeated].index[simplified[is_repeated].argsort()]].tolist()
