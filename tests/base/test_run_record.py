"""Records of runs."""

from __future__ import annotations

import json

from wisecrowd import DawidSkene
from wisecrowd.base.run_record import record_run
from wisecrowd.data.crowd import Crowd

CROWD = Crowd.from_triples([(task, worker, "ab"[(task * worker) % 2]) for task in range(6) for worker in range(3)])


def test_a_run_is_recorded() -> None:
    recorded = record_run(DawidSkene().fit(CROWD), CROWD, note="x")
    assert json.loads(json.dumps(recorded))["converged"] is True
    assert recorded["input"]["sha256"] == CROWD.digest
    assert recorded["note"] == "x"
    assert {"wisecrowd", "python", "numpy"} <= set(recorded["versions"])
