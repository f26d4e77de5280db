"""Options of commands: flags, and groups of options that several commands share."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

F = TypeVar("F", bound=Callable[..., Any])


def flag(*names: str, help: str, panel: str | None = None) -> Any:
    """An option that is there or not; its kind of value need not be told."""
    return typer.Option(*names, metavar="", help=help, rich_help_panel=panel)


def place(text: str | Path) -> Path:
    """Where to write; nothing at all, as an unset variable of a script leaves it, is not taken for this folder."""
    if not str(text):
        raise typer.BadParameter("it is empty; name a place, or . for this folder")
    try:
        str(text).encode()
    except UnicodeEncodeError:  # bytes of another encoding, which no writer of tables takes
        raise typer.BadParameter("its name is not in UTF-8; choose another") from None
    return Path(text)


Quiet = Annotated[bool, flag("--quiet", "-q", help="Print nothing but errors and warnings.")]


def with_options(group: type[Any]) -> Callable[[F], F]:
    """Give a command the options of a dataclass; it receives them as one argument, the last, named like the class.

    ``@with_options(Reading)`` on ``def check(votes, *, reading: Reading)`` makes every field of ``Reading`` an option.
    """

    def decorate(command: F) -> F:
        argument = group.__name__.lower()
        own = inspect.signature(command, eval_str=True)
        kinds = get_type_hints(group, include_extras=True)
        options = [
            inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=kinds[field.name]
            )
            for field in dataclasses.fields(group)
        ]
        names = {option.name for option in options}

        @functools.wraps(command)
        def wrapped(*args: Any, **given: Any) -> Any:
            chosen = {name: given.pop(name) for name in names & set(given)}
            return command(*args, **given, **{argument: group(**chosen)})

        kept = [parameter for name, parameter in own.parameters.items() if name != argument]
        wrapped.__signature__ = own.replace(parameters=[*kept, *options])  # type: ignore[attr-defined]
        wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in [*kept, *options]}
        return wrapped  # type: ignore[return-value]

    return decorate
