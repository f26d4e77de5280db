"""Candidates of a comparison of methods for marks, masks or texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wisecrowd.base.registry import find
from wisecrowd.errors import UsageError


def resolve_candidates(
    methods: Sequence[Any] | None,
    defaults: Sequence[tuple[str, dict[str, Any]]],
    family: type,
    answer_type: str,
    plural: str,
) -> dict[str, Any]:
    """Return unfitted methods by name. The name of a default has the options that the command line needs.

    Parameters
    ----------
    methods : sequence of str or method, or None
        Methods or their names; None for the defaults.
    defaults : sequence of (str, dict)
        Names and parameters of the default candidates, the best known first.
    family : type
        Class of the methods that take such votes.
    answer_type : str
        Answer type of the votes.
    plural : str
        Noun for the votes in messages.

    Returns
    -------
    dict of str to method

    Raises
    ------
    UsageError
        If the methods are no list, empty, or do not take such votes.

    Examples
    --------
    >>> from wisecrowd.base.text_aggregator import TextAggregator
    >>> defaults = [("rover", {}), ("rover", {"weighted": False})]
    >>> list(resolve_candidates(None, defaults, TextAggregator, "texts", "texts"))
    ['rover', 'rover -p weighted=false']
    """
    if isinstance(methods, str):
        raise UsageError(f"methods must be a list; got {methods!r}. For one method: [{methods!r}]")
    if methods is None:
        return {name + _format_options(parameters): find(name)(**parameters) for name, parameters in defaults}
    candidates: dict[str, Any] = {}
    for candidate in methods:
        method: Any = find(candidate)() if isinstance(candidate, str) else candidate
        is_of_family = isinstance(method, family)
        if not is_of_family or answer_type not in method.answer_types:
            raise UsageError(
                f"these votes are {plural}, and {candidate!r} does not take them; choose methods such as {defaults[0][0]!r}"
            )
        candidates[method.name if method.name not in candidates else repr(method)] = method
    if not candidates:
        raise UsageError("methods is empty; name at least one method")
    return candidates


def _format_options(parameters: dict[str, Any]) -> str:
    """Return parameters as options of the command line."""
    return "".join(
        f" -p {key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in parameters.items()
    )
