"""Members of a panel: groups and kinds of the workers of a crowd."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.vocabulary import match_id_type
from wisecrowd.errors import InputError, UsageError, check_choice, preview

PERSON, MACHINE = "person", "machine"


def normalize_mapping(mapping: Any, name: str) -> dict[str, str] | None:
    """Return a mapping by worker as a dict of strings, which JSON can represent.

    Parameters
    ----------
    mapping : mapping, Series or None
        Value by worker; missing values are dropped.
    name : str
        Name of the parameter, for messages.

    Returns
    -------
    dict of str to str or None
        The same object if it is a dict of strings already, since copies of a method keep identical parameters.

    Raises
    ------
    UsageError
        If it is not a mapping.
    InputError
        If a worker occurs twice.

    Examples
    --------
    >>> normalize_mapping(pd.Series({7: "gpt", 8: None}), "groups")
    {'7': 'gpt'}
    >>> normalize_mapping("gpt", "groups")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: groups must be a dict or a Series by worker, {'judge-1': …}; got 'gpt'
    """
    if mapping is None:
        return None
    if isinstance(mapping, dict) and all(isinstance(part, str) for pair in mapping.items() for part in pair):
        return mapping
    if not isinstance(mapping, Mapping | pd.Series):
        raise UsageError(f"{name} must be a dict or a Series by worker, {{'judge-1': …}}; got {mapping!r}")
    series = pd.Series(mapping if isinstance(mapping, pd.Series) else dict(mapping), dtype=object).dropna()
    workers = series.index.astype(str)
    if not workers.is_unique:
        repeated = workers[workers.duplicated()].unique()
        raise InputError(f"{name} has some workers twice: {preview(repeated)}; keep one entry each")
    return dict(zip(workers.tolist(), series.astype(str).tolist(), strict=True))


def encode_groups(groups: dict[str, str] | None, crowd: Crowd) -> tuple[NDArray[np.int32], list[str]]:
    """Return the group of each worker of a crowd, and the names of the groups.

    A group with a single voting member is ignored, since the opinion of a group is not identifiable from one member.

    Parameters
    ----------
    groups : dict or None
        Group by worker.
    crowd : Crowd
        Votes.

    Returns
    -------
    group : ndarray of shape (n_workers,)
        Group codes, −1 for workers without a group.
    names : list of str

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", worker, 0) for worker in "abcd"])
    >>> encode_groups({"a": "gpt", "c": "gpt", "d": "llama"}, crowd)
    (array([ 0, -1,  0, -1], dtype=int32), ['gpt'])
    """
    series = align_to_workers(groups, "groups", crowd)[crowd.votes_per_worker > 0]
    size = series.value_counts()
    names = sorted(str(name) for name in size.index[size > 1])
    code = pd.Index(names, dtype=object).get_indexer(pd.Index(series.to_numpy(dtype=object)))
    group = np.full(crowd.n_workers, -1, dtype=np.int32)
    group[crowd.votes_per_worker > 0] = code
    return group, names


def align_kinds(kinds: dict[str, str] | None, crowd: Crowd) -> pd.Series:
    """Return the kind of each worker of a crowd.

    Parameters
    ----------
    kinds : dict or None
        'person' or 'machine' by worker.
    crowd : Crowd
        Votes.

    Returns
    -------
    Series
        Kind by worker, None where it is unknown.

    Raises
    ------
    UsageError
        If a kind is neither 'person' nor 'machine'.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", worker, 0) for worker in "ab"])
    >>> align_kinds({"a": "person"}, crowd).tolist()
    ['person', None]
    >>> align_kinds({"a": "robot"}, crowd)
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: the kind of 'a' must be one of 'person', 'machine'; got 'robot'.
    """
    for worker, kind in (kinds or {}).items():
        check_choice(f"the kind of {worker!r}", kind, (PERSON, MACHINE))
    return align_to_workers(kinds, "kinds", crowd)


def align_to_workers(mapping: dict[str, str] | None, name: str, crowd: Crowd) -> pd.Series:
    """Return the value of each worker of a crowd.

    Parameters
    ----------
    mapping : dict or None
        Value by worker.
    name : str
        Name of the parameter, for messages.
    crowd : Crowd
        Votes.

    Returns
    -------
    Series
        Value by worker, None where the mapping has none.

    Raises
    ------
    InputError
        If the mapping has workers that are not in the crowd.

    Examples
    --------
    >>> align_to_workers({"a": "gpt"}, "groups", Crowd.from_triples([("t1", worker, 0) for worker in "ab"])).tolist()
    ['gpt', None]
    """
    assert crowd.workers is not None
    workers = pd.Index(list(mapping or ()), dtype=object)
    position = crowd.workers.get_indexer(match_id_type(workers, crowd.workers) if len(workers) else workers)
    if (position < 0).any():
        raise InputError(
            f"{name} name workers who are not in the crowd: {preview(workers[position < 0])}; its workers are "
            f"{preview(crowd.workers)}. Correct the names, or leave out workers without votes"
        )
    values = np.full(crowd.n_workers, None, dtype=object)
    values[position] = list((mapping or {}).values())
    return pd.Series(values, index=crowd.workers, dtype=object)
