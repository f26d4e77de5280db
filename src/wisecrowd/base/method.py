"""What every method is: a dataclass that can say what it is, be copied, saved and cited."""

from __future__ import annotations

import dataclasses
import inspect
import re
from abc import ABC
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.errors import InputError, UsageError, did_you_mean

if TYPE_CHECKING:
    from sklearn.utils import Tags

#: Votes in memory, or in shards on disk.
AnyCrowd = Crowd | ShardedCrowd


@dataclass(kw_only=True, eq=False, repr=False)
class Method(ABC):  # noqa: B024  # what it does is for each kind of method to say
    """A method is a dataclass: its fields are its parameters, and what it learns ends in an underscore.

    It is a scikit-learn estimator (``get_params``, ``set_params``, ``clone``), without importing scikit-learn,
    which would triple the time a command line takes to start.

    >>> from wisecrowd import MajorityVote
    >>> MajorityVote(ties="first").get_params()["ties"]
    'first'
    >>> MajorityVote.name
    'majority-vote'
    """

    #: The method to use where nobody knows who cast which vote.
    without_workers: ClassVar[str] = "majority-vote"
    #: What to call it on the command line; from the class's file, so that a name exists once.
    name: ClassVar[str] = ""
    #: Keys into ``references.bib``.
    references: ClassVar[tuple[str, ...]] = ()
    #: Whether it must know who cast each vote.
    needs_workers: ClassVar[bool] = True
    #: Whether it wants numbers instead of classes; None takes either.
    numeric: ClassVar[bool | None] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.name = cls.__module__.rsplit(".", 1)[-1].replace("_", "-")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; with ``deep``, those of nested methods too, as ``outer__inner``."""
        params: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            value = params[field.name] = getattr(self, field.name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                params |= {f"{field.name}__{inner}": part for inner, part in value.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name; a misspelt one is an error."""
        known = {field.name for field in dataclasses.fields(self)}
        for key, value in params.items():
            outer, _, inner = key.partition("__")
            if outer not in known:
                raise UsageError(f"{type(self).__name__} has no parameter {key!r}; it has {', '.join(sorted(known))}."
                                 f"{did_you_mean(outer, known)}")  # fmt: skip
            if inner:
                getattr(self, outer).set_params(**{inner: value})
            else:
                setattr(self, outer, value)
        return self

    def unfitted(self) -> Self:
        """A method with the same parameters that has learnt nothing: whose it is may not want it fitted.

        >>> from wisecrowd import MajorityVote
        >>> MajorityVote(ties="first").unfitted()
        MajorityVote(ties='first')
        """
        return type(self)(**self.get_params(deep=False))

    def __repr__(self) -> str:
        changed = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in dataclasses.fields(self)
            if not _same(getattr(self, field.name), field.default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Tags:
        from sklearn.base import BaseEstimator

        return BaseEstimator.__sklearn_tags__(self)

    def __sklearn_is_fitted__(self) -> bool:
        return any(key.endswith("_") and not key.startswith("_") for key in vars(self))

    @classmethod
    def summary(cls) -> str:
        """The first sentence of the method's page.

        >>> from wisecrowd import MajorityVote
        >>> MajorityVote.summary()
        'The class that most workers chose.'
        """
        text = inspect.getdoc(cls) or ""
        return re.sub(r"\s+", " ", text.split("\n\n")[0]).strip()

    def save(self, folder: str | Path) -> None:
        """Write parameters and everything learnt to a folder of arrays and JSON; :func:`wisecrowd.load` reads it back."""
        from wisecrowd.base.persistence import save

        save(self, folder)

    def _revive(self, name: str, arrays: dict[str, NDArray[Any]]) -> Any:
        """A part with a life of its own (a classifier), made anew from the parameters and the arrays that were saved."""
        raise NotImplementedError(f"{type(self).__name__} has no part {name}")

    def _as_crowd(self, crowd: Any) -> Crowd:
        if isinstance(crowd, Crowd):
            return crowd
        if isinstance(crowd, ShardedCrowd):
            raise UsageError(
                f"{type(self).__name__} wants the votes in memory here, and this crowd is in shards; load them if they fit "
                "(crowd.load()), or fit a method that streams: dawid-skene, one-coin, …"
            )
        build = Crowd.from_triples if isinstance(crowd, list | tuple) else Crowd.from_frame
        return build(crowd, numeric=bool(self.numeric))

    def _check_types(self) -> None:
        """Refuse a text where a number belongs: it would fail far from here, and not say why."""
        number = int | float | np.number
        wanted = {
            "int": (int | np.integer, "a whole number"),
            "float": (number, "a number"),
            "float | None": (number | None, "a number or None"),
        }
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            kinds, words = wanted.get(str(field.type), (object, ""))
            if not isinstance(value, kinds) or (field.name == "tol" and value != value):  # NaN differs from itself
                raise UsageError(f"{field.name} of {type(self).__name__} must be {words}; got {value!r}")

    def _admit(self, crowd: Any, *, shards: bool = False) -> Any:
        """Let a crowd in, or say at the door why not; one in shards only where it is welcome."""
        votes = crowd if shards and isinstance(crowd, ShardedCrowd) else self._as_crowd(crowd)
        title = type(self).__name__
        if votes.is_numeric and self.numeric is False:
            raise InputError(
                f"{title} chooses between classes, but these labels are numbers; use a numeric method "
                "(mean, median), or turn the numbers into names if they are codes of classes"
            )
        if self.numeric is True and not votes.is_numeric:
            raise InputError(f"{title} averages numbers, but these labels are classes; read them with numeric=True")
        if self.needs_workers and not votes.has_workers:
            raise InputError(
                f"{title} must know who cast each vote, and this crowd has no worker ids; use {self.without_workers}"
            )
        if votes.n_labels == 0:
            raise InputError(f"{title} needs votes, and this crowd has none")
        return votes


def _same(value: object, default: object) -> bool:
    try:
        return bool(value is default or value == default)
    except ValueError:  # arrays compare by element
        return False
