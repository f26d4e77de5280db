from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from wisecrowd import BradleyTerry
from wisecrowd.data.comparisons import Comparisons
from wisecrowd.errors import InputError
from wisecrowd.evaluate.judged_comparisons import ArenaItems, estimate_arena, fit_scores
from wisecrowd.simulate.evaluations import simulate_arena


def compare(rows: list[tuple[str, str, str, str, str]]) -> Comparisons:
    task, worker, left, right, label = zip(*rows, strict=True)
    columns = {"task": task, "worker": worker, "left": left, "right": right, "label": label}
    return Comparisons.from_frame({name: list(values) for name, values in columns.items()}, task="task")


def test_orders_are_reconciled() -> None:
    judges = compare([("t1", "j", "x", "y", "x"), ("t1", "j", "y", "x", "y"), ("t2", "j", "y", "x", "y")])
    people = compare([("t1", "ann", "y", "x", "x"), ("t1", "bob", "x", "y", "tie")])
    arena = ArenaItems.from_comparisons(judges, people)
    assert arena.verdicts.ravel().tolist() == [0.5, 0.0]  # j contradicts itself on t1
    assert arena.label[0] == 0.75
    assert np.isnan(arena.label[1])


def test_people_alone_are_bradley_terry() -> None:
    arena = simulate_arena(n_tasks=800, n_labelled=800, random_state=0)
    scores = estimate_arena(ArenaItems.from_comparisons(arena.judges, arena.people), use_judges=False)
    expected = BradleyTerry(ridge=0.05).fit(arena.people)
    assert scores.score == pytest.approx(expected.score_, abs=0.01)
    assert np.sqrt(np.diagonal(scores.covariance)) == pytest.approx(
        np.sqrt(np.diagonal(expected.covariance_)), rel=0.15
    )


def test_pseudo_labels_beyond_0_and_1_are_fitted() -> None:
    design = csr_array(np.array([[1.0, -1.0]] * 3))
    score = fit_scores(design, np.array([1.4, 0.9, -0.2]))
    assert 1 / (1 + np.exp(score[1] - score[0])) == pytest.approx(0.7, abs=0.01)


def test_all_pairs_compared_by_people_leave_nothing_to_judges() -> None:
    arena = simulate_arena(n_tasks=300, n_labelled=300, random_state=0)
    items = ArenaItems.from_comparisons(arena.judges, arena.people)
    assert estimate_arena(items).score == pytest.approx(estimate_arena(items, use_judges=False).score, abs=1e-8)


def test_finite_populations_are_more_certain() -> None:
    arena = simulate_arena(n_tasks=300, n_labelled=150, random_state=0)
    items = ArenaItems.from_comparisons(arena.judges, arena.people)
    assert (
        np.diagonal(estimate_arena(items, population="items").covariance)
        < np.diagonal(estimate_arena(items).covariance)
    ).all()


def test_tasks_in_one_table_only_are_refused() -> None:
    arena = simulate_arena(n_tasks=30, n_labelled=10)
    people = Comparisons.from_frame(arena.people.to_frame(), duplicates="keep")
    with pytest.raises(InputError, match="or neither"):
        ArenaItems.from_comparisons(arena.judges, people)


def test_one_label_is_refused() -> None:
    arena = simulate_arena(n_tasks=30, n_labelled=1)
    with pytest.raises(InputError, match="two or more"):
        estimate_arena(ArenaItems.from_comparisons(arena.judges, arena.people))


def test_counts_of_comparisons() -> None:
    arena = simulate_arena(n_tasks=30, n_labelled=10)
    items = ArenaItems.from_comparisons(arena.judges, arena.people)
    assert items.count_comparisons(labelled=False).sum() == 60
    assert items.count_comparisons(labelled=True).sum() == 20
