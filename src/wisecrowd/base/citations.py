"""Bibliography of the methods."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from wisecrowd.base.method import Method
from wisecrowd.base.registry import find
from wisecrowd.errors import UsageError, suggest_name


@cache
def load_bibliography() -> dict[str, str]:
    """Return the BibTeX entries by key.

    Returns
    -------
    dict of str to str

    Examples
    --------
    >>> "dawid1979maximum" in load_bibliography()
    True
    """
    text = resources.files("wisecrowd.base").joinpath("references.bib").read_text(encoding="utf-8")
    entries = re.split(r"\n(?=@)", text.strip())
    return {re.match(r"@\w+\{([^,]+),", entry).group(1): entry.strip() for entry in entries}  # type: ignore[union-attr]


def cite(*methods: str | type[Method] | Method) -> str:
    """Return the BibTeX entries of the papers behind some methods, each paper once.

    Parameters
    ----------
    *methods : str, Method or type
        Methods or their names.

    Returns
    -------
    str

    Examples
    --------
    >>> print(cite("dawid-skene").splitlines()[0])
    @article{dawid1979maximum,
    """
    keys: list[str] = []
    for method in methods:
        references = (find(method) if isinstance(method, str) else method).references
        keys += [key for key in references if key not in keys]
    return "\n\n".join(get_entry(key) for key in keys)


def get_entry(key: str) -> str:
    """Return one BibTeX entry.

    Parameters
    ----------
    key : str
        Key in the bibliography.

    Returns
    -------
    str

    Raises
    ------
    UsageError
        If there is no such entry.

    Examples
    --------
    >>> get_entry("dawid1979maximum").startswith("@article")
    True
    """
    entries = load_bibliography()
    if key not in entries:
        raise UsageError(f"no reference is called {key!r}.{suggest_name(key, entries)}")
    return entries[key]


def format_citation(key: str) -> str:
    """Return authors and year of a reference.

    Parameters
    ----------
    key : str
        Key in the bibliography.

    Returns
    -------
    str

    Examples
    --------
    >>> format_citation("dawid1979maximum")
    'Dawid and Skene 1979'
    >>> format_citation("ying2024little")
    'Ying et al. 2024'
    """
    text = get_entry(key)
    authors = re.search(r"author\s*=\s*\{(.*?)\},\n", text, re.S)
    year = re.search(r"year\s*=\s*\{(\d{4})\}", text)
    if authors is None or year is None:
        missing = " and no ".join(name for name, match in (("author", authors), ("year", year)) if match is None)
        raise UsageError(
            f"the entry {key!r} in wisecrowd/base/references.bib has no {missing}; add the line author = {{...}} or year = {{...}} "
            "there, each with a comma at its end"
        )
    names = [re.sub(r"[{}\\'\"`^~]", "", name.split(",")[0]).strip() for name in authors.group(1).split(" and ")]
    # BibTeX abbreviates a list of authors by "and others".
    author_text = (
        names[0]
        if len(names) == 1
        else " and ".join(names)
        if len(names) == 2 and names[1] != "others"
        else f"{names[0]} et al."
    )
    return f"{author_text} {year.group(1)}"
