"""The bibliography."""

from __future__ import annotations

import pytest

from wisecrowd import DawidSkene
from wisecrowd.base.citations import cite, format_citation, load_bibliography
from wisecrowd.base.registry import methods
from wisecrowd.errors import UsageError


def test_the_bibliography_is_used_and_well_formed() -> None:
    used = {key for method in methods().values() for key in method.references}
    for key, entry in load_bibliography().items():
        assert entry.count("{") == entry.count("}"), key
        assert "title" in entry
    assert used <= set(load_bibliography())
    assert cite("dawid-skene", DawidSkene, DawidSkene()).count("@") == 1
    with pytest.raises(UsageError, match="no reference"):
        format_citation("nobody1900")


@pytest.mark.parametrize(
    ("fields", "missing"),
    [("  year = {2020},\n", "no author;"), ("  author = {Smith, A.},\n", "no year;"), ("", "no author and no year;")],
)
def test_an_incomplete_entry_is_refused(monkeypatch: pytest.MonkeyPatch, fields: str, missing: str) -> None:
    monkeypatch.setitem(load_bibliography(), "smith2020votes", f"@article{{smith2020votes,\n{fields}}}")
    with pytest.raises(UsageError, match=f"'smith2020votes' in .*references.bib has {missing} add"):
        format_citation("smith2020votes")
