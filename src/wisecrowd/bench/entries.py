"""What answers in a benchmark. Any importable callable can; these make a method of the registry into one."""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, Never

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
        found = find(self.method)
        if not issubclass(found, Learner):
            raise UsageError(f"{self.method} does not learn from features")
        return found

    def code(self) -> list[str]:
        """Digests of the code that is its own: of its module, and of all in `wisecrowd.learn` that this builds on."""
        return [code_digest(module) for module in ["wisecrowd.em.priors", *built_on(self.kind.__module__)]]


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
        code = [code_digest(part.__module__) for part in kind.__mro__ if _is_family(part.__module__)]
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


@cache
def code_digest(module: str) -> str:
    """A digest of what a module does; comments and docstrings do not count.

    >>> code_digest("wisecrowd.em.confusion") == code_digest("wisecrowd.base.method")
    False
    """
    tree = _tree(module)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:16]


@cache
def built_on(module: str, package: str = "wisecrowd.learn") -> tuple[str, ...]:
    """A module, and whatever it imports from a package, itself or by way of one another.

    >>> built_on("wisecrowd.nn.seeding")
    ('wisecrowd.nn.seeding', 'wisecrowd.nn.checkpoint', 'wisecrowd.nn.process_group')
    """
    found: set[str] = set()
    waiting = [module]
    while waiting:
        found.add(name := waiting.pop())
        imports = [node.module or "" for node in ast.walk(_tree(name)) if isinstance(node, ast.ImportFrom)]
        waiting += [each for each in imports if each.startswith(f"{package}.") and each not in found]
    return tuple(sorted(found))


def _tree(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(importlib.import_module(module)))


def _is_family(module: str) -> bool:
    """Whether a method inherits what it computes from there, rather than what every method has."""
    return module.startswith("wisecrowd.") and module != "wisecrowd.base.method"
