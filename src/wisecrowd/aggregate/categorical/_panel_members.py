"""Who is in a panel: groups and kinds of workers, as they are given and as a crowd knows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.vocabulary import same_kind
from wisecrowd.errors import InputError, UsageError, one_of, some

PERSON, MACHINE = "person", "machine"


def by_worker(given: Any, what: str) -> dict[str, str] | None:
    """A mapping, Series or table by worker as a dict of texts, which JSON keeps; workers without an entry are left out.

    >>> by_worker(pd.Series({7: "gpt", 8: None}), "groups")
    {'7': 'gpt'}
    >>> by_worker("gpt", "groups")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: groups must say it by worker: a dict or a Series, {'judge-1': …}; got 'gpt'
    """
    if given is None:
        return None
    if isinstance(given, dict) and all(isinstance(part, str) for pair in given.items() for part in pair):
        return given  # as it is: whoever copies a method wants its very parameters
    if not isinstance(given, Mapping | pd.Series):
        raise UsageError(f"{what} must say it by worker: a dict or a Series, {{'judge-1': …}}; got {given!r}")
    told = pd.Series(given if isinstance(given, pd.Series) else dict(given), dtype=object).dropna()
    names = told.index.astype(str)
    if not names.is_unique:
        raise InputError(f"{what} name some workers twice: {some(names[names.duplicated()].unique())}; keep one each")
    return dict(zip(names.tolist(), told.astype(str).tolist(), strict=True))


def groups_of(groups: dict[str, str] | None, crowd: Crowd) -> tuple[NDArray[np.int32], list[str]]:
    """The group of each worker, −1 of those who are on their own, and the groups' names.

    One of whose group nobody else voted is on their own, too: alone, an opinion cannot be told from its only voice.

    >>> crowd = Crowd.from_triples([("t1", worker, 0) for worker in "abcd"])
    >>> groups_of({"a": "gpt", "c": "gpt", "d": "llama"}, crowd)
    (array([ 0, -1,  0, -1], dtype=int32), ['gpt'])
    """
    told = label_probs_of_pairs(groups, "groups", crowd)
    told = told[crowd.votes_per_worker > 0]
    size = told.value_counts()
    names = sorted(str(name) for name in size.index[size > 1])
    code = pd.Index(names, dtype=object).get_indexer(pd.Index(told.to_numpy(dtype=object)))
    found = np.full(crowd.n_workers, -1, dtype=np.int32)
    found[crowd.votes_per_worker > 0] = code
    return found, names


def kinds_of(kinds: dict[str, str] | None, crowd: Crowd) -> pd.Series:
    """The kind of each worker, None where nobody says.

    >>> crowd = Crowd.from_triples([("t1", worker, 0) for worker in "ab"])
    >>> kinds_of({"a": "person"}, crowd).tolist()
    ['person', None]
    >>> kinds_of({"a": "robot"}, crowd)
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: the kind of 'a' must be one of 'person', 'machine'; got 'robot'.
    """
    for worker, kind in (kinds or {}).items():
        one_of(f"the kind of {worker!r}", kind, (PERSON, MACHINE))
    return label_probs_of_pairs(kinds, "kinds", crowd)


def label_probs_of_pairs(given: dict[str, str] | None, what: str, crowd: Crowd) -> pd.Series:
    """What is said of each worker of a crowd, None where nothing is.

    >>> label_probs_of_pairs({"a": "gpt"}, "groups", Crowd.from_triples([("t1", worker, 0) for worker in "ab"])).tolist()
    ['gpt', None]
    """
    assert crowd.workers is not None
    names = pd.Index(list(given or ()), dtype=object)
    place = crowd.workers.get_indexer(same_kind(names, crowd.workers) if len(names) else names)
    if (place < 0).any():
        raise InputError(
            f"{what} name workers who are not in the crowd: {some(names[place < 0])}; its workers are "
            f"{some(crowd.workers)}. Correct the names, or leave out who has no votes here"
        )
    told = np.full(crowd.n_workers, None, dtype=object)
    told[place] = list((given or {}).values())
    return pd.Series(told, index=crowd.workers, dtype=object)
