"""What answers in a benchmark. Any importable callable can; these make a method of the registry into one."""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Never

import wisecrowd
from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.fields import parameter_fields
from wisecrowd.base.learner import Learner
from wisecrowd.base.registry import find
from wisecrowd.errors import InputError, UsageError
from wisecrowd.io.datasets import Dataset


class Portable:
    """What travels between processes: mapping proxies do not, plain dicts do.

    >>> Aggregate("dawid-skene", {"tol": 0.1}).__getstate__()["settings"]
    {'tol': 0.1}
    """

    def __getstate__(self) -> dict[str, Any]:
        return {name: dict(value) if isinstance(value, Mapping) else value for name, value in vars(self).items()}


@dataclass(frozen=True)
class OfLearner(Portable):
    """A learner of the registry with settings: what entries that fit one have in common.

    >>> OfLearner("raykar").kind.__name__
    'Raykar'
    """

    method: str
    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def kind(self) -> type[Learner]:
        """Its class."""
        method = find(self.method)
        if not issubclass(method, Learner):
            raise UsageError(f"{self.method} does not learn from features")
        return method

    def code(self) -> str:
        """Return a digest of the learner's code."""
        return code_digest(self.kind.__module__)


@dataclass(frozen=True)
class Aggregate(Portable):
    """An aggregator of the registry with settings; its ``random_state``, if it has one, is the seed.

    ``at_most`` declines crowds with more labels than that: where a method is known to be slow, the table says so
    instead of waiting.

    >>> from wisecrowd.bench.data import Simulated
    >>> data = Simulated({"n_tasks": 200, "workers": ["expert"] * 5})
    >>> bool(Aggregate("dawid-skene")(data.load(seed=0), 0).converged_)
    True
    >>> Aggregate("dawid-skene", at_most=500)(data.load(seed=0), 0)
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: too slow for a crowd of more than 500 labels
    """

    method: str
    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    at_most: int | None = None

    def __call__(self, dataset: Dataset, seed: int) -> Aggregator:
        """Fit the method to the dataset's votes, with its features if the method looks at features."""
        kind = self._kind
        if self.at_most is not None and dataset.crowd.n_votes > self.at_most:
            raise InputError(f"too slow for a crowd of more than {self.at_most:,} labels")
        if kind.uses_features and dataset.features is None:
            raise InputError("looks at features, and this dataset has none")
        seeded = {"random_state": seed} if self.is_random else {}
        return kind(**seeded, **self.settings).fit(dataset.crowd, dataset.features if kind.uses_features else None)

    @property
    def is_random(self) -> bool:
        """Whether the answer may depend on the seed."""
        try:
            return any(field.name == "random_state" for field in parameter_fields(self._kind))
        except UsageError:  # the answer will say what is wrong
            return False

    def identity(self) -> Any:
        """Method, all parameters and the code that is its own: what must be equal for an old answer to count."""
        kind = self._kind
        parameters = kind(**self.settings).get_params()
        code = code_digest(kind.__module__)
        return [self.method, {name: repr(value) for name, value in sorted(parameters.items())}, self.at_most, code]

    @property
    def _kind(self) -> type[Aggregator]:
        kind = find(self.method)
        if not issubclass(kind, Aggregator):
            raise UsageError(f"{self.method} does not aggregate votes")
        return kind


@dataclass(frozen=True)
class Absent:
    """A method of the paper that wisecrowd does not have: its figures are shown, and why ours are not.

    >>> Absent("needs a belief propagation of its own")(None, 0)
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: not in wisecrowd: needs a belief propagation of its own
    """

    reason: str

    is_random: ClassVar[bool] = False

    def __call__(self, dataset: Dataset | None, seed: int) -> Never:
        """Decline."""
        raise UsageError(f"not in wisecrowd: {self.reason}")

    def identity(self) -> Any:
        """The reason."""
        return self.reason


def identity_of(entry: Any) -> Any:
    """What tells an entry from others, ready for JSON: its own word for it, or its name and its module's code.

    >>> identity_of(Absent("no source"))
    'no source'
    """
    if hasattr(entry, "identity"):
        return entry.identity()
    name = getattr(entry, "__qualname__", repr(entry))
    return [entry.__module__, name, code_digest(entry.__module__)]


#: Packages whose code decides about the results of a benchmark.
MODEL_PACKAGES = (
    "aggregate",
    "learn",
    "complete",
    "em",
    "nn",
    "classifiers",
    "evaluate",
    "diagnose",
    "plan",
    "simulate",
    "kernels",
)


@cache
def code_digest(*modules: str) -> str:
    """Return a digest of modules and of all modelling code that they import; comments and docstrings do not count.

    Parameters
    ----------
    *modules : str
        Dotted names of modules.

    Returns
    -------
    str

    Examples
    --------
    >>> code_digest("wisecrowd.em.loop") == code_digest("wisecrowd.em.confusion")
    False
    """
    names = sorted({name for module in modules for name in find_imported_modules(module)})
    return hashlib.sha256("".join(map(_digest_module, names)).encode()).hexdigest()[:16]


@cache
def find_imported_modules(module: str) -> frozenset[str]:
    """Return a module and the modules of `MODEL_PACKAGES` that it imports, directly or indirectly.

    Examples
    --------
    >>> "wisecrowd.em.confusion" in find_imported_modules("wisecrowd.aggregate.categorical.dawid_skene")
    True
    """
    modules: set[str] = set()
    waiting = [module]
    while waiting:
        modules.add(name := waiting.pop())
        for node in ast.walk(_parse(name)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "wisecrowd":
                candidates = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
                waiting += [name for name in candidates if _is_model_code(name) and name not in modules]
    return frozenset(modules)


def _is_model_code(name: str) -> bool:
    """Return whether a dotted name is a module (not a package or a class) of `MODEL_PACKAGES`."""
    parts = name.split(".")
    if len(parts) < 3 or parts[1] not in MODEL_PACKAGES:
        return False
    return (Path(wisecrowd.__file__).parent.joinpath(*parts[1:]).with_suffix(".py")).is_file()


@cache
def _digest_module(module: str) -> str:
    tree = _parse(module)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:16]


def _parse(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(importlib.import_module(module)))
