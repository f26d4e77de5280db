"""Drift of workers: against a sum over all change points, and on simulated drifters."""

import itertools

import numpy as np
import pytest

from wisecrowd import Crowd, simulate_crowd
from wisecrowd.diagnose import WorkerDiagnosis, diagnose_crowd
from wisecrowd.diagnose import drift as module

KINDS = ["expert"] * 5 + ["noisy(0.7, 0.85)"] * 20 + ["drifter(0.9, 0.3)"] * 5
MADE = simulate_crowd(n_tasks=900, workers=KINDS, votes_per_task=5, random_state=1)
DRIFTERS = [f"w{place}" for place in range(25, 30)]


def test_drifters_are_found_and_others_are_not() -> None:
    table = WorkerDiagnosis(MADE.crowd).table
    flagged = table.index[table["flags"].str.contains("drifts")]
    assert set(DRIFTERS) <= set(flagged)
    assert len(flagged) <= 7  # one in two at the threshold is chance
    found = table.loc[DRIFTERS]
    assert (found["before"] - 0.9).abs().max() < 0.1
    assert (found["after"] - 0.3).abs().median() < 0.1
    middle = 1_704_067_200 + 15 * 86_400
    assert (found["since"].dt.as_unit("s").astype(np.int64) - middle).abs().median() < 4 * 86_400
    assert "since (probability" in found["why"].iloc[0]


def test_the_order_of_rows_does_not_matter_but_that_of_times_does() -> None:
    crowd = MADE.crowd
    rng = np.random.default_rng(0)
    shuffled = crowd.to_frame().sample(frac=1, random_state=0)
    again = WorkerDiagnosis(Crowd.from_frame(shuffled, time="time"))
    np.testing.assert_allclose(again.table["p_drift"], WorkerDiagnosis(crowd).table["p_drift"], atol=1e-12)
    mixed = crowd.replace_fields(time=rng.permutation(crowd.time))
    assert WorkerDiagnosis(mixed).table["flags"].str.contains("drifts").sum() <= 2


def test_without_times_nothing_is_said() -> None:
    crowd = MADE.crowd.replace_fields(time=None)
    people = WorkerDiagnosis(crowd)
    assert people.drift is None
    assert "p_drift" not in people.table
    assert not people.table["flags"].str.contains("drifts").any()


def test_votes_without_a_time_and_workers_with_few_are_left_out() -> None:
    crowd = MADE.crowd
    time = crowd.time.copy()
    mine = np.flatnonzero(crowd.worker == 29)
    time[mine[: len(mine) - module.MIN_VOTES + 1]] = np.nan
    found = WorkerDiagnosis(crowd.replace_fields(time=time)).drift
    assert found is not None
    assert found.loc["w29"].isna().all()
    assert found.drop("w29")["p_drift"].notna().all()


def test_equal_times_and_one_class_do_no_harm() -> None:
    crowd = MADE.crowd
    still = crowd.replace_fields(time=np.full(crowd.n_votes, 1.0))
    found = diagnose_crowd(still).workers
    assert found["p_drift"].between(0, 1).all()
    one = Crowd.from_frame(crowd.to_frame().assign(label="yes"), time="time")
    assert WorkerDiagnosis(one).table["p_drift"].isna().all()


def test_bayes_factor_by_brute_force(monkeypatch: pytest.MonkeyPatch) -> None:
    """log P(votes | one change) − log P(votes | none), summed over every pair of accuracies and every moment."""
    rng = np.random.default_rng(3)
    right = rng.uniform(0.1, 0.9, 40)
    n_classes, spans, grid = 3, module.N_SPANS, (np.arange(module._GRID) + 0.5) / module._GRID
    seen: list[np.ndarray] = []
    monkeypatch.setattr(module, "_estimate_change_probs", lambda odds: seen.append(odds) or np.zeros_like(odds))

    class People:
        crowd = Crowd.from_codes(
            np.arange(40), np.zeros(40, dtype=int), np.zeros(40, dtype=int), tasks=range(40), workers=["ann"],
            classes=range(n_classes), time=np.arange(40.0),
        )  # fmt: skip
        peer_posterior = np.stack([right, (1 - right) / 2, (1 - right) / 2], axis=1)

    module._compare_halves(People(), np.arange(40), np.array([0]), np.array([40]))  # type: ignore[arg-type]
    a = grid[:, None]
    told = np.log(a * right + (1 - a) * (1 - right) / (n_classes - 1))
    known = module._estimate_accuracy_distribution(told.sum(axis=1)[None])
    one = sum(known[i] * np.exp(told[i].sum()) for i in range(len(grid)))
    two = 0.0
    for cut in range(1, spans):
        begin = cut * 4  # forty votes in ten spans
        for i, j in itertools.product(range(len(grid)), repeat=2):
            two += known[i] * known[j] * np.exp(told[i, :begin].sum() + told[j, begin:].sum()) / (spans - 1)
    assert seen[0][0] == pytest.approx(np.log(two / one), rel=1e-9)
