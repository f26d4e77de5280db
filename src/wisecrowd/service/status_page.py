"""The status page: how the questions stand, for whoever runs the labelling. It is made of the report's pieces."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from fastapi.responses import HTMLResponse

from wisecrowd import __version__
from wisecrowd.diagnose.workers import SURE, SUSPECT
from wisecrowd.report import page as pages
from wisecrowd.service.coordinator import Coordinator
from wisecrowd.service.question_state import QuestionState
from wisecrowd.utils.text import count_noun, describe_selection, display_name, format_percent

#: Rows of a table.
SHOWN = 20
#: Seconds after which a browser asks again.
REFRESH = 5
#: Lower ends of the bins of how sure labels are.
BINS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}


def answer(
    coordinator: Coordinator, question: str | None = None, address: str = "http://127.0.0.1:8765"
) -> HTMLResponse:
    """The page as it stands, on one question or on the first."""
    with coordinator.lock:
        topics = coordinator.topics()
        chosen = coordinator.topic(question) if question is not None else topics[0] if topics else None
        content: dict[str, Any] = {
            "version": __version__,
            "address": address,
            "refresh": REFRESH,
            "running": _duration(time.time() - coordinator.started),
            "told": f"{coordinator.told:,}",
            "questions": [
                {"name": topic.words.name, "votes": f"{topic.live.n_votes:,}", "is_chosen": topic is chosen}
                for topic in topics
            ],
            "topic": None if chosen is None else _topic(chosen),
        }
    ours = pages.digest(pages.style())
    policy = f"default-src 'none'; style-src {ours}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    html = pages.styled("status.html", **content)
    return HTMLResponse(html, headers={**HEADERS, "Content-Security-Policy": policy})


def _topic(topic: QuestionState) -> dict[str, Any]:
    figures = topic.overview()
    each = figures["votes"] / max(figures["tasks"], 1)
    return {
        "name": topic.words.name,
        "tiles": [
            {"what": "votes", "value": f"{figures['votes']:,}", "more": f"{each:.1f} for each task"},
            {"what": "tasks", "value": f"{figures['tasks']:,}", "more": f"{figures['may_stop']:,} may stop"},
            {"what": "workers", "value": f"{figures['workers']:,}", "more": f"{topic.flagged() or 'none'} to look at"},
            {"what": "classes", "value": f"{len(figures['classes']):,}", "more": "to choose from"},
            {
                "what": "expected right",
                "value": "–" if figures["expected_accuracy"] is None else format_percent(figures["expected_accuracy"]),
                "more": "of the labels, as far as votes can tell",
            },
        ],
        "fit": _fit(figures),
        "unsettled": topic.unsettled,
        "failed": figures["failed"],
        "bars": _sureness(topic),
        "workers": _workers(topic),
        "tasks": _tasks(topic),
    }  # fmt: skip


def _fit(figures: dict[str, Any]) -> str:
    """How the last fit went, in a sentence."""
    fit = figures["fit"]
    if fit is None:
        return "No fit to all votes yet."
    took = f"{fit['seconds']:.1f} seconds" if fit["seconds"] >= 0.05 else "no time"
    when = f"{_duration(fit['seconds_ago'])} ago, in {took}"
    told = f"Fitted by {figures['method']} to {count_noun(fit['votes'], 'vote')} {when}"
    if fit["changed"] is not None:
        told += f", which changed {format_percent(fit['changed'])} of the labels"
    return f"{told}." if figures["is_current"] else f"{told}; newer votes are taken in one by one until the next fit."


def _flag(row: dict[str, Any]) -> str:
    """Who should be looked at, as `wisecrowd.diagnose` has it."""
    if (row["p_spammer"] or 0.0) > SUSPECT:
        return "spammer"
    return "adversary" if (row["p_adversary"] or 0.0) > SURE else ""


def _sureness(topic: QuestionState) -> list[dict[str, Any]]:
    if topic.live.known.doubt is None:
        return []
    voted = topic.live.votes_per_task > 0
    sure = topic.live.belief[voted].max(axis=1)
    count = np.histogram(sure, [*BINS, 1.0 + 1e-9])[0]
    ends = [*BINS[1:], 1.0]
    return [
        {"label": f"{low:.0%} to {high:.0%}", "n": int(n), "share": n / max(count.max(), 1)}
        for low, high, n in zip(BINS, ends, count, strict=True)
        if n or low >= BINS[1]
    ]


def _workers(topic: QuestionState) -> dict[str, Any]:
    rows = [
        {
            "name": display_name(row["worker"]),
            "votes": f"{row['votes']:,}",
            "accuracy": row["accuracy"],
            "flag": _flag(row),
        }
        for row in topic.workers(topic.busiest(SHOWN))
    ]
    return {"rows": rows, "caption": describe_selection(len(rows), topic.n_workers, "workers", "those with most votes")}


def _tasks(topic: QuestionState) -> dict[str, Any]:
    asks, why = topic.next(None, SHOWN)
    rows = [
        {
            "name": display_name(row["task"]),
            "label": "–" if row["label"] is None else display_name(row["label"]),
            "belief": row["belief"],
            "votes": f"{row['votes']:,}",
            "gain": row["gain"],
        }
        for row in asks
    ]
    return {"rows": rows, "why": why}


def _duration(seconds: float) -> str:
    """A time that people would say.

    >>> _duration(3.2), _duration(600), _duration(90000)
    ('3 seconds', '10 minutes', '25 hours')
    """
    for unit, size in (("hour", 3600), ("minute", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}s"
    return f"{seconds:.0f} second{'' if round(seconds) == 1 else 's'}"
