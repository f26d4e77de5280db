"""Checks of ids and labels as texts: similar ones, and those that a damaged file leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from wisecrowd.errors import preview
from wisecrowd.io.tables.similar_ids import find_lookalike_ids, find_similar_ids
from wisecrowd.io.validation.findings import Finding
from wisecrowd.utils.text import count_noun, escape_lookalikes, shorten

#: Advice for several spellings of one value.
NORMALISE_FIX = "If they mean the same: normalise=True (--normalise)."


def check_ids(
    vocabularies: Mapping[str, Sequence[pd.Index | None]], *, can_normalise: bool = False
) -> Iterator[Finding]:
    """Check ids that differ by case, space or invisible characters, and ids with line breaks.

    Parameters
    ----------
    vocabularies : mapping of str to sequence of Index or None
        Vocabularies by noun, such as "label" or "id". The noun is part of the names of the findings.
    can_normalise : bool, default=False
        Whether the option ``normalise`` unifies similar ids.

    Yields
    ------
    Finding
        Problems.

    Examples
    --------
    >>> [finding.name for finding in check_ids({"label": [pd.Index(["cat", "Cat"])]})]
    ['labels-differ-by-case-or-space']
    """
    for noun, indexes in vocabularies.items():
        yield from _check_similar_ids(noun, indexes, can_normalise)
    for noun, indexes in vocabularies.items():
        yield from _check_lookalike_ids(noun, indexes, can_normalise)
    yield from _check_line_breaks([index for indexes in vocabularies.values() for index in indexes])


def _check_similar_ids(noun: str, indexes: Sequence[pd.Index | None], can_normalise: bool) -> Iterator[Finding]:
    similar = [text for index in indexes if index is not None for text in find_similar_ids(index)]
    if similar:
        yield Finding(
            name=f"{noun}s-differ-by-case-or-space",
            severity="warning",
            count=len(similar),
            examples=tuple(similar[:3]),
            message=f"{count_noun(len(similar), noun)} differ only by case or space, and count as different "
            f"({preview(similar)})",
            fix=NORMALISE_FIX
            if can_normalise
            else "If they mean the same, unify them, for example by df[column].str.strip().str.lower().",
            options={"normalise": True} if can_normalise else {},
        )


def _check_lookalike_ids(noun: str, indexes: Sequence[pd.Index | None], can_normalise: bool) -> Iterator[Finding]:
    similar = [text for index in indexes if index is not None for text in find_lookalike_ids(index)]
    if similar:
        listed = ", ".join(f"'{shorten(escape_lookalikes(text))}'" for text in similar[:4]) + ", …" * (len(similar) > 4)
        yield Finding(
            name=f"{noun}s-look-alike",
            severity="warning",
            count=len(similar),
            examples=tuple(similar[:3]),
            message=f"{count_noun(len(similar), noun)} look alike and differ only by Unicode form or invisible characters, but "
            f"count as different ({listed})",
            fix=NORMALISE_FIX
            if can_normalise
            else 'If they mean the same, unify them, for example by df[column].str.normalize("NFKC"), and remove zero-width '
            "spaces.",
            options={"normalise": True} if can_normalise else {},
        )


def _check_line_breaks(indexes: Sequence[pd.Index | None]) -> Iterator[Finding]:
    texts = [index for index in indexes if index is not None and index.inferred_type == "string"]
    broken = [text for index in texts for text in index[pc.match_substring(pa.array(index), "\n").to_numpy(False)]]
    if broken:
        yield Finding(
            name="line-breaks",
            severity="warning",
            count=len(broken),
            examples=tuple(broken[:3]),
            message=f"{count_noun(len(broken), 'text')} with a line break in it ({preview(broken)}), which may be several rows",
            fix="Look for a quotation mark that is closed too late.",
        )
