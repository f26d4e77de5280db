"""``wisecrowd database``: check, back up, convert and recover the database of ``wisecrowd serve``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wisecrowd.cli._console import show_bullets, show_facts

app = typer.Typer(no_args_is_help=True)


@app.callback()
def database() -> None:
    """Check, back up, convert and recover the database of wisecrowd serve.

    Copy a database while the service runs, and convert one that an earlier
    version of wisecrowd wrote:

      wisecrowd database backup votes.db backup.db
      wisecrowd database migrate votes.db

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


@app.command()
def backup(
    source: Annotated[Path, typer.Argument(metavar="DATABASE", show_default=False, help="SQLite file.")],
    target: Annotated[Path, typer.Argument(metavar="COPY", show_default=False, help="SQLite file to create.")],
) -> None:
    """Copy an SQLite database to one file, also while the service runs.

    The copy has all votes that were acknowledged before, and is checked:

      wisecrowd database backup votes.db backup.db

    To restore it, copy it back under a new name and start the service with it:

      wisecrowd database backup backup.db restored.db
      wisecrowd serve restored.db

    PostgreSQL has pg_dump and pg_restore.
    """
    from wisecrowd.errors import MissingExtra
    from wisecrowd.utils.text import count_noun

    try:
        from wisecrowd.service.migrations import back_up_database
    except ImportError as error:
        raise MissingExtra("serve", "services") from error
    n_questions, n_records = back_up_database(source, target)
    content = f"{count_noun(n_records, 'vote')} on {count_noun(n_questions, 'question')}"
    show_facts([("Copied", f"{content} to {target}"), ("Result", "No problems found.")])


@app.command()
def migrate(
    url: Annotated[
        str,
        typer.Argument(metavar="DATABASE", show_default=False, help="SQLite file, or URL of a PostgreSQL database."),
    ],
) -> None:
    """Convert a database that an earlier version of wisecrowd wrote.

    Stop the service first. All votes are converted or none. A copy of an SQLite
    database as it was before is kept beside it; make one of PostgreSQL with
    pg_dump:

      wisecrowd database migrate votes.db
    """
    from wisecrowd.errors import MissingExtra
    from wisecrowd.utils.text import count_noun

    try:
        from wisecrowd.service.database import SCHEMA_VERSION
        from wisecrowd.service.migrations import migrate_database
    except ImportError as error:
        raise MissingExtra("serve", "services") from error
    result = migrate_database(url)
    content = f"{count_noun(result.n_records, 'vote')} on {count_noun(result.n_questions, 'question')}"
    facts = [("Converted", f"{content}, from schema {result.version} to {SCHEMA_VERSION}")]
    if result.backup is not None:
        facts.append(("Kept", f"{result.backup}, as it was before"))
    show_facts(facts)
