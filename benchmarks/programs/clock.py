"""What a measured program says at its end: how long it took, at what cost, and how right it was."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from typing import Any


class Clock:
    """Starts when it is made, which is after the imports."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.time(), time.process_time()

    def report(self, labels: Any, truth: str, **facts: Any) -> None:
        """Read the clocks, then (unmeasured) the truth, and print all as JSON."""
        now = time.time()
        unit = 1 if sys.platform == "darwin" else 1024
        facts |= {
            "wall": now - self.wall,
            "cpu": time.process_time() - self.cpu,
            "process": now - float(os.environ["BEGUN"]),
            "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit,
        }
        import pandas as pd

        known = pd.read_parquet(truth).set_index("task")["label"]
        both = labels.index.intersection(known.index)
        facts["accuracy"] = float((labels[both] == known[both]).mean())
        print(json.dumps(facts))
