"""Registry of methods: every class that a file in `aggregate`, `learn` or `complete` defines.

A method is found by the name of its file. Only the file that is asked for is imported.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache
from pathlib import Path

from wisecrowd.base.method import Method
from wisecrowd.errors import UsageError, check_choice, suggest_name

#: Packages that hold methods; each is also the name of a kind of method and of a command.
KINDS = ("aggregate", "learn", "complete")


@cache
def method_modules() -> dict[str, str]:
    """Return the module of every method by command-line name, without importing any of them.

    Returns
    -------
    dict of str to str

    Examples
    --------
    >>> method_modules()["dawid-skene"]
    'wisecrowd.aggregate.categorical.dawid_skene'
    """
    root = Path(__file__).parents[1]
    modules = {}
    for kind in KINDS:
        for name in _public_modules(root / kind, f"wisecrowd.{kind}"):
            modules[name.rsplit(".", 1)[-1].replace("_", "-")] = name
    return dict(sorted(modules.items()))


def _public_modules(folder: Path, package: str) -> list[str]:
    """Return the modules below a folder whose names do not begin with an underscore."""
    names = []
    for info in pkgutil.iter_modules([str(folder)]):
        if info.name.startswith("_"):
            continue
        name = f"{package}.{info.name}"
        names += _public_modules(folder / info.name, name) if info.ispkg else [name]
    return names


def _import_method(module_name: str) -> type[Method]:
    """Import a module and return the one method that it defines."""
    module = importlib.import_module(module_name)
    for member in vars(module).values():
        if (
            inspect.isclass(member)
            and issubclass(member, Method)
            and member.__module__ == module_name
            and not inspect.isabstract(member)
            and not member.__name__.startswith("_")
        ):
            return member
    raise UsageError(
        f"{module_name} defines no method. A file in aggregate/, learn/ or complete/ defines one concrete class; start the name "
        "of a helper module with an underscore"
    )


def methods(kind: str | None = None) -> dict[str, type[Method]]:
    """Return all methods by command-line name; this imports all of them.

    Parameters
    ----------
    kind : {"aggregate", "learn", "complete"}, optional
        Return only methods of this kind.

    Returns
    -------
    dict of str to type

    Raises
    ------
    UsageError
        If there is no such kind.

    Examples
    --------
    >>> "dawid-skene" in methods()
    True
    """
    if kind is not None:
        check_choice("kind", kind, KINDS)
    return {
        name: _import_method(module)
        for name, module in method_modules().items()
        if kind is None or module.split(".")[1] == kind
    }


def find(name: str) -> type[Method]:
    """Return the method with a given name, as written on the command line or in code.

    Parameters
    ----------
    name : str
        Command-line name ("dawid-skene") or class name ("DawidSkene").

    Returns
    -------
    type

    Raises
    ------
    UsageError
        If no method has this name.

    Examples
    --------
    >>> find("dawid-skene").__name__, find("DawidSkene").__name__
    ('DawidSkene', 'DawidSkene')
    >>> find("dawid-skeen")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: no method is called 'dawid-skeen'. Did you mean 'dawid-skene'? ...
    """
    modules = method_modules()
    normalized = name.replace("_", "-").lower()
    for key, module in modules.items():
        if normalized in (key, key.replace("-", "")):
            return _import_method(module)
    raise UsageError(
        f"no method is called {name!r}.{suggest_name(normalized, modules)} There are: {', '.join(modules)}"
    )


def kind_of(method: type[Method]) -> str:
    """Return the kind of a method: the name of its package.

    Parameters
    ----------
    method : type
        Class of a method.

    Returns
    -------
    {"aggregate", "learn", "complete"}

    Examples
    --------
    >>> kind_of(find("majority-vote"))
    'aggregate'
    """
    return method.__module__.split(".")[1]
