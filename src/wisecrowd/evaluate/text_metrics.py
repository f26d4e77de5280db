"""Error rates of texts against reference texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.edit_distance import compute_edit_distances
from wisecrowd.data.texts import Normalisation, TextUnit, tokenize
from wisecrowd.errors import InputError, preview


def compute_error_rates(
    texts: pd.Series | Sequence[str],
    reference: pd.Series | Sequence[str],
    *,
    unit: TextUnit = "words",
    normalisation: Normalisation = "words",
) -> NDArray[np.float64]:
    """Return the word or character error rate of every text: edit distance over the length of the reference.

    Parameters
    ----------
    texts, reference : Series or sequence of str
        Texts and their references. Two Series are aligned by index, and references without a text are left out.
    unit : {"words", "characters"}, default="words"
        Words for the word error rate (WER), characters for the character error rate (CER).
    normalisation : {"words", "case", "none"}, default="words"
        Treatment of punctuation and case; see `wisecrowd.data.texts.tokenize`.

    Returns
    -------
    ndarray of shape (n_texts,)
        An empty reference has the rate 0 if the text is empty, too, and 1 otherwise.

    Raises
    ------
    InputError
        If a text has no reference.

    Examples
    --------
    >>> compute_error_rates(["the cat sad"], ["The cat sat."]).round(2).tolist()
    [0.33]
    """
    if isinstance(texts, pd.Series) and isinstance(reference, pd.Series):
        unknown = texts.index.difference(reference.index)
        if len(unknown):
            raise InputError(f"{len(unknown):,} texts have no reference ({preview(unknown)}); leave them out")
        reference = reference.loc[texts.index]
    answers: list[Any] = list(texts)
    references: list[Any] = list(reference)
    if len(answers) != len(references):
        raise InputError(
            f"there are {len(answers):,} texts and {len(references):,} references; expected one reference per text"
        )
    tokens = tokenize([*answers, *references], normalisation=normalisation, unit=unit)
    n = len(answers)
    distance = compute_edit_distances(tokens, np.arange(n), tokens, n + np.arange(n))
    length = tokens.length[n:]
    return np.asarray(np.where(length > 0, distance / np.maximum(length, 1), np.minimum(distance, 1)), dtype=np.float64)
