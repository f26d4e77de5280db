"""What a measured program prints at its end: how long ago it was started, what that cost, and how right it was."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from typing import Any


def report(labels: Any, truth: str, **facts: Any) -> None:
    """Read the clocks, then (unmeasured) the truth, and print all as JSON."""
    facts["wall"] = time.time() - float(os.environ["BEGUN"])
    facts["cpu"] = time.process_time()
    facts["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    if truth != "-":
        import pandas as pd

        known = pd.read_parquet(truth).set_index("task")["label"]
        both = labels.index.intersection(known.index)
        facts["accuracy"] = float((labels[both] == known[both]).mean())
    print(json.dumps(facts))
