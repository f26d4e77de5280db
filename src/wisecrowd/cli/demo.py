"""``wisecrowd demo``: everything at once, on a crowd whose truth is known."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wisecrowd.cli._console import heading, show, show_bullets, show_verbatim, table, watched
from wisecrowd.cli._options import Quiet, place
from wisecrowd.errors import MissingExtra

if TYPE_CHECKING:
    from wisecrowd.cli._outputs import Writer
    from wisecrowd.demo import Demo
    from wisecrowd.report import Report

VOTES, TRUTH, LABELS, WORKERS = "votes.csv", "truth.csv", "labels.csv", "workers.csv"
METHODS, AGREEMENT, COMPLETIONS, RECORD = "methods.csv", "agreement.csv", "completions.csv", "run.json"
REPORT = "report.html"

#: A table of agreement with more columns than this does not fit a terminal; the file has them all.
_SHOWN = 8
#: What methods look at that do, and do not, look at the pictures.
_SEES = {False: "votes", True: "votes and pixels"}


def demo(
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", parser=place, metavar="FOLDER", help="Where to write the results.")
    ] = Path("wisecrowd-demo"),
    seed: Annotated[int, typer.Option(metavar="N", help="Another seed, another crowd.")] = 0,
    quiet: Quiet = False,
) -> None:
    """See it work: digits, a crowd of experts, spammers, copiers and worse, every method, and whom to trust.

    Needs no download and takes about a minute. The votes, all results and a report to open in a browser are written to a
    folder, to go on from there:

      wisecrowd demo
      wisecrowd aggregate wisecrowd-demo/votes.csv --score wisecrowd-demo/truth.csv
    """
    from wisecrowd.cli._outputs import check_folder, write_all
    from wisecrowd.demo import run_demo
    from wisecrowd.demo.run import TITLE

    check_folder(output, [VOTES, TRUTH, LABELS, WORKERS, METHODS, AGREEMENT, COMPLETIONS, REPORT, RECORD])
    begun = time.perf_counter()
    if not quiet:
        show(TITLE, style="bold")
    with watched(quiet=quiet):
        found = run_demo(seed)
        page = _page(found, output)
    files = _files(found, output)
    if not isinstance(page, MissingExtra):
        files[output / REPORT] = page.save
    write_all(files)
    if not quiet:
        _tell(found)
        heading(f"Done in {time.perf_counter() - begun:.1f} s")
        show(f"Wrote {', '.join(sorted(path.name for path in files))} in {output}. Go on from there:")
        show_verbatim(f"  {_program()} aggregate {output / VOTES} --score {output / TRUTH}")
        if isinstance(page, MissingExtra):
            show(f"No {REPORT} was made: {page}")
        else:
            show("The report tells it all on one page; open it in a browser:")
            show_verbatim(f"  {(output / REPORT).resolve().as_uri()}")


def _program() -> str:
    """What to type for this program: its path where the shell does not find it, as after ``make demo``."""
    called = Path(sys.argv[0])
    hidden = called.stem == "wisecrowd" and called.is_file() and shutil.which("wisecrowd") is None
    return os.path.relpath(called) if hidden else "wisecrowd"


def _page(demo: Demo, output: Path) -> Report | MissingExtra:
    """The report, or why there is none: the demo does without."""
    from wisecrowd.demo.run import TITLE

    words = ["wisecrowd", "report", output / VOTES, "--truth", output / TRUTH, "--title", TITLE, "-o", output / REPORT]
    try:
        return demo.report(shlex.join(map(str, words)))
    except MissingExtra as missing:
        return missing


def _tell(demo: Demo) -> None:
    from wisecrowd.demo.crowd import described
    from wisecrowd.demo.run import JUDGE
    from wisecrowd.demo.verdicts import in_words

    show(repr(demo.crowd))
    show(f"Workers: {described(demo.simulation.kind)}. No method is told who is who.")

    heading("What is true? Every method against the known truth (ties split)")
    rows = [
        (
            entry.method,
            _SEES[entry.looks],
            f"{entry.accuracy:.1%}",
            f"{entry.log_loss:.3f}",
            entry.iterations or "",
            f"{entry.seconds:.2f}",
        )
        for entry in demo.contest.entries
    ]
    show(table(["method", "from", "accuracy", "log loss", "iterations", "seconds"], rows, left=2))
    _tell_declined(demo.contest.declined)
    for note in demo.contest.footnotes(demo.crowd.n_classes):
        show(note, style="dim")
    show(demo.contest.in_words(demo.crowd.n_tasks))

    heading("Do they agree? Tasks that get the same label from two methods")
    agreement = demo.contest.agreement().iloc[:_SHOWN, :_SHOWN]
    numbers = [str(number) for number in range(1, len(agreement) + 1)]
    cells = [
        (f"{number} {name}", *("" if other == name else f"{share:.0%}" for other, share in row.items()))
        for number, (name, row) in zip(numbers, agreement.iterrows(), strict=True)
    ]
    show(table(["", *numbers], cells))
    if len(demo.contest.entries) > _SHOWN:
        show(f"The best {_SHOWN}; {AGREEMENT} has all.", style="dim")

    _tell_completions(demo)

    heading(f"Whom to trust? What {JUDGE} makes of the workers, without knowing the truth")
    show_bullets(in_words(demo.verdicts, demo.crowd.n_classes))

    heading("Was that right? The workers as they were made")
    check = demo.check()
    kinds = [(kind, row["workers"], row["right"], row["taken_for"]) for kind, row in check.iterrows()]
    show(table(["made as", "workers", "recognised", "others"], kinds, fold="others"))
    show(demo.score_of_verdicts())


def _tell_declined(declined: dict[str, str]) -> None:
    """Who did not take part, once for each reason: without torch, all networks have the same."""
    who: dict[str, list[str]] = {}
    for name, reason in declined.items():
        who.setdefault(reason, []).append(name)
    for reason, names in who.items():
        show(f"{', '.join(names)} declined: {reason}", style="dim")


def _tell_completions(demo: Demo) -> None:
    from wisecrowd.demo.completing import AGGREGATORS

    held = demo.completions
    heading("What would the others have said? Accuracy after every empty cell was filled in")
    cells = {"nothing": ("", *(f"{share:.1%}" for share in held.before.values()), "")} | {
        entry.method: (
            _SEES[entry.looks], *(f"{share:.1%}" for share in entry.accuracy.values()), f"{entry.seconds:.2f}"
        )
        for entry in held.entries
    }  # fmt: skip
    rows = [(name, *row) for name, row in cells.items()]
    show(table(["filled in by", "from", *AGGREGATORS, "seconds"], rows, left=2))
    _tell_declined(held.declined)
    for note in held.footnotes():
        show(note, style="dim")
    show(held.in_words(demo.crowd.n_tasks))


def _files(demo: Demo, output: Path) -> dict[Path, Writer]:
    from wisecrowd import io
    from wisecrowd.base.provenance import record
    from wisecrowd.cli._outputs import labels_table, table_of
    from wisecrowd.utils.files import write_json

    methods = demo.contest.table().round(6).reset_index()
    notes = [*demo.contest.footnotes(demo.crowd.n_classes), *demo.completions.footnotes()]
    declined = demo.contest.declined | demo.completions.declined
    run = record(demo.fitted, demo.crowd, demo_seconds=round(demo.seconds, 3), declined=declined, footnotes=notes)
    return {
        output / RECORD: lambda path: write_json(path, run),
        output / VOTES: lambda path: io.write(demo.crowd, path),
        output / TRUTH: table_of(demo.simulation.truth.reset_index()),
        output / LABELS: table_of(labels_table(demo.fitted)),
        output / WORKERS: table_of(demo.workers().round(6).reset_index()),
        output / METHODS: table_of(methods),
        output / COMPLETIONS: table_of(demo.completions.table().round(6).reset_index()),
        output / AGREEMENT: table_of(demo.contest.agreement().round(6).reset_index()),
    }
