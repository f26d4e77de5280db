"""Command line. One file of this folder is one command, listed in `COMMANDS`.

A command's file defines a function of the file's name, whose docstring is its help, or a ``typer.Typer`` called ``app`` when it has
subcommands. Files import what they work with inside the function. `main` loads only the file of the command that is run.
"""

from __future__ import annotations

import atexit
import importlib
import inspect
import signal
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from wisecrowd import __version__
from wisecrowd.cli._failures import INTERRUPTED, NOTHING_PARTIAL, plain_failures
from wisecrowd.cli._options import flag

#: Every command in the order of ``wisecrowd --help``, by the heading that it stands under.
COMMANDS = {
    "Your votes": (
        "check",
        "diagnose",
        "compare",
        "plan",
        "aggregate",
        "audit",
        "review",
        "evaluate",
        "learn",
        "predict",
        "complete",
        "report",
        "shard",
    ),
    "Labelling tools": ("serve", "database", "questions", "export", "label_studio"),
    "Methods and data": ("methods", "cite", "datasets", "bench"),
    "Examples": ("demo", "simulate"),
}


class ErrorHandlingGroup(TyperGroup):
    """Group of all commands, in which an error ends in one message and an exit code."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Parse the arguments. Typer says nothing after Ctrl-C here."""
        with plain_failures():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with plain_failures(debug=bool(ctx.params.get("debug"))):
            return super().invoke(ctx)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"wisecrowd {__version__}")
        raise typer.Exit


def wisecrowd(
    version: Annotated[
        bool, typer.Option("--version", metavar="", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, flag("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Infer the truth from the votes of many annotators, and rate the annotators.

    Try it without data of your own:

      wisecrowd demo

    With your votes, in a table with the columns task, worker and label:

      wisecrowd check votes.csv
      wisecrowd aggregate votes.csv -o results

    Help on a command: wisecrowd aggregate --help
    """


def build_app(names: Sequence[str] | None = None) -> typer.Typer:
    """Return the command-line program with some of its commands.

    Parameters
    ----------
    names : sequence of str, optional
        File names of the commands to load. All by default.

    Returns
    -------
    typer.Typer
    """
    app = typer.Typer(
        cls=ErrorHandlingGroup,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(help=join_paragraphs(wisecrowd.__doc__ or ""))(wisecrowd)
    for heading, commands in COMMANDS.items():
        for name in commands:
            if names is not None and name not in names:
                continue
            module = importlib.import_module(f"wisecrowd.cli.{name}")
            command = name.replace("_", "-")
            if isinstance(getattr(module, "app", None), typer.Typer):
                for part in filter(None, [module.app.registered_callback, *module.app.registered_commands]):
                    part.help = join_paragraphs(part.callback.__doc__ or "")
                app.add_typer(module.app, name=command, rich_help_panel=heading)
            else:
                function = getattr(module, name)
                app.command(command, help=join_paragraphs(function.__doc__ or ""), rich_help_panel=heading)(function)
    return app


def join_paragraphs(text: str) -> str:
    """Join the lines of every paragraph of a help text, so that it wraps at the width of the terminal.

    Indented lines, which are commands to copy, stay as they are.

    Parameters
    ----------
    text : str
        Docstring.

    Returns
    -------
    str
    """
    joined: list[str] = []
    for line in inspect.cleandoc(text).splitlines():
        is_prose = bool(line) and not line.startswith(" ")
        if is_prose and joined and joined[-1] and not joined[-1].startswith(" "):
            joined[-1] += f" {line}"
        else:
            joined.append(line)
    return "\n".join(joined)


def _requested_command(arguments: Sequence[str]) -> str | None:
    """Return the file name of the command that the arguments run, or None for help and misspelt commands."""
    first = next((word for word in arguments if word != "--debug"), "")
    name = first.replace("-", "_")
    return name if any(name in commands for commands in COMMANDS.values()) else None


def main() -> None:
    """Run the command line; the entry point of the ``wisecrowd`` program."""
    # Called last at exit: the output is complete, and Ctrl-C would only change the exit code.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # Print ids that the terminal cannot show as escapes instead of failing.
            stream.reconfigure(errors="backslashreplace")
    try:
        command = _requested_command(sys.argv[1:])
        build_app(None if command is None else [command])(prog_name="wisecrowd")
    except KeyboardInterrupt:  # outside of a command, while modules are being imported
        print(f"Interrupted: {NOTHING_PARTIAL}", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
    finally:
        # A KeyboardInterrupt within exec() of a text, which dataclasses call, makes Python end itself by SIGINT at exit
        # although the exception was handled. The next exec() resets that.
        exec("")
