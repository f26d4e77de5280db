"""Table of tasks against a recount."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd import report
from wisecrowd.errors import InputError
from wisecrowd.report import tasks as _tasks


@pytest.mark.slow
def test_tasks_equal_a_recount(page: Any, votes: pd.DataFrame, truth: pd.Series, simulated: Any) -> None:
    rows = page.rows("task-table")
    assert page.captions["task-table"].startswith("All 240 tasks.")
    observed = wc.diagnose_crowd(simulated.crowd).tasks
    for row in rows:
        task = row["Task"].text
        mine = votes.loc[votes["task"] == task, "label"].value_counts()
        n, *tally = row["Votes"].text.replace("\u2068", "").replace("\u2069", "").split(maxsplit=1)
        assert int(n) == mine.sum()
        assert dict(part.split(" ×") for part in tally[0].split(", ")) == {name: str(k) for name, k in mine.items()}
        share = mine / mine.sum()
        entropy = -(share * np.log(share)).sum() + (len(mine) - 1) / (2 * mine.sum())
        assert float(row["Disagreement"].value) == pytest.approx(min(entropy / np.log(4), 1))
        assert row["Label"].text == observed.loc[task, "label"]
        assert row["Kind"].text == observed.loc[task, "kind"]
        assert row["Text"].text == f"Is this one {task}?"
        if task in truth.index:
            wrong = truth[task] != observed.loc[task, "label"]
            assert row["Gold"].text == truth[task] + (" wrong" if wrong else "")
        else:
            assert row["Gold"].text == "–"
    kinds = {row["Kind"].text: int(row["Tasks"].text) for row in page.rows("table 4")}
    assert kinds == observed["kind"].value_counts().to_dict()


@pytest.mark.slow
def test_features_add_the_fit_of_tasks(page_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tasks, "MAX_TASKS", 30)
    simulated = wc.simulate_crowd(n_tasks=120, workers=["expert"] * 6, n_classes=2, votes_per_task=3, random_state=1)
    X = pd.DataFrame({"x": np.where(simulated.truth == "c0", -1.0, 1.0)}, index=simulated.truth.index)
    X.iloc[7] *= -1  # it looks like what it is not
    page = page_of(report.build(simulated.crowd, X=X, compare=False).html)
    fit = wc.diagnose_crowd(simulated.crowd, X).tasks["waum"]
    rows = {row["Task"].text: row["Fit"] for row in page.rows("task-table")}
    assert {task: cell.text for task, cell in rows.items()} == {task: f"{fit[task]:.2f}" for task in rows}
    assert simulated.truth.index[7] in rows
    assert set(fit.nsmallest(5).index) <= set(rows), "the least fitting are among those that are shown"
    assert "30 of 120 tasks: the first by each of four rankings" in page.captions["task-table"]
    assert "Lefort et al. 2024" in page.section_text("provenance")
    assert "@inproceedings{pleiss2020identifying" in page.section_text("provenance")


@pytest.mark.filterwarnings("ignore::wisecrowd.errors.DataWarning")
def test_features_of_a_single_class_are_ignored(page_of: Any) -> None:
    votes = wc.Crowd.from_triples([(task, who, "cat") for task in range(4) for who in ("ann", "bob")])
    page = page_of(report.build(votes, X=np.arange(4.0)[:, None], compare=False).html)
    assert "Fit" not in page.rows("task-table")[0]


def test_tasks_of_all_rankings_are_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tasks, "MAX_TASKS", 6)
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.random((50, 3)), columns=["difficulty", "entropy", "uncertainty"])
    table["n_votes"] = 3
    chosen = set(_tasks._select_tasks(table, _tasks._rank_tasks(table)).tolist())
    assert len(chosen) == 6
    assert {int(table[name].idxmax()) for name in _tasks.RANKINGS.values()} <= chosen


def test_tasks_link_to_their_address(simulated: Any) -> None:
    task = str(simulated.crowd.tasks[0])
    html = report.build(simulated.crowd, links={task: "https://example.com/a?b=1&c=2"}, compare=False).html
    assert '<a href="https://example.com/a?b=1&amp;c=2" target="_blank" rel="noopener noreferrer">' in html
    with pytest.raises(InputError, match="web addresses"):
        report.build(simulated.crowd, links={task: "javascript:alert(1)"}, compare=False)
