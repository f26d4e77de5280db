"""Votes over time, against a recount in pandas."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd import report
from wisecrowd.report import timeline
from wisecrowd.utils.text import format_percent


@pytest.fixture(scope="module")
def simulated() -> Any:
    kinds = ["noisy(0.8)"] * 9 + ["drifter(0.95, 0.3)"]
    return wc.simulate_crowd(n_tasks=300, workers=kinds, votes_per_task=5, n_classes=3, random_state=1)


@pytest.fixture(scope="module")
def diagnosis(simulated: Any) -> Any:
    return wc.diagnose_crowd(simulated.crowd)


@pytest.fixture(scope="module")
def page(simulated: Any, page_of: Any) -> Any:
    return page_of(report.build(simulated.crowd, compare=False).html)


def agreed(votes: pd.DataFrame) -> pd.Series:
    """Return the number of other votes on the task of each vote, and of those with the same label."""
    same = votes.groupby(["task", "label"])["worker"].transform("size") - 1
    return pd.DataFrame({"same": same, "others": votes.groupby("task")["worker"].transform("size") - 1})


def test_votes_by_week_equal_a_recount(simulated: Any, page: Any) -> None:
    votes = simulated.crowd.to_frame()
    week = votes["time"].dt.tz_localize(None).dt.to_period("W").dt.start_time
    n = votes.groupby(week).size()
    counts = agreed(votes).groupby(week).sum()
    name = next(name for name, text in page.captions.items() if text.startswith("Votes by week (UTC)"))
    shown = [[cell.text.strip() for cell in row] for row in page.tables[name][1:]]
    assert [(row[0], int(row[1])) for row in shown] == [(f"{day:%Y-%m-%d}", size) for day, size in n.items()]
    share = counts["same"] / counts["others"]
    assert [row[2] for row in shown] == [f"{format_percent(part)} agree" for part in share]


def test_sentence_equals_a_recount(simulated: Any, page: Any) -> None:
    votes = simulated.crowd.to_frame()
    late = votes["time"] > votes["time"].median()
    counts = agreed(votes).groupby(late).sum()
    early, later = (format_percent(part) for part in counts["same"] / counts["others"])
    text = page.section_text("summary")
    assert f"cast from {votes['time'].min():%Y-%m-%d} to {votes['time'].max():%Y-%m-%d} (UTC)" in text
    assert (
        f"earlier half agrees with {early} of the other votes on its task, a vote in the later half with {later}"
        in text
    )


@pytest.mark.parametrize(
    ("span", "unit", "first"),
    [
        (20 * 60, "minute", "2024-02-28 10:30"),
        (5 * 3600, "hour", "2024-02-28 10:00"),
        (20 * 86400, "day", "2024-02-28"),
        (100 * 86400, "week", "2024-02-26"),
        (500 * 86400, "month", "2024-02"),
        (15 * 366 * 86400, "year", "2024"),
    ],
)
def test_finest_readable_period_is_used(span: int, unit: str, first: str) -> None:
    start = pd.Timestamp("2024-02-28 10:30", tz="UTC").timestamp()
    rows = [(f"t{n // 2}", f"w{n % 2}", "cat", start + span * n / 19) for n in range(20)]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label", "time"])
    drawn = timeline.build_chart(wc.diagnose_crowd(wc.Crowd.from_frame(frame, time="time")))
    assert drawn is not None
    assert drawn["title"].startswith(f"Votes by {unit} ")
    assert drawn["bars"][0]["label"] == first
    assert sum(bar["n"] for bar in drawn["bars"]) == 20
    assert len(drawn["bars"]) <= timeline.MAX_BARS


def test_no_chart_of_one_time_or_too_many_years() -> None:
    for times in ([1.7e9] * 4, [0, 1e9, 2e9, 9e9]):
        frame = pd.DataFrame({"task": ["t", "t", "u", "u"], "worker": list("abab"), "label": 1, "time": times})
        assert timeline.build_chart(wc.diagnose_crowd(wc.Crowd.from_frame(frame, time="time"))) is None


def test_votes_without_a_time_are_counted(page_of: Any, simulated: Any) -> None:
    votes = simulated.crowd.to_frame()
    votes.loc[votes.index[::3], "time"] = pd.NaT
    page = page_of(report.build(wc.Crowd.from_frame(votes, time="time"), compare=False).html)
    assert "1,000 of 1,500 votes have a time." in page.section_text("summary")


def test_no_timeline_without_times(simulated: Any, page_of: Any) -> None:
    page = page_of(report.build(simulated.crowd.to_frame().drop(columns="time"), compare=False).html)
    assert "(UTC)" not in page.html.split("<script", 1)[0]
    assert all(worker["history"] is None for worker in page.data["workers"])


def test_history_of_a_worker_equals_a_recount(simulated: Any, diagnosis: Any, page: Any) -> None:
    votes = simulated.crowd.to_frame()
    votes["right"] = diagnosis.worker_diagnosis.peer_posterior[np.arange(len(votes)), simulated.crowd.label]
    for worker in page.data["workers"]:
        mine = votes[votes["worker"] == worker["name"]].sort_values("time", kind="stable")
        tenth = np.arange(len(mine)) * 10 // len(mine)
        assert worker["history"]["accuracy"] == pytest.approx(100 * mine.groupby(tenth)["right"].mean(), abs=0.501)
        assert worker["history"]["n_votes"] == len(mine)
        assert worker["history"]["first"] == f"{mine['time'].iloc[0]:%Y-%m-%d %H:%M}"
        assert worker["history"]["last"] == f"{mine['time'].iloc[-1]:%Y-%m-%d %H:%M}"


def test_drifting_worker_shows_the_change(diagnosis: Any, page: Any) -> None:
    (who,) = diagnosis.workers.index[diagnosis.workers["flags"] == "drifts"]
    row = next(row for row in page.rows("worker-table") if row["Worker"].text == who)
    since = diagnosis.workers.loc[who, "since"]
    assert re.search(
        rf"drifts accuracy \d+% until {since:%Y-%m-%d %H:%M} and \d+% since", row["Flags and reasons"].text
    )
    card = next(worker for worker in page.data["workers"] if worker["name"] == who)["history"]
    assert card["change_time"] == f"{since:%Y-%m-%d %H:%M}"
    assert np.mean(card["accuracy"][: card["change_span"]]) > np.mean(card["accuracy"][card["change_span"] :]) + 20
    others = [worker["history"] for worker in page.data["workers"] if worker["name"] != who]
    assert all(course["change_span"] is None and course["change_time"] is None for course in others)
    text = page.section_text("next")
    assert (
        f"Check whether 1 worker changed, or the tasks that they got. Their accuracy changed over time: “{who}”" in text
    )
    assert "stop inviting" not in text, "a drifting worker is not a spammer"


def test_few_votes_have_no_history(page_of: Any) -> None:
    rows = [(f"t{n}", who, "cat" if n % 3 else "dog", 1.7e9 + n) for n in range(19) for who in ("ann", "bob")]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label", "time"])
    page = page_of(report.build(wc.Crowd.from_frame(frame, time="time"), compare=False).html)
    assert [worker["history"] for worker in page.data["workers"]] == [None, None]


def test_browser_draws_the_history(browser: Any, simulated: Any, diagnosis: Any, tmp_path: Path) -> None:
    path = report.build(simulated.crowd, compare=False).save(tmp_path / "page.html")
    browser.get_log("browser")
    browser.get(path.as_uri())
    (who,) = diagnosis.workers.index[diagnosis.workers["flags"] == "drifts"]
    openers = {one.text: one for one in browser.find_elements("css selector", "#worker-table button.open")}
    openers[who].click()
    figure = browser.find_element("css selector", "#card-history")
    assert figure.is_displayed()
    assert len(figure.find_elements("css selector", "circle")) == 10
    assert len(figure.find_elements("css selector", ".change")) == 1
    assert "The dashed line marks a change" in figure.find_element("css selector", "svg").accessible_name
    browser.find_element("css selector", "#card-close").click()
    calm = next(name for name in openers if name != who)
    openers[calm].click()
    assert len(figure.find_elements("css selector", ".change")) == 0
    assert browser.get_log("browser") == []
