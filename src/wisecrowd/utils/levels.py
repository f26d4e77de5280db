"""Level of all intervals that wisecrowd shows."""

from __future__ import annotations

#: Probability of an interval if the caller names none. All commands, tables, pages and plots use it.
LEVEL = 0.9


def format_level(level: float = LEVEL) -> str:
    """Return the name of an interval with its level.

    Parameters
    ----------
    level : float, default=0.9
        Probability of the interval.

    Returns
    -------
    str

    Examples
    --------
    >>> format_level()
    '90 % interval'
    """
    return f"{100 * level:g} % interval"
