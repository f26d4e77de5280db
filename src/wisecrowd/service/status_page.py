"""Status page of the service: progress of the questions, for the people who run the labelling."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from fastapi.responses import HTMLResponse

from wisecrowd import __version__
from wisecrowd.report.page import render_page, style_policy
from wisecrowd.service.coordinator import Coordinator
from wisecrowd.service.question_state import QuestionState
from wisecrowd.utils.levels import format_level
from wisecrowd.utils.text import (
    MAX_REASON_CHARS,
    count_noun,
    describe_selection,
    display_name,
    format_percent,
    shorten,
)

#: Maximum number of rows of a table.
MAX_ROWS = 20
#: Seconds after which the browser loads the page again.
REFRESH_SECONDS = 5
#: Lower bounds of the bins of the confidence.
CONFIDENCE_BINS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
#: Headers of all pages: no copies on disk, no guessed content types, no address sent to other sites.
PAGE_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}


def render_status_page(
    coordinator: Coordinator, question: str | None = None, address: str = "http://127.0.0.1:8765"
) -> HTMLResponse:
    """Render the status page.

    Parameters
    ----------
    coordinator : Coordinator
        Coordinator of the service.
    question : str, default=None
        Name of the question to show; the first one by default.
    address : str, default="http://127.0.0.1:8765"
        URL of the service, for the example on the empty page.

    Returns
    -------
    fastapi.responses.HTMLResponse
        Page.
    """
    with coordinator.lock:
        states = coordinator.questions()
        shown = coordinator.question(question) if question is not None else states[0] if states else None
        content: dict[str, Any] = {
            "version": __version__,
            "address": address,
            "refresh": REFRESH_SECONDS,
            "uptime": _format_duration(time.time() - coordinator.started_at),
            "n_events": f"{coordinator.n_events:,}",
            "questions": [
                {"name": state.vocabulary.name, "n_votes": f"{state.live.n_votes:,}", "is_shown": state is shown}
                for state in states
            ],
            "question": None if shown is None else _describe_question(shown),
        }
    policy = f"default-src 'none'; {style_policy()}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    return HTMLResponse(
        render_page("status.html", **content), headers={**PAGE_HEADERS, "Content-Security-Policy": policy}
    )


def _describe_question(state: QuestionState) -> dict[str, Any]:
    summary = state.describe()
    votes_per_task = summary["n_votes"] / max(summary["n_tasks"], 1)
    n_flagged = len(summary["flagged_workers"])
    tiles = [
        ("expected accuracy", *_describe_accuracy(state)),
        ("votes", f"{summary['n_votes']:,}", f"{votes_per_task:.1f} per task"),
        ("tasks", f"{summary['n_tasks']:,}", f"{summary['n_finished']:,} finished"),
        ("workers", f"{summary['n_workers']:,}", f"{n_flagged or 'none'} flagged"),
        ("classes", f"{len(summary['classes']):,}", "to choose from"),
    ]
    return {
        "name": state.vocabulary.name,
        "tiles": [{"name": name, "value": value, "note": note} for name, value, note in tiles],
        "warnings": summary["warnings"],
        "fit": _describe_fit(summary),
        "is_unsettled": state.is_unsettled,
        "fit_error": summary["fit_error"],
        "confidence_bars": _count_confidence(state),
        "workers": _describe_workers(state),
        "tasks": _describe_suggestions(state),
    }


def _describe_accuracy(state: QuestionState) -> tuple[str, str]:
    """Return the expected accuracy, and its interval with the evidence behind it."""
    estimate = state.expect_accuracy()
    if estimate is None:
        return "–", "after the first fit"
    evidence = f"votes and {count_noun(estimate.n_gold, 'gold task')}" if estimate.n_gold else "votes alone"
    interval = f"{format_percent(estimate.low)} to {format_percent(estimate.high)}"
    return format_percent(estimate.accuracy), f"{format_level(estimate.level)} {interval}, by {evidence}"


def _describe_fit(summary: dict[str, Any]) -> str:
    """Return a sentence about the last fit."""
    fit = summary["fit"]
    if fit is None:
        return "No fit to all votes yet."
    sentence = (
        f"Last fit: {summary['method']} on {count_noun(fit['n_votes'], 'vote')}, "
        f"{_format_duration(fit['seconds_ago'])} ago, in {fit['seconds']:.1f} seconds"
    )
    if fit["changed_share"] is not None:
        sentence += f"; it changed {format_percent(fit['changed_share'])} of the labels"
    return (
        f"{sentence}."
        if summary["is_current"]
        else f"{sentence}. Newer votes update their own tasks until the next fit."
    )


def _count_confidence(state: QuestionState) -> list[dict[str, Any]]:
    """Return the histogram of the confidence; empty before the first fit."""
    if state.live.confidence is None:
        return []
    confidence = state.live.confidence[state.live.votes_per_task > 0]
    counts = np.histogram(confidence, [*CONFIDENCE_BINS, 1.0 + 1e-9])[0]
    upper_bounds = [*CONFIDENCE_BINS[1:], 1.0]
    return [
        {"label": f"{low:.0%} to {high:.0%}", "n": int(n), "share": n / max(counts.max(), 1)}
        for low, high, n in zip(CONFIDENCE_BINS, upper_bounds, counts, strict=True)
        if n or low >= CONFIDENCE_BINS[1]
    ]


def _describe_workers(state: QuestionState) -> dict[str, Any]:
    rows = [
        {
            "name": display_name(summary["worker"]),
            "n_votes": f"{summary['n_votes']:,}",
            "accuracy": summary["accuracy"],
            "low": summary["low"],
            "high": summary["high"],
            "flags": [flag for flag in summary["flags"].split(", ") if flag],
            "why": shorten(summary["why"], MAX_REASON_CHARS),
        }
        for summary in state.describe_workers(state.list_workers(MAX_ROWS))
    ]
    caption = describe_selection(
        len(rows), state.n_workers, "workers", "first those with flags, then those with most votes"
    )
    has_intervals = any(row["low"] is not None for row in rows)  # they come with the first calibration
    return {"rows": rows, "caption": caption, "level": format_level() if has_intervals else ""}


def _describe_suggestions(state: QuestionState) -> dict[str, Any]:
    suggestions, reason = state.suggest_tasks(None, MAX_ROWS)
    rows = [
        {
            "name": display_name(suggestion["task"]),
            "label": "–" if suggestion["label"] is None else display_name(suggestion["label"]),
            "confidence": suggestion["confidence"],
            "n_votes": f"{suggestion['n_votes']:,}",
            "gain": suggestion["gain"],
        }
        for suggestion in suggestions
    ]
    return {"rows": rows, "reason": reason}


def _format_duration(seconds: float) -> str:
    """Return a duration in its largest suitable unit.

    >>> _format_duration(3.2), _format_duration(600), _format_duration(90000)
    ('3 seconds', '10 minutes', '25 hours')
    """
    for unit, unit_seconds in (("hour", 3600), ("minute", 60)):
        if seconds >= 2 * unit_seconds:
            return f"{seconds / unit_seconds:.0f} {unit}s"
    return f"{seconds:.0f} second{'' if round(seconds) == 1 else 's'}"
