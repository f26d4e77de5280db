from __future__ import annotations

import pickle
import sys
import types
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from wisecrowd import OneCoin
from wisecrowd.bench.data import SimulatedDataset
from wisecrowd.bench.entries import (
    Aggregate,
    LearnerEntry,
    UnavailableMethod,
    code_digest,
    find_imported_modules,
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


def test_comments_and_docstrings_do_not_change_what_a_module_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ['def f():\n    "Doc."\n    return 1', "def f():  # why\n    return 1", "def f():\n    return 2"]
    digests = []
    for number, text in enumerate(texts):
        file = tmp_path / f"made_{number}.py"
        file.write_text(text)
        module = types.ModuleType(file.stem)
        module.__file__ = str(file)
        monkeypatch.setitem(sys.modules, file.stem, module)
        digests.append(code_digest(file.stem))
    assert digests[0] == digests[1] != digests[2]


def test_the_code_of_a_learner_is_all_that_it_imports() -> None:
    modules = find_imported_modules("wisecrowd.learn.ccc.ccc")
    assert {"wisecrowd.learn.ccc._correction", "wisecrowd.nn.deep_learner", "wisecrowd.nn.trainer"} <= modules
    assert "wisecrowd.learn.mmlc.mmlc" not in modules
    assert "wisecrowd.nn.deep_learner" not in find_imported_modules("wisecrowd.aggregate.categorical.dawid_skene")
    assert code_digest("wisecrowd.learn.ccc.ccc") == LearnerEntry("ccc").code()


def test_a_plain_function_has_an_identity() -> None:
    assert get_identity(published)[1] == "published"


def published() -> None:
    """An entry that is a function."""
