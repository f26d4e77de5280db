"""Fit CMM to a crowd in memory: ``scale_cmm.py TASKS WORKERS PASSES``; five votes on each task, four features, three classes.

Prints the median seconds of a pass, the seconds before the first and after the last pass, the peak memory of the process in
bytes, and the accuracy.
"""

import json
import sys
import time
from typing import Any

import numpy as np
from scale_usage import memory

from wisecrowd import CMM, Crowd
from wisecrowd.learn.cmm._vote_mixture import VoteMixture

PER_TASK, CLASSES, FEATURES, GROUPS = 5, 3, 4, 3

n_tasks, n_workers, n_passes = map(int, sys.argv[1:])
rng = np.random.default_rng(0)
truth = rng.integers(CLASSES, size=n_tasks, dtype=np.int32)
X = rng.normal(size=(n_tasks, FEATURES))
X[np.arange(n_tasks), truth] += 2
# Every task has one worker of each fifth, so that nobody votes twice. Workers belong to three groups of falling accuracy.
fifth = n_workers // PER_TASK
worker = (
    rng.integers(fifth, size=(n_tasks, PER_TASK), dtype=np.int32) + fifth * np.arange(PER_TASK, dtype=np.int32)
).ravel()
right = np.array([0.9, 0.7, 0.5], dtype=np.float32)[worker % GROUPS]
wrong = rng.random(len(worker), dtype=np.float32) >= right
task = np.repeat(np.arange(n_tasks, dtype=np.int32), PER_TASK)
label = (truth[task] + wrong * rng.integers(1, CLASSES, size=len(worker), dtype=np.int32)) % CLASSES
crowd = Crowd.from_codes(
    task, worker, label, tasks=range(n_tasks), workers=range(n_workers), classes=range(CLASSES), duplicates="keep"
)
del task, worker, label, right, wrong
before = memory()
step, passes = VoteMixture.step, []


def timed(*arguments: Any) -> Any:
    started = time.perf_counter()
    reached = step(*arguments)
    passes.append((started, time.perf_counter()))
    return reached


VoteMixture.step = timed  # type: ignore[method-assign]
started = time.perf_counter()
fitted = CMM(n_groups=GROUPS, max_iter=n_passes, tol=0).fit(X, crowd)
ended = time.perf_counter()
seconds = [end - start for start, end in passes]
figures = {
    "before": passes[0][0] - started, "pass": float(np.median(seconds)), "after": ended - passes[-1][1], "passes": len(seconds),
    "peak": memory()["peak"], "data": before["now"],
    "accuracy": float((fitted.posterior_.argmax(axis=1) == truth).mean()),
    "classifier": float((fitted.predict(X[:100_000]) == truth[:100_000]).mean()),
}  # fmt: skip
print(json.dumps(figures))
