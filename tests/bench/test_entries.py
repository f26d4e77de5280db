from __future__ import annotations

import pickle
from dataclasses import replace

import pandas as pd
import pytest

from wisecrowd import OneCoin
from wisecrowd.bench.data import SimulatedDataset
from wisecrowd.bench.entries import (
    Aggregate,
    UnavailableMethod,
    get_identity,
)
from wisecrowd.errors import InputError, UsageError

DATA = SimulatedDataset({"n_tasks": 60, "n_workers": 5})


def test_settings_and_seed_reach_the_method() -> None:
    fitted = Aggregate("majority-vote", {"ties": "random"})(DATA.load(0), 7)
    assert (fitted.get_params()["ties"], fitted.get_params()["random_state"]) == ("random", 7)


def test_an_unknown_method_or_parameter_is_refused() -> None:
    assert not Aggregate("no-such-method").is_random
    with pytest.raises(UsageError, match="no-such-method"):
        Aggregate("no-such-method")(DATA.load(0), 0)


def test_features_reach_the_methods_that_look_at_them() -> None:
    data = DATA.load(0)
    with pytest.raises(InputError, match="the method uses features, and this dataset has none"):
        Aggregate("mnldp")(data, 0)
    X = pd.DataFrame({"x": range(60)}, index=data.crowd.tasks)
    assert Aggregate("mnldp")(replace(data, features=X), 0).n_iter_ == 5  # type: ignore[attr-defined]
    assert Aggregate("one-coin")(replace(data, features=X), 0).converged_  # type: ignore[attr-defined]


def test_entries_travel_between_processes() -> None:
    for entry in (Aggregate("one-coin"), Aggregate("one-coin", {"max_iter": 3}), UnavailableMethod("why")):
        assert pickle.loads(pickle.dumps(entry)) == entry


def test_identity_follows_settings_and_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Aggregate("one-coin")
    before = entry.identity()
    assert Aggregate("one-coin", {"max_iter": 3}).identity() != before
    assert Aggregate("one-coin", {"max_iter": OneCoin().max_iter}).identity() == before
    assert Aggregate("dawid-skene").identity() != before
    monkeypatch.setattr(OneCoin.__init__, "__kwdefaults__", OneCoin.__init__.__kwdefaults__ | {"max_iter": 7})  # type: ignore[operator]
    assert entry.identity() != before


def test_a_plain_function_has_an_identity() -> None:
    assert get_identity(published)[1] == "published"


def published() -> None:
    """An entry that is a function."""
