"""Speed of Bradley–Terry models on up to ten million comparisons, beside evalica and crowd-kit in the same run.

The peers run in an environment of their own: python -m venv peers && peers/bin/pip install evalica crowd-kit

python benchmarks/comparison_speed.py --peers peers/bin/python
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import wisecrowd as wc

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
N_ITEMS, N_WORKERS = 200, 1_000
#: Comparisons up to which a peer runs.
LIMITS = {
    "evalica": 10_000_000,
    "crowd-kit": 1_000_000,
    "crowd-kit noisy": 10_000,
}
METHODS = {
    "bradley-terry": wc.BradleyTerry(ridge=1e-6, interval="none"),
    "crowd-bradley-terry": wc.CrowdBradleyTerry(),
    "judge-aware-bradley-terry": wc.JudgeAwareBradleyTerry(interval="none"),
}
PEER_NAMES = ("evalica", "crowd-kit", "crowd-kit noisy")
PEERS = Path(__file__).parent / "programs" / "comparison_peers.py"


def simulate(n_votes: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=N_ITEMS)
    left = rng.integers(N_ITEMS, size=n_votes)
    right = (left + 1 + rng.integers(N_ITEMS - 1, size=n_votes)) % N_ITEMS
    wins = rng.random(n_votes) < 1 / (1 + np.exp(scores[right] - scores[left]))
    items = np.array([f"m{n:03}" for n in range(N_ITEMS)])
    workers = np.array([f"w{n:03}" for n in range(N_WORKERS)])
    columns = {"worker": workers[rng.integers(N_WORKERS, size=n_votes)], "left": items[left], "right": items[right]}
    return pd.DataFrame(columns | {"label": items[np.where(wins, left, right)]})


def run_peer(python: str, name: str, path: Path) -> tuple[float, pd.Series]:
    process = subprocess.run([python, str(PEERS), name, str(path)], capture_output=True, text=True, check=True)
    answer = json.loads(process.stdout.splitlines()[-1])
    return float(answer["seconds"]), pd.Series(answer["scores"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", required=True, help="Python of an environment with evalica and crowd-kit.")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="Numbers of comparisons.")
    arguments = parser.parse_args()
    rows = []

    def add(n_votes: int, name: str, seconds: float, correlation: float) -> None:
        rows.append((n_votes, name, seconds, correlation))
        print(f"{n_votes:>10,}  {name:<26}  {seconds:8.3f} s", flush=True)

    for n_votes in arguments.sizes:
        frame = simulate(n_votes)
        begin = time.process_time()
        comparisons = wc.Comparisons.from_frame(frame, duplicates="keep", swapped="keep")
        add(n_votes, "reading a table", time.process_time() - begin, np.nan)
        ours = None
        for name, method in METHODS.items():
            begin = time.process_time()
            fitted = method.clone_unfitted().fit(comparisons)
            seconds = time.process_time() - begin
            ours = fitted.scores_["score"] if ours is None else ours
            add(n_votes, name, seconds, fitted.scores_["score"].corr(ours, method="spearman"))
        del comparisons
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "comparisons.parquet"
            frame.to_parquet(path)
            del frame
            for name in (name for name in PEER_NAMES if n_votes <= LIMITS[name]):
                seconds, scores = run_peer(arguments.peers, name, path)
                add(n_votes, name, seconds, scores.corr(ours, method="spearman"))
    table = pd.DataFrame(rows, columns=["comparisons", "method", "processor seconds", "rank correlation"])
    print(f"\n{N_ITEMS} items, {N_WORKERS:,} workers; rank correlation with bradley-terry\n")
    print(table.round(4).to_string(index=False))


if __name__ == "__main__":
    main()
