"""The command line. One file of this folder is one command, listed in `COMMANDS`.

A command's file defines a function of the file's name, whose docstring is its help, or a ``typer.Typer`` called ``app``
when it has commands of its own. It imports what it works with inside the function: ``wisecrowd --help`` loads every
file, and must stay quick.
"""

from __future__ import annotations

import importlib
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from wisecrowd import __version__
from wisecrowd.cli._failures import plain_failures
from wisecrowd.cli._options import flag

#: Every command in the order of ``wisecrowd --help``, by the heading that it stands under.
COMMANDS = {
    "Your votes": ("check", "diagnose", "compare", "plan", "aggregate", "learn", "complete", "report", "shard"),
    "Tools people label in": ("serve", "questions", "export", "label_studio"),
    "Methods and data": ("methods", "cite", "datasets", "bench"),
    "To try things out": ("demo", "simulate"),
}


class PlainGroup(TyperGroup):
    """The whole program: whatever goes wrong in a command ends in one message and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with plain_failures(debug=bool(ctx.params.get("debug"))):
            return super().invoke(ctx)


app = typer.Typer(
    cls=PlainGroup,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"wisecrowd {__version__}")
        raise typer.Exit


@app.callback()
def wisecrowd(
    version: Annotated[
        bool, typer.Option("--version", metavar="", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, flag("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Many people labelled your data, and they disagree. What is true, and whom do you trust?

    A first look, with nothing but this program:

      wisecrowd demo

    Your own votes, in a table with the columns task, worker and label:

      wisecrowd check votes.csv
      wisecrowd aggregate votes.csv -o results

    Every command explains itself: wisecrowd aggregate --help
    """


def _add_commands() -> None:
    for heading, names in COMMANDS.items():
        for name in names:
            module = importlib.import_module(f"wisecrowd.cli.{name}")
            command = name.replace("_", "-")
            if isinstance(getattr(module, "app", None), typer.Typer):
                app.add_typer(module.app, name=command, rich_help_panel=heading)
            else:
                app.command(command, rich_help_panel=heading)(getattr(module, name))


_add_commands()


def main() -> None:
    """Run the command line; the entry point of the ``wisecrowd`` program."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # An id that the terminal cannot show is no reason to lose the rest of the answer.
            stream.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="wisecrowd")
    except KeyboardInterrupt:  # outside of a command, while something is still being imported
        raise SystemExit(130) from None
