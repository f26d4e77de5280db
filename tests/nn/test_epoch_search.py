"""The number of epochs by hidden votes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch")

from wisecrowd import CrowdLayer
from wisecrowd.base.registry import methods
from wisecrowd.errors import UsageError
from wisecrowd.nn.deep_learner import DeepLearner
from wisecrowd.simulate import Simulation


def test_hidden_votes_choose_the_number_of_epochs_and_all_votes_are_learnt(made: Simulation, X: pd.DataFrame) -> None:
    model = CrowdLayer(epochs="auto", hidden=16, learning_rate=0.01).fit(X, made.crowd)
    hidden = model.search_["hidden"].to_numpy()
    assert model.epochs_ == hidden.argmax() + 1 == len(model.history_)
    assert len(hidden) == min(500, model.epochs_ + 30)
    same = CrowdLayer(epochs=model.epochs_, hidden=16, learning_rate=0.01).fit(X, made.crowd)
    assert np.array_equal(same.posterior_, model.posterior_)


def test_a_search_for_epochs_goes_on_after_a_kill(made: Simulation, X: pd.DataFrame, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"epochs": "auto", "hidden": 16, "learning_rate": 0.01}
    whole = CrowdLayer(**settings).fit(X, made.crowd)
    for _ in range(2):
        again = CrowdLayer(checkpoint=str(tmp_path), **settings).fit(X, made.crowd)
        assert np.array_equal(again.posterior_, whole.posterior_)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("name", [name for name, kind in methods("learn").items() if issubclass(kind, DeepLearner)])
def test_every_network_can_search_for_epochs_or_says_why_not(made: Simulation, X: pd.DataFrame, name: str) -> None:
    kind: Any = methods("learn")[name]
    model = kind(epochs="auto", hidden=8, learning_rate=0.02, batch_size=128, schedule="constant")
    if not kind.predicts_votes:
        with pytest.raises(UsageError, match="give the number of epochs"):
            model.fit(X, made.crowd)
    else:
        assert model.fit(X, made.crowd).epochs_ >= 1
