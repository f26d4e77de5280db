"""Simulate a crowd in shards: ``scale_make.py FOLDER VOTES WORKERS CLASSES SHARDS``; existing shards are kept.

Every task has five votes, one by a worker of each fifth of the crowd, so that nobody votes twice. A worker is right with a
probability between 0.5 and 0.95, and otherwise gives any other class. The truth of the tasks of the first shard is stored in
``truth.npy``. Prints the elapsed seconds and the bytes on disk.
"""

import itertools
import json
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

from wisecrowd.data.sharded import ShardInfo, finish_shards, write_shard

PER_TASK = 5

folder = Path(sys.argv[1])
n_votes, n_workers, n_classes, n_shards = map(int, sys.argv[2:])
started = time.time()
if not (folder / "crowd.json").exists():
    fifth = n_workers // PER_TASK
    right = np.random.default_rng(0).uniform(0.5, 0.95, size=n_workers).astype(np.float32)
    ends = np.linspace(0, n_votes // PER_TASK, n_shards + 1).astype(np.int64).tolist()
    parts = []
    for number, (first, last) in enumerate(itertools.pairwise(ends)):
        description = folder / "shards" / f"{number:06d}.json"
        if description.exists():
            parts.append(ShardInfo(**json.loads(description.read_text())))
            continue
        rng, shape = np.random.default_rng([0, number]), (last - first, PER_TASK)
        truth = rng.integers(n_classes, size=shape[0], dtype=np.int32)[:, None]
        pair = rng.integers(fifth, size=shape, dtype=np.int32) + fifth * np.arange(PER_TASK, dtype=np.int32)
        wrong = rng.random(shape, dtype=np.float32) >= right[pair]
        pair *= n_classes
        pair += (truth + wrong * rng.integers(1, n_classes, size=shape, dtype=np.int32)) % n_classes
        counts = np.full(shape[0], PER_TASK, dtype=np.uint8)
        if not number:
            folder.mkdir(parents=True, exist_ok=True)
            np.save(folder / "truth.npy", truth.ravel().astype(np.int8))
        parts.append(write_shard(folder, number, np.arange(first, last), counts, pair.ravel()))
    worker, label = np.divmod(np.arange(n_workers * n_classes, dtype=np.int32), np.int32(n_classes))
    finish_shards(
        folder, parts, classes=pd.Index([f"class-{k}" for k in range(n_classes)]), workers=pd.RangeIndex(n_workers),
        pair_worker=worker, pair_label=label, weighted=False,
    )  # fmt: skip
size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
print(json.dumps({"seconds": time.time() - started, "bytes": size}))
