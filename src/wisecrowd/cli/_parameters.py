"""Parameters of methods on the command line: ``-p name=value``, parsed by the type of the method's field."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from wisecrowd.base.fields import parameter_fields
from wisecrowd.base.method import Method
from wisecrowd.errors import UsageError, suggest_name

_BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def parse_parameters(method: type[Method], assignments: Iterable[str]) -> dict[str, Any]:
    """Return the parameters of a method that ``name=value`` texts describe.

    Parameters
    ----------
    method : type
        Class of the method.
    assignments : iterable of str
        Texts such as ``max_iter=50``.

    Returns
    -------
    dict
        Value by parameter.
    """
    parameter_names = {field.name for field in parameter_fields(method)}
    kinds = get_type_hints(method)
    parameters: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            raise UsageError(f"-p takes name=value, such as -p max_iter=50; got {assignment!r}")
        if name not in parameter_names:
            there = f"it has {', '.join(sorted(parameter_names))}" if parameter_names else "it has none"
            raise UsageError(f"{method.name} has no parameter {name!r}; {there}.{suggest_name(name, parameter_names)}")
        if name in parameters:
            raise UsageError(f"-p {name} is given twice; leave one of them out")
        try:
            parameters[name] = parse_value(text.strip(), kinds[name])
        except ValueError:
            raise UsageError(f"{name} of {method.name} must be {in_words(kinds[name])}; got {text!r}") from None
    return parameters


def parse_value(text: str, kind: Any) -> Any:
    """Return a text as a value of a type, or raise ValueError.

    Parameters
    ----------
    text : str
        Text of the value.
    kind : object
        Type annotation of the parameter.

    Returns
    -------
    object
    """
    if kind is bool:
        if text.lower() not in _BOOLEANS:
            raise ValueError
        return _BOOLEANS[text.lower()]
    if kind is float and not math.isfinite(float(text)):
        raise ValueError
    if kind in (int, float, str):
        return kind(text)
    if kind is NoneType:
        if text.lower() != "none":
            raise ValueError
        return None
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {str(choice): choice for choice in inner}[text] if text in map(str, inner) else _refuse()
    if origin in (Union, UnionType):
        return _first_that_fits(
            text, sorted(inner, key=lambda kind: kind is str)
        )  # str accepts any text, so it is tried last
    if origin in (tuple, list) and inner:
        return origin(parse_value(part.strip(), inner[0]) for part in text.split(","))
    return _anything(text)


def in_words(kind: Any) -> str:
    """Return the name of a type in words."""
    plain = {int: "a whole number", float: "a finite number", bool: "true or false", str: "a text", NoneType: "none"}
    if kind in plain:
        return plain[kind]
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return " or ".join(str(choice) for choice in inner)
    if origin in (Union, UnionType):
        return " or ".join(in_words(part) for part in inner)
    if origin in (tuple, list) and inner:
        return f"several, separated by commas, each {in_words(inner[0])}"
    return "numbers separated by commas, or JSON"


def _first_that_fits(text: str, kinds: Iterable[Any]) -> Any:
    for kind in kinds:
        try:
            return parse_value(text, kind)
        except ValueError:
            continue
    return _refuse()


def _anything(text: str) -> Any:
    """Return None, JSON, numbers separated by commas, or the text itself, whichever fits first."""
    if text.lower() == "none":
        return None
    for reading in (json.loads, lambda text: [float(part) for part in text.split(",")]):
        try:
            return reading(text)
        except ValueError:
            continue
    return text


def _refuse() -> Any:
    raise ValueError
