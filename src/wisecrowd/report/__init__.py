"""The report: one page that people open, on whom to trust, which tasks are hard, what to use and what to do next."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wisecrowd.data.crowd import Crowd
from wisecrowd.utils.files import write_text
from wisecrowd.utils.progress import report

__all__ = ["Report", "build", "is_report"]

#: What tells a report from any other page, near its beginning.
_MARK = '<meta name="generator" content="wisecrowd'

#: A page with images is no larger.
MOST_BYTES = 6_000_000


@dataclass(frozen=True)
class Report:
    """A finished page: one file, which needs no other and no network.

    >>> from wisecrowd import simulate_crowd
    >>> page = build(simulate_crowd(n_tasks=30, n_workers=5).crowd, compare=False)
    >>> page.html.startswith("<!doctype html>")
    True
    """

    html: str = field(repr=False)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page, whole or not at all.

        >>> from wisecrowd import simulate_crowd
        >>> page = build(simulate_crowd(n_tasks=30, n_workers=5).crowd, compare=False)
        >>> is_report(page.save("report.html"))
        True
        """
        write_text(path, self.html)
        return Path(path)


def is_report(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a report, and may be made anew.

    >>> _ = Path("letter.html").write_text("<!doctype html><p>Dear all</p>")
    >>> is_report("letter.html")
    False
    """
    with Path(path).open("rb") as file:
        return _MARK.encode() in file.read(4096)


def build(
    crowd: Any,
    *,
    truth: Any = None,
    X: Any = None,
    texts: Any = None,
    images: Any = None,
    title: str | None = None,
    compare: bool = True,
    model: Any = None,
    scores: Any = None,
    command: str | None = None,
) -> Report:
    """Make the report of a crowd.

    ``truth`` of some tasks is shown beside what was inferred without it. ``texts`` (by task) are what people read there.
    ``images`` are what they see: a folder or a table (`wisecrowd.report.images.read_images`), or by task paths or the bytes of
    files. Thumbnails of those on the page become part of it, smaller if need be, so that it stays below six megabytes.
    Features ``X`` tell which tasks look unlike what is said of them, and let learners take part when methods are compared;
    ``compare=False`` leaves the comparison out. ``model`` is by which workers and tasks are judged, a fitted method with confusion
    matrices or the name of one; Dawid–Skene unless given. A fitted `Panel` knows who is a machine and who belongs together; the
    page then has a section on judges, in which their ``scores`` (task, worker, label, score), if there are any, are held
    against how often they are right.
    ``command`` is the command line that makes the same page again.

    Of large crowds, the page shows some workers, tasks and classes, and says how many of how many, and which.

    >>> from wisecrowd import simulate_crowd
    >>> made = simulate_crowd(n_tasks=60, workers=["expert"] * 6 + ["spammer"], votes_per_task=4)
    >>> page = build(made.crowd, truth=made.truth, compare=False)
    >>> "Whom to trust" in page.html
    True
    """
    from wisecrowd.diagnose import diagnosis
    from wisecrowd.report import classes as _classes
    from wisecrowd.report import groups as _groups
    from wisecrowd.report import judges as _judges
    from wisecrowd.report import map as _map
    from wisecrowd.report import methods as _methods
    from wisecrowd.report import overview as _overview
    from wisecrowd.report import page as _page
    from wisecrowd.report import provenance as _made
    from wisecrowd.report import tasks as _tasks
    from wisecrowd.report import workers as _workers
    from wisecrowd.report.gold import known_truth
    from wisecrowd.report.images import read_images
    from wisecrowd.report.notes import heard
    from wisecrowd.report.task_media import by_task
    from wisecrowd.utils.text import MAX_REASON_CHARS, shorten

    _page.check_extra()
    pictures = by_task(read_images(images) if isinstance(images, str | os.PathLike) else images, "image")
    votes = crowd if isinstance(crowd, Crowd) else Crowd.from_frame(crowd)
    steps = ("the truth is inferred", "workers", "tasks", "methods", "the page")

    def begin(step: int) -> None:
        report("making the report", step, len(steps), steps[min(step, len(steps) - 1)])

    begin(0)
    with heard() as notes:
        found = diagnosis(votes, _features(X, votes), model=model)
    known = None if truth is None else known_truth(truth, found.crowd)
    begin(1)
    shown = _workers.shown_workers(found)
    workers = _workers.section(found, shown, known)
    begin(2)
    tasks = _tasks.section(found, by_task(texts, "text"), known)
    begin(3)
    comparison, told = _methods.compared(found, X, known, wanted=compare)
    begin(4)
    classes = _classes.section(found, shown)
    facts = _overview.Facts(found, known, comparison, classes["confusions"])
    content = {
        "title": shorten(title or "What the crowd says", 200),
        "tiles": facts.tiles(),
        "notes": [shorten(note, MAX_REASON_CHARS) for note in dict.fromkeys([*notes, *_notes_of(found.model)])],
        "sentences": facts.sentences(),
        "counts": facts.counts(),
        "advice": facts.advice(),
        "workers": workers,
        "map": _map.drawn(found, shown, workers["rows"]),
        "groups": _groups.section(found, shown),
        "judges": _judges.section(found, shown, scores, known),
        "tasks": tasks,
        "classes": classes,
        "methods": _methods.section(comparison, told),
        "made": _made.section(found, comparison, command),
        "level": f"{found.level:.0%}",
    }
    data = _workers.cards(found, shown, workers["rows"])
    html = _page.page(content, data)
    if pictures is not None:  # all else comes first, and they take what room is left
        content["tasks"] = _tasks.with_images(tasks, pictures, MOST_BYTES - len(html.encode()))
        html = _page.page(content, data)
    begin(len(steps))
    return Report(html)


def _notes_of(model: Any) -> tuple[str, ...]:
    """What a model warned of when it was fitted, which may have been before."""
    return tuple(getattr(model, "notes_", ()))


def _features(X: Any, votes: Crowd) -> Any:
    """Features, unless there is but one class, which goes with whatever a task looks like."""
    return None if votes.classes is not None and len(votes.classes) < 2 else X
