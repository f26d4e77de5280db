"""Table of classes against a recount."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd.utils.text import format_percent


@pytest.mark.slow
def test_classes_equal_a_recount(page: Any, votes: pd.DataFrame, simulated: Any) -> None:
    observed = wc.diagnose_crowd(simulated.crowd)
    counts = votes["label"].value_counts()
    for row in page.rows("class-table"):
        assert int(row["Votes"].text) == counts[row["Class"].text]
        assert row["Share of votes"].text == format_percent(counts[row["Class"].text] / len(votes))
        assert float(row["Recall"].value) == pytest.approx(observed.confusion.loc[row["Class"].text, row["Class"].text])
    heat = page.tables["table 6"]
    for true, row in zip(observed.confusion.index, heat[1:], strict=True):
        assert [cell.text for cell in row[1:]] == [format_percent(share) for share in observed.confusion.loc[true]]
