"""Parameters and fitted attributes of methods, written once and rendered into every page of documentation.

A method is a dataclass. Its parameters are fields made by `parameter`; the attributes that ``fit`` sets are fields made
by `fitted`. `method_class` turns the class into a dataclass and adds both lists to its docstring, from which ``help()``,
the website and ``wisecrowd methods NAME`` read them.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from typing import Any, Literal, TypeVar, dataclass_transform

Class = TypeVar("Class", bound=type)

#: Width at which the text of a parameter wraps inside a docstring.
DOCSTRING_WIDTH = 112

# Parameters that several families share.
N_JOBS_HELP = "Number of threads; -1 uses all cores."
ENGINE_HELP = "Where sums over votes are computed: 'local', 'ray', or 'ray:ADDRESS' of a cluster."
CHECKPOINT_HELP = "File that keeps the state of a long fit; an interrupted fit resumes from it."

# Fitted attributes that aggregators and learners share.
N_VOTES_HELP = "Number of votes."
POSTERIOR_HELP = "Posterior probabilities of categorical votes."
PAIR_WORKER_HELP = "Worker of each distinct (worker, label) pair, by position."
PAIR_LABEL_HELP = "Label of each distinct (worker, label) pair, by position."
TALLY_HELP = "Sum of the posteriors of the tasks of each (worker, label) pair."


def parameter(*, default: Any, help: str) -> Any:
    """Return a dataclass field for a parameter of a method.

    Parameters
    ----------
    default : object
        Value when the user gives none.
    help : str
        Meaning of the parameter, in one or two sentences.

    Returns
    -------
    dataclasses.Field

    Examples
    --------
    >>> parameter(default=0.1, help="Number of pseudo-votes.").default
    0.1
    """
    return dataclasses.field(default=default, metadata={"help": help})


def fitted(
    *,
    help: str,
    shape: tuple[int | str, ...] | None = None,
    codes: str | None = None,
    lowest: int = 0,
    finite: bool = False,
    init: Literal[False] = False,
) -> Any:
    """Return a dataclass field for an attribute that ``fit`` sets.

    The declarations are part of the documentation, and `wisecrowd.load` checks them.

    Parameters
    ----------
    help : str
        Content of the attribute.
    shape : tuple of int or str, optional
        Shape of an array or a table. Texts are ``n_tasks``, ``n_workers``, ``n_classes``, ``n_pairs``, names of integer
        parameters, products such as ``n_classes * n_subtypes``, sums such as ``n_tasks + 1``, and any other names for
        sizes that several attributes have in common. "..." stands for any number of further dimensions.
    codes : str, optional
        Size of the vocabulary of integer codes, in the form of ``shape``.
    lowest : int, default=0
        Lowest code.
    finite : bool, default=False
        Whether all numbers are finite.
    init : False
        Tells type checkers that the field is not an argument of the constructor.

    Returns
    -------
    dataclasses.Field
        A field without a value, so that ``hasattr`` is False until the method is fitted.

    Examples
    --------
    >>> fitted(help="Number of iterations.").init
    False
    """
    checks = {"shape": shape, "codes": codes, "lowest": lowest, "finite": finite}
    return dataclasses.field(init=init, metadata={"help": help, **checks})


def parameter_fields(method: Any) -> tuple[dataclasses.Field[Any], ...]:
    """Return the parameters of a method or method class, without its fitted attributes.

    Parameters
    ----------
    method : Method or type
        Method or its class.

    Returns
    -------
    tuple of dataclasses.Field

    Examples
    --------
    >>> from wisecrowd import MajorityVote
    >>> [field.name for field in parameter_fields(MajorityVote)][:2]
    ['soft', 'ties']
    """
    return tuple(field for field in dataclasses.fields(method) if field.init)


def fitted_fields(method: Any) -> tuple[dataclasses.Field[Any], ...]:
    """Return the attributes that ``fit`` sets, of a method or method class.

    Parameters
    ----------
    method : Method or type
        Method or its class.

    Returns
    -------
    tuple of dataclasses.Field

    Examples
    --------
    >>> from wisecrowd import MajorityVote
    >>> "posterior_" in [field.name for field in fitted_fields(MajorityVote)]
    True
    """
    return tuple(field for field in dataclasses.fields(method) if not field.init)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(dataclasses.field, parameter, fitted))
def method_class(cls: Class) -> Class:
    """Turn a class into a method: a dataclass whose docstring lists its parameters and fitted attributes.

    Parameters
    ----------
    cls : type
        Class with fields made by `parameter` and `fitted`.

    Returns
    -------
    type
        The same class.

    Examples
    --------
    >>> @method_class
    ... class Example:
    ...     '''Example of a method.'''
    ...
    ...     tol: float = parameter(default=1e-7, help="Tolerance.")
    >>> print(Example.__doc__)
    Example of a method.
    <BLANKLINE>
    Parameters
    ----------
    tol : float, default 1e-07
        Tolerance.
    <BLANKLINE>
    """
    method: Any = dataclasses.dataclass(kw_only=True, eq=False, repr=False)(cls)
    method.__doc__ = _add_sections(method)
    return method


def _add_sections(cls: type) -> str:
    """Return the docstring of a class with sections for parameters and fitted attributes before its examples."""
    text = inspect.cleandoc(cls.__dict__.get("__doc__") or "")
    sections = []
    for title, fields in (("Parameters", parameter_fields(cls)), ("Attributes", fitted_fields(cls))):
        if fields:
            sections.append(f"{title}\n{'-' * len(title)}\n" + "\n".join(map(_render_field, fields)))
    # numpydoc puts parameters and attributes before these sections.
    marks = ("\nSee Also\n", "\nNotes\n", "\nReferences\n", "\nExamples\n", "\n>>> ")
    end_of_prose = min((position for mark in marks if (position := text.find(mark)) >= 0), default=len(text))
    prose, later_sections = text[:end_of_prose].rstrip(), text[end_of_prose:].strip("\n")
    if later_sections.startswith(">>> "):
        later_sections = f"Examples\n--------\n{later_sections}"
    return "\n\n".join(part for part in (prose, *sections, later_sections) if part) + "\n"


def _render_field(field: dataclasses.Field[Any]) -> str:
    """Return one parameter as numpydoc writes it."""
    kind = _render_type(field.type if isinstance(field.type, str) else getattr(field.type, "__name__", str(field.type)))
    shape = field.metadata.get("shape")
    if shape is not None:
        kind += f" of shape ({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
    default = "" if field.default is dataclasses.MISSING else f", default {field.default!r}"
    text = textwrap.fill(
        field.metadata.get("help", ""), DOCSTRING_WIDTH, initial_indent="    ", subsequent_indent="    "
    )
    return f"{field.name} : {kind}{default}\n{text}"


def _render_type(annotation: str) -> str:
    """Return a type annotation as numpydoc writes types: "NDArray[Any] | None" becomes "ndarray or None"."""
    text = re.sub(r"NDArray\[[^\[\]]*(\[[^\[\]]*\])?[^\[\]]*\]", "ndarray", annotation)
    text = re.sub(r"Literal\[([^\[\]]*)\]", r"{\1}", text)
    text = re.sub(r"\b(pd|np)\.", "", text)
    return re.sub(r"\bAny\b", "object", text).replace(" | ", " or ")
