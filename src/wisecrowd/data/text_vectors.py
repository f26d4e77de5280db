"""Vectors (embeddings) of texts, found by the text itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.errors import InputError, preview

#: Table of vectors with texts as its index, or function from a list of distinct texts to one vector each.
TextVectorsLike: TypeAlias = pd.DataFrame | Callable[[list[str]], Any]


class TextVectors(NamedTuple):
    """Vectors of texts, stored once for equal texts.

    Parameters
    ----------
    code : ndarray of shape (n_texts,)
        Row of ``vectors`` of each text.
    vectors : ndarray of shape (n_distinct, n_dimensions)
        Vectors of the distinct texts.
    """

    code: NDArray[np.int64]
    vectors: NDArray[np.float64]


def look_up_vectors(texts: Any, source: TextVectorsLike) -> TextVectors:
    """Return the vectors of texts.

    Parameters
    ----------
    texts : array-like of str
        Texts.
    source : DataFrame or callable
        Table with one row of numbers per distinct text and the texts as its index, or a function that takes a list of distinct
        texts and returns one vector each.

    Returns
    -------
    TextVectors

    Raises
    ------
    InputError
        If a text has no vector or two, or vectors are not finite numbers.

    Examples
    --------
    >>> found = look_up_vectors(["a cat", "a dog", "a cat"], lambda texts: [[len(text), 1] for text in texts])
    >>> found.code.tolist(), found.vectors.shape
    ([0, 1, 0], (2, 2))
    """
    code, distinct = pd.factorize(np.asarray(texts, dtype=object))
    if isinstance(source, pd.DataFrame):
        if not source.index.is_unique:
            repeated = source.index[source.index.duplicated()].unique()
            raise InputError(f"texts have more than one vector: {preview(repeated)}. Keep one row per text")
        row = source.index.get_indexer(pd.Index(distinct, dtype=object))
        if (row < 0).any():
            raise InputError(
                f"texts have no vector: {preview(distinct[row < 0])}. The index of the table must hold the texts as written"
            )
        values = source.iloc[row].to_numpy()
    elif callable(source):
        values = source([str(text) for text in distinct])
    else:
        raise InputError(
            f"vectors of texts must be a DataFrame whose index holds the texts, or a function from texts to vectors; "
            f"got {type(source).__name__}"
        )
    try:
        vectors = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"vectors of texts must be numbers, equally many for each text: {error}") from None
    if vectors.ndim != 2 or len(vectors) != len(distinct) or vectors.shape[1] == 0:
        raise InputError(
            f"vectors of {len(distinct)} distinct texts must be a table of that many rows; got shape {vectors.shape}"
        )
    if not np.isfinite(vectors).all():
        raise InputError("vectors of texts have missing or infinite numbers; remove or replace them")
    return TextVectors(code.astype(np.int64), vectors)
