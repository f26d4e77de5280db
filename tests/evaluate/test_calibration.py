"""Leave-one-out posteriors and calibration without ground truth."""

from __future__ import annotations

import numpy as np

from wisecrowd import DawidSkene, simulate_crowd
from wisecrowd.data.crowd import Crowd
from wisecrowd.evaluate.calibration import calibrate_posterior, leave_one_out_posterior
from wisecrowd.evaluate.metrics import log_loss

SIZES = {"small": (100, 10, 3, 5), "middle": (300, 20, 3, 4), "large": (1000, 40, 4, 5)}


def simulated(size: str, seed: int):  # type: ignore[no-untyped-def]  # a Simulation
    n_tasks, n_workers, n_classes, labels = SIZES[size]
    return simulate_crowd(n_tasks=n_tasks, n_workers=n_workers, n_classes=n_classes, votes_per_task=labels,
                          workers={"noisy": 0.7, "expert": 0.3}, random_state=seed)  # fmt: skip


def test_leaving_a_vote_out_equals_refitting_the_task_without_it() -> None:
    made = simulated("small", 1)
    fitted = DawidSkene().fit(made.crowd)
    others = leave_one_out_posterior(fitted, made.crowd)
    for row in (0, 17, 301):
        keep = np.arange(made.crowd.n_votes) != row
        wanted = fitted.predict_proba(made.crowd.take(keep)).to_numpy()[made.crowd.task[row]]
        np.testing.assert_allclose(others[row], wanted, atol=1e-9)


def test_calibration_flattens_the_posterior_of_workers_who_copy() -> None:
    # Ten workers repeat what one of them says: ten votes are worth hardly more than one.
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=400)
    rows = []
    for leader in range(3):
        said = np.where(rng.random(400) < 0.65, truth, rng.integers(3, size=400))
        for copy in range(4):
            own = rng.random(400) < 0.15
            votes = np.where(own, rng.integers(3, size=400), said)
            rows += [(task, f"w{leader}{copy}", int(votes[task])) for task in range(400)]
    crowd = Crowd.from_triples(rows)
    fitted = DawidSkene().fit(crowd)
    table, exponent = calibrate_posterior(fitted, crowd)
    gold = dict(enumerate(truth.tolist()))
    assert exponent < 0.9
    assert log_loss(gold, table) < log_loss(gold, fitted.proba_)
