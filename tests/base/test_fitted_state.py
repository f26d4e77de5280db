"""Fitted attributes are checked against their declarations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import EBCC, LDPLC, Crowd, DawidSkene, MajorityVote, Panel
from wisecrowd.base.fields import fitted_fields
from wisecrowd.base.fitted_state import MAX_FEATURES, check_fitted_state
from wisecrowd.base.registry import methods

CROWD = Crowd.from_triples([(task, worker, (task + worker) % 2) for task in range(6) for worker in range(3)])


def test_every_array_of_a_method_is_declared_with_a_shape() -> None:
    """An array without a shape is not checked; list here those whose shape is free."""
    free = {"vote_weight_", "vote_time_", "worker_counts_"}
    undeclared = {
        field.name
        for method in methods().values()
        for field in fitted_fields(method)
        if ("NDArray" in str(field.type) or str(field.type).startswith("Array")) and field.metadata.get("shape") is None
    }
    assert undeclared <= free


def test_a_method_that_is_not_fitted_is_valid() -> None:
    check_fitted_state(DawidSkene())


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("tally_", [[1.0, 2.0]], "tally_ must be of the type"),
        ("tally_", None, "tally_ must be of the type"),
        ("converged_", 1, "converged_ must be of the type bool; got a int"),
        ("n_iter_", True, "n_iter_ must be of the type int; got a bool"),
        ("fit_seconds_", "1", "fit_seconds_ must be of the type float"),
        ("restarts_", pd.Index([1]), "restarts_ must be of the type"),
        ("classes_", pd.Index([0, 0]), "the class vocabulary repeats 0"),
        ("worker_index_", pd.Index([0, 1]), "pair_worker_ must hold codes in 0…1; got 0…2"),
        ("task_index_", pd.Index(range(5)), "posterior_ must have the shape"),
        ("more_", 1, "has no attribute 'more_'"),
    ],
)
def test_values_of_another_type_or_size_are_refused(name: str, value: Any, reason: str) -> None:
    fitted = DawidSkene().fit(CROWD)
    setattr(fitted, name, value)
    with pytest.raises(ValueError, match=reason):
        check_fitted_state(fitted)


def test_a_method_without_its_classes_is_refused() -> None:
    fitted = MajorityVote().fit(CROWD)
    del fitted.classes_
    with pytest.raises(ValueError, match="'classes_' is missing"):
        check_fitted_state(fitted)


def test_products_with_a_parameter_are_sizes() -> None:
    fitted = EBCC(n_subtypes=2, max_iter=2, tol=0, n_init=1).fit(CROWD)
    assert fitted.subtype_tally_.shape == (6, 4)
    check_fitted_state(fitted)
    fitted.n_subtypes = 3
    with pytest.raises(ValueError, match=r"subtype_tally_ must have the shape \(n_pairs, n_classes \* n_subtypes\)"):
        check_fitted_state(fitted)


def test_sizes_that_attributes_have_in_common_are_equal() -> None:
    rows = np.random.default_rng(0).normal(size=(6, 2))
    fitted: Any = LDPLC(k=2).fit(CROWD, rows)
    check_fitted_state(fitted)
    for name, value in (
        ("edge_weight_", fitted.edge_weight_[1:]),
        ("edge_offset_", fitted.edge_offset_[1:]),
        ("edge_offset_", fitted.edge_offset_[::-1].copy()),
        ("edge_offset_", np.zeros_like(fitted.edge_offset_)),
        ("edge_to_", fitted.edge_to_ - 1),
        ("edge_to_", fitted.edge_to_ + 6),
    ):
        before = getattr(fitted, name)
        setattr(fitted, name, value)
        with pytest.raises(ValueError, match="edge_"):
            check_fitted_state(fitted)
        setattr(fitted, name, before)


def test_groups_of_a_panel_are_checked() -> None:
    fitted = Panel(groups={0: "a", 1: "a"}, kinds={0: "machine", 1: "machine"}).fit(CROWD)
    check_fitted_state(fitted)
    fitted.group_ = fitted.group_ + 5
    with pytest.raises(ValueError, match="group_ must hold codes in -1…0"):
        check_fitted_state(fitted)


def test_the_limit_of_features_is_that_of_one_row() -> None:
    assert 8 * MAX_FEATURES <= 2**27  # bytes of the row with which a classifier is tried
