"""Labels that are free texts, such as captions, and were taken for classes by mistake."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

#: Answers from which texts can be told from classes.
MIN_ANSWERS = 4
#: Share of distinct answers from which they are texts: workers who choose a class repeat those of other tasks.
MIN_DISTINCT_SHARE = 0.5
#: Words, or characters in languages without spaces, from which an answer is long.
LONG_WORDS, LONG_CHARACTERS = 3, 20
#: Share of long ones among distinct answers from which all are texts.
MIN_LONG_SHARE = 0.5
#: Number of distinct answers whose length is measured.
MAX_MEASURED = 1000


def are_texts(distinct: Iterable[Any], n_distinct: int, n_answers: int) -> bool:
    """Return whether answers look like free texts: most are different and long.

    Parameters
    ----------
    distinct : iterable
        Distinct answers.
    n_distinct, n_answers : int
        Number of distinct answers and of all answers.

    Returns
    -------
    bool

    Examples
    --------
    >>> captions = ["a cat on a mat", "the cat sits there", "one dog and a ball", "a dog plays ball"]
    >>> are_texts(captions, 4, 4), are_texts(["not relevant to it", "relevant to it"], 2, 40)
    (True, False)
    """
    if n_answers < MIN_ANSWERS or n_distinct < MIN_DISTINCT_SHARE * n_answers:
        return False
    measured = list(islice(distinct, MAX_MEASURED))
    n_long = sum(
        isinstance(text, str) and (len(text.split()) >= LONG_WORDS or len(text) >= LONG_CHARACTERS) for text in measured
    )
    return n_long >= MIN_LONG_SHARE * len(measured)
