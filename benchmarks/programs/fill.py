"""Complete a simulated crowd with MMLC: ``fill.py HOW WORKERS TASKS``; HOW is "fill" (one crowd in memory) or "stream" (chunks).

Three labels on each task of 64 features and 8 classes. Prints the seconds of filling, the number of filled votes, and the peak
memory of the process in bytes, including training.
"""

import json
import resource
import sys
import time

import numpy as np
import torch

from wisecrowd import MMLC, Crowd, MMLCFill

CLASSES, FEATURES, LABELS = 8, 64, 3

how, n_workers, n_tasks = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(1)
rng = np.random.default_rng(0)
truth = rng.integers(CLASSES, size=n_tasks)
X = rng.normal(size=(n_tasks, FEATURES)) + 3 * np.eye(CLASSES, FEATURES)[truth]
worker = (rng.integers(n_workers, size=n_tasks)[:, None] + np.arange(LABELS)) % n_workers
label = np.where(rng.random((n_tasks, LABELS)) < 0.7, truth[:, None], rng.integers(CLASSES, size=(n_tasks, LABELS)))
crowd = Crowd.from_codes(
    np.repeat(np.arange(n_tasks), LABELS), worker.ravel(), label.ravel(), tasks=range(n_tasks), workers=range(n_workers),
    classes=range(CLASSES), duplicates="keep",
)  # fmt: skip
fitted = MMLCFill(learner=MMLC(epochs=1)).fit(crowd, X)
started = time.process_time()
chunks = [fitted.fill()] if how == "fill" else fitted.stream()
n_filled = sum(int((~chunk.observed).sum()) for chunk in chunks)
seconds = time.process_time() - started
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"seconds": seconds, "filled": n_filled, "peak": peak}))
