"""Parameters of methods: names, copies, and scikit-learn's conventions."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from wisecrowd import GTIC, DawidSkene, DSWorkerClusters, FastDS, MajorityVote, OneCoin, Panel
from wisecrowd.base import method as base_method
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import InputError, UsageError

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


# ---------------------------------------------------------------------- tables that a small file could make large


def _crowd_of(n_votes: int, n_classes: int, n_workers: int = 4) -> Crowd:
    numbers = np.arange(n_votes)
    return Crowd.from_codes(
        numbers % max(1, n_votes // 3),
        numbers % n_workers,
        numbers % n_classes,
        tasks=range(max(1, n_votes // 3)),
        workers=range(n_workers),
        classes=range(n_classes),
        duplicates="keep",
    )


def test_a_class_for_every_vote_is_refused_before_tables_are_made() -> None:
    with pytest.raises(
        InputError, match=r"there are 12,000 classes for 12,000 votes, fewer than 5 votes per class.*--numeric"
    ):
        DawidSkene().fit(_crowd_of(12_000, 12_000))


def test_many_classes_in_small_tables_are_fitted() -> None:
    posterior = MajorityVote().fit(_crowd_of(30, 20_000)).posterior_
    assert posterior.shape == (10, 20_000)


def test_classes_with_enough_votes_are_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base_method, "MAX_CELLS_BY_VOTES_PER_CLASS", {5: 100, 50: 5_000})
    MajorityVote().fit(_crowd_of(100, 20))
    with pytest.raises(InputError, match="there are 20 classes for 99 votes, fewer than 5"):
        MajorityVote().fit(_crowd_of(99, 20))
    MajorityVote().fit(_crowd_of(1000, 20))
    with pytest.raises(InputError, match="there are 20 classes for 999 votes, fewer than 50"):
        MajorityVote().fit(_crowd_of(999, 20))


@pytest.mark.parametrize("method", [DSWorkerClusters(), Panel(groups={0: "a", 1: "a"})], ids=lambda method: method.name)
def test_dense_matrices_of_many_classes_are_refused(method: Any) -> None:
    with pytest.raises(InputError, match=r"needs [13] matri\w+ of 20,000 x 20,000 classes, which do not fit in memory"):
        method.fit(_crowd_of(30, 20_000))


@pytest.mark.parametrize(
    "method", [MajorityVote(ties="first"), MajorityVote(ties="random"), FastDS(ties="first"), GTIC()], ids=repr
)
def test_decisions_need_no_matrix_of_classes(method: Any) -> None:
    """Twenty thousand classes squared would be 3 GB."""
    tracemalloc.start()
    try:
        method.fit(_crowd_of(30, 20_000), truth={0: 7})
        assert tracemalloc.get_traced_memory()[1] < 200_000_000
    finally:
        tracemalloc.stop()
