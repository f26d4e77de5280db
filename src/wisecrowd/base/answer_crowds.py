"""Conversion of votes to the crowd of an answer type."""

from __future__ import annotations

from typing import Any, TypeVar

from wisecrowd.errors import InputError

AnswerCrowd = TypeVar("AnswerCrowd")


def as_answer_crowd(votes: Any, kind: type[AnswerCrowd], noun: str, *, columns: str, constructors: str) -> AnswerCrowd:
    """Convert votes to a crowd of a class, which must not be empty.

    Parameters
    ----------
    votes : crowd or table
        Votes.
    kind : type
        Class of crowds with a constructor `from_frame`.
    noun : str
        Name of the answers in messages, in the plural.
    columns : str
        Columns of a table of these answers, for a message.
    constructors : str
        Constructors of the crowd, for a message.

    Returns
    -------
    crowd
        Crowd of the class `kind`.

    Raises
    ------
    InputError
        If the votes are other answers, or empty.

    Examples
    --------
    >>> from wisecrowd import TextCrowd
    >>> table = {"task": ["t"], "worker": ["ann"], "text": ["a cat"]}
    >>> as_answer_crowd(table, TextCrowd, "texts", columns="task, worker and text", constructors="from_frame(df)").n_votes
    1
    """
    if isinstance(votes, kind):
        crowd: Any = votes
    elif hasattr(votes, "answer_type") or isinstance(votes, str | list | tuple):
        raise InputError(
            f"this method takes {noun}; got {type(votes).__name__}. Build them with {kind.__name__}.{constructors}"
        )
    else:
        factory: Any = kind
        crowd = factory.from_frame(votes)
    if crowd.n_votes == 0:
        raise InputError(f"there are no {noun}; expected a row per task and worker with the columns {columns}")
    result: AnswerCrowd = crowd
    return result
