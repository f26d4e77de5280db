"""Methods are found by looking: every class in `aggregate`, `learn` and `complete` that can be used."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache
from types import ModuleType

from wisecrowd.base import Aggregator, Learner, Method
from wisecrowd.completion import Completer
from wisecrowd.errors import UsageError, did_you_mean, one_of

#: Packages that hold methods, and the kind of method each holds. One file there is one method.
KINDS: dict[str, type[Method]] = {"aggregate": Aggregator, "learn": Learner, "complete": Completer}


@cache
def _found() -> dict[str, type[Method]]:
    found: dict[str, type[Method]] = {}
    for package in KINDS:
        home = importlib.import_module(f"wisecrowd.{package}")
        for info in pkgutil.iter_modules(home.__path__):
            if not info.name.startswith("_"):
                for method in _methods_in(importlib.import_module(f"wisecrowd.{package}.{info.name}")):
                    found[method.name] = method
    return dict(sorted(found.items()))


def _methods_in(module: ModuleType) -> list[type[Method]]:
    return [
        member
        for member in vars(module).values()
        if inspect.isclass(member)
        and issubclass(member, Method)
        and member.__module__ == module.__name__
        and not inspect.isabstract(member)
        and not member.__name__.startswith("_")
    ]


def methods(kind: str | None = None) -> dict[str, type[Method]]:
    """Every method by its command-line name; ``kind`` narrows to "aggregate", "learn" or "complete".

    >>> "dawid-skene" in methods()
    True
    """
    if kind is None:
        return dict(_found())
    one_of("kind", kind, KINDS)
    return {name: method for name, method in _found().items() if issubclass(method, KINDS[kind])}


def find(name: str) -> type[Method]:
    """The method of that name, as written on the command line or in code.

    >>> find("dawid-skene").__name__, find("DawidSkene").__name__
    ('DawidSkene', 'DawidSkene')
    >>> find("dawid-skeen")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: no method is called 'dawid-skeen'. Did you mean 'dawid-skene'? ...
    """
    known = _found()
    wanted = name.replace("_", "-").lower()
    for key, method in known.items():
        if wanted in (key, method.__name__.lower()):
            return method
    raise UsageError(f"no method is called {name!r}.{did_you_mean(wanted, known)} There are: {', '.join(known)}")


def kind_of(method: type[Method]) -> str:
    """Which kind of method it is: the package it lives in.

    >>> kind_of(find("majority-vote"))
    'aggregate'
    """
    return method.__module__.split(".")[1]
