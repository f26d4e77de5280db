"""Shared parts of GLAD, Rasch and 2PL: starts, results and tables of tasks. `tests/aggregate/test_on_shards.py` has shards."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import GLAD, Crowd, Rasch, TwoPL, simulate_crowd
from wisecrowd.aggregate.categorical._ability_model import AbilityModel
from wisecrowd.errors import UsageError

CROWD = simulate_crowd(30, 8, 3, votes_per_task=4, random_state=0).crowd
METHODS = [GLAD(), Rasch(), TwoPL()]


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_results_belong_to_workers_and_tasks(method: AbilityModel) -> None:
    fitted = method.clone_unfitted().fit(CROWD)
    assert fitted.workers_["ability"].tolist() == fitted.ability_.tolist()
    assert (fitted.workers_["standard_error"] == fitted.ability_error_).all()
    assert fitted.tasks_.index.tolist() == CROWD.tasks.tolist()
    assert fitted.tasks_["difficulty"].tolist() == fitted.task_parameters_[0].tolist()
    assert fitted.tasks_["n_votes"].tolist() == CROWD.votes_per_task.tolist()
    assert len(fitted.trace_) == fitted.n_iter_
    (table,) = fitted.task_tables()
    assert table.equals(fitted.tasks_)


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_a_fit_goes_on_from_another_one_by_id(method: AbilityModel) -> None:
    """From its own result a fit has nothing left to do; workers and tasks that are new begin at the prior."""
    first = method.clone_unfitted().set_params(tol=1e-9, max_iter=2000).fit(CROWD)
    again = method.clone_unfitted().fit(CROWD, start=first)
    assert again.n_iter_ < first.n_iter_ / 3
    np.testing.assert_allclose(again.ability_, first.ability_, atol=0.05)
    more = Crowd.concat([CROWD, Crowd.from_triples([("new task", "new worker", CROWD.classes[0])])])
    carried = method.clone_unfitted().fit(more, start=first)
    assert carried.workers_.loc["new worker", "ability"] == pytest.approx(method.ability_mean, abs=1.0)


def test_fixed_parameters_are_not_carried_over() -> None:
    free = Rasch().fit(CROWD)
    fixed = Rasch(ability_sd=0, ability_mean=0.7).fit(CROWD, start=free)
    np.testing.assert_allclose(fixed.ability_, 0.7)


def test_a_start_that_is_not_fitted_is_refused() -> None:
    with pytest.raises(UsageError, match="the Rasch given as start is not fitted yet; call fit first"):
        Rasch().fit(CROWD, start=Rasch())


def test_a_second_fit_forgets_the_tables_of_the_first() -> None:
    method = Rasch(max_iter=3, tol=1.0).fit(CROWD)
    few = CROWD[:5]
    assert len(method.fit(few).tasks_) == 5
    assert method.task_parameters_.shape == (1, 5)


def test_before_a_fit_there_are_no_tables() -> None:
    with pytest.raises(UsageError, match="not fitted"):
        next(Rasch().task_tables())
    assert not hasattr(Rasch(), "tasks_")
