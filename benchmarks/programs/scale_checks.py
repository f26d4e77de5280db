"""Cost of checking a crowd in shards: ``scale_checks.py FOLDER REPEATS``.

Prints processor seconds, medians of the repeats: opening the folder with its vocabularies, mapping all shards with and
without their codes and digests checked, and a pass of the E-step over shards that were checked before. Task ids are
numbers in the folder, and texts in a copy of it.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wisecrowd.data.sharded import ShardedCrowd, finish_shards, open_shards, write_shard
from wisecrowd.engines import StreamEngine

folder, repeats = Path(sys.argv[1]), int(sys.argv[2])


def cpu_seconds(call: Callable[[], Any]) -> float:
    """Return the processor time of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def copy_with_texts(source: ShardedCrowd, target: Path) -> None:
    """Write the same votes with texts as task ids."""
    infos = []
    for number, shard in enumerate(source.shards):
        ids = pd.Index([f"task-{task:08d}" for task in shard.tasks])
        infos.append(write_shard(target, number, ids, shard.votes_per_task, shard.pairs.vote_pairs))
    pairs = source.pairs
    finish_shards(
        target, infos, classes=source.classes, workers=source.workers, pair_worker=pairs.worker, pair_label=pairs.label,
        weighted=False,
    )  # fmt: skip


def read_shards(crowd: ShardedCrowd) -> None:
    """Map the files of every shard and use their columns."""
    for shard in crowd.shards:
        _ = shard.layout


def measure(place: Path) -> dict[str, float]:
    """Return the processor seconds of every part."""
    parts: dict[str, list[float]] = {}
    for _ in range(repeats):
        for verify in (False, True):
            crowd = open_shards(place, verify)
            name = "codes and digests" if verify else "codes"
            parts.setdefault(f"open, {name}", []).append(cpu_seconds(lambda: open_shards(place, verify).pairs))  # noqa: B023
            _ = crowd.pairs
            parts.setdefault(f"first read, {name}", []).append(cpu_seconds(lambda: read_shards(crowd)))  # noqa: B023
        parts.setdefault("later read", []).append(cpu_seconds(lambda: read_shards(crowd)))  # noqa: B023
        engine = StreamEngine(crowd, compiled=True)
        prior = np.full(crowd.n_classes, 1 / crowd.n_classes)
        label_probs = np.full((len(crowd.pairs), crowd.n_classes), 1 / crowd.n_classes)
        engine.expect(prior, label_probs)
        parts.setdefault("pass of the E-step", []).append(cpu_seconds(lambda: engine.expect(prior, label_probs)))  # noqa: B023
    return {name: statistics.median(seconds) for name, seconds in parts.items()}


texts = folder.with_name(f"{folder.name}-texts")
if not (texts / "crowd.json").exists():
    copy_with_texts(open_shards(folder), texts)
print(json.dumps({"numbers": measure(folder), "texts": measure(texts)}))
