from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wisecrowd.errors import UsageError
from wisecrowd.simulate import assign_with_copiers
from wisecrowd.simulate.copiers import choose_sources, repeat_sources


@st.composite
def crews(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels per task, activity and sources, from nobody copying to nearly everybody."""
    n_independent = draw(st.integers(1, 8))
    followed = draw(st.lists(st.integers(0, n_independent - 1), max_size=8))
    n_workers = n_independent + len(followed)
    order = draw(st.permutations(range(n_workers)))
    source = np.full(n_workers, -1)
    source[list(order[n_independent:])] = np.array(order[:n_independent])[followed]
    activity = np.array(draw(st.lists(st.floats(0.01, 100), min_size=n_workers, max_size=n_workers)))
    counts = np.array(draw(st.lists(st.integers(0, n_workers), max_size=20)), dtype=int)
    return counts, activity, source


@given(crew=crews(), seed=st.integers(0, 5))
def test_tasks_keep_their_number_and_copiers_their_source(
    crew: tuple[np.ndarray, np.ndarray, np.ndarray], seed: int
) -> None:
    counts, activity, source = crew
    task, worker = assign_with_copiers(counts, activity, source, seed)
    assert (np.bincount(task, minlength=len(counts)) == counts).all()
    pairs = list(zip(task.tolist(), worker.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    present = set(pairs)
    assert all((i, source[r]) in present for i, r in pairs if source[r] >= 0)


def test_a_copier_follows_as_often_as_he_works() -> None:
    source = np.array([-1, -1, -1, -1, -1, -1, 0, 1])
    activity = np.array([1, 1, 1, 1, 1, 1, 1, 0.25])
    task, worker = assign_with_copiers(np.full(20_000, 3), activity, source)
    number = np.bincount(worker, minlength=8)
    # Both copiers on one task of three labels do not fit beside their sources, so a few visits are lost.
    assert 0.95 < number[6] / number[0] <= 1
    assert 0.2 < number[7] / number[1] < 0.26
    assert len(task) == 60_000


def test_those_who_do_not_copy_are_displaced_evenly() -> None:
    source = np.array([-1] * 6 + [0])
    _, worker = assign_with_copiers(np.full(30_000, 3), np.ones(7), source)
    others = np.bincount(worker, minlength=7)[1:6]
    assert np.ptp(others) / others.mean() < 0.05


def test_one_label_leaves_no_place_for_a_copier() -> None:
    _, worker = assign_with_copiers(np.ones(100, dtype=int), np.ones(3), np.array([-1, -1, 0]))
    assert set(worker.tolist()) == {0, 1}


def test_nobody_follows_a_source_who_never_works() -> None:
    _, worker = assign_with_copiers(np.full(50, 2), np.array([0.0, 1, 1, 1]), np.array([-1, -1, -1, 0]))
    assert set(worker.tolist()) == {1, 2}
    with pytest.raises(UsageError, match="only 2 are active"):
        assign_with_copiers([3], np.array([0.0, 1, 1, 1]), np.array([-1, -1, -1, 0]))


def test_everybody_on_every_task() -> None:
    task, worker = assign_with_copiers(np.full(10, 4), np.ones(4), np.array([-1, 0, 0, -1]))
    assert (worker.reshape(10, 4) == np.arange(4)).all()
    assert (task.reshape(10, 4) == np.arange(10)[:, None]).all()


def test_repeats_with_its_fidelity() -> None:
    task, worker = np.repeat(np.arange(20_000), 2), np.tile([0, 1], 20_000)
    label = np.repeat([0, 1, 2, 3], 10_000)
    label[1::2] = 9
    said = repeat_sources(task, worker, label, np.array([-1, 0]), np.array([0, 0.7]))
    copied = said[1::2] == said[::2]
    assert copied.mean() == pytest.approx(0.7, abs=0.015)  # four and a half standard deviations
    assert (said[::2] == label[::2]).all()
    assert (said[1::2][~copied] == 9).all()


def test_a_copier_alone_votes_for_himself() -> None:
    said = repeat_sources(np.array([0, 1]), np.array([1, 0]), np.array([5, 6]), np.array([-1, 0]), np.array([0.0, 1.0]))
    assert said.tolist() == [5, 6]


def test_sources_do_not_copy() -> None:
    copies = np.random.default_rng(0).random(100) < 0.4
    source = choose_sources(copies, 3)
    assert ((source >= 0) == copies).all()
    assert not copies[source[copies]].any()
    assert len(set(source[copies].tolist())) > 10
    with pytest.raises(UsageError, match="a worker to copy"):
        choose_sources(np.array([True, True]))
