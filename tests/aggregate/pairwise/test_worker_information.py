"""Information with eliminated workers against the full matrix, and Newton steps against other optimisers."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import CrowdBradleyTerry
from wisecrowd.aggregate.pairwise import _davidson, _worker_information, crowd_bradley_terry
from wisecrowd.aggregate.pairwise._davidson import ComparisonRows, DavidsonModel, Effects
from wisecrowd.aggregate.pairwise._worker_information import WorkerCells
from wisecrowd.simulate.comparisons import simulate_comparisons

COMPARISONS = simulate_comparisons(
    n_items=5, n_workers=7, votes_per_worker=12, discrimination_spread=0.5, lean_spread=0.5, random_state=1
).comparisons
EFFECTS = [Effects(lean, ties, workers=True) for lean in (False, True) for ties in (False, True)]


def make_model(effects: Effects) -> DavidsonModel:
    rows = ComparisonRows.summed(COMPARISONS, workers=True, tasks=False)
    return DavidsonModel(rows if effects.ties else rows.split_ties(), 5, 7, 0, effects)


@pytest.mark.parametrize("dense_share", [0.0, 1.0])
@pytest.mark.parametrize("effects", EFFECTS, ids=str)
def test_the_elimination_is_exact(effects: Effects, dense_share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_worker_information, "DENSE_SHARE", dense_share)
    monkeypatch.setattr(_worker_information, "CHUNK_ELEMENTS", 30)  # several chunks
    model, rng = make_model(effects), np.random.default_rng(0)
    parameters, precisions = rng.normal(size=model.n_parameters) / 2, rng.uniform(0.1, 1, size=model.n_parameters)
    full = model.information(parameters, precisions).toarray()
    information = model.worker_information(parameters, precisions)
    right_side = rng.normal(size=model.n_parameters)
    assert np.allclose(information.diagonal(), full.diagonal(), atol=1e-6)
    assert np.allclose(information.solve(right_side), np.linalg.solve(full, right_side), atol=1e-5)
    assert np.allclose(information.inverse_diagonal(), np.linalg.inv(full).diagonal(), atol=1e-5)


@pytest.mark.parametrize("effects", EFFECTS, ids=str)
def test_the_observed_information_is_the_derivative_of_the_gradient(effects: Effects) -> None:
    model, rng = make_model(effects), np.random.default_rng(0)
    parameters, precisions = rng.normal(size=model.n_parameters) / 4, np.full(model.n_parameters, 5.0)
    direction, step = rng.normal(size=model.n_parameters), 1e-5
    slopes = model.blocks["worker_slope"]
    # The matrix holds for directions that keep the mean of the log-discriminations, and up to a common gradient of them.
    direction[slopes] -= direction[slopes].mean()
    high, low = (model.objective(parameters + sign * step * direction, precisions)[1] for sign in (1, -1))
    derivative = (high - low) / (2 * step)
    information = model.worker_information(parameters, precisions, observed=True)
    unit = np.eye(model.n_parameters)
    full = np.linalg.inv(np.stack([information.solve(column) for column in unit]))
    product = full @ direction
    product[slopes] -= product[slopes].mean()
    assert information.is_positive_definite()
    assert np.allclose(product, derivative, atol=1e-4)


def test_newton_steps_reach_the_optimum_of_lbfgs() -> None:
    effects = Effects(lean=True, workers=True)
    model = make_model(effects)
    precisions = model.prior_precisions(
        {"score": 1.0, "lean": 0.01, "tie": 1e-4, "worker_slope": 4.0, "worker_lean": 2.0, "worker_tie": 2.0}
    )
    start = model.initial_parameters()
    by_newton = model.maximize(start, precisions, max_iter=100, tol=1e-8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_davidson, "MAX_ELIMINATED_ITEMS", 0)
        other = make_model(effects)
    assert not other.has_separate_workers(precisions)
    by_lbfgs = other.maximize(start, precisions, max_iter=1000, tol=1e-8)
    assert by_newton.converged
    assert by_newton.n_iter < 20
    assert np.allclose(by_newton.parameters, by_lbfgs.parameters, atol=1e-5)
    assert by_newton.log_posterior >= by_lbfgs.log_posterior - 1e-9


def test_cells_from_a_table_and_from_sorting_are_equal() -> None:
    rng = np.random.default_rng(0)
    worker, left, right = rng.integers(3, size=20), rng.integers(4, size=20), rng.integers(4, size=20)
    table = WorkerCells.from_rows(worker, left, right, 4, 3)
    # Workers without rows make the table too large.
    sorted_cells = WorkerCells.from_rows(worker, left, right, 4, 1000)
    for name in ("worker", "item", "left_cell", "right_cell", "pair"):
        assert np.array_equal(getattr(table, name), getattr(sorted_cells, name))


@pytest.mark.parametrize("method", ["newton", "lbfgs"])
def test_crowd_scores_do_not_depend_on_the_optimiser(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = CrowdBradleyTerry(tol=1e-9).fit(COMPARISONS)
    if method == "lbfgs":
        monkeypatch.setattr(crowd_bradley_terry, "MAX_ELIMINATED_ITEMS", 0)
    fitted = CrowdBradleyTerry().fit(COMPARISONS)
    assert fitted.converged_
    assert len(fitted.trace_) == fitted.n_iter_
    assert (np.diff(fitted.trace_) > -1e-9).all()
    assert np.allclose(fitted.score_, expected.score_, atol=1e-4)
    assert np.allclose(fitted.reliability_, expected.reliability_, atol=1e-4)
