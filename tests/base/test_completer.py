"""The base of completers, against brute force on tables that are given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from wisecrowd import GMV, WSLC, Crowd, DSFill, MajorityVote, load
from wisecrowd.base import completer as base
from wisecrowd.base.completer import Completer, WorkerLabelProbs
from wisecrowd.errors import InputError, UsageError

N_TASKS, N_WORKERS, N_CLASSES = 7, 5, 3


class Table(Completer):
    """Answers by a table that the test gives."""

    table: NDArray[np.float64]
    ready: NDArray[np.bool_] | None = None
    calls: list[tuple[int, int]]

    def _fit(self, crowd: Crowd, X: NDArray[np.float64] | None) -> None:
        self.calls = []

    def _worker_label_probs(self, tasks: NDArray[np.intp], workers: NDArray[np.intp]) -> WorkerLabelProbs:
        self.calls.append((len(tasks), len(workers)))
        cells = np.ix_(tasks, workers)
        return WorkerLabelProbs(self.table[cells], None if self.ready is None else self.ready[cells])


@pytest.fixture
def crowd() -> Crowd:
    """Task 6 has no votes, worker 4 none, worker 0 most; t0 has two votes of w1."""
    rows = [
        (0, 0, 1),
        (0, 1, 0),
        (0, 1, 2),
        (1, 0, 1),
        (1, 2, 1),
        (2, 0, 0),
        (3, 1, 2),
        (4, 3, 0),
        (4, 0, 2),
        (5, 0, 1),
    ]
    task, worker, label = np.array(rows).T
    return Crowd.from_codes(
        task, worker, label, tasks=[f"t{i}" for i in range(N_TASKS)], workers=[f"w{i}" for i in range(N_WORKERS)],
        classes=["a", "b", "c"], duplicates="keep",
    )  # fmt: skip


def table_of(crowd: Crowd, seed: int = 0, **options: Any) -> Table:
    made = Table(**options)
    made.table = np.random.default_rng(seed).dirichlet(np.ones(crowd.n_classes), size=crowd.shape)
    return made


def open_cells(crowd: Crowd, least: int = 0) -> list[tuple[int, int]]:
    taken = set(zip(crowd.task.tolist(), crowd.worker.tolist(), strict=True))  # type: ignore[union-attr]  # has workers
    counts = crowd.votes_per_worker
    everywhere = ((task, worker) for task in range(crowd.n_tasks) for worker in range(crowd.n_workers))
    return [cell for cell in everywhere if cell not in taken and counts[cell[1]] > least]


def filled_rows(filled: Crowd) -> dict[tuple[int, int], dict[int, float]]:
    found: dict[tuple[int, int], dict[int, float]] = {}
    for row in np.flatnonzero(~filled.observed):
        cell = int(filled.task[row]), int(filled.worker[row])  # type: ignore[index]  # has workers
        found.setdefault(cell, {})[int(filled.label[row])] = float(filled.weight[row])
    return found


# ---------------------------------------------------------------------- filling


@pytest.mark.parametrize("least", [0, 1, 2])
def test_hard_answers_are_the_likeliest_label_of_every_open_cell(crowd: Crowd, least: int) -> None:
    made = table_of(crowd, fill_weight=1, min_votes=least)
    rows = filled_rows(made.complete(crowd))
    assert rows == {cell: {int(made.table[cell].argmax()): 1.0} for cell in open_cells(crowd, least)}


def test_soft_answers_have_the_shares_of_the_table(crowd: Crowd) -> None:
    made = table_of(crowd, fill_weight=0.5, fill_mode="soft")
    rows = filled_rows(made.complete(crowd))
    assert list(rows) == open_cells(crowd)
    for cell, shares in rows.items():
        assert np.allclose([shares.get(label, 0) for label in range(3)], 0.5 * made.table[cell], atol=1e-3)
        assert np.isclose(sum(shares.values()), 0.5)


def test_a_faint_answer_is_left_out_and_its_weight_goes_to_the_others(crowd: Crowd) -> None:
    made = table_of(crowd, fill_weight=1, fill_mode="soft")
    made.table[:] = [0.6, 0.3996, 0.0004]
    for shares in filled_rows(made.complete(crowd)).values():
        assert shares == {0: pytest.approx(0.6 / 0.9996), 1: pytest.approx(0.3996 / 0.9996)}


def test_of_very_many_even_classes_none_is_too_faint() -> None:
    many = 3000
    crowd = Crowd.from_codes([0, 1], [0, 1], [0, 1], tasks=range(2), workers=range(2), classes=range(many))
    made = table_of(crowd, fill_weight=1, fill_mode="soft")
    made.table[:] = np.float32(1 / many) * (1 - 1e-6)  # what rounding may make of an even answer
    rows = filled_rows(made.complete(crowd))
    assert [len(shares) for shares in rows.values()] == [many, many]


def test_drawn_answers_come_as_often_as_they_are_probable() -> None:
    crowd = Crowd.from_codes([0, 1], [0, 1], [0, 1], tasks=range(2000), workers=range(2), classes=range(3))
    shares = np.array([0.2, 0.5, 0.3])
    made = table_of(crowd, fill_weight=1, fill_mode="sample")
    made.table[:] = shares
    first = made.complete(crowd)
    said = np.bincount(first.label[~first.observed], minlength=3) / (~first.observed).sum()
    assert np.abs(said - shares).max() < 4 * np.sqrt(0.25 / 3998)
    again = table_of(crowd, fill_weight=1, fill_mode="sample", random_state=1)
    again.table = made.table
    assert 0.5 < (again.complete(crowd).label != first.label).mean() < 0.75  # 1 − Σ p² = 0.62


def test_a_certain_answer_is_always_drawn(crowd: Crowd) -> None:
    made = table_of(crowd, fill_mode="sample")
    made.table = np.eye(3)[np.random.default_rng(1).integers(3, size=crowd.shape)]
    for cell, shares in filled_rows(made.complete(crowd)).items():
        assert list(shares) == [made.table[cell].argmax()]


def test_shared_weight_is_what_an_average_task_weighs(crowd: Crowd) -> None:
    rows = filled_rows(table_of(crowd).complete(crowd))
    mean = 10 / 6  # votes over tasks that have any
    for task in range(N_TASKS):
        cells = [shares for (where, _), shares in rows.items() if where == task]
        assert [list(shares.values()) for shares in cells] == [[pytest.approx(min(1, mean / len(cells)))]] * len(cells)


def test_a_filled_vote_never_weighs_more_than_one() -> None:
    crowd = Crowd.from_triples([(task, worker, "a") for task in range(4) for worker in range(4) if task != worker])
    assert table_of(crowd).complete(crowd).weight.max() == 1


def test_no_more_votes_than_are_wanted_are_filled_in_for_those_with_most_labels(crowd: Crowd) -> None:
    made = table_of(crowd, max_per_task=2, fill_weight=1)
    order = np.argsort(-crowd.votes_per_worker, kind="stable").tolist()
    wanted = []
    for task in range(N_TASKS):
        here = sorted((order.index(worker), worker) for where, worker in open_cells(crowd) if where == task)
        wanted += [(task, worker) for worker in sorted(worker for _, worker in here[:2])]
    assert list(filled_rows(made.complete(crowd))) == wanted


def test_where_a_method_is_not_ready_nothing_is_filled_in(crowd: Crowd) -> None:
    made = table_of(crowd)
    made.ready = np.random.default_rng(2).random(crowd.shape) < 0.4
    before = made.ready.copy()
    assert list(filled_rows(made.complete(crowd))) == [cell for cell in open_cells(crowd) if before[cell]]
    assert np.array_equal(made.ready, before)


def test_blocks_are_small_and_make_the_same_crowd(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    made = table_of(crowd, fill_mode="sample").fit(crowd)
    whole, votes = made.fill(), made.expected_votes()
    monkeypatch.setattr(base, "BLOCK_CELLS", 2 * 4 * N_CLASSES)  # two tasks of the four workers with votes
    made.calls.clear()
    assert made.fill() == whole
    assert made.calls == [(2, 4), (2, 4), (2, 4), (1, 4)]
    assert np.allclose(made.expected_votes(), votes)


def test_expected_votes_are_the_real_ones_and_all_that_is_open_by_its_probability(crowd: Crowd) -> None:
    made = table_of(crowd, fill_weight=0.25).fit(crowd)
    wanted = crowd.vote_counts.copy()
    for task, worker in open_cells(crowd):
        wanted[task] += 0.25 * made.table[task, worker]
    found = made.expected_votes()
    assert np.allclose(found, wanted)
    assert list(found.index) == list(crowd.tasks)
    assert list(found.columns) == ["a", "b", "c"]


def test_completing_what_was_completed_completes_the_real_votes(crowd: Crowd) -> None:
    once = GMV().complete(crowd)
    assert GMV().complete(once) == once


def test_weights_of_votes_stay() -> None:
    crowd = Crowd.from_codes(
        [0, 1], [0, 1], [0, 1], weight=[0.5, 3.0], tasks=range(2), workers=["x", "y"], classes=["a", "b"]
    )
    filled = table_of(crowd, fill_weight=0.1).complete(crowd)
    assert filled.weight[filled.observed].tolist() == [0.5, 3.0]
    assert filled.weight[~filled.observed].tolist() == [0.1, 0.1]


def test_a_task_without_votes_is_filled_in_too(crowd: Crowd) -> None:
    filled = DSFill().complete(crowd)
    assert ((filled.task == 6) & ~filled.observed).sum() == 4
    assert MajorityVote().fit(filled).labels_.notna().all()


# ---------------------------------------------------------------------- asking


def test_what_is_foretold_of_votes_is_read_from_their_cells(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, hidden = crowd.hide(0.4, random_state=3)
    made = table_of(crowd).fit(kept)
    wanted = np.log(made.table[hidden.task, hidden.worker, hidden.label])
    assert np.allclose(made.predict_vote_log_proba(hidden), wanted)
    monkeypatch.setattr(base, "BLOCK_CELLS", N_WORKERS * N_CLASSES)
    assert np.allclose(made.predict_vote_log_proba(hidden), wanted)


def test_what_is_impossible_is_very_unlikely_and_not_minus_infinity(crowd: Crowd) -> None:
    made = table_of(crowd).fit(crowd)
    made.table[:] = [0, 0, 1]
    found = made.predict_vote_log_proba(crowd)
    assert np.allclose(found[crowd.label == 2], 0)
    assert np.allclose(found[crowd.label != 2], np.log(1e-12))


def test_workers_are_asked_by_name_in_any_order_and_of_any_task(crowd: Crowd) -> None:
    made = table_of(crowd).fit(crowd)
    assert np.array_equal(made.predict_worker_proba(), made.table)
    found = made.predict_worker_proba(["t5", "t0", "t5"], pd.Index(["w4", "w1"]))
    assert np.array_equal(found, made.table[np.ix_([5, 0, 5], [4, 1])])


@pytest.mark.parametrize("made", [GMV(), DSFill(), WSLC()], ids=lambda made: made.name)
def test_nobody_and_nothing_can_be_asked_about(made: Completer, crowd: Crowd) -> None:
    X = pd.DataFrame(np.arange(14.0).reshape(7, 2) ** 2, index=crowd.tasks) if made.uses_features else None
    fitted = made.fit(crowd, X)
    assert fitted.predict_worker_proba([], ["w1"]).shape == (0, 1, 3)
    assert fitted.predict_worker_proba(["t1"], []).shape == (1, 0, 3)


def test_a_saved_completer_fills_in_the_same(crowd: Crowd, tmp_path: Any) -> None:
    fitted = GMV().fit(crowd)
    fitted.save(tmp_path / "model")
    assert load(tmp_path / "model").fill() == fitted.fill()  # type: ignore[attr-defined]  # a completer


def test_a_second_fit_forgets_the_first(crowd: Crowd) -> None:
    made = GMV().fit(crowd)
    made.fill()
    other = Crowd.from_triples([("x", "ann", "yes"), ("y", "bob", "no")])
    assert made.complete(other) == GMV().complete(other)


# ---------------------------------------------------------------------- at the door


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fill_mode": "argmax"}, "fill_mode must be one of"),
        ({"fill_weight": 0}, "fill_weight must be 'shared' or a positive number; got 0"),
        ({"fill_weight": float("nan")}, "fill_weight must be"),
        ({"fill_weight": "even"}, "fill_weight must be"),
        ({"min_votes": -1}, "min_votes must be 0 or more; got -1"),
        ({"min_votes": "5"}, "min_votes of Table must be an integer"),
        ({"max_per_task": 0}, "max_per_task must be a whole number of 1 or more"),
        ({"max_per_task": 2.5}, "max_per_task must be a whole number of 1 or more"),
        ({"random_state": -1}, "random_state must be 0 or more; got -1"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(options: dict[str, Any], message: str, crowd: Crowd) -> None:
    with pytest.raises(UsageError, match=message):
        table_of(crowd, **options).fit(crowd)


def test_numbers_of_numpy_are_numbers(crowd: Crowd) -> None:
    made = table_of(crowd, fill_weight=np.int64(1), max_per_task=np.int64(1), min_votes=np.int64(0))
    assert (made.complete(crowd).weight == 1).all()


def test_features_are_asked_for_by_who_needs_them_and_refused_by_who_does_not(crowd: Crowd) -> None:
    with pytest.raises(UsageError, match=r"WSLC needs the features of the tasks; call complete\(crowd, X\)"):
        WSLC().complete(crowd)
    with pytest.raises(UsageError, match="GMV does not use features"):
        GMV().complete(crowd, np.ones((7, 2)))
    with pytest.raises(InputError, match="no features for 7 tasks"):
        WSLC().complete(crowd, pd.DataFrame({"x": range(7)}))
    with pytest.raises(InputError, match=r"expected a row of features per task; got an array of shape \(7, 0\)"):
        WSLC().complete(crowd, pd.DataFrame(index=crowd.tasks))


def test_crowds_that_cannot_be_completed_are_refused() -> None:
    numbers = Crowd.from_triples([(0, "ann", 1.5)], numeric=True)
    with pytest.raises(InputError, match="GMV takes categorical votes, and these labels are numbers"):
        GMV().complete(numbers)
    nobody = Crowd.from_triples([(0, "ann", "a")]).drop_workers()
    with pytest.raises(InputError, match="GMV needs the worker of each vote"):
        GMV().complete(nobody)
    with pytest.raises(InputError, match="needs votes"):
        GMV().complete(Crowd.from_triples([(0, "ann", "a")]).take([False]))


def test_who_or_what_is_not_known_is_named(crowd: Crowd) -> None:
    fitted = GMV().fit(crowd)
    with pytest.raises(InputError, match="unknown workers: 'zoe'"):
        fitted.predict_worker_proba(workers=["w1", "zoe"])
    with pytest.raises(InputError, match="unknown tasks: 't99'"):
        fitted.predict_worker_proba(["t99"])
    with pytest.raises(UsageError, match=r"For one task: \['t1'\]"):
        fitted.predict_worker_proba("t1")
    with pytest.raises(UsageError, match=r"For one worker: \[3\]"):
        fitted.predict_worker_proba(workers=3)


def test_votes_over_other_vocabularies_are_refused(crowd: Crowd) -> None:
    fitted = GMV().fit(crowd)
    with pytest.raises(UsageError, match=r"such as hide\(\) returns"):
        fitted.predict_vote_log_proba(crowd[:3])
    with pytest.raises(UsageError, match=r"votes must be a Crowd, such as .* got DataFrame"):
        fitted.predict_vote_log_proba(crowd.to_frame())  # type: ignore[arg-type]  # what is tried


@pytest.mark.parametrize("ask", [Completer.fill, Completer.expected_votes, Completer.predict_worker_proba])
def test_it_must_be_fitted_first(ask: Any) -> None:
    with pytest.raises(UsageError, match="not fitted yet"):
        ask(GMV())


def test_votes_are_not_foretold_before_a_fit(crowd: Crowd) -> None:
    with pytest.raises(UsageError, match="not fitted yet"):
        GMV().predict_vote_log_proba(crowd)
