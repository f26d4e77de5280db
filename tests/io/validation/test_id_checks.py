"""Checks of ids as texts; `test_crowd_checks.py` has them in crowds."""

from __future__ import annotations

import pandas as pd

from wisecrowd.io.validation.id_checks import check_ids


def test_findings_are_named_after_the_noun() -> None:
    vocabularies = {"item": [pd.Index(["a", "A"]), None], "id": [pd.Index(["w", "w\u200b"]), pd.Index(["x\ny"])]}
    found = {finding.name: finding for finding in check_ids(vocabularies)}
    assert list(found) == ["items-differ-by-case-or-space", "ids-look-alike", "line-breaks"]
    assert found["items-differ-by-case-or-space"].message.startswith("2 items differ")


def test_numbers_and_different_ids_are_fine() -> None:
    assert list(check_ids({"id": [pd.Index([1, 2]), pd.Index(["a", "b"]), None]})) == []
