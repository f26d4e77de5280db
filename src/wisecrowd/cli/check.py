"""``wisecrowd check``: is anything wrong with the votes?"""

from __future__ import annotations

import typer

from wisecrowd.cli._console import console
from wisecrowd.cli._options import with_options
from wisecrowd.cli._reading import Reading, Votes


@with_options(Reading)
def check(votes: Votes, *, reading: Reading) -> None:
    """Look the votes over before you trust a result: repeats, holes, misspelt labels, lone workers and more.

    What would change an answer silently is an error, and the exit code is 1; what is unwise is a warning.

      wisecrowd check votes.csv
      wisecrowd check votes.csv --task question --label answer
    """
    from wisecrowd.doctor import examine

    examination = examine(votes, **reading.arguments())
    console().print(str(examination))
    if not examination.ok:
        raise typer.Exit(1)
