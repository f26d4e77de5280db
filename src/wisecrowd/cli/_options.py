"""Command-line options: flags, and groups of options that several commands share."""

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
    """Return a Boolean option without a metavar.

    Parameters
    ----------
    help : str
        Help text.
    panel : str, optional
        Heading under which the option is listed.

    Returns
    -------
    object
    """
    return typer.Option(*names, metavar="", help=help, rich_help_panel=panel)


def parse_output_path(text: str | Path) -> Path:
    """Return an output path; an empty text, as an unset shell variable gives, is an error."""
    if not str(text):
        raise typer.BadParameter("the path is empty; name a file or folder, or . for this folder")
    try:
        str(text).encode()
    except UnicodeEncodeError:  # pyarrow cannot write to such a path
        raise typer.BadParameter("the path is not valid UTF-8; choose another") from None
    return Path(text)


Quiet = Annotated[bool, flag("--quiet", "-q", help="Print nothing but errors and warnings.")]


def with_options(group: type[Any], name: str | None = None) -> Callable[[F], F]:
    """Add the fields of a dataclass to a command as options; the command receives them as one argument.

    ``@with_options(Reading)`` on ``def check(votes, *, reading: Reading)`` makes every field of ``Reading`` an option. The
    argument is named like the class unless ``name`` is given.

    Parameters
    ----------
    group : type
        Dataclass whose fields are annotated as options.
    name : str, optional
        Argument of the command that receives the options.

    Returns
    -------
    callable
        Decorator of the command.
    """

    def decorate(command: F) -> F:
        argument = name or group.__name__.lower()
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
        def wrapped(*args: Any, **values: Any) -> Any:
            chosen = {name: values.pop(name) for name in names & set(values)}
            return command(*args, **values, **{argument: group(**chosen)})

        own_parameters = [parameter for name, parameter in own.parameters.items() if name != argument]
        wrapped.__signature__ = own.replace(parameters=[*own_parameters, *options])  # type: ignore[attr-defined]
        wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in [*own_parameters, *options]}
        return wrapped  # type: ignore[return-value]

    return decorate
