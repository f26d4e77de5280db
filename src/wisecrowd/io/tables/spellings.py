"""Spellings of one value: texts that differ only by case, space, Unicode form, invisible characters or the form of a number."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from wisecrowd.utils.text import count_noun, escape_lookalikes, shorten

#: Characters that are not seen and not spaces: format characters such as zero-width spaces, variation selectors, fillers.
INVISIBLE = r"\p{Cf}\x{34F}\x{115F}\x{1160}\x{17B4}\x{17B5}\x{180B}-\x{180F}\x{FE00}-\x{FE0F}"
#: Spaces of all kinds.
SPACES = r"\s\p{Z}\x{2800}"
#: Numbers without an exponent. Leading zeros make a code: 007 is not 7.
_PLAIN_NUMBER = r"^[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)$"
#: Shortest form of a whole number.
_WHOLE_NUMBER = r"0|-?[1-9][0-9]*"
#: Large and small numbers as programs write them, such as 1e+16. Without a sign, 12e4 may be part of a hash.
_EXPONENT_NUMBER = r"^[+-]?[0-9](\.[0-9]+)?[eE][+-][0-9]{1,2}$"

#: Whole numbers with thousands separators, as spreadsheets write them.
_GROUPED_NUMBER = r"^\s*[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+\s*$"
#: Digits around a comma. Where such texts are no grouped numbers, commas mean something else: decimals, or parts of an id.
_DIGITS_AND_COMMA = r"[0-9],[0-9]"

#: Texts that may be a number in another form than the shortest; only these can equal another text as a number.
_LONGER_NUMBER = (
    r"^\s*[+-]?[0-9]*\.[0-9]*\s*$|^\s*\+[0-9]|^\s*-0|^\s*[+-]?[0-9](\.[0-9]+)?[eE][+-]|^\s+[+-]?[0-9]|[0-9]\s+$|"
    + _GROUPED_NUMBER
)

#: Replacements that shorten a number: plus sign, no zero before the point (\\1 is the sign), zeros at the end, minus zero.
_SHORTENINGS = ((r"^\+", ""), (r"^(-?)\.", r"\10."), (r"(\.[0-9]*?)0*$", r"\1"), (r"\.$", ""), (r"^-0$", "0"))


def find_number_forms(texts: pa.Array, *, separators: bool = True) -> pa.Array:
    """Return the shortest form of every text that is a number.

    Digits are compared as text, so that large numbers stay exact.

    Parameters
    ----------
    texts : pyarrow.Array of string
        Texts.
    separators : bool, default=True
        Whether 1,183 is 1183, unless another text shows that a comma means something else (1,5 or 0,500).

    Returns
    -------
    pyarrow.Array of string
        Numbers without plus sign, exponent, separators and zeros at the end; null where a text is not a number.

    Examples
    --------
    >>> find_number_forms(pa.array(["1.0", "+1", "2.50", "1e+03", "007", "one"])).to_pylist()
    ['1', '1', '2.5', '1000', None, None]
    >>> find_number_forms(pa.array(["1,183", "7"])).to_pylist(), find_number_forms(pa.array(["1,183", "1,5"])).to_pylist()
    (['1183', '7'], [None, None])
    """
    texts = pc.utf8_trim_whitespace(texts)
    is_grouped = _find_grouped(texts)
    if separators and pc.any(is_grouped).as_py():
        texts = pc.if_else(is_grouped, pc.replace_substring(texts, ",", ""), texts)
    has_exponent = pc.match_substring_regex(texts, _EXPONENT_NUMBER)
    if pc.any(has_exponent).as_py():
        expanded = [format(Decimal(text), "f") for text in texts.filter(has_exponent).to_pylist()]
        texts = pc.replace_with_mask(texts, pc.fill_null(has_exponent, False), pa.array(expanded, texts.type))
    numbers = pc.if_else(pc.match_substring_regex(texts, _PLAIN_NUMBER), texts, pa.scalar(None, texts.type))
    for pattern, replacement in _SHORTENINGS:
        numbers = pc.replace_substring_regex(numbers, pattern=pattern, replacement=replacement)
    return numbers


def _find_grouped(texts: pa.Array) -> pa.Array:
    """Return a mask of whole numbers with thousands separators; all false if commas mean something else in some text."""
    is_grouped = pc.match_substring_regex(texts, _GROUPED_NUMBER)
    if not pc.any(is_grouped).as_py():
        return is_grouped
    has_comma = pc.match_substring_regex(texts, _DIGITS_AND_COMMA)
    return pc.and_(is_grouped, pa.scalar(pc.sum(has_comma).as_py() == pc.sum(is_grouped).as_py()))


def find_grouped_ids(index: pd.Index) -> list[str]:
    """Return the ids that are whole numbers with thousands separators, such as ``1,183``.

    Parameters
    ----------
    index : Index
        Ids.

    Returns
    -------
    list of str
        Ids, empty if commas mean something else in some id.

    Examples
    --------
    >>> find_grouped_ids(pd.Index(["1,183", "7"])), find_grouped_ids(pd.Index(["1,183", "1,5"]))
    (['1,183'], [])
    """
    if index.inferred_type != "string":
        return []
    grouped: list[str] = index[_find_grouped(pa.array(index)).to_numpy(zero_copy_only=False)].tolist()
    return grouped


def find_equal_numbers(index: pd.Index) -> list[str]:
    """Return the texts that are equal to another one as numbers.

    Parameters
    ----------
    index : Index
        Distinct ids or labels.

    Returns
    -------
    list of str
        Texts, equal ones together.

    Examples
    --------
    >>> find_equal_numbers(pd.Index(["1", "2", "1.0", "007", "7"]))
    ['1', '1.0']
    """
    if index.inferred_type != "string":
        return []
    texts = pa.array(index)
    if not pc.any(pc.match_substring_regex(texts, _LONGER_NUMBER)).as_py():  # the rest takes ten times as long
        return []
    return list_equal(index, find_number_forms(texts).to_pandas())


def list_equal(index: pd.Index, keys: pd.Series[str]) -> list[str]:
    """Return the ids whose key is that of another id.

    Parameters
    ----------
    index : Index
        Ids.
    keys : Series
        Key of each id. A missing key equals no other.

    Returns
    -------
    list of str
        Ids, those of one key together.

    Examples
    --------
    >>> list_equal(pd.Index(["Cat", "dog", "cat"]), pd.Series(["cat", "dog", "cat"]))
    ['Cat', 'cat']
    """
    is_repeated = keys.duplicated(keep=False) & keys.notna()
    positions = np.flatnonzero(is_repeated.to_numpy())
    equal: list[str] = index[positions[keys.iloc[positions].argsort(kind="stable").to_numpy()]].tolist()
    return equal


def fold_unicode(texts: pa.Array, removed: str) -> pa.Array:
    """Return texts in lower case and in one Unicode form, without some characters.

    Parameters
    ----------
    texts : pyarrow.Array of string
        Texts.
    removed : str
        Characters to remove, as in the brackets of a regular expression, such as `INVISIBLE`.

    Returns
    -------
    pyarrow.Array of string

    Examples
    --------
    >>> fold_unicode(pa.array(["Cafe\\u0301", "caf\\u00e9\\u200b"]), INVISIBLE).to_pylist()
    ['café', 'café']
    """
    visible = pc.replace_substring_regex(pc.utf8_normalize(texts, form="NFKC"), pattern=f"[{removed}]+", replacement="")
    return pc.utf8_normalize(pc.utf8_lower(visible), form="NFKC")  # lower case has forms of its own


def make_spelling_keys(texts: pa.Array, *, separators: bool = True) -> pa.Array:
    """Return keys that are equal for spellings of one value.

    Parameters
    ----------
    texts : pyarrow.Array of string
        Texts.
    separators : bool, default=True
        Whether 1,183 is 1183 (see `find_number_forms`).

    Returns
    -------
    pyarrow.Array of string
        Texts in lower case, in Unicode form NFKC, without surrounding spaces and invisible characters; numbers in their
        shortest form.

    Examples
    --------
    >>> make_spelling_keys(pa.array([" New  York", "1.0", "007"])).to_pylist()
    ['new york', '1', '007']
    """
    if not pc.all(pc.string_is_ascii(texts), min_count=0).as_py():  # so are most ids, and the rest takes far longer
        texts = fold_unicode(texts, INVISIBLE)
    spaced = pc.replace_substring_regex(pc.utf8_lower(texts), pattern=f"[{SPACES}]+", replacement=" ")
    texts = pc.utf8_trim_whitespace(spaced)
    return pc.coalesce(find_number_forms(texts, separators=separators), texts)


def unify_spellings(
    column: pa.ChunkedArray, noun: str, preferred: Sequence[Any] | pd.Index | None = None
) -> tuple[pa.ChunkedArray, str]:
    """Replace all spellings of a value by one of them.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Column. One that is not text is returned unchanged.
    noun : str
        Noun for the values, such as "label".
    preferred : sequence, optional
        Spellings to choose if a value has one of them. Otherwise, the shortest form of a whole number, such as 100 for 100.0,
        and the most frequent spelling of anything else are chosen.

    Returns
    -------
    column : pyarrow.ChunkedArray
        Column with one spelling of each value. A value that had one spelling only keeps it unless it is a whole number.
    note : str
        Replacements, for the user. Empty if there are none.

    Examples
    --------
    >>> column, note = unify_spellings(pa.chunked_array([["cat", "Cat ", "cat", "dog"]]), "label")
    >>> column.to_pylist(), note
    (['cat', 'cat', 'cat', 'dog'], "normalised 1 label: 'Cat ' to 'cat'")
    """
    is_dictionary = pa.types.is_dictionary(column.type)
    kind = column.type.value_type if is_dictionary else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)) or len(column) == 0:
        return column, ""
    encoded = (column.unify_dictionaries() if is_dictionary else column.dictionary_encode()).combine_chunks()
    codes = pc.fill_null(encoded.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    texts = encoded.dictionary
    keys = make_spelling_keys(texts, separators=noun != "label")  # a label such as 1,250 may be a decimal
    frame = pd.DataFrame({"text": texts.to_pandas(), "key": keys.to_pandas()}, dtype=object)
    frame["count"] = np.bincount(codes[codes >= 0], minlength=len(frame))
    best = frame.sort_values(["count", "text"], ascending=[False, True], kind="stable").drop_duplicates("key")
    names = [] if preferred is None else [name for name in preferred if isinstance(name, str)]
    by_key = dict(zip(best["key"], best["text"], strict=True))
    is_whole = best["key"].str.fullmatch(_WHOLE_NUMBER)
    by_key |= dict(zip(best["key"][is_whole], best["key"][is_whole], strict=True))
    # The first of several preferred spellings is chosen.
    by_key |= dict(
        reversed(list(zip(make_spelling_keys(pa.array(names, pa.string())).to_pylist(), names, strict=True)))
    )
    new = frame["key"].map(by_key)
    new = new.where(~frame["text"].isin(names), frame["text"])  # spellings that the user listed stay apart
    is_changed = new != frame["text"]
    if not is_changed.any():
        return column, ""
    new_codes, new_texts = pd.factorize(new)
    indices = pa.array(new_codes[codes], pa.int32(), mask=codes < 0)
    array = pa.DictionaryArray.from_arrays(indices, pa.array(new_texts, kind))
    first = zip(frame["text"][is_changed][:3], new[is_changed][:3], strict=True)
    changes = ", ".join(" to ".join(map(_quote, pair)) for pair in first)
    n_changed = int(is_changed.sum())
    note = f"normalised {count_noun(n_changed, noun)}: {changes}" + ", …" * (n_changed > 3)
    return pa.chunked_array([array]), note


def _quote(text: str) -> str:
    """Return a text in quotes, shortened, in which look-alikes of other characters are visible."""
    return f"'{shorten(escape_lookalikes(text))}'"


def match_spellings(ids: pd.Index, vocabulary: pd.Index) -> pd.Index:
    """Replace ids by other spellings of them in a vocabulary.

    Parameters
    ----------
    ids : Index
        Ids to look up.
    vocabulary : Index
        Vocabulary to look them up in.

    Returns
    -------
    Index
        Ids of the vocabulary. An id that is in it, that is unknown, or that could be several of its ids stays as it is.

    Examples
    --------
    >>> match_spellings(pd.Index(["28.0", "x"]), pd.Index(["28", "29"])).tolist()
    ['28', 'x']
    """
    keys = pd.Series(make_spelling_keys(pa.array(vocabulary.astype(str), pa.string())).to_pylist(), dtype=object)
    is_unique = ~keys.duplicated(keep=False).to_numpy()
    by_key = dict(zip(keys[is_unique], vocabulary[is_unique], strict=True))
    is_exact = ids.isin(vocabulary)
    id_keys = make_spelling_keys(pa.array(ids.astype(str), pa.string())).to_pylist()
    matched = [
        value if exact else by_key.get(key, value) for value, exact, key in zip(ids, is_exact, id_keys, strict=True)
    ]
    return pd.Index(matched, name=ids.name)
