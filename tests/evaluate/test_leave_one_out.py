"""Leave-one-out posteriors."""

from __future__ import annotations

import numpy as np

from wisecrowd import DawidSkene, simulate_crowd
from wisecrowd.evaluate.leave_one_out import leave_one_out_posterior


def test_leaving_a_vote_out_equals_refitting_the_task_without_it() -> None:
    made = simulate_crowd(
        n_tasks=100, n_workers=10, n_classes=3, votes_per_task=5, workers={"noisy": 0.7, "expert": 0.3}, random_state=1
    )
    fitted = DawidSkene().fit(made.crowd)
    others = leave_one_out_posterior(fitted, made.crowd)
    for row in (0, 17, 301):
        keep = np.arange(made.crowd.n_votes) != row
        wanted = fitted.predict_proba(made.crowd.take(keep)).to_numpy()[made.crowd.task[row]]
        np.testing.assert_allclose(others[row], wanted, atol=1e-9)
