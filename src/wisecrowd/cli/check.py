"""``wisecrowd check``: is anything wrong with the votes?"""

from __future__ import annotations

import typer

from wisecrowd.cli._console import show, show_facts, show_hanging
from wisecrowd.cli._options import with_options
from wisecrowd.cli._reading import Reading, Votes, located

STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}
WIDTH = 9


@with_options(Reading)
def check(votes: Votes, *, reading: Reading) -> None:
    """Look the votes over first: repeats, holes, misspelt labels, workers who always say the same, and more.

    What would change the answer without a word is an error, and the exit code is 1; what makes the answer less sure is a
    warning. Each comes with the option that settles it:

      wisecrowd check votes.csv
      wisecrowd check votes.csv --duplicates distinct --missing drop
    """
    from wisecrowd.io.validation import examine

    examination = examine(located(votes), **reading.arguments())
    summary = examination.summary.removeprefix("Crowd(").removesuffix(")")
    show_facts([("Read", examination.source), *([("Votes", summary)] if summary else [])], width=WIDTH)
    for finding in examination.findings:
        start = finding.severity.ljust(WIDTH)
        show_hanging(start, f"{finding.name}: {finding.message}", style=STYLES[finding.severity])
        if finding.fix:
            show_hanging(" " * WIDTH, finding.fix)
    if not examination.findings:
        show("Nothing to complain of.")
    if not examination.ok:
        raise typer.Exit(1)
