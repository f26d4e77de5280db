"""Key figures, histograms and next steps of the report."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import wisecrowd as wc
from wisecrowd import diagnose_crowd, simulate_crowd
from wisecrowd.report import summary as _summary
from wisecrowd.report.gold import match_gold
from wisecrowd.report.summary import ReportSummary
from wisecrowd.utils.text import format_percent, quote_name


def test_summary_equals_a_recount(page: Any, votes: pd.DataFrame, truth: pd.Series, simulated: Any) -> None:
    observed = page.tiles
    workers = wc.diagnose_crowd(simulated.crowd).workers
    flagged = workers[workers["flags"] != ""]
    assert observed["votes"] == f"{len(votes):,}"
    assert observed["votes more"] == f"{len(votes) / votes['task'].nunique():.1f} per task"
    assert observed["tasks"] == str(votes["task"].nunique())
    assert observed["workers"] == str(votes["worker"].nunique())
    assert observed["classes"] == str(votes["label"].nunique())
    assert observed["workers more"] == f"{len(flagged)} flagged"
    labels = wc.ModelAverage().fit(simulated.crowd).labels_
    right = (labels[truth.index] == truth).mean()
    assert observed["accuracy"] == format_percent(right)
    text = page.section_text("summary")
    assert f"{(labels[truth.index] == truth).sum()} labels are right" in text
    assert f"the median worker gave {votes['worker'].value_counts().median():,.0f}" in text
    share = votes["worker"].isin(flagged.index).mean()
    assert f"{len(flagged)} workers are flagged; {format_percent(share)} of all votes come from them" in text


def test_histograms_equal_a_recount(votes: pd.DataFrame) -> None:
    counts = votes["worker"].value_counts()
    bars = _summary.count_in_bins(counts.to_numpy())
    assert sum(bar["n"] for bar in bars) == len(counts)
    for bar in bars:
        low, *high = (int(part.replace(",", "")) for part in bar["label"].split(" to "))
        assert bar["n"] == counts.between(low, high[0] if high else low).sum()
    assert [bar["label"] for bar in _summary.count_in_bins(np.array([0, 3, 3]))] == ["0", "1", "2", "3"]
    assert [bar["n"] for bar in _summary.count_in_bins(np.array([0, 3, 3]))] == [1, 0, 0, 2]


def test_next_steps_name_workers_and_tasks(page: Any, simulated: Any) -> None:
    observed = wc.diagnose_crowd(simulated.crowd)
    text = page.section_text("next")
    assert f"{(observed.workers['flags'] != '').sum()} workers, or stop inviting them" in text
    undecided = observed.tasks[observed.tasks["kind"] == "undecided"]
    if len(undecided):
        assert f"Get another vote on {len(undecided)} task" in text
        assert undecided["confidence"].idxmin() in text


def test_first_sentence_is_the_expected_accuracy() -> None:
    made = simulate_crowd(n_tasks=120, n_workers=10, votes_per_task=4, random_state=0)
    diagnosis = diagnose_crowd(made.crowd)
    without = ReportSummary(diagnosis, None, None, []).write_sentences()[0]
    accuracy = diagnosis.task_diagnosis.estimate.accuracy
    assert without.startswith(f"{format_percent(accuracy.accuracy)} of the labels are expected to be right")
    gold = match_gold(made.truth[:60], diagnosis.crowd)
    checked = diagnose_crowd(made.crowd, checked=gold.series)
    narrow = checked.task_diagnosis.estimate.accuracy
    assert narrow.high - narrow.low < accuracy.high - accuracy.low
    assert "On 60 gold tasks" in ReportSummary(checked, gold, None, []).write_sentences()[0]


def test_a_single_flagged_worker_is_named_without_a_comparison() -> None:
    simulation = simulate_crowd(
        300, workers=["expert"] * 8 + ["spammer"], n_classes=4, votes_per_task=5, random_state=0
    )
    diagnosis = diagnose_crowd(simulation.crowd)
    assert diagnosis.workers.query("flags != ''").index.tolist() == ["w8"]
    step = next(s for s in ReportSummary(diagnosis, None, None, []).recommend_steps() if "Talk to" in s["action"])
    share = format_percent((simulation.crowd.to_frame()["worker"] == "w8").mean())
    assert step["action"] == "Talk to 1 worker, or stop inviting this one."
    assert step["reason"].startswith(f"{share} of all votes come from {quote_name('w8')}. ")
