"""``wisecrowd database``: check and recover the database of ``wisecrowd serve``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wisecrowd.cli._console import show_bullets, show_facts

app = typer.Typer(no_args_is_help=True)


@app.callback()
def database() -> None:
    """Check and recover the database of wisecrowd serve.

    The service checks its database at every start and refuses one that is
    damaged. These commands check all of it, and copy what can be read:

      wisecrowd database check votes.db
      wisecrowd database recover votes.db recovered.db
    """


@app.command()
def check(
    url: Annotated[
        str,
        typer.Argument(metavar="DATABASE", show_default=False, help="SQLite file, or URL of a PostgreSQL database."),
    ],
) -> None:
    """Check every page, index and row of a database without changing it.

    The service may be running. The exit code is 1 if there are problems:

      wisecrowd database check votes.db

    To copy the votes that can be read: wisecrowd database recover
    """
    from wisecrowd.errors import MissingExtra
    from wisecrowd.utils.text import count_noun

    try:
        from wisecrowd.service.integrity import check_database
    except ImportError as error:
        raise MissingExtra("serve", "services") from error
    problems, n_questions, n_records = check_database(url)
    content = f"{count_noun(n_records, 'vote')} on {count_noun(n_questions, 'question')}"
    if not problems:
        show_facts([("Read", content), ("Result", "No problems found.")])
        return
    show_facts([("Read", content), ("Result", "The database is damaged:")])
    show_bullets(problems)
    raise typer.Exit(1)


@app.command()
def recover(
    source: Annotated[Path, typer.Argument(metavar="DATABASE", show_default=False, help="Damaged SQLite file.")],
    target: Annotated[Path, typer.Argument(metavar="NEW", show_default=False, help="SQLite file to create.")],
) -> None:
    """Copy everything that can be read from a damaged database to a new one.

    Stop the service first. The damaged files are not changed:

      wisecrowd database recover votes.db recovered.db
      wisecrowd serve recovered.db

    Votes that are lost can be sent again; votes that are not lost count once.
    """
    from wisecrowd.errors import MissingExtra
    from wisecrowd.utils.text import count_noun

    try:
        from wisecrowd.service.recovery import recover_database
    except ImportError as error:
        raise MissingExtra("serve", "services") from error
    result = recover_database(source, target)
    lost = "no record that cannot be read" if not result.n_lost else f"{count_noun(result.n_lost, 'record')} or more"
    show_facts(
        [
            (
                "Copied",
                f"{count_noun(result.n_records, 'vote')} on {count_noun(result.n_questions, 'question')} to {target}",
            ),
            ("Lost", lost),
        ]
    )
