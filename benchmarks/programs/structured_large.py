"""Processor seconds and peak memory of a fit to many tasks with five votes each: ``structured_large.py KIND N_TASKS``."""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any

import wisecrowd as wc
from wisecrowd.errors import ignore_fit_warnings

#: Simulation, its options, and method by kind of answer.
KINDS: dict[str, tuple[Any, dict[str, Any], Any]] = {
    "boxes": (wc.simulate_boxes, {}, wc.BoxConsensus()),
    "points": (wc.simulate_points, {}, wc.PointConsensus()),
    "spans": (wc.simulate_spans, {}, wc.SpanConsensus()),
    "texts": (wc.simulate_texts, {}, wc.Rover()),
    "masks": (
        wc.simulate_masks,
        {"height": 64, "width": 64, "sensitivity": 1.0, "specificity": 1.0, "boundary_noise": 0.1},
        wc.Staple(),
    ),
}


def main() -> None:
    kind, n_tasks = sys.argv[1], int(sys.argv[2])
    simulate, options, method = KINDS[kind]
    crowd = simulate(n_tasks=n_tasks, n_workers=200, votes_per_task=5, random_state=0, **options).crowd
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.process_time()
    with ignore_fit_warnings():
        fitted = method.fit(crowd)
    seconds = time.process_time() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    figures = {"seconds": round(seconds, 1), "votes": crowd.n_votes, "iterations": fitted.n_iter_}
    print(json.dumps({**figures, "peak_gb": round(peak / 2**20, 2), "simulated_gb": round(before / 2**20, 2)}))


if __name__ == "__main__":
    main()
