"""Every method can print its bibliography."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from wisecrowd.base.method import Method
from wisecrowd.base.registry import find
from wisecrowd.errors import UsageError, did_you_mean


@cache
def bibliography() -> dict[str, str]:
    """BibTeX entries by key.

    >>> "dawid1979maximum" in bibliography()
    True
    """
    text = resources.files("wisecrowd.base").joinpath("references.bib").read_text(encoding="utf-8")
    entries = re.split(r"\n(?=@)", text.strip())
    return {re.match(r"@\w+\{([^,]+),", entry).group(1): entry.strip() for entry in entries}  # type: ignore[union-attr]


def cite(*methods: str | type[Method] | Method) -> str:
    """BibTeX for the papers behind some methods, each paper once.

    >>> print(cite("dawid-skene").splitlines()[0])
    @article{dawid1979maximum,
    """
    keys: list[str] = []
    for method in methods:
        found = find(method) if isinstance(method, str) else method
        keys += [key for key in found.references if key not in keys]
    return "\n\n".join(entry(key) for key in keys)


def entry(key: str) -> str:
    """One BibTeX entry.

    >>> entry("dawid1979maximum").startswith("@article")
    True
    """
    known = bibliography()
    if key not in known:
        raise UsageError(f"no reference is called {key!r}.{did_you_mean(key, known)}")
    return known[key]


def short(key: str) -> str:
    """Author and year, for a table.

    >>> short("dawid1979maximum")
    'Dawid and Skene 1979'
    >>> short("ying2024little")
    'Ying et al. 2024'
    """
    text = entry(key)
    authors = re.search(r"author\s*=\s*\{(.*?)\},\n", text, re.S)
    year = re.search(r"year\s*=\s*\{(\d{4})\}", text)
    if authors is None or year is None:
        raise UsageError(f"the reference {key!r} has no author or no year")
    names = [re.sub(r"[{}\\'\"`^~]", "", name.split(",")[0]).strip() for name in authors.group(1).split(" and ")]
    # BibTeX writes "and others" where not all names are given.
    who = (
        names[0]
        if len(names) == 1
        else " and ".join(names)
        if len(names) == 2 and names[1] != "others"
        else f"{names[0]} et al."
    )
    return f"{who} {year.group(1)}"
