"""Parameters of methods: names, copies, and scikit-learn's conventions."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import DawidSkene, OneCoin
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError

CROWD = Crowd.from_triples([(task, worker, "ab"[(task * worker) % 2]) for task in range(6) for worker in range(3)])


def test_get_set_and_repr() -> None:
    method = DawidSkene(smoothing=0.5)
    assert method.get_params()["smoothing"] == 0.5
    assert repr(method.set_params(max_iter=7)) == "DawidSkene(smoothing=0.5, max_iter=7)"
    assert repr(DawidSkene(prior=np.array([0.5, 0.5]))) == "DawidSkene(prior=array([0.5, 0.5]))"


def test_a_misspelt_parameter_gets_advice() -> None:
    with pytest.raises(UsageError, match=r"no parameter 'smothing'.*Did you mean 'smoothing'\?"):
        DawidSkene().set_params(smothing=1)


def test_scikit_learn_understands_a_method() -> None:
    from sklearn.base import clone
    from sklearn.utils.validation import check_is_fitted

    method = clone(OneCoin(smoothing=0.2))
    assert method.smoothing == 0.2
    with pytest.raises(ValueError, match="not fitted"):
        check_is_fitted(method)
    check_is_fitted(method.fit(CROWD))
