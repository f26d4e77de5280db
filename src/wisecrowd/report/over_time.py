"""The crowd and its workers in the course of time, where votes tell when they were cast."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.diagnose import Diagnosis
from wisecrowd.diagnose.drift import ENOUGH, SPANS, in_spans
from wisecrowd.diagnose.preparation import alike
from wisecrowd.utils.text import format_percent

#: Bars that can be read at most; the spans of time that they can stand for, of which the finest that fits is taken; and how
#: many characters of a time tell them apart.
BARS = 21
UNITS = {
    "minute": ("min", 16),
    "hour": ("h", 16),
    "day": ("D", 10),
    "week": ("W", 10),
    "month": ("M", 7),
    "year": ("Y", 4),
}


def picture(found: Diagnosis) -> dict[str, Any] | None:
    """Votes and how far they agree, by day or whatever fits; None where it would be a single bar, or far too many."""
    rows, times = _timed(found)
    if not len(rows):
        return None
    ends = pd.to_datetime([times.min(), times.max()], unit="s")
    spans = {
        name: pd.period_range(ends[0], ends[1], freq=unit)
        for name, (unit, _) in UNITS.items()
        if _count(ends, unit) <= BARS
    }
    if not spans or len(next(iter(spans.values()))) < 2:
        return None
    name, periods = next(iter(spans.items()))
    begins = periods.start_time.to_numpy().astype("datetime64[us]").astype(np.int64) / 1e6
    bar = np.searchsorted(begins, times, side="right") - 1
    votes = np.bincount(bar, minlength=len(periods))
    agreement = _agreement(found, rows, bar, len(periods))
    return {
        "what": f"Votes by {name} (UTC), and how many of the other votes on the same tasks agree with them",
        "of": "votes",
        "also": "agreement",
        "bars": [
            {
                "label": str(period.start_time)[: UNITS[name][1]],
                "n": int(n),
                "share": float(n / votes.max()),
                "also": f"{format_percent(float(share))} agree",
            }
            for period, n, share in zip(periods, votes, agreement, strict=True)
        ],
    }


def sentence(found: Diagnosis) -> str:
    """From when to when, and how far the earlier and the later votes agree with others; nothing where no time is known."""
    rows, times = _timed(found)
    if not len(rows):
        return ""
    first, last = pd.to_datetime([times.min(), times.max()], unit="s")
    shown = "%Y-%m-%d" if last - first > pd.Timedelta(days=2) else "%Y-%m-%d %H:%M"
    known = "" if len(rows) == found.crowd.n_votes else f" {len(rows):,} of {found.crowd.n_votes:,} votes have a time."
    half = (times > np.median(times)).astype(np.intp)
    early, late = _agreement(found, rows, half, 2)
    halves = (
        ""
        if np.isnan([early, late]).any()
        else f" A vote of the earlier half agrees with {format_percent(early)} of the others on its task, one of the later half "
        f"with {format_percent(late)}."
    )
    return f"The votes were cast from {first:{shown}} to {last:{shown}} (UTC).{halves}{known}"


def courses(found: Diagnosis, place: NDArray[np.intp]) -> list[dict[str, Any] | None]:
    """Of workers by position, how probably they were right in each tenth of their votes; None where too few have a time.

    A vote is judged by the other votes on its task, as everywhere; what is averaged is the probability of what it says.
    """
    rows, times = _timed(found)
    row = np.full(found.crowd.n_workers, -1)
    row[place] = np.arange(len(place))
    mine = row[found.crowd.worker_codes[rows]]
    rows, times, mine = rows[mine >= 0], times[mine >= 0], mine[mine >= 0]
    order = np.lexsort((times, mine))
    rows, times, mine = rows[order], times[order], mine[order]
    counts = np.bincount(mine, minlength=len(place))
    begins = np.cumsum(counts) - counts
    right = found.of_workers.others[rows, found.crowd.label[rows]]
    cell = in_spans(counts)
    size = np.bincount(cell, minlength=len(place) * SPANS)
    with np.errstate(invalid="ignore"):
        mean = (np.bincount(cell, right, minlength=len(size)) / size).reshape(-1, SPANS)
    changed = _changes(found, place)
    made: list[dict[str, Any] | None] = []
    for who, n in enumerate(counts):
        if n < ENOUGH:
            made.append(None)
            continue
        own = times[begins[who] : begins[who] + n]
        made.append(
            {
                "right": np.rint(100 * mean[who]).astype(int).tolist(),
                "votes": int(n),
                "from": _day(own[0]),
                "to": _day(own[-1]),
                # Between two tenths; before the first of the votes that came after it.
                "cut": None if np.isnan(changed[who]) else int(np.searchsorted(own, changed[who]) * SPANS // n),
                "since": None if np.isnan(changed[who]) else _day(changed[who]),
            }
        )
    return made


def _changes(found: Diagnosis, place: NDArray[np.intp]) -> NDArray[np.float64]:
    """Since when workers are others than they were, in seconds since 1970; NaN for those who are not flagged for it."""
    table = found.workers.iloc[place]
    flagged = np.array(["drifts" in flags.split(", ") for flags in table["flags"]], dtype=bool)
    since = table["since"].to_numpy(dtype="datetime64[us]").astype(np.int64) / 1e6
    return np.where(flagged, since, np.nan)


def _timed(found: Diagnosis) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The votes whose time is known, by position, and their times."""
    if not found.crowd.has_times:
        return np.empty(0, dtype=np.intp), np.empty(0)
    rows = np.flatnonzero(~np.isnan(found.crowd.time))
    return rows, found.crowd.time[rows]


def _agreement(found: Diagnosis, rows: NDArray[np.intp], part: NDArray[np.intp], n_parts: int) -> NDArray[np.float64]:
    """For each part of the votes, the share of the other votes on their tasks that say the same."""
    same, others = (np.bincount(part, values[rows], minlength=n_parts) for values in alike(found.crowd))
    with np.errstate(invalid="ignore"):
        return same / others


def _count(ends: pd.DatetimeIndex, unit: str) -> int:
    first, last = ends.to_period(unit)
    return int((last - first).n) + 1


def _day(seconds: float) -> str:
    return str(pd.Timestamp(seconds, unit="s"))[:16]
