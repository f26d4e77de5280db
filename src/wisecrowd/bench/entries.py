"""Entries of benchmarks, which run a method of the registry with given settings.

Any importable callable that takes a dataset and a seed can be an entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Never

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.fields import parameter_fields
from wisecrowd.base.learner import Learner
from wisecrowd.base.registry import find
from wisecrowd.bench.code_digest import code_digest
from wisecrowd.errors import InputError, UsageError
from wisecrowd.io.datasets import Dataset


class Portable:
    """Base of entries that are sent to other processes; it pickles mapping proxies as dicts.

    Examples
    --------
    >>> Aggregate("dawid-skene", {"tol": 0.1}).__getstate__()["settings"]
    {'tol': 0.1}
    """

    def __getstate__(self) -> dict[str, Any]:
        return {name: dict(value) if isinstance(value, Mapping) else value for name, value in vars(self).items()}


@dataclass(frozen=True)
class LearnerEntry(Portable):
    """Base of entries that fit a learner of the registry.

    Attributes
    ----------
    method : str
        Name of the learner.
    settings : mapping of str to object
        Parameters of the learner.

    Examples
    --------
    >>> LearnerEntry("raykar").kind.__name__
    'Raykar'
    """

    method: str
    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def kind(self) -> type[Learner]:
        """Class of the learner."""
        method = find(self.method)
        if not issubclass(method, Learner):
            raise UsageError(f"{self.method} is not a learner; wisecrowd methods lists the learners")
        return method

    def code(self) -> str:
        """Return a digest of the learner's code."""
        return code_digest(self.kind)


@dataclass(frozen=True)
class Aggregate(Portable):
    """Entry that fits an aggregator of the registry.

    Attributes
    ----------
    method : str
        Name of the aggregator. If it has a parameter ``random_state``, the seed is its value.
    settings : mapping of str to object
        Parameters of the aggregator.
    at_most : int or None
        Decline crowds with more votes. The table then says that the method is too slow.

    Examples
    --------
    >>> from wisecrowd.bench.data import SimulatedDataset
    >>> data = SimulatedDataset({"n_tasks": 200, "workers": ["expert"] * 5})
    >>> bool(Aggregate("dawid-skene")(data.load(seed=0), 0).converged_)
    True
    >>> Aggregate("dawid-skene", at_most=500)(data.load(seed=0), 0)
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: too slow for a crowd of more than 500 votes
    """

    method: str
    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    at_most: int | None = None

    def __call__(self, dataset: Dataset, seed: int) -> Aggregator:
        """Fit the aggregator to the votes, with the features if it uses them."""
        kind = self._kind
        if self.at_most is not None and dataset.crowd.n_votes > self.at_most:
            raise InputError(f"too slow for a crowd of more than {self.at_most:,} votes")
        if kind.uses_features and dataset.features is None:
            raise InputError("the method uses features, and this dataset has none")
        seeded = {"random_state": seed} if self.is_random else {}
        return kind(**seeded, **self.settings).fit(dataset.crowd, dataset.features if kind.uses_features else None)

    @property
    def is_random(self) -> bool:
        """True if the result may depend on the seed."""
        try:
            return any(field.name == "random_state" for field in parameter_fields(self._kind))
        except UsageError:  # running the entry raises it again, and the table shows it
            return False

    def identity(self) -> Any:
        """Return the method, all its parameters and the digest of its code."""
        kind = self._kind
        parameters = kind(**self.settings).get_params()
        code = code_digest(kind)
        return [self.method, {name: repr(value) for name, value in sorted(parameters.items())}, self.at_most, code]

    @property
    def _kind(self) -> type[Aggregator]:
        kind = find(self.method)
        if not issubclass(kind, Aggregator):
            raise UsageError(f"{self.method} is not an aggregator; wisecrowd methods lists the aggregators")
        return kind


@dataclass(frozen=True)
class UnavailableMethod:
    """Method of a paper that wisecrowd does not have; the table shows its published values and the reason.

    Attributes
    ----------
    reason : str
        Reason why the method is missing.

    Examples
    --------
    >>> UnavailableMethod("needs a belief propagation of its own")(None, 0)
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: not in wisecrowd: needs a belief propagation of its own
    """

    reason: str

    is_random: ClassVar[bool] = False

    def __call__(self, dataset: Dataset | None, seed: int) -> Never:
        """Raise `UsageError` with the reason."""
        raise UsageError(f"not in wisecrowd: {self.reason}")

    def identity(self) -> Any:
        """Return the reason."""
        return self.reason


def get_identity(entry: Any) -> Any:
    """Return a JSON-compatible value that is equal only for equal entries.

    Parameters
    ----------
    entry : Entry
        Entry of a benchmark.

    Returns
    -------
    object
        Result of ``entry.identity()`` if there is such a method. Otherwise the qualified name and the digest of its code.

    Examples
    --------
    >>> get_identity(UnavailableMethod("no source"))
    'no source'
    """
    if hasattr(entry, "identity"):
        return entry.identity()
    name = getattr(entry, "__qualname__", repr(entry))
    return [entry.__module__, name, code_digest(entry)]
