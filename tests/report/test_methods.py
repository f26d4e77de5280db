"""Comparison of methods in the report."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import report


@pytest.mark.slow
def test_methods_equal_the_comparison(page: Any, simulated: Any, truth: pd.Series) -> None:
    from wisecrowd.evaluate.model_selection import compare_methods

    observed = compare_methods(simulated.crowd, truth=truth)
    rows = page.rows("method-table")
    assert [row["Method"].text.split()[0] for row in rows] == observed.table.index.tolist()
    for row, (name, expected) in zip(rows, observed.table.iterrows(), strict=True):
        assert ("use this" in row["Method"].text) == (name == observed.best)
        assert float(row["Difference to the best"].value) == pytest.approx(expected["behind"])
        assert row["Accuracy"].text == f"{expected['accuracy']:.3f}"
    assert observed.summary in page.section_text("methods")
    assert f"wisecrowd aggregate … -m {observed.best}" in page.section_text("next")


@pytest.mark.slow
def test_methods_are_compared_on_a_sample(simulated: Any, page_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from wisecrowd.evaluate import method_check

    monkeypatch.setattr(method_check, "MAX_CHECKED_VOTES", 600)
    monkeypatch.setattr("wisecrowd.evaluate.model_selection.CANDIDATES", ("dawid-skene", "majority-vote"))
    monkeypatch.setattr("wisecrowd.evaluate.model_selection.LEARNERS", ("crowd-lab",))
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(240, 2)), index=simulated.crowd.tasks)
    page = page_of(report.build(simulated.crowd, X=X).html)
    assert "600 of 1,200 votes took part: all votes on 120 of 240 tasks" in page.section_text("methods")
    assert any(row["Method"].text.startswith("crowd-lab") for row in page.rows("method-table"))
