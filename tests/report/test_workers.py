"""Table of workers against a recount."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd import report
from wisecrowd.evaluate.intervals import share_interval
from wisecrowd.report import workers as _workers
from wisecrowd.utils.text import format_percent


def test_workers_equal_a_recount(page: Any, votes: pd.DataFrame, truth: pd.Series, simulated: Any) -> None:
    rows = page.rows("worker-table")
    assert page.captions["worker-table"].startswith("All 21 workers.")
    assert sorted(row["Worker"].text for row in rows) == sorted(votes["worker"].unique())
    table = wc.diagnose_crowd(simulated.crowd).workers
    others = votes.merge(votes, on="task")
    others = others[others["worker_x"] != others["worker_y"]]
    agreement = (others["label_x"] == others["label_y"]).groupby(others["worker_x"]).mean()
    on_gold = votes[votes["task"].isin(truth.index)]
    right = on_gold["task"].map(truth) == on_gold["label"]
    for row in rows:
        who = row["Worker"].text
        mine = votes[votes["worker"] == who]
        assert row["Votes"].text == str(len(mine))
        assert float(row["Agreement"].value) == pytest.approx(agreement[who])
        assert row["Agreement"].text == format_percent(agreement[who])
        gold_votes = right[on_gold["worker"] == who]
        low, high = map(float, share_interval(gold_votes.sum(), len(gold_votes)))
        assert row["Accuracy on gold"].text == (
            f"{format_percent(gold_votes.mean())} {format_percent(low)} to {format_percent(high)}; "
            f"{gold_votes.sum()} of {len(gold_votes)}"
        )
        top = mine["label"].value_counts()
        assert row["Most frequent label"].text.split()[0] in top[top == top.max()].index
        assert row["Most frequent label"].text.endswith(format_percent(top.max() / len(mine)))
        expected = table.loc[who]
        assert row["Accuracy"].text == (f"{expected['accuracy']:.2f} {expected['low']:.2f}–{expected['high']:.2f}")
        assert row["Reliability"].text == f"{expected['reliability']:.2f}"
        for flag in filter(None, expected["flags"].split(", ")):
            assert flag in row["Flags and reasons"].text
        assert expected["why"] in row["Flags and reasons"].text
    flagged = [bool(table.loc[row["Worker"].text, "flags"]) for row in rows]
    assert flagged == sorted(flagged, reverse=True), "who should be looked at comes first"
    assert any(flagged)


def test_matrix_of_a_worker_equals_a_recount(page: Any, votes: pd.DataFrame, simulated: Any) -> None:
    observed = wc.diagnose_crowd(simulated.crowd)
    names = page.data["classes"]
    assert names == sorted(votes["label"].unique())
    for place, row in enumerate(page.rows("worker-table")):
        card, who = page.data["workers"][place], row["Worker"].text
        assert card["name"] == who
        text = votes.loc[votes["worker"] == who, "label"].value_counts()
        assert card["label_counts"] == [int(text.get(name, 0)) for name in names]
        matrix = observed.worker_diagnosis.confusion_of([simulated.crowd.workers.get_loc(who)])[0]
        assert np.array(card["matrix"]).reshape(4, 4) == pytest.approx(100 * matrix, abs=0.501)


@pytest.mark.slow
def test_caption_counts_flagged_workers(simulated: Any, page_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_workers, "MAX_WORKERS", 2)
    page = page_of(report.build(simulated.crowd, compare=False).html)
    n = (wc.diagnose_crowd(simulated.crowd).workers["flags"] != "").sum()
    assert page.captions["worker-table"].startswith(f"2 of 21 workers: of the {n} with flags, those with most votes.")
