"""wisecrowd: many people labelled your data, and they disagree.

>>> import wisecrowd as wc
>>> crowd = wc.Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t1", "cy", "dog"), ("t2", "bob", "dog")])
>>> wc.DawidSkene().fit(crowd).labels_.to_dict()
{'t1': 'cat', 't2': 'dog'}

Names load when they are first used, so that ``import wisecrowd`` costs little more than ``import pandas``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

#: Public name -> the module that defines it.
_HOME = {
    "Crowd": "crowd",
    "read": "io",
    "read_truth": "io",
    "write": "io",
    "load_dataset": "datasets",
    "list_datasets": "datasets",
    "fetch_dataset": "datasets",
    "examine": "doctor",
    "load": "persist",
    "methods": "registry",
    "find": "registry",
    "cite": "citation",
    "simulate_crowd": "simulate",
    "MajorityVote": "aggregate.majority_vote",
    "DawidSkene": "aggregate.dawid_skene",
    "OneCoin": "aggregate.one_coin",
}

__all__ = ["__version__", *sorted(_HOME)]

if TYPE_CHECKING:
    from wisecrowd.aggregate.dawid_skene import DawidSkene
    from wisecrowd.aggregate.majority_vote import MajorityVote
    from wisecrowd.aggregate.one_coin import OneCoin
    from wisecrowd.citation import cite
    from wisecrowd.crowd import Crowd
    from wisecrowd.datasets import fetch_dataset, list_datasets, load_dataset
    from wisecrowd.doctor import examine
    from wisecrowd.io import read, read_truth, write
    from wisecrowd.persist import load
    from wisecrowd.registry import find, methods
    from wisecrowd.simulate import simulate_crowd


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'wisecrowd' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"wisecrowd.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
