"""``wisecrowd demo``: all methods on a simulated crowd with known truth."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wisecrowd.cli._console import heading, show, show_bullets, show_progress, show_verbatim, table
from wisecrowd.cli._options import Quiet, parse_output_path
from wisecrowd.errors import MissingExtra

if TYPE_CHECKING:
    from wisecrowd.cli._outputs import Writer
    from wisecrowd.demo import Demo
    from wisecrowd.report import Report

VOTES, TRUTH, LABELS, WORKERS = "votes.csv", "truth.csv", "labels.csv", "workers.csv"
METHODS, AGREEMENT, COMPLETIONS, RECORD = "methods.csv", "agreement.csv", "completions.csv", "run.json"
REPORT = "report.html"

#: Methods in the agreement table, so that it fits a terminal; the file contains all.
_SHOWN = 8
#: Input of methods without and with features.
_SEES = {False: "votes", True: "votes and pixels"}


def demo(
    *,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", parser=parse_output_path, metavar="FOLDER", help="Where to write the results."),
    ] = Path("wisecrowd-demo"),
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed of the crowd.")] = 0,
    quiet: Quiet = False,
) -> None:
    """Run every method on handwritten digits that a simulated crowd labelled, and rate the workers.

    Takes about a minute and downloads nothing. The crowd has experts, noisy
    workers, spammers, copiers and adversaries. Votes, results and an HTML
    report are written to a folder:

      wisecrowd demo
      wisecrowd aggregate wisecrowd-demo/votes.csv -o labels
    """
    from wisecrowd.cli._outputs import check_folder, write_all
    from wisecrowd.demo import run_demo
    from wisecrowd.demo.run import TITLE

    check_folder(output, [VOTES, TRUTH, LABELS, WORKERS, METHODS, AGREEMENT, COMPLETIONS, REPORT, RECORD])
    started = time.perf_counter()
    if not quiet:
        show(TITLE, style="bold")
    with show_progress(quiet=quiet):
        demo_run = run_demo(seed)
        page = _page(demo_run, output)
    files = _files(demo_run, output)
    if not isinstance(page, MissingExtra):
        files[output / REPORT] = page.save
    write_all(files)
    if not quiet:
        _tell(demo_run)
        heading(f"Done in {time.perf_counter() - started:.1f} s")
        show(f"Wrote {', '.join(sorted(path.name for path in files))} in {output}. Continue with:")
        show_verbatim(f"  {_program()} aggregate {output / VOTES} --score {output / TRUTH}")
        if isinstance(page, MissingExtra):
            show(f"{REPORT} was not written: {page}")
        else:
            show("Open the report in a browser:")
            show_verbatim(f"  {(output / REPORT).resolve().as_uri()}")


def _program() -> str:
    """Return the command that runs this program: its path if it is not on the PATH, as after ``make demo``."""
    called = Path(sys.argv[0])
    hidden = called.stem == "wisecrowd" and called.is_file() and shutil.which("wisecrowd") is None
    return os.path.relpath(called) if hidden else "wisecrowd"


def _page(demo: Demo, output: Path) -> Report | MissingExtra:
    """Return the report, or the missing extra if it cannot be made."""
    from wisecrowd.demo.run import TITLE

    words = ["wisecrowd", "report", output / VOTES, "--score", output / TRUTH, "--title", TITLE, "-o", output / REPORT]
    try:
        return demo.report(shlex.join(map(str, words)))
    except MissingExtra as missing:
        return missing


def _tell(demo: Demo) -> None:
    from wisecrowd.demo.digits import count_kinds
    from wisecrowd.demo.run import RATING_METHOD
    from wisecrowd.demo.verdicts import describe

    show(repr(demo.crowd))
    show(f"Workers: {count_kinds(demo.simulation.kind)}. The methods do not know these types.")

    heading("Accuracy of every method against the known truth (ties split)")
    rows = [
        (
            entry.method,
            _SEES[entry.uses_features],
            f"{entry.accuracy:.1%}",
            f"{entry.log_loss:.3f}",
            entry.iterations or "",
            f"{entry.seconds:.2f}",
        )
        for entry in demo.contest.entries
    ]
    show(table(["method", "from", "accuracy", "log loss", "iterations", "seconds"], rows, n_text_columns=2))
    _tell_declined(demo.contest.declined)
    for note in demo.contest.footnotes(demo.crowd.n_classes):
        show(note, style="dim")
    show(demo.contest.describe(demo.crowd.n_tasks))

    heading("Agreement: share of tasks with the same label from two methods")
    agreement = demo.contest.agreement().iloc[:_SHOWN, :_SHOWN]
    numbers = [str(number) for number in range(1, len(agreement) + 1)]
    cells = [
        (f"{number} {name}", *("" if other == name else f"{share:.0%}" for other, share in row.items()))
        for number, (name, row) in zip(numbers, agreement.iterrows(), strict=True)
    ]
    show(table(["", *numbers], cells))
    if len(demo.contest.entries) > _SHOWN:
        show(f"The best {_SHOWN} methods; {AGREEMENT} contains all.", style="dim")

    _tell_completions(demo)

    heading(f"Workers as rated by {RATING_METHOD}, without known truth")
    show_bullets(describe(demo.verdicts, demo.crowd.n_classes))

    heading("Ratings compared with the simulated types of workers")
    check = demo.check()
    kinds = [(kind, row["workers"], row["right"], row["rated_as"]) for kind, row in check.iterrows()]
    show(table(["simulated type", "workers", "recognised", "rated as"], kinds, fold="rated as"))
    show(demo.describe_verdicts())

    heading("Other types of answers, on simulated crowds with known truth")
    show_bullets([result.describe() for result in demo.other_answers])


def _tell_declined(declined: dict[str, str]) -> None:
    """Print the methods that were skipped, grouped by reason."""
    who: dict[str, list[str]] = {}
    for name, reason in declined.items():
        who.setdefault(reason, []).append(name)
    for reason, names in who.items():
        show(f"{', '.join(names)} skipped: {reason}", style="dim")


def _tell_completions(demo: Demo) -> None:
    from wisecrowd.demo.completions import AGGREGATORS

    completions = demo.completions
    heading("Accuracy after completion: every missing vote is predicted first")
    cells = {"nothing": ("", *(f"{share:.1%}" for share in completions.before.values()), "")} | {
        entry.method: (
            _SEES[entry.uses_features], *(f"{share:.1%}" for share in entry.accuracy.values()), f"{entry.seconds:.2f}"
        )
        for entry in completions.entries
    }  # fmt: skip
    rows = [(name, *row) for name, row in cells.items()]
    show(table(["completed by", "from", *AGGREGATORS, "seconds"], rows, n_text_columns=2))
    _tell_declined(completions.declined)
    for note in completions.footnotes():
        show(note, style="dim")
    show(completions.describe(demo.crowd.n_tasks))


def _files(demo: Demo, output: Path) -> dict[Path, Writer]:
    from wisecrowd import io
    from wisecrowd.base.run_record import record_run
    from wisecrowd.cli._outputs import labels_table, table_of
    from wisecrowd.evaluate.confidence import estimate_confidence
    from wisecrowd.utils.files import write_json

    methods = demo.contest.table().round(6).reset_index()
    notes = [*demo.contest.footnotes(demo.crowd.n_classes), *demo.completions.footnotes()]
    declined = demo.contest.declined | demo.completions.declined
    run = record_run(demo.fitted, demo.crowd, demo_seconds=round(demo.seconds, 3), declined=declined, footnotes=notes)
    return {
        output / RECORD: lambda path: write_json(path, run),
        output / VOTES: lambda path: io.write(demo.crowd, path),
        output / TRUTH: table_of(demo.simulation.truth.reset_index()),
        output / LABELS: table_of(labels_table(demo.fitted, estimate_confidence(demo.fitted, demo.crowd))),
        output / WORKERS: table_of(demo.workers().round(6).reset_index()),
        output / METHODS: table_of(methods),
        output / COMPLETIONS: table_of(demo.completions.table().round(6).reset_index()),
        output / AGREEMENT: table_of(demo.contest.agreement().round(6).reset_index()),
    }
