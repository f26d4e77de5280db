"""Votes over time, for crowds whose votes have times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.diagnose import Diagnosis
from wisecrowd.diagnose.drift import MIN_VOTES, N_SPANS, assign_spans
from wisecrowd.diagnose.preparation import count_agreeing_votes
from wisecrowd.utils.text import format_percent

#: Maximum number of bars that remain readable.
MAX_BARS = 21
#: Periods of a bar, finest first: the unit of pandas and the number of characters of a time that identify the period.
PERIODS = {
    "minute": ("min", 16),
    "hour": ("h", 16),
    "day": ("D", 10),
    "week": ("W", 10),
    "month": ("M", 7),
    "year": ("Y", 4),
}


def build_chart(diagnosis: Diagnosis) -> dict[str, Any] | None:
    """Build a bar chart of the votes and their agreement over time, with the finest period that is readable.

    Parameters
    ----------
    diagnosis : Diagnosis
        Diagnosis of the crowd.

    Returns
    -------
    dict or None
        Variables of the template; None where the chart would have one bar, or too many.
    """
    rows, times = _select_timed_votes(diagnosis)
    if not len(rows):
        return None
    limits = pd.to_datetime([times.min(), times.max()], unit="s")
    name = next((name for name, (unit, _) in PERIODS.items() if _count_periods(limits, unit) <= MAX_BARS), None)
    if name is None:
        return None
    unit, n_characters = PERIODS[name]
    periods = pd.period_range(limits[0], limits[1], freq=unit)
    if len(periods) < 2:
        return None
    starts = periods.start_time.to_numpy().astype("datetime64[us]").astype(np.int64) / 1e6
    bar = np.searchsorted(starts, times, side="right") - 1
    n_votes = np.bincount(bar, minlength=len(periods))
    agreement = _compute_agreement(diagnosis, rows, bar, len(periods))
    return {
        "title": f"Votes by {name} (UTC), with the share of other votes on the same tasks that agree",
        "unit": "votes",
        "extra": "agreement",
        "bars": [
            {
                "label": str(period.start_time)[:n_characters],
                "n": int(n),
                "share": float(n / n_votes.max()),
                "extra": f"{format_percent(float(share))} agree",
            }
            for period, n, share in zip(periods, n_votes, agreement, strict=True)
        ],
    }


def describe_times(diagnosis: Diagnosis) -> str:
    """Return a sentence about the time span of the votes and the agreement of its halves.

    Parameters
    ----------
    diagnosis : Diagnosis
        Diagnosis of the crowd.

    Returns
    -------
    str
        Sentence; empty where no vote has a time.
    """
    rows, times = _select_timed_votes(diagnosis)
    if not len(rows):
        return ""
    first, last = pd.to_datetime([times.min(), times.max()], unit="s")
    time_format = "%Y-%m-%d" if last - first > pd.Timedelta(days=2) else "%Y-%m-%d %H:%M"
    start, end = f"{first:{time_format}}", f"{last:{time_format}}"
    sentence = f"The votes were cast from {start} to {end} (UTC)."
    if start == end:  # too short for this format, as for votes that were imported together
        sentence = f"The votes were cast within one minute, at {start} (UTC)."
    is_late = (times > np.median(times)).astype(np.intp)
    early_agreement, late_agreement = _compute_agreement(diagnosis, rows, is_late, 2)
    if not np.isnan([early_agreement, late_agreement]).any():
        sentence += (
            f" A vote in the earlier half agrees with {format_percent(early_agreement)} of the other votes on its task, "
            f"a vote in the later half with {format_percent(late_agreement)}."
        )
    if len(rows) < diagnosis.crowd.n_votes:
        sentence += f" {len(rows):,} of {diagnosis.crowd.n_votes:,} votes have a time."
    return sentence


def build_histories(diagnosis: Diagnosis, positions: NDArray[np.intp]) -> list[dict[str, Any] | None]:
    """Return the accuracy of workers over time, in tenths of their votes.

    A vote counts by the probability of its label under the other votes on its task.

    Parameters
    ----------
    diagnosis : Diagnosis
        Diagnosis of the crowd.
    positions : ndarray of int
        Positions of the workers.

    Returns
    -------
    list of dict or None
        Accuracy in percent, number and dates of the votes, and the time of a change; None for workers with few timed votes.
    """
    crowd = diagnosis.crowd
    rows, times = _select_timed_votes(diagnosis)
    number_of_worker = np.full(crowd.n_workers, -1)
    number_of_worker[positions] = np.arange(len(positions))
    numbers = number_of_worker[crowd.worker_codes[rows]]
    is_shown = numbers >= 0
    rows, times, numbers = rows[is_shown], times[is_shown], numbers[is_shown]
    order = np.lexsort((times, numbers))
    rows, times, numbers = rows[order], times[order], numbers[order]
    n_votes = np.bincount(numbers, minlength=len(positions))
    starts = np.cumsum(n_votes) - n_votes
    is_right = diagnosis.worker_diagnosis.peer_posterior[rows, crowd.label[rows]]
    cells = assign_spans(n_votes)
    cell_sizes = np.bincount(cells, minlength=len(positions) * N_SPANS)
    with np.errstate(invalid="ignore"):
        accuracy = (np.bincount(cells, is_right, minlength=len(cell_sizes)) / cell_sizes).reshape(-1, N_SPANS)
    change_times = _find_change_times(diagnosis, positions)
    histories: list[dict[str, Any] | None] = []
    for number, n in enumerate(n_votes):
        if n < MIN_VOTES:
            histories.append(None)
            continue
        worker_times = times[starts[number] : starts[number] + n]
        has_changed = not np.isnan(change_times[number])
        histories.append(
            {
                "accuracy": np.rint(100 * accuracy[number]).astype(int).tolist(),
                "n_votes": int(n),
                "first": _format_time(worker_times[0]),
                "last": _format_time(worker_times[-1]),
                # Tenth of the votes in which the first vote after the change lies.
                "change_span": int(np.searchsorted(worker_times, change_times[number]) * N_SPANS // n)
                if has_changed
                else None,
                "change_time": _format_time(change_times[number]) if has_changed else None,
            }
        )
    return histories


def _find_change_times(diagnosis: Diagnosis, positions: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the times at which workers changed, in seconds since 1970; NaN for workers without the flag."""
    table = diagnosis.workers.iloc[positions]
    is_flagged = np.array(["drifts" in flags.split(", ") for flags in table["flags"]], dtype=bool)
    since = table["since"].to_numpy(dtype="datetime64[us]").astype(np.int64) / 1e6
    return np.where(is_flagged, since, np.nan)


def _select_timed_votes(diagnosis: Diagnosis) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the positions and the times of the votes with a time."""
    if not diagnosis.crowd.has_times:
        return np.empty(0, dtype=np.intp), np.empty(0)
    rows = np.flatnonzero(~np.isnan(diagnosis.crowd.time))
    return rows, diagnosis.crowd.time[rows]


def _compute_agreement(
    diagnosis: Diagnosis, rows: NDArray[np.intp], part: NDArray[np.intp], n_parts: int
) -> NDArray[np.float64]:
    """Return for each part of the votes the share of other votes on their tasks with the same label."""
    n_same, n_others = (
        np.bincount(part, counts[rows], minlength=n_parts) for counts in count_agreeing_votes(diagnosis.crowd)
    )
    with np.errstate(invalid="ignore"):
        return n_same / n_others


def _count_periods(limits: pd.DatetimeIndex, unit: str) -> int:
    first, last = limits.to_period(unit)
    return int((last - first).n) + 1


def _format_time(seconds: float) -> str:
    return str(pd.Timestamp(seconds, unit="s"))[:16]
